// The types of kube-apiserver's flags: how each reads text, what it says when it cannot, how it prints itself. Each
// writes to a field of the options that outlives it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/log.h"

namespace keelson::app {

class FlagValue {
 public:
  virtual ~FlagValue() = default;
  virtual std::optional<std::string> Set(std::string_view text) = 0;  // why it cannot be, or nothing
  virtual std::string String() const = 0;
  virtual std::string_view type() const = 0;  // pflag's name of it: "stringSlice" is shown as "strings"
};

struct NamedCertKey {
  std::string cert_file, key_file;
  std::vector<std::string> names;
  std::string String() const;
};

struct PortRange {
  int base = 0;
  int size = 0;
  bool Contains(int port) const { return port >= base && port < base + size; }
  std::string String() const;  // 30000-32767
};

using Strings = std::vector<std::string>;
using StringMap = std::map<std::string, std::string>;
using Multimap = std::map<std::string, Strings>;

using ValuePtr = std::unique_ptr<FlagValue>;
ValuePtr String(std::string& field);
ValuePtr Bool(bool& field);
ValuePtr Int(std::int64_t& field);  // shown as int
ValuePtr Int64(std::int64_t& field);
ValuePtr Uint(std::uint64_t& field);
ValuePtr Float64(double& field);
ValuePtr Float32(float& field);
ValuePtr Duration(std::chrono::nanoseconds& field);
ValuePtr IP(std::string& field);       // canonical text; "" means none and prints <nil>
ValuePtr StringSlice(Strings& field);  // CSV; the first use replaces the default, later ones append
ValuePtr StringArray(Strings& field);  // one per use
ValuePtr Int32Slice(std::vector<std::int32_t>& field);
ValuePtr StringToString(StringMap& field);          // k=v,k2=v2
ValuePtr MapStringStringNoSplit(StringMap& field);  // one k=v per use
ValuePtr ConfigurationMap(StringMap& field);        // k=v,k
ValuePtr ColonSeparatedMultimap(Multimap& field);   // [key:]value,...
ValuePtr NamedCertKeys(std::vector<NamedCertKey>& field);
ValuePtr Ports(PortRange& field);
ValuePtr Quantity(std::uint64_t& bytes);  // 512, 1K, 2Ki
ValuePtr Level(std::int64_t& field);
ValuePtr VModules(std::vector<log::VModule>& field);
ValuePtr Version(std::string& field);  // "false", "true", "raw" or "vX.Y.Z"

// encoding/csv's first record, as pflag reads lists. The error is encoding/csv's.
std::optional<std::string> ReadCSV(std::string_view text, Strings& out);
std::string WriteCSV(const Strings& fields);

// The canonical text of an IPv4 or IPv6 address; leading zeros in IPv4 are decimal, as they were before Go 1.17.
std::optional<std::string> ParseIPSloppy(std::string_view text);

}  // namespace keelson::app
