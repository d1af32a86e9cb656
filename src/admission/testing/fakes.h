// Objects, configuration and requests for tests of plugins.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "admission/admission.h"
#include "admission/configuration.h"
#include "codec/json.h"

namespace keelson::admission::testing {

inline Value Parse(base::Arena& arena, std::string_view json) {
  if (json.empty()) return {};
  auto decoded = codec::DecodeJSON(arena, json);
  EXPECT_TRUE(decoded.ok()) << json;
  return decoded->value;
}

class FakeReader final : public ObjectReader {
 public:
  std::map<std::string, std::string> objects;  // resource/namespace/name -> JSON
  std::map<std::string, std::string> updated;  // the same, of UpdateStatus

  Task<Value> Get(base::Arena& arena, std::string group, std::string resource, std::string name_space, std::string name,
                  bool) override {
    const auto found = objects.find(resource + "/" + name_space + "/" + name);
    if (found == objects.end()) co_return meta::NewNotFound({group, resource}, name);
    co_return Parse(arena, found->second);
  }
  Task<std::vector<Value>> List(base::Arena& arena, std::string, std::string resource,
                                std::string name_space) override {
    std::vector<Value> found;
    for (const auto& [key, json] : objects) {
      if (key.starts_with(resource + "/" + name_space + "/")) found.push_back(Parse(arena, json));
    }
    co_return found;
  }
  Task<void> UpdateStatus(base::Arena& arena, std::string, std::string resource, std::string name_space,
                          std::string name, std::function<std::optional<Value>(Value)> update) override {
    const std::string key = resource + "/" + name_space + "/" + name;
    if (const auto next = update(Parse(arena, objects[key]))) {
      updated[key].clear();
      codec::EncodeJSON(*next, updated[key]);
    }
    co_return meta::Result<void>();
  }
  Awaitable<bool> Allowed(const request::User&, std::string, std::string, std::string, std::string,
                          std::string) override {
    co_return false;
  }
};

// An AdmissionConfiguration with one plugin.
inline std::shared_ptr<const PluginConfigurations> ConfigurationOf(std::string_view plugin, std::string section) {
  const std::string file =
      R"({"apiVersion":"apiserver.config.k8s.io/v1","kind":"AdmissionConfiguration","plugins":[{"name":")" +
      std::string(plugin) + R"(","configuration":)" + std::move(section) + "}]}";
  auto read = PluginConfigurations::Read(
      "f", [&](const std::string&) { return Outcome<std::string, std::string>(std::in_place, file); });
  EXPECT_TRUE(read.ok()) << read.error();
  return read.ok() ? *read : nullptr;
}

// The text of a refusal behind `is forbidden: `; "" when there is none.
inline std::string Refusal(const meta::Result<void>& result) {
  if (result.ok()) return {};
  const std::string_view message = result.error().message();
  const auto at = message.find("is forbidden: ");
  return std::string(at == std::string_view::npos ? message : message.substr(at + 14));
}

// A write of `resource` (with /subresource) in the namespace of its object.
inline Attributes AttributesOf(base::Arena& arena, Operation operation, std::string_view group,
                               std::string_view resource, std::string_view object, std::string_view old = "") {
  const auto slash = resource.find('/');
  Attributes attributes;
  attributes.operation = operation;
  attributes.resource = {std::string(group), "v1", std::string(resource.substr(0, slash))};
  if (slash != std::string_view::npos) attributes.subresource = resource.substr(slash + 1);
  attributes.object = Parse(arena, object);
  attributes.old_object = Parse(arena, old);
  const Value named = attributes.object.is_null() ? attributes.old_object : attributes.object;
  attributes.name = named["metadata"]["name"].as_string();
  attributes.name_space = named["metadata"]["namespace"].as_string();
  attributes.kind = {std::string(group), "v1", std::string(named["kind"].as_string())};
  return attributes;
}

}  // namespace keelson::admission::testing
