#include "base/go_url.h"

#include <algorithm>

#include "base/strings.h"
#include "base/url.h"

namespace keelson::base {
namespace {

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string BadEscape(std::string_view text) {
  const auto hex = [](char c) { return IsDigit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && (i + 2 >= text.size() || !hex(text[i + 1]) || !hex(text[i + 2])))
      return "invalid URL escape " + GoQuote(text.substr(i, 3));
  }
  return {};
}

// Splits off the scheme; returns Go's error, "" for none.
std::string TakeScheme(std::string_view& text, std::string& scheme) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (IsLetter(c)) continue;
    if (IsDigit(c) || c == '+' || c == '-' || c == '.') {
      if (i == 0) return {};
      continue;
    }
    if (c != ':') return {};
    if (i == 0) return "missing protocol scheme";
    scheme = ToLower(text.substr(0, i));
    text.remove_prefix(i + 1);
    return {};
  }
  return {};
}

std::string PortError(std::string_view after_host) {
  if (after_host.empty()) return {};
  if (after_host[0] == ':' && std::ranges::all_of(after_host.substr(1), IsDigit)) return {};
  return "invalid port " + GoQuote(after_host) + " after host";
}

std::string HostError(std::string_view host) {
  if (host.starts_with('[')) {
    const auto end = host.rfind(']');
    if (end == std::string_view::npos) return "missing ']' in host";
    return PortError(host.substr(end + 1));
  }
  if (const auto colon = host.rfind(':'); colon != std::string_view::npos) {
    if (std::string error = PortError(host.substr(colon)); !error.empty()) return error;
  }
  constexpr std::string_view kBad = " \"<>\\^`{|}";
  for (const char c : host) {
    if (kBad.find(c) != std::string_view::npos)
      return "invalid character " + GoQuote(std::string_view(&c, 1)) + " in host name";
  }
  return BadEscape(host);
}

std::string ParseAuthority(std::string_view authority, URL& url) {
  const auto at = authority.rfind('@');
  if (at != std::string_view::npos) {
    const std::string_view info = authority.substr(0, at);
    authority.remove_prefix(at + 1);
    url.has_user = true;
    const auto colon = info.find(':');
    auto user = PathUnescape(info.substr(0, colon));
    if (!user) return BadEscape(info);
    url.user = *std::move(user);
    if (colon != std::string_view::npos) {
      auto password = PathUnescape(info.substr(colon + 1));
      if (!password) return BadEscape(info);
      url.has_password = true;
      url.password = *std::move(password);
    }
  }
  url.host = authority;
  return HostError(authority);
}

std::string ParseInto(std::string_view text, URL& url) {
  if (std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }))
    return "net/url: invalid control character in URL";
  if (const auto hash = text.find('#'); hash != std::string_view::npos) {
    url.fragment = text.substr(hash + 1);
    text = text.substr(0, hash);
  }
  if (std::string error = TakeScheme(text, url.scheme); !error.empty()) return error;
  if (const auto question = text.find('?'); question != std::string_view::npos) {
    url.raw_query = text.substr(question + 1);
    text = text.substr(0, question);
  }
  if (!text.starts_with('/') && url.scheme.empty()) {
    const auto segment = text.substr(0, text.find('/'));
    if (segment.find(':') != std::string_view::npos) return "first path segment in URL cannot contain colon";
  }
  if (text.starts_with("//") && (!url.scheme.empty() || !text.starts_with("///"))) {
    text.remove_prefix(2);
    const auto slash = text.find('/');
    if (std::string error = ParseAuthority(text.substr(0, slash), url); !error.empty()) return error;
    text = slash == std::string_view::npos ? std::string_view() : text.substr(slash);
  }
  auto path = PathUnescape(text);
  if (!path) return BadEscape(text);
  url.path = *std::move(path);
  return {};
}

}  // namespace

std::string URL::Hostname() const {
  if (host.starts_with('[')) {
    const auto end = host.rfind(']');
    return end == std::string::npos ? host : host.substr(1, end - 1);
  }
  return host.substr(0, host.rfind(':'));
}

std::string URL::Port() const {
  const auto from = host.starts_with('[') ? host.rfind(']') : 0;
  const auto colon = host.rfind(':');
  return colon == std::string::npos || colon < from ? std::string() : host.substr(colon + 1);
}

std::string URL::EscapedPath() const { return EscapePath(path); }

std::string URL::RequestTarget() const {
  std::string target = EscapedPath();
  if (target.empty()) target = "/";
  return raw_query.empty() ? target : target + "?" + raw_query;
}

std::string URL::ToString() const {
  std::string out;
  if (!scheme.empty()) out += scheme + ":";
  if (!scheme.empty() || !host.empty() || has_user) {
    if (!host.empty() || !path.empty() || has_user) out += "//";
    if (has_user) {
      out += PathEscape(user);
      if (has_password) out += ":" + PathEscape(password);
      out += "@";
    }
    out += host;
  }
  const std::string escaped = EscapedPath();
  if (!escaped.empty() && escaped[0] != '/' && !host.empty()) out += '/';
  out += escaped;
  if (!raw_query.empty()) out += "?" + raw_query;
  if (!fragment.empty()) out += "#" + fragment;
  return out;
}

Outcome<URL, std::string> ParseURL(std::string_view text) {
  URL url;
  std::string error = ParseInto(text, url);
  if (!error.empty()) return "parse " + GoQuote(text) + ": " + error;
  return url;
}

}  // namespace keelson::base
