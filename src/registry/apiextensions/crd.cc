// CustomResourceDefinition: names, versions, conversion, status.
#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/strings.h"
#include "codec/base64.h"
#include "object/json_text.h"
#include "registry/apiextensions/schema_rules.h"
#include "registry/apiextensions/strategies.h"
#include "registry/hub_types.h"
#include "registry/rules/rules.h"
#include "registry/rules/webhook.h"

namespace keelson::registry {
namespace {

using namespace rules;  // NOLINT
using validation::Duplicate;
using validation::Forbidden;
using validation::Invalid;
using validation::Required;

constexpr std::int64_t kSelectableFieldsMax = 8;
constexpr std::size_t kDeprecationWarningBytesMax = 256;
constexpr std::string_view kApprovalAnnotation = "api-approved.kubernetes.io";
constexpr std::string_view kStringFormats[] = {
    "bsonobjectid", "uri",   "email",    "hostname", "ipv4",     "ipv6",     "cidr",         "mac",        "uuid",
    "uuid3",        "uuid4", "uuid5",    "isbn",     "isbn10",   "isbn13",   "creditcard",   "ssn",        "hexcolor",
    "rgbcolor",     "byte",  "password", "date",     "duration", "datetime", "k8sshortname", "k8slongname"};

const HubTypes& Types() {
  static const HubTypes types(
      "Version Name:string Served:bool Storage:bool Deprecated:bool DeprecationWarning:*string\n"
      "Subresources Status:*SubresourceStatus Scale:*SubresourceScale\n"
      "SubresourceStatus\n"
      "SubresourceScale SpecReplicasPath:string StatusReplicasPath:string LabelSelectorPath:*string\n"
      "Column Name:string Type:string Format:string Description:string Priority:int JSONPath=jsonPath:string\n"
      "Selectable JSONPath=jsonPath:string\n");
  return types;
}

// ---- Defaults and prepare

// The version that is stored from now on joins those that were.
void RecordStorageVersion(base::Arena& arena, Value object) {
  for (const Value& version : object["spec"]["versions"].items()) {
    if (!version["storage"].as_bool()) continue;
    const std::string_view name = version["name"].as_string();
    Value stored = object.EnsureMap(arena, "status").EnsureList(arena, "storedVersions");
    const bool known = std::ranges::any_of(stored.items(), [&](const Value& one) { return one.as_string() == name; });
    if (!known) stored.Append(arena, Value::String(arena, name));
    return;
  }
}

void SetDefaults(base::Arena& arena, Value object) {
  Value spec = object.EnsureMap(arena, "spec");
  Value names = spec.EnsureMap(arena, "names");
  const std::string_view kind = names["kind"].as_string();
  if (names["singular"].as_string().empty() && !kind.empty())
    names.Set(arena, "singular", Value::String(arena, base::ToLower(kind)));
  if (names["listKind"].as_string().empty() && !kind.empty())
    names.Set(arena, "listKind", Value::String(arena, std::string(kind) + "List"));
  if (spec["conversion"].is_null()) spec.EnsureMap(arena, "conversion").Set(arena, "strategy", "None");
  const Value webhook = spec["conversion"]["webhook"];
  if (Value service = webhook["clientConfig"]["service"]; service.is_map()) Default(arena, service, "port", 443);
  // The internal version has these two fields beside strategy, and no webhook without them.
  if (webhook.is_map() && webhook["clientConfig"].is_null() && webhook["conversionReviewVersions"].is_null())
    spec["conversion"].Erase("webhook");
  if (object["status"]["storedVersions"].empty()) RecordStorageVersion(arena, object);
}

void PrepareForCreate(const Call& call, Value object, Value) { RecordStorageVersion(call.arena, object); }
void PrepareForUpdate(const Call& call, Value object, Value) { RecordStorageVersion(call.arena, object); }

// ---- Validation

// Per-version parts that are the same in all versions are hoisted to the top in the validated (internal) form; errors
// have those paths.
struct Hoisted {
  bool schema = true;
  bool subresources = true;
  bool columns = true;
  bool selectable = true;
};

Hoisted HoistedParts(const Value& versions) {
  Hoisted hoisted;
  const Value first = versions[std::size_t{0}];
  for (const Value& version : versions.items()) {
    hoisted.schema = hoisted.schema && version["schema"].is_null() == first["schema"].is_null() &&
                     crd::EqualSchemas(version["schema"]["openAPIV3Schema"], first["schema"]["openAPIV3Schema"]);
    hoisted.subresources = hoisted.subresources && version["subresources"] == first["subresources"];
    hoisted.columns =
        hoisted.columns && SemanticEqual(version["additionalPrinterColumns"], first["additionalPrinterColumns"]);
    hoisted.selectable = hoisted.selectable && SemanticEqual(version["selectableFields"], first["selectableFields"]);
  }
  return hoisted;
}

std::string ListJSON(const Value& list, std::string_view type) {
  if (list.empty()) return "null";
  std::string out = "[";
  for (const Value& item : list.items()) out += (out.size() > 1 ? "," : "") + Types().JSON(item, type);
  return out + "]";
}

// spec.versions as JSON of upstream's internal type, which errors show: hoisted parts are no longer in the versions.
std::string InternalVersionsJSON(const Value& versions, const Hoisted& hoisted) {
  if (versions.is_null()) return "null";
  std::string out = "[";
  for (const Value& version : versions.items()) {
    std::string one = Types().JSON(version, "Version");
    one.pop_back();
    one += ",\"Schema\":";
    if (hoisted.schema || version["schema"].is_null() || out.size() > crd::kRenderedSchemaMax) {
      one += "null";
    } else {
      const Value schema = version["schema"]["openAPIV3Schema"];
      one += "{\"OpenAPIV3Schema\":" + (schema.is_map() ? crd::InternalSchemaJSON(schema) : "null") + "}";
    }
    const bool subresources = !hoisted.subresources && !version["subresources"].is_null();
    one += ",\"Subresources\":" + (subresources ? Types().JSON(version["subresources"], "Subresources") : "null");
    one += ",\"AdditionalPrinterColumns\":" +
           (hoisted.columns ? "null" : ListJSON(version["additionalPrinterColumns"], "Column"));
    one +=
        ",\"SelectableFields\":" + (hoisted.selectable ? "null" : ListJSON(version["selectableFields"], "Selectable"));
    out += (out.size() > 1 ? "," : "") + one + "}";
  }
  return out + "]";
}

struct Options {
  bool require_schema = true;
  bool require_recognized_review_version = true;
  bool require_valid_ca_bundle = false;  // ratcheting: the old definition's bundle was valid
  bool versions_unchanged = false;       // ratcheting: by an update
};

bool HasStatus(const Value& version) { return !version["subresources"]["status"].is_null(); }

void ValidateSimplePath(std::string_view text, const FieldPath& path, FieldErrors& errors) {
  if (!text.starts_with('.')) errors.push_back(Invalid(path, text, "must be a simple json path starting with ."));
}

void ValidateReplicasPath(const Value& scale, std::string_view field, std::string_view under, const FieldPath& path,
                          FieldErrors& errors) {
  const std::string name = "scale." + std::string(field);
  const FieldPath at = path.Child(name);
  const std::string_view text = scale[field].as_string();
  if (text.empty()) {
    errors.push_back(Required(at));
  } else if (!text.starts_with('.')) {
    ValidateSimplePath(text, at, errors);
  } else if (!text.starts_with(std::string(under) + ".")) {
    errors.push_back(Invalid(at, text, "should be a json path under " + std::string(under)));
  }
}

void ValidateSubresources(const Value& subresources, const FieldPath& path, FieldErrors& errors) {
  const Value scale = subresources["scale"];
  if (scale.is_null()) return;
  ValidateReplicasPath(scale, "specReplicasPath", ".spec", path, errors);
  ValidateReplicasPath(scale, "statusReplicasPath", ".status", path, errors);
  const std::string_view selector = scale["labelSelectorPath"].as_string();
  if (selector.empty()) return;
  const FieldPath at = path.Child("scale.labelSelectorPath");
  if (!selector.starts_with('.')) {
    ValidateSimplePath(selector, at, errors);
  } else if (!selector.starts_with(".spec.") && !selector.starts_with(".status.")) {
    errors.push_back(Invalid(at, selector, "should be a json path under either .spec or .status"));
  }
}

void ValidateColumns(const Value& columns, const FieldPath& path, FieldErrors& errors) {
  constexpr std::string_view kTypes = "must be one of boolean,date,integer,number,string";
  std::int64_t index = 0;
  for (const Value& column : columns.items()) {
    const FieldPath at = path.Index(index++);
    if (column["name"].as_string().empty()) errors.push_back(Required(at.Child("name")));
    const std::string_view type = column["type"].as_string();
    if (type.empty()) {
      errors.push_back(Required(at.Child("type"), kTypes));
    } else if (!OneOf(type, {"boolean", "date", "integer", "number", "string"})) {
      errors.push_back(Invalid(at.Child("type"), type, kTypes));
    }
    const std::string_view format = column["format"].as_string();
    if (!format.empty() &&
        !OneOf(format, {"byte", "date", "date-time", "double", "float", "int32", "int64", "password"})) {
      errors.push_back(
          Invalid(at.Child("format"), format, "must be one of byte,date,date-time,double,float,int32,int64,password"));
    }
    const std::string_view json_path = column["jsonPath"].as_string();
    if (json_path.empty()) {
      errors.push_back(Required(at.Child("JSONPath")));
    } else {
      ValidateSimplePath(json_path, at.Child("JSONPath"), errors);
    }
  }
}

// `parent` is the path of the version, or of spec where the fields are hoisted.
void ValidateSelectableFields(const Value& fields, const Value& schema, const FieldPath& parent, FieldErrors& errors) {
  if (const std::string problem = crd::UnsupportedField(schema); !problem.empty())
    errors.push_back(Invalid(parent.Child("schema.openAPIV3Schema"), "", problem));
  const FieldPath path = parent.Child("selectableFields");
  std::set<std::string_view> unique;
  std::int64_t index = 0;
  for (const Value& field : fields.items()) {
    const FieldPath item = path.Index(index++);
    const FieldPath at = item.Child("jsonPath");
    const std::string_view text = field["jsonPath"].as_string();
    if (text.empty()) {
      errors.push_back(Required(at));
      continue;
    }
    const crd::FieldPathResult found = crd::FollowFieldPath(text, schema, false);
    if (!found.problem.empty()) {
      errors.push_back(Invalid(at, text, "is an invalid path: " + found.problem));
      continue;
    }
    if (found.root == "metadata") errors.push_back(Invalid(at, text, "must not point to fields in metadata"));
    if (!OneOf(found.schema["type"].as_string(), {"string", "boolean", "integer"})) {
      errors.push_back(Invalid(at, text,
                               "must point to a field of type string, boolean or integer. Enum string fields and "
                               "strings with formats are allowed."));
    }
    if (!unique.insert(text).second) errors.push_back(Duplicate(at, Value(text)));
  }
  const auto count = static_cast<std::int64_t>(unique.size());
  if (count > kSelectableFieldsMax) errors.push_back(validation::TooMany(path, count, kSelectableFieldsMax));
}

void ValidateDeprecationWarning(const Value& version, const FieldPath& path, FieldErrors& errors) {
  const Value warning = version["deprecationWarning"];
  if (warning.is_null()) return;
  const FieldPath at = path.Child("deprecationWarning");
  const std::string_view text = warning.as_string();
  // The field is a pointer upstream, so that errors show it as JSON.
  const auto invalid = [&](std::string_view detail) {
    errors.push_back(InvalidRendered(at, object::ToJSON(warning), detail));
  };
  if (!version["deprecated"].as_bool()) return invalid("can only be set for deprecated versions");
  if (text.size() > kDeprecationWarningBytesMax) invalid("must be <= 256 characters long");
  if (text.empty()) invalid("must not be an empty string");
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x20 && byte != 0x7f) continue;
    invalid("must only contain printable UTF-8 characters; non-printable character found at index " +
            std::to_string(i));
    break;
  }
}

