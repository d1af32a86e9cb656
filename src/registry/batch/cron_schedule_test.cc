#include "registry/batch/cron_schedule.h"

#include <gtest/gtest.h>

#include "registry/batch/time_zones.h"

namespace keelson::registry::batch {
namespace {

TEST(CronSchedule, Problems) {
  struct Case {
    const char* schedule;
    const char* want;
  };
  constexpr Case kCases[] = {
      {"* * * * *", ""},
      {"*/5 1,2-4 ? jan-MAR sun", ""},
      {"@hourly", ""},
      {"@every 1h30m", ""},
      {"TZ=UTC 0 0 * * *", ""},
      {"", "empty spec string"},
      {"x * *", "expected exactly 5 fields, found 3: [x * *]"},
      {"0 0 * * 8", "end of range (8) above maximum (6): 8"},
      {"0 0 0 * *", "beginning of range (0) below minimum (1): 0"},
      {"5-2 * * * *", "beginning of range (5) beyond end of range (2): 5-2"},
      {"*/0 * * * *", "step of range should be a positive number: */0"},
      {"1-2-3 * * * *", "too many hyphens: 1-2-3"},
      {"1/2/3 * * * *", "too many slashes: 1/2/3"},
      {"a * * * *", "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax"},
      {"@never", "unrecognized descriptor: @never"},
      {"TZ=Mars/One 0 0 * * *", "provided bad location Mars/One: unknown time zone Mars/One"},
  };
  for (const Case& c : kCases) EXPECT_EQ(CronScheduleProblem(c.schedule), c.want) << c.schedule;
}

TEST(TimeZones, Names) {
  for (const char* name : {"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Africa/Abidjan", "Zulu"})
    EXPECT_TRUE(IsTimeZone(name)) << name;
  for (const char* name : {"", "Mars/One", "europe/berlin", "Local"}) EXPECT_FALSE(IsTimeZone(name)) << name;
}

}  // namespace
}  // namespace keelson::registry::batch
