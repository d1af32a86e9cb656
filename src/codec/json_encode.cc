#include <algorithm>
#include <bit>
#include <vector>

#include "codec/json.h"
#include "codec/slots.h"
#include "codec/writer.h"

namespace keelson::codec {
namespace {

using object::Member;
using schema::Field;
using schema::Kind;
using schema::Struct;
using schema::Type;

class Encoder {
 public:
  explicit Encoder(std::string& out) : writer_(out) {}

  void Untyped(const Value& value) {
    switch (value.kind()) {
      case Value::Kind::kNull:
        writer_.Append("null");
        break;
      case Value::Kind::kBool:
        Bool(value.as_bool());
        break;
      case Value::Kind::kInt:
        writer_.AppendInt(value.as_int());
        break;
      case Value::Kind::kDouble:
        writer_.AppendDouble(value.as_double());
        break;
      case Value::Kind::kString:
        writer_.AppendJSONString(value.as_string());
        break;
      case Value::Kind::kRaw:
        writer_.AppendCompact(value.as_raw());
        break;
      case Value::Kind::kList: {
        char before = '[';
        for (const Value& item : value.items()) {
          writer_.Put(before);
          Untyped(item);
          before = ',';
        }
        if (before == '[') writer_.Put('[');
        writer_.Put(']');
        break;
      }
      case Value::Kind::kMap:
        Map(value, [this](const Value& member) { Untyped(member); });
    }
  }

  void StructOf(const Struct& type, const Value& value) {
    const std::size_t base = slots_.Take(type.json_fields.size());
    std::uint64_t present[2] = {0, 0};
    for (const Member& member : value.members()) {
      const std::size_t found = Slots::Position(type, member);
      if (found == Struct::kNoPosition) [[unlikely]]
        continue;
      slots_.at(base + found) = &member.value;
      present[found / 64] |= std::uint64_t{1} << (found % 64);
    }
    char before = '{';
    for (std::size_t word = 0; word < 2; ++word) {
      for (std::uint64_t rest = present[word] | type.written_always[word]; rest != 0; rest &= rest - 1) {
        const std::size_t i = word * 64 + static_cast<std::size_t>(std::countr_zero(rest));
        const bool there = (present[word] >> (i % 64) & 1) != 0;
        const Field& field = *type.json_fields[i];
        const Value member = there ? *slots_.at(base + i) : Value();
        if (there && LeftOut(field, member)) continue;
        writer_.AppendKey(before, field);
        before = ',';
        FieldValue(field, member);
      }
    }
    writer_.Reserve(2);
    if (before == '{') writer_.PutUnchecked('{');
    writer_.PutUnchecked('}');
    slots_.Release(base);
  }

 private:
  // Go's omitempty and omitzero for what is there.
  static bool LeftOut(const Field& field, const Value& value) {
    if (value.is_null()) {
      return !field.always && (field.pointer || field.omit_zero || field.type->kind <= Kind::kBytes ||
                               field.type->kind == Kind::kList || field.type->kind == Kind::kMap);
    }
    if (field.pointer || field.always) return false;
    switch (field.type->kind) {
      case Kind::kString:
      case Kind::kBytes:
        return value.as_string().empty();
      case Kind::kBool:
        return !value.as_bool();
      case Kind::kInt32:
      case Kind::kInt64:
        return value.as_int() == 0;
      case Kind::kDouble:
        return value.as_double() == 0;
      case Kind::kList:
      case Kind::kMap:
        return value.empty();
      default:
        return field.omit_zero && value.is_map() && value.empty();
    }
  }

  void FieldValue(const Field& field, const Value& value) {
    if (value.is_null() && field.pointer) return writer_.Append("null");
    Typed(*field.type, value);
  }

  void Typed(const Type& type, const Value& value) {
    switch (type.kind) {
      case Kind::kString:
        writer_.AppendJSONString(value.as_string());
        break;
      case Kind::kBool:
        Bool(value.as_bool());
        break;
      case Kind::kInt32:
      case Kind::kInt64:
        writer_.AppendInt(value.as_int());
        break;
      case Kind::kDouble:
        writer_.AppendDouble(value.as_double());
        break;
      case Kind::kBytes:
      case Kind::kTime:
      case Kind::kMicroTime:
        value.is_string() ? writer_.AppendJSONString(value.as_string()) : writer_.Append("null");
        break;
      case Kind::kDuration:
        writer_.AppendJSONString(value.is_string() ? value.as_string() : "0s");
        break;
      case Kind::kQuantity:
        Quantity(value);
        break;
      case Kind::kIntOrString:
        value.is_string() ? writer_.AppendJSONString(value.as_string()) : writer_.AppendInt(value.as_int());
        break;
      case Kind::kRaw:
      case Kind::kFieldsV1:
      case Kind::kJSON:
        Untyped(value);
        break;
      case Kind::kStruct:
        StructOf(*type.structure, value);
        break;
      case Kind::kList:
        ListOf(type, value);
        break;
      case Kind::kMap:
        if (!value.is_map()) {
          writer_.Append("null");
        } else {
          Map(value, [this, &type](const Value& member) { Typed(*type.element, member); });
        }
        break;
      case Kind::kEither:
        Either(type, value);
        break;
    }
  }

