#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "app/commands/doctor_checks.h"
#include "app/commands/progress.h"
#include "app/files.h"
#include "base/strings.h"
#include "kv/rocks/tools.h"

namespace keelson::app {
namespace {

namespace fs = std::filesystem;
constexpr const char* kArea = "data folder";
constexpr mode_t kOthers = S_IRWXG | S_IRWXO;

std::string Octal(mode_t mode) {
  std::string text;
  for (int shift = 6; shift >= 0; shift -= 3) text.push_back(static_cast<char>('0' + ((mode >> shift) & 7)));
  return "0" + text;
}

std::string UserName(uid_t uid) {
  const passwd* const entry = ::getpwuid(uid);  // NOLINT: one thread
  return entry != nullptr ? entry->pw_name : std::to_string(uid);
}

void CheckModes(const std::string& folder, Findings& findings) {
  std::error_code error;
  std::vector<std::string> open;
  for (const fs::path& path : {fs::path(folder) / "pki", fs::path(folder)}) {
    for (auto at = fs::directory_iterator(path, error); !error && at != fs::directory_iterator(); at.increment(error)) {
      struct stat info{};
      const std::string name = at->path().filename();
      const bool secret = name.ends_with(".key") || name.ends_with(".kubeconfig");
      if (secret && ::stat(at->path().c_str(), &info) == 0 && (info.st_mode & kOthers) != 0)
        open.push_back(at->path().string() + " (" + Octal(info.st_mode & 0777) + ")");
    }
  }
  if (open.empty()) return;
  findings.Fail(kArea, "other users may read secrets: " + base::Join(open, ", "),
                "chmod 600 them; if others could get at them, have new ones made");
}

}  // namespace

int ProcessOf(const std::string& data_folder) {
  const int fd = ::open((data_folder + "/lock").c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return 0;
  int holder = 0;
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const auto text = ReadSmallFile(data_folder + "/lock");
    holder = text.ok() ? static_cast<int>(base::ParseInt64(base::Trim(*text)).value_or(-1)) : -1;
  }
  ::close(fd);
  return holder;
}

void CheckFolder(const std::string& folder, Findings& findings) {
  struct stat info{};
  if (::stat(folder.c_str(), &info) != 0) {
    if (errno == ENOENT) {
      findings.OK(kArea, folder + " is not there yet: the first start makes it");
    } else {
      findings.Fail(kArea, "cannot look at " + folder + ": " + std::generic_category().message(errno),
                    "run this as the user of the server, or as root");
    }
    return;
  }
  if (!S_ISDIR(info.st_mode)) {
    findings.Fail(kArea, folder + " is not a folder", "choose another with --data-dir");
    return;
  }
  if (::access(folder.c_str(), R_OK | W_OK | X_OK) != 0)
    findings.Fail(kArea, folder + " belongs to " + UserName(info.st_uid) + " and cannot be written to",
                  "run the server as that user, or change the owner");
  if ((info.st_mode & kOthers) != 0) {
    findings.Fail(kArea, folder + " is open to other users (mode " + Octal(info.st_mode & 0777) + ")",
                  "chmod 700 it; the next start does that by itself");
  }
  CheckModes(folder, findings);
  const int holder = ProcessOf(folder);
  const std::string state = holder == 0 ? "no server runs on it" : "process " + std::to_string(holder) + " runs on it";
  findings.OK(kArea, folder + " (of " + UserName(info.st_uid) + "): " + state);
}

void CheckStore(const std::string& folder, Findings& findings) {
  const std::string store = folder + "/store";
  if (!FileExists(store + "/db")) return;
  if (ProcessOf(folder) != 0) {
    findings.OK("store", "in use, so it is not read; stop the server to have every checksum read");
    return;
  }
  const auto report = kv::rocks::Check(store);
  if (!report.ok()) {
    findings.Fail("store", report.error().message,
                  "restore a backup: keelson backup restore FILE NEWFOLDER (list them: keelson backup list)");
    return;
  }
  findings.OK("store", std::to_string(report->keys) + " keys at revision " + std::to_string(report->revision) + ", " +
                           HumanBytes(static_cast<std::uint64_t>(report->value_bytes)) + ", every checksum right");
}

}  // namespace keelson::app
