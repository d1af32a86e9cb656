#include "app/time_zones.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace keelson::app {
namespace {

constexpr std::size_t kNameBytesMax = 255;

// time.LoadLocation refuses names that lead out of the database.
bool IsZoneName(std::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax && name.find('\0') == name.npos && name[0] != '/' &&
         name[0] != '\\' && name.find("..") == name.npos;
}

// The bytes of a regular file of at most `bytes_max`; "" otherwise.
std::string ReadRegularFile(const std::string& path, std::size_t bytes_max) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return {};
  std::string bytes;
  struct stat status{};
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0 &&
      static_cast<std::size_t>(status.st_size) <= bytes_max) {
    bytes.resize(static_cast<std::size_t>(status.st_size));
    const ssize_t got = read(file, bytes.data(), bytes.size());
    bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  }
  close(file);
  return bytes;
}

}  // namespace

HostTimeZones::HostTimeZones()
    : HostTimeZones({"/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/usr/lib/locale/TZ", "/etc/zoneinfo"}) {}

HostTimeZones::HostTimeZones(std::vector<std::string> folders) : folders_(std::move(folders)) {}

const cel::TimeZone* HostTimeZones::Find(std::string_view name) const {
  if (!IsZoneName(name)) return nullptr;
  const std::string key(name);
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = zones_.find(key); found != zones_.end()) return found->second.get();
    if (zones_.size() >= kZonesMax) return nullptr;
  }
  auto zone = Read(name);
  if (zone == nullptr) return nullptr;
  const std::lock_guard lock(mutex_);
  return zones_.try_emplace(key, std::move(zone)).first->second.get();
}

std::unique_ptr<const cel::TimeZone> HostTimeZones::Read(std::string_view name) const {
  for (const std::string& folder : folders_) {
    const std::string bytes = ReadRegularFile(folder + "/" + std::string(name), kZoneFileBytesMax);
    if (bytes.empty()) continue;
    if (auto zone = cel::TimeZone::Parse(bytes)) return std::make_unique<const cel::TimeZone>(*std::move(zone));
  }
  return nullptr;
}

bool HostTimeZones::available() const {
  return std::ranges::any_of(folders_, [](const std::string& folder) { return access(folder.c_str(), X_OK) == 0; });
}

}  // namespace keelson::app
