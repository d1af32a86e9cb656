#include "cel/messages.h"

#include <algorithm>

#include "cel/operators.h"

namespace keelson::cel {
namespace {

using Tag = Val::Tag;

Val FieldOr(std::span<const MessageField> fields, std::string_view name, const Val& fallback) {
  const auto found = std::ranges::find(fields, name, &MessageField::name);
  return found == fields.end() ? fallback : found->value;
}

// google.protobuf.Duration and Timestamp: {seconds, nanos}.
Val NewTime(Evaluation& e, std::string_view type, std::span<const MessageField> fields) {
  const Val seconds = FieldOr(fields, "seconds", Val::Int(0));
  const Val nanos = FieldOr(fields, "nanos", Val::Int(0));
  if (!seconds.is(Tag::kInt) || !nanos.is(Tag::kInt)) return NoSuchOverload();
  if (nanos.int_value() > INT32_MAX || nanos.int_value() < INT32_MIN) return Val::Error("integer overflow");
  if (type == "google.protobuf.Timestamp") {
    const Val base = Val::Timestamp(seconds.int_value(), 0);
    return AddTimestampDuration(base, nanos.int_value());
  }
  std::int64_t total = 0;
  if (__builtin_mul_overflow(seconds.int_value(), std::int64_t{1'000'000'000}, &total) ||
      __builtin_add_overflow(total, nanos.int_value(), &total))
    return Val::Duration(seconds.int_value() < 0 ? INT64_MIN : INT64_MAX);  // AsDuration saturates.
  (void)e;
  return Val::Duration(total);
}

struct Wrapper {
  std::string_view type;
  Tag tag;
};
constexpr Wrapper kWrappers[] = {
    {"google.protobuf.BoolValue", Tag::kBool},     {"google.protobuf.BytesValue", Tag::kBytes},
    {"google.protobuf.DoubleValue", Tag::kDouble}, {"google.protobuf.FloatValue", Tag::kDouble},
    {"google.protobuf.Int32Value", Tag::kInt},     {"google.protobuf.Int64Value", Tag::kInt},
    {"google.protobuf.StringValue", Tag::kString}, {"google.protobuf.UInt32Value", Tag::kUint},
    {"google.protobuf.UInt64Value", Tag::kUint},
};

Val ZeroOf(Tag tag) {
  switch (tag) {
    case Tag::kBool:
      return Val::Bool(false);
    case Tag::kBytes:
      return Val::Bytes("");
    case Tag::kDouble:
      return Val::Double(0);
    case Tag::kInt:
      return Val::Int(0);
    case Tag::kString:
      return Val::String("");
    default:
      return Val::Uint(0);
  }
}

Val NewWrapper(const Wrapper& wrapper, std::span<const MessageField> fields) {
  const Val value = FieldOr(fields, "value", ZeroOf(wrapper.tag));
  if (value.tag() != wrapper.tag) return NoSuchOverload();
  const bool narrow_int = wrapper.type == "google.protobuf.Int32Value";
  if (narrow_int && (value.int_value() > INT32_MAX || value.int_value() < INT32_MIN))
    return Val::Error("integer overflow");
  if (wrapper.type == "google.protobuf.UInt32Value" && value.uint_value() > UINT32_MAX)
    return Val::Error("unsigned integer overflow");
  if (wrapper.type == "google.protobuf.FloatValue") return Val::Double(static_cast<float>(value.double_value()));
  return value;
}

// google.protobuf.Value: one of its fields.
Val NewJSONValue(std::span<const MessageField> fields) {
  if (fields.empty()) return {};
  const MessageField& field = fields.front();
  return field.name == "null_value" ? Val() : field.value;
}

}  // namespace

Val NewMessage(Evaluation& e, std::string_view type, std::span<const MessageField> fields) {
  if (type == "google.protobuf.Duration" || type == "google.protobuf.Timestamp") return NewTime(e, type, fields);
  for (const Wrapper& wrapper : kWrappers) {
    if (wrapper.type == type) return NewWrapper(wrapper, fields);
  }
  if (type == "google.protobuf.Value") return NewJSONValue(fields);
  if (type == "google.protobuf.Struct") return FieldOr(fields, "fields", Val::Of(NewMap(e.arena, 0)));
  if (type == "google.protobuf.ListValue") return FieldOr(fields, "values", Val::Of(NewList(e.arena, 0)));
  auto* copy = e.arena.NewArray<MessageField>(fields.size());
  std::ranges::copy(fields, copy);
  Message* message = e.arena.New<Message>();
  message->type = type;
  message->fields = {copy, fields.size()};
  return Val::OfPointer(Tag::kMessage, message);
}

namespace {

bool Accepts(Evaluation& e, const plan::CallNode& call, const Overload& overload, std::span<const Val> args) {
  if (overload.args.size() != args.size()) return false;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i].is_error()) {
      if (!call.non_strict) return false;
    } else if (call.type_guards && !IsAssignableRuntimeType(e.arena, *overload.args[i], args[i])) {
      return false;
    }
  }
  return true;
}

Val NoOverloadFor(Evaluation& e, std::string_view function, std::span<const Val> args) {
  std::string text = "no such overload: " + std::string(function) + "(";
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i].is_error()) return args[i];
    if (i > 0) text += ", ";
    text += TypeNameOf(args[i]);
  }
  return e.Error(text + ")");
}

Val InvokeRegex(Evaluation& e, const plan::CallNode& call, std::span<const Val> args) {
  // The Go value of a type is its name: types match as texts do.
  if (!args[0].is_string() && !args[0].is(Tag::kType)) return NoSuchOverload(args[0]);
  const std::string_view text = args[0].text();
  switch (call.regex_use) {
    case plan::RegexUse::kMatches:
      return args.size() == 2 ? Val::Bool(call.regex->Matches(text)) : NoSuchOverload();
    case plan::RegexUse::kFind:
      return args.size() == 2 ? Val::String(call.regex->Find(text)) : NoSuchOverload();
    default:
      if (args.size() > 2 && !args[2].is(Tag::kInt)) return NoSuchOverload(args[2]);
      return NewStringList(e.arena, call.regex->FindAll(text, args.size() > 2 ? args[2].int_value() : -1));
  }
}

}  // namespace

Val Invoke(Evaluation& e, const plan::CallNode& call, std::span<const Val> args) {
  if (call.regex != nullptr) return InvokeRegex(e, call, args);
  if (!call.candidates.empty()) {
    for (const plan::Candidate& candidate : call.candidates) {
      if (Accepts(e, call, *candidate.overload, args)) return candidate.function(e, args);
    }
    return NoOverloadFor(e, call.function, args);
  }
  if (call.implementation != nullptr && call.guarded) {
    if (!Accepts(e, call, *call.overload, args)) return NoOverloadFor(e, call.function, args);
    return call.implementation(e, args);
  }
  const std::uint16_t traits = args.empty() ? 0 : TraitsOf(args[0]);
  if (call.implementation != nullptr && (call.trait == 0 || (traits & call.trait) != 0))
    return call.implementation(e, args);
  // Receivers (texts and times) answer only to functions that are bound anyway.
  if ((traits & kReceiver) != 0) return NoSuchOverload();
  return ErrorIn(e.arena, "no such overload: ", call.function);
}

}  // namespace keelson::cel
