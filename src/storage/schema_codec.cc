#include "storage/schema_codec.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/strings.h"
#include "codec/base64.h"
#include "codec/json.h"
#include "codec/protobuf.h"
#include "codec/yaml.h"
#include "object/json_reader.h"
#include "object/json_text.h"
#include "storage/json_splice.h"
#include "storage/proto_scan.h"
#include "storage/stored_form.h"
#include "storage/stored_versions.h"

namespace keelson::storage {
namespace {

constexpr std::string_view kCorrupt = "object data is corrupt";

std::string TextOf(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kString:
      return std::string(value.as_string());
    case Value::Kind::kInt:
      return std::to_string(value.as_int());
    case Value::Kind::kBool:
      return value.as_bool() ? "true" : "false";
    default:
      return {};
  }
}

meta::GroupVersion ParseGroupVersion(std::string_view api_version) {
  const std::size_t slash = api_version.find('/');
  if (slash == std::string_view::npos) return {"", std::string(api_version)};
  return {std::string(api_version.substr(0, slash)), std::string(api_version.substr(slash + 1))};
}

// Takes a member out of a map for as long as this lives. The encoder then does not see it.
class Without {
 public:
  Without(base::Arena& arena, Value map, std::string_view key) : arena_(arena), map_(map), key_(key) {
    if (!map_.is_map()) return;
    if (const Value* found = map_.Find(key_)) {
      saved_ = *found;
      map_.Erase(key_);
    }
  }
  ~Without() {
    if (saved_) map_.Set(arena_, key_, *saved_);
  }
  Without(const Without&) = delete;
  Without& operator=(const Without&) = delete;

 private:
  base::Arena& arena_;
  Value map_;
  std::string_view key_;
  std::optional<Value> saved_;
};

// Collects texts that are not in the stored bytes verbatim; views are made when all are there, because the buffer moves
// until then.
class ExtraTexts {
 public:
  struct Piece {
    std::size_t offset = 0;
    std::size_t size = 0;
  };
  Piece Add(std::string_view text) {
    const Piece piece{buffer_.size(), text.size()};
    buffer_.append(text);
    return piece;
  }
  SharedBytes Finish() && { return buffer_.empty() ? SharedBytes() : SharedBytes(buffer_); }

 private:
  std::string buffer_;
};

class SchemaCodec final : public ResourceCodec, public StoredForm {
 public:
  explicit SchemaCodec(SchemaCodecOptions options)
      : options_(std::move(options)),
        api_version_(options_.storage.group_version().ToString()),
        hub_version_(options_.hub_version.empty() ? api_version_ : options_.hub_version) {
    KS_CHECK(options_.json || options_.type != nullptr);
    KS_CHECK(hub_version_ == api_version_ || options_.convert);
    for (std::size_t i = 0; i < options_.fields.size(); ++i) AddLeaf(i);
  }

  const meta::GroupResource& resource() const override { return options_.resource; }
  Outcome<SharedBytes, std::string> Encode(base::Arena& arena, Value object) const override;
  Outcome<Value, std::string> Decode(base::Arena& arena, std::string_view stored) const override;
  Outcome<SharedBytes, std::string> Normalize(std::string_view stored) const override;
  bool completes_on_read() const override { return options_.defaults_on_read; }
  Outcome<SharedBytes, std::string> WithResourceVersion(std::string_view stored,
                                                        std::uint64_t resource_version) const override;
  Outcome<Attributes, std::string> GetAttrs(const SharedBytes& stored) const override;
  std::string UID(std::string_view stored) const override;
  bool differs() const override { return options_.media != Media::kSame; }
  Outcome<SharedBytes, std::string> ToStorage(const SharedBytes& normalized) const override;
  bool IsCurrent(std::string_view raw, const SharedBytes& normalized) const override;

 private:
  using Media = SchemaCodecOptions::Media;
  struct Leaf {
    schema::Kind kind = schema::Kind::kString;
    bool in_proto = false;
  };

