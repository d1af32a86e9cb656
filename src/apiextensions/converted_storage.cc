#include "apiextensions/converted_storage.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <deque>
#include <mutex>

#include "apiextensions/resource_codec.h"
#include "base/hash.h"
#include "codec/json.h"
#include "validation/structural/object_pipeline.h"

namespace keelson::apiextensions {
namespace {

namespace structural = validation::structural;
using storage::ObjectPtr;
using storage::WatchEvent;

storage::Error StatusError(meta::Status status) {
  return {.code = storage::ErrorCode::kStatus, .status = std::move(status)};
}

// State that the members of the converted view share; streams and calls hold it.
struct View {
  std::shared_ptr<storage::Interface> base;
  CustomKindPtr kind;
  VersionKindPtr version;
  WebhookConversionPtr conversion;
  std::shared_ptr<const storage::ResourceCodec> codec;  // of this version, without conversion

  std::mutex mutex;
  base::StringMap<ObjectPtr> remembered;  // by key; the newest revision seen

  bool IsOwn(const ObjectPtr& object) const {
    return object->stored().view().starts_with("{\"apiVersion\":\"" + version->api_version + "\",");
  }
  ObjectPtr Recall(const ObjectPtr& object) {
    std::lock_guard lock(mutex);
    const auto found = remembered.find(std::string(object->key()));
    if (found == remembered.end() || found->second->resource_version() != object->resource_version()) return {};
    return found->second;
  }
  void Remember(const ObjectPtr& object) {
    std::lock_guard lock(mutex);
    if (remembered.size() >= kRememberedMax) remembered.clear();
    remembered.insert_or_assign(std::string(object->key()), object);
  }
};
using ViewPtr = std::shared_ptr<View>;

// A webhook's answer as it may be stored or shown: pruned by the schema of its version.
meta::Result<void> Prune(const VersionKind& version, base::Arena& arena, Value converted) {
  auto coerced = structural::CoerceObject(
      arena, converted, version.schema.root(),
      {.source = structural::Source::kConversion, .preserve_unknown_fields = version.preserve_unknown_fields});
  if (!coerced.ok()) return meta::NewPlainError(coerced.error());
  return {};
}

meta::Result<ObjectPtr> WithVersion(const View& view, std::string_view encoded, std::string_view key,
                                    std::uint64_t resource_version) {
  auto stored = view.codec->WithResourceVersion(encoded, resource_version);
  if (!stored.ok()) return meta::NewPlainError(stored.error());
  auto attributes = view.codec->GetAttrs(*stored);
  if (!attributes.ok()) return meta::NewPlainError(attributes.error());
  return ObjectPtr(
      base::MakeRef<storage::Object>(std::string(key), resource_version, *std::move(stored), *std::move(attributes)));
}

meta::Result<ObjectPtr> Wrap(const View& view, base::Arena& arena, Value value, const ObjectPtr& original) {
  KS_RETURN_IF_ERROR(Prune(*view.version, arena, value));
  auto encoded = view.codec->Encode(arena, value);
  if (!encoded.ok()) return meta::NewPlainError(encoded.error());
  return WithVersion(view, encoded->view(), original->key(), original->resource_version());
}

// The objects in the view's version, in their order. Converted objects are cached for watches, of which many show the
// same object; a read calls the webhook, as upstream's does.
Awaitable<meta::Result<std::vector<ObjectPtr>>> ToView(ViewPtr view, std::vector<ObjectPtr> objects,
                                                       telemetry::Span span = {}) {
  auto arena = std::make_shared<base::Arena>();
  std::vector<std::size_t> places;
  std::vector<Value> values;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (view->IsOwn(objects[i])) continue;
    auto decoded = codec::DecodeJSON(*arena, objects[i]->stored().view());
    if (!decoded.ok()) co_return meta::NewPlainError(decoded.error().message);
    decoded->value["metadata"].Erase("resourceVersion");  // set after conversion, as upstream
    places.push_back(i);
    values.push_back(decoded->value);
  }
  if (places.empty()) co_return objects;
  KS_CO_TRY(const std::vector<Value> converted,
            co_await Convert(view->conversion, *arena, std::move(values), view->version->api_version, span));
  for (std::size_t i = 0; i < places.size(); ++i) {
    ObjectPtr& object = objects[places[i]];
    KS_CO_TRY(ObjectPtr made, Wrap(*view, *arena, converted[i], object));
    view->Remember(made);
    object = std::move(made);
  }
  co_return objects;
}

Awaitable<storage::Result<ObjectPtr>> OneToView(ViewPtr view, storage::Result<ObjectPtr> object, telemetry::Span span) {
  if (!object.ok()) co_return object;
  std::vector<ObjectPtr> one(1, *object);
  auto converted = co_await ToView(view, std::move(one), span);
  if (!converted.ok()) co_return StatusError(converted.error());
  co_return converted->front();
}

// The object as it is to be stored. `arena` keeps the result.
Awaitable<meta::Result<Value>> ToStorage(ViewPtr view, std::shared_ptr<base::Arena> arena, Value object,
                                         telemetry::Span span) {
  if (view->version->kind.version == view->kind->storage_version) co_return object;
  std::vector<Value> one(1, object);
  KS_CO_TRY(const std::vector<Value> converted,
            co_await Convert(view->conversion, *arena, std::move(one), view->kind->storage_api_version, span));
  KS_CO_RETURN_IF_ERROR(Prune(*view->kind->Find(view->kind->storage_version), *arena, converted.front()));
  co_return converted.front();
}

Awaitable<storage::Result<ObjectPtr>> Create(ViewPtr view, std::string key, Value object, std::uint64_t ttl,
                                             telemetry::Caller caller) {
  auto arena = std::make_shared<base::Arena>();
  auto stored = co_await ToStorage(view, arena, object, caller.span);
  if (!stored.ok()) co_return StatusError(stored.error());
  co_return co_await OneToView(view, co_await view->base->Create(std::move(key), *stored, ttl, caller), caller.span);
}

Awaitable<meta::Result<storage::Updated>> UpdateInView(ViewPtr view, std::shared_ptr<base::Arena> arena,
                                                       storage::UpdateFunc update, ObjectPtr existing,
                                                       telemetry::Span span) {
  if (existing) {
    std::vector<ObjectPtr> one(1, existing);
    KS_CO_TRY(const std::vector<ObjectPtr> shown, co_await ToView(view, std::move(one), span));
    existing = shown.front();
  }
  KS_CO_TRY(storage::Updated updated, co_await update(existing));
  if (updated.action == storage::Updated::Action::kLeave) co_return updated;
  // The request's resourceVersion was checked by `update`; it is not converted.
  updated.object["metadata"].Erase("resourceVersion");
  KS_CO_TRY(updated.object, co_await ToStorage(view, arena, updated.object, span));
  co_return updated;
}

Awaitable<storage::Result<ObjectPtr>> Update(ViewPtr view, std::string key, bool ignore_not_found,
                                             storage::Preconditions preconditions, storage::UpdateFunc update,
                                             telemetry::Caller caller) {
  auto arena = std::make_shared<base::Arena>();
  storage::UpdateFunc in_view = [view, arena, update, span = caller.span](const ObjectPtr& existing) {
    return UpdateInView(view, arena, update, existing, span);
  };
  co_return co_await OneToView(
      view,
      co_await view->base->GuaranteedUpdate(std::move(key), ignore_not_found, std::move(preconditions), in_view,
                                            nullptr, caller),
      caller.span);
}

Awaitable<meta::Result<void>> ValidateInView(ViewPtr view, storage::ValidateDeletion validate, ObjectPtr existing) {
  std::vector<ObjectPtr> one(1, existing);
  KS_CO_TRY(const std::vector<ObjectPtr> shown, co_await ToView(view, std::move(one)));
  co_return co_await validate(shown.front());
}

Awaitable<storage::Result<ObjectPtr>> Delete(ViewPtr view, std::string key, storage::Preconditions preconditions,
                                             storage::ValidateDeletion validate, telemetry::Caller caller) {
  storage::ValidateDeletion in_view;
  if (validate) {
    in_view = [view, validate](const ObjectPtr& existing) { return ValidateInView(view, validate, existing); };
  }
  co_return co_await OneToView(
      view, co_await view->base->Delete(std::move(key), std::move(preconditions), in_view, nullptr, caller),
      caller.span);
}

Awaitable<storage::Result<ObjectPtr>> Get(ViewPtr view, std::string key, storage::GetOptions options) {
  const telemetry::Span span = options.caller.span;
  co_return co_await OneToView(view, co_await view->base->Get(std::move(key), std::move(options)), span);
}

// Selectors read labels and fields of the converted objects; with any, everything is converted and pages are not cut.
Awaitable<storage::Result<storage::ObjectList>> GetList(ViewPtr view, std::string key, storage::ListOptions options) {
  const storage::SelectionPredicate wanted = options.predicate;
  const bool selects = !wanted.MatchesEverything();
  if (selects) {
    options.predicate.label = nullptr;
    options.predicate.field = nullptr;
    options.predicate.limit = 0;
  }
  const telemetry::Span span = options.caller.span;
  auto list = co_await view->base->GetList(std::move(key), std::move(options));
  if (!list.ok()) co_return list;
  auto converted = co_await ToView(view, std::move(list->items), span);
  if (!converted.ok()) co_return StatusError(converted.error());
  list->items = *std::move(converted);
  if (selects) std::erase_if(list->items, [&](const ObjectPtr& object) { return !wanted.Matches(*object); });
  co_return list;
}

// A watch whose events are converted one after the other, in order, before they are shown.
class ConvertedStream final : public storage::WatchStream, public std::enable_shared_from_this<ConvertedStream> {
 public:
  ConvertedStream(ViewPtr view, std::unique_ptr<storage::WatchStream> base, storage::SelectionPredicate wanted,
                  asio::any_io_executor executor)
      : view_(std::move(view)), base_(std::move(base)), wanted_(std::move(wanted)), executor_(std::move(executor)) {}

