#include "app/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <set>

#include "base/go_errno.h"
#include "base/pem.h"
#include "base/read_file.h"

namespace keelson::app {
namespace {

// As Go words it: `open /x: no such file or directory`.
Error SystemError(std::string_view action, const std::string& path, int code) {
  return Error(std::string(action) + " " + path + ": " + base::GoErrno(code));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { Close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int Close() {
    const int result = fd_ >= 0 ? ::close(fd_) : 0;
    fd_ = -1;
    return result;
  }

 private:
  int fd_;
};

std::string Parent(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

bool FileExists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::string FileIdentity(const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return "absent";
  return std::to_string(info.st_size) + "/" + std::to_string(info.st_mtim.tv_sec) + "." +
         std::to_string(info.st_mtim.tv_nsec) + "/" + std::to_string(info.st_dev) + ":" + std::to_string(info.st_ino);
}

Outcome<std::string, Error> ReadSmallFile(const std::string& path) {
  auto text = base::ReadFile(path);
  if (!text.ok()) return Error(text.error());
  return *std::move(text);
}

Outcome<void, Error> WriteFileAtomically(const std::string& path, std::string_view bytes, mode_t mode) {
  std::string temporary = path + ".XXXXXX";
  Descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (file.get() < 0) return SystemError("cannot write", path, errno);
  auto fail = [&](int code) {
    ::unlink(temporary.c_str());
    return SystemError("cannot write", path, code);
  };
  if (::fchmod(file.get(), mode) != 0) return fail(errno);
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail(errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(file.get()) != 0) return fail(errno);
  if (file.Close() != 0) return fail(errno);
  if (::rename(temporary.c_str(), path.c_str()) != 0) return fail(errno);
  Descriptor folder(::open(Parent(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0 || ::fsync(folder.get()) != 0) return SystemError("cannot sync the folder of", path, errno);
  return {};
}

Outcome<void, Error> MakeDirectories(const std::string& path, mode_t mode) {
  if (path.empty()) return Error(std::string("cannot make a folder without a name"));
  for (std::size_t at = 1; at <= path.size(); ++at) {
    if (at != path.size() && path[at] != '/') continue;
    const std::string part = path.substr(0, at);
    if (::mkdir(part.c_str(), mode) == 0 || errno == EEXIST) continue;
    return SystemError("cannot make folder", part, errno);
  }
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return SystemError("cannot use folder", path, errno);
  if (!S_ISDIR(info.st_mode)) return Error("cannot use folder " + path + ": it is not a folder");
  return {};
}

namespace {

// The certificates of a PEM file, as DER: the same certificate may be spelled in many ways.
std::set<std::string> CertificatesOf(const std::string& path) {
  std::set<std::string> certificates;
  const auto text = ReadSmallFile(path);
  if (!text.ok()) return certificates;
  for (base::PEMBlock& block : base::DecodeAllPEM(*text)) {
    if (block.type == "CERTIFICATE" && !block.has_headers) certificates.insert(std::move(block.bytes));
  }
  return certificates;
}

}  // namespace

bool CertificatesOverlap(const std::string& one, const std::string& other) {
  const auto certificates = CertificatesOf(one);
  const auto others = CertificatesOf(other);
  return std::ranges::any_of(certificates, [&](const std::string& each) { return others.contains(each); });
}

}  // namespace keelson::app
