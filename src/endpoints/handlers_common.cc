#include <algorithm>

#include "auth/authorizer.h"
#include "base/hash.h"
#include "base/strings.h"
#include "endpoints/audit_hooks.h"
#include "endpoints/handlers.h"
#include "endpoints/responses.h"
#include "endpoints/sources.h"

namespace keelson::endpoints {

Task<base::SharedBytes> ReadBody(Exchange& exchange) {
  auto body = co_await exchange.http.body->ReadAll(kBodyBytesMax);
  if (body.ok()) {
    exchange.trace.BodyRead(body->size());
    co_return *std::move(body);
  }
  if (body.error() == http::BodyError::kTooLarge) {
    co_return meta::NewRequestEntityTooLarge("limit is " + std::to_string(kBodyBytesMax));
  }
  co_return meta::NewBadRequest("unexpected EOF");
}

bool IsTooLargeError(const meta::Status& error) {
  return error.code() == 500 &&
         (error.message() == "etcdserver: request is too large" ||
          error.message().starts_with(
              "rpc error: code = ResourceExhausted desc = trying to send message larger than max"));
}

meta::Result<void> ReportStrictErrors(Exchange& exchange, const std::vector<std::string>& errors,
                                      std::string_view field_validation,
                                      const std::function<meta::Status(const std::string& text)>& refuse) {
  if (errors.empty() || field_validation == "Ignore") return {};
  if (field_validation == "Strict") return refuse("strict decoding error: " + base::Join(errors, ", "));
  constexpr std::string_view kYAMLErrors = "yaml: unmarshal errors:\n";
  for (const std::string_view error : errors) {
    if (!error.starts_with(kYAMLErrors)) {
      exchange.context.warnings.Add(error);
      continue;
    }
    // Duplicate keys of a YAML body: one error of many lines, one warning for each.
    for (const std::string_view line : base::Split(error.substr(kYAMLErrors.size()), '\n')) {
      exchange.context.warnings.Add(base::Trim(line));
    }
  }
  return {};
}

meta::Result<IncludeObject> IncludeObjectOf(const Exchange& exchange, const MediaTypeOptions& media) {
  if (media.transform != Transform::kTable) return IncludeObject::kMetadata;
  const meta::TableOptions options = meta::TableOptions::FromQuery(exchange.query);
  if (const auto errors = options.Validate(); !errors.empty()) {
    return meta::NewBadRequest("Unable to convert to Table as requested: " + meta::AggregateMessage(errors));
  }
  if (options.include_object == "Object") return IncludeObject::kObject;
  if (options.include_object == "None") return IncludeObject::kNone;
  return IncludeObject::kMetadata;
}

constexpr std::size_t kHeadersUsual = 8;  // of a response, with what the filters add

http::Response BytesResponse(const Exchange& exchange, int code, std::string_view content_type, base::SharedBytes body,
                             bool may_compress) {
  http::Response response;
  response.status = code;
  response.headers.Reserve(kHeadersUsual);
  response.headers.Add("Content-Type", content_type);
  if (may_compress && body.size() > kGzipThreshold && exchange.allow_gzip && AcceptsGzip(exchange.http)) {
    response.headers.Add("Content-Encoding", "gzip");
    response.headers.Add("Vary", "Accept-Encoding");
    response.body = NewGzipSource(NewBytesSource(std::move(body)));
  } else {
    response.body = std::move(body);
  }
  return response;
}

http::Response ObjectResponse(Exchange& exchange, const ScopePtr& scope, const MediaTypeOptions& media,
                              const storage::ObjectPtr& object, int code, ObjectEncoder::Keep keep) {
  if (media.transform == Transform::kPartialObjectMetadataList) {
    if (scope->codec->custom_resource()) return StatusResponse(exchange, meta::NewPlainError("content is not a list"));
    return StatusResponse(
        exchange,
        meta::Status({.code = 406,
                      .reason = meta::StatusReason::kNotAcceptable,
                      .message = "you requested PartialObjectMetadataList, but the requested object is not a list (*" +
                                 scope->go_package + "." + scope->kind.kind + ")"}));
  }
  auto include = IncludeObjectOf(exchange, media);
  if (!include.ok()) return StatusResponse(exchange, include.error());
  const ObjectEncoder encoder(scope, media, *include);
  using Latency = telemetry::LatencyTrackers;
  const auto begun = base::Clock::Real().Monotonic();
  auto body = encoder.Whole(object, keep);
  // Tables and metadata alone are made of the object; everything else is its encoding.
  exchange.context.latencies.Add(
      media.transform == Transform::kNone ? Latency::kSerializeResponseObject : Latency::kTransformResponseObject,
      base::Clock::Real().Monotonic() - begun);
  if (!body.ok()) return StatusResponse(exchange, body.error());
  AuditResponseObject(exchange, scope, media, *include, object);
  exchange.trace.Serialize(exchange, media, body->size());
  return BytesResponse(exchange, code, encoder.content_type(), *std::move(body), true);
}

void WipeSystemFields(Value object) {
  Value metadata = object["metadata"];
  for (const std::string_view field :
       {"creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"}) {
    metadata.Erase(field);
  }
}

namespace {

// The same text exactly for equal references: members by name, a type letter and a length before each value.
std::string OwnerReferenceKey(const Value& reference) {
  std::string key;
  for (const std::string_view field : {"apiVersion", "blockOwnerDeletion", "controller", "kind", "name", "uid"}) {
    const Value value = reference[field];
    if (value.is_string()) {
      key += 's' + std::to_string(value.as_string().size()) + ':';
      key += value.as_string();
    } else {
      key += value.is_bool() ? (value.as_bool() ? 't' : 'f') : 'n';
    }
  }
  return key;
}

}  // namespace

void DedupOwnerReferences(Exchange& exchange, Value object, bool after_admission) {
  Value references = object.Get("metadata", "ownerReferences");
  if (references.size() < 2) return;
  base::StringSet seen;
  base::StringViewSet reported;
  std::vector<std::string> repeated;  // UIDs, each once
  std::size_t kept = 0;
  for (const Value& reference : references.items()) {
    const std::string_view uid = reference["uid"].as_string();
    if (seen.insert(OwnerReferenceKey(reference)).second) {
      references.items()[kept++] = reference;
    } else if (reported.insert(uid).second) {
      repeated.emplace_back(uid);
    }
  }
  references.Truncate(kept);
  if (repeated.empty()) return;
  exchange.context.warnings.Add(
      ".metadata.ownerReferences contains duplicate entries" +
      std::string(after_admission ? " after mutating admission happens" : "") +
      "; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix "
      "your requests; duplicate UID(s) observed: " +
      base::Join(repeated, ", "));
}

namespace {

// The stored object's name of the field; nothing for a label that the served group does not have.
std::optional<std::string> FieldOf(const registry::FieldLabels& labels, std::string_view group,
                                   std::string_view label) {
  if (labels.aliases_group != "*" && labels.aliases_group != group) return std::string(label);
  if (labels.aliases.empty() || label.starts_with("metadata.")) return std::string(label);
  for (const auto& alias : labels.aliases) {
    if (alias.label == label) return std::string(alias.field);
    if (alias.label.ends_with('.') && label.starts_with(alias.label))
      return std::string(alias.field) + std::string(label.substr(alias.label.size()));
  }
  if (labels.only_aliases) return std::nullopt;
  return std::string(label);
}

}  // namespace

meta::Result<void> ConvertFieldSelector(const Scope& scope, meta::FieldSelector& selector) {
  using Refusal = registry::FieldLabels::Refusal;
  const registry::Strategy& strategy = scope.rest->rest_strategy().row();
  const registry::FieldLabels& labels = scope.definition->field_labels;
  for (auto& requirement : selector.requirements()) {
    std::string& field = requirement.field;
    auto stored = FieldOf(labels, scope.kind.group, field);
    if (!stored) return meta::NewBadRequest("field label not supported: " + field);
    field = *std::move(stored);
    if (field == "metadata.name" || (field == "metadata.namespace" && strategy.selects_namespace)) continue;
    const auto found = std::ranges::find(strategy.selectable_fields, field, &registry::SelectableField::name);
    if (found != strategy.selectable_fields.end()) continue;
    if (strategy.selectable_fields.empty() && strategy.selects_namespace && !scope.codec->custom_resource()) {
      return meta::NewBadRequest(base::GoQuote(field) +
                                 " is not a known field selector: only \"metadata.name\", \"metadata.namespace\"");
    }
    switch (labels.refusal) {
      case Refusal::kNamesKind:
        return meta::NewBadRequest("field label " + base::GoQuote(field) + " not supported for " + scope.kind.kind);
      case Refusal::kNamesGroupVersionKind:
        return meta::NewBadRequest("field label not supported for " + scope.kind.ToString() + ": " + field);
      case Refusal::kPlain:
        return meta::NewBadRequest("field label not supported: " + field);
    }
  }
  return {};
}

}  // namespace keelson::endpoints
