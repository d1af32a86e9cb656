#include "controlplane/table_codec.h"

#include <algorithm>

#include "base/strings.h"
#include "codec/json.h"
#include "codec/protobuf.h"
#include "codec/transcode.h"

namespace keelson::controlplane {
namespace {

using base::SharedBytes;

class TableCodec final : public storage::ResourceCodec {
 public:
  TableCodec(const schema::Resource& resource, const registry::Strategy& strategy)
      : resource_{std::string(resource.group), std::string(resource.plural)},
        kind_(resource.kind),
        api_version_(resource.group.empty() ? std::string(resource.version) : std::string(resource.group) + "/" + std::string(resource.version)),
        type_(*resource.type),
        strategy_(strategy),
        namespaced_(resource.namespaced) {}

  const meta::GroupResource& resource() const override { return resource_; }

  Outcome<SharedBytes, std::string> Encode(base::Arena& arena, Value object) const override {
    Value copy = object.Clone(arena);
    Value metadata = copy.EnsureMap(arena, "metadata");
    metadata.Erase("resourceVersion");
    metadata.Erase("selfLink");
    return EncodeValue(arena, copy);
  }

  Outcome<Value, std::string> Decode(base::Arena& arena, std::string_view stored) const override {
    auto decoded = codec::HasEnvelope(stored) ? codec::DecodeProto(arena, stored, type_) : codec::DecodeJSON(arena, stored, type_);
    if (!decoded.ok()) return decoded.error().message;
    return decoded->value;
  }

  Outcome<SharedBytes, std::string> Normalize(std::string_view stored) const override {
    if (codec::HasEnvelope(stored)) return SharedBytes();
    base::Arena arena;
    KS_TRY(const Value value, Decode(arena, stored));
    return Encode(arena, value);
  }

  Outcome<SharedBytes, std::string> WithResourceVersion(std::string_view stored, std::uint64_t resource_version) const override {
    std::string out;
    auto spliced = codec::SpliceResourceVersion(stored, resource_version, out);
    if (!spliced.ok()) return spliced.error().message;
    return SharedBytes::FromString(std::move(out));
  }

  Outcome<storage::Attributes, std::string> GetAttrs(const SharedBytes& stored) const override {
    base::Arena arena;
    KS_TRY(const Value value, Decode(arena, stored.view()));
    // Every text is copied into `extra` first; the views are made once it no longer grows.
    std::string text;
    std::vector<std::pair<std::size_t, std::size_t>> places;
    const auto keep = [&](std::string_view piece) {
      places.emplace_back(text.size(), piece.size());
      text += piece;
    };
    const Value metadata = value["metadata"];
    keep(metadata["name"].as_string());
    keep(metadata["namespace"].as_string());
    std::vector<std::pair<std::string_view, std::string_view>> labels;
    for (const auto& label : metadata["labels"].members()) labels.emplace_back(label.key, label.value.as_string());
    std::ranges::sort(labels);
    for (const auto& [key, label] : labels) {
      keep(key);
      keep(label);
    }
    std::vector<std::string_view> names;
    for (const auto& field : strategy_.selectable_fields) {
      const std::string field_value = field.value != nullptr ? field.value(value) : TextAt(value, field.path);
      if (field_value.empty()) continue;
      names.push_back(field.name);
      keep(field_value);
    }
    storage::Attributes attributes;
    attributes.extra = SharedBytes(text);
    std::size_t next = 0;
    const auto take = [&] {
      const auto [offset, size] = places[next++];
      return attributes.extra.view().substr(offset, size);
    };
    attributes.name = take();
    attributes.name_space = take();
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const std::string_view key = take();
      attributes.labels.emplace_back(key, take());
    }
    attributes.fields.emplace_back("metadata.name", attributes.name);
    if (namespaced_) attributes.fields.emplace_back("metadata.namespace", attributes.name_space);
    for (const std::string_view name : names) attributes.fields.emplace_back(name, take());
    return attributes;
  }

  std::string UID(std::string_view stored) const override {
    base::Arena arena;
    auto value = Decode(arena, stored);
    return value.ok() ? std::string(value->Get("metadata", "uid").as_string()) : std::string();
  }

 private:
  static std::string TextAt(Value value, std::string_view path) {
    for (const auto key : base::Split(path, '.')) value = value[key];
    if (value.is_string()) return std::string(value.as_string());
    if (value.is_int()) return std::to_string(value.as_int());
    if (value.is_bool()) return value.as_bool() ? "true" : "false";
    return {};
  }

  Outcome<SharedBytes, std::string> EncodeValue(base::Arena& arena, Value object) const {
    object.Set(arena, "kind", std::string_view(kind_));
    object.Set(arena, "apiVersion", std::string_view(api_version_));
    std::string out;
    codec::EncodeProto(object, type_, out);
    return SharedBytes::FromString(std::move(out));
  }

  meta::GroupResource resource_;
  std::string kind_;
  std::string api_version_;
  const schema::Struct& type_;
  const registry::Strategy& strategy_;
  bool namespaced_;
};

}  // namespace

std::shared_ptr<const storage::ResourceCodec> NewTableCodec(const schema::Resource& resource, const registry::Strategy& strategy) {
  return std::make_shared<TableCodec>(resource, strategy);
}

}  // namespace keelson::controlplane
