#include "registry/testing/corpus.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/strings.h"
#include "codec/json.h"
#include "registry/unified_diff.h"
#include "schema/schema.h"
#include "validation/primitives.h"

namespace keelson::registry::testing {
namespace {

namespace fs = std::filesystem;

fs::path Root() {
  if (const char* root = std::getenv("KEELSON_CORPUS")) return root;
  return "../shared/corpus";
}

// The value that stands for a stand-in; "" for those that are never compared, which stay as they are.
std::string ValueFor(std::string_view stand_in) {
  const std::size_t digits = std::min(stand_in.find_first_of("0123456789"), stand_in.size());
  const std::string_view kind = stand_in.substr(0, digits);
  const std::string number(stand_in.substr(digits));
  if (kind == "port") return "3000" + number;
  if (kind == "ip") return "10.0.0.1" + number;
  if (kind == "created" || kind == "t" || kind == "time") return "2026-11-16T03:04:05Z";
  if (kind == "rv" || kind == "lrv") return "1";
  if (kind == "uid") return "11111111-2222-4333-8444-555555555555";
  if (kind == "gen") return "abcde";
  if (kind == "ns" || kind == "pfx") return std::string(kind);
  return {};
}

// Stand-ins become values of the right shape; what is compared gets the same values.
std::string Substitute(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t open = std::min(text.find("${", at), text.size());
    out += text.substr(at, open - at);
    if (open == text.size()) break;
    const std::size_t close = text.find('}', open);
    if (close == std::string_view::npos) return out.append(text.substr(open));
    const std::string_view stand_in = text.substr(open + 2, close - open - 2);
    const std::string value = ValueFor(stand_in);
    at = close + 1;
    // A port alone in its quotes is a number.
    if (stand_in.starts_with("port") && out.ends_with('"') && text.substr(at).starts_with('"')) {
      out.pop_back();
      ++at;
    }
    out += value.empty() ? text.substr(open, close + 1 - open) : std::string_view(value);
  }
  return out;
}

struct Target {
  const schema::Resource* resource = nullptr;
  std::string name_space;
  std::string name;
  std::string subresource;
};

// /api/v1/namespaces/n/pods[/name[/sub]], /apis/g/v/...
Target ParsePath(std::string_view path) {
  const auto parts =
      base::Split(path.substr(1, path.find('?') == std::string_view::npos ? path.size() : path.find('?') - 1), '/');
  Target target;
  std::size_t at = 0;
  std::string_view group, version;
  if (parts.size() > 2 && parts[0] == "api") {
    version = parts[1];
    at = 2;
  } else if (parts.size() > 3 && parts[0] == "apis") {
    group = parts[1];
    version = parts[2];
    at = 3;
  } else {
    return target;
  }
  if (parts.size() > at + 2 && parts[at] == "namespaces" && parts[at + 2] != "status" && parts[at + 2] != "finalize") {
    target.name_space = parts[at + 1];
    at += 2;
  }
  target.resource = schema::FindResource(group, version, parts[at]);
  if (parts.size() > at + 1) target.name = parts[at + 1];
  if (parts.size() > at + 2) target.subresource = parts[at + 2];
  return target;
}

std::vector<std::string> Expected(Value response) {
  std::vector<std::string> causes;
  if (response["status"].as_int() != 422) return causes;
  for (const Value cause : response["body"]["details"]["causes"].items()) {
    causes.push_back(std::string(cause["field"].as_string()) + ": " + std::string(cause["message"].as_string()));
  }
  return causes;
}

std::string Lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "    " + line + "\n";
  return text.empty() ? "    (none)\n" : text;
}

// The day of the recordings: some cells tell how long ago something was.
class RecordedClock final : public base::Clock {
 public:
  SystemTime Now() const override { return SystemTime(std::chrono::seconds(1794798245)); }  // 2026-11-16T03:04:05Z
  SteadyTime Monotonic() const override { return {}; }
};

// RFC 7396, as the server applies merge patches.
Value Merge(base::Arena& arena, Value target, Value patch) {
  if (!patch.is_map()) return patch;
  Value merged = target.is_map() ? target : Value::Map(arena);
  for (const object::Member& member : patch.members()) {
    if (member.value.is_null()) {
      merged.Erase(member.key);
    } else {
      merged.Set(arena, member.key, Merge(arena, merged[member.key], member.value));
    }
  }
  return merged;
}

