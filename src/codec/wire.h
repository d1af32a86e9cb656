// The protobuf wire: varints, tags, lengths. For code that reads messages without decoding them.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace keelson::codec {

enum class WireType : std::uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5
};

// Reads forward through a message; every function is false when the bytes run out or make no sense.
class WireReader {
 public:
  WireReader() = default;
  explicit WireReader(std::string_view message) : at_(message.data()), end_(message.data() + message.size()) {}

  bool AtEnd() const { return at_ >= end_; }
  const char* at() const { return at_; }
  std::string_view rest() const { return {at_, static_cast<std::size_t>(end_ - at_)}; }

  bool Varint(std::uint64_t& out) {
    if (at_ < end_ && static_cast<unsigned char>(*at_) < 0x80) [[likely]] {
      out = static_cast<unsigned char>(*at_++);
      return true;
    }
    return VarintSlow(out);
  }

  // A field's number and wire type. Numbers are below 2^29.
  bool Tag(std::uint32_t& number, WireType& type) {
    std::uint64_t tag = 0;
    if (!Varint(tag) || tag > 0xffffffffu) return false;
    number = static_cast<std::uint32_t>(tag >> 3);
    type = static_cast<WireType>(tag & 7);
    return number != 0;
  }

  bool Bytes(std::string_view& out) {
    std::uint64_t size = 0;
    if (!Varint(size) || size > static_cast<std::uint64_t>(end_ - at_)) return false;
    out = {at_, static_cast<std::size_t>(size)};
    at_ += size;
    return true;
  }

  bool Fixed64(std::uint64_t& out) {
    if (end_ - at_ < 8) return false;
    std::memcpy(&out, at_, 8);
    at_ += 8;
    return true;
  }

  // Passes over a field's value. Groups are passed over too, as long as they are closed.
  bool Skip(WireType type) {
    int open = 0;
    for (;;) {
      std::uint64_t ignored = 0;
      std::string_view bytes;
      switch (type) {
        case WireType::kVarint:
          if (!Varint(ignored)) return false;
          break;
        case WireType::kFixed64:
          if (!Fixed64(ignored)) return false;
          break;
        case WireType::kBytes:
          if (!Bytes(bytes)) return false;
          break;
        case WireType::kFixed32:
          if (end_ - at_ < 4) return false;
          at_ += 4;
          break;
        case WireType::kStartGroup:
          ++open;
          break;
        case WireType::kEndGroup:
          if (--open < 0) return false;
          break;
        default:
          return false;
      }
      if (open == 0) return true;
      std::uint32_t number = 0;
      if (!Tag(number, type)) return false;
    }
  }

 private:
  bool VarintSlow(std::uint64_t& out) {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ >= end_) return false;
      const auto byte = static_cast<unsigned char>(*at_++);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) {
        out = value;
        return true;
      }
    }
    return false;  // longer than ten bytes
  }

  const char* at_ = nullptr;
  const char* end_ = nullptr;
};

}  // namespace keelson::codec
