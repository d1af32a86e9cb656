// LimitRanger: defaults and bounds for requests and limits of containers, pods and claims in a namespace.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "admission/plugins/amounts.h"
#include "admission/plugins/plugins.h"
#include "base/strings.h"
#include "object/quantity.h"

namespace keelson::admission {
namespace {

using object::Quantity;

const Quantity* Find(const Amounts& amounts, std::string_view name) {
  const auto found = amounts.find(name);
  return found == amounts.end() ? nullptr : &found->second;
}

// Puts in what is missing and says what it was: "cpu, memory".
std::string Complete(base::Arena& arena, Value container, std::string_view part, Value defaults) {
  std::vector<std::string> set;
  for (const auto& member : defaults.members()) {
    Value resources = container.EnsureMap(arena, "resources").EnsureMap(arena, part);
    if (resources.Has(member.key)) continue;
    resources.Set(arena, member.key, member.value);
    set.emplace_back(member.key);
  }
  std::ranges::sort(set);
  return base::Join(set, ", ");
}

void CompleteContainers(base::Arena& arena, Value pod, Value defaults, Value default_requests,
                        std::vector<std::string>& notes) {
  const std::pair<std::string_view, std::string_view> lists[] = {{"containers", "container "},
                                                                 {"initContainers", "init container "}};
  for (const auto& [list, word] : lists) {
    for (Value container : pod["spec"][list].items()) {
      const std::string who = " for " + std::string(word) + std::string(container["name"].as_string());
      if (const auto set = Complete(arena, container, "requests", default_requests); !set.empty())
        notes.push_back(set + " request" + who);
      if (const auto set = Complete(arena, container, "limits", defaults); !set.empty())
        notes.push_back(set + " limit" + who);
    }
  }
}

// Checks requests and limits against one item of a LimitRange.
class Bounds {
 public:
  Bounds(Value item, std::vector<std::string>& errors)
      : type_(item["type"].as_string()), item_(item), errors_(errors) {}

  void Check(const Amounts& requests, const Amounts& limits) {
    for (const auto& [name, least] : ReadAmounts(item_["min"]))
      CheckMin(name, least, Find(requests, name), Find(limits, name));
    for (const auto& [name, most] : ReadAmounts(item_["max"]))
      CheckMax(name, most, Find(requests, name), Find(limits, name));
    for (const auto& [name, ratio] : ReadAmounts(item_["maxLimitRequestRatio"]))
      CheckRatio(name, ratio, Find(requests, name), Find(limits, name));
  }
  // Claims have requests only.
  void CheckRequests(const Amounts& requests) {
    for (const auto& [name, least] : ReadAmounts(item_["min"])) CheckMin(name, least, Find(requests, name), nullptr);
    for (const auto& [name, most] : ReadAmounts(item_["max"])) {
      const Quantity* request = Find(requests, name);
      const std::string head = "maximum " + name + " usage per " + type_ + " is " + most.ToString();
      if (request == nullptr) {
        errors_.push_back(head + ".  No request is specified");
      } else if (request->Compare(most) > 0) {
        errors_.push_back(head + ", but request is " + request->ToString());
      }
    }
  }

 private:
  void CheckMin(const std::string& name, const Quantity& least, const Quantity* request, const Quantity* limit) {
    const std::string head = "minimum " + name + " usage per " + type_ + " is " + least.ToString();
    if (request == nullptr) {
      errors_.push_back(head + ".  No request is specified");
    } else if (request->Compare(least) < 0) {
      errors_.push_back(head + ", but request is " + request->ToString());
    } else if (limit != nullptr && limit->Compare(least) < 0) {
      errors_.push_back(head + ", but limit is " + limit->ToString());
    }
  }
  void CheckMax(const std::string& name, const Quantity& most, const Quantity* request, const Quantity* limit) {
    const std::string head = "maximum " + name + " usage per " + type_ + " is " + most.ToString();
    if (limit == nullptr) {
      errors_.push_back(head + ".  No limit is specified");
    } else if (limit->Compare(most) > 0) {
      errors_.push_back(head + ", but limit is " + limit->ToString());
    } else if (request != nullptr && request->Compare(most) > 0) {
      errors_.push_back(head + ", but request is " + request->ToString());
    }
  }
  void CheckRatio(const std::string& name, const Quantity& most, const Quantity* request, const Quantity* limit) {
    const std::string head = name + " max limit to request ratio per " + type_ + " is " + most.ToString();
    if (request == nullptr || request->IsZero()) {
      errors_.push_back(head + ", but no request is specified or request is 0");
      return;
    }
    if (limit == nullptr || limit->IsZero()) {
      errors_.push_back(head + ", but no limit is specified or limit is 0");
      return;
    }
    const double ratio = limit->AsDouble() / request->AsDouble();
    if (ratio <= most.AsDouble()) return;
    char text[64];
    std::snprintf(text, sizeof(text), "%f", ratio);
    errors_.push_back(head + ", but provided ratio is " + text);
  }

