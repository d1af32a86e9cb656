#include <gtest/gtest.h>

#include <deque>

#include "base/fake_clock.h"
#include "kv/mvcc/store.h"

namespace keelson::kv::mvcc {
namespace {

constexpr int kLeases = 10'000;
constexpr std::size_t kCommitMax = 4096;

// Holds `kLeases` keys with a lease each, and records the sizes of the commits.
class RecordingBackend final : public Backend {
 public:
  struct Sizes {
    std::size_t records = 0;
    std::size_t leases_removed = 0;
  };
  explicit RecordingBackend(std::vector<Sizes>& commits) : commits_(commits) {}

  Result<void> Load(LoadSink& sink) override {
    for (int i = 1; i <= kLeases; ++i) {
      sink.OnLease({.id = i, .ttl = 3600});
      const std::string key = "/events/" + std::to_string(i);
      sink.OnRecord({.revision = i + 1, .create = i + 1, .version = 1, .lease = i, .value_size = 1, .key = key});
    }
    return {};
  }
  Result<void> Commit(const CommitBatch& batch) override {
    commits_.push_back({batch.records.size(), batch.leases_removed.size()});
    return {};
  }
  Result<void> Forget(std::span<const Location>) override { return {}; }
  void Compacted(Revision) override {}
  Result<SharedBytes> Read(const Location&) override { return SharedBytes("x"); }
  std::unique_ptr<View> Pin() override { return nullptr; }
  Result<void> CheckSpace(std::int64_t) override { return {}; }
  Space GetSpace() override { return {}; }
  Result<void> Reopen() override { return {}; }
  Result<void> Repair(const CommitBatch&, std::span<const Location>, Revision) override { return {}; }

 private:
  std::vector<Sizes>& commits_;
};

// A start renews all leases, so that they end at the same moment: the commits that revoke them stay bounded.
TEST(LeaseExpiry, CommitRevokesABoundedNumberOfLeases) {
  base::FakeClock clock;
  std::vector<RecordingBackend::Sizes> commits;
  std::deque<std::move_only_function<void()>> work;
  const auto run = [&] {
    while (!work.empty()) {
      auto next = std::move(work.front());
      work.pop_front();
      next();
    }
  };
  auto store =
      EmbeddedStore::Open(std::make_unique<RecordingBackend>(commits),
                          {.clock = &clock, .executor = [&](Work, auto next) { work.push_back(std::move(next)); }});
  ASSERT_TRUE(store.ok());
  run();
  ASSERT_TRUE(commits.empty());
  clock.Advance(std::chrono::seconds(3601));
  std::size_t deleted = 0;
  std::size_t revoked = 0;
  for (int tick = 0; tick < 3; ++tick) {
    (*store)->Tick();
    run();
  }
  ASSERT_EQ(commits.size(), 3u);
  for (const auto& commit : commits) {
    EXPECT_LE(commit.records, kCommitMax);
    EXPECT_LE(commit.leases_removed, kCommitMax);
    deleted += commit.records;
    revoked += commit.leases_removed;
  }
  EXPECT_EQ(deleted, std::size_t{kLeases});
  EXPECT_EQ(revoked, std::size_t{kLeases});
}

}  // namespace
}  // namespace keelson::kv::mvcc
