// Random operations against the cacher and against a model that is a list of states, under faults in the store below:
// the two must agree on every answer. KEELSON_SEED replays one run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/testing/seeded_random.h"
#include "cacher/cacher_fixture.h"

namespace keelson::cacher {
namespace {

using storage::ListOptions;
using storage::SelectionPredicate;
using storage::WatchEvent;

struct Pod {
  std::string name_space, name, app, node;
  std::uint64_t revision = 0;
};
using State = std::map<std::string, Pod>;  // by key

// A question, and the answer the model gives.
struct Question {
  std::string name_space;  // "" for all
  std::string app;         // "" for any
  std::optional<std::string> node;

  std::string Key() const { return name_space.empty() ? "/pods" : "/pods/" + name_space; }
  bool Selects(const Pod& pod) const {
    return (name_space.empty() || pod.name_space == name_space) && (app.empty() || pod.app == app) &&
           (!node || pod.node == *node);
  }
  bool everything() const { return app.empty() && !node; }
};

std::string Text(const Pod& pod) { return pod.name_space + "/" + pod.name + "@" + std::to_string(pod.revision); }
std::string Text(const storage::Object& object) {
  return std::string(object.attributes().name_space) + "/" + std::string(object.attributes().name) + "@" +
         std::to_string(object.resource_version());
}

class Model {
 public:
  // The states after each revision that changed a pod.
  void Put(Pod pod) {
    State next = now();
    next["/pods/" + pod.name_space + "/" + pod.name] = pod;
    states_[pod.revision] = std::move(next);
  }
  void Remove(const std::string& key, std::uint64_t revision) {
    State next = now();
    next.erase(key);
    states_[revision] = std::move(next);
  }
  const State& now() const { return states_.rbegin()->second; }
  const State& at(std::uint64_t revision) const { return std::prev(states_.upper_bound(revision))->second; }

  std::vector<std::string> List(const Question& question, std::uint64_t revision) const {
    std::vector<std::string> items;
    for (const auto& [key, pod] : at(revision)) {
      if (question.Selects(pod)) items.push_back(Text(pod));
    }
    return items;
  }

  // The events of a watch after `revision`, up to and including `until`.
  std::vector<std::string> Watch(const Question& question, std::uint64_t revision, std::uint64_t until) const {
    std::vector<std::string> events;
    for (auto next = states_.upper_bound(revision); next != states_.end() && next->first <= until; ++next) {
      const State& before = std::prev(next)->second;
      State all = before;
      all.insert(next->second.begin(), next->second.end());
      for (const auto& [key, ignored] : all) {
        const auto old = before.find(key);
        const auto now = next->second.find(key);
        const bool was = old != before.end() && question.Selects(old->second);
        const bool is = now != next->second.end() && question.Selects(now->second);
        const bool changed =
            old == before.end() || now == next->second.end() || old->second.revision != now->second.revision;
        if (!changed) continue;
        if (is) {
          events.push_back((was ? "MODIFIED " : "ADDED ") + Text(now->second));
        } else if (was) {
          Pod gone = old->second;
          gone.revision = next->first;
          events.push_back("DELETED " + Text(gone));
        }
      }
    }
    return events;
  }

 private:
  std::map<std::uint64_t, State> states_{{0, {}}};
};

class CacherModelTest : public CacherTest {
 protected:
  struct Watching {
    Question question;
    std::uint64_t after = 0;
    std::unique_ptr<storage::StreamReader> reader;
    std::vector<std::string> seen;
    bool over = false;
  };

  void Run(std::uint64_t seed, int steps);

  std::string Pick(const std::vector<std::string>& from) { return from[random_->Below(from.size())]; }
  Question RandomQuestion() {
    Question question;
    if (random_->Below(2) == 0) question.name_space = Pick(spaces_);
    if (random_->Below(3) == 0) question.app = Pick(apps_);
    if (random_->Below(3) == 0) question.node = Pick(nodes_);
    return question;
  }
  ListOptions Options(const Question& question) {
    std::string labels = question.app.empty() ? "" : "app=" + question.app;
    std::string fields = question.node ? "spec.nodeName=" + *question.node : "";
    return {.predicate = Select(labels, fields), .scope_namespace = question.name_space};
  }

