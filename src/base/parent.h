// Ends the process when its parent is gone, so that test servers do not outlive a killed test run.
#pragma once

namespace keelson::base {

// From now on: when the process that is the parent now ends, this one gets SIGTERM. A thread of its own waits for that
// (not PR_SET_PDEATHSIG, which counts the parent's thread). REQUIRES: SIGTERM is handled, or blocked and waited for.
void EndWithParent();

}  // namespace keelson::base
