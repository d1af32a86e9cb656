#include "registry/resource/conversion.h"

#include <span>
#include <string_view>

namespace keelson::registry {
namespace {

using base::Arena;

constexpr std::string_view kHub = "resource.k8s.io/v1", kBeta = "resource.k8s.io/v1beta1";

// Fields that a v1beta1 request has itself and a v1 request has under `exactly`.
constexpr std::string_view kExactly[] = {"deviceClassName", "selectors",   "allocationMode", "count",
                                         "adminAccess",     "tolerations", "capacity"};

// The members named, moved out of `from`; null when there is none of them.
Value Take(Arena& arena, Value from, std::span<const std::string_view> names) {
  Value taken;
  for (const std::string_view name : names) {
    const Value value = from[name];
    if (value.is_null()) continue;
    if (taken.is_null()) taken = Value::Map(arena);
    taken.Set(arena, name, value);
    from.Erase(name);
  }
  return taken;
}

void MergeInto(Arena& arena, Value into, const Value& from) {
  for (const object::Member& member : from.members()) into.Set(arena, member.key, member.value);
}

void RequestsToHub(Arena& arena, const Value& spec) {
  for (Value& request : spec.Get("devices", "requests").items()) {
    if (!request.is_map()) continue;
    if (const Value exactly = Take(arena, request, kExactly); !exactly.is_null()) {
      request.Set(arena, "exactly", exactly);
    }
  }
}

void RequestsFromHub(Arena& arena, const Value& spec) {
  for (Value& request : spec.Get("devices", "requests").items()) {
    const Value exactly = request["exactly"];
    if (!exactly.is_map()) continue;
    request.Erase("exactly");
    MergeInto(arena, request, exactly);
  }
}

// A copy that says it is of the other version.
Value CopyAs(Arena& arena, const Value& object, std::string_view api_version) {
  Value copy = object.Clone(arena);
  if (copy.is_map()) copy.Set(arena, "apiVersion", api_version);
  return copy;
}

}  // namespace

Value ResourceClaimToHub(Arena& arena, const Value& claim) {
  const Value hub = CopyAs(arena, claim, kHub);
  RequestsToHub(arena, hub["spec"]);
  return hub;
}

Value ResourceClaimFromHub(Arena& arena, const Value& claim) {
  const Value beta = CopyAs(arena, claim, kBeta);
  RequestsFromHub(arena, beta["spec"]);
  return beta;
}

Value ResourceClaimTemplateToHub(Arena& arena, const Value& object) {
  const Value hub = CopyAs(arena, object, kHub);
  RequestsToHub(arena, hub.Get("spec", "spec"));
  return hub;
}

Value ResourceClaimTemplateFromHub(Arena& arena, const Value& object) {
  const Value beta = CopyAs(arena, object, kBeta);
  RequestsFromHub(arena, beta.Get("spec", "spec"));
  return beta;
}

Value ResourceSliceToHub(Arena& arena, const Value& slice) {
  const Value hub = CopyAs(arena, slice, kHub);
  for (Value& device : hub.Get("spec", "devices").items()) {
    const Value basic = device["basic"];
    if (!basic.is_map()) continue;
    device.Erase("basic");
    MergeInto(arena, device, basic);
  }
  return hub;
}

Value ResourceSliceFromHub(Arena& arena, const Value& slice) {
  const Value beta = CopyAs(arena, slice, kBeta);
  for (Value& device : beta.Get("spec", "devices").items()) {
    if (!device.is_map()) continue;
    Value basic = Value::Map(arena);
    Value renamed = Value::Map(arena);
    for (const object::Member& member : device.members()) {
      (member.key == "name" ? renamed : basic).Set(arena, member.key, member.value);
    }
    renamed.Set(arena, "basic", basic);
    device = renamed;
  }
  return beta;
}

}  // namespace keelson::registry
