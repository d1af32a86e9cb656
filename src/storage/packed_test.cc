#include "storage/packed.h"

#include <gtest/gtest.h>

#include <string>

#include "object/json_text.h"
#include "storage/definition_outline.h"
#include "storage/schema_codec.h"
#include "storage/stored_form.h"
#include "storage/stored_versions.h"

namespace keelson::storage {
namespace {

using base::SharedBytes;

// A definition as it lies in the store, with a description of `words` words.
std::string Definition(int words) {
  std::string text;
  for (int i = 0; i < words; ++i) text += "word ";
  return R"({"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1","metadata":{"name":"ships.example.com","uid":"u-1","generation":1,"creationTimestamp":"2026-01-01T00:00:00Z","labels":{"a":"b"}},"spec":{"group":"example.com","version":"v1","names":{"plural":"ships","singular":"ship","kind":"Ship","listKind":"ShipList"},"scope":"Cluster","validation":{"openAPIV3Schema":{"description":")" +
         text +
         R"(","type":"object"}},"versions":[{"name":"v1","served":true,"storage":true}],"conversion":{"strategy":"None"},"preserveUnknownFields":false},"status":{"conditions":null,"acceptedNames":{"plural":"","kind":""},"storedVersions":["v1"]}})"
         "\n";
}

std::unique_ptr<ResourceCodec> Inner() {
  SchemaCodecOptions options;
  options.resource = {"apiextensions.k8s.io", "customresourcedefinitions"};
  options.storage = {"apiextensions.k8s.io", "v1beta1", "CustomResourceDefinition"};
  options.json = true;
  options.type = StoredType(options.storage);
  options.hub_version = "apiextensions.k8s.io/v1";
  options.convert = StoredConversion(options.resource);
  return NewSchemaCodec(std::move(options));
}

class PackedTest : public ::testing::Test {
 protected:
  // As an object is made of what lies in the store.
  SharedBytes Held(const std::string& stored, std::uint64_t revision) {
    const auto normalized = codec_->Normalize(stored);
    EXPECT_TRUE(normalized.ok());
    auto held = codec_->WithResourceVersion(normalized->empty() ? stored : normalized->view(), revision);
    EXPECT_TRUE(held.ok());
    return *std::move(held);
  }
  const StoredForm& form() const { return dynamic_cast<const StoredForm&>(*codec_); }

  const std::unique_ptr<ResourceCodec> codec_ = NewPackedCodec(Inner());
};

TEST_F(PackedTest, LargeObjectsReadAsUnpackedOnesDo) {
  const std::string stored = Definition(4000);
  const SharedBytes held = Held(stored, 7);
  ASSERT_TRUE(IsPacked(held.view()));
  EXPECT_LT(held.size(), stored.size() / 10);
  const auto inner = Inner();
  const auto plain = inner->WithResourceVersion(stored, 7);
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(Unpacked(held).view(), plain->view());
  base::Arena arena;
  EXPECT_EQ(Unpacked(arena, held.view()), plain->view());
  const auto decoded = codec_->Decode(arena, held.view()), expected = inner->Decode(arena, plain->view());
  ASSERT_TRUE(decoded.ok() && expected.ok());
  EXPECT_EQ(*decoded, *expected);
  EXPECT_EQ((*decoded)["metadata"]["resourceVersion"].as_string(), "7");
  EXPECT_EQ(codec_->UID(held.view()), "u-1");
  const auto outline = DefinitionOutline(arena, held.view());
  ASSERT_TRUE(outline.has_value());
  EXPECT_EQ(outline->Get("spec", "group").as_string(), "example.com");
}

TEST_F(PackedTest, AttributesOutliveTheUnpackedBytes) {
  const SharedBytes held = Held(Definition(4000), 7);
  const auto attributes = codec_->GetAttrs(held);
  ASSERT_TRUE(attributes.ok());
  EXPECT_EQ(attributes->name, "ships.example.com");
  ASSERT_EQ(attributes->labels.size(), 1U);
  EXPECT_EQ(attributes->labels[0].first, "a");
}

TEST_F(PackedTest, TheStoreGetsPlainBytes) {
  const std::string stored = Definition(4000);
  base::Arena arena;
  const auto object = codec_->Decode(arena, stored);
  ASSERT_TRUE(object.ok());
  const auto encoded = codec_->Encode(arena, *object);
  ASSERT_TRUE(encoded.ok());
  EXPECT_TRUE(IsPacked(encoded->view()));
  const auto written = form().ToStorage(*encoded);
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(written->view(), stored);
  EXPECT_TRUE(form().IsCurrent(stored));
  // An update that changes nothing is recognized by its bytes.
  const auto again = codec_->WithResourceVersion(encoded->view(), 7);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, Held(stored, 7));
}

TEST_F(PackedTest, SmallObjectsAreHeldAsTheyAre) {
  const std::string stored = Definition(10);
  const SharedBytes held = Held(stored, 7);
  EXPECT_FALSE(IsPacked(held.view()));
  EXPECT_EQ(Unpacked(held), held);
  base::Arena arena;
  EXPECT_EQ(Unpacked(arena, held.view()).data(), held.data());
}

TEST_F(PackedTest, DamagedBytesAreAnErrorNotACrash) {
  const SharedBytes held = Held(Definition(4000), 7);
  for (const std::size_t size : {held.size() - 1, std::size_t{20}, std::size_t{17}}) {
    const SharedBytes cut = held.Slice(0, size);
    base::Arena arena;
    EXPECT_FALSE(codec_->Decode(arena, cut.view()).ok());
    EXPECT_FALSE(codec_->GetAttrs(cut).ok());
    EXPECT_TRUE(Unpacked(cut).empty());
    EXPECT_EQ(codec_->UID(cut.view()), "");
  }
}

}  // namespace
}  // namespace keelson::storage
