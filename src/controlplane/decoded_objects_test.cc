#include "controlplane/decoded_objects.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace keelson::controlplane {
namespace {

using base::SharedBytes;
using storage::Attributes;
using storage::ObjectPtr;

// Stores an object as its name, and counts how often one is decoded.
class NameCodec final : public storage::ResourceCodec {
 public:
  const meta::GroupResource& resource() const override { return resource_; }
  Outcome<SharedBytes, std::string> Encode(base::Arena&, Value object) const override {
    return SharedBytes(object["name"].as_string());
  }
  Outcome<Value, std::string> Decode(base::Arena& arena, std::string_view stored) const override {
    ++decoded;
    if (stored == "broken") return std::string("object data is corrupt");
    Value object = Value::Map(arena);
    object.Set(arena, "name", Value::String(arena, stored));
    return object;
  }
  Outcome<SharedBytes, std::string> Normalize(std::string_view) const override { return SharedBytes(); }
  Outcome<SharedBytes, std::string> WithResourceVersion(std::string_view stored, std::uint64_t) const override {
    return SharedBytes(stored);
  }
  Outcome<Attributes, std::string> GetAttrs(const SharedBytes&) const override { return Attributes(); }
  std::string UID(std::string_view) const override { return {}; }

  mutable int decoded = 0;

 private:
  meta::GroupResource resource_{"", "things"};
};

ObjectPtr NewObject(std::string_view name, std::uint64_t revision = 1) {
  return ObjectPtr(new storage::Object("/things/" + std::string(name), revision, SharedBytes(name), Attributes()));
}

std::string NameOf(DecodedObjects& objects, const NameCodec& codec, const ObjectPtr& object) {
  base::Arena arena;
  const auto decoded = objects.Decode(arena, codec, object);
  return decoded.ok() ? std::string((*decoded)["name"].as_string()) : decoded.error();
}

TEST(DecodedObjects, AnObjectThatIsReadAgainIsKept) {
  DecodedObjects objects;
  const NameCodec codec;
  const ObjectPtr object = NewObject("a");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(NameOf(objects, codec, object), "a");
  EXPECT_EQ(codec.decoded, 2) << "the first reader keeps nothing, the second does";
  EXPECT_EQ(objects.size(), 1);
}

TEST(DecodedObjects, ANewRevisionIsDecodedAnew) {
  DecodedObjects objects;
  const NameCodec codec;
  ObjectPtr object = NewObject("old", 1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(NameOf(objects, codec, object), "old");
  object = NewObject("new", 2);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(NameOf(objects, codec, object), "new");
}

TEST(DecodedObjects, TheResultBelongsToTheCaller) {
  DecodedObjects objects;
  const NameCodec codec;
  const ObjectPtr object = NewObject("a");
  for (int i = 0; i < 3; ++i) {
    base::Arena arena;
    auto decoded = objects.Decode(arena, codec, object);
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ((*decoded)["name"].as_string(), "a");
    decoded->Set(arena, "name", "changed");
  }
}

TEST(DecodedObjects, TheResultOutlivesTheKeptForm) {
  auto objects = std::make_unique<DecodedObjects>();
  const NameCodec codec;
  base::Arena arena;
  Value value;
  {
    const ObjectPtr object = NewObject("a");
    for (int i = 0; i < 3; ++i) value = *objects->Decode(arena, codec, object);
  }
  objects.reset();
  EXPECT_EQ(value["name"].as_string(), "a");
}

TEST(DecodedObjects, TheirNumberIsBounded) {
  DecodedObjects objects;
  const NameCodec codec;
  std::vector<ObjectPtr> all;
  for (std::size_t i = 0; i < 4 * DecodedObjects::kObjectsMax; ++i) all.push_back(NewObject(std::to_string(i)));
  for (const ObjectPtr& object : all) {
    for (int i = 0; i < 3; ++i) NameOf(objects, codec, object);
  }
  EXPECT_LE(objects.size(), DecodedObjects::kObjectsMax);
}

TEST(DecodedObjects, LargeAndBrokenObjectsAreNotKept) {
  DecodedObjects objects;
  const NameCodec codec;
  const ObjectPtr large = NewObject(std::string(DecodedObjects::kStoredBytesMax + 1, 'x'));
  const ObjectPtr broken = NewObject("broken");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(NameOf(objects, codec, large).size(), DecodedObjects::kStoredBytesMax + 1);
    EXPECT_EQ(NameOf(objects, codec, broken), "object data is corrupt");
  }
  EXPECT_EQ(objects.size(), 0);
}

}  // namespace
}  // namespace keelson::controlplane
