#include "console/store_pages.h"

#include <atomic>
#include <functional>

#include "async/blocking_pool.h"
#include "console/file_source.h"
#include "console/paths.h"
#include "endpoints/page.h"
#include "object/json_text.h"

namespace keelson::console {
namespace {

using endpoints::ExchangePtr;
using endpoints::Page;
using Result = StoreCare::Result;

std::string Quoted(std::string_view text) {
  std::string out;
  object::AppendJSONString(out, text);
  return out;
}

std::string ToJSON(const StoreFigures& figures) {
  const auto number = [](std::string_view name, auto value) {
    return ",\"" + std::string(name) + "\":" + std::to_string(value);
  };
  std::string out = std::string("{\"embedded\":") + (figures.embedded ? "true" : "false") +
                    number("revision", figures.revision) + number("compactRevision", figures.compact_revision) +
                    number("bytes", figures.bytes) + number("bytesInUse", figures.bytes_in_use);
  if (figures.embedded) {
    out += number("quotaBytes", figures.quota_bytes) + number("diskFreeBytes", figures.disk_free_bytes) +
           ",\"backupFolder\":" + Quoted(figures.backup_folder) + number("backups", figures.backups) +
           number("backupIntervalSeconds", figures.backup_interval_seconds);
  }
  if (const auto& last = figures.last_backup) {
    out += ",\"lastBackup\":{\"name\":" + Quoted(last->name) + number("bytes", last->bytes) +
           number("ageSeconds", last->age_seconds) + "}";
  }
  out += ",\"certificates\":[";
  for (const auto& certificate : figures.certificates) {
    out += std::string(out.ends_with('[') ? "" : ",") + "{\"flag\":" + Quoted(certificate.flag) +
           ",\"file\":" + Quoted(certificate.file) + number("secondsLeft", certificate.seconds_left) + "}";
  }
  return out + "]}\n";
}

Page JSON(int status, std::string text) {
  Page page = endpoints::JSONPage(base::SharedBytes::FromString(std::move(text)));
  page.status = status;
  return page;
}

Page Failed(int status, std::string_view message) {
  return JSON(status, R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":)" +
                          Quoted(message) + ",\"code\":" + std::to_string(status) + "}\n");
}

// Runs one piece of work at a time on its own thread.
class Worker {
 public:
  explicit Worker(std::shared_ptr<StoreCare> care) : care_(std::move(care)) {}
  StoreCare& care() { return *care_; }
  const std::shared_ptr<async::BlockingPool>& pool() const { return pool_; }

  // Nothing while other work is under way.
  Awaitable<std::optional<Result>> Run(Result (StoreCare::*work)()) {
    if (busy_->exchange(true)) co_return std::nullopt;
    co_return co_await pool_->Run([care = care_, busy = busy_, work] {
      auto done = (care.get()->*work)();
      *busy = false;  // here, not in the coroutine: its client may be gone
      return done;
    });
  }

 private:
  const std::shared_ptr<StoreCare> care_;
  const std::shared_ptr<std::atomic<bool>> busy_ = std::make_shared<std::atomic<bool>>(false);
  const std::shared_ptr<async::BlockingPool> pool_ = std::make_shared<async::BlockingPool>("store-care", 1);
};
using WorkerPtr = std::shared_ptr<Worker>;

Awaitable<meta::Result<Page>> ShowFigures(WorkerPtr worker) {
  const auto figures = co_await worker->care().Figures();
  co_return figures.ok() ? JSON(200, ToJSON(*figures)) : Failed(500, figures.error());
}

enum class As : std::uint8_t { kSentence, kFile };

Page Download(const WorkerPtr& worker, const std::string& path) {
  auto source = NewFileSource(path, worker->pool());
  if (!source.ok()) return Failed(500, source.error());
  const std::string name = path.substr(path.rfind('/') + 1);
  Page page{.media_type = "application/x-tar", .stream = *std::move(source)};
  page.headers.Add("X-Content-Type-Options", "nosniff");
  page.headers.Add("Content-Disposition", "attachment; filename=\"" + name + "\"");
  page.headers.Add("Cache-Control", "no-store");
  return page;
}

Awaitable<meta::Result<Page>> Work(WorkerPtr worker, Result (StoreCare::*work)(), As as) {
  if (!worker->care().embedded()) co_return Failed(409, "the store is an etcd: care for it with etcd's own tools");
  const auto done = co_await worker->Run(work);
  if (!done) co_return Failed(409, "other work on the store is under way: wait for its end");
  if (!done->ok()) co_return Failed(500, done->error());
  if (as == As::kFile) co_return Download(worker, (*done)->text);
  co_return JSON(200, "{\"message\":" + Quoted((*done)->text) + "}\n");
}

}  // namespace

void InstallStore(server::PathMux& mux, std::shared_ptr<StoreCare> care) {
  const auto worker = std::make_shared<Worker>(std::move(care));
  const std::string root = std::string(kAPIPrefix) + "store";
  mux.Unlisted(root,
               endpoints::ServePageTask([worker](ExchangePtr) { return ShowFigures(worker); }, {.method = "GET"}));
  const auto offer = [&](std::string_view name, Result (StoreCare::*work)(), As as) {
    mux.Unlisted(root + "/" + std::string(name),
                 endpoints::ServePageTask([worker, work, as](ExchangePtr) { return Work(worker, work, as); },
                                          {.method = "POST"}));
  };
  offer("backup", &StoreCare::Save, As::kSentence);
  offer("check", &StoreCare::Check, As::kSentence);
  offer("defragment", &StoreCare::Defragment, As::kSentence);
  offer("download", &StoreCare::Export, As::kFile);
}

}  // namespace keelson::console
