#include "patch/typed_value.h"

#include <algorithm>

#include "base/strings.h"
#include "object/go_text.h"
#include "object/json_text.h"
#include "patch/typed_atom.h"
#include "schema/left_out.h"

namespace keelson::patch {
namespace {

using base::Arena;
using schema::Field;
using schema::Kind;
using schema::Type;

bool WrittenAlways(const schema::Struct& type, std::size_t position) {
  return (type.written_always[position / 64] >> (position % 64) & 1) != 0;
}

class Canonicalizer {
 public:
  Canonicalizer(Arena& arena, EmptyInItems empty) : arena_(arena), empty_(empty) {}

  // As Go would write it.
  Value Typed(const Value& value, const Type& type) {
    switch (type.kind) {
      case Kind::kString:
        return value.is_null() ? Value("") : value;
      case Kind::kBool:
        return value.is_null() ? Value(false) : value;
      case Kind::kInt32:
      case Kind::kInt64:
      case Kind::kIntOrString:
        return value.is_null() ? Value(0) : value;
      case Kind::kDouble:
        return value.is_null() ? Value(0.0) : value;
      case Kind::kDuration:
        return value.is_null() ? Value("0s") : value;
      case Kind::kQuantity:
        return value.is_null() ? Value("0") : value;
      case Kind::kStruct:
        return Struct(value, *type.structure);
      case Kind::kList: {
        if (!value.is_list()) return Untyped(value);
        Value list = Value::List(arena_, value.size());
        for (const Value& item : value.items()) list.Append(arena_, Typed(item, *type.element));
        return list;
      }
      case Kind::kMap: {
        if (!value.is_map()) return Untyped(value);
        Value map = Value::Map(arena_, value.size());
        for (const object::Member& member : value.members())
          map.AppendMember(arena_, member.key, Typed(member.value, *type.element));
        map.SortMembers();
        return map;
      }
      default:
        return Untyped(value);
    }
  }

  Value Untyped(const Value& value) {
    if (value.is_raw()) {
      const auto parsed = object::ParseJSON(arena_, value.as_raw());
      return parsed ? Untyped(*parsed) : Value();
    }
    if (value.is_list()) {
      Value list = Value::List(arena_, value.size());
      for (const Value& item : value.items()) list.Append(arena_, Untyped(item));
      return list;
    }
    if (!value.is_map()) return value;
    Value map = Value::Map(arena_, value.size());
    for (const object::Member& member : value.members()) map.AppendMember(arena_, member.key, Untyped(member.value));
    map.SortMembers();
    return map;
  }

 private:
  Value Struct(const Value& value, const schema::Struct& type) {
    if (!value.is_map() && !value.is_null()) return Untyped(value);
    const std::size_t base = slots_.size();
    const std::size_t count = type.json_fields.size();
    slots_.resize(base + count, nullptr);
    for (const object::Member& member : value.members()) {
      const std::uint16_t position = PositionOf(type, member);
      if (position != schema::Struct::kNoPosition) slots_[base + position] = &member.value;
    }
    Value map = Value::Map(arena_, value.size() + 2);
    for (const std::uint16_t position : type.name_index) {
      const Field& field = *type.json_fields[position];
      const Value* present = slots_[base + position];
      if (present == nullptr ? !WrittenAlways(type, position) : IsLeftOut(field, *present)) continue;
      const Value member = present == nullptr ? Value() : *present;
      const bool outer = std::exchange(in_atomic_list_, in_atomic_list_ || IsAtomicList(type, field));
      map.AppendMember(arena_, field.name, member.is_null() && field.pointer ? Value() : Typed(member, *field.type));
      in_atomic_list_ = outer;
    }
    slots_.resize(base);
    return map;
  }

  static bool IsAtomicList(const schema::Struct& type, const Field& field) {
    return field.type->kind == Kind::kList && MemberType(type, field).list == schema::ListTopology::kAtomic;
  }

  bool IsLeftOut(const Field& field, const Value& value) const {
    const Kind kind = field.type->kind;
    const bool may_be_nil = kind == Kind::kList || kind == Kind::kMap || kind == Kind::kBytes;
    const bool kept = empty_ == EmptyInItems::kKept && in_atomic_list_ && may_be_nil && !value.is_null();
    return !kept && schema::LeftOut(field, kind, value);
  }

