// Field errors as apimachinery's field package makes them: one function per error type, rendering included.
// Usage: errors.push_back(Invalid(path.Child("port"), port, "must be ...")).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meta/status.h"
#include "object/field_path.h"
#include "object/value.h"

namespace keelson::validation {

using meta::FieldError;
using meta::FieldErrors;

// The value as the error text shows it: strings quoted as Go does (%q), integers, doubles and booleans plain,
// everything else compact JSON (HTML-escaped), null as "null". Typed strings (enums, in upstream named string types)
// look the same as JSON.
std::string RenderValue(const Value& value);

FieldError Required(const FieldPath& path, std::string_view detail = {});
FieldError Invalid(const FieldPath& path, const Value& value, std::string_view detail);
FieldError Invalid(const FieldPath& path, std::string_view text, std::string_view detail);
inline FieldError Invalid(const FieldPath& path, const char* text, std::string_view detail) {
  return Invalid(path, std::string_view(text), detail);
}
inline FieldError Invalid(const FieldPath& path, const std::string& text, std::string_view detail) {
  return Invalid(path, std::string_view(text), detail);
}
FieldError Forbidden(const FieldPath& path, std::string_view detail);
FieldError Duplicate(const FieldPath& path, const Value& value);
FieldError NotFound(const FieldPath& path, const Value& value);
FieldError NotSupported(const FieldPath& path, const Value& value, std::span<const std::string_view> supported);
FieldError TooLong(const FieldPath& path, std::int64_t bytes_max);  // may not be more than N bytes
FieldError TooMany(const FieldPath& path, std::int64_t actual, std::int64_t max);
FieldError InternalError(const FieldPath& path, std::string_view detail);
FieldError TypeInvalid(const FieldPath& path, const Value& value, std::string_view detail);

}  // namespace keelson::validation
