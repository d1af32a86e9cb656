#include "storage/packed.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "object/json_text.h"
#include "storage/definition_outline.h"
#include "storage/schema_codec.h"
#include "storage/stored_form.h"
#include "storage/stored_versions.h"
#include "storage/text_pool.h"

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
  EXPECT_EQ(outline->Get("metadata", "resourceVersion").as_string(), "7");
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
  const auto normalized = codec_->Normalize(stored);
  ASSERT_TRUE(normalized.ok());
  EXPECT_TRUE(form().IsCurrent(stored, *normalized));
  // An update that changes nothing is recognized by its bytes.
  const auto again = codec_->WithResourceVersion(encoded->view(), 7);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, Held(stored, 7));
}

TEST_F(PackedTest, AnotherStoredVersionIsNotCurrent) {
  for (const int words : {1, 1000, 4000}) {  // as it is, with a shared spec, compressed
    SCOPED_TRACE(words);
    const std::string current = Definition(words);
    std::string other = current;
    other.replace(other.find("v1beta1"), 7, "v1");
    for (const std::string& stored : {current, other}) {
      const auto normalized = codec_->Normalize(stored);
      ASSERT_TRUE(normalized.ok());
      EXPECT_EQ(form().IsCurrent(stored, *normalized), stored == current);
    }
  }
}

// The same definition with another status and, where given, an annotation.
std::string Changed(std::string stored, std::string_view status, std::string_view annotation = "") {
  const auto replace = [&stored](std::string_view old, const std::string& text) {
    stored.replace(stored.find(old), old.size(), text);
  };
  replace(R"("conditions":null)", R"("conditions":[{"type":")" + std::string(status) + R"(","status":"True"}])");
  if (!annotation.empty())
    replace(R"("labels":{"a":"b"})", R"("labels":{"a":"b"},"annotations":{"last":")" + std::string(annotation) + "\"}");
  return stored;
}

// Text that does not compress well.
std::string Noise(std::size_t size) {
  std::string text;
  for (std::uint64_t state = 1; text.size() < size; state = state * 6364136223846793005U + 1442695040888963407U)
    text += static_cast<char>('a' + (state >> 40) % 26);
  return text;
}

std::string NoisyDefinition() {
  std::string stored = Definition(1);
  return stored.replace(stored.find("word "), 5, Noise(20000));
}

TEST_F(PackedTest, VersionsOfADefinitionShareTheirSpec) {
  const std::size_t texts = TextPool::Global().size();
  const std::string first = NoisyDefinition(), second = Changed(first, "NamesAccepted");
  {
    const SharedBytes old = Held(first, 7), now = Held(second, 8);
    EXPECT_EQ(TextPool::Global().size(), texts + 1);
    EXPECT_LT(old.size(), 1000U);
    EXPECT_LT(now.size(), 1000U);
    const auto written = form().ToStorage(*codec_->WithResourceVersion(now.view(), 0));
    ASSERT_TRUE(written.ok());
    EXPECT_EQ(written->view(), second);
    EXPECT_EQ(form().ToStorage(*codec_->WithResourceVersion(old.view(), 0))->view(), first);
  }
  EXPECT_EQ(TextPool::Global().size(), texts);
}

TEST_F(PackedTest, SmallerDefinitionsShareTheirSpecUncompressed) {
  std::string first = Definition(1);
  first.replace(first.find("word "), 5, Noise(3000));
  const std::string second = Changed(first, "NamesAccepted");
  const SharedBytes old = Held(first, 7), now = Held(second, 8);
  EXPECT_LT(old.size() + now.size(), 2000U);
  EXPECT_EQ(form().ToStorage(*codec_->WithResourceVersion(now.view(), 0))->view(), second);
  const auto attributes = codec_->GetAttrs(now);
  ASSERT_TRUE(attributes.ok());
  EXPECT_EQ(attributes->name, "ships.example.com");
  const SharedBytes cut = now.Slice(0, now.size() - 1);
  EXPECT_TRUE(Unpacked(cut).empty());
}

TEST_F(PackedTest, AnnotationWithTheWholeSpecTakesNextToNothing) {
  const std::string stored = Changed(NoisyDefinition(), "Established", Noise(20000));
  const SharedBytes held = Held(stored, 7);
  EXPECT_LT(held.size(), 1000U);
  EXPECT_EQ(form().ToStorage(*codec_->WithResourceVersion(held.view(), 0))->view(), stored);
  const auto attributes = codec_->GetAttrs(held);
  ASSERT_TRUE(attributes.ok());
  EXPECT_EQ(attributes->name, "ships.example.com");
}

// Packed definitions of any shape unpack to the same bytes.
TEST_F(PackedTest, OddPlacesOfSpecAndStatus) {
  const std::string words = Noise(9000);
  const std::string cases[] = {
      R"({"metadata":{},"status":{},"a":")" + words + R"(","spec":{}})",
      R"({"metadata":{"name":"x","spec":{"a":")" + words + R"("}},"spec":{"b":{"c":1,"status":{}}}})",
      R"({"metadata":{"a":1,"spec":{"b":2}},"c":")" + words + R"(","d":{"e":1,"status":{}}})",
  };
  for (const std::string& body : cases) {
    SCOPED_TRACE(body.substr(0, 40));
    const std::string stored =
        R"({"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1",)" + body.substr(1);
    const SharedBytes held = Held(stored, 0);
    ASSERT_TRUE(IsPacked(held.view()));
    EXPECT_EQ(form().ToStorage(held)->view(), stored);
  }
}

TEST_F(PackedTest, BytesThatNameAnUnknownTextAreDamaged) {
  std::string copy;
  {
    const SharedBytes held = Held(NoisyDefinition(), 7);
    copy = held.view();
    EXPECT_FALSE(Unpacked(SharedBytes(copy)).empty());
  }
  base::Arena arena;
  EXPECT_TRUE(IsPacked(copy));
  EXPECT_TRUE(Unpacked(SharedBytes(copy)).empty());
  EXPECT_FALSE(codec_->Decode(arena, copy).ok());
  EXPECT_FALSE(codec_->GetAttrs(SharedBytes(copy)).ok());
  EXPECT_FALSE(codec_->WithResourceVersion(copy, 8).ok());
}

TEST(TextPool, OneTextForAllThreads) {
  TextPool pool;
  const std::string plain = Noise(5000);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        const TextPool::TextPtr text = pool.Intern(plain, TextPool::Form::kCompressed);
        ASSERT_TRUE(text);
        EXPECT_EQ(pool.Find(text->id), text);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.size(), 0U);
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
  for (const std::size_t size : {held.size() - 1, std::size_t{40}, std::size_t{29}}) {
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
