#include "patch/strategic_merge.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/hash.h"
#include "base/strings.h"
#include "object/go_text.h"
#include "object/json_text.h"

namespace keelson::patch {
namespace {

using base::Arena;
using schema::Field;
using schema::Kind;
using schema::PatchStrategy;
using schema::Type;

constexpr std::string_view kDirective = "$patch";
constexpr std::string_view kRetainKeys = "$retainKeys";
constexpr std::string_view kDeleteFromPrimitiveList = "$deleteFromPrimitiveList";
constexpr std::string_view kSetElementOrder = "$setElementOrder";
constexpr const char* kBadRetainKeys = "invalid patch format of retainKeys";
constexpr const char* kBadPrimitiveList = "invalid patch format of primitive list";
constexpr const char* kBadElementOrder = "invalid patch format of setElementOrder list";

// Elements of all lists that one patch merges, an element counting each time. Ten times what a body and an object hold.
constexpr std::size_t kMergedItemsMax = 2'000'000;

using Items = std::vector<Value>;

Items ItemsOf(const Value& list) { return {list.items().begin(), list.items().end()}; }

Value ListOf(Arena& arena, const Items& items) {
  Value list = Value::List(arena, items.size());
  for (const Value& item : items) list.Append(arena, item);
  return list;
}

// A scalar as Go compares interface values: type and value.
std::string Key(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kString:
      return "s" + std::string(value.as_string());
    case Value::Kind::kInt:
      return "i" + std::to_string(value.as_int());
    case Value::Kind::kDouble:
      return "d" + object::GoDouble(value.as_double());
    case Value::Kind::kBool:
      return value.as_bool() ? "t" : "f";
    default:
      return "n";
  }
}

// First place of each item by its key (the merge key's value, or the scalar itself).
class Ranks {
 public:
  Ranks(const Items& items, std::string_view merge_key, bool maps) : merge_key_(merge_key), maps_(maps) {
    for (std::size_t i = 0; i < items.size(); ++i) ranks_.try_emplace(KeyOf(items[i]), i);
  }
  std::optional<std::size_t> Find(const Value& item) const {
    const auto found = ranks_.find(KeyOf(item));
    if (found == ranks_.end()) return std::nullopt;
    return found->second;
  }

 private:
  std::string KeyOf(const Value& item) const { return Key(maps_ ? item[merge_key_] : item); }

