#include "cel/decl_type.h"

#include <algorithm>
#include <utility>

#include "cel/literals.h"

namespace keelson::cel {
namespace {

using schema::structural::Node;
using schema::structural::NodeType;

// Sizes of the shortest and longest JSON texts.
constexpr std::int64_t kMinString = 2;
constexpr std::int64_t kMinBool = 4;
constexpr std::int64_t kMinNumber = 1;
constexpr std::int64_t kMinDuration = 3;
constexpr std::int64_t kMaxDuration = 32;
constexpr std::int64_t kDate = 12;
constexpr std::int64_t kMinDateTime = 21;
constexpr std::int64_t kMaxDateTime = 32;
constexpr std::int64_t kMaxText = kRequestBytesMax - 2;
constexpr std::int64_t kBytesPerRune = 4;

std::int64_t ZeroIfNegative(std::int64_t value) { return std::max<std::int64_t>(value, 0); }

bool IsScalarName(std::string_view name, const Type*& type) {
  static constexpr std::pair<std::string_view, const Type*> kScalars[] = {
      {"bool", &kBoolType}, {"bytes", &kBytesType},    {"double", &kDoubleType}, {"duration", &kDurationType},
      {"int", &kIntType},   {"null_type", &kNullType}, {"string", &kStringType}, {"timestamp", &kTimestampType},
      {"uint", &kUintType}, {"list", &kListDynType},   {"map", &kMapDynType}};
  for (const auto& [known, found] : kScalars) {
    if (known != name) continue;
    type = found;
    return true;
  }
  return false;
}

}  // namespace

const DeclType* DeclType::Field(std::string_view field) const {
  const auto found = std::ranges::lower_bound(fields, field, {}, &DeclField::name);
  return found != fields.end() && found->name == field ? found->type : nullptr;
}

const DeclType* DeclTypes::Scalar(std::string_view name, const Type& type, std::int64_t min_size,
                                  std::int64_t max_elements) {
  return arena_.New<DeclType>(DeclType{.kind = DeclType::Kind::kScalar,
                                       .type = &type,
                                       .name = name,
                                       .max_elements = max_elements,
                                       .min_serialized_size = min_size});
}

const DeclType* DeclTypes::Convert(Node node, bool resource_root) {
  if (!node) return nullptr;
  if (node.int_or_string()) {
    const auto max = node.max_length();
    return Scalar("dyn", kDynType, 1, max ? ZeroIfNegative(*max) * kBytesPerRune : kMaxText);
  }
  switch (node.type()) {
    case NodeType::kArray:
      return ConvertArray(node);
    case NodeType::kObject:
      return ConvertObject(node, resource_root);
    case NodeType::kString:
      return ConvertString(node);
    case NodeType::kBoolean:
      return Scalar("bool", kBoolType, kMinBool);
    case NodeType::kNumber:
      return Scalar("double", kDoubleType, kMinNumber);
    case NodeType::kInteger:
      return Scalar("int", kIntType, kMinNumber);
    case NodeType::kNone:
      return nullptr;
  }
  return nullptr;
}

const DeclType* DeclTypes::ConvertString(Node node) {
  const auto max = node.max_length();
  const std::string_view format = node.format();
  if (format == "byte") return Scalar("bytes", kBytesType, kMinString, max ? ZeroIfNegative(*max) : kMaxText);
  if (format == "duration") return Scalar("duration", kDurationType, kMinDuration, kMaxDuration);
  if (format == "date") return Scalar("timestamp", kTimestampType, kDate, kDate);
  if (format == "date-time") return Scalar("timestamp", kTimestampType, kMinDateTime, kMaxDateTime);
  std::int64_t elements = kMaxText;
  if (max) {
    elements = ZeroIfNegative(*max) * kBytesPerRune;
  } else if (node.enum_count() > 0) {
    elements = 0;
    for (std::size_t i = 0; i < node.enum_count(); ++i)
      if (node.enum_is_string(i)) elements = std::max(elements, static_cast<std::int64_t>(node.enum_text(i).size()));
  }
  return Scalar("string", kStringType, kMinString, elements);
}

const DeclType* DeclTypes::ConvertArray(Node node) {
  const DeclType* element = Convert(node.items(), node.items() && node.items().embedded_resource());
  if (element == nullptr) return nullptr;
  const auto max = node.max_items();
  return arena_.New<DeclType>(
      DeclType{.kind = DeclType::Kind::kList,
               .name = "list",
               .max_elements = max ? ZeroIfNegative(*max) : kMaxText / (element->min_serialized_size + 1),
               .min_serialized_size = 2,
               .element = element});
}

const DeclType* DeclTypes::ObjectMeta() {
  auto* fields = arena_.NewArray<DeclField>(2);
  fields[0] = {"generateName", Scalar("string", kStringType, kMinString, kMaxText)};
  fields[1] = {"name", Scalar("string", kStringType, kMinString, kMaxText)};
  return arena_.New<DeclType>(
      DeclType{.kind = DeclType::Kind::kObject, .name = "object", .min_serialized_size = 2, .fields = {fields, 2}});
}

namespace {

// Whether a resource's schema already declares what expressions may always see.
bool DeclaresObjectMeta(Node node) {
  const Node metadata = node.Property("metadata");
  return node.Property("kind").type() == NodeType::kString && node.Property("apiVersion").type() == NodeType::kString &&
         metadata.type() == NodeType::kObject && metadata.Property("name").type() == NodeType::kString &&
         metadata.Property("generateName").type() == NodeType::kString;
}

}  // namespace

const DeclType* DeclTypes::ConvertObject(Node node, bool resource_root) {
  if (const Node values = node.additional_properties()) {
    const DeclType* element = Convert(values, values.embedded_resource());
    if (element == nullptr) return nullptr;
    const auto max = node.max_properties();
    return arena_.New<DeclType>(
        DeclType{.kind = DeclType::Kind::kMap,
                 .name = "map",
                 .max_elements = max ? ZeroIfNegative(*max) : kMaxText / (element->min_serialized_size + 6),
                 .min_serialized_size = 2,
                 .element = element});
  }
  const bool add_meta = resource_root && !DeclaresObjectMeta(node);
  const auto required = [node](std::string_view name) {
    for (std::size_t i = 0; i < node.required_count(); ++i)
      if (node.required(i) == name) return true;
    return false;
  };
  std::vector<DeclField> fields;
  std::int64_t size = 2;
  const auto add = [&](std::string_view name, const DeclType* type, bool has_default) {
    if (type == nullptr) return;
    if (auto escaped = EscapeName(name)) fields.push_back({arena_.Copy(*escaped), type});
    if (required(name) && !has_default) size += static_cast<std::int64_t>(name.size()) + type->min_serialized_size + 4;
  };
  for (std::size_t i = 0; i < node.property_count(); ++i) {
    const std::string_view name = node.property_name(i);
    if (add_meta && (name == "kind" || name == "apiVersion" || name == "metadata")) continue;
    const Node property = node.property(i);
    add(name, Convert(property, property.embedded_resource()), property.default_json().has_value());
  }
  if (add_meta) {
    add("apiVersion", Scalar("string", kStringType, kMinString, kMaxText), false);
    add("kind", Scalar("string", kStringType, kMinString, kMaxText), false);
    add("metadata", ObjectMeta(), false);
  }
  std::ranges::sort(fields, {}, &DeclField::name);
  auto* copy = arena_.NewArray<DeclField>(fields.size());
  std::ranges::copy(fields, copy);
  return arena_.New<DeclType>(DeclType{
      .kind = DeclType::Kind::kObject, .name = "object", .min_serialized_size = size, .fields = {copy, fields.size()}});
}

DeclTypeProvider::DeclTypeProvider(const DeclType& root, std::string_view name, std::shared_ptr<const DeclTypes> owner)
    : owner_(std::move(owner)), root_type_(MakeType(root, arena_.Copy(name))) {}

const Type* DeclTypeProvider::MakeType(const DeclType& decl, std::string_view name) const {
  switch (decl.kind) {
    case DeclType::Kind::kScalar:
      return decl.type;
    case DeclType::Kind::kList:
      return NewListType(arena_, MakeType(*decl.element, arena_.Concat(name, ".@idx")));
    case DeclType::Kind::kMap:
      return NewMapType(arena_, &kStringType, MakeType(*decl.element, arena_.Concat(name, ".@elem")));
    case DeclType::Kind::kObject: {
      auto& slot = objects_[name];
      if (slot.second == nullptr) slot = {&decl, arena_.New<Type>(Type{.kind = Kind::kStruct, .name = name})};
      return slot.second;
    }
  }
  return nullptr;
}

const Type* DeclTypeProvider::FindType(std::string_view name) const {
  if (const auto found = objects_.find(name); found != objects_.end()) return found->second.second;
  const Type* scalar = nullptr;
  return IsScalarName(name, scalar) ? scalar : nullptr;
}

const DeclType* DeclTypeProvider::FindDecl(std::string_view type) const {
  const auto found = objects_.find(type);
  return found == objects_.end() ? nullptr : found->second.first;
}

const Type* DeclTypeProvider::FindFieldType(std::string_view type, std::string_view field) const {
  const DeclType* decl = FindDecl(type);
  if (decl == nullptr) return nullptr;
  std::string name(field);
  const DeclType* found = decl->Field(field);
  if (found == nullptr && IsReservedIdentifier(field)) {  // reserved words are usable without escaping since 1.31
    name = "__" + name + "__";
    found = decl->Field(name);
  }
  if (found == nullptr) return nullptr;
  const std::string path = std::string(type) + "." + name;
  if (const auto made = fields_.find(path); made != fields_.end()) return made->second;
  const std::string_view kept = arena_.Copy(path);
  return fields_[kept] = MakeType(*found, kept);
}

std::optional<Estimate> DeclSizeEstimator::EstimateSize(std::span<const std::string_view> path, const Type&) const {
  if (path.empty()) return std::nullopt;
  const DeclType* current = &root_;
  for (const auto part : path.subspan(1)) {
    if (part == "@items" || part == "@values") {
      current = current->element;
    } else if (part == "@keys") {
      static constexpr DeclType kKey{.name = "string", .min_serialized_size = kMinString};
      current = current->kind == DeclType::Kind::kMap ? &kKey : nullptr;
    } else {
      current = current->Field(part);
    }
    if (current == nullptr) return std::nullopt;
  }
  return Estimate{0, static_cast<std::uint64_t>(current->max_elements)};
}

std::optional<std::string> EscapeName(std::string_view name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return std::nullopt;
  if (IsReservedIdentifier(name)) return "__" + std::string(name) + "__";
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '_' && i + 1 < name.size() && name[i + 1] == '_') {
      out += "__underscores__";
      ++i;
    } else if (c == '.') {
      out += "__dot__";
    } else if (c == '-') {
      out += "__dash__";
    } else if (c == '/') {
      out += "__slash__";
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_') {
      out += c;
    } else {
      return std::nullopt;
    }
  }
  return out;
}

std::optional<std::string> UnescapeName(std::string_view name) {
  std::string out;
  for (std::size_t i = 0; i < name.size();) {
    // __word__, where the word has no underscore.
    const auto end = name.substr(i).starts_with("__") ? name.find('_', i + 2) : std::string_view::npos;
    if (end == std::string_view::npos || end == i + 2 || !name.substr(end).starts_with("__")) {
      out += name[i++];
      continue;
    }
    const std::string_view word = name.substr(i + 2, end - i - 2);
    if (word == "underscores") {
      out += "__";
    } else if (word == "dot") {
      out += '.';
    } else if (word == "dash") {
      out += '-';
    } else if (word == "slash") {
      out += '/';
    } else if (IsReservedIdentifier(word) && word.size() + 4 == name.size()) {
      out += word;
    } else {
      return std::nullopt;
    }
    i = end + 2;
  }
  return out;
}

}  // namespace keelson::cel
