#include <algorithm>
#include <bit>
#include <charconv>
#include <vector>

#include "codec/back_writer.h"
#include "codec/base64.h"
#include "codec/json.h"
#include "codec/protobuf.h"
#include "codec/slots.h"
#include "codec/wire.h"
#include "object/duration.h"
#include "object/time.h"

namespace keelson::codec {
namespace {

using object::Member;
using schema::Form;
using schema::Kind;
using schema::Struct;
using schema::Type;
using schema::WireField;

// The tag of a field below 16.
constexpr WireTag TagOf(std::uint32_t number, WireType type) {
  return {(number << 3 | static_cast<std::uint32_t>(type)) << 24, 1};
}
constexpr WireTag BytesTag(std::uint32_t number) { return TagOf(number, WireType::kBytes); }
constexpr WireTag VarintTag(std::uint32_t number) { return TagOf(number, WireType::kVarint); }
WireTag TagOf(const WireField& field) { return {field.tag, field.tag_size}; }

WireType WireTypeOf(Kind kind) {
  if (kind == Kind::kBool || kind == Kind::kInt32 || kind == Kind::kInt64) return WireType::kVarint;
  return kind == Kind::kDouble ? WireType::kFixed64 : WireType::kBytes;
}

// Functions write in front of `at` and return the begin of their output.
class Encoder {
 public:
  // Fields are written by descending number; the bytes of absent fields in between are precomputed in the table.
  char* Message(const Struct& type, const Value& value, char* at) {
    const auto members = value.members();
    if (!InOrder(type, members)) [[unlikely]]
      return Sorted(type, value, at);
    const WireField* const wire = type.wire.data();
    const char* const zero = type.wire_zero.data();
    std::size_t zeros = type.wire_zero.size();
    for (std::size_t i = members.size(); i-- > 0;) {
      const Value& member = members[i].value;
      const WireField& field = wire[member.place() >> 8];
      at = writer_.Zeros(writer_.Need(at), zero + zeros, zeros - field.zero_end);
      zeros = field.zero_begin;
      at = FieldValue(field, member, at);
    }
    return writer_.Zeros(writer_.Need(at), zero + zeros, zeros);
  }

  BackWriter& writer() { return writer_; }

 private:
  static constexpr std::size_t kNone = 0xff;

  // Whether the members are as decoders leave those of an object that came in the table's order: then nothing needs to
  // be looked up or sorted. Looked at beforehand, so that nothing is ever written twice.
  static bool InOrder(const Struct& type, std::span<const Member> members) {
    const WireField* const wire = type.wire.data();
    const std::size_t size = type.wire.size();
    std::size_t next = 0;
    for (const Member& member : members) {
      const std::size_t at = member.value.place() >> 8;
      if (at - next >= size - next || wire[at].name != member.key.data()) return false;
      next = at + 1;
    }
    return type.wire_inlined == 0;
  }

  // The same for members in any order. Where `type` is inlined, its fields are those of `outer` from `offset` on.
  [[gnu::noinline]] char* Sorted(const Struct& type, const Value& value, char* at, const Struct* outer = nullptr,
                                 std::size_t offset = 0) {
    const std::size_t base = slots_.Take(type.wire.size());
    std::uint64_t rest = type.wire_inlined;
    for (const Member& member : value.members()) {
      const std::size_t found =
          outer == nullptr ? WirePosition(type, member) : InlinedPosition(type, member, *outer, offset);
      if (found == kNone) continue;
      slots_.at(base + found) = &member.value;
      rest |= std::uint64_t{1} << found;
    }
    const char* const zero = type.wire_zero.data();
    std::size_t zeros = type.wire_zero.size();
    while (rest != 0) {
      const auto bit = static_cast<std::size_t>(63 - std::countl_zero(rest));
      rest &= ~(std::uint64_t{1} << bit);
      const WireField& field = type.wire[bit];
      at = writer_.Zeros(writer_.Need(at), zero + zeros, zeros - field.zero_end);
      zeros = field.zero_begin;
      if (field.inlined) {
        const std::size_t before = writer_.Size(at);
        const Struct& top = outer == nullptr ? type : *outer;
        at = writer_.Close(Sorted(*field.structure, value, at, &top, offset + field.place), TagOf(field), before);
      } else {
        at = OneField(field, *slots_.at(base + bit), at);
      }
    }
    slots_.Release(base);
    return writer_.Zeros(writer_.Need(at), zero + zeros, zeros);
  }

