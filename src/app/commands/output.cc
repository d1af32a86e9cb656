#include "app/commands/output.h"

#include <algorithm>
#include <cstdio>

#include "app/suggestion.h"
#include "base/strings.h"

namespace keelson::app {

int Fail(const std::string& message) {
  std::fprintf(stderr, "Error: %s\n", message.c_str());
  return 1;
}

int Fail(const Error& error) {
  return Fail(error.hint().empty() ? error.message() : error.message() + "\n  " + error.hint());
}

std::string UnknownWord(std::string_view what, std::string_view word, std::span<const std::string_view> known) {
  std::string text = "unknown " + std::string(what) + " " + base::GoQuote(word);
  if (const auto nearest = Suggestion(word, known); !nearest.empty())
    text += "; did you mean " + base::GoQuote(nearest) + "?";
  return text;
}

void Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

std::string TakeFlag(std::vector<std::string>& arguments, std::string_view name) {
  const std::string flag = "--" + std::string(name), prefix = flag + "=";
  for (auto at = arguments.begin(); at != arguments.end(); ++at) {
    if (at->starts_with(prefix)) {
      std::string value = at->substr(prefix.size());
      arguments.erase(at);
      return value;
    }
    if (*at == flag && at + 1 != arguments.end()) {
      std::string value = at[1];
      arguments.erase(at, at + 2);
      return value;
    }
  }
  return "";
}

bool TakeSwitch(std::vector<std::string>& arguments, std::string_view name) {
  return std::erase(arguments, "--" + std::string(name)) > 0;
}

}  // namespace keelson::app
