// Random objects of every type in the tables survive every path between the formats. KEELSON_SEED replays.
#include <gtest/gtest.h>

#include "codec/cbor.h"
#include "codec/fixtures_test.h"
#include "codec/json.h"
#include "codec/protobuf.h"
#include "codec/scalars.h"
#include "codec/transcode.h"
#include "codec/yaml.h"
#include "object/quantity.h"

namespace keelson::codec {
namespace {

using base::Arena;

// The members of every map, last first.
void Reverse(const Value& value) {
  std::ranges::reverse(value.members());
  for (const object::Member& member : value.members()) Reverse(member.value);
  for (const Value& item : value.items()) Reverse(item);
}

// As if code of ours had put everything together: no member's place in the tables is known.
Value WithoutPlaces(Arena& arena, const Value& value) {
  const auto forget = [](auto& self, const Value& at) -> void {
    for (object::Member& member : at.members()) {
      member.value.set_place(0);
      self(self, member.value);
    }
    for (const Value& item : at.items()) self(self, item);
  };
  const Value clone = value.Clone(arena);
  forget(forget, clone);
  return clone;
}

TEST(Property, EveryTypeSurvivesEveryPath) {
  std::uint64_t seed = Seed();
  std::size_t types = 0;
  for (const schema::Package* package : schema::Packages()) {
    for (const schema::Struct& type : package->types) {
      if (type.json_fields.empty() || type.json_fields[0]->name.empty()) continue;  // an either: only inside others
      ++types;
      for (int round = 0; round < 4; ++round) {
        SCOPED_TRACE(std::string(package->name) + "." + std::string(type.name) + " seed " + std::to_string(++seed));
        Arena arena;
        const Value object = Generator(arena, seed).Object(type);
        std::string json;
        EncodeJSON(object, type, json);
        const auto from_json = DecodeJSON(arena, json, type, {.strict = true});
        ASSERT_TRUE(from_json.ok()) << from_json.error().message << "\n" << json;
        EXPECT_TRUE(from_json->strict_errors.empty());
        std::string json_again;
        EncodeJSON(from_json->value, type, json_again);
        ASSERT_EQ(json_again, json);
        // Untyped: what goes in comes out, members sorted; typed decoding of that gives the same object.
        const auto untyped = DecodeJSON(arena, json);
        ASSERT_TRUE(untyped.ok());
        std::string sorted, json_from_sorted;
        EncodeJSON(untyped->value, sorted);
        const auto from_sorted = DecodeJSON(arena, sorted, type, {.strict = true});
        ASSERT_TRUE(from_sorted.ok()) << from_sorted.error().message;
        EncodeJSON(from_sorted->value, type, json_from_sorted);
        // Raw text keeps its own order of members, which sorting changes.
        if (json.find("f:metadata") == std::string::npos) ASSERT_EQ(json_from_sorted.size(), json.size());
        // YAML and CBOR have JSON's data model: the object survives a round trip. (Raw parts have no separate form
        // there.)
        std::string yaml, cbor, json_of_yaml, json_of_cbor;
        EncodeYAML(untyped->value, yaml);
        const auto from_yaml = DecodeYAML(arena, yaml, type, {.strict = true});
        ASSERT_TRUE(from_yaml.ok()) << from_yaml.error().message << "\n" << yaml;
        EXPECT_TRUE(from_yaml->strict_errors.empty());
        EncodeJSON(from_yaml->value, type, json_of_yaml);
        ASSERT_EQ(json_of_yaml, json_from_sorted) << yaml;
        EncodeCBOR(arena, from_json->value, type, cbor);
        const auto from_cbor = DecodeCBOR(arena, cbor, type, {.strict = true});
        ASSERT_TRUE(from_cbor.ok()) << from_cbor.error().message;
        EncodeJSON(from_cbor->value, type, json_of_cbor);
        if (json.find("f:metadata") == std::string::npos) ASSERT_EQ(json_of_cbor, json);
        if (!type.HasProto()) continue;
        if (type.FindField("kind") != nullptr && type.proto_fields.size() + 2 < type.json_fields.size()) continue;
        std::string message, message_again, transcoded;
        EncodeProtoMessage(from_json->value, type, message);
        const auto from_proto = DecodeProtoMessage(arena, message, type);
        ASSERT_TRUE(from_proto.ok()) << from_proto.error().message;
        EncodeProtoMessage(from_proto->value, type, message_again);
        ASSERT_EQ(message_again, message);
        // Independent of the order and the origin of the members.
        std::string message_looked_up, message_reversed, json_reversed;
        EncodeProtoMessage(WithoutPlaces(arena, from_json->value), type, message_looked_up);
        ASSERT_EQ(message_looked_up, message);
        const Value reversed = from_json->value.Clone(arena);
        Reverse(reversed);
        EncodeProtoMessage(reversed, type, message_reversed);
        ASSERT_EQ(message_reversed, message);
        EncodeJSON(reversed, type, json_reversed);
        ASSERT_EQ(json_reversed, json);
        std::string json_of_proto;
        EncodeJSON(from_proto->value, type, json_of_proto);
        ASSERT_TRUE(TranscodeMessage(message, type, {}, {}, transcoded).ok());
        ASSERT_EQ(transcoded, json_of_proto);
        // apiVersion and kind are in the envelope, not in the message.
        Value bare = from_json->value;
        for (const char* name : {"kind", "apiVersion"}) {
          const schema::Field* field = type.FindField(name);
          const bool in_message =
              field != nullptr && std::ranges::find(type.proto_fields, field) != type.proto_fields.end();
          if (!in_message) bare.Erase(name);
        }
        std::string bare_json;
        EncodeJSON(bare, type, bare_json);
        ASSERT_EQ(json_of_proto, bare_json);
      }
    }
  }
  EXPECT_GT(types, 1100u);
}

// A member's noted index is only a hint if the object is then encoded as another type.
TEST(Property, NotedIndexOfAnotherTypeIsIgnored) {
  const schema::Struct* const types[] = {schema::FindType("core/v1", "Container"),
                                         schema::FindType("core/v1", "EphemeralContainer"),
                                         schema::FindType("core/v1", "EphemeralContainerCommon"),
                                         schema::FindType("core/v1", "PodSpec"),
                                         schema::FindType("core/v1", "Volume"),
                                         schema::FindType("core/v1", "VolumeSource"),
                                         schema::FindType("core/v1", "Probe"),
                                         schema::FindType("meta/v1", "ObjectMeta")};
  std::uint64_t seed = Seed();
  for (const schema::Struct* from : types) {
    for (const schema::Struct* to : types) {
      SCOPED_TRACE(std::string(from->name) + " as " + std::string(to->name) + " seed " + std::to_string(++seed));
      Arena arena;
      std::string json, given, wanted, given_message, wanted_message;
      EncodeJSON(Generator(arena, seed).Object(*to), *to, json);
      const auto as_from = DecodeJSON(arena, json, *from);
      if (!as_from.ok()) continue;  // a field of the same name and another type
      const Value plain = WithoutPlaces(arena, as_from->value);
      EncodeJSON(as_from->value, *to, given);
      EncodeJSON(plain, *to, wanted);
      EXPECT_EQ(given, wanted);
      EncodeProtoMessage(as_from->value, *to, given_message);
      EncodeProtoMessage(plain, *to, wanted_message);
      EXPECT_EQ(given_message, wanted_message);
    }
  }
}

// The short way of reading quantities gives what the long one does.
TEST(Property, PlainQuantitiesAreCanonical) {
  Arena arena;
  for (const std::string suffix : {"", "n", "u", "m", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "Pi"}) {
    for (int number = 0; number < 2000; ++number) {
      const std::string text = std::to_string(number) + suffix;
      Value value;
      std::string error;
      ASSERT_TRUE(CanonicalQuantity(arena, text, value, error)) << text;
      char buffer[object::Quantity::kTextMax];
      ASSERT_EQ(value.as_string(), *object::Quantity::Canonical(text, buffer));
    }
  }
}

}  // namespace
}  // namespace keelson::codec
