#include "app/console_setup.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <filesystem>

#include "app/backup/backup.h"
#include "app/backup/schedule.h"
#include "app/commands/progress.h"
#include "app/files.h"
#include "app/x509.h"
#include "async/io_pool.h"
#include "kv/snapshot/snapshot.h"
#include "telemetry/log.h"

namespace keelson::app {
namespace {

namespace fs = std::filesystem;
using console::StoreFigures;

Awaitable<kv::Result<void>> Discard(std::string) { co_return kv::Result<void>(); }

std::optional<StoreFigures::Backup> Youngest(const std::vector<std::string>& paths) {
  if (paths.empty()) return std::nullopt;
  std::error_code error;
  const fs::path path = paths.back();
  const auto written = fs::last_write_time(path, error);
  if (error) return std::nullopt;
  const auto age = std::chrono::duration_cast<std::chrono::seconds>(fs::file_time_type::clock::now() - written);
  return StoreFigures::Backup{.name = path.filename(), .bytes = fs::file_size(path, error), .age_seconds = age.count()};
}

std::vector<StoreFigures::Certificate> Certificates(const ServerRunOptions& options) {
  std::vector<StoreFigures::Certificate> found;
  const auto now = base::Clock::Real().Now();
  for (const auto& [flag, file] : {std::pair("--tls-cert-file", options.secure_serving.cert_file),
                                   std::pair("--client-ca-file", options.authentication.client_ca_file),
                                   std::pair("--etcd-certfile", options.etcd.cert_file)}) {
    if (file.empty()) continue;
    const auto text = ReadSmallFile(file);
    const auto certificate = text.ok() ? x509::Certificate::Parse(*text) : std::nullopt;
    if (!certificate) continue;
    const auto left = std::chrono::duration_cast<std::chrono::seconds>(certificate->not_after() - now);
    found.push_back({.flag = flag, .file = file, .seconds_left = left.count()});
  }
  return found;
}

// Care of the embedded store, or the figures of an etcd.
class Care final : public console::StoreCare {
 public:
  Care(const CompletedOptions& completed, const DataDir* folder, Stores& stores)
      : options_(completed.options),
        own_(completed.options.keelson),
        stores_(stores),
        quota_(own_.store_quota_mb * 1024 * 1024) {
    if (folder != nullptr) folder_ = folder->path();
  }
  bool embedded() const override { return !folder_.empty(); }

  Awaitable<Outcome<StoreFigures, std::string>> Figures() override {
    const auto status = co_await stores_.main->Status();
    if (!status.ok()) co_return status.error().message;
    StoreFigures figures{.certificates = Certificates(options_),
                         .embedded = embedded(),
                         .revision = status->revision,
                         .compact_revision = status->compact_revision,
                         .bytes = status->db_size,
                         .bytes_in_use = status->db_size_in_use};
    if (!embedded()) co_return figures;
    figures.quota_bytes = quota_;
    std::error_code error;
    figures.disk_free_bytes = static_cast<std::int64_t>(fs::space(folder_, error).available);
    figures.backup_folder = BackupFolder(own_, folder_);
    const auto paths = ListBackups(figures.backup_folder);
    figures.backups = paths.size();
    figures.last_backup = Youngest(paths);
    figures.backup_interval_seconds = std::chrono::duration_cast<std::chrono::seconds>(own_.backup_interval).count();
    co_return figures;
  }

  Result Check() override {
    async::IOPool io(1);
    auto reading = kv::snapshot::Write(*stores_.main, Discard);
    const auto info = asio::co_spawn(io.executor(0), std::move(reading), asio::use_future).get();
    if (!info.ok()) return info.error().message;
    return Done{"Read " + std::to_string(info->keys) + " keys and their values with their checksums at revision " +
                std::to_string(info->revision) + ": whole."};
  }

  Result Defragment() override {
    if (!stores_.defragment) return Done{"The store is in memory: there is nothing to do."};
    const auto size = [this] {
      const auto status = Status();
      return status.ok() ? HumanBytes(static_cast<std::uint64_t>(status->db_size)) : std::string("?");
    };
    const std::string before = size();
    const auto done = stores_.defragment();
    if (!done.ok()) return done.error().message;
    log::Info("Defragmented the store for the console");
    return Done{before + " before, " + size() + " now."};
  }

  Result Save() override {
    const std::string folder = BackupFolder(own_, folder_);
    const auto made = Write(folder);
    if (!made.ok()) return made.error().message();
    log::Info("Made a backup for the console", "path", made->path, "revision", made->revision);
    return Done{made->path + ": " + HumanBytes(made->bytes) + ", revision " + std::to_string(made->revision) + ", " +
                std::to_string(made->keys) + " keys."};
  }

  Result Export() override {
    const auto made = Write(folder_ + "/downloads");
    if (!made.ok()) return made.error().message();
    log::Info("Gave out a backup through the console", "revision", made->revision, "bytes", made->bytes);
    return Done{made->path};
  }

 private:
  Outcome<BackupInfo, Error> Write(const std::string& folder) {
    const auto now = base::Clock::Real().Now();
    KS_RETURN_IF_ERROR(MakeDirectories(folder, 0700));
    return WriteBackup(SnapshotOf(*stores_.main), folder_ + "/pki", folder + "/" + BackupName(now), now);
  }
  kv::Result<kv::StoreStatus> Status() {
    async::IOPool io(1);
    return asio::co_spawn(io.executor(0), stores_.main->Status(), asio::use_future).get();
  }

  const ServerRunOptions& options_;
  const KeelsonOptions& own_;
  Stores& stores_;
  const std::int64_t quota_;
  std::string folder_;  // "": the store is an etcd
};

Awaitable<meta::Result<std::vector<std::string>>> ReadNamespaces(admission::ObjectReader& reader) {
  base::Arena arena;
  KS_CO_TRY(const auto found, co_await reader.List(arena, "", "namespaces", ""));
  std::vector<std::string> names;
  for (const auto& one : found) names.emplace_back(one.Get("metadata", "name").as_string());
  co_return names;
}

}  // namespace

console::ConsoleParts MakeConsoleParts(const CompletedOptions& completed, const DataDir* folder, Stores& stores) {
  const KeelsonOptions& own = completed.options.keelson;
  console::ConsoleParts parts;
  if (!own.console) return parts;
  parts.tail = std::make_shared<audit::Tail>();
  parts.store = std::make_shared<Care>(completed, folder, stores);
  if (own.console_links) {
    parts.sign_in = std::make_shared<console::SignIn>(
        request::User{.name = "admin", .groups = {std::string(request::kSystemMasters)}});
  }
  return parts;
}

console::NamespaceNames NamespacesOf(admission::ObjectReader& reader) {
  return [&reader] { return ReadNamespaces(reader); };
}

NewConsoleLink ConsoleLinks(const CompletedOptions& completed, const console::ConsoleParts& parts) {
  if (!parts.sign_in) return nullptr;
  return
      [&completed, sign_in = parts.sign_in] { return completed.ServerURL() + "/console#link=" + sign_in->NewLink(); };
}

}  // namespace keelson::app
