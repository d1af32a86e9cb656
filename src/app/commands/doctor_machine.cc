#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "app/commands/doctor_checks.h"
#include "app/commands/progress.h"
#include "net/listener.h"

namespace keelson::app {
namespace {

constexpr std::uint64_t kReserve = std::uint64_t{64} << 20;  // kv/rocks refuses writes below it
constexpr std::uint64_t kRoom = std::uint64_t{1} << 30;
constexpr double kInodesLow = 0.02;
constexpr int kWrites = 20;
constexpr std::size_t kWriteBytes = 4096;
constexpr std::chrono::milliseconds kSlow{10}, kVerySlow{100};  // 10 ms is what etcd's operators aim at
constexpr rlim_t kFilesMin = 4096;
constexpr std::chrono::minutes kAhead{5};

// The folder itself, or the nearest one above that is there.
std::string Existing(std::filesystem::path path) {
  path = std::filesystem::absolute(path);
  while (!std::filesystem::exists(path) && path.has_relative_path()) path = path.parent_path();
  return path;
}

const char* Unsafe(const std::string& folder) {
  struct statfs info{};
  if (::statfs(folder.c_str(), &info) != 0) return nullptr;
  switch (static_cast<unsigned long>(info.f_type)) {
    case 0x01021994:
      return "tmpfs, which is gone with the machine's power";
    case 0x6969:
      return "NFS, whose locks and syncs are not safe for a store";
    case 0x65735546:
      return "FUSE, whose syncs may not reach a disk";
    default:
      return nullptr;
  }
}

// Of small writes, each synced, in a file that is removed at once.
std::vector<std::chrono::nanoseconds> MeasureSync(const std::string& folder) {
  std::string path = folder + "/.doctor-XXXXXX";
  const int fd = ::mkostemp(path.data(), O_CLOEXEC);
  std::vector<std::chrono::nanoseconds> latencies;
  if (fd < 0) return latencies;
  ::unlink(path.c_str());
  const std::string bytes(kWriteBytes, 'x');
  for (int i = 0; i < kWrites; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    if (::write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) || ::fdatasync(fd) != 0) break;
    latencies.push_back(std::chrono::steady_clock::now() - begin);
  }
  ::close(fd);
  return latencies;
}

std::string Millis(std::chrono::nanoseconds time) {
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  return std::to_string(micros / 1000) + "." + std::to_string(micros % 1000 / 100) + " ms";
}

}  // namespace

void JudgeSpace(const DiskSpace& space, Findings& findings) {
  const std::string text = HumanBytes(space.free_bytes) + " of " + HumanBytes(space.total_bytes) + " free";
  if (space.free_bytes < kReserve) {
    findings.Fail("disk", text, "make room: the store refuses writes below " + HumanBytes(kReserve));
  } else if (space.free_bytes < kRoom) {
    findings.Warn("disk", text, "make room before the store refuses writes");
  } else {
    findings.OK("disk", text);
  }
  if (space.total_inodes == 0) return;
  if (static_cast<double>(space.free_inodes) < kInodesLow * static_cast<double>(space.total_inodes))
    findings.Fail("disk", "only " + std::to_string(space.free_inodes) + " inodes free", "remove files");
}

void JudgeSync(std::vector<std::chrono::nanoseconds> latencies, Findings& findings) {
  if (latencies.empty()) {
    findings.Fail("disk", "cannot write and sync a file in the data folder", "see the lines above");
    return;
  }
  std::ranges::sort(latencies);
  const auto median = latencies[latencies.size() / 2], worst = latencies.back();
  const std::string text = "a synced write takes " + Millis(median) + ", at worst " + Millis(worst);
  if (median > kVerySlow) {
    findings.Fail("disk", text, "every write of a client waits for this: use another disk");
  } else if (median > kSlow) {
    findings.Warn("disk", text, "below 10 ms is good; every write of a client waits for this");
  } else {
    findings.OK("disk", text);
  }
}

void CheckDisk(const std::string& given, Findings& findings) {
  const std::string folder = Existing(given);
  struct statvfs info{};
  if (::statvfs(folder.c_str(), &info) != 0) return;
  JudgeSpace({.free_bytes = std::uint64_t{info.f_bavail} * info.f_frsize,
              .total_bytes = std::uint64_t{info.f_blocks} * info.f_frsize,
              .free_inodes = info.f_favail,
              .total_inodes = info.f_files},
             findings);
  if (const char* const unsafe = Unsafe(folder))
    findings.Warn("disk", folder + " is on " + unsafe, "choose a folder on a local disk with --data-dir");
  if (std::filesystem::exists(given)) JudgeSync(MeasureSync(folder), findings);
}

void CheckClock(const std::string& folder, base::Clock::SystemTime now, Findings& findings) {
  struct stat info{};
  const auto ahead = now + kAhead;
  for (const char* const name : {"/lock", "/admin.kubeconfig", "/store/db/CURRENT"}) {
    if (::stat((folder + name).c_str(), &info) != 0) continue;
    if (base::Clock::SystemTime(std::chrono::seconds(info.st_mtime)) > ahead) {
      findings.Fail("clock", folder + name + " was written in the future: the clock went back",
                    "set the clock; certificates and leases depend on it");
      return;
    }
  }
  timex state{};
  if (::adjtimex(&state) >= 0 && (state.status & STA_UNSYNC) != 0) {
    findings.Warn("clock", "nothing keeps the clock in step",
                  "run chrony or systemd-timesyncd (virtual machines often have "
                  "another way: then this is no problem)");
  } else {
    findings.OK("clock", "kept in step");
  }
}

void CheckPort(const SecureServingOptions& options, int holder, Findings& findings) {
  const std::string shown = options.bind_address + ":" + std::to_string(options.bind_port);
  const auto listener =
      net::Listener::Listen({.address = options.bind_address, .port = static_cast<std::uint16_t>(options.bind_port)});
  if (listener.ok()) {
    findings.OK("port", shown + " is free");
  } else if (holder != 0) {
    findings.OK("port", shown + " is taken, as it should be while process " + std::to_string(holder) + " runs");
  } else {
    findings.Fail("port", listener.error().message,
                  "choose another with --secure-port, or end the process that has it");
  }
}

void CheckLimits(Findings& findings) {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  const std::string text = std::to_string(files.rlim_cur) + " open files allowed";
  if (files.rlim_cur < kFilesMin) {
    findings.Warn("limits", text, "every connection needs one: ulimit -n 65536, or LimitNOFILE= in the unit");
  } else {
    findings.OK("limits", text);
  }
}

}  // namespace keelson::app