  void Quantity(const Value& value) {
    if (value.is_int()) {  // set by code that thought of it as a number
      writer_.Put('"');
      writer_.AppendInt(value.as_int());
      writer_.Put('"');
    } else {
      writer_.AppendJSONString(value.is_string() ? value.as_string() : "0");
    }
  }

  void Either(const Type& type, const Value& value) {
    for (const Field* alternative : type.structure->json_fields) {
      const Kind kind = alternative->type->kind;
      if ((value.is_map() && kind == Kind::kStruct) || (value.is_list() && kind == Kind::kList) ||
          (value.is_bool() && kind == Kind::kBool)) {
        if (value.is_list() && value.empty()) break;
        return Typed(*alternative->type, value);
      }
    }
    writer_.Append("null");
  }

  void ListOf(const Type& type, const Value& value) {
    if (!value.is_list()) return writer_.Append("null");
    char before = '[';
    for (const Value& item : value.items()) {
      writer_.Put(before);
      Typed(*type.element, item);
      before = ',';
    }
    if (before == '[') writer_.Put('[');
    writer_.Put(']');
  }

  // Sorted by key, as Go writes maps.
  template <class F>
  void Map(const Value& value, F write) {
    const auto members = value.members();
    const std::size_t base = order_.size();
    bool sorted = true;
    for (std::size_t i = 1; i < members.size() && sorted; ++i) sorted = members[i - 1].key < members[i].key;
    if (!sorted) {
      for (const Member& member : members) order_.push_back(&member);
      std::sort(order_.begin() + static_cast<std::ptrdiff_t>(base), order_.end(),
                [](auto* a, auto* b) { return a->key < b->key; });
    }
    char before = '{';
    for (std::size_t i = 0; i < members.size(); ++i) {
      const Member& member = sorted ? members[i] : *order_[base + i];
      writer_.Put(before);
      writer_.AppendJSONString(member.key);
      writer_.Put(':');
      write(member.value);
      before = ',';
    }
    if (before == '{') writer_.Put('{');
    writer_.Put('}');
    order_.resize(base);
  }

  void Bool(bool value) { value ? writer_.Append("true") : writer_.Append("false"); }

  Writer writer_;
  Slots slots_;
  std::vector<const Member*> order_;
};

}  // namespace

void EncodeJSON(const Value& value, const schema::Struct& type, std::string& out) {
  Encoder(out).StructOf(type, value);
}

void EncodeJSON(const Value& value, std::string& out) { Encoder(out).Untyped(value); }

void IndentJSON(std::string_view compact, std::string& out) {
  Writer writer(out);
  std::size_t depth = 0;
  const auto newline = [&] {
    writer.Reserve(1 + depth * 2);
    writer.PutUnchecked('\n');
    std::memset(writer.at(), ' ', depth * 2);
    writer.Advance(depth * 2);
  };
  bool fresh = false;  // just after an opening bracket
  for (std::size_t i = 0; i < compact.size(); ++i) {
    const char c = compact[i];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') continue;
    if (fresh && c != '}' && c != ']') {
      ++depth;
      newline();
    }
    switch (c) {
      case '"': {
        std::size_t end = i + 1;
        while (end < compact.size() && compact[end] != '"') end += compact[end] == '\\' ? 2 : 1;
        writer.Append(compact.substr(i, end + 1 - i));
        i = end;
        break;
      }
      case '{':
      case '[':
        writer.Put(c);
        fresh = true;
        continue;
      case ',':
        writer.Put(c);
        newline();
        break;
      case ':':
        writer.Append(": ");
        break;
      case '}':
      case ']':
        if (!fresh) {
          --depth;
          newline();
        }
        writer.Put(c);
        break;
      default:
        writer.Put(c);
    }
    fresh = false;
  }
}

}  // namespace keelson::codec
