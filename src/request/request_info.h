// RequestInfo (upstream's): verb, group, resource, namespace and name, from the method and URL alone. Authorization is
// based on it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/outcome.h"
#include "base/url.h"

namespace keelson::request {

struct RequestInfo {
  bool is_resource_request = false;
  std::string path;
  std::string
      verb;  // get, list, watch, create, update, patch, delete, deletecollection, proxy; lower-case method otherwise
  std::string api_prefix;  // api, apis
  std::string api_group;
  std::string api_version;
  std::string name_space;
  std::string resource;
  std::string subresource;
  std::string name;
  bool named = false;          // the path has a name; one that a field selector pins is not the path's
  std::size_t part_count = 0;  // resource, name, subresource, and what follows
  std::string rest;            // what follows the subresource, without the slash between them
  std::string field_selector;  // raw, for list, watch and deletecollection
  std::string label_selector;
  bool namespaced = false;  // the path has namespaces/{namespace} before the resource
  bool prefixed = false;    // the path has the verb watch or proxy before the resource

  // Streams and tunnels: no deadline, not counted as in flight.
  bool IsLongRunning() const;
};

// The error is the text after "failed to create RequestInfo: ".
Outcome<RequestInfo, std::string> NewRequestInfo(std::string_view method, std::string_view path,
                                                 const base::Query& query);

// Boolean query values: only "0" and "false" (any case) are false.
bool ParseQueryBool(std::string_view value);

}  // namespace keelson::request
