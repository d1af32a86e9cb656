// How admission plugins see the server's other objects.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "admission/admission.h"
#include "admission/api_reader.h"
#include "auth/authorizer.h"
#include "base/outcome.h"
#include "controlplane/resource_storage.h"
#include "registry/store.h"

namespace keelson::controlplane {

// The Store of a custom resource in one served version, by the name of its definition; made on first use and kept while
// somebody holds it. Null when the definition is not served (yet); the error tells why it cannot be.
using CustomStores = std::function<Outcome<std::shared_ptr<registry::Store>, std::string>(std::string_view definition,
                                                                                          std::string_view version)>;

class AdmissionReader : public admission::ObjectReader, public admission::APIReader {
 public:
  // Before the first request. Without it custom resources are not found.
  virtual void SetCustomStores(CustomStores stores) = 0;
  // CustomResourceDefinitions that changed: their kinds are found by FindKind(). One call at a time.
  virtual void ApplyDefinitions(std::span<const admission::Informers::Change> changes) = 0;
};

// `storage` must outlive it; plugins check permissions of the requester with `authorizer`.
std::unique_ptr<AdmissionReader> NewStorageReader(ResourceStorage& storage,
                                                  std::shared_ptr<auth::Authorizer> authorizer);

}  // namespace keelson::controlplane