void ValidateVersion(const Call& call, const Value& version, const Hoisted& hoisted, const FieldPath& path,
                     FieldErrors& errors) {
  const std::string_view name = version["name"].as_string();
  if (const Messages messages = validation::IsDNS1035Label(name); !messages.empty()) {
    errors.push_back(Invalid(path.Child("name"), name, base::Join(messages, ",")));
  }
  ValidateDeprecationWarning(version, path, errors);
  const Value schema = version["schema"]["openAPIV3Schema"];
  if (!hoisted.schema && schema.is_map()) {
    const FieldPath at = path.Child("schema");
    crd::ValidateSchema(call.arena, schema, HasStatus(version), at.Child("openAPIV3Schema"), errors);
  }
  if (!hoisted.subresources) ValidateSubresources(version["subresources"], path.Child("subresources"), errors);
  if (!hoisted.columns)
    ValidateColumns(version["additionalPrinterColumns"], path.Child("additionalPrinterColumns"), errors);
  if (!hoisted.selectable && !version["selectableFields"].empty()) {
    const FieldPath at = path.Child("selectableFields");
    if (hoisted.schema || !schema.is_map()) {
      errors.push_back(Invalid(at, "", "may only be set when `version.schema.openAPIV3Schema` is not included"));
    } else {
      ValidateSelectableFields(version["selectableFields"], schema, path, errors);
    }
  }
}

