// A protobuf message under construction, and what gnostic's OpenAPIv2.proto and OpenAPIv3.proto have in common. Inner
// part of the OpenAPI documents' protobuf form.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "codec/yaml.h"
#include "object/value.h"

namespace keelson::apidocs {

class Message {
 public:
  void Text(int field, std::string_view text) {
    if (!text.empty()) Bytes(field, text);
  }
  void Bytes(int field, std::string_view bytes) {
    Varint(static_cast<std::uint64_t>(field) << 3 | 2);
    Varint(bytes.size());
    out_ += bytes;
  }
  void Sub(int field, const Message& message) { Bytes(field, message.out_); }
  void Bool(int field, bool value) {
    if (value) One(field, 1);
  }
  // Also where the value is zero, as the member of a oneof.
  void One(int field, std::uint64_t value) {
    Varint(static_cast<std::uint64_t>(field) << 3);
    Varint(value);
  }
  void Double(int field, double value) {
    Varint(static_cast<std::uint64_t>(field) << 3 | 1);
    char bytes[8];
    std::memcpy(bytes, &value, sizeof(bytes));
    out_.append(bytes, sizeof(bytes));
  }
  void Texts(int field, const Value& list) {
    for (const Value& item : list.items()) Bytes(field, item.as_string());
  }
  const std::string& bytes() const { return out_; }

 private:
  void Varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }

  std::string out_;
};

inline Message Named(std::string_view name, const Message& value) {
  Message named;
  named.Text(1, name);
  named.Sub(2, value);
  return named;
}

inline Message Wrapped(int field, const Message& value) {
  Message wrapped;
  wrapped.Sub(field, value);
  return wrapped;
}

// Any: the value as YAML.
inline Message Any(const Value& value) {
  std::string yaml;
  codec::EncodeYAML(value, yaml);
  Message any;
  any.Text(2, yaml);
  return any;
}

inline void Extensions(Message& out, int field, const Value& value) {
  for (const object::Member& member : value.members()) {
    if (member.key.starts_with("x-")) out.Sub(field, Named(member.key, Any(member.value)));
  }
}

}  // namespace keelson::apidocs
