#include "patch/field_manager.h"

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "object/json_text.h"
#include "patch/typed_atom.h"

namespace keelson::patch {
namespace {

using base::Arena;

constexpr std::string_view kBeforeFirstApply = "before-first-apply";
constexpr std::string_view kKubectl = "kubectl";
constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";
constexpr std::size_t kAnnotationsBytesMax = 256 * 1024;

// What no manager ever owns.
FieldSet NeverOwned(Arena& arena) {
  FieldSet set;
  for (const char* path : {"apiVersion", "kind", "metadata", "metadata.name", "metadata.namespace",
                           "metadata.creationTimestamp", "metadata.selfLink", "metadata.uid", "metadata.clusterName",
                           "metadata.generation", "metadata.managedFields", "metadata.resourceVersion"}) {
    set = FieldSet::Union(arena, set, FieldSet::OfDotted(arena, path));
  }
  return set;
}

// A copy of the two upper levels, so that managedFields can be taken out of an object that others see.
Value WithoutManagedFields(Arena& arena, const Value& object) {
  if (!object["metadata"].Has("managedFields")) return object;
  Value copy = Value::Map(arena, object.size());
  for (const object::Member& member : object.members()) {
    if (member.key != "metadata") {
      copy.AppendMember(arena, member.key, member.value);
      continue;
    }
    Value metadata = Value::Map(arena, member.value.size());
    for (const object::Member& inner : member.value.members()) {
      if (inner.key != "managedFields") metadata.AppendMember(arena, inner.key, inner.value);
    }
    copy.AppendMember(arena, "metadata", metadata);
  }
  return copy;
}

void SetManagedFields(Arena& arena, Value object, const Value& entries) {
  if (entries.is_null()) {
    object["metadata"].Erase("managedFields");
  } else {
    object.EnsureMap(arena, "metadata").Set(arena, "managedFields", entries);
  }
}

// An empty list, or one empty entry, asks for no tracking.
bool IsReset(const Value& metadata) {
  const Value* entries = metadata.Find("managedFields");
  if (entries == nullptr || !entries->is_list()) return false;
  return entries->empty() || (entries->size() == 1 && (*entries)[std::size_t{0}].empty());
}

std::string Where(const Value& object, const meta::GroupVersionKind& kind) {
  return std::string(object.Get("metadata", "namespace").as_string()) + "/" +
         std::string(object.Get("metadata", "name").as_string()) + "; " + kind.ToString();
}

meta::GroupVersionKind KindOf(const Value& object) {
  const std::string_view api_version = object["apiVersion"].as_string();
  const std::size_t slash = api_version.find('/');
  meta::GroupVersionKind kind;
  kind.kind = object["kind"].as_string();
  kind.version = slash == std::string_view::npos ? api_version : api_version.substr(slash + 1);
  if (slash != std::string_view::npos) kind.group = api_version.substr(0, slash);
  return kind;
}

}  // namespace

// What stands between an apply and its success: per manager, by identifier.
struct FieldManager::Conflicts {
  std::map<std::string, std::pair<ManagedEntry, FieldSet>> by_manager;

