#include "app/subcommands.h"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <cstdio>
#include <filesystem>
#include <span>

#include "app/commands/backup_command.h"
#include "app/commands/console_command.h"
#include "app/commands/doctor.h"
#include "app/commands/envtest_assets.h"
#include "app/commands/output.h"
#include "app/commands/progress.h"
#include "app/commands/top.h"
#include "app/completion.h"
#include "app/migrate_command.h"
#include "app/options.h"
#include "app/store_folder.h"
#include "app/version.h"
#include "async/io_pool.h"
#include "base/strings.h"
#include "kv/etcdmain/etcdmain.h"
#include "kv/rocks/rocks.h"
#include "kv/rocks/tools.h"
#include "kv/snapshot/snapshot.h"

namespace keelson::app {
namespace {

int Unknown(std::string_view what, const std::string& word, std::span<const std::string_view> known,
            const char* usage) {
  return Fail(UnknownWord(what, word, known) + "\n" + usage);
}

// Error of opening a store; a folder in use by a running server also gets advice.
int FailOfStore(const kv::Error& error) {
  if (error.code != kv::ErrorCode::kInUse) return Fail(error.message);
  return Fail(Error(error.message,
                    "stop that server first; `keelson backup save` backs up a running one, and the page Store of its "
                    "console checks and defragments it"));
}

int Report(const kv::Result<kv::rocks::CheckReport>& report) {
  if (!report.ok()) return FailOfStore(report.error());
  std::printf("revision %lld, compacted to %lld, %lld keys, %lld changes, %lld leases, %lld bytes of values\n",
              static_cast<long long>(report->revision), static_cast<long long>(report->compact_revision),
              static_cast<long long>(report->keys), static_cast<long long>(report->changes),
              static_cast<long long>(report->leases), static_cast<long long>(report->value_bytes));
  return 0;
}

int Snapshot(const std::string& folder, const std::string& file) {
  if (std::filesystem::exists(file)) return Fail(file + " is already there: choose another name");
  // Opening would make a new store where none is.
  if (!std::filesystem::exists(folder + "/db")) return Fail("there is no store in " + folder);
  auto store = kv::rocks::Open({.dir = folder});
  if (!store.ok()) return FailOfStore(store.error());
  async::IOPool io(1);
  const auto info = [&] {
    Progress progress("reading the store", ProgressUnit::kItems);
    auto writing = kv::snapshot::WriteFile(**store, file, SetterOf(progress));
    return asio::co_spawn(io.executor(0), std::move(writing), asio::use_future).get();
  }();
  if (!info.ok()) return Fail(info.error().message);
  std::printf("%s: revision %lld, %lld keys, %lld bytes\n", file.c_str(), static_cast<long long>(info->revision),
              static_cast<long long>(info->keys), static_cast<long long>(info->bytes));
  return 0;
}

kv::Result<kv::rocks::CheckReport> CheckFolder(const std::string& folder) {
  Progress progress("reading the store", ProgressUnit::kItems);
  return kv::rocks::Check(folder, SetterOf(progress));
}

kv::Result<kv::rocks::CheckReport> RestoreFolder(const std::string& file, const std::string& folder) {
  Progress progress("writing the store", ProgressUnit::kItems);
  return kv::rocks::Restore(file, folder, SetterOf(progress));
}

std::uint64_t BytesIn(const std::string& folder) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (auto at = std::filesystem::recursive_directory_iterator(folder, error);
       !error && at != std::filesystem::recursive_directory_iterator(); at.increment(error)) {
    if (at->is_regular_file(error)) bytes += at->file_size(error);
  }
  return bytes;
}

int Defragment(const std::string& folder) {
  const std::uint64_t before = BytesIn(folder);
  if (isatty(STDERR_FILENO) != 0) std::fprintf(stderr, "rewriting %s ...\n", HumanBytes(before).c_str());
  const auto done = kv::rocks::DefragmentDir(folder);
  if (!done.ok()) return FailOfStore(done.error());
  Say(HumanBytes(before) + " before, " + HumanBytes(BytesIn(folder)) + " now");
  return 0;
}

constexpr const char* kStoreUsage =
    "usage: keelson store check FOLDER            read everything with its checksums\n"
    "       keelson store snapshot FOLDER FILE    write its contents into a file; the server must be stopped\n"
    "                                             (keelson backup save: of a running one, with its certificates)\n"
    "       keelson store restore FILE FOLDER     make a new store from such a file\n"
    "       keelson store defragment FOLDER       give space back to the file system\n"
    "FOLDER is a data folder, or the folder `store` in it; restore makes the store itself: name FOLDER/store to start "
    "a\n"
    "server with --data-dir=FOLDER. A snapshot does not hold the certificates: back up pki/ too.";

int Store(const std::vector<std::string>& arguments) {
  const std::size_t count = arguments.size();
  if (count == 2 && arguments[0] == "check") return Report(CheckFolder(StoreFolder(arguments[1])));
  if (count == 3 && arguments[0] == "restore") return Report(RestoreFolder(arguments[1], arguments[2]));
  if (count == 3 && arguments[0] == "snapshot") return Snapshot(StoreFolder(arguments[1]), arguments[2]);
  if (count == 2 && arguments[0] == "defragment") return Defragment(StoreFolder(arguments[1]));
  constexpr std::string_view kVerbs[] = {"check", "snapshot", "restore", "defragment"};
  if (count > 0 && std::ranges::find(kVerbs, arguments[0]) == std::end(kVerbs))
    return Unknown("store command", arguments[0], kVerbs, kStoreUsage);
  return Fail(std::string("wrong number of arguments\n") + kStoreUsage);
}

int Version(const std::vector<std::string>& arguments) {
  if (!arguments.empty()) return Fail("cannot use " + base::GoQuote(arguments[0]) + "\nusage: keelson version");
  const VersionInfo info = GetVersionInfo();
  std::printf("%sspeaks Kubernetes %s\n", OwnVersionText(info).c_str(), info.git_version.c_str());
  return 0;
}

constexpr const char* kCompletionUsage =
    "usage: keelson completion bash|zsh|fish\n"
    "  bash: keelson completion bash > /etc/bash_completion.d/keelson\n"
    "  zsh:  keelson completion zsh > \"${fpath[1]}/_keelson\"\n"
    "  fish: keelson completion fish > ~/.config/fish/completions/keelson.fish";

int Completion(const std::vector<std::string>& arguments);
int Help(const std::vector<std::string>& arguments);

struct Subcommand {
  std::string_view name;
  std::string_view summary;
  const char* usage;
  int (*run)(const std::vector<std::string>& arguments);
};

const Subcommand kSubcommands[] = {
    {"store", "check, snapshot, restore or defragment the store of a stopped server", kStoreUsage, Store},
    {"migrate", "copy a store to etcd, from etcd, or into a new folder", kMigrateUsage, RunMigrate},
    {"etcd", "serve an embedded store through etcd's API, with etcd's flags", kv::etcdmain::kUsage, kv::etcdmain::Main},
    {"backup", "back up a server with its certificates, running or not, and restore it", kBackupUsage, RunBackup},
    {"doctor", "look for what is wrong with a server, its folder and its machine", kDoctorUsage, RunDoctor},
    {"console", "print a link that opens the console of a running server, signed in", kConsoleUsage, RunConsole},
    {"top", "show live what a server is doing", kTopUsage, RunTop},
    {"envtest-assets", "make the folder from which controller-runtime's envtest starts this server",
     kEnvtestAssetsUsage, RunEnvtestAssets},
    {"version", "tell the versions of Keelson and of the Kubernetes API it speaks", "usage: keelson version", Version},
    {"completion", "write a completion script for bash, zsh or fish", kCompletionUsage, Completion},
    {"help", "tell about a command, or about the flags of the server", "usage: keelson help [COMMAND]", Help},
};

std::vector<std::string_view> SubcommandNames() {
  std::vector<std::string_view> names;
  for (const Subcommand& command : kSubcommands) names.push_back(command.name);
  return names;
}

const Subcommand* FindSubcommand(std::string_view name) {
  const auto found = std::ranges::find(kSubcommands, name, &Subcommand::name);
  return found == std::end(kSubcommands) ? nullptr : found;
}

int Completion(const std::vector<std::string>& arguments) {
  ServerRunOptions options;
  const FlagSet flag_set = MakeFlags(options);
  std::vector<CompletionCommand> commands;
  std::vector<CompletionFlag> flags;
  for (const Subcommand& command : kSubcommands)
    commands.push_back(CommandOfUsage(command.name, command.summary, command.usage, SubcommandNames()));
  for (const Flag& flag : flag_set.flags()) {
    if (!flag.hidden) flags.push_back({"--" + std::string(flag.name), flag.usage, flag.no_opt_default.empty()});
  }
  const auto script = arguments.size() == 1 ? CompletionScript(arguments[0], commands, flags) : std::nullopt;
  constexpr std::string_view kShells[] = {"bash", "zsh", "fish"};
  if (!script && arguments.size() == 1) return Unknown("shell", arguments[0], kShells, kCompletionUsage);
  if (!script) return Fail(std::string("name one shell\n") + kCompletionUsage);
  std::fputs(script->c_str(), stdout);
  return 0;
}

bool AsksForHelp(const std::vector<std::string>& arguments) {
  return std::ranges::any_of(arguments, [](const std::string& word) { return word == "--help" || word == "-h"; });
}

int RunNamed(const Subcommand& command, const std::vector<std::string>& arguments) {
  if (AsksForHelp(arguments)) {
    std::printf("keelson %s: %s\n\n%s\n", std::string(command.name).c_str(), std::string(command.summary).c_str(),
                command.usage);
    return 0;
  }
  return command.run(arguments);
}

int Help(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    std::printf("%s\nRun 'keelson --help' for the flags of the server, 'keelson COMMAND --help' for a command.\n",
                SubcommandUsage("keelson").c_str());
    return 0;
  }
  const Subcommand* command = FindSubcommand(arguments[0]);
  if (command == nullptr)
    return Unknown("command", arguments[0], SubcommandNames(), "Run 'keelson help' for all commands.");
  return RunNamed(*command, {"--help"});
}

}  // namespace

