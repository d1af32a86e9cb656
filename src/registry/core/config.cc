#include "registry/core/config.h"

#include "base/strings.h"
#include "registry/cells.h"
#include "registry/core/tls_pair.h"
#include "registry/fields.h"
#include "registry/go_json.h"

namespace keelson::registry::core {
namespace {

constexpr std::size_t kDataBytesMax = 1024 * 1024;  // MaxSecretSize, for config maps too
constexpr std::string_view kImmutable = "field is immutable when `immutable` is set";
constexpr std::string_view kNamespaceNameLabel = "kubernetes.io/metadata.name";
constexpr std::string_view kStandardFinalizers[] = {"kubernetes", "orphan", "foregroundDeletion"};

// The decoded length of a base64 text.
std::size_t Base64Size(std::string_view text) {
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  return text.size() / 4 * 3 - padding;
}

bool Unfreezes(Value object, Value old) { return Bool(old, "immutable") && !Bool(object, "immutable"); }

// Data maps are compared as Go's reflect.DeepEqual does after decoding: an absent one equals an empty one only for
// config maps' data, which defaulting makes non-nil; clients cannot see the difference.
bool SameData(Value a, Value b) { return a == b || (a.empty() && b.empty()); }

void CheckFinalizer(std::string_view name, const FieldPath& path, FieldErrors& errors) {
  CheckQualifiedName(name, path, errors);
  if (name.find('/') == std::string_view::npos && !Contains(kStandardFinalizers, name)) {
    errors.push_back(Invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified"));
  }
}

}  // namespace

// --- ConfigMap ---

void ValidateConfigMap(const Call&, Value object, Value, FieldErrors& errors) {
  const FieldPath data("data"), binary("binaryData");
  std::size_t bytes = 0;
  for (const object::Member& member : SortedMembers(object["data"])) {
    AddInvalid(data.Key(member.key), member.key, validation::IsConfigMapKey(member.key), errors);
    if (object["binaryData"].Has(member.key)) {
      errors.push_back(Invalid(data.Key(member.key), member.key, "duplicate of key present in binaryData"));
    }
    bytes += member.value.as_string().size();
  }
  for (const object::Member& member : SortedMembers(object["binaryData"])) {
    AddInvalid(binary.Key(member.key), member.key, validation::IsConfigMapKey(member.key), errors);
    bytes += Base64Size(member.value.as_string());
  }
  if (bytes > kDataBytesMax) {
    validation::FieldError error = validation::TooLong(data, kDataBytesMax);
    error.field = "[]";  // field.NewPath("") renders so
    errors.push_back(std::move(error));
  }
}

void ValidateConfigMapUpdate(const Call& call, Value object, Value old, FieldErrors& errors) {
  const FieldPath metadata("metadata");
  validation::ValidateObjectMetaUpdate(object["metadata"], old["metadata"], metadata, errors);
  if (Bool(old, "immutable")) {
    if (Unfreezes(object, old)) errors.push_back(Forbidden(FieldPath("immutable"), kImmutable));
    for (const std::string_view key : {"data", "binaryData"}) {
      if (!SameData(object[key], old[key])) errors.push_back(Forbidden(FieldPath(key), kImmutable));
    }
  }
  validation::ValidateObjectMeta(object["metadata"], true, validation::NameIsDNSSubdomain, metadata, errors);
  ValidateConfigMap(call, object, old, errors);
}

void ConfigMapRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  const auto keys = static_cast<std::int64_t>(object["data"].size() + object["binaryData"].size());
  Row(arena, cells).Name(object).Add(keys).Age(clock, object);
}

// --- Secret ---

void DefaultSecret(base::Arena& arena, Value object) {
  // Conversion does this upstream: stringData is write-only and wins over data.
  if (const Value texts = object["stringData"]; !texts.empty()) {
    Value data = object.EnsureMap(arena, "data");
    for (const object::Member& member : texts.members()) {
      data.Set(arena, member.key, Value::String(arena, base::Base64Encode(member.value.as_string())));
    }
  }
  object.Erase("stringData");
  DefaultText(arena, object, "type", "Opaque");
}

void PrepareSecretForUpdate(const Call& call, Value object, Value old) {
  if (Text(object, "type").empty()) object.Set(call.arena, "type", old["type"]);
}

void ValidateSecret(const Call&, Value object, Value, FieldErrors& errors) {
  const FieldPath path("data");
  const Value data = object["data"];
  std::size_t bytes = 0;
  for (const object::Member& member : SortedMembers(data)) {
    AddInvalid(path.Key(member.key), member.key, validation::IsConfigMapKey(member.key), errors);
    bytes += Base64Size(member.value.as_string());
  }
  if (bytes > kDataBytesMax) errors.push_back(validation::TooLong(path, kDataBytesMax));

  const auto require = [&](std::string_view key) {
    if (!data.Has(key)) errors.push_back(Required(path.Key(key)));
  };
  const auto require_json = [&](std::string_view key) {
    require(key);
    if (!data.Has(key)) return;
    const std::string problem = GoUnmarshalMapError(base::Base64Decode(Text(data, key)).value_or(""));
    if (!problem.empty()) errors.push_back(Invalid(path.Key(key), "<secret contents redacted>", problem));
  };
  const std::string_view type = Text(object, "type");
  if (type == "kubernetes.io/service-account-token") {
    constexpr std::string_view kAccount = "kubernetes.io/service-account.name";
    if (Text(object["metadata"]["annotations"], kAccount).empty()) {
      errors.push_back(Required(FieldPath("metadata").Child("annotations").Key(kAccount)));
    }
  } else if (type == "kubernetes.io/dockercfg") {
    require_json(".dockercfg");
  } else if (type == "kubernetes.io/dockerconfigjson") {
    require_json(".dockerconfigjson");
  } else if (type == "kubernetes.io/basic-auth") {
    if (!data.Has("username") && !data.Has("password")) {
      require("username");
      require("password");
    }
  } else if (type == "kubernetes.io/ssh-auth") {
    if (Text(data, "ssh-privatekey").empty()) errors.push_back(Required(path.Key("ssh-privatekey")));
  } else if (type == "kubernetes.io/tls") {
    require("tls.crt");
    require("tls.key");
  }
}

void ValidateSecretUpdate(const Call& call, Value object, Value old, FieldErrors& errors) {
  const FieldPath metadata("metadata");
  validation::ValidateObjectMetaUpdate(object["metadata"], old["metadata"], metadata, errors);
  validation::ValidateImmutableField(object["type"], old["type"], FieldPath("type"), errors);
  if (Bool(old, "immutable")) {
    if (Unfreezes(object, old)) errors.push_back(Forbidden(FieldPath("immutable"), kImmutable));
    if (!SameData(object["data"], old["data"])) errors.push_back(Forbidden(FieldPath("data"), kImmutable));
  }
  validation::ValidateObjectMeta(object["metadata"], true, validation::NameIsDNSSubdomain, metadata, errors);
  ValidateSecret(call, object, old, errors);
}

void WarnSecret(const Call& call, Value object, Value) {
  if (Text(object, "type") != "kubernetes.io/tls") return;
  const Value data = object["data"];
  const std::string problem = KeyPairProblem(base::Base64Decode(Text(data, "tls.crt")).value_or(""),
                                             base::Base64Decode(Text(data, "tls.key")).value_or(""));
  if (!problem.empty()) call.warnings.push_back(problem);
}

void SecretRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  Row(arena, cells)
      .Name(object)
      .Add(Text(object, "type"))
      .Add(static_cast<std::int64_t>(object["data"].size()))
      .Age(clock, object);
}

