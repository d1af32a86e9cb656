#include "app/time_zones.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace keelson::app {
namespace {

TEST(HostTimeZones, ReadsTheHostsDatabase) {
  const HostTimeZones zones;
  if (!zones.available()) GTEST_SKIP() << "no tz database on this machine";
  const cel::TimeZone* new_york = zones.Find("America/New_York");
  ASSERT_NE(new_york, nullptr);
  EXPECT_EQ(new_york->OffsetAt(1705320000), -5 * 3600);  // 2024-01-15
  EXPECT_EQ(new_york->OffsetAt(1721044800), -4 * 3600);  // 2024-07-15
  EXPECT_EQ(zones.Find("America/New_York"), new_york);
}

TEST(HostTimeZones, RefusesNamesOutsideOfTheDatabase) {
  const HostTimeZones zones;
  for (const char* name : {"", "/etc/passwd", "\\x", "../passwd", "Europe/../../etc/passwd", "No/Such", "Europe"}) {
    SCOPED_TRACE(name);
    EXPECT_EQ(zones.Find(name), nullptr);
  }
  EXPECT_EQ(zones.Find(std::string(5000, 'x')), nullptr);
}

TEST(HostTimeZones, OtherFilesAreUnknownZones) {
  const auto folder = std::filesystem::temp_directory_path() / ("keelson-zones-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "text") << "not a zone";
  std::ofstream(folder / "large") << "TZif" << std::string(HostTimeZones::kZoneFileBytesMax, '\0');
  const HostTimeZones zones({folder.string()});
  EXPECT_TRUE(zones.available());
  EXPECT_EQ(zones.Find("text"), nullptr);
  EXPECT_EQ(zones.Find("large"), nullptr);
  EXPECT_FALSE(HostTimeZones({folder.string() + "/absent"}).available());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace keelson::app
