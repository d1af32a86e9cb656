// The shared watch stream against a scripted etcd.
#include "kv/etcd/watch_stream.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <future>

#include "async/io_pool.h"
#include "kv/etcd/etcd.h"
#include "kv/etcd/fake_etcd.h"

namespace keelson::kv::etcd {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);  // of a slow and busy machine
constexpr std::int64_t kEveryWatch = -1;

class SharedWatchStream : public ::testing::Test {
 protected:
  using Response = Result<WatchResponse>;

  void SetUp() override { OpenStore({etcd_.endpoint()}); }
  void OpenStore(std::vector<std::string> endpoints) {
    auto opened = Open({.endpoints = std::move(endpoints)});
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    store_ = *std::move(opened);
  }
  std::unique_ptr<Watcher> Watch(const std::string& key, Revision start) {
    return store_->Watch({.key = key, .range_end = PrefixEnd(key), .start_revision = start});
  }
  std::future<Response> Start(Watcher& watch) {
    return asio::co_spawn(io_.executor(0), watch.Next(), asio::use_future);
  }
  static Response Get(std::future<Response> next) {
    if (next.wait_for(kPatience) != std::future_status::ready) {
      ADD_FAILURE() << "no response";
      std::abort();  // The coroutine refers to this test.
    }
    return next.get();
  }
  Response Next(Watcher& watch) { return Get(Start(watch)); }
  void ExpectEvent(Watcher& watch, const std::string& key, Revision revision) {
    const Response response = Next(watch);
    ASSERT_TRUE(response.ok()) << response.error().message;
    ASSERT_EQ(response->events.size(), 1U) << "progress at " << response->revision;
    EXPECT_EQ(response->events[0].kv.key, key);
    EXPECT_EQ(response->events[0].kv.mod_revision, revision);
    EXPECT_EQ(response->revision, revision);
  }
  void ExpectProgress(Watcher& watch, Revision revision) {
    const Response response = Next(watch);
    ASSERT_TRUE(response.ok()) << response.error().message;
    EXPECT_TRUE(response->is_progress());
    EXPECT_EQ(response->revision, revision);
  }
  // The next request but those for progress, which are repeated when this machine is slow.
  FakeEtcd::Request TakeOther() {
    for (;;) {
      auto request = etcd_.Take();
      if (!request.message.has_progress_request()) return request;
    }
  }
  // The next request has to create a watch of `key` from `start`.
  void ExpectCreate(int stream, const std::string& key, Revision start) {
    const auto request = TakeOther();
    EXPECT_EQ(request.stream, stream);
    ASSERT_TRUE(request.message.has_create_request()) << request.message.ShortDebugString();
    EXPECT_EQ(request.message.create_request().key(), key);
    EXPECT_EQ(request.message.create_request().start_revision(), start);
    EXPECT_TRUE(request.message.create_request().fragment());
  }
  void ExpectCancel(int stream, std::int64_t id) {
    const auto request = TakeOther();
    EXPECT_EQ(request.stream, stream);
    ASSERT_TRUE(request.message.has_cancel_request()) << request.message.ShortDebugString();
    EXPECT_EQ(request.message.cancel_request().watch_id(), id);
  }
  void ExpectProgressRequest(int stream) {
    const auto request = etcd_.Take();
    EXPECT_EQ(request.stream, stream);
    ASSERT_TRUE(request.message.has_progress_request()) << request.message.ShortDebugString();
  }
  // A watch that the fake has created with `id` on the first stream, at revision 10.
  std::unique_ptr<Watcher> LiveWatch(const std::string& key, Revision start, std::int64_t id) {
    auto watch = Watch(key, start);
    ExpectCreate(1, key, start);
    etcd_.SendCreated(1, id, 10);
    // The response of an event shows that the client has the id.
    etcd_.SendEvent(1, id, key, start);
    ExpectEvent(*watch, key, start);
    return watch;
  }
  static pb::WatchResponse Canceled(std::int64_t id, const std::string& reason, Revision compacted = 0) {
    pb::WatchResponse response;
    response.mutable_header()->set_revision(10);
    response.set_watch_id(id);
    response.set_canceled(true);
    response.set_cancel_reason(reason);
    response.set_compact_revision(compacted);
    return response;
  }

  async::IOPool io_{1};
  FakeEtcd etcd_;
  std::unique_ptr<Store> store_;
};

