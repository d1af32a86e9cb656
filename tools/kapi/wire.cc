// Protobuf wire bytes of fields, computed at build time so that the server only copies them.
#include <algorithm>

#include "model.h"

namespace kapi {
namespace {

constexpr int kVarint = 0, kFixed64 = 1, kBytes = 2;

std::string Varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out += static_cast<char>(value);
}

bool IsScalar(const TypeRef& type, std::string_view word) {
  return type.shape == TypeRef::Shape::kScalar && type.name == word;
}

int WireTypeOf(const TypeRef& type) {
  if (type.shape == TypeRef::Shape::kList && !type.wrapped) return WireTypeOf(type.element[0]);
  if (IsScalar(type, "bool") || IsScalar(type, "int32") || IsScalar(type, "int64")) return kVarint;
  return IsScalar(type, "double") ? kFixed64 : kBytes;
}

// The value of a field that is not there, without its tag.
std::string ZeroValue(const Model& model, const TypeRef& type) {
  if (type.shape == TypeRef::Shape::kNamed) {
    const PackageDef* package = model.Find(type.package);
    const std::string message = ZeroMessage(model, package->types[package->TypeIndex(type.name)]).bytes;
    return Varint(message.size()) + message;
  }
  if (type.name == "double") return std::string(8, '\0');
  // metav1.Duration has its nanoseconds in field 1, Quantity its text, IntOrString a type, a number and a text.
  if (type.name == "duration") return std::string("\x02\x08\x00", 3);
  if (type.name == "quantity") return std::string("\x03\x0a\x01\x30", 4);
  if (type.name == "int-or-string") return std::string("\x06\x08\x00\x10\x00\x1a\x00", 7);
  return std::string(1, '\0');  // the number 0, or nothing of a length of 0
}

}  // namespace

std::string WireTag(const FieldDef& field) {
  return Varint(static_cast<std::uint64_t>(field.number) << 3 | static_cast<std::uint64_t>(WireTypeOf(field.type)));
}

std::vector<std::size_t> WireOrder(const TypeDef& type) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < type.fields.size(); ++i) {
    if (type.fields[i].number != 0) order.push_back(i);
  }
  std::ranges::sort(order, {}, [&](std::size_t i) { return type.fields[i].number; });
  return order;
}

ZeroImage ZeroMessage(const Model& model, const TypeDef& type) {
  ZeroImage image;
  for (const std::size_t i : WireOrder(type)) {
    const FieldDef& field = type.fields[i];
    image.begin.push_back(image.bytes.size());
    // gogo writes everything but nil pointers, lists, maps and byte slices; of alternatives only the bool is no
    // pointer.
    const bool nil = field.pointer || field.type.shape == TypeRef::Shape::kList ||
                     field.type.shape == TypeRef::Shape::kMap || IsScalar(field.type, "bytes") ||
                     (type.alternatives() && !IsScalar(field.type, "bool"));
    if (!nil) image.bytes += WireTag(field) + ZeroValue(model, field.type);
  }
  image.begin.push_back(image.bytes.size());
  return image;
}

}  // namespace kapi
