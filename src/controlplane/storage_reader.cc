#include "controlplane/storage_reader.h"

#include "controlplane/bootstrap.h"

namespace keelson::controlplane {
namespace {

using admission::Task;

class StorageReader final : public admission::ObjectReader {
 public:
  StorageReader(ResourceStorage& storage, std::shared_ptr<auth::Authorizer> authorizer)
      : storage_(storage), authorizer_(std::move(authorizer)) {}

  Task<Value> Get(base::Arena& arena, std::string group, std::string resource, std::string name_space, std::string name,
                  bool live) override {
    auto store = storage_.Find(group, resource);
    if (!store) co_return meta::NewNotFound({group, resource}, name);
    KS_CO_TRY(const storage::ObjectPtr object, co_await store->Get(name_space, name, live ? "" : "0"));
    co_return store->Decode(arena, object);
  }

  Task<std::vector<Value>> List(base::Arena& arena, std::string group, std::string resource,
                                std::string name_space) override {
    std::vector<Value> values;
    auto store = storage_.Find(group, resource);
    if (!store) co_return values;
    storage::ListOptions options;
    options.resource_version = "0";
    KS_CO_TRY(storage::ObjectList list, co_await store->List(name_space, std::move(options)));
    // The cache may be a moment behind; where it has nothing at all, what was just written is asked for.
    if (list.items.empty()) {
      KS_CO_TRY(list, co_await store->List(name_space, storage::ListOptions{}));
    }
    values.reserve(list.items.size());
    for (const auto& item : list.items) {
      KS_CO_TRY(const Value value, store->Decode(arena, item));
      values.push_back(value);
    }
    co_return values;
  }

  Task<void> UpdateStatus(base::Arena& arena, std::string group, std::string resource, std::string name_space,
                          std::string name, std::function<std::optional<Value>(Value current)> update) override {
    auto store = storage_.Find(group, resource);
    if (!store) co_return meta::NewNotFound({group, resource}, name);
    request::Context context;
    context.info.name_space = name_space;
    context.info.name = name;
    context.info.api_group = group;
    context.user = request::User{.name = "system:apiserver", .groups = {std::string(request::kSystemMasters)}};
    registry::UpdatedObject updated = [&](Value current) -> registry::Task<Value> {
      const auto changed = update(current.Clone(arena));
      const Value next = (changed ? *changed : current).Clone(context.arena);
      if (changed) TrackFields(context, *store, next, "kube-apiserver", current, "status");
      co_return next;
    };
    auto written = co_await store->Update(context, name, updated, nullptr, nullptr,
                                          {.endpoint = {registry::Endpoint::Part::kStatus}});
    if (!written.ok()) co_return written.error();
    co_return meta::Result<void>();
  }

  Awaitable<bool> Allowed(const request::User& user, std::string verb, std::string group, std::string resource,
                          std::string name_space, std::string name) override {
    const auth::Authorization answer = co_await authorizer_->Authorize({.user = user,
                                                                        .verb = std::move(verb),
                                                                        .resource_request = true,
                                                                        .api_group = std::move(group),
                                                                        .api_version = "*",
                                                                        .resource = std::move(resource),
                                                                        .name_space = std::move(name_space),
                                                                        .name = std::move(name)});
    co_return answer.decision == auth::Decision::kAllow;
  }

 private:
  ResourceStorage& storage_;
  std::shared_ptr<auth::Authorizer> authorizer_;
};

}  // namespace

std::unique_ptr<admission::ObjectReader> NewStorageReader(ResourceStorage& storage,
                                                          std::shared_ptr<auth::Authorizer> authorizer) {
  return std::make_unique<StorageReader>(storage, std::move(authorizer));
}

}  // namespace keelson::controlplane
