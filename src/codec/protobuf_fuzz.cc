// Properties: encoding a decoded value is stable, and the transcoder writes the same as decoding and encoding.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "codec/json.h"
#include "codec/protobuf.h"
#include "codec/transcode.h"

using namespace keelson;

namespace {
const schema::Struct& Choose(std::uint8_t choice) {
  static const schema::Struct* const kTypes[] = {
      schema::FindKind("", "v1", "Pod"),
      schema::FindKind("", "v1", "Secret"),
      schema::FindKind("", "v1", "Service"),
      schema::FindKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
      schema::FindKind("coordination.k8s.io", "v1", "Lease"),
      schema::FindKind("apps", "v1", "ControllerRevision"),
      schema::FindKind("authentication.k8s.io", "v1", "TokenReview"),
  };
  return *kTypes[choice % std::size(kTypes)];
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const schema::Struct& type = Choose(data[0]);
  const std::string_view message(reinterpret_cast<const char*>(data) + 1, size - 1);
  base::Arena arena;
  std::string envelope;
  codec::EncodeEnvelope("v1", "X", message, envelope);
  IgnoreError(codec::DecodeProto(arena, message, type), "only that it does not crash");
  IgnoreError(codec::ReadMetadata(envelope), "only that it does not crash");
  const codec::FieldReader reader(type, {"metadata.name", "spec.nodeName", "status.phase", "spec.hostNetwork"});
  IgnoreError(reader.Read(envelope, [](std::size_t, std::string_view) {}), "only that it does not crash");

  std::string transcoded;
  const bool transcodes = codec::TranscodeMessage(message, type, "", "", transcoded).ok();
  const auto decoded = codec::DecodeProtoMessage(arena, message, type);
  if (!decoded.ok()) return 0;
  KS_CHECK(transcodes);
  std::string once, twice, json;
  codec::EncodeProtoMessage(decoded->value, type, once);
  const auto again = codec::DecodeProtoMessage(arena, once, type);
  KS_CHECK(again.ok());
  codec::EncodeProtoMessage(again->value, type, twice);
  KS_CHECK(once == twice);
  // Canonical bytes transcode to what the codecs write.
  transcoded.clear();
  KS_CHECK(codec::TranscodeMessage(once, type, "", "", transcoded).ok());
  codec::EncodeJSON(again->value, type, json);
  KS_CHECK(json == transcoded);
  return 0;
}
