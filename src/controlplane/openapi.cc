#include "controlplane/openapi.h"

#include <ctime>
#include <map>
#include <mutex>

#include "base/strings.h"
#include "controlplane/served_groups.h"
#include "endpoints/discovery_documents.h"
#include "endpoints/negotiation.h"
#include "endpoints/openapi_documents.h"
#include "endpoints/responses.h"
#include "endpoints/sources.h"

namespace keelson::controlplane {
namespace {

using endpoints::ExchangePtr;

constexpr std::size_t kGzipMin = 1400;  // bytes; upstream's gzip wrapper of /openapi/v2

std::string HTTPDate(std::time_t time, bool utc_name) {
  char text[64];
  std::tm parts{};
  gmtime_r(&time, &parts);
  std::strftime(text, sizeof(text), utc_name ? "%a, %d %b %Y %H:%M:%S UTC" : "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return text;
}

struct Document {
  base::SharedBytes body;
  std::string etag;
};

// Documents by key, made once. Thread safety: all members from any thread.
class Documents {
 public:
  explicit Documents(const server::GenericAPIServer& server) : served_(server), made_at_(HTTPDate(std::time(nullptr), false)) {}

  const std::string& made_at() const { return made_at_; }

  const Document& V2() {
    std::lock_guard lock(mutex_);
    if (v2_.body.empty()) v2_ = Make(endpoints::OpenAPIv2Document(served_.groups(), served_.is_served()));
    return v2_;
  }

  // Null for a key that is not there.
  const Document* V3(const std::string& key) {
    std::lock_guard lock(mutex_);
    return FindV3(key);
  }

  base::SharedBytes Root() {
    std::lock_guard lock(mutex_);
    if (root_.empty()) {
      std::map<std::string, std::string> etags;
      for (const auto& key : endpoints::OpenAPIv3Keys(served_.groups())) etags[key] = FindV3(key)->etag;
      root_ = base::SharedBytes::FromString(endpoints::OpenAPIv3Root(etags));
    }
    return root_;
  }

 private:
  static Document Make(std::string text) {
    Document document;
    document.etag = endpoints::ETagOf(text);
    document.body = base::SharedBytes::FromString(std::move(text));
    return document;
  }

  const Document* FindV3(const std::string& key) {
    if (const auto found = v3_.find(key); found != v3_.end()) return &found->second;
    std::string text = endpoints::OpenAPIv3Document(key, served_.groups(), served_.is_served());
    if (text.empty()) return nullptr;
    return &v3_.emplace(key, Make(std::move(text))).first->second;
  }

  const ServedGroups served_;
  const std::string made_at_;
  std::mutex mutex_;
  Document v2_;
  std::map<std::string, Document> v3_;
  base::SharedBytes root_;
};

// True when one of the clauses takes JSON; the protobuf forms of OpenAPI are not built.
bool AcceptsJSON(const http::Request& request) {
  const std::string_view header = request.headers.Get("Accept");
  if (header.empty()) return true;
  for (const auto& clause : endpoints::ParseAccept(header)) {
    if (clause.type == "*" || (clause.type == "application" && (clause.subtype == "json" || clause.subtype == "*"))) return true;
  }
  return false;
}

http::Response Empty(int status) {
  http::Response response;
  response.status = status;
  return response;
}

// A document with its validators; 304 where the client has it already.
http::Response Serve(const http::Request& request, const Document& document, const std::string& made_at, bool vary_encoding) {
  http::Response response;
  response.headers.Add("ETag", document.etag);
  response.headers.Add("Last-Modified", made_at);
  if (vary_encoding) response.headers.Add("Vary", "Accept-Encoding");
  response.headers.Add("Vary", "Accept");
  if (request.headers.Get("If-None-Match") == document.etag) {
    response.status = 304;
    return response;
  }
  response.headers.Add("Content-Type", "application/json");
  if (vary_encoding && document.body.size() >= kGzipMin && endpoints::AcceptsGzip(request)) {
    response.headers.Add("Content-Encoding", "gzip");
    response.body = endpoints::NewGzipSource(endpoints::NewBytesSource(document.body));
  } else {
    if (vary_encoding) response.headers.Add("Accept-Ranges", "bytes");
    response.body = document.body;
  }
  return response;
}

Awaitable<http::Response> ServeV3(std::shared_ptr<Documents> documents, ExchangePtr exchange) {
  const std::string key = exchange->http.path.substr(std::string_view("/openapi/v3/").size());
  const Document* document = documents->V3(key);
  if (document == nullptr) co_return Empty(404);
  if (!AcceptsJSON(exchange->http)) co_return Empty(406);
  const std::string_view hash = exchange->query.Get("hash");
  const std::string current = document->etag.substr(1, document->etag.size() - 2);
  if (!hash.empty() && hash != current) {
    http::Response moved = Empty(301);
    moved.headers.Add("Location", "/openapi/v3/" + key + "?hash=" + current);
    moved.headers.Add("Content-Type", "application/json");
    co_return moved;
  }
  http::Response response = Serve(exchange->http, *document, documents->made_at(), false);
  if (!hash.empty()) {
    constexpr std::time_t kYear = 365 * 24 * 3600;
    response.headers.Add("Cache-Control", "public, immutable");
    response.headers.Add("Expires", HTTPDate(std::time(nullptr) + kYear, true));
  }
  co_return response;
}

}  // namespace

void InstallOpenAPI(server::GenericAPIServer& server) {
  auto documents = std::make_shared<Documents>(server);
  server.mux().Handle("/openapi/v2", [documents](ExchangePtr exchange) -> Awaitable<http::Response> {
    if (!AcceptsJSON(exchange->http)) co_return Empty(406);
    co_return Serve(exchange->http, documents->V2(), documents->made_at(), true);
  });
  const endpoints::Handler root = [documents](ExchangePtr) -> Awaitable<http::Response> {
    http::Response response;
    response.headers.Add("Content-Type", "text/plain; charset=utf-8");
    response.headers.Add("Last-Modified", HTTPDate(std::time(nullptr), false));
    response.body = documents->Root();
    co_return response;
  };
  server.mux().Handle("/openapi/v3", root);
  server.mux().HandlePrefix("/openapi/v3/", [documents](ExchangePtr exchange) { return ServeV3(documents, std::move(exchange)); });
}

}  // namespace keelson::controlplane
