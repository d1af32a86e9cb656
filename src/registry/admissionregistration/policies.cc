// ValidatingAdmissionPolicy and MutatingAdmissionPolicy, and the group's table.
#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "base/strings.h"
#include "registry/admissionregistration/match.h"
#include "registry/admissionregistration/strategies.h"
#include "registry/hub_types.h"
#include "registry/rules/cel_expression.h"
#include "registry/rules/rules.h"
#include "registry/rules/table.h"

namespace keelson::registry {
namespace {

using namespace rules;  // NOLINT
using validation::Duplicate;
using validation::Invalid;
using validation::Required;

constexpr std::int64_t kAuditAnnotationsMax = 20;
constexpr std::size_t kValueExpressionBytesMax = 5 * 1024;
constexpr std::string_view kReservedWords[] = {
    "true", "false",  "null", "in",   "as",      "break",     "const",  "continue", "else", "for",  "function",
    "if",   "import", "let",  "loop", "package", "namespace", "return", "var",      "void", "while"};

const HubTypes& Types() {
  static const HubTypes types("AuditAnnotation Key:string ValueExpression:string\n");
  return types;
}

void SetDefaults(base::Arena& arena, Value object) {
  Value spec = object["spec"];
  if (!spec.is_map()) return;
  Default(arena, spec, "failurePolicy", "Fail");
  match::DefaultMatchResources(arena, spec["matchConstraints"]);
}

void ValidateParamKind(const Value& kind, const FieldPath& path, FieldErrors& errors) {
  const std::string_view text = kind["apiVersion"].as_string();
  const FieldPath version_path = path.Child("apiVersion");
  if (text.empty()) {
    errors.push_back(Required(version_path));
  } else if (const auto parsed = ParseGroupVersion(text); !parsed.has_value()) {
    errors.push_back(Invalid(version_path, text, "unexpected GroupVersion string: " + std::string(text)));
  } else {
    if (!parsed->group.empty()) {
      if (const Messages messages = validation::IsDNS1123Subdomain(parsed->group); !messages.empty()) {
        errors.push_back(Invalid(version_path, parsed->group, base::Join(messages, ",")));
      }
    }
    if (parsed->version.empty()) {
      errors.push_back(Invalid(version_path, text, "version must be specified"));
    } else if (const Messages messages = validation::IsDNS1035Label(parsed->version); !messages.empty()) {
      errors.push_back(Invalid(version_path, parsed->version, base::Join(messages, ",")));
    }
  }
  const std::string_view name = kind["kind"].as_string();
  if (name.empty()) {
    errors.push_back(Required(path.Child("kind")));
  } else if (const Messages messages = validation::IsDNS1035Label(base::ToLower(name)); !messages.empty()) {
    errors.push_back(Invalid(path.Child("kind"), name,
                             "may have mixed case, but should otherwise match: " + base::Join(messages, ",")));
  }
}

bool IsCELIdentifier(std::string_view name) {
  return validation::IsCIdentifier(name).empty() && std::ranges::find(kReservedWords, name) == std::end(kReservedWords);
}

void ValidateVariable(const Value& variable, cel::PolicyCompiler& compiler, const FieldPath& path,
                      FieldErrors& errors) {
  const std::string_view name = variable["name"].as_string();
  if (base::Trim(name).empty()) {
    errors.push_back(Required(path.Child("name"), "name is not specified"));
  } else if (!IsCELIdentifier(name)) {
    errors.push_back(Invalid(path.Child("name"), name, "must be a valid CEL identifier"));
  }
  const std::string_view expression = variable["expression"].as_string();
  if (base::Trim(expression).empty()) {
    errors.push_back(Required(path.Child("expression"), "expression is not specified"));
  } else {
    ValidateCELProgram(compiler.AddVariable(name, expression), expression, path.Child("expression"), errors);
  }
}

bool HasLineBreak(std::string_view text) { return text.find_first_of("\n\r") != std::string_view::npos; }

void ValidateValidation(const Value& item, cel::PolicyCompiler& compiler, const FieldPath& path, FieldErrors& errors) {
  const std::string_view expression = item["expression"].as_string();
  if (base::Trim(expression).empty()) {
    errors.push_back(Required(path.Child("expression"), "expression is not specified"));
  } else {
    ValidateCELExpression(compiler.environment(true), expression, {&cel::kBoolType}, path.Child("expression"), errors);
  }
  const std::string_view message_expression = item["messageExpression"].as_string();
  if (!message_expression.empty()) {
    if (base::Trim(message_expression).empty()) {
      errors.push_back(Invalid(path.Child("messageExpression"), message_expression, "must be non-empty if specified"));
    } else {
      ValidateCELExpression(compiler.environment(false), message_expression, {&cel::kStringType},
                            path.Child("messageExpression"), errors);
    }
  }
  const std::string_view message = item["message"].as_string();
  if (!message.empty() && base::Trim(message).empty()) {
    errors.push_back(Invalid(path.Child("message"), message, "must be non-empty if specified"));
  } else if (HasLineBreak(base::Trim(message))) {
    errors.push_back(Invalid(path.Child("message"), message, "must not contain line breaks"));
  }
  if (const Value reason = item["reason"]; !reason.is_null()) {
    CheckOneOf(reason.as_string(), {"Forbidden", "Invalid", "RequestEntityTooLarge"}, path.Child("reason"), errors);
  }
}

void ValidateAuditAnnotation(const Value& annotation, std::string_view policy, cel::PolicyCompiler& compiler,
                             const FieldPath& path, FieldErrors& errors) {
  const std::string_view key = annotation["key"].as_string();
  if (policy.empty()) {
    errors.push_back(Invalid(path.Child("key"), key, "requires metadata.name be non-empty"));
  } else {
    CheckQualifiedName(std::string(policy) + "/" + std::string(key), path.Child("key"), errors);
  }
  const FieldPath at = path.Child("valueExpression");
  const std::string_view expression = annotation["valueExpression"].as_string();
  const std::string_view trimmed = base::Trim(expression);
  if (trimmed.empty()) {
    errors.push_back(Required(at, "valueExpression is not specified"));
  } else if (trimmed.size() > kValueExpressionBytesMax) {
    errors.push_back(Required(at, "must not exceed 5120 bytes in length"));
  } else {
    // Compiled without the white space around it, reported with it.
    const auto compiled =
        cel::CompileExpression(compiler.environment(true), trimmed, {&cel::kStringType, &cel::kNullType});
    ValidateCELProgram(compiled, expression, at, errors);
  }
}

void ValidateValidations(const Value& object, cel::PolicyCompiler& compiler, const FieldPath& path,
                         FieldErrors& errors) {
  const Value spec = object["spec"];
  const FieldPath validations = path.Child("validations");
  const FieldPath annotations = path.Child("auditAnnotations");
  if (spec["validations"].empty() && spec["auditAnnotations"].empty()) {
    constexpr std::string_view kNeeded = "validations or auditAnnotations must contain at least one item";
    errors.push_back(Required(validations, kNeeded));
    errors.push_back(Required(annotations, kNeeded));
    return;
  }
  std::int64_t index = 0;
  for (const Value& item : spec["validations"].items())
    ValidateValidation(item, compiler, validations.Index(index++), errors);
  const Value list = spec["auditAnnotations"];
  if (static_cast<std::int64_t>(list.size()) > kAuditAnnotationsMax) {
    errors.push_back(
        InvalidHub(annotations, Types(), list, "[]AuditAnnotation", "must not have more than 20 auditAnnotations"));
  }
  std::set<std::string_view> keys;
  index = 0;
  for (const Value& annotation : list.items()) {
    const FieldPath at = annotations.Index(index++);
    ValidateAuditAnnotation(annotation, object["metadata"]["name"].as_string(), compiler, at, errors);
    if (!keys.insert(annotation["key"].as_string()).second)
      errors.push_back(Duplicate(at.Child("key"), annotation["key"]));
  }
}

void ValidatePatch(const Value& mutation, std::string_view type, cel::PolicyCompiler& compiler, const FieldPath& path,
                   FieldErrors& errors) {
  const bool json = type == "JSONPatch";
  const std::string_view member = json ? "jsonPatch" : "applyConfiguration";
  const std::string_view other = json ? "applyConfiguration" : "jsonPatch";
  const FieldPath at = path.Child(member);
  if (mutation[member].is_null()) {
    errors.push_back(Required(at, "must be specified when patchType is " + std::string(type)));
  } else {
    const std::string_view expression = base::Trim(mutation[member]["expression"].as_string());
    if (expression.empty()) {
      errors.push_back(Required(at.Child("expression")));
    } else {
      ValidateCELExpression(compiler.environment(true, true), expression,
                            {json ? &cel::kJSONPatchListType : &cel::kObjectType}, at.Child("expression"), errors);
    }
  }
  if (!mutation[other].is_null()) {
    const std::string shown = "{" + std::string(other) + "}";
    errors.push_back(Invalid(path.Child(other), std::string_view(shown),
                             "must not be specified when patchType is " + std::string(type)));
  }
}

void ValidateMutations(const Value& object, cel::PolicyCompiler& compiler, const FieldPath& path, FieldErrors& errors) {
  const Value spec = object["spec"];
  const FieldPath mutations = path.Child("mutations");
  if (spec["mutations"].empty()) errors.push_back(Required(mutations, "mutations must contain at least one item"));
  std::int64_t index = 0;
  for (const Value& mutation : spec["mutations"].items()) {
    const FieldPath at = mutations.Index(index++);
    const std::string_view type = mutation["patchType"].as_string();
    if (type == "JSONPatch" || type == "ApplyConfiguration") {
      ValidatePatch(mutation, type, compiler, at, errors);
    } else {
      RequireOneOf(type, {"ApplyConfiguration", "JSONPatch"}, at.Child("patchType"), errors);
    }
  }
  RequireOneOf(spec["reinvocationPolicy"].as_string(), {"IfNeeded", "Never"}, path.Child("reinvocationPolicy"), errors);
}

void ValidateSpec(const Value& object, bool mutating, bool ignore_match_conditions, FieldErrors& errors) {
  const FieldPath path("spec");
  const Value spec = object["spec"];
  if (const Value policy = spec["failurePolicy"]; policy.is_null()) {
    errors.push_back(Required(path.Child("failurePolicy")));
  } else {
    CheckOneOf(policy.as_string(), {"Fail", "Ignore"}, path.Child("failurePolicy"), errors);
  }
  const bool has_params = !spec["paramKind"].is_null();
  if (const Value kind = spec["paramKind"]; has_params) ValidateParamKind(kind, path.Child("paramKind"), errors);
  const Value constraints = spec["matchConstraints"];
  const FieldPath constraints_path = path.Child("matchConstraints");
  if (constraints.is_null()) {
    errors.push_back(Required(constraints_path));
  } else {
    match::ValidateMatchResources(constraints, constraints_path, errors);
    if (constraints["resourceRules"].empty()) errors.push_back(Required(constraints_path.Child("resourceRules")));
    if (mutating) match::ValidateMutatingOperations(constraints, constraints_path, errors);
  }
  if (!ignore_match_conditions)
    match::ValidateMatchConditions(spec["matchConditions"], has_params, path.Child("matchConditions"), errors);
  cel::PolicyCompiler compiler(cel::ExpressionMode::kNew, has_params, mutating || !spec["variables"].empty());
  const FieldPath variables = path.Child("variables");
  std::int64_t index = 0;
  for (const Value& variable : spec["variables"].items())
    ValidateVariable(variable, compiler, variables.Index(index++), errors);
  if (mutating) {
    ValidateMutations(object, compiler, path, errors);
  } else {
    ValidateValidations(object, compiler, path, errors);
  }
}

template <bool kMutating>
void ValidatePolicy(const Call&, Value object, Value, FieldErrors& errors) {
  ValidateSpec(object, kMutating, false, errors);
}

template <bool kMutating>
void ValidatePolicyUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  ValidateMeta(object, false, validation::NameIsDNSSubdomain, errors, false);
  const bool same = SemanticEqual(object["spec"]["paramKind"], old["spec"]["paramKind"]) &&
                    SemanticEqual(object["spec"]["matchConditions"], old["spec"]["matchConditions"]);
  ValidateSpec(object, kMutating, same, errors);
}

void PrepareStatus(const Call& call, Value object, Value old) { ResetMetaForStatus(call.arena, object, old); }

void ValidateStatusUpdate(const Call&, Value object, Value, FieldErrors& errors) {
  const FieldPath path("status");
  const Value status = object["status"];
  const FieldPath checking = path.Child("typeChecking");
  const FieldPath warnings = checking.Child("expressionWarnings");
  std::int64_t index = 0;
  for (const Value& warning : status["typeChecking"]["expressionWarnings"].items()) {
    const FieldPath at = warnings.Index(index++);
    if (warning["warning"].as_string().empty()) errors.push_back(Required(at.Child("warning")));
    const std::string_view reference = base::Trim(warning["fieldRef"].as_string());
    if (reference.empty()) {
      errors.push_back(Required(at.Child("fieldRef")));
    } else if (std::ranges::count(reference, '[') != std::ranges::count(reference, ']')) {
      errors.push_back(Invalid(at.Child("fieldRef"), reference, "invalid JSONPath: unterminated array"));
    }
  }
  validation::ValidateConditions(status["conditions"], path.Child("conditions"), errors);
}

template <bool kMutating>
void Row(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  const Value spec = object["spec"];
  const Value kind = spec["paramKind"];
  cells.Append(arena, NameCell(object));
  cells.Append(arena, static_cast<std::int64_t>(spec[kMutating ? "mutations" : "validations"].size()));
  cells.Append(arena, kind.is_null() ? Value("<unset>")
                                     : Value::String(arena, std::string(kind["apiVersion"].as_string()) + "/" +
                                                                std::string(kind["kind"].as_string())));
  cells.Append(arena, Age(arena, clock, object));
}

constexpr std::string_view kMainReset[] = {"status"};
constexpr std::string_view kStatusReset[] = {"metadata", "spec"};

}  // namespace

