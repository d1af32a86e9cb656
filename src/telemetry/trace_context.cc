#include "telemetry/trace_context.h"

#include <algorithm>
#include <span>
#include <vector>

#include "base/strings.h"

namespace keelson::telemetry {
namespace {

constexpr std::size_t kTraceStateMembersMax = 32;
constexpr std::size_t kTraceStateValueMax = 256;
constexpr int kVersionMax = 254;

int HexDigit(char c) {  // upper case is refused, as W3C requires
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// Reads the part up to the next '-' and takes it off `text`.
bool TakeHex(std::string_view& text, std::span<std::uint8_t> out) {
  const std::size_t dash = text.find('-');
  const std::string_view part = text.substr(0, dash);
  text = dash == std::string_view::npos ? std::string_view() : text.substr(dash + 1);
  if (part.size() != 2 * out.size()) return false;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const int high = HexDigit(part[2 * i]);
    const int low = HexDigit(part[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    out[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return true;
}

void AppendHex(std::span<const std::uint8_t> bytes, std::string& out) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (const std::uint8_t byte : bytes) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
}

bool IsKeyStart(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool IsKeyRest(char c) { return IsKeyStart(c) || c == '_' || c == '-' || c == '*' || c == '/'; }

// "vendor" or "tenant@system".
bool IsTraceStateKey(std::string_view key) {
  const std::size_t at = key.find('@');
  const std::string_view system = at == std::string_view::npos ? std::string_view() : key.substr(at + 1);
  const std::string_view name = key.substr(0, at);
  const auto valid = [](std::string_view part, std::size_t max) {
    return !part.empty() && part.size() <= max && IsKeyStart(part.front()) && std::ranges::all_of(part, IsKeyRest);
  };
  if (at == std::string_view::npos) return valid(name, 256) && name.front() >= 'a';
  return valid(name, 241) && valid(system, 14) && system.front() >= 'a';
}

bool IsTraceStateValue(std::string_view value) {
  return !value.empty() && value.size() <= kTraceStateValueMax && value.back() != ' ' &&
         std::ranges::all_of(value, [](char c) { return c >= ' ' && c <= '~' && c != ',' && c != '='; });
}

}  // namespace

std::string ParseTraceState(std::string_view text) {
  std::vector<std::string_view> keys;
  std::string out;
  for (const std::string_view part : base::Split(text, ',')) {
    const std::string_view member = base::Trim(part);
    if (member.empty()) continue;
    const std::size_t equals = member.find('=');
    if (equals == std::string_view::npos || keys.size() == kTraceStateMembersMax) return "";
    const std::string_view key = member.substr(0, equals);
    if (!IsTraceStateKey(key) || !IsTraceStateValue(member.substr(equals + 1))) return "";
    if (std::ranges::find(keys, key) != keys.end()) return "";
    keys.push_back(key);
    if (!out.empty()) out += ',';
    out += member;
  }
  return out;
}

std::optional<SpanContext> ParseTraceparent(std::string_view traceparent, std::string_view tracestate) {
  SpanContext context;
  std::uint8_t version[1];
  std::uint8_t flags[1];
  if (!TakeHex(traceparent, version) || version[0] > kVersionMax) return std::nullopt;
  if (!TakeHex(traceparent, context.trace_id) || !TakeHex(traceparent, context.span_id)) return std::nullopt;
  if (!TakeHex(traceparent, flags)) return std::nullopt;
  if (version[0] == 0 && (!traceparent.empty() || flags[0] > 2)) return std::nullopt;
  if (!context.valid()) return std::nullopt;
  context.sampled = (flags[0] & 1) != 0;
  context.trace_state = ParseTraceState(tracestate);
  return context;
}

IncomingContext ParseContext(std::string_view traceparent, std::string_view tracestate, std::string_view baggage) {
  IncomingContext incoming;
  if (!traceparent.empty()) incoming.span = ParseTraceparent(traceparent, tracestate);
  if (baggage.size() <= kBaggageBytesMax && baggage.find('=') != std::string_view::npos) incoming.baggage = baggage;
  return incoming;
}

std::string FormatTraceparent(const SpanContext& context) {
  std::string out = "00-";
  AppendHex(context.trace_id, out);
  out += '-';
  AppendHex(context.span_id, out);
  out += context.sampled ? "-01" : "-00";
  return out;
}

}  // namespace keelson::telemetry
