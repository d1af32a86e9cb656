// Test data: the public suites, and random objects of any type. Tests only.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "base/arena.h"
#include "codec/scalars.h"
#include "object/duration.h"
#include "object/time.h"
#include "object/value.h"
#include "schema/schema.h"

namespace keelson::codec {

inline std::filesystem::path Suite(const char* name) {
  const char* root = std::getenv("KEELSON_SUITES");
  return std::filesystem::path(root != nullptr ? root : "../shared/testdata") / name;
}

inline std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Fixture {
  std::string name;
  const schema::Struct* type = nullptr;
  std::string json, yaml, pb;
};

// core.v1.Pod.json: group (core for none), version, kind.
inline std::vector<Fixture> Fixtures() {
  std::vector<Fixture> fixtures;
  const auto root = Suite("roundtrip");
  if (!std::filesystem::exists(root)) return fixtures;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    if (entry.path().extension() != ".json") continue;
    Fixture fixture{.name = entry.path().stem().string()};
    const auto kind_dot = fixture.name.rfind('.');
    const auto version_dot = fixture.name.rfind('.', kind_dot - 1);
    std::string group = fixture.name.substr(0, version_dot);
    if (group == "core") group.clear();
    fixture.type = schema::FindKind(group, fixture.name.substr(version_dot + 1, kind_dot - version_dot - 1),
                                    fixture.name.substr(kind_dot + 1));
    fixture.json = ReadFile(entry.path());
    fixture.yaml = ReadFile(std::filesystem::path(entry.path()).replace_extension(".yaml"));
    fixture.pb = ReadFile(std::filesystem::path(entry.path()).replace_extension(".pb"));
    fixtures.push_back(std::move(fixture));
  }
  std::ranges::sort(fixtures, {}, &Fixture::name);
  return fixtures;
}

// Random objects as decoders would make them: canonical, in the table's member order, zero values of plain fields
// absent.
class Generator {
 public:
  Generator(base::Arena& arena, std::uint64_t seed) : arena_(arena), random_(seed) {}

  Value Object(const schema::Struct& type, int depth = 0) {
    Value out = Value::Map(arena_);
    for (const schema::Field* field : type.json_fields) {
      if (Below(depth < 3 ? 3 : 8) != 0) continue;
      // An object inside another one (a Status in a response) loses its type meta in protobuf.
      if (depth > 0 && !type.fields.empty() && type.fields[0].inlined && type.fields[0].number == 0 &&
          (field->name == "kind" || field->name == "apiVersion")) {
        continue;
      }
      Value value = Of(*field->type, depth + 1);
      if (value.is_null()) continue;
      if (!field->pointer && IsPlainZero(*field->type, value)) continue;
      out.Set(arena_, field->name, value);
    }
    return out;
  }

 private:
  static bool IsPlainZero(const schema::Type& type, const Value& value) {
    // protobuf does not distinguish nil from empty.
    if (type.kind == schema::Kind::kList || type.kind == schema::Kind::kMap) return value.empty();
    return IsZero(type, value);
  }

  std::uint64_t Below(std::uint64_t bound) { return random_() % bound; }

  std::string_view Text() {
    static constexpr std::string_view kPieces[] = {"a",
                                                   "name",
                                                   "x-y",
                                                   "<&>",
                                                   "\"",
                                                   "\\",
                                                   "\n",
                                                   "é",
                                                   "\xE2\x80\xA8",
                                                   "\xF0\x9F\x98\x80",
                                                   "0",
                                                   " ",
                                                   "'",
                                                   ": ",
                                                   "#",
                                                   "true",
                                                   "null",
                                                   "1e3",
                                                   "~",
                                                   "a longer piece of text that does not fit one block"};
    std::string text;
    for (auto n = Below(4); n > 0; --n) text += kPieces[Below(std::size(kPieces))];
    return arena_.Copy(text);
  }

  std::int64_t Integer(bool wide) {
    static constexpr std::int64_t kEdges[] = {0, 1, -1, 127, 128, 65536, INT32_MAX, INT32_MIN};
    if (Below(2) == 0) return kEdges[Below(std::size(kEdges))];
    return wide ? static_cast<std::int64_t>(random_()) : static_cast<std::int32_t>(random_());
  }

  Value Of(const schema::Type& type, int depth) {
    using schema::Kind;
    static constexpr std::string_view kQuantities[] = {"0",    "1",   "100m", "1Gi", "1500m",
                                                       "12e6", "3Ki", "5n",   "-2",  "7E"};
    static constexpr std::string_view kRaws[] = {"{}", R"({"a":[1,2.5,"x"]})",
                                                 R"({"f:metadata":{"f:labels":{".":{}}}})", R"({"k":"\"<\\"})"};
    static constexpr double kDoubles[] = {0, 1, -1.5, 1e21, 1e-7, 3.14159, 1e300};
    switch (type.kind) {
      case Kind::kString:
        return Value(Text());
      case Kind::kBool:
        return Value(Below(2) == 0);
      case Kind::kInt32:
        return Value(Integer(false));
      case Kind::kInt64:
        return Value(Integer(true));
      case Kind::kDouble:
        return Value(kDoubles[Below(std::size(kDoubles))]);
      case Kind::kBytes: {
        static constexpr std::string_view kBytes[] = {"AA==", "AAE=", "AAEC", "//79", "aGVsbG8gd29ybGQ="};
        return Value(kBytes[Below(std::size(kBytes))]);
      }
      case Kind::kTime:
        return Value::String(arena_,
                             object::FormatTime(static_cast<std::int64_t>(Below(4'000'000'000)) - 1'000'000'000));
      case Kind::kMicroTime:
        return Value::String(arena_, object::FormatMicroTime({static_cast<std::int64_t>(Below(4'000'000'000)),
                                                              static_cast<std::int32_t>(Below(1'000'000) * 1000)}));
      case Kind::kDuration:
        return Value::String(arena_, object::FormatDuration(Integer(true)));
      case Kind::kQuantity:
        return Value(kQuantities[Below(std::size(kQuantities))]);
      case Kind::kIntOrString:
        return Below(2) == 0 ? Value(Integer(false)) : Value(Text());
      case Kind::kRaw:
      case Kind::kFieldsV1:
      case Kind::kJSON:
        return Value::Raw(kRaws[Below(std::size(kRaws))]);
      case Kind::kStruct:
        return depth > 12 ? Value() : Object(*type.structure, depth);
      case Kind::kEither: {
        const auto fields = type.structure->json_fields;
        if (depth > 6) return {};
        const Value value = Of(*fields[Below(fields.size())]->type, depth + 1);
        return value.is_list() && value.empty() ? Value() : value;
      }
      case Kind::kList: {
        Value list = Value::List(arena_);
        for (auto n = Below(depth < 4 ? 4 : 2); n > 0; --n) {
          const Value item = Of(*type.element, depth + 1);
          if (!item.is_null()) list.Append(arena_, item);
        }
        return list;
      }
      case Kind::kMap: {
        Value map = Value::Map(arena_);
        for (auto n = Below(4); n > 0; --n) {
          const Value value = Of(*type.element, depth + 1);
          if (!value.is_null()) map.Set(arena_, Text(), value);
        }
        return map;
      }
    }
    return {};
  }

  base::Arena& arena_;
  std::mt19937_64 random_;
};

inline std::uint64_t Seed() {
  const char* seed = std::getenv("KEELSON_SEED");
  return seed != nullptr ? std::strtoull(seed, nullptr, 10) : 1;
}

}  // namespace keelson::codec
