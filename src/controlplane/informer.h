// The objects of one resource as they are and as they change, for parts of the server that decide by them (RBAC,
// admission). A watch on the registry's own store: no copy of the objects is kept here beyond what the callback keeps.
// Thread safety: Start() and Stop() by the owner; HasSynced() from any thread. Callbacks run one at a time.
#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/arena.h"
#include "object/value.h"
#include "registry/store.h"
#include "storage/interface.h"

namespace keelson::controlplane {

class Informer {
 public:
  struct Change {
    bool deleted = false;
    storage::ObjectPtr object;
    Value value;  // decoded, in an arena that lasts for the call
  };
  // Changes that came together. The first calls bring every object there is.
  using OnChanges = std::function<void(std::vector<Change>& changes)>;

  Informer(std::shared_ptr<registry::Store> store, OnChanges on_changes);
  ~Informer();  // Stop()

  void Start(boost::asio::any_io_executor executor);
  void Stop();  // no callback runs after it has returned. REQUIRES: not on the executor's thread
  bool HasSynced() const;

 private:
  struct State;
  static Awaitable<void> Run(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace keelson::controlplane
