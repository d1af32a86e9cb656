// A process is killed again and again: while it writes (with leases that end, compactions and a disk that is full now
// and then), restores a snapshot, or migrates to another store. No acknowledged write is lost, none is half there, no
// revision is used twice; what was restored or migrated is whole or refused.
//   crash_test                          the short form, part of ctest
//   KEELSON_CRASH_ROUNDS=500 crash_test the long form
//   KEELSON_SEED=n                      repeats a run
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rocksdb/env.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_future.hpp>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "async/io_pool.h"
#include "base/check.h"
#include "base/failpoint.h"
#include "base/fake_clock.h"
#include "base/testing/seeded_random.h"
#include "kv/migrate/migrate.h"
#include "kv/rocks/full_disk.h"
#include "kv/rocks/log_file.h"
#include "kv/rocks/rocks.h"
#include "kv/rocks/temp_dir.h"
#include "kv/rocks/testing/power_loss.h"
#include "kv/rocks/tools.h"
#include "kv/snapshot/snapshot.h"

namespace keelson::kv::rocks {
namespace {

constexpr int kClients = 8;

// Acknowledgements that the writing process received, in memory that outlives it.
struct Acknowledged {
  struct Client {
    std::atomic<std::int64_t> sequence;  // of the last acknowledged transaction
    std::atomic<std::int64_t> revision;
  };
  Client clients[kClients];
  std::atomic<std::int64_t> compacted;
};

Acknowledged* MapAcknowledged(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  KS_CHECK(file >= 0 && ::ftruncate(file, sizeof(Acknowledged)) == 0);
  void* memory = ::mmap(nullptr, sizeof(Acknowledged), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  KS_CHECK(memory != MAP_FAILED);
  ::close(file);
  return static_cast<Acknowledged*>(memory);
}

std::string KeyA(int client) { return "/a/" + std::to_string(client); }
std::string KeyB(int client) { return "/b/" + std::to_string(client); }

std::int64_t ToNumber(std::string_view text) {
  std::int64_t number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// State shared by the clients of a writing process.
struct Work {
  mvcc::EmbeddedStore& store;
  Acknowledged& told;
  base::FakeClock& clock;  // its seconds pass by the thousand
};

// A lease of its own for every seventh transaction. 0: none.
Awaitable<LeaseID> LeaseFor(Work work, std::int64_t sequence) {
  if (sequence % 7 != 0) co_return 0;
  auto lease = co_await work.store.LeaseGrant(2 + sequence % 50, 0);
  co_return lease.ok() ? lease->id : 0;
}

// Two keys in one transaction, always the same number in both; a third key comes and goes, a fourth ends with its
// lease. A write that fails because the disk is full is tried again.
Awaitable<void> WriteForever(Work work, int client) {
  auto& [store, told, clock] = work;
  const std::string padding(100 + static_cast<std::size_t>(client) * 400, 'x');
  asio::steady_timer timer(co_await asio::this_coro::executor);
  for (std::int64_t sequence = told.clients[client].sequence + 1;;) {
    const SharedBytes value(std::to_string(sequence) + " " + padding);
    TxnRequest both{
        .success = {Op::Put({.key = KeyA(client), .value = value}), Op::Put({.key = KeyB(client), .value = value})}};
    const std::string extra = "/c/" + std::to_string(client) + "/" + std::to_string(sequence % 5);
    both.success.push_back(sequence % 3 == 0 ? Op::DeleteRange({.key = extra})
                                             : Op::Put({.key = extra, .value = value}));
    const LeaseID lease = co_await LeaseFor(work, sequence);
    if (lease != 0) {
      both.success.push_back(Op::Put({.key = "/l/" + std::to_string(client) + "/" + std::to_string(sequence % 40),
                                      .value = value,
                                      .lease = lease}));
    }
    auto answer = co_await store.Txn(std::move(both));
    if (!answer.ok()) {
      // The lease may have ended before the put; a disk that was full is told of by the store.
      if (answer.error().code != ErrorCode::kLeaseNotFound && store.write_health().failures == 0) {
        std::fprintf(stderr, "write: %s\n", answer.error().message.c_str());
        std::_Exit(3);
      }
      timer.expires_after(std::chrono::milliseconds(1));
      co_await timer.async_wait(kNoThrow);
      continue;
    }
    told.clients[client].revision = answer->revision;
    told.clients[client].sequence = sequence;
    if (client == 0 && sequence % 50 == 0) {
      const Revision at = answer->revision - 20;
      auto compacted = co_await store.Compact(at, sequence % 100 == 0);
      if (compacted.ok()) told.compacted = at;
    }
    if (client == 1 && sequence % 10 == 0) {
      clock.Advance(std::chrono::seconds(1));
      store.Tick();
    }
    ++sequence;
  }
}

template <class T>
T AwaitOn(async::IOPool& io, Awaitable<T> task) {
  return asio::co_spawn(io.executor(0), std::move(task), asio::use_future).get();
}

// Content of a store as one text.
Result<std::string> Contents(Store& store, async::IOPool& io) {
  RangeRequest everything{.key = std::string(1, '\0'), .range_end = std::string(1, '\0')};
  KS_TRY(const RangeResponse all, AwaitOn(io, store.Range(std::move(everything))));
  std::string text = "revision " + std::to_string(all.revision) + "\n";
  for (const KeyValue& kv : all.kvs) {
    text += kv.key + " " + std::to_string(kv.mod_revision) + " " + std::to_string(kv.lease) + " " +
            std::string(kv.value.view().substr(0, 20)) + "\n";
  }
  return text;
}

Options QuietOptions(const std::string& dir, const base::Clock& clock) {
  Options options;
  options.dir = dir;
  options.clock = &clock;  // It stands still: no lease ends.
  options.deletion_reserve_bytes = 0;
  return options;
}

Awaitable<Result<void>> Migrate(Store& from, Store& to) {
  migrate::Migration migration(from, to, {});
  KS_CO_RETURN_IF_ERROR(co_await migration.Start());
  KS_CO_RETURN_IF_ERROR(co_await migration.Finish());
  co_return Result<void>();
}

Result<void> MigrateTo(Store& from, const std::string& to_dir, const base::Clock& clock, async::IOPool& io) {
  KS_TRY(auto to, Open(QuietOptions(to_dir, clock)));
  return AwaitOn(io, Migrate(from, *to));
}

// Restores a snapshot of the store, or migrates it, into another folder.
int RunMove(const std::string& mode, const std::string& dir, const std::string& to) {
  base::FakeClock clock;
  async::IOPool io(1);
  auto store = Open(QuietOptions(dir, clock));
  if (!store.ok()) return 2;
  if (mode == "migrate") return MigrateTo(**store, to, clock, io).ok() ? 0 : 3;
  const std::string snapshot = to + ".snapshot";
  if (!AwaitOn(io, snapshot::WriteFile(**store, snapshot)).ok()) return 3;
  return Restore(snapshot, to).ok() ? 0 : 3;
}

// Now and then the disk is full for a moment; the store recovers when its clock says so.
[[noreturn]] void FillDisk(Work work, FullFileSystem& disk, std::uint64_t seed) {
  const auto random = base::Seeded(seed);
  for (;;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5 + random->Below(100)));
    disk.full = true;
    std::this_thread::sleep_for(std::chrono::microseconds(random->Below(5000)));
    disk.full = false;
    while (work.store.write_health().refuses_writes) {
      work.clock.Advance(std::chrono::seconds(1));
      work.store.Tick();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

int RunChild(const std::string& dir, const std::string& ack_path, const std::string& table_path) {
  base::Failpoints::ArmFromEnvironment();
  Acknowledged* told = MapAcknowledged(ack_path);
  static base::FakeClock clock;
  const auto disk = std::make_shared<FullFileSystem>(
      table_path.empty() ? NewLogFileSystem(rocksdb::FileSystem::Default()) : NewPowerLossFileSystem(table_path));
  static const auto env = rocksdb::NewCompositeEnv(disk);
  Options options;
  options.dir = dir;
  options.clock = &clock;
  options.env = env.get();
  options.memtable_bytes = 256 * 1024;  // so that files are made, moved and dropped while it runs
  options.resident_bytes_max = 64 * 1024;
  options.deletion_reserve_bytes = 0;
  auto store = Open(std::move(options));
  if (!store.ok()) {
    std::fprintf(stderr, "child cannot open: %s\n", store.error().message.c_str());
    return 2;
  }
  async::IOPool io(2);
  const Work work{**store, *told, clock};
  for (int client = 0; client < kClients; ++client)
    asio::co_spawn(io.Next(), WriteForever(work, client), asio::detached);
  const char* full = std::getenv("KEELSON_FULL_DISK");
  if (full != nullptr) FillDisk(work, *disk, std::strtoull(full, nullptr, 10));
  for (;;) ::pause();
}

class Verifier {
 public:
  // Everything that was told is there, whole. False with what is wrong printed.
  bool Verify(const std::string& dir, const Acknowledged& told) {
    async::IOPool io(1);  // outlives the store, whose threads hand results to it
    auto opened = Open(QuietOptions(dir, clock_));
    if (!opened.ok()) return Wrong("cannot open: " + opened.error().message);
    Store& store = **opened;
    const auto await = [&](auto task) {
      return asio::co_spawn(io.executor(0), std::move(task), asio::use_future).get();
    };
    const Revision now = *await(store.CurrentRevision());
    for (int client = 0; client < kClients; ++client) {
      const auto a = await(store.Range({.key = KeyA(client)}));
      const auto b = await(store.Range({.key = KeyB(client)}));
      if (!a.ok() || !b.ok()) return Wrong("cannot read client " + std::to_string(client));
      const std::int64_t sequence = told.clients[client].sequence;
      const std::int64_t seen_a = a->kvs.empty() ? 0 : ToNumber(a->kvs[0].value.view());
      const std::int64_t seen_b = b->kvs.empty() ? 0 : ToNumber(b->kvs[0].value.view());
      if (seen_a != seen_b)
        return Wrong("half a transaction: " + std::to_string(seen_a) + " and " + std::to_string(seen_b));
      // One transaction may have been written and its answer lost.
      if (seen_a < sequence || seen_a > sequence + 1)
        return Wrong("acknowledged " + std::to_string(sequence) + ", found " + std::to_string(seen_a));
      if (seen_a == sequence && sequence > 0 && a->kvs[0].mod_revision != told.clients[client].revision) {
        return Wrong("sequence " + std::to_string(sequence) + " was at revision " +
                     std::to_string(told.clients[client].revision) + " and is at " +
                     std::to_string(a->kvs[0].mod_revision));
      }
      if (told.clients[client].revision > now) return Wrong("the store is behind an acknowledged revision");
    }
    return VerifyLeases(store, await) && VerifyHistory(store, await, now, told);
  }

  // After a restore or a migration was killed: the target is whole, or refused.
  bool VerifyMoved(const std::string& mode, const std::string& dir, const std::string& to, int& whole) {
    async::IOPool io(1);
    auto opened = Open(QuietOptions(dir, clock_));
    if (!opened.ok()) return Wrong("cannot open: " + opened.error().message);
    const auto want = Contents(**opened, io);
    if (!want.ok()) return Wrong("cannot read: " + want.error().message);
    if (mode == "migrate") {
      // It is repeated, and goes on or refuses what is there.
      const auto again = MigrateTo(**opened, to, clock_, io);
      if (!again.ok() && again.error().code != ErrorCode::kInvalidArgument)
        return Wrong("the repeated migration: " + again.error().message);
      if (!again.ok()) return true;
    } else if (!std::filesystem::exists(to + "/db")) {
      return true;
    }
    auto moved = Open(QuietOptions(to, clock_));
    if (!moved.ok()) return Wrong("the target: " + moved.error().message);
    const auto found = Contents(**moved, io);
    if (!found.ok()) return Wrong("cannot read the target: " + found.error().message);
    if (*found != *want) return Wrong("the target of a " + mode + " is not whole");
    ++whole;
    return true;
  }

 private:
  // Every key of a lease has it, or it would never end.
  template <class Await>
  bool VerifyLeases(Store& store, const Await& await) {
    const auto leases = await(store.Leases());
    if (!leases.ok()) return Wrong("cannot list leases");
    const std::set<LeaseID> there(leases->begin(), leases->end());
    const auto leased = await(store.Range({.key = "/l/", .range_end = PrefixEnd("/l/")}));
    if (!leased.ok()) return Wrong("cannot read leased keys");
    for (const KeyValue& kv : leased->kvs) {
      if (!there.contains(kv.lease))
        return Wrong(kv.key + " has the lease " + std::to_string(kv.lease) + ", which is gone");
    }
    return true;
  }
  template <class Await>
  bool VerifyHistory(Store& store, const Await& await, Revision now, const Acknowledged& told) {
    const auto status = await(store.Status());
    if (!status.ok() || status->compact_revision < told.compacted) return Wrong("an acknowledged compaction is gone");
    auto watch = store.Watch({.key = std::string(1, '\0'),
                              .range_end = std::string(1, '\0'),
                              .start_revision = std::max<Revision>(status->compact_revision + 1, 2)});
    std::map<Revision, std::string> history;
    Revision at = status->compact_revision;
    while (at < now) {
      watch->RequestProgress();
      auto response = await(watch->Next());
      if (!response.ok()) return Wrong("history: " + response.error().message);
      for (const Event& event : response->events) {
        if (event.kv.mod_revision < at) return Wrong("history goes back");
        at = event.kv.mod_revision;
        history[at] += (event.type == Event::Type::kDelete ? "-" : "+") + event.kv.key + "=" +
                       std::to_string(ToNumber(event.kv.value.view())) + ";";
      }
      at = std::max(at, response->revision);
    }
    for (const auto& [revision, text] : history) {
      const bool ended = text.starts_with("-/l/") && text.find('+') == std::string::npos;  // a lease
      if (!ended && (text.find("/a/") == std::string::npos || text.find("/b/") == std::string::npos))
        return Wrong("revision " + std::to_string(revision) + " is not whole: " + text);
      const auto before = seen_.find(revision);
      if (before != seen_.end() && before->second != text) {
        return Wrong("revision " + std::to_string(revision) + " was used twice: " + before->second + " and " + text);
      }
    }
    seen_ = std::move(history);
    return true;
  }
  static bool Wrong(const std::string& what) {
    std::fprintf(stderr, "WRONG: %s\n", what.c_str());
    return false;
  }
  base::FakeClock clock_;
  std::map<Revision, std::string> seen_;  // what revisions held when they were last looked at
};

const char* const kFailpoints[] = {"kv/commit/before-write", "kv/commit/before-publish", "kv/rocks/before-write",
                                   "kv/rocks/after-sync",    "kv/compact/before-forget", "kv/compact/after-forget"};

pid_t StartChild(const std::string& dir, const std::string& ack_path, const std::string& table_path,
                 const std::string& failpoint, const std::string& full_disk) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  if (full_disk.empty()) {
    ::unsetenv("KEELSON_FULL_DISK");
  } else {
    ::setenv("KEELSON_FULL_DISK", full_disk.c_str(), 1);
  }
  if (failpoint.empty()) {
    ::unsetenv("KEELSON_FAILPOINTS");
  } else {
    ::setenv("KEELSON_FAILPOINTS", failpoint.c_str(), 1);
  }
  ::execl("/proc/self/exe", "crash_test", "child", dir.c_str(), ack_path.c_str(), table_path.c_str(), nullptr);
  ::_exit(127);
}

pid_t StartMove(const std::string& mode, const std::string& dir, const std::string& to) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::unsetenv("KEELSON_FAILPOINTS");
  ::execl("/proc/self/exe", "crash_test", mode.c_str(), dir.c_str(), to.c_str(), nullptr);
  ::_exit(127);
}

bool HasEnded(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
}

std::int64_t Transactions(const Acknowledged& told) {
  std::int64_t transactions = 0;
  for (const auto& client : told.clients) transactions += client.sequence;
  return transactions;
}

struct Figures {
  int writing = 0;
  int full_disk = 0;
  int restarted = 0;  // killed and started again before the power went
  int restores = 0;
  int migrations = 0;
  int whole = 0;  // restores and migrations that came to their end
};

// One folder that is crashed again and again.
class Rounds {
 public:
  Rounds(bool power_loss, base::Random& random) : power_loss_(power_loss), random_(random) {}

  // False when something is wrong.
  bool Run(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      if (random_.Below(8) == 0 ? Move() : Write()) continue;
      std::fprintf(stderr, "round %d, %s%s\n", round, power_loss_ ? "power loss" : "kill -9",
                   failpoint_.empty() ? "" : (", " + failpoint_).c_str());
      return false;
    }
    const auto report = Check(dir_);
    if (!report.ok()) std::fprintf(stderr, "WRONG: %s\n", report.error().message.c_str());
    std::printf(
        "%s: %d rounds: %d writing (%d with a full disk, %d started again), %d restores, %d migrations (%d of them "
        "whole); %lld "
        "acknowledged transactions\n",
        power_loss_ ? "power loss" : "kill -9", rounds, figures_.writing, figures_.full_disk, figures_.restarted,
        figures_.restores, figures_.migrations, figures_.whole, static_cast<long long>(Transactions(*told_)));
    return report.ok();
  }

 private:
  bool Write() {
    bool right = true;
    // The power may go after a server was killed and started again: what the first one wrote and did not sync is under
    // what the second one acknowledged.
    if (power_loss_ && random_.Below(3) == 0) {
      ++figures_.restarted;
      right = WriteAndKill("kv/rocks/power-loss/before-durable=crash:" + std::to_string(1 + random_.Below(200)));
    }
    right = WriteAndKill(RandomFailpoint()) && right;
    if (power_loss_) LosePower(dir_ + "/db", table_path_, random_.Next());
    if (!verifier_.Verify(dir_, *told_)) return false;
    // Writes of the verifier while opening are durable.
    if (power_loss_) ::unlink(table_path_.c_str());
    return right;
  }

  // None for two of three.
  std::string RandomFailpoint() {
    if (random_.Below(3) != 0) return "";
    return std::string(kFailpoints[random_.Below(std::size(kFailpoints))]) +
           "=crash:" + std::to_string(1 + random_.Below(40));
  }

  // A process that writes for a while and is killed, or ends at the fail point.
  bool WriteAndKill(const std::string& failpoint) {
    failpoint_ = failpoint;
    const std::string full_disk = random_.Below(3) == 0 ? std::to_string(random_.Next()) : "";
    ++figures_.writing;
    figures_.full_disk += !full_disk.empty();
    const pid_t pid = StartChild(dir_, ack_path_, table_path_, failpoint_, full_disk);
    KS_CHECK(pid > 0);
    // Somewhere between opening the store and a few hundred transactions later, and then a little further.
    const std::int64_t enough = Transactions(*told_) + static_cast<std::int64_t>(random_.Below(400));
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (Transactions(*told_) < enough && !HasEnded(pid) && std::chrono::steady_clock::now() < patience) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random_.Below(1000)));
    return Kill(pid);
  }

