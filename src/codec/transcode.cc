// Protobuf to JSON in one pass. JSON has the table's order, protobuf that of the numbers, so a message's fields are
// first located (one scan over its tags, nested messages passed over by their length) and then written in order.
#include "codec/transcode.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "codec/base64.h"
#include "codec/json.h"
#include "codec/protobuf.h"
#include "codec/small_messages.h"
#include "codec/wire.h"
#include "codec/writer.h"
#include "object/duration.h"
#include "object/quantity.h"
#include "object/time.h"

namespace keelson::codec {
namespace {

using schema::Field;
using schema::Kind;
using schema::Struct;
using schema::Type;

// Location of a field's value: a scalar itself, the bytes of a single value, or the bytes from the first to the last
// occurrence of a repeated one, tags included.
struct Slot {
  const char* data;
  std::uint64_t size_or_value;
  std::string_view bytes() const { return {data, static_cast<std::size_t>(size_or_value)}; }
};

struct MapEntry {
  std::string_view key;
  std::string_view entry;
};

class Transcoder {
 public:
  explicit Transcoder(std::string& out) : writer_(out) {}

  bool Message(const Struct& type, std::string_view message, std::string_view api_version = {},
               std::string_view kind = {}) {
    if (++depth_ > kProtoDepthMax) return Fail("exceeded max depth");
    const std::size_t base = slots_used_;
    ReserveSlots(base + type.json_fields.size());
    std::uint64_t present[2] = {0, 0};
    if (!Locate(type, message, base, 0, present)) return false;
    slots_used_ = base + type.json_fields.size();

    char before = '{';
    if (!kind.empty()) Head(before, "\"kind\":", kind);
    if (!api_version.empty()) Head(before, "\"apiVersion\":", api_version);
    for (std::size_t word = 0; word < 2; ++word) {
      std::uint64_t rest = present[word] | type.written_always[word];
      while (rest != 0) {
        const std::size_t i = word * 64 + static_cast<std::size_t>(std::countr_zero(rest));
        const bool there = (present[word] >> (i % 64) & 1) != 0;
        rest &= rest - 1;
        const Field& field = *type.json_fields[i];
        if (!(there ? Present(field, slots_[base + i], before) : Absent(field, before))) return false;
      }
    }
    writer_.Reserve(2);
    if (before == '{') writer_.PutUnchecked('{');
    writer_.PutUnchecked('}');
    slots_used_ = base;
    --depth_;
    return true;
  }

  std::string& error() { return error_; }

 private:
  bool Fail(std::string_view text) {
    if (error_.empty()) error_ = text;
    return false;
  }

  void ReserveSlots(std::size_t count) {
    if (count <= slots_capacity_) return;
    const std::size_t next = std::max(count, slots_capacity_ * 2);
    auto grown = std::make_unique_for_overwrite<Slot[]>(next);
    std::copy_n(slots_, slots_used_, grown.get());
    slots_heap_ = std::move(grown);
    slots_ = slots_heap_.get();
    slots_capacity_ = next;
  }

  // Fills the slots of `type`, whose first JSON field is at `offset` of the outermost struct.
  bool Locate(const Struct& type, std::string_view message, std::size_t base, std::size_t offset,
              std::uint64_t (&present)[2]) {
    WireReader in(message);
    while (!in.AtEnd()) {
      const char* tag_at = in.at();
      std::uint32_t number = 0;
      WireType wire{};
      if (!in.Tag(number, wire)) return Fail(kEOF);
      const std::uint16_t proto = type.FindProtoPosition(number);
      if (proto == Struct::kNoPosition) [[unlikely]] {
        if (!in.Skip(wire)) return Fail(kEOF);
        continue;
      }
      const schema::WireField& field = type.wire[proto];
      std::string_view bytes;
      if (field.inlined) [[unlikely]] {
        if (wire != WireType::kBytes || !in.Bytes(bytes)) return Fail(kEOF);
        if (!Locate(*field.structure, bytes, base, offset + field.place, present)) return false;
        continue;
      }
      const std::size_t position = offset + (field.place & 0xff);
      Slot& slot = slots_[base + position];
      std::uint64_t& word = present[position / 64 & 1];
      const std::uint64_t bit = std::uint64_t{1} << (position % 64);
      const bool repeated = field.repeated;
      switch (wire) {
        case WireType::kBytes:
          if (!in.Bytes(bytes)) return Fail(kEOF);
          if (!repeated) slot = {bytes.data(), bytes.size()};
          break;
        case WireType::kVarint: {
          std::uint64_t value = 0;
          if (!in.Varint(value)) return Fail(kEOF);
          if (!repeated) slot = {nullptr, value};
          break;
        }
        case WireType::kFixed64: {
          std::uint64_t value = 0;
          if (!in.Fixed64(value)) return Fail(kEOF);
          if (!repeated) slot = {nullptr, value};
          break;
        }
        default:
          return WrongType(field);
      }
      if (repeated) {
        const char* first = (word & bit) != 0 ? slot.data : tag_at;
        slot = {first, static_cast<std::uint64_t>(in.at() - first)};
      } else if (!Fits(field.kind, wire)) {
        return WrongType(field);
      }
      word |= bit;
    }
    return true;
  }