TEST_F(SharedWatchStream, TwoHundredWatchesOpenOneStream) {
  constexpr int kWatches = 200;
  std::vector<std::unique_ptr<Watcher>> watches;
  for (int i = 0; i < kWatches; ++i) watches.push_back(Watch("/" + std::to_string(i) + "/", 5));
  for (int i = 0; i < kWatches; ++i) {
    ExpectCreate(1, "/" + std::to_string(i) + "/", 5);
    EXPECT_EQ(etcd_.requests(), 0U) << "a create request before the last one was answered";
    etcd_.SendCreated(1, i, 10);
  }
  for (int i = kWatches - 1; i >= 0; --i) etcd_.SendEvent(1, i, "/" + std::to_string(i) + "/a", 11 + i);
  for (int i = 0; i < kWatches; ++i)
    ExpectEvent(*watches[static_cast<std::size_t>(i)], "/" + std::to_string(i) + "/a", 11 + i);
  EXPECT_EQ(etcd_.streams(), 1);
}

TEST_F(SharedWatchStream, FragmentsArePutTogetherPerWatch) {
  auto a = LiveWatch("/a", 5, 0);
  auto b = LiveWatch("/b", 5, 1);
  for (const bool last : {false, true}) {
    for (const std::int64_t id : {0, 1}) {
      pb::WatchResponse part;
      part.mutable_header()->set_revision(11);
      part.set_watch_id(id);
      part.set_fragment(!last);
      auto* kv = part.add_events()->mutable_kv();
      kv->set_key(last ? "2" : "1");
      kv->set_mod_revision(11);
      etcd_.Send(1, std::move(part));
    }
  }
  for (Watcher* watch : {a.get(), b.get()}) {
    const Response response = Next(*watch);
    ASSERT_TRUE(response.ok());
    ASSERT_EQ(response->events.size(), 2U);
    EXPECT_EQ(response->events[0].kv.key, "1");
    EXPECT_EQ(response->events[1].kv.key, "2");
  }
}

TEST_F(SharedWatchStream, CanceledWatchLeavesTheStreamToTheOthers) {
  auto a = LiveWatch("/a", 5, 0);
  auto b = LiveWatch("/b", 5, 1);
  auto waiting = Start(*a);
  a->Cancel();
  EXPECT_EQ(Get(std::move(waiting)).error().code, ErrorCode::kCanceled);
  ExpectCancel(1, 0);
  etcd_.SendEvent(1, 0, "/a", 11);  // was on its way
  etcd_.Send(1, Canceled(0, ""));
  etcd_.SendEvent(1, 1, "/b", 12);
  ExpectEvent(*b, "/b", 12);
  EXPECT_EQ(Next(*a).error().code, ErrorCode::kCanceled);
}

TEST_F(SharedWatchStream, WatchIsCanceledWhileItsCreateIsPending) {
  auto a = Watch("/a", 5);
  ExpectCreate(1, "/a", 5);
  auto b = Watch("/b", 6);
  auto c = Watch("/c", 7);
  a.reset();
  b.reset();  // It was not sent and never will be.
  etcd_.SendCreated(1, 0, 10);
  ExpectCancel(1, 0);
  ExpectCreate(1, "/c", 7);
  etcd_.SendCreated(1, 1, 10);
  etcd_.SendEvent(1, 1, "/c", 11);
  ExpectEvent(*c, "/c", 11);
}

TEST_F(SharedWatchStream, LastWatchClosesTheStreamAndTheNextOpensAnother) {
  auto a = LiveWatch("/a", 5, 0);
  a.reset();
  etcd_.WaitUntilClosed(1);
  auto pending = Watch("/b", 5);
  // The cancel request of the closed stream may have arrived before its end.
  auto request = etcd_.Take();
  if (request.message.has_cancel_request()) request = etcd_.Take();
  EXPECT_EQ(request.stream, 2);
  pending.reset();  // while its create is pending
  etcd_.WaitUntilClosed(2);
}

TEST_F(SharedWatchStream, WatchesOutliveTheirStore) {
  auto a = LiveWatch("/a", 5, 0);
  auto b = Watch("/b", 5);
  ExpectCreate(1, "/b", 5);
  store_.reset();
  etcd_.SendEvent(1, 0, "/a", 11);
  ExpectEvent(*a, "/a", 11);
  etcd_.SendCreated(1, 1, 10);
  etcd_.SendEvent(1, 1, "/b", 12);
  ExpectEvent(*b, "/b", 12);
  a.reset();
  b.reset();
  etcd_.WaitUntilClosed(1);
}

