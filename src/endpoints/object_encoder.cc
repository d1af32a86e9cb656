#include "endpoints/object_encoder.h"

#include <array>
#include <bit>
#include <cstddef>

#include "base/strings.h"
#include "codec/cbor.h"
#include "codec/json.h"
#include "codec/protobuf.h"
#include "codec/transcode.h"
#include "codec/yaml.h"
#include "endpoints/handlers.h"
#include "endpoints/responses.h"
#include "schema/types.h"

namespace keelson::endpoints {
namespace {

// The encoded forms that are kept with an object (storage::Object::GetForm).
constexpr std::size_t kJSONForm = 0;  // without kind and apiVersion, in the served version where that is the stored one
constexpr std::size_t kMetadataForm = 1;  // meta.k8s.io/v1 PartialObjectMetadata, as JSON
// kRowForm = 2 is in table.cc.

std::string JSONText(std::string_view text) {
  std::string out;
  codec::EncodeJSON(Value(text), out);
  return out;
}

// Protobuf's length-delimited field header.
void AppendVarint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

SharedBytes Concatenated(std::string_view a, std::string_view b, std::string_view c) {
  char* data = nullptr;
  SharedBytes bytes = SharedBytes::Uninitialized(a.size() + b.size() + c.size(), &data);
  data = std::copy(a.begin(), a.end(), data);
  data = std::copy(b.begin(), b.end(), data);
  std::copy(c.begin(), c.end(), data);
  return bytes;
}

Value ListMetaValue(base::Arena& arena, const ObjectEncoder::ListMeta& list) {
  Value metadata = Value::Map(arena);
  if (list.resource_version != 0)
    metadata.Set(arena, "resourceVersion", Value::String(arena, std::to_string(list.resource_version)));
  if (!list.continue_token.empty()) metadata.Set(arena, "continue", Value::String(arena, list.continue_token));
  if (list.remaining_item_count) metadata.Set(arena, "remainingItemCount", *list.remaining_item_count);
  if (!list.shard_selector.empty())
    metadata.EnsureMap(arena, "shardInfo").Set(arena, "selector", Value::String(arena, list.shard_selector));
  return metadata;
}

std::string_view EventName(storage::WatchEvent::Type type) {
  using Type = storage::WatchEvent::Type;
  switch (type) {
    case Type::kAdded:
      return "ADDED";
    case Type::kModified:
      return "MODIFIED";
    case Type::kDeleted:
      return "DELETED";
    case Type::kBookmark:
      return "BOOKMARK";
    case Type::kError:
      return "ERROR";
  }
  return "ERROR";
}

}  // namespace

ObjectEncoder::ObjectEncoder(ScopePtr scope, MediaTypeOptions media, IncludeObject include, const base::Clock& clock)
    : scope_(std::move(scope)),
      media_(std::move(media)),
      include_(include),
      clock_(clock),
      content_type_(MediaType(media_.format)),
      api_version_(scope_->api_version()) {
  if (scope_->codec->sorted()) {
    sorted_prefix_ = "{\"apiVersion\":" + JSONText(api_version_) + ",";
    json_prefix_ = "{";
    return;
  }
  constexpr std::size_t kPunctuation = 32;  // more than enough: names of kinds and versions need no escapes
  json_prefix_.reserve(scope_->kind.kind.size() + api_version_.size() + kPunctuation);
  json_prefix_ += "{\"kind\":";
  codec::EncodeJSON(Value(scope_->kind.kind), json_prefix_);
  json_prefix_ += ",\"apiVersion\":";
  codec::EncodeJSON(Value(api_version_), json_prefix_);
  json_prefix_ += ",";
}

std::shared_ptr<const ObjectEncoder> ObjectEncoder::ForWatch(const ScopePtr& scope, const MediaTypeOptions& media,
                                                             IncludeObject include) {
  constexpr std::size_t kRemembered = 64;  // slots of a thread; two wishes that meet in one take turns
  thread_local std::array<std::weak_ptr<const ObjectEncoder>, kRemembered> remembered;
  const auto wish = static_cast<std::size_t>(media.format) * 4 + static_cast<std::size_t>(media.transform);
  auto& slot = remembered[(std::hash<const Scope*>()(scope.get()) / alignof(std::max_align_t) + wish) % kRemembered];
  auto encoder = slot.lock();
  if (!encoder || encoder->scope_ != scope || !(encoder->media_ == media) || encoder->include_ != include) {
    encoder = std::make_shared<const ObjectEncoder>(scope, media, include);
    slot = encoder;
  }
  return encoder;
}

std::string_view ObjectEncoder::stream_content_type() const {
  switch (media_.format) {
    case Format::kProtobuf:
      return "application/vnd.kubernetes.protobuf;stream=watch";
    case Format::kCBOR:
      return kCBORSequence;
    default:
      return "application/json";
  }
}

meta::Result<Value> ObjectEncoder::Decode(base::Arena& arena, const storage::ObjectPtr& object) const {
  KS_TRY(Value value, scope_->rest->Decode(arena, object));
  return scope_->codec->FromHub(arena, *scope_, value);
}

// Objects that are stored as sorted JSON are sent as they lie there, type meta included.
meta::Result<SharedBytes> ObjectEncoder::SortedItem(const storage::ObjectPtr& object) const {
  const SharedBytes& stored = object->stored();
  if (stored.view().starts_with(sorted_prefix_)) {
    return stored.view().ends_with('\n') ? stored.Slice(0, stored.size() - 1) : stored;
  }
  base::Arena arena;
  KS_TRY(const Value value, Decode(arena, object));
  std::string json;
  codec::EncodeJSON(value, json);
  return SharedBytes::FromString(std::move(json));
}

meta::Result<SharedBytes> ObjectEncoder::JSONItem(const storage::ObjectPtr& object, Keep keep) const {
  if (scope_->codec->sorted()) return SortedItem(object);
  if (scope_->conversion == nullptr) {
    if (SharedBytes form = object->GetForm(kJSONForm); !form.empty()) return form;
  }
  std::string json;
  const std::string_view message = object->attributes().message;
  if (!message.empty() && scope_->conversion == nullptr && !scope_->definition->traits.json_needs_defaults) {
    auto transcoded = codec::TranscodeMessage(message, *scope_->type, "", "", json);
    if (!transcoded.ok()) return meta::NewPlainError(transcoded.error().message);
  } else {
    base::Arena arena;
    KS_TRY(Value value, Decode(arena, object));
    value.Erase("kind");
    value.Erase("apiVersion");
    codec::EncodeJSON(value, *scope_->type, json);
  }
  if (keep == Keep::kNo) return SharedBytes::FromString(std::move(json));
  SharedBytes form(json);
  if (scope_->conversion == nullptr) object->SetForm(kJSONForm, form);
  return form;
}

meta::Result<SharedBytes> ObjectEncoder::EncodeValue(base::Arena& arena, Value object,
                                                     const schema::Struct* type) const {
  std::string out;
  if (media_.format == Format::kProtobuf) {
    codec::EncodeProto(object, *type, out);
    return SharedBytes::FromString(std::move(out));
  }
  if (media_.format == Format::kCBOR) {
    codec::EncodeCBOR(arena, object, *type, out);
    return SharedBytes::FromString(std::move(out));
  }
  if (type != nullptr) {
    codec::EncodeJSON(object, *type, out);
  } else {
    codec::EncodeJSON(object, out);
  }
  return FinishJSON(arena, std::move(out));
}

Value ObjectEncoder::PartialMetadata(base::Arena& arena, Value hub) const {
  // Annotations that only conversion to a version adds are not part of the hub's metadata.
  if (const std::string_view hidden = scope_->definition->traits.hidden_annotation; !hidden.empty()) {
    Value metadata = hub["metadata"];
    Value annotations = metadata["annotations"];
    annotations.Erase(hidden);
    if (annotations.empty()) metadata.Erase("annotations");
  }
  Value partial = Value::Map(arena);
  partial.Set(arena, "kind", "PartialObjectMetadata");
  partial.Set(arena, "apiVersion", media_.transform_version == "v1beta1" ? "meta.k8s.io/v1beta1" : "meta.k8s.io/v1");
  partial.Set(arena, "metadata", hub["metadata"]);
  return partial;
}

// Metadata is at the front of every stored message, so that nothing else is read.
meta::Result<SharedBytes> ObjectEncoder::MetadataJSON(const storage::ObjectPtr& object, Keep keep) const {
  const bool kept = media_.transform_version != "v1beta1";
  if (kept) {
    if (SharedBytes form = object->GetForm(kMetadataForm); !form.empty()) return form;
  }
  std::string json;
  if (scope_->definition->traits.hidden_annotation.empty() && codec::HasEnvelope(object->stored().view())) {
    auto written = codec::PartialMetadataToJSON(object->stored().view(),
                                                kept ? "meta.k8s.io/v1" : "meta.k8s.io/v1beta1", true, json);
    if (!written.ok()) return meta::NewPlainError(written.error().message);
  } else {
    base::Arena arena;
    KS_TRY(const Value hub, scope_->rest->Decode(arena, object));
    codec::EncodeJSON(PartialMetadata(arena, hub), schema::types::meta_v1::kPartialObjectMetadata, json);
  }
  SharedBytes form(json);
  if (kept && keep == Keep::kYes) object->SetForm(kMetadataForm, form);
  return form;
}

meta::Result<void> ObjectEncoder::MetadataProto(const storage::ObjectPtr& object, std::string& message) const {
  if (scope_->definition->traits.hidden_annotation.empty() && codec::HasEnvelope(object->stored().view())) {
    auto metadata = codec::MetadataMessage(object->stored().view());
    if (!metadata.ok()) return meta::NewPlainError(metadata.error().message);
    message += '\x0a';
    AppendVarint(message, metadata->size());
    message += *metadata;
    return {};
  }
  base::Arena arena;
  KS_TRY(const Value hub, scope_->rest->Decode(arena, object));
  codec::EncodeProtoMessage(PartialMetadata(arena, hub), schema::types::meta_v1::kPartialObjectMetadata, message);
  return {};
}

meta::Result<SharedBytes> ObjectEncoder::FinishJSON(base::Arena& arena, std::string json) const {
  std::string out;
  if (media_.format == Format::kYAML) {
    if (codec::HasYAMLControlCharacters(json)) return meta::NewPlainError("yaml: control characters are not allowed");
    if (auto laid_out = codec::JSONToYAML(arena, json, out); !laid_out.ok())
      return meta::NewInternalError(laid_out.error().message);
    return SharedBytes::FromString(std::move(out));
  }
  if (media_.format == Format::kCBOR) {  // metadata only, which has no []byte; Tables are not served as CBOR
    codec::JSONToCBOR(arena, json, out);
    return SharedBytes::FromString(std::move(out));
  }
  if (media_.pretty && !media_.stream) {
    codec::IndentJSON(json, out);
    return SharedBytes::FromString(std::move(out));
  }
  json += '\n';
  return SharedBytes::FromString(std::move(json));
}

meta::Result<SharedBytes> ObjectEncoder::Whole(const storage::ObjectPtr& object, Keep keep) const {
  base::Arena arena;
  switch (media_.transform) {
    case Transform::kTable: {
      KS_TRY(std::string table, TableJSON(object, true));
      return FinishJSON(arena, std::move(table));
    }
    case Transform::kPartialObjectMetadata:
    case Transform::kPartialObjectMetadataList: {
      if (media_.format != Format::kProtobuf) {
        KS_TRY(const SharedBytes json, MetadataJSON(object, keep));
        return FinishJSON(arena, std::string(json.view()));
      }
      std::string message, out;
      if (auto made = MetadataProto(object, message); !made.ok()) return made.error();
      codec::EncodeEnvelope(media_.transform_version == "v1beta1" ? "meta.k8s.io/v1beta1" : "meta.k8s.io/v1",
                            "PartialObjectMetadata", message, out);
      return SharedBytes::FromString(std::move(out));
    }
    case Transform::kNone:
      break;
  }
  if (media_.format == Format::kJSON && !media_.pretty) {
    KS_TRY(const SharedBytes item, JSONItem(object, keep));
    return Concatenated(json_prefix_, item.view().substr(1), "\n");
  }
  if (media_.format == Format::kProtobuf && scope_->conversion == nullptr) {
    auto envelope = codec::ParseEnvelope(object->stored().view());
    if (envelope.ok() && envelope->api_version == api_version_) return object->stored();
    if (envelope.ok()) {
      std::string out;
      codec::EncodeEnvelope(api_version_, scope_->kind.kind, envelope->raw, out);
      return SharedBytes::FromString(std::move(out));
    }
  }
  if (scope_->codec->sorted()) {
    KS_TRY(const SharedBytes item, SortedItem(object));
    return FinishJSON(arena, std::string(item.view()));
  }
  KS_TRY(Value value, Decode(arena, object));
  return EncodeValue(arena, value, scope_->type);
}

// Lists of custom resources, Tables and lists of metadata have no shardInfo: upstream does not carry it over to them.
ObjectEncoder::ListMeta ObjectEncoder::MetaOf(const storage::ObjectList& list) const {
  const bool sharded = media_.transform == Transform::kNone && !scope_->codec->sorted();
  return {list.resource_version, list.continue_token, list.remaining_item_count,
          sharded ? list.shard_selector : std::string()};
}

// UnstructuredList: names sorted, `continue` always there.
ObjectEncoder::ListFrame ObjectEncoder::SortedFrame(const ListMeta& list) const {
  std::string tail =
      "],\"kind\":" + JSONText(scope_->list_kind.kind) + ",\"metadata\":{\"continue\":" + JSONText(list.continue_token);
  if (list.remaining_item_count) tail += ",\"remainingItemCount\":" + std::to_string(*list.remaining_item_count);
  tail += ",\"resourceVersion\":\"" + std::to_string(list.resource_version) + "\"}}\n";
  return {SharedBytes("{\"apiVersion\":" + JSONText(api_version_) + ",\"items\":["), SharedBytes(tail)};
}

ObjectEncoder::ListFrame ObjectEncoder::JSONFrame(const ListMeta& list, bool empty) const {
  base::Arena arena;
  std::string metadata;
  codec::EncodeJSON(ListMetaValue(arena, list), schema::types::meta_v1::kListMeta, metadata);
  if (media_.transform == Transform::kTable) {
    std::string head = TableHead(metadata, true);
    if (empty && HasDefaultColumns()) return {SharedBytes::FromString(std::move(head)), SharedBytes::Static("null}\n")};
    return {SharedBytes::FromString(head + "["), SharedBytes::Static("]}\n")};
  }
  if (media_.transform == Transform::kNone && scope_->codec->sorted()) return SortedFrame(list);
  const bool partial = media_.transform == Transform::kPartialObjectMetadataList;
  const std::string kind = partial ? "PartialObjectMetadataList" : scope_->list_kind.kind;
  const std::string api_version =
      partial ? "meta.k8s.io/" + media_.transform_version : scope_->list_kind.group_version().ToString();
  std::string head = "{\"kind\":" + JSONText(kind) + ",\"apiVersion\":" + JSONText(api_version) +
                     ",\"metadata\":" + metadata + ",\"items\":";
  if (empty && partial) return {SharedBytes(head), SharedBytes::Static("null}\n")};  // a nil slice upstream
  return {SharedBytes(head + "["), SharedBytes::Static("]}\n")};
}

// Unknown{typeMeta (1), raw (2), contentEncoding (3), contentType (4)}; raw is ListMeta (1) and every item (2). All
// lengths are known beforehand, so the items' bytes are sent as they are stored.
std::optional<ObjectEncoder::ListFrame> ObjectEncoder::ProtoFrame(const storage::ObjectList& list) const {
  if (scope_->conversion != nullptr || media_.transform != Transform::kNone) return std::nullopt;
  const auto varint_size = [](std::uint64_t value) {
    return static_cast<std::size_t>((std::bit_width(value | 1) + 6) / 7);
  };
  base::Arena arena;
  std::string metadata;
  codec::EncodeProtoMessage(ListMetaValue(arena, MetaOf(list)), schema::types::meta_v1::kListMeta, metadata);
  std::size_t size = 1 + varint_size(metadata.size()) + metadata.size();
  for (const storage::ObjectPtr& object : list.items) {
    const std::string_view message = object->attributes().message;
    if (message.empty()) return std::nullopt;
    size += 1 + varint_size(message.size()) + message.size();
  }
  std::string type_meta;
  for (const std::string& text : {scope_->list_kind.group_version().ToString(), scope_->list_kind.kind}) {
    type_meta += type_meta.empty() ? '\x0a' : '\x12';
    AppendVarint(type_meta, text.size());
    type_meta += text;
  }
  std::string head("k8s\0\x0a", 5);
  AppendVarint(head, type_meta.size());
  head += type_meta;
  head += '\x12';
  AppendVarint(head, size);
  head += '\x0a';
  AppendVarint(head, metadata.size());
  head += metadata;
  return ListFrame{SharedBytes(head), SharedBytes::Static(std::string_view("\x1a\0\x22\0", 4))};
}

// Keys by length: kind, items, metadata, apiVersion.
ObjectEncoder::ListFrame ObjectEncoder::CBORFrame(const storage::ObjectList& list) const {
  const bool partial = media_.transform == Transform::kPartialObjectMetadataList;
  base::Arena arena;
  std::string head(codec::kCBORMagic), tail;
  codec::AppendCBORHead(codec::CBORMajor::kMap, 4, head);
  codec::AppendCBORText("kind", head);
  codec::AppendCBORText(partial ? "PartialObjectMetadataList" : scope_->list_kind.kind, head);
  codec::AppendCBORText("items", head);
  if (partial && list.items.empty()) {
    head += '\xf6';  // null: a nil slice upstream
  } else {
    codec::AppendCBORHead(codec::CBORMajor::kArray, list.items.size(), head);
  }
  codec::AppendCBORText("metadata", tail);
  codec::EncodeCBORItem(arena, ListMetaValue(arena, MetaOf(list)), schema::types::meta_v1::kListMeta, tail);
  codec::AppendCBORText("apiVersion", tail);
  codec::AppendCBORText(
      partial ? "meta.k8s.io/" + media_.transform_version : scope_->list_kind.group_version().ToString(), tail);
  return {SharedBytes(head), SharedBytes(tail)};
}

meta::Result<SharedBytes> ObjectEncoder::CBORPiece(const storage::ObjectPtr& object) const {
  base::Arena arena;
  std::string out;
  if (media_.transform == Transform::kNone) {
    KS_TRY(Value value, Decode(arena, object));
    value.Erase("kind");
    value.Erase("apiVersion");
    codec::EncodeCBORItem(arena, value, *scope_->type, out);
  } else {
    KS_TRY(const Value hub, scope_->rest->Decode(arena, object));
    codec::EncodeCBORItem(arena, PartialMetadata(arena, hub), schema::types::meta_v1::kPartialObjectMetadata, out);
  }
  return SharedBytes::FromString(std::move(out));
}

bool ObjectEncoder::laid_out() const {
  return media_.format == Format::kYAML || (media_.format == Format::kJSON && media_.pretty);
}

// The list without its items, cut where they belong. Keys at the start of a line (YAML), or two spaces from it (JSON),
// are those of the list itself.
std::optional<ObjectEncoder::ListFrame> ObjectEncoder::LaidOutFrame(const storage::ObjectList& list) const {
  const bool yaml = media_.format == Format::kYAML;
  if (list.items.empty()) return std::nullopt;
  if (yaml && std::ranges::any_of(list.items, [this](const auto& item) { return HasControlCharacters(item); }))
    return std::nullopt;  // WholeList() reports the error before the response begins.
  const ListFrame frame = JSONFrame(MetaOf(list), false);
  std::string json(frame.head.view());
  json += frame.tail.view();
  json.pop_back();
  base::Arena arena;
  const auto made = FinishJSON(arena, std::move(json));
  if (!made.ok()) return std::nullopt;
  const std::string name = media_.transform == Transform::kTable ? "rows" : "items";
  const std::string empty = yaml ? "\n" + name + ": []" : "\n  \"" + name + "\": []";
  const std::string_view text = made->view();
  const std::size_t at = text.find(empty);
  if (at == std::string_view::npos) return std::nullopt;
  const std::size_t items = at + empty.size() - 2;
  if (yaml)
    return ListFrame{SharedBytes(std::string(text.substr(0, items - 1)) + "\n"), SharedBytes(text.substr(items + 3))};
  return ListFrame{SharedBytes(std::string(text.substr(0, items)) + "[\n"),
                   SharedBytes("\n  ]" + std::string(text.substr(items + 2)))};
}

// JSON escapes most of them; what is left is rare, and can only be in an object whose bytes hold them.
bool ObjectEncoder::HasControlCharacters(const storage::ObjectPtr& object) const {
  if (!codec::HasYAMLControlCharacters(object->stored().view())) return false;
  const auto json = JSONPiece(object);
  return json.ok() && codec::HasYAMLControlCharacters(json->view());
}

meta::Result<SharedBytes> ObjectEncoder::LaidOutPiece(const storage::ObjectPtr& object) const {
  KS_TRY(const SharedBytes json, JSONPiece(object));
  std::string out;
  if (media_.format == Format::kYAML) {
    base::Arena arena;
    if (auto made = codec::JSONToYAMLItem(arena, json.view(), out); !made.ok())
      return meta::NewInternalError(made.error().message);
    return SharedBytes::FromString(std::move(out));
  }
  constexpr std::size_t kDepth = 2;  // in the list, which is in the whole
  out.assign(kDepth * 2, ' ');
  codec::IndentJSON(json.view(), out, kDepth);
  return SharedBytes::FromString(std::move(out));
}

std::optional<ObjectEncoder::ListFrame> ObjectEncoder::Frame(const storage::ObjectList& list) const {
  if (laid_out()) return LaidOutFrame(list);
  if (media_.format == Format::kProtobuf) return ProtoFrame(list);
  if (media_.format == Format::kCBOR) return CBORFrame(list);
  return JSONFrame(MetaOf(list), list.items.empty());
}

meta::Result<SharedBytes> ObjectEncoder::JSONPiece(const storage::ObjectPtr& object) const {
  switch (media_.transform) {
    case Transform::kTable: {
      std::string row;
      if (auto made = AppendRow(object, row); !made.ok()) return made.error();
      return SharedBytes::FromString(std::move(row));
    }
    case Transform::kPartialObjectMetadata:
    case Transform::kPartialObjectMetadataList:
      return MetadataJSON(object);
    case Transform::kNone:
      break;
  }
  return JSONItem(object);
}

meta::Result<std::size_t> ObjectEncoder::Item(const storage::ObjectPtr& object, bool first,
                                              std::vector<SharedBytes>& out) const {
  if (media_.format == Format::kProtobuf) {
    const std::string_view message = object->attributes().message;
    if (message.empty()) return meta::NewPlainError("the object is not stored as protobuf");
    std::string header = "\x12";
    AppendVarint(header, message.size());
    out.push_back(SharedBytes(header));
    out.push_back(
        object->stored().Slice(static_cast<std::size_t>(message.data() - object->stored().data()), message.size()));
    return header.size() + message.size();
  }
  const bool separated = media_.format == Format::kJSON;
  KS_TRY(SharedBytes piece, media_.format == Format::kCBOR ? CBORPiece(object)
                            : laid_out()                   ? LaidOutPiece(object)
                                                           : JSONPiece(object));
  if (!first && separated) out.push_back(SharedBytes::Static(media_.pretty ? ",\n" : ","));
  const std::size_t size = piece.size();
  out.push_back(std::move(piece));
  return size;
}

meta::Result<SharedBytes> ObjectEncoder::WholeList(const storage::ObjectList& list) const {
  const ListMeta list_meta = MetaOf(list);
  if (media_.format == Format::kProtobuf) return ProtoList(list, list_meta);
  const ListFrame frame = JSONFrame(list_meta, list.items.empty());
  std::string out(frame.head.view());
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) out += ',';
    KS_TRY(const SharedBytes item, JSONPiece(list.items[i]));
    out += item.view();
  }
  out += frame.tail.view();
  out.pop_back();
  base::Arena arena;
  return FinishJSON(arena, std::move(out));
}

