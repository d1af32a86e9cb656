#include "registry/store.h"

#include "base/strings.h"
#include "cel/shard_selector.h"
#include "registry/names.h"
#include "storage/dry_run_storage.h"
#include "storage/shard_filter.h"
#include "validation/primitives.h"

namespace keelson::registry {
namespace {

constexpr int kGenerateNameAttemptsMax = 8;

void AddWarnings(request::Context& context, const std::vector<std::string>& warnings) {
  for (const auto& warning : warnings) context.warnings.Add(warning);
}

}  // namespace

namespace {

Store::Options Complete(Store::Options options) {
  options.defaults_on_read = options.codec->completes_on_read();
  if (!options.dry_run_storage)
    options.dry_run_storage = std::make_shared<storage::DryRunStorage>(options.storage, options.codec);
  return options;
}

}  // namespace

Store::Store(Options options) : options_(Complete(std::move(options))) {}

namespace {

Task<Value> Run(const std::function<meta::Result<Value>(Value existing)>& make, Value existing) {
  co_return make(existing);
}

}  // namespace

UpdatedObject UpdateBy(std::function<meta::Result<Value>(Value existing)> make) {
  // Shared, so that the coroutine's reference holds where the UpdatedObject is copied.
  auto shared = std::make_shared<const std::function<meta::Result<Value>(Value existing)>>(std::move(make));
  return [shared](Value existing) { return Run(*shared, existing); };
}

Task<void> Reviewer::Options::Validate(Value object) const {
  if (!validate) co_return meta::Result<void>();
  co_return co_await validate(object);
}

meta::Result<Value> REST::Decode(base::Arena& arena, const ObjectPtr& object) const {
  auto decoded = codec().Decode(arena, object->stored().view());
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
  std::string key;
  key.reserve(options_.key_root.size() + name_space.size() + name.size() + 2);
  key.append(options_.key_root);
  if (options_.namespaced) key.append("/").append(name_space);
  key.append("/").append(name);
  return key;
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
              .allow_privileged = options_.allow_privileged,
              .cancellation = context.cancellation.get()};
}

Task<ObjectPtr> Store::Get(std::string name_space, std::string name, std::string resource_version,
                           telemetry::Caller caller) const {
  KS_CO_TRY(std::string key, KeyFor(name_space, name));
  storage::GetOptions options{.resource_version = std::move(resource_version), .caller = caller};
  if (ObjectPtr known = options_.storage->TryGet(key, options)) co_return known;
  auto got = co_await options_.storage->Get(std::move(key), std::move(options));
  if (!got.ok()) co_return InterpretError(got.error(), "get", name);
  co_return *std::move(got);
}

// A selector that pins metadata.name is one read; one that pins metadata.namespace narrows a list over all namespaces.
// Neither when a list is continued: its token names a key below the root that the list began with.
// RequestInfo sets namespace=name for namespaces/x, whose objects are in no namespace: it does not narrow the scope of
// cluster-scoped kinds.
static std::string NarrowKey(const Store& store, std::string& name_space, storage::ListOptions& options) {
  const auto scope = [&] { return store.options().namespaced ? name_space : std::string(); };
  if (const auto& field = options.predicate.field; field && options.predicate.continue_token.empty()) {
    if (store.options().namespaced && name_space.empty()) {
      const auto pinned = field->RequiresExactMatch("metadata.namespace");
      if (pinned && !pinned->empty() && validation::IsDNS1123Label(*pinned).empty()) name_space = std::string(*pinned);
    }
    const auto name = field->RequiresExactMatch("metadata.name");
    if (name && !name->empty()) {
      if (auto key = store.KeyFor(name_space, *name); key.ok()) {
        options.recursive = false;
        options.scope_name = std::string(*name);
        options.scope_namespace = scope();
        return *key;
      }
    }
  }
  options.recursive = true;
  options.scope_namespace = scope();
  return store.KeyRootFor(name_space);
}

