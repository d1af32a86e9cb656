// A custom resource while it is served: its storage and the scopes of its versions and subresources. Made on the first
// request; requests and watches in flight hold it (through their scopes) when the definition changes. Immutable.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "admission/admission.h"
#include "apiextensions/conversion.h"
#include "apiextensions/custom_kind.h"
#include "auth/authorizer.h"
#include "base/ref.h"
#include "endpoints/scope.h"
#include "registry/store.h"
#include "server/resource_storage.h"

namespace keelson::apiextensions {

// What all custom resources have in common.
struct ServingConfig {
  server::ResourceStorage* storage = nullptr;  // must outlive everything served
  std::shared_ptr<const admission::Chain> admission;
  std::shared_ptr<auth::Authorizer> authorizer;                // asked for `create` when PUT or apply creates
  std::shared_ptr<auth::Authorizer> unsafe_delete_authorizer;  // null: the gate is off
  int delete_collection_workers = 1;
  std::chrono::seconds min_request_timeout{1800};
  // The client for a definition's spec.conversion.webhook; the error is why it cannot be called.
  std::function<Outcome<std::shared_ptr<ConversionClient>, std::string>(const Value& webhook)> conversion_client;
  std::shared_ptr<ConversionMetrics> conversion_metrics;  // null: conversions are not counted
  const cel::TimeZones* time_zones = nullptr;             // of rules; null: no named zone is known
  bool cbor = false;
  bool compress = true;
  bool watch_list = true;
};

struct ServedVersion {
  VersionKindPtr version;
  std::shared_ptr<registry::Store> store;
  endpoints::ScopePtr main, status, scale;  // the last two are null without the subresource
  endpoints::ScopePtr metadata;             // for reads of metadata only, which convert nothing
};

struct Serving : base::RefCounted {
  CustomKindPtr kind;
  std::shared_ptr<registry::Store> base;  // objects in the version they are stored in
  std::vector<ServedVersion> versions;

  const ServedVersion* Find(std::string_view version) const;
};
using ServingPtr = base::Ref<const Serving>;

// Adds the resource to the storage. `value` is the definition's object in v1.
Outcome<ServingPtr, std::string> NewServing(const ServingConfig& config,
                                            const std::shared_ptr<schema::structural::Pool>& pool,
                                            const Definition& definition, const Value& value);

}  // namespace keelson::apiextensions