  void Start(std::function<void()> wake) override {
    wake_ = std::move(wake);
    base_->Start(wake_);
  }

  Poll Next(WatchEvent& event) override {
    for (;;) {
      {
        std::lock_guard lock(mutex_);
        if (!ready_.empty()) {
          event = std::move(ready_.front());
          ready_.pop_front();
          if (event.type == WatchEvent::Type::kError) ended_ = true;
          return Poll::kEvent;
        }
        if (ended_) return Poll::kEnd;
        if (converting_) return Poll::kPending;
      }
      WatchEvent raw;
      const Poll poll = base_->Next(raw);
      if (poll != Poll::kEvent) return poll;
      if (!raw.object) {
        event = std::move(raw);
        return Poll::kEvent;
      }
      const bool previous_known = TakeKnown(raw.previous);
      if (TakeKnown(raw.object) && previous_known) {
        Push(std::move(raw));
        continue;
      }
      {
        std::lock_guard lock(mutex_);
        converting_ = true;
      }
      asio::co_spawn(executor_, ConvertOne(shared_from_this(), std::move(raw)), asio::detached);
      return Poll::kPending;
    }
  }

 private:
  static Awaitable<void> ConvertOne(std::shared_ptr<ConvertedStream> self, WatchEvent event) {
    std::vector<ObjectPtr> objects;
    if (event.previous) objects.push_back(event.previous);
    objects.push_back(event.object);  // the last is the one that is remembered
    auto converted = co_await ToView(self->view_, std::move(objects));
    if (converted.ok()) {
      event.object = converted->back();
      if (event.previous) event.previous = converted->front();
    } else {
      event = ErrorEvent(converted.error());
    }
    self->Push(std::move(event));
    {
      std::lock_guard lock(self->mutex_);
      self->converting_ = false;
    }
    self->wake_();
  }