class Runner {
 public:
  Runner(FindStrategyFunction find, const CorpusOptions& options, CorpusResult& result)
      : find_(find), options_(options), result_(result) {}

  void Run(const std::string& name, Value steps) {
    if (std::ranges::find(options_.skip, name) != options_.skip.end()) {
      ++result_.skipped;
      return;
    }
    int number = 0;
    for (const Value step : steps.items())
      Step(name + " step " + std::to_string(++number), step["request"], step["response"]);
  }

 private:
  struct Given {
    const Strategy* strategy;
    Target target;
    Value object;
    Value old;  // null on create
  };

  void Step(const std::string& name, Value request, Value response) {
    const std::string_view method = request["method"].as_string(), path = request["path"].as_string();
    const std::int64_t code = response["status"].as_int();
    const Target target = ParsePath(path);
    if (target.resource == nullptr) return;
    const Strategy* strategy = find_(target.resource->group, target.resource->kind);
    if (strategy == nullptr) return;
    const Value body = response["body"];
    if (method == "GET" && body["kind"].as_string() == "Table") return CheckTable(name, *strategy, target, body);
    // Scale is another kind, and a binding is no stored object.
    const bool stored = target.subresource != "scale" && target.resource->kind != "Binding";
    if (stored && ((method == "POST" && target.subresource.empty()) || method == "PUT" || method == "PATCH")) {
      Given given{strategy, target, RequestedObject(method, request, target), {}};
      if (method != "POST" && known_.contains(target.name)) given.old = known_[target.name];
      const bool found = !given.object.is_null() && (method == "POST" || !given.old.is_null());
      if (found && (code == 200 || code == 201 || (code == 422 && !IsAboutOptions(body))))
        Check(name + " " + std::string(method), given, response);
    }
    // What the recording says now is what later steps meet.
    if (code < 300 && body["kind"].as_string() == target.resource->kind &&
        path.find("dryRun") == std::string_view::npos) {
      if (const Value object = Decode(body, *target.resource); !object.is_null()) {
        known_[std::string(object["metadata"]["name"].as_string())] = object;
      }
    }
  }

  static bool IsAboutOptions(Value status) {
    for (const Value cause : status["details"]["causes"].items()) {
      const std::string_view field = cause["field"].as_string();
      if (field == "dryRun" || field == "fieldManager" || field == "fieldValidation" || field == "force") return true;
    }
    return false;
  }

  Value RequestedObject(std::string_view method, Value request, const Target& target) {
    if (method != "PATCH") return Decode(request["body"], *target.resource);
    if (request["headers"]["Content-Type"].as_string() != "application/merge-patch+json" ||
        !known_.contains(target.name))
      return {};
    std::string text;
    codec::EncodeJSON(known_[target.name], *target.resource->type, text);
    auto plain = codec::DecodeJSON(arena_, arena_.Copy(text));
    if (!plain.ok()) return {};
    return Decode(Merge(arena_, plain->value, request["body"]), *target.resource);
  }

  Value Decode(Value body, const schema::Resource& resource) {
    if (body.is_null()) return {};
    std::string text;
    codec::EncodeJSON(body, text);
    auto decoded = codec::DecodeJSON(arena_, arena_.Copy(text), *resource.type);
    return decoded.ok() ? decoded->value : Value();
  }

  void Report(const std::string& name, const std::string& expected, const std::string& got) {
    if (expected == got) {
      ++result_.passed;
    } else {
      ++result_.failed;
      result_.failures.push_back(name + "\n  expected\n" + expected + "  got\n" + got);
    }
  }

