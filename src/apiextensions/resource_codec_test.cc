#include "apiextensions/resource_codec.h"

#include <gtest/gtest.h>

#include "codec/cbor.h"
#include "object/json_text.h"
#include "storage/completion.h"
#include "storage/stored_form.h"

namespace keelson::apiextensions {
namespace {

constexpr std::string_view kDefinition = R"j({"metadata":{"name":"ships.example.com","uid":"u","generation":1},
  "spec":{"group":"example.com","scope":"Cluster","names":{"plural":"ships","kind":"Ship","listKind":"ShipList"},
    "versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{
      "size":{"type":"integer"},"color":{"type":"string","default":"red"}}}}}]},
  "status":{"acceptedNames":{"plural":"ships","kind":"Ship","listKind":"ShipList"}}})j";
constexpr std::string_view kShip =
    R"({"apiVersion":"example.com/v1","color":"red","kind":"Ship","metadata":{"generation":1,"name":"s","uid":"x"},"size":3})"
    "\n";

class ResourceCodecTest : public ::testing::Test {
 protected:
  std::shared_ptr<const storage::ResourceCodec> Codec(StoredAs stored_as) {
    const auto value = object::ParseJSON(arena_, kDefinition);
    const auto definition = ReadDefinition(*value, nullptr);
    auto kind = CompileKind(std::make_shared<schema::structural::Pool>(), *definition, *value, {});
    EXPECT_TRUE(kind.ok());
    return NewStorageCodec(*kind, stored_as);
  }
  static const storage::StoredForm& FormOf(const storage::ResourceCodec& codec) {
    return dynamic_cast<const storage::StoredForm&>(codec);
  }
  base::Arena arena_;
};

TEST_F(ResourceCodecTest, StoredAsCBOR) {
  const auto codec = Codec(StoredAs::kCBOR);
  const storage::StoredForm& form = FormOf(*codec);
  ASSERT_TRUE(form.differs());
  const auto stored = form.ToStorage(base::SharedBytes(kShip));
  ASSERT_TRUE(stored.ok());
  EXPECT_TRUE(stored->view().starts_with(codec::kCBORMagic));
  const auto normalized = codec->Normalize(stored->view()), of_json = codec->Normalize(kShip);
  ASSERT_TRUE(normalized.ok() && of_json.ok());
  EXPECT_TRUE(form.IsCurrent(stored->view(), *normalized));
  EXPECT_FALSE(form.IsCurrent(kShip, *of_json));
  EXPECT_EQ(normalized->view(), kShip);
  const auto decoded = codec->Decode(arena_, stored->view());
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ((*decoded)["size"].as_int(), 3);
}

TEST_F(ResourceCodecTest, CBORIsReadWhereJSONIsWritten) {
  const auto stored = FormOf(*Codec(StoredAs::kCBOR)).ToStorage(base::SharedBytes(kShip));
  ASSERT_TRUE(stored.ok());
  const auto codec = Codec(StoredAs::kJSON);
  EXPECT_FALSE(FormOf(*codec).differs());
  const auto normalized = codec->Normalize(stored->view());
  ASSERT_TRUE(normalized.ok());
  EXPECT_EQ(normalized->view(), kShip);
  EXPECT_TRUE(codec->Normalize(kShip)->empty());
}

// Completeness known before encoding equals completeness found by decoding the encoded bytes.
TEST_F(ResourceCodecTest, CompleteObjectsAreKnownBeforeTheyAreEncoded) {
  struct Case {
    const char* name;
    const char* object;
    bool want;
  };
  constexpr Case kCases[] = {
      {"complete",
       R"({"kind":"Ship","apiVersion":"example.com/v1","metadata":{"generation":1,"name":"s"},"color":"red"})", true},
      {"in another version",
       R"({"kind":"Ship","apiVersion":"example.com/v2","metadata":{"generation":1,"name":"s"},"color":"red"})", true},
      {"a version is set",
       R"({"kind":"Ship","metadata":{"generation":1,"name":"s","resourceVersion":"7"},"color":"red"})", true},
      {"a default is missing", R"({"kind":"Ship","metadata":{"generation":1,"name":"s"}})", false},
      {"an unknown field", R"({"kind":"Ship","metadata":{"generation":1,"name":"s"},"color":"red","more":1})", false},
      {"a null to be dropped", R"({"kind":"Ship","metadata":{"generation":1,"name":"s"},"color":"red","size":null})",
       false},
      {"no generation", R"({"kind":"Ship","metadata":{"name":"s"},"color":"red"})", false},
      {"unknown metadata", R"({"kind":"Ship","metadata":{"generation":1,"name":"s","more":1},"color":"red"})", false},
  };
  const auto codec = Codec(StoredAs::kJSON);
  const auto& completion = dynamic_cast<const storage::Completion&>(*codec);
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const auto object = object::ParseJSON(arena_, c.object);
    ASSERT_TRUE(object);
    EXPECT_EQ(completion.IsComplete(*object), c.want);
    const auto encoded = codec->Encode(arena_, *object);
    ASSERT_TRUE(encoded.ok());
    const auto normalized = codec->Normalize(encoded->view());
    ASSERT_TRUE(normalized.ok());
    EXPECT_EQ(normalized->empty(), c.want);
  }
}

// The field manager leaves raw text in managedFields.
TEST_F(ResourceCodecTest, ManagedFieldsMayBeRaw) {
  const auto codec = Codec(StoredAs::kJSON);
  const auto object = object::ParseJSON(
      arena_,
      R"({"kind":"Ship","metadata":{"generation":1,"name":"s","managedFields":[{"manager":"m","operation":"Update"}]},"color":"red"})");
  ASSERT_TRUE(object);
  Value entry = object->Get("metadata", "managedFields")[std::size_t{0}];
  entry.Set(arena_, "fieldsV1", Value::Raw(R"({"f:size":{}})"));
  EXPECT_TRUE(dynamic_cast<const storage::Completion&>(*codec).IsComplete(*object));
  const auto encoded = codec->Encode(arena_, *object);
  ASSERT_TRUE(encoded.ok());
  EXPECT_TRUE(codec->Normalize(encoded->view())->empty());
}

}  // namespace
}  // namespace keelson::apiextensions
