#include "patch/json_patch.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "base/strings.h"
#include "object/go_text.h"
#include "object/json_text.h"

namespace keelson::patch {
namespace {

using base::Arena;

// How often the exact depth is measured when its upper bound passes the limit.
constexpr int kDepthMeasurementsMax = 20;
// List items that insertions and removals of one patch may shift: 3 GB, a third of a second.
constexpr std::uint64_t kShiftedItemsMax = 200'000'000;

std::string DecodeSegment(std::string_view segment) {
  std::string out;
  for (std::size_t i = 0; i < segment.size(); ++i) {
    if (segment[i] == '~' && i + 1 < segment.size() && (segment[i + 1] == '0' || segment[i + 1] == '1')) {
      out += segment[++i] == '1' ? '/' : '~';
    } else {
      out += segment[i];
    }
  }
  return out;
}

// strconv.Atoi: a sign, then digits; leading zeros are fine.
std::optional<std::int64_t> Atoi(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] == '-') return std::nullopt;
  return base::ParseInt64(text);
}

// The place in a list of `size` that `text` names, negative ones from the end.
std::optional<std::size_t> IndexOf(std::string_view text, std::size_t size) {
  const auto index = Atoi(text);
  if (!index) return std::nullopt;
  const auto count = static_cast<std::int64_t>(size);
  const std::int64_t at = *index < 0 ? *index + count : *index;
  if (at < 0 || at >= count) return std::nullopt;
  return static_cast<std::size_t>(at);
}

int DepthOf(const Value& value) {
  int deepest = 0;
  for (const Value& item : value.items()) deepest = std::max(deepest, DepthOf(item));
  for (const object::Member& member : value.members()) deepest = std::max(deepest, DepthOf(member.value));
  return value.is_list() || value.is_map() ? deepest + 1 : 0;
}

// Equal texts, as upstream compares: 1 and 1.0 differ.
bool SameJSON(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  if (a.is_list()) return std::ranges::equal(a.items(), b.items(), SameJSON);
  if (!a.is_map()) return a == b;
  if (a.size() != b.size()) return false;
  return std::ranges::all_of(a.members(), [&](const object::Member& member) {
    const Value* other = b.Find(member.key);
    return other != nullptr && SameJSON(member.value, *other);
  });
}

const std::string kMissing = ": missing value";

// The error of a patch whose operations move too many elements of lists.
std::string TooExpensive() {
  return "The operations of the JSON patch shift more than " + std::to_string(kShiftedItemsMax) + " list elements";
}

struct Place {
  Value container;  // null: the path leads nowhere
  std::string key;
  int depth = 0;
};

class Patcher {
 public:
  Patcher(Arena& arena, Value document) : arena_(arena), document_(document) {
    depth_bound_ = DepthOf(document);
    Opened(document_);
  }

  // Why the operation fails, in upstream's words; "" when it does not.
  std::string Apply(const Value& operation) {
    const std::string_view op = operation["op"].as_string();
    if (op == "add") return Add(operation);
    if (op == "remove") return Remove(operation);
    if (op == "replace") return Replace(operation);
    if (op == "move") return Move(operation);
    if (op == "test") return Test(operation);
    if (op == "copy") return Copy(operation);
    return "Unexpected kind: " + (operation["op"].is_string() ? std::string(op) : "unknown");
  }

  Value Finish() {
    for (Value map : opened_) map.SortMembers();
    return document_;
  }

 private:
  // Upstream parses lazily: a map on the way of an operation becomes a Go map, whose members are then written sorted.
  // It shows in the text of a 422.
  void Opened(const Value& value) {
    if (value.is_map() && seen_.insert(value.identity()).second) opened_.push_back(value);
  }

  static std::optional<std::string_view> Path(const Value& operation, std::string_view member) {
    const Value* path = operation.Find(member);
    if (path == nullptr || !path->is_string()) return std::nullopt;
    return path->as_string();
  }

  Place Find(std::string_view path) {
    const auto split = base::Split(path, '/');
    if (split.size() < 2 || split.size() > static_cast<std::size_t>(kPatchedDepthMax)) return {};
    Place place{document_, DecodeSegment(split.back()), static_cast<int>(split.size() - 1)};
    for (std::size_t i = 1; i + 1 < split.size(); ++i) {
      const std::string segment = DecodeSegment(split[i]);
      if (place.container.is_map()) {
        place.container = place.container[segment];
      } else {
        const auto index = IndexOf(segment, place.container.size());
        place.container = index ? place.container[*index] : Value();
      }
      if (!place.container.is_map() && !place.container.is_list()) return {};
      Opened(place.container);
    }
    return place;
  }

  static std::string InvalidIndex(std::string_view key) {
    const auto index = Atoi(key);
    if (!index) return "strconv.Atoi: parsing " + base::GoQuote(key) + ": invalid syntax";

    return "Unable to access invalid index: " + std::to_string(*index) + ": invalid index referenced";
  }

  // The value at the path: null for an absent member, an error for an index out of range.
  static Outcome<Value, std::string> Get(const Place& place) {
    if (place.container.is_map()) return place.container[std::string_view(place.key)];
    const auto index = IndexOf(place.key, place.container.size());
    if (!index) return InvalidIndex(place.key);
    return place.container[*index];
  }