TEST_F(SharedWatchStream, CompactionEndsTheWatchItConcerns) {
  auto a = LiveWatch("/a", 5, 0);
  auto b = LiveWatch("/b", 5, 1);
  etcd_.Send(1, Canceled(0, "", 9));
  const Response ended = Next(*a);
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code, ErrorCode::kCompacted);
  EXPECT_EQ(ended.error().compact_revision, 9);
  EXPECT_EQ(Next(*a).error().code, ErrorCode::kCompacted);
  ExpectCancel(1, 0);  // etcd keeps the watch until then.
  etcd_.SendEvent(1, 1, "/b", 12);
  ExpectEvent(*b, "/b", 12);
}

TEST_F(SharedWatchStream, HeldResponsesComeBeforeTheErrorThatEndsTheWatch) {
  auto a = LiveWatch("/a", 5, 0);
  auto b = LiveWatch("/b", 5, 1);
  etcd_.SendEvent(1, 0, "/a", 11);
  etcd_.Send(1, Canceled(0, "etcdserver: some reason"));
  etcd_.SendEvent(1, 1, "/b", 12);
  ExpectEvent(*b, "/b", 12);
  ExpectEvent(*a, "/a", 11);
  const Response ended = Next(*a);
  ASSERT_FALSE(ended.ok());
  EXPECT_NE(ended.error().message.find("some reason"), std::string::npos) << ended.error().message;
}

TEST_F(SharedWatchStream, RefusedCreateDoesNotTouchTheWatchWhoseIDItNames) {
  auto a = LiveWatch("/a", 5, 0);
  auto b = Watch("/b", 5);
  ExpectCreate(1, "/b", 5);
  pb::WatchResponse refused = Canceled(0, "etcdserver: permission denied");  // as etcd 3.4; later ones say -1
  refused.set_created(true);
  etcd_.Send(1, std::move(refused));
  const Response ended = Next(*b);
  ASSERT_FALSE(ended.ok());
  EXPECT_NE(ended.error().message.find("permission denied"), std::string::npos) << ended.error().message;
  etcd_.SendEvent(1, 0, "/a", 12);
  ExpectEvent(*a, "/a", 12);
}

TEST_F(SharedWatchStream, AuthErrorOfTheStreamEndsEveryWatch) {
  auto live = LiveWatch("/a", 5, 0);
  auto creating = Watch("/b", 5);
  ExpectCreate(1, "/b", 5);
  auto queued = Watch("/c", 5);
  etcd_.End(1, {grpc::StatusCode::UNAUTHENTICATED, "etcdserver: invalid auth token"});
  for (Watcher* watch : {live.get(), creating.get(), queued.get()}) {
    const Response ended = Next(*watch);
    ASSERT_FALSE(ended.ok());
    EXPECT_NE(ended.error().message.find("invalid auth token"), std::string::npos) << ended.error().message;
  }
  auto next = Watch("/d", 5);
  ExpectCreate(2, "/d", 5);
}

TEST_F(SharedWatchStream, BrokenStreamResumesEveryWatchWhereItWas) {
  auto live = LiveWatch("/a", 5, 0);
  etcd_.SendEvent(1, 0, "/a", 11);
  ExpectEvent(*live, "/a", 11);
  pb::WatchResponse part;  // of a response whose end is never sent
  part.set_watch_id(0);
  part.set_fragment(true);
  part.add_events()->mutable_kv()->set_mod_revision(12);
  etcd_.Send(1, std::move(part));
  auto now = Watch("/now", 0);
  ExpectCreate(1, "/now", 0);
  etcd_.SendCreated(1, 1, 20);
  auto creating = Watch("/b", 6);
  ExpectCreate(1, "/b", 6);
  auto queued = Watch("/c", 7);
  etcd_.End(1, {grpc::StatusCode::UNAVAILABLE, "etcdserver: no leader"});

  const std::pair<const char*, Revision> kWant[] = {{"/a", 12}, {"/now", 21}, {"/b", 6}, {"/c", 7}};
  std::int64_t id = 0;
  for (const auto& [key, start] : kWant) {
    ExpectCreate(2, key, start);
    etcd_.SendCreated(2, id++, 20);
  }
  id = 0;
  for (Watcher* watch : {live.get(), now.get(), creating.get(), queued.get()}) {
    etcd_.SendEvent(2, id, "/x", 30 + id);
    ExpectEvent(*watch, "/x", 30 + id);
    ++id;
  }
}

