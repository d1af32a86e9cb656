// metav1.Status as our error type: the body of a failed request's response. Immutable, cheap to move.
// One factory for each of apimachinery's NewXxx; the texts are API.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/outcome.h"
#include "meta/group_version.h"

namespace keelson::meta {

enum class StatusReason : std::uint8_t {
  kUnknown,
  kUnauthorized,
  kForbidden,
  kNotFound,
  kAlreadyExists,
  kConflict,
  kGone,
  kInvalid,
  kServerTimeout,
  kStoreReadError,
  kTimeout,
  kTooManyRequests,
  kBadRequest,
  kMethodNotAllowed,
  kNotAcceptable,
  kRequestEntityTooLarge,
  kUnsupportedMediaType,
  kInternalError,
  kExpired,
  kServiceUnavailable,
};
std::string_view ToString(StatusReason reason);  // as on the wire; kUnknown is ""

struct StatusCause {
  std::string reason;  // FieldValueRequired, ...
  std::string message;
  std::string field;
};

struct StatusDetails {
  std::string name;
  std::string group;
  std::string kind;  // a resource for most errors, a Kind for Invalid
  std::string uid;
  std::vector<StatusCause> causes;
  std::int32_t retry_after_seconds = 0;
};

class [[nodiscard]] Status {
 public:
  struct Fields {
    std::int32_t code = 500;
    StatusReason reason = StatusReason::kUnknown;
    std::string message;
    std::optional<StatusDetails> details;  // absent and {} are different on the wire
    std::string continue_token;            // metadata.continue, with 410 of a paged list
    std::string other_reason;              // a reason that is not one of ours (webhooks may send any); with kUnknown
    std::string resource_version;          // metadata.resourceVersion; sent by webhooks only
  };
  explicit Status(Fields fields) : fields_(std::make_shared<const Fields>(std::move(fields))) {}

  std::int32_t code() const { return fields_->code; }
  StatusReason reason() const { return fields_->reason; }
  std::string_view message() const { return fields_->message; }
  const std::optional<StatusDetails>& details() const { return fields_->details; }
  const Fields& fields() const { return *fields_; }
  // The JSON text of the whole object, field order and omission as Go writes them, no trailing newline.
  std::string ToJSON() const;

 private:
  std::shared_ptr<const Fields> fields_;
};

template <class T>
using Result = Outcome<T, Status>;

// A field error, as apimachinery's field.Error: validation collects these, NewInvalid renders them.
struct FieldError {
  enum class Type : std::uint8_t {
    kNotFound,
    kRequired,
    kDuplicate,
    kInvalid,
    kNotSupported,
    kForbidden,
    kTooLong,
    kTooShort,
    kTooMany,
    kTooFew,
    kInternal,
    kTypeInvalid,
  };
  Type type;
  std::string field;  // "" renders as <nil>
  std::string value;  // already rendered (strings quoted, numbers plain, the rest JSON); empty shows none
  std::string detail;
  std::string Body() const;      // `Invalid value: "x": must be ...`
  std::string ToString() const;  // `spec.name: ` + Body()
};
std::string_view CauseReason(FieldError::Type type);  // FieldValueRequired, ...

// The errors of one object. Bounded, because a body of three megabytes can be a million mistakes: errors beyond the
// bounds are counted and not kept. The last one kept may exceed the bytes.
class FieldErrors : public std::vector<FieldError> {
 public:
  static constexpr std::size_t kCountMax = 1000;
  static constexpr std::size_t kBytesMax = 1 << 20;

  using std::vector<FieldError>::vector;
  void push_back(FieldError error) {
    if (full()) {
      ++dropped_;
      return;
    }
    bytes_ += error.field.size() + error.value.size() + error.detail.size();
    std::vector<FieldError>::push_back(std::move(error));
  }
  bool full() const { return size() >= kCountMax || bytes_ > kBytesMax; }  // loops over many items may stop
  std::size_t dropped() const { return dropped_; }

 private:
  std::size_t bytes_ = 0;
  std::size_t dropped_ = 0;
};
std::string AggregateMessage(const FieldErrors& errors);  // one bare, several in [a, b] without repeats

Status NewNotFound(const GroupResource& resource, std::string_view name);
Status NewAlreadyExists(const GroupResource& resource, std::string_view name);
Status NewGenerateNameConflict(const GroupResource& resource, std::string_view name, std::int32_t retry_after_seconds);
Status NewConflict(const GroupResource& resource, std::string_view name, std::string_view error);
Status NewApplyConflict(std::vector<StatusCause> causes, std::string message);
Status NewUnauthorized(std::string_view reason);
Status NewForbidden(const GroupResource& resource, std::string_view name, std::string_view why);
Status NewBadRequest(std::string_view message);
Status NewInvalid(const GroupKind& kind, std::string_view name, const FieldErrors& errors);
Status NewMethodNotSupported(const GroupResource& resource, std::string_view verb);
Status NewNotAcceptable(const std::vector<std::string>& accepted);
Status NewUnsupportedMediaType(const std::vector<std::string>& accepted);
Status NewRequestEntityTooLarge(std::string_view message);
Status NewTooManyRequests(std::string_view message, std::int32_t retry_after_seconds);
Status NewExpired(std::string_view message, std::string continue_token = {});
Status NewInternalError(std::string_view error);
Status NewServerTimeout(const GroupResource& resource, std::string_view operation,
                        std::int32_t retry_after_seconds = 2);
Status NewTimeout(std::string_view message, std::int32_t retry_after_seconds);
Status NewTooLargeResourceVersion(std::uint64_t wanted, std::uint64_t current, std::int32_t retry_after_seconds);
Status NewServiceUnavailable(std::string_view message);
Status NewStoreReadError(std::string_view message);
// An error that upstream returns as a plain Go error: its text, a code (500 as a rule), no reason, no details.
Status NewPlainError(std::string_view message, std::int32_t code = 500);
// Errors of the routing layer in front of the handlers (go-restful's service errors): message and reason from the code
// alone.
Status NewGenericServerResponse(std::int32_t code, std::string_view verb, const GroupResource& resource,
                                std::string_view name, std::string_view server_message,
                                std::int32_t retry_after_seconds);

}  // namespace keelson::meta

namespace keelson {
using meta::Result;
using meta::Status;
}  // namespace keelson
