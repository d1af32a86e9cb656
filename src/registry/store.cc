#include "registry/store.h"

#include <algorithm>

#include "base/strings.h"
#include "object/time.h"
#include "registry/names.h"
#include "registry/semantic.h"
#include "storage/list_plan.h"
#include "validation/primitives.h"

namespace keelson::registry {
namespace {

using validation::FieldErrors;

constexpr int kGenerateNameAttemptsMax = 8;
constexpr std::string_view kOptimisticLock =
    "the object has been modified; please apply your changes to the latest version and try again";

void AddWarnings(request::Context& context, const std::vector<std::string>& warnings) {
  for (const auto& warning : warnings) context.warnings.Add(warning);
}

bool DeletionCompletes(Value object, Value old, bool spec_finalizers) {
  const Value old_meta = old["metadata"];
  if (old_meta["deletionTimestamp"].is_null() || !object.Get("metadata", "finalizers").empty()) return false;
  if (spec_finalizers && !object.Get("spec", "finalizers").empty()) return false;
  return old_meta["deletionGracePeriodSeconds"].as_int() == 0;
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

meta::Result<Value> Store::Decode(base::Arena& arena, const ObjectPtr& object) const {
  auto decoded = options_.codec->Decode(arena, object->stored().view());
  if (!decoded.ok()) return meta::NewPlainError(decoded.error());
  return *decoded;
}

std::string Store::KeyRootFor(std::string_view name_space) const {
  if (!options_.namespaced || name_space.empty()) return options_.key_root;
  return options_.key_root + "/" + std::string(name_space);
}

meta::Result<std::string> Store::KeyFor(std::string_view name_space, std::string_view name) const {
  if (options_.namespaced && name_space.empty()) return meta::NewBadRequest("Namespace parameter required.");
  if (name.empty()) return meta::NewBadRequest("Name parameter required.");
  if (const auto messages = validation::IsValidPathSegmentName(name); !messages.empty()) {
    return meta::NewBadRequest("Name parameter invalid: " + base::GoQuote(name) + ": " + base::Join(messages, ";"));
  }
  return KeyRootFor(name_space) + "/" + std::string(name);
}

meta::Status Store::InterpretError(const storage::Error& error, std::string_view verb, std::string_view name) const {
  using storage::ErrorCode;
  const auto& resource = options_.resource;
  switch (error.code) {
    case ErrorCode::kStatus:
      return *error.status;
    case ErrorCode::kKeyNotFound:
      return meta::NewNotFound(resource, verb == "list" ? "" : name);
    case ErrorCode::kKeyExists:
      return verb == "create" ? meta::NewAlreadyExists(resource, name)
                              : meta::NewConflict(resource, name, error.ToString());
    case ErrorCode::kResourceVersionConflicts:
    case ErrorCode::kInvalidObject:
      return meta::NewConflict(resource, name, error.ToString());
    case ErrorCode::kUnreachable:
      return meta::NewServerTimeout(resource, verb);
    case ErrorCode::kTimeout:
      return verb == "list" ? meta::NewServerTimeout(resource, verb) : meta::NewPlainError(error.ToString());
    case ErrorCode::kCorruptObject:
      return meta::NewInternalError(error.ToString());
    case ErrorCode::kInternal:
      return meta::NewInternalError(error.message);
  }
  return meta::NewInternalError(error.message);
}

Call Store::MakeCall(request::Context& context, std::vector<std::string>& warnings) const {
  static const request::User kNobody;
  const request::User& user = context.user ? *context.user : kNobody;
  Value extra;
  if (!user.extra.empty()) {
    extra = Value::Map(context.arena);
    for (const auto& [key, values] : user.extra) {
      Value list = Value::List(context.arena, values.size());
      for (const auto& value : values) list.Append(context.arena, std::string_view(value));
      extra.Set(context.arena, key, list);
    }
  }
  return Call{.arena = context.arena,
              .clock = *options_.clock,
              .random = *options_.random,
              .warnings = warnings,
              .user_name = user.name,
              .user_uid = user.uid,
              .user_groups = user.groups,
              .user_extra = extra,
              .name_space = context.info.name_space,
              .request_group = context.info.api_group,
              .request_version = context.info.api_version,
              .feature_enabled = options_.feature_enabled,
              .allow_privileged = options_.allow_privileged};
}

Task<ObjectPtr> Store::Get(std::string name_space, std::string name, std::string resource_version,
                           telemetry::Caller caller) const {
  KS_CO_TRY(std::string key, KeyFor(name_space, name));
  storage::GetOptions options{.resource_version = std::move(resource_version), .caller = caller};
  auto got = co_await options_.storage->Get(std::move(key), std::move(options));
  if (!got.ok()) co_return InterpretError(got.error(), "get", name);
  co_return *std::move(got);
}

// A selector that pins metadata.name is one read; one that pins metadata.namespace narrows a list over all namespaces.
static std::string NarrowKey(const Store& store, std::string& name_space, storage::ListOptions& options) {
  if (const auto& field = options.predicate.field) {
    if (store.options().namespaced && name_space.empty()) {
      const auto pinned = field->RequiresExactMatch("metadata.namespace");
      if (pinned && !pinned->empty() && validation::IsDNS1123Label(*pinned).empty()) name_space = std::string(*pinned);
    }
    const auto name = field->RequiresExactMatch("metadata.name");
    if (name && !name->empty()) {
      if (auto key = store.KeyFor(name_space, *name); key.ok()) {
        options.recursive = false;
        options.scope_name = std::string(*name);
        options.scope_namespace = name_space;
        return *key;
      }
    }
  }
  options.recursive = true;
  options.scope_namespace = name_space;
  return store.KeyRootFor(name_space);
}

Task<storage::ObjectList> Store::List(std::string name_space, storage::ListOptions options) const {
  std::string key = NarrowKey(*this, name_space, options);
  auto list = co_await options_.storage->GetList(std::move(key), std::move(options));
  if (!list.ok()) co_return InterpretError(list.error(), "list", "");
  co_return *std::move(list);
}

Task<std::unique_ptr<storage::WatchStream>> Store::Watch(std::string name_space, storage::ListOptions options) const {
  std::string key = NarrowKey(*this, name_space, options);
  auto stream = co_await options_.storage->Watch(std::move(key), std::move(options));
  if (!stream.ok()) co_return InterpretError(stream.error(), "watch", "");
  co_return *std::move(stream);
}

meta::Result<void> Store::CheckNamespace(request::Context& context, Value metadata) const {
  if (!options_.namespaced) {
    metadata.Erase("namespace");
    return {};
  }
  const std::string_view have = metadata["namespace"].as_string();
  if (have.empty()) {
    metadata.Set(context.arena, "namespace", std::string_view(context.info.name_space));
    return {};
  }
  if (have != context.info.name_space) {
    return meta::NewBadRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
  return {};
}

// The kind that errors name: untyped objects are what they say of themselves.
static meta::GroupKind KindOf(const Store::Options& options, const Value& object) {
  if (options.type != nullptr || !object["kind"].is_string()) return options.kind;
  const std::string_view api_version = object["apiVersion"].as_string();
  return {std::string(api_version.substr(0, api_version.find('/'))), std::string(object["kind"].as_string())};
}

meta::Result<void> Store::BeforeCreate(request::Context& context, Value object) const {
  const RESTStrategy& strategy = *options_.strategy;
  Value metadata = object.EnsureMap(context.arena, "metadata");
  KS_RETURN_IF_ERROR(CheckNamespace(context, metadata));

  std::vector<std::string> warnings;
  const Call call = MakeCall(context, warnings);
  strategy.PrepareForCreate(call, object);

  FieldErrors errors;
  strategy.Validate(call, options_.namespaced, object, errors);
  if (errors.empty()) {
    validation::ValidateObjectMeta(metadata, options_.namespaced, validation::NameIsPathSegment, FieldPath("metadata"),
                                   errors, false);
  }
  if (!errors.empty()) return meta::NewInvalid(KindOf(options_, object), metadata["name"].as_string(), errors);
  strategy.Warnings(call, {}, object, Value());
  AddWarnings(context, warnings);
  strategy.Canonicalize(call, object, Value());
  // Upstream decodes what it has just written, and defaults run again then. Where that matters (a Job gets the labels
  // of the template that Prepare filled in) storage does the same; elsewhere it is done here once.
  if (strategy.has_defaults() && !options_.codec->completes_on_read()) strategy.Default(context.arena, object);
  return {};
}

bool Store::SpecChanged(Value object, Value old) const {
  const schema::Field* field = options_.type == nullptr ? nullptr : options_.type->FindField("spec");
  if (field == nullptr) return !(object["spec"] == old["spec"]);
  if (strategy().deep_generation) return !DeepEqual(object["spec"], old["spec"], *field->type, field->pointer);
  return !SemanticEqual(object["spec"], old["spec"], *field->type, field->pointer);
}

meta::Result<void> Store::BeforeUpdate(request::Context& context, Value object, Value old,
                                       const Endpoint& endpoint) const {
  const RESTStrategy& strategy = *options_.strategy;
  base::Arena& arena = context.arena;
  Value metadata = object.EnsureMap(arena, "metadata");
  const Value old_meta = old["metadata"];
  KS_RETURN_IF_ERROR(CheckNamespace(context, metadata));
  const auto keep = [&](Value from, Value to, std::string_view key) {
    if (from.Has(key)) {
      to.Set(arena, key, from[key]);
    } else {
      to.Erase(key);
    }
  };
  keep(old_meta, metadata, "generation");

  std::vector<std::string> warnings;
  const Call call = MakeCall(context, warnings);
  strategy.PrepareForUpdate(call, endpoint, object, old);
  metadata = object["metadata"];
  if (endpoint.part != Endpoint::Part::kStatus && strategy.row().generation == Generation::kSpec &&
      SpecChanged(object, old)) {
    metadata.Set(arena, "generation", old_meta["generation"].as_int() + 1);
  }

  if (metadata["uid"].as_string().empty()) keep(old_meta, metadata, "uid");
  if (old_meta.Has("creationTimestamp")) keep(old_meta, metadata, "creationTimestamp");
  if (old_meta.Has("deletionTimestamp")) keep(old_meta, metadata, "deletionTimestamp");
  if (!metadata.Has("deletionGracePeriodSeconds")) keep(old_meta, metadata, "deletionGracePeriodSeconds");

  FieldErrors errors;
  const FieldPath path("metadata");
  validation::ValidateObjectMeta(metadata, options_.namespaced, validation::NameIsPathSegment, path, errors, false);
  validation::ValidateObjectMetaUpdate(metadata, old_meta, path, errors, false);
  strategy.ValidateUpdate(call, endpoint, object, old, errors);
  if (errors.empty()) strategy.Warnings(call, endpoint, object, old);
  AddWarnings(context, warnings);  // Ratcheted errors are warnings, also beside errors that are not.
  if (!errors.empty()) return meta::NewInvalid(KindOf(options_, object), metadata["name"].as_string(), errors);
  strategy.Canonicalize(call, object, old);
  if (strategy.has_defaults() && !options_.codec->completes_on_read()) strategy.Default(arena, object);
  return {};
}

meta::Result<ObjectPtr> Store::Wrap(request::Context& context, std::string key, Value object,
                                    std::uint64_t resource_version) const {
  if (options_.codec->completes_on_read()) options_.strategy->Default(context.arena, object);
  auto encoded = options_.codec->Encode(context.arena, object);
  if (!encoded.ok()) return meta::NewPlainError(encoded.error());
  auto stored = options_.codec->WithResourceVersion(encoded->view(), resource_version);
  if (!stored.ok()) return meta::NewPlainError(stored.error());
  auto attributes = options_.codec->GetAttrs(*stored);
  if (!attributes.ok()) return meta::NewPlainError(attributes.error());
  return ObjectPtr(
      base::MakeRef<storage::Object>(std::move(key), resource_version, *std::move(stored), *std::move(attributes)));
}

Task<ObjectPtr> Store::DryRunCreate(request::Context& context, std::string key, Value object) const {
  auto existing = co_await options_.storage->Get(key, {.caller = context.caller()});
  if (existing.ok()) {
    co_return InterpretError({.code = storage::ErrorCode::kKeyExists, .key = key}, "create",
                             object.Get("metadata", "name").as_string());
  }
  // Nothing is stored, so a resourceVersion that was sent is neither refused nor replaced.
  const auto sent = base::ParseUint64(object.Get("metadata", "resourceVersion").as_string());
  co_return Wrap(context, std::move(key), object, sent.value_or(0));
}

namespace {

// A name that is taken by an object on its way out will be free again: the answer says so.
Awaitable<meta::Status> ExplainExisting(const Store& store, request::Context& context, std::string key,
                                        meta::Status status) {
  auto existing = co_await store.options().storage->Get(std::move(key), {.caller = context.caller()});
  if (!existing.ok()) co_return status;
  auto decoded = store.Decode(context.arena, *existing);
  if (!decoded.ok() || !decoded->Get("metadata", "deletionTimestamp").is_string()) co_return status;
  meta::Status::Fields fields = status.fields();
  fields.message = "object is being deleted: " + fields.message;
  co_return meta::Status(std::move(fields));
}

}  // namespace

Task<WriteResult> Store::CreateOnce(request::Context& context, Value object, ValidateObject validate,
                                    bool dry_run) const {
  base::Arena& arena = context.arena;
  Value metadata = object.EnsureMap(arena, "metadata");
  metadata.Set(arena, "creationTimestamp", Value::String(arena, FormatTime(options_.clock->Now())));
  metadata.Set(arena, "uid", Value::String(arena, options_.random->UUID()));

  Options::Finish finish;
  if (options_.begin_write) {
    KS_CO_TRY(finish, co_await options_.begin_write(context, object, Value(), dry_run));
  }
  auto before = BeforeCreate(context, object);
  if (before.ok() && validate) before = co_await validate(object);
  meta::Result<ObjectPtr> stored = meta::NewInternalError("");
  const std::string name(metadata["name"].as_string());
  if (!before.ok()) {
    stored = before.error();
  } else if (auto key = KeyFor(metadata["namespace"].as_string(), name); !key.ok()) {
    stored = key.error();
  } else if (dry_run) {
    stored = co_await DryRunCreate(context, *key, object);
  } else {
    auto created = co_await options_.storage->Create(*key, object, options_.ttl_seconds, context.caller());
    if (created.ok()) {
      stored = *std::move(created);
    } else {
      stored = InterpretError(created.error(), "create", name);
    }
  }
  if (!stored.ok() && stored.error().reason() == meta::StatusReason::kAlreadyExists) {
    if (auto key = KeyFor(metadata["namespace"].as_string(), name); key.ok()) {
      stored = co_await ExplainExisting(*this, context, *key, stored.error());
    }
  }
  if (finish) co_await finish(stored.ok());
  if (!stored.ok()) co_return stored.error();
  co_return WriteResult{.object = *std::move(stored), .created = true};
}

Task<WriteResult> Store::Create(request::Context& context, Value object, ValidateObject validate, bool dry_run) const {
  Value metadata = object.EnsureMap(context.arena, "metadata");
  if (options_.authorize_write) KS_CO_RETURN_IF_ERROR(co_await options_.authorize_write(context, object, Value()));
  const std::string_view base_name = metadata["generateName"].as_string();
  if (!metadata["name"].as_string().empty() || base_name.empty()) {
    co_return co_await CreateOnce(context, object, validate, dry_run);
  }
  for (int attempt = 1;; ++attempt) {
    Value copy = object.Clone(context.arena);
    const std::string name =
        strategy().random_names ? GenerateName(base_name, *options_.random) : std::string(base_name);
    copy["metadata"].Set(context.arena, "name", Value::String(context.arena, name));
    auto created = co_await CreateOnce(context, copy, validate, dry_run);
    if (created.ok() || created.error().reason() != meta::StatusReason::kAlreadyExists) co_return created;
    if (attempt >= kGenerateNameAttemptsMax || !strategy().random_names)
      co_return meta::NewGenerateNameConflict(options_.resource, name, 1);
  }
}

Task<WriteResult> Store::Update(request::Context& context, std::string name, UpdatedObject updated,
                                ValidateObject validate_create, ValidateObjectUpdate validate_update,
                                UpdateParameters parameters) const {
  const Endpoint endpoint = parameters.endpoint;
  const bool dry_run = parameters.dry_run;
  KS_CO_TRY(const std::string key, KeyFor(context.info.name_space, name));
  const bool may_create = parameters.force_allow_create ||
                          (strategy().allow_create_on_update && endpoint.part == Endpoint::Part::kMain);
  base::Arena& arena = context.arena;
  bool created = false;
  bool emptied = false;  // the last finalizer of an object in deletion went away: delete it instead
  Value last;
  ObjectPtr last_existing;
  Options::Finish finish;

  storage::UpdateFunc update = [&](const ObjectPtr& existing) -> Awaitable<meta::Result<storage::Updated>> {
    created = false;
    if (!existing) {
      if (!may_create) co_return meta::NewNotFound(options_.resource, name);
      created = true;
    }
    Value old;
    if (existing) {
      KS_CO_TRY(old, Decode(arena, existing));
      // As in a decoded request, a struct that is no pointer is there also when it is empty.
      const schema::Field* spec = options_.type == nullptr ? nullptr : options_.type->FindField("spec");
      if (spec != nullptr && !spec->pointer && spec->type->kind == schema::Kind::kStruct) old.EnsureMap(arena, "spec");
    }
    // The callback may change what it is given: the old object stays as it was for the comparisons below.
    KS_CO_TRY(Value object, co_await updated(old));
    if (options_.authorize_write) KS_CO_RETURN_IF_ERROR(co_await options_.authorize_write(context, object, old));
    Value metadata = object.EnsureMap(arena, "metadata");
    const std::string_view version = metadata["resourceVersion"].as_string();
    const auto number = version.empty() ? 0 : base::ParseUint64(version);
    if (!number) {
      const bool digits = version.find_first_not_of("0123456789") == std::string_view::npos;
      co_return meta::NewPlainError("strconv.ParseUint: parsing " + base::GoQuote(version) +
                                    (digits ? ": value out of range" : ": invalid syntax"));
    }

    if (created) {
      if (const auto uid = metadata["uid"].as_string(); !uid.empty()) {
        co_return meta::NewConflict(options_.resource, name,
                                    "uid mismatch: the provided object specified uid " + std::string(uid) +
                                        ", and no existing object was found");
      }
      metadata.Erase("resourceVersion");
      metadata.Set(arena, "creationTimestamp", Value::String(arena, FormatTime(options_.clock->Now())));
      metadata.Set(arena, "uid", Value::String(arena, options_.random->UUID()));
      if (options_.begin_write) {
        KS_CO_TRY(finish, co_await options_.begin_write(context, object, Value(), dry_run));
      }
      KS_CO_RETURN_IF_ERROR(BeforeCreate(context, object));
      if (validate_create) KS_CO_RETURN_IF_ERROR(co_await validate_create(object));
      last = object;
      co_return storage::Updated{.object = object, .ttl_seconds = options_.ttl_seconds};
    }

    if (version.empty() || version == "0") {
      if (!strategy().allow_unconditional_update) {
        const FieldErrors errors = {
            validation::Invalid(FieldPath("metadata.resourceVersion"), Value(0), "must be specified for an update")};
        co_return meta::NewInvalid({options_.resource.group, options_.resource.resource}, name, errors);
      }
      metadata.Set(arena, "resourceVersion", Value::String(arena, std::to_string(existing->resource_version())));
    } else if (*number != existing->resource_version()) {
      co_return meta::NewConflict(options_.resource, name, kOptimisticLock);
    }
    if (options_.begin_write && endpoint.part == Endpoint::Part::kMain) {
      if (finish) co_await finish(false);
      KS_CO_TRY(finish, co_await options_.begin_write(context, object, old, dry_run));
    }
    KS_CO_RETURN_IF_ERROR(BeforeUpdate(context, object, old, endpoint));
    if (validate_update) KS_CO_RETURN_IF_ERROR(co_await validate_update(object, old));
    last = object;
    last_existing = existing;
    if (DeletionCompletes(object, old, options_.spec_finalizers)) {
      emptied = true;
      co_return meta::NewInternalError("deleted instead of updated");
    }
    co_return storage::Updated{.object = object, .ttl_seconds = options_.ttl_seconds};
  };

  storage::Preconditions preconditions{.uid = parameters.uid, .resource_version = parameters.resource_version};
  meta::Result<ObjectPtr> written = meta::NewInternalError("");
  if (dry_run) {
    auto existing = co_await options_.storage->Get(key, {.caller = context.caller()});
    if (!existing.ok() && existing.error().code != storage::ErrorCode::kKeyNotFound) {
      written = InterpretError(existing.error(), "update", name);
    } else {
      const ObjectPtr found = existing.ok() ? *existing : ObjectPtr();
      std::optional<storage::Error> mismatch;
      if ((parameters.uid || parameters.resource_version) && (found || may_create)) {
        Value live;
        if (found) {
          KS_CO_TRY(live, Decode(context.arena, found));
        }
        mismatch = storage::CheckPreconditions(preconditions, live.Get("metadata", "uid").as_string(),
                                               found ? found->resource_version() : 0, key);
      }
      if (mismatch) {
        written = InterpretError(*mismatch, "update", name);
      } else {
        auto object = co_await update(found);
        written = object.ok() ? Wrap(context, key, object->object, found ? found->resource_version() : 0)
                              : meta::Result<ObjectPtr>(object.error());
      }
      if (emptied) written = Wrap(context, key, last, found->resource_version());
    }
  } else {
    auto stored = co_await options_.storage->GuaranteedUpdate(key, may_create, preconditions, update, nullptr,
                                                              context.caller());
    if (stored.ok()) {
      written = *std::move(stored);
    } else if (emptied) {
      storage::Preconditions same{.resource_version = std::to_string(last_existing->resource_version())};
      auto removed = co_await DeleteForReal(context, key, name, std::move(same), nullptr, last_existing, true, false);
      if (removed.ok()) {
        written = Wrap(context, key, last, last_existing->resource_version());
      } else {
        written = removed.error();
      }
    } else {
      written = InterpretError(stored.error(), created ? "create" : "update", name);
    }
  }
  if (finish) co_await finish(written.ok());
  if (!written.ok()) co_return written.error();
  co_return WriteResult{.object = *std::move(written), .created = created};
}

}  // namespace keelson::registry
