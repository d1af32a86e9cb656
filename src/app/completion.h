// Shell completion scripts (`keelson completion bash|zsh|fish`), made from the flags and subcommands.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace keelson::app {

struct CompletionWord {
  std::string word;  // a subcommand, or a flag with its dashes
  std::string help;  // one line
};

// Nothing for a shell that is not known.
std::optional<std::string> CompletionScript(std::string_view shell, const std::vector<CompletionWord>& commands,
                                            const std::vector<CompletionWord>& flags);

}  // namespace keelson::app
