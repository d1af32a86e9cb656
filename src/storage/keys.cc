#include "storage/keys.h"

#include "base/split_view.h"
#include "base/strings.h"
#include "meta/status.h"

namespace keelson::storage {
namespace {

// Whether "." or ".." is among the parts of the key.
bool HasDots(std::string_view key) {
  for (const std::string_view piece : base::SplitView(key, '/')) {
    if (piece == "." || piece == "..") return true;
  }
  return false;
}

}  // namespace

Error UntypedError(std::string_view message) { return StatusError(meta::NewPlainError(message)); }

std::string PathPrefix(std::string_view etcd_prefix) {
  std::string path = "/";
  for (const std::string_view piece : base::SplitView(etcd_prefix, '/')) {
    if (!piece.empty()) path.append(piece).push_back('/');
  }
  return path;
}

Outcome<std::string, Error> PrepareKey(std::string_view resource_prefix, std::string_view key, bool recursive) {
  if (HasDots(key)) return UntypedError("invalid key: " + base::GoQuote(key));
  if (key.empty() || key == "/") return UntypedError("empty key: " + base::GoQuote(key));
  std::string prepared(key);
  if (recursive && !prepared.ends_with('/')) prepared += '/';
  const bool inside = prepared.starts_with(resource_prefix) &&
                      (prepared.size() == resource_prefix.size() || resource_prefix.ends_with('/') ||
                       prepared[resource_prefix.size()] == '/');
  if (!inside) {
    return UntypedError("invalid key: " + base::GoQuote(key) +
                        " lacks resource prefix: " + base::GoQuote(resource_prefix));
  }
  return prepared;
}

Outcome<std::uint64_t, std::string> ParseResourceVersion(std::string_view text) {
  if (text.empty() || text == "0") return std::uint64_t{0};
  if (const auto number = base::ParseUint64(text)) return *number;
  bool digits = true;
  for (const char c : text) digits = digits && c >= '0' && c <= '9';
  const std::string quoted = base::GoQuote(text);
  return "resourceVersion: Invalid value: " + quoted + ": strconv.ParseUint: parsing " + quoted +
         (digits ? ": value out of range" : ": invalid syntax");
}

}  // namespace keelson::storage