  std::string_view merge_key_;
  bool maps_;
  base::StringMap<std::size_t> ranks_;
};

Status BadArgType(std::string_view expected, const Value& got) {
  return meta::NewPlainError("expected a " + std::string(expected) + ", but received a " +
                             std::string(GoTypeName(got)));
}

Status NoMergeKey(const Value& map, std::string_view key) {
  return meta::NewPlainError("map: " + GoSprint(map) + " does not contain declared merge key: " + std::string(key));
}

Status BadPatchType(const Value& directive, const Value& map) {
  std::string type(directive.as_string());
  if (!directive.is_string())
    type =
        "%!s(" + (directive.is_null() ? "<nil>" : std::string(GoTypeName(directive)) + "=" + GoSprint(directive)) + ")";
  return meta::NewPlainError("unknown patch type: " + type + " in map: " + GoSprint(map));
}

std::string_view GoKind(const Type& type, bool pointer) {
  if (pointer) return "ptr";
  switch (type.kind) {
    case Kind::kString:
      return "string";
    case Kind::kBool:
      return "bool";
    case Kind::kInt32:
      return "int32";
    case Kind::kInt64:
      return "int64";
    case Kind::kDouble:
      return "float64";
    case Kind::kList:
    case Kind::kBytes:
      return "slice";
    case Kind::kMap:
      return "map";
    default:
      return "struct";
  }
}

// The schema of one member: its type and patch strategy. `type` is nullptr below the described
// part.
struct Lookup {
  const Type* type = nullptr;
  bool pointer = false;
  PatchStrategy strategy = PatchStrategy::kNone;
  std::string_view merge_key;
  bool merges() const { return strategy == PatchStrategy::kMerge || strategy == PatchStrategy::kMergeRetainKeys; }
};

std::string_view StructName(const Type& type) {
  switch (type.kind) {
    case Kind::kStruct:
      return type.structure->name;
    case Kind::kRaw:
      return "RawExtension";
    case Kind::kFieldsV1:
      return "FieldsV1";
    case Kind::kJSON:
      return "JSON";
    case Kind::kTime:
      return "Time";
    case Kind::kMicroTime:
      return "MicroTime";
    case Kind::kDuration:
      return "Duration";
    case Kind::kQuantity:
      return "Quantity";
    default:
      return "IntOrString";
  }
}

Result<Lookup> LookupStruct(const Type& parent, std::string_view key) {
  if (GoKind(parent, false) != "struct") {
    return meta::NewPlainError("merging an object in json but data type is not struct, instead is: " +
                               std::string(GoKind(parent, false)));
  }
  const Field* field = parent.kind == Kind::kStruct ? parent.structure->FindField(key) : nullptr;
  if (field == nullptr) {
    return meta::NewPlainError("unable to find api field in struct " + std::string(StructName(parent)) +
                               " for the json field " + base::GoQuote(key));
  }
  return Lookup{field->type, field->pointer, field->patch_strategy, field->patch_merge_key};
}

// The same with the type of the items.
Result<Lookup> LookupSlice(const Type& parent, std::string_view key) {
  KS_TRY(Lookup found, LookupStruct(parent, key));
  if (found.type->kind == Kind::kList) {
    found.type = found.type->element;
    if (found.type->kind == Kind::kList) return meta::NewPlainError("unexpected slice of slice");
  } else if (!found.pointer) {
    return meta::NewPlainError("expected slice or array type, but got: " + std::string(GoKind(parent, false)));
  }
  return found;
}

bool HasDirective(const Value& value) { return value.is_map() && value.Has(kDirective); }

// The value without what only a patch may hold: maps with $patch go; so do null members when `nulls` go too.
// Nothing: the value itself is such a map.
std::optional<Value> Cleaned(Arena& arena, const Value& value, bool drop_nulls) {
  if (value.is_list()) {
    Value list = Value::List(arena, value.size());
    for (const Value& item : value.items()) {
      if (const auto kept = Cleaned(arena, item, drop_nulls)) list.Append(arena, *kept);
    }
    return list;
  }
  if (!value.is_map()) return value;
  if (value.Has(kDirective)) return std::nullopt;
  Value map = Value::Map(arena, value.size());
  for (const object::Member& member : value.members()) {
    if (drop_nulls && member.value.is_null()) continue;
    if (const auto kept = Cleaned(arena, member.value, drop_nulls)) map.Set(arena, member.key, *kept);
  }
  return map;
}

// Checks that all items have one type, and that it is not a list.
Outcome<void, Status> CheckElements(const Items& a, const Items& b) {
  const Value* first = nullptr;
  for (const Items* items : {&a, &b}) {
    for (const Value& item : *items) {
      if (first == nullptr) {
        // Upstream's handler panics on a null here.
        if (item.is_null()) return meta::NewInternalError("a list to be merged holds null");
        if (item.is_list())
          return meta::NewGenericServerResponse(422, "", {}, "", "lists of lists are not supported", 0);
        first = &item;
      } else if (GoTypeName(*first) != GoTypeName(item)) {
        std::string shown;
        for (const Items* list : {&a, &b}) {
          std::string one;
          for (const Value& value : *list) one += (one.empty() ? "" : " ") + GoSprint(value);
          shown += (shown.empty() ? "[" : " [") + one + "]";
        }
        return meta::NewPlainError("list element types are not identical: [" + shown + "]");
      }
    }
  }
  if (first == nullptr) return meta::NewPlainError("no elements in any of the given slices");
  return {};
}

bool AreMaps(const Items& a, const Items& b) { return !a.empty() ? a[0].is_map() : !b.empty() && b[0].is_map(); }

class Merger {
 public:
  explicit Merger(Arena& arena) : arena_(arena) {}

  // `original` and `patch` are ours to change. `type` describes both.
  Result<Value> MergeMap(Value original, Value patch, const Type& type) {
    if (const Value* directive = patch.Find(kDirective)) return ApplyDirective(*directive, patch);
    KS_RETURN_IF_ERROR(ApplyRetainKeys(original, patch));
    KS_RETURN_IF_ERROR(ApplyElementOrders(original, patch, type));
    for (const object::Member& member : patch.members()) {
      KS_RETURN_IF_ERROR(MergeMember(original, member, type));
    }
    return original;
  }

 private:
  Result<Value> ApplyDirective(const Value& directive, Value patch) {
    if (directive.as_string() == "replace") {
      patch.Erase(kDirective);
      return patch;
    }
    if (directive.as_string() == "delete") return Value::Map(arena_);
    return BadPatchType(directive, patch);
  }

