// PATCH in its forms.
#include <algorithm>
#include <cstdlib>

#include "base/strings.h"
#include "codec/json.h"
#include "codec/yaml.h"
#include "endpoints/audit_hooks.h"
#include "endpoints/handlers.h"
#include "endpoints/responses.h"
#include "object/go_text.h"
#include "object/json_text.h"
#include "patch/field_manager.h"
#include "patch/json_patch.h"
#include "patch/merge_patch.h"
#include "patch/strategic_merge.h"
#include "patch/touched_part.h"

namespace keelson::endpoints {
namespace {

constexpr std::string_view kJSONPatch = "application/json-patch+json";
constexpr std::string_view kMergePatch = "application/merge-patch+json";
constexpr std::string_view kStrategicPatch = "application/strategic-merge-patch+json";

// 422 if the result is not an object of the kind: the whole patched text is shown, as upstream does.
meta::Status InvalidPatchResult(std::string_view patched, std::string_view error) {
  const meta::FieldErrors errors = {
      {meta::FieldError::Type::kInvalid, "patch", base::GoQuote(patched), std::string(error)}};
  meta::Status::Fields fields = meta::NewInvalid({}, "", errors).fields();
  fields.details->name.clear();
  return meta::Status(std::move(fields));
}

// JSON as a merge patch leaves it: objects that it reached into and values from it have sorted members, the rest keep their
// order.
void EncodeMerged(const Value& value, const Value& before, std::string& out) {
  if (value.is_list() && before.is_list()) {
    const auto was = before.items();
    out += '[';
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (i > 0) out += ',';
      // An item may have moved: its old position, else the old item at its index.
      const auto same = i < was.size() && value[i] == was[i] ? was.begin() + static_cast<std::ptrdiff_t>(i)
                                                             : std::ranges::find(was, value[i]);
      EncodeMerged(value[i], same != was.end() ? *same : i < was.size() ? was[i] : Value(), out);
    }
    out += ']';
    return;
  }
  if (!value.is_map() || !before.is_map()) return codec::EncodeJSON(value, out);
  std::vector<object::Member> members(value.members().begin(), value.members().end());
  if (!(value == before)) std::ranges::sort(members, {}, &object::Member::key);
  out += '{';
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (i > 0) out += ',';
    codec::EncodeJSON(Value(members[i].key), out);
    out += ':';
    EncodeMerged(members[i].value, before[members[i].key], out);
  }
  out += '}';
}

// JSON text without white space between its tokens (json.Compact).
std::string_view CompactJSON(base::Arena& arena, std::string_view json) {
  std::string out;
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (quoted && c == '\\' && i + 1 < json.size()) out += json[i++];
    if (c == '"') quoted = !quoted;
    if (quoted || (c != ' ' && c != '\t' && c != '\n' && c != '\r')) out += json[i];
  }
  return arena.Copy(out);
}

// Raw JSON (ControllerRevision's data) that the patch did not reach keeps its order; it is only made compact.
void KeepUntouchedRaw(base::Arena& arena, Value object, const Value& before, const Value& patched,
                      const Value& document) {
  for (object::Member& member : object.members()) {
    const Value was = before[member.key];
    if (member.value.is_raw() && was.is_raw() && patched[member.key] == document[member.key])
      member.value = Value::Raw(CompactJSON(arena, was.as_raw()));
    if (member.value.is_map() && was.is_map())
      KeepUntouchedRaw(arena, member.value, was, patched[member.key], document[member.key]);
  }
}

// The merged configuration is not an object of the kind: the error of upstream's field manager, a plain one.
meta::Status UnconvertibleApply(const Value& config, const meta::GroupVersionKind& kind, std::string_view error) {
  const std::string name = kind.ToString();
  const Value metadata = config["metadata"];
  std::string text = "failed to convert new object (" + std::string(metadata["namespace"].as_string()) + "/" +
                     std::string(metadata["name"].as_string()) + "; " + name +
                     ") to proper version: unable to convert unstructured object to " + name + ": ";
  return meta::NewPlainError(text + std::string(error));
}

}  // namespace