  // Index of a member in wire. Decoders note it; for members added by other code it is looked up.
  static std::size_t WirePosition(const Struct& type, const Member& member) {
    const std::size_t noted = member.value.place() >> 8, place = member.value.place() & 0xff;
    if (noted < type.wire.size() && type.wire[noted].name == member.key.data()) [[likely]]
      return noted;
    if (place < type.json.size() && type.json[place].quoted + 1 == member.key.data()) return type.wire_of_json[place];
    const std::uint16_t found = type.FindPosition(member.key);
    return found < type.wire_of_json.size() ? type.wire_of_json[found] : kNone;
  }

  static std::size_t InlinedPosition(const Struct& type, const Member& member, const Struct& outer,
                                     std::size_t offset) {
    const std::size_t place = member.value.place() & 0xff;
    if (place >= outer.json.size() || outer.json[place].quoted + 1 != member.key.data())
      return WirePosition(type, member);
    const std::size_t own = place - offset;
    return own < type.wire_of_json.size() ? type.wire_of_json[own] : kNone;
  }

  // REQUIRES: room was reserved.
  [[gnu::always_inline]] char* FieldValue(const WireField& field, const Value& value, char* at) {
    const WireTag tag = TagOf(field);
    // Pointers are left out when nil; every other value is written, zero or not.
    switch (field.form) {
      case Form::kString:
        if (value.is_null() && field.pointer) return at;
        return writer_.String(at, tag, value.as_string());
      case Form::kStruct: {
        if (value.is_null() && field.pointer) return at;
        const std::size_t before = writer_.Size(at);
        return writer_.Close(Message(*field.structure, value, at), tag, before);
      }
      case Form::kStructs: {
        const auto items = value.items();
        for (std::size_t i = items.size(); i-- > 0;) {
          const std::size_t before = writer_.Size(at);
          at = writer_.Close(Message(*field.structure, items[i], at), tag, before);
        }
        return at;
      }
      case Form::kBool:
        if (value.is_null() && field.pointer) return at;
        return writer_.Integer(at, tag, value.as_bool() ? 1 : 0);
      case Form::kInt32:
        if (value.is_null() && field.pointer) return at;
        return writer_.Integer(at, tag, static_cast<std::int32_t>(value.as_int()));
      case Form::kInt64:
        if (value.is_null() && field.pointer) return at;
        return writer_.Integer(at, tag, value.as_int());
      case Form::kStrings: {
        const auto items = value.items();
        for (std::size_t i = items.size(); i-- > 0;) at = writer_.String(writer_.Need(at), tag, items[i].as_string());
        return at;
      }
      case Form::kTexts:
        return Texts(tag, value, at);
      case Form::kTime:
      case Form::kQuantity:
      case Form::kOther:
        break;
    }
    return Other(field, value, at);
  }

  [[gnu::noinline]] char* OneField(const WireField& field, const Value& value, char* at) {
    return FieldValue(field, value, at);
  }

  [[gnu::noinline]] char* Other(const WireField& field, const Value& value, char* at) {
    const Type& type = *field.type;
    if (field.kind == Kind::kList) {
      if (type.wrapped) return value.is_list() ? Single(type, TagOf(field), value, at) : at;
      const auto items = value.items();
      for (std::size_t i = items.size(); i-- > 0;) at = Single(*type.element, TagOf(field), items[i], at);
      return at;
    }
    if (field.kind == Kind::kMap) return Map(*type.element, TagOf(field), value, at);
    if (value.is_null() && (field.pointer || field.kind == Kind::kBytes)) return at;
    return Single(type, TagOf(field), value, at);
  }

