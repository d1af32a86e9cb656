// Facts of built-in resources that only single layers need: how they are stored, where generic code treats them
// differently. They are `facts` lines of api/*.kapi (docs/kapi.md).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "schema/schema.h"

namespace keelson::schema {

// Of one resource in one version. Resources without a `facts` line have none of these.
struct ResourceFacts {
  std::string_view group;
  std::string_view version;
  std::string_view plural;
  std::string_view kind;
  // In the store. Given in one version, they hold for all.
  std::string_view prefix;   // "" for the plural name
  std::string_view stored;   // VERSION, or GROUP/VERSION ("/v1" is core's); "" for v1
  std::string_view trigger;  // the field with an index in the watch cache
  // Towards clients, in this version.
  std::string_view deprecated;         // the warning
  std::string_view label_aliases;      // LABEL:FIELD,...: field labels and what the stored object calls them
  std::string_view label_refusal;      // what errors about field labels name: kind, group-version-kind
  std::string_view hidden_annotation;  // kept by conversion only
  std::string_view no_tables;          // SUBRESOURCE,...: a request for a Table of them is answered 406
  bool json = false;                   // stored as JSON, not protobuf
  bool uncached = false;               // has no watch cache
  bool defaults_on_read = false;       // upstream stores it before its defaults are complete
  bool expires = false;                // lives for --event-ttl
  bool spec_finalizers = false;        // spec.finalizers hold deletion back
  bool json_needs_defaults = false;    // protobuf loses what only defaulting restores
  bool orphan_warning = false;         // deleted without a propagation policy, it leaves its pods, with a warning
  bool no_unsafe_delete = false;       // upstream's storage hides its generic store
  bool returns_deleted = false;        // OpenAPI: its deletion answers with the object
  bool banned_owner = false;           // may not be named in owner references
};

std::span<const ResourceFacts> Facts();
// All false and empty where the tables have none.
const ResourceFacts& FactsOf(std::string_view group, std::string_view version, std::string_view plural);
inline const ResourceFacts& FactsOf(const Resource& resource) {
  return FactsOf(resource.group, resource.version, resource.plural);
}

// A group version with the priorities of its APIService.
struct VersionPriority {
  std::string_view group;
  std::string_view version;
  std::int32_t group_priority;
  std::int32_t version_priority;
};
// Those of the tables that have a priority: the core group first, then most important first.
std::span<const VersionPriority> VersionPriorities();

}  // namespace keelson::schema
