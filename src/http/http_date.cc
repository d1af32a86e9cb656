#include "http/http_date.h"

#include <array>
#include <cstdio>
#include <ctime>

namespace keelson::http {

std::string_view CurrentDate() {
  thread_local std::time_t second = 0;
  thread_local std::array<char, 64> text{};
  thread_local std::size_t size = 0;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  if (now.tv_sec != second) {
    second = now.tv_sec;
    std::tm parts{};
    ::gmtime_r(&second, &parts);
    static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                              "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    size = static_cast<std::size_t>(std::snprintf(text.data(), text.size(), "%s, %02d %s %04d %02d:%02d:%02d GMT",
                                                  kDays[parts.tm_wday], parts.tm_mday, kMonths[parts.tm_mon],
                                                  parts.tm_year + 1900, parts.tm_hour, parts.tm_min, parts.tm_sec));
  }
  return {text.data(), size};
}

}  // namespace keelson::http
