#include "app/completion.h"

#include "base/strings.h"

namespace keelson::app {
namespace {

std::string Words(const std::vector<CompletionWord>& words) {
  std::string text;
  for (const CompletionWord& word : words) text += (text.empty() ? "" : " ") + word.word;
  return text;
}

// The first sentence, escaped for single quotes.
std::string Help(const CompletionWord& word) {
  std::string text = word.help.substr(0, word.help.find('\n'));
  if (const auto stop = text.find(". "); stop != std::string::npos) text.resize(stop);
  for (const auto [from, to] : {std::pair("'", ""), std::pair("[", "("), std::pair("]", ")"), std::pair(":", " -")})
    text = base::ReplaceAll(text, from, to);
  return text;
}

std::string Bash(const std::vector<CompletionWord>& commands, const std::vector<CompletionWord>& flags) {
  return "# bash completion of keelson\n"
         "_keelson() {\n"
         "  local cur=\"${COMP_WORDS[COMP_CWORD]}\"\n"
         "  COMPREPLY=()\n"
         "  if [[ $cur == -*=* ]]; then\n"
         "    compopt -o filenames\n"
         "    COMPREPLY=($(compgen -f -- \"${cur#*=}\"))\n"
         "  elif [[ $cur == -* ]]; then\n"
         "    compopt -o nospace\n"
         "    COMPREPLY=($(compgen -W \"" +
         Words(flags) +
         "\" -- \"$cur\"))\n"
         "  elif [[ $COMP_CWORD -eq 1 ]]; then\n"
         "    COMPREPLY=($(compgen -W \"" +
         Words(commands) +
         "\" -- \"$cur\"))\n"
         "  else\n"
         "    compopt -o filenames\n"
         "    COMPREPLY=($(compgen -f -- \"$cur\"))\n"
         "  fi\n"
         "}\n"
         "complete -F _keelson keelson\n";
}

std::string Zsh(const std::vector<CompletionWord>& commands, const std::vector<CompletionWord>& flags) {
  std::string text = "#compdef keelson\n_keelson() {\n  local -a commands\n  commands=(\n";
  for (const CompletionWord& command : commands) text += "    '" + command.word + ":" + Help(command) + "'\n";
  text += "  )\n  _arguments \\\n";
  for (const CompletionWord& flag : flags) text += "    '" + flag.word + "=[" + Help(flag) + "]:value:_files' \\\n";
  text +=
      "    '1: :{_describe command commands}' \\\n"
      "    '*:file:_files'\n"
      "}\n"
      "compdef _keelson keelson\n";
  return text;
}

std::string Fish(const std::vector<CompletionWord>& commands, const std::vector<CompletionWord>& flags) {
  std::string text = "# fish completion of keelson\n";
  for (const CompletionWord& command : commands)
    text += "complete -c keelson -n __fish_use_subcommand -f -a " + command.word + " -d '" + Help(command) + "'\n";
  for (const CompletionWord& flag : flags)
    text += "complete -c keelson -l " + flag.word.substr(2) + " -r -d '" + Help(flag) + "'\n";
  return text;
}

}  // namespace

std::optional<std::string> CompletionScript(std::string_view shell, const std::vector<CompletionWord>& commands,
                                            const std::vector<CompletionWord>& flags) {
  if (shell == "bash") return Bash(commands, flags);
  if (shell == "zsh") return Zsh(commands, flags);
  if (shell == "fish") return Fish(commands, flags);
  return std::nullopt;
}

}  // namespace keelson::app
