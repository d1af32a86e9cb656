// OpenAPI fragments of a custom resource, written from the definition's stored bytes by streaming JSON to JSON: nothing
// is kept in memory between requests. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace keelson::schema::structural {

enum class OpenAPIVersion : std::uint8_t { kV2, kV3 };

// A served version of an established definition, as it is published. Views must outlive the call.
struct PublishedVersion {
  std::string_view group;
  std::string_view version;
  std::string_view kind;
  std::string_view list_kind;
  std::string_view plural;
  bool namespaced = true;
  bool status = false;
  bool scale = false;
  std::string_view schema;                          // JSON of openAPIV3Schema; "" for none
  std::vector<std::string_view> selectable_fields;  // JSONPaths with their leading dots
  bool preserve_unknown_fields = false;  // spec.preserveUnknownFields of an old definition: no schema is shown
};

// The name of the model: the reversed group, version and kind: com.example.stable.v1.CronTab.
std::string ModelName(const PublishedVersion& published);
std::string ListModelName(const PublishedVersion& published);

// Appends `"<model>":{...},"<list model>":{...}`: members of `definitions` (v2) or `components.schemas` (v3).
// False, with `out` unchanged, when the schema is not JSON or deeper than kDepthMax.
bool AppendModels(std::string& out, const PublishedVersion& published, OpenAPIVersion version);
}  // namespace keelson::schema::structural
