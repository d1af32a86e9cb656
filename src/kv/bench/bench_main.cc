// The embedded store beside etcd: durable puts, ranges, watch fan-out, start and space. See README.md.
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <string>
#include <vector>

#include "async/io_pool.h"
#include "base/check.h"
#include "kv/etcd/etcd.h"
#include "kv/etcd/test_server.h"
#include "kv/rocks/rocks.h"
#include "kv/rocks/temp_dir.h"

namespace keelson::kv::bench {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

double OwnCPU() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

double ProcessCPU(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  long user = 0;
  long system = 0;
  std::sscanf(text.c_str() + text.rfind(')') + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user,
              &system);
  return static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

long ResidentKB(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("VmRSS:")) return std::atol(line.c_str() + 6);
  }
  return 0;
}

// Files may vanish meanwhile.
std::int64_t FolderBytes(const std::string& dir) {
  std::int64_t bytes = 0;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator at(dir, error), end; !error && at != end; at.increment(error)) {
    std::error_code vanished;
    const auto size = at->is_regular_file(vanished) ? at->file_size(vanished) : 0;
    if (!vanished) bytes += static_cast<std::int64_t>(size);
  }
  return bytes;
}

// One store under test: in the process, or a server with its process.
struct Subject {
  std::string name;
  std::unique_ptr<Store> store;
  pid_t pid = 0;  // 0: this process
  std::string dir;
  double CPU() const { return pid == 0 ? OwnCPU() : ProcessCPU(pid); }
  void Stop() {
    store.reset();
    if (pid == 0) return;
    ::kill(pid, SIGTERM);
    ::waitpid(pid, nullptr, 0);
  }
};

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

int FreePort() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  KS_CHECK(::bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0);
  KS_CHECK(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  ::close(socket);
  return ntohs(address.sin_port);
}

