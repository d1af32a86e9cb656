// A document assembled from fragments as JSON text; its other representations are made at their first request.
// Immutable to its readers. Thread safety: from any thread.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/shared_bytes.h"
#include "endpoints/exchange.h"
#include "endpoints/negotiation.h"
#include "schema/schema.h"

namespace keelson::endpoints {

class AssembledDocument {
 public:
  // `json` without a newline, of a `kind` of that type; `api_version` is that of the protobuf envelope.
  AssembledDocument(std::string json, const schema::Struct& type, std::string api_version, std::string kind);

  base::SharedBytes Get(Format format, bool pretty) const;
  // The answer in the representation that the client wants; 406 when there is none. Any method.
  http::Response Respond(const Exchange& exchange) const;
  // The response in `format`, whose media type gets `parameters`; 304 for a client that has the version `etag` already.
  http::Response RespondTagged(const Exchange& exchange, Format format, std::string_view parameters,
                               const std::string& etag) const;

 private:
  const base::SharedBytes json_;
  const schema::Struct& type_;
  const std::string api_version_;
  const std::string kind_;
  mutable std::mutex mutex_;
  mutable base::SharedBytes yaml_, protobuf_;
};

}  // namespace keelson::endpoints
