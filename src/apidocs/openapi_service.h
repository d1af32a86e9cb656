// /openapi/v2, /openapi/v3 and /openapi/v3/<key>: responses with their headers, independent of sockets. Knows no
// sockets. Documents of built-in groups are made at the first request and kept; those of dynamic sources are assembled
// from their fragments. Thread safety: const members from any thread.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apidocs/discovery_documents.h"
#include "apidocs/discovery_source.h"
#include "base/shared_bytes.h"

namespace keelson::apidocs {

class OpenAPIService {
 public:
  using Time = std::chrono::system_clock::time_point;
  // JSON of the source's v3 documents that is kept.
  static constexpr std::size_t kSourceDocumentBytesMax = std::size_t{16} * 1024 * 1024;

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

  // `source` may be null.
  OpenAPIService(std::vector<DiscoveryGroup> groups, IsServed served,
                 std::shared_ptr<const DiscoverySource> source = nullptr);
  ~OpenAPIService();

  Response Serve(const Request& request) const;  // 404 with no body for a path that is none of ours

 private:
  struct Document;

  Document& Make(Document& document, Time now) const;
  Response Root(const Request& request) const;
  // The v2 document with what the source adds.
  std::shared_ptr<Document> V2(Time now) const;
  // A document of the source; null when the key is none of its.
  std::shared_ptr<Document> FromSource(std::string_view key, Time now) const;
  void Keep(const std::shared_ptr<Document>& document) const;  // REQUIRES: mutex_ held
  Response Content(Document& document, const Request& request, Response response, bool protobuf) const;

  std::vector<DiscoveryGroup> groups_;
  IsServed served_;
  std::shared_ptr<const DiscoverySource> source_;
  std::unique_ptr<Document> v2_;  // of built-in groups
  mutable std::mutex mutex_;      // of what is below
  mutable std::shared_ptr<Document> whole_v2_;
  mutable std::uint64_t whole_v2_generation_ = 0;
  mutable std::map<std::string, std::shared_ptr<Document>, std::less<>> from_source_;  // those requested so far
  mutable std::size_t from_source_bytes_ = 0;                                          // of their JSON
  std::map<std::string, std::unique_ptr<Document>, std::less<>> v3_;                   // by key
};

// "Mon, 02 Jan 2006 15:04:05 GMT".
std::string HTTPDate(std::chrono::system_clock::time_point time, std::string_view zone = "GMT");

}  // namespace keelson::apidocs
