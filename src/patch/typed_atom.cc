#include "patch/typed_atom.h"

#include <algorithm>

#include "base/strings.h"
#include "object/json_text.h"
#include "schema/types.h"

namespace keelson::patch {
namespace {

using base::Arena;
using schema::Field;
using schema::Kind;
using schema::ListTopology;
using schema::MapTopology;
using schema::PatchStrategy;
using schema::Type;

TypeRef Plain(TypeRef::Mode mode) {
  TypeRef type;
  type.mode = mode;
  return type;
}

Atom AnyScalarOrContainer(TypeRef::Mode map_element, bool map_atomic) {
  Atom atom;
  atom.scalar = atom.list = atom.map = true;
  atom.list_element = Plain(TypeRef::Mode::kUntyped);
  atom.map_atomic = map_atomic;
  atom.map_element = Plain(map_element);
  return atom;
}

Atom Scalar(ScalarKind kind) {
  Atom atom;
  atom.scalar = true;
  atom.scalar_kind = kind;
  return atom;
}

// Items and map values have no field that declares how they merge.
TypeRef Inner(const Type* type) {
  TypeRef inner;
  inner.mode = TypeRef::Mode::kTyped;
  inner.type = type;
  return inner;
}

Atom ResolveTyped(const TypeRef& ref) {
  const Type& type = *ref.type;
  Atom atom;
  switch (type.kind) {
    case Kind::kString:
    case Kind::kBytes:
    case Kind::kDuration:
      return Scalar(ScalarKind::kString);
    case Kind::kBool:
      return Scalar(ScalarKind::kBoolean);
    case Kind::kInt32:
    case Kind::kInt64:
    case Kind::kDouble:
      return Scalar(ScalarKind::kNumeric);
    case Kind::kTime:
    case Kind::kMicroTime:
    case Kind::kQuantity:
    case Kind::kIntOrString:
      return Scalar(ScalarKind::kUntyped);
    case Kind::kRaw:
      return AnyScalarOrContainer(TypeRef::Mode::kUntyped, true);
    case Kind::kFieldsV1:
      atom.map = true;
      atom.map_element = Plain(TypeRef::Mode::kDeduced);
      return atom;
    case Kind::kJSON:
    case Kind::kEither:
      return AnyScalarOrContainer(TypeRef::Mode::kDeduced, false);
    case Kind::kStruct:
      atom.map = true;
      atom.fields = type.structure;
      atom.map_atomic = !ref.map_granular && (ref.map_atomic || type.structure->map_topology == MapTopology::kAtomic);
      // An object that declares nothing takes anything.
      if (type.structure->json_fields.empty()) atom.map_element = Plain(TypeRef::Mode::kDeduced);
      return atom;
    case Kind::kMap:
      atom.map = true;
      atom.map_atomic = ref.map_atomic;
      atom.map_element = Inner(type.element);
      return atom;
    case Kind::kList:
      atom.list = true;
      atom.list_atomic = ref.list == ListTopology::kAtomic;
      atom.list_keys = ref.keys;
      atom.list_element = Inner(type.element);
      return atom;
  }
  return atom;
}

TypeRef Structural(schema::structural::Node node, bool resource = false) {
  if (!node) return {};
  TypeRef type;
  type.mode = TypeRef::Mode::kStructural;
  type.node = node;
  type.resource = resource || node.embedded_resource();
  return type;
}

// The server-side apply schema that upstream derives from a structural schema: value validations except the format, and
// nullability, are ignored, fields that are not declared are deduced where unknown fields are preserved.
Atom ResolveStructural(const TypeRef& ref) {
  using schema::structural::ListType;
  using schema::structural::MapType;
  using schema::structural::NodeType;
  const schema::structural::Node node = ref.node;
  Atom atom;
  // No type is any type: that it has to be a number or a text is for validation to tell.
  if (node.int_or_string()) return AnyScalarOrContainer(TypeRef::Mode::kDeduced, false);
  switch (node.type()) {
    case NodeType::kString:
      // A string with a format takes any scalar (kube-openapi's convertPrimitive); validation refuses it afterwards.
      return Scalar(node.format().empty() || node.format() == "byte" ? ScalarKind::kString : ScalarKind::kUntyped);
    case NodeType::kInteger:
    case NodeType::kNumber:
      return Scalar(ScalarKind::kNumeric);
    case NodeType::kBoolean:
      return Scalar(ScalarKind::kBoolean);
    case NodeType::kArray:
      atom.list = true;
      atom.list_atomic = node.list_type() != ListType::kSet && node.list_type() != ListType::kMap;
      if (node.list_type() == ListType::kMap) atom.keyed = node;
      atom.list_element = Structural(node.items());
      if (atom.list_element.mode == TypeRef::Mode::kNone) atom.list_element = Plain(TypeRef::Mode::kUntyped);
      return atom;
    case NodeType::kObject:
      atom.map = true;
      atom.node = node;
      atom.resource = ref.resource;
      atom.map_atomic = node.map_type() == MapType::kAtomic;
      if (node.has_additional_properties() && node.additional_properties()) {
        atom.map_element = Structural(node.additional_properties());
      } else if (node.preserve_unknown_fields() || node.additional_properties_allowed()) {
        atom.map_element = Plain(TypeRef::Mode::kDeduced);
      }
      return atom;
    case NodeType::kNone:
      break;
  }
  if (node.preserve_unknown_fields()) return AnyScalarOrContainer(TypeRef::Mode::kDeduced, false);
  return AnyScalarOrContainer(TypeRef::Mode::kUntyped, true);
}

}  // namespace

// A root without a type comes from a definition that was stored as v1beta1 and is not structural: upstream builds no
// OpenAPI model of it and deduces the types of its objects.
TypeRef RootType(schema::structural::Node root) {
  if (!root || root.type() == schema::structural::NodeType::kNone) return Plain(TypeRef::Mode::kDeduced);
  return Structural(root, true);
}

TypeRef RootType(const Type* root) {
  if (root == nullptr) return Plain(TypeRef::Mode::kDeduced);
  return Inner(root);
}

TypeRef FieldType(const Field& field) {
  TypeRef type = Inner(field.type);
  type.map_atomic = field.map_topology == MapTopology::kAtomic;
  if (field.type->kind != Kind::kList) return type;
  const bool merges =
      field.patch_strategy == PatchStrategy::kMerge || field.patch_strategy == PatchStrategy::kMergeRetainKeys;
  if (field.has_list_topology) {
    type.list = field.list_topology;
    type.keys = field.list_keys;
  } else if (merges) {
    type.list = field.patch_merge_key.empty() ? ListTopology::kSet : ListTopology::kMap;
    if (!field.patch_merge_key.empty()) type.keys = std::span(&field.patch_merge_key, 1);
  }
  return type;
}

Atom Resolve(const TypeRef& type) {
  switch (type.mode) {
    case TypeRef::Mode::kTyped:
      return ResolveTyped(type);
    case TypeRef::Mode::kStructural:
      return ResolveStructural(type);
    case TypeRef::Mode::kUntyped:
      return AnyScalarOrContainer(TypeRef::Mode::kUntyped, true);
    default:
      return AnyScalarOrContainer(TypeRef::Mode::kDeduced, false);
  }
}

Atom Deduce(Atom atom, const Value* value) {
  if (value == nullptr) return atom;
  const bool scalar = value->is_number() || value->is_string() || value->is_bool();
  if (scalar && atom.scalar) {
    atom.list = atom.map = false;
  } else if (value->is_list() && atom.list) {
    atom.scalar = atom.map = false;
  } else if (value->is_map() && atom.map) {
    atom.scalar = atom.list = false;
  }
  return atom;
}

namespace {

// apiVersion, kind and metadata of a custom resource and of embedded resources.
TypeRef ResourceMember(std::string_view name) {
  static const Type kText{.kind = Kind::kString};
  static const Type kMeta{.kind = Kind::kStruct, .structure = &schema::types::meta_v1::kObjectMeta};
  if (name == "apiVersion" || name == "kind") return Inner(&kText);
  if (name == "metadata") return Inner(&kMeta);
  return {};
}

}  // namespace

TypeRef MemberType(const Atom& atom, std::string_view name, bool* declared) {
  if (atom.node) {
    TypeRef type = atom.resource ? ResourceMember(name) : TypeRef();
    if (type.mode == TypeRef::Mode::kNone) type = Structural(atom.node.Property(name));
    if (declared != nullptr) *declared = type.mode != TypeRef::Mode::kNone;
    return type.mode == TypeRef::Mode::kNone ? atom.map_element : type;
  }
  const Field* field = atom.fields != nullptr ? atom.fields->FindField(name) : nullptr;
  if (declared != nullptr) *declared = field != nullptr;
  if (field == nullptr) return atom.map_element;
  return MemberType(*atom.fields, *field);
}

TypeRef MemberType(const schema::Struct& type, const Field& field) {
  TypeRef member = FieldType(field);
  // The one reference that is granular where its type is atomic (map=granular in api/core/v1.kapi).
  member.map_granular = field.name == "claimRef" && type.name == "PersistentVolumeSpec";
  return member;
}

// The published schema gives fields that are always written their zero value as default, and so to the name of a
// LocalObjectReference, which is not.
static bool HasZeroDefault(const schema::Struct& fields, const Field& field) {
  if (field.pointer) return false;
  const schema::Kind kind = field.type->kind;
  if (kind != schema::Kind::kString && kind != schema::Kind::kInt32 && kind != schema::Kind::kInt64) return false;
  return field.always || (fields.package == "core/v1" && fields.name == "LocalObjectReference");
}

// The key of an item of a structural list; absent keys have their defaults.
static std::optional<PathElement> StructuralKey(Arena& arena, schema::structural::Node list, const Value& item,
                                                std::string* error) {
  const std::size_t count = list.list_map_key_count();
  Value key = Value::Map(arena, count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view name = list.list_map_key(i);
    if (const Value* value = item.Find(name)) {
      key.AppendMember(arena, name, *value);
    } else if (const Value value = list.items().Property(name).DefaultValue(arena); !value.is_null()) {
      key.AppendMember(arena, name, value);
    }
  }
  if (key.empty()) {
    if (error != nullptr) {
      std::string names;
      for (std::size_t i = 0; i < count; ++i) names += (i == 0 ? "" : " ") + base::GoQuote(list.list_map_key(i));
      *error = "associative list with keys has an element that omits all key fields [" + names +
               "] (and doesn't have default values for any key fields)";
    }
    return std::nullopt;
  }
  if (count > 1) key.SortMembers();
  return PathElement{PathElement::Kind::kKey, key};
}

std::optional<PathElement> ItemElement(Arena& arena, const Atom& list, const Value& item, std::string* error) {
  const auto fail = [&](std::string why) -> std::optional<PathElement> {
    if (error != nullptr) *error = std::move(why);
    return std::nullopt;
  };
  if (list.list_keys.empty() && !list.keyed) {
    if (item.is_map()) return fail("associative list without keys has an element that's a map type");
    if (item.is_list()) return fail("not supported: associative list with lists as elements");
    if (item.is_null()) return fail("associative list without keys has an element that's an explicit null");
    return PathElement{PathElement::Kind::kValue, item};
  }
  if (item.is_null()) return fail("associative list with keys may not have a null element");
  if (!item.is_map()) return fail("associative list with keys may not have non-map elements");
  if (list.keyed) return StructuralKey(arena, list.keyed, item, error);
  const schema::Struct* fields = list.list_element.type != nullptr ? list.list_element.type->structure : nullptr;
  Value key = Value::Map(arena, list.list_keys.size());
  for (const std::string_view name : list.list_keys) {
    if (const Value* value = item.Find(name)) {
      key.AppendMember(arena, name, *value);
      continue;
    }
    const Field* field = fields != nullptr ? fields->FindField(name) : nullptr;
    if (field == nullptr) continue;
    if (!field->default_text.empty()) {
      if (const auto value = object::ParseJSON(arena, field->default_text)) key.AppendMember(arena, name, *value);
    } else if (HasZeroDefault(*fields, *field)) {
      key.AppendMember(arena, name, field->type->kind == schema::Kind::kString ? Value("") : Value(0));
    }
  }
  if (key.empty()) {
    std::string names;
    for (const std::string_view name : list.list_keys) names += (names.empty() ? "" : " ") + base::GoQuote(name);
    return fail("associative list with keys has an element that omits all key fields [" + names +
                "] (and doesn't have default values for any key fields)");
  }
  key.SortMembers();
  return PathElement{PathElement::Kind::kKey, key};
}

}  // namespace keelson::patch
