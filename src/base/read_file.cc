#include "base/read_file.h"

#include <cctype>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace keelson::base {
namespace {

using Text = Outcome<std::string, std::string>;

Text Failed(const char* operation, const std::string& path, int error) {
  std::string reason = std::generic_category().message(error);
  if (!reason.empty()) reason[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(reason[0])));
  return Text(std::unexpect, operation + (" " + path) + ": " + reason);
}

}  // namespace

// By system calls: the iterators of std::ifstream throw where the path is a directory.
Text ReadFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Failed("open", path, errno);
  std::string text;
  char buffer[16 * 1024];
  ssize_t got = 0;
  while ((got = ::read(fd, buffer, sizeof(buffer))) > 0 || (got < 0 && errno == EINTR)) {
    if (got > 0) text.append(buffer, static_cast<std::size_t>(got));
  }
  const int error = got < 0 ? errno : 0;
  ::close(fd);
  if (error != 0) return Failed("read", path, error);
  return Text(std::in_place, std::move(text));
}

}  // namespace keelson::base