meta::Result<void> Patcher::Read(std::string_view body) {
  const bool checked = options_.field_validation != "Ignore";
  auto decoded = codec::DecodeJSON(arena_, body, codec::DecodeOptions{.strict = checked});
  if (!decoded.ok()) {
    if (type_ == kMergePatch && !checked) return meta::NewBadRequest("Invalid JSON Patch");
    const std::string prefix = type_ == kStrategicPatch || !checked ? "" : "error decoding patch: ";
    return meta::NewBadRequest(prefix + decoded.error().message);
  }
  patch_ = decoded->value;
  patch_errors_ = decoded->strict_errors;
  if (type_ == kJSONPatch) {
    KS_TRY(patch_, patch::CheckJSONPatch(patch_, checked));
    if (checked) {
      for (std::string& error : patch_errors_) error.insert(0, "json patch ");
      // Both kinds by the operation that they are in.
      const auto operation = [](const std::string& error) {
        const auto at = error.find('[');
        return at == std::string::npos ? 0 : std::strtoul(error.c_str() + at + 1, nullptr, 10);
      };
      for (auto& error : patch::JSONPatchUnknownFields(patch_)) {
        const auto after = std::ranges::upper_bound(patch_errors_, operation(error), std::less<>(), operation);
        patch_errors_.insert(after, std::move(error));
      }
    }
  }
  return {};
}

// Most patches name a few fields: only those become JSON and come back. Nothing in all other cases, above all for
// errors, whose texts show the whole object.
std::optional<Value> Patcher::ApplyToTouchedFields(Value current) {
  if (type_ == kJSONPatch || !scope_.codec->strategic_merge() || !patch_errors_.empty()) return std::nullopt;
  const auto part = patch::TouchedPart(arena_, current, patch_, *scope_.type);
  if (!part) return std::nullopt;
  const auto document = scope_.codec->ToDocument(arena_, scope_, *part);
  if (!document.ok()) return std::nullopt;
  const bool checked = options_.field_validation != "Ignore";
  const bool strategic = type_ == kStrategicPatch;
  const auto patched = strategic ? patch::ApplyStrategicMergePatch(arena_, *document, patch_, *scope_.type)
                                 : patch::ApplyMergePatch(arena_, *document, patch_, checked);
  if (!patched.ok()) return std::nullopt;
  const auto source = strategic ? KindCodec::Source::kStrategicMerge : KindCodec::Source::kPatch;
  const auto read = scope_.codec->FromDocument(arena_, scope_, *patched, source, checked);
  if (!read.ok() || !read->strict_errors.empty()) return std::nullopt;
  const Value object = current.Clone(arena_);
  patch::PutTouchedPart(arena_, object, read->object, patch_, *scope_.type);
  return object;
}

meta::Result<Value> Patcher::Apply(Value current) {
  if (const auto quick = ApplyToTouchedFields(current)) {
    scope_.codec->ApplyDefaults(arena_, scope_, *quick);
    return *quick;
  }
  // A custom resource is a document already, which a merge patch leaves as it is.
  const bool is_document = type_ == kMergePatch && scope_.codec->custom_resource();
  Value document = current;
  if (!is_document) {
    KS_TRY(document, scope_.codec->ToDocument(arena_, scope_, current));
  }
  const bool checked = options_.field_validation != "Ignore";
  const bool strategic = type_ == kStrategicPatch;
  Value patched;
  if (type_ == kJSONPatch) {
    KS_TRY(patched, patch::ApplyJSONPatch(arena_, document, patch_));
  } else if (type_ == kMergePatch) {
    KS_TRY(patched, patch::ApplyMergePatch(arena_, document, patch_, checked));
  } else {
    KS_TRY(patched, patch::ApplyStrategicMergePatch(arena_, document, patch_, *scope_.type));
  }
  if (strategic && patched.is_map()) {
    // Goes straight into the kind's struct: what a patch says of kind and version is lost on the way.
    for (const std::string_view key : {"kind", "apiVersion"}) {
      if (patched[key].is_string()) patched.Set(arena_, key, document[key]);
    }
  }
  // How upstream shows what came out: the patch itself for a strategic one, else the document with what was not touched
  // left as it was.
  const auto shown = [&] {
    if (strategic) return object::GoSprint(patch_);
    if (type_ == kJSONPatch) return object::ToJSON(patched);
    std::string text_of_result;
    EncodeMerged(patched, document, text_of_result);
    return text_of_result;
  };
  auto read = scope_.codec->FromDocument(
      arena_, scope_, patched, strategic ? KindCodec::Source::kStrategicMerge : KindCodec::Source::kPatch, checked);
  if (!read.ok()) return InvalidPatchResult(shown(), read.error());
  std::vector<std::string> errors = patch_errors_;
  errors.insert(errors.end(), read->strict_errors.begin(), read->strict_errors.end());
  KS_RETURN_IF_ERROR(ReportStrictErrors(exchange_, errors, options_.field_validation,
                                        [&](const std::string& error) { return InvalidPatchResult(shown(), error); }));
  Value object = read->object;
  if (!strategic) KeepUntouchedRaw(arena_, object, current, patched, document);
  scope_.codec->ApplyDefaults(arena_, scope_, object);
  return object;
}

