#include "app/commands/envtest_assets.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "app/commands/output.h"
#include "app/files.h"
#include "base/strings.h"

namespace keelson::app {

const char* const kEnvtestAssetsUsage =
    "usage: keelson envtest-assets FOLDER [--snapshot-from FILE]\n"
    "Makes FOLDER with kube-apiserver and etcd, which are this binary, and kubectl where it is found. Then:\n"
    "  KUBEBUILDER_ASSETS=FOLDER go test ./...\n"
    "Everything is kept in memory and ends with the test process, also when that is killed. With --snapshot-from (a "
    "file\n"
    "of `keelson store snapshot`) every environment begins with those objects, such as definitions of custom "
    "resources.";

namespace {

namespace fs = std::filesystem;

// Between single quotes of a shell.
std::string Quoted(const std::string& text) { return "'" + base::ReplaceAll(text, "'", "'\\''") + "'"; }

std::string FindInPath(const std::string& name) {
  const char* const path = std::getenv("PATH");
  for (const auto folder : base::Split(path != nullptr ? path : "", ':')) {
    const std::string file = std::string(folder) + "/" + name;
    struct stat info{};
    if (!folder.empty() && ::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        ::access(file.c_str(), X_OK) == 0)
      return file;
  }
  return "";
}

Outcome<void, Error> MakeAssets(const std::string& folder, const std::string& snapshot) {
  std::error_code error;
  const std::string self = fs::read_symlink("/proc/self/exe", error);
  if (error) return Error("cannot tell where this binary is: " + error.message());
  KS_RETURN_IF_ERROR(MakeDirectories(folder, 0755));
  const std::string about = "#!/bin/sh\n# Made by keelson envtest-assets.\nexec " + Quoted(self);
  // The last --data-dir wins. A snapshot needs a folder: the one that envtest chose, without syncs.
  const std::string store = snapshot.empty()
                                ? "--data-dir=:memory:"
                                : "--unsafe-no-fsync --snapshot-from=" + Quoted(fs::absolute(snapshot).string());
  KS_RETURN_IF_ERROR(
      WriteFileAtomically(folder + "/etcd", about + " etcd \"$@\" " + store + " --exit-with-parent\n", 0755));
  KS_RETURN_IF_ERROR(WriteFileAtomically(folder + "/kube-apiserver", about + " \"$@\" --exit-with-parent\n", 0755));
  return {};
}

}  // namespace

int RunEnvtestAssets(const std::vector<std::string>& given) {
  std::vector<std::string> arguments = given;
  const std::string snapshot = TakeFlag(arguments, "snapshot-from");
  if (arguments.size() != 1 || arguments[0].starts_with('-'))
    return Fail(std::string("name one folder\n") + kEnvtestAssetsUsage);
  if (!snapshot.empty() && !FileExists(snapshot)) return Fail("--snapshot-from: there is no file " + snapshot);
  const std::string folder = fs::absolute(arguments[0]).lexically_normal();
  if (const auto made = MakeAssets(folder, snapshot); !made.ok()) return Fail(made.error());
  const std::string kubectl = FindInPath("kubectl");
  std::error_code error;
  if (!kubectl.empty() && !fs::exists(folder + "/kubectl", error))
    fs::create_symlink(fs::canonical(kubectl, error), folder + "/kubectl", error);
  Say("export KUBEBUILDER_ASSETS=" + folder);
  if (kubectl.empty()) Say("# kubectl is not in PATH: envtest needs it only for ControlPlane.KubeCtl()");
  return 0;
}

}  // namespace keelson::app
