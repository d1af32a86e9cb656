#include <algorithm>
#include <bit>

#include "codec/base64.h"
#include "codec/json.h"
#include "codec/protobuf.h"
#include "codec/scalars.h"
#include "codec/scan.h"
#include "codec/scratch.h"
#include "codec/slots.h"
#include "codec/small_messages.h"
#include "codec/wire.h"
#include "object/duration.h"
#include "object/time.h"

namespace keelson::codec {
namespace {

using base::Arena;
using object::Member;
using schema::Form;
using schema::Kind;
using schema::Struct;
using schema::Type;
using schema::WireField;

class Decoder {
 public:
  explicit Decoder(Arena& arena) : arena_(arena), members_(arena), items_(arena) {}

  // The message's fields as members; those of inlined structs join them.
  bool Message(const Struct& type, std::string_view message, Value& out) {
    if (++depth_ > kProtoDepthMax) return Fail("exceeded max depth");
    const std::size_t start = members_.size();
    if (!Fields(type, message, start, 0)) return false;
    out = Value::MapOf(arena_, members_.From(start));
    members_.Cut(start);
    --depth_;
    return true;
  }

  // With apiVersion and kind from the envelope.
  bool Root(const Struct& type, std::string_view message, std::string_view api_version, std::string_view kind,
            Value& out) {
    const auto push = [&](std::string_view name, std::string_view text) {
      if (text.empty()) return;
      const std::uint16_t position = type.FindPosition(name);
      if (position == Struct::kNoPosition) return;
      Value value(text);
      const schema::JSONField& field = type.json[position];
      value.set_place(field.place);
      members_.Push({{field.quoted + 1, field.name_size}, value});
    };
    push("kind", kind);
    push("apiVersion", api_version);
    if (!Fields(type, message, 0, 0)) return false;
    out = Value::MapOf(arena_, members_.From(0));
    members_.Cut(0);
    return true;
  }

  const std::string& error() const { return error_; }

 private:
  bool Fail(std::string_view text) {
    if (error_.empty()) error_ = text;
    return false;
  }
  static std::string_view NameOf(const WireField& field) { return {field.name, field.name_size}; }
  [[gnu::noinline]] bool WrongType(const WireField& field, WireType type) {
    return Fail("proto: wrong wireType = " + std::to_string(static_cast<int>(type)) + " for field " +
                std::string(NameOf(field)));
  }

  // A number of one or two bytes; false, and nothing read, where there is none.
  static bool ShortVarint(const char*& at, const char* end, std::size_t& out) {
    if (at >= end) [[unlikely]]
      return false;
    out = static_cast<unsigned char>(at[0]);
    if (out < 0x80) [[likely]] {
      at += 1;
      return true;
    }
    if (end - at < 2 || static_cast<unsigned char>(at[1]) >= 0x80) return false;
    out = (out & 0x7f) | static_cast<std::size_t>(at[1]) << 7;
    at += 2;
    return true;
  }

