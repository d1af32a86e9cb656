// The write pipeline of the generic registry: prepare and validate a create or an update, plan a deletion (upstream's
// rest.BeforeCreate, BeforeUpdate and BeforeDelete). Functions of the kind, the call, the object and the old object; no
// storage, no admission, no HTTP. The Store and the tests run the same ones. Objects are changed in place; they and
// everything that is set in them live in the call's arena.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "meta/group_version.h"
#include "meta/status.h"
#include "object/value.h"
#include "registry/rest_strategy.h"
#include "schema/schema.h"

namespace keelson::registry {

// The facts of a resource that its writes depend on; a part of its ResourceDefinition.
struct StoredKind {
  meta::GroupResource resource;  // as errors name it
  meta::GroupKind kind;
  bool namespaced = true;
  const schema::Struct* type = nullptr;  // of the hub version; null: custom resources
  std::shared_ptr<const RESTStrategy> strategy;
  bool spec_finalizers = false;   // spec.finalizers hold deletion back (namespaces)
  bool defaults_on_read = false;  // the codec completes what it reads; else the last step of a write does
};

struct DeleteOptions {
  std::optional<std::int64_t> grace_period_seconds;
  std::optional<std::string> propagation_policy;
  std::optional<bool> orphan_dependents;
  std::optional<std::string> uid;  // preconditions
  std::optional<std::string> resource_version;
  bool dry_run = false;
};

// metadata.uid and metadata.creationTimestamp of a new object (upstream's FillObjectMetaSystemFields).
void FillObjectMetaSystemFields(const Call& call, Value metadata);

// 400 when the object names another namespace than the request; fills an empty one in.
meta::Result<void> CheckObjectNamespace(const StoredKind& kind, const Call& call, Value metadata);

// Ready to be stored, or 400, or 422 with every error. Warnings go to call.warnings; those of a refused create are not
// for the client, those of a refused update are (ratcheted errors).
meta::Result<void> PrepareCreate(const StoredKind& kind, const Call& call, Value object);
meta::Result<void> PrepareUpdate(const StoredKind& kind, const Call& call, const Endpoint& endpoint, Value object,
                                 Value old);

// Checks an update's resourceVersion against the stored one: 409 if it differs, 422 if it is absent and the kind
// requires one; otherwise an absent one is filled in. `name` is the request's; `stored_version` is 0
// when there is no object.
meta::Result<void> CheckUpdateVersion(const StoredKind& kind, base::Arena& arena, std::string_view name, Value metadata,
                                      std::uint64_t stored_version);
// An update that found nothing becomes a create: 409 when the object names a uid.
meta::Result<void> BeginCreateOnUpdate(const StoredKind& kind, std::string_view name, Value metadata);
// Whether the update removed the last finalizer of an object that is being deleted: the object is deleted instead.
bool DeletionCompletes(const StoredKind& kind, Value object, Value old);

struct DeletionPlan {
  enum class Step : std::uint8_t {
    kRemove,          // goes at once
    kPending,         // is being deleted already; nothing changes
    kMark,            // stays, marked, for its grace period or its finalizers
    kMarkThenRemove,  // is marked with a grace period of zero and goes at once
  };
  Step step = Step::kRemove;
  bool finalizers_changed = false;  // by the propagation policy
};
// Marks `object` as the plan needs it. 409 when a precondition fails.
meta::Result<DeletionPlan> PlanDeletion(const StoredKind& kind, const Call& call, Value object,
                                        const DeleteOptions& options, bool garbage_collector);

// Now, as Kubernetes writes times: seconds, UTC.
std::string FormatTime(base::Clock::SystemTime time);
std::optional<base::Clock::SystemTime> ParseTime(std::string_view text);

}  // namespace keelson::registry
