#include "app/completion.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace keelson::app {
namespace {

TEST(Completion, CommandOfUsage) {
  struct Case {
    const char* name;
    const char* usage;
    std::vector<std::string> words, flags;
    bool takes_server_flags;
  };
  const Case kCases[] = {
      {"store",
       "usage: keelson store check FOLDER   read it\n"
       "       keelson store snapshot FOLDER FILE   (keelson backup save: of a running one)\n"
       "FOLDER is what --data-dir names.",
       {"check", "snapshot"},
       {},
       false},
      {"migrate",
       "usage: keelson migrate --from STORE [--follow]\n         [--from-cafile F]\nA server has --serve-etcd-api.",
       {},
       {"--from", "--follow", "--from-cafile"},
       false},
      {"completion",
       "usage: keelson completion bash|zsh\n  bash: keelson completion bash > x",
       {"bash", "zsh"},
       {},
       false},
      {"doctor", "usage: keelson doctor [flags of the server]", {}, {}, true},
      {"help", "usage: keelson help [COMMAND]", {"store", "help"}, {}, false},
      {"version", "usage: keelson version", {}, {}, false},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const CompletionCommand command = CommandOfUsage(c.name, "", c.usage, {"store", "help"});
    EXPECT_EQ(command.words, c.words);
    EXPECT_EQ(command.flags, c.flags);
    EXPECT_EQ(command.takes_server_flags, c.takes_server_flags);
  }
}

TEST(Completion, HelpTextsAreEscaped) {
  const auto script = CompletionScript("zsh", {{.name = "top", .help = "it's [live]: yes. More."}}, {});
  ASSERT_TRUE(script);
  EXPECT_NE(script->find("'top:its (live) - yes'"), std::string::npos) << *script;
  EXPECT_EQ(CompletionScript("csh", {}, {}), std::nullopt);
}

}  // namespace
}  // namespace keelson::app