  // The fast path for encoders' output; everything else (long numbers, unknown fields, wrong types, fields that come
  // again, rare types) in AnyField. `start` is where the members of the outermost struct begin, `offset` where this
  // one's fields begin among its JSON fields.
  bool Fields(const Struct& type, std::string_view message, std::size_t start, std::uint32_t offset) {
    const WireField* const table = type.wire.data();
    const std::size_t count = type.wire.size();
    const char* at = message.data();
    const char* const end = at + message.size();
    std::uint64_t seen = 0;
    std::size_t next = 0;
    while (at < end) {
      const char* const from = at;
      std::size_t tag = 0, size = 0;
      if (!ShortVarint(at, end, tag) || !ShortVarint(at, end, size)) [[unlikely]] {
        if (!AnyField(type, from, end, start, offset, seen, at)) return false;
        continue;
      }
      // Numbers are mostly dense from 1; where they are not, fields still come by ascending number.
      const std::size_t wanted = tag >> 3;
      std::size_t index = wanted - 1;
      if (index >= count || table[index].number != wanted) {
        for (index = next; index < count && table[index].number < wanted;) ++index;
      }
      if (index >= count || table[index].number != wanted || (seen >> index & 1) != 0) [[unlikely]] {
        if (!AnyField(type, from, end, start, offset, seen, at)) return false;
        continue;
      }
      next = index;
      const WireField& field = table[index];
      const bool fits =
          (tag & 7) == static_cast<std::size_t>(WireType::kBytes) && size <= static_cast<std::size_t>(end - at);
      const bool number = (tag & 7) == static_cast<std::size_t>(WireType::kVarint);
      switch (field.form) {
        case Form::kString:
          if (!fits) break;
          seen |= std::uint64_t{1} << index;
          if (size != 0 || field.pointer) Push(field, Value(std::string_view(at, size)), offset);
          at += size;
          continue;
        case Form::kBool:
          if (!number) break;
          seen |= std::uint64_t{1} << index;
          if (size != 0 || field.pointer) Push(field, Value(size != 0), offset);
          continue;
        case Form::kInt32:
        case Form::kInt64:
          if (!number) break;
          seen |= std::uint64_t{1} << index;
          if (size != 0 || field.pointer) Push(field, Value(static_cast<std::int64_t>(size)), offset);
          continue;
        case Form::kStruct: {
          if (!fits || field.inlined) break;
          seen |= std::uint64_t{1} << index;
          Value value;
          if (!Message(*field.structure, {at, size}, value)) return false;
          if (field.pointer || !value.empty()) Push(field, value, offset);
          at += size;
          continue;
        }
        case Form::kStructs:
        case Form::kStrings:
        case Form::kTexts: {
          if (!fits) break;
          seen |= std::uint64_t{1} << index;
          Value value;
          if (!(field.form == Form::kTexts ? Texts(field, tag, size, at, end, value)
                                           : Items(field, tag, size, at, end, value)))
            return false;
          Push(field, value, offset);
          continue;
        }
        case Form::kTime: {
          if (!fits) break;
          seen |= std::uint64_t{1} << index;
          Value value;
          if (!Time({at, size}, false, value)) return false;
          if (!value.is_null()) Push(field, value, offset);
          at += size;
          continue;
        }
        case Form::kQuantity:
        case Form::kOther:
          break;
      }
      if (!AnyField(type, from, end, start, offset, seen, at)) return false;
    }
    return true;
  }

  // Whether the same field comes again at once: `at` and `size` are then those of its content.
  [[gnu::always_inline]] static bool Follows(std::size_t tag, const char*& at, const char* end, std::size_t& size) {
    const char* next = at;
    std::size_t next_tag = 0;
    if (!ShortVarint(next, end, next_tag) || next_tag != tag || !ShortVarint(next, end, size)) return false;
    if (size > static_cast<std::size_t>(end - next)) return false;
    at = next;
    return true;
  }
  // The same for any tag; `in` is then behind it.
  [[gnu::always_inline]] static bool Follows(std::uint32_t number, WireReader& in, WireType& wire) {
    const WireReader before = in;
    std::uint32_t next = 0;
    if (!in.AtEnd() && in.Tag(next, wire) && next == number) return true;
    in = before;
    return false;
  }

  // The first item, whose content is at `at`, and those that follow it at once.
  bool Items(const WireField& field, std::size_t tag, std::size_t size, const char*& at, const char* end, Value& out) {
    const std::size_t start = items_.size();
    for (;;) {
      Value item(std::string_view(at, size));
      if (field.form == Form::kStructs && !Message(*field.structure, {at, size}, item)) return false;
      items_.Push(item);
      at += size;
      if (!Follows(tag, at, end, size)) break;
    }
    out = Value::ListOf(arena_, items_.From(start));
    items_.Cut(start);
    return true;
  }

  // The same for a map's entries.
  bool Texts(const WireField& field, std::size_t tag, std::size_t size, const char*& at, const char* end, Value& out) {
    const std::size_t start = members_.size();
    bool sorted = true;
    for (;;) {
      std::string_view key;
      Value value;
      if (!Entry(*field.type->element, field, {at, size}, key, value)) return false;
      PushEntry(start, key, value.is_null() ? Value("") : value, sorted);
      at += size;
      if (!Follows(tag, at, end, size)) break;
    }
    out = MapOf(members_.From(start), sorted);
    members_.Cut(start);
    return true;
  }

