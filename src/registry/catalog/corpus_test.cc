// Recorded requests against the strategies alone: a POST is decoded, defaulted, prepared and validated as the Store
// does it, and the field errors must be the recorded ones; a PUT goes against what the case made before. What was
// accepted must be accepted, and what the server answered must be what defaults and prepare functions made of it. No
// storage, no admission: cases that need them are named below.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/strings.h"
#include "codec/json.h"
#include "object/json_text.h"
#include "registry/catalog/play.h"
#include "registry/semantic.h"

namespace keelson::registry {
namespace {

// Groups whose strategies are complete: the others have their own tests.
const std::set<std::string_view> kGroups = {
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "autoscaling",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
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

// Stand-ins that the replayer would choose.
std::string Fill(std::string text) {
  text = base::ReplaceAll(text, "${ns}", "corpus-ns");
  return base::ReplaceAll(text, "${pfx}", "corpus-pfx");
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
  if (!wanted.ok()) return;  // a stand-in where a number or a time should be
  for (const schema::Field* field : target.resource->type->json_fields) {
    if (field->name == "metadata" || field->name == "kind" || field->name == "apiVersion" || field->name == "status")
      continue;
    const Value now = made[field->name];
    const Value want = wanted->value[field->name];
    EXPECT_TRUE(SemanticEqual(now, want, *field->type, field->pointer))
        << field->name << "\n made " << object::ToJSON(now) << "\n want " << object::ToJSON(want);
  }
}

bool HasStandIn(const std::string& text) {
  for (const std::string_view kind : {"${uid", "${rv", "${gen", "${created", "${t", "${ip", "${port", "${lrv"}) {
    if (text.find(kind) != std::string::npos) return true;
  }
  return false;
}

// One object as a Table, against the cells the strategy makes of it. Stand-ins stand for what the clock says.
void PlayTable(Player& player, const Value& request, const Value& response, Tally& tally) {
  const Target target = ParsePath(request["path"].as_string());
  if (target.resource == nullptr || target.name.empty() || !target.subresource.empty()) return;
  // Controllers inside the server write these statuses at once.
  if (target.resource->plural == "apiservices" || target.resource->plural == "flowschemas") return;
  const Value cells = player.Row(target);
  const Value recorded = response["body"]["rows"][std::size_t{0}]["cells"];
  if (cells.is_null() || recorded.is_null()) return;
  SCOPED_TRACE("Table of " + std::string(request["path"].as_string()));
  bool same = cells.size() == recorded.size();
  for (std::size_t i = 0; same && i < cells.size(); ++i) {
    same = recorded[i].as_string().starts_with("${") || cells[i] == recorded[i];
    // What was just made has no age yet here, and seconds there.
    same = same || cells[i].as_string() == "<unknown>";
  }
  EXPECT_TRUE(same) << "made " << object::ToJSON(cells) << "\nwant " << object::ToJSON(recorded);
  (same ? tally.passed : tally.failed)++;
}

void PlayCase(const std::string& group, const Value& item, Tally& tally) {
  const std::string full = group + "/" + std::string(item["name"].as_string());
  SCOPED_TRACE(full);
  Player player;
  bool untouched = true;
  for (const Value& step : item["steps"].items()) {
    const Value request = step["request"];
    const Value response = step["response"];
    const std::string_view method = request["method"].as_string();
    const std::int64_t status = response["status"].as_int();
    if (method == "PATCH" || method == "DELETE")
      untouched = false;  // What is stored there is no longer what is stored here.
    if (method == "GET" && untouched &&
        request["headers"]["Accept"].as_string().find("as=Table") != std::string_view::npos) {
      PlayTable(player, request, response, tally);
      continue;
    }
    if (!request["body"].is_map() || (method != "POST" && method != "PUT")) continue;
    if (!request["headers"]["Content-Type"].is_null()) continue;
    if (status != 201 && status != 200 && status != 422) continue;
    const Target target = ParsePath(request["path"].as_string());
    if (target.resource == nullptr || !kGroups.contains(target.resource->group)) continue;
    if (method == "POST" && !target.name.empty()) continue;
    if (request["body"]["metadata"]["name"].is_null() && !request["body"]["metadata"]["generateName"].is_null())
      continue;
    // Options are the endpoint's business.
    const std::string_view query = request["path"].as_string();
    if (query.find("fieldValidation") != std::string_view::npos || query.find("dryRun=Some") != std::string_view::npos)
      continue;
    const auto recorded = RecordedTexts(response);
    if (HasStandIn(base::Join(recorded, "\n"))) continue;
    SCOPED_TRACE(std::string(step["name"].as_string()) + " " + std::string(method) + " " +
                 std::string(request["path"].as_string()));
    const int before = ::testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
    const std::string body = object::ToJSON(request["body"]);
    const Player::Outcome outcome = method == "POST" ? player.Create(target, body) : player.Update(target, body);
    if (!outcome.ran) {
      untouched = untouched && status == 422;
      continue;
    }
    if (kNotHere.contains(full)) continue;
    EXPECT_EQ(Texts(outcome.errors), recorded);
    if (status != 422 && method == "POST" && outcome.errors.empty())
      ExpectSameBody(player, target, outcome.object, response["body"]);
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
