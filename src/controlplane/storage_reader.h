// How admission plugins see the server's other objects.
#pragma once

#include <memory>

#include "admission/admission.h"
#include "admission/api_reader.h"
#include "auth/authorizer.h"
#include "controlplane/resource_storage.h"

namespace keelson::controlplane {

class AdmissionReader : public admission::ObjectReader, public admission::APIReader {
 public:
  // CustomResourceDefinitions that changed: their kinds are found by FindKind(). One call at a time.
  virtual void ApplyDefinitions(std::span<const admission::Informers::Change> changes) = 0;
};

// `storage` must outlive it; plugins check permissions of the requester with `authorizer`.
std::unique_ptr<AdmissionReader> NewStorageReader(ResourceStorage& storage,
                                                  std::shared_ptr<auth::Authorizer> authorizer);

}  // namespace keelson::controlplane
