#include "patch/field_manager.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "base/strings.h"
#include "object/json_text.h"
#include "patch/created_fields.h"
#include "patch/typed_atom.h"

namespace keelson::patch {
namespace {

using base::Arena;

constexpr std::string_view kBeforeFirstApply = "before-first-apply";
constexpr std::string_view kKubectl = "kubectl";
constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";
constexpr std::size_t kAnnotationsBytesMax = 256 * 1024;

// Fields that no manager ever owns.
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

// An empty list, or one empty entry, resets managedFields.
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

// Conflicts of an apply: per manager, by identifier.
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

// Why an object cannot be converted to a version.
struct FieldManager::NoView {
  enum class Reason : std::uint8_t {
    kMissing,  // the version is not served; its managers are forgotten
    kPending,  // a conversion is wanted
    kFailed,
  };
  Reason reason;
  std::string text;  // of kFailed

  bool missing() const { return reason == Reason::kMissing; }
};

struct FieldManager::Applied {
  std::optional<Value> object;  // nothing: the same as before
  ManagedFields managed;
};

// Sets that depend on the reset fields alone. Endpoints are thousands with custom resources, lists of reset fields a
// few: all endpoints with the same list share them.
struct FieldManager::EndpointSets {
  Arena arena;
  FieldSet never_owned;
  FieldSet reset;             // of reset_fields
  FieldSet not_from_created;  // the same, and managedFields

