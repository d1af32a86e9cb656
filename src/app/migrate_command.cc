#include "app/migrate_command.h"

#include <pthread.h>
#include <signal.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "app/commands/output.h"
#include "app/commands/progress.h"
#include "app/egress.h"
#include "app/error.h"
#include "app/store_folder.h"
#include "app/stores.h"
#include "async/io_pool.h"
#include "base/strings.h"
#include "kv/etcd/etcd.h"
#include "kv/migrate/migrate.h"
#include "kv/rocks/rocks.h"
#include "kv/rocks/tools.h"
#include "kv/snapshot/snapshot.h"
#include "telemetry/metrics.h"

namespace keelson::app {

const char* const kMigrateUsage =
    "usage: keelson migrate --from STORE --to STORE [--follow] [--egress-selector-config-file F]\n"
    "         [--from-cafile F] [--from-certfile F] [--from-keyfile F] [--to-cafile F] [--to-certfile F] [--to-keyfile "
    "F]\n"
    "STORE is a data folder (or the folder `store` in it) or the endpoints of an etcd (http://... or https://...,\n"
    "several with commas). A new folder becomes the store itself: name FOLDER/store to start a server with\n"
    "--data-dir=FOLDER. A running server is read through its --serve-etcd-api. With --follow changes are copied as\n"
    "they happen, until this is interrupted.";

namespace {

struct Side {
  std::string place;
  kv::etcd::Options etcd;
  bool folder() const { return !place.starts_with("http://") && !place.starts_with("https://"); }
};

struct Flags {
  Side from;
  Side to;
  bool follow = false;
  std::string egress_selector_config_file;  // its selection "etcd" is used to dial etcd
};

constexpr std::string_view kFlagNames[] = {
    "--from",      "--from-cafile", "--from-certfile", "--from-keyfile", "--to",
    "--to-cafile", "--to-certfile", "--to-keyfile",    "--follow",       "--egress-selector-config-file"};

Outcome<Flags, Error> Parse(const std::vector<std::string>& arguments) {
  Flags flags;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string name = arguments[i];
    if (name == "--follow") {
      flags.follow = true;
      continue;
    }
    std::string value;
    if (const auto equals = name.find('='); equals != std::string::npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
    } else if (i + 1 < arguments.size()) {
      value = arguments[++i];
    }
    bool known = name == "--egress-selector-config-file";
    if (known) flags.egress_selector_config_file = value;
    for (auto [prefix, side] : {std::pair("--from", &flags.from), std::pair("--to", &flags.to)}) {
      for (auto [suffix, field] :
           {std::pair("", &side->place), std::pair("-cafile", &side->etcd.ca_file),
            std::pair("-certfile", &side->etcd.cert_file), std::pair("-keyfile", &side->etcd.key_file)}) {
        if (name != std::string(prefix) + suffix) continue;
        *field = value;
        known = true;
      }
    }
    if (!known) return Error(UnknownWord("flag", name, kFlagNames) + "\n" + kMigrateUsage);
    if (value.empty()) return Error(name + " needs a value\n" + kMigrateUsage);
  }
  if (flags.from.place.empty() || flags.to.place.empty())
    return Error(std::string("--from and --to are needed\n") + kMigrateUsage);
  for (Side* const side : {&flags.from, &flags.to}) {
    if (side->folder()) side->place = StoreFolder(side->place);
  }
  return flags;
}

// Target of an interrupt. The migration is a coroutine, the signal arrives on another thread.
struct Interrupt {
  std::mutex mutex;
  bool interrupted = false;
  std::function<void()> stop;
  void Raise() {
    std::lock_guard guard(mutex);
    interrupted = true;
    if (stop) stop();
  }
  bool raised() {
    std::lock_guard guard(mutex);
    return interrupted;
  }
  void Set(std::function<void()> with) {
    std::lock_guard guard(mutex);
    stop = std::move(with);
    if (interrupted && stop) stop();
  }
};

// The thread that waits for signals is never joined.
Interrupt& TheInterrupt() {
  static Interrupt interrupt;
  return interrupt;
}

// The way to an etcd through the egress proxy, which outlives the stores.
struct EtcdWay {
  async::IOPool io{1};
  telemetry::MetricsRegistry metrics;
  EgressSelector egress;
  std::vector<std::unique_ptr<net::DialForwarder>> forwarders;
};

kv::Result<std::unique_ptr<kv::Store>> OpenSide(const Side& side, EtcdWay& way) {
  if (side.folder()) {
    kv::rocks::Options options;
    options.dir = side.place;
    KS_TRY(auto store, kv::rocks::Open(std::move(options)));
    return std::unique_ptr<kv::Store>(std::move(store));
  }
  kv::etcd::Options options = side.etcd;
  for (const auto endpoint : base::Split(side.place, ',')) options.endpoints.emplace_back(base::Trim(endpoint));
  options.waiting = [place = side.place](const std::string& cause) { Say("waiting for " + place + ": " + cause); };
  options.give_up = [] { return TheInterrupt().raised(); };
  options.route = RouteToEtcd(way.egress, way.forwarders);
  return kv::etcd::Open(std::move(options));
}

// A new embedded store takes a snapshot: keys keep all their revisions, at the price of one pass.
kv::Result<void> MakeFolder(kv::Store& from, const std::string& folder, async::IOPool& io) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::absolute(folder).parent_path(), error);
  const std::string file = folder + ".migrating";
  {
    Progress progress("reading the source", ProgressUnit::kItems);
    auto writing = kv::snapshot::WriteFile(from, file, SetterOf(progress));
    auto written = asio::co_spawn(io.executor(0), std::move(writing), asio::use_future).get();
    if (!written.ok()) return std::move(written).error();
  }
  auto restored = [&] {
    Progress progress("writing the target", ProgressUnit::kItems);
    return kv::rocks::Restore(file, folder, SetterOf(progress));
  }();
  std::filesystem::remove(file, error);
  if (!restored.ok()) return std::move(restored).error();
  Say("copied " + std::to_string(restored->keys) + " keys of revision " + std::to_string(restored->revision) +
      ", each with its own revisions");
  return {};
}