// A list whose items have to be encoded first.
meta::Result<SharedBytes> ObjectEncoder::ProtoList(const storage::ObjectList& list, const ListMeta& list_meta) const {
  const bool partial = media_.transform == Transform::kPartialObjectMetadataList;
  base::Arena arena;
  std::string raw;
  std::string metadata;
  codec::EncodeProtoMessage(ListMetaValue(arena, list_meta), schema::types::meta_v1::kListMeta, metadata);
  raw += '\x0a';
  AppendVarint(raw, metadata.size());
  raw += metadata;
  std::string scratch;
  for (const storage::ObjectPtr& object : list.items) {
    std::string_view item;
    const std::string_view message = object->attributes().message;
    if (!message.empty() && scope_->conversion == nullptr && !partial) {
      item = message;
    } else {
      base::Arena item_arena;
      scratch.clear();
      if (partial) {
        if (auto made = MetadataProto(object, scratch); !made.ok()) return made.error();
      } else {
        KS_TRY(const Value decoded, Decode(item_arena, object));
        codec::EncodeProtoMessage(decoded, *scope_->type, scratch);
      }
      item = scratch;
    }
    raw += '\x12';
    AppendVarint(raw, item.size());
    raw += item;
  }
  std::string out;
  const std::string api_version =
      partial ? "meta.k8s.io/" + media_.transform_version : scope_->list_kind.group_version().ToString();
  codec::EncodeEnvelope(api_version, partial ? "PartialObjectMetadataList" : scope_->list_kind.kind, raw, out);
  return SharedBytes::FromString(std::move(out));
}

