#include "app/completion.h"

#include <algorithm>

#include "base/strings.h"

namespace keelson::app {
namespace {

using Words = std::vector<std::string>;

void AddOnce(Words& words, std::string_view word) {
  if (std::ranges::find(words, word) == words.end()) words.emplace_back(word);
}

constexpr std::string_view kFlagLetters = "abcdefghijklmnopqrstuvwxyz0123456789-";

// --name in front of `text`; "" when it does not begin with one.
std::string_view FlagAt(std::string_view text) {
  const std::string_view name = text.substr(0, text.find_first_not_of(kFlagLetters));
  return name.starts_with("--") && name.size() > 2 ? name : std::string_view();
}

void AddFlags(Words& flags, std::string_view line) {
  for (std::size_t at = line.find("--"); at != std::string_view::npos; at = line.find("--", at + 2)) {
    if (const std::string_view flag = FlagAt(line.substr(at)); !flag.empty()) AddOnce(flags, flag);
  }
}

// The first sentence, escaped for single quotes.
std::string Help(std::string_view help) {
  std::string text(help.substr(0, help.find('\n')));
  if (const auto stop = text.find(". "); stop != std::string::npos) text.resize(stop);
  for (const auto [from, to] : {std::pair("'", ""), std::pair("[", "("), std::pair("]", ")"), std::pair(":", " -")})
    text = base::ReplaceAll(text, from, to);
  return text;
}

Words NamesOf(const std::vector<CompletionCommand>& commands) {
  Words names;
  for (const CompletionCommand& command : commands) names.push_back(command.name);
  return names;
}

Words NamesOf(const std::vector<CompletionFlag>& flags) {
  Words names;
  for (const CompletionFlag& flag : flags) names.push_back(flag.name);
  return names;
}

std::string Bash(const std::vector<CompletionCommand>& commands, const std::vector<CompletionFlag>& flags) {
  std::string text =
      "# bash completion of keelson\n"
      "_keelson() {\n"
      "  local cur=\"${COMP_WORDS[COMP_CWORD]}\" command= words= flags=\n"
      "  local server=\"" +
      base::Join(NamesOf(flags), " ") +
      "\"\n"
      "  [[ $COMP_CWORD -gt 1 ]] && command=\"${COMP_WORDS[1]}\"\n"
      "  case \"$command\" in\n"
      "    '') flags=$server; words=\"" +
      base::Join(NamesOf(commands), " ") + "\" ;;\n";
  for (const CompletionCommand& command : commands) {
    text += "    " + command.name + ") flags=\"" + base::Join(command.flags, " ") +
            (command.takes_server_flags ? " $server" : "") + "\"; words=\"" + base::Join(command.words, " ") +
            "\" ;;\n";
  }
  text +=
      "    -*) flags=$server ;;\n"
      "  esac\n"
      "  COMPREPLY=()\n"
      "  if [[ $cur == -*=* ]]; then\n"
      "    cur=\"${cur#*=}\"\n"
      "  elif [[ $cur == -* ]]; then\n"
      "    compopt -o nospace\n"
      "    COMPREPLY=($(compgen -W \"$flags\" -- \"$cur\"))\n"
      "    return\n"
      "  elif [[ $COMP_CWORD -le 2 && -n $words ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
      "    return\n"
      "  fi\n"
      "  [[ $cur == = ]] && cur=\n"
      "  compopt -o filenames\n"
      "  COMPREPLY=($(compgen -f -- \"$cur\"))\n"
      "}\n"
      "complete -F _keelson keelson\n";
  return text;
}

std::string Zsh(const std::vector<CompletionCommand>& commands, const std::vector<CompletionFlag>& flags) {
  std::string text = "#compdef keelson\n_keelson() {\n  local -a commands server next own\n  commands=(\n";
  for (const CompletionCommand& command : commands) text += "    '" + command.name + ":" + Help(command.help) + "'\n";
  text += "  )\n  server=(\n";
  for (const CompletionFlag& flag : flags)
    text += "    '" + flag.name + (flag.needs_value ? "=[" : "[") + Help(flag.help) +
            (flag.needs_value ? "]:value:_files'\n" : "]'\n");
  text +=
      "  )\n"
      "  if (( CURRENT == 2 )) && [[ $PREFIX != -* ]]; then\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  case $words[2] in\n";
  for (const CompletionCommand& command : commands) {
    text += "    " + command.name + ") next=(" + base::Join(command.words, " ") + ") own=(" +
            base::Join(command.flags, " ") + ")" + (command.takes_server_flags ? "" : " server=()") + " ;;\n";
  }
  text +=
      "  esac\n"
      "  if (( CURRENT == 3 && $#next )) && [[ $PREFIX != -* ]]; then\n"
      "    compadd -a next\n"
      "    return\n"
      "  fi\n"
      "  [[ $PREFIX == -* ]] && compadd -a own\n"
      "  _arguments $server '*:file:_files'\n"
      "}\n"
      "compdef _keelson keelson\n";
  return text;
}

std::string FishLine(const std::string& condition, const std::string& rest) {
  return "complete -c keelson -n '" + condition + "' " + rest + "\n";
}

std::string Fish(const std::vector<CompletionCommand>& commands, const std::vector<CompletionFlag>& flags) {
  std::string text = "# fish completion of keelson\n";
  Words without_server_flags;
  for (const CompletionCommand& command : commands) {
    if (!command.takes_server_flags) without_server_flags.push_back(command.name);
    text += FishLine("__fish_use_subcommand", "-f -a " + command.name + " -d '" + Help(command.help) + "'");
    const std::string seen = "__fish_seen_subcommand_from " + command.name;
    const std::string words = base::Join(command.words, " ");
    if (!words.empty())
      text += FishLine(seen + "; and not __fish_seen_subcommand_from " + words, "-f -a '" + words + "'");
    for (const std::string& flag : command.flags) text += FishLine(seen, "-l " + flag.substr(2));
  }
  const std::string serving = "not __fish_seen_subcommand_from " + base::Join(without_server_flags, " ");
  for (const CompletionFlag& flag : flags)
    text += FishLine(serving,
                     "-l " + flag.name.substr(2) + (flag.needs_value ? " -r" : "") + " -d '" + Help(flag.help) + "'");
  return text;
}

}  // namespace

CompletionCommand CommandOfUsage(std::string_view name, std::string_view help, std::string_view usage,
                                 const std::vector<std::string_view>& commands) {
  CompletionCommand command{.name = std::string(name), .help = std::string(help)};
  const std::string call = "keelson " + std::string(name) + " ";
  for (const std::string_view line : base::Split(usage, '\n')) {
    if (!line.starts_with(' ') && !line.starts_with("usage: ")) continue;
    AddFlags(command.flags, line);
    const auto at = line.find(call);
    if (at == std::string_view::npos) continue;
    std::string_view rest = line.substr(at + call.size());
    if (rest.starts_with("[flags of the server]")) command.takes_server_flags = true;
    rest = rest.substr(0, rest.find(' '));
    if (rest == "[COMMAND]") command.words.assign(commands.begin(), commands.end());
    if (rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz|") != std::string_view::npos) continue;
    for (const std::string_view word : base::Split(rest, '|')) AddOnce(command.words, word);
  }
  return command;
}

std::optional<std::string> CompletionScript(std::string_view shell, const std::vector<CompletionCommand>& commands,
                                            const std::vector<CompletionFlag>& flags) {
  if (shell == "bash") return Bash(commands, flags);
  if (shell == "zsh") return Zsh(commands, flags);
  if (shell == "fish") return Fish(commands, flags);
  return std::nullopt;
}

}  // namespace keelson::app
