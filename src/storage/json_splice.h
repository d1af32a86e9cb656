// Changing metadata.resourceVersion in stored JSON text without parsing it into a tree.
#pragma once

#include <optional>
#include <string_view>

#include "base/shared_bytes.h"

namespace keelson::storage {

// Position of resourceVersion among metadata's members.
enum class MetadataOrder : std::uint8_t {
  kStruct,  // behind uid, as Go writes ObjectMeta
  kSorted,  // by key, as Go writes maps (custom resources)
};

// The same text with metadata.resourceVersion set ("" removes it). nullopt if the text is not an object with a metadata
// object. REQUIRES: the text is valid JSON, as compact as Go writes it.
std::optional<base::SharedBytes> SetJSONResourceVersion(std::string_view stored, std::string_view text,
                                                        MetadataOrder order);

}  // namespace keelson::storage
