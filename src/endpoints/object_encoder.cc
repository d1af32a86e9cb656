#include "endpoints/object_encoder.h"

#include "base/strings.h"
#include "codec/json.h"
#include "codec/protobuf.h"
#include "codec/transcode.h"
#include "codec/yaml.h"
#include "endpoints/handlers.h"
#include "endpoints/responses.h"

namespace keelson::endpoints {
namespace {

// The encoded forms that are kept with an object (storage::Object::GetForm).
constexpr std::size_t kJSONForm = 0;  // without kind and apiVersion, in the served version where that is the stored one

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

const schema::Struct& MetaType(std::string_view name) {
  const schema::Struct* type = schema::FindType("meta/v1", name);
  return *type;
}

}  // namespace

ObjectEncoder::ObjectEncoder(ScopePtr scope, MediaTypeOptions media, IncludeObject include, const base::Clock& clock)
    : scope_(std::move(scope)),
      media_(std::move(media)),
      include_(include),
      clock_(clock),
      content_type_(MediaType(media_.format)),
      api_version_(scope_->api_version()) {
  json_prefix_ =
      "{\"kind\":" + JSONText(scope_->kind.kind) + ",\"apiVersion\":" + JSONText(scope_->api_version()) + ",";
}

std::string_view ObjectEncoder::stream_content_type() const {
  switch (media_.format) {
    case Format::kProtobuf:
      return "application/vnd.kubernetes.protobuf;stream=watch";
    case Format::kCBOR:
      return "application/cbor-seq";
    default:
      return "application/json";
  }
}

meta::Result<Value> ObjectEncoder::Decode(base::Arena& arena, const storage::ObjectPtr& object) const {
  KS_TRY(Value value, scope_->store->Decode(arena, object));
  return FromHub(arena, *scope_, value);
}

meta::Result<SharedBytes> ObjectEncoder::JSONItem(const storage::ObjectPtr& object) const {
  if (scope_->conversion == nullptr) {
    if (SharedBytes form = object->GetForm(kJSONForm); !form.empty()) return form;
  }
  std::string json;
  auto envelope = codec::ParseEnvelope(object->stored().view());
  // A claim template says what it is in JSON only, so it is the defaults that put that back.
  const bool needs_defaults = scope_->kind.kind == "StatefulSet" && scope_->kind.group == "apps";
  if (envelope.ok() && scope_->conversion == nullptr && !needs_defaults) {
    auto transcoded = codec::TranscodeMessage(envelope->raw, *scope_->type, "", "", json);
    if (!transcoded.ok()) return meta::NewPlainError(transcoded.error().message);
  } else {
    base::Arena arena;
    KS_TRY(Value value, Decode(arena, object));
    value.Erase("kind");
    value.Erase("apiVersion");
    codec::EncodeJSON(value, *scope_->type, json);
  }
  SharedBytes form(json);
  if (scope_->conversion == nullptr) object->SetForm(kJSONForm, form);
  return form;
}

meta::Result<SharedBytes> ObjectEncoder::EncodeValue(base::Arena& arena, Value object,
                                                     const schema::Struct* type) const {
  std::string out;
  switch (media_.format) {
    case Format::kProtobuf:
      codec::EncodeProto(object, *type, out);
      break;
    case Format::kYAML: {
      std::string json;
      codec::EncodeJSON(object, *type, json);
      if (auto laid_out = codec::JSONToYAML(arena, json, out); !laid_out.ok())
        return meta::NewInternalError(laid_out.error().message);
      break;
    }
    default:
      codec::EncodeJSON(object, *type, out);
      if (media_.pretty && !media_.stream) {
        std::string indented;
        codec::IndentJSON(out, indented);
        out = std::move(indented);
      } else {
        out += '\n';
      }
  }
  return SharedBytes::FromString(std::move(out));
}

Value ObjectEncoder::PartialMetadata(base::Arena& arena, Value hub) const {
  // What conversion to a version keeps in annotations is not part of the hub's metadata.
  if (scope_->kind.kind == "DaemonSet") {
    Value metadata = hub["metadata"];
    Value annotations = metadata["annotations"];
    annotations.Erase("deprecated.daemonset.template.generation");
    if (annotations.empty()) metadata.Erase("annotations");
  }
  Value partial = Value::Map(arena);
  partial.Set(arena, "kind", "PartialObjectMetadata");
  partial.Set(arena, "apiVersion", media_.transform_version == "v1beta1" ? "meta.k8s.io/v1beta1" : "meta.k8s.io/v1");
  partial.Set(arena, "metadata", hub["metadata"]);
  return partial;
}

meta::Result<Value> ObjectEncoder::Transformed(base::Arena& arena, const storage::ObjectPtr& object) const {
  switch (media_.transform) {
    case Transform::kTable: {
      const storage::ObjectPtr one[] = {object};
      return TableOf(arena, one, {.resource_version = object->resource_version()}, true);
    }
    case Transform::kPartialObjectMetadata:
    case Transform::kPartialObjectMetadataList: {
      KS_TRY(const Value hub, scope_->store->Decode(arena, object));
      return PartialMetadata(arena, hub);
    }
    case Transform::kNone:
      break;
  }
  return Decode(arena, object);
}

meta::Result<SharedBytes> ObjectEncoder::Whole(const storage::ObjectPtr& object) const {
  if (media_.transform == Transform::kNone) {
    if (media_.format == Format::kJSON && !media_.pretty) {
      KS_TRY(const SharedBytes item, JSONItem(object));
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
    base::Arena arena;
    KS_TRY(Value value, Decode(arena, object));
    return EncodeValue(arena, value, scope_->type);
  }
  base::Arena arena;
  KS_TRY(Value value, Transformed(arena, object));
  const schema::Struct* type =
      media_.transform == Transform::kTable ? &MetaType("Table") : &MetaType("PartialObjectMetadata");
  return EncodeValue(arena, value, type);
}

ObjectEncoder::ListFrame ObjectEncoder::Frame(const ListMeta& list, bool empty) const {
  base::Arena arena;
  std::string metadata;
  codec::EncodeJSON(ListMetaValue(arena, list), MetaType("ListMeta"), metadata);
  std::string kind = scope_->list_kind.kind;
  std::string api_version = scope_->list_kind.group_version().ToString();
  if (media_.transform == Transform::kPartialObjectMetadataList) {
    kind = "PartialObjectMetadataList";
    api_version = "meta.k8s.io/" + media_.transform_version;
  }
  std::string head =
      "{\"kind\":" + JSONText(kind) + ",\"apiVersion\":" + JSONText(api_version) + ",\"metadata\":" + metadata + ",";
  if (media_.transform == Transform::kTable) {
    head = "{\"kind\":\"Table\",\"apiVersion\":" + JSONText("meta.k8s.io/" + media_.transform_version) +
           ",\"metadata\":" + metadata + ",\"columnDefinitions\":" + columns_json() + ",\"rows\":[";
  } else {
    head += "\"items\":[";
  }
  if (empty && media_.transform == Transform::kPartialObjectMetadataList) {
    head.pop_back();
    return {SharedBytes(head), SharedBytes::Static(","), SharedBytes::Static("null}\n")};  // a nil slice upstream
  }
  return {SharedBytes(head), SharedBytes::Static(","), SharedBytes::Static("]}\n")};
}

meta::Result<SharedBytes> ObjectEncoder::Item(const storage::ObjectPtr& object) const {
  if (media_.transform == Transform::kNone) return JSONItem(object);
  base::Arena arena;
  std::string out;
  if (media_.transform == Transform::kTable) {
    KS_TRY(const Value row, TableRow(arena, object));
    codec::EncodeJSON(row, MetaType("TableRow"), out);
  } else {
    KS_TRY(const Value hub, scope_->store->Decode(arena, object));
    codec::EncodeJSON(PartialMetadata(arena, hub), MetaType("PartialObjectMetadata"), out);
  }
  return SharedBytes::FromString(std::move(out));
}

meta::Result<SharedBytes> ObjectEncoder::WholeList(const storage::ObjectList& list) const {
  const ListMeta list_meta{list.resource_version, list.continue_token, list.remaining_item_count};
  if (media_.format == Format::kJSON) {
    const ListFrame frame = Frame(list_meta, list.items.empty());
    std::string out(frame.head.view());
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) out += ',';
      KS_TRY(const SharedBytes item, Item(list.items[i]));
      out += item.view();
    }
    out += frame.tail.view();
    if (media_.pretty) {
      std::string indented;
      out.pop_back();
      codec::IndentJSON(out, indented);
      out = std::move(indented);
    }
    return SharedBytes::FromString(std::move(out));
  }
  if (media_.format == Format::kYAML) {
    MediaTypeOptions json_media = media_;
    json_media.format = Format::kJSON;
    json_media.pretty = false;
    const ObjectEncoder as_json(scope_, json_media, include_, clock_);
    KS_TRY(const SharedBytes json, as_json.WholeList(list));
    base::Arena arena;
    std::string out;
    if (auto laid_out = codec::JSONToYAML(arena, json.view(), out); !laid_out.ok())
      return meta::NewInternalError(laid_out.error().message);
    return SharedBytes::FromString(std::move(out));
  }
  return ProtoList(list, list_meta);
}

