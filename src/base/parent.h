// Ends the process when its parent is gone, so that test servers do not outlive a killed test run.
#pragma once

namespace keelson::base {

// From now on this process gets SIGTERM when its current parent ends. A separate thread waits for that (not
// PR_SET_PDEATHSIG, which follows the parent's thread). REQUIRES: SIGTERM is handled, or blocked and waited for.
void EndWithParent();

}  // namespace keelson::base
