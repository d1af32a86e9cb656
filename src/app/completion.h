// Shell completion scripts (`keelson completion bash|zsh|fish`), made from the server's flags and the usage texts of the subcommands.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace keelson::app {

struct CompletionFlag {
  std::string name;  // with its dashes
  std::string help;  // one line
  bool needs_value = true;
};

struct CompletionCommand {
  std::string name;
  std::string help;                 // one line
  std::vector<std::string> words;   // of which one follows the name: "check", "snapshot", ...
  std::vector<std::string> flags;   // with their dashes
  bool takes_server_flags = false;  // besides `flags`
};

// A command by its usage text, whose lines with the synopsis are "usage: keelson NAME ..." and those that begin with a space: flags are the words
// with two dashes in them, words follow "keelson NAME" in small letters, several separated by '|'. "[COMMAND]" stands for `commands`, "[flags of the
// server]" for those.
CompletionCommand CommandOfUsage(std::string_view name, std::string_view help, std::string_view usage,
                                 const std::vector<std::string_view>& commands);

// Nothing for a shell that is not known.
std::optional<std::string> CompletionScript(std::string_view shell, const std::vector<CompletionCommand>& commands,
                                            const std::vector<CompletionFlag>& flags);

}  // namespace keelson::app