// --- ServiceAccount ---

void PrepareServiceAccount(const Call& call, Value object, Value) {
  for (Value& secret : object["secrets"].items()) {
    const Value name = secret["name"];
    secret = Value::Map(call.arena, 1);
    if (!name.is_null()) secret.Set(call.arena, "name", name);
  }
}

void ValidateServiceAccountUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  const FieldPath metadata("metadata");
  validation::ValidateObjectMetaUpdate(object["metadata"], old["metadata"], metadata, errors);
  validation::ValidateObjectMeta(object["metadata"], true, validation::NameIsDNSSubdomain, metadata, errors);
}

void WarnServiceAccount(const Call& call, Value object, Value old) {
  constexpr std::string_view kEnforce = "kubernetes.io/enforce-mountable-secrets";
  if (old["metadata"]["annotations"].Has(kEnforce) || !object["metadata"]["annotations"].Has(kEnforce)) return;
  Warning(call, FieldPath("metadata").Child("annotations").Key(kEnforce),
          "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets");
}

void ServiceAccountRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  // A secret count was a column once; the cell without a column stays away as upstream took it away in 1.32.
  Row(arena, cells).Name(object).Age(clock, object);
}

// --- Namespace ---

void DefaultNamespace(base::Arena& arena, Value object) {
  Value metadata = object.EnsureMap(arena, "metadata");
  if (const Value name = metadata["name"]; !name.as_string().empty()) {
    metadata.EnsureMap(arena, "labels").Set(arena, kNamespaceNameLabel, name);
  }
  DefaultText(arena, object.EnsureMap(arena, "status"), "phase", "Active");
}

