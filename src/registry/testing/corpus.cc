#include "registry/testing/corpus.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "base/strings.h"
#include "codec/json.h"
#include "schema/schema.h"
#include "validation/primitives.h"

namespace keelson::registry::testing {
namespace {

namespace fs = std::filesystem;

fs::path Root() {
  if (const char* root = std::getenv("KEELSON_CORPUS")) return root;
  return "../shared/corpus";
}

// Placeholders become values of the right shape; what is compared gets the same values.
std::string Substitute(std::string text) {
  struct {
    const char* pattern;
    const char* value;
  } static constexpr kPlaceholders[] = {
      {R"("\$\{port\d*\}")", "30001"},          {R"(\$\{(created|t)\d+\})", "2026-01-02T03:04:05Z"},
      {R"(\$\{time\})", "2026-01-02T03:04:05Z"}, {R"(\$\{l?rv\d*\})", "1"},
      {R"(\$\{ip\d*\})", "10.0.0.7"},            {R"(\$\{ns\})", "ns"},
      {R"(\$\{pfx\})", "pfx"},                   {R"(\$\{gen\d*\})", "abcde"},
                        {R"(\$\{uid\d*\})", "11111111-2222-4333-8444-555555555555"},
  };
  for (const auto& [pattern, value] : kPlaceholders) text = std::regex_replace(text, std::regex(pattern), value);
  return text;
}

struct Target {
  const schema::Resource* resource = nullptr;
  std::string name_space;
  bool is_subresource = false;
};

// /api/v1/namespaces/n/pods[/name[/sub]], /apis/g/v/...
Target ParsePath(std::string_view path) {
  const auto parts = base::Split(path.substr(1, path.find('?') == std::string_view::npos ? path.size() : path.find('?') - 1), '/');
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
  if (parts.size() > at + 2 && parts[at] == "namespaces") {
    target.name_space = parts[at + 1];
    at += 2;
  }
  target.resource = schema::FindResource(group, version, parts[at]);
  target.is_subresource = parts.size() > at + 2;
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

class Runner {
 public:
  Runner(FindStrategyFunction find, const CorpusOptions& options, CorpusResult& result) : find_(find), options_(options), result_(result) {}

  void Run(const std::string& name, Value steps) {
    if (std::ranges::find(options_.skip, name) != options_.skip.end()) {
      ++result_.skipped;
      return;
    }
    Value old;
    for (const Value step : steps.items()) {
      const Value request = step["request"], response = step["response"];
      const std::string_view method = request["method"].as_string();
      const std::int64_t code = response["status"].as_int();
      if (method != "POST" && method != "PUT") continue;
      if (code != 200 && code != 201 && code != 422) return;
      const Target target = ParsePath(request["path"].as_string());
      if (target.resource == nullptr || target.is_subresource || request["body"].is_null()) return;
      const Strategy* strategy = find_(target.resource->group, target.resource->kind);
      if (strategy == nullptr) return;
      Value object = Decode(request["body"], *target.resource);
      if (object.is_null()) return;
      if (method == "PUT" && old.is_null()) return;
      Check(name + " " + std::string(method), *strategy, target, object, method == "POST" ? Value() : old, Expected(response));
      if (code != 422) old = Decode(response["body"], *target.resource);
    }
  }

 private:
  Value Decode(Value body, const schema::Resource& resource) {
    std::string text;
    codec::EncodeJSON(body, text);
    auto decoded = codec::DecodeJSON(arena_, arena_.Copy(text), *resource.type);
    return decoded.ok() ? decoded->value : Value();
  }

  void Check(const std::string& name, const Strategy& strategy, const Target& target, Value object, Value old,
             const std::vector<std::string>& expected) {
    std::vector<std::string> warnings;
    Call call{.arena = arena_,
              .clock = base::Clock::Real(),
              .random = base::Random::Real(),
              .warnings = warnings,
              .name_space = target.name_space,
              .request_group = target.resource->group,
              .request_version = target.resource->version,
              .feature_enabled = nullptr};
    Value metadata = object.EnsureMap(arena_, "metadata");
    metadata.Erase("managedFields");  // the request's are taken away or corrected before strategies see them
    if (target.resource->namespaced && metadata["namespace"].is_null()) metadata.Set(arena_, "namespace", Value(target.name_space));
    if (metadata["name"].is_null() && metadata["generateName"].is_string()) {
      metadata.Set(arena_, "name", Value(arena_.Concat(metadata["generateName"].as_string(), "abcde")));
    }
    if (strategy.defaults != nullptr) strategy.defaults(arena_, object);
    FieldErrors errors;
    if (old.is_null()) {
      Create(call, strategy, target, object, errors);
    } else {
      Update(call, strategy, target, object, old, errors);
    }
    std::vector<std::string> got;
    for (const validation::FieldError& error : errors) got.push_back((error.field.empty() ? "<nil>" : error.field) + ": " + error.Body());
    if (got == expected) {
      ++result_.passed;
    } else {
      ++result_.failed;
      result_.failures.push_back(name + "\n  expected\n" + Lines(expected) + "  got\n" + Lines(got));
    }
  }

  void Create(const Call& call, const Strategy& strategy, const Target& target, Value object, FieldErrors& errors) {
    Value metadata = object["metadata"];
    metadata.Set(arena_, "uid", "11111111-2222-4333-8444-555555555555");
    metadata.Set(arena_, "creationTimestamp", "2026-01-02T03:04:05Z");
    if (strategy.has_status && !strategy.keeps_status_on_create) object.Erase("status");
    if (strategy.generation == Generation::kSpec) metadata.Set(arena_, "generation", 1);
    if (options_.before_validation) errors = options_.before_validation(call, object, {});
    if (!errors.empty()) return;
    if (strategy.prepare_for_create != nullptr) strategy.prepare_for_create(call, object, {});
    const FieldPath path("metadata");
    if (!strategy.validates_metadata) {
      validation::ValidateObjectMeta(metadata, target.resource->namespaced, strategy.name_rule, path, errors, strategy.core_finalizers);
    }
    if (strategy.validate != nullptr) strategy.validate(call, object, {}, errors);
    if (errors.empty()) {
      validation::ValidateObjectMeta(metadata, target.resource->namespaced, validation::NameIsPathSegment, path, errors, false);
    }
  }

  void Update(const Call& call, const Strategy& strategy, const Target& target, Value object, Value old, FieldErrors& errors) {
    Value metadata = object["metadata"];
    const Value old_metadata = old["metadata"];
    for (const std::string_view key : {"uid", "creationTimestamp", "generation", "resourceVersion", "deletionTimestamp"}) {
      const bool kept = key == "creationTimestamp" || key == "generation";
      if ((kept || metadata[key].is_null()) && !old_metadata[key].is_null()) metadata.Set(arena_, key, old_metadata[key]);
    }
    if (strategy.has_status) {
      object.Erase("status");
      if (!old["status"].is_null()) object.Set(arena_, "status", old["status"].Clone(arena_));
    }
    if (options_.before_validation) errors = options_.before_validation(call, object, old);
    if (!errors.empty()) return;
    if (strategy.update.prepare_for_update != nullptr) strategy.update.prepare_for_update(call, object, old);
    const FieldPath path("metadata");
    validation::ValidateObjectMeta(metadata, target.resource->namespaced, validation::NameIsPathSegment, path, errors, false);
    validation::ValidateObjectMetaUpdate(metadata, old_metadata, path, errors, false);
    if (strategy.update.validate_update != nullptr) strategy.update.validate_update(call, object, old, errors);
  }

  FindStrategyFunction find_;
  const CorpusOptions& options_;
  CorpusResult& result_;
  base::Arena arena_;
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
