// The life of a definition after it is written (upstream's naming condition, establishing, finalizing, API approval and
// non-structural schema controllers): accepted names and conditions, and the deletion of instances.
// Thread safety: Start() and Stop() by the owner; other members from any thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "apiextensions/discovery.h"
#include "apiextensions/handler.h"
#include "base/clock.h"
#include "registry/informer.h"
#include "registry/store.h"

namespace keelson::apiextensions {

class Controllers {
 public:
  struct Options {
    // Delay between accepted names and the condition Established: 5 s with several servers, so that all have seen the
    // names.
    std::chrono::milliseconds establishing_delay{0};
    // Whether a spec.conversion.webhook can be called: its CA bundle is one. Empty: every one can.
    std::function<bool(const Value& webhook)> usable_webhook;
    const base::Clock* clock = &base::Clock::Real();
  };
  // `definitions` is the Store of customresourcedefinitions; what it holds goes to `handler` and `discovery`.
  Controllers(std::shared_ptr<registry::Store> definitions, std::shared_ptr<Handler> handler,
              std::shared_ptr<DiscoveryDocuments> discovery, Options options);
  ~Controllers();

  void Start(boost::asio::any_io_executor executor);
  void Stop();  // waits. REQUIRES: not on the executor's thread
  bool HasSynced() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
  std::unique_ptr<registry::Informer> informer_;
};

}  // namespace keelson::apiextensions
