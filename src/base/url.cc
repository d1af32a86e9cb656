#include "base/url.h"

#include <algorithm>

#include "base/strings.h"

namespace keelson::base {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> Unescape(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = HexDigit(text[i + 1]);
      const int low = HexDigit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      out += static_cast<char>(high << 4 | low);
      i += 2;
    } else if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else {
      out += text[i];
    }
  }
  return out;
}

bool IsUnreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '.' || c == '~';
}

}  // namespace

std::optional<std::string> PathUnescape(std::string_view text) { return Unescape(text, false); }
std::optional<std::string> QueryUnescape(std::string_view text) { return Unescape(text, true); }

std::string PercentEncode(std::string_view text, std::string_view also_plain) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (IsUnreserved(c) || also_plain.find(c) != std::string_view::npos) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

std::string QueryEscape(std::string_view text) {
  std::string out = PercentEncode(text, " ");
  std::ranges::replace(out, ' ', '+');
  return out;
}

std::string PathEscape(std::string_view text) { return PercentEncode(text, "$&+:=@"); }
std::string EscapePath(std::string_view path) { return PercentEncode(path, "$&+,/:;=@"); }

Query::Query(std::string_view raw) {
  while (!raw.empty()) {
    const auto end = raw.find('&');
    const std::string_view pair = raw.substr(0, end);
    raw.remove_prefix(end == std::string_view::npos ? raw.size() : end + 1);
    if (pair.empty() || pair.find(';') != std::string_view::npos) continue;
    const auto equals = pair.find('=');
    auto key = QueryUnescape(pair.substr(0, equals));
    auto value = QueryUnescape(equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1));
    if (key && value) pairs_.emplace_back(*std::move(key), *std::move(value));
  }
}

bool Query::Has(std::string_view key) const {
  for (const auto& pair : pairs_) {
    if (pair.first == key) return true;
  }
  return false;
}

std::string_view Query::Get(std::string_view key) const {
  for (const auto& pair : pairs_) {
    if (pair.first == key) return pair.second;
  }
  return {};
}

std::vector<std::string_view> Query::Values(std::string_view key) const {
  std::vector<std::string_view> values;
  for (const auto& pair : pairs_) {
    if (pair.first == key) values.push_back(pair.second);
  }
  return values;
}

}  // namespace keelson::base