Awaitable<kv::Result<kv::migrate::Report>> Migrate(kv::Store& from, kv::Store& to, bool follow, Interrupt& interrupt) {
  kv::migrate::Options options;
  Progress progress("copying", ProgressUnit::kItems);
  options.progress = [&progress](const std::string& line) {
    progress.Clear();
    Say(line);
  };
  options.copied = SetterOf(progress);
  kv::migrate::Migration migration(from, to, std::move(options));
  KS_CO_RETURN_IF_ERROR(co_await migration.Start());
  if (follow) {
    interrupt.Set([&migration] { migration.Stop(); });
    Say("following the source; interrupt to finish");
    auto followed = co_await migration.Follow();
    interrupt.Set(nullptr);
    if (!followed.ok()) co_return std::move(followed).error();
  }
  auto finished = co_await migration.Finish();
  if (!finished.ok() && finished.error().code == kv::ErrorCode::kUnavailable)
    Say("the source is gone; the last change of it that the target has is revision " +
        std::to_string(migration.report().from_revision));
  co_return finished;
}

}  // namespace

int RunMigrate(const std::vector<std::string>& arguments) {
  const auto flags = Parse(arguments);
  if (!flags.ok()) return Fail(flags.error().message());
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  Interrupt& interrupt = TheInterrupt();
  std::thread([signals, &interrupt] {
    for (int signal = 0;; interrupt.Raise()) sigwait(&signals, &signal);
  }).detach();

  if (flags->from.folder() && !std::filesystem::exists(flags->from.place + "/db"))
    return Fail("--from: there is no store in " + flags->from.place + "; name the data folder of a server");
  EtcdWay way;
  auto egress = EgressSelector::Load(flags->egress_selector_config_file, way.io, way.metrics);
  if (!egress.ok()) return Fail(egress.error().message());
  way.egress = *std::move(egress);
  async::IOPool io(1);  // outlives the stores, whose threads resume coroutines on it
  auto from = OpenSide(flags->from, way);
  if (!from.ok()) return Fail("--from: " + from.error().message);
  if (flags->to.folder() && !std::filesystem::exists(flags->to.place + "/db")) {
    auto made = MakeFolder(**from, flags->to.place, io);
    if (!made.ok()) return Fail(made.error().message);
  }
  auto to = OpenSide(flags->to, way);
  if (!to.ok()) return Fail("--to: " + to.error().message);
  auto migrating = Migrate(**from, **to, flags->follow, interrupt);
  const auto report = asio::co_spawn(io.executor(0), std::move(migrating), asio::use_future).get();
  if (!report.ok()) return Fail(report.error().message);
  Say("the target is at revision " + std::to_string(report->to_revision) + " and has everything up to revision " +
      std::to_string(report->from_revision) + " of the source (" + std::to_string(report->changes) +
      " changes after the copy)");
  return 0;
}

}  // namespace keelson::app
