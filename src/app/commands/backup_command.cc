#include "app/commands/backup_command.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "app/backup/backup.h"
#include "app/backup/control_socket.h"
#include "app/commands/output.h"
#include "app/commands/progress.h"
#include "app/data_dir.h"
#include "app/files.h"
#include "base/clock.h"
#include "base/strings.h"
#include "kv/rocks/rocks.h"

namespace keelson::app {

const char* const kBackupUsage =
    "usage: keelson backup save [--data-dir FOLDER] [FILE]   back up the server, running or not, with its "
    "certificates\n"
    "       keelson backup list [--data-dir FOLDER]          tell which backups there are\n"
    "       keelson backup verify FILE                       read everything in a backup with its checksums\n"
    "       keelson backup restore FILE FOLDER               make a new data folder from a backup\n"
    "FILE is by default in the folder `backups` of the data folder. A backup holds keys: whoever has it is "
    "administrator.\n"
    "The server makes backups by itself with --backup-interval=12h --backup-retention=5.";

namespace {

std::string Summary(const BackupInfo& info) {
  return info.path + ": " + HumanBytes(info.bytes) + ", revision " + std::to_string(info.revision) + ", " +
         std::to_string(info.keys) + " keys";
}

Outcome<kv::snapshot::Info, Error> SnapshotOfFolder(const std::string& folder, const std::string& path) {
  Progress progress("reading the store", ProgressUnit::kBytes);
  auto running = SnapshotOfRunning(folder, path, [&progress](std::uint64_t bytes) { progress.Set(bytes); });
  if (running) return *std::move(running);
  if (!FileExists(folder + "/store/db"))
    return Error("there is no store in " + folder, "name the data folder of the server with --data-dir");
  auto store = kv::rocks::Open({.dir = folder + "/store"});
  if (!store.ok()) return Error(store.error().message);
  Progress keys("reading the store", ProgressUnit::kItems);
  return SnapshotOf(**store, SetterOf(keys))(path);
}

int Save(const std::string& folder, std::string file) {
  const auto now = base::Clock::Real().Now();
  if (!std::filesystem::is_directory(folder)) {
    return Fail(Error("there is no folder " + folder, "name the data folder of the server with --data-dir"));
  }
  if (file.empty()) {
    const std::string backups = folder + "/backups";
    if (const auto made = MakeDirectories(backups, 0700); !made.ok()) return Fail(made.error());
    file = backups + "/" + BackupName(now);
  }
  const auto saved = WriteBackup([&folder](const std::string& path) { return SnapshotOfFolder(folder, path); },
                                 folder + "/pki", file, now);
  if (!saved.ok()) return Fail(saved.error());
  Say(Summary(*saved));
  return 0;
}

int List(const std::string& folder) {
  const auto paths = ListBackups(folder + "/backups");
  std::error_code error;
  for (const std::string& path : paths) Say(path + "  " + HumanBytes(std::filesystem::file_size(path, error)));
  if (paths.empty()) Say("no backups in " + folder + "/backups");
  return 0;
}

int Restore(const std::string& file, const std::string& given) {
  const std::string folder = DataDir::Absolute(given);
  Say("1. reading " + file);
  const auto restored = [&] {
    Progress progress("writing the store", ProgressUnit::kItems);
    return RestoreBackup(file, folder, SetterOf(progress));
  }();
  if (!restored.ok()) return Fail(restored.error());
  Say("2. made " + folder + "/store: revision " + std::to_string(restored->revision) + ", " +
      std::to_string(restored->keys) + " keys, checked");
  Say("3. made " + folder + "/pki: certificates and tokens from before stay valid");
  Say("Next: stop the old server if it still runs, then start `keelson --data-dir=" + folder + "` with the old flags.");
  Say("If it ran with --encryption-provider-config, the same file is needed: a backup does not hold it.");
  Say("Clients that watch list again by themselves; changes after the backup are lost.");
  return 0;
}

}  // namespace

int RunBackup(const std::vector<std::string>& given) {
  std::vector<std::string> arguments = given;
  std::string folder = TakeFlag(arguments, "data-dir");
  if (folder.empty()) folder = DataDir::Default();
  const std::string verb = arguments.empty() ? "" : arguments[0];
  const std::size_t count = arguments.size();
  if (verb == "save" && count <= 2) return Save(folder, count == 2 ? arguments[1] : "");
  if (verb == "list" && count == 1) return List(folder);
  if (verb == "restore" && count == 3) return Restore(arguments[1], arguments[2]);
  if (verb == "verify" && count == 2) {
    const auto info = VerifyBackup(arguments[1]);
    if (!info.ok()) return Fail(info.error());
    Say(Summary(*info) + ": whole");
    return 0;
  }
  if (verb.empty()) return Fail(std::string("a backup command is missing\n") + kBackupUsage);
  constexpr std::string_view kVerbs[] = {"save", "list", "verify", "restore"};
  if (std::ranges::find(kVerbs, verb) == std::end(kVerbs))
    return Fail(UnknownWord("backup command", verb, kVerbs) + "\n" + kBackupUsage);
  return Fail("cannot use " + base::GoQuote(base::Join(arguments, " ")) + "\n" + kBackupUsage);
}

}  // namespace keelson::app
