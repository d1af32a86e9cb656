#include "auth/webhook_authorizer/match_conditions.h"

#include "base/arena.h"
#include "cel/config_expressions.h"
#include "object/value.h"

namespace keelson::auth {
namespace {

Value Strings(base::Arena& arena, const std::vector<std::string>& texts) {
  Value list = Value::List(arena, texts.size());
  for (const std::string& text : texts) list.Append(arena, Value::String(arena, text));
  return list;
}

std::string_view OperatorName(meta::LabelSelector::Operator op) {
  using Operator = meta::LabelSelector::Operator;
  switch (op) {
    case Operator::kNotIn:
    case Operator::kNotEquals:
      return "NotIn";
    case Operator::kExists:
      return "Exists";
    case Operator::kDoesNotExist:
      return "DoesNotExist";
    case Operator::kGreaterThan:
    case Operator::kLessThan:
      return "";
    default:
      return "In";
  }
}

void AddRequirement(base::Arena& arena, Value list, std::string_view key, std::string_view op,
                    const std::vector<std::string>& values) {
  Value requirement = Value::Map(arena, 3);
  requirement.Set(arena, "key", key);
  requirement.Set(arena, "operator", op);
  requirement.Set(arena, "values", Strings(arena, values));
  list.Append(arena, requirement);
}

// Unlike in the JSON that is sent, every text is there, also an empty one.
Value RequestOf(base::Arena& arena, const Attributes& attributes) {
  Value request = Value::Map(arena);
  request.Set(arena, "user", std::string_view(attributes.user->name));
  request.Set(arena, "groups", Strings(arena, attributes.user->groups));
  request.Set(arena, "uid", std::string_view(attributes.user->uid));
  Value extra = request.EnsureMap(arena, "extra");
  for (const auto& [key, values] : attributes.user->extra) extra.Set(arena, key, Strings(arena, values));
  if (!attributes.resource_request) {
    Value path = request.EnsureMap(arena, "nonResourceAttributes");
    path.Set(arena, "path", std::string_view(attributes.path));
    path.Set(arena, "verb", std::string_view(attributes.verb));
    return request;
  }
  Value resource = request.EnsureMap(arena, "resourceAttributes");
  resource.Set(arena, "namespace", std::string_view(attributes.name_space));
  resource.Set(arena, "verb", std::string_view(attributes.verb));
  resource.Set(arena, "group", std::string_view(attributes.api_group));
  resource.Set(arena, "version", std::string_view(attributes.api_version));
  resource.Set(arena, "resource", std::string_view(attributes.resource));
  resource.Set(arena, "subresource", std::string_view(attributes.subresource));
  resource.Set(arena, "name", std::string_view(attributes.name));
  for (const auto& field : attributes.field_requirements) {
    Value list = resource.EnsureMap(arena, "fieldSelector").EnsureList(arena, "requirements");
    AddRequirement(arena, list, field.field, field.equal ? "In" : "NotIn", {field.value});
  }
  for (const auto& label : attributes.label_requirements) {
    const std::string_view op = OperatorName(label.op);
    if (op.empty()) continue;
    Value list = resource.EnsureMap(arena, "labelSelector").EnsureList(arena, "requirements");
    AddRequirement(arena, list, label.key, op, label.values);
  }
  return request;
}

}  // namespace

struct MatchConditions::Impl {
  std::vector<cel::PolicyExpression> conditions;
  const cel::TimeZones* time_zones = nullptr;
};

MatchConditions::MatchConditions(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MatchConditions::~MatchConditions() = default;

Outcome<std::shared_ptr<const MatchConditions>, std::string> MatchConditions::Compile(
    std::span<const std::string> expressions, const cel::TimeZones* time_zones) {
  auto impl = std::make_unique<Impl>();
  impl->time_zones = time_zones;
  for (const std::string& expression : expressions) {
    auto made = cel::MakePolicyExpression(cel::SubjectAccessReviewEnvironment(), expression, {&cel::kBoolType});
    if (made.program == nullptr) return std::move(made.error);
    impl->conditions.push_back(std::move(made));
  }
  return std::shared_ptr<const MatchConditions>(new MatchConditions(std::move(impl)));
}

Outcome<bool, std::string> MatchConditions::Matches(const Attributes& attributes) const {
  base::Arena arena;
  cel::ReviewMatch match =
      cel::MatchSubjectAccessReview(arena, impl_->conditions, RequestOf(arena, attributes), impl_->time_zones);
  if (!match.error.empty()) return std::move(match.error);
  return match.matches;
}

}  // namespace keelson::auth
