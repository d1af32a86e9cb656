// The authorizer library: a builder that copies its record at each step, and check(), which calls the authorizer.
#include "base/strings.h"
#include "cel/functions.h"
#include "cel/library_values.h"
#include "meta/name_syntax.h"

namespace keelson::cel {
namespace {

using Tag = Val::Tag;
using Args = std::span<const Val>;
using Attributes = AuthorizerFunctions::Attributes;
using Verdict = AuthorizerFunctions::Decision::Verdict;

Val Step(Evaluation& e, Tag tag, AuthorizerObject object) {
  return Val::OfPointer(tag, e.arena.New<AuthorizerObject>(object));
}

Val Path(Evaluation& e, Args args) {
  if (base::Trim(args[1].text()).empty()) return Val::Error("path must not be empty");
  AuthorizerObject next = args[0].authorizer();
  next.attributes.path = args[1].text();
  return Step(e, Tag::kPathCheck, next);
}

Val ServiceAccount(Evaluation& e, Args args) {
  if (!meta::NameIsDNSSubdomain(args[2].text(), false).empty()) return Val::Error("Invalid service account name");
  if (!meta::NameIsDNSLabel(args[1].text(), false).empty()) return Val::Error("Invalid service account namespace");
  AuthorizerObject next = args[0].authorizer();
  next.attributes.service_account_namespace = args[1].text();
  next.attributes.service_account_name = args[2].text();
  return Step(e, Tag::kAuthorizer, next);
}

Val Resource(Evaluation& e, Args args) {
  if (base::Trim(args[1].text()).empty()) return Val::Error("resource must not be empty");
  AuthorizerObject next = args[0].authorizer();
  next.attributes.resource_request = true;
  next.attributes.resource = args[1].text();
  return Step(e, Tag::kResourceCheck, next);
}

template <std::string_view Attributes::* field, Tag tag>
Val With(Evaluation& e, Args args) {
  AuthorizerObject next = args[0].authorizer();
  next.attributes.*field = args[1].text();
  return Step(e, tag, next);
}

Val Check(Evaluation& e, Args args) {
  AuthorizerObject next = args[0].authorizer();
  next.attributes.verb = args[1].text();
  const auto decision = next.functions->Authorize(next.attributes);
  if (!decision) return e.Pending();
  next.verdict = decision->verdict;
  next.reason = e.arena.Copy(decision->reason);
  next.errored = decision->error.has_value();
  if (next.errored) next.error = e.arena.Copy(*decision->error);
  return Step(e, Tag::kDecision, next);
}

Val Errored(Evaluation&, Args args) { return Val::Bool(args[0].authorizer().errored); }
Val Error(Evaluation&, Args args) { return Val::String(args[0].authorizer().error); }
Val Allowed(Evaluation&, Args args) { return Val::Bool(args[0].authorizer().verdict == Verdict::kAllow); }
Val Reason(Evaluation&, Args args) { return Val::String(args[0].authorizer().reason); }

using enum CallForm;
constexpr Binding kBindings[] = {
    {"authorizer_path", Path, kBinary},
    {"authorizer_group", With<&Attributes::group, Tag::kGroupCheck>, kBinary},
    {"authorizer_serviceaccount", ServiceAccount, kVarArgs},
    {"groupcheck_resource", Resource, kBinary},
    {"resourcecheck_subresource", With<&Attributes::subresource, Tag::kResourceCheck>, kBinary},
    {"resourcecheck_namespace", With<&Attributes::namespace_name, Tag::kResourceCheck>, kBinary},
    {"resourcecheck_name", With<&Attributes::name, Tag::kResourceCheck>, kBinary},
    {"authorizer_fieldselector", With<&Attributes::field_selector, Tag::kResourceCheck>, kBinary},
    {"authorizer_labelselector", With<&Attributes::label_selector, Tag::kResourceCheck>, kBinary},
    {"pathcheck_check", Check, kBinary},
    {"resourcecheck_check", Check, kBinary},
    {"decision_errored", Errored, kUnary},
    {"decision_error", Error, kUnary},
    {"decision_allowed", Allowed, kUnary},
    {"decision_reason", Reason, kUnary},
};

}  // namespace

std::span<const Binding> AuthorizerBindings() { return kBindings; }

Val NewAuthorizer(Arena& arena, AuthorizerFunctions* functions) {
  AuthorizerObject* object = arena.New<AuthorizerObject>();
  object->functions = functions;
  return Val::OfPointer(Tag::kAuthorizer, object);
}

Val NewResourceAuthorizer(Arena& arena, AuthorizerFunctions* functions, const Attributes& attributes) {
  AuthorizerObject* object = arena.New<AuthorizerObject>();
  object->functions = functions;
  object->attributes = attributes;
  object->attributes.resource_request = true;
  return Val::OfPointer(Tag::kResourceCheck, object);
}

}  // namespace keelson::cel