  explicit EndpointSets(const std::vector<std::string>& reset_fields) : never_owned(NeverOwned(arena)) {
    for (const std::string& path : reset_fields) reset = FieldSet::Union(arena, reset, FieldSet::OfDotted(arena, path));
    not_from_created = FieldSet::Union(arena, reset, FieldSet::OfDotted(arena, "metadata.managedFields"));
  }
};

std::shared_ptr<const FieldManager::EndpointSets> FieldManager::SetsOf(const std::vector<std::string>& reset_fields) {
  static std::mutex mutex;
  static std::map<std::vector<std::string>, std::weak_ptr<const EndpointSets>> known;
  const std::lock_guard lock(mutex);
  auto& slot = known[reset_fields];
  auto sets = slot.lock();
  if (!sets) slot = sets = std::make_shared<const EndpointSets>(reset_fields);
  return sets;
}

FieldManager::FieldManager(Options options)
    : options_(std::move(options)), api_version_(options_.kind.group_version().ToString()) {
  root_ = {.kind = schema::Kind::kStruct, .structure = options_.type};
  sets_ = SetsOf(options_.reset_fields);
  known_ = std::make_unique<KnownFieldsCache>(type());
  if (options_.custom_resource) return;
  for (const schema::Package* package : schema::Packages()) {
    // Upstream's converter stays within the group: what managers own of an event through the other group is forgotten.
    if (!package->serves || package->group != options_.kind.group) continue;
    const auto type = std::ranges::lower_bound(package->types, options_.kind.kind, {}, &schema::Struct::name);
    if (type == package->types.end() || type->name != options_.kind.kind) continue;
    const meta::GroupVersion version{std::string(package->group), std::string(package->version)};
    versions_.emplace(version.ToString(), schema::Type{.kind = schema::Kind::kStruct, .structure = &*type});
  }
}

// The type of the kind in a version; nothing where it is not served.
std::optional<TypeRef> FieldManager::TypeOf(std::string_view api_version) const {
  if (api_version == api_version_) return type();
  if (options_.custom_resource) {
    for (const auto& [version, schema] : options_.other_versions) {
      if (version == api_version) return RootType(schema);
    }
    return std::nullopt;
  }
  const auto found = versions_.find(api_version);
  if (found == versions_.end()) return std::nullopt;
  return options_.convert ? RootType(&found->second) : type();
}

Value FieldManager::Canonicalized(Arena& arena, const Value& object, EmptyInItems empty) const {
  return Canonical(arena, WithoutManagedFields(arena, object), type(), !options_.custom_resource, empty);
}

// The base that a created object is compared with.
Value FieldManager::BaseObject(Arena& arena) const {
  Value base = options_.custom_resource ? Value::Map(arena) : ZeroObject(arena, type());
  base.Set(arena, "apiVersion", Value::String(arena, api_version_));
  base.Set(arena, "kind", Value::String(arena, options_.kind.kind));
  base.SortMembers();
  return base;
}

// A webhook is sent all of the live object, as upstream does; its managedFields are never owned anyway.
Value FieldManager::CanonicalLive(Arena& arena, const Value& live) const {
  if (!options_.awaits_conversion) return Canonicalized(arena, live, EmptyInItems::kLeftOut);
  return Canonical(arena, live, type(), false);
}

Outcome<Value, FieldManager::NoView> FieldManager::Convert(const Call& call, const Value& object,
                                                           std::string_view api_version) const {
  if (options_.awaits_conversion) {
    if (call.conversions == nullptr) return NoView{NoView::Reason::kFailed, "conversion is not available"};
    const auto* const answer = call.conversions->Find(object, api_version);
    if (answer == nullptr) return NoView{NoView::Reason::kPending};
    if (!answer->ok()) return NoView{NoView::Reason::kFailed, answer->error()};
    return **answer;
  }
  if (options_.custom_resource) {
    Value renamed = Value::Map(call.arena, object.size());
    for (const object::Member& member : object.members()) renamed.AppendMember(call.arena, member.key, member.value);
    renamed.Set(call.arena, "apiVersion", Value::String(call.arena, api_version));
    return renamed;
  }
  const auto converted = options_.convert(call.arena, object, api_version);
  if (!converted) return NoView{NoView::Reason::kMissing};
  return *converted;
}

// A canonical object as that version's managers see it. Upstream converts through the version of the endpoint.
Outcome<FieldManager::Version, FieldManager::NoView> FieldManager::View(const Call& call, const Value& object,
                                                                        std::string_view api_version) const {
  const auto type = TypeOf(api_version);
  if (!type && options_.custom_resource) {
    return NoView{NoView::Reason::kFailed,
                  "request to convert CR to an invalid group/version: " + std::string(api_version)};
  }
  if (!type) return NoView{NoView::Reason::kMissing};
  const bool converts = options_.custom_resource || options_.convert;
  if (!converts || object["apiVersion"].as_string() == api_version) return Version{*type, object};
  Value current = object;
  for (const std::string_view target : {std::string_view(api_version_), api_version}) {
    if (current["apiVersion"].as_string() == target) continue;
    KS_TRY(current, Convert(call, current, target));
  }
  Version view{*type, current};
  if (!options_.awaits_conversion) current = WithoutManagedFields(call.arena, current);
  view.object = Canonical(call.arena, current, *type, !options_.custom_resource);
  if (std::string wrong = Validate(view.object, *type, false); !wrong.empty())
    return NoView{NoView::Reason::kFailed, std::move(wrong)};
  return view;
}

FieldSet FieldManager::Filtered(Arena& arena, const FieldSet& set) const {
  return FieldSet::RecursiveDifference(arena, set, sets_->reset);
}

Comparison FieldManager::Filtered(Arena& arena, const Comparison& changed) const {
  return {Filtered(arena, changed.removed), Filtered(arena, changed.modified), Filtered(arena, changed.added)};
}

FieldManager::Tried<void> FieldManager::Reconcile(const Call& call, const Value& live, ManagedFields& managed) const {
  std::map<std::string_view, std::optional<TypeRef>> types;
  std::string failure;
  bool pending = false;
  for (const ManagedEntry& entry : managed) {
    const auto [found, fresh] = types.try_emplace(entry.api_version);
    if (!fresh) continue;
    const auto view = View(call, live, entry.api_version);
    if (view.ok()) {
      found->second = view->type;
    } else if (view.error().reason == NoView::Reason::kPending) {
      pending = true;
    } else if (!view.error().missing() && failure.empty()) {
      failure = view.error().text;
    }
  }
  if (pending || !failure.empty()) return failure;
  std::erase_if(managed, [&](ManagedEntry& entry) {
    const auto& type = types[entry.api_version];
    if (type && !entry.reconciled()) entry.set = ReconcileWithSchema(call.arena, entry.set, *type);
    return !type;
  });
  return {};
}

// The comparison in each version of managers other than `self`; nothing for versions that are not served.
FieldManager::Tried<std::map<std::string_view, std::optional<Comparison>>> FieldManager::CompareVersions(
    const Call& call, const Value& old, const Value& now, const ManagedFields& managed,
    const ManagedEntry* self) const {
  std::map<std::string_view, std::optional<Comparison>> versions;
  versions[api_version_] = Filtered(call.arena, CompareTyped(call.arena, old, now, type()));
  bool pending = false;
  for (const ManagedEntry& entry : managed) {
    if (self != nullptr && entry.SameIdentity(*self)) continue;
    const auto [found, fresh] = versions.try_emplace(entry.api_version);
    if (!fresh) continue;
    const auto before = View(call, old, entry.api_version);
    const auto after = View(call, now, entry.api_version);
    bool usable = true;
    for (const auto& [which, view] : {std::pair("old", &before), std::pair("new", &after)}) {
      if (view->ok()) continue;
      usable = false;
      pending |= view->error().reason == NoView::Reason::kPending;
      if (view->error().reason == NoView::Reason::kFailed)
        return "failed to convert " + std::string(which) + " object: " + view->error().text;
    }
    if (!usable) continue;
    found->second = Filtered(call.arena, CompareTyped(call.arena, before->object, after->object, before->type));
  }
  if (pending) return std::string();
  return versions;
}

// Works out what changed, and takes it from the managers other than `self` (all of them without one). Conflicts are
// what others own of what was set; they stop everything unless forced.
FieldManager::Tried<Comparison> FieldManager::TakeOver(const Call& call, const Value& old, const Value& now,
                                                       ManagedFields& managed, const ManagedEntry* self, bool force,
                                                       Conflicts& conflicts) const {
  Arena& arena = call.arena;
  KS_TRY(const auto versions, CompareVersions(call, old, now, managed, self));
  std::map<std::string_view, FieldSet> set_by_us;
  std::vector<FieldSet> losses(managed.size());
  std::vector<bool> obsolete(managed.size(), false);
  for (std::size_t i = 0; i < managed.size(); ++i) {
    const ManagedEntry& entry = managed[i];
    if (self != nullptr && entry.SameIdentity(*self)) continue;
    const auto& changed = versions.at(entry.api_version);
    obsolete[i] = !changed;
    if (!changed) continue;
    const auto [set, first_of_version] = set_by_us.try_emplace(entry.api_version);
    if (first_of_version) set->second = FieldSet::Union(arena, changed->modified, changed->added);
    const FieldSet conflict = FieldSet::Intersection(arena, entry.set, set->second);
    if (!conflict.empty()) conflicts.by_manager.emplace(entry.Identifier(), std::pair(entry, conflict));
    losses[i] = FieldSet::Union(arena, conflict, FieldSet::Intersection(arena, entry.set, changed->removed));
  }
  const Comparison own = *versions.at(api_version_);
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
  return own;
}

ManagedEntry FieldManager::Self(Arena& arena, std::string_view manager) const {
  return {.manager = manager.empty() ? "unknown" : arena.Copy(manager),
          .api_version = arena.Copy(api_version_),
          .subresource = arena.Copy(options_.subresource)};
}

// Both objects are canonical views of this endpoint's version.
FieldManager::Tried<void> FieldManager::TrackUpdate(const Call& call, const Value& live, const Value& now,
                                                    ManagedFields& managed, std::string_view manager,
                                                    std::string_view time) const {
  Arena& arena = call.arena;
  KS_RETURN_IF_ERROR(Reconcile(call, live, managed));
  Conflicts taken;
  KS_TRY(const Comparison changed, TakeOver(call, live, now, managed, nullptr, true, taken));
  const FieldSet touched = FieldSet::Difference(
      arena, Filtered(arena, FieldSet::Union(arena, changed.modified, changed.added)), sets_->never_owned);
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
      if (before->known && before->set == before->known->set) before->set = before->known->set;
      before->time = time;
    }
  }
  CapUpdateManagers(arena, managed);
  return {};
}

