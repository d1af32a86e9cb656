// Compiled CEL expressions of admission policies and match conditions.
// Thread safety: a compiler is used by one thread; compiled expressions are immutable.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cel/kubernetes_environments.h"
#include "cel/program.h"

namespace keelson::admission {

struct Expression {
  std::string text;
  bool present = false;     // false: a place without an expression
  cel::ProgramPtr program;  // null with an error
  std::string error;        // why it cannot be evaluated; "" when it can
  std::vector<std::string> variables;  // of the policy that it reads
};

// The expressions of one policy or webhook, as they are stored; variables are declared one after the other.
class PolicyCompiler {
 public:
  PolicyCompiler(bool params, bool variables) : compiler_(cel::ExpressionMode::kStored, params, variables) {}

  void AddVariable(std::string name, std::string_view text);
  struct Use {
    bool authorizer = true;
    bool patch_types = false;  // Object{} and JSONPatch{}
  };
  // `allowed`: the types that the result may have, exactly.
  Expression Compile(std::string_view text, Use use, std::span<const cel::Type* const> allowed);

  using Variables = std::vector<std::pair<std::string, Expression>>;
  std::shared_ptr<const Variables> variables() const { return variables_; }

 private:
  cel::PolicyCompiler compiler_;
  std::shared_ptr<Variables> variables_ = std::make_shared<Variables>();
};

// Result types.
inline constexpr const cel::Type* kBoolResult[] = {&cel::kBoolType};
inline constexpr const cel::Type* kStringResult[] = {&cel::kStringType};
inline constexpr const cel::Type* kStringOrNullResult[] = {&cel::kStringType, &cel::kNullType};
inline constexpr const cel::Type* kObjectResult[] = {&cel::kObjectType};
inline constexpr const cel::Type* kJSONPatchResult[] = {&cel::kJSONPatchListType};

}  // namespace keelson::admission