  std::string Put(Place& place, Value value) {
    if (place.container.is_map()) {
      place.container.Set(arena_, arena_.Copy(place.key), value);
      return "";
    }
    if (place.key == "-") {
      place.container.Append(arena_, value);
      return "";
    }
    const auto index = IndexOf(place.key, place.container.size() + 1);
    if (!index) {
      const std::string why = InvalidIndex(place.key);
      return Atoi(place.key) ? why : "value was not a proper array index: '" + place.key + "': " + why;
    }
    if (!MayShift(place.container.size() - *index)) return TooExpensive();
    place.container.Insert(arena_, *index, value);
    return "";
  }

  bool MayShift(std::size_t items) {
    shifted_items_ += items;
    return shifted_items_ <= kShiftedItemsMax;
  }

  std::string Erase(Place& place) {
    if (place.container.is_map()) {
      return place.container.Erase(place.key) ? "" : "Unable to remove nonexistent key: " + place.key + kMissing;
    }
    const auto index = IndexOf(place.key, place.container.size());
    if (!index) return InvalidIndex(place.key);
    if (!MayShift(place.container.size() - *index)) return TooExpensive();
    place.container.Remove(*index);
    return "";
  }

  // Keeps the nesting within bounds without measuring it each time: `grown` is what the document may now reach at most.
  bool StaysShallow(int grown) {
    depth_bound_ = std::max(depth_bound_, grown);
    if (depth_bound_ <= kPatchedDepthMax) return true;
    if (++depth_measurements_ > kDepthMeasurementsMax) return false;
    depth_bound_ = DepthOf(document_);
    return depth_bound_ <= kPatchedDepthMax;
  }

  std::string Shallow(int grown) { return StaysShallow(grown) ? "" : "the patched document is nested too deeply"; }

  std::string Add(const Value& operation) {
    const auto path = Path(operation, "path");
    if (!path) return "add operation failed to decode path" + kMissing;
    Place place = Find(*path);
    const Value value = operation["value"].Clone(arena_);
    if (place.container.is_null())
      return "add operation does not apply: doc is missing path: \"" + std::string(*path) + "\"" + kMissing;
    if (std::string error = Put(place, value); !error.empty())
      return "error in add for path: '" + std::string(*path) + "': " + error;
    return Shallow(place.depth + DepthOf(value));
  }

  std::string Remove(const Value& operation) {
    const auto path = Path(operation, "path");
    if (!path) return "remove operation failed to decode path" + kMissing;
    Place place = Find(*path);
    if (place.container.is_null())
      return "remove operation does not apply: doc is missing path: \"" + std::string(*path) + "\"" + kMissing;
    if (std::string error = Erase(place); !error.empty())
      return "error in remove for path: '" + std::string(*path) + "': " + error;
    return "";
  }

  std::string Replace(const Value& operation) {
    const auto path = Path(operation, "path");
    if (!path) return "replace operation failed to decode path" + kMissing;
    const Value value = operation["value"].Clone(arena_);
    if (path->empty()) {
      if (!value.is_map() && !value.is_list()) return "replace operation value must be object or array: %!w(<nil>)";
      document_ = value;
      Opened(document_);
      return Shallow(DepthOf(value));
    }
    Place place = Find(*path);
    if (place.container.is_null())
      return "replace operation does not apply: doc is missing path: " + std::string(*path) + kMissing;
    if (!Get(place).ok())
      return "replace operation does not apply: doc is missing key: " + std::string(*path) + kMissing;
    if (place.container.is_map()) {
      place.container.Set(arena_, arena_.Copy(place.key), value);
    } else {
      place.container.items()[*IndexOf(place.key, place.container.size())] = value;
    }
    return Shallow(place.depth + DepthOf(value));
  }

  std::string Move(const Value& operation) {
    const auto from = Path(operation, "from");
    if (!from) return "move operation failed to decode from: operation, missing from field" + kMissing;
    Place source = Find(*from);
    if (source.container.is_null())
      return "move operation does not apply: doc is missing from path: " + std::string(*from) + kMissing;
    const auto value = Get(source);
    if (!value.ok()) return "error in move for path: '" + source.key + "': " + value.error();
    if (std::string error = Erase(source); !error.empty())
      return "error in move for path: '" + source.key + "': " + error;
    const auto path = Path(operation, "path");
    if (!path) return "move operation failed to decode path" + kMissing;
    Place place = Find(*path);
    if (place.container.is_null())
      return "move operation does not apply: doc is missing destination path: " + std::string(*path) + kMissing;
    if (std::string error = Put(place, *value); !error.empty())
      return "error in move for path: '" + std::string(*path) + "': " + error;
    return Shallow(place.depth + depth_bound_ - source.depth);
  }

