#include "kv/etcd_version.h"

#include <array>
#include <charconv>

namespace keelson::kv {

bool ProgressOnRequestIsOrdered(std::string_view version) {
  std::array<int, 3> number{};
  const char* at = version.data();
  const char* const end = at + version.size();
  for (std::size_t i = 0; i < number.size(); ++i) {
    if (i > 0 && (at == end || *at++ != '.')) return false;
    const auto parsed = std::from_chars(at, end, number[i]);
    if (parsed.ec != std::errc() || number[i] < 0) return false;
    at = parsed.ptr;
  }
  // A version before the release it names does not have what came with that release.
  if (at != end && *at != '+') return number > std::array{3, 5, 13} && number[2] > 0;
  if (number < std::array{3, 5, 0}) return number >= std::array{3, 4, 31};
  return number >= std::array{3, 5, 13};
}

}  // namespace keelson::kv
