#include "storage/continue_token.h"

#include <optional>

#include "base/check.h"
#include "base/strings.h"

namespace keelson::storage {
namespace {

constexpr std::string_view kVersion = "meta.k8s.io/v1";
constexpr std::string_view kInvalid = "continue key is not valid";
constexpr std::size_t kTokenBytesMax = 64 * 1024;

void AppendJSONString(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out.push_back('"');
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (byte < 0x20 || c == '<' || c == '>' || c == '&') {
      out.append("\\u00").push_back(kHex[byte >> 4]);
      out.push_back(kHex[byte & 15]);
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

// Reads the flat object that a token is. Anything a token never holds (nested values, unknown members) is refused.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  struct Members {
    std::string version;
    std::int64_t resource_version = 0;
    std::string start;
  };

  Outcome<Members, std::string> Read() {
    Members members;
    Space();
    if (!Take('{')) return Unexpected("looking for beginning of value");
    Space();
    if (!Take('}')) {
      do {
        Space();
        const auto key = String();
        if (!key) return Unexpected("looking for beginning of object key string");
        Space();
        if (!Take(':')) return Unexpected("after object key");
        Space();
        if (!Member(*key, members)) return Unexpected("looking for beginning of value");
        Space();
      } while (Take(','));
      if (!Take('}')) return Unexpected("after object key:value pair");
    }
    Space();
    if (at_ != text_.size()) return Unexpected("after top-level value");
    return members;
  }

 private:
  bool Member(std::string_view key, Members& members) {
    if (at_ < text_.size() && text_[at_] == '"') {
      auto value = String();
      if (!value) return false;
      if (key == "v") members.version = *std::move(value);
      if (key == "start") members.start = *std::move(value);
      return key != "rv";
    }
    const std::size_t begin = at_;
    while (at_ < text_.size() && (text_[at_] == '-' || (text_[at_] >= '0' && text_[at_] <= '9'))) ++at_;
    const auto number = base::ParseInt64(text_.substr(begin, at_ - begin));
    if (!number || key != "rv") return false;
    members.resource_version = *number;
    return true;
  }

  std::optional<std::string> String() {
    if (!Take('"')) return std::nullopt;
    std::string out;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') return base::ToValidUTF8(out);
      if (static_cast<unsigned char>(c) < 0x20) return std::nullopt;
      if (c != '\\') {
        out.push_back(c);
        continue;
      }
      if (at_ == text_.size()) return std::nullopt;
      switch (const char escape = text_[at_++]) {
        case 'b':
          out.push_back('\b');
          break;
        case 'f':
          out.push_back('\f');
          break;
        case 'n':
          out.push_back('\n');
          break;
        case 'r':
          out.push_back('\r');
          break;
        case 't':
          out.push_back('\t');
          break;
        case '"':
        case '\\':
        case '/':
          out.push_back(escape);
          break;
        case 'u':
          if (!Unicode(out)) return std::nullopt;
          break;
        default:
          return std::nullopt;
      }
    }
    return std::nullopt;
  }

  bool Unicode(std::string& out) {
    auto unit = Hex4();
    if (!unit) return false;
    char32_t rune = *unit;
    if (rune >= 0xd800 && rune < 0xe000) {
      rune = 0xfffd;
      if (*unit < 0xdc00 && text_.substr(at_).starts_with("\\u")) {
        const std::size_t before = at_;
        at_ += 2;
        const auto low = Hex4();
        if (low && *low >= 0xdc00 && *low < 0xe000) {
          rune = 0x10000 + ((*unit - 0xd800) << 10) + (*low - 0xdc00);
        } else {
          at_ = before;
        }
      }
    }
    base::AppendUTF8(out, rune);
    return true;
  }

  std::optional<char32_t> Hex4() {
    if (text_.size() - at_ < 4) return std::nullopt;
    char32_t unit = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = text_[at_++];
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) return std::nullopt;
      unit = unit * 16 + static_cast<char32_t>(digit);
    }
    return unit;
  }

  void Space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }
  bool Take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::string Unexpected(std::string_view where) const {
    if (at_ >= text_.size()) return "unexpected end of JSON input";
    const auto rune = base::DecodeRune(text_.substr(at_));
    std::string shown;
    base::AppendUTF8(shown, rune.value);
    return "invalid character '" + shown + "' " + std::string(where);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// True when Go's path.Clean would leave `path` (which begins with a slash) as it is.
bool IsClean(std::string_view path) {
  if (path == "/") return true;
  for (const std::string_view piece : base::Split(path.substr(1), '/')) {
    if (piece.empty() || piece == "." || piece == "..") return false;
  }
  return true;
}

std::string IllegalBase64(std::string_view token) {
  std::size_t at = 0;
  while (at < token.size()) {
    const char c = token[at];
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
          c == '\n' || c == '\r'))
      break;
    ++at;
  }
  // Only the length is wrong: one character more than whole groups of four.
  if (at == token.size() && at > 0) --at;
  return "illegal base64 data at input byte " + std::to_string(at);
}

}  // namespace

std::string EncodeContinue(std::string_view next_key, std::string_view key_prefix, std::int64_t resource_version) {
  KS_CHECK(next_key.starts_with(key_prefix));
  std::string json = R"({"v":"meta.k8s.io/v1","rv":)" + std::to_string(resource_version) + R"(,"start":)";
  AppendJSONString(json, next_key.substr(key_prefix.size()));
  json.push_back('}');
  return base::Base64URLEncode(json);
}

Outcome<ContinueToken, std::string> DecodeContinue(std::string_view token, std::string_view key_prefix) {
  const auto invalid = [](std::string_view why) { return std::string(kInvalid) + ": " + std::string(why); };
  if (token.size() > kTokenBytesMax) return invalid("token is too long");
  const auto json = base::Base64URLDecode(token);
  if (!json) return invalid(IllegalBase64(token));
  auto members = Reader(*json).Read();
  if (!members.ok()) return invalid(members.error());
  if (members->version != kVersion)
    return invalid("server does not recognize this encoded version " + members->version);
  if (members->resource_version == 0)
    return invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)");
  if (members->start.empty()) return invalid("encoded start key empty (version meta.k8s.io/v1)");
  std::string start = members->start.starts_with('/') ? members->start : "/" + members->start;
  if (!IsClean(start)) return invalid(members->start);
  return ContinueToken{.start_key = std::string(key_prefix) + start.substr(1),
                       .resource_version = members->resource_version};
}

}  // namespace keelson::storage
