#include "controlplane/admission_informers.h"

#include "registry/catalog.h"

namespace keelson::controlplane {

admission::Informers::HasSynced AdmissionInformers::Follow(std::string group, std::string resource,
                                                           OnChanges on_changes) {
  const auto definition = registry::Catalog::BuiltIn()->Find(group, resource);
  auto store = definition ? storage_.Get(*definition) : nullptr;
  if (!store) return [] { return true; };  // Not served: there are none.
  auto convert = [on_changes = std::move(on_changes)](std::vector<Informer::Change>& changes) {
    std::vector<Change> converted;
    converted.reserve(changes.size());
    for (const Informer::Change& change : changes) converted.push_back({change.deleted, change.value});
    on_changes(converted);
  };
  auto& informer = informers_.emplace_back(std::make_unique<Informer>(std::move(store), std::move(convert)));
  return [informer = informer.get()] { return informer->HasSynced(); };
}

void AdmissionInformers::Start(boost::asio::any_io_executor executor) {
  for (const auto& informer : informers_) informer->Start(executor);
}

void AdmissionInformers::Stop() {
  for (const auto& informer : informers_) informer->Stop();
}

}  // namespace keelson::controlplane