bool FieldManager::AllOfThisVersion(const ManagedFields& managed) const {
  return std::ranges::all_of(managed, [&](const ManagedEntry& entry) { return entry.api_version == api_version_; });
}

// Tracks the creation of an object without managers. False if its parts have to be compared one by one.
bool FieldManager::TrackCreate(Arena& arena, Value now, std::string_view manager, std::string_view time) const {
  std::optional<std::string_view> fields;
  if (options_.custom_resource) {
    const Value object = WithoutManagedFields(arena, now);
    if (!Validate(object, type(), true).empty()) return false;
    fields = CreatedCustomFields(arena, object, type(), sets_->reset, sets_->never_owned);
  } else if (options_.type != nullptr) {
    fields = CreatedFields(arena, now, root_, sets_->not_from_created, sets_->never_owned);
  }
  if (!fields) return false;
  ManagedEntry self = Self(arena, manager);
  self.time = time;
  SetManagedFields(arena, now, *fields == "{}" ? Value() : EncodeManagedEntry(arena, self, *fields));
  return true;
}

void FieldManager::Update(Arena& arena, const Value& live, Value now, std::string_view manager, std::string_view time,
                          Conversions* conversions) const {
  const Call call{arena, conversions};
  ManagedFields managed;
  KnownVersion known = this->known();
  const auto decode = [&](const Value& entries) {
    auto decoded = DecodeManagedFields(arena, entries, &known);
    return decoded.ok() ? *std::move(decoded) : ManagedFields();
  };
  const Value metadata = now["metadata"];
  if (!options_.subresource.empty()) {
    managed = decode(live.Get("metadata", "managedFields"));
  } else if (!IsReset(metadata)) {
    managed = decode(metadata["managedFields"]);
    if (managed.empty()) managed = decode(live.Get("metadata", "managedFields"));
  }
  if (managed.empty() && !live.Get("metadata", "uid").as_string().empty()) {
    SetManagedFields(arena, now, {});  // not tracked until the first apply
    return;
  }
  if (live.is_null() && managed.empty() && TrackCreate(arena, now, manager, time)) return;
  Differing objects{live, now};
  const bool in_parts = live.is_map() && !options_.awaits_conversion && AllOfThisVersion(managed);
  if (in_parts) {
    objects = DifferingParts(arena, live, now);
    objects.old.Set(arena, "apiVersion", live["apiVersion"]);
    objects.now.Set(arena, "apiVersion", now["apiVersion"]);
  }
  const Value before = live.is_null() ? BaseObject(arena) : CanonicalLive(arena, objects.old);
  const Value after = Canonicalized(arena, objects.now, EmptyInItems::kKept);
  // Built-in objects were decoded by their schema. What a custom resource has in common with the old one is looked at
  // once.
  const auto is_valid = [&](const Value& object) { return Validate(object, type(), true).empty(); };
  // One of another kind, which the status of a custom resource may be patched to, has no fields to follow.
  const meta::GroupVersionKind sent = KindOf(now);
  const bool fits =
      !options_.custom_resource || (sent.group == options_.kind.group && sent.kind == options_.kind.kind &&
                                    is_valid(in_parts ? WithoutManagedFields(arena, now) : after) && is_valid(before));
  const bool tracked = fits && TrackUpdate(call, before, after, managed, manager, time).ok();
  if (conversions != nullptr && !conversions->wanted().empty()) return;
  SetManagedFields(arena, now, {});
  if (tracked) SetManagedFields(arena, now, EncodeManagedFields(arena, std::move(managed)));
}

