// Small files, read and written whole. Errors are one line with the path and the system's reason, fit for the user.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "app/error.h"
#include "base/outcome.h"

namespace keelson::app {

Outcome<std::string, Error> ReadSmallFile(const std::string& path);  // at most base::kReadFileMax
bool FileExists(const std::string& path);
// Differs when the file was changed or replaced (size, time, inode); "absent" without one.
std::string FileIdentity(const std::string& path);

// Whether some certificate is in both PEM files. Files that cannot be read have none.
bool CertificatesOverlap(const std::string& one, const std::string& other);

// The file has the old content or the new, never a part: a temporary file beside it, synced, renamed over it, and the
// folder synced. Nothing is left behind on failure.
Outcome<void, Error> WriteFileAtomically(const std::string& path, std::string_view bytes, mode_t mode);

// mkdir -p; folders made get `mode`.
Outcome<void, Error> MakeDirectories(const std::string& path, mode_t mode);

}  // namespace keelson::app
