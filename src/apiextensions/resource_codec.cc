#include "apiextensions/resource_codec.h"

#include <algorithm>
#include <optional>

#include "codec/cbor.h"
#include "codec/json.h"
#include "object/json_reader.h"
#include "storage/completion.h"
#include "storage/json_splice.h"
#include "storage/stored_form.h"
#include "validation/structural/object_pipeline.h"

namespace keelson::apiextensions {
namespace {

namespace structural = validation::structural;
using base::SharedBytes;
using object::JSONReader;

constexpr std::string_view kCorrupt = "object data is corrupt";

// The text of a JSON string without escapes; nothing for any other value.
std::optional<std::string_view> PlainText(std::string_view json) {
  if (json.size() < 2 || json.front() != '"' || json.find('\\') != std::string_view::npos) return std::nullopt;
  return json.substr(1, json.size() - 2);
}

// Puts a member back as it was when this goes.
class Replaced {
 public:
  Replaced(base::Arena& arena, Value map, std::string_view key, Value value)
      : arena_(arena), map_(map), key_(key), saved_(map[key]), had_(map.Has(key)) {
    if (value.is_null()) {
      map_.Erase(key);
    } else {
      map_.Set(arena, key, value);
    }
  }
  ~Replaced() {
    if (had_) map_.Set(arena_, key_, saved_);
  }
  Replaced(const Replaced&) = delete;
  Replaced& operator=(const Replaced&) = delete;

 private:
  base::Arena& arena_;
  Value map_;
  std::string_view key_;
  Value saved_;
  bool had_;
};

// Either of the two forms in which a custom resource may lie in the store.
Outcome<Value, std::string> DecodeStored(base::Arena& arena, std::string_view stored) {
  auto decoded =
      stored.starts_with(codec::kCBORMagic) ? codec::DecodeCBOR(arena, stored) : codec::DecodeJSON(arena, stored);
  if (!decoded.ok()) return std::move(decoded).error().message;
  return decoded->value;
}

class ResourceCodec final : public storage::ResourceCodec, public storage::StoredForm, public storage::Completion {
 public:
  ResourceCodec(CustomKindPtr kind, VersionKindPtr view, bool encode_view, StoredAs stored_as = StoredAs::kJSON)
      : kind_(std::move(kind)), view_(std::move(view)), encode_view_(encode_view), stored_as_(stored_as) {}

  const meta::GroupResource& resource() const override { return kind_->resource; }

  Outcome<SharedBytes, std::string> Encode(base::Arena& arena, Value object) const override {
    if (!object.is_map()) return std::string("an object is needed");
    const std::string_view api_version = EncodedVersion();
    const Replaced version(arena, object, "apiVersion", Value(api_version));
    const Value metadata = object["metadata"];
    if (!metadata.is_map()) return std::string(kCorrupt);
    const Replaced revision(arena, metadata, "resourceVersion", Value());
    const Replaced link(arena, metadata, "selfLink", Value());
    std::string out;
    codec::EncodeJSON(object, out);
    out += '\n';
    return SharedBytes(out);
  }

  Outcome<Value, std::string> Decode(base::Arena& arena, std::string_view stored) const override {
    KS_TRY(Value object, DecodeStored(arena, stored));
    if (!object.is_map()) return std::string(kCorrupt);
    if (view_ == nullptr || object["apiVersion"].as_string() == view_->api_version) return object;
    object.Set(arena, "apiVersion", std::string_view(view_->api_version));
    KS_TRY(const auto coerced, structural::CoerceObject(arena, object, view_->schema.root(),
                                                        {.source = structural::Source::kConversion,
                                                         .preserve_unknown_fields = view_->preserve_unknown_fields}));
    (void)coerced;
    return object;
  }

  // Upstream answers a write with what it reads back: pruned by the storage version (a mutating webhook may have put in
  // what the schema does not know) and defaulted.
  bool completes_on_read() const override { return true; }

  // Pruned and defaulted by the schema of the version it is stored in.
  Outcome<SharedBytes, std::string> Normalize(std::string_view stored) const override {
    base::Arena arena;
    KS_TRY(Value object, DecodeStored(arena, stored));
    const VersionKind* const own = kind_->FindAPIVersion(object["apiVersion"].as_string());
    if (!object.is_map() || own == nullptr) {
      return "request to convert CR from an invalid group/version: " + std::string(object["apiVersion"].as_string());
    }
    const Value metadata = object["metadata"];
    KS_TRY(const Value typed, structural::CoerceObjectMeta(arena, metadata, true, nullptr));
    const bool same_metadata = typed == metadata && metadata["generation"].as_int() != 0;
    if (same_metadata && IsCompleteBesidesMetadata(object, *own) && !stored.starts_with(codec::kCBORMagic))
      return SharedBytes();
    KS_TRY(const auto coerced, structural::CoerceObject(arena, object, own->schema.root(),
                                                        {.source = structural::Source::kStorage,
                                                         .preserve_unknown_fields = own->preserve_unknown_fields}));
    (void)coerced;
    std::string out;
    codec::EncodeJSON(object, out);
    out += '\n';
    return out == stored ? SharedBytes() : SharedBytes(out);
  }

