// Everything that is known about one resource: the versions it is served in, how it lies in the store, how its kind
// behaves. Immutable and shared. Built-in kinds (Catalog::BuiltIn()) and kinds that come at run time
// (CustomResourceDefinitions) make the same thing; nothing above `codec` needs to look a kind up by name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "meta/group_version.h"
#include "registry/catalog/conversion.h"
#include "registry/write_pipeline.h"
#include "schema/schema.h"
#include "storage/storage_factory.h"

namespace keelson::registry {

// One version in which the resource is served.
struct ServedVersion {
  meta::GroupVersion group_version;         // events are served in two groups
  const schema::Resource* table = nullptr;  // null: a kind that came at run time
  const schema::Struct* type = nullptr;     // null: its objects are untyped JSON
  const Conversion* conversion = nullptr;   // to the hub version; null: both have the same shape
  std::string deprecation_warning;          // sent with every answer; "": not deprecated
  std::int32_t group_priority = 0;          // of the version's APIService
  std::int32_t version_priority = 0;
  bool on_by_default = true;
};

// How field selectors of a kind are read.
struct FieldLabels {
  struct Alias {
    std::string_view label;  // the client's field label; a trailing '.' covers everything below
    std::string_view field;  // what the stored object has
  };
  std::vector<Alias> aliases;
  std::string_view aliases_group;  // they hold for this group's version only; "*": for all
  bool only_aliases = false;       // in that group: other labels than metadata's are refused
  enum class Refusal : std::uint8_t { kPlain, kNamesKind, kNamesGroupVersionKind };
  Refusal refusal = Refusal::kPlain;  // the words for a label that is not supported
};

// Deviations of single kinds from the generic behaviour, as data.
struct KindTraits {
  std::string go_package;              // of the hub type, as upstream's messages have it: core, apps
  bool unsafe_delete = true;           // false: upstream's storage hides its generic store (namespaces, RBAC)
  std::string_view orphan_warning;     // sent when it is deleted without a propagation policy
  bool json_needs_defaults = false;    // protobuf loses what only defaulting restores (StatefulSet's claim templates)
  std::string_view hidden_annotation;  // kept by conversion only, not part of metadata-only answers (DaemonSet)
  bool expires = false;                // objects live for --event-ttl
  bool spec_finalizers = false;        // spec.finalizers hold deletion back (Namespace)
};

struct ResourceDefinition {
  meta::GroupResource resource;
  meta::GroupKind kind;
  std::string list_kind;
  std::string singular;
  bool namespaced = true;
  std::vector<ServedVersion> versions;  // best first
  std::size_t hub = 0;                  // index of the version that strategies see
  storage::ResourceLayout layout;
  std::shared_ptr<const RESTStrategy> strategy;  // null: not stored
  FieldLabels field_labels;
  KindTraits traits;

  const ServedVersion& hub_version() const { return versions[hub]; }
  const ServedVersion* FindVersion(std::string_view group, std::string_view version) const {
    for (const ServedVersion& served : versions) {
      if (served.group_version.group == group && served.group_version.version == version) return &served;
    }
    return nullptr;
  }
};

// The part of the definition that the write pipeline reads.
inline StoredKind StoredKindOf(const ResourceDefinition& definition) {
  return {.resource = definition.resource,
          .kind = definition.kind,
          .namespaced = definition.namespaced,
          .type = definition.hub_version().type,
          .strategy = definition.strategy,
          .spec_finalizers = definition.traits.spec_finalizers,
          .defaults_on_read = definition.layout.defaults_on_read};
}

using ResourceDefinitionPtr = std::shared_ptr<const ResourceDefinition>;

}  // namespace keelson::registry
