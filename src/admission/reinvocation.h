// State of a mutating plugin (webhooks or policies) between its first call and its reinvocation (upstream's
// webhookReinvokeContext and policyReinvokeContext). Internal to admission.
#pragma once

#include <set>
#include <string>

#include "object/value.h"

namespace keelson::admission {

struct ReinvocationState {
  Value last_output;
  std::set<std::string> previously_invoked;  // keys of those with reinvocationPolicy IfNeeded
  std::set<std::string> reinvoke;
  bool patched = false;  // a webhook's patch has been applied

  void RequirePreviouslyInvoked() {
    reinvoke.merge(previously_invoked);
    previously_invoked.clear();
  }
};

}  // namespace keelson::admission
