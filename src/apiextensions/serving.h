// A custom resource while it is served: its storage and the scopes of its versions and subresources. Made on the first
// request; requests and watches in flight hold it (through their scopes) when the definition changes. Immutable.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "admission/admission.h"
#include "apiextensions/compiled_budget.h"
#include "apiextensions/conversion.h"
#include "apiextensions/custom_kind.h"
#include "auth/authorizer.h"
#include "base/ref.h"
#include "endpoints/scope.h"
#include "registry/store.h"
#include "server/resource_storage.h"

namespace keelson::apiextensions {

// Configuration shared by all custom resources.
struct ServingConfig {
  server::ResourceStorage* storage = nullptr;  // must outlive everything served
  std::shared_ptr<const admission::Chain> admission;
  std::shared_ptr<auth::Authorizer> authorizer;                // checked for `create` when PUT or apply creates
  std::shared_ptr<auth::Authorizer> unsafe_delete_authorizer;  // null: the gate is off
  int delete_collection_workers = 1;
  std::chrono::seconds min_request_timeout{1800};
  // The client for a definition's spec.conversion.webhook; the error is why it cannot be called.
  std::function<Outcome<std::shared_ptr<ConversionClient>, std::string>(const Value& webhook)> conversion_client;
  std::shared_ptr<ConversionMetrics> conversion_metrics;  // null: conversions are not counted
  const cel::TimeZones* time_zones = nullptr;             // of rules; null: no named zone is known
  std::size_t compiled_bytes_max = CompiledBudget::kBytesMax;
  bool cbor = false;
  bool compress = true;
  bool watch_list = true;
  bool sharding = false;
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
  mutable std::atomic<std::uint32_t> uses{0};  // ServingUses now

  const ServedVersion* Find(std::string_view version) const;
};
using ServingPtr = base::Ref<const Serving>;

// Held while a request is answered: what is in use is not dropped.
class ServingUse {
 public:
  ServingUse() = default;
  explicit ServingUse(ServingPtr serving) : serving_(std::move(serving)) {
    if (serving_) serving_->uses.fetch_add(1, std::memory_order_relaxed);
  }
  ServingUse(ServingUse&& other) noexcept : serving_(std::move(other.serving_)) {}
  ServingUse& operator=(ServingUse&& other) noexcept {
    std::swap(serving_, other.serving_);
    return *this;
  }
  ~ServingUse() {
    if (serving_) serving_->uses.fetch_sub(1, std::memory_order_relaxed);
  }

  explicit operator bool() const { return static_cast<bool>(serving_); }
  const Serving* operator->() const { return serving_.get(); }

 private:
  ServingPtr serving_;
};

// The schema pool and the memory budget that all served CustomResourceDefinitions share.
struct CompiledForms {
  std::shared_ptr<schema::structural::Pool> pool = std::make_shared<schema::structural::Pool>();
  std::shared_ptr<CompiledBudget> budget;
};

// Adds the resource to the storage. `value` is the definition's object in v1.
Outcome<ServingPtr, std::string> NewServing(const ServingConfig& config, const CompiledForms& compiled,
                                            const Definition& definition, const Value& value);

}  // namespace keelson::apiextensions