meta::Result<void> ObjectEncoder::AppendEvent(std::string_view type, SharedBytes object,
                                              std::vector<SharedBytes>& out) const {
  if (media_.format == Format::kProtobuf) {
    // WatchEvent{type (1), object (2){raw (1)}} after its length in four bytes; in a WebSocket message without it.
    std::string event;
    event += '\x0a';
    AppendVarint(event, type.size());
    event += type;
    std::string inner;
    inner += '\x0a';
    AppendVarint(inner, object.size());
    event += '\x12';
    AppendVarint(event, inner.size() + object.size());
    event += inner;
    const std::uint64_t size = event.size() + object.size();
    std::string frame;
    for (int shift = 24; shift >= 0 && !media_.messages; shift -= 8) frame += static_cast<char>(size >> shift);
    out.push_back(SharedBytes(frame + event));
    out.push_back(std::move(object));
    return {};
  }
  if (media_.format == Format::kCBOR) {
    std::string event(codec::kCBORMagic);
    codec::AppendCBORHead(codec::CBORMajor::kMap, 2, event);
    codec::AppendCBORText("type", event);
    codec::AppendCBORText(type, event);
    codec::AppendCBORText("object", event);
    out.push_back(SharedBytes(event));
    out.push_back(std::move(object));
    return {};
  }
  out.push_back(SharedBytes("{\"type\":\"" + std::string(type) + "\",\"object\":"));
  if (object.view().ends_with('\n')) object = object.Slice(0, object.size() - 1);
  out.push_back(std::move(object));
  out.push_back(SharedBytes::Static("}\n"));
  return {};
}

