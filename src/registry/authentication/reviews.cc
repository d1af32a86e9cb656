#include "registry/authentication/strategies.h"
#include "registry/rules/rules.h"

namespace keelson::registry {
namespace {

using namespace rules;  // NOLINT
using validation::Invalid;

constexpr std::int64_t kTokenSecondsDefault = 3600;
constexpr std::int64_t kTokenSecondsMin = 600;
constexpr std::int64_t kTokenSecondsMax = std::int64_t{1} << 32;

void SetTokenRequestDefaults(base::Arena& arena, Value object) {
  Default(arena, object.EnsureMap(arena, "spec"), "expirationSeconds", kTokenSecondsDefault);
}

void ValidateTokenRequest(const Call&, Value object, Value, FieldErrors& errors) {
  const FieldPath path("spec");
  const Value seconds(object["spec"]["expirationSeconds"].as_int());
  if (seconds.as_int() < kTokenSecondsMin) {
    errors.push_back(
        Invalid(path.Child("expirationSeconds"), seconds, "may not specify a duration less than 10 minutes"));
  }
  if (seconds.as_int() > kTokenSecondsMax) {
    errors.push_back(
        Invalid(path.Child("expirationSeconds"), seconds, "may not specify a duration larger than 2^32 seconds"));
  }
}

constexpr std::string_view kGroup = "authentication.k8s.io";
// TokenReview and SelfSubjectReview have no field rules: a missing token is a 400 from the review's
// handler.
constexpr Strategy kStrategies[] = {
    {.group = kGroup,
     .kind = "TokenRequest",
     .defaults = SetTokenRequestDefaults,
     .validate = ValidateTokenRequest,
     .validates_metadata = true},
    {.group = kGroup, .kind = "TokenReview", .validates_metadata = true},
    {.group = kGroup, .kind = "SelfSubjectReview", .validates_metadata = true},
};

}  // namespace

std::span<const Strategy> AuthenticationStrategies() { return kStrategies; }

}  // namespace keelson::registry
