// Update: read, change, prepare, validate, write; retried after a conflict.
#include "patch/field_manager.h"
#include "registry/semantic.h"
#include "registry/store.h"

namespace keelson::registry {

// One update on its way through GuaranteedUpdate's attempts; the last attempt counts. Lives in Store::Update's frame.
class UpdateOperation {
 public:
  enum class Decision : std::uint8_t {
    kWrite,
    kDeleteInstead,  // the last finalizer of an object in deletion went away
  };

  UpdateOperation(const Store& store, request::Context& context, std::string name, UpdatedObject updated,
                  ValidateObject validate_create, ValidateObjectUpdate validate_update, UpdateParameters parameters)
      : store_(store),
        context_(context),
        name_(std::move(name)),
        updated_(std::move(updated)),
        validate_create_(std::move(validate_create)),
        validate_update_(std::move(validate_update)),
        parameters_(std::move(parameters)),
        may_create_(parameters_.force_allow_create ||
                    (store.strategy().allow_create_on_update && parameters_.endpoint.part == Endpoint::Part::kMain)) {}

  Task<WriteResult> Run();

 private:
  Awaitable<meta::Result<storage::Updated>> Attempt(ObjectPtr existing);
  Task<Decision> Decide(ObjectPtr existing);
  Task<Decision> DecideCreate(Value object);
  Task<Decision> DecideUpdate(Value object, Value old);
  meta::Result<Value> DecodeOld(const ObjectPtr& existing) const;
  Task<ObjectPtr> DeleteInstead(std::string key);

