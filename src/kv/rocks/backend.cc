#include "kv/rocks/backend.h"

#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/file_system.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "base/failpoint.h"
#include "base/strings.h"
#include "kv/rocks/compaction_room.h"
#include "kv/rocks/format.h"
#include "kv/rocks/log_file.h"
#include "telemetry/log.h"

namespace keelson::kv::rocks {
namespace {

constexpr std::int64_t kRecordOverheadBytes = 64;  // of a change in RocksDB, about
constexpr std::int64_t kMeasureEveryBytes = 4 * 1024 * 1024;
constexpr auto kMeasureEvery = std::chrono::seconds(1);
constexpr auto kMarkEvery = std::chrono::seconds(1);
constexpr std::int64_t kReclaimBytesMin = std::int64_t{8} * 1024 * 1024;
// Less than this in the memtables is left to the log: a flush writes a file for each family.
constexpr std::uint64_t kFlushBeforeCloseBytes = std::uint64_t{1} * 1024 * 1024;
constexpr std::int64_t kOpenBytesMin = std::int64_t{1} * 1024 * 1024;  // RocksDB's manifest, options and log of a start
constexpr std::int64_t kRoomBytes = std::int64_t{2} * 1024 * 1024;  // of a commit: the log's zeros ahead and a new log
constexpr std::int64_t kRewriteBytesMax = std::int64_t{256} * 1024 * 1024;  // RocksDB rewrites no more at once
constexpr auto kViewsPatience = std::chrono::seconds(5);
constexpr auto kViewsPoll = std::chrono::milliseconds(1);
constexpr int kStepsBeforeSeek = 8;            // stepping over so many records costs less than a seek
constexpr std::size_t kReadByIteratorMin = 8;  // fewer values are read one by one
constexpr std::size_t kChunkBytes = std::size_t{4} * 1024 * 1024;
constexpr std::size_t kMemtableArenaBytes = 64 * 1024;  // an idle store stays small

rocksdb::Slice ToSlice(std::string_view text) { return {text.data(), text.size()}; }
std::string_view ToView(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

// RocksDB's messages. Its own log is a file in the database's folder, also of one that is only read; and it ends the
// process when it cannot write that file twice, on a full disk for one.
class ForwardedLog final : public rocksdb::Logger {
 public:
  explicit ForwardedLog(std::string dir) : dir_(std::move(dir)) {}
  using Logger::Logv;
  void Logv(const char* format, va_list arguments) override { Logv(rocksdb::INFO_LEVEL, format, arguments); }
  void Logv(const rocksdb::InfoLogLevel level, const char* format, va_list arguments) override {
    if (level < rocksdb::WARN_LEVEL || level == rocksdb::HEADER_LEVEL) return;
    char text[kMessageBytesMax];
    ::vsnprintf(text, sizeof(text), format, arguments);
    // Not as an error: what matters comes back as a status, and a new database begins with "No such file".
    log::V(2).Info("RocksDB message", "dir", dir_, "message", base::Trim(text));
  }

 private:
  static constexpr std::size_t kMessageBytesMax = 1024;
  const std::string dir_;
};

rocksdb::DBOptions MakeDBOptions(const Options& options) {
  rocksdb::DBOptions db;
  db.create_if_missing = true;
  db.create_missing_column_families = true;
  db.paranoid_checks = true;
  // A record torn by a crash ends the log. The folder's durable mark shows whether acknowledged records were behind
  // it.
  db.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  db.avoid_flush_during_recovery = true;
  db.max_total_wal_size = 4 * options.memtable_bytes;
  db.max_background_jobs = 2;
  db.max_open_files = 512;
  db.allow_concurrent_memtable_write = false;  // There is one writer.
  db.enable_write_thread_adaptive_yield = false;
  db.allow_fallocate = false;  // Space on disk is what is used, not what may be.
  db.skip_stats_update_on_db_open = true;
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  db.max_manifest_file_size = 4 * 1024 * 1024;
  db.info_log_level = rocksdb::WARN_LEVEL;
  db.info_log = std::make_shared<ForwardedLog>(options.dir);
  db.listeners.push_back(NewCompactionRoom([dir = options.dir] { return FreeBytesAt(dir); }, kRoomBytes));
  if (options.env != nullptr) db.env = options.env;
  return db;
}

rocksdb::ColumnFamilyOptions MakeFamilyOptions(const Options& options, const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::ColumnFamilyOptions family;
  family.write_buffer_size = options.memtable_bytes;
  family.max_write_buffer_number = 3;
  family.arena_block_size = kMemtableArenaBytes;
  family.compression = rocksdb::kNoCompression;
  family.target_file_size_base = std::max<std::uint64_t>(options.memtable_bytes, 8 * 1024 * 1024);
  family.level_compaction_dynamic_level_bytes = false;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.block_size = 16 * 1024;
  table.format_version = 5;
  table.checksum = rocksdb::kXXH3;
  family.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return family;
}

// Values that are read together go into few large buffers: a separate allocation for each, and the page faults of
// fresh memory, cost more than reading them. A value in use keeps its neighbours alive, too.
class ChunkedValues {
 public:
  explicit ChunkedValues(std::size_t total) : left_(total) {}

  // REQUIRES: what was announced is not exceeded.
  SharedBytes Add(std::string_view value) {
    if (value.empty()) return {};
    if (value.size() > chunk_.size() - used_) {
      chunk_ = SharedBytes::Uninitialized(std::max(value.size(), std::min(left_, kChunkBytes)), &data_);
      used_ = 0;
    }
    std::memcpy(data_ + used_, value.data(), value.size());
    SharedBytes bytes = chunk_.Slice(used_, value.size());
    used_ += value.size();
    left_ -= std::min(left_, value.size());
    return bytes;
  }

 private:
  std::size_t left_;
  std::size_t used_ = 0;
  char* data_ = nullptr;
  SharedBytes chunk_;
};

class RocksView final : public mvcc::Backend::View {
 public:
  explicit RocksView(DatabasePtr database)
      : database_(std::move(database)),
        db_(database_->db.get()),
        values_(database_->families.values),
        snapshot_(db_->GetSnapshot()) {}
  ~RocksView() override { db_->ReleaseSnapshot(snapshot_); }

  Result<std::vector<SharedBytes>> Read(std::span<const mvcc::Location> locations) override {
    std::vector<SharedBytes> values(locations.size());
    if (locations.size() < kReadByIteratorMin) {
      for (std::size_t i = 0; i < locations.size(); ++i) {
        KS_TRY(values[i], ReadOne(locations[i]));
      }
      return values;
    }
    // In the order of revisions neighbours are often neighbours in the file, too.
    std::vector<std::uint32_t> order(locations.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(locations[a].revision, locations[a].sub) < std::pair(locations[b].revision, locations[b].sub);
    });
    std::size_t total = 0;
    for (const mvcc::Location& location : locations) total += location.size;
    ChunkedValues chunks(total);
    rocksdb::ReadOptions read;
    read.snapshot = snapshot_;
    read.fill_cache = false;
    const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(read, values_));
    for (const std::uint32_t i : order) {
      const RecordKey key(locations[i].revision, locations[i].sub);
      const rocksdb::Slice wanted = ToSlice(key.view());
      for (int steps = 0; at->Valid() && steps < kStepsBeforeSeek && at->key().compare(wanted) < 0; ++steps) at->Next();
      if (!at->Valid() || at->key().compare(wanted) != 0) at->Seek(wanted);
      if (!at->status().ok()) return Damaged(locations[i], at->status());
      if (!at->Valid() || at->key() != wanted || at->value().size() != locations[i].size)
        return Damaged(locations[i], rocksdb::Status::NotFound());
      values[i] = chunks.Add(ToView(at->value()));
    }
    return values;
  }