  void AddLeaf(std::size_t index);
  Outcome<Value, std::string> DecodeAny(base::Arena& arena, std::string_view stored) const;
  Outcome<Value, std::string> DecodePlain(base::Arena& arena, std::string_view stored) const;
  Outcome<Attributes, std::string> ProtoAttributes(const SharedBytes& stored) const;
  Outcome<Attributes, std::string> ValueAttributes(const SharedBytes& stored) const;

  const SchemaCodecOptions options_;
  const std::string api_version_;
  const std::string hub_version_;
  ProtoPaths paths_;          // of the selectable fields
  std::vector<Leaf> leaves_;  // one for each of options_.fields
  bool computed_ = false;     // some field needs the decoded object
};

// Turns a dotted path into protobuf field numbers.
void SchemaCodec::AddLeaf(std::size_t index) {
  Leaf& leaf = leaves_.emplace_back();
  const SelectedField& field = options_.fields[index];
  if (field.value) computed_ = true;
  if (field.path.empty() || options_.type == nullptr || options_.json) return;
  std::vector<std::uint32_t> numbers;
  const schema::Struct* at = options_.type;
  for (const std::string_view name : base::Split(field.path, '.')) {
    const schema::Field* found = at != nullptr ? at->FindField(name) : nullptr;
    KS_CHECK(found != nullptr && found->number != 0);
    numbers.push_back(found->number);
    leaf.kind = found->type->kind;
    at = found->type->structure;
  }
  leaf.in_proto = true;
  paths_.Add(numbers, static_cast<int>(index));
}

Outcome<SharedBytes, std::string> SchemaCodec::Encode(base::Arena& arena, Value object) const {
  if (!object.is_map()) return std::string("an object is needed");
  if (hub_version_ != api_version_) {
    KS_TRY(object, options_.convert(arena, object, hub_version_, api_version_));
  }
  if (object["apiVersion"].as_string() != api_version_)
    object.Set(arena, "apiVersion", Value::String(arena, api_version_));
  if (object["kind"].as_string() != options_.storage.kind)
    object.Set(arena, "kind", Value::String(arena, options_.storage.kind));
  const Value metadata = object["metadata"];
  const Without version(arena, metadata, "resourceVersion");
  const Without link(arena, metadata, "selfLink");
  std::string out;
  if (!options_.json) {
    codec::EncodeProto(object, *options_.type, out);
  } else {
    if (options_.type != nullptr) {
      codec::EncodeJSON(object, *options_.type, out);
    } else {
      codec::EncodeJSON(object, out);
    }
    out.push_back('\n');
  }
  return SharedBytes(out);
}

Outcome<SharedBytes, std::string> SchemaCodec::ToStorage(const SharedBytes& normalized) const {
  if (options_.media == Media::kSame) return normalized;
  base::Arena arena;
  auto decoded = codec::DecodeProto(arena, normalized.view(), *options_.type);
  if (!decoded.ok()) return std::move(decoded).error().message;
  decoded->value.Set(arena, "apiVersion", Value::String(arena, api_version_));
  decoded->value.Set(arena, "kind", Value::String(arena, options_.storage.kind));
  std::string json;
  codec::EncodeJSON(decoded->value, *options_.type, json);
  if (options_.media == Media::kJSON) {
    json.push_back('\n');
    return SharedBytes(json);
  }
  std::string yaml;
  auto done = codec::JSONToYAML(arena, json, yaml);
  if (!done.ok()) return std::move(done).error().message;
  return SharedBytes(yaml);
}

bool SchemaCodec::IsCurrent(std::string_view raw, const SharedBytes&) const {
  if (codec::HasEnvelope(raw) || raw.starts_with('{') != (options_.media == Media::kJSON)) return false;
  base::Arena arena;
  std::string json;
  if (options_.media == Media::kYAML) {
    if (!codec::YAMLToJSON(arena, raw, {}, json).ok()) return false;
    raw = json;
  }
  const auto found = codec::FindTypeMeta(arena, raw);
  return found.ok() && found->api_version == api_version_ && found->kind == options_.storage.kind;
}

// Tries protobuf, JSON, YAML, then each of them in base64; the error is that of the last
// attempt.
Outcome<Value, std::string> SchemaCodec::DecodeAny(base::Arena& arena, std::string_view stored) const {
  if (options_.type == nullptr || codec::HasEnvelope(stored) || base::Trim(stored).starts_with('{'))
    return DecodePlain(arena, stored);
  if (auto object = DecodePlain(arena, stored); object.ok()) return object;
  if (const codec::Base64Check check = codec::CheckBase64(stored); !check.valid)
    return "illegal base64 data at input byte " + std::to_string(check.error_at);
  std::string bytes(stored.size() / 4 * 3 + 3, '\0');
  bytes.resize(codec::ReadBase64(stored, bytes.data()));
  return DecodePlain(arena, arena.Copy(bytes));
}

Outcome<Value, std::string> SchemaCodec::DecodePlain(base::Arena& arena, std::string_view stored) const {
  std::string api_version;
  Value object;
  std::string json;  // of YAML, which only a server with --storage-media-type=application/yaml has written
  if (options_.type != nullptr && !codec::HasEnvelope(stored) && !base::Trim(stored).starts_with('{')) {
    auto made = codec::YAMLToJSON(arena, stored, {}, json);
    if (!made.ok()) return std::move(made).error().message;
    stored = json;
  }
  if (codec::HasEnvelope(stored)) {
    auto envelope = codec::ParseEnvelope(stored);
    if (!envelope.ok()) return std::move(envelope).error().message;
    api_version = envelope->api_version;
    const meta::GroupVersion version = ParseGroupVersion(api_version);
    const schema::Struct* type = StoredType({version.group, version.version, std::string(envelope->kind)});
    if (type == nullptr || !type->HasProto()) {
      return "no kind \"" + std::string(envelope->kind) + "\" is registered for version \"" + api_version +
             "\" in scheme";
    }
    auto decoded = codec::DecodeProto(arena, stored, *type);
    if (!decoded.ok()) return std::move(decoded).error().message;
    object = decoded->value;
  } else if (options_.type == nullptr) {
    auto decoded = codec::DecodeJSON(arena, stored);
    if (!decoded.ok()) return std::move(decoded).error().message;
    object = decoded->value;
    api_version = object["apiVersion"].as_string();
  } else {
    auto found = codec::FindTypeMeta(arena, stored);
    if (!found.ok()) return std::move(found).error().message;
    api_version = found->api_version;
    const meta::GroupVersion version = ParseGroupVersion(api_version);
    const schema::Struct* type = StoredType({version.group, version.version, std::string(found->kind)});
    if (type == nullptr)
      return "no kind \"" + std::string(found->kind) + "\" is registered for version \"" + api_version + "\" in scheme";
    auto decoded = codec::DecodeJSON(arena, stored, *type);
    if (!decoded.ok()) return std::move(decoded).error().message;
    object = decoded->value;
  }
  if (!object.is_map()) return std::string(kCorrupt);
  if (api_version == hub_version_) return object;
  if (!options_.convert) return "objects of version " + api_version + " cannot be converted to " + hub_version_;
  return options_.convert(arena, object, api_version, hub_version_);
}

Outcome<Value, std::string> SchemaCodec::Decode(base::Arena& arena, std::string_view stored) const {
  KS_TRY(Value object, DecodeAny(arena, stored));
  if (options_.defaults) options_.defaults(arena, object);
  return object;
}

Outcome<SharedBytes, std::string> SchemaCodec::Normalize(std::string_view stored) const {
  if (options_.defaults_on_read) {
    base::Arena arena;
    KS_TRY(const Value object, Decode(arena, stored));
    KS_TRY(SharedBytes complete, Encode(arena, object));
    return complete.view() == stored ? SharedBytes() : std::move(complete);
  }
  if (codec::HasEnvelope(stored)) {
    auto envelope = codec::ParseEnvelope(stored);
    if (!envelope.ok()) return std::move(envelope).error().message;
    if (!options_.json && envelope->api_version == api_version_ && envelope->kind == options_.storage.kind &&
        envelope->content_type.empty() && envelope->content_encoding.empty()) {
      return SharedBytes();
    }
  } else if (options_.json) {
    base::Arena arena;
    auto found = codec::FindTypeMeta(arena, stored);
    if (!found.ok()) return std::move(found).error().message;
    if (found->api_version == api_version_ && found->kind == options_.storage.kind) return SharedBytes();
  }
  base::Arena arena;
  KS_TRY(const Value object, Decode(arena, stored));
  return Encode(arena, object);
}

Outcome<SharedBytes, std::string> SchemaCodec::WithResourceVersion(std::string_view stored,
                                                                   std::uint64_t resource_version) const {
  const std::string text = resource_version == 0 ? std::string() : std::to_string(resource_version);
  auto changed = options_.json
                     ? SetJSONResourceVersion(
                           stored, text, options_.type != nullptr ? MetadataOrder::kStruct : MetadataOrder::kSorted)
                     : SetProtoResourceVersion(stored, text);
  if (!changed) return std::string(kCorrupt);
  return *std::move(changed);
}

Outcome<Attributes, std::string> SchemaCodec::GetAttrs(const SharedBytes& stored) const {
  return options_.json ? ValueAttributes(stored) : ProtoAttributes(stored);
}

namespace {

// Name, namespace and labels of an ObjectMeta message, labels sorted by key.
bool ReadProtoMetadata(std::string_view metadata, Attributes& attributes) {
  static const std::vector<ProtoPaths::Node> kMetadata = {{.number = object_meta::kName, .leaf = 0},
                                                          {.number = object_meta::kNamespace, .leaf = 1},
                                                          {.number = object_meta::kLabels, .leaf = 2}};
  const bool valid = ScanProto(metadata, kMetadata, [&](int leaf, const ProtoValue& value) {
    if (leaf == 0) attributes.name = value.bytes;
    if (leaf == 1) attributes.name_space = value.bytes;
    if (leaf != 2) return;
    bool entry = true;
    const auto key = FindBytes(value.bytes, 1, entry);
    const auto text = FindBytes(value.bytes, 2, entry);
    if (entry) attributes.labels.emplace_back(key.value_or(""), text.value_or(""));
  });
  if (!valid) return false;
  if (!std::is_sorted(attributes.labels.begin(), attributes.labels.end()))
    std::sort(attributes.labels.begin(), attributes.labels.end());
  return true;
}

}  // namespace

Outcome<Attributes, std::string> SchemaCodec::ProtoAttributes(const SharedBytes& stored) const {
  std::string_view raw;
  bool valid = true;
  if (!FindRaw(stored.view(), raw)) return std::string(kCorrupt);
  const auto metadata = FindBytes(raw, 1, valid);
  if (!metadata || !valid) return std::string(kCorrupt);

  Attributes attributes;
  attributes.message = raw;
  if (!ReadProtoMetadata(*metadata, attributes)) return std::string(kCorrupt);

  struct Text {
    bool set = false;
    std::string_view view;
    std::optional<ExtraTexts::Piece> extra;
  };
  std::vector<Text> texts(leaves_.size());
  ExtraTexts extra;
  valid = paths_.roots.empty() || ScanProto(raw, paths_.roots, [&](int leaf, const ProtoValue& value) {
            Text& text = texts[static_cast<std::size_t>(leaf)];
            text.set = true;
            switch (leaves_[static_cast<std::size_t>(leaf)].kind) {
              case schema::Kind::kBool:
                text.view = value.number != 0 ? "true" : "false";
                break;
              case schema::Kind::kInt32:
                text.extra = extra.Add(std::to_string(static_cast<std::int32_t>(value.number)));
                break;
              case schema::Kind::kInt64:
                text.extra = extra.Add(std::to_string(static_cast<std::int64_t>(value.number)));
                break;
              default:
                text.view = value.bytes;
            }
          });
  if (!valid) return std::string(kCorrupt);
  for (std::size_t i = 0; i < leaves_.size(); ++i) {  // Absent fields have the zero value.
    if (texts[i].set || !leaves_[i].in_proto) continue;
    if (leaves_[i].kind == schema::Kind::kBool) texts[i].view = "false";
    if (leaves_[i].kind == schema::Kind::kInt32 || leaves_[i].kind == schema::Kind::kInt64) texts[i].view = "0";
  }
  if (computed_) {
    base::Arena arena;
    KS_TRY(const Value object, DecodeAny(arena, stored.view()));
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      if (options_.fields[i].value) texts[i].extra = extra.Add(options_.fields[i].value(object));
    }
  }
  attributes.extra = std::move(extra).Finish();
  attributes.fields.reserve(texts.size() + 2);
  attributes.fields.emplace_back("metadata.name", attributes.name);
  if (options_.selects_namespace && !attributes.name_space.empty())
    attributes.fields.emplace_back("metadata.namespace", attributes.name_space);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string_view text =
        texts[i].extra ? attributes.extra.view().substr(texts[i].extra->offset, texts[i].extra->size) : texts[i].view;
    if (!text.empty()) attributes.fields.emplace_back(options_.fields[i].name, text);
  }
  return attributes;
}