void ValidateLabel(std::string_view text, const FieldPath& path, bool mixed_case, FieldErrors& errors) {
  if (text.empty()) return;
  const Messages messages = validation::IsDNS1035Label(mixed_case ? base::ToLower(text) : std::string(text));
  if (messages.empty()) return;
  errors.push_back(Invalid(
      path, text, (mixed_case ? "may have mixed case, but should otherwise match: " : "") + base::Join(messages, ",")));
}

void ValidateNames(const Value& names, const FieldPath& path, FieldErrors& errors) {
  ValidateLabel(names["plural"].as_string(), path.Child("plural"), false, errors);
  ValidateLabel(names["singular"].as_string(), path.Child("singular"), false, errors);
  ValidateLabel(names["kind"].as_string(), path.Child("kind"), true, errors);
  ValidateLabel(names["listKind"].as_string(), path.Child("listKind"), true, errors);
  const auto each = [&](std::string_view field) {
    const FieldPath list = path.Child(field);
    std::int64_t index = 0;
    for (const Value& item : names[field].items()) {
      const FieldPath at = list.Index(index++);
      const std::string_view text = item.as_string();
      if (const Messages messages = validation::IsDNS1035Label(text); !messages.empty()) {
        errors.push_back(Invalid(at, text, base::Join(messages, ",")));
      }
    }
  };
  each("shortNames");
  const std::string_view kind = names["kind"].as_string();
  if (!kind.empty() && kind == names["listKind"].as_string()) {
    errors.push_back(Invalid(path.Child("listKind"), kind, "kind and listKind may not be the same"));
  }
  each("categories");
}

