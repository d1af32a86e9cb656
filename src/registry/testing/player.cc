#include "registry/testing/player.h"

#include <algorithm>

#include "base/check.h"
#include "base/random.h"
#include "base/strings.h"
#include "codec/json.h"
#include "codec/protobuf.h"
#include "registry/catalog/conversion.h"
#include "validation/defaulting.h"

namespace keelson::registry::testing {
namespace {

const Conversion* ConversionOf(const schema::Resource& resource) {
  return FindConversion(resource.group, resource.version, resource.kind);
}

// nullptr: the kind has no such subresource.
const UpdateRules* RulesOf(const Strategy& strategy, std::string_view subresource) {
  if (subresource.empty()) return &strategy.update;
  if (subresource == "status") return &strategy.status;
  for (const Subresource& one : strategy.subresources) {
    if (one.name == subresource) return &one.rules;
  }
  return nullptr;
}

// A copy in which the structs that are no pointers are there, also where they are empty and the decoder left them out.
Value WithStructs(base::Arena& arena, const schema::Resource& resource, const Value& given) {
  Value object = given.Clone(arena);
  for (const std::string_view part : {"metadata", "spec"}) {
    const schema::Field* const field = resource.type->FindField(part);
    if (field != nullptr && !field->pointer && field->type->kind == schema::Kind::kStruct)
      object.EnsureMap(arena, part);
  }
  return object;
}

}  // namespace

Target ParsePath(std::string_view path) {
  const auto parts = base::Split(path.substr(1, std::min(path.find('?'), path.size()) - 1), '/');
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

Value Player::Decode(const Target& target, std::string_view json) {
  auto decoded = codec::DecodeJSON(arena_, arena_.Copy(json), *target.resource->type);
  return decoded.ok() ? decoded->value : Value();
}

Value Player::ToHub(const Target& target, const Value& object) {
  const Conversion* const conversion = ConversionOf(*target.resource);
  return conversion == nullptr ? object : conversion->to_hub(arena_, object);
}

Value Player::FromHub(const Target& target, const Value& object) {
  const Conversion* const conversion = ConversionOf(*target.resource);
  return conversion == nullptr ? object : conversion->from_hub(arena_, object);
}

Player::Outcome Player::Create(const Target& target, const Value& object) { return Write(target, object, {}); }

Player::Outcome Player::Update(const Target& target, const Value& object, const Value& old) {
  return old.is_null() ? Outcome() : Write(target, object, old);
}

Value Player::Row(const Target& target, const Value& object) {
  const Strategy* const strategy = FindStrategy(target.resource->group, target.resource->kind);
  if (strategy == nullptr || strategy->table_row == nullptr) return {};
  Value cells = Value::List(arena_);
  strategy->table_row(arena_, clock_, object, cells);
  return cells;
}

// A copy in the hub's version with all defaults.
Value Player::Complete(const Target& target, const Strategy& strategy, const Value& given) {
  const schema::Resource& resource = *target.resource;
  Value object = WithStructs(arena_, resource, given);
  object.Set(arena_, "kind", Value(resource.kind));
  object.Set(
      arena_, "apiVersion",
      Value(resource.group.empty() ? resource.version
                                   : arena_.Copy(std::string(resource.group) + "/" + std::string(resource.version))));
  validation::ApplyTableDefaults(arena_, *resource.type, object);
  object = ToHub(target, object);
  if (strategy.defaults != nullptr) strategy.defaults(arena_, object);
  return object;
}

// Through the stored form, which knows no empty lists, and the defaults of whoever reads.
Value Player::ReadBack(const Target& target, const Strategy& strategy, const Value& object) {
  const Conversion* const conversion = ConversionOf(*target.resource);
  const schema::Struct& type =
      conversion == nullptr ? *target.resource->type
                            : *schema::FindKind(conversion->hub_group, conversion->hub_version, conversion->kind);
  Value read = object;
  if (type.HasProto() && target.resource->group != "apiextensions.k8s.io") {  // those are stored as JSON
    std::string stored;
    codec::EncodeProto(object, type, stored);
    auto decoded = codec::DecodeProto(arena_, stored, type);
    KS_CHECK(decoded.ok());
    read = decoded->value;
  }
  if (strategy.defaults != nullptr) strategy.defaults(arena_, read);
  return read;
}

Player::Outcome Player::Write(const Target& target, const Value& given, const Value& old) {
  static const std::vector<std::string> kGroups = {"system:masters", "system:authenticated"};
  const schema::Resource& resource = *target.resource;
  const Strategy* const strategy = FindStrategy(resource.group, resource.kind);
  if (given.is_null() || strategy == nullptr) return {};
  const UpdateRules* const rules = RulesOf(*strategy, target.subresource);
  if (rules == nullptr) return {};
  Outcome outcome{.ran = true, .errors = {}, .warnings = {}, .object = {}};
  const Call call{.arena = arena_,
                  .clock = clock_,
                  .random = base::Random::Real(),
                  .warnings = outcome.warnings,
                  .user_name = "admin",
                  .user_groups = kGroups,
                  .name_space = target.name_space,
                  .request_group = resource.group,
                  .request_version = resource.version,
                  .feature_enabled = nullptr};
  Value object = Complete(target, *strategy, given);
  Value metadata = object["metadata"];
  metadata.Erase("managedFields");  // the request's are taken away or corrected before strategies see them
  metadata.Erase("selfLink");
  if (!resource.namespaced) {
    metadata.Erase("namespace");
  } else if (metadata["namespace"].is_null()) {
    metadata.Set(arena_, "namespace", Value(arena_.Copy(target.name_space)));
  }
  if (metadata["name"].is_null() && metadata["generateName"].is_string()) {
    metadata.Set(arena_, "name",
                 Value(arena_.Concat(metadata["generateName"].as_string(), strategy->random_names ? "abcde" : "")));
  }
  if (old.is_null()) {
    PrepareAndValidate(call, target, *strategy, object, outcome.errors);
  } else {
    PrepareAndValidateUpdate(call, target, *strategy, *rules, object, WithStructs(arena_, resource, old),
                             outcome.errors);
  }
  if (outcome.errors.empty()) outcome.object = ReadBack(target, *strategy, object);
  return outcome;
}

void Player::PrepareAndValidate(const Call& call, const Target& target, const Strategy& strategy, Value object,
                                FieldErrors& errors) {
  const bool namespaced = target.resource->namespaced;
  Value metadata = object["metadata"];
  if (std::ranges::find(target.resource->verbs, "get") !=
      target.resource->verbs.end()) {  // else it is answered and not stored
    metadata.Set(arena_, "uid", Value(kPlayedUID));
    metadata.Set(arena_, "creationTimestamp", Value(kPlayedAt));
  }
  if (strategy.has_status && !strategy.keeps_status_on_create) object.Erase("status");
  if (strategy.generation == Generation::kSpec) metadata.Set(arena_, "generation", 1);
  if (before_validation_) errors = before_validation_(call, object, {});
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

void Player::PrepareAndValidateUpdate(const Call& call, const Target& target, const Strategy& strategy,
                                      const UpdateRules& rules, Value object, const Value& old, FieldErrors& errors) {
  const Value old_metadata = old["metadata"];
  Value metadata = object["metadata"];
  if (metadata["resourceVersion"].is_null() && !strategy.allow_unconditional_update) {
    errors.push_back(
        validation::Invalid(FieldPath("metadata.resourceVersion"), Value(0), "must be specified for an update"));
    return;
  }
  for (const std::string_view key : {"uid", "creationTimestamp", "generation", "resourceVersion"}) {
    const bool kept = key == "creationTimestamp" || key == "generation";
    if ((kept || metadata[key].is_null()) && !old_metadata[key].is_null()) metadata.Set(arena_, key, old_metadata[key]);
  }
  const auto keep = [&](std::string_view key) {
    object.Erase(key);
    if (!old[key].is_null()) object.Set(arena_, key, old[key].Clone(arena_));
  };
  if (target.subresource == "status") keep("spec");
  if (target.subresource.empty()) {
    if (strategy.has_status) keep("status");
    if (before_validation_) errors = before_validation_(call, object, old);
    if (!errors.empty()) return;
  }
  if (rules.prepare_for_update != nullptr) rules.prepare_for_update(call, object, old);
  if (target.subresource.empty() && strategy.generation == Generation::kSpec && !(object["spec"] == old["spec"])) {
    metadata.Set(arena_, "generation", old_metadata["generation"].as_int() + 1);
  }
  for (const std::string_view key : {"deletionTimestamp", "deletionGracePeriodSeconds"}) {
    if (metadata[key].is_null() && !old_metadata[key].is_null()) metadata.Set(arena_, key, old_metadata[key]);
  }
  const FieldPath path("metadata");
  validation::ValidateObjectMeta(metadata, target.resource->namespaced, validation::NameIsPathSegment, path, errors,
                                 false);
  validation::ValidateObjectMetaUpdate(metadata, old_metadata, path, errors, false);
  if (rules.validate_update != nullptr) rules.validate_update(call, object, old, errors);
  if (!errors.empty()) return;
  if (rules.warnings_on_update != nullptr) rules.warnings_on_update(call, object, old);
  if (strategy.canonicalize != nullptr) strategy.canonicalize(call, object, old);
}

}  // namespace keelson::registry::testing
