// Backups that the server makes by itself (--backup-interval), with retention.
#pragma once

#include <memory>
#include <string>

#include "app/options.h"
#include "app/repeated.h"
#include "async/blocking_pool.h"
#include "async/io_pool.h"
#include "kv/kv.h"

namespace keelson::app {

class BackupSchedule {
 public:
  // The first one is due an interval after the youngest backup in the folder. An interval of 0: none are made. `store`
  // and `io` must outlive it.
  BackupSchedule(const KeelsonOptions& options, const std::string& data_folder, kv::Store& store, async::IOPool& io);

 private:
  Awaitable<void> Make();

  kv::Store& store_;
  std::string folder_, pki_folder_;
  std::size_t keep_ = 0;
  async::BlockingPool files_{"backup", 1};
  std::unique_ptr<Repeated> work_;  // last: ends first
};

// --backup-dir, else the folder backups in the data folder.
std::string BackupFolder(const KeelsonOptions& options, const std::string& data_folder);

}  // namespace keelson::app
