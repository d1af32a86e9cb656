#include "admission/configuration.h"

#include "base/strings.h"
#include "codec/yaml.h"
#include "meta/type_errors.h"
#include "object/json_text.h"

namespace keelson::admission {
namespace {

constexpr ConfigurationKind kKinds[] = {{"apiserver.config.k8s.io", "v1", "AdmissionConfiguration"},
                                        {"apiserver.k8s.io", "v1alpha1", "AdmissionConfiguration"}};

std::string DirectoryOf(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

std::string CheckConfigurationKind(Value section, std::span<const ConfigurationKind> kinds) {
  const std::string_view api_version = section["apiVersion"].as_string(), kind = section["kind"].as_string();
  const auto missing = [&](std::string_view what) {
    return "Object '" + std::string(what) + "' is missing in '" + object::ToJSON(section) + "'";
  };
  if (kind.empty()) return missing("Kind");
  if (api_version.empty()) return missing("apiVersion");
  for (const ConfigurationKind& known : kinds) {
    const std::string text = std::string(known.group) + "/" + std::string(known.version);
    if (text == api_version && known.kind == kind) return "";
  }
  return meta::NotRegisteredError(kind, api_version);
}

Outcome<std::shared_ptr<const PluginConfigurations>, std::string> PluginConfigurations::Read(const std::string& path,
                                                                                             const ReadFile& read) {
  auto configurations = std::make_shared<PluginConfigurations>();
  base::Arena& arena = configurations->arena_;
  auto text = read(path);
  if (!text.ok()) {
    return "unable to read admission control configuration from " + base::GoQuote(path) + " [" + text.error() + "]";
  }
  auto file = codec::DecodeYAML(arena, *text);
  if (!file.ok()) return "couldn't get version/kind; json parse error: " + file.error().message;
  const Value config = file->value;
  // Two plugins have legacy file formats, older than AdmissionConfiguration.
  if (config["kind"].is_null() && config["imagePolicy"].is_map()) {
    configurations->sections_["ImagePolicyWebhook"] = config;
    return configurations;
  }
  if (config["kind"].is_null() && config["podNodeSelectorPluginConfig"].is_map()) {
    configurations->sections_["PodNodeSelector"] = config;
    return configurations;
  }
  if (std::string error = CheckConfigurationKind(config, kKinds); !error.empty()) return error;
  for (const Value plugin : config["plugins"].items()) {
    std::string name(plugin["name"].as_string());
    if (configurations->sections_.contains(name)) continue;  // The first one counts.
    if (plugin["configuration"].is_map()) {
      configurations->sections_.emplace(std::move(name), plugin["configuration"]);
      continue;
    }
    std::string own(plugin["path"].as_string());
    if (own.empty()) continue;
    if (own.front() != '/') own = DirectoryOf(path) + "/" + own;
    auto section = read(own);
    if (!section.ok()) return "Couldn't open admission plugin configuration " + own + ": " + section.error();
    auto decoded = codec::DecodeYAML(arena, *section);
    if (!decoded.ok()) return "couldn't get version/kind; json parse error: " + decoded.error().message;
    configurations->sections_.emplace(std::move(name), decoded->value);
  }
  return configurations;
}

}  // namespace keelson::admission
