#include "http/message.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/strings.h"

namespace keelson::http {
namespace {

constexpr std::size_t kTextBytesMin = 256;  // of header fields: most messages need no more
constexpr std::size_t kFieldsUsual = 8;

bool IsTokenChar(char c) {
  if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return true;
  return std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

// The texts may lie in the buffer that is replaced: it is let go of last.
Headers::Place Headers::Store(std::string_view name, std::string_view value) {
  const std::size_t begin = text_.size();
  const std::size_t end = begin + name.size() + value.size();
  KS_CHECK(end <= std::numeric_limits<std::uint32_t>::max());
  // Never in the string itself (up to 15 bytes): a view stays good when the whole is moved.
  if (end > text_.capacity() || text_.capacity() < kTextBytesMin) {
    std::string larger;
    larger.reserve(std::max({end, 2 * text_.capacity(), kTextBytesMin}));
    larger.append(text_).append(name).append(value);
    text_.swap(larger);
  } else {
    text_.append(name).append(value);
  }
  return {.name = static_cast<std::uint32_t>(begin),
          .value = static_cast<std::uint32_t>(begin + name.size()),
          .end = static_cast<std::uint32_t>(end)};
}

void Headers::Add(std::string_view name, std::string_view value) {
  if (places_.capacity() == 0) places_.reserve(kFieldsUsual);
  places_.push_back(Store(name, value));
}

void Headers::Set(std::string_view name, std::string_view value) {
  const Place stored = Store(name, value);
  name = NameOf(stored);
  bool set = false;
  std::erase_if(places_, [&](Place& place) {
    if (!base::EqualsIgnoreCase(NameOf(place), name)) return false;
    if (set) return true;
    place = stored;
    set = true;
    return false;
  });
  if (!set) places_.push_back(stored);
}

void Headers::Remove(std::string_view name) {
  RemoveIf([&](std::string_view field) { return base::EqualsIgnoreCase(field, name); });
}

std::string_view Headers::Get(std::string_view name) const {
  for (const Place& place : places_) {
    if (base::EqualsIgnoreCase(NameOf(place), name)) return ValueOf(place);
  }
  return {};
}

bool Headers::Has(std::string_view name) const {
  return std::ranges::any_of(places_, [&](const Place& place) { return base::EqualsIgnoreCase(NameOf(place), name); });
}

std::vector<std::string_view> Headers::Values(std::string_view name) const {
  std::vector<std::string_view> values;
  for (const Place& place : places_) {
    if (base::EqualsIgnoreCase(NameOf(place), name)) values.push_back(ValueOf(place));
  }
  return values;
}

Awaitable<Outcome<SharedBytes, BodyError>> BodyReader::ReadAll(std::size_t limit) {
  auto read = co_await Read();
  if (!read.ok()) co_return read.error();
  SharedBytes first = *std::move(read);
  if (first.empty()) co_return first;
  if (first.size() > limit) co_return BodyError::kTooLarge;
  std::string all;
  for (;;) {
    auto next = co_await Read();
    if (!next.ok()) co_return next.error();
    if (next->empty()) break;
    if (all.empty()) all = std::string(first.view());
    if (all.size() + next->size() > limit) co_return BodyError::kTooLarge;
    all.append(next->view());
  }
  if (all.empty()) co_return first;  // one piece, as nearly always: nothing was copied
  co_return SharedBytes::FromString(std::move(all));
}

std::string_view StatusText(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 203:
      return "Non-Authoritative Information";
    case 204:
      return "No Content";
    case 205:
      return "Reset Content";
    case 206:
      return "Partial Content";
    case 300:
      return "Multiple Choices";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 402:
      return "Payment Required";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 407:
      return "Proxy Authentication Required";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Request Entity Too Large";
    case 414:
      return "Request URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Requested Range Not Satisfiable";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 422:
      return "Unprocessable Entity";
    case 423:
      return "Locked";
    case 425:
      return "Too Early";
    case 426:
      return "Upgrade Required";
    case 428:
      return "Precondition Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    case 507:
      return "Insufficient Storage";
    default:
      return "";
  }
}

std::string CanonicalHeaderKey(std::string_view name) {
  std::string out(name);
  bool upper = true;
  for (char& c : out) {
    if (!IsTokenChar(c)) return std::string(name);
    if (upper && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (!upper && c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    upper = c == '-';
  }
  return out;
}

bool HasToken(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    const auto comma = list.find(',');
    if (base::EqualsIgnoreCase(base::Trim(list.substr(0, comma)), token)) return true;
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return false;
}

bool ParseTarget(std::string_view target, std::string* path, std::string* raw_query) {
  for (const char c : target) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte == 0x7f) return false;
  }
  if (const auto question = target.find('?'); question != std::string_view::npos) {
    *raw_query = std::string(target.substr(question + 1));
    target = target.substr(0, question);
  } else {
    raw_query->clear();
  }
  path->clear();
  path->reserve(target.size());
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i] != '%') {
      *path += target[i];
      continue;
    }
    if (i + 2 >= target.size()) return false;
    const int high = HexDigit(target[i + 1]);
    const int low = HexDigit(target[i + 2]);
    if (high < 0 || low < 0) return false;
    *path += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return target == "*" || (!target.empty() && target.front() == '/');
}

}  // namespace keelson::http
