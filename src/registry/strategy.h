// How one kind behaves: data first, functions where data does not suffice. A group's folder fills a table of these;
// adding a kind is a .kapi table, a Strategy and one registration line. Functions are pure over Value: they see no
// storage and no network.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/clock.h"
#include "base/random.h"
#include "object/value.h"
#include "validation/errors.h"
#include "validation/primitives.h"

namespace keelson::async {
class Cancellation;  // async/cancellation.h
}
namespace keelson::registry {

using validation::FieldErrors;

// Inputs of a strategy function besides the object.
struct Call {
  base::Arena& arena;
  const base::Clock& clock;
  base::Random& random;
  std::vector<std::string>& warnings;  // become Warning headers
  // The requester (certificatesigningrequests, rbac).
  std::string_view user_name;
  std::string_view user_uid;
  std::span<const std::string> user_groups;
  Value user_extra;             // map of lists, or null
  std::string_view name_space;  // of the request
  // The version the request came in, where a kind's rules depend on it ("v1" of events.k8s.io or of core).
  std::string_view request_group;
  std::string_view request_version;
  bool (*feature_enabled)(std::string_view gate);
  bool allow_privileged = false;  // --allow-privileged
  // Set when the request is cancelled; null: never. Long work checks it.
  const async::Cancellation* cancellation = nullptr;
};

// metadata.generation.
enum class Generation : std::uint8_t {
  kNone,    // left to the client on create, kept on update
  kSpec,    // 1 on create, +1 when spec changes
  kCustom,  // the prepare functions do it
};
enum class GarbageCollection : std::uint8_t { kBackground, kOrphan, kUnsupported };

using Defaults = void (*)(base::Arena& arena, Value object);
using Prepare = void (*)(const Call& call, Value object, Value old);  // old is null on create
using Validate = void (*)(const Call& call, Value object, Value old, FieldErrors& errors);
using Warn = void (*)(const Call& call, Value object, Value old);  // appends to call.warnings
// Selectable fields besides metadata.name and metadata.namespace, with the path they are read from.
struct SelectableField {
  std::string_view name;  // spec.nodeName: what a fieldSelector says
  std::string_view path;  // dotted path into the object, "" when `value` computes it
  std::string (*value)(Value object) = nullptr;
};

// An endpoint of the kind: the main one, status, or another subresource that reads and writes the same object.
struct UpdateRules {
  Prepare prepare_for_update = nullptr;  // beyond what Strategy's data already does
  // All of the kind's own update rules, ValidateObjectMetaUpdate included where upstream has it (nearly everywhere):
  // the Store has already run the common metadata rules, so a metadata error is in the list twice, as upstream.
  // nullptr: nothing beyond those.
  Validate validate_update = nullptr;
  Warn warnings_on_update = nullptr;
  std::span<const std::string_view> reset_fields;  // dotted paths that apply must not own here
};

// A subresource besides status that writes the same object: finalize, ephemeralcontainers, resize, approval.
struct Subresource {
  std::string_view name;
  UpdateRules rules;
};

struct Strategy {
  std::string_view group;
  std::string_view kind;
  validation::NameRule name_rule = validation::NameIsDNSSubdomain;
  bool allow_create_on_update = false;
  bool allow_unconditional_update = true;
  bool return_deleted_object = false;
  bool random_names = true;  // false: generateName is used as the name (ipaddresses)
  std::string_view (*delete_forbidden)(std::string_view name) =
      nullptr;  // why an object of this name may not be deleted; "" when it may
  // Upstream's CheckGracefulDelete: the grace period of a deletion that requests `asked` seconds. nullptr: objects of
  // this kind have none.
  std::int64_t (*grace_period)(Value object, std::optional<std::int64_t> asked) = nullptr;
  bool core_finalizers = true;
  GarbageCollection garbage_collection = GarbageCollection::kBackground;
  Generation generation = Generation::kNone;
  bool deep_generation = false;  // an empty list in spec is a change from none (upstream compares by reflect.DeepEqual)
  bool has_status = false;  // status is cleared on create, kept from the old object on update of the main endpoint,
                            // and the only thing taken on update of the status endpoint
  bool keeps_status_on_create = false;  // nodes

  Defaults defaults = nullptr;  // of the hub version, after the table's own defaults
  Prepare prepare_for_create = nullptr;
  Validate validate = nullptr;  // on create; metadata is checked by the Store with name_rule unless validates_metadata
  bool validates_metadata = false;
  Warn warnings_on_create = nullptr;
  Prepare canonicalize = nullptr;  // after validation, on create and update
  UpdateRules update;              // the main endpoint
  UpdateRules status;              // the status endpoint
  std::span<const Subresource> subresources;
  std::span<const SelectableField> selectable_fields;
  bool selects_namespace = true;  // metadata.namespace is a supported field
  // A row of kubectl get: the cells after nothing has been written yet; nullptr: Name and Created At.
  void (*table_row)(base::Arena& arena, const base::Clock& clock, Value object, Value cells) = nullptr;
  Value (*row_conditions)(base::Arena& arena, Value object) = nullptr;  // the row's conditions, or null (finished pods)
};

// The strategy of a kind in its group; nullptr where there is none. Each group folder has its own table
// (registry/<group>/strategies.h).
const Strategy* FindStrategy(std::string_view group, std::string_view kind);

}  // namespace keelson::registry