meta::Result<SharedBytes> ObjectEncoder::BookmarkObject(const storage::WatchEvent& event) const {
  base::Arena arena;
  Value object = Value::Map(arena);
  object.Set(arena, "kind", std::string_view(scope_->kind.kind));
  object.Set(arena, "apiVersion", Value::String(arena, scope_->api_version()));
  Value metadata = object.EnsureMap(arena, "metadata");
  metadata.Set(arena, "resourceVersion", Value::String(arena, std::to_string(event.resource_version)));
  if (event.initial_events_end)
    metadata.EnsureMap(arena, "annotations").Set(arena, "k8s.io/initial-events-end", "true");
  switch (media_.transform) {
    case Transform::kTable:
      return FinishJSON(arena, BookmarkTable(arena, object));
    case Transform::kPartialObjectMetadata:
    case Transform::kPartialObjectMetadataList:
      return EncodeValue(arena, PartialMetadata(arena, object), &schema::types::meta_v1::kPartialObjectMetadata);
    case Transform::kNone:
      break;
  }
  return EncodeValue(arena, object, scope_->type);
}

meta::Result<void> ObjectEncoder::Event(const storage::WatchEvent& event, bool first,
                                        std::vector<SharedBytes>& out) const {
  using Type = storage::WatchEvent::Type;
  const std::string_view name = EventName(event.type);
  if (event.type == Type::kError) {
    base::Arena arena;
    KS_TRY(SharedBytes status, EncodeValue(arena, StatusValue(arena, *event.error), &schema::types::meta_v1::kStatus));
    return AppendEvent(name, std::move(status), out);
  }
  if (event.type == Type::kBookmark) {
    KS_TRY(SharedBytes bookmark, BookmarkObject(event));
    return AppendEvent(name, std::move(bookmark), out);
  }
  if (media_.transform == Transform::kNone && media_.format == Format::kJSON) {
    KS_TRY(const SharedBytes item, JSONItem(event.object));
    // The object's bytes are shared with every other reader; only the frame around them is this watcher's.
    out.push_back(SharedBytes("{\"type\":\"" + std::string(name) + "\",\"object\":" + json_prefix_));
    out.push_back(item.Slice(1, item.size() - 1));
    out.push_back(SharedBytes::Static("}\n"));
    return {};
  }
  if (media_.transform == Transform::kTable) {
    KS_TRY(std::string table, TableJSON(event.object, first));
    return AppendEvent(name, SharedBytes::FromString(std::move(table)), out);
  }
  KS_TRY(SharedBytes whole, Whole(event.object));
  return AppendEvent(name, std::move(whole), out);
}

}  // namespace keelson::endpoints