  static Error Damaged(const mvcc::Location& location, const rocksdb::Status& status) {
    if (!status.ok() && !status.IsNotFound() && !status.IsCorruption()) return FromStatus(status, "reading a value");
    return {.code = ErrorCode::kCorrupt,
            .message = fmt::format("store damaged: the value of revision {}.{} ({} bytes) cannot be read: {}",
                                   location.revision, location.sub, location.size,
                                   status.IsCorruption() ? status.ToString() : "it is missing or has another size")};
  }

 private:
  Result<SharedBytes> ReadOne(const mvcc::Location& location) {
    rocksdb::ReadOptions read;
    read.snapshot = snapshot_;
    rocksdb::PinnableSlice value;
    const RecordKey key(location.revision, location.sub);
    const auto status = db_->Get(read, values_, ToSlice(key.view()), &value);
    if (!status.ok()) return Damaged(location, status);
    if (value.size() != location.size) return Damaged(location, rocksdb::Status::NotFound());
    return SharedBytes(ToView(value));
  }

  const DatabasePtr database_;
  rocksdb::DB* const db_;
  rocksdb::ColumnFamilyHandle* const values_;
  const rocksdb::Snapshot* const snapshot_;
};

void AddDeletions(const Database& database, std::span<const mvcc::Location> dead, rocksdb::WriteBatch& write) {
  for (const mvcc::Location& location : dead) {
    const RecordKey key(location.revision, location.sub);
    write.Delete(database.families.changes, ToSlice(key.view()));
    if (location.size > 0) write.Delete(database.families.values, ToSlice(key.view()));
  }
}

// Leases and the compact revision. Removals come first: a lease may be revoked and granted again in one commit.
void AddSettings(const Database& database, const mvcc::CommitBatch& batch, rocksdb::WriteBatch& write) {
  rocksdb::ColumnFamilyHandle* const settings = database.families.settings;
  for (const LeaseID id : batch.leases_removed) write.Delete(settings, LeaseKey(id));
  for (const mvcc::LeaseRecord& lease : batch.leases) write.Put(settings, LeaseKey(lease.id), EncodeNumber(lease.ttl));
  if (batch.compact) write.Put(settings, ToSlice(kCompactKey), EncodeNumber(*batch.compact));
}

Error Closed(const std::string& dir) {
  return {.code = ErrorCode::kUnavailable,
          .message = "the store in " + dir + " is closed: it could not be opened again"};
}

// The view during a reopen: every read fails.
class ClosedView final : public mvcc::Backend::View {
 public:
  explicit ClosedView(std::string dir) : dir_(std::move(dir)) {}
  Result<std::vector<SharedBytes>> Read(std::span<const mvcc::Location>) override { return Closed(dir_); }

