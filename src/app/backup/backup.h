// Backups of the embedded default: one tar archive with a snapshot of the store and the folder pki/, without which
// every kubeconfig and token is void after a restore.
//   backup.txt       version, time, revision and number of keys, for people
//   pki/*            authority, certificates and service account keys
//   store.snapshot   kv/snapshot, with its own checksum
// All functions block on the disk: not on an I/O thread.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "app/error.h"
#include "base/clock.h"
#include "base/outcome.h"
#include "kv/snapshot/snapshot.h"

namespace keelson::app {

// Writes a snapshot of the store into a file.
using SnapshotSource = std::function<Outcome<kv::snapshot::Info, Error>(const std::string& path)>;
SnapshotSource SnapshotOf(kv::Store& store);  // `store` must outlive it

struct BackupInfo {
  std::string path;
  std::uint64_t bytes = 0;
  kv::Revision revision = 0;
  std::int64_t keys = 0;
};

// keelson-20261117T053000Z.tar
std::string BackupName(base::Clock::SystemTime time);

// Writes `path`, which must not exist: under another name first, synced, then renamed. Mode 0600: it holds keys.
Outcome<BackupInfo, Error> WriteBackup(const SnapshotSource& snapshot, const std::string& pki_folder,
                                       const std::string& path, base::Clock::SystemTime now);

// Reads all of it, with the snapshot's checksum. Space for the snapshot is needed beside the file.
Outcome<BackupInfo, Error> VerifyBackup(const std::string& path);

// Makes the store and pki/ in `data_folder`, neither of which may be there.
Outcome<BackupInfo, Error> RestoreBackup(const std::string& path, const std::string& data_folder);

// Files in `folder` with names of BackupName(), oldest first.
std::vector<std::string> ListBackups(const std::string& folder);
// Removes all but the youngest `keep`; the paths that are gone.
std::vector<std::string> PruneBackups(const std::string& folder, std::size_t keep);

}  // namespace keelson::app
