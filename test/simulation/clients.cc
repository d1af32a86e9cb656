#include "simulation/clients.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "registry/rest.h"

namespace keelson::simulation {
namespace {

using meta::StatusReason;
using registry::WriteResult;
using std::chrono::milliseconds;
using std::chrono::seconds;
using storage::ListOptions;
using storage::ObjectList;
using storage::ObjectPtr;
using storage::WatchEvent;
using StorePtr = std::shared_ptr<registry::Store>;

constexpr int kClientOwner = 0;
constexpr Time kGiveUp = seconds(30);
constexpr int kEventsAtOnce = 20;
const std::vector<std::string> kSpaces = {"a", "a-b", "b"};
const std::vector<std::string> kApps = {"web", "db"};
constexpr int kNames = 8;

struct Content {
  WriteID write;
  std::string name_space, name, app;
  std::size_t padding;
};

void SetContent(base::Arena& arena, Value object, const Content& content, WriteID saw, bool event) {
  Value labels = object.EnsureMap(arena, "metadata").EnsureMap(arena, "labels");
  labels.Set(arena, "app", Value::String(arena, content.app));
  labels.Set(arena, "op", Value::String(arena, std::to_string(content.write)));
  labels.Set(arena, "saw", Value::String(arena, std::to_string(saw)));
  const std::string padding(content.padding, static_cast<char>('a' + content.write % 26));
  if (event) {
    object.Set(arena, "message", Value::String(arena, padding.substr(0, 900)));
  } else {
    object.EnsureMap(arena, "data").Set(arena, "text", Value::String(arena, padding));
  }
}

Value NewObject(base::Arena& arena, const Content& content, bool event) {
  Value object = Value::Map(arena);
  object.Set(arena, "kind", event ? "Event" : "ConfigMap");
  object.Set(arena, "apiVersion", "v1");
  object.EnsureMap(arena, "metadata").Set(arena, "name", Value::String(arena, content.name));
  if (event) {
    Value about = object.EnsureMap(arena, "involvedObject");
    about.Set(arena, "kind", "Pod");
    about.Set(arena, "namespace", Value::String(arena, content.name_space));
    about.Set(arena, "name", "p");
    object.Set(arena, "reason", "Simulated");
    object.Set(arena, "type", "Normal");
  }
  SetContent(arena, object, content, 0, event);
  return object;
}

Awaitable<meta::Result<ObjectPtr>> DoCreate(StorePtr store, Content content, bool event) {
  request::Context context;
  context.info.name_space = content.name_space;
  const Value object = NewObject(context.arena, content, event);
  auto created = co_await store->Create(context, object, nullptr, false);
  if (!created.ok()) co_return created.error();
  co_return created->object;
}

// `version`: "" for a patch, else what the writer believes to replace.
Awaitable<meta::Result<ObjectPtr>> DoUpdate(StorePtr store, Content content, bool event, std::string version) {
  request::Context context;
  context.info.name_space = content.name_space;
  const registry::UpdatedObject updated =
      registry::UpdateBy([&context, content, event, version](Value existing) -> meta::Result<Value> {
        if (existing.is_null()) return meta::NewNotFound({"", "events"}, content.name);  // Updates may create them.
        Value object = existing.Clone(context.arena);
        const std::string saw(existing.Get("metadata", "labels")["op"].as_string());
        SetContent(context.arena, object, content, std::strtoull(saw.c_str(), nullptr, 10), event);
        if (!version.empty())
          object["metadata"].Set(context.arena, "resourceVersion", Value::String(context.arena, version));
        return object;
      });
  auto written = co_await store->Update(context, content.name, updated, nullptr, nullptr, {});
  if (!written.ok()) co_return written.error();
  co_return written->object;
}

Awaitable<meta::Result<ObjectPtr>> DoDelete(StorePtr store, std::string name_space, std::string name) {
  request::Context context;
  context.info.name_space = name_space;
  auto deleted = co_await store->Delete(context, name_space, name, {}, nullptr);
  if (!deleted.ok()) co_return deleted.error();
  co_return deleted->object;
}

Awaitable<meta::Result<ObjectPtr>> DoGet(StorePtr store, std::string name_space, std::string name,
                                         std::string version) {
  co_return co_await store->Get(name_space, name, version);
}

// All pages. Pages of different revisions are a fault.
Awaitable<meta::Result<ObjectList>> DoList(StorePtr store, std::string name_space, ListOptions options) {
  ObjectList whole;
  for (;;) {
    auto page = co_await store->List(name_space, options);
    if (!page.ok()) co_return page.error();
    if (whole.resource_version != 0 && page->resource_version != whole.resource_version)
      co_return meta::NewBadRequest("pages of different revisions");
    whole.resource_version = page->resource_version;
    whole.items.insert(whole.items.end(), page->items.begin(), page->items.end());
    if (page->continue_token.empty()) co_return whole;
    options.resource_version.clear();
    options.resource_version_match.clear();
    options.predicate.continue_token = page->continue_token;
  }
}

Awaitable<meta::Result<std::unique_ptr<storage::WatchStream>>> DoWatch(StorePtr store, std::string name_space,
                                                                       ListOptions options) {
  co_return co_await store->Watch(name_space, options);
}

storage::SelectionPredicate Select(const std::string& app) {
  storage::SelectionPredicate predicate;
  if (!app.empty())
    predicate.label = std::make_shared<const meta::LabelSelector>(*meta::LabelSelector::Parse("app=" + app));
  return predicate;
}

std::vector<Seen> SeenOf(const ObjectList& list) {
  std::vector<Seen> items;
  items.reserve(list.items.size());
  for (const ObjectPtr& object : list.items) items.push_back(simulation::SeenOf(*object));
  return items;
}

// Surely without effect.
bool IsRefusal(const meta::Status& status) {
  const StatusReason reason = status.reason();
  return reason == StatusReason::kNotFound || reason == StatusReason::kAlreadyExists ||
         reason == StatusReason::kConflict || reason == StatusReason::kInvalid || reason == StatusReason::kBadRequest;
}

bool IsExpected(const meta::Status& status) {
  const StatusReason reason = status.reason();
  return IsRefusal(status) || reason == StatusReason::kExpired || reason == StatusReason::kTimeout ||
         reason == StatusReason::kTooManyRequests;
}

}  // namespace

void Cluster::Say(const std::string& text) const {
  if (trace) std::fprintf(stderr, "%12.6f %s\n", std::chrono::duration<double>(world.now()).count(), text.c_str());
}

void Writer::Begin() { Next(); }

void Writer::Next() {
  const Time pause =
      cluster_.burst ? cluster_.world.Exponential(milliseconds(20)) : cluster_.world.Exponential(seconds(4));
  cluster_.world.After(pause, kClientOwner, [this] {
    if (cluster_.calm || cluster_.server == nullptr) return Next();
    Ask();
  });
}

Writer::Target Writer::Pick() {
  World& world = cluster_.world;
  Target target;
  target.resource = world.Chance(4) ? 1 : 0;
  target.name_space = kSpaces[world.random().Below(kSpaces.size())];
  target.name = "n" + std::to_string(world.random().Below(kNames));
  target.key = cluster_.server->resource(target.resource).prefix + target.name_space + "/" + target.name;
  return target;
}

void Writer::Ask() {
  World& world = cluster_.world;
  const Target target = Pick();
  waiting_ = ++last_request_;
  write_ = 0;
  world.After(kGiveUp, kClientOwner, [this, request = waiting_] {
    if (waiting_ != request) return;
    if (write_ != 0) {
      cluster_.model.Unknown(write_);
      ++cluster_.statistics.unknown;
    }
    waiting_ = 0;
    Next();
  });
  switch (world.random().Below(16)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
      return Create(target);
    case 5:
    case 6:
    case 7:
      return Update(target, true);
    case 8:
      return Update(target, false);
    case 9:
    case 10:
    case 11:
      return Delete(target);
    case 12:
    case 13:
      return Get(target);
    default:
      return List(target);
  }
}

bool Writer::Answered(int start, std::uint64_t request) {
  if (start != cluster_.start || waiting_ != request) return false;
  waiting_ = 0;
  Next();
  return true;
}

void Writer::Written(std::uint64_t request, int start, WriteID write, const meta::Result<ObjectPtr>& result) {
  if (start != cluster_.start) return;
  if (cluster_.world.Chance(300)) return;  // The answer gets lost.
  const bool ok = result.ok();
  const bool refused = !ok && IsRefusal(result.error());
  const std::uint64_t revision = ok ? (*result)->resource_version() : 0;
  std::string text = ok ? "ok" : std::string(result.error().message());
  const Time delay = cluster_.world.Between(Time(0), milliseconds(3));
  cluster_.world.After(delay, kClientOwner, [this, request, start, write, ok, refused, revision, text] {
    if (!Answered(start, request)) return;
    cluster_.Say(fmt::format("writer {} write {} {} {}", number_, write, revision, text));
    cluster_.world.Trace(write * 7 + revision + (refused ? 1 : 0));
    Statistics& statistics = cluster_.statistics;
    if (ok) {
      ++statistics.acknowledged;
      cluster_.model.Done(write, revision);
    } else if (refused) {
      ++statistics.refused;
      cluster_.model.Refused(write);
    } else {
      ++statistics.unknown;
      cluster_.model.Unknown(write);
    }
  });
}

void Writer::ServerGone() {
  if (waiting_ == 0) return;
  if (write_ != 0) {
    cluster_.model.Unknown(write_);
    ++cluster_.statistics.unknown;
  }
  waiting_ = 0;
  Next();
}

void Writer::Create(const Target& target) {
  ++cluster_.statistics.writes;
  World& world = cluster_.world;
  write_ = cluster_.model.Begin(Model::Kind::kCreate, target.key);
  const Content content{write_, target.name_space, target.name, kApps[world.random().Below(2)],
                        world.random().Below(1500)};
  cluster_.server->Ask<meta::Result<ObjectPtr>>(
      DoCreate(cluster_.server->resource(target.resource).registry, content, target.resource == 1),
      [this, request = waiting_, start = cluster_.start, write = write_](meta::Result<ObjectPtr> result) {
        Written(request, start, write, result);
      });
}

void Writer::Update(const Target& target, bool patch) {
  ++cluster_.statistics.writes;
  World& world = cluster_.world;
  write_ = cluster_.model.Begin(Model::Kind::kUpdate, target.key);
  const Content content{write_, target.name_space, target.name, kApps[world.random().Below(2)],
                        world.random().Below(1500)};
  const std::string version = patch ? "" : std::to_string(cluster_.model.told() - world.random().Below(20));
  cluster_.server->Ask<meta::Result<ObjectPtr>>(
      DoUpdate(cluster_.server->resource(target.resource).registry, content, target.resource == 1, version),
      [this, request = waiting_, start = cluster_.start, write = write_](meta::Result<ObjectPtr> result) {
        Written(request, start, write, result);
      });
}

void Writer::Delete(const Target& target) {
  ++cluster_.statistics.writes;
  write_ = cluster_.model.Begin(Model::Kind::kDelete, target.key);
  cluster_.server->Ask<meta::Result<ObjectPtr>>(
      DoDelete(cluster_.server->resource(target.resource).registry, target.name_space, target.name),
      [this, request = waiting_, start = cluster_.start, write = write_](meta::Result<ObjectPtr> result) {
        Written(request, start, write, result);
      });
}

void Writer::Get(const Target& target) {
  ++cluster_.statistics.gets;
  const bool any_age = cluster_.world.Chance(3);
  const std::uint64_t told = cluster_.model.told();
  cluster_.server->Ask<meta::Result<ObjectPtr>>(
      DoGet(cluster_.server->resource(target.resource).registry, target.name_space, target.name, any_age ? "0" : ""),
      [this, request = waiting_, start = cluster_.start, key = target.key, told,
       any_age](meta::Result<ObjectPtr> result) {
        if (!Answered(start, request)) return;
        std::optional<Seen> seen;
        if (result.ok()) seen = SeenOf(**result);
        cluster_.world.Trace(seen ? seen->revision : 0);
        if (!result.ok() && result.error().reason() != StatusReason::kNotFound) return;
        if (result.ok() || !any_age) cluster_.model.CheckGet(key, told, seen, any_age);
      });
}

void Writer::List(const Target& target) {
  ++cluster_.statistics.lists;
  World& world = cluster_.world;
  Server::Resource& resource = cluster_.server->resource(target.resource);
  const std::string name_space = world.Chance(2) ? target.name_space : "";
  const std::string app = world.Chance(3) ? kApps[world.random().Below(2)] : "";
  ListOptions options{.predicate = Select(app), .scope_namespace = name_space};
  if (world.Chance(2)) options.predicate.limit = static_cast<std::int64_t>(1 + world.random().Below(6));
  const std::uint64_t told = cluster_.model.told();
  std::uint64_t least = 0;
  std::uint64_t exactly = 0;
  switch (world.random().Below(5)) {
    case 0:
      options.resource_version = "0";
      break;
    case 1:
      exactly = told - std::min(told - 1, world.random().Below(60));
      options.resource_version = std::to_string(exactly);
      options.resource_version_match = "Exact";
      break;
    case 2:
      least = told;
      options.resource_version = std::to_string(least);
      options.resource_version_match = "NotOlderThan";
      break;
    default:
      least = told;
  }
  const Selection selection{.prefix = resource.prefix + (name_space.empty() ? "" : name_space + "/"), .app = app};
  cluster_.server->Ask<meta::Result<ObjectList>>(
      DoList(resource.registry, name_space, options),
      [this, request = waiting_, start = cluster_.start, selection, least, exactly](meta::Result<ObjectList> list) {
        if (!Answered(start, request)) return;
        if (!list.ok()) {
          cluster_.Say(fmt::format("list {}", list.error().message()));
          if (list.error().message() == "pages of different revisions")
            cluster_.model.Fail("pages of different revisions");
          return;
        }
        const std::uint64_t revision = list->resource_version;
        cluster_.world.Trace(revision + list->items.size());
        if (revision < least || (exactly != 0 && revision != exactly))
          cluster_.model.Fail(
              fmt::format("list of {} is of revision {}, wanted {} {}", selection.prefix, revision, least, exactly));
        cluster_.model.CheckList(selection, revision, SeenOf(*list));
      });
}

Informer::Informer(Cluster& cluster, std::size_t resource, std::string name_space, std::string app)
    : cluster_(cluster),
      resource_(resource),
      name_space_(std::move(name_space)),
      selection_{.prefix = std::string(resource == 0 ? "/configmaps/" : "/events/") +
                           (name_space_.empty() ? "" : name_space_ + "/"),
                 .app = std::move(app)} {}

void Informer::Begin() { Resume(); }

std::string Informer::Describe() const {
  return fmt::format("{} app={} at {} asking={} stream={}", selection_.prefix, selection_.app,
                     position_ ? position_->revision : 0, asking_, stream_ != nullptr);
}

void Informer::Drop(Time again) {
  stream_.reset();
  ++stream_number_;
  asking_ = false;
  if (position_) position_->given.reset();  // As clients do: other events of that revision are not requested again.
  cluster_.world.After(again, kClientOwner, [this, number = stream_number_] {
    if (number == stream_number_) Resume();
  });
}

void Informer::ServerGone() { Drop(cluster_.world.Between(milliseconds(10), seconds(2))); }

void Informer::Resume() {
  if (stream_ || asking_) return;
  if (cluster_.server == nullptr) return Drop(cluster_.world.Between(milliseconds(100), seconds(1)));
  asking_ = true;
  if (position_ || cluster_.world.Chance(3)) return Watch();
  List();
}

ListOptions Informer::Options() const { return {.predicate = Select(selection_.app), .scope_namespace = name_space_}; }

void Informer::List() {
  World& world = cluster_.world;
  ListOptions options = Options();
  if (world.Chance(2)) options.resource_version = "0";
  if (world.Chance(2)) options.predicate.limit = 5;
  ++cluster_.statistics.lists;
  cluster_.server->Ask<meta::Result<ObjectList>>(
      DoList(cluster_.server->resource(resource_).registry, name_space_, options),
      [this, start = cluster_.start, number = stream_number_](meta::Result<ObjectList> list) {
        if (start == cluster_.start && number == stream_number_) Listed(start, std::move(list));
      });
}

void Informer::Listed(int, meta::Result<ObjectList> list) {
  if (!list.ok()) return Drop(cluster_.world.Between(milliseconds(100), seconds(1)));
  cluster_.model.CheckList(selection_, list->resource_version, SeenOf(*list));
  cluster_.world.Trace(list->resource_version);
  position_ = Model::Position{.revision = list->resource_version};
  asking_ = false;
  Drop(cluster_.world.Between(Time(0), milliseconds(20)));
}

void Informer::Watch() {
  ListOptions options = Options();
  options.predicate.allow_watch_bookmarks = true;
  initial_ = !position_;
  initial_items_.clear();
  if (initial_) {
    options.send_initial_events = true;
    options.resource_version_match = "NotOlderThan";
  } else {
    options.resource_version = std::to_string(position_->revision);
  }
  const Time lasts = cluster_.world.Between(seconds(30), seconds(300));
  options.deadline = cluster_.world.clock().Monotonic() + lasts;
  ++cluster_.statistics.watches;
  cluster_.server->Ask<meta::Result<std::unique_ptr<storage::WatchStream>>>(
      DoWatch(cluster_.server->resource(resource_).registry, name_space_, options),
      [this, start = cluster_.start, number = stream_number_,
       lasts](meta::Result<std::unique_ptr<storage::WatchStream>> stream) {
        if (start != cluster_.start || number != stream_number_) return;
        Opened(start, std::move(stream));
        if (!stream_) return;
        // The time is up, or the connection is lost before.
        const bool lost = cluster_.world.Chance(3);
        const Time ends = lost ? cluster_.world.Between(Time(0), lasts) : lasts;
        cluster_.world.After(ends, kClientOwner, [this, lost, of = stream_number_] {
          if (of != stream_number_) return;
          if (lost) ++cluster_.statistics.connections_lost;
          Drop(cluster_.world.Between(milliseconds(1), seconds(1)));
        });
      });
}

void Informer::Opened(int, meta::Result<std::unique_ptr<storage::WatchStream>> stream) {
  asking_ = false;
  if (!stream.ok()) {
    cluster_.Say("watch " + std::string(stream.error().message()));
    if (stream.error().reason() == StatusReason::kExpired || stream.error().reason() == StatusReason::kGone) {
      ++cluster_.statistics.expired;
      position_.reset();
    }
    return Drop(cluster_.world.Between(milliseconds(100), seconds(1)));
  }
  stream_ = *std::move(stream);
  poll_scheduled_ = true;
  stream_->Start([this, number = ++stream_number_, alive = std::weak_ptr<int>(cluster_.server->alive)] {
    if (alive.expired() || number != stream_number_ || std::exchange(poll_scheduled_, true)) return;
    cluster_.world.After(cluster_.world.Between(Time(0), milliseconds(5)), kClientOwner, [this, number] {
      if (number == stream_number_) Poll();
    });
  });
  Poll();
}

void Informer::Poll() {
  World& world = cluster_.world;
  poll_scheduled_ = false;
  const auto again = [this](Time delay) {
    poll_scheduled_ = true;
    cluster_.world.After(delay, kClientOwner, [this, number = stream_number_] {
      if (number == stream_number_) Poll();
    });
  };
  if (world.now() < stalled_until_) return again(seconds(1));
  if (!cluster_.calm && world.Chance(400)) stalled_until_ = world.now() + world.Between(Time(0), seconds(200));
  const std::uint64_t number = stream_number_;
  for (int i = 0; i < kEventsAtOnce; ++i) {
    WatchEvent event;
    switch (stream_->Next(event)) {
      case storage::WatchStream::Poll::kPending:
        return;
      case storage::WatchStream::Poll::kEnd:
        return Drop(world.Between(milliseconds(1), seconds(1)));
      case storage::WatchStream::Poll::kEvent:
        Take(event);
    }
    if (number != stream_number_) return;
  }
  again(milliseconds(1));
}

void Informer::Take(const WatchEvent& event) {
  Model& model = cluster_.model;
  World& world = cluster_.world;
  if (event.type == WatchEvent::Type::kError) {
    cluster_.Say("watch event " + std::string(event.error->message()));
    const bool expired = event.error->reason() == StatusReason::kExpired;
    if (expired) {
      ++cluster_.statistics.expired;
      position_.reset();
    } else if (!IsExpected(*event.error)) {
      model.Fail("watch ended with " + std::string(event.error->message()));
    }
    return Drop(world.Between(milliseconds(10), seconds(1)));
  }
  if (event.type == WatchEvent::Type::kBookmark) {
    ++cluster_.statistics.bookmarks;
    world.Trace(event.resource_version);
    if (initial_) {
      if (!event.initial_events_end) return model.Fail("a bookmark before the end of the initial events");
      initial_ = false;
      std::ranges::sort(initial_items_, {}, &Seen::key);
      model.CheckList(selection_, event.resource_version, initial_items_);
      position_ = Model::Position{.revision = event.resource_version};
      return;
    }
    if (event.resource_version < position_->revision) {
      return model.Fail(fmt::format("bookmark {} after {} in a watch of {}", event.resource_version,
                                    position_->revision, selection_.prefix));
    }
    model.CheckQuiet(selection_, *position_, event.resource_version, "bookmark");
    position_ = Model::Position{.revision = event.resource_version};
    return;
  }
  ++cluster_.statistics.events;
  const Seen seen = simulation::SeenOf(*event.object);
  world.Trace(seen.revision * 3 + seen.write);
  if (initial_) {
    initial_items_.push_back(seen);
    return;
  }
  const auto type = event.type == WatchEvent::Type::kAdded      ? Model::Type::kAdded
                    : event.type == WatchEvent::Type::kModified ? Model::Type::kModified
                                                                : Model::Type::kDeleted;
  model.CheckEvent(selection_, *position_, type, seen);
  if (seen.revision == position_->revision && position_->given) {
    position_->given->insert(seen.key);
  } else {
    position_ = Model::Position{.revision = seen.revision, .given = std::set<std::string>{seen.key}};
  }
}

bool Informer::CaughtUp() const {
  return stream_ && !initial_ && position_ && cluster_.model.LastChange(selection_) <= position_->revision;
}

}  // namespace keelson::simulation
