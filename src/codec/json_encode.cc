#include <algorithm>
#include <bit>
#include <vector>

#include "codec/json.h"
#include "codec/slots.h"
#include "codec/writer.h"
#include "schema/left_out.h"

namespace keelson::codec {
namespace {

using object::Member;
using schema::Form;
using schema::JSONField;
using schema::Kind;
using schema::Struct;
using schema::Type;

// Functions write at `at` and return the end of their output.
class Encoder {
 public:
  explicit Encoder(std::string& out) : writer_(out) {}

  char* begin() { return writer_.at(); }
  void End(char* at) { writer_.Seek(at); }

  char* Untyped(const Value& value, char* at) {
    at = writer_.Need(at);
    switch (value.kind()) {
      case Value::Kind::kNull:
        return Null(at);
      case Value::Kind::kBool:
        return Bool(value.as_bool(), at);
      case Value::Kind::kInt:
        return Writer::PutInt(at, value.as_int());
      case Value::Kind::kDouble:
        return Double(value.as_double(), at);
      case Value::Kind::kString:
        return writer_.PutString(at, value.as_string());
      case Value::Kind::kRaw:
        writer_.Seek(at);
        writer_.AppendCompact(value.as_raw());
        return writer_.at();
      case Value::Kind::kList: {
        char before = '[';
        for (const Value& item : value.items()) {
          at = writer_.Need(at);
          *at++ = before;
          at = Untyped(item, at);
          before = ',';
        }
        return Close('[', before, ']', at);
      }
      case Value::Kind::kMap:
        break;
    }
    return Map(value, at, [this](const Value& member, char* to) { return Untyped(member, to); });
  }

  char* StructOf(const Struct& type, const Value& value, char* at) {
    const auto members = value.members();
    std::uint64_t present = 0;
    if (!InOrder(type, members, present)) [[unlikely]]
      return Sorted(type, value, at);
    const JSONField* const json = type.json.data();
    char before = '{';
    if ((type.written_always[0] & ~present) == 0) {
      for (const Member& member : members) {
        const JSONField& field = json[member.value.place() & 0xff];
        if (LeftOut(field, member.value)) [[unlikely]]
          continue;
        at = writer_.PutKey(writer_.Need(at), before, field.quoted, field.name_size);
        before = ',';
        at = FieldValue(field, member.value, at);
      }
    } else {
      const Member* next = members.data();
      for (std::uint64_t rest = present | type.written_always[0]; rest != 0; rest &= rest - 1) {
        const auto i = static_cast<std::size_t>(std::countr_zero(rest));
        const bool there = (present >> i & 1) != 0;
        const Value member = there ? (next++)->value : Value();
        if (there && LeftOut(json[i], member)) [[unlikely]]
          continue;
        at = writer_.PutKey(writer_.Need(at), before, json[i].quoted, json[i].name_size);
        before = ',';
        at = OneField(json[i], member, at);
      }
    }
    return Close('{', before, '}', at);
  }

 private:
  static char* Null(char* at) {
    std::memcpy(at, "null", 4);
    return at + 4;
  }
  static char* Bool(bool value, char* at) {
    std::memcpy(at, value ? "true " : "false", 5);
    return at + (value ? 4 : 5);
  }
  char* Double(double value, char* at) {
    writer_.Seek(at);
    writer_.AppendDouble(value);
    return writer_.at();
  }
  // `before` is still `open` where nothing came.
  char* Close(char open, char before, char close, char* at) {
    at = writer_.Need(at);
    if (before == open) *at++ = open;
    *at++ = close;
    return at;
  }

  // Whether the members are as decoders leave those of an object that came in the table's order: then nothing needs to
  // be looked up or sorted. Sets `present`.
  static bool InOrder(const Struct& type, std::span<const Member> members, std::uint64_t& present) {
    const JSONField* const json = type.json.data();
    const std::size_t size = type.json.size();
    if (size > 64) return false;
    std::size_t next = 0;
    for (const Member& member : members) {
      const std::size_t at = member.value.place() & 0xff;
      if (at < next || at >= size || json[at].quoted + 1 != member.key.data()) return false;
      present |= std::uint64_t{1} << at;
      next = at + 1;
    }
    return true;
  }

  // The same for members in any order.
  [[gnu::noinline]] char* Sorted(const Struct& type, const Value& value, char* at) {
    const std::size_t base = slots_.Take(type.json.size());
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
        const JSONField& field = type.json[i];
        const Value member = there ? *slots_.at(base + i) : Value();
        if (there && LeftOut(field, member)) continue;
        at = writer_.PutKey(writer_.Need(at), before, field.quoted, field.name_size);
        before = ',';
        at = OneField(field, member, at);
      }
    }
    slots_.Release(base);
    return Close('{', before, '}', at);
  }

  static bool LeftOut(const JSONField& field, const Value& value) { return schema::LeftOut(field, field.kind, value); }

