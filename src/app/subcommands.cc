#include "app/subcommands.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <cstdio>

#include "app/migrate_command.h"
#include "async/io_pool.h"
#include "kv/etcdmain/etcdmain.h"
#include "kv/rocks/rocks.h"
#include "kv/rocks/tools.h"
#include "kv/snapshot/snapshot.h"

namespace keelson::app {
namespace {

int Fail(const std::string& message) {
  std::fprintf(stderr, "Error: %s\n", message.c_str());
  return 1;
}

int Report(const kv::Result<kv::rocks::CheckReport>& report) {
  if (!report.ok()) return Fail(report.error().message);
  std::printf("revision %lld, compacted to %lld, %lld keys, %lld changes, %lld leases, %lld bytes of values\n",
              static_cast<long long>(report->revision), static_cast<long long>(report->compact_revision),
              static_cast<long long>(report->keys), static_cast<long long>(report->changes),
              static_cast<long long>(report->leases), static_cast<long long>(report->value_bytes));
  return 0;
}

int Snapshot(const std::string& folder, const std::string& file) {
  auto store = kv::rocks::Open({.dir = folder});
  if (!store.ok()) return Fail(store.error().message);
  async::IOPool io(1);
  auto writing = kv::snapshot::WriteFile(**store, file);
  const auto info = asio::co_spawn(io.executor(0), std::move(writing), asio::use_future).get();
  if (!info.ok()) return Fail(info.error().message);
  std::printf("%s: revision %lld, %lld keys, %lld bytes\n", file.c_str(), static_cast<long long>(info->revision),
              static_cast<long long>(info->keys), static_cast<long long>(info->bytes));
  return 0;
}

int Store(const std::vector<std::string>& arguments) {
  const std::size_t count = arguments.size();
  if (count == 2 && arguments[0] == "check") return Report(kv::rocks::Check(arguments[1]));
  if (count == 3 && arguments[0] == "restore") return Report(kv::rocks::Restore(arguments[1], arguments[2]));
  if (count == 3 && arguments[0] == "snapshot") return Snapshot(arguments[1], arguments[2]);
  if (count == 2 && arguments[0] == "defragment") {
    const auto done = kv::rocks::DefragmentDir(arguments[1]);
    return done.ok() ? 0 : Fail(done.error().message);
  }
  return Fail("usage: keelson store check FOLDER | snapshot FOLDER FILE | restore FILE FOLDER | defragment FOLDER");
}

}  // namespace

std::optional<int> RunSubcommand(const std::string& program, const std::vector<std::string>& arguments) {
  if (program == "etcd") return kv::etcdmain::Main(arguments);
  if (arguments.empty()) return std::nullopt;
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  if (arguments[0] == "etcd") return kv::etcdmain::Main(rest);
  if (arguments[0] == "store") return Store(rest);
  if (arguments[0] == "migrate") return RunMigrate(rest);
  return std::nullopt;
}

}  // namespace keelson::app