  void Write();
  void CheckList();
  void CheckExact();
  void CheckGet();
  void StartWatch();
  void Poll(Watching& watching);
  void Fault();
  void Heal();
  void Quiesce();
  std::vector<std::string> ListAll(const Question& question, ListOptions options, std::uint64_t& revision,
                                   bool& expired);

  std::unique_ptr<base::Random> random_;
  Model model_;
  std::vector<Watching> watches_;
  bool connected_ = true;
  bool held_ = false;
  std::uint64_t compacted_ = 0;
  std::uint64_t last_ = 0;  // revision of the last write
  int data_ = 0;
  bool late_ = false;  // the last list gave up waiting, or the cache was not ready
  const std::vector<std::string> spaces_ = {"a", "a-b", "b"};
  const std::vector<std::string> names_ = {"w", "x", "y", "z", "zz"};
  const std::vector<std::string> apps_ = {"web", "db"};
  const std::vector<std::string> nodes_ = {"", "n1", "n2", "n3"};
};

// Through the cacher when it is connected, else as another server would.
void CacherModelTest::Write() {
  Pod pod{.name_space = Pick(spaces_), .name = Pick(names_), .app = Pick(apps_), .node = Pick(nodes_)};
  const std::string key = "/pods/" + pod.name_space + "/" + pod.name;
  const bool exists = model_.now().contains(key);
  const Spec spec{.name = pod.name,
                  .name_space = pod.name_space,
                  .app = pod.app,
                  .node = pod.node,
                  .data = std::to_string(++data_)};
  if (!connected_ || random_->Below(4) == 0) {
    kv::TxnRequest request;
    if (exists && random_->Below(2) == 0) {
      request.success.push_back(kv::Op::DeleteRange({.key = "/registry" + key}));
      const auto done = Await(harness().kv().Txn(std::move(request)));
      last_ = static_cast<std::uint64_t>(done->revision);
      return model_.Remove(key, last_);
    }
    base::Arena arena;
    const auto bytes = testing::LineCodec().Encode(arena, Object(arena, spec));
    request.success.push_back(kv::Op::Put({.key = "/registry" + key, .value = *bytes}));
    const auto done = Await(harness().kv().Txn(std::move(request)));
    pod.revision = last_ = static_cast<std::uint64_t>(done->revision);
    return model_.Put(pod);
  }
  if (!exists) {
    pod.revision = last_ = Create(spec)->resource_version();
    return model_.Put(pod);
  }
  if (random_->Below(3) == 0) {
    auto deleted = Await(cacher().Delete(key, {}, {}));
    ASSERT_TRUE(deleted.ok()) << deleted.error().ToString();
    last_ = (*deleted)->resource_version();
    return model_.Remove(key, last_);
  }
  pod.revision = last_ = Update(spec)->resource_version();
  model_.Put(pod);
}

// A list in pages or at once.
std::vector<std::string> CacherModelTest::ListAll(const Question& question, ListOptions options,
                                                  std::uint64_t& revision, bool& expired) {
  std::vector<std::string> items;
  late_ = false;
  options.predicate.limit = random_->Below(2) == 0 ? 0 : static_cast<std::int64_t>(1 + random_->Below(4));
  const std::int64_t limit = options.predicate.limit;
  std::optional<std::int64_t> promised;
  for (;;) {
    // Time must pass: a broken watch is taken up again after a while, and a read may have to wait for that.
    auto pending = Spawn(cacher().GetList(question.Key(), options));
    while (pending.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready)
      harness().Pass(std::chrono::milliseconds(100));
    auto page = pending.get();
    if (!page.ok()) {
      late_ = page.error().status && (page.error().status->code() == 504 || page.error().status->code() == 429);
      expired = page.error().status && page.error().status->code() == 410;
      if (late_) return {};
      EXPECT_TRUE(expired) << page.error().ToString();
      return {};
    }
    if (revision == 0) revision = page->resource_version;
    EXPECT_EQ(page->resource_version, revision);
    for (const auto& object : page->items) items.push_back(Text(*object));
    if (promised)
      EXPECT_EQ(page->remaining_item_count.value_or(0) + static_cast<std::int64_t>(page->items.size()), *promised);
    EXPECT_EQ(page->remaining_item_count.has_value(), question.everything() && !page->continue_token.empty());
    promised = page->remaining_item_count;
    if (page->continue_token.empty()) break;
    EXPECT_GT(limit, 0);
    options.resource_version.clear();
    options.resource_version_match.clear();
    options.predicate.continue_token = page->continue_token;
  }
  return items;
}

void CacherModelTest::CheckList() {
  const Question question = RandomQuestion();
  ListOptions options = Options(question);
  const bool latest = connected_ && !held_ && random_->Below(2) == 0;
  if (!latest) options.resource_version = "0";
  if (!latest && !cacher().Ready()) return;
  std::uint64_t revision = 0;
  bool expired = false;
  const auto items = ListAll(question, std::move(options), revision, expired);
  if (late_) return;
  if (latest) EXPECT_GE(revision, last_);
  EXPECT_EQ(items, model_.List(question, revision));
}

void CacherModelTest::CheckExact() {
  if (!connected_ || last_ == 0) return;
  const Question question = RandomQuestion();
  const std::uint64_t revision = 1 + random_->Below(last_);
  if (!cacher().Ready()) return;
  ListOptions options = Options(question);
  options.resource_version = std::to_string(revision);
  options.resource_version_match = "Exact";
  std::uint64_t told = 0;
  bool expired = false;
  const auto items = ListAll(question, std::move(options), told, expired);
  if (expired) {
    EXPECT_LT(revision, compacted_);
    return;
  }
  if (late_) return;
  EXPECT_EQ(told, revision);
  EXPECT_EQ(items, model_.List(question, revision));
}

void CacherModelTest::CheckGet() {
  const std::string key = "/pods/" + Pick(spaces_) + "/" + Pick(names_);
  if (!connected_) return;
  auto got = Await(cacher().Get(key, {}));
  const auto want = model_.now().find(key);
  ASSERT_EQ(got.ok(), want != model_.now().end());
  if (got.ok()) EXPECT_EQ(Text(**got), Text(want->second));
}

void CacherModelTest::StartWatch() {
  if (!cacher().Ready() || watches_.size() > 12) return;
  Watching watching{.question = RandomQuestion()};
  ListOptions options = Options(watching.question);
  const std::uint64_t now = cacher().resource_version();
  if (now == 0) return;
  const std::uint64_t back = random_->Below(20);
  watching.after = back == 0 ? now + 2 : now > back ? now - back : now;  // the past, and sometimes the future
  options.resource_version = std::to_string(watching.after);
  auto stream = Await(cacher().Watch(watching.question.Key(), options));
  if (!stream.ok()) {
    EXPECT_EQ(stream.error().status->code(), 429);
    return;
  }
  watching.reader = std::make_unique<storage::StreamReader>(*std::move(stream));
  watches_.push_back(std::move(watching));
}

void CacherModelTest::Poll(Watching& watching) {
  while (!watching.over && !watching.reader->Pending()) {
    const auto event = watching.reader->Next();
    if (!event) {  // closed because the cache had to list again
      watching.over = true;
    } else if (event->type == WatchEvent::Type::kError) {
      EXPECT_EQ(event->error->code(), 410) << event->error->message();
      watching.over = true;
    } else if (event->object) {
      const char* type = event->type == WatchEvent::Type::kAdded      ? "ADDED "
                         : event->type == WatchEvent::Type::kModified ? "MODIFIED "
                                                                      : "DELETED ";
      watching.seen.push_back(type + Text(*event->object));
    }
  }
}

void CacherModelTest::Fault() {
  switch (random_->Below(6)) {
    case 5:
      harness().failing().LoseProgressRequests(static_cast<int>(1 + random_->Below(4)));
      break;
    case 0:
      harness().failing().BreakWatches();
      break;
    case 1:
      connected_ ? harness().failing().Disconnect() : harness().failing().Restore();
      connected_ = !connected_;
      break;
    case 2:
      held_ ? harness().failing().Release() : harness().failing().Hold();
      held_ = !held_;
      break;
    case 3: {
      const auto now = Await(harness().kv().CurrentRevision());
      if (*now > 5) {
        const kv::Revision to = *now - static_cast<kv::Revision>(random_->Below(5));
        if (Await(harness().kv().Compact(to, true)).ok()) compacted_ = static_cast<std::uint64_t>(to);
      }
      break;
    }
    default:
      harness().Pass(std::chrono::milliseconds(500 * random_->Below(4)));
  }
}

void CacherModelTest::Heal() {
  harness().failing().Restore();
  harness().failing().Release();
  connected_ = true;
  held_ = false;
}

// Everything works again; when it has settled, every watcher has seen exactly what the model says.
void CacherModelTest::Quiesce() {
  Heal();
  PassUntil([&] { return cacher().Ready() && cacher().resource_version() >= last_; });
  const std::uint64_t now = cacher().resource_version();
  for (Watching& watching : watches_) {
    Poll(watching);
    const auto want = model_.Watch(watching.question, watching.after, now);
    if (!watching.over) {
      EXPECT_EQ(watching.seen, want) << "after " << watching.after << " in '" << watching.question.name_space << "'";
      continue;
    }
    // Cut off: but what it saw was right.
    ASSERT_LE(watching.seen.size(), want.size());
    EXPECT_TRUE(std::equal(watching.seen.begin(), watching.seen.end(), want.begin()));
  }
  std::erase_if(watches_, [](const Watching& watching) { return watching.over; });
  Question everything;
  std::uint64_t revision = 0;
  bool expired = false;
  EXPECT_EQ(ListAll(everything, {}, revision, expired), model_.List(everything, revision));
}

void CacherModelTest::Run(std::uint64_t seed, int steps) {
  SCOPED_TRACE("KEELSON_SEED=" + std::to_string(seed));
  random_ = base::Seeded(seed);
  // A small ring in some runs, so that watchers fall off it.
  const std::uint32_t capacity = seed % 3 == 0 ? 8 : 100;
  Start({.trigger_field = "spec.nodeName", .ring = {.capacity_min = capacity, .capacity_max = capacity * 4}});
  model_ = Model();
  for (int step = 0; step < steps && !HasFatalFailure() && !HasNonfatalFailure(); ++step) {
    switch (random_->Below(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        Write();
        break;
      case 4:
        CheckList();
        break;
      case 5:
        CheckExact();
        break;
      case 6:
        CheckGet();
        break;
      case 7:
        StartWatch();
        break;
      case 8:
        if (!watches_.empty()) Poll(watches_[random_->Below(watches_.size())]);
        break;
      case 9:
        Fault();
        break;
      default:
        if (step % 10 == 0) Quiesce();
    }
  }
  Quiesce();
  watches_.clear();
}

TEST_F(CacherModelTest, AgreesWithTheModel) {
  if (const char* seed = std::getenv("KEELSON_SEED")) return Run(std::strtoull(seed, nullptr, 10), 600);
  for (std::uint64_t seed = 1; seed <= 12 && !HasFailure(); ++seed) {
    connected_ = true;
    held_ = false;
    compacted_ = last_ = 0;
    Run(seed, 300);
  }
}

}  // namespace
}  // namespace keelson::cacher
