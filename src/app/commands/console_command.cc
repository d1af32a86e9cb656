#include "app/commands/console_command.h"

#include "app/backup/control_socket.h"
#include "app/commands/output.h"
#include "app/data_dir.h"
#include "base/strings.h"

namespace keelson::app {

const char* const kConsoleUsage =
    "usage: keelson console [--data-dir FOLDER]\n"
    "Prints a link to the console of the server that runs on the folder. Who opens it within ten minutes is signed in "
    "as\n"
    "the administrator; it works once. Only the server's own user and root get one.";

int RunConsole(const std::vector<std::string>& given) {
  std::vector<std::string> arguments = given;
  std::string folder = TakeFlag(arguments, "data-dir");
  if (folder.empty()) folder = DataDir::Default();
  if (!arguments.empty()) return Fail("cannot use " + base::GoQuote(arguments[0]) + "\n" + kConsoleUsage);
  const auto link = ConsoleLinkOfRunning(folder);
  if (!link)
    return Fail(
        Error("no server runs on " + folder, "start one, or name the data folder of the server with --data-dir"));
  if (!link->ok()) return Fail(link->error());
  std::string text = **link;
  if (text.ends_with('\n')) text.pop_back();
  Say(text);
  return 0;
}

}  // namespace keelson::app
