#include "base/read_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/go_errno.h"

namespace keelson::base {
namespace {

using ReadResult = Outcome<std::string, std::string>;

ReadResult Failed(const char* action, const std::string& path, const std::string& reason) {
  return ReadResult(std::unexpect, std::string(action) + " " + path + ": " + reason);
}

ReadResult ReadAll(int fd, const std::string& path) {
  std::string bytes;
  char buffer[16384];
  for (;;) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failed("read", path, GoErrno(errno));
    if (got == 0) return ReadResult(std::in_place, std::move(bytes));
    bytes.append(buffer, static_cast<std::size_t>(got));
    if (bytes.size() > kReadFileMax)
      return Failed("read", path, "larger than " + std::to_string(kReadFileMax) + " bytes");
  }
}

}  // namespace

Outcome<std::string, std::string> ReadFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Failed("open", path, GoErrno(errno));
  auto text = ReadAll(fd, path);
  ::close(fd);
  return text;
}

}  // namespace keelson::base
