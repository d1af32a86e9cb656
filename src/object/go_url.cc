#include "object/go_url.h"

#include <utility>

#include "base/strings.h"
#include "object/netip.h"

namespace keelson::object {
namespace {

enum class Mode { kPath, kHost, kZone, kUserPassword, kFragment };

int Hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool In(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }

bool ShouldEscape(char c, Mode mode) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return false;
  if ((mode == Mode::kHost || mode == Mode::kZone) && In(c, "!$&'()*+,;=:[]<>\"")) return false;
  if (In(c, "-_.~")) return false;
  if (In(c, "$&+,/:;=?@")) {
    switch (mode) {
      case Mode::kPath:
        return c == '?';
      case Mode::kUserPassword:
        return In(c, "@/?:");
      case Mode::kFragment:
        return false;
      default:
        return true;
    }
  }
  return mode != Mode::kFragment || !In(c, "!()*");
}

std::string Escape(std::string_view text, Mode mode) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (ShouldEscape(c, mode)) {
      out += '%';
      out += kDigits[static_cast<unsigned char>(c) >> 4];
      out += kDigits[static_cast<unsigned char>(c) & 15];
    } else {
      out += c;
    }
  }
  return out;
}

using Text = Outcome<std::string, std::string>;
Text Ok(std::string text) { return Text(std::in_place, std::move(text)); }
Text Fail(std::string text) { return Text(std::unexpect, std::move(text)); }
Text EscapeError(std::string_view sequence) { return Fail("invalid URL escape " + base::GoQuote(sequence)); }

Text Unescape(std::string_view text, Mode mode) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      if ((mode == Mode::kHost || mode == Mode::kZone) && static_cast<unsigned char>(text[i]) < 0x80 &&
          ShouldEscape(text[i], mode))
        return Fail("invalid character " + base::GoQuote(text.substr(i, 1)) + " in host name");
      out += text[i];
      continue;
    }
    const std::string_view sequence = text.substr(i, 3);
    if (sequence.size() < 3 || Hex(sequence[1]) < 0 || Hex(sequence[2]) < 0) return EscapeError(sequence);
    const char byte = static_cast<char>(Hex(sequence[1]) << 4 | Hex(sequence[2]));
    if (mode == Mode::kHost && Hex(sequence[1]) < 8 && sequence != "%25") return EscapeError(sequence);
    if (mode == Mode::kZone && sequence != "%25" && byte != ' ' && ShouldEscape(byte, Mode::kHost))
      return EscapeError(sequence);
    out += byte;
    i += 2;
  }
  return Ok(std::move(out));
}

bool ValidOptionalPort(std::string_view port) {
  if (port.empty()) return true;
  return port[0] == ':' && port.substr(1).find_first_not_of("0123456789") == std::string_view::npos;
}

Text ParseIPLiteral(std::string_view host) {
  const std::size_t close = host.rfind(']');
  if (close == std::string_view::npos) return Fail("missing ']' in host");
  const std::string_view port = host.substr(close + 1);
  if (!ValidOptionalPort(port)) return Fail("invalid port " + base::GoQuote(port) + " after host");
  const std::string_view name = host.substr(1, close - 1);
  const std::size_t zone = name.find("%25");
  Text unescaped = Unescape(name.substr(0, zone), Mode::kHost);
  if (!unescaped.ok()) return unescaped;
  if (zone != std::string_view::npos) {
    Text part = Unescape(name.substr(zone), Mode::kZone);
    if (!part.ok()) return part;
    *unescaped += *part;
  }
  const auto addr = ParseAddr(*unescaped);
  if (!addr.ok()) return Fail("invalid host: " + addr.error());
  if (addr->Is4()) return Fail("invalid IP-literal");
  return Ok("[" + *unescaped + "]" + std::string(port));
}

Text ParseHost(std::string_view scheme, std::string_view host) {
  const std::size_t open = host.rfind('[');
  if (open != std::string_view::npos) return open > 0 ? Fail("invalid IP-literal") : ParseIPLiteral(host);
  if (std::size_t colon = host.find(':'); colon != std::string_view::npos) {
    if (scheme != "http" && scheme != "https") colon = host.rfind(':');
    const std::string_view port = host.substr(colon);
    if (!ValidOptionalPort(port)) return Fail("invalid port " + base::GoQuote(port) + " after host");
  }
  return Unescape(host, Mode::kHost);
}

bool ValidUserinfo(std::string_view text) {
  for (const char c : text) {
    const bool alphanumeric = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!alphanumeric && !In(c, "-._:~!$&'()*+,;=%@")) return false;
  }
  return true;
}

// An empty text means success.
std::string ParseAuthority(std::string_view authority, GoURL& url) {
  const std::size_t at = authority.rfind('@');
  Text host = ParseHost(url.scheme, at == std::string_view::npos ? authority : authority.substr(at + 1));
  if (!host.ok()) return host.error();
  url.host = *std::move(host);
  if (at == std::string_view::npos) return {};
  const std::string_view userinfo = authority.substr(0, at);
  if (!ValidUserinfo(userinfo)) return "net/url: invalid userinfo";
  const std::size_t colon = userinfo.find(':');
  Text name = Unescape(userinfo.substr(0, colon), Mode::kUserPassword);
  if (!name.ok()) return name.error();
  url.has_user = true;
  url.user = Escape(*name, Mode::kUserPassword);
  if (colon == std::string_view::npos) return {};
  Text password = Unescape(userinfo.substr(colon + 1), Mode::kUserPassword);
  if (!password.ok()) return password.error();
  url.user += ":" + Escape(*password, Mode::kUserPassword);
  return {};
}