  bool IsComplete(const Value& object) const override {
    const VersionKind* const own = kind_->FindAPIVersion(EncodedVersion());
    const Value metadata = object["metadata"];
    return own != nullptr && structural::IsTypedObjectMeta(metadata) && metadata["generation"].as_int() != 0 &&
           IsCompleteBesidesMetadata(object, *own);
  }

  bool differs() const override { return stored_as_ == StoredAs::kCBOR; }
  Outcome<SharedBytes, std::string> ToStorage(const SharedBytes& normalized) const override {
    base::Arena arena;
    std::string out;
    codec::JSONToCBOR(arena, normalized.view(), out);
    return SharedBytes(out);
  }
  bool IsCurrent(std::string_view raw, const SharedBytes& normalized) const override {
    if (normalized.empty()) return false;  // JSON
    const auto again = ToStorage(normalized);
    return again.ok() && again->view() == raw;
  }

  Outcome<SharedBytes, std::string> WithResourceVersion(std::string_view stored,
                                                        std::uint64_t resource_version) const override {
    const std::string text = resource_version == 0 ? std::string() : std::to_string(resource_version);
    auto changed = storage::SetJSONResourceVersion(stored, text, storage::MetadataOrder::kSorted);
    if (!changed) return std::string(kCorrupt);
    return *std::move(changed);
  }

  Outcome<storage::Attributes, std::string> GetAttrs(const SharedBytes& stored) const override {
    storage::Attributes attributes;
    if (!ScanMetadata(stored.view(), attributes)) return std::string(kCorrupt);
    std::ranges::sort(attributes.labels);
    attributes.fields.emplace_back("metadata.name", attributes.name);
    if (!attributes.name_space.empty()) attributes.fields.emplace_back("metadata.namespace", attributes.name_space);
    if (kind_->selectable.empty()) return attributes;
    base::Arena arena;
    auto decoded = codec::DecodeJSON(arena, stored.view());
    if (!decoded.ok()) return std::move(decoded).error().message;
    std::string extra;
    std::vector<std::size_t> sizes;
    for (const auto& [version, index] : kind_->selectable) {
      const std::string text = version->selectable.Text(arena, index, decoded->value);
      sizes.push_back(text.size());
      extra += text;
    }
    attributes.extra = SharedBytes(extra);
    std::size_t at = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto& [version, index] = kind_->selectable[i];
      if (sizes[i] > 0)
        attributes.fields.emplace_back(version->selectable.name(index), attributes.extra.view().substr(at, sizes[i]));
      at += sizes[i];
    }
    return attributes;
  }

  std::string UID(std::string_view stored) const override {
    const auto metadata = object::FindJSONMember(stored, "metadata");
    const auto uid = metadata ? object::FindJSONMember(*metadata, "uid") : std::nullopt;
    return std::string(uid ? PlainText(*uid).value_or("") : "");
  }

 private:
  // Name, namespace and labels from the front of the object: what follows metadata is not looked at.
  static bool IsCompleteBesidesMetadata(const Value& object, const VersionKind& version) {
    const schema::structural::Node root = version.schema.root();
    return version.preserve_unknown_fields ? !root.has_defaults_below() : !structural::WouldChange(object, root);
  }

  std::string_view EncodedVersion() const { return encode_view_ ? view_->api_version : kind_->storage_api_version; }

  static bool ScanMetadata(std::string_view stored, storage::Attributes& attributes) {
    JSONReader reader(stored);
    std::string_view key;
    if (!reader.EnterObject()) return false;
    while (reader.NextMember(key)) {
      if (key != "metadata") {
        reader.TakeValue();
        continue;
      }
      if (!reader.EnterObject()) return false;
      while (reader.NextMember(key)) {
        if (key == "labels" && reader.EnterObject()) {
          std::string_view label;
          while (reader.NextMember(label))
            attributes.labels.emplace_back(label, PlainText(reader.TakeValue()).value_or(""));
          continue;
        }
        const std::string_view text = reader.TakeValue();
        if (key == "name") attributes.name = PlainText(text).value_or("");
        if (key == "namespace") attributes.name_space = PlainText(text).value_or("");
      }
      return reader.ok();
    }
    return false;
  }

  const CustomKindPtr kind_;
  const VersionKindPtr view_;
  const bool encode_view_;
  const StoredAs stored_as_;
};

}  // namespace

std::shared_ptr<const storage::ResourceCodec> NewResourceCodec(CustomKindPtr kind, VersionKindPtr view,
                                                               bool encode_view) {
  return std::make_shared<const ResourceCodec>(std::move(kind), std::move(view), encode_view);
}

std::shared_ptr<const storage::ResourceCodec> NewStorageCodec(CustomKindPtr kind, StoredAs stored_as) {
  return std::make_shared<const ResourceCodec>(std::move(kind), nullptr, false, stored_as);
}

}  // namespace keelson::apiextensions
