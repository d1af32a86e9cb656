#include "apidocs/openapi_schemas.h"

#include <algorithm>

#include "apidocs/openapi_descriptions.h"
#include "apidocs/openapi_model.h"
#include "object/json_text.h"

namespace keelson::apidocs {
namespace {

// Definitions refer to types of any table.
std::span<const schema::Package* const> Tables() { return schema::Packages(); }

using base::Arena;
using schema::Field;
using schema::Kind;
using schema::Type;

constexpr std::string_view kMetaPrefix = "io.k8s.apimachinery.pkg.apis.meta.v1.";
constexpr std::string_view kVersionInfo = "io.k8s.apimachinery.pkg.version.Info";

// Types that are not structs in the tables but have a definition.
std::string WellKnown(const Type& type) {
  switch (type.kind) {
    case Kind::kTime:
      return std::string(kMetaPrefix) + "Time";
    case Kind::kMicroTime:
      return std::string(kMetaPrefix) + "MicroTime";
    case Kind::kDuration:
      return std::string(kMetaPrefix) + "Duration";
    case Kind::kFieldsV1:
      return std::string(kMetaPrefix) + "FieldsV1";
    case Kind::kQuantity:
      return "io.k8s.apimachinery.pkg.api.resource.Quantity";
    case Kind::kIntOrString:
      return "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
    case Kind::kRaw:
      return "io.k8s.apimachinery.pkg.runtime.RawExtension";
    case Kind::kJSON:
      return "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON";
    case Kind::kEither:
      return DefinitionName(*type.structure);
    case Kind::kStruct:
      return DefinitionName(*type.structure);
    default:
      return {};
  }
}

// Facts that upstream's documents state and the tables do not hold, because nothing else depends on them.
struct FieldOf {
  std::string_view package;
  std::string_view type;
  std::string_view field;  // "*": all
};
// The default is the zero value, and said.
constexpr FieldOf kZeroIsSaid[] = {
    {"autoscaling/v1", "ScaleSpec", "replicas"}, {"core/v1", "AzureDiskVolumeSource", "readOnly"},
    {"core/v1", "ConfigMapEnvSource", "name"},   {"core/v1", "ConfigMapKeySelector", "name"},
    {"core/v1", "ConfigMapProjection", "name"},  {"core/v1", "ConfigMapVolumeSource", "name"},
    {"core/v1", "FileKeySelector", "optional"},  {"core/v1", "GRPCAction", "service"},
    {"core/v1", "LocalObjectReference", "name"}, {"core/v1", "ReplicationControllerSpec", "minReadySeconds"},
    {"core/v1", "SecretEnvSource", "name"},      {"core/v1", "SecretKeySelector", "name"},
    {"core/v1", "SecretProjection", "name"},
};
// The values that a claim's resource may have while it is resized; the table says them of no field.
constexpr std::string_view kClaimResourceStatuses[] = {"ControllerResizeInProgress", "ControllerResizeInfeasible",
                                                       "NodeResizeInProgress", "NodeResizeInfeasible",
                                                       "NodeResizePending"};
// Fields without a description upstream, so their references are not wrapped.
constexpr FieldOf kBareReferences[] = {{"apiextensions/v1", "JSONSchemaProps", "*"},
                                       {"networking/v1", "IngressRule", "http"}};
constexpr FieldOf kGranularIsSaid[] = {{"core/v1", "PersistentVolumeSpec", "claimRef"},
                                       {"core/v1", "PersistentVolumeClaimStatus", "allocatedResourceStatuses"}};

bool Holds(std::span<const FieldOf> rows, const schema::Struct& type, const Field& field) {
  return std::ranges::any_of(rows, [&](const FieldOf& row) {
    return row.package == type.package && row.type == type.name && (row.field == field.name || row.field == "*");
  });
}

std::string_view PatchStrategyText(schema::PatchStrategy strategy) {
  switch (strategy) {
    case schema::PatchStrategy::kMerge:
      return "merge";
    case schema::PatchStrategy::kReplace:
      return "replace";
    case schema::PatchStrategy::kRetainKeys:
      return "retainKeys";
    case schema::PatchStrategy::kMergeRetainKeys:
      return "merge,retainKeys";
    default:
      return {};
  }
}

}  // namespace

DefinitionWriter::DefinitionWriter(Arena& arena, OpenAPIFormat format, std::span<const DiscoveryGroup> groups,
                                   const schema::Package* only)
    : arena_(arena), format_(format), groups_(groups), only_(only) {}

void DefinitionWriter::Need(const std::string& name) {
  if (made_.contains(name) || left_.contains(name)) return;
  made_.emplace(name, Value());
  pending_.push_back(name);
}

Value DefinitionWriter::Reference(const std::string& name) {
  Need(name);
  Value reference = Map();
  reference.Set(
      arena_, "$ref",
      Value::String(arena_, (format_ == OpenAPIFormat::kV3 ? "#/components/schemas/" : "#/definitions/") + name));
  return reference;
}

Value DefinitionWriter::Definitions() {
  for (const schema::Package* package : Tables()) {
    for (const schema::Struct& type : package->types) types_.emplace(DefinitionName(type), &type);
  }
  while (!pending_.empty()) {
    const std::string name = pending_.back();
    pending_.pop_back();
    const Value definition = Define(name);
    made_[name] = definition;
  }
  Value out = Map();
  for (const auto& [name, definition] : made_) out.Set(arena_, arena_.Copy(name), definition);
  return out;
}

Value DefinitionWriter::Define(const std::string& name) {
  const std::string_view last = std::string_view(name).substr(name.rfind('.') + 1);
  const auto found = types_.find(name);
  const bool anything = last == "JSON" || last.starts_with("JSONSchemaPropsOr");
  if (found != types_.end() && !anything) return DefineStruct(*found->second);
  Value value = DefineWellKnown(name, last);
  const std::string_view package = name == kVersionInfo    ? "version"
                                   : found == types_.end() ? "meta/v1"
                                                           : found->second->package;
  if (const std::string_view text = FindDescription(package, last, ""); !text.empty())
    value.Set(arena_, "description", text);
  return value;
}

// Types without a table: scalars with a name, types that may be anything, and the answer of /version.
Value DefinitionWriter::DefineWellKnown(const std::string& name, std::string_view last) {
  const bool v3 = format_ == OpenAPIFormat::kV3;
  const auto simple = [&](std::string_view type, std::string_view format = {}) {
    Value value = Map();
    value.Set(arena_, "type", type);
    if (!format.empty()) value.Set(arena_, "format", format);
    return value;
  };
  const auto one_of = [&](std::string_view first, std::string_view second) {
    Value list = Value::List(arena_);
    list.Append(arena_, simple(first));
    list.Append(arena_, simple(second));
    return list;
  };
  if (name.starts_with(kMetaPrefix)) {
    if (last == "Time" || last == "MicroTime") return simple("string", "date-time");
    if (last == "Duration") return simple("string");
    if (last == "FieldsV1" || last == "Patch") return simple("object");
  }
  if (last == "Quantity" && name.ends_with("api.resource.Quantity")) {
    if (!v3) return simple("string");
    Value value = Map();
    value.Set(arena_, "oneOf", one_of("string", "number"));
    return value;
  }
  if (last == "IntOrString") {
    if (!v3) return simple("string", "int-or-string");
    Value value = Map();
    value.Set(arena_, "format", "int-or-string");
    value.Set(arena_, "oneOf", one_of("integer", "string"));
    return value;
  }
  if (last == "RawExtension") return simple("object");
  if (name == kVersionInfo) {
    Value properties = Map();
    Value required = Value::List(arena_);
    for (const char* field :
         {"major", "minor", "emulationMajor", "emulationMinor", "minCompatibilityMajor", "minCompatibilityMinor",
          "gitVersion", "gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"}) {
      const bool optional =
          std::string_view(field).starts_with("emulation") || std::string_view(field).starts_with("minCompatibility");
      Value property = simple("string");
      if (v3 && !optional) property.Set(arena_, "default", "");
      property.Set(arena_, "description", FindDescription("version", last, field));
      properties.Set(arena_, field, property);
      if (!optional) required.Append(arena_, field);
    }
    Value value = Map();
    value.Set(arena_, "properties", properties);
    value.Set(arena_, "required", required);
    value.Set(arena_, "type", "object");
    return value;
  }
  return Map();  // anything
}

Value DefinitionWriter::DefineStruct(const schema::Struct& type) {
  Value value = Map();
  if (const std::string_view text = FindDescription(type.package, type.name, ""); !text.empty())
    value.Set(arena_, "description", text);
  Value properties = Map();
  Value required = Value::List(arena_);
  for (const Field* field : type.json_fields) {
    properties.Set(arena_, field->name, Property(type, *field));
    if (field->required) required.Append(arena_, field->name);
  }
  if (!properties.empty()) {
    properties.SortMembers();
    value.Set(arena_, "properties", properties);
  }
  if (!required.empty()) value.Set(arena_, "required", required);
  value.Set(arena_, "type", "object");
  const Value kinds = KindsOf(type);
  if (!kinds.empty()) value.Set(arena_, "x-kubernetes-group-version-kind", kinds);
  if (type.map_topology == schema::MapTopology::kAtomic) value.Set(arena_, "x-kubernetes-map-type", "atomic");
  if (!type.union_members.empty()) {
    Value fields = Map();
    for (const std::string_view member : type.union_members) {
      std::string text(member);
      text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
      fields.Set(arena_, member, Value::String(arena_, text));
    }
    Value one = Map();
    if (!type.union_discriminator.empty()) one.Set(arena_, "discriminator", type.union_discriminator);
    one.Set(arena_, "fields-to-discriminateBy", fields);
    Value unions = Value::List(arena_);
    unions.Append(arena_, one);
    value.Set(arena_, "x-kubernetes-unions", unions);
  }
  return value;
}

// x-kubernetes-group-version-kind of a type. Options and events are in every group version.
Value DefinitionWriter::KindsOf(const schema::Struct& type) {
  Value kinds = Value::List(arena_);
  const bool everywhere = type.package == "meta/v1" && (type.name == "DeleteOptions" || type.name == "WatchEvent");
  std::vector<std::pair<std::string_view, std::string_view>> versions;
  if (everywhere) {
    // Every group version that apimachinery registers, also those that are no longer served.
    static constexpr std::string_view kElsewhere[] = {"apidiscovery.k8s.io", "apiserver.config.k8s.io", "audit.k8s.io"};
    // Upstream's document of custom resources knows the groups of client-go.
    static constexpr std::string_view kNotInClients[] = {"admission.k8s.io", "apiextensions.k8s.io",
                                                         "apiregistration.k8s.io", "imagepolicy.k8s.io"};
    const bool of_custom_resources = only_ == nullptr && format_ == OpenAPIFormat::kV3;
    for (const schema::Package* package : Tables()) {
      if (of_custom_resources && std::ranges::find(kNotInClients, package->group) != std::end(kNotInClients)) continue;
      if (!package->serves || std::ranges::find(kElsewhere, package->group) != std::end(kElsewhere)) continue;
      const bool core = package->group.empty() && package->version == "v1";
      if (only_ == nullptr || core || package == only_) versions.emplace_back(package->group, package->version);
    }
    if (only_ == nullptr && !of_custom_resources) {
      versions.emplace_back("apiextensions.k8s.io", "v1beta1");
      versions.emplace_back("apiregistration.k8s.io", "v1beta1");
    }
  } else if (type.package == "meta/v1") {
    static constexpr std::string_view kKinds[] = {"Status", "APIVersions", "APIGroup", "APIGroupList",
                                                  "APIResourceList"};
    if (std::ranges::find(kKinds, type.name) != std::end(kKinds)) versions.emplace_back("", "v1");
  } else {
    for (const schema::Package* package : Tables()) {
      if (package->serves && package->name == type.package) versions.emplace_back(package->group, package->version);
    }
    const bool is_kind = type.FindField("kind") != nullptr && type.FindField("apiVersion") != nullptr &&
                         type.FindField("metadata") != nullptr;
    if (!is_kind) versions.clear();
  }
  std::ranges::sort(versions);
  for (const auto& [group, version] : versions) {
    Value kind = Map();
    kind.Set(arena_, "group", group);
    kind.Set(arena_, "kind", type.name);
    kind.Set(arena_, "version", version);
    kinds.Append(arena_, kind);
  }
  return kinds;
}

// `described`: it has a description, so a reference needs its wrapper in v3. `zero_default`: write the zero value as
// default.
Value DefinitionWriter::TypeValue(const Type& type, bool described, bool zero_default) {
  const bool v3 = format_ == OpenAPIFormat::kV3;
  Value value = Map();
  const auto scalar = [&](std::string_view name, std::string_view format, Value zero) {
    value.Set(arena_, "type", name);
    if (!format.empty()) value.Set(arena_, "format", format);
    if (v3 && zero_default && !zero.is_null()) value.Set(arena_, "default", zero);
    return value;
  };
  switch (type.kind) {
    case Kind::kString:
      return scalar("string", "", "");
    case Kind::kBool:
      return scalar("boolean", "", false);
    case Kind::kInt32:
      return scalar("integer", "int32", 0);
    case Kind::kInt64:
      return scalar("integer", "int64", 0);
    case Kind::kDouble:
      return scalar("number", "double", 0);
    case Kind::kBytes:
      return scalar("string", "byte", {});
    case Kind::kList:
      value.Set(arena_, "items", Element(*type.element));
      value.Set(arena_, "type", "array");
      return value;
    case Kind::kMap:
      value.Set(arena_, "additionalProperties", Element(*type.element));
      value.Set(arena_, "type", "object");
      return value;
    default:
      break;
  }
  const std::string name = WellKnown(type);
  const bool default_too = v3 && zero_default && type.kind == Kind::kStruct;
  if (!v3 || (!described && !default_too)) return Reference(name);
  Value all = Value::List(arena_);
  all.Append(arena_, Reference(name));
  value.Set(arena_, "allOf", all);
  if (default_too) value.Set(arena_, "default", Map());
  return value;
}

Value DefinitionWriter::Element(const Type& type) { return TypeValue(type, false, true); }

Value DefinitionWriter::Property(const schema::Struct& type, const Field& field) {
  const bool v3 = format_ == OpenAPIFormat::kV3;
  const bool container = field.type->kind == Kind::kStruct;
  const bool zero = (!field.pointer && (field.always || container)) || Holds(kZeroIsSaid, type, field);
  const bool bare = Holds(kBareReferences, type, field) && field.name != "default";
  Value value = TypeValue(*field.type, !bare, zero);
  if (v3 && !field.default_text.empty()) {
    if (const auto value_of = object::ParseJSON(arena_, field.default_text)) value.Set(arena_, "default", *value_of);
  }
  std::span<const std::string_view> allowed = field.enum_values;
  if (type.name == "PersistentVolumeClaimStatus" && field.name == "allocatedResourceStatuses")
    allowed = kClaimResourceStatuses;
  if (!allowed.empty()) {
    Value values = Value::List(arena_);
    for (const std::string_view one : allowed) values.Append(arena_, one);
    // Of a list or map it is the items that are limited.
    Value limited = field.type->kind == Kind::kList  ? value["items"]
                    : field.type->kind == Kind::kMap ? value["additionalProperties"]
                                                     : value;
    limited.Set(arena_, "enum", values);
  }
  if (const std::string_view text = FindDescription(type.package, type.name, field.name); !text.empty())
    value.Set(arena_, "description", text);
  if (field.has_list_topology) {
    static constexpr std::string_view kNames[] = {"atomic", "set", "map"};
    value.Set(arena_, "x-kubernetes-list-type", kNames[static_cast<std::size_t>(field.list_topology)]);
    if (!field.list_keys.empty()) {
      Value keys = Value::List(arena_);
      for (const std::string_view key : field.list_keys) keys.Append(arena_, key);
      value.Set(arena_, "x-kubernetes-list-map-keys", keys);
    }
  }
  if (field.map_topology == schema::MapTopology::kAtomic) value.Set(arena_, "x-kubernetes-map-type", "atomic");
  if (Holds(kGranularIsSaid, type, field)) value.Set(arena_, "x-kubernetes-map-type", "granular");
  if (const std::string_view strategy = PatchStrategyText(field.patch_strategy); !strategy.empty()) {
    value.Set(arena_, "x-kubernetes-patch-strategy", strategy);
  }
  if (!field.patch_merge_key.empty()) value.Set(arena_, "x-kubernetes-patch-merge-key", field.patch_merge_key);
  return value;
}

}  // namespace keelson::apidocs
