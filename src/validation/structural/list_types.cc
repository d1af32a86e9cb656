// Duplicates in lists of x-kubernetes-list-type set and map.
#include <algorithm>

#include "base/hash.h"
#include "codec/json.h"
#include "validation/structural/custom_resource.h"

namespace keelson::validation::structural {
namespace {

using object::Member;
using schema::structural::ListType;

// Identity of a set member: its type and JSON, since 1 and 1.0 are different members in Go.
std::string IdentityOf(const Value& value) {
  std::string identity(1, static_cast<char>('a' + static_cast<int>(value.kind())));
  codec::EncodeJSON(value, identity);  // members sorted
  return identity;
}

// Appends an error at the second occurrence of each identity; later ones are not repeated.
template <class Report>
void ReportSeconds(const std::vector<std::string>& identities, FieldErrors& errors, Report report) {
  base::StringViewMap<int> seen;
  for (std::size_t i = 0; i < identities.size(); ++i) {
    if (++seen[identities[i]] != 2) continue;
    if (errors.full()) {
      errors.push_back({});  // is only counted
    } else {
      report(i);
    }
  }
}

void CheckSet(const Value& list, const FieldPath& path, FieldErrors& errors) {
  std::vector<std::string> identities;
  for (const Value& item : list.items()) identities.push_back(IdentityOf(item));
  ReportSeconds(identities, errors, [&](std::size_t i) {
    base::Arena arena;
    Value shown = list[i].Clone(arena);
    if (shown.is_map()) shown.SortMembers();  // as Go writes maps
    errors.push_back(Duplicate(path.Index(static_cast<std::int64_t>(i)), shown));
  });
}

void CheckMap(const Value& list, Node schema, const FieldPath& path, FieldErrors& errors) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].is_map() || list[i].is_null()) continue;
    errors.push_back(
        Invalid(path.Index(static_cast<std::int64_t>(i)), list[i], "must be an object for an array of list-type map"));
    return;
  }
  base::Arena arena;
  std::vector<Value> keys;
  std::vector<std::string> identities;
  const std::size_t count = schema.list_map_key_count();
  for (const Value& item : list.items()) {
    Value key = Value::Map(arena);
    std::string identity;
    for (std::size_t i = 0; i < count; ++i) {
      const Value* const found = item.Find(schema.list_map_key(i));
      if (found != nullptr) {
        key.Set(arena, schema.list_map_key(i), *found);
        if (count == 1) identity = IdentityOf(*found);
      }
    }
    if (count > 1) codec::EncodeJSON(key, identity);  // several keys are compared as JSON, where 1.0 is 1
    keys.push_back(key);
    identities.push_back(std::move(identity));
  }
  ReportSeconds(identities, errors,
                [&](std::size_t i) { errors.push_back(Duplicate(path.Index(static_cast<std::int64_t>(i)), keys[i])); });
}

void Walk(const Value& value, Node schema, const FieldPath& path, FieldErrors& errors) {
  if (!schema || !schema.has_list_types_below()) return;
  if (value.is_map()) {
    for (const Member& member : value.members()) {
      if (schema.Property(member.key)) continue;
      Walk(member.value, schema.additional_properties(), path.Key(member.key), errors);
    }
    for (const Member& member : value.members())
      Walk(member.value, schema.Property(member.key), path.Child(member.key), errors);
  } else if (value.is_list()) {
    if (schema.list_type() == ListType::kSet) CheckSet(value, path, errors);
    if (schema.list_type() == ListType::kMap) CheckMap(value, schema, path, errors);
    std::int64_t index = 0;
    for (const Value& item : value.items()) Walk(item, schema.items(), path.Index(index++), errors);
  }
}

}  // namespace

void ValidateListTypes(const Value& object, Node schema, const FieldPath& path, FieldErrors& errors) {
  if (object.is_map()) Walk(object, schema, path, errors);
}

}  // namespace keelson::validation::structural