  std::string type_;
  Value item_;
  std::vector<std::string>& errors_;
};

bool IsSidecar(Value container) { return container["restartPolicy"].as_string() == "Always"; }

// Total of a pod: containers and sidecars together, or the largest init container if that is more.
Amounts PodTotal(Value pod, std::string_view part) {
  Amounts total;
  for (const Value container : pod.Get("spec", "containers").items())
    Add(total, ReadAmounts(container["resources"][part]));
  Amounts sidecars, largest;
  for (const Value container : pod.Get("spec", "initContainers").items()) {
    const Amounts own = ReadAmounts(container["resources"][part]);
    if (IsSidecar(container)) {
      Add(total, own);
      Add(sidecars, own);
      TakeLarger(largest, sidecars);
    } else {
      Amounts with = own;
      Add(with, sidecars);
      TakeLarger(largest, with);
    }
  }
  TakeLarger(total, largest);
  for (const auto& [name, quantity] : ReadAmounts(pod.Get("spec", "resources", part))) {
    if (name == "cpu" || name == "memory") total.insert_or_assign(name, quantity);
  }
  return total;
}

// Each text once, several in brackets (utilerrors.NewAggregate): containers often break the same bound.
std::string Aggregated(const std::vector<std::string>& errors) {
  std::vector<std::string> distinct;
  for (const std::string& error : errors) {
    if (std::ranges::find(distinct, error) == distinct.end()) distinct.push_back(error);
  }
  return distinct.size() == 1 ? distinct[0] : "[" + base::Join(distinct, ", ") + "]";
}

class LimitRangerPlugin final : public Plugin {
 public:
  explicit LimitRangerPlugin(const PluginContext& options) : reader_(*options.reader) {}
  std::string_view name() const override { return "LimitRanger"; }
  bool Handles(Operation operation) const override {
    return operation == Operation::kCreate || operation == Operation::kUpdate;
  }

  Task<void> Admit(request::Context& context, Attributes& attributes) override {
    if (!SetsPodResources(attributes) || IsBeingDeleted(attributes)) co_return meta::Result<void>();
    KS_CO_TRY(const std::vector<Value> ranges,
              co_await reader_.List(context.arena, "", "limitranges", attributes.name_space));
    for (const Value range : ranges) {
      std::vector<std::string> notes;
      for (const Value item : range.Get("spec", "limits").items()) {
        if (item["type"].as_string() != "Container") continue;
        CompleteContainers(context.arena, attributes.object, item["default"], item["defaultRequest"], notes);
      }
      if (notes.empty()) continue;
      const std::string note = "LimitRanger plugin set: " + base::Join(notes, "; ");  // of the last range that set any
      attributes.object.EnsureMap(context.arena, "metadata")
          .EnsureMap(context.arena, "annotations")
          .Set(context.arena, "kubernetes.io/limit-ranger", Value::String(context.arena, note));
    }
    co_return meta::Result<void>();
  }

  Task<void> Validate(request::Context& context, const Attributes& attributes) override {
    const bool pod = SetsPodResources(attributes);
    const bool claim = attributes.Is("", "persistentvolumeclaims") && attributes.subresource.empty();
    if (!pod && !claim) co_return meta::Result<void>();
    if (IsBeingDeleted(attributes)) co_return meta::Result<void>();
    KS_CO_TRY(const std::vector<Value> ranges,
              co_await reader_.List(context.arena, "", "limitranges", attributes.name_space));
    for (const Value range : ranges) {
      std::vector<std::string> errors;
      for (const Value item : range.Get("spec", "limits").items()) CheckItem(item, attributes.object, pod, errors);
      if (!errors.empty()) co_return NewForbidden(attributes, Aggregated(errors));
    }
    co_return meta::Result<void>();
  }

 private:
  // Creates, and in-place resizes: other updates cannot change containers.
  static bool SetsPodResources(const Attributes& attributes) {
    if (!attributes.Is("", "pods")) return false;
    return attributes.operation == Operation::kCreate ? attributes.subresource.empty()
                                                      : attributes.subresource == "resize";
  }
  static bool IsBeingDeleted(const Attributes& attributes) {
    return attributes.old_object.Get("metadata", "deletionTimestamp").is_string();
  }

  static void CheckItem(Value item, Value object, bool pod, std::vector<std::string>& errors) {
    const std::string_view type = item["type"].as_string();
    Bounds bounds(item, errors);
    if (!pod) {
      if (type == "PersistentVolumeClaim")
        bounds.CheckRequests(ReadAmounts(object.Get("spec", "resources", "requests")));
      return;
    }
    if (type == "Pod") bounds.Check(PodTotal(object, "requests"), PodTotal(object, "limits"));
    if (type != "Container") return;
    for (const std::string_view list : {"containers", "initContainers"}) {
      for (const Value container : object["spec"][list].items()) {
        bounds.Check(ReadAmounts(container.Get("resources", "requests")),
                     ReadAmounts(container.Get("resources", "limits")));
      }
    }
  }

  ObjectReader& reader_;
};

}  // namespace

std::unique_ptr<Plugin> NewLimitRanger(const PluginContext& options) {
  return std::make_unique<LimitRangerPlugin>(options);
}

}  // namespace keelson::admission
