// Facts of one CustomResourceDefinition that serving, discovery and the controllers need, without its schemas: a few
// hundred bytes, and a reference to the object that the cache of definitions holds anyway. Immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "object/value.h"
#include "storage/object.h"

namespace keelson::apiextensions {

struct DefinitionVersion {
  std::string name;
  bool served = false;
  bool storage = false;
  bool deprecated = false;
  std::string deprecation_warning;  // as sent; "" when it is not deprecated
  bool status = false;              // subresources
  bool scale = false;
};

struct Names {
  std::string plural, singular, kind, list_kind;
  std::vector<std::string> short_names, categories;
  bool operator==(const Names&) const = default;
};

struct Definition {
  std::string name;  // <plural>.<group>
  std::string uid;
  std::string group;
  std::int64_t generation = 0;
  bool namespaced = true;
  bool preserve_unknown_fields = false;
  bool webhook_conversion = false;
  bool deleting = false;
  bool names_accepted = false, established = false, terminating = false;  // conditions
  Names spec_names, accepted_names;
  std::vector<DefinitionVersion> versions;  // as in the spec
  storage::ObjectPtr object;

  const DefinitionVersion* FindVersion(std::string_view version) const;
  const DefinitionVersion& StorageVersion() const;  // REQUIRES: a valid definition
  // Everything that serving depends on is the same: objects in flight may go on with what there is.
  bool ServesAs(const Definition& other) const {
    return uid == other.uid && generation == other.generation && accepted_names == other.accepted_names;
  }
};
using DefinitionPtr = std::shared_ptr<const Definition>;

// `value` is the object in v1.
DefinitionPtr ReadDefinition(const Value& value, storage::ObjectPtr object);

// The condition of that type, or null.
Value FindCondition(const Value& definition, std::string_view type);
bool ConditionIs(const Value& definition, std::string_view type, std::string_view status);

}  // namespace keelson::apiextensions