 private:
  const std::string dir_;
};

// Behind the compacted revision every revision has its changes, and they are numbered. A file or log that a disk has
// lost leaves a gap.
class Sequence {
 public:
  void Compacted(Revision revision) { revision_ = std::max(revision_, revision); }
  bool Continues(const mvcc::Record& record) {
    if (record.revision <= compacted()) return true;
    const bool same = record.revision == revision_ && record.sub == sub_ + 1;
    const bool next = record.revision == revision_ + 1 && record.sub == 0;
    begun_ = true;
    revision_ = record.revision;
    sub_ = record.sub;
    return same || next;
  }
  Revision last() const { return revision_; }

 private:
  Revision compacted() const { return begun_ ? 0 : revision_; }
  bool begun_ = false;
  Revision revision_ = 1;  // of an empty store
  std::uint32_t sub_ = 0;
};

// Makes what a killed process wrote to the logs of `db_path` durable. The end of a log may lie in the page cache only;
// a loss of power would take it from under the logs that are written behind it, and RocksDB reads no log past a gap.
// If a sync failed before, the kernel takes what was lost for written, and a sync alone would do nothing.
Result<void> SyncLogs(rocksdb::FileSystem& files, const std::string& db_path) {
  std::vector<std::string> names;
  const auto listed = files.GetChildren(db_path, rocksdb::IOOptions(), &names, nullptr);
  if (listed.IsNotFound() || listed.IsPathNotFound()) return {};  // The store is new.
  if (!listed.ok()) return FromStatus(listed, "listing " + db_path);
  for (const std::string& name : names) {
    if (!name.ends_with(".log")) continue;
    KS_RETURN_IF_ERROR(RewriteFile(db_path + "/" + name));
    std::unique_ptr<rocksdb::FSWritableFile> log;
    auto status = files.ReopenWritableFile(db_path + "/" + name, rocksdb::FileOptions(), &log, nullptr);
    if (status.ok()) status = log->Fsync(rocksdb::IOOptions(), nullptr);
    if (!status.ok()) return FromStatus(status, "syncing " + db_path + "/" + name);
  }
  return {};
}

}  // namespace