// An absent bundle means the system's roots.
bool HasValidCABundle(const Value& client) {
  const std::string_view text = client["caBundle"].as_string();
  std::string pem(text.size() / 4 * 3 + 3, '\0');
  pem.resize(codec::CheckBase64(text).valid ? codec::ReadBase64(text, pem.data()) : 0);
  return pem.empty() || (pem.find("-----BEGIN ") != std::string::npos && pem.find("-----END ") != std::string::npos);
}

void ValidateConversion(const Value& spec, const Options& options, const FieldPath& spec_path, FieldErrors& errors) {
  const Value conversion = spec["conversion"];
  if (conversion.is_null()) return;
  const FieldPath path = spec_path.Child("conversion");
  const std::string_view strategy = conversion["strategy"].as_string();
  if (strategy != "None" && spec["preserveUnknownFields"].as_bool()) {
    errors.push_back(Invalid(path.Child("strategy"), strategy, "must be None if spec.preserveUnknownFields is true"));
  }
  RequireOneOf(strategy, {"None", "Webhook"}, path.Child("strategy"), errors);
  const Value client = conversion["webhook"]["clientConfig"];
  const Value versions = conversion["webhook"]["conversionReviewVersions"];
  const FieldPath client_path = path.Child("webhookClientConfig");
  const FieldPath versions_path = path.Child("conversionReviewVersions");
  if (strategy == "Webhook") {
    if (client.is_null()) {
      errors.push_back(Required(client_path, "required when strategy is set to Webhook"));
    } else {
      ValidateWebhookClientConfig(client, client_path, errors);
      if (options.require_valid_ca_bundle && !HasValidCABundle(client)) {
        errors.push_back(Invalid(client_path.Child("caBundle"), client["caBundle"],
                                 "unable to load root certificates: unable to parse bytes as PEM block"));
      }
    }
    ValidateReviewVersions(versions, "", options.require_recognized_review_version, versions_path, errors);
  } else {
    constexpr std::string_view kNotSet = "should not be set when strategy is not set to Webhook";
    if (!client.is_null()) errors.push_back(Forbidden(client_path, kNotSet));
    if (!versions.empty()) errors.push_back(Forbidden(versions_path, kNotSet));
  }
}

