#include "patch/created_fields.h"

#include <algorithm>
#include <vector>

#include "patch/typed_atom.h"
#include "patch/typed_value.h"
#include "schema/left_out.h"

namespace keelson::patch {
namespace {

using base::Arena;
using object::Member;
using schema::Field;
using schema::Kind;
using schema::Type;

bool WrittenAlways(const schema::Struct& type, std::size_t position) {
  return (type.written_always[position / 64] >> (position % 64) & 1) != 0;
}

// Fields left out at and below a path.
struct Exclusion {
  FieldSet without;
  FieldSet never;

  bool empty() const { return without.empty() && never.empty(); }
};

class Writer {
 public:
  Writer(Arena& arena, std::string& out) : arena_(arena), out_(out) {}

  bool fits() const { return fits_; }

  // The members of a struct compared with its zero value. `value` is a map or null.
  void BesideZero(const Value& value, const schema::Struct& type, const Exclusion& exclusion) {
    EachField(value, type, [&](std::size_t position, const Field& field, const Value& member) {
      const Node node{PathElement::Field(field.name), exclusion};
      if (node.gone) return;
      if (!WrittenAlways(type, position)) {
        Write(node, true, [&] { Below(member, MemberType(type, field), node.below); });
      } else {
        FieldBesideZero(node, member, field, MemberType(type, field));
      }
    });
  }

 private:
  // An element of FieldsV1 and what is excluded there.
  struct Node {
    Node(PathElement at, const Exclusion& exclusion) : element(at) {
      if (exclusion.empty()) return;
      if (const FieldSet::Node* found = exclusion.without.Find(at)) {
        gone = found->member;
        below.without = found->children;
      }
      if (const FieldSet::Node* found = exclusion.never.Find(at)) {
        never_member = found->member;
        below.never = found->children;
      }
    }
    PathElement element;
    Exclusion below;
    bool gone = false;
    bool never_member = false;
  };

  struct Item {
    PathElement element;
    const Value* value;
    std::size_t index;
  };

  // Writes the element and what `below` writes; nothing if that is empty and the path is not a member.
  template <class Below>
  void Write(const Node& node, bool member, Below below) {
    member = member && !node.never_member;
    const std::size_t begin = out_.size();
    if (out_.back() != '{') out_ += ',';
    AppendElement(out_, node.element, scratch_);
    out_ += ":{";
    const std::size_t open = out_.size();
    if (member) out_ += "\".\":{}";
    const std::size_t children = out_.size();
    below();
    if (out_.size() == children) out_.resize(member ? open : begin);
    if (out_.size() > begin) out_ += '}';
  }

  // As the canonical form has them: fields in the order of their names, absent ones where Go writes them anyway.
  template <class Visit>
  void EachField(const Value& value, const schema::Struct& type, Visit visit) {
    if (!value.is_map() && !value.is_null()) return Misfit();
    const std::size_t base = slots_.size();
    slots_.resize(base + type.json_fields.size(), nullptr);
    for (const Member& member : value.members()) {
      const std::uint16_t position = type.FindPosition(member.key);
      if (position != schema::Struct::kNoPosition) slots_[base + position] = &member.value;
    }
    for (const std::uint16_t position : type.name_index) {
      const Field& field = *type.json_fields[position];
      const Value* present = slots_[base + position];
      if (present == nullptr ? !WrittenAlways(type, position) : schema::LeftOut(field, field.type->kind, *present))
        continue;
      visit(position, field, present == nullptr ? Value() : *present);
    }
    slots_.resize(base);
  }

  // Upstream compares with the zero value here: only a difference makes a member.
  void FieldBesideZero(const Node& node, const Value& member, const Field& field, const TypeRef& type) {
    const Kind kind = field.type->kind;
    if (member.is_null() && (field.pointer || kind != Kind::kStruct)) return;
    if (kind == Kind::kRaw || kind == Kind::kJSON || kind == Kind::kEither || kind == Kind::kFieldsV1) return Misfit();
    const Atom atom = Resolve(type);
    const bool whole = atom.map ? atom.map_atomic : !atom.list || atom.list_atomic;
    if (kind == Kind::kStruct && !field.pointer) {
      if (!whole) return Write(node, false, [&] { BesideZero(member, *field.type->structure, node.below); });
      const Value zero = Canonical(arena_, Value(), type, true);
      return Write(node, !(Canonical(arena_, member, type, true) == zero), [] {});
    }
    if (whole) {
      const bool zero = !field.pointer && IsZero(member, kind);
      return Write(node, !zero, [] {});
    }
    Write(node, IsEmpty(member, *field.type), [&] { Below(member, type, node.below); });
  }

  static bool IsZero(const Value& value, Kind kind) {
    switch (kind) {
      case Kind::kString:
        return value.is_string() && value.as_string().empty();
      case Kind::kBool:
        return value.is_bool() && !value.as_bool();
      case Kind::kInt32:
      case Kind::kInt64:
      case Kind::kIntOrString:
      case Kind::kDouble:
        return value.is_number() && value.as_double() == 0;
      case Kind::kDuration:
        return value.as_string() == "0s";
      case Kind::kQuantity:
        return value.as_string() == "0";
      default:
        return false;
    }
  }

