// `keelson doctor`: looks at everything a start and a long life depend on, and changes nothing.
#pragma once

#include <string>
#include <vector>

namespace keelson::app {

extern const char* const kDoctorUsage;
// The exit code: 1 when something is broken, 0 also with warnings.
int RunDoctor(const std::vector<std::string>& arguments);

}  // namespace keelson::app
