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

// What a function writes it writes in front of `at`; it returns where its own begins.
class Encoder {
 public:
  // Fields are written by descending number; the stretches between those that the object has stand ready in the table.
  char* Message(const Struct& type, const Value& value, char* at) {
    const std::size_t base = slots_.Take(type.wire.size());
    std::uint64_t present[2] = {type.wire_inlined[0], type.wire_inlined[1]};
    for (const Member& member : value.members()) {
      const std::size_t found = WirePosition(type, member);
      if (found == kNone) continue;
      slots_.at(base + found) = &member.value;
      present[found / 64] |= std::uint64_t{1} << (found % 64);
    }
    std::size_t zeros = type.wire_zero.size();
    for (std::size_t word = 2; word-- > 0;) {
      std::uint64_t rest = present[word];
      while (rest != 0) {
        const auto bit = static_cast<std::size_t>(63 - std::countl_zero(rest));
        rest &= ~(std::uint64_t{1} << bit);
        const WireField& field = type.wire[word * 64 + bit];
        if (field.zero_end != zeros) at = Zeros(type, field.zero_end, zeros, at);
        zeros = field.zero_begin;
        if (field.inlined) [[unlikely]] {
          const std::size_t before = writer_.Size(at);
          at = writer_.Close(Message(*field.type->structure, value, at), TagOf(field), before);
          continue;
        }
        const Value& member = *slots_.at(base + word * 64 + bit);
        if (field.kind == Kind::kString) {
          if (!member.is_null() || !field.pointer) at = writer_.String(at, TagOf(field), member.as_string());
        } else {
          at = FieldValue(field, member, at);
        }
      }
    }
    if (zeros != 0) at = Zeros(type, 0, zeros, at);
    slots_.Release(base);
    return at;
  }

  BackWriter& writer() { return writer_; }

 private:
  static constexpr std::size_t kNone = 0xff;

  // Where a member stands in wire. Decoders note its place in json_fields; what code of ours put in is looked up.
  static std::size_t WirePosition(const Struct& type, const Member& member) {
    const std::size_t place = member.value.place();
    if (place < type.wire_of_json.size()) [[likely]] {
      const std::uint8_t at = type.wire_of_json[place];
      const char* name = at != kNone ? type.wire[at].name : type.json_fields[place]->name.data();
      if (name == member.key.data()) [[likely]]
        return at;
    }
    const std::uint16_t found = type.FindPosition(member.key);
    return found < type.wire_of_json.size() ? type.wire_of_json[found] : kNone;
  }

  char* Zeros(const Struct& type, std::size_t from, std::size_t to, char* at) {
    return writer_.Append(at, {type.wire_zero.data() + from, to - from});
  }

  char* FieldValue(const WireField& field, const Value& value, char* at) {
    const Type& type = *field.type;
    if (field.kind == Kind::kList) {
      if (type.wrapped) return value.is_list() ? Single(type, TagOf(field), value, at) : at;
      const auto items = value.items();
      if (type.element->kind == Kind::kStruct) {
        for (std::size_t i = items.size(); i-- > 0;) {
          const std::size_t before = writer_.Size(at);
          at = writer_.Close(Message(*type.element->structure, items[i], at), TagOf(field), before);
        }
        return at;
      }
      for (std::size_t i = items.size(); i-- > 0;) at = Single(*type.element, TagOf(field), items[i], at);
      return at;
    }
    if (field.kind == Kind::kMap) return Map(*type.element, TagOf(field), value, at);
    // Pointers and byte slices are left out when nil; every other value is written, zero or not.
    if (value.is_null() && (field.pointer || field.kind == Kind::kBytes)) return at;
    return Single(type, TagOf(field), value, at);
  }

  char* Map(const Type& element, WireTag tag, const Value& value, char* at) {
    const auto members = value.members();
    const std::size_t base = order_.size();
    bool sorted = true;
    for (std::size_t i = 1; i < members.size() && sorted; ++i) sorted = members[i - 1].key < members[i].key;
    if (!sorted) {
      for (const Member& member : members) order_.push_back(&member);
      std::sort(order_.begin() + static_cast<std::ptrdiff_t>(base), order_.end(),
                [](auto* a, auto* b) { return a->key < b->key; });
    }
    const WireTag value_tag = TagOf(2, WireTypeOf(element.kind));
    for (std::size_t i = members.size(); i-- > 0;) {
      const Member& member = sorted ? members[i] : *order_[base + i];
      const std::size_t before = writer_.Size(at);
      at = Single(element, value_tag, member.value, at);
      at = writer_.String(at, BytesTag(1), member.key);
      at = writer_.Close(at, tag, before);
    }
    order_.resize(base);
    return at;
  }

  char* Single(const Type& type, WireTag tag, const Value& value, char* at) {
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
        at = FieldValue(field, value, at);
      }
    }
    return at;
  }

  BackWriter writer_;
  Slots slots_;
  std::vector<const Member*> order_;
};

// What stands behind the message: no content encoding, no content type.
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
