#include "storage/continue_token.h"

#include "base/check.h"
#include "base/strings.h"
#include "codec/json.h"
#include "object/go_text.h"
#include "object/json_text.h"

namespace keelson::storage {
namespace {

constexpr std::string_view kVersion = "meta.k8s.io/v1";
constexpr std::string_view kInvalid = "continue key is not valid";
constexpr std::size_t kTokenBytesMax = 64 * 1024;

struct Members {
  std::string version;
  std::int64_t resource_version = 0;
  std::string start;
};

// As Go's encoding/json reads a token: unknown members are ignored.
Outcome<Members, std::string> Read(std::string_view json) {
  base::Arena arena;
  const auto decoded = codec::DecodeJSON(arena, json);
  if (!decoded.ok()) return decoded.error().message;
  const Value& token = decoded->value;
  const auto wrong = [](const Value& value, std::string_view into) {
    return "json: cannot unmarshal " + std::string(object::JSONTypeName(value)) + " into Go " + std::string(into);
  };
  if (!token.is_null() && !token.is_map()) return wrong(token, "value of type storage.continueToken");
  const Value version = token["v"], revision = token["rv"], start = token["start"];
  if (!version.is_null() && !version.is_string()) return wrong(version, "struct field continueToken.v of type string");
  if (!revision.is_null() && !revision.is_int()) return wrong(revision, "struct field continueToken.rv of type int64");
  if (!start.is_null() && !start.is_string()) return wrong(start, "struct field continueToken.start of type string");
  return Members{.version = std::string(version.as_string()),
                 .resource_version = revision.as_int(),
                 .start = std::string(start.as_string())};
}

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
  object::AppendJSONString(json, next_key.substr(key_prefix.size()));
  json.push_back('}');
  return base::Base64URLEncode(json);
}

Outcome<ContinueToken, std::string> DecodeContinue(std::string_view token, std::string_view key_prefix) {
  const auto invalid = [](std::string_view why) { return std::string(kInvalid) + ": " + std::string(why); };
  if (token.size() > kTokenBytesMax) return invalid("token is too long");
  const auto json = base::Base64URLDecode(token);
  if (!json) return invalid(IllegalBase64(token));
  auto members = Read(*json);
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