  static bool Fits(Kind kind, WireType wire) {
    switch (kind) {
      case Kind::kBool:
      case Kind::kInt32:
      case Kind::kInt64:
        return wire == WireType::kVarint;
      case Kind::kDouble:
        return wire == WireType::kFixed64;
      default:
        return wire == WireType::kBytes;
    }
  }
  bool WrongType(const schema::WireField& field) {
    return Fail("proto: wrong wireType for field " + std::string(field.name, field.name_size));
  }

  void Head(char& before, std::string_view key, std::string_view value) {
    writer_.Put(before);
    writer_.Append(key);
    writer_.AppendJSONString(value);
    before = ',';
  }

  void Key(const Field& field, char& before) {
    writer_.AppendKey(before, field);
    before = ',';
  }

  // A field that JSON writes though the message does not have it.
  bool Absent(const Field& field, char& before) {
    if (field.number == 0 && (field.name == "kind" || field.name == "apiVersion")) return true;
    Key(field, before);
    if (field.pointer) {
      writer_.Append("null");
      return true;
    }
    switch (field.type->kind) {
      case Kind::kString:
        writer_.Append("\"\"");
        break;
      case Kind::kBool:
        writer_.Append("false");
        break;
      case Kind::kInt32:
      case Kind::kInt64:
      case Kind::kDouble:
      case Kind::kIntOrString:
        writer_.Append("0");
        break;
      case Kind::kQuantity:
        writer_.Append("\"0\"");
        break;
      case Kind::kDuration:
        writer_.Append("\"0s\"");
        break;
      case Kind::kStruct:
        return Message(*field.type->structure, {});
      default:
        writer_.Append("null");
    }
    return true;
  }

  bool Present(const Field& field, Slot slot, char& before) {
    const bool keep = field.pointer || field.always;
    switch (field.type->kind) {
      case Kind::kString:
        if (slot.size_or_value == 0 && !keep) return true;
        Key(field, before);
        writer_.AppendJSONString(slot.bytes());
        return true;
      case Kind::kBool:
        if (slot.size_or_value == 0 && !keep) return true;
        Key(field, before);
        Bool(slot.size_or_value != 0);
        return true;
      case Kind::kInt32:
      case Kind::kInt64: {
        const std::int64_t value = Integer(field.type->kind, slot.size_or_value);
        if (value == 0 && !keep) return true;
        Key(field, before);
        writer_.AppendInt(value);
        return true;
      }
      case Kind::kDouble: {
        const auto value = std::bit_cast<double>(slot.size_or_value);
        if (value == 0 && !keep) return true;
        Key(field, before);
        writer_.AppendDouble(value);
        return true;
      }
      case Kind::kStruct:
        Key(field, before);
        return Message(*field.type->structure, slot.bytes());
      case Kind::kBytes:
        if (slot.size_or_value == 0 && !keep) return true;
        Key(field, before);
        Base64(slot.bytes());
        return true;
      case Kind::kList:
        if (field.type->wrapped) {
          if (slot.size_or_value == 0 && !keep) return true;
          Key(field, before);
          return List(*field.type->element, 1, slot.bytes());
        }
        Key(field, before);
        return List(*field.type->element, field.number, slot.bytes());
      case Kind::kMap:
        Key(field, before);
        return Map(*field.type->element, field.number, slot.bytes());
      default:
        return Nullable(field, slot.bytes(), before);
    }
  }