namespace {

FieldSet Members(Arena& arena, const FieldSet& set, const TypeRef& type) {
  return EnsureNamedFieldsAreMembers(arena, set, type);
}
FieldSet MembersOf(Arena& arena, const Value& object, const TypeRef& type) {
  return Members(arena, ToFieldSet(arena, object, type), type);
}

}  // namespace

// Adds back fields with an owner, version by version, `first` first. The last version in which that was done is the
// result's.
FieldManager::Tried<Value> FieldManager::AddBackOwned(const Call& call, Version whole, Version pruned,
                                                      const ManagedFields& managed, std::string_view first) const {
  Arena& arena = call.arena;
  std::map<std::string_view, std::vector<FieldSet>> sets;
  for (const ManagedEntry& entry : managed) sets[entry.api_version].push_back(entry.set);
  std::vector<std::string_view> order;
  if (sets.contains(first)) order.push_back(first);
  for (const auto& [api_version, of_version] : sets) {
    if (api_version != first) order.push_back(api_version);
  }
  for (const std::string_view api_version : order) {
    const auto all = View(call, whole.object, api_version);
    const auto left = View(call, pruned.object, api_version);
    for (const auto& [which, view] : {std::pair("merged", &all), std::pair("pruned", &left)}) {
      if (view->ok() || view->error().missing()) continue;
      return "failed add back owned items: failed to convert " + std::string(which) + " object at version " +
             std::string(api_version) + ": " + view->error().text;
    }
    if (!all.ok() || !left.ok()) continue;
    const FieldSet owned = FieldSet::UnionAll(arena, sets[api_version]);
    const FieldSet keep =
        FieldSet::Union(arena, MembersOf(arena, left->object, left->type), Members(arena, owned, all->type));
    const FieldSet gone = FieldSet::Difference(arena, MembersOf(arena, all->object, all->type), keep);
    whole = *all;
    pruned = {all->type, RemoveItems(arena, all->object, gone, all->type)};
  }
  return pruned.object;
}

