#include "patch/created_fields.h"

#include <algorithm>
#include <charconv>
#include <cstring>
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

// Nothing is below a value of such a type.
bool IsLeaf(Kind kind) {
  switch (kind) {
    case Kind::kStruct:
    case Kind::kMap:
    case Kind::kList:
    case Kind::kJSON:
    case Kind::kEither:
    case Kind::kFieldsV1:
      return false;
    default:
      return true;
  }
}

// Text that stands in JSON, and in a string of JSON, as it is.
bool IsPlain(std::string_view text) {
  unsigned special = 0;
  for (const char c : text) {
    special |=
        static_cast<unsigned>(c < 0x20 || c == 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&');
  }
  return special == 0;
}

// The text, with room behind it: a member name is many short pieces.
class Text {
 public:
  explicit Text(std::size_t room) : text_(room, '\0') {}

  // Room for so many bytes, to be written from there on and told to Advance().
  char* Room(std::size_t bytes) {
    if (text_.size() - size_ < bytes) text_.resize(std::max(2 * text_.size(), size_ + bytes));
    return text_.data() + size_;
  }
  void Advance(const char* end) { size_ = static_cast<std::size_t>(end - text_.data()); }
  void Put(std::string_view piece) { Advance(Copy(Room(piece.size()), piece)); }
  static char* Copy(char* at, std::string_view piece) {
    std::memcpy(at, piece.data(), piece.size());
    return at + piece.size();
  }
  char back() const { return text_[size_ - 1]; }
  std::size_t size() const { return size_; }
  void Truncate(std::size_t size) { size_ = size; }
  std::string_view view() const { return std::string_view(text_).substr(0, size_); }

 private:
  std::string text_;
  std::size_t size_ = 0;
};

class Writer {
 public:
  explicit Writer(Arena& arena) : arena_(arena), out_(kTextUsual) { out_.Put("{"); }

  bool fits() const { return fits_; }
  std::string_view Finish() {
    out_.Put("}");
    return out_.view();
  }

  // The members of a struct compared with its zero value. `value` is a map or null.
  void BesideZero(const Value& value, const schema::Struct& type, const Exclusion& exclusion) {
    EachField(value, type, [&](std::size_t position, const Field& field, const Value& member) {
      const Node node{PathElement::Field(field.name), exclusion, true};
      if (node.gone) return;
      if (!WrittenAlways(type, position)) {
        if (IsLeaf(field.type->kind)) return Leaf(node);
        Write(node, true, [&] { Below(member, MemberType(type, field), node.below); });
      } else {
        FieldBesideZero(node, member, field, MemberType(type, field));
      }
    });
  }

  // Everything below a new value of a custom resource. The topology is that of the schema, or the value's own.
  void BelowCustom(const Value& value, const TypeRef& type, const Exclusion& exclusion) {
    if (value.empty()) return;  // also a scalar
    const Atom atom = Deduce(Resolve(type), &value);
    if (value.is_map() && atom.map && !atom.map_atomic) CustomMap(value, atom, exclusion);
    if (value.is_list() && !atom.map && !atom.scalar && !atom.list_atomic) CustomList(value, atom, exclusion);
  }

 private:
  // An element of FieldsV1 and what is excluded there.
  struct Node {
    Node(PathElement at, const Exclusion& exclusion, bool plain_in = false) : element(at), plain(plain_in) {
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
    bool plain;  // a field of a schema: its name needs no escapes
  };

  struct Item {
    PathElement element;
    const Value* value;
    std::size_t index;
  };
  static constexpr std::size_t kTextUsual = 8192;
  static constexpr std::size_t kNumberBytesMax = 24;

  // The element as a member name and ":{".
  void Open(const Node& node) {
    const bool first = out_.back() == '{';
    const PathElement& element = node.element;
    if (element.kind == PathElement::Kind::kField && (node.plain || IsPlain(element.value.as_string()))) {
      const std::string_view name = element.value.as_string();
      char* at = out_.Room(name.size() + 8);
      if (!first) *at++ = ',';
      at = Text::Copy(Text::Copy(Text::Copy(at, "\"f:"), name), "\":{");
      return out_.Advance(at);
    }
    if (!first) out_.Put(",");
    if (!PutPlainKey(element)) {
      escaped_.clear();
      AppendElement(escaped_, element, scratch_);
      out_.Put(escaped_);
    }
    out_.Put(":{");
  }

  // "k:{\"name\":\"a\"}" where nothing in it needs an escape of its own; false: nothing was written.
  bool PutPlainKey(const PathElement& element) {
    if (element.kind != PathElement::Kind::kKey) return false;
    std::size_t size = 8;
    for (const Member& member : element.value.members()) {
      const Value& value = member.value;
      if (!value.is_int() && !(value.is_string() && IsPlain(value.as_string()))) return false;
      size += member.key.size() + 10 + (value.is_int() ? kNumberBytesMax : value.as_string().size());
    }
    char* at = Text::Copy(out_.Room(size), "\"k:{");
    bool first = true;
    for (const Member& member : element.value.members()) {
      if (!first) *at++ = ',';
      first = false;
      at = Text::Copy(Text::Copy(Text::Copy(at, "\\\""), member.key), "\\\":");
      if (member.value.is_int()) {
        at = std::to_chars(at, at + kNumberBytesMax, member.value.as_int()).ptr;
      } else {
        at = Text::Copy(Text::Copy(Text::Copy(at, "\\\""), member.value.as_string()), "\\\"");
      }
    }
    out_.Advance(Text::Copy(at, "}\""));
    return true;
  }

  // A member with nothing below it.
  void Leaf(const Node& node) {
    if (node.never_member) return;
    Open(node);
    out_.Put("}");
  }

  // Writes the element and what `below` writes; nothing if that is empty and the path is not a member.
  template <class Below>
  void Write(const Node& node, bool member, Below below) {
    member = member && !node.never_member;
    const std::size_t begin = out_.size();
    Open(node);
    const std::size_t open = out_.size();
    if (member) out_.Put("\".\":{}");
    const std::size_t children = out_.size();
    below();
    if (out_.size() == children) out_.Truncate(member ? open : begin);
    if (out_.size() > begin) out_.Put("}");
  }

  // As the canonical form has them: fields in the order of their names, absent ones where Go writes them anyway.
  template <class Visit>
  void EachField(const Value& value, const schema::Struct& type, Visit visit) {
    if (!value.is_map() && !value.is_null()) return Misfit();
    const std::size_t base = slots_.size();
    slots_.resize(base + type.json_fields.size(), nullptr);
    for (const Member& member : value.members()) {
      const std::uint16_t position = PositionOf(type, member);
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
        const schema::Struct& structure = *type.type->structure;
        const bool atomic = type.map_atomic || structure.map_topology == schema::MapTopology::kAtomic;
        if (type.map_granular || !atomic) NewStruct(value, structure, exclusion);
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
      const Node node{PathElement::Field(field.name), exclusion, true};
      if (node.gone) return;
      if (IsLeaf(field.type->kind)) return Leaf(node);
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
    const TypeRef element = RootType(type.type->element);
    const bool leaf = IsLeaf(element.type->kind);
    for (const Member* member : members) {
      const Node node{PathElement::Field(member->key), exclusion};
      if (node.gone) continue;
      if (leaf) {
        Leaf(node);
      } else {
        Write(node, true, [&] { Below(member->value, element, node.below); });
      }
    }
  }

  void NewList(const Value& value, const TypeRef& type, const Exclusion& exclusion) {
    if (!value.is_list()) return value.is_null() ? void() : Misfit();
    const Atom atom = Resolve(type);
    const std::size_t base = items_.size();
    bool ascending = true;  // and none twice
    for (const Value& item : value.items()) {
      const auto element = ElementOf(item, atom);
      if (!fits_) break;
      if (!element) continue;
      ascending = ascending && (items_.size() == base || Compare(items_.back().element, *element) < 0);
      items_.push_back({*element, &item, items_.size()});
    }
    if (fits_ && !ascending) {
      std::ranges::sort(std::span(items_).subspan(base), [](const Item& a, const Item& b) {
        const int order = Compare(a.element, b.element);
        return order != 0 ? order < 0 : a.index < b.index;
      });
    }
    const std::size_t count = fits_ ? items_.size() : base;
    for (std::size_t i = base; i < count;) {
      const Item item = items_[i];  // a copy: lists further down move them
      std::size_t end = i + 1;
      while (!ascending && end < count && items_[end].element == item.element) ++end;
      const Node node{item.element, exclusion};
      const bool single = end == i + 1;  // Several of one name are one value.
      if (!node.gone) {
        Write(node, true, [&] {
          if (single) Below(*item.value, atom.list_element, node.below);
        });
      }
      i = end;
    }
    items_.resize(base);
  }

  void CustomMap(const Value& value, const Atom& atom, const Exclusion& exclusion) {
    const auto by_key = [](const Member& a, const Member& b) { return a.key < b.key; };
    const bool sorted = std::ranges::is_sorted(value.members(), by_key);  // as they are stored
    std::vector<Member> copy;
    if (!sorted) {
      copy.assign(value.members().begin(), value.members().end());
      std::ranges::sort(copy, by_key);
    }
    for (const Member& member : sorted ? std::span<const Member>(value.members()) : std::span<const Member>(copy)) {
      const Node node{PathElement::Field(member.key), exclusion};
      if (node.gone) continue;
      if (member.value.empty()) {
        Leaf(node);
      } else {
        Write(node, true, [&] { BelowCustom(member.value, MemberType(atom, member.key), node.below); });
      }
    }
  }

  void CustomList(const Value& value, const Atom& atom, const Exclusion& exclusion) {
    std::vector<Item> items;
    items.reserve(value.size());
    for (const Value& item : value.items()) {
      if (const auto element = ItemElement(arena_, atom, item)) items.push_back({*element, &item, items.size()});
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
          if (single) BelowCustom(*items[i].value, atom.list_element, node.below);
        });
      }
      i = end;
    }
  }

  // How an item is named; nothing for one that cannot be.
  std::optional<PathElement> ElementOf(const Value& item, const Atom& atom) {
    if (atom.list_keys.empty()) {
      if (item.is_null()) Misfit();
      return ItemElement(arena_, atom, item);
    }
    const Value keys = KeysOf(item, atom);
    if (keys.is_null()) {
      Misfit();
      return std::nullopt;
    }
    // All keys are there: the usual case, and no defaults are needed.
    if (keys.size() == atom.list_keys.size()) {
      if (keys.size() > 1) Value(keys).SortMembers();
      return PathElement{PathElement::Kind::kKey, keys};
    }
    return ItemElement(arena_, atom, keys);
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
  Text out_;
  std::string escaped_;
  std::string scratch_;
  std::vector<const Value*> slots_;  // one stack of positions for all levels
  std::vector<Item> items_;          // one stack of list items for all levels
  bool fits_ = true;
};

}  // namespace

std::optional<std::string_view> CreatedFields(Arena& arena, const Value& object, const Type& type,
                                              const FieldSet& without, const FieldSet& never) {
  if (type.kind != Kind::kStruct) return std::nullopt;
  Writer writer(arena);
  writer.BesideZero(object, *type.structure, {without, never});
  if (!writer.fits()) return std::nullopt;
  return arena.Copy(writer.Finish());
}

std::string_view CreatedCustomFields(Arena& arena, const Value& object, const TypeRef& type, const FieldSet& without,
                                     const FieldSet& never) {
  Writer writer(arena);
  writer.BelowCustom(object, type, {without, never});
  return arena.Copy(writer.Finish());
}

}  // namespace keelson::patch