  bool Move() {
    failpoint_.clear();
    const std::string mode = random_.Below(2) == 0 ? "restore" : "migrate";
    const std::string to = temp_.path() + "/moved";
    ++(mode == "restore" ? figures_.restores : figures_.migrations);
    const pid_t pid = StartMove(mode, dir_, to);
    KS_CHECK(pid > 0);
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(random_.Below(400));
    while (std::chrono::steady_clock::now() < until && !HasEnded(pid))
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    const bool right = Kill(pid) && verifier_.VerifyMoved(mode, dir_, to, figures_.whole);
    std::error_code ignored;
    std::filesystem::remove_all(to, ignored);
    return right;
  }

  // Also one that ended by itself, which it may only by a fail point or when it was done.
  static bool Kill(pid_t pid) {
    ::kill(pid, SIGKILL);
    int status = 0;
    ::waitpid(pid, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) == 137 || WEXITSTATUS(status) == 0) {
      if (!WIFSIGNALED(status) || WTERMSIG(status) == SIGKILL) return true;
    }
    std::fprintf(stderr, "WRONG: the process ended with status %d\n", status);
    return false;
  }

  const bool power_loss_;
  base::Random& random_;
  TempDir temp_;
  const std::string dir_ = temp_.path() + "/store";
  const std::string ack_path_ = temp_.path() + "/acknowledged";
  const std::string table_path_ = power_loss_ ? temp_.path() + "/synced" : "";
  const Acknowledged* const told_ = MapAcknowledged(ack_path_);
  Verifier verifier_;
  std::string failpoint_;
  Figures figures_;
};

