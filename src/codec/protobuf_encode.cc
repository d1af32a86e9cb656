// Written from the end to the beginning, as gogo's marshalers do: a message's length is known when its content is done,
// so nothing is measured beforehand or moved afterwards.
#include <algorithm>
#include <bit>
#include <memory>
#include <vector>

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

// A buffer that grows at its front.
class BackWriter {
 public:
  BackWriter() : buffer_(std::make_unique_for_overwrite<char[]>(kFirst)), capacity_(kFirst), at_(kFirst) {}

  std::size_t size() const { return capacity_ - at_; }
  std::string_view view() const { return {buffer_.get() + at_, size()}; }

  void Put(unsigned char byte) {
    if (at_ == 0) [[unlikely]]
      Grow(1);
    buffer_[--at_] = static_cast<char>(byte);
  }
  void Append(std::string_view text) {
    char* to = Take(text.size());
    if (!text.empty()) std::memcpy(to, text.data(), text.size());
  }
  // Room for `bytes` in front of what is there, to be filled by the caller.
  char* Take(std::size_t bytes) {
    if (at_ < bytes) Grow(bytes);
    at_ -= bytes;
    return buffer_.get() + at_;
  }
  void GiveBack(std::size_t bytes) { at_ += bytes; }
  void Varint(std::uint64_t value) {
    if (value < 0x80) [[likely]]
      return Put(static_cast<unsigned char>(value));
    unsigned char bytes[10];
    std::size_t size = 0;
    for (; value >= 0x80; value >>= 7) bytes[size++] = static_cast<unsigned char>(value | 0x80);
    bytes[size++] = static_cast<unsigned char>(value);
    std::memcpy(Take(size), bytes, size);
  }
  void Tag(std::uint32_t number, WireType type) {
    Varint(static_cast<std::uint64_t>(number) << 3 | static_cast<std::uint64_t>(type));
  }
  // Length and tag of what was written since the buffer had `before` bytes.
  void Close(std::uint32_t number, std::size_t before) {
    Varint(size() - before);
    Tag(number, WireType::kBytes);
  }
  void String(std::uint32_t number, std::string_view text) {
    if (text.size() < 0x80 && number < 16 && at_ >= text.size() + 2)
        [[likely]] {  // nearly all: one byte each for tag and length
      at_ -= text.size() + 2;
      char* to = buffer_.get() + at_;
      to[0] = static_cast<char>(number << 3 | static_cast<std::uint32_t>(WireType::kBytes));
      to[1] = static_cast<char>(text.size());
      if (!text.empty()) std::memcpy(to + 2, text.data(), text.size());
      return;
    }
    Append(text);
    Varint(text.size());
    Tag(number, WireType::kBytes);
  }
  void Integer(std::uint32_t number, std::int64_t value) {
    Varint(static_cast<std::uint64_t>(value));
    Tag(number, WireType::kVarint);
  }

 private:
  static constexpr std::size_t kFirst = 4096;

  [[gnu::noinline]] void Grow(std::size_t bytes) {
    const std::size_t used = size();
    const std::size_t next = std::max(capacity_ * 2, used + bytes);
    auto grown = std::make_unique_for_overwrite<char[]>(next);
    std::memcpy(grown.get() + next - used, buffer_.get() + at_, used);
    buffer_ = std::move(grown);
    capacity_ = next;
    at_ = next - used;
  }

  std::unique_ptr<char[]> buffer_;
  std::size_t capacity_;
  std::size_t at_;
};

class Encoder {
 public:
  void Message(const Struct& type, const Value& value) {
    const std::size_t base = slots_.Take(type.wire.size());
    std::uint64_t present[2] = {0, 0};
    std::size_t next = 0;
    for (const Member& member : value.members()) {
      const std::size_t found = Slots::Position(type, member.key, next);
      if (found == Struct::kNoPosition) continue;
      next = found + 1;
      const std::uint8_t at = type.wire_of_json[found];
      if (at == 0xff) continue;
      slots_.at(base + at) = &member.value;
      present[at / 64] |= std::uint64_t{1} << (at % 64);
    }
    for (std::size_t word = 2; word-- > 0;) {
      std::uint64_t rest = present[word] | type.wire_always[word];
      while (rest != 0) {
        const auto bit = static_cast<std::size_t>(63 - std::countl_zero(rest));
        rest &= ~(std::uint64_t{1} << bit);
        const WireField& field = type.wire[word * 64 + bit];
        if (field.inlined) {
          const std::size_t before = writer_.size();
          Message(*field.type->structure, value);
          writer_.Close(field.number, before);
        } else {
          FieldValue(field, (present[word] >> bit & 1) != 0 ? *slots_.at(base + word * 64 + bit) : Value());
        }
      }
    }
    slots_.Release(base);
  }

  BackWriter& writer() { return writer_; }

 private:
  void FieldValue(const WireField& field, const Value& value) {
    const Type& type = *field.type;
    if (field.kind == Kind::kString) {
      if (!value.is_null() || !field.pointer) writer_.String(field.number, value.as_string());
      return;
    }
    if (type.kind == Kind::kList) {
      if (type.wrapped) {
        if (value.is_list()) Single(type, field.number, value);
        return;
      }
      const auto items = value.items();
      for (std::size_t i = items.size(); i-- > 0;) Single(*type.element, field.number, items[i]);
      return;
    }
    if (type.kind == Kind::kMap) return Map(*type.element, field.number, value);
    // Pointers and byte slices are left out when nil; every other value is written, zero or not.
    if (value.is_null() && (field.pointer || type.kind == Kind::kBytes)) return;
    Single(type, field.number, value);
  }

