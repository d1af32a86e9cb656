#include "storage/stored_versions.h"

#include "schema/types.h"

#include <string>
#include <string_view>

namespace keelson::storage {
namespace {

constexpr std::string_view kDefinitionsGroup = "apiextensions.k8s.io";
constexpr std::string_view kAdmissionGroup = "admissionregistration.k8s.io";

// Fields of each version of a definition that v1beta1 has once for all versions. In v1: schema; above the versions:
// validation.
struct Shared {
  std::string_view in_version;
  std::string_view in_spec;
  bool columns;
};
constexpr Shared kShared[] = {
    {"schema", "validation", false},
    {"subresources", "subresources", false},
    {"additionalPrinterColumns", "additionalPrinterColumns", true},
    {"selectableFields", "selectableFields", false},
};

Value Shallow(base::Arena& arena, Value map) {
  Value copy = Value::Map(arena, map.size());
  for (const auto& member : map.members()) copy.Set(arena, member.key, member.value);
  return copy;
}

// An empty list and none are the same thing to Go.
bool Absent(const Value& value) { return value.is_null() || (value.is_list() && value.empty()); }
bool Same(const Value& a, const Value& b) { return (Absent(a) && Absent(b)) || (!Absent(a) && !Absent(b) && a == b); }

Value RenameColumns(base::Arena& arena, Value columns, std::string_view from, std::string_view to) {
  Value renamed = Value::List(arena, columns.size());
  for (const Value& column : columns.items()) {
    Value copy = Value::Map(arena, column.size());
    for (const auto& member : column.members()) copy.Set(arena, member.key == from ? to : member.key, member.value);
    renamed.Append(arena, copy);
  }
  return renamed;
}

Value ConversionToStored(base::Arena& arena, Value conversion) {
  Value stored = Value::Map(arena);
  stored.Set(arena, "strategy", conversion["strategy"]);
  const Value webhook = conversion["webhook"];
  if (!webhook["clientConfig"].is_null()) stored.Set(arena, "webhookClientConfig", webhook["clientConfig"]);
  if (!webhook["conversionReviewVersions"].is_null())
    stored.Set(arena, "conversionReviewVersions", webhook["conversionReviewVersions"]);
  return stored;
}

Value ConversionFromStored(base::Arena& arena, Value stored) {
  Value conversion = Value::Map(arena);
  conversion.Set(arena, "strategy", stored["strategy"]);
  const Value client = stored["webhookClientConfig"];
  const Value versions = stored["conversionReviewVersions"];
  if (client.is_null() && versions.is_null()) return conversion;
  Value webhook = conversion.EnsureMap(arena, "webhook");
  if (!client.is_null()) webhook.Set(arena, "clientConfig", client);
  if (!versions.is_null()) webhook.Set(arena, "conversionReviewVersions", versions);
  return conversion;
}

// v1beta1 says what all versions have in common once, above them, and names the first version.
Value SpecToStored(base::Arena& arena, Value spec) {
  Value stored = Shallow(arena, spec);
  stored.Set(arena, "preserveUnknownFields", Value(spec["preserveUnknownFields"].as_bool()));
  if (!spec["conversion"].is_null()) stored.Set(arena, "conversion", ConversionToStored(arena, spec["conversion"]));
  const auto given = spec["versions"].items();
  if (given.empty()) return stored;
  stored.Set(arena, "version", given[0]["name"]);
  Value versions = Value::List(arena, given.size());
  for (const Value& version : given) versions.Append(arena, Shallow(arena, version));
  stored.Set(arena, "versions", versions);
  for (const Shared& shared : kShared) {
    const Value first = given[0][shared.in_version];
    bool identical = true;
    for (const Value& version : given) identical = identical && Same(version[shared.in_version], first);
    if (identical) {
      for (Value& version : versions.items()) version.Erase(shared.in_version);
      if (!Absent(first))
        stored.Set(arena, shared.in_spec, shared.columns ? RenameColumns(arena, first, "jsonPath", "JSONPath") : first);
      continue;
    }
    if (!shared.columns) continue;
    for (Value& version : versions.items()) {
      if (const Value columns = version[shared.in_version]; !columns.is_null()) {
        version.Set(arena, shared.in_version, RenameColumns(arena, columns, "jsonPath", "JSONPath"));
      }
    }
  }
  return stored;
}

Value SpecFromStored(base::Arena& arena, Value stored) {
  Value spec = Shallow(arena, stored);
  for (const std::string_view gone :
       {"version", "validation", "subresources", "additionalPrinterColumns", "selectableFields"})
    spec.Erase(gone);
  // v1beta1's default is true, v1's false.
  const Value preserve = stored["preserveUnknownFields"];
  spec.Erase("preserveUnknownFields");
  if (preserve.is_null() || preserve.as_bool()) spec.Set(arena, "preserveUnknownFields", Value(true));
  Value conversion = stored["conversion"];
  if (conversion.is_null()) {
    conversion = Value::Map(arena);
    conversion.Set(arena, "strategy", "None");
  }
  spec.Set(arena, "conversion", ConversionFromStored(arena, conversion));

  Value versions = Value::List(arena);
  for (const Value& version : stored["versions"].items()) versions.Append(arena, Shallow(arena, version));
  if (versions.empty() && !stored["version"].as_string().empty()) {
    Value only = Value::Map(arena);
    only.Set(arena, "name", stored["version"]);
    only.Set(arena, "served", Value(true));
    only.Set(arena, "storage", Value(true));
    versions.Append(arena, only);
  }
  for (Value& version : versions.items()) {
    for (const Shared& shared : kShared) {
      Value value = stored[shared.in_spec];
      if (value.is_null()) value = version[shared.in_version];
      if (value.is_null()) continue;
      version.Set(arena, shared.in_version,
                  shared.columns ? RenameColumns(arena, value, "JSONPath", "jsonPath") : value);
    }
  }
  spec.Set(arena, "versions", versions);
  return spec;
}

// Defaults of a webhook in admissionregistration.k8s.io/v1beta1 that differ from v1's, which run later.
void DefaultOldWebhook(base::Arena& arena, Value webhook) {
  const auto set = [&](std::string_view field, Value value) {
    if (webhook[field].is_null()) webhook.Set(arena, field, value);
  };
  set("failurePolicy", Value("Ignore"));
  set("matchPolicy", Value("Exact"));
  set("sideEffects", Value("Unknown"));
  set("timeoutSeconds", Value(std::int64_t{30}));
  if (!webhook["admissionReviewVersions"].empty()) return;
  Value versions = Value::List(arena);
  versions.Append(arena, Value("v1beta1"));
  webhook.Set(arena, "admissionReviewVersions", versions);
}

// Versions of this group have the same fields; the defaults of webhooks differ.
Outcome<Value, std::string> ConvertAdmissionRegistration(base::Arena& arena, Value object, std::string_view from,
                                                         std::string_view to) {
  Value converted = Shallow(arena, object);
  converted.Set(arena, "apiVersion", Value::String(arena, to));
  const Value webhooks = object["webhooks"];
  if (!webhooks.is_list() || !from.ends_with("/v1beta1")) return converted;
  Value completed = Value::List(arena, webhooks.size());
  for (const Value& webhook : webhooks.items()) {
    const Value copy = Shallow(arena, webhook);
    DefaultOldWebhook(arena, copy);
    completed.Append(arena, copy);
  }
  converted.Set(arena, "webhooks", completed);
  return converted;
}

}  // namespace

Outcome<Value, std::string> ConvertDefinition(base::Arena& arena, Value object, std::string_view from,
                                              std::string_view to) {
  Value converted = Shallow(arena, object);
  converted.Set(arena, "apiVersion", Value::String(arena, to));
  if (from == to) return converted;
  const bool storing = to.ends_with("/v1beta1");
  if (!storing && !from.ends_with("/v1beta1")) return "definitions of version " + std::string(from) + " are not known";
  const Value spec = object["spec"];
  if (spec.is_map()) converted.Set(arena, "spec", storing ? SpecToStored(arena, spec) : SpecFromStored(arena, spec));
  return converted;
}

const schema::Struct* StoredType(const meta::GroupVersionKind& kind) {
  if (const schema::Struct* served = schema::FindKind(kind.group, kind.version, kind.kind)) return served;
  const schema::Struct& definition = schema::types::apiextensions_v1beta1::kCustomResourceDefinition;
  const bool stored_only = kind.group == kDefinitionsGroup && kind.version == "v1beta1" && kind.kind == definition.name;
  return stored_only ? &definition : nullptr;
}

Convert StoredConversion(const meta::GroupResource& resource) {
  if (resource.group == kDefinitionsGroup) return ConvertDefinition;  // the group has one resource
  if (resource.group == kAdmissionGroup) return ConvertAdmissionRegistration;
  return {};
}

}  // namespace keelson::storage
