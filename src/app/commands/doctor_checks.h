// The checks of `keelson doctor`, one function an area. All block; none changes anything.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "app/commands/findings.h"
#include "app/completed_options.h"
#include "base/clock.h"

namespace keelson::app {

// The process that holds the lock of a data folder; 0 for none.
int ProcessOf(const std::string& data_folder);

// Owner and modes of the folder and of the keys in it, its control socket.
void CheckFolder(const std::string& folder, Findings& findings);
// The store of a stopped server is read with all its checksums.
void CheckStore(const std::string& folder, Findings& findings);

struct CertificatePair {
  std::string cert_file, key_file;  // key_file "" for an authority of others
  std::string ca_file;              // that must have signed it; "" for none
};
// Certificates that a start would use: those of the flags, else those in pki/.
std::vector<CertificatePair> CertificatesOf(const CompletedOptions& completed);
void CheckCertificate(const CertificatePair& pair, base::Clock::SystemTime now, Findings& findings);
// Halves of pairs in pki/ that are lost.
void CheckKeys(const std::string& pki_folder, Findings& findings);

// Free space and inodes, kind of file system, and how long a write takes until it is on disk.
void CheckDisk(const std::string& folder, Findings& findings);
struct DiskSpace {
  std::uint64_t free_bytes = 0, total_bytes = 0, free_inodes = 0, total_inodes = 0;
};
void JudgeSpace(const DiskSpace& space, Findings& findings);
void JudgeSync(std::vector<std::chrono::nanoseconds> latencies, Findings& findings);

void CheckClock(const std::string& folder, base::Clock::SystemTime now, Findings& findings);
// `holder`: the process that runs on the data folder, which may have the port.
void CheckPort(const SecureServingOptions& options, int holder, Findings& findings);
void CheckLimits(Findings& findings);

// Every server of --etcd-servers by itself.
void CheckEtcd(const ServerRunOptions& options, Findings& findings);

}  // namespace keelson::app