  static WatchEvent ErrorEvent(const meta::Status& status) {
    return {.type = WatchEvent::Type::kError, .error = meta::NewInternalError(status.message())};
  }

  // Replaces the object by its remembered conversion. False: it has to be converted.
  bool TakeKnown(ObjectPtr& object) const {
    if (!object || view_->IsOwn(object)) return true;
    ObjectPtr known = view_->Recall(object);
    if (!known) return false;
    object = std::move(known);
    return true;
  }

  // Sets the type of the event by what the selectors match before and after the change; they see converted objects. False:
  // the event is not for this watch.
  bool See(WatchEvent& event) const {
    using Type = WatchEvent::Type;
    const bool deleted = event.type == Type::kDeleted;
    const ObjectPtr& before = deleted ? event.object : event.previous;
    const bool matched = before && wanted_.Matches(*before);
    if (!deleted && wanted_.Matches(*event.object)) {
      event.type = matched ? Type::kModified : Type::kAdded;
      return true;
    }
    if (!matched || deleted) return matched;
    // DELETED of an object that matches no longer shows its last state that did.
    auto gone = WithVersion(*view_, before->stored().view(), before->key(), event.object->resource_version());
    event = gone.ok() ? WatchEvent{.type = Type::kDeleted, .object = *std::move(gone)} : ErrorEvent(gone.error());
    return true;
  }

  void Push(WatchEvent event) {
    if (event.object && !wanted_.Empty() && !See(event)) return;
    event.previous = nullptr;
    std::lock_guard lock(mutex_);
    ready_.push_back(std::move(event));
  }

