#include "app/effective_version.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/strings.h"

namespace keelson::app {
namespace {

constexpr std::string_view kKube = "kube";

struct ParsedVersion {
  MinorVersion version;
  std::string text;  // as upstream's messages write it
};

// apimachinery's version.Parse, as far as numbers go: what follows them does not matter here.
Outcome<ParsedVersion, std::string> ParseVersion(const std::string& text) {
  std::string_view rest = base::Trim(text);
  if (rest.starts_with('v')) rest.remove_prefix(1);
  std::vector<std::string_view> components;
  while (true) {
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    if (digits == 0) break;
    components.push_back(rest.substr(0, digits));
    rest.remove_prefix(digits);
    if (!rest.starts_with('.')) break;
    rest.remove_prefix(1);
  }
  if (components.empty()) return "could not parse " + base::GoQuote(text) + " as version";
  if (components.size() < 2) return "illegal version string " + base::GoQuote(text);
  ParsedVersion parsed;
  for (std::size_t i = 0; i < components.size(); ++i) {
    const std::string_view component = components[i];
    if (i == 0 && component.size() > 1 && component[0] == '0')
      return "illegal zero-prefixed version component " + base::GoQuote(component) + " in " + base::GoQuote(text);
    const auto number = base::ParseUint64(component);
    if (!number)
      return "illegal non-numeric version component " + base::GoQuote(component) + " in " + base::GoQuote(text) +
             ": strconv.ParseUint: parsing " + base::GoQuote(component) + ": value out of range";
    if (i == 0) parsed.version.major = *number;
    if (i == 1) parsed.version.minor = *number;
    parsed.text += (i == 0 ? "" : ".") + std::to_string(*number);
  }
  if (components.size() > 2 && base::ParseUint64(components[2]) != 0u)
    return "patch version not allowed, got: " + std::string(kKube) + "=" + parsed.text;
  return parsed;
}

// The version that the items name for this server; nothing when there are none.
Outcome<std::optional<MinorVersion>, std::string> ReadItems(const std::vector<std::string>& items) {
  std::optional<ParsedVersion> found;
  std::string stranger;
  for (const std::string& item : items) {
    const std::size_t equals = item.find('=');
    const std::string component(equals == std::string::npos ? kKube : base::Trim(item.substr(0, equals)));
    const std::string text(equals == std::string::npos ? item : std::string(base::Trim(item.substr(equals + 1))));
    KS_TRY(ParsedVersion parsed, ParseVersion(text));
    if (component != kKube) {
      stranger = component;
      continue;
    }
    if (found) return "duplicate version flag, kube=" + found->text + " and kube=" + parsed.text;
    found = std::move(parsed);
  }
  if (!stranger.empty()) return "component not registered: " + stranger;
  if (!found) return std::optional<MinorVersion>();
  return std::optional(found->version);
}

}  // namespace

Outcome<EffectiveVersion, std::string> EffectiveVersion::FromFlags(const std::vector<std::string>& emulated,
                                                                   const std::vector<std::string>& min_compatibility) {
  EffectiveVersion effective;
  KS_TRY(const auto emulation, ReadItems(emulated));
  if (emulation) {
    effective.emulation = *emulation;
    const MinorVersion before{emulation->major, emulation->minor > 1 ? emulation->minor - 1 : 0};
    effective.min_compatibility = std::max(before, kVersionFloor);
  }
  KS_TRY(const auto oldest, ReadItems(min_compatibility));
  if (oldest) effective.min_compatibility = *oldest;
  return effective;
}

std::vector<std::string> EffectiveVersion::Validate() const {
  std::vector<std::string> errors;
  if (emulation > kBinaryVersion || emulation < kVersionFloor)
    errors.push_back("emulation version " + emulation.ToString() + " is not between [" + kVersionFloor.ToString() +
                     ", " + kBinaryVersion.ToString() + ".0]");
  if (min_compatibility > emulation || min_compatibility < kVersionFloor)
    errors.push_back("minCompatibilityVersion version " + min_compatibility.ToString() + " is not between [" +
                     kVersionFloor.ToString() + ", " + emulation.ToString() + "]");
  return errors;
}

std::vector<std::string> EffectiveVersion::Unbuilt() const {
  const EffectiveVersion defaults;
  std::vector<std::string> unbuilt;
  if (emulation != defaults.emulation) {
    unbuilt.emplace_back("--emulated-version: version emulation is not built yet");
  } else if (min_compatibility != defaults.min_compatibility) {
    unbuilt.emplace_back("--min-compatibility-version: other versions than the default are not built yet");
  }
  return unbuilt;
}

}  // namespace keelson::app
