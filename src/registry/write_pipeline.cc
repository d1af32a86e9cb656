#include "registry/write_pipeline.h"

#include "base/strings.h"
#include "object/time.h"
#include "registry/semantic.h"
#include "validation/primitives.h"

namespace keelson::registry {
namespace {

constexpr std::string_view kOptimisticLock =
    "the object has been modified; please apply your changes to the latest version and try again";

// The kind that errors name: untyped objects are what they say of themselves.
meta::GroupKind KindOf(const StoredKind& kind, const Value& object) {
  if (kind.type != nullptr || !object["kind"].is_string()) return kind.kind;
  const std::string_view api_version = object["apiVersion"].as_string();
  const std::size_t slash = api_version.find('/');
  const std::string_view group = slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
  return {std::string(group), std::string(object["kind"].as_string())};
}

void Keep(base::Arena& arena, Value from, Value to, std::string_view key) {
  if (from.Has(key)) {
    to.Set(arena, key, from[key]);
  } else {
    to.Erase(key);
  }
}

bool SpecChanged(const StoredKind& kind, Value object, Value old) {
  const schema::Field* field = kind.type == nullptr ? nullptr : kind.type->FindField("spec");
  if (field == nullptr) return !(object["spec"] == old["spec"]);
  if (kind.strategy->row().deep_generation)
    return !DeepEqual(object["spec"], old["spec"], *field->type, field->pointer);
  return !SemanticEqual(object["spec"], old["spec"], *field->type, field->pointer);
}

// Upstream decodes the object it has just written, and defaults run again then. If that matters (a Job gets the labels
// of the template that Prepare filled in) storage does the same; elsewhere it is done here once.
void Complete(const StoredKind& kind, const Call& call, Value object) {
  if (kind.strategy->has_defaults() && !kind.defaults_on_read) kind.strategy->Default(call.arena, object);
}

}  // namespace

std::string FormatTime(base::Clock::SystemTime time) {
  return object::FormatTime(std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count());
}

std::optional<base::Clock::SystemTime> ParseTime(std::string_view text) {
  const auto parsed = object::ParseTime(text);
  if (!parsed.ok()) return std::nullopt;
  return base::Clock::SystemTime(std::chrono::seconds(parsed->seconds));
}

void FillObjectMetaSystemFields(const Call& call, Value metadata) {
  metadata.Set(call.arena, "creationTimestamp", Value::String(call.arena, FormatTime(call.clock.Now())));
  metadata.Set(call.arena, "uid", Value::String(call.arena, call.random.UUID()));
}

meta::Result<void> CheckObjectNamespace(const StoredKind& kind, const Call& call, Value metadata) {
  if (!kind.namespaced) {
    metadata.Erase("namespace");
    return {};
  }
  const std::string_view have = metadata["namespace"].as_string();
  if (have.empty()) {
    metadata.Set(call.arena, "namespace", call.name_space);
    return {};
  }
  if (have != call.name_space) {
    return meta::NewBadRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
  return {};
}

meta::Result<void> PrepareCreate(const StoredKind& kind, const Call& call, Value object) {
  const RESTStrategy& strategy = *kind.strategy;
  Value metadata = object.EnsureMap(call.arena, "metadata");
  KS_RETURN_IF_ERROR(CheckObjectNamespace(kind, call, metadata));
  strategy.PrepareForCreate(call, object);

  FieldErrors errors;
  strategy.Validate(call, kind.namespaced, object, errors);
  if (errors.empty()) {
    validation::ValidateObjectMeta(metadata, kind.namespaced, validation::NameIsPathSegment, FieldPath("metadata"),
                                   errors, false);
  }
  if (!errors.empty()) return meta::NewInvalid(KindOf(kind, object), metadata["name"].as_string(), errors);
  strategy.Warnings(call, {}, object, Value());
  strategy.Canonicalize(call, object, Value());
  Complete(kind, call, object);
  return {};
}

meta::Result<void> PrepareUpdate(const StoredKind& kind, const Call& call, const Endpoint& endpoint, Value object,
                                 Value old) {
  const RESTStrategy& strategy = *kind.strategy;
  base::Arena& arena = call.arena;
  Value metadata = object.EnsureMap(arena, "metadata");
  const Value old_meta = old["metadata"];
  KS_RETURN_IF_ERROR(CheckObjectNamespace(kind, call, metadata));
  Keep(arena, old_meta, metadata, "generation");

  strategy.PrepareForUpdate(call, endpoint, object, old);
  metadata = object["metadata"];
  if (endpoint.part != Endpoint::Part::kStatus && strategy.row().generation == Generation::kSpec &&
      SpecChanged(kind, object, old)) {
    metadata.Set(arena, "generation", old_meta["generation"].as_int() + 1);
  }

  if (metadata["uid"].as_string().empty()) Keep(arena, old_meta, metadata, "uid");
  if (old_meta.Has("creationTimestamp")) Keep(arena, old_meta, metadata, "creationTimestamp");
  if (old_meta.Has("deletionTimestamp")) Keep(arena, old_meta, metadata, "deletionTimestamp");
  if (!metadata.Has("deletionGracePeriodSeconds")) Keep(arena, old_meta, metadata, "deletionGracePeriodSeconds");

  FieldErrors errors;
  const FieldPath path("metadata");
  validation::ValidateObjectMeta(metadata, kind.namespaced, validation::NameIsPathSegment, path, errors, false);
  validation::ValidateObjectMetaUpdate(metadata, old_meta, path, errors, false);
  strategy.ValidateUpdate(call, endpoint, object, old, errors);
  // Ratcheted errors are warnings, also beside errors that are not.
  if (!errors.empty()) return meta::NewInvalid(KindOf(kind, object), metadata["name"].as_string(), errors);
  strategy.Warnings(call, endpoint, object, old);
  strategy.Canonicalize(call, object, old);
  Complete(kind, call, object);
  return {};
}

meta::Result<void> CheckUpdateVersion(const StoredKind& kind, base::Arena& arena, std::string_view name, Value metadata,
                                      std::uint64_t stored_version) {
  const std::string_view version = metadata["resourceVersion"].as_string();
  const auto number = version.empty() ? 0 : base::ParseUint64(version);
  if (!number) {
    const bool digits = version.find_first_not_of("0123456789") == std::string_view::npos;
    return meta::NewPlainError("strconv.ParseUint: parsing " + base::GoQuote(version) +
                               (digits ? ": value out of range" : ": invalid syntax"));
  }
  if (stored_version == 0) return {};
  if (version.empty() || version == "0") {
    if (!kind.strategy->row().allow_unconditional_update) {
      const FieldErrors errors = {
          validation::Invalid(FieldPath("metadata.resourceVersion"), Value(0), "must be specified for an update")};
      return meta::NewInvalid({kind.resource.group, kind.resource.resource}, name, errors);
    }
    metadata.Set(arena, "resourceVersion", Value::String(arena, std::to_string(stored_version)));
  } else if (*number != stored_version) {
    return meta::NewConflict(kind.resource, name, kOptimisticLock);
  }
  return {};
}

meta::Result<void> BeginCreateOnUpdate(const StoredKind& kind, std::string_view name, Value metadata) {
  if (const auto uid = metadata["uid"].as_string(); !uid.empty()) {
    return meta::NewConflict(
        kind.resource, name,
        "uid mismatch: the provided object specified uid " + std::string(uid) + ", and no existing object was found");
  }
  return {};
}

bool DeletionCompletes(const StoredKind& kind, Value object, Value old) {
  const Value old_meta = old["metadata"];
  if (old_meta["deletionTimestamp"].is_null() || !object.Get("metadata", "finalizers").empty()) return false;
  if (kind.spec_finalizers && !object.Get("spec", "finalizers").empty()) return false;
  return old_meta["deletionGracePeriodSeconds"].as_int() == 0;
}

}  // namespace keelson::registry
