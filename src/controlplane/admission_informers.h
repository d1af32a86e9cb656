// Informers for admission plugins. Thread safety: Follow() and FollowOutlines() before Start(); Start() and Stop()
// by the owner.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <memory>
#include <string>
#include <vector>

#include "admission/admission.h"
#include "controlplane/informer.h"
#include "controlplane/resource_storage.h"

namespace keelson::controlplane {

class AdmissionInformers final : public admission::Informers {
 public:
  explicit AdmissionInformers(ResourceStorage& storage) : storage_(storage) {}  // must outlive this

  HasSynced Follow(std::string group, std::string resource, OnChanges on_changes) override;
  // The same, with definitions of custom resources as storage::DefinitionOutline shows them: without their schemas.
  void FollowOutlines(std::string group, std::string resource, OnChanges on_changes);
  void Start(boost::asio::any_io_executor executor);
  void Stop();  // no callback runs after it has returned. REQUIRES: not on the executor's thread

 private:
  std::shared_ptr<registry::Store> StoreOf(std::string_view group, std::string_view resource) const;

  ResourceStorage& storage_;
  std::vector<std::unique_ptr<Informer>> informers_;
};

}  // namespace keelson::controlplane
