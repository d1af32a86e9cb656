// Recorded requests against the strategies alone: a POST is decoded, defaulted, prepared and validated as the Store does it, and the
// field errors must be the recorded ones; a PUT goes against what the case made before. What was accepted must be accepted, and what the
// server answered must be what defaults and prepare functions made of it. No storage, no admission: cases that need them are named below.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/strings.h"
#include "codec/json.h"
#include "meta/status.h"
#include "object/json_text.h"
#include "registry/catalog/conversion.h"
#include "registry/semantic.h"
#include "registry/strategy.h"
#include "schema/schema.h"
#include "validation/defaulting.h"

namespace keelson::registry {
namespace {

// Groups whose strategies are complete: the others have their own tests.
const std::set<std::string_view> kGroups = {
    "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "autoscaling",       "certificates.k8s.io",
    "coordination.k8s.io",          "discovery.k8s.io",     "events.k8s.io",          "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",            "node.k8s.io",          "policy",                 "rbac.authorization.k8s.io",
    "resource.k8s.io",              "scheduling.k8s.io",    "storage.k8s.io",
};

// What strategies alone cannot answer.
const std::map<std::string, std::string> kNotHere = {
    {"resourceclaim/create-admin-access", "needs the namespace's labels"},
    {"storageclass/create-default", "admission"},
    {"cel/invalid-not-bool", "needs a CEL checker"},
    {"cel/invalid-unknown-function", "needs a CEL checker"},
    {"deviceclass/create-not-bool", "needs a CEL checker"},
    {"validatingadmissionpolicy/create-unknown-var", "needs a CEL checker"},
    {"validatingadmissionpolicy/create-undeclared", "needs a CEL checker"},
    {"validatingadmissionpolicy/create-var-order", "needs a CEL checker"},
    {"validatingadmissionpolicy/create-params-without-kind", "needs a CEL checker"},
};

std::filesystem::path CorpusRoot() {
  const char* const root = std::getenv("KEELSON_CORPUS");
  return root != nullptr ? root : "../shared/corpus";
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// Placeholders that the replayer would choose.
std::string Fill(std::string text) {
  text = base::ReplaceAll(text, "${ns}", "corpus-ns");
  return base::ReplaceAll(text, "${pfx}", "corpus-pfx");
}

bool NoFeature(std::string_view) { return false; }

struct Target {
  const schema::Resource* resource = nullptr;
  std::string name_space;
  std::string name;
  std::string subresource;
  bool dry_run = false;
};

Target ParsePath(std::string_view path) {
  Target target;
  const auto query = path.find('?');
  if (query != std::string_view::npos) {
    target.dry_run = path.find("dryRun", query) != std::string_view::npos;
    path = path.substr(0, query);
  }
  auto parts = base::Split(path.substr(1), '/');
  std::size_t at = 0;
  std::string_view group;
  if (parts[at++] == "apis" && parts.size() > 2) group = parts[at++];
  if (at + 1 >= parts.size()) return target;
  const std::string_view version = parts[at++];
  if (parts[at] == "namespaces" && at + 2 < parts.size()) {
    target.name_space = parts[at + 1];
    at += 2;
  }
  target.resource = schema::FindResource(group, version, parts[at++]);
  if (at < parts.size()) target.name = parts[at++];
  if (at < parts.size()) target.subresource = parts[at++];
  return target;
}

class Player {
 public:
  struct Outcome {
    bool ran = false;
    FieldErrors errors;
    Value object;  // in the request's version
  };

  Outcome Create(const Target& target, const std::string& body) {
    Outcome outcome;
    Value object = Decode(target, body);
    if (object.is_null()) return outcome;
    const Strategy* const strategy = FindStrategy(target.resource->group, target.resource->kind);
    if (strategy == nullptr) return outcome;
    outcome.ran = true;
    Value metadata = object.EnsureMap(arena_, "metadata");
    if (target.resource->namespaced) {
      metadata.Set(arena_, "namespace", Value::String(arena_, target.name_space));
    } else {
      metadata.Erase("namespace");  // As the generic layer does before the strategy sees it.
    }
    const Call call = MakeCall(target);
    if (strategy->has_status && !strategy->keeps_status_on_create) object.Erase("status");
    if (strategy->generation == Generation::kSpec) metadata.Set(arena_, "generation", 1);
    if (strategy->prepare_for_create != nullptr) strategy->prepare_for_create(call, object, Value());
    const FieldPath path("metadata");
    if (!strategy->validates_metadata) {
      validation::ValidateObjectMeta(metadata, target.resource->namespaced, strategy->name_rule, path, outcome.errors, strategy->core_finalizers);
    }
    if (strategy->validate != nullptr) strategy->validate(call, object, Value(), outcome.errors);
    if (outcome.errors.empty()) {
      validation::ValidateObjectMeta(metadata, target.resource->namespaced, validation::NameIsPathSegment, path, outcome.errors, false);
    }
    if (outcome.errors.empty()) {
      metadata.Set(arena_, "uid", "00000000-0000-0000-0000-000000000001");
      metadata.Set(arena_, "resourceVersion", "1");
      stored_[Key(target, metadata["name"].as_string())] = object;
    }
    outcome.object = FromHub(target, object);
    return outcome;
  }

  Outcome Update(const Target& target, const std::string& body) {
    Outcome outcome;
    const auto found = stored_.find(Key(target, target.name));
    const Strategy* const strategy = FindStrategy(target.resource->group, target.resource->kind);
    if (found == stored_.end() || strategy == nullptr) return outcome;
    const UpdateRules* rules = target.subresource.empty() ? &strategy->update : target.subresource == "status" ? &strategy->status : nullptr;
    for (const Subresource& sub : strategy->subresources) {
      if (sub.name == target.subresource) rules = &sub.rules;
    }
    Value object = Decode(target, body);
    if (object.is_null() || rules == nullptr) return outcome;
    outcome.ran = true;
    const Value old = found->second;
    Value metadata = object.EnsureMap(arena_, "metadata");
    const Value old_metadata = old["metadata"];
    for (const std::string_view key : {"generation", "uid", "resourceVersion", "creationTimestamp", "namespace"}) {
      metadata.Erase(key);
      if (old_metadata.Has(key)) metadata.Set(arena_, key, old_metadata[key]);
    }
    const auto keep = [&](std::string_view key) {
      object.Erase(key);
      if (old.Has(key)) object.Set(arena_, key, old[key].Clone(arena_));
    };
    if (target.subresource.empty() && strategy->has_status) keep("status");
    if (target.subresource == "status") keep("spec");
    const Call call = MakeCall(target);
    if (rules->prepare_for_update != nullptr) rules->prepare_for_update(call, object, old);
    const FieldPath path("metadata");
    validation::ValidateObjectMeta(metadata, target.resource->namespaced, validation::NameIsPathSegment, path, outcome.errors, false);
    validation::ValidateObjectMetaUpdate(metadata, old_metadata, path, outcome.errors, false);
    if (rules->validate_update != nullptr) rules->validate_update(call, object, old, outcome.errors);
    if (outcome.errors.empty()) found->second = object;
    outcome.object = FromHub(target, object);
    return outcome;
  }

  base::Arena& arena() { return arena_; }

 private:
  static std::string Key(const Target& target, std::string_view name) {
    return std::string(target.resource->plural) + "/" + target.name_space + "/" + std::string(name);
  }

  // A JSON number in the placeholder's place would not do; bodies with such are passed over.
  Value Decode(const Target& target, const std::string& body) {
    auto decoded = codec::DecodeJSON(arena_, body, *target.resource->type);
    if (!decoded.ok()) return {};
    Value object = decoded->value;
    validation::ApplyTableDefaults(arena_, *target.resource->type, object);
    const Strategy* const strategy = FindStrategy(target.resource->group, target.resource->kind);
    const Conversion* const conversion = FindConversion(target.resource->group, target.resource->version, target.resource->kind);
    if (conversion != nullptr) object = conversion->to_hub(arena_, object);
    if (strategy != nullptr && strategy->defaults != nullptr) strategy->defaults(arena_, object);
    return object;
  }

  Value FromHub(const Target& target, const Value& object) {
    const Conversion* const conversion = FindConversion(target.resource->group, target.resource->version, target.resource->kind);
    return conversion == nullptr ? object : conversion->from_hub(arena_, object);
  }

  Call MakeCall(const Target& target) {
    return {.arena = arena_,
            .clock = base::Clock::Real(),
            .random = base::Random::Real(),
            .warnings = warnings_,
            .user_name = "admin",
            .user_groups = groups_,
            .name_space = target.name_space,
            .request_group = target.resource->group,
            .request_version = target.resource->version,
            .feature_enabled = NoFeature};
  }

  base::Arena arena_;
  std::vector<std::string> warnings_;
  std::vector<std::string> groups_ = {"system:masters", "system:authenticated"};
  std::map<std::string, Value> stored_;
};

std::vector<std::string> Texts(const FieldErrors& errors) {
  std::vector<std::string> texts;
  for (const auto& error : errors) {
    // As causes[] shows them.
    texts.push_back(std::string(meta::CauseReason(error.type)) + " " + error.field + ": " + error.Body());
  }
  return texts;
}

std::vector<std::string> RecordedTexts(const Value& response) {
  std::vector<std::string> texts;
  for (const Value& cause : response["body"]["details"]["causes"].items()) {
    texts.push_back(std::string(cause["reason"].as_string()) + " " + std::string(cause["field"].as_string()) + ": " +
                    std::string(cause["message"].as_string()));
  }
  return texts;
}

struct Tally {
  int passed = 0;
  int failed = 0;
};

// The answer's body without metadata and what only the clock knows, against what the strategy made.
void ExpectSameBody(Player& player, const Target& target, const Value& made, const Value& recorded) {
  auto wanted = codec::DecodeJSON(player.arena(), object::ToJSON(recorded), *target.resource->type);
  if (!wanted.ok()) return;  // a placeholder where a number or a time should be
  for (const schema::Field* field : target.resource->type->json_fields) {
    if (field->name == "metadata" || field->name == "kind" || field->name == "apiVersion" || field->name == "status") continue;
    const Value now = made[field->name];
    const Value want = wanted->value[field->name];
    EXPECT_TRUE(SemanticEqual(now, want, *field->type, field->pointer))
        << field->name << "\n made " << object::ToJSON(now) << "\n want " << object::ToJSON(want);
  }
}

bool IsPlaceholderBound(const std::string& text) {
  for (const std::string_view kind : {"${uid", "${rv", "${gen", "${created", "${t", "${ip", "${port", "${lrv"}) {
    if (text.find(kind) != std::string::npos) return true;
  }
  return false;
}

void PlayCase(const std::string& group, const Value& item, Tally& tally) {
  const std::string full = group + "/" + std::string(item["name"].as_string());
  SCOPED_TRACE(full);
  Player player;
  for (const Value& step : item["steps"].items()) {
    const Value request = step["request"];
    const Value response = step["response"];
    const std::string_view method = request["method"].as_string();
    const std::int64_t status = response["status"].as_int();
    if (!request["body"].is_map() || (method != "POST" && method != "PUT")) continue;
    if (!request["headers"]["Content-Type"].is_null()) continue;
    if (status != 201 && status != 200 && status != 422) continue;
    const Target target = ParsePath(request["path"].as_string());
    if (target.resource == nullptr || !kGroups.contains(target.resource->group)) continue;
    if (method == "POST" && !target.name.empty()) continue;
    if (request["body"]["metadata"]["name"].is_null() && !request["body"]["metadata"]["generateName"].is_null()) continue;
    // Options are the endpoint's business.
    const std::string_view query = request["path"].as_string();
    if (query.find("fieldValidation") != std::string_view::npos || query.find("dryRun=Some") != std::string_view::npos) continue;
    const auto recorded = RecordedTexts(response);
    if (IsPlaceholderBound(base::Join(recorded, "\n"))) continue;
    SCOPED_TRACE(std::string(step["name"].as_string()) + " " + std::string(method) + " " + std::string(request["path"].as_string()));
    const int before = ::testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
    const std::string body = object::ToJSON(request["body"]);
    const Player::Outcome outcome = method == "POST" ? player.Create(target, body) : player.Update(target, body);
    if (!outcome.ran) continue;
    if (kNotHere.contains(full)) continue;
    EXPECT_EQ(Texts(outcome.errors), recorded);
    if (status != 422 && method == "POST" && outcome.errors.empty()) ExpectSameBody(player, target, outcome.object, response["body"]);
    const int after = ::testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
    (after == before ? tally.passed : tally.failed)++;
  }
}

void PlayFile(const std::filesystem::path& path, std::map<std::string, Tally>& tallies) {
  base::Arena arena;
  const std::string text = Fill(ReadFile(path));
  auto parsed = codec::DecodeJSON(arena, text);
  ASSERT_TRUE(parsed.ok()) << path << ": " << parsed.error().message;
  const std::string name = path.stem().string();
  for (const Value& item : parsed->value["cases"].items()) PlayCase(name, item, tallies[name]);
}

void Play(std::string_view area) {
  const auto root = CorpusRoot() / area;
  if (!std::filesystem::exists(root)) GTEST_SKIP() << "no recordings at " << root;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::map<std::string, Tally> tallies;
  for (const auto& file : files) PlayFile(file, tallies);
  Tally all;
  for (const auto& [name, tally] : tallies) {
    if (tally.passed + tally.failed == 0) continue;
    std::printf("%-40s %4d passed %4d failed\n", name.c_str(), tally.passed, tally.failed);
    all.passed += tally.passed;
    all.failed += tally.failed;
  }
  std::printf("%-40s %4d passed %4d failed\n", std::string(area).c_str(), all.passed, all.failed);
  EXPECT_GT(all.passed, 0);
}

TEST(Corpus, Validation) { Play("validation"); }
TEST(Corpus, Crud) { Play("crud"); }
TEST(Corpus, CustomResourceDefinitions) { Play("crd"); }

}  // namespace
}  // namespace keelson::registry