int RunParent() {
  // Writes of a killed process survive on any file system; one in memory gives more transactions per round.
  if (::access("/dev/shm", W_OK) == 0) ::setenv("TMPDIR", "/dev/shm", 0);
  const char* rounds_text = std::getenv("KEELSON_CRASH_ROUNDS");
  const int rounds = rounds_text != nullptr ? std::atoi(rounds_text) : 24;
  const char* seed_text = std::getenv("KEELSON_SEED");
  const std::uint64_t seed = seed_text != nullptr ? std::strtoull(seed_text, nullptr, 10) : base::Random::Real().Next();
  const auto random = base::Seeded(seed);
  std::printf("%d rounds, KEELSON_SEED=%llu\n", rounds, static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  bool right = true;
  for (const bool power_loss : {false, true}) right = Rounds(power_loss, *random).Run(rounds / 2) && right;
  return right ? 0 : 1;
}

}  // namespace
}  // namespace keelson::kv::rocks

int main(int argc, char** argv) {
  if (argc == 5 && std::string_view(argv[1]) == "child") return keelson::kv::rocks::RunChild(argv[2], argv[3], argv[4]);
  if (argc == 4) return keelson::kv::rocks::RunMove(argv[1], argv[2], argv[3]);
  return keelson::kv::rocks::RunParent();
}
