// Property: a decoded value encodes, and the result decodes and encodes to the same bytes. The first byte chooses the
// type.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "codec/json.h"
#include "codec/protobuf.h"

using namespace keelson;

namespace {
const schema::Struct* Choose(std::uint8_t choice) {
  static const schema::Struct* const kTypes[] = {
      nullptr,
      schema::FindKind("", "v1", "Pod"),
      schema::FindKind("", "v1", "Secret"),
      schema::FindKind("", "v1", "Service"),
      schema::FindKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
      schema::FindKind("coordination.k8s.io", "v1", "Lease"),
      schema::FindKind("apps", "v1", "ControllerRevision"),
  };
  return kTypes[choice % std::size(kTypes)];
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const schema::Struct* type = Choose(data[0]);
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  base::Arena arena;
  IgnoreError(codec::FindTypeMeta(arena, text), "only that it does not crash");
  const auto decoded = type == nullptr ? codec::DecodeJSON(arena, text, {.strict = true})
                                       : codec::DecodeJSON(arena, text, *type, {.strict = true});
  if (!decoded.ok()) {
    KS_CHECK(!decoded.error().message.empty());
    return 0;
  }
  KS_CHECK(codec::JSONSyntaxError(text).empty());
  std::string once, twice, pretty;
  type == nullptr ? codec::EncodeJSON(decoded->value, once) : codec::EncodeJSON(decoded->value, *type, once);
  const auto again = type == nullptr ? codec::DecodeJSON(arena, once) : codec::DecodeJSON(arena, once, *type);
  KS_CHECK(again.ok());
  type == nullptr ? codec::EncodeJSON(again->value, twice) : codec::EncodeJSON(again->value, *type, twice);
  KS_CHECK(once == twice);
  codec::IndentJSON(once, pretty);
  KS_CHECK(codec::JSONSyntaxError(pretty).empty());
  if (type == nullptr) return 0;
  std::string proto, proto_again;
  codec::EncodeProtoMessage(decoded->value, *type, proto);
  const auto from_proto = codec::DecodeProtoMessage(arena, proto, *type);
  if (!from_proto.ok()) return 0;  // a year that protobuf carries and JSON does not
  codec::EncodeProtoMessage(from_proto->value, *type, proto_again);
  KS_CHECK(proto == proto_again);
  return 0;
}
