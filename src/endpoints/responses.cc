#include "endpoints/responses.h"

#include "base/escape.h"
#include "base/strings.h"
#include "codec/cbor.h"
#include "codec/json.h"
#include "codec/protobuf.h"
#include "codec/yaml.h"
#include "endpoints/audit_hooks.h"
#include "schema/schema.h"
#include "schema/types.h"

namespace keelson::endpoints {

Awaitable<http::Response> Immediately(http::Response response) { co_return response; }

std::string ToYAML(Value object, const schema::Struct& type) {
  base::Arena arena;
  std::string json, yaml;
  codec::EncodeJSON(object, type, json);
  IgnoreError(codec::JSONToYAML(arena, json, yaml), "our own JSON is JSON");
  return yaml;
}

Value StatusValue(base::Arena& arena, const meta::Status& status) {
  const meta::Status::Fields& fields = status.fields();
  Value object = Value::Map(arena);
  object.Set(arena, "kind", "Status");
  object.Set(arena, "apiVersion", "v1");
  Value metadata = Value::Map(arena);
  if (!fields.continue_token.empty()) metadata.Set(arena, "continue", std::string_view(fields.continue_token));
  if (!fields.resource_version.empty())
    metadata.Set(arena, "resourceVersion", std::string_view(fields.resource_version));
  object.Set(arena, "metadata", metadata);
  object.Set(arena, "status", "Failure");
  if (!fields.message.empty()) object.Set(arena, "message", std::string_view(fields.message));
  const std::string_view reason =
      fields.reason != meta::StatusReason::kUnknown ? meta::ToString(fields.reason) : fields.other_reason;
  if (!reason.empty()) object.Set(arena, "reason", reason);
  if (fields.details) {
    Value details = Value::Map(arena);
    const auto set = [&](std::string_view key, const std::string& text) {
      if (!text.empty()) details.Set(arena, key, std::string_view(text));
    };
    set("name", fields.details->name);
    set("group", fields.details->group);
    set("kind", fields.details->kind);
    set("uid", fields.details->uid);
    if (!fields.details->causes.empty()) {
      Value causes = Value::List(arena);
      for (const auto& cause : fields.details->causes) {
        Value entry = Value::Map(arena);
        if (!cause.reason.empty()) entry.Set(arena, "reason", std::string_view(cause.reason));
        if (!cause.message.empty()) entry.Set(arena, "message", std::string_view(cause.message));
        if (!cause.field.empty()) entry.Set(arena, "field", std::string_view(cause.field));
        causes.Append(arena, entry);
      }
      details.Set(arena, "causes", causes);
    }
    if (fields.details->retry_after_seconds != 0)
      details.Set(arena, "retryAfterSeconds", fields.details->retry_after_seconds);
    object.Set(arena, "details", details);
  }
  object.Set(arena, "code", fields.code);
  return object;
}

std::string EncodeAs(const MediaTypeOptions& media, Value object, const schema::Struct& type) {
  std::string body;
  switch (media.format) {
    case Format::kProtobuf:
      codec::EncodeProto(object, type, body);
      break;
    case Format::kYAML:
      body = ToYAML(object, type);
      break;
    case Format::kCBOR: {
      base::Arena arena;
      codec::EncodeCBOR(arena, object, type, body);
      break;
    }
    default: {
      codec::EncodeJSON(object, type, body);
      if (media.pretty) {
        std::string indented;
        codec::IndentJSON(body, indented);
        body = std::move(indented);
      } else {
        body += '\n';
      }
    }
  }
  return body;
}

namespace {

http::Response EncodedStatus(Value status, const MediaTypeOptions& media, int code) {
  http::Response response;
  response.status = code;
  response.headers.Add("Content-Type", MediaType(media.format));
  response.body = base::SharedBytes::FromString(EncodeAs(media, status, schema::types::meta_v1::kStatus));
  return response;
}

}  // namespace

http::Response StatusObjectResponse(const Exchange& exchange, Value status, const MediaTypeOptions& media, int code) {
  AuditResponseStatus(exchange, status);
  AuditResponseValue(exchange, status, schema::types::meta_v1::kStatus);
  http::Response response = EncodedStatus(status, media, code);
  exchange.trace.Serialize(exchange, media, std::get<base::SharedBytes>(response.body).size());
  return response;
}

http::Response StatusResponse(const Exchange& exchange, const meta::Status& status) {
  base::Arena arena;
  const Value object = StatusValue(arena, status);
  // No transforms here: a client that accepts nothing but a Table gets indented JSON.
  auto media = NegotiateOutput(exchange.http, exchange.query, {.allow_cbor = exchange.allow_cbor});
  const int code = status.code() == 0 ? 500 : status.code();
  MediaTypeOptions options;
  options.pretty = true;
  // Without a media type upstream writes raw JSON, past the audit.
  http::Response response =
      media.ok() ? StatusObjectResponse(exchange, object, *media, code) : EncodedStatus(object, options, code);
  if (status.details() && status.details()->retry_after_seconds > 0) {
    response.headers.Set("Retry-After", std::to_string(status.details()->retry_after_seconds));
  }
  return response;
}

http::Response ShuttingDown() {
  const meta::Status status = meta::NewServiceUnavailable("apiserver is shutting down");
  http::Response response = JSONDocument(503, base::SharedBytes(status.ToJSON() + "\n\n"));
  response.headers.Set("Retry-After", "1");
  response.headers.Set("X-Content-Type-Options", "nosniff");
  return response;
}

http::Response Text(int code, std::string_view text) {
  http::Response response;
  response.status = code;
  response.headers.Add("Content-Type", "text/plain; charset=utf-8");
  response.body = base::SharedBytes(text);
  return response;
}

http::Response PlainError(int code, std::string_view text) {
  http::Response response = Text(code, std::string(text) + "\n");
  response.headers.Add("X-Content-Type-Options", "nosniff");
  return response;
}

http::Response InternalErrorText(const Exchange& exchange, std::string_view error) {
  return PlainError(500, "Internal Server Error: " + base::GoQuote(base::EscapeHTML(exchange.http.target)) + ": " +
                             base::EscapeHTML(error));
}

http::Response JSONDocument(int code, base::SharedBytes body) {
  http::Response response;
  response.status = code;
  response.headers.Add("Content-Type", "application/json");
  response.body = std::move(body);
  return response;
}

}  // namespace keelson::endpoints
