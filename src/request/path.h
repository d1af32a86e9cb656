// The grammar of API paths below a group version:
// [watch|proxy/][namespaces/{namespace}/]{resource}[/{name}[/{subresource}...]].
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace keelson::request {

// The word that a namespace follows. It belongs to the grammar: which kinds are served does not matter.
inline constexpr std::string_view kNamespacesSegment = "namespaces";

// The number of segments before the resource: 2 where namespaces/{namespace} is a prefix, 0 otherwise. The paths
// namespaces/{name}, namespaces/{name}/status and namespaces/{name}/finalize name the namespace itself.
inline std::size_t NamespacePrefix(std::span<const std::string_view> segments) {
  const bool prefix =
      segments.size() > 2 && segments[0] == kNamespacesSegment && segments[2] != "status" && segments[2] != "finalize";
  return prefix ? 2 : 0;
}

}  // namespace keelson::request
