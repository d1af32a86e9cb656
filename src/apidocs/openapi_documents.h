// The OpenAPI documents, v2 and v3, as compact JSON. Pure functions of the tables; making one takes milliseconds, so
// the caller keeps what it made. The ETag of a document is ETagOf(its text).
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "apidocs/discovery_documents.h"
#include "apidocs/openapi_model.h"

namespace keelson::apidocs {

inline constexpr std::string_view kOpenAPIVersion = "1.36";

// The keys of /openapi/v3, as in paths: "api", "api/v1", "apis/apps/v1", "version".
std::vector<std::string> OpenAPIv3Keys(std::span<const DiscoveryGroup> groups);
// One of them; "" for a key that is not there.
std::string OpenAPIv3Document(std::string_view key, std::span<const DiscoveryGroup> groups,
                              const IsServed& served = {});
// /openapi/v3 itself, from the ETags (with their quotes) of the documents.
// `others`: keys and server relative URLs of documents that are not made here; ours win.
std::string OpenAPIv3Root(const std::map<std::string, std::string>& etags,
                          const std::vector<std::pair<std::string, std::string>>& others = {});
// Appends `,"<path>":{...}` for each path of the resource. All parameters that it refers to are in the v2 document.
void AppendCustomResourcePathsV2(std::string& out, const OpenAPICustomResource& resource);
// The document of a group version of custom resources; `models` are the members of its components.schemas for their
// kinds, to which the types that they and the operations need are added.
std::string CustomResourceDocumentV3(std::span<const OpenAPICustomResource> resources, std::string_view models);
std::string OpenAPIv2Document(std::span<const DiscoveryGroup> groups, const IsServed& served = {});

}  // namespace keelson::apidocs
