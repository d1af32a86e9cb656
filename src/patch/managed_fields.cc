#include "patch/managed_fields.h"

#include <algorithm>
#include <map>

#include "base/hash.h"
#include "base/strings.h"
#include "object/json_text.h"

namespace keelson::patch {
namespace {

using base::Arena;

constexpr std::string_view kAncientChanges = "ancient-changes";
constexpr std::string_view kScaleVersion = "autoscaling/v1";
constexpr std::string_view kReplicasInScale = "spec.replicas";

Path DottedPath(std::string_view dotted) {
  Path path;
  for (const std::string_view name : base::Split(dotted, '.')) path.push_back(PathElement::Field(name));
  return path;
}

ManagedEntry* FindIdentity(ManagedFields& entries, const ManagedEntry& like) {
  const auto found = std::ranges::find_if(entries, [&](const ManagedEntry& entry) { return entry.SameIdentity(like); });
  return found == entries.end() ? nullptr : &*found;
}

const ReplicasPath* FindVersion(std::span<const ReplicasPath> paths, std::string_view api_version) {
  const auto found = std::ranges::find(paths, api_version, &ReplicasPath::api_version);
  return found == paths.end() ? nullptr : &*found;
}

}  // namespace

std::string ManagedEntry::Identifier() const {
  std::string out = "{";
  const auto add = [&](std::string_view name, std::string_view text) {
    if (text.empty()) return;
    if (out.size() > 1) out += ',';
    object::AppendJSONString(out, name);
    out += ':';
    object::AppendJSONString(out, text);
  };
  add("manager", manager);
  add("operation", applied ? "Apply" : "Update");
  if (!applied) add("apiVersion", api_version);
  add("subresource", subresource);
  return out + "}";
}

std::string ManagedEntry::Describe() const {
  std::string out = base::GoQuote(manager);
  if (!subresource.empty()) out += " with subresource " + base::GoQuote(subresource);
  if (!applied) out += " using " + std::string(api_version);
  return out;
}

const KnownFields* KnownVersion::Find(std::string_view api_version, std::string_view text) {
  if (api_version != api_version_) return nullptr;
  auto found = cache_.Find(text);
  if (!found) return nullptr;
  return held_.emplace_back(std::move(found)).get();
}

namespace {

// False for what is not a FieldsV1.
bool ReadSet(Arena& arena, const Value& fields, KnownVersion* known, ManagedEntry& entry) {
  if (fields.is_null()) return true;
  entry.text = fields.is_raw() ? fields.as_raw() : arena.Copy(object::ToJSON(fields));
  if (known != nullptr) entry.known = known->Find(entry.api_version, entry.text);
  if (entry.known != nullptr) {
    entry.set = entry.known->set;
    return true;
  }
  const auto set = FieldSet::Parse(arena, entry.text);
  if (set) entry.set = *set;
  return set.has_value();
}

constexpr std::size_t kWalkedEntriesMax = 16;  // Among so many a manager is looked for one by one.

}  // namespace

Outcome<ManagedFields, std::string> DecodeManagedFields(Arena& arena, const Value& list, KnownVersion* known) {
  ManagedFields entries;
  base::StringMap<std::size_t> places;
  const bool indexed = list.size() > kWalkedEntriesMax;
  entries.reserve(list.size() + 2);
  std::size_t index = 0;
  for (const Value& value : list.items()) {
    const std::string_view operation = value["operation"].as_string();
    if (operation != "Apply" && operation != "Update") return std::string("operation must be `Apply` or `Update`");
    ManagedEntry entry;
    entry.manager = value["manager"].as_string();
    entry.applied = operation == "Apply";
    entry.api_version = value["apiVersion"].as_string();
    entry.subresource = value["subresource"].as_string();
    entry.time = value["time"].as_string();
    if (entry.api_version.empty()) return std::string("apiVersion must not be empty");
    const std::string_view type = value["fieldsType"].as_string();
    if (type.empty()) return "missing fieldsType in managed fields entry " + std::to_string(index);
    if (type != "FieldsV1")
      return "invalid fieldsType " + base::GoQuote(type) + " in managed fields entry " + std::to_string(index);
    ++index;
    if (!ReadSet(arena, value["fieldsV1"], known, entry))
      return "error decoding versioned set from " + entry.Identifier() + ": error decoding set: not a FieldsV1";
    // Of entries with one identity the last one counts.
    ManagedEntry* before = indexed ? nullptr : FindIdentity(entries, entry);
    if (indexed) {
      const auto [place, fresh] = places.try_emplace(entry.Identifier(), entries.size());
      if (!fresh) before = &entries[place->second];
    }
    if (before != nullptr) {
      *before = std::move(entry);
    } else {
      entries.push_back(std::move(entry));
    }
  }
  return entries;
}

namespace {

Value EntryValue(Arena& arena, const ManagedEntry& entry, std::string_view fields) {
  Value value = Value::Map(arena, 7);
  if (!entry.manager.empty()) value.AppendMember(arena, "manager", entry.manager);
  value.AppendMember(arena, "operation", entry.applied ? "Apply" : "Update");
  value.AppendMember(arena, "apiVersion", entry.api_version);
  if (!entry.time.empty()) value.AppendMember(arena, "time", entry.time);
  value.AppendMember(arena, "fieldsType", "FieldsV1");
  value.AppendMember(arena, "fieldsV1", Value::Raw(fields));
  if (!entry.subresource.empty()) value.AppendMember(arena, "subresource", entry.subresource);
  return value;
}

}  // namespace

Value EncodeManagedEntry(Arena& arena, const ManagedEntry& entry, std::string_view fields) {
  Value list = Value::List(arena, 1);
  list.Append(arena, EntryValue(arena, entry, fields));
  return list;
}

Value EncodeManagedFields(Arena& arena, ManagedFields entries) {
  if (entries.empty()) return {};
  std::ranges::sort(entries, [](const ManagedEntry& a, const ManagedEntry& b) {
    if (a.applied != b.applied) return a.applied;
    if (a.time != b.time) return a.time < b.time;
    if (a.manager != b.manager) return a.manager < b.manager;
    if (a.api_version != b.api_version) return a.api_version < b.api_version;
    return a.subresource < b.subresource;
  });
  Value list = Value::List(arena, entries.size());
  std::string json;
  for (const ManagedEntry& entry : entries) {
    json.clear();
    if (!entry.verbatim()) entry.set.AppendJSON(json);
    list.Append(arena, EntryValue(arena, entry, entry.verbatim() ? entry.text : arena.Copy(json)));
  }
  return list;
}

void CapUpdateManagers(Arena& arena, ManagedFields& entries) {
  struct Updater {
    std::string_view time;
    std::string identifier;
    std::size_t index;
  };
  const auto updates = std::ranges::count_if(entries, [](const ManagedEntry& entry) { return !entry.applied; });
  if (updates <= static_cast<std::ptrdiff_t>(kUpdateManagersMax)) return;
  std::vector<Updater> updaters;
  std::map<std::string_view, std::size_t> buckets;  // by version
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const ManagedEntry& entry = entries[i];
    if (entry.applied) continue;
    updaters.push_back({entry.time, entry.Identifier(), i});
    if (entry.manager == kAncientChanges && entry.subresource.empty()) buckets.emplace(entry.api_version, i);
  }
  std::ranges::sort(updaters, [](const Updater& a, const Updater& b) {
    return a.time != b.time ? a.time < b.time : a.identifier < b.identifier;
  });