  void Check(const std::string& name, const Given& given, Value response) {
    std::vector<std::string> warnings;
    const Call call{.arena = arena_,
                    .clock = clock_,
                    .random = base::Random::Real(),
                    .warnings = warnings,
                    .name_space = given.target.name_space,
                    .request_group = given.target.resource->group,
                    .request_version = given.target.resource->version,
                    .feature_enabled = nullptr};
    Value object = given.object;
    Value metadata = object.EnsureMap(arena_, "metadata");
    metadata.Erase("managedFields");  // the request's are taken away or corrected before strategies see them
    metadata.Erase("selfLink");
    const schema::Resource& resource = *given.target.resource;
    if (!resource.namespaced) metadata.Erase("namespace");
    object.Set(arena_, "kind", Value(resource.kind));
    object.Set(
        arena_, "apiVersion",
        Value(resource.group.empty() ? resource.version
                                     : arena_.Copy(std::string(resource.group) + "/" + std::string(resource.version))));
    if (given.target.resource->namespaced && metadata["namespace"].is_null())
      metadata.Set(arena_, "namespace", Value(given.target.name_space));
    if (metadata["name"].is_null() && metadata["generateName"].is_string()) {
      metadata.Set(arena_, "name", Value(arena_.Concat(metadata["generateName"].as_string(), "abcde")));
    }
    if (given.strategy->defaults != nullptr) given.strategy->defaults(arena_, object);
    FieldErrors errors;
    if (given.old.is_null()) {
      Create(call, given, object, errors);
    } else {
      Update(call, given, object, errors);
    }
    std::vector<std::string> got;
    for (const validation::FieldError& error : errors)
      got.push_back((error.field.empty() ? "<nil>" : error.field) + ": " + error.Body());
    Report(name, Lines(Expected(response)), Lines(got));
    if (!options_.compare_without || !errors.empty() || response["status"].as_int() == 422) return;
    CompareWarnings(name + " warnings", response, warnings);
    const Value answer = Decode(response["body"], *given.target.resource);
    // What is stored is read back, which completes its defaults.
    if (given.strategy->defaults != nullptr) given.strategy->defaults(arena_, object);
    if (!answer.is_null()) CompareObjects(name + " object", *given.target.resource, answer, object);
  }

  void Create(const Call& call, const Given& given, Value object, FieldErrors& errors) {
    const Strategy& strategy = *given.strategy;
    const bool namespaced = given.target.resource->namespaced;
    Value metadata = object["metadata"];
    metadata.Set(arena_, "uid", "11111111-2222-4333-8444-555555555555");
    metadata.Set(arena_, "creationTimestamp", "2026-11-16T03:04:05Z");
    if (strategy.has_status && !strategy.keeps_status_on_create) object.Erase("status");
    if (strategy.generation == Generation::kSpec) metadata.Set(arena_, "generation", 1);
    if (options_.before_validation) errors = options_.before_validation(call, object, {});
    if (!errors.empty()) return;
    if (strategy.prepare_for_create != nullptr) strategy.prepare_for_create(call, object, {});
    const FieldPath path("metadata");
    if (!strategy.validates_metadata) {
      validation::ValidateObjectMeta(metadata, namespaced, strategy.name_rule, path, errors, strategy.core_finalizers);
    }
    if (strategy.validate != nullptr) strategy.validate(call, object, {}, errors);
    if (errors.empty())
      validation::ValidateObjectMeta(metadata, namespaced, validation::NameIsPathSegment, path, errors, false);
    if (!errors.empty()) return;
    if (strategy.warnings_on_create != nullptr) strategy.warnings_on_create(call, object, {});
    if (strategy.canonicalize != nullptr) strategy.canonicalize(call, object, {});
  }

  void Update(const Call& call, const Given& given, Value object, FieldErrors& errors) {
    const Strategy& strategy = *given.strategy;
    const Value old = given.old, old_metadata = old["metadata"];
    Value metadata = object["metadata"];
    for (const std::string_view key : {"uid", "creationTimestamp", "generation", "resourceVersion"}) {
      const bool kept = key == "creationTimestamp" || key == "generation";
      if ((kept || metadata[key].is_null()) && !old_metadata[key].is_null())
        metadata.Set(arena_, key, old_metadata[key]);
    }
    const auto keep = [&](std::string_view key) {
      object.Erase(key);
      if (!old[key].is_null()) object.Set(arena_, key, old[key].Clone(arena_));
    };
    const UpdateRules* rules = &strategy.update;
    if (given.target.subresource == "status") {
      rules = &strategy.status;
      keep("spec");
    } else if (!given.target.subresource.empty()) {
      rules = nullptr;
      for (const Subresource& subresource : strategy.subresources) {
        if (subresource.name == given.target.subresource) rules = &subresource.rules;
      }
      if (rules == nullptr) return;
    } else {
      if (strategy.has_status) keep("status");
      if (options_.before_validation) errors = options_.before_validation(call, object, old);
      if (!errors.empty()) return;
    }
    if (rules->prepare_for_update != nullptr) rules->prepare_for_update(call, object, old);
    if (given.target.subresource.empty() && strategy.generation == Generation::kSpec &&
        !(object["spec"] == old["spec"])) {
      metadata.Set(arena_, "generation", old_metadata["generation"].as_int() + 1);
    }
    for (const std::string_view key : {"deletionTimestamp", "deletionGracePeriodSeconds"}) {
      if (metadata[key].is_null() && !old_metadata[key].is_null()) metadata.Set(arena_, key, old_metadata[key]);
    }
    const FieldPath path("metadata");
    validation::ValidateObjectMeta(metadata, given.target.resource->namespaced, validation::NameIsPathSegment, path,
                                   errors, false);
    validation::ValidateObjectMetaUpdate(metadata, old_metadata, path, errors, false);
    if (rules->validate_update != nullptr) rules->validate_update(call, object, old, errors);
    if (!errors.empty()) return;
    if (rules->warnings_on_update != nullptr) rules->warnings_on_update(call, object, old);
    if (strategy.canonicalize != nullptr) strategy.canonicalize(call, object, old);
  }