void PrepareNamespaceForCreate(const Call& call, Value object, Value) {
  Value status = Value::Map(call.arena, 1);
  status.Set(call.arena, "phase", "Active");
  object.Set(call.arena, "status", status);
  Value finalizers = object.EnsureMap(call.arena, "spec").EnsureList(call.arena, "finalizers");
  for (const Value finalizer : finalizers.items()) {
    if (finalizer.as_string() == "kubernetes") return;
  }
  finalizers.Append(call.arena, "kubernetes");
}

void PrepareNamespaceForUpdate(const Call& call, Value object, Value old) {
  CopyMember(call.arena, object.EnsureMap(call.arena, "spec"), old["spec"], "finalizers");
}

void PrepareNamespaceForFinalize(const Call& call, Value object, Value old) {
  CopyMember(call.arena, object, old, "status");
}

void CanonicalizeNamespace(const Call& call, Value object, Value) {
  // Also for names that were generated after defaulting.
  Value metadata = object["metadata"];
  metadata.EnsureMap(call.arena, "labels").Set(call.arena, kNamespaceNameLabel, metadata["name"]);
}

void ValidateNamespace(const Call&, Value object, Value, FieldErrors& errors) {
  for (const Value finalizer : object["spec"]["finalizers"].items()) {
    CheckFinalizer(finalizer.as_string(), FieldPath("spec").Child("finalizers"), errors);
  }
}

void ValidateNamespaceUpdate(const Call& call, Value object, Value old, FieldErrors& errors) {
  const FieldPath metadata("metadata");
  validation::ValidateObjectMeta(object["metadata"], false, validation::NameIsDNSLabel, metadata, errors);
  ValidateNamespace(call, object, old, errors);
  validation::ValidateObjectMetaUpdate(object["metadata"], old["metadata"], metadata, errors);
}

void ValidateNamespaceStatusUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  validation::ValidateObjectMetaUpdate(object["metadata"], old["metadata"], FieldPath("metadata"), errors);
  const bool deleting = IsSet(object["metadata"], "deletionTimestamp");
  const std::string_view phase = Text(object["status"], "phase");
  if (phase == (deleting ? "Terminating" : "Active")) return;
  errors.push_back(Invalid(FieldPath("status").Child("Phase"), phase,
                           deleting ? "may only be 'Terminating' if `deletionTimestamp` is not empty"
                                    : "may only be 'Active' if `deletionTimestamp` is empty"));
}

void ValidateNamespaceFinalizeUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  validation::ValidateObjectMetaUpdate(object["metadata"], old["metadata"], FieldPath("metadata"), errors);
  const FieldPath spec("spec");
  const FieldPath path = spec.Child("finalizers");
  std::int64_t index = 0;
  for (const Value finalizer : object["spec"]["finalizers"].items())
    CheckFinalizer(finalizer.as_string(), path.Index(index++), errors);
}

void NamespaceRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  Row(arena, cells).Name(object).Add(Text(object["status"], "phase")).Age(clock, object);
}

}  // namespace keelson::registry::core
