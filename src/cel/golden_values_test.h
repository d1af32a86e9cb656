// Values, types and the scripted authorizer of the recordings in testdata/cel-kubernetes. For tests only.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/strings.h"
#include "cel/library_values.h"
#include "cel/temporal.h"
#include "cel/testing/object_type.h"
#include "cel/type.h"
#include "cel/value.h"
#include "object/json_text.h"

namespace keelson::cel {

// Types of variables as the recordings write them.
inline const Type* ReadGoldenTypePart(base::Arena& arena, std::string_view& rest) {
  const auto end = std::min(rest.find_first_of("(),"), rest.size());
  const auto name = rest.substr(0, end);
  rest.remove_prefix(end);
  std::vector<const Type*> params;
  if (rest.starts_with('(')) {
    do {
      rest.remove_prefix(1);
      while (rest.starts_with(' ')) rest.remove_prefix(1);
      params.push_back(ReadGoldenTypePart(arena, rest));
    } while (rest.starts_with(','));
    rest.remove_prefix(1);
  }
  if (name == "list") return NewListType(arena, params[0]);
  if (name == "map") return NewMapType(arena, params[0], params[1]);
  if (name == "optional_type") return NewOptionalType(arena, params[0]);
  if (name == "wrapper") {
    Type copy = *params[0];
    copy.wrapper = true;
    return arena.New<Type>(copy);
  }
  for (const Type* type : {&kDynType, &kBoolType, &kBytesType, &kDoubleType, &kIntType, &kNullType, &kStringType,
                           &kUintType, &kQuantityType, &kURLType, &kIPType, &kCIDRType, &kSemverType, &kAuthorizerType,
                           &kTimestampType, &kDurationType}) {
    if (type->name == name) return type;
  }
  if (name == "timestamp") return &kTimestampType;
  if (name == "duration") return &kDurationType;
  return NewObjectType(arena, name);
}

inline const Type* ReadGoldenType(base::Arena& arena, std::string_view text) { return ReadGoldenTypePart(arena, text); }

inline double ReadGoldenDouble(std::string_view text) {
  if (text == "NaN") return __builtin_nan("");
  if (text == "+Inf") return __builtin_inf();
  if (text == "-Inf") return -__builtin_inf();
  return std::strtod(std::string(text).c_str(), nullptr);
}

inline Val ReadGoldenValue(base::Arena& arena, const object::Value& value) {
  const object::Member& member = value.members()[0];
  const std::string_view kind = member.key;
  const object::Value& content = member.value;
  const std::string_view text = content.as_string();
  if (kind == "bool") return Val::Bool(content.as_bool());
  if (kind == "int") return Val::Int(*base::ParseInt64(text));
  if (kind == "uint") return Val::Uint(*base::ParseUint64(text));
  if (kind == "double") return Val::Double(ReadGoldenDouble(text));
  if (kind == "string") return Val::String(text);
  if (kind == "bytes") return Val::Bytes(arena.Copy(*base::Base64Decode(text)));
  if (kind == "timestamp") return *ParseTimestamp(text);
  if (kind == "duration") return Val::Duration(std::llround(std::strtod(std::string(text).c_str(), nullptr) * 1e9));
  if (kind == "list") {
    List* list = NewList(arena, 0);
    for (const object::Value& item : content.items()) Append(arena, *list, ReadGoldenValue(arena, item));
    return Val::Of(list);
  }
  if (kind == "map") {
    Map* map = NewMap(arena, 0);
    for (const object::Value& pair : content.items())
      map->Set(arena, ReadGoldenValue(arena, pair[std::size_t{0}]), ReadGoldenValue(arena, pair[std::size_t{1}]));
    return Val::Of(map);
  }
  if (kind == "optional")
    return content.is_null() ? Val::OptionalNone() : Val::OptionalOf(arena, ReadGoldenValue(arena, content));
  if (kind == "quantity") {
    std::string_view error;
    return *ParseQuantityVal(arena, text, &error);
  }
  return {};
}

inline std::string GoldenQuote(std::string_view text) {
  std::string out;
  object::AppendJSONString(out, text);
  return out;
}

inline std::string GoldenDouble(double value) {
  if (value != value) return "NaN";
  if (value == __builtin_inf()) return "+Inf";
  if (value == -__builtin_inf()) return "-Inf";
  char text[64];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

inline std::string ExactSeconds(std::int64_t nanoseconds) {
  const auto size =
      nanoseconds < 0 ? 0 - static_cast<std::uint64_t>(nanoseconds) : static_cast<std::uint64_t>(nanoseconds);
  char text[64];
  std::snprintf(text, sizeof text, "%s%llu.%09llu", nanoseconds < 0 ? "-" : "",
                static_cast<unsigned long long>(size / 1'000'000'000),
                static_cast<unsigned long long>(size % 1'000'000'000));
  std::string out = text;
  while (out.back() == '0') out.pop_back();
  if (out.back() == '.') out.pop_back();
  return out + "s";
}

// One text for equal values: the recorded form with doubles written in full and maps sorted.
inline std::string GoldenText(const Val& value) {
  using Tag = Val::Tag;
  base::Arena arena;
  switch (value.tag()) {
    case Tag::kError:
      return "error " + std::string(value.text());
    case Tag::kNull:
      return "null";
    case Tag::kBool:
      return value.bool_value() ? "true" : "false";
    case Tag::kInt:
      return "int " + std::to_string(value.int_value());
    case Tag::kUint:
      return "uint " + std::to_string(value.uint_value());
    case Tag::kDouble:
      return "double " + GoldenDouble(value.double_value());
    case Tag::kString:
      return "string " + GoldenQuote(value.text());
    case Tag::kBytes:
      return "bytes " + base::Base64Encode(value.text());
    case Tag::kType:
      if (value.text() == "list") return "type list(dyn)";
      if (value.text() == "map") return "type map(dyn, dyn)";
      return "type " + std::string(value.text());
    case Tag::kDuration:
      return "duration " + ExactSeconds(value.int_value());
    case Tag::kTimestamp:
      return "timestamp " + TimestampText(Val::Timestamp(value.int_value(), value.nanos()));
    case Tag::kList: {
      std::string out = "[";
      for (std::uint32_t i = 0; i < value.list().size; ++i) out += GoldenText(value.list().Get(arena, i)) + ",";
      return out + "]";
    }
    case Tag::kMap: {
      std::map<std::string, std::string> entries;
      for (std::uint32_t i = 0; i < value.map().size; ++i) {
        if (const auto key = value.map().KeyAt(arena, i))
          entries[GoldenText(*key)] = GoldenText(value.map().ValueAt(arena, i));
      }
      std::string out = "{";
      for (const auto& [key, text] : entries) out += key + ":" + text + ",";
      return out + "}";
    }
    case Tag::kOptional:
      return value.has_value() ? "optional(" + GoldenText(value.optional_value()) + ")" : "none";
    case Tag::kQuantity:
      return "quantity " + std::string(value.quantity().text);
    case Tag::kURL:
      return "url " + std::string(value.url().text);
    case Tag::kIP:
      return "ip " + value.ip().ToString();
    case Tag::kCIDR:
      return "cidr " + value.cidr().ToString();
    case Tag::kSemver:
      return "semver " + SemverText(value.semver());
    case Tag::kFormat:
      return "format " + std::string(value.format().name);
    default:
      return "opaque " + std::string(TypeNameOf(value));
  }
}

// The same text of a recorded value.
inline std::string NormalGoldenText(const object::Value& value) {
  const object::Member& member = value.members()[0];
  const std::string_view kind = member.key;
  const object::Value& content = member.value;
  const std::string text(content.as_string());
  if (kind == "null") return "null";
  if (kind == "bool") return content.as_bool() ? "true" : "false";
  if (kind == "double") return "double " + GoldenDouble(ReadGoldenDouble(text));
  if (kind == "string") return "string " + GoldenQuote(text);
  if (kind == "list") {
    std::string out = "[";
    for (const object::Value& item : content.items()) out += NormalGoldenText(item) + ",";
    return out + "]";
  }
  if (kind == "map") {
    std::map<std::string, std::string> entries;
    for (const object::Value& pair : content.items())
      entries[NormalGoldenText(pair[std::size_t{0}])] = NormalGoldenText(pair[std::size_t{1}]);
    std::string out = "{";
    for (const auto& [key, entry] : entries) out += key + ":" + entry + ",";
    return out + "}";
  }
  if (kind == "optional") return content.is_null() ? "none" : "optional(" + NormalGoldenText(content) + ")";
  return std::string(kind) + " " + text;
}

class ScriptedAuthorizer final : public AuthorizerFunctions {
 public:
  std::optional<Decision> Authorize(const Attributes& a) override {
    std::string user;
    if (!a.service_account_name.empty())
      user = "system:serviceaccount:" + std::string(a.service_account_namespace) + ":" +
             std::string(a.service_account_name);
    asked_ += "user=" + (user.empty() ? "alice" : user) + " verb=" + std::string(a.verb) +
              " path=" + std::string(a.path) + " group=" + std::string(a.group) +
              " resource=" + std::string(a.resource) + " subresource=" + std::string(a.subresource) +
              " namespace=" + std::string(a.namespace_name) + " name=" + std::string(a.name) + "\n";
    using Verdict = Decision::Verdict;
    if (a.verb == "boom") return Decision{Verdict::kNoOpinion, "", "authorizer exploded"};
    if (a.verb == "deny") return Decision{Verdict::kDeny, "verb deny is denied", std::nullopt};
    if (user == "system:serviceaccount:ns1:robot") return Decision{Verdict::kAllow, "robot may", std::nullopt};
    if (a.path == "/healthz") return Decision{Verdict::kAllow, "healthz is open", std::nullopt};
    if (a.resource == "pods" && a.namespace_name == "ns1")
      return Decision{Verdict::kAllow, "pods in ns1", std::nullopt};
    if (a.resource == "warn") return Decision{Verdict::kAllow, "allowed anyway", "partial failure"};
    return Decision{Verdict::kNoOpinion, "no rule matched", std::nullopt};
  }

  // The questions in the recorded form, without groups and selectors.
  const std::string& Asked() const { return asked_; }

 private:
  std::string asked_;
};

inline std::string NormalAsked(const object::Value& asked) {
  std::string out;
  for (const object::Value& q : asked.items()) {
    const auto text = [&](const char* key) { return std::string(q[key].as_string()); };
    out += "user=" + text("user") + " verb=" + text("verb") + " path=" + text("path") + " group=" + text("group") +
           " resource=" + text("resource") + " subresource=" + text("subresource") + " namespace=" + text("namespace") +
           " name=" + text("name") + "\n";
  }
  return out;
}

// The tz database of the machine.
class GoldenTimeZones final : public TimeZones {
 public:
  const TimeZone* Find(std::string_view name) const override {
    const auto found = zones_.find(std::string(name));
    if (found != zones_.end()) return found->second.get();
    std::ifstream in("/usr/share/zoneinfo/" + std::string(name), std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(in)), {});
    auto zone = TimeZone::Parse(bytes);
    auto& slot = zones_[std::string(name)];
    if (zone) slot = std::make_unique<TimeZone>(*std::move(zone));
    return slot.get();
  }

 private:
  mutable std::map<std::string, std::unique_ptr<TimeZone>> zones_;
};

}  // namespace keelson::cel
