// OpenAPI model of the API, independent of the OpenAPI version (2 or 3): operations by path, and the definitions they
// refer to. Made from the tables.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apidocs/discovery_documents.h"
#include "schema/schema.h"

namespace keelson::apidocs {

struct OpenAPIParameter {
  std::string name;
  std::string in;         // query, path
  std::string_view type;  // string, boolean, integer
  std::string description;
  bool required() const { return in == "path"; }
  auto operator<=>(const OpenAPIParameter&) const = default;
};

// A definition's name, or "" for a bare string.
using OpenAPISchema = std::string;

struct OpenAPIOperation {
  std::string method;  // get, put, ...
  std::string id;
  std::string tag;
  std::string description;
  std::string action;                     // x-kubernetes-action; "" for documents
  std::string_view group, version, kind;  // of x-kubernetes-group-version-kind, where there is an action
  std::vector<OpenAPIParameter> parameters;
  std::vector<std::string_view> consumes;
  std::vector<std::string_view> produces;
  std::optional<OpenAPISchema> body;
  bool body_required = false;
  std::vector<std::pair<int, OpenAPISchema>> responses;  // 401 is everywhere
};

using OpenAPIPaths = std::map<std::string, std::vector<OpenAPIOperation>>;

// The name of a type's definition: io.k8s.api.core.v1.Pod.
std::string DefinitionName(const schema::Struct& type);
// The operations of one group version.
OpenAPIPaths GroupVersionPaths(const schema::Package& package, const IsServed& served);
// A version of a custom resource, as it is published. Views must outlive the call.
struct OpenAPICustomResource {
  std::string_view group, version, kind, plural;
  OpenAPISchema model, list_model;
  bool namespaced = true;
  bool status = false;
  bool scale = false;
};
// Its operations. Unlike built-in kinds' they have no /watch/ paths and speak JSON and YAML only; deletecollection
// takes list options only.
OpenAPIPaths CustomResourcePaths(const OpenAPICustomResource& resource);
// The discovery and other documents: by the key that OpenAPI v3 lists them under ("api", "apis/apps", "version").
std::map<std::string, OpenAPIPaths> DocumentPaths(std::span<const DiscoveryGroup> groups);
// The parameters that all operations of a path share, sorted; they are taken out of the operations.
std::vector<OpenAPIParameter> TakeCommonParameters(std::vector<OpenAPIOperation>& operations);

}  // namespace keelson::apidocs