  std::vector<bool> gone(entries.size(), false);
  std::map<std::string_view, std::size_t> first_of_version;
  std::map<std::size_t, std::vector<FieldSet>> folded;  // by bucket
  std::size_t left = updaters.size();
  for (const Updater& updater : updaters) {
    if (left <= kUpdateManagersMax) break;
    const std::string_view version = entries[updater.index].api_version;
    const auto [first, fresh] = first_of_version.try_emplace(version, updater.index);
    if (fresh) continue;
    if (!buckets.contains(version)) {
      buckets.emplace(version, entries.size());
      gone[first->second] = true;
      gone.push_back(false);
      entries.push_back({.manager = kAncientChanges, .api_version = version, .set = entries[first->second].set});
    }
    const std::size_t bucket = buckets[version];
    entries[bucket].time = entries[updater.index].time;  // the later one
    folded[bucket].push_back(entries[updater.index].set);
    if (updater.index != bucket) gone[updater.index] = true;
    --left;
  }
  for (auto& [bucket, sets] : folded) {
    sets.push_back(entries[bucket].set);
    entries[bucket].set = FieldSet::UnionAll(arena, sets);
  }
  ManagedFields kept;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!gone[i]) kept.push_back(entries[i]);
  }
  entries = std::move(kept);
}

