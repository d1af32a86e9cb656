#include "validation/errors.h"

#include <gtest/gtest.h>

namespace keelson::validation {
namespace {

TEST(Errors, Rendering) {
  base::Arena arena;
  Value map = Value::Map(arena);
  map.Set(arena, "a", "<b>");
  const FieldPath path("spec");
  static constexpr std::string_view kSupported[] = {"a", "b\""};
  struct Case {
    FieldError error;
    const char* text;
  };
  const Case kCases[] = {
      {Required(path), "spec: Required value"},
      {Required(path.Child("x"), "why"), "spec.x: Required value: why"},
      {Invalid(path, 5, "bad"), "spec: Invalid value: 5: bad"},
      {Invalid(path, 1.5, "bad"), "spec: Invalid value: 1.5: bad"},
      {Invalid(path, true, "bad"), "spec: Invalid value: true: bad"},
      {Invalid(path, "a\"b", "bad"), "spec: Invalid value: \"a\\\"b\": bad"},
      {Invalid(path, map, "bad"), "spec: Invalid value: {\"a\":\"\\u003cb\\u003e\"}: bad"},
      {Invalid(path, Value(), "bad"), "spec: Invalid value: null: bad"},
      {Invalid(FieldPath(), "x", "bad"), "<nil>: Invalid value: \"x\": bad"},
      {Forbidden(path, "no"), "spec: Forbidden: no"},
      {Duplicate(path.Index(2).Child("name"), "x"), "spec[2].name: Duplicate value: \"x\""},
      {NotFound(path.Key("k"), "x"), "spec[k]: Not found: \"x\""},
      {NotSupported(path, "x", kSupported), "spec: Unsupported value: \"x\": supported values: \"a\", \"b\\\"\""},
      {NotSupported(path, "x", {}), "spec: Unsupported value: \"x\""},
      {TooLong(path, 1), "spec: Too long: may not be more than 1 byte"},
      {TooLong(path, 10), "spec: Too long: may not be more than 10 bytes"},
      {TooLong(path, -1), "spec: Too long: value is too long"},
      {TooMany(path, 3, 2), "spec: Too many: 3: must have at most 2 items"},
      {TooMany(path, -1, 1), "spec: Too many: must have at most 1 item"},
      {InternalError(path, "oops"), "spec: Internal error: oops"},
      {TypeInvalid(path, "x", "want number"), "spec: Invalid value: \"x\": want number"},
      {TooLong(FieldPath().Key(""), 5), "[]: Too long: may not be more than 5 bytes"},
  };
  for (const Case& c : kCases) EXPECT_EQ(c.error.ToString(), c.text);
}

}  // namespace
}  // namespace keelson::validation
