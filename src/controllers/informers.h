// Informers for the controllers, one per resource, on the controllers' executor. Thread safety: none, the executor's
// thread only.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "registry/informer.h"

namespace keelson::controllers {

class InformerSet {
 public:
  using FindStore = registry::SharedInformers::FindStore;
  InformerSet(asio::any_io_executor executor, FindStore find)
      : executor_(std::move(executor)), find_(std::move(find)) {}
  ~InformerSet() { AbandonAll(); }
  InformerSet(const InformerSet&) = delete;
  InformerSet& operator=(const InformerSet&) = delete;

  // The Store that is found now; null when the resource is not served.
  std::shared_ptr<registry::Store> Find(std::string_view group, std::string_view resource) const {
    return find_(group, resource);
  }
  // False when the resource is not served.
  bool AddHandler(std::string_view group, std::string_view resource, registry::Informer::OnChanges on_changes,
                  registry::Informer::Form form = registry::Informer::Form::kDecoded);
  // The same on a Store that is not found by name. The result reports HasSynced: the handler has seen the initial list.
  std::shared_ptr<const registry::Informer::Registration> AddHandler(std::string_view group, std::string_view resource,
                                                                     std::shared_ptr<registry::Store> store,
                                                                     registry::Informer::OnChanges on_changes,
                                                                     registry::Informer::Form form);
  // Ends the informer of a resource that is not served any more, or whose Store was replaced; its handlers are gone.
  void Abandon(std::string_view group, std::string_view resource);
  void AbandonAll();
  // Watches of abandoned informers that may not have ended yet. For waiting on another thread.
  std::vector<std::future<void>> TakeEnding() { return std::move(ending_); }

 private:
  void End(registry::Informer& informer);

  const asio::any_io_executor executor_;
  const FindStore find_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<registry::Informer>> informers_;
  std::vector<std::future<void>> ending_;
};

}  // namespace keelson::controllers
