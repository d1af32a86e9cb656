// Schemas that multiply the work of an object. The cost of validation is linear in schema and object, or validation ends at
// a bound; sizes of these cases are beyond the bounds.
#include <gtest/gtest.h>

#include <functional>

#include "base/colliding_keys_test.h"
#include "base/scaling_test.h"
#include "object/json_text.h"
#include "validation/structural/custom_resource.h"
#include "validation/structural/object_pipeline.h"

namespace keelson::validation::structural {
namespace {

std::string Many(std::size_t count, std::string_view open, std::string_view close,
                 const std::function<std::string(std::size_t)>& item) {
  std::string out(open);
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) out += ',';
    out += item(i);
  }
  return out + std::string(close);
}
std::string Name(std::size_t i) { return "\"n" + std::to_string(i) + "\""; }
std::string ListOf(const std::string& items) { return R"({"type":"array","items":)" + items + "}"; }

using Make = std::function<std::string(std::size_t)>;

struct Case {
  const char* name;
  std::size_t count;
  Make schema;
  Make value;
  const char* error;  // part of one, "" for none
};

std::string Texts(const FieldErrors& errors) {
  std::string text;
  for (std::size_t i = 0; i < errors.size() && i < 3; ++i) text += errors[i].ToString() + "\n";
  if (errors.size() > 3) text += errors.back().ToString();
  return text;
}

FieldErrors Validated(schema::structural::Node schema, const Value& value, const Value* old) {
  FieldErrors errors;
  base::Arena arena;
  ValidateValue(arena, value, old, schema, FieldPath(), errors);
  ValidateListTypes(value, schema, FieldPath(), errors);
  return errors;
}

Make Empty() {
  return [](std::size_t n) { return Many(n, R"({"s":[)", "]}", [](std::size_t) { return "{}"; }); };
}

const Case kCases[] = {
    {"enum of texts, each item the last of them", 4'000,
     [](std::size_t n) { return ListOf(Many(n, R"({"type":"string","enum":[)", "]}", Name)); },
     [](std::size_t n) { return Many(n, R"({"s":[)", "]}", [&](std::size_t) { return Name(n - 1); }); }, ""},
    {"enum of integers", 4'000,
     [](std::size_t n) {
       return ListOf(Many(n, R"({"type":"integer","enum":[)", "]}", [](std::size_t i) { return std::to_string(i); }));
     },
     [](std::size_t n) { return Many(n, R"({"s":[)", "]}", [&](std::size_t) { return std::to_string(n - 1); }); }, ""},
    {"enum of texts, no item one of them", 4'000,
     [](std::size_t n) { return ListOf(Many(n, R"({"type":"string","enum":[)", "]}", Name)); },
     [](std::size_t n) { return Many(n, R"({"s":[)", "]}", [](std::size_t) { return "\"x\""; }); }, "Unsupported"},
    {"properties of empty items", 4'000,
     [](std::size_t n) {
       return ListOf(Many(n, R"({"type":"object","properties":{)", "}}",
                          [](std::size_t i) { return Name(i) + R"(:{"type":"string"})"; }));
     },
     Empty(), ""},
    {"required names of empty items", 4'000,
     [](std::size_t n) { return ListOf(Many(n, R"({"type":"object","required":[)", "]}", Name)); }, Empty(),
     "Required value"},
    {"alternatives", 1'000,
     [](std::size_t n) {
       return ListOf(
           Many(n, R"({"type":"integer","anyOf":[)", ",{}]}", [](std::size_t) { return R"({"maximum":0})"; }));
     },
     [](std::size_t n) { return Many(n, R"({"s":[)", "]}", [](std::size_t) { return "1"; }); },
     "must not take more than 40000000 steps"},
    {"one of many alternatives", 1'000,
     [](std::size_t n) {
       return ListOf(
           Many(n, R"({"type":"integer","oneOf":[)", ",{}]}", [](std::size_t) { return R"({"maximum":0})"; }));
     },
     [](std::size_t n) { return Many(n, R"({"s":[)", "]}", [](std::size_t) { return "1"; }); },
     "must not take more than 40000000 steps"},
    {"errors below a long name", 20'000,
     [](std::size_t) {
       return R"({"type":"object","additionalProperties":{"type":"array","items":{"type":"integer"}}})";
     },
     [](std::size_t n) {
       return Many(n, R"({"s":{")" + std::string(n, 'k') + "\":[", "]}}", [](std::size_t) { return "true"; });
     },
     "must be of type integer"},
    {"duplicates below a long name", 20'000,
     [](std::size_t) {
       return R"({"type":"object","additionalProperties":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"integer"}}})";
     },
     [](std::size_t n) {
       return Many(n, R"({"s":{")" + std::string(n, 'k') + "\":[", "]}}",
                   [](std::size_t i) { return std::to_string(i / 2); });
     },
     "Duplicate value"},
};

