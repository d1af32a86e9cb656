#include "controlplane/admission_informers.h"

#include "registry/catalog.h"
#include "storage/definition_outline.h"

namespace keelson::controlplane {

std::shared_ptr<registry::Store> AdmissionInformers::StoreOf(std::string_view group, std::string_view resource) const {
  return storage_.Get(group, resource);
}

admission::Informers::HasSynced AdmissionInformers::Follow(std::string group, std::string resource,
                                                           OnChanges on_changes) {
  auto store = StoreOf(group, resource);
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

void AdmissionInformers::FollowOutlines(std::string group, std::string resource, OnChanges on_changes) {
  auto store = StoreOf(group, resource);
  if (!store) return;
  auto& informer = informers_.emplace_back(std::make_unique<Informer>(store));
  informer->AddHandler(
      [store, on_changes = std::move(on_changes)](std::vector<Informer::Change>& changes) {
        base::Arena arena;
        std::vector<Change> outlines;
        for (const Informer::Change& change : changes) {
          auto outline = storage::DefinitionOutline(arena, change.object->stored().view());
          if (!outline) outline = store->Decode(arena, change.object).value_or(Value());
          outlines.push_back({change.deleted || outline->is_null(), *outline});
        }
        on_changes(outlines);
      },
      Informer::Form::kStored);
}

void AdmissionInformers::Start(boost::asio::any_io_executor executor) {
  for (const auto& informer : informers_) informer->Start(executor);
}

void AdmissionInformers::Stop() {
  for (const auto& informer : informers_) informer->Stop();
}

}  // namespace keelson::controlplane
