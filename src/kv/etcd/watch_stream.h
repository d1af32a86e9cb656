// All watches of one store on one gRPC stream, as clientv3 has them (watchGrpcStream): create requests go out one after
// the other, `created` answers give the ids, responses are routed by id, and a stream that breaks is opened at another
// endpoint and resumes every watch where it was. The stream opens with the first watch and closes with the last.
// Internal to kv/etcd.
//
//   Watch() ──> kQueued ──create──> kCreating ──created──> kLive ──held too much, cancel──> kStalled
//                  ^                    │                     │                                │
//                  └──── stream broke ──┴─────────────────────┘          everything was taken  │
//                  └───────────────────────────────────────────────────────────────────────────┘
//
// The stream is always read: a watch whose responses are not taken leaves it (watch.h has the bounds) and does not slow
// the others.
//
// Thread safety: all members from any thread. gRPC runs its callbacks on its own threads, never inside a call.
// Ownership: the store, its watchers and the gRPC call. `client` is used only while there are watches, and each watcher
// owns it.
#pragma once

#include <grpcpp/alarm.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "kv/etcd/client.h"
#include "kv/etcd/watch.h"
#include "kv/kv.h"

namespace keelson::kv::etcd {

class WatchStream : public std::enable_shared_from_this<WatchStream> {
 public:
  explicit WatchStream(Client& client) : client_(client) {}

  std::shared_ptr<Substream> Add(WatchRequest request);
  void Take(const std::shared_ptr<Substream>& watch, Substream::Done done);
  void Interrupt(Substream& watch);
  void Cancel(const std::shared_ptr<Substream>& watch);
  void RequestProgress(const std::shared_ptr<Substream>& watch);

 private:
  class Call;
  class Answers;
  static constexpr std::chrono::milliseconds kRetryMin{50};
  static constexpr std::chrono::milliseconds kRetryMax{3000};
  static constexpr std::chrono::milliseconds kProgressOverdue{50};
  using WatchPtr = std::shared_ptr<Substream>;

  // From the call.
  void OnResponse(Call& call, pb::WatchResponse& response);
  void OnWritten(Call& call, bool ok);
  void OnReadsOver(Call& call);
  void OnEnd(Call& call, const grpc::Status& status);

  // REQUIRES of all below: mutex_ is held.
  void Open();
  void Reopen();  // Open(), after a while
  void CloseIfUnused();
  void Flush();  // sends the next request unless one is being sent
  bool NextRequest(pb::WatchRequest& request);
  void Queue(const WatchPtr& watch);
  void Leave(Substream& watch);  // the stream, for good
  void Stall(const WatchPtr& watch);
  void Fail(const WatchPtr& watch, Error error, Answers& answers);
  void OnCreated(const pb::WatchResponse& response, Answers& answers);
  void OnEndedByEtcd(const WatchPtr& watch, const pb::WatchResponse& response, Answers& answers);
  void OnEvents(const WatchPtr& watch, std::vector<Event> events, bool more_fragments, Answers& answers);
  void OnProgressForAll(Revision revision, Answers& answers);
  static void Deliver(Substream& watch, WatchResponse response, Answers& answers);

  bool HasProgressFor(const Substream& watch) const;
  bool ProgressIsOrdered();  // if unknown, it is determined first; wanted progress is requested afterwards
  bool ProgressIsMissing() const;
  void WatchOverProgress();
  void OnProgressOverdue();
  void PullBack();

  Client& client_;
  std::mutex mutex_;
  std::uint64_t watches_ever_ = 0;
  std::map<std::uint64_t, WatchPtr> watches_;  // by number, all that are not over
  std::chrono::milliseconds retry_ = kRetryMin;
  bool reopening_ = false;  // the alarm is set
  grpc::Alarm reopen_alarm_;

  // One stream.
  Call* call_ = nullptr;
  const Endpoint* endpoint_ = nullptr;  // of the stream, or of the last one
  bool writing_ = false;
  std::deque<WatchPtr> queued_;
  WatchPtr creating_;  // also when it was canceled meanwhile
  std::unordered_map<std::int64_t, WatchPtr> live_;
  std::vector<std::int64_t> cancels_;  // to be sent
  Revision revision_ = 0;              // the newest that a response told of

  // Progress on request. etcd answers for all watches of the stream at once, and not at all while one of them reads
  // history or starts in the future.
  std::map<std::uint64_t, WatchPtr> wanting_;  // by number
  const Endpoint* learning_ = nullptr;         // its version was requested
  bool ask_ = false;                           // as soon as a request can be sent and the last one was answered
  bool asking_ = false;                        // the last request was not answered yet, nor is it overdue
  std::uint64_t asked_ = 0;                    // requests on this stream
  std::uint64_t answers_ = 0;                  // and answers
  Revision answer_revision_ = 0;               // of the last answer
  std::uint64_t unanswered_ = 0;               // requests that may still be answered, at most
  std::uint64_t asked_at_fence_ = 0;           // `asked_` when the last watch was created
  Revision fence_ = 0;                         // and the revision of etcd's store then
  std::uint64_t overdue_asked_ = 0;            // `asked_` when the alarm was set
  bool watching_over_ = false;                 // the alarm is set
  grpc::Alarm overdue_alarm_;
};

std::unique_ptr<Watcher> MakeWatcher(std::shared_ptr<Client> client, std::shared_ptr<WatchStream> stream,
                                     WatchRequest request);

}  // namespace keelson::kv::etcd
