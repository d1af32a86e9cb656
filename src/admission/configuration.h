// The file of --admission-control-config-file: one section per plugin, inline or in a separate file.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/outcome.h"
#include "object/value.h"

namespace keelson::admission {

// Immutable once read. Thread safety: const members from any thread.
class PluginConfigurations {
 public:
  // Reads a file; the error is Go's text ("open x: no such file or directory").
  using ReadFile = std::function<Outcome<std::string, std::string>(const std::string& path)>;

  PluginConfigurations() = default;
  // The error is upstream's text.
  static Outcome<std::shared_ptr<const PluginConfigurations>, std::string> Read(const std::string& path,
                                                                                const ReadFile& read);

  // The section of a plugin as untyped JSON; null when there is none.
  Value Of(std::string_view plugin) const {
    const auto found = sections_.find(plugin);
    return found == sections_.end() ? Value() : found->second;
  }

 private:
  base::Arena arena_;
  std::map<std::string, Value, std::less<>> sections_;
};

// A kind that a section must have.
struct ConfigurationKind {
  std::string_view group;
  std::string_view version;
  std::string_view kind;
};
// Why a section is none of `kinds`, in upstream's words; "" when it is one.
std::string CheckConfigurationKind(Value section, std::span<const ConfigurationKind> kinds);

}  // namespace keelson::admission
