#include "admission/admission.h"

namespace keelson::admission {

std::string_view ToString(Operation operation) {
  switch (operation) {
    case Operation::kCreate:
      return "CREATE";
    case Operation::kUpdate:
      return "UPDATE";
    case Operation::kDelete:
      return "DELETE";
    case Operation::kConnect:
      return "CONNECT";
  }
  return "";
}

Task<void> Plugin::Admit(request::Context&, Attributes&) { co_return meta::Result<void>(); }
Task<void> Plugin::Validate(request::Context&, const Attributes&) { co_return meta::Result<void>(); }

Chain::Time Chain::Observe(std::string_view plugin, Operation operation, bool validating,
                           const meta::Result<void>& result, Time since) const {
  if (!observer_) return {};
  const Time now = std::chrono::steady_clock::now();
  observer_({plugin, operation, validating, !result.ok(), now - since});
  return now;
}

Task<void> Chain::Admit(request::Context& context, Attributes& attributes) const {
  const Operation operation = attributes.operation;
  const Time begin = Start();
  Time since = begin;
  meta::Result<void> result;
  for (const auto& plugin : plugins_) {
    if (!plugin->Handles(operation)) continue;
    result = co_await plugin->Admit(context, attributes);
    since = Observe(plugin->name(), operation, false, result, since);
    if (!result.ok()) break;
  }
  Observe("", operation, false, result, begin);
  co_return result;
}

Task<void> Chain::Validate(request::Context& context, const Attributes& attributes) const {
  const Operation operation = attributes.operation;
  const Time begin = Start();
  Time since = begin;
  meta::Result<void> result;
  for (const auto& plugin : plugins_) {
    if (!plugin->Handles(operation)) continue;
    result = co_await plugin->Validate(context, attributes);
    since = Observe(plugin->name(), operation, true, result, since);
    if (!result.ok()) break;
  }
  Observe("", operation, true, result, begin);
  co_return result;
}

std::vector<std::string> Chain::Names() const {
  std::vector<std::string> names;
  for (const auto& plugin : plugins_) names.emplace_back(plugin->name());
  return names;
}

meta::Status NewForbidden(const Attributes& attributes, std::string_view why) {
  std::string name = attributes.name;
  if (name.empty()) name = attributes.object.Get("metadata", "name").as_string();
  if (name.empty()) name = attributes.object.Get("metadata", "generateName").as_string();
  if (name.empty()) name = "Unknown";
  return meta::NewForbidden({attributes.resource.group, attributes.resource.resource}, name, why);
}

}  // namespace keelson::admission