// Removes fields that the applier set last time and no longer sets, unless another manager owns them.
FieldManager::Tried<Value> FieldManager::Prune(const Call& call, const Value& merged, const ManagedFields& managed,
                                               const ManagedEntry& last) const {
  Arena& arena = call.arena;
  if (last.set.empty()) return merged;
  const auto whole = View(call, merged, last.api_version);
  if (!whole.ok() && whole.error().missing()) return merged;
  if (!whole.ok()) return "failed to convert merged object to last applied version: " + whole.error().text;
  Version pruned{whole->type, RemoveItems(arena, whole->object, Members(arena, last.set, whole->type), whole->type)};
  KS_TRY(const Value kept, AddBackOwned(call, *whole, pruned, managed, last.api_version));
  // Only what the applier owned may go.
  const auto left = View(call, kept, last.api_version);
  if (!left.ok() && left.error().missing()) return merged;
  if (!left.ok()) {
    return "failed add back dangling items: failed to convert pruned object to last applied version: " +
           left.error().text;
  }
  const FieldSet gone = FieldSet::Difference(arena, MembersOf(arena, whole->object, whole->type),
                                             MembersOf(arena, left->object, left->type));
  const FieldSet ours = FieldSet::Intersection(arena, gone, Members(arena, last.set, whole->type));
  const auto result = View(call, RemoveItems(arena, whole->object, ours, whole->type), api_version_);
  if (!result.ok()) return result.error().text;
  return result->object;
}

// `live` is a canonical view. Nothing is returned on conflicts.
FieldManager::Tried<std::optional<FieldManager::Applied>> FieldManager::Merge(
    const Call& call, const Value& live, const Value& config, ManagedFields managed, const ManagedEntry& self,
    bool force, std::string_view time, Conflicts& conflicts) const {
  Arena& arena = call.arena;
  KS_RETURN_IF_ERROR(Reconcile(call, live, managed));
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
  auto pruned = Prune(call, merged, managed, last);
  if (!pruned.ok()) return "failed to prune fields: " + pruned.error();
  merged = *pruned;
  KS_RETURN_IF_ERROR(TakeOver(call, live, merged, managed, &self, force, conflicts));
  if (!force && !conflicts.empty()) return std::optional<Applied>();
  const bool same = live == merged;
  for (ManagedEntry& entry : managed) {
    if (!entry.SameIdentity(self)) continue;
    entry.set = FieldSet::Difference(arena, entry.set, sets_->never_owned);
    if (!same) entry.time = time;
  }
  std::erase_if(managed, [](const ManagedEntry& entry) { return entry.set.empty(); });
  return std::optional(Applied{same ? std::nullopt : std::optional(merged), std::move(managed)});
}

