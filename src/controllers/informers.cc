#include "controllers/informers.h"

#include <chrono>

namespace keelson::controllers {

bool InformerSet::AddHandler(std::string_view group, std::string_view resource,
                             registry::Informer::OnChanges on_changes, registry::Informer::Form form) {
  auto store = find_(group, resource);
  if (!store) return false;
  AddHandler(group, resource, std::move(store), std::move(on_changes), form);
  return true;
}

std::shared_ptr<const registry::Informer::Registration> InformerSet::AddHandler(
    std::string_view group, std::string_view resource, std::shared_ptr<registry::Store> store,
    registry::Informer::OnChanges on_changes, registry::Informer::Form form) {
  auto& informer = informers_[{std::string(group), std::string(resource)}];
  if (informer) return informer->AddHandler(std::move(on_changes), form);
  informer = std::make_unique<registry::Informer>(std::move(store));
  auto registration = informer->AddHandler(std::move(on_changes), form);
  informer->Start(executor_);
  return registration;
}

void InformerSet::End(registry::Informer& informer) {
  std::erase_if(ending_, [](const std::future<void>& watch) {
    return watch.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  });
  ending_.push_back(informer.Abandon());
}

void InformerSet::Abandon(std::string_view group, std::string_view resource) {
  const auto found = informers_.find({std::string(group), std::string(resource)});
  if (found == informers_.end()) return;
  End(*found->second);
  informers_.erase(found);
}

void InformerSet::AbandonAll() {
  for (auto& [resource, informer] : informers_) End(*informer);
  informers_.clear();
}

}  // namespace keelson::controllers
