// Objects with one huge list or map, for every list and map of every kind: defaulting, preparing, validating and
// comparing with the old object grow no faster than the object. Kinds and fields come from the tables, so a new kind is
// covered without a line here.
#include <gtest/gtest.h>

#include <set>

#include "base/scaling_test.h"
#include "object/json_text.h"
#include "registry/testing/player.h"

namespace keelson::registry {
namespace {

using testing::Player;
using testing::Target;

constexpr int kDepthMax = 8;           // of the lists and maps that are filled
constexpr std::size_t kSmall = 1'500;  // items
constexpr std::size_t kLarge = 9'000;
constexpr double kQuadraticSeconds = 0.1;  // for kLarge items: 1.2 ns for each pair of them; below that it is noise
constexpr double kLongSeconds = 0.008;     // for kSmall items: from there on the slope is measured

enum class Items : std::uint8_t { kDistinct, kEqual };

std::string Text(std::size_t index) { return "\"n" + std::to_string(index) + "\""; }

// A value of the type. Structs get their scalars, and of lists and maps one item, two levels deep.
std::string Sample(const schema::Type& type, std::size_t index, int levels);

std::string SampleMembers(const schema::Struct& type, std::string_view but, std::size_t index, int levels) {
  std::string out;
  for (const schema::Field* field : type.json_fields) {
    if (field->name == but) continue;
    const schema::Kind kind = field->type->kind;
    const bool nested = kind == schema::Kind::kStruct || kind == schema::Kind::kList || kind == schema::Kind::kMap;
    if (nested && levels == 0) continue;
    const std::string value = field->enum_values.empty() || kind != schema::Kind::kString
                                  ? Sample(*field->type, index, levels - 1)
                                  : "\"" + std::string(field->enum_values[0]) + "\"";
    if (value.empty()) continue;
    if (!out.empty()) out += ',';
    out += "\"" + std::string(field->name) + "\":" + value;
  }
  return out;
}

std::string Sample(const schema::Type& type, std::size_t index, int levels) {
  switch (type.kind) {
    case schema::Kind::kString:
      return Text(index);
    case schema::Kind::kBool:
      return "false";
    case schema::Kind::kInt32:
    case schema::Kind::kInt64:
    case schema::Kind::kIntOrString:
      return std::to_string(1 + index % 60'000);
    case schema::Kind::kDouble:
      return "0.5";
    case schema::Kind::kBytes:
      return "\"YWJj\"";
    case schema::Kind::kTime:
      return "\"2026-11-16T03:04:05Z\"";
    case schema::Kind::kMicroTime:
      return "\"2026-11-16T03:04:05.000000Z\"";
    case schema::Kind::kDuration:
      return "\"5s\"";
    case schema::Kind::kQuantity:
      return "\"1\"";
    case schema::Kind::kRaw:
      return R"({"kind":"X","apiVersion":"v1"})";
    case schema::Kind::kStruct:
      return "{" + SampleMembers(*type.structure, {}, index, levels) + "}";
    case schema::Kind::kList:
      return "[" + Sample(*type.element, index, levels) + "]";
    case schema::Kind::kMap:
      return "{" + Text(index) + ":" + Sample(*type.element, index, levels) + "}";
    default:
      return {};
  }
}

// A way from the root to a list or map; empty names step into the items of a list or the values of a map.
using Way = std::vector<const schema::Field*>;

void Collect(const schema::Struct& type, Way& way, std::vector<const schema::Struct*>& above, std::vector<Way>& out) {
  if (std::ranges::count(above, &type) > 0) return;  // JSONSchemaProps contains itself
  above.push_back(&type);
  for (const schema::Field* field : type.json_fields) {
    way.push_back(field);
    const schema::Type* inner = field->type;
    if (inner->kind == schema::Kind::kList || inner->kind == schema::Kind::kMap) {
      out.push_back(way);
      inner = inner->element;
    }
    if (inner->kind == schema::Kind::kStruct && way.size() < kDepthMax) Collect(*inner->structure, way, above, out);
    way.pop_back();
  }
  above.pop_back();
}

std::string Many(const schema::Type& type, std::size_t count, Items items) {
  const bool list = type.kind == schema::Kind::kList;
  std::string out = list ? "[" : "{";
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) out += ',';
    const std::size_t index = items == Items::kDistinct ? i : 7;
    if (!list) out += Text(i) + ":";
    const std::string value = Sample(*type.element, index, 1);
    out += value.empty() ? "null" : value;
  }
  return out + (list ? "]" : "}");
}

std::string Body(const schema::Struct& type, const Way& way, std::size_t at, std::size_t count, Items items) {
  const schema::Field& field = *way[at];
  std::string value;
  if (at + 1 == way.size()) {
    value = Many(*field.type, count, items);
  } else if (field.type->kind == schema::Kind::kStruct) {
    value = Body(*field.type->structure, way, at + 1, count, items);
  } else {
    const std::string inner = Body(*field.type->element->structure, way, at + 1, count, items);
    value = field.type->kind == schema::Kind::kList ? "[" + inner + "]" : "{\"n0\":" + inner + "}";
  }
  std::string out = "{";
  if (at == 0) out += R"("metadata":{"name":"n0","namespace":"n0"},)";
  if (field.name == "metadata" && at == 0) out = "{";
  const std::string others = at == 0 ? "" : SampleMembers(type, field.name, 0, 0);
  return out + (others.empty() ? "" : others + ",") + "\"" + std::string(field.name) + "\":" + value + "}";
}

void Write(const Target& target, const std::string& body) {
  Player player;
  const Value object = player.Decode(target, body);
  if (object.is_null()) return;
  const Player::Outcome created = player.Create(target, object);
  if (created.ran) player.Update(target, object, created.object);
}

std::string NameOf(const Way& way) {
  std::string name;
  for (const schema::Field* field : way) name += "." + std::string(field->name);
  return name;
}

TEST(WorstCase, ValidationGrowsNoFasterThanTheObject) {
  std::size_t cases = 0;
  std::set<const schema::Field*> shared;
  for (const schema::Package* package : schema::Packages()) {
    for (const schema::Resource& resource : package->resources) {
      if (FindStrategy(resource.group, resource.kind) == nullptr) continue;
      Way way;
      std::vector<const schema::Struct*> above;
      std::vector<Way> ways;
      Collect(*resource.type, way, above, ways);
      const Target target{&resource, resource.namespaced ? "n0" : "", "n0", ""};
      for (const Way& one : ways) {
        // Structs that many kinds share (pod templates, metadata) are measured deep inside the first of them.
        if (one.size() > 2 && !shared.insert(one.back()).second) continue;
        for (const Items items : {Items::kDistinct, Items::kEqual}) {
          ++cases;
          const std::string small = Body(*resource.type, one, 0, kSmall, items);
          if (base::CPUOf([&] { Write(target, small); }, 1) < kLongSeconds) continue;
          const std::string large = Body(*resource.type, one, 0, kLarge, items);
          const auto scaling =
              base::Measure([&](std::size_t count) { Write(target, count == kSmall ? small : large); }, kSmall, kLarge);
          EXPECT_FALSE(base::IsSuperLinear(scaling) && scaling.large > kQuadraticSeconds)
              << package->name << " " << resource.kind << NameOf(one)
              << (items == Items::kDistinct ? " distinct" : " equal") << ": slope " << scaling.slope << ", "
              << scaling.large << " s for " << kLarge << " items";
        }
      }
    }
  }
  EXPECT_GT(cases, 500u);
  RecordProperty("cases", static_cast<int>(cases));
}

}  // namespace
}  // namespace keelson::registry
