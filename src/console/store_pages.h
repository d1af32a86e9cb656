// Care of the store, below /console/api/store; each path and verb is authorized as the non-resource URL that it is:
//   GET  /console/api/store              figures
//   POST /console/api/store/backup       a backup into the backup folder, as `keelson backup save`
//   POST /console/api/store/download     the same to the client. It holds the keys of the cluster: POST, so that a rule
//                                        with the verb get on all URLs does not give them away
//   POST /console/api/store/check        reads every key and value with its checksums, while the store is used
//   POST /console/api/store/defragment   gives space back to the file system
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/awaitable.h"
#include "base/outcome.h"
#include "server/path_mux.h"

namespace keelson::console {

struct StoreFigures {
  struct Backup {
    std::string name;
    std::uint64_t bytes = 0;
    std::int64_t age_seconds = 0;
  };
  // A file that the server shows or trusts; the first certificate in it.
  struct Certificate {
    std::string flag;  // the flag that names it
    std::string file;
    std::int64_t seconds_left = 0;  // below 0: it has ended
  };
  std::vector<Certificate> certificates;
  bool embedded = false;  // without it only the next four figures are known, and nothing else can be done
  std::int64_t revision = 0, compact_revision = 0;
  std::int64_t bytes = 0, bytes_in_use = 0;
  std::int64_t quota_bytes = 0;      // 0: none
  std::int64_t disk_free_bytes = 0;  // of the file system
  std::string backup_folder;
  std::size_t backups = 0;
  std::optional<Backup> last_backup;
  std::int64_t backup_interval_seconds = 0;  // 0: none are made by themselves
};

// Maintenance of the server's store: figures, backup, check, defragmentation. Thread safety: from any thread. Errors
// are messages for people.
class StoreCare {
 public:
  struct Done {
    std::string text;  // what was done, or a path
  };
  using Result = Outcome<Done, std::string>;
  virtual ~StoreCare() = default;
  virtual Awaitable<Outcome<StoreFigures, std::string>> Figures() = 0;
  virtual bool embedded() const = 0;
  // These block, and are called one at a time. Each returns a report.
  virtual Result Check() = 0;
  virtual Result Defragment() = 0;
  virtual Result Save() = 0;
  // Makes a backup in a file that the caller removes; its path.
  virtual Result Export() = 0;
};

void InstallStore(server::PathMux& mux, std::shared_ptr<StoreCare> care);

}  // namespace keelson::console
