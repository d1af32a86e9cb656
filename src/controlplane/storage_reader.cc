#include "controlplane/storage_reader.h"

#include <map>
#include <mutex>

#include "base/check.h"
#include "codec/json.h"
#include "controlplane/bootstrap.h"
#include "controlplane/decoded_objects.h"
#include "registry/catalog.h"
#include "registry/catalog/conversion.h"
#include "schema/schema.h"

namespace keelson::controlplane {
namespace {

using admission::Task;

class StorageReader final : public AdmissionReader {
 public:
  StorageReader(ResourceStorage& storage, std::shared_ptr<auth::Authorizer> authorizer)
      : storage_(storage), authorizer_(std::move(authorizer)) {}

  Task<Value> Get(base::Arena& arena, std::string group, std::string resource, std::string name_space, std::string name,
                  bool live) override {
    auto store = storage_.Find(group, resource);
    if (!store) co_return meta::NewNotFound({group, resource}, name);
    KS_CO_TRY(const storage::ObjectPtr object, co_await store->Get(name_space, name, live ? "" : "0"));
    co_return Decode(arena, *store, object);
  }

  void SetCustomStores(CustomStores stores) override { custom_stores_ = std::move(stores); }

  Task<std::vector<Value>> List(base::Arena& arena, std::string group, std::string resource,
                                std::string name_space) override {
    auto store = storage_.Find(group, resource);
    if (!store) co_return std::vector<Value>();
    KS_CO_TRY(const std::vector<storage::ObjectPtr> objects, co_await ObjectsOf(store, std::move(name_space)));
    std::vector<Value> values;
    values.reserve(objects.size());
    for (const storage::ObjectPtr& object : objects) {
      KS_CO_TRY(const Value value, Decode(arena, *store, object));
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
    const auto updated = registry::UpdateBy([&](Value current) -> meta::Result<Value> {
      const auto changed = update(current.Clone(arena));
      const Value next = (changed ? *changed : current).Clone(context.arena);
      if (changed) TrackFields(context, *store, next, "kube-apiserver", current, "status");
      return next;
    });
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

  Task<void> Create(std::string group, std::string resource, std::string name_space, std::string json) override {
    auto store = storage_.Find(group, resource);
    if (!store || store->options().type == nullptr) co_return meta::NewNotFound({group, resource}, "");
    request::Context context;
    context.info.name_space = name_space;
    context.info.api_group = group;
    context.user = LoopbackUser();
    auto decoded = codec::DecodeJSON(context.arena, json, *store->options().type);
    if (!decoded.ok()) co_return meta::NewInternalError(decoded.error().message);
    store->rest_strategy().Default(context.arena, decoded->value);
    TrackFields(context, *store, decoded->value, "kube-apiserver");
    auto written = co_await store->Create(context, decoded->value, nullptr, false);
    if (!written.ok()) co_return written.error();
    co_return meta::Result<void>();
  }

  std::optional<Kind> FindKind(const meta::GroupVersionKind& kind) override {
    if (const registry::ServedVersion* served = storage_.catalog().FindKind(kind); served != nullptr)
      return Kind{std::string(served->table->plural), served->table->namespaced};
    std::lock_guard lock(mutex_);
    const auto found = custom_.find(kind);
    if (found == custom_.end()) return std::nullopt;
    return found->second;
  }

  Task<Value> GetDocument(base::Arena& arena, meta::GroupVersionKind kind, std::string name_space,
                          std::string name) override {
    const auto found = FindKind(kind);
    if (!found) co_return meta::NewNotFound({kind.group, kind.kind}, name);
    KS_CO_TRY(const auto custom, CustomStore(kind, found->resource));
    if (custom) {
      KS_CO_TRY(const storage::ObjectPtr object, co_await custom->Get(name_space, name, "0"));
      co_return custom->Decode(arena, object);
    }
    KS_CO_TRY(const Value object, co_await Get(arena, kind.group, found->resource, name_space, name, false));
    co_return Document(arena, kind, object);
  }

  Task<std::vector<Value>> ListDocuments(base::Arena& arena, meta::GroupVersionKind kind,
                                         std::string name_space) override {
    const auto found = FindKind(kind);
    if (!found) co_return std::vector<Value>();
    KS_CO_TRY(const auto custom, CustomStore(kind, found->resource));
    if (custom) co_return co_await ListCustom(arena, custom, std::move(name_space));
    KS_CO_TRY(std::vector<Value> objects, co_await List(arena, kind.group, found->resource, name_space));
    for (Value& object : objects) {
      KS_CO_TRY(object, Document(arena, kind, object));
    }
    co_return objects;
  }

  void ApplyDefinitions(std::span<const admission::Informers::Change> changes) override {
    std::lock_guard lock(mutex_);
    for (const admission::Informers::Change& change : changes) {
      const Value spec = change.object["spec"];
      const std::string group(spec["group"].as_string()), name(spec.Get("names", "kind").as_string());
      const std::string definition(change.object.Get("metadata", "name").as_string());
      std::vector<meta::GroupVersionKind>& kinds = kinds_of_[definition];
      for (const meta::GroupVersionKind& kind : kinds) custom_.erase(kind);
      kinds.clear();
      if (change.deleted) {
        kinds_of_.erase(definition);
        continue;
      }
      const Kind kind{std::string(spec.Get("names", "plural").as_string()), spec["scope"].as_string() == "Namespaced"};
      for (const Value version : spec["versions"].items()) {
        if (!version["served"].as_bool()) continue;
        kinds.push_back({group, std::string(version["name"].as_string()), name});
        custom_[kinds.back()] = kind;
      }
    }
  }

  Awaitable<admission::AccessDecision> Authorize(admission::AccessReview review) override {
    auth::Attributes attributes{.user = std::move(review.user),
                                .verb = std::move(review.verb),
                                .resource_request = review.resource_request,
                                .api_group = std::move(review.group),
                                .api_version = std::move(review.version),
                                .resource = std::move(review.resource),
                                .subresource = std::move(review.subresource),
                                .name_space = std::move(review.name_space),
                                .name = std::move(review.name),
                                .path = std::move(review.path)};
    auth::ParseSelectors(review.field_selector, review.label_selector, attributes);
    const auth::Authorization answer = co_await authorizer_->Authorize(attributes);
    co_return admission::AccessDecision{.allowed = answer.decision == auth::Decision::kAllow,
                                        .denied = answer.decision == auth::Decision::kDeny,
                                        .reason = answer.reason,
                                        .error = answer.error};
  }

 private:
  // REQUIRES: `store` is the one of its resource, not a view.
  meta::Result<Value> Decode(base::Arena& arena, const registry::Store& store, const storage::ObjectPtr& object) {
    auto decoded = decoded_.Decode(arena, store.codec(), object);
    if (!decoded.ok()) return meta::NewPlainError(decoded.error());
    return *decoded;
  }

  static Task<std::vector<storage::ObjectPtr>> ObjectsOf(std::shared_ptr<registry::Store> store,
                                                         std::string name_space) {
    storage::ListOptions options;
    options.resource_version = "0";
    KS_CO_TRY(storage::ObjectList list, co_await store->List(name_space, std::move(options)));
    // The cache may be a moment behind; an empty result is read again from storage.
    if (list.items.empty()) {
      KS_CO_TRY(list, co_await store->List(name_space, storage::ListOptions{}));
    }
    co_return std::move(list.items);
  }

  // Custom resources: `store` may be one of several views of the same objects.
  static Task<std::vector<Value>> ListCustom(base::Arena& arena, std::shared_ptr<registry::Store> store,
                                             std::string name_space) {
    KS_CO_TRY(const std::vector<storage::ObjectPtr> objects, co_await ObjectsOf(store, std::move(name_space)));
    std::vector<Value> values;
    values.reserve(objects.size());
    for (const storage::ObjectPtr& object : objects) {
      KS_CO_TRY(const Value value, store->Decode(arena, object));
      values.push_back(value);
    }
    co_return values;
  }

  // Null for a built-in kind. Custom resources are read in the version of `kind`, through its conversion.
  meta::Result<std::shared_ptr<registry::Store>> CustomStore(const meta::GroupVersionKind& kind,
                                                             const std::string& resource) const {
    if (storage_.catalog().FindKind(kind) != nullptr) return std::shared_ptr<registry::Store>();
    std::shared_ptr<registry::Store> store;
    if (custom_stores_) {
      auto found = custom_stores_(resource + "." + kind.group, kind.version);
      if (!found.ok()) return meta::NewInternalError(found.error());
      store = *std::move(found);
    }
    if (!store)
      return meta::NewServiceUnavailable("paramKind kind `" + kind.ToString() +
                                         "` not yet synced to use for admission");
    return store;
  }

  meta::Result<Value> Document(base::Arena& arena, const meta::GroupVersionKind& kind, Value object) const {
    const registry::ServedVersion* const served = storage_.catalog().FindKind(kind);
    KS_CHECK(served != nullptr);  // custom resources are documents already
    if (served->conversion != nullptr) object = served->conversion->from_hub(arena, object);
    object.Set(arena, "kind", Value::String(arena, kind.kind));
    object.Set(arena, "apiVersion", Value::String(arena, kind.group_version().ToString()));
    std::string text;
    codec::EncodeJSON(object, *served->type, text);
    auto document = codec::DecodeJSON(arena, text);
    if (!document.ok()) return meta::NewInternalError(document.error().message);
    return document->value;
  }

  ResourceStorage& storage_;
  DecodedObjects decoded_;
  std::mutex mutex_;
  std::map<meta::GroupVersionKind, Kind> custom_;                        // kinds of custom resources
  std::map<std::string, std::vector<meta::GroupVersionKind>> kinds_of_;  // those of a definition, by its name
  std::shared_ptr<auth::Authorizer> authorizer_;
  CustomStores custom_stores_;
};

}  // namespace

std::unique_ptr<AdmissionReader> NewStorageReader(ResourceStorage& storage,
                                                  std::shared_ptr<auth::Authorizer> authorizer) {
  return std::make_unique<StorageReader>(storage, std::move(authorizer));
}

}  // namespace keelson::controlplane
