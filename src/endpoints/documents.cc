#include "endpoints/documents.h"

#include <array>

#include "codec/json.h"
#include "codec/protobuf.h"
#include "endpoints/api_group_version.h"
#include "endpoints/negotiation.h"
#include "endpoints/responses.h"

namespace keelson::endpoints {
namespace {

constexpr std::array<std::string_view, 3> kProduces = {"application/json", "application/yaml",
                                                       "application/vnd.kubernetes.protobuf"};

struct Encoded {
  base::SharedBytes json, pretty, yaml, protobuf;
};

}  // namespace

Handler NegotiatedDocument(base::Arena&, Value document, const schema::Struct& type, std::string_view kind,
                           bool any_method) {
  auto encoded = std::make_shared<Encoded>();
  std::string json, pretty, protobuf;
  codec::EncodeJSON(document, type, json);
  codec::IndentJSON(json, pretty);
  std::string raw;
  codec::EncodeProtoMessage(document, type, raw);
  codec::EncodeEnvelope("v1", kind, raw, protobuf);
  encoded->json = base::SharedBytes(json + "\n");
  encoded->yaml = base::SharedBytes(ToYAML(document, type));
  encoded->pretty = base::SharedBytes(pretty);
  encoded->protobuf = base::SharedBytes(protobuf);
  return [encoded, any_method](ExchangePtr exchange) -> Awaitable<http::Response> {
    if (exchange->http.method != "GET" && !any_method) co_return NoMethod(*exchange);
    if (auto refused = CheckAccept(*exchange, kProduces)) co_return std::move(*refused);
    auto media = NegotiateOutput(exchange->http, exchange->query, {});
    if (!media.ok()) co_return StatusResponse(*exchange, media.error());
    http::Response response;
    response.headers.Add("Content-Type", MediaType(media->format));
    switch (media->format) {
      case Format::kYAML:
        response.body = encoded->yaml;
        break;
      case Format::kProtobuf:
        response.body = encoded->protobuf;
        break;
      default:
        response.body = media->pretty ? encoded->pretty : encoded->json;
    }
    co_return response;
  };
}

}  // namespace keelson::endpoints