  Outcome<void, Status> ApplyRetainKeys(Value original, Value patch) {
    const Value* found = patch.Find(kRetainKeys);
    if (found == nullptr) return {};
    const Value retain = *found;
    patch.Erase(kRetainKeys);
    if (!retain.is_list()) return meta::NewBadRequest(kBadRetainKeys);
    base::StringViewSet retained;
    for (const Value& item : retain.items()) {
      if (item.is_string()) retained.insert(item.as_string());
    }
    const auto listed = [&](std::string_view key) { return retained.contains(key); };
    for (const object::Member& member : patch.members()) {
      if (member.value.is_null() || member.key.starts_with(kDeleteFromPrimitiveList) ||
          member.key.starts_with(kSetElementOrder))
        continue;
      if (!listed(member.key)) return meta::NewBadRequest(kBadRetainKeys);
    }
    std::vector<std::string_view> gone;
    for (const object::Member& member : original.members()) {
      if (!listed(member.key)) gone.push_back(member.key);
    }
    for (const std::string_view key : gone) original.Erase(key);
    return {};
  }

  // "<prefix>/<name>".
  static std::optional<std::string_view> ListName(std::string_view key, std::string_view prefix) {
    const std::size_t slash = key.find('/');
    if (slash == std::string_view::npos || key.substr(0, slash) != prefix) return std::nullopt;
    return key.substr(slash + 1);
  }

  Outcome<void, Status> ApplyElementOrders(Value original, Value patch, const Type& type) {
    std::vector<std::string_view> orders;
    for (const object::Member& member : patch.members()) {
      if (member.key.starts_with(kSetElementOrder)) orders.push_back(member.key);
    }
    for (const std::string_view key : orders) {
      const Value order = patch[key];
      patch.Erase(key);
      KS_RETURN_IF_ERROR(ApplyElementOrder(original, patch, key, order, type));
    }
    return {};
  }

  Outcome<void, Status> ApplyElementOrder(Value original, Value patch, std::string_view key, const Value& order_list,
                                          const Type& type) {
    if (!order_list.is_list()) return BadArgType("[]interface {}", order_list);
    const auto name = ListName(key, kSetElementOrder);
    if (!name) return meta::NewBadRequest(kBadElementOrder);
    const Value* in_original = original.Find(*name);
    const Value* in_patch = patch.Find(*name);
    if (in_original != nullptr && !in_original->is_list()) return BadArgType("[]interface {}", *in_original);
    if (in_patch != nullptr && !in_patch->is_list()) return BadArgType("[]interface {}", *in_patch);
    KS_TRY(const Lookup field, LookupSlice(type, *name));
    const Items order = ItemsOf(order_list);
    const Items server_items = in_original != nullptr ? ItemsOf(*in_original) : Items();
    const Items patch_items = in_patch != nullptr ? ItemsOf(*in_patch) : Items();
    KS_RETURN_IF_ERROR(CheckOrder(patch_items, order, field.merge_key));
    if (in_original == nullptr && in_patch == nullptr) return {};

    Items merged = server_items;
    if (in_original == nullptr) {
      merged = ItemsOf(*Cleaned(arena_, *in_patch, false));
    } else if (in_patch != nullptr) {
      KS_TRY(const Value both, MergeList(*in_original, *in_patch, field, false));
      merged = ItemsOf(both);
    }
    if (!field.merge_key.empty()) {
      for (const Value& item : merged) {
        if (!item.is_map()) return BadArgType("map[string]interface {}", item);
        if (!item.Has(field.merge_key)) return NoMergeKey(item, field.merge_key);
      }
    }
    KS_RETURN_IF_ERROR(CheckElements(server_items, patch_items));
    const bool maps = AreMaps(server_items, patch_items);
    KS_TRY(Items ordered, Order(merged, order, server_items, field.merge_key, maps));
    original.Set(arena_, *name, ListOf(arena_, ordered));
    patch.Erase(*name);
    return {};
  }

  // The items of the patch come in the order that the directive says.
  Outcome<void, Status> CheckOrder(const Items& patch, const Items& order, std::string_view merge_key) {
    if (patch.empty() || order.empty()) return {};
    Items kept;
    for (const Value& item : patch) {
      if (!merge_key.empty() && !item.is_map()) return BadArgType("map[string]interface {}", item);
      if (merge_key.empty() || item[kDirective].as_string() != "delete") kept.push_back(item);
    }
    std::size_t at = 0;
    std::size_t place = 0;
    while (at < kept.size() && place < order.size()) {
      if (HasDirective(kept[at])) {
        ++at;
        continue;
      }
      bool equal = false;
      if (merge_key.empty()) {
        equal = Key(kept[at]) == Key(order[place]);
      } else {
        for (const Value* item : std::initializer_list<const Value*>{&kept[at], &order[place]}) {
          if (!item->is_map()) return BadArgType("map[string]interface {}", *item);
          if (!item->Has(merge_key)) return NoMergeKey(*item, merge_key);
        }
        equal = Key(kept[at][merge_key]) == Key(order[place][merge_key]);
      }
      if (equal) ++at;
      ++place;
    }
    if (at < kept.size()) {
      return meta::NewPlainError("The order in patch list:\n" + GoSprint(ListOf(arena_, patch)) + "\n doesn't match " +
                                 std::string(kSetElementOrder) + " list:\n" + GoSprint(ListOf(arena_, order)) + "\n");
    }
    return {};
  }