Outcome<Value, std::string> ToScaleManagedFields(Arena& arena, const Value& parent,
                                                 std::span<const ReplicasPath> replicas_paths) {
  KS_TRY(const ManagedFields entries, DecodeManagedFields(arena, parent));
  ManagedFields scale;
  for (ManagedEntry entry : entries) {
    const ReplicasPath* version = FindVersion(replicas_paths, entry.api_version);
    if (version == nullptr || version->path.empty() || !entry.set.Has(DottedPath(version->path))) continue;
    entry.api_version = kScaleVersion;
    entry.set = FieldSet::OfDotted(arena, kReplicasInScale);
    scale.push_back(entry);
  }
  return EncodeManagedFields(arena, std::move(scale));
}

Outcome<Value, std::string> FromScaleManagedFields(Arena& arena, const Value& parent, const Value& scale,
                                                   std::string_view parent_api_version,
                                                   std::span<const ReplicasPath> replicas_paths) {
  KS_TRY(const ManagedFields parent_entries, DecodeManagedFields(arena, parent));
  KS_TRY(ManagedFields scale_entries, DecodeManagedFields(arena, scale));
  ManagedFields out;
  for (ManagedEntry entry : parent_entries) {
    const ReplicasPath* version = FindVersion(replicas_paths, entry.api_version);
    if (version == nullptr) continue;
    if (version->path.empty() || !entry.set.Has(DottedPath(version->path))) {
      out.push_back(entry);
      continue;
    }
    // An updater's identity holds its version, which differs here: upstream takes the replicas from it and gives them
    // back below.
    const auto kept =
        std::ranges::find_if(scale_entries, [&](const ManagedEntry& one) { return entry.SameIdentity(one); });
    if (kept != scale_entries.end()) {
      scale_entries.erase(kept);
    } else {
      entry.set = FieldSet::Difference(arena, entry.set, FieldSet::OfDotted(arena, version->path));
      if (entry.set.empty()) continue;
    }
    out.push_back(entry);
  }
  const ReplicasPath* version = FindVersion(replicas_paths, parent_api_version);
  for (ManagedEntry entry : scale_entries) {
    if (version == nullptr || !entry.set.Has(DottedPath(kReplicasInScale))) continue;
    const ManagedEntry* before = entry.applied ? FindIdentity(out, entry) : nullptr;
    entry.api_version = arena.Copy(parent_api_version);  // The result lives as long as the arena.
    entry.set = FieldSet::OfDotted(arena, version->path);
    entry.time = before != nullptr ? before->time : std::string_view();  // the parent's entries have the times
    if (before != nullptr) {
      *FindIdentity(out, entry) = entry;
    } else {
      out.push_back(entry);
    }
  }
  return EncodeManagedFields(arena, std::move(out));
}

}  // namespace keelson::patch
