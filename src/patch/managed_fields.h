// Conversion of metadata.managedFields between wire form and field sets: the fields of each manager.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/outcome.h"
#include "object/value.h"
#include "patch/field_set.h"
#include "patch/known_fields.h"

namespace keelson::patch {

// One manager. Its identity is all but the version of an applier, the time and the set.
struct ManagedEntry {
  std::string_view manager;
  bool applied = false;
  std::string_view api_version;
  std::string_view subresource;
  std::string_view time;  // RFC 3339 in UTC, to the second; "" for none
  FieldSet set;
  std::string_view text;               // FieldsV1 as it was read
  const KnownFields* known = nullptr;  // what is known of `text`, held by the KnownVersion; null: nothing

  // `set` is what was read, already reconciled with the schema.
  bool reconciled() const { return known != nullptr && set.IsSame(known->set); }
  // `set` is what was read, and is written as it was.
  bool verbatim() const { return reconciled() && known->canonical; }
  bool SameIdentity(const ManagedEntry& other) const {
    return manager == other.manager && applied == other.applied && subresource == other.subresource &&
           (applied || api_version == other.api_version);
  }
  // The identity as upstream writes it (JSON): what managers are sorted by.
  std::string Identifier() const;
  // The manager of a conflict: "kubectl" with subresource "status" using apps/v1.
  std::string Describe() const;
};

using ManagedFields = std::vector<ManagedEntry>;

// Field sets of one version's entries that are decoded already. Holds those that were found, whatever the cache does
// meanwhile: sets of other entries come to share their nodes. Outlives the entries of one call.
class KnownVersion {
 public:
  KnownVersion(std::string_view api_version, const KnownFieldsCache& cache)
      : api_version_(api_version), cache_(cache) {}

  // Null: nothing is known of the text, or it is of another version.
  const KnownFields* Find(std::string_view api_version, std::string_view text);

 private:
  std::string_view api_version_;
  const KnownFieldsCache& cache_;
  std::vector<std::shared_ptr<const KnownFields>> held_;
};
// The error says what is wrong, in upstream's words; one bad entry spoils the list.
Outcome<ManagedFields, std::string> DecodeManagedFields(base::Arena& arena, const Value& entries,
                                                        KnownVersion* known = nullptr);
// A list in the stored order: operation, time, manager, version, subresource. Null for none.
Value EncodeManagedFields(base::Arena& arena, ManagedFields entries);
// A list of one entry, whose FieldsV1 is `fields`; its `set` is not looked at.
Value EncodeManagedEntry(base::Arena& arena, const ManagedEntry& entry, std::string_view fields);

inline constexpr std::size_t kUpdateManagersMax = 10;
// Folds the oldest updates into one entry per version until no more than kUpdateManagersMax are left.
void CapUpdateManagers(base::Arena& arena, ManagedFields& entries);

// The scale subresource sees only the owners of the replicas, as autoscaling/v1 entries; its entries are merged back
// into the parent's. `replicas_paths`: the path of the replicas per apiVersion of the parent; an empty path for a
// version without scale.
struct ReplicasPath {
  std::string_view api_version;
  std::string_view path;  // dotted
};
Outcome<Value, std::string> ToScaleManagedFields(base::Arena& arena, const Value& parent,
                                                 std::span<const ReplicasPath> replicas_paths);
Outcome<Value, std::string> FromScaleManagedFields(base::Arena& arena, const Value& parent, const Value& scale,
                                                   std::string_view parent_api_version,
                                                   std::span<const ReplicasPath> replicas_paths);

}  // namespace keelson::patch
