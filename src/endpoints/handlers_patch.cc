// PATCH in its forms.
#include "base/strings.h"
#include "codec/json.h"
#include "endpoints/handlers.h"
#include "endpoints/responses.h"
#include "patch/json_patch.h"
#include "patch/merge_patch.h"
#include "patch/strategic_merge.h"

namespace keelson::endpoints {
namespace {

constexpr std::string_view kJSONPatch = "application/json-patch+json";
constexpr std::string_view kMergePatch = "application/merge-patch+json";
constexpr std::string_view kStrategicPatch = "application/strategic-merge-patch+json";
constexpr std::string_view kApplyPatch = "application/apply-patch+yaml";

// 422 for a result that is no object of the kind: the whole patched text is shown, as upstream does.
meta::Status InvalidPatchResult(std::string_view patched, std::string_view error) {
  const meta::FieldErrors errors = {
      {meta::FieldError::Type::kInvalid, "patch", base::GoQuote(patched), std::string(error)}};
  meta::Status::Fields fields = meta::NewInvalid({}, "", errors).fields();
  fields.details->name.clear();
  return meta::Status(std::move(fields));
}

}  // namespace

meta::Result<void> Patcher::Read(std::string_view body) {
  const bool checked = options_.field_validation != "Ignore";
  auto decoded = codec::DecodeJSON(arena_, body, codec::DecodeOptions{.strict = checked});
  if (!decoded.ok()) {
    const std::string prefix = type_ == kStrategicPatch || !checked ? "" : "error decoding patch: ";
    return meta::NewBadRequest(prefix + decoded.error().message);
  }
  patch_ = decoded->value;
  patch_errors_ = decoded->strict_errors;
  if (type_ == kJSONPatch) {
    KS_TRY(patch_, patch::CheckJSONPatch(patch_, checked));
    if (checked) {
      for (auto& error : patch::JSONPatchUnknownFields(patch_)) patch_errors_.push_back(std::move(error));
    }
  }
  return {};
}

meta::Result<Value> Patcher::Apply(Value current) {
  std::string text;
  codec::EncodeJSON(current, *scope_.type, text);
  auto generic = codec::DecodeJSON(arena_, text);
  if (!generic.ok()) return meta::NewInternalError(generic.error().message);
  const bool checked = options_.field_validation != "Ignore";
  Value patched;
  if (type_ == kJSONPatch) {
    KS_TRY(patched, patch::ApplyJSONPatch(arena_, generic->value, patch_));
  } else if (type_ == kMergePatch) {
    KS_TRY(patched, patch::ApplyMergePatch(arena_, generic->value, patch_, checked));
  } else {
    KS_TRY(patched, patch::ApplyStrategicMergePatch(arena_, generic->value, patch_, *scope_.type));
  }
  std::string result;
  codec::EncodeJSON(patched, result);
  auto decoded = codec::DecodeJSON(arena_, result, *scope_.type, {.strict = checked});
  if (!decoded.ok()) return InvalidPatchResult(result, decoded.error().message);
  std::vector<std::string> errors = patch_errors_;
  errors.insert(errors.end(), decoded->strict_errors.begin(), decoded->strict_errors.end());
  KS_RETURN_IF_ERROR(ReportStrictErrors(exchange_, errors, options_.field_validation,
                                        [&](const std::string& error) { return InvalidPatchResult(result, error); }));
  Value object = decoded->value;
  ApplyDefaults(arena_, scope_, object);
  return object;
}

// The patched object must still be the one of the URL.
meta::Result<void> CheckTarget(const Scope& scope, const Exchange& exchange, Value object) {
  const request::RequestInfo& info = exchange.context.info;
  const std::string_view name_space = object.Get("metadata", "namespace").as_string();
  if (scope.namespaced && !name_space.empty() && name_space != info.name_space) {
    return meta::NewBadRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
  const std::string_view name = object.Get("metadata", "name").as_string();
  if (name.empty()) {
    return meta::NewBadRequest("the name of the object (" + info.name + " based on URL) was undeterminable: name must be provided");
  }
  if (name != info.name) {
    return meta::NewBadRequest("the name of the object (" + std::string(name) + ") does not match the name on the URL (" + info.name + ")");
  }
  return {};
}

Awaitable<http::Response> PatchResource(ScopePtr scope, ExchangePtr exchange) {
  request::Context& context = exchange->context;
  const std::string type = BareMediaType(exchange->http.headers.Get("Content-Type"));
  auto media = NegotiateOutput(exchange->http, exchange->query, scope->restrictions);
  if (!media.ok()) co_return StatusResponse(*exchange, media.error());
  auto body = co_await ReadBody(*exchange);
  if (!body.ok()) co_return StatusResponse(*exchange, body.error());
  const meta::WriteOptions options = meta::WriteOptions::FromQuery(exchange->query);
  const bool is_apply = type == kApplyPatch;
  if (const auto errors = options.ValidatePatch(is_apply); !errors.empty()) {
    co_return StatusResponse(*exchange, meta::NewInvalidOptions("PatchOptions", errors));
  }
  if (is_apply) {
    co_return StatusResponse(*exchange, meta::NewUnsupportedMediaType({std::string(kJSONPatch), std::string(kMergePatch), std::string(kStrategicPatch)}));
  }
  Patcher patcher(*scope, *exchange, type, options);
  if (auto read = patcher.Read(body->view()); !read.ok()) co_return StatusResponse(*exchange, read.error());

  const std::string manager = meta::ManagerOrUserAgent(options.field_manager, context.user_agent);
  const bool dry_run = options.is_dry_run();
  registry::UpdatedObject updated = [&](Value existing) -> Task<Value> {
    if (existing.is_null()) {
      co_return meta::NewNotFound({scope->resource.group, scope->resource.resource}, context.info.name);
    }
    const Value live = FromHub(context.arena, *scope, existing.Clone(context.arena));
    KS_CO_TRY(Value object, patcher.Apply(live));
    KS_CO_RETURN_IF_ERROR(CheckTarget(*scope, *exchange, object));
    KS_CO_RETURN_IF_ERROR(TrackUpdate(*exchange, *scope, live, object, manager));
    object = ToHub(context.arena, *scope, object);
    DedupOwnerReferences(*exchange, object, false);
    KS_CO_RETURN_IF_ERROR(co_await Admit(scope, exchange, Operation::kUpdate, object, existing, dry_run));
    DedupOwnerReferences(*exchange, object, true);
    co_return object;
  };
  auto written = co_await scope->store->Update(context, context.info.name, updated, ValidateCreateFunc(scope, exchange, dry_run),
                                               ValidateUpdateFunc(scope, exchange, dry_run),
                                               {.endpoint = scope->endpoint, .dry_run = dry_run});
  if (!written.ok()) co_return StatusResponse(*exchange, written.error());
  co_return ObjectResponse(*exchange, scope, *media, written->object, written->created ? 201 : 200);
}

}  // namespace keelson::endpoints
