// AdmissionReview, v1 and v1beta1: written from encoded objects, read and checked as upstream does.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "admission/attributes.h"
#include "base/outcome.h"
#include "meta/status.h"
#include "request/user.h"

namespace keelson::admission {

enum class ReviewVersion : std::uint8_t { kV1, kV1beta1 };
// The first of the versions that is known.
std::optional<ReviewVersion> ChooseReviewVersion(const std::vector<std::string>& versions);

struct ReviewRequest {
  ReviewVersion version = ReviewVersion::kV1;
  std::string_view uid;
  const ObjectInterfaces::Resource& matched;
  const request::User& user;
  std::string_view object;      // JSON in the matched version; "" when there is none
  std::string_view old_object;  // likewise
};
// The body of the call.
std::string WriteReview(const Attributes& attributes, const ReviewRequest& request);

struct ReviewResponse {
  bool allowed = false;
  std::vector<std::pair<std::string, std::string>> audit_annotations;
  std::vector<std::string> warnings;
  std::string patch;            // decoded; "" without one
  std::string patch_type;       // "JSONPatch" where checked
  meta::Status::Fields status;  // of a denial, not worded yet
  std::string reason;           // as sent; webhooks may send any
};

struct ReviewError {
  bool invalid =
      false;  // the response was read and is wrong: "received invalid webhook response: ", else the call failed
  std::string text;
};
// The body of an answer of 2xx. `status` and `content_type` are for the error text of an empty one.
Outcome<ReviewResponse, ReviewError> ReadReview(base::Arena& arena, std::string_view body, int status,
                                                std::string_view content_type, ReviewVersion version,
                                                std::string_view uid, bool mutating);

// The denial in upstream's words: code at least 400.
meta::Status DenialOf(std::string_view webhook, meta::Status::Fields status, std::string_view reason);

}  // namespace keelson::admission