// Unknown{typeMeta, raw}: raw is ListMeta (1) and every item (2), whose lengths are known beforehand, so the whole is
// made in one go.
meta::Result<SharedBytes> ObjectEncoder::ProtoList(const storage::ObjectList& list, const ListMeta& list_meta) const {
  const bool partial = media_.transform == Transform::kPartialObjectMetadataList;
  base::Arena arena;
  std::string raw;
  std::string metadata;
  codec::EncodeProtoMessage(ListMetaValue(arena, list_meta), MetaType("ListMeta"), metadata);
  raw += '\x0a';
  AppendVarint(raw, metadata.size());
  raw += metadata;
  std::string scratch;
  for (const storage::ObjectPtr& object : list.items) {
    std::string_view item;
    auto envelope = codec::ParseEnvelope(object->stored().view());
    if (envelope.ok() && scope_->conversion == nullptr && !partial) {
      item = envelope->raw;
    } else {
      base::Arena item_arena;
      scratch.clear();
      if (partial) {
        KS_TRY(const Value hub, scope_->store->Decode(item_arena, object));
        codec::EncodeProtoMessage(PartialMetadata(item_arena, hub), MetaType("PartialObjectMetadata"), scratch);
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
    // WatchEvent{type (1), object (2){raw (1)}} after its length in four bytes.
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
    for (int shift = 24; shift >= 0; shift -= 8) frame += static_cast<char>(size >> shift);
    out.push_back(SharedBytes(frame + event));
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
      return EncodeValue(arena, BookmarkTable(arena, object), &MetaType("Table"));
    case Transform::kPartialObjectMetadata:
    case Transform::kPartialObjectMetadataList:
      return EncodeValue(arena, PartialMetadata(arena, object), &MetaType("PartialObjectMetadata"));
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
    KS_TRY(SharedBytes status,
           EncodeValue(arena, StatusValue(arena, *event.error), schema::FindKind("", "v1", "Status")));
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
    base::Arena arena;
    const storage::ObjectPtr one[] = {event.object};
    KS_TRY(const Value table, TableOf(arena, one, {.resource_version = event.object->resource_version()}, first));
    KS_TRY(SharedBytes encoded, EncodeValue(arena, table, &MetaType("Table")));
    return AppendEvent(name, std::move(encoded), out);
  }
  KS_TRY(SharedBytes whole, Whole(event.object));
  return AppendEvent(name, std::move(whole), out);
}

}  // namespace keelson::endpoints