  // Nothing below it in canonical form, so that it counts as one value.
  bool IsEmpty(const Value& value, const Type& type) {
    if (type.kind != Kind::kStruct) return value.empty();
    bool empty = true;
    EachField(value, *type.structure, [&](std::size_t, const Field&, const Value&) { empty = false; });
    return empty;
  }

  // Everything below a new value.
  void Below(const Value& value, const TypeRef& type, const Exclusion& exclusion) {
    if (type.mode != TypeRef::Mode::kTyped) return Misfit();
    switch (type.type->kind) {
      case Kind::kStruct: {
        const Atom atom = Resolve(type);
        if (!atom.map_atomic) NewStruct(value, *type.type->structure, exclusion);
        return;
      }
      case Kind::kMap:
        if (!type.map_atomic) NewMap(value, type, exclusion);
        return;
      case Kind::kList:
        if (type.list != schema::ListTopology::kAtomic) NewList(value, type, exclusion);
        return;
      case Kind::kJSON:
      case Kind::kEither:
      case Kind::kFieldsV1:
        return Misfit();
      default:
        return;
    }
  }

  void NewStruct(const Value& value, const schema::Struct& type, const Exclusion& exclusion) {
    if (type.json_fields.empty()) return Misfit();
    EachField(value, type, [&](std::size_t, const Field& field, const Value& member) {
      const Node node{PathElement::Field(field.name), exclusion};
      if (node.gone) return;
      const bool absent = member.is_null() && field.pointer;
      Write(node, true, [&] {
        if (!absent) Below(member, MemberType(type, field), node.below);
      });
    });
  }

  void NewMap(const Value& value, const TypeRef& type, const Exclusion& exclusion) {
    if (!value.is_map()) return value.is_null() ? void() : Misfit();
    std::vector<const Member*> members;
    members.reserve(value.size());
    for (const Member& member : value.members()) members.push_back(&member);
    std::ranges::sort(members, {}, [](const Member* member) { return member->key; });
    const TypeRef element = Resolve(type).map_element;
    for (const Member* member : members) {
      const Node node{PathElement::Field(member->key), exclusion};
      if (!node.gone) Write(node, true, [&] { Below(member->value, element, node.below); });
    }
  }

  void NewList(const Value& value, const TypeRef& type, const Exclusion& exclusion) {
    if (!value.is_list()) return value.is_null() ? void() : Misfit();
    const Atom atom = Resolve(type);
    std::vector<Item> items;
    items.reserve(value.size());
    for (const Value& item : value.items()) {
      const Value named = atom.list_keys.empty() ? item : KeysOf(item, atom);
      if (named.is_null()) return Misfit();
      if (const auto element = ItemElement(arena_, atom, named)) items.push_back({*element, &item, items.size()});
    }
    std::ranges::sort(items, [](const Item& a, const Item& b) {
      const int order = Compare(a.element, b.element);
      return order != 0 ? order < 0 : a.index < b.index;
    });
    for (std::size_t i = 0; i < items.size();) {
      std::size_t end = i + 1;
      while (end < items.size() && items[end].element == items[i].element) ++end;
      const Node node{items[i].element, exclusion};
      const bool single = end == i + 1;  // Several of one name are one value.
      if (!node.gone) {
        Write(node, true, [&] {
          if (single) Below(*items[i].value, atom.list_element, node.below);
        });
      }
      i = end;
    }
  }

  // The key fields of an item in canonical form; null if the item is not a struct.
  Value KeysOf(const Value& item, const Atom& atom) {
    const schema::Struct* const fields =
        atom.list_element.type != nullptr ? atom.list_element.type->structure : nullptr;
    if (!item.is_map() || fields == nullptr) return {};
    Value keys = Value::Map(arena_, atom.list_keys.size());
    for (const std::string_view name : atom.list_keys) {
      const Field* const field = fields->FindField(name);
      const Value* const value = item.Find(name);
      if (field == nullptr || value == nullptr) continue;
      if (value->is_null() || value->is_map() || value->is_list() || value->is_raw()) return {};
      if (!schema::LeftOut(*field, field->type->kind, *value)) keys.AppendMember(arena_, name, *value);
    }
    return keys;
  }

  void Misfit() { fits_ = false; }

  Arena& arena_;
  std::string& out_;
  std::string scratch_;
  std::vector<const Value*> slots_;  // one stack of positions for all levels
  bool fits_ = true;
};

}  // namespace

std::optional<std::string> CreatedFields(Arena& arena, const Value& object, const Type& type, const FieldSet& without,
                                         const FieldSet& never) {
  if (type.kind != Kind::kStruct) return std::nullopt;
  std::string out = "{";
  out.reserve(2048);
  Writer writer(arena, out);
  writer.BesideZero(object, *type.structure, {without, never});
  if (!writer.fits()) return std::nullopt;
  return out + '}';
}

}  // namespace keelson::patch