  [[gnu::always_inline]] void PushEntry(std::size_t start, std::string_view key, const Value& value, bool& sorted) {
    const auto read = members_.From(start);
    if (!read.empty() && !KeyLess(read.back().key, key)) sorted = false;
    members_.Push({key, value});
  }

  // A map of entries whose keys may have come twice, unless they are sorted.
  Value MapOf(std::span<const Member> read, bool sorted) {
    if (sorted) return Value::MapOf(arena_, read);
    Value out = Value::Map(arena_, read.size());
    for (const Member& member : read) out.Set(arena_, member.key, member.value);
    return out;
  }

  // Any field, from its tag on; `at` is then behind it.
  [[gnu::noinline]] bool AnyField(const Struct& type, const char* from, const char* end, std::size_t start,
                                  std::uint32_t offset, std::uint64_t& seen, const char*& at) {
    WireReader in({from, static_cast<std::size_t>(end - from)});
    std::uint32_t number = 0;
    WireType wire{};
    if (!in.Tag(number, wire)) return Fail(kEOF);
    const std::uint16_t position = type.FindProtoPosition(number);
    if (position == Struct::kNoPosition) {
      if (!in.Skip(wire)) return Fail(kEOF);
      at = in.at();
      return true;
    }
    const bool again = (seen >> position & 1) != 0;
    seen |= std::uint64_t{1} << position;
    if (!FieldValue(type.wire[position], number, wire, in, start, offset, again)) return false;
    at = in.at();
    return true;
  }

  void Push(const WireField& field, Value value, std::uint32_t offset) {
    value.set_place(static_cast<std::uint16_t>(field.place + offset));
    members_.Push({NameOf(field), value});
  }

  bool FieldValue(const WireField& field, std::uint32_t number, WireType wire, WireReader& in, std::size_t start,
                  std::uint32_t offset, bool again) {
    if (field.inlined) {
      std::string_view nested;
      if (wire != WireType::kBytes) return WrongType(field, wire);
      if (!in.Bytes(nested)) return Fail(kEOF);
      if (++depth_ > kProtoDepthMax) return Fail("exceeded max depth");
      if (!Fields(*field.structure, nested, start, offset + field.place)) return false;
      --depth_;
      return true;
    }
    const bool structs = field.form == Form::kStruct || field.form == Form::kStructs;
    const Type structure{Kind::kStruct, nullptr, structs ? field.structure : nullptr};
    const Type& type = structs ? structure : *field.type;
    Value value;
    bool zero = false;
    if (field.kind == Kind::kList && !type.wrapped) {
      if (!Repeated(structs ? structure : *type.element, field, number, wire, in, value)) return false;
    } else if (field.kind == Kind::kMap) {
      if (!Map(*type.element, field, number, wire, in, value)) return false;
    } else {
      if (!Single(type, field, wire, in, value)) return false;
      zero = value.is_null() || (!field.pointer && IsZero(type, value));
    }
    if (again) [[unlikely]]
      return Again(field, value, zero, start, offset);
    if (!zero) Push(field, value, offset);
    return true;
  }

  // A field that came before, with something else between: lists and maps go on, everything else is replaced.
  bool Again(const WireField& field, Value value, bool zero, std::size_t start, std::uint32_t offset) {
    const auto members = members_.From(start);
    const auto old = std::ranges::find(members, NameOf(field), &Member::key);
    if (old == members.end()) {
      if (!zero) Push(field, value, offset);
    } else if (zero) {
      *old = members.back();
      members_.Cut(members_.size() - 1);
    } else if (value.is_list() && old->value.is_list()) {
      for (const Value& item : value.items()) old->value.Append(arena_, item);
    } else if (field.kind == Kind::kMap && old->value.is_map()) {
      for (const Member& member : value.members()) old->value.Set(arena_, member.key, member.value);
    } else {
      value.set_place(static_cast<std::uint16_t>(field.place + offset));
      old->value = value;
    }
    return true;
  }

