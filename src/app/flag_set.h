// Command line flags with the meaning kube-apiserver's have: pflag's syntax and messages, named groups, deprecated and
// hidden flags. Parsed once at start, by one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/flag_values.h"
#include "base/outcome.h"

namespace keelson::app {

// One row of the flag table.
struct Flag {
  std::string_view group;
  std::string_view name;
  std::unique_ptr<FlagValue> value;
  std::string_view unbuilt;  // "" when the flag has its effect; else the capability that is missing: "audit"
  std::string usage;
  char shorthand = 0;
  std::string_view deprecated = {};      // printed on use
  bool hidden = false;                   // not in --help
  std::string_view no_opt_default = {};  // the value of a bare --name; flags without one need a value
  // Values that are accepted though the flag's capability is not built, because they do not use it ("none", "false").
  std::vector<std::string_view> harmless_values = {};

  std::string default_text = {};  // filled by FlagSet
  bool changed = false;
};

struct ParsedArguments {
  std::vector<std::string> positional;
  std::vector<std::string> warnings;  // "Flag --x has been deprecated, ...", one per use, for stderr
};

class FlagSet {
 public:
  // Groups are shown in this order by Usage().
  FlagSet(std::vector<std::string_view> groups, std::vector<Flag> flags);

  // Everything but the program's name. The error is pflag's text: `unknown flag: --x`. `_` counts as `-` in names.
  Outcome<ParsedArguments, std::string> Parse(const std::vector<std::string>& arguments);

  const Flag* Find(std::string_view name) const;
  bool Changed(std::string_view name) const;
  const std::vector<Flag>& flags() const { return flags_; }  // by name

  // "\nGeneric flags:\n\n      --advertise-address ip   ...\n" for every group. `columns`: the terminal's width, 0 for
  // no wrapping.
  std::string Usage(std::size_t columns) const;

 private:
  Outcome<void, std::string> Set(Flag& flag, std::string_view value, ParsedArguments& parsed);
  Outcome<std::size_t, std::string> ParseLong(const std::vector<std::string>& arguments, std::size_t at,
                                              ParsedArguments& parsed);
  Outcome<std::size_t, std::string> ParseShort(const std::vector<std::string>& arguments, std::size_t at,
                                               ParsedArguments& parsed);
  Flag* FindMutable(std::string_view name);
  // A second line of an error: the flag that was perhaps meant. "" for none.
  std::string DidYouMean(std::string_view name) const;

  std::vector<std::string_view> groups_;
  std::vector<Flag> flags_;
};

}  // namespace keelson::app