// If the last-applied annotation agrees with the live object, kubectl may take over its fields.
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
                                  bool force, std::string_view time, bool* unchanged, Conversions* conversions) const {
  const Call call{arena, conversions};
  const meta::GroupVersionKind kind = KindOf(config);
  KnownVersion known = this->known();
  auto decoded = DecodeManagedFields(arena, live.Get("metadata", "managedFields"), &known);
  if (!decoded.ok()) return meta::NewPlainError("failed to decode managed fields: " + decoded.error());
  ManagedFields managed = *std::move(decoded);
  if (kind != options_.kind) return meta::NewBadRequest("invalid object type: " + kind.ToString());
  const std::string unconvertible =
      options_.unconvertible ? ") to proper version: request to convert CR to an invalid group/version: " + api_version_
                             : "";
  if (options_.unconvertible && managed.empty()) {
    return meta::NewPlainError("failed to create manager for existing fields: failed to convert live object (/; " +
                               options_.kind.ToString() + unconvertible);
  }
  if (config.Get("metadata", "managedFields").is_list())
    return meta::NewBadRequest("metadata.managedFields must be nil");

  const Value live_view = live.is_null() ? BaseObject(arena) : CanonicalLive(arena, live);
  const std::string untyped = options_.custom_resource ? Validate(live_view, type(), true) : "";
  if (managed.empty()) {
    constexpr std::string_view kFailed = "failed to create manager for existing fields: ";
    if (!untyped.empty())
      return meta::NewPlainError(std::string(kFailed) + "failed to convert new object (" + Where(live_view, kind) +
                                 ") to smd typed: " + untyped);
    auto tracked = TrackUpdate(call, BaseObject(arena), live_view, managed, kBeforeFirstApply, time);
    if (!tracked.ok()) return meta::NewPlainError(std::string(kFailed) + tracked.error());
  }

  const Value config_view = Canonical(arena, config, type(), false);
  if (const std::string wrong = Validate(config_view, type(), false); !wrong.empty()) {
    return meta::NewPlainError("failed to create typed patch object (" + Where(config, kind) + "): " + wrong);
  }
  if (!untyped.empty())
    return meta::NewPlainError("failed to create typed live object (" + Where(live_view, kind) + "): " + untyped);
  ManagedEntry self = Self(arena, manager);
  self.applied = true;
  Conflicts conflicts;
  auto merged = Merge(call, live_view, config_view, managed, self, force, time, conflicts);
  if (!merged.ok()) return meta::NewPlainError(merged.error());
  std::optional<Applied> applied = *std::move(merged);
  if (!applied && manager == kKubectl) {
    const FieldSet allowed = AllowedByLastApplied(arena, live, live_view);
    for (auto& [identifier, conflict] : conflicts.by_manager)
      conflict.second = FieldSet::Difference(arena, conflict.second, allowed);
    std::erase_if(conflicts.by_manager, [](const auto& entry) { return entry.second.second.empty(); });
    Conflicts forced;
    if (conflicts.empty()) {
      merged = Merge(call, live_view, config_view, managed, self, true, time, forced);
      if (!merged.ok()) return meta::NewPlainError(merged.error());
      applied = *std::move(merged);
    }
  }
  if (!applied) return conflicts.ToStatus();
  if (options_.unconvertible && applied->object)
    return meta::NewPlainError("failed to convert new object (" + Where(config, kind) + unconvertible);
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

// The null of an expression, which upstream keeps as structpb.NullValue, which matches no type.
// The text of the first one, or "".
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
  if (const std::string wrong = Validate(config_view, type(), false, Nulls::kFromCEL); !wrong.empty())
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

namespace {

// fieldsV1 of two entries. The field manager writes text; a custom resource that was read from storage has a map.
bool SameFields(Arena& arena, const Value& a, const Value& b) {
  if (a.is_raw() == b.is_raw()) return a == b;
  const auto parsed = object::ParseJSON(arena, a.is_raw() ? a.as_raw() : b.as_raw());
  return parsed && *parsed == (a.is_raw() ? b : a);
}

}  // namespace

void RevertUnchangedTimes(Arena& arena, Value now, const Value& old) {
  const Value entries = now.Get("metadata", "managedFields");
  const Value before = old.Get("metadata", "managedFields");
  if (entries.empty() || entries.size() != before.size()) return;
  bool times_changed = false;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Value a = entries[i];
    const Value b = before[i];
    times_changed |= !(a["time"] == b["time"]);
    for (const char* part : {"manager", "operation", "apiVersion", "fieldsType", "subresource"}) {
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
  for (std::size_t i = 0; i < entries.size(); ++i) {  // Last: text is parsed for it.
    if (!SameFields(arena, entries[i]["fieldsV1"], before[i]["fieldsV1"])) return;
  }
  now["metadata"].Set(arena, "managedFields", before);
}

}  // namespace keelson::patch
