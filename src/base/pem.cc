#include "base/pem.h"

#include <utility>

#include "base/strings.h"

namespace keelson::base {
namespace {

constexpr std::string_view kBegin = "-----BEGIN ", kEnd = "\n-----END ", kEndOfLine = "-----";

// The line at the start of `text` without white space at its end, and the bytes up to the next line.
std::pair<std::string_view, std::size_t> LineOf(std::string_view text) {
  std::size_t end = text.find('\n');
  const std::size_t next = end == std::string_view::npos ? text.size() : end + 1;
  if (end == std::string_view::npos) {
    end = text.size();
  } else if (end > 0 && text[end - 1] == '\r') {
    --end;
  }
  while (end > 0 && (text[end - 1] == ' ' || text[end - 1] == '\t')) --end;
  return {text.substr(0, end), next};
}

// Takes header lines ("key: value") off `body`; true when there were some.
bool SkipHeaders(std::string_view& body) {
  bool any = false;
  while (!body.empty()) {
    const auto [line, consumed] = LineOf(body);
    if (line.find(':') == std::string_view::npos) break;
    any = true;
    body.remove_prefix(consumed);
  }
  return any;
}

std::optional<std::string> DecodeBody(std::string_view body) {
  std::string packed;
  packed.reserve(body.size());
  for (const char c : body) {
    if (c != ' ' && c != '\t') packed += c;
  }
  return Base64Decode(packed);
}

}  // namespace

std::optional<PEMBlock> DecodePEM(std::string_view& text) {
  std::size_t from = 0;  // everything before belongs to no block
  for (;;) {
    const std::size_t end = text.find(kEnd, from);
    if (end == std::string_view::npos) return std::nullopt;
    const std::size_t search = from;
    from = end + kEnd.size();
    // The last BEGIN before this END, at the start of a line. It may share its newline with the END.
    const std::size_t begin = text.substr(search, end - search).rfind(kBegin);
    if (begin == std::string_view::npos || (begin > 0 && text[search + begin - 1] != '\n')) continue;
    const std::size_t type_at = search + begin + kBegin.size();
    const auto [type_line, consumed] = LineOf(text.substr(type_at));
    if (!type_line.ends_with(kEndOfLine)) continue;
    const std::string_view type = type_line.substr(0, type_line.size() - kEndOfLine.size());
    std::string_view body = text.substr(type_at + consumed);
    const bool has_headers = SkipHeaders(body);
    if (body.empty()) return std::nullopt;
    const std::size_t body_at = text.size() - body.size();
    if (has_headers && body_at > end) continue;
    const std::string_view trailer = text.substr(from);
    if (!trailer.starts_with(type) || !trailer.substr(type.size()).starts_with(kEndOfLine)) continue;
    const auto [after, trailer_size] = LineOf(trailer.substr(type.size() + kEndOfLine.size()));
    if (!after.empty()) continue;
    std::string bytes;
    if (body_at < end) {
      auto decoded = DecodeBody(text.substr(body_at, end - body_at));
      if (!decoded) continue;
      bytes = *std::move(decoded);
    }
    PEMBlock block{.type = std::string(type), .has_headers = has_headers, .bytes = std::move(bytes)};
    text.remove_prefix(from + type.size() + kEndOfLine.size() + trailer_size);
    return block;
  }
}

std::vector<PEMBlock> DecodeAllPEM(std::string_view text) {
  std::vector<PEMBlock> blocks;
  while (auto block = DecodePEM(text)) blocks.push_back(*std::move(block));
  return blocks;
}

}  // namespace keelson::base
