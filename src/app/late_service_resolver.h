// A service resolver for components made before the aggregator; forwards to the aggregator's resolver once that exists.
#pragma once

#include <atomic>
#include <string>

#include "webhook/service_resolver.h"

namespace keelson::app {

// Thread safety: all members from any thread.
class LateServiceResolver final : public webhook::ServiceResolver {
 public:
  void Set(webhook::ServiceResolver* resolver) { resolver_ = resolver; }  // must outlive every call

  Outcome<webhook::ServiceEndpoint, std::string> ResolveEndpoint(const std::string& name_space, const std::string& name,
                                                                 std::int32_t port) override {
    webhook::ServiceResolver* const resolver = resolver_;
    if (resolver == nullptr) return std::string("services are not known yet");
    return resolver->ResolveEndpoint(name_space, name, port);
  }

 private:
  std::atomic<webhook::ServiceResolver*> resolver_{nullptr};
};

}  // namespace keelson::app
