#include "controlplane/connect_options.h"

#include <map>

#include "base/strings.h"
#include "object/time.h"

namespace keelson::controlplane {
namespace {

// Upstream's stores name the resource of the request, whatever was looked for.
meta::Status AboutRequest(const request::Context& context, const meta::Status& status, std::string_view name) {
  if (status.reason() != meta::StatusReason::kNotFound) return status;
  return meta::NewNotFound({context.info.api_group, context.info.resource}, name);
}

std::vector<std::string> ContainerNames(Value pod) {
  std::vector<std::string> names;
  for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const Value container : pod.Get("spec", list).items()) names.emplace_back(container["name"].as_string());
  }
  return names;
}

}  // namespace

endpoints::Task<Value> ReadObject(const registry::Store& store, request::Context& context, std::string name) {
  auto object = co_await store.Get(context.info.name_space, name, "", context.caller());
  if (!object.ok()) co_return AboutRequest(context, object.error(), name);
  co_return store.Decode(context.arena, *object);
}

endpoints::Task<ConnectionInfo> FindKubelet(const ConnectBackends& backends, request::Context& context,
                                            std::string node) {
  auto info = co_await backends.kubelets->Get(node);
  if (!info.ok()) co_return AboutRequest(context, info.error(), node);
  co_return *std::move(info);
}

meta::Result<std::string> ChooseContainer(Value pod, std::string_view wanted) {
  const std::string pod_name(pod.Get("metadata", "name").as_string());
  const auto names = ContainerNames(pod);
  if (!wanted.empty()) {
    for (const std::string& name : names) {
      if (name == wanted) return name;
    }
    return meta::NewBadRequest("container " + std::string(wanted) + " is not valid for pod " + pod_name);
  }
  const Value containers = pod.Get("spec", "containers");
  if (containers.size() == 1) return std::string(containers.items()[0]["name"].as_string());
  const std::string text = "a container name must be specified for pod " + pod_name;
  if (containers.empty()) return meta::NewBadRequest(text);
  return meta::NewBadRequest(text + ", choose one of: [" + base::Join(names, " ") + "]");
}

ConnectOptions::ConnectOptions(const base::Query& query, base::Arena& arena)
    : query_(query), arena_(arena), object_(Value::Map(arena)) {}

bool ConnectOptions::Flag(std::string_view name) {
  const bool set = query_.Has(name) && request::ParseQueryBool(query_.Get(name));
  if (set) object_.Set(arena_, name, true);
  return set;
}

std::string ConnectOptions::Text(std::string_view name) {
  const std::string_view text = query_.Get(name);
  if (!text.empty()) object_.Set(arena_, name, Value::String(arena_, text));
  return std::string(text);
}

std::optional<std::int64_t> ConnectOptions::Number(std::string_view name) {
  if (!query_.Has(name)) return std::nullopt;
  const std::string_view text = query_.Get(name);
  const auto number = base::ParseInt64(text);
  if (!number) {
    const bool digits = !text.empty() && text.find_first_not_of("0123456789", text[0] == '-' || text[0] == '+') ==
                                             std::string_view::npos;
    const bool range = digits && text.size() > 18;
    error_ =
        "strconv.ParseInt: parsing " + base::GoQuote(text) + ": " + (range ? "value out of range" : "invalid syntax");
    return std::nullopt;
  }
  object_.Set(arena_, name, *number);
  return number;
}

std::string ConnectOptions::Time(std::string_view name) {
  const std::string_view text = query_.Get(name);
  if (text.empty() || text == "null") return {};
  const auto time = object::ParseTime(text);
  if (!time.ok()) {
    error_ = time.error();
    return {};
  }
  std::string formatted = object::FormatTime(time->seconds);
  object_.Set(arena_, name, Value::String(arena_, formatted));
  return formatted;
}

std::vector<std::string> ConnectOptions::Texts(std::string_view name) {
  std::vector<std::string> texts;
  Value list = Value::List(arena_);
  for (const std::string_view text : query_.Values(name)) {
    texts.emplace_back(text);
    list.Append(arena_, Value::String(arena_, text));
  }
  if (!texts.empty()) object_.Set(arena_, name, list);
  return texts;
}

std::vector<std::string> ConnectOptions::Ports(std::string_view name) {
  std::vector<std::string> ports;
  Value list = Value::List(arena_);
  for (const std::string_view texts : query_.Values(name)) {
    for (const std::string_view text : base::Split(texts, ',')) {
      const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
      const auto number = digits ? base::ParseInt64(text) : std::nullopt;
      if (!number || *number > 65535) {
        error_ = "cannot convert to []int32: strconv.ParseUint: parsing " + base::GoQuote(text) + ": " +
                 (digits ? "value out of range" : "invalid syntax");
        return {};
      }
      ports.push_back(std::to_string(*number));
      list.Append(arena_, *number);
    }
  }
  if (!ports.empty()) object_.Set(arena_, name, list);
  return ports;
}

Value ConnectOptions::Object(std::string_view kind) {
  object_.Set(arena_, "kind", kind);
  object_.Set(arena_, "apiVersion", "v1");
  return object_;
}

std::string EncodeQuery(const std::vector<std::pair<std::string, std::string>>& parameters) {
  std::map<std::string, std::vector<std::string>> by_key;
  for (const auto& [key, value] : parameters) by_key[key].push_back(value);
  std::string query;
  for (const auto& [key, values] : by_key) {
    for (const std::string& value : values) {
      if (!query.empty()) query += '&';
      query += base::QueryEscape(key) + "=" + base::QueryEscape(value);
    }
  }
  return query;
}

}  // namespace keelson::controlplane
