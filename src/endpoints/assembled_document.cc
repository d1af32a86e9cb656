#include "endpoints/assembled_document.h"

#include "codec/json.h"
#include "codec/protobuf.h"
#include "endpoints/page.h"
#include "endpoints/responses.h"

namespace keelson::endpoints {

AssembledDocument::AssembledDocument(std::string json, const schema::Struct& type, std::string api_version,
                                     std::string kind)
    : json_(base::SharedBytes::FromString(std::move(json) + "\n")),
      type_(type),
      api_version_(std::move(api_version)),
      kind_(std::move(kind)) {}

base::SharedBytes AssembledDocument::Get(Format format, bool pretty) const {
  if (format == Format::kJSON && !pretty) return json_;
  if (format == Format::kJSON) {
    std::string out;
    codec::IndentJSON(json_.view().substr(0, json_.size() - 1), out);
    return base::SharedBytes::FromString(std::move(out));
  }
  std::lock_guard lock(mutex_);
  base::SharedBytes& made = format == Format::kYAML ? yaml_ : protobuf_;
  if (!made.empty()) return made;
  base::Arena arena;
  auto decoded = codec::DecodeJSON(arena, json_.view(), type_);
  if (!decoded.ok()) return json_;
  if (format == Format::kYAML) {
    made = base::SharedBytes::FromString(ToYAML(decoded->value, type_));
  } else {
    std::string raw, out;
    codec::EncodeProtoMessage(decoded->value, type_, raw);
    codec::EncodeEnvelope(api_version_, kind_, raw, out);
    made = base::SharedBytes::FromString(std::move(out));
  }
  return made;
}

http::Response AssembledDocument::Respond(const Exchange& exchange) const {
  auto media = NegotiateOutput(exchange.http, exchange.query, {});
  if (!media.ok()) return StatusResponse(exchange, media.error());
  http::Response response;
  response.headers.Add("Content-Type", MediaType(media->format));
  base::SharedBytes body = Get(media->format, media->pretty);
  exchange.trace.SerializeAs(exchange, "", *media, body.size());
  response.body = std::move(body);
  return response;
}

http::Response AssembledDocument::RespondTagged(const Exchange& exchange, Format format, std::string_view parameters,
                                                const std::string& etag) const {
  Page page{.media_type = std::string(MediaType(format)) + std::string(parameters), .etag = etag};
  page.headers.Add("Vary", "Accept");
  page.headers.Add("Cache-Control", "public");
  // YAML and protobuf are made on demand: not for a client that needs no body.
  if (exchange.http.headers.Get("If-None-Match") != etag) page.body = Get(format, false);
  return PageResponse(exchange, std::move(page));
}

}  // namespace keelson::endpoints