Error FromStatus(const rocksdb::Status& status, const std::string& what) {
  ErrorCode code = ErrorCode::kInternal;
  if (status.IsCorruption()) code = ErrorCode::kCorrupt;
  if (status.IsNoSpace()) code = ErrorCode::kNoSpace;
  const char* prefix = code == ErrorCode::kCorrupt ? "store damaged: " : "";
  return {.code = code, .message = fmt::format("{}{}: {}", prefix, what, status.ToString())};
}

Result<std::unique_ptr<RocksBackend>> RocksBackend::Open(Options options, Access access) {
  KS_TRY(auto folder, access == Access::kRead ? Folder::TakeToRead(options.dir) : Folder::Take(options.dir));
  if (!std::filesystem::exists(folder->db_path()) && std::filesystem::exists(folder->restoring_path())) {
    return Error{.code = ErrorCode::kCorrupt,
                 .message = fmt::format("a restore into {} did not end: repeat it, or remove {} to begin with an empty "
                                        "store",
                                        options.dir, folder->restoring_path())};
  }
  std::unique_ptr<RocksBackend> backend(new RocksBackend(std::move(options), access, std::move(folder)));
  KS_RETURN_IF_ERROR(backend->OpenDB());
  return backend;
}

Database::~Database() {
  if (!db) return;
  for (auto* family : {families.settings, families.changes, families.values}) {
    if (family != nullptr) db->DestroyColumnFamilyHandle(family);
  }
  db->Close();
}

Result<void> RocksBackend::OpenDB() {
  const auto cache = rocksdb::NewLRUCache(options_.block_cache_bytes, 1);
  const auto family = MakeFamilyOptions(options_, cache);
  const std::vector<rocksdb::ColumnFamilyDescriptor> descriptors = {
      {rocksdb::kDefaultColumnFamilyName, family}, {"changes", family}, {"values", family}};
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  rocksdb::DBOptions db_options = MakeDBOptions(options_);
  // The end of a log whose write failed may be lost with the power, and later logs would not be read past the gap:
  // everything goes into files before anything is acknowledged again.
  if (reopening_) db_options.avoid_flush_during_recovery = false;
  auto database = std::make_shared<Database>();
  if (options_.env == nullptr && access_ == Access::kWrite) {
    auto files = NewRoomFileSystem(rocksdb::FileSystem::Default());
    // Without syncing the page cache is what keeps writes when the process is killed.
    if (options_.sync) files = NewLogFileSystem(std::move(files));
    database->env = rocksdb::NewCompositeEnv(std::move(files));
    db_options.env = database->env.get();
  }
  rocksdb::Status opened;
  if (access_ == Access::kRead) {
    opened = rocksdb::DB::OpenForReadOnly(db_options, folder_->db_path(), descriptors, &handles, &db);
  } else {
    KS_RETURN_IF_ERROR(CheckSpaceToOpen());
    if (options_.sync) KS_RETURN_IF_ERROR(SyncLogs(*db_options.env->GetFileSystem(), folder_->db_path()));
    opened = rocksdb::DB::Open(db_options, folder_->db_path(), descriptors, &handles, &db);
  }
  if (!opened.ok()) return FromStatus(opened, "opening " + folder_->db_path());
  database->db.reset(db);
  database->families = {.settings = handles[0], .changes = handles[1], .values = handles[2]};
  KS_RETURN_IF_ERROR(CheckFormat(*database));
  if (access_ == Access::kWrite && options_.sync) KS_RETURN_IF_ERROR(folder_->Sync());  // `db` may be new.
  std::lock_guard guard(database_mutex_);
  database_ = std::move(database);
  return {};
}