  // Messages that may encode null; an optional field is then left out.
  bool Nullable(const Field& field, std::string_view bytes, char& before) {
    const std::size_t start = writer_.size();
    const char before_start = before;
    Key(field, before);
    const std::size_t value = writer_.size();
    if (!Single(*field.type, bytes)) return false;
    const bool null = writer_.size() - value == 4 && std::memcmp(writer_.data() + value, "null", 4) == 0;
    const bool always = field.always || (!field.pointer && !field.omit_zero);
    if (null && !always) {
      writer_.Cut(start);
      before = before_start;
    }
    return true;
  }

  static std::int64_t Integer(Kind kind, std::uint64_t value) {
    return kind == Kind::kInt32 ? std::int64_t{static_cast<std::int32_t>(value)} : static_cast<std::int64_t>(value);
  }

  void Bool(bool value) { value ? writer_.Append("true") : writer_.Append("false"); }

  void Base64(std::string_view bytes) {
    const std::size_t size = Base64Size(bytes.size());
    writer_.Reserve(size + 2);
    writer_.PutUnchecked('"');
    WriteBase64(bytes.data(), bytes.size(), writer_.at());
    writer_.Advance(size);
    writer_.PutUnchecked('"');
  }

  bool List(const Type& element, std::uint32_t number, std::string_view stretch) {
    WireReader in(stretch);
    char before = '[';
    while (!in.AtEnd()) {
      std::uint32_t at = 0;
      WireType wire{};
      if (!in.Tag(at, wire)) return Fail(kEOF);
      if (at != number) {
        if (!in.Skip(wire)) return Fail(kEOF);
        continue;
      }
      if (!Fits(element.kind, wire)) {
        if (wire != WireType::kBytes || Fits(element.kind, WireType::kFixed64))
          return Fail("proto: wrong wireType in a list");
        std::string_view packed;
        if (!in.Bytes(packed)) return Fail(kEOF);
        for (WireReader inner(packed); !inner.AtEnd();) {
          writer_.Put(before);
          before = ',';
          if (!Scalar(element, WireType::kVarint, inner)) return false;
        }
        continue;
      }
      writer_.Put(before);
      before = ',';
      if (!Scalar(element, wire, in)) return false;
    }
    writer_.Reserve(2);
    if (before == '[') writer_.PutUnchecked('[');
    writer_.PutUnchecked(']');
    return true;
  }

  bool Scalar(const Type& type, WireType wire, WireReader& in) {
    std::uint64_t value = 0;
    std::string_view bytes;
    if (wire == WireType::kVarint) {
      if (!in.Varint(value)) return Fail(kEOF);
      if (type.kind == Kind::kBool) {
        Bool(value != 0);
      } else {
        writer_.AppendInt(Integer(type.kind, value));
      }
      return true;
    }
    if (wire == WireType::kFixed64) {
      if (!in.Fixed64(value)) return Fail(kEOF);
      writer_.AppendDouble(std::bit_cast<double>(value));
      return true;
    }
    if (!in.Bytes(bytes)) return Fail(kEOF);
    return Single(type, bytes);
  }

  bool Map(const Type& element, std::uint32_t number, std::string_view stretch) {
    const std::size_t base = entries_.size();
    bool sorted = true;
    WireReader in(stretch);
    while (!in.AtEnd()) {
      std::uint32_t at = 0;
      WireType wire{};
      if (!in.Tag(at, wire)) return Fail(kEOF);
      if (at != number) {
        if (!in.Skip(wire)) return Fail(kEOF);
        continue;
      }
      MapEntry entry;
      if (wire != WireType::kBytes || !in.Bytes(entry.entry)) return Fail(kEOF);
      for (WireReader inner(entry.entry); !inner.AtEnd();) {
        if (!inner.Tag(at, wire)) return Fail(kEOF);
        if (at == 1 && wire == WireType::kBytes) {
          if (!inner.Bytes(entry.key)) return Fail(kEOF);
          break;
        }
        if (!inner.Skip(wire)) return Fail(kEOF);
      }
      if (entries_.size() > base && entry.key <= entries_.back().key) sorted = false;
      entries_.push_back(entry);
    }
    if (!sorted) SortEntries(base);
    char before = '{';
    for (std::size_t i = base; i < entries_.size(); ++i) {
      const MapEntry entry = entries_[i];
      writer_.Put(before);
      writer_.AppendJSONString(entry.key);
      writer_.Put(':');
      before = ',';
      if (!EntryValue(element, entry.entry)) return false;
    }
    writer_.Reserve(2);
    if (before == '{') writer_.PutUnchecked('{');
    writer_.PutUnchecked('}');
    entries_.resize(base);
    return true;
  }

