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

template <class Call>
Task<void> Chain::Each(Operation operation, bool validating, Call call) const {
  const Time begin = Start();
  Time since = begin;
  meta::Result<void> result;
  for (const auto& plugin : plugins_) {
    if (!plugin->Handles(operation)) continue;
    result = co_await call(*plugin);
    since = Observe(plugin->name(), operation, validating, result, since);
    if (!result.ok()) break;
  }
  Observe("", operation, validating, result, begin);
  co_return result;
}

Task<void> Chain::Admit(request::Context& context, Attributes& attributes) const {
  return Each(attributes.operation, false, [&](Plugin& plugin) { return plugin.Admit(context, attributes); });
}

Task<void> Chain::Validate(request::Context& context, const Attributes& attributes) const {
  return Each(attributes.operation, true, [&](Plugin& plugin) { return plugin.Validate(context, attributes); });
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
