// Dry run as a storage decorator (upstream's DryRunnableStorage): reads come from the storage below, writes run their
// preconditions and callbacks on what is stored and answer with the object as it would be read back, and nothing is
// written. Thread safety: as storage::Interface.
#pragma once

#include <memory>
#include <string>

#include "storage/interface.h"
#include "storage/resource_codec.h"

namespace keelson::storage {

class DryRunStorage final : public Interface {
 public:
  DryRunStorage(std::shared_ptr<Interface> below, std::shared_ptr<const ResourceCodec> codec)
      : below_(std::move(below)), codec_(std::move(codec)) {}

  // A resourceVersion that `object` names is kept: nothing is stored that could replace it.
  Awaitable<Result<ObjectPtr>> Create(std::string key, Value object, std::uint64_t ttl_seconds,
                                      telemetry::Caller caller) override;
  // The object as it is, with its own resourceVersion.
  Awaitable<Result<ObjectPtr>> Delete(std::string key, Preconditions preconditions, ValidateDeletion validate,
                                      ObjectPtr cached, telemetry::Caller caller) override;
  Awaitable<Result<void>> DeleteUnread(std::string key) override;
  Awaitable<Result<ObjectPtr>> Get(std::string key, GetOptions options) override;
  Awaitable<Result<ObjectList>> GetList(std::string key, ListOptions options) override;
  // The result has the resourceVersion of the existing object.
  Awaitable<Result<ObjectPtr>> GuaranteedUpdate(std::string key, bool ignore_not_found, Preconditions preconditions,
                                                UpdateFunc update, ObjectPtr cached, telemetry::Caller caller) override;
  Awaitable<Result<std::unique_ptr<WatchStream>>> Watch(std::string key, ListOptions options) override;
  Awaitable<Result<Stats>> GetStats() override { return below_->GetStats(); }
  Awaitable<Result<std::uint64_t>> GetCurrentResourceVersion() override { return below_->GetCurrentResourceVersion(); }
  bool Ready() const override { return below_->Ready(); }

 private:
  std::optional<Error> Refused(const Preconditions& preconditions, const ObjectPtr& object, std::string_view key) const;
  Result<ObjectPtr> AsIfStored(std::string key, Value object, std::uint64_t resource_version) const;

  const std::shared_ptr<Interface> below_;
  const std::shared_ptr<const ResourceCodec> codec_;
};

}  // namespace keelson::storage