  // By key; of equal keys the last one stays.
  void SortEntries(std::size_t base) {
    const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(base);
    std::sort(begin, entries_.end(), [](const MapEntry& a, const MapEntry& b) {
      return a.key != b.key ? a.key < b.key : a.entry.data() < b.entry.data();
    });
    std::size_t kept = base;
    for (std::size_t i = base; i < entries_.size(); ++i) {
      if (i + 1 < entries_.size() && entries_[i + 1].key == entries_[i].key) continue;
      entries_[kept++] = entries_[i];
    }
    entries_.resize(kept);
  }

  bool EntryValue(const Type& element, std::string_view entry) {
    WireReader in(entry);
    WireReader value;
    WireType value_wire = WireType::kBytes;
    bool found = false;
    while (!in.AtEnd()) {
      std::uint32_t at = 0;
      WireType wire{};
      if (!in.Tag(at, wire)) return Fail(kEOF);
      if (at == 2) value = in, value_wire = wire, found = true;
      if (!in.Skip(wire)) return Fail(kEOF);
    }
    if (found) {
      if (!Fits(element.kind, value_wire)) return Fail("proto: wrong wireType in a map");
      return Scalar(element, value_wire, value);
    }
    switch (element.kind) {  // protobuf leaves a zero value out
      case Kind::kBool:
        Bool(false);
        return true;
      case Kind::kInt32:
      case Kind::kInt64:
      case Kind::kDouble:
        writer_.AppendInt(0);
        return true;
      case Kind::kTime:
      case Kind::kBytes:
      case Kind::kList:
        writer_.Append("null");
        return true;
      default:
        return Single(element, {});
    }
  }

  // A length-delimited value of any kind.
  bool Single(const Type& type, std::string_view bytes) {
    switch (type.kind) {
      case Kind::kString:
        writer_.AppendJSONString(bytes);
        return true;
      case Kind::kStruct:
        return Message(*type.structure, bytes);
      case Kind::kBytes:
        Base64(bytes);
        return true;
      case Kind::kTime:
      case Kind::kMicroTime:
        return Time(bytes, type.kind == Kind::kMicroTime);
      case Kind::kDuration: {
        std::uint64_t parts[4] = {};
        if (!Varints(bytes, parts)) return false;
        writer_.Reserve(object::kDurationTextMax + 2);
        writer_.PutUnchecked('"');
        writer_.Advance(object::WriteDuration(static_cast<std::int64_t>(parts[1]), writer_.at()));
        writer_.PutUnchecked('"');
        return true;
      }
      case Kind::kQuantity:
        return Quantity(bytes);
      case Kind::kIntOrString:
        return IntOrString(bytes);
      case Kind::kRaw:
      case Kind::kFieldsV1:
      case Kind::kJSON: {
        std::string_view raw;
        if (!Text(bytes, 1, raw)) return false;
        raw.empty() ? writer_.Append("null") : writer_.AppendCompact(raw);
        return true;
      }
      case Kind::kList:
        return List(*type.element, 1, bytes);  // wrapped
      case Kind::kEither:
        return Either(*type.structure, bytes);
      default:
        return Fail("proto: unexpected kind");
    }
  }

  bool Quantity(std::string_view bytes) {
    std::string_view text;
    if (!Text(bytes, 1, text)) return false;
    char buffer[object::Quantity::kTextMax];
    const auto canonical = object::Quantity::Canonical(text, buffer);
    if (!canonical.ok()) return Fail(canonical.error());
    writer_.AppendJSONString(*canonical);
    return true;
  }