  // This item and those that follow it at once.
  bool Repeated(const Type& element, const WireField& field, std::uint32_t number, WireType wire, WireReader& in,
                Value& out) {
    const std::size_t start = items_.size();
    for (;;) {
      const bool scalar = element.kind == Kind::kInt32 || element.kind == Kind::kInt64 || element.kind == Kind::kBool;
      if (scalar && wire == WireType::kBytes) {  // packed
        std::string_view packed;
        if (!in.Bytes(packed)) return Fail(kEOF);
        WireReader inner(packed);
        while (!inner.AtEnd()) {
          Value item;
          if (!Single(element, field, WireType::kVarint, inner, item)) return false;
          items_.Push(item);
        }
      } else {
        Value item;
        if (!Single(element, field, wire, in, item)) return false;
        items_.Push(item.is_null() ? ZeroOf(arena_, element) : item);
      }
      if (!Follows(number, in, wire)) break;
    }
    out = Value::ListOf(arena_, items_.From(start));
    items_.Cut(start);
    return true;
  }

  bool Map(const Type& element, const WireField& field, std::uint32_t number, WireType wire, WireReader& in,
           Value& out) {
    const std::size_t start = members_.size();
    bool sorted = true;
    for (;;) {
      std::string_view entry, key;
      if (wire != WireType::kBytes) return WrongType(field, wire);
      if (!in.Bytes(entry)) return Fail(kEOF);
      Value value;
      if (!Entry(element, field, entry, key, value)) return false;
      PushEntry(start, key, value.is_null() ? ZeroOf(arena_, element) : value, sorted);
      if (!Follows(number, in, wire)) break;
    }
    out = MapOf(members_.From(start), sorted);
    members_.Cut(start);
    return true;
  }

  bool Entry(const Type& element, const WireField& field, std::string_view entry, std::string_view& key, Value& value) {
    WireReader in(entry);
    if (element.kind == Kind::kString && PlainEntry(in, key, value)) return true;
    in = WireReader(entry);
    while (!in.AtEnd()) {
      std::uint32_t number = 0;
      WireType wire{};
      if (!in.Tag(number, wire)) return Fail(kEOF);
      if (number == 1 && wire == WireType::kBytes) {
        if (!in.Bytes(key)) return Fail(kEOF);
      } else if (number == 2) {
        if (!Single(element, field, wire, in, value)) return false;
      } else if (!in.Skip(wire)) {
        return Fail(kEOF);
      }
    }
    return true;
  }

  // A key and a text, once each, as every encoder writes them.
  static bool PlainEntry(WireReader& in, std::string_view& key, Value& value) {
    std::uint32_t number = 0;
    WireType wire{};
    std::string_view text;
    if (!in.Tag(number, wire) || number != 1 || wire != WireType::kBytes || !in.Bytes(key)) return false;
    if (!in.Tag(number, wire) || number != 2 || wire != WireType::kBytes || !in.Bytes(text)) return false;
    value = Value(text);
    return in.AtEnd();
  }

  bool Single(const Type& type, const WireField& field, WireType wire, WireReader& in, Value& out) {
    switch (type.kind) {
      case Kind::kBool:
      case Kind::kInt32:
      case Kind::kInt64: {
        std::uint64_t value = 0;
        if (wire != WireType::kVarint) return WrongType(field, wire);
        if (!in.Varint(value)) return Fail(kEOF);
        if (type.kind == Kind::kBool) {
          out = Value(value != 0);
        } else {
          out = Value(type.kind == Kind::kInt32 ? std::int64_t{static_cast<std::int32_t>(value)}
                                                : static_cast<std::int64_t>(value));
        }
        return true;
      }
      case Kind::kDouble: {
        std::uint64_t bits = 0;
        if (wire != WireType::kFixed64) return WrongType(field, wire);
        if (!in.Fixed64(bits)) return Fail(kEOF);
        out = Value(std::bit_cast<double>(bits));
        return true;
      }
      default:
        break;
    }
    std::string_view bytes;
    if (wire != WireType::kBytes) return WrongType(field, wire);
    if (!in.Bytes(bytes)) return Fail(kEOF);
    if (type.kind == Kind::kString) {
      out = Value(bytes);
      return true;
    }
    if (type.kind == Kind::kStruct) return Message(*type.structure, bytes, out);
    return Special(type, field, bytes, out);
  }