TEST_F(SharedWatchStream, WatchThatLostItsLeaderBreaksTheStream) {
  auto a = LiveWatch("/a", 5, 0);
  auto b = LiveWatch("/b", 5, 1);
  etcd_.Send(1, Canceled(0, "etcdserver: no leader"));
  ExpectCreate(2, "/a", 6);
  etcd_.SendCreated(2, 0, 10);
  ExpectCreate(2, "/b", 6);
}

TEST_F(SharedWatchStream, WatchesMoveToAnotherEndpoint) {
  auto first = std::make_unique<FakeEtcd>();
  OpenStore({first->endpoint(), etcd_.endpoint()});
  // Whichever endpoint is first, its end makes the other the only one.
  auto a = Watch("/a", 5);
  auto b = Watch("/b", 6);
  first.reset();
  for (std::int64_t id = 0; id < 2; ++id) {
    auto request = etcd_.Take();
    ASSERT_TRUE(request.message.has_create_request());
    etcd_.SendCreated(request.stream, id, 10);
    etcd_.SendEvent(request.stream, id, request.message.create_request().key(), 11 + id);
  }
  ExpectEvent(*a, "/a", 11);
  ExpectEvent(*b, "/b", 12);
}

TEST_F(SharedWatchStream, WatchThatHoldsTooManyResponsesLeavesAndResumes) {
  auto slow = LiveWatch("/slow", 5, 0);
  auto quick = LiveWatch("/quick", 5, 1);
  constexpr Revision kFirst = 11;
  constexpr Revision kLast = kFirst + static_cast<Revision>(kHeldResponsesMax) - 1;
  for (Revision revision = kFirst; revision <= kLast; ++revision) etcd_.SendEvent(1, 0, "/slow", revision);
  // Progress does not count, nor does it grow what is held.
  for (int i = 0; i < 3; ++i) etcd_.SendProgress(1, 0, kLast);
  EXPECT_EQ(etcd_.requests(), 0U);
  etcd_.SendEvent(1, 0, "/slow", kLast + 1);
  etcd_.SendEvent(1, 0, "/slow", kLast + 2);
  etcd_.SendEvent(1, 1, "/quick", kLast + 3);
  ExpectEvent(*quick, "/quick", kLast + 3);
  ExpectCancel(1, 0);
  etcd_.Send(1, Canceled(0, ""));

  for (Revision revision = kFirst; revision <= kLast; ++revision) {
    ExpectEvent(*slow, "/slow", revision);
    if (HasFailure()) return;
    EXPECT_EQ(etcd_.requests(), 0U) << "resumed before everything was taken";
  }
  ExpectProgress(*slow, kLast);
  ExpectCreate(1, "/slow", kLast + 1);
  etcd_.SendCreated(1, 2, kLast + 3);
  etcd_.SendEvent(1, 2, "/slow", kLast + 1);
  etcd_.SendEvent(1, 2, "/slow", kLast + 2);
  ExpectEvent(*slow, "/slow", kLast + 1);
  ExpectEvent(*slow, "/slow", kLast + 2);
  EXPECT_EQ(etcd_.streams(), 1);
}

TEST_F(SharedWatchStream, WatchThatHoldsTooManyBytesLeaves) {
  auto slow = LiveWatch("/slow", 5, 0);
  auto quick = LiveWatch("/quick", 5, 1);
  etcd_.SendEvent(1, 0, "/slow", 11, std::string(kHeldBytesMax, 'x'));
  etcd_.SendEvent(1, 0, "/slow", 12);
  ExpectCancel(1, 0);
  ExpectEvent(*slow, "/slow", 11);
  ExpectCreate(1, "/slow", 12);
}

TEST_F(SharedWatchStream, StreamBreaksWhileAWatchIsOffIt) {
  auto slow = LiveWatch("/slow", 5, 0);
  auto quick = LiveWatch("/quick", 5, 1);
  etcd_.SendEvent(1, 0, "/slow", 11, std::string(kHeldBytesMax, 'x'));
  etcd_.SendEvent(1, 0, "/slow", 12);
  ExpectCancel(1, 0);
  etcd_.End(1, {grpc::StatusCode::UNAVAILABLE, "gone"});
  ExpectCreate(2, "/quick", 6);
  etcd_.SendCreated(2, 0, 12);
  etcd_.SendEvent(2, 0, "/quick", 13);
  ExpectEvent(*quick, "/quick", 13);
  EXPECT_EQ(etcd_.requests(), 0U) << "resumed before everything was taken";
  ExpectEvent(*slow, "/slow", 11);
  ExpectCreate(2, "/slow", 12);
}

