#include "auth/webhook_authorizer/subject_access_review.h"

#include "base/arena.h"
#include "codec/json.h"
#include "object/value.h"
#include "webhook/review_answer.h"

namespace keelson::auth {
namespace {

constexpr std::size_t kCacheableAttributeBytesMax = 10000;
constexpr std::string_view kGroup = "authorization.k8s.io";
constexpr std::string_view kKind = "SubjectAccessReview";

std::string_view VersionName(ReviewVersion version) { return version == ReviewVersion::kV1 ? "v1" : "v1beta1"; }

Value StringList(base::Arena& arena, const std::vector<std::string>& texts) {
  Value list = Value::List(arena, texts.size());
  for (const std::string& text : texts) list.Append(arena, std::string_view(text));
  return list;
}

void SetText(base::Arena& arena, Value object, std::string_view key, const std::string& text) {
  if (!text.empty()) object.Set(arena, key, std::string_view(text));
}

Value Requirement(base::Arena& arena, std::string_view key, std::string_view op) {
  Value requirement = Value::Map(arena, 3);
  requirement.Set(arena, "key", key);
  requirement.Set(arena, "operator", op);
  return requirement;
}

void AddSelectors(base::Arena& arena, Value resource, const Attributes& attributes) {
  if (!attributes.field_requirements.empty()) {
    Value list = resource.EnsureMap(arena, "fieldSelector").EnsureList(arena, "requirements");
    for (const auto& field : attributes.field_requirements) {
      Value requirement = Requirement(arena, field.field, field.equal ? "In" : "NotIn");
      requirement.EnsureList(arena, "values").Append(arena, std::string_view(field.value));
      list.Append(arena, requirement);
    }
  }
  using Operator = meta::LabelSelector::Operator;
  Value labels = Value::List(arena);
  for (const auto& label : attributes.label_requirements) {
    std::string_view op;
    switch (label.op) {
      case Operator::kIn:
      case Operator::kEquals:
      case Operator::kDoubleEquals:
        op = "In";
        break;
      case Operator::kNotIn:
      case Operator::kNotEquals:
        op = "NotIn";
        break;
      case Operator::kExists:
        op = "Exists";
        break;
      case Operator::kDoesNotExist:
        op = "DoesNotExist";
        break;
      case Operator::kGreaterThan:
      case Operator::kLessThan:
        continue;  // The API cannot express it. Leaving it out requests more permissions, never fewer.
    }
    Value requirement = Requirement(arena, label.key, op);
    if (!label.values.empty()) requirement.Set(arena, "values", StringList(arena, label.values));
    labels.Append(arena, requirement);
  }
  if (!labels.empty()) resource.EnsureMap(arena, "labelSelector").Set(arena, "requirements", labels);
}

Value SpecOf(base::Arena& arena, const Attributes& attributes, ReviewVersion version) {
  Value spec = Value::Map(arena);
  if (attributes.resource_request) {
    Value resource = spec.EnsureMap(arena, "resourceAttributes");
    SetText(arena, resource, "namespace", attributes.name_space);
    SetText(arena, resource, "verb", attributes.verb);
    SetText(arena, resource, "group", attributes.api_group);
    SetText(arena, resource, "version", attributes.api_version);
    SetText(arena, resource, "resource", attributes.resource);
    SetText(arena, resource, "subresource", attributes.subresource);
    SetText(arena, resource, "name", attributes.name);
    AddSelectors(arena, resource, attributes);
  } else {
    Value path = spec.EnsureMap(arena, "nonResourceAttributes");
    SetText(arena, path, "path", attributes.path);
    SetText(arena, path, "verb", attributes.verb);
  }
  const request::User& user = *attributes.user;
  SetText(arena, spec, "user", user.name);
  if (!user.groups.empty())
    spec.Set(arena, version == ReviewVersion::kV1 ? "groups" : "group", StringList(arena, user.groups));
  if (!user.extra.empty()) {
    Value extra = spec.EnsureMap(arena, "extra");
    for (const auto& [key, values] : user.extra) extra.Set(arena, key, StringList(arena, values));
  }
  SetText(arena, spec, "uid", user.uid);
  return spec;
}

}  // namespace

std::string ReviewSpec(const Attributes& attributes) {
  base::Arena arena;
  std::string out;
  codec::EncodeJSON(SpecOf(arena, attributes, ReviewVersion::kV1), out);
  return out;
}

std::string ReviewBody(const Attributes& attributes, ReviewVersion version) {
  base::Arena arena;
  Value review = Value::Map(arena, 5);
  review.Set(arena, "kind", kKind);
  review.Set(arena, "apiVersion", Value::String(arena, std::string(kGroup) + "/" + std::string(VersionName(version))));
  review.Set(arena, "metadata", Value::Map(arena));
  review.Set(arena, "spec", SpecOf(arena, attributes, version));
  review.EnsureMap(arena, "status").Set(arena, "allowed", false);
  std::string out;
  codec::EncodeJSON(review, out);
  out += '\n';
  return out;
}

Outcome<ReviewStatus, std::string> ReadReviewAnswer(const webhook::Response& response, ReviewVersion version) {
  base::Arena arena;
  KS_TRY(const Value review, webhook::DecodeReviewAnswer(arena, response, {kGroup, VersionName(version), kKind}));
  const Value status = review["status"];
  return ReviewStatus{.allowed = status["allowed"].as_bool(),
                      .denied = status["denied"].as_bool(),
                      .reason = std::string(status["reason"].as_string())};
}

bool IsCacheable(const Attributes& attributes) {
  const std::size_t bytes = attributes.name_space.size() + attributes.verb.size() + attributes.api_group.size() +
                            attributes.api_version.size() + attributes.resource.size() + attributes.subresource.size() +
                            attributes.name.size() + attributes.path.size();
  return bytes < kCacheableAttributeBytesMax;
}

}  // namespace keelson::auth