  // By descending key; `write` writes a value.
  template <class F>
  char* Entries(WireTag tag, const Value& value, char* at, F write) {
    const auto members = value.members();
    const std::size_t base = order_.size();
    const bool sorted = InKeyOrder(members);
    if (!sorted) {
      for (const Member& member : members) order_.push_back(&member);
      std::sort(order_.begin() + static_cast<std::ptrdiff_t>(base), order_.end(),
                [](auto* a, auto* b) { return a->key < b->key; });
    }
    for (std::size_t i = members.size(); i-- > 0;) {
      const Member& member = sorted ? members[i] : *order_[base + i];
      at = writer_.Need(at);
      const std::size_t before = writer_.Size(at);
      at = write(member.value, at);
      at = writer_.String(at, BytesTag(1), member.key);
      at = writer_.Close(at, tag, before);
    }
    order_.resize(base);
    return at;
  }

  [[gnu::noinline]] char* Texts(WireTag tag, const Value& value, char* at) {
    return Entries(tag, value, at,
                   [this](const Value& text, char* end) { return writer_.String(end, BytesTag(2), text.as_string()); });
  }

  char* Map(const Type& element, WireTag tag, const Value& value, char* at) {
    const WireTag value_tag = TagOf(2, WireTypeOf(element.kind));
    return Entries(tag, value, at, [this, &element, value_tag](const Value& item, char* end) {
      return Single(element, value_tag, item, end);
    });
  }

  char* Single(const Type& type, WireTag tag, const Value& value, char* at) {
    at = writer_.Need(at);
    switch (type.kind) {
      case Kind::kString:
        return writer_.String(at, tag, value.as_string());
      case Kind::kBool:
        return writer_.Integer(at, tag, value.as_bool() ? 1 : 0);
      case Kind::kInt32:
        return writer_.Integer(at, tag, static_cast<std::int32_t>(value.as_int()));
      case Kind::kInt64:
        return writer_.Integer(at, tag, value.as_int());
      case Kind::kDouble:
        return writer_.Double(at, tag, value.as_double());
      default:
        break;
    }
    const std::size_t before = writer_.Size(at);
    at = type.kind == Kind::kStruct ? Message(*type.structure, value, at) : Special(type, value, at);
    return writer_.Close(at, tag, before);
  }

  // The content of what is neither a number nor a text nor a struct.
  char* Special(const Type& type, const Value& value, char* at) {
    switch (type.kind) {
      case Kind::kBytes:
        return Bytes(value.as_string(), at);
      case Kind::kTime:
      case Kind::kMicroTime:
        return Time(type.kind == Kind::kMicroTime, value, at);
      case Kind::kDuration: {
        const auto parsed = object::ParseDuration(value.is_string() ? value.as_string() : "0");
        return writer_.Integer(at, VarintTag(1), parsed.ok() ? *parsed : 0);
      }
      case Kind::kQuantity:
        return Quantity(value, at);
      case Kind::kIntOrString:
        at = writer_.String(at, BytesTag(3), value.as_string());
        at = writer_.Integer(at, VarintTag(2), static_cast<std::int32_t>(value.as_int()));
        return writer_.Integer(at, VarintTag(1), value.is_string() ? 1 : 0);
      case Kind::kRaw:
      case Kind::kFieldsV1:
      case Kind::kJSON:
        return Raw(value, at);
      case Kind::kList: {  // wrapped
        const auto items = value.items();
        const WireTag item_tag = TagOf(1, WireTypeOf(type.element->kind));
        for (std::size_t i = items.size(); i-- > 0;) at = Single(*type.element, item_tag, items[i], at);
        return at;
      }
      case Kind::kEither:
        return Either(*type.structure, value, at);
      default:
        return at;
    }
  }

