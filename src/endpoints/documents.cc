#include "endpoints/documents.h"

#include <array>

#include "codec/cbor.h"
#include "codec/json.h"
#include "codec/protobuf.h"
#include "endpoints/answering.h"
#include "endpoints/api_group_version.h"
#include "endpoints/audit_hooks.h"
#include "endpoints/negotiation.h"
#include "endpoints/responses.h"

namespace keelson::endpoints {
namespace {

constexpr std::array<std::string_view, 4> kProduces = {"application/json", "application/yaml",
                                                       "application/vnd.kubernetes.protobuf", "application/cbor"};

struct Encoded {
  base::SharedBytes json, pretty, yaml, protobuf, cbor;
};

}  // namespace

Handler NegotiatedDocument(base::Arena& arena, Value document, const schema::Struct& type, std::string_view kind,
                           DocumentOptions options) {
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
  if (options.cbor) {
    std::string cbor;
    codec::EncodeCBOR(arena, document, type, cbor);
    encoded->cbor = base::SharedBytes(cbor);
  }
  return Answering([encoded, options](Exchange& exchange) -> http::Response {
    if (!options.any_method) {
      if (exchange.http.method != "GET") return NoMethod(exchange);
      const auto produces = std::span(kProduces).first(kProduces.size() - (options.cbor ? 0 : 1));
      if (auto refused = CheckAccept(exchange, produces)) return std::move(*refused);
    }
    auto media = NegotiateOutput(exchange.http, exchange.query, {.allow_cbor = options.cbor});
    if (!media.ok()) return StatusResponse(exchange, media.error());
    AuditResponseJSON(exchange, encoded->json);
    http::Response response;
    response.headers.Add("Content-Type", MediaType(media->format));
    switch (media->format) {
      case Format::kYAML:
        response.body = encoded->yaml;
        break;
      case Format::kProtobuf:
        response.body = encoded->protobuf;
        break;
      case Format::kCBOR:
        response.body = encoded->cbor;
        break;
      default:
        response.body = media->pretty ? encoded->pretty : encoded->json;
    }
    exchange.trace.SerializeAs(exchange, "", *media, std::get<base::SharedBytes>(response.body).size());
    return response;
  });
}

}  // namespace keelson::endpoints