  void Map(const Type& element, std::uint32_t number, const Value& value) {
    const auto members = value.members();
    const std::size_t base = order_.size();
    bool sorted = true;
    for (std::size_t i = 1; i < members.size() && sorted; ++i) sorted = members[i - 1].key < members[i].key;
    if (!sorted) {
      for (const Member& member : members) order_.push_back(&member);
      std::sort(order_.begin() + static_cast<std::ptrdiff_t>(base), order_.end(),
                [](auto* a, auto* b) { return a->key < b->key; });
    }
    for (std::size_t i = members.size(); i-- > 0;) {
      const Member& member = sorted ? members[i] : *order_[base + i];
      const std::size_t before = writer_.size();
      Single(element, 2, member.value);
      writer_.String(1, member.key);
      writer_.Close(number, before);
    }
    order_.resize(base);
  }

  void Single(const Type& type, std::uint32_t number, const Value& value) {
    switch (type.kind) {
      case Kind::kString:
        return writer_.String(number, value.as_string());
      case Kind::kBool:
        return writer_.Integer(number, value.as_bool() ? 1 : 0);
      case Kind::kInt32:
        return writer_.Integer(number, static_cast<std::int32_t>(value.as_int()));
      case Kind::kInt64:
        return writer_.Integer(number, value.as_int());
      case Kind::kDouble: {
        const auto bits = std::bit_cast<std::uint64_t>(value.as_double());
        std::memcpy(writer_.Take(8), &bits, 8);
        return writer_.Tag(number, WireType::kFixed64);
      }
      case Kind::kBytes:
        return Bytes(number, value.as_string());
      default:
        break;
    }
    const std::size_t before = writer_.size();
    switch (type.kind) {
      case Kind::kStruct:
        Message(*type.structure, value);
        break;
      case Kind::kTime:
      case Kind::kMicroTime:
        Time(type.kind == Kind::kMicroTime, value);
        break;
      case Kind::kDuration: {
        const auto parsed = object::ParseDuration(value.is_string() ? value.as_string() : "0");
        writer_.Integer(1, parsed.ok() ? *parsed : 0);
        break;
      }
      case Kind::kQuantity:
        writer_.String(1, value.is_string() ? value.as_string()
                          : value.is_int()  ? std::to_string(value.as_int())
                                            : "0");
        break;
      case Kind::kIntOrString:
        writer_.String(3, value.as_string());
        writer_.Integer(2, static_cast<std::int32_t>(value.as_int()));
        writer_.Integer(1, value.is_string() ? 1 : 0);
        break;
      case Kind::kRaw:
      case Kind::kFieldsV1:
      case Kind::kJSON:
        Raw(value);
        break;
      case Kind::kList: {  // wrapped
        const auto items = value.items();
        for (std::size_t i = items.size(); i-- > 0;) Single(*type.element, 1, items[i]);
        break;
      }
      case Kind::kEither:
        Either(*type.structure, value);
        break;
      default:
        break;
    }
    writer_.Close(number, before);
  }

  void Bytes(std::uint32_t number, std::string_view text) {
    const std::size_t before = writer_.size();
    // The bytes are fewer than the text: they are read to the front of the room and moved to its end.
    char* room = writer_.Take(text.size());
    const std::size_t got = ReadBase64(text, room);
    std::memmove(room + text.size() - got, room, got);
    writer_.GiveBack(text.size() - got);
    writer_.Close(number, before);
  }

  void Time(bool micro, const Value& value) {
    if (!value.is_string()) return;
    auto parsed = object::ParseTime(value.as_string(), micro);
    if (!parsed.ok() && micro) parsed = object::ParseTime(value.as_string());
    if (!parsed.ok() || parsed->IsZero()) return;
    writer_.Integer(2, micro ? parsed->nanos / 1000 * 1000 : 0);
    writer_.Integer(1, parsed->seconds);
  }

  void Raw(const Value& value) {
    if (value.is_null()) return;
    if (value.is_raw()) return writer_.String(1, value.as_raw());
    std::string text;  // put in as a tree by code of ours
    EncodeJSON(value, text);
    writer_.String(1, text);
  }

  void Either(const Struct& either, const Value& value) {
    for (std::size_t i = either.wire.size(); i-- > 0;) {
      const WireField& field = either.wire[i];
      const Kind kind = field.kind;
      if (kind == Kind::kBool) {
        writer_.Integer(field.number, value.is_map() || value.as_bool() ? 1 : 0);
      } else if ((kind == Kind::kStruct && value.is_map()) || (kind == Kind::kList && value.is_list())) {
        FieldValue(field, value);
      }
    }
  }

  BackWriter writer_;
  Slots slots_;
  std::vector<const Member*> order_;
};

void Enclose(BackWriter& writer, std::string_view api_version, std::string_view kind) {
  // The message is in the buffer already.
  writer.Close(2, 4);
  const std::size_t before = writer.size();
  writer.String(2, kind);
  writer.String(1, api_version);
  writer.Close(1, before);
  writer.Append(kProtoMagic);
}

}  // namespace

void EncodeProto(const Value& value, const Struct& type, std::string& out) {
  Encoder encoder;
  encoder.writer().String(4, "");
  encoder.writer().String(3, "");
  encoder.Message(type, value);
  Enclose(encoder.writer(), value["apiVersion"].as_string(), value["kind"].as_string());
  out.append(encoder.writer().view());
}

void EncodeProtoMessage(const Value& value, const Struct& type, std::string& out) {
  Encoder encoder;
  encoder.Message(type, value);
  out.append(encoder.writer().view());
}

void EncodeEnvelope(std::string_view api_version, std::string_view kind, std::string_view raw, std::string& out) {
  BackWriter writer;
  writer.String(4, "");
  writer.String(3, "");
  writer.Append(raw);
  Enclose(writer, api_version, kind);
  out.append(writer.view());
}

}  // namespace keelson::codec