  char* Quantity(const Value& value, char* at) {
    if (!value.is_int()) return writer_.String(at, BytesTag(1), value.is_string() ? value.as_string() : "0");
    char text[24];  // set by code that thought of it as a number
    const char* end = std::to_chars(text, text + sizeof(text), value.as_int()).ptr;
    return writer_.String(at, BytesTag(1), {text, static_cast<std::size_t>(end - text)});
  }

  char* Bytes(std::string_view text, char* at) {
    // The bytes are fewer than the text: they are read to the front of the room and moved to its end.
    at = writer_.Need(at, text.size());
    char* room = at - text.size();
    const std::size_t got = ReadBase64(text, room);
    at -= got;
    std::memmove(at, room, got);
    return at;
  }

  char* Time(bool micro, const Value& value, char* at) {
    if (!value.is_string()) return at;
    auto parsed = object::ParseTime(value.as_string(), micro);
    if (!parsed.ok() && micro) parsed = object::ParseTime(value.as_string());
    if (!parsed.ok() || parsed->IsZero()) return at;
    at = writer_.Integer(at, VarintTag(2), micro ? parsed->nanos / 1000 * 1000 : 0);
    return writer_.Integer(at, VarintTag(1), parsed->seconds);
  }

  char* Raw(const Value& value, char* at) {
    if (value.is_null()) return at;
    if (value.is_raw()) return writer_.String(at, BytesTag(1), value.as_raw());
    std::string text;  // put in as a tree by code of ours
    EncodeJSON(value, text);
    return writer_.String(at, BytesTag(1), text);
  }

  char* Either(const Struct& either, const Value& value, char* at) {
    for (std::size_t i = either.wire.size(); i-- > 0;) {
      const WireField& field = either.wire[i];
      if (field.kind == Kind::kBool) {
        at = writer_.Integer(at, TagOf(field), value.is_map() || value.as_bool() ? 1 : 0);
      } else if ((field.kind == Kind::kStruct && value.is_map()) || (field.kind == Kind::kList && value.is_list())) {
        at = OneField(field, value, at);
      }
    }
    return at;
  }

  BackWriter writer_;
  Slots slots_;
  std::vector<const Member*> order_;
};

// The fields behind the message: no content encoding, no content type.
char* Footer(BackWriter& writer) {
  char* at = writer.String(writer.end(), BytesTag(4), "");
  return writer.String(at, BytesTag(3), "");
}
constexpr std::size_t kFooterSize = 4;

// The message is in the buffer already.
std::string_view Enclose(BackWriter& writer, char* at, std::string_view api_version, std::string_view kind) {
  at = writer.Close(at, BytesTag(2), kFooterSize);
  const std::size_t before = writer.Size(at);
  at = writer.String(at, BytesTag(2), kind);
  at = writer.String(at, BytesTag(1), api_version);
  at = writer.Close(at, BytesTag(1), before);
  return writer.View(writer.Append(at, kProtoMagic));
}

}  // namespace

void EncodeProto(const Value& value, const Struct& type, std::string& out) {
  Encoder encoder;
  BackWriter& writer = encoder.writer();
  char* at = encoder.Message(type, value, Footer(writer));
  out.append(Enclose(writer, at, value["apiVersion"].as_string(), value["kind"].as_string()));
}

void EncodeProtoMessage(const Value& value, const Struct& type, std::string& out) {
  Encoder encoder;
  const char* at = encoder.Message(type, value, encoder.writer().end());
  out.append(encoder.writer().View(at));
}

void EncodeEnvelope(std::string_view api_version, std::string_view kind, std::string_view raw, std::string& out) {
  BackWriter writer;
  char* at = writer.Append(Footer(writer), raw);
  out.append(Enclose(writer, at, api_version, kind));
}

}  // namespace keelson::codec