// A new store gets its format.
Result<void> RocksBackend::CheckFormat(Database& database) const {
  std::string format;
  rocksdb::ColumnFamilyHandle* const settings = database.families.settings;
  const auto got = database.db->Get(rocksdb::ReadOptions(), settings, ToSlice(kFormatKey), &format);
  if (got.ok()) {
    if (format == kFormat) return {};
    return Error{.code = ErrorCode::kCorrupt,
                 .message = fmt::format("store {} has format \"{}\", this program writes \"{}\"", options_.dir, format,
                                        kFormat)};
  }
  if (!got.IsNotFound()) return FromStatus(got, "reading the format of " + options_.dir);
  if (access_ == Access::kRead) return {};  // The store was made, but nothing was written yet.
  rocksdb::WriteOptions write;
  write.sync = options_.sync;
  const auto put = database.db->Put(write, settings, ToSlice(kFormatKey), ToSlice(kFormat));
  if (!put.ok()) return FromStatus(put, "writing " + options_.dir);
  return {};
}

// RocksDB ends the process when the disk is full while it opens a database.
Result<void> RocksBackend::CheckSpaceToOpen() {
  if (folder_->FreeBytes() < kOpenBytesMin) folder_->ReleaseReserve(folder_->reserve_bytes());
  const std::int64_t free = folder_->FreeBytes();
  if (free >= kOpenBytesMin) return {};
  return Error{.code = ErrorCode::kNoSpace,
               .message = fmt::format("no space to open the store in {}: {} bytes are free on its file system, {} are "
                                      "needed",
                                      options_.dir, free, kOpenBytesMin)};
}

void RocksBackend::StopReclaim() {
  if (const DatabasePtr database = this->database()) {
    rocksdb::CancelAllBackgroundWork(database->db.get(), false);
    database->db->DisableManualCompaction();
  }
  if (reclaim_.joinable()) reclaim_.join();
}

// Flushes RocksDB's memtables to files, so that the next start has no write-ahead log to replay. A failed flush loses
// nothing: the log still has the writes.
void RocksBackend::FlushBeforeClose() {
  const DatabasePtr database = this->database();
  if (!database || access_ != Access::kWrite || !options_.sync || !loaded_) return;
  const auto& families = database->families;
  std::uint64_t bytes = 0;
  for (auto* family : {families.settings, families.changes, families.values}) {
    std::uint64_t of_family = 0;
    database->db->GetIntProperty(family, rocksdb::DB::Properties::kCurSizeAllMemTables, &of_family);
    bytes += of_family;
  }
  if (bytes < kFlushBeforeCloseBytes || folder_->FreeBytes() < static_cast<std::int64_t>(2 * bytes)) return;
  const auto flushed = database->db->Flush({}, {families.settings, families.changes, families.values});
  if (!flushed.ok()) log::Info("Could not flush the store before closing it", "err", flushed.ToString());
}

RocksBackend::~RocksBackend() {
  FlushBeforeClose();
  StopReclaim();
  if (!database()) return;
  // The durable mark of a damaged store must not be lowered to what is left of it.
  if (access_ == Access::kWrite && options_.sync && loaded_ && last_ > 0) folder_->WriteDurable(last_, true);
}

// Readers that have a view finish first. The folder's lock stays.
Result<void> RocksBackend::Close() {
  StopReclaim();
  DatabasePtr database;
  {
    std::lock_guard guard(database_mutex_);
    database = std::exchange(database_, nullptr);
  }
  for (int waited = 0; database && database.use_count() > 1; ++waited) {
    if (waited > kViewsPatience / kViewsPoll) {
      std::lock_guard guard(database_mutex_);
      database_ = std::move(database);
      return Error{.code = ErrorCode::kUnavailable, .message = "reads of the failed store have not ended"};
    }
    std::this_thread::sleep_for(kViewsPoll);
  }
  return {};
}