  const Store& store_;
  request::Context& context_;
  const std::string name_;
  const UpdatedObject updated_;
  const ValidateObject validate_create_;
  const ValidateObjectUpdate validate_update_;
  const UpdateParameters parameters_;
  const bool may_create_;
  // Of the last attempt:
  ObjectPtr existing_;
  bool created_ = false;
  Value object_;
  Decision decision_ = Decision::kWrite;
  Store::Options::Finish finish_;
};

namespace {

// A shallow copy of `object` with these managedFields and without a resourceVersion.
Value WithManagedFields(base::Arena& arena, const Value& object, const Value& managed) {
  Value metadata = Value::Map(arena, object["metadata"].size());
  for (const object::Member& member : object["metadata"].members()) {
    if (member.key != "managedFields" && member.key != "resourceVersion")
      metadata.AppendMember(arena, member.key, member.value);
  }
  if (!managed.is_null()) metadata.AppendMember(arena, "managedFields", managed);
  Value copy = Value::Map(arena, object.size());
  for (const object::Member& member : object.members())
    copy.AppendMember(arena, member.key, member.key == "metadata" ? metadata : member.value);
  return copy;
}

// Upstream's IgnoreManagedFieldsTimestampsTransformer: a custom resource has to be the same as before, a built-in
// object equal by equality.Semantic, where an empty list is as good as none.
void RevertUnchangedTimes(base::Arena& arena, const schema::Struct* type, Value object, const Value& existing) {
  if (type == nullptr) return patch::RevertUnchangedTimes(arena, object, existing);
  const Value managed = object.Get("metadata", "managedFields");
  const Value same_but_times = WithManagedFields(arena, existing, managed);
  patch::RevertUnchangedTimes(arena, same_but_times, existing);
  const Value reverted = same_but_times.Get("metadata", "managedFields");
  if (reverted.identity() == managed.identity()) return;  // No time changed, or something else of the managers.
  if (!SemanticEqual(WithManagedFields(arena, object, Value()), WithManagedFields(arena, existing, Value()), *type))
    return;
  object["metadata"].Set(arena, "managedFields", reverted);
}

}  // namespace

meta::Result<Value> UpdateOperation::DecodeOld(const ObjectPtr& existing) const {
  KS_TRY(Value old, store_.Decode(context_.arena, existing));
  // As in a decoded request, a struct that is not a pointer exists even if it is empty.
  const schema::Struct* const type = store_.options().type;
  const schema::Field* const spec = type == nullptr ? nullptr : type->FindField("spec");
  if (spec != nullptr && !spec->pointer && spec->type->kind == schema::Kind::kStruct)
    old.EnsureMap(context_.arena, "spec");
  return old;
}

Task<UpdateOperation::Decision> UpdateOperation::DecideCreate(Value object) {
  KS_CO_RETURN_IF_ERROR(BeginCreateOnUpdate(store_.options(), name_, object["metadata"]));
  KS_CO_RETURN_IF_ERROR(co_await store_.BeginCreate(context_, object, parameters_.dry_run, finish_));
  if (validate_create_) KS_CO_RETURN_IF_ERROR(co_await validate_create_(object));
  // A dry run answers with the version that was sent.
  if (!parameters_.dry_run) object["metadata"].Erase("resourceVersion");
  co_return Decision::kWrite;
}

Task<UpdateOperation::Decision> UpdateOperation::DecideUpdate(Value object, Value old) {
  const Store::Options& kind = store_.options();
  if (kind.begin_write && parameters_.endpoint.part == Endpoint::Part::kMain) {
    if (finish_) co_await finish_(false);
    KS_CO_TRY(finish_, co_await kind.begin_write(context_, object, old, parameters_.dry_run));
  }
  std::vector<std::string> warnings;
  const Call call = store_.MakeCall(context_, warnings);
  const auto prepared = PrepareUpdate(kind, call, parameters_.endpoint, object, old);
  for (const auto& warning : warnings) context_.warnings.Add(warning);
  KS_CO_RETURN_IF_ERROR(prepared);
  // After PrepareUpdate: it restores creationTimestamp and normalizes fields, which the field manager does not see.
  RevertUnchangedTimes(context_.arena, kind.type, object, old);
  if (validate_update_) KS_CO_RETURN_IF_ERROR(co_await validate_update_(object, old));
  co_return DeletionCompletes(kind, object, old) ? Decision::kDeleteInstead : Decision::kWrite;
}

Task<UpdateOperation::Decision> UpdateOperation::Decide(ObjectPtr existing) {
  const Store::Options& kind = store_.options();
  if (!existing && !may_create_) co_return meta::NewNotFound(kind.resource, name_);
  Value old;
  if (existing) {
    KS_CO_TRY(old, DecodeOld(existing));
  }
  // The callback may change what it is given: the old object stays as it was for the comparisons below.
  KS_CO_TRY(object_, co_await updated_(old));
  if (kind.authorize_write) KS_CO_RETURN_IF_ERROR(co_await kind.authorize_write(context_, object_, old));
  const Value metadata = object_.EnsureMap(context_.arena, "metadata");
  KS_CO_RETURN_IF_ERROR(
      CheckUpdateVersion(kind, context_.arena, name_, metadata, existing ? existing->resource_version() : 0));
  if (!existing) co_return co_await DecideCreate(object_);
  co_return co_await DecideUpdate(object_, old);
}

Awaitable<meta::Result<storage::Updated>> UpdateOperation::Attempt(ObjectPtr existing) {
  // Attempts after conflicts end with the request, as upstream's do at their next call with its context.
  if (context_.cancellation != nullptr && context_.cancellation->cancelled())
    co_return meta::NewTimeout("request did not complete within requested timeout - context deadline exceeded", 0);
  existing_ = existing;
  created_ = may_create_ && !existing;
  decision_ = Decision::kWrite;
  KS_CO_TRY(decision_, co_await Decide(existing));
  const auto action =
      decision_ == Decision::kWrite ? storage::Updated::Action::kWrite : storage::Updated::Action::kLeave;
  co_return storage::Updated{.object = object_, .ttl_seconds = store_.options().ttl_seconds, .action = action};
}

Task<ObjectPtr> UpdateOperation::DeleteInstead(std::string key) {
  const std::uint64_t version = existing_->resource_version();
  Store::Removal removal{.preconditions = {.uid = {}, .resource_version = std::to_string(version)},
                         .validate = nullptr,
                         .existing = existing_,
                         .ignore_not_found = true,
                         .dry_run = parameters_.dry_run};
  KS_CO_TRY(const DeleteResult removed, co_await store_.Remove(context_, key, name_, std::move(removal)));
  (void)removed;  // the client gets the object that it sent
  co_return store_.Wrap(std::move(key), object_, version);
}

Task<WriteResult> UpdateOperation::Run() {
  KS_CO_TRY(const std::string key, store_.KeyFor(context_.info.name_space, name_));
  storage::Preconditions preconditions{.uid = parameters_.uid, .resource_version = parameters_.resource_version};
  auto stored = co_await store_.StorageFor(parameters_.dry_run)
                    .GuaranteedUpdate(
                        key, may_create_, std::move(preconditions),
                        [this](const ObjectPtr& existing) { return Attempt(existing); }, nullptr, context_.caller());
  meta::Result<ObjectPtr> written = ObjectPtr();
  if (!stored.ok()) {
    written = store_.InterpretError(stored.error(), created_ ? "create" : "update", name_);
  } else if (decision_ == Decision::kDeleteInstead) {
    written = co_await DeleteInstead(key);
  } else {
    written = *std::move(stored);
  }
  if (finish_) co_await finish_(written.ok());
  if (!written.ok()) co_return written.error();
  co_return WriteResult{.object = *std::move(written), .created = created_};
}

Task<WriteResult> Store::Update(request::Context& context, std::string name, UpdatedObject updated,
                                ValidateObject validate_create, ValidateObjectUpdate validate_update,
                                UpdateParameters parameters) const {
  UpdateOperation operation(*this, context, std::move(name), std::move(updated), std::move(validate_create),
                            std::move(validate_update), std::move(parameters));
  co_return co_await operation.Run();
}

}  // namespace keelson::registry
