// Answers that are Kubernetes objects (TokenReview, ImageReview), read as client-go's Result.Into does.
#pragma once

#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/outcome.h"
#include "object/value.h"

namespace keelson::webhook {

struct ReviewKind {
  std::string_view group;
  std::string_view version;
  std::string_view kind;
};

// The object of `body` (JSON or YAML), in the arena; the error is client-go's where it is not of the expected kind.
Outcome<Value, std::string> DecodeReviewAnswer(base::Arena& arena, std::string_view body, const ReviewKind& expected);

}  // namespace keelson::webhook
