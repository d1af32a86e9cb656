// Output of commands: results to stdout, errors to stderr with exit code 1.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/error.h"

namespace keelson::app {

int Fail(const std::string& message);
int Fail(const Error& error);  // with its hint
void Say(const std::string& line);
// `unknown command "storre"; did you mean "store"?`
std::string UnknownWord(std::string_view what, std::string_view word, std::span<const std::string_view> known);

// --name=VALUE or --name VALUE taken out of `arguments`; "" when it is not there.
std::string TakeFlag(std::vector<std::string>& arguments, std::string_view name);
bool TakeSwitch(std::vector<std::string>& arguments, std::string_view name);  // --name

}  // namespace keelson::app
