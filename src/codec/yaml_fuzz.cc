// Property: converted text is valid JSON, and survives a round trip through YAML.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "codec/json.h"
#include "codec/yaml.h"

using namespace keelson;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  base::Arena arena;
  std::string json;
  const auto strict = codec::YAMLToJSON(arena, {reinterpret_cast<const char*>(data), size}, {.strict = true}, json);
  if (!strict.ok()) return 0;
  KS_CHECK(codec::JSONSyntaxError(json).empty());
  const auto decoded = codec::DecodeJSON(arena, json);
  if (!decoded.ok()) return 0;  // a number beyond float64
  std::string yaml, sorted, json_again, sorted_again;
  codec::EncodeYAML(decoded->value, yaml);
  codec::EncodeJSON(decoded->value, sorted);
  const auto back = codec::YAMLToJSON(arena, yaml, {.strict = true}, json_again);
  KS_CHECK(back.ok() && back->empty());
  const auto decoded_again = codec::DecodeJSON(arena, json_again);
  KS_CHECK(decoded_again.ok());
  codec::EncodeJSON(decoded_again->value, sorted_again);
  KS_CHECK(sorted == sorted_again);
  return 0;
}
