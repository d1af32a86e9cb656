// Answers that are Kubernetes objects (TokenReview, SubjectAccessReview, ImageReview), read as client-go's Result.Into
// does.
#pragma once

#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/outcome.h"
#include "object/value.h"
#include "webhook/rest_client.h"

namespace keelson::webhook {

// For Request::response_bytes_max: reviews are small, and each call under way may hold this much.
constexpr std::size_t kReviewAnswerBytesMax = 1024 * 1024;

struct ReviewKind {
  std::string_view group;
  std::string_view version;
  std::string_view kind;
};

// The object of the body (JSON or YAML) in the arena, canonical as codec/json.h says. Kind and apiVersion may be
// absent: the expected ones are assumed. The error is client-go's: no body, another kind, or fields of the wrong type.
// REQUIRES: the tables have the expected kind.
Outcome<Value, std::string> DecodeReviewAnswer(base::Arena& arena, const Response& response,
                                               const ReviewKind& expected);

}  // namespace keelson::webhook
