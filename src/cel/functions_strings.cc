// The extended string library (version 2; reverse of version 3), by code points.
#include <algorithm>

#include "base/strings.h"
#include "cel/format.h"
#include "cel/functions.h"

namespace keelson::cel {
namespace {

using Args = std::span<const Val>;

// Byte offset of code point number `index`. REQUIRES: index <= RuneCount(text).
std::size_t ByteOffset(std::string_view text, std::int64_t index) {
  std::size_t at = 0;
  for (; index > 0; --index) at += static_cast<std::size_t>(base::DecodeRune(text.substr(at)).length);
  return at;
}

std::int64_t Runes(std::string_view text) { return static_cast<std::int64_t>(RuneCount(text)); }

Val OutOfRange(Evaluation& e, std::int64_t index) {
  return ErrorIn(e.arena, "index out of range: ", std::to_string(index));
}

Val CharAt(Evaluation& e, Args args) {
  const std::string_view text = args[0].text();
  const std::int64_t index = args[1].int_value(), size = Runes(text);
  if (index < 0 || index > size) return OutOfRange(e, index);
  if (index == size) return Val::String("");
  const std::size_t at = ByteOffset(text, index);
  return Val::String(text.substr(at, static_cast<std::size_t>(base::DecodeRune(text.substr(at)).length)));
}

Val IndexOfFrom(Evaluation& e, std::string_view text, std::string_view piece, std::int64_t offset) {
  if (piece.empty()) return Val::Int(offset);
  if (offset < 0) return OutOfRange(e, offset);
  if (offset >= Runes(text)) return Val::Int(-1);
  const std::size_t found = text.find(piece, ByteOffset(text, offset));
  return Val::Int(found == std::string_view::npos ? -1 : Runes(text.substr(0, found)));
}

Val IndexOf(Evaluation& e, Args args) {
  return IndexOfFrom(e, args[0].text(), args[1].text(), args.size() > 2 ? args[2].int_value() : 0);
}

Val LastIndexOfFrom(Evaluation& e, std::string_view text, std::string_view piece, std::int64_t offset) {
  if (piece.empty()) return Val::Int(offset);
  if (offset < 0) return OutOfRange(e, offset);
  if (offset >= Runes(text)) return Val::Int(-1);
  const std::size_t found = text.rfind(piece, ByteOffset(text, offset));
  return Val::Int(found == std::string_view::npos ? -1 : Runes(text.substr(0, found)));
}

Val LastIndexOf(Evaluation& e, Args args) {
  const std::string_view text = args[0].text(), piece = args[1].text();
  if (args.size() > 2) return LastIndexOfFrom(e, text, piece, args[2].int_value());
  if (piece.empty()) return Val::Int(Runes(text));
  if (text.size() < piece.size()) return Val::Int(-1);
  return LastIndexOfFrom(e, text, piece, Runes(text) - 1);
}

template <char first, char last, int shift>
Val ShiftCase(Evaluation& e, Args args) {
  const std::string_view text = args[0].text();
  char* out = static_cast<char*>(e.arena.Allocate(text.size(), 1));
  std::ranges::transform(text, out, [](char c) { return c >= first && c <= last ? static_cast<char>(c + shift) : c; });
  return Val::String({out, text.size()});
}

Val Replace(Evaluation& e, Args args) {
  const std::string_view text = args[0].text(), from = args[1].text(), to = args[2].text();
  std::int64_t limit = args.size() > 3 ? args[3].int_value() : -1;
  if (from == to || limit == 0) return args[0];
  std::string out;
  std::size_t at = 0;
  if (from.empty()) {
    for (; limit != 0; --limit) {
      out += to;
      if (at >= text.size()) break;
      const auto length = static_cast<std::size_t>(base::DecodeRune(text.substr(at)).length);
      out += text.substr(at, length);
      at += length;
    }
  } else {
    for (; limit != 0; --limit) {
      const std::size_t found = text.find(from, at);
      if (found == std::string_view::npos) break;
      out += text.substr(at, found - at);
      out += to;
      at = found + from.size();
    }
  }
  out += text.substr(std::min(at, text.size()));
  return e.String(out);
}

Val Split(Evaluation& e, Args args) {
  std::string_view text = args[0].text();
  const std::string_view separator = args[1].text();
  const std::int64_t limit = args.size() > 2 ? args[2].int_value() : -1;
  List* out = NewList(e.arena, 0);
  if (limit == 0) return Val::Of(out);
  const auto full = [&] { return limit > 0 && out->size + 1 >= limit; };
  if (separator.empty()) {
    while (!text.empty() && !full()) {
      const auto length = static_cast<std::size_t>(base::DecodeRune(text).length);
      Append(e.arena, *out, Val::String(text.substr(0, length)));
      text.remove_prefix(length);
    }
    if (!text.empty()) Append(e.arena, *out, Val::String(text));
    return Val::Of(out);
  }
  while (!full()) {
    const std::size_t found = text.find(separator);
    if (found == std::string_view::npos) break;
    Append(e.arena, *out, Val::String(text.substr(0, found)));
    text.remove_prefix(found + separator.size());
  }
  Append(e.arena, *out, Val::String(text));
  return Val::Of(out);
}

Val Substring(Evaluation& e, Args args) {
  const std::string_view text = args[0].text();
  const std::int64_t start = args[1].int_value(), size = Runes(text);
  const std::int64_t end = args.size() > 2 ? args[2].int_value() : size;
  if (args.size() > 2 && start > end)
    return e.Error("invalid substring range. start: " + std::to_string(start) + ", end: " + std::to_string(end));
  if (start < 0 || start > size) return OutOfRange(e, start);
  if (end < 0 || end > size) return OutOfRange(e, end);
  const std::size_t from = ByteOffset(text, start);
  return Val::String(text.substr(from, ByteOffset(text.substr(from), end - start)));
}

bool IsSpace(char32_t rune) {
  switch (rune) {
    case '\t':
    case '\n':
    case '\v':
    case '\f':
    case '\r':
    case ' ':
    case 0x85:
    case 0xa0:
    case 0x1680:
    case 0x2028:
    case 0x2029:
    case 0x202f:
    case 0x205f:
    case 0x3000:
      return true;
    default:
      return rune >= 0x2000 && rune <= 0x200a;
  }
}

Val Trim(Evaluation&, Args args) {
  std::string_view text = args[0].text();
  while (!text.empty()) {
    const base::Rune rune = base::DecodeRune(text);
    if (!IsSpace(rune.value)) break;
    text.remove_prefix(static_cast<std::size_t>(rune.length));
  }
  while (!text.empty()) {
    std::size_t begin = text.size() - 1;
    while (begin > 0 && text.size() - begin < 4 && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) --begin;
    if (!IsSpace(base::DecodeRune(text.substr(begin)).value)) break;
    text = text.substr(0, begin);
  }
  return Val::String(text);
}

Val Join(Evaluation& e, Args args) {
  const List& list = args[0].list();
  const std::string_view separator = args.size() > 1 ? args[1].text() : std::string_view();
  std::string out;
  for (std::uint32_t i = 0; i < list.size; ++i) {
    if (i > 0) out += separator;
    const Val item = list.Get(e.arena, i);
    if (!item.is_string()) return ErrorIn(e.arena, "join: invalid input: ", GoText(e.arena, item));
    out += item.text();
  }
  return e.String(out);
}

Val Quote(Evaluation& e, Args args) {
  std::string out = "\"";
  for (const char c : base::ToValidUTF8(args[0].text())) {
    constexpr std::string_view kEscaped = "\a\b\f\n\r\t\v\\\"", kLetters = "abfnrtv\\\"";
    const std::size_t at = kEscaped.find(c);
    if (at == std::string_view::npos) {
      out += c;
    } else {
      out += '\\';
      out += kLetters[at];
    }
  }
  return e.String(out + "\"");
}

Val Reverse(Evaluation& e, Args args) {
  std::string_view text = args[0].text();
  std::string out;
  std::vector<std::string_view> runes;
  while (!text.empty()) {
    const auto length = static_cast<std::size_t>(base::DecodeRune(text).length);
    runes.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  for (auto rune = runes.rbegin(); rune != runes.rend(); ++rune) out += *rune;
  return e.String(out);
}

Val Format(Evaluation& e, Args args) {
  const auto formatted = FormatString(e.arena, args[0].text(), args[1].list());
  return formatted.ok() ? e.String(*formatted) : e.Error(formatted.error());
}

using enum CallForm;
constexpr Binding kBindings[] = {
    {"string_char_at_int", CharAt, kBinary},
    {"string_index_of_string", IndexOf, kBinary},
    {"string_index_of_string_int", IndexOf, kVarArgs},
    {"string_last_index_of_string", LastIndexOf, kBinary},
    {"string_last_index_of_string_int", LastIndexOf, kVarArgs},
    {"string_lower_ascii", ShiftCase<'A', 'Z', 32>, kUnary},
    {"string_upper_ascii", ShiftCase<'a', 'z', -32>, kUnary},
    {"string_replace_string_string", Replace, kVarArgs},
    {"string_replace_string_string_int", Replace, kVarArgs},
    {"string_split_string", Split, kBinary},
    {"string_split_string_int", Split, kVarArgs},
    {"string_substring_int", Substring, kBinary},
    {"string_substring_int_int", Substring, kVarArgs},
    {"string_trim", Trim, kUnary},
    {"string_format", Format, kVarArgs},
    {"strings_quote", Quote, kUnary},
    {"list_join", Join, kUnary},
    {"list_join_string", Join, kBinary},
    {"string_reverse", Reverse, kUnary},
};

}  // namespace

std::span<const Binding> StringBindings() { return kBindings; }

}  // namespace keelson::cel
