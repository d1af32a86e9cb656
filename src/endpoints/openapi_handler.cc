#include "endpoints/openapi_handler.h"

#include <string>
#include <utility>

#include "endpoints/answering.h"

namespace keelson::endpoints {

Handler OpenAPIHandler(std::shared_ptr<const apidocs::OpenAPIService> service, const base::Clock& clock) {
  return Answering([service = std::move(service), &clock](Exchange& exchange) -> http::Response {
    const http::Request& request = exchange.http;
    http::Response response;
    // Any method: upstream's handlers do not look at it.
    const std::string hash(exchange.query.Get("hash"));
    apidocs::OpenAPIService::Response answer =
        service->Serve({.path = request.path,
                        .hash = hash,
                        .accept = request.headers.Get("Accept"),
                        .if_none_match = request.headers.Get("If-None-Match"),
                        .if_modified_since = request.headers.Get("If-Modified-Since"),
                        .range = request.headers.Get("Range"),
                        .now = clock.Now()});
    response.status = answer.status;
    for (const auto& [name, value] : answer.headers) response.headers.Add(name, value);
    response.body = std::move(answer.body);
    return response;
  });
}

}  // namespace keelson::endpoints