  bool Special(const Type& type, const WireField& field, std::string_view bytes, Value& out) {
    switch (type.kind) {
      case Kind::kBytes: {
        char* text = arena_.NewArray<char>(Base64Size(bytes.size()) + 1);
        WriteBase64(bytes.data(), bytes.size(), text);
        out = Value(std::string_view(text, Base64Size(bytes.size())));
        return true;
      }
      case Kind::kTime:
      case Kind::kMicroTime:
        return Time(bytes, type.kind == Kind::kMicroTime, out);
      case Kind::kDuration:
        return Duration(bytes, out);
      case Kind::kQuantity: {
        std::string_view text;
        std::string error;
        if (!Text(bytes, 1, text)) return false;
        if (!CanonicalQuantity(arena_, text, out, error)) return Fail(error);
        return true;
      }
      case Kind::kIntOrString:
        return IntOrString(bytes, out);
      case Kind::kRaw:
      case Kind::kFieldsV1:
      case Kind::kJSON: {
        std::string_view raw;
        if (!Text(bytes, 1, raw)) return false;
        if (raw.empty()) return true;
        // It is sent on as JSON without another look, so it has to be JSON.
        if (!IsJSONInPlace(arena_, raw)) return Fail(NotJSON(raw));
        if (raw != "null") out = Value::Raw(raw);
        return true;
      }
      case Kind::kList: {  // wrapped
        WireReader in(bytes);
        out = Value::List(arena_);
        while (!in.AtEnd()) {
          std::uint32_t number = 0;
          WireType wire{};
          if (!in.Tag(number, wire)) return Fail(kEOF);
          if (number != 1) {
            if (!in.Skip(wire)) return Fail(kEOF);
            continue;
          }
          Value item;
          if (!Single(*type.element, field, wire, in, item)) return false;
          out.Append(arena_, item.is_null() ? ZeroOf(arena_, *type.element) : item);
        }
        return true;
      }
      case Kind::kEither:
        return Either(type, bytes, out);
      default:
        return Fail("proto: unexpected kind");
    }
  }

  // The bytes behind `raw` are other fields': JSON that only becomes whole with them is cut off here.
  static std::string NotJSON(std::string_view raw) {
    std::string error = JSONSyntaxError(raw);
    return error.empty() ? "invalid raw JSON" : error;
  }

  bool Text(std::string_view message, std::uint32_t wanted, std::string_view& out) {
    return ReadText(message, wanted, out) || Fail(kEOF);
  }
  bool Varints(std::string_view message, std::uint64_t (&out)[4]) { return ReadVarints(message, out) || Fail(kEOF); }

  bool Time(std::string_view message, bool micro, Value& out) {
    if (message.empty()) return true;
    object::Time time;
    if (const char* const wrong = ReadTime(message, micro, time)) return Fail(wrong);
    if (time.IsZero()) return true;
    char* text = arena_.NewArray<char>(object::kTimeTextMax);
    out = Value(
        std::string_view(text, micro ? object::WriteMicroTime(time, text) : object::WriteTime(time.seconds, text)));
    return true;
  }

  bool Duration(std::string_view message, Value& out) {
    std::uint64_t parts[4] = {};
    if (!Varints(message, parts)) return false;
    char* text = arena_.NewArray<char>(object::kDurationTextMax);
    out = Value(std::string_view(text, object::WriteDuration(static_cast<std::int64_t>(parts[1]), text)));
    return true;
  }

  bool IntOrString(std::string_view message, Value& out) {
    std::uint64_t parts[4] = {};
    std::string_view text;
    if (!Varints(message, parts) || !Text(message, 3, text)) return false;
    if (parts[1] > 1) return Fail("impossible IntOrString.Type");
    out = parts[1] == 1 ? Value(text) : Value(std::int64_t{static_cast<std::int32_t>(parts[2])});
    return true;
  }

