// A process that writes is killed again and again: no acknowledged write is lost, none is half there, no revision is
// used twice.
//   crash_test                          the short form, part of ctest
//   KEELSON_CRASH_ROUNDS=500 crash_test the long form
//   KEELSON_SEED=n                      repeats a run
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_future.hpp>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "async/io_pool.h"
#include "base/check.h"
#include "base/failpoint.h"
#include "base/random.h"
#include "kv/rocks/power_loss.h"
#include "kv/rocks/rocks.h"
#include "kv/rocks/temp_dir.h"
#include "kv/rocks/tools.h"

namespace keelson::kv::rocks {
namespace {

constexpr int kClients = 8;

// What the writing process was told, in memory that outlives it.
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

// Two keys in one transaction, always the same number in both; a third key comes and goes.
Awaitable<void> WriteForever(Store& store, Acknowledged& told, int client) {
  const std::string padding(100 + static_cast<std::size_t>(client) * 400, 'x');
  for (std::int64_t sequence = told.clients[client].sequence + 1;; ++sequence) {
    const SharedBytes value(std::to_string(sequence) + " " + padding);
    TxnRequest both{
        .success = {Op::Put({.key = KeyA(client), .value = value}), Op::Put({.key = KeyB(client), .value = value})}};
    const std::string extra = "/c/" + std::to_string(client) + "/" + std::to_string(sequence % 5);
    both.success.push_back(sequence % 3 == 0 ? Op::DeleteRange({.key = extra})
                                             : Op::Put({.key = extra, .value = value}));
    auto answer = co_await store.Txn(std::move(both));
    if (!answer.ok()) {
      std::fprintf(stderr, "write: %s\n", answer.error().message.c_str());
      std::_Exit(3);
    }
    told.clients[client].revision = answer->revision;
    told.clients[client].sequence = sequence;
    if (client == 0 && sequence % 50 == 0) {
      const Revision at = answer->revision - 20;
      auto compacted = co_await store.Compact(at, sequence % 100 == 0);
      if (compacted.ok()) told.compacted = at;
    }
  }
}

int RunChild(const std::string& dir, const std::string& ack_path, const std::string& table_path) {
  base::Failpoints::ArmFromEnvironment();
  Acknowledged* told = MapAcknowledged(ack_path);
  Options options;
  options.dir = dir;
  options.memtable_bytes = 256 * 1024;  // so that files are made, moved and dropped while it runs
  options.resident_bytes_max = 64 * 1024;
  if (!table_path.empty()) options.env = NewPowerLossEnv(table_path);
  auto store = Open(std::move(options));
  if (!store.ok()) {
    std::fprintf(stderr, "child cannot open: %s\n", store.error().message.c_str());
    return 2;
  }
  async::IOPool io(2);
  for (int client = 0; client < kClients; ++client)
    asio::co_spawn(io.Next(), WriteForever(**store, *told, client), asio::detached);
  for (;;) ::pause();
}

class Verifier {
 public:
  // Everything that was told is there, whole. False with what is wrong printed.
  bool Verify(const std::string& dir, const Acknowledged& told) {
    async::IOPool io(1);  // outlives the store, whose threads hand results to it
    Options options;
    options.dir = dir;
    auto opened = Open(std::move(options));
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
    return VerifyHistory(store, await, now, told);
  }

 private:
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
      if (text.find("/a/") == std::string::npos || text.find("/b/") == std::string::npos)
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
  std::map<Revision, std::string> seen_;  // what revisions held when they were last looked at
};

const char* const kFailpoints[] = {"kv/commit/before-write", "kv/commit/before-publish", "kv/rocks/before-write",
                                   "kv/rocks/after-sync",    "kv/compact/before-forget", "kv/compact/after-forget"};

pid_t StartChild(const std::string& dir, const std::string& ack_path, const std::string& table_path,
                 const std::string& failpoint) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  if (failpoint.empty()) {
    ::unsetenv("KEELSON_FAILPOINTS");
  } else {
    ::setenv("KEELSON_FAILPOINTS", failpoint.c_str(), 1);
  }
  ::execl("/proc/self/exe", "crash_test", "child", dir.c_str(), ack_path.c_str(), table_path.c_str(), nullptr);
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

int RunParent() {
  // What a killed process wrote is there on any file system; in memory there are more transactions a round.
  if (::access("/dev/shm", W_OK) == 0) ::setenv("TMPDIR", "/dev/shm", 0);
  const char* rounds_text = std::getenv("KEELSON_CRASH_ROUNDS");
  const int rounds = rounds_text != nullptr ? std::atoi(rounds_text) : 24;
  const char* seed_text = std::getenv("KEELSON_SEED");
  const std::uint64_t seed = seed_text != nullptr ? std::strtoull(seed_text, nullptr, 10) : base::Random::Real().Next();
  const auto random = base::Random::Seeded(seed);
  std::printf("%d rounds, KEELSON_SEED=%llu\n", rounds, static_cast<unsigned long long>(seed));
  int wrong = 0;
  for (const bool power_loss : {false, true}) {
    TempDir temp;
    const std::string dir = temp.path() + "/store";
    const std::string ack_path = temp.path() + "/acknowledged";
    const std::string table_path = power_loss ? temp.path() + "/synced" : "";
    const Acknowledged* told = MapAcknowledged(ack_path);
    Verifier verifier;
    for (int round = 0; round < rounds / 2; ++round) {
      std::string failpoint;
      if (random->Below(3) == 0) {
        failpoint = std::string(kFailpoints[random->Below(std::size(kFailpoints))]) +
                    "=crash:" + std::to_string(1 + random->Below(40));
      }
      const pid_t pid = StartChild(dir, ack_path, table_path, failpoint);
      KS_CHECK(pid > 0);
      // Somewhere between opening the store and a few hundred transactions later, and then a little further.
      const std::int64_t enough = Transactions(*told) + static_cast<std::int64_t>(random->Below(400));
      const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(5);
      while (Transactions(*told) < enough && !HasEnded(pid) && std::chrono::steady_clock::now() < patience) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
      std::this_thread::sleep_for(std::chrono::microseconds(random->Below(1000)));
      ::kill(pid, SIGKILL);
      int status = 0;
      ::waitpid(pid, &status, 0);
      if (WIFEXITED(status) && WEXITSTATUS(status) != 137) {
        std::fprintf(stderr, "WRONG: round %d: the writing process ended with %d\n", round, WEXITSTATUS(status));
        ++wrong;
      }
      if (power_loss) LosePower(dir + "/db", table_path, random->Next());
      if (!verifier.Verify(dir, *told)) {
        std::fprintf(stderr, "round %d, %s%s\n", round, power_loss ? "power loss" : "kill -9",
                     failpoint.empty() ? "" : (", " + failpoint).c_str());
        ++wrong;
        break;
      }
      // What the verifier wrote while opening is on disk for good.
      if (power_loss) ::unlink(table_path.c_str());
    }
    const auto report = Check(dir);
    if (!report.ok()) {
      std::fprintf(stderr, "WRONG: %s\n", report.error().message.c_str());
      ++wrong;
    }
    std::printf("%s: %d rounds, %lld acknowledged transactions\n", power_loss ? "power loss" : "kill -9", rounds / 2,
                static_cast<long long>(Transactions(*told)));
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace keelson::kv::rocks

int main(int argc, char** argv) {
  if (argc == 5 && std::string_view(argv[1]) == "child") return keelson::kv::rocks::RunChild(argv[2], argv[3], argv[4]);
  return keelson::kv::rocks::RunParent();
}
