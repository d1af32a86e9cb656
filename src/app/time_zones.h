// The host's tz database for expressions: timestamp.getHours("America/New_York"). Files are read when a zone is first
// named and kept; names are Go's (time.LoadLocation).
// Thread safety: any thread.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "cel/temporal.h"

namespace keelson::app {

class HostTimeZones final : public cel::TimeZones {
 public:
  static constexpr std::size_t kZonesMax = 4096;              // a host has about 1 800 names; those above are unknown
  static constexpr std::size_t kZoneFileBytesMax = 64 << 10;  // the largest is 4 KiB

  HostTimeZones();  // where Go looks: /usr/share/zoneinfo and its relatives
  explicit HostTimeZones(std::vector<std::string> folders);
  // Null where no folder has the zone, or its file is not TZif. Unknown names are not kept: expressions may make any.
  const cel::TimeZone* Find(std::string_view name) const override;
  bool available() const;  // whether a folder is there at all

 private:
  std::unique_ptr<const cel::TimeZone> Read(std::string_view name) const;
  const std::vector<std::string> folders_;
  mutable std::mutex mutex_;  // held for the look-up, not while a file is read
  mutable base::StringMap<std::unique_ptr<const cel::TimeZone>> zones_;
};

}  // namespace keelson::app