  bool Text(std::string_view message, std::uint32_t wanted, std::string_view& out) {
    return ReadText(message, wanted, out) || Fail(kEOF);
  }
  bool Varints(std::string_view message, std::uint64_t (&out)[4]) { return ReadVarints(message, out) || Fail(kEOF); }

  bool Time(std::string_view message, bool micro) {
    object::Time time;
    if (const char* const wrong = ReadTime(message, micro, time)) return Fail(wrong);
    if (message.empty() || time.IsZero()) {
      writer_.Append("null");
      return true;
    }
    writer_.Reserve(object::kTimeTextMax + 2);
    writer_.PutUnchecked('"');
    writer_.Advance(micro ? object::WriteMicroTime(time, writer_.at()) : object::WriteTime(time.seconds, writer_.at()));
    writer_.PutUnchecked('"');
    return true;
  }

  bool IntOrString(std::string_view message) {
    std::uint64_t parts[4] = {};
    std::string_view text;
    if (!Varints(message, parts) || !Text(message, 3, text)) return false;
    if (parts[1] > 1) return Fail("impossible IntOrString.Type");
    if (parts[1] == 1) {
      writer_.AppendJSONString(text);
    } else {
      writer_.AppendInt(static_cast<std::int32_t>(parts[2]));
    }
    return true;
  }

  bool Either(const Struct& either, std::string_view message) {
    std::uint64_t boolean = 0;
    std::string_view structure, list_bytes;
    const Field* structure_field = nullptr;
    const Field* list_field = nullptr;
    bool has_structure = false, has_bool = false;
    for (const Field* field : either.proto_fields) {
      if (field->type->kind == Kind::kStruct) structure_field = field;
      if (field->type->kind == Kind::kList) list_field = field;
      has_bool = has_bool || field->type->kind == Kind::kBool;
    }
    for (WireReader in(message); !in.AtEnd();) {
      const char* start = in.at();
      std::uint32_t number = 0;
      WireType wire{};
      if (!in.Tag(number, wire)) return Fail(kEOF);
      if (structure_field != nullptr && number == structure_field->number && wire == WireType::kBytes) {
        if (!in.Bytes(structure)) return Fail(kEOF);
        has_structure = true;
      } else if (list_field != nullptr && number == list_field->number) {
        if (!in.Skip(wire)) return Fail(kEOF);
        const char* first = list_bytes.empty() ? start : list_bytes.data();
        list_bytes = {first, static_cast<std::size_t>(in.at() - first)};
      } else if (has_bool && number == 1 && wire == WireType::kVarint) {
        if (!in.Varint(boolean)) return Fail(kEOF);
      } else if (!in.Skip(wire)) {
        return Fail(kEOF);
      }
    }
    if (!list_bytes.empty()) return List(*list_field->type->element, list_field->number, list_bytes);
    if (has_structure) return Message(*structure_field->type->structure, structure);
    if (has_bool) {
      Bool(boolean != 0);
    } else {
      writer_.Append("null");
    }
    return true;
  }

  static constexpr std::size_t kSlotsFirst = 384;

  Writer writer_;
  int depth_ = 0;
  Slot slots_first_[kSlotsFirst];
  Slot* slots_ = slots_first_;
  std::size_t slots_used_ = 0;
  std::size_t slots_capacity_ = kSlotsFirst;
  std::unique_ptr<Slot[]> slots_heap_;
  std::vector<MapEntry> entries_;
  std::string error_;
};

DecodeError Broken(std::string text) { return {DecodeError::Kind::kSyntax, std::move(text)}; }

}  // namespace

Outcome<void, DecodeError> TranscodeMessage(std::string_view message, const Struct& type, std::string_view api_version,
                                            std::string_view kind, std::string& out) {
  const std::size_t start = out.size();
  std::string error;
  {
    Transcoder transcoder(out);
    if (transcoder.Message(type, message, api_version, kind)) return {};
    error = std::move(transcoder.error());
  }
  out.resize(start);
  return Broken(std::move(error));
}

}  // namespace keelson::codec
