#include "app/backup/schedule.h"

#include <filesystem>

#include "app/backup/backup.h"
#include "app/files.h"
#include "base/clock.h"
#include "telemetry/log.h"

namespace keelson::app {
namespace {

constexpr std::chrono::seconds kFirst{1};  // after the start, of a backup that is due

void MakeOne(const std::string& folder, const std::string& pki_folder, std::size_t keep, kv::Store& store) {
  const auto begin = base::Clock::Real().Monotonic();
  const auto now = base::Clock::Real().Now();
  const auto made = [&]() -> Outcome<BackupInfo, Error> {
    KS_RETURN_IF_ERROR(MakeDirectories(folder, 0700));
    return WriteBackup(SnapshotOf(store), pki_folder, folder + "/" + BackupName(now), now);
  }();
  if (!made.ok()) {
    log::Error("Could not make the scheduled backup", "folder", folder, "err", made.error());
    return;
  }
  log::Info("Made a backup", "path", made->path, "revision", made->revision, "keys", made->keys, "bytes", made->bytes,
            "took", base::Clock::Real().Monotonic() - begin);
  for (const std::string& path : PruneBackups(folder, keep)) log::Info("Removed an old backup", "path", path);
}

// Since the youngest backup in the folder; nothing when there is none.
std::optional<std::chrono::nanoseconds> AgeOfYoungest(const std::string& folder) {
  const auto paths = ListBackups(folder);
  if (paths.empty()) return std::nullopt;
  std::error_code error;
  const auto written = std::filesystem::last_write_time(paths.back(), error);
  if (error) return std::nullopt;
  return std::filesystem::file_time_type::clock::now() - written;
}

}  // namespace

std::string BackupFolder(const KeelsonOptions& options, const std::string& data_folder) {
  return options.backup_dir.empty() ? data_folder + "/backups" : options.backup_dir;
}

BackupSchedule::BackupSchedule(const KeelsonOptions& options, const std::string& data_folder, kv::Store& store,
                               async::IOPool& io)
    : store_(store) {
  if (options.backup_interval.count() <= 0) return;
  const std::string folder = BackupFolder(options, data_folder);
  const auto age = AgeOfYoungest(folder);
  const std::chrono::nanoseconds first = std::max<std::chrono::nanoseconds>(
      kFirst, age ? options.backup_interval - *age : std::chrono::nanoseconds(kFirst));
  log::Info("Backups are scheduled", "folder", folder, "interval", options.backup_interval, "retention",
            options.backup_retention, "first_after", first);
  folder_ = folder;
  pki_folder_ = data_folder + "/pki";
  keep_ = static_cast<std::size_t>(options.backup_retention);
  work_ = std::make_unique<Repeated>(io.Next(), options.backup_interval, [this] { return Make(); }, 0, first);
}

Awaitable<void> BackupSchedule::Make() {
  co_await files_.Run([this] {
    MakeOne(folder_, pki_folder_, keep_, store_);
    return true;
  });
}

}  // namespace keelson::app
