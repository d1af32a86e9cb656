#include "registry/core/image_reference.h"

#include <algorithm>
#include <string>

#include "re2/re2.h"

namespace keelson::registry::core {
namespace {

constexpr char kReference[] =
    R"(^((?:(?:(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(?:\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))*|\[(?:[a-fA-F0-9:]+)\])(?::[0-9]+)?/)?)"
    R"([a-z0-9]+(?:(?:[._]|__|[-]+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|[-]+)[a-z0-9]+)*)*))"
    R"((?::([\w][\w.-]{0,127}))?(?:@([A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[[:xdigit:]]{32,}))?$)";
constexpr std::size_t kNameBytesMax = 255;

bool IsLower(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return c >= 'A' && c <= 'Z'; });
}

// "nginx" is "docker.io/library/nginx": a first part without a dot or port that is not localhost is not a registry.
std::string Normalized(std::string_view image) {
  const std::size_t slash = image.find('/');
  const std::string_view first = image.substr(0, std::min(slash, image.size()));
  const bool has_registry = slash != std::string_view::npos && (first.find_first_of(".:") != std::string_view::npos ||
                                                                first == "localhost" || !IsLower(first));
  const std::string_view rest = has_registry ? image.substr(slash + 1) : image;
  if (!IsLower(rest.substr(0, std::min(rest.find(':'), rest.size())))) return {};
  if (has_registry) return std::string(image);
  return (slash == std::string_view::npos ? "docker.io/library/" : "docker.io/") + std::string(image);
}

}  // namespace

bool PullsLatest(std::string_view image) {
  // Another tag without a digest: not "latest" or not a reference, so the pattern need not
  // run.
  const std::size_t colon = image.rfind(':');
  if (colon != std::string_view::npos && image.find('@') == std::string_view::npos &&
      image.find('/', colon) == std::string_view::npos && image.substr(colon + 1) != "latest") {
    return false;
  }
  static const re2::RE2 kPattern(kReference);
  static const re2::RE2 kIdentifier("^[a-f0-9]{64}$");
  if (re2::RE2::FullMatch(re2::StringPiece(image.data(), image.size()), kIdentifier)) return false;
  const std::string reference = Normalized(image);
  std::string name, tag, digest;
  if (!re2::RE2::FullMatch(reference, kPattern, &name, &tag, &digest) || name.size() > kNameBytesMax) return false;
  return tag == "latest" || (tag.empty() && digest.empty());
}

}  // namespace keelson::registry::core
