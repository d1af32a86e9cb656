#include "app/flag_set.h"

#include <algorithm>

#include "app/suggestion.h"
#include "base/check.h"
#include "base/strings.h"

namespace keelson::app {
namespace {

std::string Normalize(std::string_view name) {
  std::string normal(name);
  std::replace(normal.begin(), normal.end(), '_', '-');
  return normal;
}

// The word after a flag's name in --help; pflag's short names for its types. Booleans have none.
std::string_view ShownType(const FlagValue& value) {
  const std::string_view type = value.type();
  if (type == "bool") return "";
  if (type == "float64") return "float";
  if (type == "int64") return "int";
  if (type == "stringSlice") return "strings";
  return type;
}

bool DefaultIsZero(const Flag& flag) {
  const std::string_view text = flag.default_text;
  const std::string_view type = flag.value->type();
  if (type == "duration") return text == "0s";
  if (type == "stringSlice" || type == "stringArray") return text == "[]";
  if (type == "string") return text.empty();
  return text == "false" || text == "<nil>" || text.empty() || text == "0";
}

// "      --name type", the left column.
std::string LeftColumn(const Flag& flag) {
  std::string left = flag.shorthand != 0 ? std::string("  -") + flag.shorthand + ", --" : std::string("      --");
  left += flag.name;
  const std::string_view type = ShownType(*flag.value);
  if (!type.empty()) left += " " + std::string(type);
  if (!flag.no_opt_default.empty() && flag.value->type() != "bool")
    left += "[=" + std::string(flag.no_opt_default) + "]";
  return left;
}

std::string RightColumn(const Flag& flag) {
  std::string right = flag.usage;
  if (!DefaultIsZero(flag)) {
    right +=
        " (default " + (flag.value->type() == "string" ? base::GoQuote(flag.default_text) : flag.default_text) + ")";
  }
  if (!flag.deprecated.empty()) right += " (DEPRECATED: " + std::string(flag.deprecated) + ")";
  return right;
}

std::string Indented(std::string_view text, std::size_t indent) {
  return base::ReplaceAll(text, "\n", "\n" + std::string(indent, ' '));
}

// Cuts one line of at most `width` (a little more when that takes everything) off the front of `text`.
std::string_view TakeLine(std::string_view& text, std::size_t width, std::size_t slop) {
  std::string_view line = text;
  if (width + slop > text.size()) {
    text = {};
    return line;
  }
  const std::string_view head = text.substr(0, width);
  std::size_t cut = head.find_last_of(" \t\n");
  if (cut == std::string_view::npos || cut == 0) {
    text = {};
    return line;
  }
  const std::size_t newline = head.rfind('\n');
  if (newline != std::string_view::npos && newline > 0 && newline < cut) cut = newline;
  line = text.substr(0, cut);
  text.remove_prefix(cut + 1);
  return line;
}

// pflag's wrapping: the right column between `indent` and `columns`, or below the name when there is no room beside it.
std::string Wrap(std::string_view text, std::size_t indent, std::size_t columns) {
  constexpr std::size_t kWidthMin = 24, kBlockIndent = 16, kSlop = 5;
  if (columns == 0) return Indented(text, indent);
  std::string out;
  if (columns < indent + kWidthMin) {
    indent = kBlockIndent;
    out = "\n" + std::string(indent, ' ');
  }
  if (columns < indent + kWidthMin) return base::ReplaceAll(text, "\n", out);
  const std::size_t width = columns - indent - kSlop;
  out += Indented(TakeLine(text, width, kSlop), indent);
  while (!text.empty()) out += "\n" + std::string(indent, ' ') + Indented(TakeLine(text, width, kSlop), indent);
  return out;
}

}  // namespace

FlagSet::FlagSet(std::vector<std::string_view> groups, std::vector<Flag> flags)
    : groups_(std::move(groups)), flags_(std::move(flags)) {
  for (Flag& flag : flags_) {
    flag.default_text = flag.value->String();
    if (flag.value->type() == "bool" && flag.no_opt_default.empty()) flag.no_opt_default = "true";
    KS_CHECK(std::find(groups_.begin(), groups_.end(), flag.group) != groups_.end());
  }
  std::sort(flags_.begin(), flags_.end(), [](const Flag& a, const Flag& b) { return a.name < b.name; });
  for (std::size_t i = 1; i < flags_.size(); ++i) KS_CHECK(flags_[i - 1].name != flags_[i].name);
}

Flag* FlagSet::FindMutable(std::string_view name) {
  auto found = std::lower_bound(flags_.begin(), flags_.end(), name,
                                [](const Flag& flag, std::string_view n) { return flag.name < n; });
  return found != flags_.end() && found->name == name ? &*found : nullptr;
}

std::string FlagSet::DidYouMean(std::string_view name) const {
  std::vector<std::string_view> names;
  for (const Flag& flag : flags_) {
    if (!flag.hidden) names.push_back(flag.name);
  }
  const std::string_view nearest = Suggestion(Normalize(name), names);
  return nearest.empty() ? "" : "\nDid you mean --" + std::string(nearest) + "?";
}

const Flag* FlagSet::Find(std::string_view name) const { return const_cast<FlagSet*>(this)->FindMutable(name); }

bool FlagSet::Changed(std::string_view name) const {
  const Flag* const flag = Find(name);
  return flag != nullptr && flag->changed;
}

Outcome<void, std::string> FlagSet::Set(Flag& flag, std::string_view value, ParsedArguments& parsed) {
  if (auto error = flag.value->Set(value)) {
    const std::string shown = flag.shorthand != 0 ? std::string("-") + flag.shorthand + ", --" : std::string("--");
    return "invalid argument " + base::GoQuote(value) + " for \"" + shown + std::string(flag.name) +
           "\" flag: " + *error;
  }
  flag.changed = true;
  if (!flag.deprecated.empty()) {
    parsed.warnings.push_back("Flag --" + std::string(flag.name) + " has been deprecated, " +
                              std::string(flag.deprecated));
  }
  return {};
}

Outcome<std::size_t, std::string> FlagSet::ParseLong(const std::vector<std::string>& arguments, std::size_t at,
                                                     ParsedArguments& parsed) {
  const std::string& argument = arguments[at];
  const std::string_view body = std::string_view(argument).substr(2);
  if (body.empty() || body[0] == '-' || body[0] == '=') return "bad flag syntax: " + argument;
  const std::size_t equals = body.find('=');
  const std::string_view name = body.substr(0, equals);
  Flag* const flag = FindMutable(Normalize(name));
  if (flag == nullptr) return "unknown flag: --" + std::string(name) + DidYouMean(name);
  std::string_view value;
  std::size_t used = 1;
  if (equals != std::string_view::npos) {
    value = body.substr(equals + 1);
  } else if (!flag->no_opt_default.empty()) {
    value = flag->no_opt_default;
  } else if (at + 1 < arguments.size()) {
    value = arguments[at + 1];
    used = 2;
  } else {
    return "flag needs an argument: " + argument;
  }
  KS_RETURN_IF_ERROR(Set(*flag, value, parsed));
  return used;
}

// -v2, -v=2, -v 2; flags without a value can be put together.
Outcome<std::size_t, std::string> FlagSet::ParseShort(const std::vector<std::string>& arguments, std::size_t at,
                                                      ParsedArguments& parsed) {
  const std::string& argument = arguments[at];
  std::string_view rest = std::string_view(argument).substr(1);
  while (!rest.empty()) {
    const char letter = rest[0];
    auto flag = std::find_if(flags_.begin(), flags_.end(), [&](const Flag& f) { return f.shorthand == letter; });
    if (flag == flags_.end()) {
      return std::string("unknown shorthand flag: '") + letter + "' in -" + std::string(rest);
    }
    if (rest.size() > 2 && rest[1] == '=') {
      KS_RETURN_IF_ERROR(Set(*flag, rest.substr(2), parsed));
      return std::size_t{1};
    }
    if (!flag->no_opt_default.empty()) {
      KS_RETURN_IF_ERROR(Set(*flag, flag->no_opt_default, parsed));
      rest.remove_prefix(1);
      continue;
    }
    if (rest.size() > 1) {
      KS_RETURN_IF_ERROR(Set(*flag, rest.substr(1), parsed));
      return std::size_t{1};
    }
    if (at + 1 >= arguments.size())
      return std::string("flag needs an argument: '") + letter + "' in -" + std::string(rest);
    KS_RETURN_IF_ERROR(Set(*flag, arguments[at + 1], parsed));
    return std::size_t{2};
  }
  return std::size_t{1};
}

Outcome<ParsedArguments, std::string> FlagSet::Parse(const std::vector<std::string>& arguments) {
  ParsedArguments parsed;
  for (std::size_t at = 0; at < arguments.size();) {
    const std::string& argument = arguments[at];
    if (argument.size() < 2 || argument[0] != '-') {
      parsed.positional.push_back(argument);
      ++at;
    } else if (argument == "--") {
      parsed.positional.insert(parsed.positional.end(), arguments.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                               arguments.end());
      break;
    } else {
      KS_TRY(const std::size_t used,
             argument[1] == '-' ? ParseLong(arguments, at, parsed) : ParseShort(arguments, at, parsed));
      at += used;
    }
  }
  return parsed;
}

std::string FlagSet::Usage(std::size_t columns) const {
  std::string out;
  for (const std::string_view group : groups_) {
    std::vector<const Flag*> shown;
    std::size_t width = 0;
    for (const Flag& flag : flags_) {
      if (flag.group != group || flag.hidden) continue;
      shown.push_back(&flag);
      width = std::max(width, LeftColumn(flag).size());
    }
    if (shown.empty()) continue;
    // On a terminal every description is below its flag, as upstream has it: the left column takes the whole line.
    constexpr std::size_t kNarrow = 24, kFrame = 12;
    if (columns > kNarrow) width = std::max(width, columns - kNarrow + kFrame);
    out += "\n" + std::string(group) + " flags:\n\n";
    constexpr std::size_t kGap = 3;
    for (const Flag* const flag : shown) {
      std::string left = LeftColumn(*flag);
      left.resize(width + kGap, ' ');
      out += left + Wrap(RightColumn(*flag), width + kGap, columns) + "\n";
    }
  }
  return out;
}

}  // namespace keelson::app
