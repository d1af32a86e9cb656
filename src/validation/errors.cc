#include "validation/errors.h"

#include "base/strings.h"
#include "object/json_text.h"

namespace keelson::validation {
namespace {

using Type = FieldError::Type;

FieldError Make(Type type, const FieldPath& path, std::string value, std::string detail) {
  return {type, path.ToString(), std::move(value), std::move(detail)};
}

// "may not be more than 1 byte", "must have at most 3 items".
std::string Counted(std::string_view before, std::int64_t count, std::string_view noun) {
  std::string out(before);
  out += std::to_string(count);
  out += ' ';
  out += noun;
  if (count != 1) out += 's';
  return out;
}

}  // namespace

std::string RenderValue(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kString:
      return base::GoQuote(value.as_string());
    case Value::Kind::kDouble:
      return object::GoDouble(value.as_double());
    default:
      return object::ToJSON(value);
  }
}

FieldError Required(const FieldPath& path, std::string_view detail) {
  return Make(Type::kRequired, path, {}, std::string(detail));
}

FieldError Invalid(const FieldPath& path, const Value& value, std::string_view detail) {
  return Make(Type::kInvalid, path, RenderValue(value), std::string(detail));
}

FieldError Invalid(const FieldPath& path, std::string_view text, std::string_view detail) {
  return Make(Type::kInvalid, path, base::GoQuote(text), std::string(detail));
}

FieldError Forbidden(const FieldPath& path, std::string_view detail) {
  return Make(Type::kForbidden, path, {}, std::string(detail));
}
FieldError Duplicate(const FieldPath& path, const Value& value) {
  return Make(Type::kDuplicate, path, RenderValue(value), {});
}
FieldError NotFound(const FieldPath& path, const Value& value) {
  return Make(Type::kNotFound, path, RenderValue(value), {});
}

FieldError NotSupported(const FieldPath& path, const Value& value, std::span<const std::string_view> supported) {
  std::string detail;
  for (const std::string_view one : supported) {
    detail += detail.empty() ? "supported values: " : ", ";
    detail += base::GoQuote(one);
  }
  return Make(Type::kNotSupported, path, RenderValue(value), std::move(detail));
}

FieldError TooLong(const FieldPath& path, std::int64_t bytes_max) {
  return Make(Type::kTooLong, path, {},
              bytes_max < 0 ? "value is too long" : Counted("may not be more than ", bytes_max, "byte"));
}

FieldError TooMany(const FieldPath& path, std::int64_t actual, std::int64_t max) {
  return Make(Type::kTooMany, path, actual < 0 ? std::string() : std::to_string(actual),
              max < 0 ? "has too many items" : Counted("must have at most ", max, "item"));
}

FieldError InternalError(const FieldPath& path, std::string_view detail) {
  return Make(Type::kInternal, path, {}, std::string(detail));
}

FieldError TypeInvalid(const FieldPath& path, const Value& value, std::string_view detail) {
  return Make(Type::kTypeInvalid, path, RenderValue(value), std::string(detail));
}

}  // namespace keelson::validation
