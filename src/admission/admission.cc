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

Task<void> Chain::Admit(request::Context& context, Attributes& attributes) const {
  for (const auto& plugin : plugins_) {
    if (!plugin->Handles(attributes.operation)) continue;
    KS_CO_RETURN_IF_ERROR(co_await plugin->Admit(context, attributes));
  }
  co_return meta::Result<void>();
}

Task<void> Chain::Validate(request::Context& context, const Attributes& attributes) const {
  for (const auto& plugin : plugins_) {
    if (!plugin->Handles(attributes.operation)) continue;
    KS_CO_RETURN_IF_ERROR(co_await plugin->Validate(context, attributes));
  }
  co_return meta::Result<void>();
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