// shardSelector as a filter of the storage; 500 with upstream's text when it is not one.
static meta::Result<void> ParseShards(const std::shared_ptr<const storage::ResourceCodec>& codec,
                                      storage::SelectionPredicate& predicate) {
  if (predicate.shard_selector.empty()) return {};
  auto selector = cel::ParseShardSelector(predicate.shard_selector);
  if (!selector.ok()) return meta::NewPlainError("invalid shard selector: " + selector.error());
  predicate.shard = std::make_shared<const storage::ShardFilter>(*std::move(selector), codec);
  return {};
}

Task<storage::ObjectList> Store::List(std::string name_space, storage::ListOptions options) const {
  KS_CO_RETURN_IF_ERROR(ParseShards(options_.codec, options.predicate));
  const std::string shards = options.predicate.shard ? options.predicate.shard->ToString() : std::string();
  std::string key = NarrowKey(*this, name_space, options);
  auto list = co_await options_.storage->GetList(std::move(key), std::move(options));
  if (!list.ok()) co_return InterpretError(list.error(), "list", "");
  list->shard_selector = shards;
  co_return *std::move(list);
}

Task<std::unique_ptr<storage::WatchStream>> Store::Watch(std::string name_space, storage::ListOptions options) const {
  KS_CO_RETURN_IF_ERROR(ParseShards(options_.codec, options.predicate));
  std::string key = NarrowKey(*this, name_space, options);
  auto stream = co_await options_.storage->Watch(std::move(key), std::move(options));
  if (!stream.ok()) co_return InterpretError(stream.error(), "watch", "");
  co_return *std::move(stream);
}

meta::Result<ObjectPtr> Store::Wrap(std::string key, Value object, std::uint64_t resource_version) const {
  auto made = storage::NewUnstoredObject(*options_.codec, std::move(key), object, resource_version);
  if (!made.ok()) return meta::NewPlainError(made.error());
  return *std::move(made);
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

// Allocation, preparation and validation of a new object; admission comes next.
Task<void> Store::BeginCreate(request::Context& context, Value object, bool dry_run, Options::Finish& finish) const {
  std::vector<std::string> warnings;
  const Call call = MakeCall(context, warnings);
  FillObjectMetaSystemFields(call, object.EnsureMap(context.arena, "metadata"));
  if (options_.begin_write) {
    KS_CO_TRY(finish, co_await options_.begin_write(context, object, Value(), dry_run));
  }
  KS_CO_RETURN_IF_ERROR(PrepareCreate(options_, call, object));
  AddWarnings(context, warnings);
  co_return meta::Result<void>();
}

Task<WriteResult> Store::CreateOnce(request::Context& context, Value object, ValidateObject validate,
                                    bool dry_run) const {
  Options::Finish finish;
  auto before = co_await BeginCreate(context, object, dry_run, finish);
  if (before.ok() && validate) before = co_await validate(object);
  meta::Result<ObjectPtr> stored = meta::NewInternalError("");
  const Value metadata = object["metadata"];
  const std::string name(metadata["name"].as_string());
  if (!before.ok()) {
    stored = before.error();
  } else if (auto key = KeyFor(metadata["namespace"].as_string(), name); !key.ok()) {
    stored = key.error();
  } else {
    auto created = co_await StorageFor(dry_run).Create(*key, object, options_.ttl_seconds, context.caller());
    if (created.ok()) {
      stored = *std::move(created);
    } else {
      stored = InterpretError(created.error(), "create", name);
    }
    if (!stored.ok() && stored.error().reason() == meta::StatusReason::kAlreadyExists) {
      // CheckGeneratedNameError: also where the client chose the name and sent a generateName beside it.
      const bool generated = !metadata["generateName"].as_string().empty();
      if (generated) stored = meta::NewGenerateNameConflict(options_.resource, name, 1);
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
    if (attempt >= kGenerateNameAttemptsMax || !strategy().random_names) co_return created;
  }
}

}  // namespace keelson::registry
