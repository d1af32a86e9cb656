// Commands of the binary besides serving (`keelson store ...`); also `etcd`, when the binary is called that.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace keelson::app {

// The exit code when the arguments name a subcommand, or a word that is none; nothing when the server is meant. Called
// kube-apiserver, the binary has no subcommands.
std::optional<int> RunSubcommand(const std::string& program, const std::vector<std::string>& arguments);

// Subcommands with a line each, for --help; "" for a program that has none.
std::string SubcommandUsage(std::string_view program);

}  // namespace keelson::app
