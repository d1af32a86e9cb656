#include "console/file_source.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <utility>

namespace keelson::console {
namespace {

constexpr std::size_t kChunkBytes = 256 * 1024;

// Shared with the thread that reads, which may outlive the response.
struct File {
  explicit File(int with) : fd(with) {}
  ~File() { ::close(fd); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const int fd;
  std::mutex mutex;
  bool reading = false, ended = false, failed = false;
  std::string chunk;  // read, not sent yet
  std::function<void()> wake;
};

void ReadChunk(const std::shared_ptr<File>& file) {
  std::string chunk(kChunkBytes, '\0');
  ssize_t got = -1;
  do got = ::read(file->fd, chunk.data(), chunk.size());
  while (got < 0 && errno == EINTR);
  const std::lock_guard lock(file->mutex);
  file->reading = false;
  file->failed = got < 0;
  file->ended = got == 0;
  if (got > 0) {
    chunk.resize(static_cast<std::size_t>(got));
    file->chunk = std::move(chunk);
  }
  file->wake();
}

class FileSource final : public http::BodySource {
 public:
  FileSource(int fd, std::shared_ptr<async::BlockingPool> pool)
      : file_(std::make_shared<File>(fd)), pool_(std::move(pool)) {}

  void Start(std::function<void()> wake) override { file_->wake = std::move(wake); }
  State Pull(std::size_t, std::vector<http::SharedBytes>& out) override {
    const std::lock_guard lock(file_->mutex);
    if (file_->failed) return State::kAbort;
    if (!file_->chunk.empty()) out.push_back(http::SharedBytes::FromString(std::exchange(file_->chunk, {})));
    if (file_->ended) return State::kDone;
    if (!file_->reading) {
      file_->reading = true;
      pool_->Post([file = file_] { ReadChunk(file); });
    }
    return State::kPending;
  }

 private:
  const std::shared_ptr<File> file_;
  const std::shared_ptr<async::BlockingPool> pool_;
};

}  // namespace

Outcome<std::unique_ptr<http::BodySource>, std::string> NewFileSource(const std::string& path,
                                                                      std::shared_ptr<async::BlockingPool> pool) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const int problem = errno;
  ::unlink(path.c_str());
  if (fd < 0) return "cannot read " + path + ": " + ::strerror(problem);
  return std::unique_ptr<http::BodySource>(std::make_unique<FileSource>(fd, std::move(pool)));
}

}  // namespace keelson::console