TEST(WorstCase, SchemasDoNotMultiplyTheWorkOfValidation) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const auto scaling = base::Measure(
        [&](std::size_t n) {
          base::Arena arena;
          schema::structural::Pool pool;
          const auto built =
              pool.Build(std::string_view(R"({"type":"object","properties":{"s":)" + c.schema(n) + "}}"));
          ASSERT_TRUE(built.ok()) << built.error();
          const auto value = object::ParseJSON(arena, c.value(n));
          ASSERT_TRUE(value);
          const std::string errors = Texts(Validated(built->root(), *value, nullptr));
          if (std::string_view(c.error).empty()) {
            EXPECT_EQ(errors, "");
          } else {
            EXPECT_TRUE(errors.contains(c.error)) << errors.size();
          }
        },
        c.count, 4 * c.count);
    EXPECT_FALSE(base::IsSuperLinear(scaling)) << "slope " << scaling.slope << ", " << scaling.large << " s";
  }
}

// kube-apiserver has no bound, and an object may come from there: its finalizers can be removed.
TEST(WorstCase, StoredObjectsBeyondTheBoundAcceptChangesOfMetadata) {
  const std::string schema =
      ListOf(Many(2'000, R"({"type":"integer","anyOf":[)", ",{}]}", [](std::size_t) { return R"({"maximum":0})"; }));
  base::Arena arena;
  schema::structural::Pool pool;
  const auto built = pool.Build(std::string_view(R"({"type":"object","properties":{"s":)" + schema + "}}"));
  ASSERT_TRUE(built.ok()) << built.error();
  const auto object = [&](std::string_view metadata, std::size_t items) {
    return object::ParseJSON(arena, R"({"metadata":{)" + std::string(metadata) + R"(},"s":)" +
                                        Many(items, "[", "]}", [](std::size_t) { return "1"; }));
  };
  const auto old = object(R"("finalizers":["a/b"])", 8'000), same = object("", 8'000), other = object("", 8'001);
  ASSERT_TRUE(old && same && other);
  EXPECT_TRUE(Validated(built->root(), *same, &*old).empty());
  EXPECT_FALSE(Validated(built->root(), *other, &*old).empty());
}

// Each of 250 levels is compared with the old object while an error inside is new.
TEST(WorstCase, RatchetingOfDeepObjectsEnds) {
  std::string schema = R"({"type":"array","items":{"type":"integer","maximum":0}})";
  std::string open, close;
  for (int i = 0; i < 250; ++i) {
    schema = R"({"type":"object","properties":{"a":)" + schema + "}}";
    open += R"({"a":)";
    close += "}";
  }
  base::Arena arena;
  schema::structural::Pool pool;
  const auto built = pool.Build(std::string_view(schema));
  ASSERT_TRUE(built.ok()) << built.error();
  const auto scaling = base::Measure(
      [&](std::size_t n) {
        const auto list = [&](std::string_view last) {
          return open + Many(n, "[", "," + std::string(last) + "]", [](std::size_t) { return "0"; }) + close;
        };
        const auto old = object::ParseJSON(arena, list("0"));
        const auto value = object::ParseJSON(arena, list("1"));
        EXPECT_FALSE(Validated(built->root(), *value, &*old).empty());
      },
      50'000, 200'000);
  EXPECT_FALSE(base::IsSuperLinear(scaling)) << "slope " << scaling.slope << ", " << scaling.large << " s";
}

TEST(WorstCase, DefaultsAddABoundedAmount) {
  const Case cases[] = {
      {"a long default for each item", 3'000,
       [](std::size_t n) {
         return ListOf(R"({"type":"object","properties":{"a":{"type":"string","default":")" + std::string(n, 'x') +
                       "\"}}}");
       },
       Empty(), "defaults of the schema add more than 8388608 bytes"},
      {"many defaults for each item", 3'000,
       [](std::size_t n) {
         return ListOf(Many(n, R"({"type":"object","properties":{)", "}}",
                            [](std::size_t i) { return Name(i) + R"(:{"type":"integer","default":1})"; }));
       },
       Empty(), "defaults of the schema add more than 8388608 bytes"},
      {"properties without a default of their own", 3'000,
       [](std::size_t n) {
         return ListOf(Many(n, R"({"type":"object","properties":{)", "}}", [](std::size_t i) {
           return Name(i) + R"(:{"type":"object","properties":{"a":{"type":"integer","default":1}}})";
         }));
       },
       Empty(), ""},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const auto scaling = base::Measure(
        [&](std::size_t n) {
          base::Arena arena;
          schema::structural::Pool pool;
          const auto built =
              pool.Build(std::string_view(R"({"type":"object","properties":{"s":)" + c.schema(n) + "}}"));
          ASSERT_TRUE(built.ok()) << built.error();
          const auto value = object::ParseJSON(arena, c.value(n));
          ASSERT_TRUE(value);
          const auto coerced = CoerceObject(arena, *value, built->root(), {});
          EXPECT_EQ(coerced.ok() ? "" : coerced.error(), c.error);
          WouldChange(*value, built->root());
        },
        c.count, 4 * c.count);
    EXPECT_FALSE(base::IsSuperLinear(scaling)) << "slope " << scaling.slope << ", " << scaling.large << " s";
  }
}

TEST(WorstCase, FinalizersThatAreNew) {
  const auto scaling = base::Measure(
      [&](std::size_t n) {
        base::Arena arena;
        const auto of = [&](const char* prefix) {
          return object::ParseJSON(arena, Many(n, R"({"metadata":{"finalizers":[)", "]}}", [&](std::size_t i) {
                                     return "\"" + std::string(prefix) + std::to_string(i) + "\"";
                                   }));
        };
        EXPECT_EQ(FinalizerWarnings(*of("a.io/a"), *of("a.io/b")).size(), 0U);
      },
      5'000, 20'000);
  EXPECT_FALSE(base::IsSuperLinear(scaling)) << "slope " << scaling.slope << ", " << scaling.large << " s";
}

TEST(WorstCase, KeysThatCollideInTheLibrarysHash) {
  constexpr std::size_t kCount = 8192;
  const auto keys = base::CollidingKeys(kCount);  // 1.8 MB
  const auto key = [&](std::size_t i) { return "\"" + keys[i] + "\""; };
  base::Arena arena;
  schema::structural::Pool pool;
  const auto built = pool.Build(std::string_view(R"({"type":"object","properties":{
    "set":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
    "map":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object",
      "properties":{"k":{"type":"string","maxLength":1}}}}}})"));
  ASSERT_TRUE(built.ok()) << built.error();
  const auto finalizers = Many(kCount, R"({"metadata":{"finalizers":[)", "]}}", key);
  const auto lists = Many(kCount, R"({"set":[)", "],", key) +
                     Many(kCount, R"("map":[)", "]}", [&](std::size_t i) { return R"({"k":)" + key(i) + "}"; });
  const auto object = object::ParseJSON(arena, finalizers);
  const auto value = object::ParseJSON(arena, lists);
  ASSERT_TRUE(object && value);
  const double seconds = base::CPUOf(
      [&] {
        EXPECT_TRUE(FinalizerWarnings(*object, *object).empty());
        EXPECT_TRUE(Validated(built->root(), *value, &*value).empty());  // ratcheted: looked up in the old list
      },
      1);
  EXPECT_LT(seconds, 0.7);
}

}  // namespace
}  // namespace keelson::validation::structural
