#include "storage/dry_run_storage.h"

#include "base/strings.h"
#include "storage/keys.h"
#include "storage/list_plan.h"

namespace keelson::storage {
namespace {

Error NotFound(std::string key) { return Error{.code = ErrorCode::kKeyNotFound, .key = std::move(key)}; }

}  // namespace

Outcome<ObjectPtr, std::string> NewUnstoredObject(const ResourceCodec& codec, std::string key, Value object,
                                                  std::uint64_t resource_version) {
  base::Arena arena;
  KS_TRY(base::SharedBytes plain, codec.Encode(arena, object));
  if (codec.completes_on_read()) {
    KS_TRY(base::SharedBytes complete, codec.Normalize(plain.view()));
    if (!complete.empty()) plain = std::move(complete);
  }
  KS_TRY(base::SharedBytes stored, codec.WithResourceVersion(plain.view(), resource_version));
  KS_TRY(Attributes attributes, codec.GetAttrs(stored));
  return ObjectPtr(base::MakeRef<Object>(std::move(key), resource_version, std::move(stored), std::move(attributes)));
}

std::optional<Error> DryRunStorage::Refused(const Preconditions& preconditions, const ObjectPtr& object,
                                            std::string_view key) const {
  const std::string uid = object && preconditions.uid ? codec_->UID(object->stored().view()) : std::string();
  return CheckPreconditions(preconditions, uid, object ? object->resource_version() : 0, key);
}

Result<ObjectPtr> DryRunStorage::AsIfStored(std::string key, Value object, std::uint64_t resource_version) const {
  auto made = NewUnstoredObject(*codec_, std::move(key), object, resource_version);
  if (!made.ok()) return UntypedError(made.error());
  return *std::move(made);
}

Awaitable<Result<ObjectPtr>> DryRunStorage::Create(std::string key, Value object, std::uint64_t,
                                                   telemetry::Caller caller) {
  auto existing = co_await below_->Get(key, {.caller = caller});
  if (existing.ok()) co_return Error{.code = ErrorCode::kKeyExists, .key = std::move(key)};
  const auto sent = base::ParseUint64(object["metadata"]["resourceVersion"].as_string());
  co_return AsIfStored(std::move(key), object, sent.value_or(0));
}

Awaitable<Result<ObjectPtr>> DryRunStorage::Delete(std::string key, Preconditions preconditions,
                                                   ValidateDeletion validate, ObjectPtr, telemetry::Caller caller) {
  KS_CO_TRY(ObjectPtr existing, co_await below_->Get(key, {.caller = caller}));
  if (auto refused = Refused(preconditions, existing, key)) co_return *std::move(refused);
  if (validate) {
    if (auto allowed = co_await validate(existing); !allowed.ok()) co_return StatusError(std::move(allowed).error());
  }
  co_return existing;
}

Awaitable<Result<void>> DryRunStorage::DeleteUnread(std::string key) {
  auto existing = co_await below_->Get(key, {});
  if (!existing.ok() && existing.error().code == ErrorCode::kKeyNotFound) co_return NotFound(std::move(key));
  co_return Result<void>();
}

Awaitable<Result<ObjectPtr>> DryRunStorage::Get(std::string key, GetOptions options) {
  return below_->Get(std::move(key), std::move(options));
}

Awaitable<Result<ObjectList>> DryRunStorage::GetList(std::string key, ListOptions options) {
  return below_->GetList(std::move(key), std::move(options));
}

Awaitable<Result<ObjectPtr>> DryRunStorage::GuaranteedUpdate(std::string key, bool ignore_not_found,
                                                             Preconditions preconditions, UpdateFunc update, ObjectPtr,
                                                             telemetry::Caller caller) {
  auto got = co_await below_->Get(key, {.caller = caller});
  if (!got.ok() && (got.error().code != ErrorCode::kKeyNotFound || !ignore_not_found)) co_return got.error();
  const ObjectPtr existing = got.ok() ? *std::move(got) : ObjectPtr();
  if (auto refused = Refused(preconditions, existing, key)) co_return *std::move(refused);
  auto updated = co_await update(existing);
  if (!updated.ok()) co_return StatusError(std::move(updated).error());
  if (updated->action == Updated::Action::kLeave) co_return existing;
  // A created object keeps the resourceVersion that was sent, as a dry run of Create() does.
  const std::uint64_t version =
      existing ? existing->resource_version()
               : base::ParseUint64(updated->object["metadata"]["resourceVersion"].as_string()).value_or(0);
  co_return AsIfStored(std::move(key), updated->object, version);
}

Awaitable<Result<std::unique_ptr<WatchStream>>> DryRunStorage::Watch(std::string key, ListOptions options) {
  return below_->Watch(std::move(key), std::move(options));
}

}  // namespace keelson::storage
