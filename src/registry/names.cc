#include "registry/names.h"

namespace keelson::registry {

std::string GenerateName(std::string_view base, base::Random& random) {
  static constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  static constexpr std::size_t kBaseMax = 58;
  static constexpr int kSuffix = 5;
  std::string name(base.substr(0, kBaseMax));
  for (int i = 0; i < kSuffix; ++i) name += kAlphabet[random.Below(kAlphabet.size())];
  return name;
}

}  // namespace keelson::registry
