#include "auth/oidc/http_fetcher.h"

#include "base/go_url.h"
#include "base/strings.h"
#include "base/url.h"
#include "webhook/rest_client.h"

namespace keelson::auth {

Awaitable<Outcome<FetchedDocument, std::string>> HTTPFetcher::Get(std::string url, std::string bearer_token) {
  const auto parsed = base::ParseURL(url);
  if (!parsed.ok()) co_return parsed.error();
  if (parsed->scheme != "https") co_return "Get " + base::GoQuote(url) + ": unsupported protocol scheme";
  webhook::RESTConfig config;
  config.host = parsed->scheme + "://" + parsed->host + parsed->EscapedPath();
  config.ca_pem = ca_pem_;
  config.dialer = dialer_;
  config.bearer_token = std::move(bearer_token);
  config.timeout = std::chrono::milliseconds(0);  // would be sent as a query
  auto client = webhook::RESTClient::New(transport_, std::move(config));
  if (!client.ok()) co_return client.error();
  webhook::Request request;
  request.method = "GET";
  request.query = base::Query(parsed->raw_query).pairs();
  request.deadline = std::chrono::steady_clock::now() + kTimeout;
  request.response_bytes_max = kDocumentBytesMax;
  auto response = co_await (*client)->Do(std::move(request));
  if (!response.ok()) co_return response.error().message;
  co_return FetchedDocument{.status = response->status,
                            .cache_control = std::string(response->headers.Get("Cache-Control")),
                            .body = std::string(response->body.view())};
}

}  // namespace keelson::auth