TEST_F(SharedWatchStream, ProgressGoesToTheRequestingWatch) {
  auto a = LiveWatch("/a", 5, 0);
  auto b = LiveWatch("/b", 5, 1);
  a->RequestProgress();
  ExpectProgressRequest(1);
  etcd_.SendProgress(1, kEveryWatch, 20);
  ExpectProgress(*a, 20);
  etcd_.SendEvent(1, 1, "/b", 21);
  ExpectEvent(*b, "/b", 21);
  // The other one resumes there all the same.
  etcd_.SendEvent(1, 0, "/a", 22);
  ExpectEvent(*a, "/a", 22);
  auto c = LiveWatch("/c", 6, 2);
  c->RequestProgress();
  ExpectProgressRequest(1);
  etcd_.SendProgress(1, kEveryWatch, 40);
  ExpectProgress(*c, 40);
  etcd_.End(1, {grpc::StatusCode::UNAVAILABLE, "gone"});
  for (const char* key : {"/a", "/b", "/c"}) {
    ExpectCreate(2, key, 41);
    etcd_.SendCreated(2, key[1], 40);
  }
}

// etcd sends `created` and progress from two queues, so the answer to a request before the watch may come after it.
TEST_F(SharedWatchStream, ProgressFromBeforeAWatchIsNotItsProgress) {
  auto a = LiveWatch("/a", 5, 0);
  a->RequestProgress();
  ExpectProgressRequest(1);
  auto b = Watch("/b", 6);
  b->RequestProgress();
  ExpectCreate(1, "/b", 6);
  etcd_.SendCreated(1, 1, 10);
  etcd_.SendProgress(1, kEveryWatch, 10);
  etcd_.SendEvent(1, 1, "/b", 7);
  ExpectProgress(*a, 10);
  ExpectEvent(*b, "/b", 7);
  // Requests that were sent when the watch was there do count.
  auto next = Start(*b);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (next.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
    if (std::chrono::steady_clock::now() > deadline) break;
    if (etcd_.requests() == 0) continue;
    ExpectProgressRequest(1);
    etcd_.SendProgress(1, kEveryWatch, 10);
  }
  const Response response = Get(std::move(next));
  ASSERT_TRUE(response.ok());
  EXPECT_TRUE(response->is_progress());
  EXPECT_EQ(response->revision, 10);
}

// etcd does not answer for a stream while one of its watches starts in the future.
TEST_F(SharedWatchStream, WatchFromTheNextRevisionDoesNotHideTheProgressOfOthers) {
  auto ahead = Watch("/ahead", 11);
  ExpectCreate(1, "/ahead", 11);
  etcd_.SendCreated(1, 0, 10);
  auto waits = LiveWatch("/waits", 5, 1);
  waits->RequestProgress();
  ExpectProgressRequest(1);
  ExpectCancel(1, 0);
  ExpectCreate(1, "/ahead", 10);
  etcd_.Send(1, Canceled(0, ""));
  etcd_.SendCreated(1, 2, 10);
  ExpectProgressRequest(1);
  etcd_.SendProgress(1, kEveryWatch, 10);
  ExpectProgress(*waits, 10);
  etcd_.SendEvent(1, 2, "/ahead", 10);  // before its start
  etcd_.SendEvent(1, 2, "/ahead", 11);
  ExpectEvent(*ahead, "/ahead", 11);
}

TEST_F(SharedWatchStream, CompactionOfTheRevisionBeforeTheStartDoesNotEndTheWatch) {
  auto ahead = Watch("/ahead", 11);
  ExpectCreate(1, "/ahead", 11);
  etcd_.SendCreated(1, 0, 10);
  auto waits = LiveWatch("/waits", 5, 1);
  waits->RequestProgress();
  ExpectProgressRequest(1);
  ExpectCancel(1, 0);
  ExpectCreate(1, "/ahead", 10);
  etcd_.SendCreated(1, 2, 11);
  etcd_.Send(1, Canceled(2, "", 11));
  ExpectCancel(1, 2);
  ExpectCreate(1, "/ahead", 11);
}

TEST_F(SharedWatchStream, WatchOfAHugeKeyIsRefusedHere) {
  auto huge = Watch(std::string(std::size_t{2} << 20, 'x'), 5);
  EXPECT_EQ(Next(*huge).error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(etcd_.streams(), 0);
}

}  // namespace
}  // namespace keelson::kv::etcd