  // REQUIRES: room was reserved, and at most a key was written since.
  [[gnu::always_inline]] char* FieldValue(const JSONField& field, const Value& value, char* at) {
    if (value.is_null() && field.pointer) [[unlikely]]
      return Null(at);
    switch (field.form) {
      case Form::kString:
        return writer_.PutString(at, value.as_string());
      case Form::kStruct:
        return StructOf(*field.structure, value, at);
      case Form::kStructs: {
        if (!value.is_list()) return Null(at);
        char before = '[';
        for (const Value& item : value.items()) {
          *at++ = before;
          at = StructOf(*field.structure, item, at);
          before = ',';
        }
        return Close('[', before, ']', at);
      }
      case Form::kBool:
        return Bool(value.as_bool(), at);
      case Form::kInt32:
      case Form::kInt64:
        return Writer::PutInt(at, value.as_int());
      case Form::kTime:
        return value.is_string() ? writer_.PutString(at, value.as_string()) : Null(at);
      case Form::kStrings:
      case Form::kTexts:
      case Form::kQuantity:
      case Form::kOther:
        break;
    }
    return Typed(*field.type, value, at);
  }
  [[gnu::noinline]] char* OneField(const JSONField& field, const Value& value, char* at) {
    return FieldValue(field, value, at);
  }

  // REQUIRES: room was reserved, and at most a key was written since.
  char* Typed(const Type& type, const Value& value, char* at) {
    switch (type.kind) {
      case Kind::kString:
        return writer_.PutString(at, value.as_string());
      case Kind::kBool:
        return Bool(value.as_bool(), at);
      case Kind::kInt32:
      case Kind::kInt64:
        return Writer::PutInt(at, value.as_int());
      case Kind::kDouble:
        return Double(value.as_double(), at);
      case Kind::kBytes:
      case Kind::kTime:
      case Kind::kMicroTime:
        return value.is_string() ? writer_.PutString(at, value.as_string()) : Null(at);
      case Kind::kDuration:
        return writer_.PutString(at, value.is_string() ? value.as_string() : "0s");
      case Kind::kQuantity:
        return Quantity(value, at);
      case Kind::kIntOrString:
        return value.is_string() ? writer_.PutString(at, value.as_string()) : Writer::PutInt(at, value.as_int());
      case Kind::kRaw:
      case Kind::kFieldsV1:
      case Kind::kJSON:
        return Untyped(value, at);
      case Kind::kStruct:
        return StructOf(*type.structure, value, at);
      case Kind::kList:
        return ListOf(type, value, at);
      case Kind::kMap:
        if (!value.is_map()) return Null(at);
        return Map(value, at,
                   [this, &type](const Value& member, char* to) { return Typed(*type.element, member, to); });
      case Kind::kEither:
        return Either(type, value, at);
    }
    return at;
  }

  char* Quantity(const Value& value, char* at) {
    if (!value.is_int()) return writer_.PutString(at, value.is_string() ? value.as_string() : "0");
    *at++ = '"';  // set by code that thought of it as a number
    at = Writer::PutInt(at, value.as_int());
    *at++ = '"';
    return at;
  }

  char* Either(const Type& type, const Value& value, char* at) {
    for (const schema::Field* alternative : type.structure->json_fields) {
      const Kind kind = alternative->type->kind;
      if ((value.is_map() && kind == Kind::kStruct) || (value.is_list() && kind == Kind::kList) ||
          (value.is_bool() && kind == Kind::kBool)) {
        if (value.is_list() && value.empty()) break;
        return Typed(*alternative->type, value, at);
      }
    }
    return Null(at);
  }

  char* ListOf(const Type& type, const Value& value, char* at) {
    if (!value.is_list()) return Null(at);
    char before = '[';
    for (const Value& item : value.items()) {
      at = writer_.Need(at);
      *at++ = before;
      at = Typed(*type.element, item, at);
      before = ',';
    }
    return Close('[', before, ']', at);
  }

  // Sorted by key, as Go writes maps.
  template <class F>
  char* Map(const Value& value, char* at, F write) {
    const auto members = value.members();
    const std::size_t base = order_.size();
    const bool sorted = InKeyOrder(members);
    if (!sorted) {
      for (const Member& member : members) order_.push_back(&member);
      std::sort(order_.begin() + static_cast<std::ptrdiff_t>(base), order_.end(),
                [](auto* a, auto* b) { return a->key < b->key; });
    }
    char before = '{';
    for (std::size_t i = 0; i < members.size(); ++i) {
      const Member& member = sorted ? members[i] : *order_[base + i];
      at = writer_.Need(at);
      *at++ = before;
      at = writer_.PutString(at, member.key);
      *at++ = ':';
      at = write(member.value, at);
      before = ',';
    }
    order_.resize(base);
    return Close('{', before, '}', at);
  }

  Writer writer_;
  Slots slots_;
  std::vector<const Member*> order_;
};

}  // namespace

void EncodeJSON(const Value& value, const schema::Struct& type, std::string& out) {
  Encoder encoder(out);
  encoder.End(encoder.StructOf(type, value, encoder.begin()));
}

void EncodeJSON(const Value& value, std::string& out) {
  Encoder encoder(out);
  encoder.End(encoder.Untyped(value, encoder.begin()));
}

void IndentJSON(std::string_view compact, std::string& out, std::size_t depth) {
  Writer writer(out);
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