Result<void> RocksBackend::Reopen() {
  // Looked at before it is closed: what can be read stays readable while the disk takes nothing.
  folder_->ReleaseReserve(folder_->reserve_bytes());
  KS_RETURN_IF_ERROR(CheckSpaceToOpen());
  KS_RETURN_IF_ERROR(folder_->ProbeWrite());
  KS_RETURN_IF_ERROR(Close());
  loaded_ = false;
  reopening_ = true;
  return OpenDB();
}

Result<void> RocksBackend::Repair(const mvcc::CommitBatch& batch, std::span<const mvcc::Location> dead, Revision last) {
  const DatabasePtr database = this->database();
  if (!database) return Closed(options_.dir);
  rocksdb::WriteBatch write;
  AddDeletions(*database, dead, write);
  AddSettings(*database, batch, write);
  rocksdb::WriteOptions options;
  options.sync = options_.sync;
  const auto status = database->db->Write(options, &write);
  if (!status.ok()) return FromStatus(status, "repairing " + options_.dir);
  last_ = last;
  return {};
}

Result<void> RocksBackend::Load(mvcc::LoadSink& sink) {
  const DatabasePtr database = this->database();
  if (!database) return Closed(options_.dir);
  rocksdb::DB* const db = database->db.get();
  last_ = 0;
  Sequence sequence;
  rocksdb::ReadOptions read;
  read.fill_cache = false;
  const std::unique_ptr<rocksdb::Iterator> settings(db->NewIterator(read, database->families.settings));
  for (settings->SeekToFirst(); settings->Valid(); settings->Next()) {
    const auto key = ToView(settings->key());
    const auto number = DecodeNumber(ToView(settings->value()));
    if (key == kFormatKey) continue;
    const auto lease = DecodeLeaseKey(key);
    if (!number || (key != kCompactKey && !lease)) {
      return Error{.code = ErrorCode::kCorrupt,
                   .message = fmt::format("store damaged: setting {} of {} cannot be read",
                                          settings->key().ToString(true), options_.dir)};
    }
    if (lease) {
      sink.OnLease({.id = *lease, .ttl = *number});
    } else {
      last_ = std::max(last_, *number);
      sequence.Compacted(*number);
      sink.OnCompact(*number);
    }
  }
  if (!settings->status().ok()) return FromStatus(settings->status(), "reading the settings of " + options_.dir);

  std::uint64_t about = 0;
  db->GetIntProperty(database->families.changes, rocksdb::DB::Properties::kEstimateNumKeys, &about);
  std::uint64_t done = 0;
  read.readahead_size = 2 * 1024 * 1024;
  mvcc::Record record;
  const std::unique_ptr<rocksdb::Iterator> at(db->NewIterator(read, database->families.changes));
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    if (!DecodeRecord(ToView(at->key()), ToView(at->value()), &record)) {
      return Error{.code = ErrorCode::kCorrupt,
                   .message = fmt::format("store damaged: change {} of {} cannot be read", at->key().ToString(true),
                                          options_.dir)};
    }
    if (const Revision before = sequence.last(); !sequence.Continues(record)) {
      return Error{.code = ErrorCode::kCorrupt,
                   .message = fmt::format("store damaged: between revisions {} and {} of {} changes are missing",
                                          before, record.revision, options_.dir)};
    }
    last_ = record.revision;
    sink.OnRecord(record);
    if (++done % kProgressEvery == 0 && options_.progress) options_.progress(done, std::max(about, done));
  }
  if (!at->status().ok()) return FromStatus(at->status(), "reading the changes of " + options_.dir);

  if (!options_.sync && access_ == Access::kWrite) {
    folder_->RemoveDurable();  // Without syncing no revision is guaranteed.
  } else if (const auto durable = folder_->ReadDurable(); durable && *durable > last_) {
    return Error{.code = ErrorCode::kCorrupt,
                 .message = fmt::format("store damaged: {} ends at revision {}, but revision {} was acknowledged",
                                        folder_->db_path(), last_, *durable)};
  }
  loaded_ = true;
  MeasureSpace();
  return {};
}