namespace {

// A PATCH between reading its body and writing: what each attempt of the update needs. Lives in the handler's frame.
struct PatchRequest {
  ScopePtr scope;
  ExchangePtr exchange;
  MediaTypeOptions media;
  std::string type;  // the bare media type
  base::SharedBytes body;
  meta::WriteOptions options;
  AdmissionCall call;
};

// Writes what `updated` makes of the object, and answers. An object that is too large with its managedFields is written
// as `smaller` makes it, if there is such a function.
Awaitable<http::Response> Write(const PatchRequest& patch, registry::UpdatedObject updated,
                                registry::UpdatedObject smaller, registry::UpdateParameters parameters) {
  Exchange& exchange = *patch.exchange;
  parameters.endpoint = patch.scope->endpoint;
  parameters.dry_run = patch.options.is_dry_run();
  auto written = co_await patch.scope->rest->updater()->Update(
      exchange.context, exchange.context.info.name, std::move(updated), ValidateCreateOnUpdateFunc(patch.call),
      ValidateUpdateFunc(patch.call), parameters);
  if (!written.ok() && smaller && IsTooLargeError(written.error())) {
    written = co_await patch.scope->rest->updater()->Update(exchange.context, exchange.context.info.name,
                                                            std::move(smaller), ValidateCreateOnUpdateFunc(patch.call),
                                                            ValidateUpdateFunc(patch.call), parameters);
  }
  if (!written.ok()) co_return StatusResponse(exchange, written.error());
  exchange.trace.Step("Object stored in database");
  exchange.trace.AboutToRespond();
  co_return ObjectResponse(exchange, patch.scope, patch.media, written->object, written->created ? 201 : 200,
                           ObjectEncoder::Keep::kNo);
}

meta::Status StrictApplyError(const std::string& error) {
  return meta::NewBadRequest("error strict decoding YAML: error converting YAML to JSON: " +
                             error.substr(std::string_view("strict decoding error: ").size()));
}

// The configuration merged with the live object, with managedFields updated.
Task<Value> ApplyTo(const PatchRequest& patch, const codec::Decoded& config, Value existing) {
  const Scope& scope = *patch.scope;
  Exchange& exchange = *patch.exchange;
  request::Context& context = exchange.context;
  base::Arena& arena = context.arena;
  exchange.trace.Step("About to apply patch");
  const Value live = existing.is_null() ? Value() : scope.codec->FromHub(arena, scope, existing.Clone(arena));
  KS_CO_TRY(const AppliedConfiguration applied,
            co_await ApplyConfiguration(exchange, scope, live, config.value, patch.options));
  KS_CO_RETURN_IF_ERROR(
      ReportStrictErrors(exchange, config.strict_errors, patch.options.field_validation, StrictApplyError));
  auto decoded = scope.codec->FromDocument(arena, scope, applied.object, KindCodec::Source::kApply, false);
  if (!decoded.ok()) co_return UnconvertibleApply(config.value, scope.kind, decoded.error());
  Value object = decoded->object;
  if (applied.unchanged) {
    // An apply without changes keeps the stored object, raw JSON in it included.
    object = live.Clone(arena);
    object.Set(arena, "metadata", decoded->object["metadata"]);
  } else {
    scope.codec->ApplyDefaults(arena, scope, object);
  }
  if (const auto uid = object.Get("metadata", "uid").as_string(); existing.is_null() && !uid.empty()) {
    co_return meta::NewConflict(
        {scope.resource.group, scope.resource.resource}, context.info.name,
        "uid mismatch: the provided object specified uid " + std::string(uid) + ", and no existing object was found");
  }
  KS_CO_RETURN_IF_ERROR(CheckTarget(scope, exchange, object));
  if (scope.namespaced) object["metadata"].Set(arena, "namespace", std::string_view(context.info.name_space));
  exchange.trace.Step("About to check admission control");
  co_return co_await AdmitUpdate(patch.call, object, existing);
}

// Server-side apply.
Awaitable<http::Response> ApplyPatch(const PatchRequest& patch) {
  Exchange& exchange = *patch.exchange;
  if (!patch.scope->field_manager)
    co_return StatusResponse(exchange, meta::NewBadRequest("apply is not supported for this resource"));
  const bool checked = patch.options.field_validation != "Ignore";
  auto config = DecodeApply(exchange.context.arena, patch.type, patch.body.view(), checked);
  if (!config.ok()) co_return StatusResponse(exchange, config.error());
  const bool main = patch.scope->endpoint.part == registry::Endpoint::Part::kMain;
  co_return co_await Write(patch, [&patch, &config](Value existing) { return ApplyTo(patch, *config, existing); },
                           nullptr, {.force_allow_create = main});
}

// The stored object in the endpoint's version, to be read only. Without a conversion only kind and apiVersion are put
// there: one level is copied.
Value Live(base::Arena& arena, const Scope& scope, Value existing) {
  if (scope.codec->custom_resource()) return scope.codec->FromHub(arena, scope, existing);  // stored as it is served
  if (scope.conversion != nullptr) return scope.codec->FromHub(arena, scope, existing.Clone(arena));
  Value copy = Value::Map(arena, existing.size() + 2);
  for (const object::Member& member : existing.members()) copy.AppendMember(arena, member.key, member.value);
  return scope.codec->FromHub(arena, scope, copy);
}

// A JSON, merge or strategic merge patch of the object.
Task<Value> PatchTo(const PatchRequest& patch, Patcher& patcher, ManagedFields managed_fields, Value existing) {
  const Scope& scope = *patch.scope;
  Exchange& exchange = *patch.exchange;
  request::Context& context = exchange.context;
  exchange.trace.Step("About to apply patch");
  if (existing.is_null())
    co_return meta::NewNotFound({scope.resource.group, scope.resource.resource}, context.info.name);
  // The patch is read after the look-up: a missing object (404) is reported before a bad patch (400).
  KS_CO_RETURN_IF_ERROR(patcher.Read(patch.body.view()));
  const Value live = Live(context.arena, scope, existing);
  KS_CO_TRY(Value object, patcher.Apply(live));
  KS_CO_RETURN_IF_ERROR(CheckTarget(scope, exchange, object));
  const std::string manager = meta::ManagerOrUserAgent(patch.options.field_manager, context.user_agent);
  co_await TrackUpdate(exchange, scope, live, object, manager);
  exchange.trace.Step("About to check admission control");
  KS_CO_TRY(object, co_await AdmitUpdate(patch.call, object, existing));
  if (managed_fields == ManagedFields::kDropped) object["metadata"].Erase("managedFields");
  co_return object;
}

}  // namespace