  void CompareWarnings(const std::string& name, Value response, const std::vector<std::string>& warnings) {
    std::vector<std::string> expected, got;
    for (const Value header : response["headers"]["Warning"].items()) {
      const std::string_view text = header.as_string();
      // Decoders and the deprecation of whole APIs warn elsewhere.
      if (text.find("unknown field") != std::string_view::npos ||
          text.find("is deprecated in v") != std::string_view::npos)
        continue;
      expected.emplace_back(text);
    }
    for (const std::string& warning : warnings) got.push_back("299 - " + base::GoQuote(warning));
    Report(name, Lines(expected), Lines(got));
  }

  void CompareObjects(const std::string& name, const schema::Resource& resource, Value expected, Value got) {
    const auto text = [&](Value object) {
      Value copy = object.Clone(arena_);
      Value metadata = copy["metadata"];
      for (const std::string_view key : {"managedFields", "resourceVersion", "uid", "creationTimestamp", "name"})
        metadata.Erase(key);
      options_.compare_without(arena_, copy);
      std::string json, indented;
      codec::EncodeJSON(copy, *resource.type, json);
      codec::IndentJSON(json, indented);
      return indented;
    };
    const std::string difference = UnifiedDiff(text(expected), text(got));
    Report(name, "", difference);
  }

  // Cells that change with time are recorded as stand-ins and not compared.
  void CheckTable(const std::string& name, const Strategy& strategy, const Target& target, Value table) {
    if (!options_.compare_without || strategy.table_row == nullptr || !target.subresource.empty()) return;
    for (const Value row : table["rows"].items()) {
      const auto known = known_.find(std::string(row["object"]["metadata"]["name"].as_string()));
      if (known == known_.end()) continue;
      Value cells = Value::List(arena_);
      strategy.table_row(arena_, clock_, known->second, cells);
      std::vector<std::string> expected, got;
      for (std::size_t i = 0; i < std::max(row["cells"].size(), cells.size()); ++i) {
        const std::string wanted = validation::RenderValue(row["cells"][i]);
        expected.push_back(wanted);
        got.push_back(wanted.find("${") == std::string::npos ? validation::RenderValue(cells[i]) : wanted);
      }
      Report(name + " row", Lines(expected), Lines(got));
    }
  }

  FindStrategyFunction find_;
  const CorpusOptions& options_;
  CorpusResult& result_;
  RecordedClock clock_;
  base::Arena arena_;
  std::map<std::string, Value, std::less<>> known_;  // objects as the recording has them now
};

}  // namespace

CorpusResult RunCorpus(std::string_view file, FindStrategyFunction find, const CorpusOptions& options) {
  CorpusResult result;
  std::ifstream in(Root() / options.folder / (std::string(file) + ".json"));
  if (!in) return result;
  result.found = true;
  std::stringstream text;
  text << in.rdbuf();
  base::Arena arena;
  auto decoded = codec::DecodeJSON(arena, Substitute(text.str()));
  if (!decoded.ok()) {
    result.failed = 1;
    result.failures.push_back(std::string(file) + ": " + decoded.error().message);
    return result;
  }
  for (const Value one : decoded->value["cases"].items()) {
    Runner runner(find, options, result);
    runner.Run(std::string(file) + "/" + std::string(one["name"].as_string()), one["steps"]);
  }
  return result;
}

}  // namespace keelson::registry::testing
