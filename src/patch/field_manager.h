// Server-side apply, and the bookkeeping of every other write: metadata.managedFields.
// One FieldManager per endpoint (a kind in a version, or a subresource of it). Thread safe; results do not depend on
// its cache of decoded sets. Time comes in as text (RFC 3339, UTC, to the second) and is part of the result, so it must
// live as long as the arena.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/outcome.h"
#include "meta/group_version.h"
#include "meta/status.h"
#include "object/value.h"
#include "patch/conversions.h"
#include "patch/managed_fields.h"
#include "patch/typed_value.h"
#include "schema/schema.h"

namespace keelson::patch {

class FieldManager {
 public:
  struct Options {
    const schema::Struct* type = nullptr;  // nullptr: a custom resource without a schema
    meta::GroupVersionKind kind;
    std::string subresource;
    // Of a custom resource: the structural schema of its version and of the others in its definition. Null nodes: types
    // are deduced. The schemas must outlive this.
    schema::structural::Node schema;
    std::vector<std::pair<std::string, schema::structural::Node>> other_versions;  // by apiVersion
    bool custom_resource = false;    // objects are maps, not Go structs: nothing is there that was not written
    bool awaits_conversion = false;  // versions of a custom resource differ by more than their names: see Conversions
    std::vector<std::string> reset_fields;  // paths that this endpoint never owns (dotted)
    // Of a built-in kind: the object in another version, which its apiVersion then says; nothing where that version is
    // not served. Without it the versions are taken to have the same fields.
    std::function<std::optional<Value>(base::Arena&, const Value& object, std::string_view api_version)> convert;
    // The Scale of a custom resource: upstream's converter has only the versions of the custom resource, so that an
    // apply works only if it changes no owned field of a Scale.
    bool unconvertible = false;
  };

  explicit FieldManager(Options options);
  FieldManager(const FieldManager&) = delete;
  FieldManager& operator=(const FieldManager&) = delete;

  // After create, update, and patches other than apply. `live` is null on create. The new object with its managedFields
  // set; where they cannot be worked out they are removed (upstream's UpdateNoErrors). Changes `now` only in
  // metadata.managedFields, and not at all while `conversions` has wanted ones: resolve them and call again.
  void Update(base::Arena& arena, const Value& live, Value now, std::string_view manager, std::string_view time,
              Conversions* conversions = nullptr) const;

  // The live object with the applied configuration merged in and managedFields set; to be decoded by the schema and
  // defaulted afterwards. `live` is null where there is none yet; `config` is untyped. 409 with causes for conflicts;
  // 400 for a wrong kind or managedFields in the configuration; a plain 500 for a configuration that does not fit the
  // schema, or where a conversion fails. `unchanged`, where given, is set to whether nothing but the metadata may
  // differ from `live`. The result means nothing while `conversions` has wanted ones: resolve them and call again.
  Result<Value> Apply(base::Arena& arena, const Value& live, const Value& config, std::string_view manager, bool force,
                      std::string_view time, bool* unchanged = nullptr, Conversions* conversions = nullptr) const;

  // The live object with an admission policy's apply configuration merged in; nothing is tracked. Atomic lists, maps
  // and structs may not be touched. The error is upstream's text.
  Outcome<Value, std::string> MergeConfiguration(base::Arena& arena, const Value& live, const Value& config) const;

 private:
  struct Conflicts;
  struct Version;
  struct NoView;
  struct Applied;
  struct EndpointSets;
  struct Call {
    base::Arena& arena;
    Conversions* conversions;  // null: nothing has to be awaited
  };
  template <class T>
  using Tried = Outcome<T, std::string>;  // the error is upstream's text

  KnownVersion known() const { return {api_version_, *known_}; }
  TypeRef type() const {
    if (options_.custom_resource) return RootType(options_.schema);
    return RootType(options_.type != nullptr ? &root_ : nullptr);
  }
  std::optional<TypeRef> TypeOf(std::string_view api_version) const;
  Value BaseObject(base::Arena& arena) const;
  Value Canonicalized(base::Arena& arena, const Value& object, EmptyInItems empty) const;
  Value CanonicalLive(base::Arena& arena, const Value& live) const;
  Outcome<Value, NoView> Convert(const Call& call, const Value& object, std::string_view api_version) const;
  Outcome<Version, NoView> View(const Call& call, const Value& object, std::string_view api_version) const;
  ManagedEntry Self(base::Arena& arena, std::string_view manager) const;
  bool AllOfThisVersion(const ManagedFields& managed) const;
  bool TrackCreate(base::Arena& arena, Value now, std::string_view manager, std::string_view time) const;
  static std::shared_ptr<const EndpointSets> SetsOf(const std::vector<std::string>& reset_fields);
  FieldSet Filtered(base::Arena& arena, const FieldSet& set) const;
  Comparison Filtered(base::Arena& arena, const Comparison& changed) const;
  Tried<void> Reconcile(const Call& call, const Value& live, ManagedFields& managed) const;
  Tried<std::map<std::string_view, std::optional<Comparison>>> CompareVersions(const Call& call, const Value& old,
                                                                               const Value& now,
                                                                               const ManagedFields& managed,
                                                                               const ManagedEntry* self) const;
  Tried<Comparison> TakeOver(const Call& call, const Value& old, const Value& now, ManagedFields& managed,
                             const ManagedEntry* self, bool force, Conflicts& conflicts) const;
  Tried<void> TrackUpdate(const Call& call, const Value& live, const Value& now, ManagedFields& managed,
                          std::string_view manager, std::string_view time) const;
  Tried<std::optional<Applied>> Merge(const Call& call, const Value& live, const Value& config, ManagedFields managed,
                                      const ManagedEntry& self, bool force, std::string_view time,
                                      Conflicts& conflicts) const;
  Tried<Value> Prune(const Call& call, const Value& merged, const ManagedFields& managed,
                     const ManagedEntry& last) const;
  Tried<Value> AddBackOwned(const Call& call, Version whole, Version pruned, const ManagedFields& managed,
                            std::string_view first) const;
  FieldSet AllowedByLastApplied(base::Arena& arena, const Value& live, const Value& live_view) const;

  Options options_;
  std::string api_version_;
  schema::Type root_;
  std::shared_ptr<const EndpointSets> sets_;
  std::unique_ptr<KnownFieldsCache> known_;
  std::map<std::string, schema::Type, std::less<>> versions_;  // the kind in other versions, built-in kinds only
};

// Why managedFields cannot be decoded after admission plugins changed them, or "".
std::string ValidateManagedFields(const Value& entries);
// Takes back the new times of managedFields where nothing but them changed, so that a write that changes nothing writes
// nothing.
void RevertUnchangedTimes(base::Arena& arena, Value now, const Value& old);

}  // namespace keelson::patch