constexpr std::string_view kExamples =
    "\nExamples:\n"
    "  keelson                                     serve from the default folder; the first lines tell how to use it\n"
    "  keelson --data-dir=:memory:                 keep nothing\n"
    "  keelson --bind-address=0.0.0.0 --backup-interval=12h\n"
    "  keelson --etcd-servers=https://10.0.0.1:2379 --etcd-cafile=ca.crt ...    in place of kube-apiserver\n";

std::string SubcommandUsage(std::string_view program) {
  if (program == "kube-apiserver") return "";
  std::string text = "Commands:\n";
  for (const Subcommand& command : kSubcommands) {
    std::string name(command.name);
    name.resize(16, ' ');
    text += "  " + name + std::string(command.summary) + "\n";
  }
  text += kExamples;
  return text;
}

std::optional<int> RunSubcommand(const std::string& program, const std::vector<std::string>& arguments) {
  if (program == "etcd") return kv::etcdmain::Main(arguments);
  if (program == "kube-apiserver" || arguments.empty() || arguments[0].empty() || arguments[0].starts_with('-'))
    return std::nullopt;
  const Subcommand* command = FindSubcommand(arguments[0]);
  if (command == nullptr)
    return Unknown("command", arguments[0], SubcommandNames(), "Run 'keelson help' for all commands.");
  return RunNamed(*command, {arguments.begin() + 1, arguments.end()});
}

}  // namespace keelson::app