Result<void> RocksBackend::Commit(const mvcc::CommitBatch& batch) {
  const DatabasePtr database = this->database();
  if (!database) return Closed(options_.dir);
  std::size_t bytes = 0;
  for (const mvcc::Record& record : batch.records)
    bytes += record.key.size() + record.value.size() + kRecordOverheadBytes;
  rocksdb::WriteBatch write(bytes);
  for (const mvcc::Record& record : batch.records) {
    const RecordKey key(record.revision, record.sub);
    EncodeRecord(record, encoded_);
    write.Put(database->families.changes, ToSlice(key.view()), encoded_);
    if (!record.value.empty()) write.Put(database->families.values, ToSlice(key.view()), ToSlice(record.value));
  }
  AddSettings(*database, batch, write);
  if (KS_FAILPOINT("kv/rocks/before-write"))
    return Error{.code = ErrorCode::kInternal, .message = "failpoint kv/rocks/before-write"};
  MakeRoom(static_cast<std::int64_t>(bytes));
  rocksdb::WriteOptions options;
  options.sync = options_.sync;
  const auto status = database->db->Write(options, &write);
  if (!status.ok()) return FromStatus(status, "writing to " + options_.dir);
  if (KS_FAILPOINT("kv/rocks/after-sync"))
    return Error{.code = ErrorCode::kInternal, .message = "failpoint kv/rocks/after-sync"};
  written_since_ += static_cast<std::int64_t>(bytes);
  if (!batch.records.empty()) MarkDurable(batch.records.back().revision);
  return {};
}

void RocksBackend::MakeRoom(std::int64_t bytes) {
  if (folder_->reserve_bytes() == 0 || folder_->FreeBytes() >= bytes + kRoomBytes) return;
  folder_->ReleaseReserve(bytes + kRoomBytes);
}

void RocksBackend::MarkDurable(Revision revision) {
  last_ = revision;
  if (!options_.sync || !loaded_) return;
  const auto now = options_.clock->Monotonic();
  if (now - marked_at_ < kMarkEvery) return;
  marked_at_ = now;
  folder_->WriteDurable(revision, false);
}

Result<void> RocksBackend::Forget(std::span<const mvcc::Location> dead) {
  const DatabasePtr database = this->database();
  if (!database) return Closed(options_.dir);
  rocksdb::WriteBatch write;
  AddDeletions(*database, dead, write);
  for (const mvcc::Location& location : dead) dead_bytes_ += location.size + kRecordOverheadBytes;
  if (KS_FAILPOINT("kv/rocks/forget"))
    return Error{.code = ErrorCode::kInternal, .message = "failpoint kv/rocks/forget"};
  MakeRoom(static_cast<std::int64_t>(write.GetDataSize()));
  const auto status = database->db->Write(rocksdb::WriteOptions(), &write);
  if (!status.ok()) return FromStatus(status, "compacting " + options_.dir);
  return {};
}

// A rewrite that finds no room for its files would stop all writes.
Result<void> RocksBackend::CheckSpaceToRewrite() const {
  const std::int64_t needed = std::min(folder_->UsedBytes(), kRewriteBytesMax) + kRoomBytes;
  const std::int64_t free = folder_->FreeBytes();
  if (free >= needed) return {};
  return Error{
      .code = ErrorCode::kNoSpace,
      .message = fmt::format("no space to rewrite the store in {}: {} bytes are free on its file system, {} are "
                             "needed",
                             options_.dir, free, needed)};
}