void ValidateHoisted(const Call& call, const Value& versions, const Hoisted& hoisted, const FieldPath& path,
                     FieldErrors& errors) {
  const Value first = versions[std::size_t{0}];
  const Value schema = first["schema"]["openAPIV3Schema"];
  if (hoisted.schema && schema.is_map()) {
    const bool status = std::ranges::any_of(versions.items(), HasStatus);
    const FieldPath at = path.Child("validation");
    crd::ValidateSchema(call.arena, schema, status, at.Child("openAPIV3Schema"), errors);
  }
  if (hoisted.subresources) ValidateSubresources(first["subresources"], path.Child("subresources"), errors);
  if (hoisted.columns)
    ValidateColumns(first["additionalPrinterColumns"], path.Child("additionalPrinterColumns"), errors);
  if (hoisted.selectable && !first["selectableFields"].empty()) {
    const FieldPath at = path.Child("selectableFields");
    if (!hoisted.schema || first["schema"].is_null()) {
      errors.push_back(Invalid(at, "", "may only be set when validations.schema is included"));
    } else {
      ValidateSelectableFields(first["selectableFields"], schema, path, errors);
    }
  }
}

bool HasDefaults(const Value& versions) {
  bool found = false;
  for (const Value& version : versions.items()) {
    crd::ForEachSchema(version["schema"]["openAPIV3Schema"],
                       [&](const Value& schema) { found = found || !schema["default"].is_null(); });
  }
  return found;
}

void ValidateVersions(const Call& call, const Value& spec, const Hoisted& hoisted, const Options& options,
                      const FieldPath& path, FieldErrors& errors) {
  const Value versions = spec["versions"];
  const FieldPath versions_path = path.Child("versions");
  std::int64_t index = 0;
  for (const Value& version : versions.items()) {
    const FieldPath at = versions_path.Index(index++);
    const FieldPath schema = at.Child("schema");
    if (version["schema"]["openAPIV3Schema"].is_map()) continue;
    if (options.require_schema) {
      errors.push_back(Required(schema.Child("openAPIV3Schema")));
    } else if (!spec["preserveUnknownFields"].as_bool() && version["served"].as_bool()) {
      errors.push_back(Required(schema.Child("openAPIV3Schema"), "because otherwise all fields are pruned"));
    }
  }
  if (spec["preserveUnknownFields"].as_bool() && HasDefaults(versions)) {
    errors.push_back(Invalid(path.Child("preserveUnknownFields"), Value(true),
                             "must be false in order to use defaults in the schema"));
  }
  std::set<std::string_view> names;
  bool unique = true;
  int storage = 0;
  index = 0;
  for (const Value& version : versions.items()) {
    unique = names.insert(version["name"].as_string()).second && unique;
    storage += version["storage"].as_bool() ? 1 : 0;
    ValidateVersion(call, version, hoisted, versions_path.Index(index++), errors);
  }
  const auto invalid_versions = [&](std::string_view detail) {
    errors.push_back(InvalidRendered(versions_path, InternalVersionsJSON(versions, hoisted), detail));
  };
  if (!unique) invalid_versions("must contain unique version names");
  if (storage != 1) invalid_versions("must have exactly one version marked as storage version");
  if (!versions.empty()) {
    const std::string_view first = versions[std::size_t{0}]["name"].as_string();
    if (const Messages messages = validation::IsDNS1035Label(first); !first.empty() && !messages.empty()) {
      errors.push_back(Invalid(path.Child("version"), first, base::Join(messages, ",")));
    }
  }
}

