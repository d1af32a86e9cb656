#include "http/konnectivity_packet.h"

#include <array>
#include <utility>

namespace keelson::http {
namespace {

constexpr std::size_t kFrameBytes = 5;
enum WireType : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void AppendVarint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>((value & 0x7f) | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

void AppendInt(std::string& out, unsigned field, std::int64_t value) {
  if (value == 0) return;
  AppendVarint(out, field << 3 | kVarint);
  AppendVarint(out, static_cast<std::uint64_t>(value));
}

void AppendBytes(std::string& out, unsigned field, std::string_view value) {
  AppendVarint(out, field << 3 | kBytes);
  AppendVarint(out, value.size());
  out.append(value);
}

void AppendText(std::string& out, unsigned field, std::string_view value) {
  if (!value.empty()) AppendBytes(out, field, value);
}

// Field number of each packet type's payload, and those of the payload's fields (0: none).
struct Layout {
  std::string_view name;
  unsigned payload;
  unsigned connect_id = 0;
  unsigned random = 0;
  unsigned error = 0;
  unsigned protocol = 0;
  unsigned address = 0;
  unsigned data = 0;
};
constexpr std::array<Layout, 7> kLayouts = {{
    {.name = "DIAL_REQ", .payload = 2, .random = 3, .protocol = 1, .address = 2},
    {.name = "DIAL_RSP", .payload = 3, .connect_id = 2, .random = 3, .error = 1},
    {.name = "CLOSE_REQ", .payload = 5, .connect_id = 1},
    {.name = "CLOSE_RSP", .payload = 6, .connect_id = 2, .error = 1},
    {.name = "DATA", .payload = 4, .connect_id = 1, .error = 2, .data = 3},
    {.name = "DIAL_CLS", .payload = 7, .random = 1},
    {.name = "DRAIN", .payload = 8},
}};

struct Field {
  unsigned number = 0;
  std::uint64_t value = 0;  // of a varint
  std::string_view bytes;   // of a string or message
};

// Reads a protobuf message field by field.
class FieldReader {
 public:
  explicit FieldReader(std::string_view rest) : rest_(rest) {}
  bool done() const { return rest_.empty(); }
  std::optional<Field> Next() {
    const auto key = Varint();
    if (!key || *key >> 3 == 0 || *key >> 32 != 0) return std::nullopt;
    Field field{.number = static_cast<unsigned>(*key >> 3)};
    switch (*key & 7) {
      case kVarint: {
        const auto value = Varint();
        if (!value) return std::nullopt;
        field.value = *value;
        return field;
      }
      case kBytes: {
        const auto size = Varint();
        if (!size || *size > rest_.size()) return std::nullopt;
        field.bytes = Take(*size);
        return field;
      }
      case kFixed64:
        return Skip(8) ? std::optional(field) : std::nullopt;
      case kFixed32:
        return Skip(4) ? std::optional(field) : std::nullopt;
      default:
        return std::nullopt;  // groups are not proto3
    }
  }

 private:
  std::string_view Take(std::size_t size) {
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  bool Skip(std::size_t size) {
    if (rest_.size() < size) return false;
    rest_.remove_prefix(size);
    return true;
  }
  std::optional<std::uint64_t> Varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) return std::nullopt;
      const auto byte = static_cast<std::uint8_t>(Take(1)[0]);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return std::nullopt;
  }
  std::string_view rest_;
};

bool ReadPayload(const Layout& layout, std::string_view payload, KonnectivityPacket& packet) {
  FieldReader fields(payload);
  while (!fields.done()) {
    const auto field = fields.Next();
    if (!field) return false;
    const unsigned number = field->number;
    if (number == layout.connect_id) packet.connect_id = static_cast<std::int64_t>(field->value);
    if (number == layout.random) packet.random = static_cast<std::int64_t>(field->value);
    if (number == layout.error) packet.error = field->bytes;
    if (number == layout.protocol) packet.protocol = field->bytes;
    if (number == layout.address) packet.address = field->bytes;
    if (number == layout.data) packet.data = field->bytes;
  }
  return true;
}

std::optional<KonnectivityPacket> DecodePacket(std::string_view message) {
  KonnectivityPacket packet;
  std::array<std::string_view, 9> payloads;
  FieldReader fields(message);
  while (!fields.done()) {
    const auto field = fields.Next();
    if (!field) return std::nullopt;
    if (field->number == 1) {
      if (field->value >= kLayouts.size()) return std::nullopt;
      packet.type = static_cast<KonnectivityPacketType>(field->value);
    } else if (field->number < payloads.size()) {
      payloads[field->number] = field->bytes;
    }
  }
  const Layout& layout = kLayouts[std::to_underlying(packet.type)];
  if (!ReadPayload(layout, payloads[layout.payload], packet)) return std::nullopt;
  return packet;
}

}  // namespace

std::string_view ToString(KonnectivityPacketType type) { return kLayouts[std::to_underlying(type)].name; }

std::string EncodeKonnectivityPacket(const KonnectivityPacket& packet) {
  const Layout& layout = kLayouts[std::to_underlying(packet.type)];
  std::string payload;
  if (layout.connect_id != 0) AppendInt(payload, layout.connect_id, packet.connect_id);
  if (layout.random != 0) AppendInt(payload, layout.random, packet.random);
  if (layout.error != 0) AppendText(payload, layout.error, packet.error);
  if (layout.protocol != 0) AppendText(payload, layout.protocol, packet.protocol);
  if (layout.address != 0) AppendText(payload, layout.address, packet.address);
  if (layout.data != 0) AppendText(payload, layout.data, packet.data);
  std::string message(kFrameBytes, '\0');
  AppendInt(message, 1, std::to_underlying(packet.type));
  AppendBytes(message, layout.payload, payload);
  const std::size_t size = message.size() - kFrameBytes;
  for (std::size_t i = 0; i < 4; ++i) message[1 + i] = static_cast<char>(size >> (24 - 8 * i));
  return message;
}

void KonnectivityPacketReader::Append(std::string_view bytes) {
  buffer_.erase(0, std::exchange(offset_, 0));
  buffer_.append(bytes);
}

Outcome<std::optional<KonnectivityPacket>, std::string> KonnectivityPacketReader::Next() {
  const std::string_view rest = std::string_view(buffer_).substr(offset_);
  if (rest.size() < kFrameBytes) return std::optional<KonnectivityPacket>();
  if (rest[0] != 0) return std::string("compressed gRPC message without an agreed encoding");
  std::size_t size = 0;
  for (std::size_t i = 1; i < kFrameBytes; ++i) size = size << 8 | static_cast<std::uint8_t>(rest[i]);
  if (size > kMessageBytesMax) return std::string("gRPC message larger than 4 MiB");
  if (rest.size() < kFrameBytes + size) return std::optional<KonnectivityPacket>();
  auto packet = DecodePacket(rest.substr(kFrameBytes, size));
  if (!packet) return std::string("gRPC message is not a konnectivity packet");
  offset_ += kFrameBytes + size;
  return packet;
}

}  // namespace keelson::http
