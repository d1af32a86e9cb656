// Responses that are not objects of a resource: Statuses, plain errors, fixed documents.
#pragma once

#include <string>
#include <string_view>

#include "endpoints/exchange.h"
#include "endpoints/negotiation.h"
#include "http/message.h"
#include "meta/status.h"
#include "object/value.h"
#include "schema/schema.h"

namespace keelson::endpoints {

// A Status in the negotiated representation; indented JSON if none is acceptable.
http::Response StatusResponse(const Exchange& exchange, const meta::Status& status);
// Any Status object (a success, say) in that representation.
http::Response StatusObjectResponse(const Exchange& exchange, Value status, const MediaTypeOptions& media, int code);
// Go's http.Error: text/plain, the text and a newline, nosniff.
http::Response PlainError(int code, std::string_view text);
// `Internal Server Error: "<URI>": <error>` with & < > escaped.
http::Response InternalErrorText(const Exchange& exchange, std::string_view error);
// 503 for what comes while the server ends: come back soon, to another one.
http::Response ShuttingDown();
http::Response Text(int code, std::string_view text);
http::Response JSONDocument(int code, base::SharedBytes body);
// The response of a filter or handler that is not a coroutine: most requests pass it without a coroutine frame.
Awaitable<http::Response> Immediately(http::Response response);

// The object in the negotiated format, indented if requested.
std::string EncodeAs(const MediaTypeOptions& media, Value object, const schema::Struct& type);
// Any object as YAML.
std::string ToYAML(Value object, const schema::Struct& type);

// The Status as an object (kind, apiVersion, metadata, ...).
Value StatusValue(base::Arena& arena, const meta::Status& status);

}  // namespace keelson::endpoints
