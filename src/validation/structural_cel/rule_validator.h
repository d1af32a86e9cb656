// The x-kubernetes-validations of one schema, compiled once, evaluated on whole objects.
// Thread safety: immutable; any thread may validate. Ownership: keeps its schema.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/arena.h"
#include "cel/program.h"
#include "object/value.h"
#include "schema/structural/structural.h"
#include "validation/errors.h"

namespace keelson::validation::structural {

inline constexpr std::int64_t kRuntimeCostBudget = 10'000'000;       // of all rules on one object
inline constexpr std::size_t kMessageExpressionBytesMax = 5 * 1024;  // longer messages are dropped

struct RuleOptions {
  std::int64_t budget = kRuntimeCostBudget;
  const cel::TimeZones* time_zones = nullptr;
  const cel::Interrupt* interrupt = nullptr;
};

struct RuleResult {
  FieldErrors errors;
  std::vector<std::string> warnings;  // errors of unchanged parts, as Warning headers show them
  std::int64_t remaining_budget = 0;  // negative: ran out, or an evaluation exceeded the limit of a call
};

class RuleValidator {
 public:
  // Evaluations of rules on one object, since some cost nothing (`true`). More count as running out of budget.
  static constexpr std::size_t kEvaluationsMax = 1'000'000;

  // Null where no node of the schema's own tree has rules.
  static std::shared_ptr<const RuleValidator> New(schema::structural::SchemaRef schema);
  ~RuleValidator();

  // `old` is nullptr on create.
  RuleResult Validate(base::Arena& arena, const Value& object, const Value* old, const RuleOptions& options = {}) const;

 private:
  struct NodeValidator;
  class Compiler;
  class Walk;
  RuleValidator(schema::structural::SchemaRef schema, std::unique_ptr<NodeValidator> root);
  schema::structural::SchemaRef schema_;
  std::unique_ptr<NodeValidator> root_;
};

}  // namespace keelson::validation::structural