  const ViewPtr view_;
  const std::unique_ptr<storage::WatchStream> base_;
  const storage::SelectionPredicate wanted_;
  const asio::any_io_executor executor_;
  std::function<void()> wake_;
  std::mutex mutex_;
  std::deque<WatchEvent> ready_;  // at most one, or what came before it
  bool converting_ = false;
  bool ended_ = false;
};

// The stream's owner, so that a conversion under way keeps the stream.
class StreamHandle final : public storage::WatchStream {
 public:
  explicit StreamHandle(std::shared_ptr<ConvertedStream> stream) : stream_(std::move(stream)) {}
  void Start(std::function<void()> wake) override { stream_->Start(std::move(wake)); }
  Poll Next(WatchEvent& event) override { return stream_->Next(event); }

 private:
  const std::shared_ptr<ConvertedStream> stream_;
};

Awaitable<storage::Result<std::unique_ptr<storage::WatchStream>>> Watch(ViewPtr view, std::string key,
                                                                        storage::ListOptions options) {
  storage::SelectionPredicate wanted = options.predicate;
  wanted.shard = nullptr;  // `base` selects shards: conversion does not change them
  options.predicate.label = nullptr;
  options.predicate.field = nullptr;
  options.with_previous = !wanted.Empty();
  auto stream = co_await view->base->Watch(std::move(key), std::move(options));
  if (!stream.ok()) co_return stream.error();
  auto converted = std::make_shared<ConvertedStream>(view, *std::move(stream), std::move(wanted),
                                                     co_await asio::this_coro::executor);
  co_return std::unique_ptr<storage::WatchStream>(std::make_unique<StreamHandle>(std::move(converted)));
}

class ConvertedStorage final : public storage::Interface {
 public:
  explicit ConvertedStorage(ViewPtr view) : view_(std::move(view)) {}

  Awaitable<storage::Result<ObjectPtr>> Create(std::string key, Value object, std::uint64_t ttl_seconds,
                                               telemetry::Caller caller) override {
    return apiextensions::Create(view_, std::move(key), object, ttl_seconds, caller);
  }
  Awaitable<storage::Result<ObjectPtr>> Delete(std::string key, storage::Preconditions preconditions,
                                               storage::ValidateDeletion validate, ObjectPtr,
                                               telemetry::Caller caller) override {
    return apiextensions::Delete(view_, std::move(key), std::move(preconditions), std::move(validate), caller);
  }
  Awaitable<storage::Result<void>> DeleteUnread(std::string key) override {
    return view_->base->DeleteUnread(std::move(key));
  }
  Awaitable<storage::Result<ObjectPtr>> Get(std::string key, storage::GetOptions options) override {
    return apiextensions::Get(view_, std::move(key), std::move(options));
  }
  Awaitable<storage::Result<storage::ObjectList>> GetList(std::string key, storage::ListOptions options) override {
    return apiextensions::GetList(view_, std::move(key), std::move(options));
  }
  Awaitable<storage::Result<ObjectPtr>> GuaranteedUpdate(std::string key, bool ignore_not_found,
                                                         storage::Preconditions preconditions,
                                                         storage::UpdateFunc update, ObjectPtr,
                                                         telemetry::Caller caller) override {
    return apiextensions::Update(view_, std::move(key), ignore_not_found, std::move(preconditions), std::move(update),
                                 caller);
  }
  Awaitable<storage::Result<std::unique_ptr<storage::WatchStream>>> Watch(std::string key,
                                                                          storage::ListOptions options) override {
    return apiextensions::Watch(view_, std::move(key), std::move(options));
  }
  Awaitable<storage::Result<storage::Stats>> GetStats() override { return view_->base->GetStats(); }
  Awaitable<storage::Result<std::uint64_t>> GetCurrentResourceVersion() override {
    return view_->base->GetCurrentResourceVersion();
  }
  bool Ready() const override { return view_->base->Ready(); }

 private:
  const ViewPtr view_;
};

}  // namespace

std::shared_ptr<storage::Interface> NewConvertedStorage(std::shared_ptr<storage::Interface> base, CustomKindPtr kind,
                                                        VersionKindPtr view, WebhookConversionPtr conversion) {
  auto shared = std::make_shared<View>();
  shared->base = std::move(base);
  shared->codec = NewResourceCodec(kind, view, true);
  shared->kind = std::move(kind);
  shared->version = std::move(view);
  shared->conversion = std::move(conversion);
  return std::make_shared<ConvertedStorage>(std::move(shared));
}

}  // namespace keelson::apiextensions
