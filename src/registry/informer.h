// The objects of one resource as they are and as they change, for parts of the server that decide by them (RBAC, Node,
// admission, flow control). One watch on the registry's own Store serves several handlers. The objects are the cache's:
// beyond one reference per object nothing is kept.
// A watch that ends is opened again; what was deleted meanwhile is reported as deleted (client-go's Replace).
// Thread safety: Start() and Stop() by the owner; AddHandler() and HasSynced() from any thread. All handlers of one
// informer run one at a time, on its executor.
#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "async/io_pool.h"
#include "base/arena.h"
#include "object/value.h"
#include "registry/store.h"
#include "storage/interface.h"

namespace keelson::registry {

class Informer {
 public:
  struct Change {
    bool deleted = false;
    storage::ObjectPtr object;  // of a deletion: as it was last known
    Value value;                // decoded, in an arena that lasts for the call; null for handlers that take bytes
  };
  // Changes that came together. The first calls bring every object there is.
  using OnChanges = std::function<void(std::vector<Change>& changes)>;
  enum class Form : std::uint8_t {
    kDecoded,  // an object that cannot be decoded counts as deleted
    kStored,   // only Change::object
  };
  class Registration;

  explicit Informer(std::shared_ptr<Store> store);
  Informer(std::shared_ptr<Store> store, OnChanges on_changes);  // with a first handler that takes decoded objects
  ~Informer();                                                   // Stop()
  Informer(const Informer&) = delete;

  // Before or after Start(): a late handler gets every known object first. It lives as long as the informer.
  std::shared_ptr<const Registration> AddHandler(OnChanges on_changes, Form form = Form::kDecoded);
  // Called on the executor when all handlers have seen the first whole state. Before Start().
  void OnSynced(std::function<void()> on_synced);
  // Only the object of that name. Before Start().
  void Narrow(std::string name_space, std::string name);

  void Start(boost::asio::any_io_executor executor);
  void Stop();  // no handler runs after it has returned. REQUIRES: not on the executor's thread
  // The same on the executor's thread, where no handler can be running. The result is ready when the watch has ended.
  std::future<void> Abandon();
  bool HasSynced() const;  // every handler has seen the first whole state

 private:
  struct State;
  static Awaitable<void> Run(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

class Informer::Registration {
 public:
  bool HasSynced() const { return synced_.load(std::memory_order_acquire); }

 private:
  friend class Informer;
  OnChanges on_changes_;
  Form form_ = Form::kDecoded;
  std::atomic<bool> synced_{false};
};

// One informer per resource, made on first use. Thread safety: all members by the owner, before and after Start().
class SharedInformers {
 public:
  using FindStore = std::function<std::shared_ptr<Store>(std::string_view group, std::string_view resource)>;
  explicit SharedInformers(FindStore find) : find_(std::move(find)) {}
  ~SharedInformers() { Stop(); }

  // Null when the resource is not served.
  Informer* Get(std::string_view group, std::string_view resource);
  void Start(async::IOPool& io);  // informers added later start at once. `io` must run until Stop().
  void Stop();
  bool HasSynced() const;

 private:
  FindStore find_;
  async::IOPool* io_ = nullptr;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Informer>> informers_;
};

}  // namespace keelson::registry
