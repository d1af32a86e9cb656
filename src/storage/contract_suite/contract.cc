#include "storage/contract_suite/contract.h"

namespace keelson::storage {
namespace {

constexpr auto kStreamPatience = std::chrono::seconds(60);

std::string_view Name(WatchEvent::Type type) {
  switch (type) {
    case WatchEvent::Type::kAdded:
      return "ADDED";
    case WatchEvent::Type::kModified:
      return "MODIFIED";
    case WatchEvent::Type::kDeleted:
      return "DELETED";
    case WatchEvent::Type::kBookmark:
      return "BOOKMARK";
    case WatchEvent::Type::kError:
      return "ERROR";
  }
  return "";
}

}  // namespace

std::string ToText(const WatchEvent& event) {
  std::string text(Name(event.type));
  if (event.object) {
    const Attributes& attributes = event.object->attributes();
    text.append(" ").append(attributes.name_space).append("/").append(attributes.name) +=
        "@" + std::to_string(event.object->resource_version());
  }
  if (event.type == WatchEvent::Type::kBookmark)
    text += " @" + std::to_string(event.resource_version) + (event.initial_events_end ? " end" : "");
  if (event.error) text += " " + std::to_string(event.error->code()) + " " + std::string(event.error->message());
  return text;
}

StreamReader::StreamReader(std::unique_ptr<WatchStream> stream) : stream_(std::move(stream)) {
  stream_->Start([signal = signal_] {
    std::lock_guard lock(signal->mutex);
    ++signal->woken;
    signal->changed.notify_all();
  });
}

std::optional<WatchEvent> StreamReader::Next() {
  if (ahead_) return std::exchange(ahead_, std::nullopt);
  for (;;) {
    std::uint64_t seen = 0;
    {
      std::lock_guard lock(signal_->mutex);
      seen = signal_->woken;
    }
    WatchEvent event;
    switch (stream_->Next(event)) {
      case WatchStream::Poll::kEvent:
        return event;
      case WatchStream::Poll::kEnd:
        return std::nullopt;
      case WatchStream::Poll::kPending:
        break;
    }
    std::unique_lock lock(signal_->mutex);
    if (!signal_->changed.wait_for(lock, kStreamPatience, [&] { return signal_->woken != seen; })) {
      ADD_FAILURE() << "no event";
      return std::nullopt;
    }
  }
}

std::string StreamReader::NextText() {
  const auto event = Next();
  return event ? ToText(*event) : "END";
}

bool StreamReader::Pending() {
  if (ahead_) return false;
  WatchEvent event;
  const auto poll = stream_->Next(event);
  if (poll == WatchStream::Poll::kEvent) ahead_ = std::move(event);
  return poll == WatchStream::Poll::kPending;
}

std::uint64_t StreamReader::woken() const {
  std::lock_guard lock(signal_->mutex);
  return signal_->woken;
}

void Contract::SetUp() {
  io_ = std::make_unique<async::IOPool>(2);
  harness_ = GetParam().make(*io_);
}

void Contract::TearDown() {
  harness_.reset();
  io_.reset();
}

Value Contract::Object(base::Arena& arena, const Spec& spec) {
  Value object = Value::Map(arena);
  Value metadata = object.EnsureMap(arena, "metadata");
  metadata.Set(arena, "name", Value::String(arena, spec.name));
  metadata.Set(arena, "namespace", Value::String(arena, spec.name_space));
  metadata.Set(arena, "uid", Value::String(arena, spec.uid));
  if (!spec.app.empty()) metadata.EnsureMap(arena, "labels").Set(arena, "app", Value::String(arena, spec.app));
  if (!spec.node.empty())
    object.EnsureMap(arena, "fields").Set(arena, "spec.nodeName", Value::String(arena, spec.node));
  object.Set(arena, "data", Value::String(arena, spec.data));
  return object;
}

ObjectPtr Contract::MustCreate(const Spec& spec) {
  base::Arena arena;
  auto created = Await(storage().Create(Key(spec), Object(arena, spec), 0));
  EXPECT_TRUE(created.ok()) << created.error().ToString();
  return created.ok() ? *created : nullptr;
}

namespace {

Awaitable<meta::Result<Updated>> Replace(base::Arena& arena, Value object) {
  (void)arena;
  co_return Updated{.object = object};
}

}  // namespace

ObjectPtr Contract::MustUpdate(const Spec& spec) {
  base::Arena arena;
  Value object = Object(arena, spec);
  auto updated =
      Await(storage().GuaranteedUpdate(Key(spec), false, {}, [&](const ObjectPtr&) { return Replace(arena, object); }));
  EXPECT_TRUE(updated.ok()) << updated.error().ToString();
  return updated.ok() ? *updated : nullptr;
}

ObjectPtr Contract::MustDelete(const Spec& spec) {
  auto deleted = Await(storage().Delete(Key(spec), {}, {}));
  EXPECT_TRUE(deleted.ok()) << deleted.error().ToString();
  return deleted.ok() ? *deleted : nullptr;
}

ObjectList Contract::MustList(std::string key, ListOptions options) {
  auto list = Await(storage().GetList(std::move(key), std::move(options)));
  EXPECT_TRUE(list.ok()) << list.error().ToString();
  return list.ok() ? *std::move(list) : ObjectList{};
}

std::unique_ptr<StreamReader> Contract::MustWatch(std::string key, ListOptions options) {
  auto stream = Await(storage().Watch(std::move(key), std::move(options)));
  EXPECT_TRUE(stream.ok()) << stream.error().ToString();
  return stream.ok() ? std::make_unique<StreamReader>(*std::move(stream)) : nullptr;
}

std::string Contract::Names(const ObjectList& list) {
  std::string names;
  for (const ObjectPtr& object : list.items) names.append(names.empty() ? "" : " ").append(object->attributes().name);
  return names;
}

SelectionPredicate Contract::Select(std::string_view labels, std::string_view fields) {
  SelectionPredicate predicate;
  if (!labels.empty())
    predicate.label = std::make_shared<const meta::LabelSelector>(*meta::LabelSelector::Parse(labels));
  if (!fields.empty())
    predicate.field = std::make_shared<const meta::FieldSelector>(*meta::FieldSelector::Parse(fields));
  return predicate;
}

}  // namespace keelson::storage