  std::string Copy(const Value& operation) {
    const auto from = Path(operation, "from");
    if (!from) return "copy operation failed to decode from: operation, missing from field" + kMissing;
    const Place source = Find(*from);
    if (source.container.is_null())
      return "copy operation does not apply: doc is missing from path: " + std::string(*from) + kMissing;
    const auto value = Get(source);
    if (!value.ok()) return "error in copy for from: '" + std::string(*from) + "': " + value.error();
    const auto path = Path(operation, "path");
    if (!path) return "copy operation failed to decode path" + kMissing;
    Place place = Find(*path);
    if (place.container.is_null())
      return "copy operation does not apply: doc is missing destination path: " + std::string(*path) + kMissing;
    if (!value->is_null()) copied_bytes_ += static_cast<std::int64_t>(object::ToJSON(*value).size());
    if (copied_bytes_ > kJSONPatchCopyBytesMax) {
      return "Unable to complete the copy, the accumulated size increase of copy is " + std::to_string(copied_bytes_) +
             ", exceeding the limit " + std::to_string(kJSONPatchCopyBytesMax);
    }
    if (std::string error = Put(place, value->Clone(arena_)); !error.empty())
      return "error while adding value during copy: " + error;
    return Shallow(place.depth + depth_bound_ - source.depth);
  }

  std::string Test(const Value& operation) {
    const auto path = Path(operation, "path");
    if (!path) return "test operation failed to decode path" + kMissing;
    const std::string failed = "testing value " + std::string(*path) + " failed: " + std::string(kTestFailed);
    if (path->empty()) return SameJSON(document_, operation["value"]) ? "" : failed;
    const Place place = Find(*path);
    if (place.container.is_null())
      return "test operation does not apply: is missing path: " + std::string(*path) + kMissing;
    const auto value = Get(place);
    if (!value.ok()) return "error in test for path: '" + std::string(*path) + "': " + value.error();
    if (!SameJSON(*value, operation["value"])) return failed;
    OpenAll(*value);
    return "";
  }

  // Comparing parses both sides to the leaves.
  void OpenAll(const Value& value) {
    Opened(value);
    for (const Value& item : value.items()) OpenAll(item);
    for (const object::Member& member : value.members()) OpenAll(member.value);
  }

  Arena& arena_;
  Value document_;
  std::vector<Value> opened_;
  std::unordered_set<const void*> seen_;
  std::int64_t copied_bytes_ = 0;
  std::uint64_t shifted_items_ = 0;
  int depth_bound_ = 0;
  int depth_measurements_ = 0;
};

std::string CannotUnmarshal(const Value& value, std::string_view into) {
  return "json: cannot unmarshal " + std::string(JSONTypeName(value)) + " into Go " + std::string(into);
}

}  // namespace

Result<Value> CheckJSONPatch(const Value& patch, bool checked) {
  const std::string_view prefix = checked ? "error decoding patch: " : "";
  const auto bad = [&](const Value& value, std::string_view into) {
    return meta::NewBadRequest(std::string(prefix) + CannotUnmarshal(value, into));
  };
  if (!patch.is_null() && !patch.is_list())
    return bad(patch, checked ? "value of type []handlers.jsonPatchOp" : "value of type jsonpatch.Patch");
  for (const Value& operation : patch.items()) {
    if (operation.is_null()) continue;
    if (!operation.is_map()) {
      return bad(operation, checked ? "value of type handlers.jsonPatchOp" : "value of type jsonpatch.Operation");
    }
    if (!checked) continue;
    for (const object::Member& member : operation.members()) {
      if (member.key != "op" && member.key != "path" && member.key != "from") continue;
      if (member.value.is_string() || member.value.is_null()) continue;
      return bad(member.value, "struct field jsonPatchOp." + std::string(member.key) + " of type string");
    }
  }
  if (patch.size() > kJSONPatchOperationsMax) {
    return meta::NewRequestEntityTooLarge("The allowed maximum operations in a JSON patch is " +
                                          std::to_string(kJSONPatchOperationsMax) + ", got " +
                                          std::to_string(patch.size()));
  }
  return patch;
}

std::vector<std::string> JSONPatchUnknownFields(const Value& patch) {
  std::vector<std::string> unknown;
  std::size_t index = 0;
  for (const Value& operation : patch.items()) {
    for (const object::Member& member : operation.members()) {
      if (member.key == "op" || member.key == "path" || member.key == "from" || member.key == "value") continue;
      unknown.push_back("json patch unknown field \"[" + std::to_string(index) + "]." + std::string(member.key) + "\"");
    }
    ++index;
  }
  return unknown;
}

Outcome<Value, std::string> TryJSONPatch(Arena& arena, const Value& document, const Value& patch) {
  Patcher patcher(arena, document.Clone(arena));
  for (const Value& operation : patch.items()) {
    if (std::string error = patcher.Apply(operation); !error.empty()) return error;
  }
  return patcher.Finish();
}

Result<Value> ApplyJSONPatch(Arena& arena, const Value& document, const Value& patch) {
  auto patched = TryJSONPatch(arena, document, patch);
  if (!patched.ok() && patched.error().ends_with(TooExpensive()))
    return meta::NewRequestEntityTooLarge(patched.error());
  if (!patched.ok()) return meta::NewGenericServerResponse(422, "", {}, "", "", 0);
  return *patched;
}

}  // namespace keelson::patch
