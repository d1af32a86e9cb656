// SubjectAccessReviews for a remote authorizer, as JSON. Pure.
#pragma once

#include <string>
#include <string_view>

#include "auth/authorizer.h"
#include "base/outcome.h"
#include "webhook/rest_client.h"

namespace keelson::auth {

enum class ReviewVersion : std::uint8_t { kV1, kV1beta1 };

struct ReviewStatus {
  bool allowed = false;
  bool denied = false;
  std::string reason;
};

// The spec in v1: the cache key, and what match conditions see.
std::string ReviewSpec(const Attributes& attributes);
// The whole object to send.
std::string ReviewBody(const Attributes& attributes, ReviewVersion version);
// The status of the answer; the error is client-go's.
Outcome<ReviewStatus, std::string> ReadReviewAnswer(const webhook::Response& response, ReviewVersion version);
// Requests with very long attributes are not cached: a client must not fill the cache's memory.
bool IsCacheable(const Attributes& attributes);

}  // namespace keelson::auth
