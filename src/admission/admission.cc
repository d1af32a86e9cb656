#include "admission/admission.h"

#include "async/deadlines.h"
#include "async/event.h"

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

Task<void> Chain::AwaitReady(const Plugin& plugin, const Attributes& attributes) {
  constexpr std::chrono::milliseconds kPoll{50};
  const auto until = base::Clock::Real().Monotonic() + kReadyWait;
  while (!plugin.Ready()) {
    if (base::Clock::Real().Monotonic() >= until) co_return NewForbidden(attributes, "not yet ready to handle request");
    async::Event over;
    const auto entry = async::Deadlines::Global().Add(base::Clock::Real().Monotonic() + kPoll, [&over] { over.Set(); });
    co_await over.Wait();
  }
  co_return meta::Result<void>();
}

Task<void> Chain::AdmitOnce(request::Context& context, Attributes& attributes) const {
  const Time begin = Start();
  Time since = begin;
  meta::Result<void> result;
  for (const auto& plugin : plugins_) {
    if (!plugin->Handles(attributes.operation)) continue;
    if (!plugin->Ready()) result = co_await AwaitReady(*plugin, attributes);
    if (result.ok()) result = co_await plugin->Admit(context, attributes);
    if (!plugin->name().empty()) since = Observe(plugin->name(), attributes.operation, false, result, since);
    if (!result.ok()) break;
  }
  Observe("", attributes.operation, false, result, begin);
  co_return result;
}

Task<void> Chain::Admit(request::Context& context, Attributes& attributes) const {
  Reinvocation reinvocation;
  attributes.reinvocation = &reinvocation;
  auto result = co_await AdmitOnce(context, attributes);
  if (result.ok() && reinvocation.should_reinvoke()) {
    reinvocation.BeginReinvoke();
    result = co_await AdmitOnce(context, attributes);
  }
  attributes.reinvocation = nullptr;
  co_return result;
}

Task<void> Chain::Validate(request::Context& context, const Attributes& attributes) const {
  const Time begin = Start();
  Time since = begin;
  meta::Result<void> result;
  for (const auto& plugin : plugins_) {
    if (!plugin->Handles(attributes.operation)) continue;
    if (!plugin->Ready()) result = co_await AwaitReady(*plugin, attributes);
    if (result.ok()) result = co_await plugin->Validate(context, attributes);
    if (!plugin->name().empty()) since = Observe(plugin->name(), attributes.operation, true, result, since);
    if (!result.ok()) break;
  }
  Observe("", attributes.operation, true, result, begin);
  co_return result;
}

std::vector<std::string> Chain::Names() const {
  std::vector<std::string> names;
  for (const auto& plugin : plugins_) {
    if (!plugin->name().empty()) names.emplace_back(plugin->name());
  }
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
