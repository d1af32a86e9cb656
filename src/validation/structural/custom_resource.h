// Validation of custom resources, errors in upstream's order and words (spec/extensions.md section 3.3). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "object/field_path.h"
#include "object/value.h"
#include "schema/structural/structural.h"
#include "validation/errors.h"

namespace keelson::cel {
class Interrupt;  // cel/program.h
}
namespace keelson::validation::structural {

using schema::structural::Node;

struct Verdict {
  FieldErrors errors;
  std::vector<std::string> warnings;  // ratcheted errors of rules, as Warning headers show them
};

// The x-kubernetes-validations of one schema, compiled (structural_cel). Evaluated when everything before passed.
// Thread safety: const members from any thread.
class RuleSet {
 public:
  virtual ~RuleSet() = default;
  // Appends what the rules say of the whole object; `old` is nullptr on create.
  // `interrupt` ends evaluations early; null: nothing does.
  virtual void Evaluate(base::Arena& arena, const Value& object, const Value* old, const cel::Interrupt* interrupt,
                        Verdict& verdict) const = 0;
};

// spec.versions[].subresources.scale. Views into the definition; "" for an absent selector path.
struct ScalePaths {
  std::string_view spec_replicas;
  std::string_view status_replicas;
  std::string_view label_selector;
  bool enabled = false;
};

// Facts of the kind that validation needs. Views must outlive the call.
struct CustomResource {
  std::string_view group;
  std::string_view version;
  std::string_view kind;
  bool namespaced = true;
  Node schema;
  ScalePaths scale;
  const RuleSet* rules = nullptr;             // x-kubernetes-validations; nullptr: the schema has none
  const cel::Interrupt* interrupt = nullptr;  // of the request; nullptr: rules are evaluated to their end
};

Verdict ValidateCreate(base::Arena& arena, const CustomResource& resource, const Value& object);
Verdict ValidateUpdate(base::Arena& arena, const CustomResource& resource, const Value& object, const Value& old);
// PUT or PATCH of the status subresource: only status is validated by the schema.
Verdict ValidateStatusUpdate(base::Arena& arena, const CustomResource& resource, const Value& object, const Value& old);

// ---- Parts

// Bound on the work of validating one object by its schema, since alternatives, enums and required names are tried with
// each item: about half a second. Validation ends there with an error.
constexpr std::size_t kValidationStepsMax = 40'000'000;

// Validates a value against a schema. With `old` (may be nullptr) errors of unchanged, correlatable parts are dropped
// (ratcheting). `path` is the text before the value's own names: "" at the root, "status" for a status.
void ValidateValue(base::Arena& arena, const Value& value, const Value* old, Node schema, const FieldPath& path,
                   FieldErrors& errors);
// Validates a default against its schema: as above, but int-or-string takes any type, as upstream has it there. `steps`
// counts those of all defaults of a definition.
void ValidateDefaultValue(base::Arena& arena, const Value& value, Node schema, const FieldPath& path,
                          std::size_t& steps, FieldErrors& errors);
// Duplicates in lists of type set and map. REQUIRES: `object` is a map (else nothing is found).
void ValidateListTypes(const Value& object, Node schema, const FieldPath& path, FieldErrors& errors);
// apiVersion, kind and metadata of embedded resources, and of the root with `resource_root`.
void ValidateEmbedded(base::Arena& arena, const Value& object, Node schema, bool resource_root, const FieldPath& path,
                      FieldErrors& errors);
// The replicas and the selector that the scale paths name.
void ValidateScaleSpec(const CustomResource& resource, const Value& object, FieldErrors& errors);
void ValidateScaleStatus(const CustomResource& resource, const Value& object, FieldErrors& errors);

// The formats that are checked on strings; names are compared without dashes. Unknown formats are ignored by validation
// and reported as a warning when a definition is written.
bool IsKnownFormat(std::string_view type, std::string_view format);
bool MatchesFormat(std::string_view format, std::string_view text);  // true for unknown formats

// Warnings for finalizers that are not in `old` (null on create).
std::vector<std::string> FinalizerWarnings(const Value& object, const Value& old);

}  // namespace keelson::validation::structural