// An object with nothing but metadata, for kinds that select by names and labels only; null where the text is not JSON.
Value SelectedMetadata(base::Arena& arena, std::string_view stored) {
  const auto text = object::FindJSONMember(stored, "metadata");
  if (!text) return {};
  object::JSONReader reader(*text);
  if (!reader.EnterObject()) return {};
  Value found = Value::Map(arena);
  Value metadata = found.EnsureMap(arena, "metadata");
  std::string_view key;
  while (reader.NextMember(key)) {
    const std::string_view value = reader.TakeValue();
    if (key != "name" && key != "namespace" && key != "labels") continue;
    const auto parsed = object::ParseJSON(arena, value);
    if (!parsed) return {};
    metadata.Set(arena, key, *parsed);
  }
  return reader.ok() ? found : Value();
}

Outcome<Attributes, std::string> SchemaCodec::ValueAttributes(const SharedBytes& stored) const {
  base::Arena arena;
  Value object;
  // Normalize() has seen that it is JSON of the kind.
  if (options_.fields.empty()) object = SelectedMetadata(arena, stored.view());
  if (object.is_null()) {
    KS_TRY(object, DecodeAny(arena, stored.view()));
  }
  const Value metadata = object["metadata"];
  ExtraTexts extra;
  const auto name = extra.Add(metadata["name"].as_string());
  const auto name_space = extra.Add(metadata["namespace"].as_string());
  std::vector<std::pair<ExtraTexts::Piece, ExtraTexts::Piece>> labels;
  for (const auto& member : metadata["labels"].members())
    labels.emplace_back(extra.Add(member.key), extra.Add(member.value.as_string()));
  std::vector<ExtraTexts::Piece> fields;
  for (const SelectedField& field : options_.fields) {
    Value at = object;
    for (const std::string_view piece : base::Split(field.path, '.')) at = at[piece];
    fields.push_back(extra.Add(field.value ? field.value(object) : TextOf(at)));
  }
  Attributes attributes;
  attributes.extra = std::move(extra).Finish();
  const auto view = [&](const ExtraTexts::Piece& piece) {
    return attributes.extra.view().substr(piece.offset, piece.size);
  };
  attributes.name = view(name);
  attributes.name_space = view(name_space);
  for (const auto& [key, value] : labels) attributes.labels.emplace_back(view(key), view(value));
  std::sort(attributes.labels.begin(), attributes.labels.end());
  attributes.fields.emplace_back("metadata.name", attributes.name);
  if (options_.selects_namespace && !attributes.name_space.empty())
    attributes.fields.emplace_back("metadata.namespace", attributes.name_space);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].size != 0) attributes.fields.emplace_back(options_.fields[i].name, view(fields[i]));
  }
  return attributes;
}

std::string SchemaCodec::UID(std::string_view stored) const {
  if (options_.json) {
    base::Arena arena;
    const auto object = DecodeAny(arena, stored);
    return object.ok() ? std::string((*object)["metadata"]["uid"].as_string()) : std::string();
  }
  std::string_view raw;
  bool valid = true;
  if (!FindRaw(stored, raw)) return {};
  const auto metadata = FindBytes(raw, 1, valid);
  if (!metadata) return {};
  return std::string(FindBytes(*metadata, object_meta::kUID, valid).value_or(""));
}

}  // namespace

std::unique_ptr<ResourceCodec> NewSchemaCodec(SchemaCodecOptions options) {
  return std::make_unique<SchemaCodec>(std::move(options));
}

}  // namespace keelson::storage
