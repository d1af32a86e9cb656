#include "kv/contract_suite/contract.h"

#include <atomic>
#include <cstdlib>

#include "base/random.h"

namespace keelson::kv {

void Contract::SetUp() {
  harness_ = GetParam().make();
  if (!harness_) GTEST_SKIP() << GetParam().skip_reason;
  io_ = std::make_unique<async::IOPool>(2);
  prefix_ = "/contract/" + base::Random::Real().UUID() + "/";
}

void Contract::TearDown() {
  // Leases that end later would be revisions in the middle of other cases.
  if (harness_ && !harness_->fresh()) {
    auto leases = Await(store().Leases());
    EXPECT_TRUE(leases.ok());
    if (leases.ok()) {
      for (const LeaseID id : *leases) IgnoreError(Await(store().LeaseRevoke(id)), "it ended meanwhile");
    }
  }
  harness_.reset();
  io_.reset();
}

Op Contract::PutOp(std::string_view name, std::string_view value) {
  return Op::Put({.key = Key(name), .value = SharedBytes(value)});
}
Op Contract::GetOp(std::string_view name) { return Op::Range({.key = Key(name)}); }
Op Contract::DeleteOp(std::string_view name) { return Op::DeleteRange({.key = Key(name)}); }
kv::Compare Contract::ModIs(std::string_view name, Revision revision) {
  return {.key = Key(name), .target = kv::Compare::Target::kModRevision, .number = revision};
}

Revision Contract::Put(std::string_view name, std::string_view value, LeaseID lease) {
  auto answer = Txn({.success = {Op::Put({.key = Key(name), .value = SharedBytes(value), .lease = lease})}});
  if (!answer.ok()) {
    ADD_FAILURE() << "put " << name << ": " << answer.error().message;
    return 0;
  }
  return answer->revision;
}

Revision Contract::Delete(std::string_view name) {
  auto answer = Txn({.success = {DeleteOp(name)}});
  if (!answer.ok()) {
    ADD_FAILURE() << "delete " << name << ": " << answer.error().message;
    return 0;
  }
  return answer->revision;
}

std::optional<KeyValue> Contract::Get(std::string_view name, Revision revision) {
  auto answer = TryRange({.key = Key(name), .revision = revision});
  if (!answer.ok()) {
    ADD_FAILURE() << "get " << name << ": " << answer.error().message;
    return std::nullopt;
  }
  if (answer->kvs.empty()) return std::nullopt;
  return answer->kvs[0];
}

RangeResponse Contract::List(RangeRequest request) {
  if (request.key.empty()) {
    request.key = prefix_;
    request.range_end = PrefixEndOfAll();
  }
  auto answer = TryRange(std::move(request));
  if (!answer.ok()) {
    ADD_FAILURE() << "range: " << answer.error().message;
    return {};
  }
  return *std::move(answer);
}

Revision Contract::Now() {
  auto revision = Await(store().CurrentRevision());
  EXPECT_TRUE(revision.ok());
  return revision.ok() ? *revision : 0;
}

void Contract::Settle() {
  // Consecutive requests go to consecutive members, and a consistent read waits until its member has caught up.
  for (std::size_t i = 1; i < 3 * harness_->members(); ++i) Now();
}

std::unique_ptr<Watcher> Contract::WatchAll(Revision start, bool prev_kv) {
  return store().Watch({.key = prefix_, .range_end = PrefixEndOfAll(), .start_revision = start, .prev_kv = prev_kv});
}

std::unique_ptr<Watcher> Contract::WatchKey(std::string_view name, Revision start, bool prev_kv) {
  return store().Watch({.key = Key(name), .start_revision = start, .prev_kv = prev_kv});
}

std::vector<Event> Contract::Take(Watcher& watcher, std::size_t count) {
  std::vector<Event> events;
  while (events.size() < count) {
    auto response = Await(watcher.Next());
    if (!response.ok()) {
      ADD_FAILURE() << "watch: " << response.error().message;
      break;
    }
    for (Event& event : response->events) events.push_back(std::move(event));
  }
  EXPECT_EQ(events.size(), count);
  return events;
}

std::string Describe(const Event& event, std::string_view prefix) {
  std::string key = event.kv.key;
  if (key.starts_with(prefix)) key = key.substr(prefix.size());
  if (event.type == Event::Type::kDelete) return "delete " + key;
  return "put " + key + "=" + std::string(event.kv.value.view());
}

std::vector<std::string> Names(const RangeResponse& response, std::string_view prefix) {
  std::vector<std::string> names;
  for (const KeyValue& kv : response.kvs)
    names.push_back(kv.key.starts_with(prefix) ? kv.key.substr(prefix.size()) : kv.key);
  return names;
}

}  // namespace keelson::kv