void ValidateSpec(const Call& call, const Value& spec, const Options& options, FieldErrors& errors) {
  const FieldPath path("spec");
  const std::string_view group = spec["group"].as_string();
  if (group.empty()) {
    errors.push_back(Required(path.Child("group")));
  } else if (const Messages messages = validation::IsDNS1123Subdomain(group); !messages.empty()) {
    errors.push_back(Invalid(path.Child("group"), group, base::Join(messages, ",")));
  } else if (group.find('.') == std::string_view::npos) {
    errors.push_back(Invalid(path.Child("group"), group, "should be a domain with at least one dot"));
  }
  RequireOneOf(spec["scope"].as_string(), {"Cluster", "Namespaced"}, path.Child("scope"), errors);

  const Value versions = spec["versions"];
  // A stored definition may have been written by kube-apiserver, which has no bounds: it can be changed elsewhere and
  // deleted, and its versions are not validated again.
  FieldErrors bounds;
  const bool bounded = crd::ValidateBounds(versions, path.Child("versions"), bounds);
  if (!bounded && !options.versions_unchanged) {
    for (const auto& error : bounds) errors.push_back(error);
    return;
  }
  const Hoisted hoisted = HoistedParts(versions);
  if (bounded) ValidateVersions(call, spec, hoisted, options, path, errors);
  const FieldPath names_path = path.Child("names");
  for (const std::string_view field : {"plural", "singular", "kind", "listKind"}) {
    if (spec["names"][field].as_string().empty()) errors.push_back(Required(names_path.Child(field)));
  }
  ValidateNames(spec["names"], names_path, errors);
  if (bounded) ValidateHoisted(call, versions, hoisted, path, errors);
  ValidateConversion(spec, options, path, errors);
}

void ValidateStoredVersions(const Value& object, FieldErrors& errors) {
  const FieldPath status("status");
  const FieldPath path = status.Child("storedVersions");
  const Value stored = object["status"]["storedVersions"];
  if (stored.empty()) {
    errors.push_back(Invalid(path, stored, "must have at least one stored version"));
    return;
  }
  base::StringViewSet missing;
  for (const Value& version : stored.items()) missing.insert(version.as_string());
  for (const Value& version : object["spec"]["versions"].items()) {
    const std::string_view name = version["name"].as_string();
    // Each name is crossed off once: a second version of that name is as one that is not stored.
    const bool known = missing.erase(name) > 0;
    if (version["storage"].as_bool() && !known && !errors.full())
      errors.push_back(Invalid(path, stored, "must have the storage version " + std::string(name)));
  }
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const std::string name(stored[i].as_string());
    if (!missing.contains(name)) continue;
    errors.push_back(
        Invalid(path.Index(static_cast<std::int64_t>(i)), stored[i],
                "missing from spec.versions; " + name +
                    " was previously a storage version, and must remain in spec.versions until a storage " +
                    "migration ensures no data remains persisted in " + name + " and removes " + name +
                    " from status.storedVersions"));
  }
}

enum class Approval { kNotNeeded, kMissing, kBypassed, kApproved, kInvalid };

Approval ApprovalOf(const Value& object) {
  const std::string_view text = object["metadata"]["annotations"][kApprovalAnnotation].as_string();
  if (text.empty()) return Approval::kMissing;
  if (text.starts_with("unapproved")) return Approval::kBypassed;
  const auto scheme = text.find("://");
  return scheme != std::string_view::npos && scheme > 0 && scheme + 3 < text.size() && text[scheme + 3] != '/'
             ? Approval::kApproved
             : Approval::kInvalid;
}

void ValidateApproval(const Value& object, const Value& old, FieldErrors& errors) {
  const std::string_view group = object["spec"]["group"].as_string();
  const bool is_protected =
      group == "k8s.io" || group.ends_with(".k8s.io") || group == "kubernetes.io" || group.ends_with(".kubernetes.io");
  if (!is_protected) return;
  const Approval approval = ApprovalOf(object);
  if (!old.is_null() && ApprovalOf(old) == approval) return;
  const FieldPath metadata("metadata");
  const FieldPath annotations = metadata.Child("annotations");
  const std::string annotation = "protected groups must have approval annotation " + base::GoQuote(kApprovalAnnotation);
  constexpr std::string_view kSee = ", see https://github.com/kubernetes/enhancements/pull/1111";
  if (approval == Approval::kMissing)
    errors.push_back(Required(annotations.Key(kApprovalAnnotation), annotation + std::string(kSee)));
  if (approval == Approval::kInvalid) {
    errors.push_back(
        Invalid(annotations.Key(kApprovalAnnotation), object["metadata"]["annotations"][kApprovalAnnotation],
                annotation + " with either a URL or a reason starting with \"unapproved\"" + std::string(kSee)));
  }
}

