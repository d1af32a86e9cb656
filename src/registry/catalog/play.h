// For tests: requests played against strategies as the Store would call them, without storage and admission.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/strings.h"
#include "codec/json.h"
#include "meta/status.h"
#include "registry/catalog/conversion.h"
#include "registry/strategy.h"
#include "schema/schema.h"
#include "validation/defaulting.h"

namespace keelson::registry {

inline bool NoFeature(std::string_view) { return false; }

struct Target {
  const schema::Resource* resource = nullptr;
  std::string name_space;
  std::string name;
  std::string subresource;
  bool dry_run = false;
};

inline Target ParsePath(std::string_view path) {
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
      validation::ValidateObjectMeta(metadata, target.resource->namespaced, strategy->name_rule, path, outcome.errors,
                                     strategy->core_finalizers);
    }
    if (strategy->validate != nullptr) strategy->validate(call, object, Value(), outcome.errors);
    if (outcome.errors.empty()) {
      validation::ValidateObjectMeta(metadata, target.resource->namespaced, validation::NameIsPathSegment, path,
                                     outcome.errors, false);
    }
    if (outcome.errors.empty() && strategy->warnings_on_create != nullptr)
      strategy->warnings_on_create(call, object, Value());
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
    const UpdateRules* rules = target.subresource.empty()       ? &strategy->update
                               : target.subresource == "status" ? &strategy->status
                                                                : nullptr;
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
    validation::ValidateObjectMeta(metadata, target.resource->namespaced, validation::NameIsPathSegment, path,
                                   outcome.errors, false);
    validation::ValidateObjectMetaUpdate(metadata, old_metadata, path, outcome.errors, false);
    if (rules->validate_update != nullptr) rules->validate_update(call, object, old, outcome.errors);
    if (outcome.errors.empty() && rules->warnings_on_update != nullptr) rules->warnings_on_update(call, object, old);
    if (outcome.errors.empty()) found->second = object;
    outcome.object = FromHub(target, object);
    return outcome;
  }

  // The row of a stored object; null when it is not there or its kind has no row of its own.
  Value Row(const Target& target) {
    const auto found = stored_.find(Key(target, target.name));
    const Strategy* const strategy = FindStrategy(target.resource->group, target.resource->kind);
    if (found == stored_.end() || strategy == nullptr || strategy->table_row == nullptr) return {};
    Value cells = Value::List(arena_);
    strategy->table_row(arena_, base::Clock::Real(), found->second, cells);
    return cells;
  }

  base::Arena& arena() { return arena_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  static std::string Key(const Target& target, std::string_view name) {
    return std::string(target.resource->plural) + "/" + target.name_space + "/" + std::string(name);
  }

  // A JSON number in the stand-in's place would not do; bodies with such are passed over.
  Value Decode(const Target& target, const std::string& body) {
    auto decoded = codec::DecodeJSON(arena_, body, *target.resource->type);
    if (!decoded.ok()) return {};
    Value object = decoded->value;
    validation::ApplyTableDefaults(arena_, *target.resource->type, object);
    const Strategy* const strategy = FindStrategy(target.resource->group, target.resource->kind);
    const Conversion* const conversion =
        FindConversion(target.resource->group, target.resource->version, target.resource->kind);
    if (conversion != nullptr) object = conversion->to_hub(arena_, object);
    if (strategy != nullptr && strategy->defaults != nullptr) strategy->defaults(arena_, object);
    return object;
  }

  Value FromHub(const Target& target, const Value& object) {
    const Conversion* const conversion =
        FindConversion(target.resource->group, target.resource->version, target.resource->kind);
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

inline std::vector<std::string> Texts(const FieldErrors& errors) {
  std::vector<std::string> texts;
  for (const auto& error : errors) {
    // As causes[] shows them.
    texts.push_back(std::string(meta::CauseReason(error.type)) + " " + error.field + ": " + error.Body());
  }
  return texts;
}

}  // namespace keelson::registry