constexpr Strategy kValidatingAdmissionPolicyStrategy = {
    .group = "admissionregistration.k8s.io",
    .kind = "ValidatingAdmissionPolicy",
    .allow_unconditional_update = false,
    .core_finalizers = false,
    .generation = Generation::kSpec,
    .has_status = true,
    .defaults = SetDefaults,
    .validate = match::ValidateCreate<ValidatePolicy<false>>,
    .warnings_on_create = match::WarnAboutStaticSuffixOnCreate,
    .update = {.validate_update = ValidatePolicyUpdate<false>,
               .warnings_on_update = match::WarnAboutStaticSuffix,
               .reset_fields = kMainReset},
    .status = {.prepare_for_update = PrepareStatus,
               .validate_update = ValidateStatusUpdate,
               .reset_fields = kStatusReset},
    .table_row = Row<false>,
};

constexpr Strategy kMutatingAdmissionPolicyStrategy = {
    .group = "admissionregistration.k8s.io",
    .kind = "MutatingAdmissionPolicy",
    .allow_unconditional_update = false,
    .core_finalizers = false,
    .generation = Generation::kSpec,
    .defaults = SetDefaults,
    .validate = match::ValidateCreate<ValidatePolicy<true>>,
    .warnings_on_create = match::WarnAboutStaticSuffixOnCreate,
    .update = {.validate_update = ValidatePolicyUpdate<true>, .warnings_on_update = match::WarnAboutStaticSuffix},
    .table_row = Row<true>,
};

std::span<const Strategy> AdmissionregistrationStrategies() {
  static const Strategy kStrategies[] = {
      kValidatingWebhookConfigurationStrategy,   kMutatingWebhookConfigurationStrategy,
      kValidatingAdmissionPolicyStrategy,        kMutatingAdmissionPolicyStrategy,
      kValidatingAdmissionPolicyBindingStrategy, kMutatingAdmissionPolicyBindingStrategy,
  };
  return kStrategies;
}

}  // namespace keelson::registry