  Outcome<void, Status> MergeMember(Value original, const object::Member& member, const Type& type) {
    std::string_view key = member.key;
    const bool deletes = key.starts_with(kDeleteFromPrimitiveList);
    if (deletes) {
      const auto name = ListName(key, kDeleteFromPrimitiveList);
      if (!name) return meta::NewBadRequest(kBadPrimitiveList);
      if (!name->empty()) key = *name;
    }
    if (member.value.is_null()) {
      original.Erase(key);
      return {};
    }
    const Value* now = original.Find(key);
    Value before = now != nullptr ? *now : Value();
    if (before.is_raw()) before = object::ParseJSON(arena_, before.as_raw()).value_or(Value());
    if (now == nullptr || GoTypeName(before) != GoTypeName(member.value)) {
      if (!deletes) Take(original, key, member.value, true);
      return {};
    }
    if (before.is_map()) {
      KS_TRY(const Lookup field, LookupStruct(type, key));
      if (field.strategy == PatchStrategy::kReplace) {
        original.Set(arena_, key, member.value);
        return {};
      }
      KS_TRY(const Value merged, MergeMap(before, member.value, *field.type));
      original.Set(arena_, key, merged);
    } else if (before.is_list()) {
      KS_TRY(const Lookup field, LookupSlice(type, key));
      KS_TRY(const Value merged, MergeList(before, member.value, field, deletes));
      original.Set(arena_, key, merged);
    } else {
      original.Set(arena_, key, member.value);
    }
    return {};
  }

  void Take(Value original, std::string_view key, const Value& value, bool drop_nulls) {
    if (const auto kept = Cleaned(arena_, value, drop_nulls)) {
      original.Set(arena_, key, *kept);
    } else {
      original.Erase(key);
    }
  }

  Result<Value> MergeList(const Value& original, const Value& patch, const Lookup& field, bool deletes) {
    if (!field.merges() && !deletes) return patch;
    // A patch may name one element again and again: each time its lists are merged anew.
    merged_items_ += original.size() + patch.size();
    if (merged_items_ > kMergedItemsMax) {
      return meta::NewRequestEntityTooLarge("the strategic merge patch merges more than " +
                                            std::to_string(kMergedItemsMax) + " list elements");
    }
    Items server = ItemsOf(original);
    Items changes = ItemsOf(patch);
    if (server.empty() && changes.empty()) return original;
    KS_RETURN_IF_ERROR(CheckElements(server, changes));
    if (!AreMaps(server, changes)) {
      if (!deletes && !field.merge_key.empty())
        return BadArgType("map[string]interface {}", server.empty() ? changes[0] : server[0]);
      return MergeScalars(server, changes, deletes);
    }
    if (field.merge_key.empty()) {
      return meta::NewPlainError("cannot merge lists without merge key for " + std::string(GoKind(*field.type, false)));
    }
    KS_RETURN_IF_ERROR(TakeSpecialElements(server, changes, field.merge_key));
    const Items server_order = server;
    Items merged = server;
    KS_RETURN_IF_ERROR(MergeElements(merged, changes, field));
    for (const Value& item : merged) {
      if (!item.Has(field.merge_key)) return NoMergeKey(item, field.merge_key);
    }
    KS_TRY(const Items ordered, Order(merged, changes, server_order, field.merge_key, true));
    return ListOf(arena_, ordered);
  }

  Result<Value> MergeScalars(const Items& server, const Items& changes, bool deletes) {
    const Ranks changed(changes, {}, false);
    Items merged;
    if (deletes) {
      for (const Value& item : server) {
        if (!changed.Find(item)) merged.push_back(item);
      }
      return ListOf(arena_, merged);
    }
    base::StringSet seen;
    for (const Items* items : {&server, &changes}) {
      for (const Value& item : *items) {
        if (seen.insert(Key(item)).second) merged.push_back(item);
      }
    }
    KS_TRY(const Items ordered, Order(merged, changes, server, {}, false));
    return ListOf(arena_, ordered);
  }

