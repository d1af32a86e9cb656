// authentication.k8s.io: TokenRequest, TokenReview, SelfSubjectReview. They are answered and never stored; what is here
// is how they are checked.
#pragma once

#include <span>

#include "registry/strategy.h"

namespace keelson::registry {
std::span<const Strategy> AuthenticationStrategies();
}