void ValidatePreserveUnknownFields(const Value& object, const Value& old, FieldErrors& errors) {
  if (old["spec"]["preserveUnknownFields"].as_bool() || !object["spec"]["preserveUnknownFields"].as_bool()) return;
  const FieldPath spec("spec");
  errors.push_back(Invalid(
      spec.Child("preserveUnknownFields"), Value(true),
      "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"));
}

void ValidateRest(const Value& object, const Value& old, FieldErrors& errors) {
  const FieldPath status("status");
  ValidateNames(object["status"]["acceptedNames"], status.Child("acceptedNames"), errors);
  ValidateStoredVersions(object, errors);
  ValidateApproval(object, old, errors);
  ValidatePreserveUnknownFields(object, old, errors);
}

// The name is plural and group, which a name rule cannot see; so the metadata is checked here.
void ValidateMetadata(const Value& object, FieldErrors& errors) {
  const Value spec = object["spec"];
  const std::string wanted =
      std::string(spec["names"]["plural"].as_string()) + "." + std::string(spec["group"].as_string());
  const FieldPath metadata("metadata");
  FieldErrors plain;
  ValidateMeta(object, false, validation::NameIsDNSSubdomain, plain, false);
  // The mismatch is reported after the field's format errors.
  for (const std::string_view field : {"generateName", "name"}) {
    const std::string_view name = object["metadata"][field].as_string();
    const std::string field_path = metadata.Child(field).ToString();
    while (!plain.empty() && plain.front().field == field_path) {
      errors.push_back(std::move(plain.front()));
      plain.erase(plain.begin());
    }
    if (!name.empty() && name != wanted)
      errors.push_back(Invalid(metadata.Child(field), name, "must be spec.names.plural+\".\"+spec.group"));
  }
  errors.insert(errors.end(), plain.begin(), plain.end());
}

void ValidateCRD(const Call& call, Value object, Value, FieldErrors& errors) {
  ValidateMetadata(object, errors);
  ValidateSpec(call, object["spec"], Options(), errors);
  ValidateRest(object, Value(), errors);
}

bool IsEstablished(const Value& object) {
  return std::ranges::any_of(object["status"]["conditions"].items(), [](const Value& condition) {
    return condition["type"].as_string() == "Established" && condition["status"].as_string() == "True";
  });
}

void ValidateCRDUpdate(const Call& call, Value object, Value old, FieldErrors& errors) {
  const Value spec = object["spec"];
  const Value old_spec = old["spec"];
  Options options;
  options.require_schema = std::ranges::all_of(
      old_spec["versions"].items(), [](const Value& version) { return version["schema"]["openAPIV3Schema"].is_map(); });
  const Value old_reviews = old_spec["conversion"]["webhook"]["conversionReviewVersions"];
  options.require_recognized_review_version =
      old_reviews.empty() || std::ranges::any_of(old_reviews.items(), [](const Value& version) {
        return version.as_string() == "v1" || version.as_string() == "v1beta1";
      });
  const Value old_client = old_spec["conversion"]["webhook"]["clientConfig"];
  options.require_valid_ca_bundle = IsEstablished(old) && HasValidCABundle(old_client);
  options.versions_unchanged = spec["versions"] == old_spec["versions"];
  ValidateMetaUpdate(object, old, errors, false);
  ValidateSpec(call, spec, options, errors);
  const FieldPath path("spec");
  const FieldPath names = path.Child("names");
  if (IsEstablished(old)) {
    ImmutableText(spec["scope"], old_spec["scope"], path.Child("scope"), errors);
    ImmutableText(spec["names"]["kind"], old_spec["names"]["kind"], names.Child("kind"), errors);
  }
  ImmutableText(spec["group"], old_spec["group"], path.Child("group"), errors);
  ImmutableText(spec["names"]["plural"], old_spec["names"]["plural"], names.Child("plural"), errors);
  ValidateRest(object, old, errors);
}

void ValidateCRDStatusUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  ValidateMetaUpdate(object, old, errors, false);
  const FieldPath status("status");
  ValidateNames(object["status"]["acceptedNames"], status.Child("acceptedNames"), errors);
}

// ---- Warnings

bool IsKnownFormat(std::string_view type, std::string_view format) {
  if (type == "integer") return format == "int32" || format == "int64";
  if (type == "number") return format == "float" || format == "double";
  if (!type.empty() && type != "string") return false;
  const std::string normalized = base::ReplaceAll(format, "-", "");
  return std::ranges::find(kStringFormats, normalized) != std::end(kStringFormats);
}

std::vector<std::string> UnrecognizedFormats(const Value& object) {
  std::vector<std::string> formats;
  const Value versions = object["spec"]["versions"];
  const Hoisted hoisted = HoistedParts(versions);
  for (const Value& version : versions.items()) {
    crd::ForEachSchema(version["schema"]["openAPIV3Schema"], [&](const Value& schema) {
      const std::string_view format = schema["format"].as_string();
      if (!format.empty() && !IsKnownFormat(schema["type"].as_string(), format)) formats.emplace_back(format);
    });
    if (hoisted.schema) break;
  }
  return formats;
}

void Warnings(const Call& call, Value object, Value old) {
  base::StringSet known;
  if (!old.is_null()) {
    for (std::string& format : UnrecognizedFormats(old)) known.insert(std::move(format));
  }
  for (const std::string& format : UnrecognizedFormats(object)) {
    if (!known.contains(format)) call.warnings.push_back("unrecognized format " + base::GoQuote(format));
  }
}

constexpr std::string_view kMainReset[] = {"status"};
constexpr std::string_view kStatusReset[] = {"spec"};

constexpr Strategy kStrategies[] = {{
    .group = "apiextensions.k8s.io",
    .kind = "CustomResourceDefinition",
    .allow_unconditional_update = false,
    .core_finalizers = false,
    .generation = Generation::kSpec,
    .has_status = true,
    .defaults = SetDefaults,
    .prepare_for_create = PrepareForCreate,
    .validate = ValidateCRD,
    .validates_metadata = true,
    .warnings_on_create = Warnings,
    .update = {.prepare_for_update = PrepareForUpdate,
               .validate_update = ValidateCRDUpdate,
               .warnings_on_update = Warnings,
               .reset_fields = kMainReset},
    .status = {.validate_update = ValidateCRDStatusUpdate, .reset_fields = kStatusReset},
}};

}  // namespace

std::span<const Strategy> ApiextensionsStrategies() { return kStrategies; }

namespace {

constexpr std::string_view kCleanupFinalizer = "customresourcecleanup.apiextensions.k8s.io";

class CustomResourceDefinitionStrategy final : public RESTStrategy {
 public:
  using RESTStrategy::RESTStrategy;
  bool marks_deletion() const override { return true; }
  void MarkDeletion(const Call& call, Value object) const override {
    Value finalizers = object["metadata"].EnsureList(call.arena, "finalizers");
    const bool held =
        std::ranges::any_of(finalizers.items(), [](const Value& one) { return one.as_string() == kCleanupFinalizer; });
    if (!held) finalizers.Append(call.arena, kCleanupFinalizer);
    Value conditions = object.EnsureMap(call.arena, "status").EnsureList(call.arena, "conditions");
    Value terminating;
    for (const Value& condition : conditions.items()) {
      if (condition["type"].as_string() == "Terminating") terminating = condition;
    }
    if (terminating.is_null()) {
      terminating = Value::Map(call.arena);
      terminating.Set(call.arena, "type", "Terminating");
      conditions.Append(call.arena, terminating);
    }
    if (terminating["status"].as_string() != "True") {
      terminating.Set(call.arena, "status", "True");
      terminating.Set(call.arena, "lastTransitionTime", object["metadata"]["deletionTimestamp"]);
    }
    terminating.Set(call.arena, "reason", "InstanceDeletionPending");
    terminating.Set(call.arena, "message",
                    "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon");
  }
};

}  // namespace

std::shared_ptr<const RESTStrategy> StatefulStrategy(const Strategy& row) {
  if (&row != kStrategies) return nullptr;
  return std::make_shared<const CustomResourceDefinitionStrategy>(row);
}

}  // namespace keelson::registry