  bool empty() const { return by_manager.empty(); }
  Status ToStatus() const {
    std::vector<meta::StatusCause> causes;
    std::string lines;
    for (const auto& [identifier, conflict] : by_manager) {
      const std::string who = conflict.first.Describe();
      lines += (lines.empty() ? "" : "\n") + ("conflicts with " + who + ":");
      conflict.second.ForEach([&](const Path& path) {
        causes.push_back({"FieldManagerConflict", "conflict with " + who, ToString(path)});
        lines += "\n- " + ToString(path);
      });
    }
    std::string message = "Apply failed with " + std::to_string(causes.size()) + " conflict";
    message += causes.size() == 1 ? ": " + causes[0].message + ": " + causes[0].field : "s: " + lines;
    return meta::NewApplyConflict(std::move(causes), std::move(message));
  }
};

struct FieldManager::Version {
  TypeRef type;
  Value object;
};

struct FieldManager::Applied {
  std::optional<Value> object;  // nothing: the same as before
  ManagedFields managed;
};

FieldManager::FieldManager(Options options)
    : options_(std::move(options)), api_version_(options_.kind.group_version().ToString()) {
  root_ = {.kind = schema::Kind::kStruct, .structure = options_.type};
  if (options_.custom_resource) return;
  for (const schema::Package* package : schema::Packages()) {
    if (!package->serves) continue;
    const schema::Struct* type = schema::FindKind(package->group, package->version, options_.kind.kind);
    const meta::GroupVersion version{std::string(package->group), std::string(package->version)};
    if (type != nullptr)
      versions_.emplace(version.ToString(), schema::Type{.kind = schema::Kind::kStruct, .structure = type});
  }
}

// The type of the kind in a version; nothing where it is not served.
std::optional<TypeRef> FieldManager::TypeOf(std::string_view api_version) const {
  if (api_version == api_version_) return type();
  if (options_.custom_resource) {
    for (const auto& [version, schema] : options_.other_versions) {
      if (version == api_version) return RootType(schema);
    }
    return options_.convert ? std::optional(RootType(schema::structural::Node())) : std::nullopt;
  }
  const auto found = versions_.find(api_version);
  if (found == versions_.end()) return std::nullopt;
  return options_.convert ? RootType(&found->second) : type();
}

Value FieldManager::Canonicalized(Arena& arena, const Value& object) const {
  return Canonical(arena, WithoutManagedFields(arena, object), type(), !options_.custom_resource);
}

// What an object is compared with that was not there before.
Value FieldManager::BaseObject(Arena& arena) const {
  Value base = options_.custom_resource ? Value::Map(arena) : ZeroObject(arena, type());
  base.Set(arena, "apiVersion", Value::String(arena, api_version_));
  base.Set(arena, "kind", Value::String(arena, options_.kind.kind));
  base.SortMembers();
  return base;
}

// A canonical object as that version's managers see it; false where the version is not served.
bool FieldManager::View(Arena& arena, const Value& object, std::string_view api_version, Version& out) const {
  const auto type = TypeOf(api_version);
  if (!type) return false;
  out.type = *type;
  out.object = object;
  if (!options_.convert || object["apiVersion"].as_string() == api_version) return true;
  const auto converted = options_.convert(arena, object, api_version);
  if (!converted) return false;
  out.object = Canonical(arena, WithoutManagedFields(arena, *converted), out.type, !options_.custom_resource);
  return true;
}

FieldSet FieldManager::Filtered(Arena& arena, const FieldSet& set) const {
  FieldSet reset;
  for (const std::string& path : options_.reset_fields)
    reset = FieldSet::Union(arena, reset, FieldSet::OfDotted(arena, path));
  return FieldSet::RecursiveDifference(arena, set, reset);
}

void FieldManager::Reconcile(Arena& arena, ManagedFields& managed) const {
  std::erase_if(managed, [&](ManagedEntry& entry) {
    const auto type = TypeOf(entry.api_version);
    if (type) entry.set = ReconcileWithSchema(arena, entry.set, *type);
    return !type;
  });
}

// Works out what changed, and takes it from the managers other than `self` (all of them without one). Conflicts are
// what others own of what was set; they stop everything unless forced.
Comparison FieldManager::TakeOver(Arena& arena, const Value& old, const Value& now, ManagedFields& managed,
                                  const ManagedEntry* self, bool force, Conflicts& conflicts) const {
  const Comparison own = CompareTyped(arena, old, now, type());
  std::map<std::string_view, std::optional<Comparison>> versions;
  versions[api_version_] =
      Comparison{Filtered(arena, own.removed), Filtered(arena, own.modified), Filtered(arena, own.added)};
  std::map<std::string_view, FieldSet> set_by_us;
  std::vector<FieldSet> losses(managed.size());
  std::vector<bool> obsolete(managed.size(), false);
  for (std::size_t i = 0; i < managed.size(); ++i) {
    const ManagedEntry& entry = managed[i];
    if (self != nullptr && entry.SameIdentity(*self)) continue;
    auto [found, fresh] = versions.try_emplace(entry.api_version);
    if (fresh) {
      Version before;
      Version after;
      if (View(arena, old, entry.api_version, before) && View(arena, now, entry.api_version, after)) {
        const Comparison changed = CompareTyped(arena, before.object, after.object, before.type);
        found->second = Comparison{Filtered(arena, changed.removed), Filtered(arena, changed.modified),
                                   Filtered(arena, changed.added)};
      }
    }
    if (!found->second) {
      obsolete[i] = true;
      continue;
    }
    const Comparison& changed = *found->second;
    const auto [set, first_of_version] = set_by_us.try_emplace(entry.api_version);
    if (first_of_version) set->second = FieldSet::Union(arena, changed.modified, changed.added);
    const FieldSet conflict = FieldSet::Intersection(arena, entry.set, set->second);
    if (!conflict.empty()) conflicts.by_manager.emplace(entry.Identifier(), std::pair(entry, conflict));
    losses[i] = FieldSet::Union(arena, conflict, FieldSet::Intersection(arena, entry.set, changed.removed));
  }
  if (!force && !conflicts.empty()) return own;
  ManagedFields left;
  for (std::size_t i = 0; i < managed.size(); ++i) {
    if (obsolete[i]) continue;
    ManagedEntry entry = managed[i];
    entry.set = FieldSet::Difference(arena, entry.set, losses[i]);
    const bool is_self = self != nullptr && entry.SameIdentity(*self);
    if (is_self || !entry.set.empty()) left.push_back(entry);
  }
  managed = std::move(left);
  return {versions[api_version_]->removed, versions[api_version_]->modified, versions[api_version_]->added};
}

ManagedEntry FieldManager::Self(Arena& arena, std::string_view manager) const {
  return {.manager = manager.empty() ? "unknown" : arena.Copy(manager),
          .api_version = arena.Copy(api_version_),
          .subresource = arena.Copy(options_.subresource)};
}

// Both objects are canonical views of this endpoint's version.
void FieldManager::TrackUpdate(Arena& arena, const Value& live, const Value& now, ManagedFields& managed,
                               std::string_view manager, std::string_view time) const {
  Reconcile(arena, managed);
  Conflicts taken;
  const Comparison changed = TakeOver(arena, live, now, managed, nullptr, true, taken);
  const FieldSet touched = FieldSet::Difference(
      arena, Filtered(arena, FieldSet::Union(arena, changed.modified, changed.added)), NeverOwned(arena));
  if (!touched.empty()) {
    ManagedEntry self = Self(arena, manager);
    self.time = time;
    self.set = touched;
    const auto before =
        std::ranges::find_if(managed, [&](const ManagedEntry& entry) { return entry.SameIdentity(self); });
    if (before == managed.end()) {
      managed.push_back(self);
    } else {
      before->set = FieldSet::Union(arena, touched, before->set);
      before->time = time;
    }
  }
  CapUpdateManagers(arena, managed);
}

void FieldManager::Update(Arena& arena, const Value& live, Value now, std::string_view manager,
                          std::string_view time) const {
  ManagedFields managed;
  const auto decode = [&](const Value& entries) {
    auto decoded = DecodeManagedFields(arena, entries);
    return decoded.ok() ? *std::move(decoded) : ManagedFields();
  };
  const Value metadata = now["metadata"];
  if (!options_.subresource.empty()) {
    managed = decode(live.Get("metadata", "managedFields"));
  } else if (!IsReset(metadata)) {
    managed = decode(metadata["managedFields"]);
    if (managed.empty()) managed = decode(live.Get("metadata", "managedFields"));
  }
  SetManagedFields(arena, now, {});
  if (managed.empty() && !live.Get("metadata", "uid").as_string().empty())
    return;  // not tracked until somebody applies

  const Value before = live.is_null() ? BaseObject(arena) : Canonicalized(arena, live);
  const Value after = Canonicalized(arena, now);
  // Built-in objects were decoded by their schema.
  if (options_.custom_resource && (!Validate(after, type(), true).empty() || !Validate(before, type(), true).empty()))
    return;
  TrackUpdate(arena, before, after, managed, manager, time);
  SetManagedFields(arena, now, EncodeManagedFields(arena, std::move(managed)));
}

// What the applier set last time and does not any more goes, unless somebody else owns it.
Value FieldManager::Prune(Arena& arena, const Value& merged, const ManagedFields& managed,
                          const ManagedEntry& last) const {
  Version whole;
  if (last.set.empty() || !View(arena, merged, last.api_version, whole)) return merged;
  const auto members = [&](const FieldSet& set, const TypeRef& type) {
    return EnsureNamedFieldsAreMembers(arena, set, type);
  };
  const auto fields = [&](const Version& view) {
    return members(ToFieldSet(arena, view.object, view.type), view.type);
  };
  Version pruned = whole;
  pruned.object = RemoveItems(arena, whole.object, members(last.set, whole.type), whole.type);

  // What anybody owns comes back, version by version, the applier's own first.
  std::map<std::string_view, std::vector<FieldSet>> sets;
  for (const ManagedEntry& entry : managed) sets[entry.api_version].push_back(entry.set);
  std::map<std::string_view, FieldSet> owned;
  for (const auto& [api_version, of_version] : sets) owned[api_version] = FieldSet::UnionAll(arena, of_version);
  std::vector<std::string_view> order;
  if (owned.contains(last.api_version)) order.push_back(last.api_version);
  for (const auto& [api_version, set] : owned) {
    if (api_version != last.api_version) order.push_back(api_version);
  }
  for (const std::string_view api_version : order) {
    Version all;
    Version left;
    if (!View(arena, whole.object, api_version, all) || !View(arena, pruned.object, api_version, left)) continue;
    const FieldSet keep = FieldSet::Union(arena, fields(left), members(owned[api_version], all.type));
    left.object = RemoveItems(arena, all.object, FieldSet::Difference(arena, fields(all), keep), all.type);
    whole = all;
    pruned = left;
  }
  // Only what the applier owned may go.
  if (!View(arena, merged, last.api_version, whole) || !View(arena, pruned.object, last.api_version, pruned))
    return merged;
  const FieldSet gone = FieldSet::Difference(arena, fields(whole), fields(pruned));
  const FieldSet ours = FieldSet::Intersection(arena, gone, members(last.set, whole.type));
  Version result;
  if (!View(arena, RemoveItems(arena, whole.object, ours, whole.type), api_version_, result)) return merged;
  return result.object;
}

// `live` is a canonical view. Nothing comes back where conflicts stand in the way.
std::optional<FieldManager::Applied> FieldManager::Merge(Arena& arena, const Value& live, const Value& config,
                                                         ManagedFields managed, const ManagedEntry& self, bool force,
                                                         std::string_view time, Conflicts& conflicts) const {
  Reconcile(arena, managed);
  Value merged = MergeTyped(arena, live, config, type());
  const FieldSet set = Filtered(arena, ToFieldSet(arena, config, type()));
  ManagedEntry last;
  const auto before =
      std::ranges::find_if(managed, [&](const ManagedEntry& entry) { return entry.SameIdentity(self); });
  if (before == managed.end()) {
    managed.push_back(self);
    managed.back().set = set;
  } else {
    last = *before;
    before->api_version = api_version_;
    before->set = set;
  }
  merged = Prune(arena, merged, managed, last);
  TakeOver(arena, live, merged, managed, &self, force, conflicts);
  if (!force && !conflicts.empty()) return std::nullopt;
  const bool same = live == merged;
  for (ManagedEntry& entry : managed) {
    if (!entry.SameIdentity(self)) continue;
    entry.set = FieldSet::Difference(arena, entry.set, NeverOwned(arena));
    if (!same) entry.time = time;
  }
  std::erase_if(managed, [](const ManagedEntry& entry) { return entry.set.empty(); });
  return Applied{same ? std::nullopt : std::optional(merged), std::move(managed)};
}

// Where the last client-side apply agrees with the object as it is, kubectl may take over.
FieldSet FieldManager::AllowedByLastApplied(Arena& arena, const Value& live, const Value& live_view) const {
  const std::string_view text = live.Get("metadata", "annotations", kLastApplied).as_string();
  const auto last = text.empty() ? std::nullopt : object::ParseJSON(arena, text);
  if (!last || !last->is_map() || (*last)["apiVersion"].as_string() != api_version_) return {};
  const Value view = Canonical(arena, *last, type(), false);
  if (!Validate(view, type(), false).empty()) return {};
  const Comparison changed = CompareTyped(arena, view, live_view, type());
  FieldSet set = ToFieldSet(arena, view, type());
  for (const FieldSet* part : {&changed.modified, &changed.added, &changed.removed})
    set = FieldSet::Difference(arena, set, *part);
  return set;
}

namespace {

// The annotation that client-side apply goes by is kept in step for kubectl.
void UpdateLastApplied(Arena& arena, Value object, const Value& config) {
  Value annotations = object.Get("metadata", "annotations");
  if (annotations[kLastApplied].as_string().empty()) return;
  Value copy = config.Clone(arena);
  copy.Get("metadata", "annotations").Erase(kLastApplied);
  const Value sorted = Canonical(arena, copy, RootType(schema::structural::Node()), false);
  annotations.Set(arena, kLastApplied, Value::String(arena, object::ToJSON(sorted) + "\n"));
  std::size_t bytes = 0;
  for (const object::Member& member : annotations.members())
    bytes += member.key.size() + member.value.as_string().size();
  if (bytes > kAnnotationsBytesMax) annotations.Erase(kLastApplied);
}

}  // namespace

Result<Value> FieldManager::Apply(Arena& arena, const Value& live, const Value& config, std::string_view manager,
                                  bool force, std::string_view time, bool* unchanged) const {
  const meta::GroupVersionKind kind = KindOf(config);
  auto decoded = DecodeManagedFields(arena, live.Get("metadata", "managedFields"));
  if (!decoded.ok()) return meta::NewPlainError("failed to decode managed fields: " + decoded.error());
  ManagedFields managed = *std::move(decoded);
  if (kind != options_.kind) return meta::NewBadRequest("invalid object type: " + kind.ToString());
  if (config.Get("metadata", "managedFields").is_list())
    return meta::NewBadRequest("metadata.managedFields must be nil");

  const Value live_view = live.is_null() ? BaseObject(arena) : Canonicalized(arena, live);
  if (managed.empty()) TrackUpdate(arena, BaseObject(arena), live_view, managed, kBeforeFirstApply, time);

  const Value config_view = Canonical(arena, config, type(), false);
  if (const std::string wrong = Validate(config_view, type(), false); !wrong.empty()) {
    return meta::NewPlainError("failed to create typed patch object (" + Where(config, kind) + "): " + wrong);
  }
  if (const std::string wrong = options_.custom_resource ? Validate(live_view, type(), true) : ""; !wrong.empty()) {
    return meta::NewPlainError("failed to create typed live object (" + Where(live_view, kind) + "): " + wrong);
  }
  ManagedEntry self = Self(arena, manager);
  self.applied = true;
  Conflicts conflicts;
  auto applied = Merge(arena, live_view, config_view, managed, self, force, time, conflicts);
  if (!applied && manager == kKubectl) {
    const FieldSet allowed = AllowedByLastApplied(arena, live, live_view);
    for (auto& [identifier, conflict] : conflicts.by_manager)
      conflict.second = FieldSet::Difference(arena, conflict.second, allowed);
    std::erase_if(conflicts.by_manager, [](const auto& entry) { return entry.second.second.empty(); });
    Conflicts forced;
    if (conflicts.empty()) applied = Merge(arena, live_view, config_view, managed, self, true, time, forced);
  }
  if (!applied) return conflicts.ToStatus();
  Value result = applied->object ? applied->object->Clone(arena) : live_view.Clone(arena);
  if (unchanged != nullptr) *unchanged = !applied->object && !live.is_null();
  if (manager == kKubectl) UpdateLastApplied(arena, result, config);
  SetManagedFields(arena, result, EncodeManagedFields(arena, std::move(applied->managed)));
  return result;
}

namespace {

// Paths of atomic lists, maps and structs in a configuration. `config` has passed Validate(), which bounds its depth.
void FindAtomics(const Value& value, const TypeRef& type, const std::string& path, std::vector<std::string>& found) {
  const Atom atom = Deduce(Resolve(type), &value);
  if (value.is_map() && atom.map) {
    if (atom.map_atomic) found.push_back(path);
    for (const object::Member& member : value.members()) {
      bool declared = false;
      const TypeRef inner = MemberType(atom, member.key, &declared);
      if (declared) FindAtomics(member.value, inner, path + "." + std::string(member.key), found);
    }
  }
  if (value.is_list() && atom.list) {
    if (atom.list_atomic) found.push_back(path);
    std::size_t index = 0;
    for (const Value& item : value.items())
      FindAtomics(item, atom.list_element, path + "[" + std::to_string(index++) + "]", found);
  }
}

// The null of an expression, which upstream keeps as a value of its own type (structpb.NullValue) that fits nothing. The
// text of the first one, or "".
std::string NullError(const Value& value, const TypeRef& type, const std::string& path) {
  const Atom atom = Deduce(Resolve(type), &value);
  if (value.is_null()) {
    if (!atom.scalar) return path + ": expected " + (atom.map ? "map" : "list") + ", got &{NULL_VALUE}";
    switch (atom.scalar_kind) {
      case ScalarKind::kNumeric:
        return path + ": expected numeric (int or float), got structpb.NullValue";
      case ScalarKind::kString:
        return path + ": expected string, got &value.valueUnstructured{Value:0}";
      case ScalarKind::kBoolean:
        return path + ": expected boolean, got &{NULL_VALUE}";
      case ScalarKind::kUntyped:
        return "";
    }
  }
  if (value.is_map() && atom.map) {
    for (const object::Member& member : value.members()) {
      bool declared = false;
      const TypeRef inner = MemberType(atom, member.key, &declared);
      if (!declared && atom.fields != nullptr) continue;
      std::string error = NullError(member.value, inner, path + "." + std::string(member.key));
      if (!error.empty()) return error;
    }
  }
  if (value.is_list() && atom.list) {
    std::size_t index = 0;
    for (const Value& item : value.items()) {
      std::string error = NullError(item, atom.list_element, path + "[" + std::to_string(index++) + "]");
      if (!error.empty()) return error;
    }
  }
  return "";
}

}  // namespace

Outcome<Value, std::string> FieldManager::MergeConfiguration(Arena& arena, const Value& live,
                                                             const Value& config) const {
  const Value config_view = Canonical(arena, config, type(), false);
  if (const std::string wrong = Validate(config_view, type(), false); !wrong.empty())
    return "failed to convert patch object to typed object: " + wrong;
  if (const std::string wrong = NullError(config_view, type(), ""); !wrong.empty())
    return "failed to convert patch object to typed object: " + wrong;
  std::vector<std::string> atomics;
  FindAtomics(config_view, type(), "", atomics);
  if (!atomics.empty()) {
    return "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: " + base::Join(atomics, ", ");
  }
  const Value live_view = Canonical(arena, live, type(), !options_.custom_resource);
  if (const std::string wrong = Validate(live_view, type(), true); !wrong.empty())
    return "failed to convert original object to typed object: " + wrong;
  return MergeTyped(arena, live_view, config_view, type());
}

std::string ValidateManagedFields(const Value& entries) {
  Arena arena;
  const auto decoded = DecodeManagedFields(arena, entries);
  return decoded.ok() ? std::string() : decoded.error();
}

void RevertUnchangedTimes(Arena& arena, Value now, const Value& old) {
  const Value entries = now.Get("metadata", "managedFields");
  const Value before = old.Get("metadata", "managedFields");
  if (entries.empty() || entries.size() != before.size()) return;
  bool times_changed = false;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Value a = entries[i];
    const Value b = before[i];
    times_changed |= !(a["time"] == b["time"]);
    for (const char* part : {"manager", "operation", "apiVersion", "fieldsType", "fieldsV1", "subresource"}) {
      if (!(a[part] == b[part])) return;
    }
  }
  if (!times_changed) return;
  const Value x = WithoutManagedFields(arena, now);
  const Value y = WithoutManagedFields(arena, old);
  // The resourceVersion of the request need not be there.
  for (const object::Member& member : x.members()) {
    if (member.key != "metadata" && !(member.value == y[member.key])) return;
  }
  for (const object::Member& member : y.members()) {
    if (member.key != "metadata" && !x.Has(member.key)) return;
  }
  const auto same_metadata = [](const Value& a, const Value& b) {
    return std::ranges::all_of(a.members(), [&](const object::Member& member) {
      return member.key == "resourceVersion" || member.value == b[member.key];
    });
  };
  if (!same_metadata(x["metadata"], y["metadata"]) || !same_metadata(y["metadata"], x["metadata"])) return;
  now["metadata"].Set(arena, "managedFields", before);
}

}  // namespace keelson::patch