  // Elements that carry $patch: deletions are done, a replacement empties the server's list; none of them stays in
  // `changes`.
  Outcome<void, Status> TakeSpecialElements(Items& server, Items& changes, std::string_view merge_key) {
    Items plain;
    base::StringSet deleted;
    bool replace = false;
    for (const Value& item : changes) {
      const Value* directive = item.Find(kDirective);
      if (directive == nullptr) {
        plain.push_back(item);
      } else if (directive->as_string() == "delete") {
        const Value* key = item.Find(merge_key);
        if (key == nullptr) return NoMergeKey(item, merge_key);
        deleted.insert(Key(*key));
      } else if (directive->as_string() == "replace") {
        replace = true;
      } else if (directive->as_string() == "merge") {
        return meta::NewPlainError("merging lists cannot yet be specified in the patch");
      } else {
        return BadPatchType(*directive, item);
      }
    }
    if (!deleted.empty()) {
      std::erase_if(server,
                    [&](const Value& one) { return one.Has(merge_key) && deleted.contains(Key(one[merge_key])); });
    }
    if (replace) {
      server = std::move(plain);
      changes.clear();
    } else {
      changes = std::move(plain);
    }
    return {};
  }

  Outcome<void, Status> MergeElements(Items& merged, const Items& changes, const Lookup& field) {
    base::StringMap<std::size_t> places;
    for (std::size_t i = 0; i < merged.size(); ++i) {
      if (merged[i].Has(field.merge_key)) places.try_emplace(Key(merged[i][field.merge_key]), i);
    }
    for (const Value& item : changes) {
      const Value* key = item.Find(field.merge_key);
      if (key == nullptr) return NoMergeKey(item, field.merge_key);
      const auto [place, fresh] = places.try_emplace(Key(*key), merged.size());
      if (fresh) {
        merged.push_back(item);
        continue;
      }
      KS_TRY(merged[place->second], MergeMap(merged[place->second], item, *field.type));
    }
    return {};
  }

  // Those that `patch_order` names in its order, the others in `server_order`'s, woven together by the places they had
  // on the server; where that does not decide, the patch's item comes first.
  Result<Items> Order(const Items& merged, const Items& patch_order, const Items& server_order,
                      std::string_view merge_key, bool maps) {
    if (maps) {
      for (const Items* items : {&patch_order, &server_order}) {
        for (const Value& item : *items) {
          if (!item.is_map()) return BadArgType("map[string]interface {}", item);
          if (!item.Has(merge_key)) return NoMergeKey(item, merge_key);
        }
      }
    }
    const Ranks patch_ranks(patch_order, merge_key, maps);
    const Ranks server_ranks(server_order, merge_key, maps);
    Items patched;
    Items server_only;
    for (const Value& item : merged) (patch_ranks.Find(item) ? patched : server_only).push_back(item);
    SortBy(patched, patch_ranks);
    SortBy(server_only, server_ranks);
    Items out;
    std::size_t left = 0;
    std::size_t right = 0;
    while (left < server_only.size() || right < patched.size()) {
      bool take_left = right == patched.size();
      if (!take_left && left < server_only.size()) {
        const auto a = server_ranks.Find(server_only[left]);
        const auto b = server_ranks.Find(patched[right]);
        take_left = a && b && *a < *b;
      }
      out.push_back(take_left ? server_only[left++] : patched[right++]);
    }
    return out;
  }

  static void SortBy(Items& items, const Ranks& ranks) {
    std::vector<std::pair<std::size_t, std::size_t>> places;  // rank, position: a stable sort
    for (std::size_t i = 0; i < items.size(); ++i)
      places.emplace_back(ranks.Find(items[i]).value_or(items.size() + i), i);
    std::ranges::sort(places);
    Items sorted;
    for (const auto& [rank, position] : places) sorted.push_back(items[position]);
    items = std::move(sorted);
  }

  Arena& arena_;
  std::size_t merged_items_ = 0;
};

}  // namespace

Result<Value> ApplyStrategicMergePatch(Arena& arena, const Value& original, const Value& patch,
                                       const schema::Struct& type) {
  if (patch.is_null()) return original.Clone(arena);
  if (!patch.is_map()) {
    return meta::NewBadRequest("json: cannot unmarshal " + std::string(JSONTypeName(patch)) +
                               " into Go value of type map[string]interface {}");
  }
  const Type root{Kind::kStruct, nullptr, &type};
  return Merger(arena).MergeMap(original.Clone(arena), patch.Clone(arena), root);
}

}  // namespace keelson::patch
