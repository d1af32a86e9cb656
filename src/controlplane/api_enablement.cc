#include "controlplane/api_enablement.h"

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "registry/catalog.h"
#include "schema/schema.h"

namespace keelson::controlplane {
namespace {

// Versions whose resources upstream serves when they are enabled, and this server does not have.
constexpr std::array<std::string_view, 1> kNotBuilt = {"resource.k8s.io/v1alpha3"};

std::string Key(std::string_view group, std::string_view version) {
  return std::string(group) + "/" + std::string(version);
}

std::optional<bool> Parse(std::string_view text) {
  if (text.empty() || text == "true") return true;
  if (text == "false") return false;
  return std::nullopt;
}

}  // namespace

APIEnablement APIEnablement::Default() {
  APIEnablement enablement;
  for (const schema::Package* package : schema::Packages()) {
    if (!package->serves) continue;
    const meta::GroupVersion version{std::string(package->group), std::string(package->version)};
    enablement.versions_[Key(version.group, version.version)] =
        !package->resources.empty() && registry::OnByDefault(version);
  }
  return enablement;
}

Outcome<APIEnablement, std::string> APIEnablement::FromRuntimeConfig(
    const std::map<std::string, std::string>& runtime_config) {
  APIEnablement enablement = Default();
  const auto matches = [](std::string_view stage, std::string_view version) {
    const bool alpha = version.find("alpha") != std::string_view::npos;
    const bool beta = version.find("beta") != std::string_view::npos;
    if (stage == "api/all") return true;
    if (stage == "api/alpha") return alpha;
    if (stage == "api/beta") return beta;
    return !alpha && !beta;
  };
  for (const std::string_view stage : {"api/all", "api/ga", "api/beta", "api/alpha"}) {
    const auto given = runtime_config.find(std::string(stage));
    if (given == runtime_config.end()) continue;
    if (given->second != "true" && given->second != "false") {
      return "invalid value " + std::string(stage) + "=" + given->second;
    }
    for (auto& [version, enabled] : enablement.versions_) {
      if (matches(stage, std::string_view(version).substr(version.find('/') + 1))) enabled = given->second == "true";
    }
  }
  for (const auto& [key, text] : runtime_config) {
    if (key.starts_with("api/")) continue;
    const auto value = Parse(text);
    if (!value) return "invalid value " + key + "=" + text;
    const auto parts = base::Split(key, '/');
    if (parts.size() == 2) {
      const auto known = enablement.versions_.find(key);
      if (known == enablement.versions_.end()) return "group version " + key + " that has not been registered";
      if (*value && std::ranges::find(kNotBuilt, key) != kNotBuilt.end())
        return "group version " + key + " is not built yet";
      known->second = *value;
    } else if (parts.size() == 3) {
      if (base::ToLower(parts[2]) != parts[2]) {
        return "invalid key " + key + ": group/version/resource and resource is always lowercase plural, not " +
               base::GoQuote(parts[2]);
      }
      enablement.resources_[key] = *value;
    }
  }
  return enablement;
}

void APIEnablement::Withdraw(std::string_view group, std::string_view version) {
  const std::string key = Key(group, version);
  versions_[key] = false;
  std::erase_if(resources_, [&key](const auto& entry) { return entry.first.starts_with(key + "/"); });
}

bool APIEnablement::VersionEnabled(std::string_view group, std::string_view version) const {
  const auto found = versions_.find(Key(group, version));
  return found != versions_.end() && found->second;
}

bool APIEnablement::ResourceEnabled(std::string_view group, std::string_view version, std::string_view resource) const {
  if (const auto found = resources_.find(Key(group, version) + "/" + std::string(resource));
      found != resources_.end()) {
    return found->second;
  }
  return VersionEnabled(group, version);
}

}  // namespace keelson::controlplane
