// A custom resource compiled for serving: schemas, columns, selectable fields and rules of its versions. Made on the
// first request from the definition's object, dropped with the last user. Immutable.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apiextensions/compiled_budget.h"
#include "apiextensions/definition.h"
#include "meta/group_version.h"
#include "object/value.h"
#include "schema/structural/columns.h"
#include "schema/structural/structural.h"
#include "validation/structural/custom_resource.h"

namespace keelson::cel {
class TimeZones;  // cel/temporal.h
}
namespace keelson::apiextensions {

struct VersionKind {
  std::shared_ptr<schema::structural::Pool> pool;  // outlives the schema
  schema::structural::SchemaRef schema;            // null: the version has none (definitions of old)
  meta::GroupVersionKind kind;
  std::string api_version;
  bool namespaced = true;
  bool served = false;
  bool preserve_unknown_fields = false;
  bool status = false;
  bool scale = false;
  std::string spec_replicas, status_replicas, label_selector;  // paths of scale, with their leading dots
  schema::structural::Columns columns;
  schema::structural::SelectableFields selectable;
  std::shared_ptr<const validation::structural::RuleSet> rules;  // null: none

  validation::structural::CustomResource ForValidation() const;
};
using VersionKindPtr = std::shared_ptr<const VersionKind>;

struct CustomKind {
  meta::GroupResource resource;
  std::string storage_version;
  std::string storage_api_version;
  std::vector<VersionKindPtr> versions;
  // Selectable fields of all versions: one object in the cache answers for each.
  std::vector<std::pair<VersionKindPtr, std::size_t>> selectable;

  const VersionKind* FindAPIVersion(std::string_view api_version) const;  // nullptr when there is none
  VersionKindPtr Find(std::string_view version) const;
};
using CustomKindPtr = std::shared_ptr<const CustomKind>;

// About the memory of a kind's schemas and of what serves it, without objects and compiled rules: for CompiledBudget.
std::size_t EstimatedBytes(const CustomKind& kind);

struct CompileOptions {
  const cel::TimeZones* time_zones = nullptr;  // of rules; must outlive the kind; null: no named zone is known
  std::shared_ptr<CompiledBudget> budget;      // of compiled rules; null: they are kept with the kind
};
// The error says which schema cannot be used. Rules are compiled with their first evaluation.
Outcome<CustomKindPtr, std::string> CompileKind(const std::shared_ptr<schema::structural::Pool>& pool,
                                                const Definition& definition, const Value& value,
                                                const CompileOptions& options);

}  // namespace keelson::apiextensions
