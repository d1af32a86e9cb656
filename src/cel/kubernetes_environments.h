// The environments in which Kubernetes compiles expressions outside of custom resources: admission policies, webhook
// match conditions, structured authentication and authorization, device selectors. Thread safety: environments are
// immutable and made once; PolicyCompiler belongs to one policy.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/outcome.h"
#include "cel/ast.h"
#include "cel/environment.h"
#include "cel/program_cache.h"

namespace keelson::cel {

// ---- Result types

enum class ResultWording : std::uint8_t {
  kGot,   // "must evaluate to bool but got dyn", "must evaluate to one of [string null_type] but got int"
  kBare,  // "must evaluate to bool"
};

// Compiles, checks the type of the result and makes the program; kAnyType among `results` accepts every type. The error
// is the whole detail of a field error: "compilation failed: ERROR: …", "must evaluate to …". Constants are folded when
// the program is made, which may fail even where the expression compiles: the result then has no program, and its error
// says why. Programs of permanent environments are shared (CompileShared).
Outcome<CompilationPtr, std::string> CompileExpression(const EnvironmentPtr& env, std::string_view expression,
                                                       std::span<const Type* const> results,
                                                       ResultWording wording = ResultWording::kGot);
Outcome<CompilationPtr, std::string> CompileExpression(const EnvironmentPtr& env, std::string_view expression,
                                                       std::initializer_list<const Type*> results,
                                                       ResultWording wording = ResultWording::kGot);

// ---- Admission: object, oldObject, request, namespaceObject, params, authorizer, variables

struct AdmissionVariables {
  bool params = false;
  bool authorizer = false;
  bool patch_types = false;  // Object{…}, JSONPatch{…}, jsonpatch.escapeKey()
};
// With patch types the environment is new each time and belongs to one policy.
EnvironmentPtr AdmissionEnvironment(ExpressionMode mode, AdmissionVariables variables);

// For type checking a policy against a kind it matches: `object` and `oldObject` have that type, `params` has its own
// where it is not null. `types` has their fields.
EnvironmentPtr TypeCheckEnvironment(const Type& object, const Type* params,
                                    const std::vector<std::shared_ptr<const TypeProvider>>& types);

inline constexpr Type kJSONPatchType{.kind = Kind::kStruct, .name = "JSONPatch"};
inline constexpr Type kObjectType{.kind = Kind::kStruct, .name = "Object"};
inline constexpr const Type* kJSONPatchParams[] = {&kJSONPatchType};
inline constexpr Type kJSONPatchListType{
    .kind = Kind::kList, .param_count = 1, .name = "list", .params = kJSONPatchParams};

// Expressions of one policy: `variables.<name>` has the type of the expression that was added under that name.
class PolicyCompiler {
 public:
  // `composition`: `variables` is declared. Validating policies without variables do not declare it.
  PolicyCompiler(ExpressionMode mode, bool params, bool composition);
  explicit PolicyCompiler(const EnvironmentPtr& base);  // in an environment of the caller's, with `variables`
  ~PolicyCompiler();
  // Compiles a variable and declares it for the expressions that follow, with type dyn where it does not compile.
  Outcome<CompilationPtr, std::string> AddVariable(std::string_view name, std::string_view expression);
  // With the parameters and variables of the policy.
  EnvironmentPtr environment(bool authorizer, bool patch_types = false);

 private:
  class VariableTypes;
  ExpressionMode mode_;
  bool params_;
  std::shared_ptr<VariableTypes> types_;  // null without composition
  EnvironmentPtr made_[4];
};

// ---- Authentication and authorization configuration

EnvironmentPtr ClaimsEnvironment();               // claims
EnvironmentPtr UserEnvironment();                 // user
EnvironmentPtr SubjectAccessReviewEnvironment();  // request

struct SelectorUse {
  bool field_selector = false;
  bool label_selector = false;
};
// Whether an expression on a SubjectAccessReview reads fieldSelector or labelSelector.
SelectorUse FindSelectorUse(const Expr& e);

// ---- Device selectors

struct DeviceFeatures {
  bool consumable_capacity = true;
  bool list_type_attributes = false;
};
inline constexpr std::uint64_t kDeviceSelectorCostMax = 1'000'000;

EnvironmentPtr DeviceEnvironment(ExpressionMode mode, DeviceFeatures features);

struct DeviceSelector {
  AstPtr ast;
  ProgramPtr program;  // null with an error
  std::string error;   // "program instantiation failed: …"
  std::uint64_t max_cost = 0;
};
Outcome<DeviceSelector, std::string> CompileDeviceSelector(std::string_view expression, ExpressionMode mode,
                                                           DeviceFeatures features);

}  // namespace keelson::cel