Awaitable<http::Response> PatchResource(ScopePtr scope, ExchangePtr exchange) {
  exchange->trace.Start(*exchange, "Patch");
  const std::string type = BareMediaType(exchange->http.headers.Get("Content-Type"));
  auto media = NegotiateOutput(exchange->http, exchange->query, scope->restrictions);
  if (!media.ok()) co_return StatusResponse(*exchange, media.error());
  auto body = co_await ReadBody(*exchange);
  if (!body.ok()) co_return StatusResponse(*exchange, body.error());
  exchange->trace.Step("limitedReadBody succeeded", "len", static_cast<std::int64_t>(body->size()));
  const meta::WriteOptions options = meta::WriteOptions::FromQuery(exchange->query);
  const bool is_apply = type == kApplyPatch || type == kApplyCBORPatch;
  if (const auto errors = options.ValidatePatch(is_apply); !errors.empty()) {
    co_return StatusResponse(*exchange, meta::NewInvalidOptions("PatchOptions", errors));
  }
  AuditRequestPatch(*exchange, *body);
  exchange->trace.Step("Recorded the audit event");
  const PatchRequest patch{.scope = scope,
                           .exchange = exchange,
                           .media = *media,
                           .type = type,
                           .body = *body,
                           .options = options,
                           .call = AdmissionCall::Of(scope, exchange, options)};
  if (is_apply) co_return co_await ApplyPatch(patch);
  Patcher patcher(*scope, *exchange, type, patch.options);
  const auto patched = [&patch, &patcher](ManagedFields managed_fields) {
    return [&patch, &patcher, managed_fields](Value existing) {
      return PatchTo(patch, patcher, managed_fields, existing);
    };
  };
  co_return co_await Write(patch, patched(ManagedFields::kTracked), patched(ManagedFields::kDropped), {});
}

}  // namespace keelson::endpoints
