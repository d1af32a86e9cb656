#include "meta/status.h"

#include <algorithm>

#include "base/hash.h"
#include "base/strings.h"
#include "object/json_text.h"

namespace keelson::meta {
namespace {

using base::GoQuote;
using object::AppendJSONString;

Status Make(std::int32_t code, StatusReason reason, std::string message,
            std::optional<StatusDetails> details = std::nullopt) {
  return Status(
      Status::Fields{.code = code, .reason = reason, .message = std::move(message), .details = std::move(details)});
}

StatusDetails About(const GroupResource& resource, std::string_view name) {
  return {.name = std::string(name), .group = resource.group, .kind = resource.resource};
}

// Appends `"key":"text",` unless the text is empty.
void AppendMember(std::string& out, std::string_view key, std::string_view text) {
  if (text.empty()) return;
  out += '"';
  out += key;
  out += "\":";
  AppendJSONString(out, text);
  out += ',';
}

void CloseBrace(std::string& out) {
  if (out.back() == ',') out.pop_back();
  out += '}';
}

void AppendDetails(std::string& out, const StatusDetails& details) {
  out += '{';
  AppendMember(out, "name", details.name);
  AppendMember(out, "group", details.group);
  AppendMember(out, "kind", details.kind);
  AppendMember(out, "uid", details.uid);
  if (!details.causes.empty()) {
    out += "\"causes\":[";
    for (const auto& cause : details.causes) {
      out += '{';
      AppendMember(out, "reason", cause.reason);
      AppendMember(out, "message", cause.message);
      AppendMember(out, "field", cause.field);
      CloseBrace(out);
      out += ',';
    }
    out.back() = ']';
    out += ',';
  }
  if (details.retry_after_seconds != 0) {
    out += "\"retryAfterSeconds\":";
    out += std::to_string(details.retry_after_seconds);
  }
  CloseBrace(out);
}

struct TypeRow {
  std::string_view label;
  std::string_view cause;
  bool shows_value;
};

constexpr TypeRow kTypes[] = {
    {"Not found", "FieldValueNotFound", true},
    {"Required value", "FieldValueRequired", false},
    {"Duplicate value", "FieldValueDuplicate", true},
    {"Invalid value", "FieldValueInvalid", true},
    {"Unsupported value", "FieldValueNotSupported", true},
    {"Forbidden", "FieldValueForbidden", false},
    {"Too long", "FieldValueTooLong", false},
    {"Too short", "FieldValueTooShort", false},
    {"Too many", "FieldValueTooMany", true},
    {"Too few", "FieldValueTooFew", true},
    {"Internal error", "InternalError", false},
    {"Invalid value", "FieldValueTypeInvalid", true},
};

const TypeRow& RowOf(FieldError::Type type) { return kTypes[static_cast<std::size_t>(type)]; }

}  // namespace

std::string_view ToString(StatusReason reason) {
  static constexpr std::string_view kNames[] = {
      "",
      "Unauthorized",
      "Forbidden",
      "NotFound",
      "AlreadyExists",
      "Conflict",
      "Gone",
      "Invalid",
      "ServerTimeout",
      "StorageReadError",
      "Timeout",
      "TooManyRequests",
      "BadRequest",
      "MethodNotAllowed",
      "NotAcceptable",
      "RequestEntityTooLarge",
      "UnsupportedMediaType",
      "InternalError",
      "Expired",
      "ServiceUnavailable",
  };
  return kNames[static_cast<std::size_t>(reason)];
}

std::string Status::ToJSON() const {
  std::string out = R"({"kind":"Status","apiVersion":"v1","metadata":{)";
  AppendMember(out, "resourceVersion", fields_->resource_version);
  AppendMember(out, "continue", fields_->continue_token);
  CloseBrace(out);
  out += R"(,"status":"Failure",)";
  AppendMember(out, "message", fields_->message);
  AppendMember(out, "reason", fields_->other_reason.empty() ? ToString(fields_->reason) : fields_->other_reason);
  if (fields_->details) {
    out += "\"details\":";
    AppendDetails(out, *fields_->details);
    out += ',';
  }
  if (fields_->code != 0) {
    out += "\"code\":";
    out += std::to_string(fields_->code);
  }
  CloseBrace(out);
  return out;
}

std::string FieldError::Body() const {
  const TypeRow& row = RowOf(type);
  std::string out(row.label);
  if (row.shows_value && !value.empty()) out += ": " + value;
  if (!detail.empty()) out += ": " + detail;
  return out;
}

std::string FieldError::ToString() const { return (field.empty() ? "<nil>" : field) + ": " + Body(); }

std::string_view CauseReason(FieldError::Type type) { return RowOf(type).cause; }

std::string AggregateMessage(const FieldErrors& errors) {
  base::StringSet seen;
  std::vector<std::string_view> texts;  // in `seen`, whose strings do not move
  for (const auto& error : errors) {
    const auto [text, fresh] = seen.insert(error.ToString());
    if (fresh) texts.push_back(*text);
  }
  const std::string more = errors.dropped() == 0 ? "" : ", and " + std::to_string(errors.dropped()) + " more errors";
  if (texts.empty()) return "";
  if (texts.size() == 1) return std::string(texts[0]) + more;
  std::string out;
  for (const std::string_view text : texts) {
    out += out.empty() ? "[" : ", ";
    out += text;
  }
  return out + more + "]";
}

Status NewNotFound(const GroupResource& resource, std::string_view name) {
  return Make(404, StatusReason::kNotFound, resource.ToString() + " " + GoQuote(name) + " not found",
              About(resource, name));
}

Status NewAlreadyExists(const GroupResource& resource, std::string_view name) {
  return Make(409, StatusReason::kAlreadyExists, resource.ToString() + " " + GoQuote(name) + " already exists",
              About(resource, name));
}

Status NewGenerateNameConflict(const GroupResource& resource, std::string_view name, std::int32_t retry_after_seconds) {
  StatusDetails details = About(resource, name);
  details.retry_after_seconds = retry_after_seconds;
  return Make(409, StatusReason::kAlreadyExists,
              resource.ToString() + " " + GoQuote(name) +
                  " already exists, the server was not able to generate a unique name for the object",
              std::move(details));
}

Status NewConflict(const GroupResource& resource, std::string_view name, std::string_view error) {
  return Make(
      409, StatusReason::kConflict,
      "Operation cannot be fulfilled on " + resource.ToString() + " " + GoQuote(name) + ": " + std::string(error),
      About(resource, name));
}

Status NewApplyConflict(std::vector<StatusCause> causes, std::string message) {
  return Make(409, StatusReason::kConflict, std::move(message), StatusDetails{.causes = std::move(causes)});
}

Status NewUnauthorized(std::string_view reason) {
  return Make(401, StatusReason::kUnauthorized, reason.empty() ? "not authorized" : std::string(reason));
}

Status NewForbidden(const GroupResource& resource, std::string_view name, std::string_view why) {
  std::string message;
  if (resource.resource.empty()) {
    message = "forbidden: " + std::string(why);
  } else if (name.empty()) {
    message = resource.ToString() + " is forbidden: " + std::string(why);
  } else {
    message = resource.ToString() + " " + GoQuote(name) + " is forbidden: " + std::string(why);
  }
  return Make(403, StatusReason::kForbidden, std::move(message), About(resource, name));
}

Status NewBadRequest(std::string_view message) { return Make(400, StatusReason::kBadRequest, std::string(message)); }

Status NewInvalid(const GroupKind& kind, std::string_view name, const FieldErrors& errors) {
  StatusDetails details{.name = std::string(name), .group = kind.group, .kind = kind.kind};
  for (const auto& error : errors) {
    details.causes.push_back(
        {std::string(CauseReason(error.type)), error.Body(), error.field.empty() ? "<nil>" : error.field});
  }
  return Make(422, StatusReason::kInvalid,
              kind.ToString() + " " + GoQuote(name) + " is invalid: " + AggregateMessage(errors), std::move(details));
}

Status NewMethodNotSupported(const GroupResource& resource, std::string_view verb) {
  return Make(405, StatusReason::kMethodNotAllowed,
              std::string(verb) + " is not supported on resources of kind " + GoQuote(resource.ToString()),
              About(resource, ""));
}

Status NewNotAcceptable(const std::vector<std::string>& accepted) {
  return Make(406, StatusReason::kNotAcceptable,
              "only the following media types are accepted: " + base::Join(accepted, ", "));
}

Status NewUnsupportedMediaType(const std::vector<std::string>& accepted) {
  return Make(
      415, StatusReason::kUnsupportedMediaType,
      "the body of the request was in an unknown format - accepted media types include: " + base::Join(accepted, ", "));
}

Status NewRequestEntityTooLarge(std::string_view message) {
  return Make(413, StatusReason::kRequestEntityTooLarge, "Request entity too large: " + std::string(message));
}

Status NewTooManyRequests(std::string_view message, std::int32_t retry_after_seconds) {
  return Make(429, StatusReason::kTooManyRequests, std::string(message),
              StatusDetails{.retry_after_seconds = retry_after_seconds});
}

Status NewExpired(std::string_view message, std::string continue_token) {
  return Status(Status::Fields{.code = 410,
                               .reason = StatusReason::kExpired,
                               .message = std::string(message),
                               .continue_token = std::move(continue_token)});
}

Status NewInternalError(std::string_view error) {
  return Make(500, StatusReason::kInternalError, "Internal error occurred: " + std::string(error),
              StatusDetails{.causes = {{.message = std::string(error)}}});
}

Status NewServerTimeout(const GroupResource& resource, std::string_view operation, std::int32_t retry_after_seconds) {
  StatusDetails details = About(resource, operation);
  details.retry_after_seconds = retry_after_seconds;
  return Make(500, StatusReason::kServerTimeout,
              "The " + std::string(operation) + " operation against " + resource.ToString() +
                  " could not be completed at this time, please try again.",
              std::move(details));
}

Status NewTimeout(std::string_view message, std::int32_t retry_after_seconds) {
  return Make(504, StatusReason::kTimeout, "Timeout: " + std::string(message),
              StatusDetails{.retry_after_seconds = retry_after_seconds});
}

Status NewTooLargeResourceVersion(std::uint64_t wanted, std::uint64_t current, std::int32_t retry_after_seconds) {
  return Make(
      504, StatusReason::kTimeout,
      "Timeout: Too large resource version: " + std::to_string(wanted) + ", current: " + std::to_string(current),
      StatusDetails{.causes = {{"ResourceVersionTooLarge", "Too large resource version", ""}},
                    .retry_after_seconds = retry_after_seconds});
}

Status NewServiceUnavailable(std::string_view message) {
  return Make(503, StatusReason::kServiceUnavailable, std::string(message));
}

Status NewStoreReadError(std::string_view message) {
  return Make(500, StatusReason::kStoreReadError, std::string(message));
}

Status NewPlainError(std::string_view message, std::int32_t code) {
  return Make(code, StatusReason::kUnknown, std::string(message));
}

Status NewGenericServerResponse(std::int32_t code, std::string_view verb, const GroupResource& resource,
                                std::string_view name, std::string_view server_message,
                                std::int32_t retry_after_seconds) {
  StatusReason reason = StatusReason::kUnknown;
  std::string message =
      "the server responded with the status code " + std::to_string(code) + " but did not return more information";
  const std::string given(server_message);
  switch (code) {
    case 400:
      reason = StatusReason::kBadRequest;
      message = "the server rejected our request for an unknown reason";
      break;
    case 401:
      reason = StatusReason::kUnauthorized;
      message = "the server has asked for the client to provide credentials";
      break;
    case 403:
      reason = StatusReason::kForbidden;
      message = given;
      break;
    case 404:
      reason = StatusReason::kNotFound;
      message = "the server could not find the requested resource";
      break;
    case 405:
      reason = StatusReason::kMethodNotAllowed;
      message = "the server does not allow this method on the requested resource";
      break;
    case 406:
      reason = StatusReason::kNotAcceptable;
      message = given.empty() ? "the server was unable to respond with a content type that the client supports" : given;
      break;
    case 409:
      reason = verb == "POST" ? StatusReason::kAlreadyExists : StatusReason::kConflict;
      message = "the server reported a conflict";
      break;
    case 415:
      reason = StatusReason::kUnsupportedMediaType;
      message = given;
      break;
    case 422:
      reason = StatusReason::kInvalid;
      message = "the server rejected our request due to an error in our request";
      break;
    case 429:
      reason = StatusReason::kTooManyRequests;
      message = "the server has received too many requests and has asked us to try again later";
      break;
    case 503:
      reason = StatusReason::kServiceUnavailable;
      message = "the server is currently unable to handle the request";
      break;
    case 504:
      reason = StatusReason::kTimeout;
      message =
          "the server was unable to return a response in the time allotted, but may still be processing the request";
      break;
    default:
      if (code >= 500) {
        reason = StatusReason::kInternalError;
        message = "an error on the server (" + GoQuote(server_message) + ") has prevented the request from succeeding";
      }
  }
  if (!resource.resource.empty()) {
    message += " (" + base::ToLower(verb) + " " + resource.ToString();
    if (!name.empty()) message += " " + std::string(name);
    message += ")";
  }
  StatusDetails details = About(resource, name);
  details.retry_after_seconds = retry_after_seconds;
  return Make(code, reason, std::move(message), std::move(details));
}

}  // namespace keelson::meta
