#include "endpoints/admission.h"

#include "admission/api_reader.h"
#include "auth/authorizer.h"
#include "base/strings.h"
#include "endpoints/handlers.h"
#include "endpoints/version_converter.h"
#include "patch/field_manager.h"

namespace keelson::endpoints {
namespace {

// The versions of a scope's objects, by the scopes of its siblings.
class ScopeInterfaces final : public admission::ObjectInterfaces, public admission::ConfigurationMerger {
 public:
  explicit ScopeInterfaces(ScopePtr scope) : scope_(std::move(scope)) {}

  std::vector<Resource> EquivalentResources() const override {
    std::vector<Resource> resources;
    for (const ScopePtr& sibling : Siblings()) resources.push_back({sibling->resource, sibling->kind});
    return resources;
  }

  admission::Task<std::string> EncodeJSON(base::Arena& arena, Value object,
                                          meta::GroupVersionKind kind) const override {
    KS_CO_TRY(const ScopePtr target, ScopeOf(kind));
    KS_CO_TRY(const Value served, co_await Served(arena, *target, object));
    std::string text;
    target->codec->EncodeJSON(served, *target, text);
    co_return text;
  }

  admission::Task<Value> ToDocument(base::Arena& arena, Value object, meta::GroupVersionKind kind) const override {
    KS_CO_TRY(const ScopePtr target, ScopeOf(kind));
    KS_CO_TRY(const Value served, co_await Served(arena, *target, object));
    co_return target->codec->ToDocument(arena, *target, served);
  }

  admission::Task<Value> FromDocument(base::Arena& arena, Value document, meta::GroupVersionKind kind) const override {
    return Decode(arena, document, std::move(kind), UnknownFields::kDrop);
  }

  admission::Task<Value> FromDocumentStrictly(base::Arena& arena, Value document,
                                              meta::GroupVersionKind kind) const override {
    return Decode(arena, document, std::move(kind), UnknownFields::kRefuse);
  }

  Outcome<Value, std::string> MergeConfiguration(base::Arena& arena, Value document, Value configuration,
                                                 const meta::GroupVersionKind& kind) const override {
    const auto target = ScopeOf(kind);
    if (!target.ok() || !(*target)->field_manager || (*target)->own_kind) {
      return "failed to convert patch object to typed object: no corresponding type for " + kind.ToString();
    }
    return (*target)->field_manager->MergeConfiguration(arena, document, configuration);
  }

 private:
  enum class UnknownFields : std::uint8_t { kDrop, kRefuse };  // Custom resources are pruned.

  admission::Task<Value> Decode(base::Arena& arena, Value document, meta::GroupVersionKind kind,
                                UnknownFields unknown_fields) const {
    KS_CO_TRY(const ScopePtr target, ScopeOf(kind));
    const bool strict = unknown_fields == UnknownFields::kRefuse && !target->codec->custom_resource();
    auto read = target->codec->FromDocument(arena, *target, document, KindCodec::Source::kPatch, strict);
    if (!read.ok()) co_return meta::NewInternalError(read.error());
    if (!read->strict_errors.empty())
      co_return meta::NewInternalError("strict decoding error: " + base::Join(read->strict_errors, ", "));
    Value object = read->object;
    object.EnsureMap(arena, "metadata");
    target->codec->ApplyDefaults(arena, *target, object);
    if (target->own_kind) co_return object;
    Value hub = target->codec->ToHub(arena, *target, object);
    if (target->codec->custom_resource()) co_return co_await InVersion(arena, *target, hub, scope_->api_version());
    co_return hub;
  }

  std::vector<ScopePtr> Siblings() const {
    if (!scope_->equivalents) return {scope_};
    return scope_->equivalents->Scopes();
  }

  meta::Result<ScopePtr> ScopeOf(const meta::GroupVersionKind& kind) const {
    if (kind == scope_->kind) return scope_;
    for (ScopePtr& sibling : Siblings()) {
      if (sibling->kind == kind) return std::move(sibling);
    }
    return meta::NewInternalError("no kind " + kind.kind + " in version " + kind.group_version().ToString());
  }

  static Task<Value> Served(base::Arena& arena, const Scope& target, Value object) {
    const Value served = target.codec->FromHub(arena, target, object.Clone(arena));
    if (!target.codec->custom_resource()) co_return served;
    co_return co_await InVersion(arena, target, served, target.api_version());
  }

  // A custom resource in another version.
  static Task<Value> InVersion(base::Arena& arena, const Scope& scope, Value object, std::string api_version) {
    if (object["apiVersion"].as_string() == api_version) co_return object;
    if (scope.version_converter) co_return co_await scope.version_converter->Convert(arena, object, api_version);
    object.Set(arena, "apiVersion", Value::String(arena, api_version));
    co_return object;
  }

