// OpenAPI in the protobuf form that client-go requests: gnostic's openapi.v2.Document and openapi.v3.Document.
#pragma once

#include <string>
#include <string_view>

namespace keelson::apidocs {

// The same document as `json`, which is one of ours (OpenAPIv2Document); "" if it is not JSON.
std::string OpenAPIv2Protobuf(std::string_view json);
// The same of OpenAPIv3Document.
std::string OpenAPIv3Protobuf(std::string_view json);

}  // namespace keelson::apidocs