Result<void> RocksBackend::Defragment() {
  const DatabasePtr database = this->database();
  if (!database) return Closed(options_.dir);
  KS_RETURN_IF_ERROR(CheckSpaceToRewrite());
  rocksdb::CompactRangeOptions compact;
  compact.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
  const ColumnFamilies& families = database->families;
  for (auto* family : {families.settings, families.changes, families.values}) {
    KS_FAILPOINT("kv/rocks/rewrite-family");
    const auto status = database->db->CompactRange(compact, family, nullptr, nullptr);
    if (!status.ok() && !status.IsIncomplete() && !status.IsShutdownInProgress())
      return FromStatus(status, "defragmenting " + options_.dir);
  }
  return {};
}

void RocksBackend::Compacted(Revision) {
  // Rewriting costs as much as what is alive, so it waits until a quarter of the store is dead.
  MeasureSpace();
  if (dead_bytes_ < std::max(kReclaimBytesMin, used_ / 4) || reclaiming_ || !CheckSpaceToRewrite().ok()) return;
  if (reclaim_.joinable()) reclaim_.join();
  dead_bytes_ = 0;
  reclaiming_ = true;
  const auto rewrite = [this] {
    const auto rewritten = Defragment();
    if (!rewritten.ok()) log::Error("Could not give space of the store back", "err", rewritten.error().message);
    reclaiming_ = false;
  };
  if (options_.executor) return rewrite();  // No threads.
  reclaim_ = std::thread(rewrite);
}

Result<SharedBytes> RocksBackend::Read(const mvcc::Location& location) {
  if (KS_FAILPOINT("kv/rocks/read-value")) return RocksView::Damaged(location, rocksdb::Status::NotFound());
  const DatabasePtr database = this->database();
  if (!database) return Closed(options_.dir);
  rocksdb::PinnableSlice value;
  const RecordKey key(location.revision, location.sub);
  const auto status = database->db->Get(rocksdb::ReadOptions(), database->families.values, ToSlice(key.view()), &value);
  if (!status.ok()) return RocksView::Damaged(location, status);
  if (value.size() != location.size) return RocksView::Damaged(location, rocksdb::Status::NotFound());
  return SharedBytes(ToView(value));
}

std::unique_ptr<mvcc::Backend::View> RocksBackend::Pin() {
  if (DatabasePtr database = this->database()) return std::make_unique<RocksView>(std::move(database));
  return std::make_unique<ClosedView>(options_.dir);
}

void RocksBackend::MeasureSpace() {
  used_ = folder_->UsedBytes();
  free_ = folder_->FreeBytes();
  const std::int64_t reserve = options_.deletion_reserve_bytes;
  if (access_ == Access::kWrite && folder_->reserve_bytes() < reserve &&
      free_ > options_.disk_reserve_bytes + 2 * reserve) {
    folder_->FillReserve(reserve);
    free_ = folder_->FreeBytes();
  }
  written_since_ = 0;
  measured_at_ = options_.clock->Monotonic();
}

Result<void> RocksBackend::CheckSpace(std::int64_t bytes) {
  if (written_since_ > kMeasureEveryBytes || options_.clock->Monotonic() - measured_at_ > kMeasureEvery) MeasureSpace();
  const std::int64_t more = written_since_ + bytes;
  if (options_.quota_bytes > 0 && used_ + more > options_.quota_bytes) return MakeError(ErrorCode::kNoSpace);
  if (free_ - more < options_.disk_reserve_bytes) return MakeError(ErrorCode::kNoSpace);
  return {};
}

mvcc::Space RocksBackend::GetSpace() {
  mvcc::Space space{.total = folder_->UsedBytes()};
  const DatabasePtr database = this->database();
  if (!database) return space;
  const ColumnFamilies& families = database->families;
  for (auto* family : {families.settings, families.changes, families.values}) {
    std::uint64_t live = 0;
    std::uint64_t memory = 0;
    database->db->GetIntProperty(family, rocksdb::DB::Properties::kEstimateLiveDataSize, &live);
    database->db->GetIntProperty(family, rocksdb::DB::Properties::kSizeAllMemTables, &memory);
    space.in_use += static_cast<std::int64_t>(live + memory);
  }
  space.in_use = std::min(space.in_use, space.total);
  return space;
}

}  // namespace keelson::kv::rocks