  ScopePtr scope_;
};

Value Texts(base::Arena& arena, const std::vector<std::string>& texts) {
  Value list = Value::List(arena);
  for (const std::string& text : texts) list.Append(arena, Value::String(arena, text));
  return list;
}

Value NewOptions(base::Arena& arena, std::string_view kind) {
  Value options = Value::Map(arena);
  options.Set(arena, "kind", kind);
  options.Set(arena, "apiVersion", "meta.k8s.io/v1");
  return options;
}

Value OptionsOf(base::Arena& arena, std::string_view kind, const meta::WriteOptions& write) {
  Value options = NewOptions(arena, kind);
  if (!write.dry_run.empty()) options.Set(arena, "dryRun", Texts(arena, write.dry_run));
  if (!write.field_manager.empty()) options.Set(arena, "fieldManager", Value::String(arena, write.field_manager));
  if (!write.field_validation.empty())
    options.Set(arena, "fieldValidation", Value::String(arena, write.field_validation));
  return options;
}

Value OptionsOf(base::Arena& arena, const meta::DeleteOptions& sent, std::string_view uid) {
  Value options = NewOptions(arena, "DeleteOptions");
  if (sent.grace_period_seconds) options.Set(arena, "gracePeriodSeconds", Value(*sent.grace_period_seconds));
  if (sent.has_preconditions || sent.uid || sent.resource_version || !uid.empty()) {
    Value preconditions = options.EnsureMap(arena, "preconditions");
    if (sent.uid || !uid.empty()) preconditions.Set(arena, "uid", Value::String(arena, sent.uid ? *sent.uid : uid));
    if (sent.resource_version)
      preconditions.Set(arena, "resourceVersion", Value::String(arena, *sent.resource_version));
  }
  if (sent.orphan_dependents) options.Set(arena, "orphanDependents", Value(*sent.orphan_dependents));
  if (sent.propagation_policy) options.Set(arena, "propagationPolicy", Value::String(arena, *sent.propagation_policy));
  if (!sent.dry_run.empty()) options.Set(arena, "dryRun", Texts(arena, sent.dry_run));
  return options;
}

// Upstream's REST of namespaces and of definitions of custom resources sets the uid of the object that it has read
// as a precondition, before admission sees the options.
bool PinsDeletion(const AdmissionCall& call) {
  if (call.name.empty()) return false;  // of a collection
  const registry::ResourceDefinition& definition = *call.scope->definition;
  return definition.traits.spec_finalizers || (definition.strategy && definition.strategy->marks_deletion());
}

admission::Attributes AttributesOf(const AdmissionCall& call, admission::Operation operation, Value object, Value old) {
  const Scope& scope = *call.scope;
  base::Arena& arena = call.exchange->context.arena;
  admission::Attributes attributes{.operation = operation,
                                   .kind = scope.kind,
                                   .resource = scope.resource,
                                   .subresource = scope.subresource,
                                   .name_space = call.name_space,
                                   .name = call.name,
                                   .object = object,
                                   .old_object = old,
                                   .dry_run = call.dry_run,
                                   .interfaces = nullptr};
  switch (operation) {
    case admission::Operation::kCreate:
      attributes.options = OptionsOf(arena, "CreateOptions", call.write);
      break;
    case admission::Operation::kUpdate:
      attributes.options = OptionsOf(arena, "UpdateOptions", call.write);
      break;
    case admission::Operation::kDelete:
      attributes.options = OptionsOf(arena, call.delete_options.value_or(meta::DeleteOptions()),
                                     PinsDeletion(call) ? old.Get("metadata", "uid").as_string() : std::string_view());
      break;
    case admission::Operation::kConnect:
      break;
  }
  return attributes;
}

Task<void> Validate(AdmissionCall call, admission::Operation operation, Value object, Value old) {
  admission::Attributes attributes = AttributesOf(call, operation, object, old);
  // Known only now for generateName.
  if (attributes.name.empty()) attributes.name = object.Get("metadata", "name").as_string();
  const ScopeInterfaces interfaces(call.scope);
  attributes.interfaces = &interfaces;
  co_return co_await call.scope->admission->Validate(call.exchange->context, attributes);
}

Task<void> AdmitDeletion(AdmissionCall call, Value old) {
  admission::Attributes attributes = AttributesOf(call, admission::Operation::kDelete, Value(), old);
  const ScopeInterfaces interfaces(call.scope);
  attributes.interfaces = &interfaces;
  KS_CO_RETURN_IF_ERROR(co_await call.scope->admission->Admit(call.exchange->context, attributes));
  co_return co_await call.scope->admission->Validate(call.exchange->context, attributes);
}

}  // namespace

AdmissionCall AdmissionCall::Of(ScopePtr scope, ExchangePtr exchange, const meta::WriteOptions& options, Value object) {
  const request::RequestInfo& info = exchange->context.info;
  AdmissionCall call{.name = info.name, .name_space = info.name_space, .dry_run = options.is_dry_run()};
  if (call.name.empty()) call.name = object.Get("metadata", "name").as_string();
  if (call.name_space.empty() && scope->definition->traits.spec_finalizers) call.name_space = call.name;
  call.write = options;
  call.scope = std::move(scope);
  call.exchange = std::move(exchange);
  return call;
}

AdmissionCall AdmissionCall::Deletion(ScopePtr scope, ExchangePtr exchange, const meta::DeleteOptions& options) {
  // Objects of a collection are not named, as upstream.
  AdmissionCall call{.name = exchange->context.info.name,
                     .name_space = exchange->context.info.name_space,
                     .dry_run = options.is_dry_run()};
  call.delete_options = options;
  call.scope = std::move(scope);
  call.exchange = std::move(exchange);
  return call;
}

Task<Value> Admit(AdmissionCall call, admission::Operation operation, Value object, Value old) {
  const Scope& scope = *call.scope;
  if (operation == admission::Operation::kCreate && !call.exchange->create_forbidden.empty()) {
    co_return meta::NewForbidden({scope.resource.group, scope.resource.resource}, call.name,
                                 call.exchange->create_forbidden);
  }
  if (!scope.admission) co_return object;
  admission::Attributes attributes = AttributesOf(call, operation, object, old);
  const ScopeInterfaces interfaces(call.scope);
  attributes.interfaces = &interfaces;
  KS_CO_RETURN_IF_ERROR(co_await scope.admission->Admit(call.exchange->context, attributes));
  co_return attributes.object;
}

Task<Value> AdmitUpdate(AdmissionCall call, Value object, Value existing) {
  Exchange& exchange = *call.exchange;
  base::Arena& arena = exchange.context.arena;
  if (!call.scope->own_kind) object = call.scope->codec->ToHub(arena, *call.scope, object);
  // Of a patch, duplicates are looked for after admission only.
  if (exchange.context.info.verb != "patch") DedupOwnerReferences(exchange, object, false);
  const admission::Operation operation =
      existing.is_null() ? admission::Operation::kCreate : admission::Operation::kUpdate;
  const Value managed = object.Get("metadata", "managedFields");
  KS_CO_TRY(object, co_await Admit(call, operation, object, existing));
  KeepManagedFieldsAfterAdmission(exchange, *call.scope, object, managed);
  DedupOwnerReferences(exchange, object, true);
  co_return object;
}

registry::ValidateObject ValidateCreateFunc(AdmissionCall call) {
  if (!call.scope->admission) return nullptr;
  return
      [call = std::move(call)](Value object) { return Validate(call, admission::Operation::kCreate, object, Value()); };
}

namespace {

// The `create` permission of a PUT or apply that creates, checked once per request.
struct CreateAuthorization {
  std::optional<meta::Result<void>> decided;
};

Task<void> AuthorizeCreate(AdmissionCall call) {
  if (!call.scope->authorizer)
    co_return meta::NewInternalError("no authorizer provided, unable to authorize a create on update");
  const request::Context& context = call.exchange->context;
  auth::Attributes attributes = auth::AttributesOf(context.user, context.info);
  attributes.verb = "create";
  const auth::Authorization answer = co_await call.scope->authorizer->Authorize(attributes);
  if (answer.decision == auth::Decision::kAllow) co_return meta::Result<void>();
  if (!answer.error.empty()) co_return meta::NewInternalError(answer.error);
  co_return meta::NewForbidden({context.info.api_group, context.info.resource}, context.info.name,
                               auth::ForbiddenMessage(attributes, answer.reason));
}

Task<void> ValidateCreateOnUpdate(AdmissionCall call, std::shared_ptr<CreateAuthorization> authorization,
                                  Value object) {
  if (!authorization->decided) authorization->decided = co_await AuthorizeCreate(call);
  if (!authorization->decided->ok()) co_return authorization->decided->error();
  if (!call.scope->admission) co_return meta::Result<void>();
  co_return co_await Validate(call, admission::Operation::kCreate, object, Value());
}

}  // namespace

registry::ValidateObject ValidateCreateOnUpdateFunc(AdmissionCall call) {
  return [call = std::move(call), authorization = std::make_shared<CreateAuthorization>()](Value object) {
    return ValidateCreateOnUpdate(call, authorization, object);
  };
}

registry::ValidateObjectUpdate ValidateUpdateFunc(AdmissionCall call) {
  if (!call.scope->admission) return nullptr;
  return [call = std::move(call)](Value object, Value old) {
    return Validate(call, admission::Operation::kUpdate, object, old);
  };
}

registry::ValidateObject ValidateDeleteFunc(AdmissionCall call) {
  if (!call.scope->admission) return nullptr;
  return [call = std::move(call)](Value old) { return AdmitDeletion(call, old); };
}

Task<void> AdmitConnect(ScopePtr scope, ExchangePtr exchange, Value options) {
  if (!scope->admission) co_return meta::Result<void>();
  const AdmissionCall call = AdmissionCall::Of(scope, exchange, {});
  admission::Attributes attributes = AttributesOf(call, admission::Operation::kConnect, options, Value());
  const ScopeInterfaces interfaces(scope);
  attributes.interfaces = &interfaces;
  KS_CO_RETURN_IF_ERROR(co_await scope->admission->Admit(exchange->context, attributes));
  co_return co_await scope->admission->Validate(exchange->context, attributes);
}

}  // namespace keelson::endpoints