// A client that connects too early retries after a second, which must not count as the server's time.
void AwaitPort(int port, pid_t pid) {
  for (;;) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = Loopback(port);
    const bool open = ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    ::close(socket);
    if (open) return;
    KS_CHECK(::waitpid(pid, nullptr, WNOHANG) == 0);  // it is still there
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

Subject StartServer(const std::string& name, const std::string& binary, const std::string& dir) {
  const int port = FreePort();
  const std::string client = "http://127.0.0.1:" + std::to_string(port);
  const std::string peer = "http://127.0.0.1:" + std::to_string(FreePort());
  std::vector<std::string> arguments = {binary,
                                        "--data-dir=" + dir,
                                        "--listen-client-urls=" + client,
                                        "--advertise-client-urls=" + client,
                                        "--listen-peer-urls=" + peer,
                                        "--initial-advertise-peer-urls=" + peer,
                                        "--initial-cluster=default=" + peer,
                                        "--log-level=error",
                                        "--quota-backend-bytes=8000000000"};
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::vector<char*> pointers;
    for (auto& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    const int null = ::open("/dev/null", O_WRONLY);
    ::dup2(null, 1);
    ::dup2(null, 2);
    ::execv(pointers[0], pointers.data());
    ::_exit(127);
  }
  AwaitPort(port, pid);
  auto store = etcd::Open({.endpoints = {client}, .dial_timeout = std::chrono::minutes(2)});  // of a busy machine
  KS_CHECK(store.ok());
  return {.name = name, .store = *std::move(store), .pid = pid, .dir = dir};
}

Subject OpenEmbedded(const std::string& dir) {
  rocks::Options options;
  options.dir = dir;
  if (const char* text = std::getenv("KEELSON_RESIDENT_MB")) {
    options.resident_bytes_max = static_cast<std::size_t>(std::atol(text)) * 1024 * 1024;
  }
  auto store = rocks::Open(std::move(options));
  KS_CHECK(store.ok());
  return {.name = "embedded", .store = *std::move(store), .dir = dir};
}

Awaitable<int> PutUntil(Store& store, std::string prefix, int client, SharedBytes value, Clock::time_point end) {
  int done = 0;
  while (Clock::now() < end) {
    const std::string key = prefix + std::to_string(client) + "/" + std::to_string(done);
    TxnRequest create{.compare = {{.key = key, .number = 0}}, .success = {Op::Put({.key = key, .value = value})}};
    auto answer = co_await store.Txn(std::move(create));
    KS_CHECK(answer.ok());
    ++done;
  }
  co_return done;
}

constexpr int kOverwritesAtOnce = 10;

Awaitable<int> Overwrite(Store& store, int client, int clients, int total, SharedBytes value) {
  int done = 0;
  for (int i = client * kOverwritesAtOnce; i < total; i += clients * kOverwritesAtOnce) {
    TxnRequest put;
    for (int j = i; j < std::min(i + kOverwritesAtOnce, total); ++j)
      put.success.push_back(Op::Put({.key = "/overwritten/" + std::to_string(j % 1000), .value = value}));
    auto answer = co_await store.Txn(std::move(put));
    KS_CHECK(answer.ok());
    ++done;
  }
  co_return done;
}

Awaitable<int> CountEvents(Watcher& watcher, int count) {
  int seen = 0;
  while (seen < count) {
    auto response = co_await watcher.Next();
    KS_CHECK(response.ok());
    seen += static_cast<int>(response->events.size());
  }
  co_return seen;
}

class Bench {
 public:
  Bench(bool quick) : quick_(quick), io_(2) {}

  template <class T>
  T Await(Awaitable<T> task) {
    return asio::co_spawn(io_.Next(), std::move(task), asio::use_future).get();
  }

  // Waits until a subject has done what it does in the background, at most ten seconds.
  void Settle(const Subject& subject) {
    constexpr auto kLook = std::chrono::milliseconds(200);
    for (int i = 0; i < 50; ++i) {
      const double cpu = subject.CPU();
      std::this_thread::sleep_for(kLook);
      if (subject.CPU() - cpu < 0.05 * Seconds(kLook)) return;
    }
  }

  void Puts(Subject& subject, int clients) {
    Settle(subject);
    const SharedBytes value(std::string(1024, 'v'));
    const double cpu = subject.CPU();
    const auto start = Clock::now();
    const auto end = start + std::chrono::milliseconds(quick_ ? 1000 : 4000);
    std::vector<std::future<int>> running;
    for (int i = 0; i < clients; ++i) {
      running.push_back(
          asio::co_spawn(io_.Next(), PutUntil(*subject.store, "/puts/" + std::to_string(clients) + "/", i, value, end),
                         asio::use_future));
    }
    int done = 0;
    for (auto& one : running) done += one.get();
    const double seconds = Seconds(Clock::now() - start);
    Note(fmt::format("creates/s, {} clients", clients), subject, done / seconds, true);
    Note(fmt::format("CPU us per create, {} clients", clients), subject, (subject.CPU() - cpu) / done * 1e6, false);
  }

  void Range(Subject& subject) {
    const SharedBytes value(std::string(5700, 'v'));
    for (int i = 0; i < 10'000; i += 100) {
      TxnRequest request;
      for (int j = i; j < i + 100; ++j)
        request.success.push_back(Op::Put({.key = fmt::format("/range/{:06}", (j * 7919) % 10'000), .value = value}));
      KS_CHECK(Await(subject.store->Txn(std::move(request))).ok());
    }
    Settle(subject);
    // The first rounds warm every cache up.
    constexpr int kWarmUp = 3;
    const int rounds = quick_ ? 5 : 20;
    double cpu = 0;
    Clock::time_point start;
    for (int i = 0; i < kWarmUp + rounds; ++i) {
      if (i == kWarmUp) {
        cpu = subject.CPU();
        start = Clock::now();
      }
      RangeRequest request{.key = "/range/", .range_end = PrefixEnd("/range/")};
      auto answer = Await(subject.store->Range(std::move(request)));
      KS_CHECK(answer.ok() && answer->kvs.size() == 10'000);
    }
    Note("range of 10,000 keys (57 MB), ms", subject, Seconds(Clock::now() - start) / rounds * 1e3, false);
    Note("range of 10,000 keys, CPU ms", subject, (subject.CPU() - cpu) / rounds * 1e3, false);
  }

  void FanOut(Subject& subject) {
    constexpr int kWatchers = 1000;
    const int events = quick_ ? 20 : 100;
    const SharedBytes value(std::string(1024, 'v'));
    auto now = Await(subject.store->CurrentRevision());
    KS_CHECK(now.ok());
    std::vector<std::unique_ptr<Watcher>> watchers;
    std::vector<std::future<int>> running;
    for (int i = 0; i < kWatchers; ++i) {
      watchers.push_back(
          subject.store->Watch({.key = "/fan/", .range_end = PrefixEnd("/fan/"), .start_revision = *now + 1}));
      running.push_back(asio::co_spawn(io_.Next(), CountEvents(*watchers.back(), events), asio::use_future));
    }
    Settle(subject);
    const double cpu = subject.CPU();
    const auto start = Clock::now();
    for (int i = 0; i < events; ++i) {
      TxnRequest put{.success = {Op::Put({.key = "/fan/" + std::to_string(i), .value = value})}};
      KS_CHECK(Await(subject.store->Txn(std::move(put))).ok());
    }
    for (auto& one : running) one.get();
    Note("events/s to 1,000 watchers", subject, kWatchers * events / Seconds(Clock::now() - start), true);
    Note("CPU us per event delivered", subject, (subject.CPU() - cpu) / (kWatchers * events) * 1e6, false);
  }

  void Space(Subject& subject) {
    const int total = quick_ ? 50'000 : 1'000'000;
    const SharedBytes value(std::string(512, 'v'));
    std::vector<std::future<int>> running;
    for (int i = 0; i < 256; ++i)
      running.push_back(asio::co_spawn(io_.Next(), Overwrite(*subject.store, i, 256, total, value), asio::use_future));
    for (auto& one : running) one.get();
    auto now = Await(subject.store->CurrentRevision());
    KS_CHECK(now.ok() && Await(subject.store->Compact(*now, true)).ok());
    // Space comes back in the background: it is over when the folder has not shrunk for five seconds.
    std::int64_t bytes = FolderBytes(subject.dir);
    for (auto shrunk = Clock::now(); Clock::now() - shrunk < std::chrono::seconds(5);) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      const std::int64_t now_bytes = FolderBytes(subject.dir);
      if (now_bytes < bytes) shrunk = Clock::now();
      bytes = std::min(bytes, now_bytes);
    }
    Note(fmt::format("MB on disk after {} overwrites and compaction", total), subject, static_cast<double>(bytes) / 1e6,
         false);
  }

  void Note(const std::string& what, const Subject& subject, double value, bool more_is_better) {
    if (!results_.contains(what)) order_.push_back({what, more_is_better});
    results_[what][subject.name] = value;
    fmt::print(stderr, "{:12} {:55} {:12.1f}\n", subject.name, what, value);
  }

  void Print() {
    fmt::print(
        "\nembedded: the store in the process of its clients, as keelson has it; its CPU time includes theirs. served: "
        "the "
        "same store\nthrough etcd's gRPC API, in a process of its own (keelson etcd). etcd: a real etcd. The clients "
        "of both "
        "are the same. x: how far ahead.\n\n");
    fmt::print("{:55} {:>12} {:>12} {:>12} {:>16} {:>16}\n", "", "embedded", "served", "etcd", "embedded ahead",
               "served ahead");
    for (const auto& [what, more] : order_) {
      const auto& row = results_[what];
      const auto value = [&](const char* name) {
        return row.contains(name) ? fmt::format("{:.1f}", row.at(name)) : std::string("-");
      };
      const auto ratio = [&](const char* name) {
        if (!row.contains("etcd") || !row.contains(name) || row.at(name) <= 0 || row.at("etcd") <= 0)
          return std::string("-");
        return fmt::format("{:.1f} x", more ? row.at(name) / row.at("etcd") : row.at("etcd") / row.at(name));
      };
      fmt::print("{:55} {:>12} {:>12} {:>12} {:>16} {:>16}\n", what, value("embedded"), value("served"), value("etcd"),
                 ratio("embedded"), ratio("served"));
    }
  }

 private:
  struct Line {
    std::string what;
    bool more_is_better;
  };
  const bool quick_;
  async::IOPool io_;
  std::vector<Line> order_;
  std::map<std::string, std::map<std::string, double>> results_;
};

using Make = std::function<Subject(const std::string&)>;

// From the start of the process (or of opening, in the process) until the first answer.
void OpenTimes(Bench& bench, const Make& make, bool quick) {
  rocks::TempDir temp;
  const std::string dir = temp.path() + "/store";
  const auto open = [&](const std::string& what) {
    const long before = ResidentKB(::getpid());
    const auto start = Clock::now();
    Subject subject = make(dir);
    KS_CHECK(bench.Await(subject.store->CurrentRevision()).ok());
    bench.Note(what + ", ms", subject, Seconds(Clock::now() - start) * 1e3, false);
    const long resident = subject.pid == 0 ? ResidentKB(::getpid()) - before : ResidentKB(subject.pid);
    bench.Note(what + ", memory, MB", subject, static_cast<double>(resident) / 1024, false);
    return subject;
  };
  Subject subject = open("start with an empty store");
  const SharedBytes value(std::string(5000, 'v'));
  const int keys = quick ? 20'000 : 200'000;  // 1 GB
  for (int i = 0; i < keys; i += 100) {
    TxnRequest request;
    for (int j = i; j < i + 100; ++j)
      request.success.push_back(Op::Put({.key = "/start/" + std::to_string(j), .value = value}));
    KS_CHECK(bench.Await(subject.store->Txn(std::move(request))).ok());
  }
  subject.Stop();
  open(fmt::format("start with {} MB in {} keys", keys / 200, keys)).Stop();
}

int Main(int argc, char** argv) {
  bool quick = false;
  std::string only;          // puts, range, fanout, space or open
  std::string subject_name;  // embedded, served or etcd
  int only_clients = 0;      // of puts: 1, 16 or 256
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--quick") quick = true;
    if (word.starts_with("--only=")) only = word.substr(7);
    if (word.starts_with("--subject=")) subject_name = word.substr(10);
    if (word.starts_with("--clients=")) only_clients = std::atoi(argv[i] + 10);
  }
  const auto wanted = [&](std::string_view what) { return only.empty() || only == what; };
  Bench bench(quick);
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
  const std::string served = self + "/../etcdmain/kv_etcd";
  const std::string etcd = etcd::TestServer::FindBinary();
  std::vector<std::pair<std::string, Make>> subjects = {
      {"embedded", [](const std::string& dir) { return OpenEmbedded(dir); }},
      {"served", [&](const std::string& dir) { return StartServer("served", served, dir); }},
      {"etcd", [&](const std::string& dir) { return StartServer("etcd", etcd, dir); }}};
  for (auto& [name, make] : subjects) {
    if (!subject_name.empty() && subject_name != name) continue;
    if (name == "etcd" && etcd.empty()) continue;
    rocks::TempDir temp;
    Subject subject = make(temp.path() + "/store");
    for (const int clients : {1, 16, 256}) {
      if (wanted("puts") && (only_clients == 0 || only_clients == clients)) bench.Puts(subject, clients);
    }
    if (wanted("range")) bench.Range(subject);
    if (wanted("fanout")) bench.FanOut(subject);
    if (subject.pid != 0)
      bench.Note("resident MB after that", subject, static_cast<double>(ResidentKB(subject.pid)) / 1024, false);
    subject.Stop();
    if (wanted("open")) OpenTimes(bench, make, quick);
    if (!wanted("space")) continue;
    rocks::TempDir other;
    Subject fresh = make(other.path() + "/store");
    bench.Space(fresh);
    fresh.Stop();
  }
  bench.Print();
  return 0;
}

}  // namespace
}  // namespace keelson::kv::bench

int main(int argc, char** argv) { return keelson::kv::bench::Main(argc, argv); }