// getScheme: {scheme, rest}, or false for ":" at the start.
bool SplitScheme(std::string_view text, std::string_view* scheme, std::string_view* rest) {
  *scheme = {};
  *rest = text;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) continue;
    if ((c >= '0' && c <= '9') || In(c, "+-.")) {
      if (i == 0) return true;
      continue;
    }
    if (c != ':') return true;
    if (i == 0) return false;
    *scheme = text.substr(0, i);
    *rest = text.substr(i + 1);
    return true;
  }
  return true;
}

std::string SetPath(std::string_view path, GoURL& url) {
  Text unescaped = Unescape(path, Mode::kPath);
  if (!unescaped.ok()) return unescaped.error();
  url.path = *std::move(unescaped);
  if (Escape(url.path, Mode::kPath) != path) url.raw_path = path;
  return {};
}

bool HasControlByte(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) return true;
  }
  return false;
}

std::string Parse(std::string_view text, bool via_request, GoURL& url) {
  if (HasControlByte(text)) return "net/url: invalid control character in URL";
  if (text.empty() && via_request) return "empty url";
  if (text == "*") {
    url.path = "*";
    return {};
  }
  std::string_view scheme, rest;
  if (!SplitScheme(text, &scheme, &rest)) return "missing protocol scheme";
  url.scheme = base::ToLower(scheme);
  if (const std::size_t question = rest.find('?'); question != std::string_view::npos) {
    url.force_query = question + 1 == rest.size();
    url.raw_query = rest.substr(question + 1);
    rest = rest.substr(0, question);
  }
  if (!rest.starts_with('/')) {
    if (!url.scheme.empty()) {
      url.opaque = rest;
      return {};
    }
    if (via_request) return "invalid URI for request";
    if (rest.substr(0, rest.find('/')).find(':') != std::string_view::npos)
      return "first path segment in URL cannot contain colon";
  }
  if ((!url.scheme.empty() || (!via_request && !rest.starts_with("///"))) && rest.starts_with("//")) {
    std::string_view authority = rest.substr(2);
    const std::size_t slash = authority.find('/');
    rest = slash == std::string_view::npos ? std::string_view() : authority.substr(slash);
    if (std::string error = ParseAuthority(authority.substr(0, slash), url); !error.empty()) return error;
  } else if (!url.scheme.empty() && rest.starts_with('/')) {
    url.omit_host = true;
  }
  return SetPath(rest, url);
}

bool ValidEncoded(std::string_view text, Mode mode) {
  for (const char c : text) {
    if (!In(c, "!$&'()*+,;=:@[]%") && ShouldEscape(c, mode)) return false;
  }
  return true;
}

std::pair<std::string_view, std::string_view> SplitHostPort(std::string_view host) {
  std::string_view port;
  const std::size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && ValidOptionalPort(host.substr(colon))) {
    port = host.substr(colon + 1);
    host = host.substr(0, colon);
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return {host, port};
}

}  // namespace

std::string GoURL::Hostname() const { return std::string(SplitHostPort(host).first); }
std::string GoURL::Port() const { return std::string(SplitHostPort(host).second); }

std::string GoURL::EscapedPath() const {
  if (!raw_path.empty() && ValidEncoded(raw_path, Mode::kPath)) {
    const Text unescaped = Unescape(raw_path, Mode::kPath);
    if (unescaped.ok() && *unescaped == path) return raw_path;
  }
  return path == "*" ? path : Escape(path, Mode::kPath);
}

std::string GoURL::ToString() const {
  std::string out;
  if (!scheme.empty()) out += scheme + ":";
  if (!opaque.empty()) {
    out += opaque;
  } else {
    const bool authority = !scheme.empty() || !host.empty() || has_user;
    if (authority && !(omit_host && host.empty() && !has_user)) {
      if (!host.empty() || !path.empty() || has_user) out += "//";
      if (has_user) out += user + "@";
      if (!host.empty()) out += Escape(host, Mode::kHost);
    }
    const std::string escaped = EscapedPath();
    if (!escaped.empty() && escaped[0] != '/' && !host.empty()) out += '/';
    if (out.empty() && escaped.substr(0, escaped.find('/')).find(':') != std::string::npos) out += "./";
    out += escaped;
  }
  if (force_query || !raw_query.empty()) out += "?" + raw_query;
  if (!fragment.empty()) {
    const bool raw = !raw_fragment.empty() && ValidEncoded(raw_fragment, Mode::kFragment);
    out += "#" + (raw ? raw_fragment : Escape(fragment, Mode::kFragment));
  }
  return out;
}

Outcome<GoURL, std::string> ParseURL(std::string_view text) {
  const std::size_t hash = text.find('#');
  const std::string_view before = text.substr(0, hash);
  GoURL url;
  if (std::string error = Parse(before, /*via_request=*/false, url); !error.empty())
    return "parse " + base::GoQuote(before) + ": " + error;
  const std::string_view fragment = hash == std::string_view::npos ? std::string_view() : text.substr(hash + 1);
  if (!fragment.empty()) {
    Text unescaped = Unescape(fragment, Mode::kFragment);
    if (!unescaped.ok()) return "parse " + base::GoQuote(text) + ": " + unescaped.error();
    url.fragment = *std::move(unescaped);
    if (Escape(url.fragment, Mode::kFragment) != fragment) url.raw_fragment = fragment;
  }
  return url;
}

Outcome<GoURL, std::string> ParseRequestURI(std::string_view text) {
  GoURL url;
  if (std::string error = Parse(text, /*via_request=*/true, url); !error.empty())
    return "parse " + base::GoQuote(text) + ": " + error;
  return url;
}

}  // namespace keelson::object