  Arena& arena_;
  const EmptyInItems empty_;
  std::vector<const Value*> slots_;  // one stack of positions for all levels
  bool in_atomic_list_ = false;
};

// Go's %#v of an untyped value.
std::string GoSyntax(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kNull:
      return "interface {}(nil)";
    case Value::Kind::kString:
      return base::GoQuote(value.as_string());
    case Value::Kind::kList: {
      std::string out;
      for (const Value& item : value.items()) out += (out.empty() ? "" : ", ") + GoSyntax(item);
      return "[]interface {}{" + out + "}";
    }
    case Value::Kind::kMap: {
      std::string out;
      for (const object::Member& member : value.members())
        out += (out.empty() ? "" : ", ") + base::GoQuote(member.key) + ":" + GoSyntax(member.value);
      return "map[string]interface {}{" + out + "}";
    }
    default:
      return GoSprint(value);
  }
}

// Path of the validator: rendered only for an error.
struct Step {
  const Step* parent;
  std::string_view field;
  const PathElement* element = nullptr;
  std::size_t index = 0;

  static std::string Render(const Step* step) {
    if (step == nullptr) return {};
    const std::string before = Render(step->parent);
    if (!step->field.empty()) return before + "." + std::string(step->field);
    return before + (step->element != nullptr ? step->element->ToString() : "[" + std::to_string(step->index) + "]");
  }
};

class Validator {
 public:
  Validator(bool allow_duplicates, Nulls nulls) : allow_duplicates_(allow_duplicates), nulls_(nulls) {}

  void Visit(const Value& value, const TypeRef& type, const Step* at) {
    const Atom atom = Deduce(Resolve(type), &value);
    if (value.is_null()) return Null(atom, at);
    if (atom.map) return Map(value, atom, at);
    if (atom.scalar) return Scalar(value, atom.scalar_kind, at);
    List(value, atom, at);
  }

  std::string Finish() const {
    if (errors_.empty()) return {};
    if (errors_.size() == 1) return errors_[0];
    std::string out = "errors:";
    for (const std::string& error : errors_) out += "\n  " + error;
    if (dropped_ > 0) out += "\n  and " + std::to_string(dropped_) + " more errors";
    return out;
  }

 private:
  // Maximum size of the texts of errors. Each has its path, and a body can have a million errors below a long name.
  static constexpr std::size_t kErrorsBytesMax = std::size_t{1} << 20;

  void Add(const Step* at, std::string_view message) {
    if (errors_bytes_ > kErrorsBytesMax) {
      ++dropped_;
      return;
    }
    const std::string path = Step::Render(at);
    errors_.push_back(path.empty() ? std::string(message) : path + ": " + std::string(message));
    errors_bytes_ += errors_.back().size();
  }

  void Null(const Atom& atom, const Step* at) {
    const bool anything = atom.map && atom.list && atom.scalar;
    if (nulls_ == Nulls::kAllowed || at == nullptr || anything) return;
    if (atom.map) return Add(at, "expected map, got &{NULL_VALUE}");
    if (atom.list) return Add(at, "expected list, got &{NULL_VALUE}");
    if (atom.scalar_kind == ScalarKind::kNumeric) Add(at, "expected numeric (int or float), got structpb.NullValue");
    if (atom.scalar_kind == ScalarKind::kString) Add(at, "expected string, got &value.valueUnstructured{Value:0}");
    if (atom.scalar_kind == ScalarKind::kBoolean) Add(at, "expected boolean, got &{NULL_VALUE}");
  }

  static bool IsOf(const Value& value, ScalarKind kind) {
    switch (kind) {
      case ScalarKind::kNumeric:
        return value.is_number();
      case ScalarKind::kString:
        return value.is_string();
      case ScalarKind::kBoolean:
        return value.is_bool();
      case ScalarKind::kUntyped:
        break;
    }
    return !value.is_list() && !value.is_map();
  }

  void Scalar(const Value& value, ScalarKind kind, const Step* at) {
    if (IsOf(value, kind)) return;
    if (errors_bytes_ > kErrorsBytesMax) return Add(at, "");  // is only counted
    switch (kind) {
      case ScalarKind::kNumeric:
        return Add(at, "expected numeric (int or float), got " + std::string(GoTypeName(value)));
      case ScalarKind::kString:
        return Add(at, "expected string, got &value.valueUnstructured{Value:" + GoSyntax(value) + "}");
      case ScalarKind::kBoolean:
        return Add(at, "expected boolean, got &{" + GoSprint(value) + "}");
      case ScalarKind::kUntyped:
        return Add(at, "expected any scalar, got &{" + GoSprint(value) + "}");
    }
  }