  // The struct if it is there, else the list, else the bool.
  bool Either(const Type& type, std::string_view message, Value& out) {
    const std::size_t start = members_.size();
    Value boolean, structure, list;
    WireReader in(message);
    const Struct& either = *type.structure;
    while (!in.AtEnd()) {
      std::uint32_t number = 0;
      WireType wire{};
      if (!in.Tag(number, wire)) return Fail(kEOF);
      const std::uint16_t position = either.FindProtoPosition(number);
      if (position == Struct::kNoPosition) {
        if (!in.Skip(wire)) return Fail(kEOF);
        continue;
      }
      const WireField& field = either.wire[position];
      if (field.kind == Kind::kList) {
        Value more;
        const Type structs{Kind::kStruct, nullptr, field.structure};
        const Type& element = field.form == Form::kStructs ? structs : *field.type->element;
        if (!Repeated(element, field, number, wire, in, more)) return false;
        if (list.is_null()) {
          list = more;
        } else {
          for (const Value& item : more.items()) list.Append(arena_, item);
        }
      } else if (field.kind == Kind::kBool) {
        if (!Single(*field.type, field, wire, in, boolean)) return false;
      } else if (!Single({Kind::kStruct, nullptr, field.structure}, field, wire, in, structure)) {
        return false;
      }
    }
    members_.Cut(start);
    out = !list.empty() ? list : !structure.is_null() ? structure : boolean;
    const bool has_bool =
        std::ranges::any_of(either.json_fields, [](const schema::Field* f) { return f->type->kind == Kind::kBool; });
    if (has_bool && out.is_null()) out = Value(false);
    return true;
  }

  Arena& arena_;
  Scratch<Member> members_;
  Scratch<Value> items_;
  int depth_ = 0;
  std::string error_;
};

// A copy in the arena that IsJSONInPlace may read.
std::string_view PaddedCopy(Arena& arena, std::string_view bytes) {
  constexpr std::size_t kTreePerByte = 4;  // what the tree takes, roughly
  arena.Reserve(bytes.size() * (1 + kTreePerByte) + kScanPadding);
  char* copy = arena.NewArray<char>(bytes.size() + kScanPadding);
  if (!bytes.empty()) std::memcpy(copy, bytes.data(), bytes.size());
  std::memset(copy + bytes.size(), 0, kScanPadding);
  return {copy, bytes.size()};
}

DecodeError Syntax(std::string text) { return {DecodeError::Kind::kSyntax, std::move(text)}; }

}  // namespace

bool HasEnvelope(std::string_view bytes) { return bytes.starts_with(kProtoMagic); }

Outcome<Envelope, DecodeError> ParseEnvelope(std::string_view bytes) {
  if (bytes.empty()) return Syntax("empty data");
  if (!HasEnvelope(bytes))
    return Syntax("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]");
  bytes.remove_prefix(kProtoMagic.size());
  if (bytes.empty()) return Syntax("empty body");
  Envelope envelope;
  WireReader in(bytes);
  while (!in.AtEnd()) {
    std::uint32_t number = 0;
    WireType wire{};
    std::string_view value;
    if (!in.Tag(number, wire)) return Syntax(kEOF);
    if (number > 4 || wire != WireType::kBytes) {
      if (!in.Skip(wire)) return Syntax(kEOF);
      continue;
    }
    if (!in.Bytes(value)) return Syntax(kEOF);
    switch (number) {
      case 1: {
        WireReader meta(value);
        while (!meta.AtEnd()) {
          if (!meta.Tag(number, wire)) return Syntax(kEOF);
          if (number > 2 || wire != WireType::kBytes) {
            if (!meta.Skip(wire)) return Syntax(kEOF);
          } else if (!meta.Bytes(number == 1 ? envelope.api_version : envelope.kind)) {
            return Syntax(kEOF);
          }
        }
        break;
      }
      case 2:
        envelope.raw = value;
        break;
      case 3:
        envelope.content_encoding = value;
        break;
      default:
        envelope.content_type = value;
        break;
    }
  }
  return envelope;
}

Outcome<Decoded, DecodeError> DecodeProto(Arena& arena, std::string_view bytes, const Struct& type) {
  KS_TRY(const Envelope envelope, ParseEnvelope(PaddedCopy(arena, bytes)));
  Decoder decoder(arena);
  Decoded decoded;
  if (decoder.Root(type, envelope.raw, envelope.api_version, envelope.kind, decoded.value)) return decoded;
  return Syntax(decoder.error());
}

Outcome<Decoded, DecodeError> DecodeProtoMessage(Arena& arena, std::string_view message, const Struct& type) {
  Decoder decoder(arena);
  Decoded decoded;
  if (decoder.Message(type, PaddedCopy(arena, message), decoded.value)) return decoded;
  return Syntax(decoder.error());
}

}  // namespace keelson::codec
