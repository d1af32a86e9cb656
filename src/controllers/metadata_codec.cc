#include "controllers/metadata_codec.h"

#include <utility>

#include "codec/cbor.h"
#include "controllers/object_metadata.h"
#include "object/json_reader.h"
#include "object/json_text.h"

namespace keelson::controllers {
namespace {

using base::SharedBytes;

constexpr const char* kReadOnly = "only metadata is kept: nothing can be written";
constexpr const char* kCorrupt = "object data is corrupt";

class MetadataCodec final : public storage::ResourceCodec {
 public:
  explicit MetadataCodec(meta::GroupResource resource) : resource_(std::move(resource)) {}

  const meta::GroupResource& resource() const override { return resource_; }
  Outcome<SharedBytes, std::string> Encode(base::Arena&, Value) const override { return std::string(kReadOnly); }
  Outcome<Value, std::string> Decode(base::Arena& arena, std::string_view stored) const override {
    const auto parsed = object::ParseJSON(arena, stored);
    if (!parsed) return std::string(kCorrupt);
    return *parsed;
  }
  // Custom resources may lie there as CBOR (CBORServingAndStorage).
  Outcome<SharedBytes, std::string> Normalize(std::string_view stored) const override {
    if (!stored.starts_with(codec::kCBORMagic)) return SharedBytes();
    base::Arena arena;
    auto decoded = codec::DecodeCBOR(arena, stored);
    if (!decoded.ok()) return std::move(decoded).error().message;
    return SharedBytes(object::ToJSON(decoded->value));
  }
  Outcome<SharedBytes, std::string> WithResourceVersion(std::string_view stored,
                                                        std::uint64_t resource_version) const override {
    auto metadata = ReadObjectMetadata(stored);
    if (!metadata) return std::string(kCorrupt);
    metadata->resource_version = resource_version == 0 ? "" : std::to_string(resource_version);
    return SharedBytes(MetadataJSON("", "", *metadata));
  }
  Outcome<storage::Attributes, std::string> GetAttrs(const SharedBytes& stored) const override {
    storage::Attributes attributes;
    const auto metadata = object::FindJSONMember(stored.view(), "metadata");
    if (!metadata) return std::string(kCorrupt);
    attributes.name = Plain(*metadata, "name");
    attributes.name_space = Plain(*metadata, "namespace");
    return attributes;
  }
  std::string UID(std::string_view stored) const override {
    const auto metadata = ReadObjectMetadata(stored);
    return metadata ? metadata->uid : "";
  }

 private:
  // A member's text; names have nothing to escape.
  static std::string_view Plain(std::string_view metadata, std::string_view key) {
    const auto text = object::FindJSONMember(metadata, key);
    return text && text->size() >= 2 ? text->substr(1, text->size() - 2) : std::string_view();
  }

  const meta::GroupResource resource_;
};

}  // namespace

std::shared_ptr<const storage::ResourceCodec> NewMetadataCodec(meta::GroupResource resource) {
  return std::make_shared<const MetadataCodec>(std::move(resource));
}

}  // namespace keelson::controllers
