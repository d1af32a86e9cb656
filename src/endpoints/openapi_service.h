// /openapi/v2, /openapi/v3 and /openapi/v3/<key>: which answer a request gets, with its headers. Knows no sockets.
// Documents are made when first asked for and kept. Thread safety: const members from any thread.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/shared_bytes.h"
#include "endpoints/discovery_documents.h"

namespace keelson::endpoints {

class OpenAPIService {
 public:
  using Time = std::chrono::system_clock::time_point;

  struct Request {
    std::string_view path;  // /openapi/v3/apis/apps/v1
    std::string_view hash;  // of the query, "" when absent
    std::string_view accept;
    std::string_view if_none_match;
    std::string_view if_modified_since;
    std::string_view range;
    Time now;
  };
  struct Response {
    int status = 200;
    std::vector<std::pair<std::string, std::string>> headers;
    base::SharedBytes body;
  };

  OpenAPIService(std::vector<DiscoveryGroup> groups, IsServed served);
  ~OpenAPIService();

  Response Serve(const Request& request) const;  // 404 with no body for a path that is none of ours

 private:
  struct Document;

  Document& Make(Document& document, Time now) const;
  Response Root(const Request& request) const;
  Response Content(Document& document, const Request& request, Response response, bool protobuf) const;

  std::vector<DiscoveryGroup> groups_;
  IsServed served_;
  std::unique_ptr<Document> v2_;
  std::map<std::string, std::unique_ptr<Document>, std::less<>> v3_;  // by key
};

// "Mon, 02 Jan 2006 15:04:05 GMT".
std::string HTTPDate(std::chrono::system_clock::time_point time, std::string_view zone = "GMT");

}  // namespace keelson::endpoints