  void Map(const Value& value, const Atom& atom, const Step* at) {
    if (!value.is_map()) return Add(at, "expected map, got &{" + GoSprint(value) + "}");
    for (const object::Member& member : value.members()) {
      const TypeRef type = MemberType(atom, member.key);
      const Step step{at, member.key};
      if (type.mode == TypeRef::Mode::kNone) return Add(&step, "field not declared in schema");
      Visit(member.value, type, &step);
    }
  }

  void List(const Value& value, const Atom& atom, const Step* at) {
    if (!value.is_list()) return Add(at, "expected list, got &{" + GoSprint(value) + "}");
    std::vector<PathElement> seen;
    std::size_t index = 0;
    for (const Value& item : value.items()) {
      Step step{at, {}, nullptr, index};
      PathElement named;
      if (!atom.list_atomic) {
        std::string error;
        const auto element = ItemElement(arena_, atom, item, &error);
        if (!element) return Add(at, "element " + std::to_string(index) + ": " + error);
        named = *element;
        step.element = &named;
        seen.push_back(named);
      }
      ++index;
      Visit(item, atom.list_element, &step);
    }
    if (allow_duplicates_) return;
    std::ranges::sort(seen, [](const PathElement& a, const PathElement& b) { return Compare(a, b) < 0; });
    for (std::size_t i = 1; i < seen.size(); ++i) {
      if (seen[i] == seen[i - 1]) Add(at, "duplicate entries for key " + seen[i].ToString());
    }
  }

  bool allow_duplicates_;
  Nulls nulls_;
  Arena arena_;
  std::vector<std::string> errors_;
  std::size_t errors_bytes_ = 0;
  std::size_t dropped_ = 0;
};

}  // namespace

Value Canonical(Arena& arena, const Value& value, const TypeRef& type, bool typed, EmptyInItems empty) {
  Canonicalizer canonicalizer(arena, empty);
  return typed && type.mode == TypeRef::Mode::kTyped ? canonicalizer.Typed(value, *type.type)
                                                     : canonicalizer.Untyped(value);
}

Value ZeroObject(Arena& arena, const TypeRef& type) {
  if (type.mode != TypeRef::Mode::kTyped) return Value::Map(arena);
  return Canonicalizer(arena, EmptyInItems::kLeftOut).Typed(Value(), *type.type);
}

Differing DifferingParts(Arena& arena, const Value& old, const Value& now) {
  Differing parts{Value::Map(arena), Value::Map(arena)};
  const auto after = now.members();
  std::size_t index = 0;
  for (const object::Member& member : old.members()) {
    const bool same_place = index < after.size() && after[index].key == member.key;
    const Value* other = same_place ? &after[index].value : now.Find(member.key);
    ++index;
    if (other != nullptr && member.value == *other) continue;
    if (other != nullptr && member.value.is_map() && other->is_map()) {
      const Differing inner = DifferingParts(arena, member.value, *other);
      parts.old.AppendMember(arena, member.key, inner.old);
      parts.now.AppendMember(arena, member.key, inner.now);
      continue;
    }
    parts.old.AppendMember(arena, member.key, member.value);
    if (other != nullptr) parts.now.AppendMember(arena, member.key, *other);
  }
  for (const object::Member& member : after) {
    if (!old.Has(member.key)) parts.now.AppendMember(arena, member.key, member.value);
  }
  // A map that had members must not look empty: Go leaves empty ones out.
  const Value* const emptied = parts.old.empty() && !old.empty()   ? &old
                               : parts.now.empty() && !now.empty() ? &now
                                                                   : nullptr;
  if (emptied != nullptr) {
    const object::Member& shared = emptied->members()[0];
    parts.old.AppendMember(arena, shared.key, shared.value);
    parts.now.AppendMember(arena, shared.key, shared.value);
  }
  return parts;
}

std::string Validate(const Value& value, const TypeRef& type, bool allow_duplicates, Nulls nulls) {
  Validator validator(allow_duplicates, nulls);
  validator.Visit(value, type, nullptr);
  return validator.Finish();
}

}  // namespace keelson::patch
