// Content negotiation: the media type a client accepts and the one it sent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/url.h"
#include "http/message.h"
#include "meta/status.h"

namespace keelson::endpoints {

enum class Format : std::uint8_t { kJSON, kYAML, kProtobuf, kCBOR };
std::string_view MediaType(Format format);
constexpr std::string_view kApplyPatch = "application/apply-patch+yaml";
constexpr std::string_view kApplyCBORPatch = "application/apply-patch+cbor";
constexpr std::string_view kCBORSequence = "application/cbor-seq";  // a watch in CBOR

enum class Transform : std::uint8_t { kNone, kTable, kPartialObjectMetadata, kPartialObjectMetadataList };

struct MediaTypeOptions {
  Format format = Format::kJSON;
  bool pretty = false;
  Transform transform = Transform::kNone;
  std::string transform_version = "v1";  // of meta.k8s.io
  bool stream = false;
  bool messages = false;  // of a stream: the transport frames events (WebSocket), so they have no length prefix
  std::string profile;    // discovery's "nopeer"
  bool operator==(const MediaTypeOptions&) const = default;
};

// The representations an endpoint can respond with (upstream's EndpointRestrictions).
struct EndpointRestrictions {
  bool allow_transforms = false;  // Table and PartialObjectMetadata
  bool allow_tables = true;       // false: the storage has no TableConvertor
  bool allow_protobuf = true;     // custom resources have none without a transform
  bool allow_yaml = true;
  bool allow_cbor = false;  // gate CBORServingAndStorage
};

struct AcceptClause {
  std::string type;
  std::string subtype;
  double quality = 1;
  std::vector<std::pair<std::string, std::string>> parameters;
};
std::vector<AcceptClause> ParseAccept(std::string_view header);  // best first

// The representation of an answer; 406 when there is none.
meta::Result<MediaTypeOptions> NegotiateOutput(const http::Request& request, const base::Query& query,
                                               const EndpointRestrictions& restrictions);
// Of a watch: only what can be streamed.
meta::Result<MediaTypeOptions> NegotiateStream(const http::Request& request, const base::Query& query,
                                               const EndpointRestrictions& restrictions);
// Of a request's body; 415 when it is unknown. An empty Content-Type is JSON.
meta::Result<Format> NegotiateInput(const http::Request& request, const EndpointRestrictions& restrictions);

// The media type of a header value, without parameters, trimmed and lower-cased.
std::string BareMediaType(std::string_view header);
// True when gzip is among the Accept-Encoding tokens, spelled exactly so.
bool AcceptsGzip(const http::Request& request);
bool IsPretty(const http::Request& request, const base::Query& query);

}  // namespace keelson::endpoints
