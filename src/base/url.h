// Percent-encoding and query strings, as Go's net/url reads and writes them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace keelson::base {

std::optional<std::string> PathUnescape(std::string_view text);   // empty on a bad escape
std::optional<std::string> QueryUnescape(std::string_view text);  // '+' is a space
std::string QueryEscape(std::string_view text);
std::string PathEscape(std::string_view text);  // one segment
std::string EscapePath(std::string_view path);  // a whole path: url.URL.EscapedPath
// Percent-encodes all bytes but letters, digits, "-_.~" and those of `also_plain`.
std::string PercentEncode(std::string_view text, std::string_view also_plain);

// The values of a query string in order; pairs with a bad escape or a ';' are left out, as Go's ParseQuery leaves them
// out of its map.
class Query {
 public:
  Query() = default;
  explicit Query(std::string_view raw);
  bool Has(std::string_view key) const;
  std::string_view Get(std::string_view key) const;  // the first value, "" when absent
  std::vector<std::string_view> Values(std::string_view key) const;
  const std::vector<std::pair<std::string, std::string>>& pairs() const { return pairs_; }

 private:
  std::vector<std::pair<std::string, std::string>> pairs_;
};

}  // namespace keelson::base
