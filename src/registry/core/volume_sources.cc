#include "registry/core/volume_sources.h"

#include "base/strings.h"
#include "re2/re2.h"
#include "registry/core/paths.h"
#include "registry/core/persistent_volume_claim.h"
#include "registry/core/projected_volume.h"
#include "registry/core/resources.h"

namespace keelson::registry::core {
namespace {

constexpr std::string_view kMoreThanOne = "may not specify more than 1 volume type";
constexpr std::string_view kHostPathTypes[] = {"",     "BlockDevice",  "CharDevice", "Directory", "DirectoryOrCreate",
                                               "File", "FileOrCreate", "Socket"};
constexpr std::string_view kPullPolicies[] = {"Always", "IfNotPresent", "Never"};
constexpr std::size_t kDriverNameBytesMax = 63;
constexpr std::size_t kISCSISessionBytesMax = 64;
constexpr std::string_view kISCSITooLong =
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is "
    "specified.";

using Context = SourceContext;

void CheckEmptyDir(const Context&, Value source, const FieldPath& path, FieldErrors& errors) {
  if (IsSet(source, "sizeLimit") && QuantityOf(source["sizeLimit"]).Sign() < 0) {
    errors.push_back(Forbidden(path.Child("sizeLimit"), "SizeLimit field must be a valid resource quantity"));
  }
}

void CheckGitRepo(const Context&, Value source, const FieldPath& path, FieldErrors& errors) {
  CheckLocalDescendingPath(Text(source, "directory"), path.Child("directory"), errors);
}

void CheckPartition(const Context&, Value source, const FieldPath& path, FieldErrors& errors) {
  const std::int64_t partition = Int(source, "partition");
  if (partition < 0 || partition > 255)
    errors.push_back(Invalid(path.Child("partition"), Value(partition), RangeMessage(1, 255)));
}

void CheckKeyedItems(const Context&, Value source, const FieldPath& path, FieldErrors& errors) {
  CheckFileMode(source, "defaultMode", path, errors);
  const FieldPath items = path.Child("items");
  std::int64_t index = 0;
  for (const Value item : source["items"].items()) CheckKeyToPath(item, items.Index(index++), errors);
}

void CheckNFS(const Context&, Value source, const FieldPath& path, FieldErrors& errors) {
  const std::string_view at = Text(source, "path");
  if (!at.starts_with('/')) errors.push_back(Invalid(path.Child("path"), at, "must be an absolute path"));
}

// An initiator's or target's name; `verbose` says what it may begin with, as only pods' errors do.
void CheckISCSIName(std::string_view name, bool verbose, const FieldPath& path, FieldErrors& errors) {
  static const re2::RE2 kIQN(R"(iqn\.\d{4}-\d{2}\.([[:alnum:]-.]+)(:[^,;*&$|\s]+)$)");
  static const re2::RE2 kEUI(R"(^eui.[[:alnum:]]{16}$)");
  static const re2::RE2 kNAA(R"(^naa.[[:alnum:]]{32}$)");
  const re2::StringPiece text(name.data(), name.size());
  const bool iqn = name.starts_with("iqn"), eui = name.starts_with("eui"), naa = name.starts_with("naa");
  if (!iqn && !eui && !naa) {
    errors.push_back(
        Invalid(path, name, verbose ? "must be valid format starting with iqn, eui, or naa" : "must be valid format"));
  } else if (!re2::RE2::PartialMatch(text, iqn ? kIQN : eui ? kEUI : kNAA)) {
    errors.push_back(Invalid(path, name, "must be valid format"));
  }
}

void CheckISCSI(const Context& context, Value source, const FieldPath& path, FieldErrors& errors) {
  RequireText(source, "targetPortal", path, errors);
  const bool named = IsSet(source, "initiatorName");
  const bool too_long = named && context.name.size() + 1 + Text(source, "targetPortal").size() > kISCSISessionBytesMax;
  if (context.persistent && too_long)
    errors.push_back(Invalid(path.Child("targetportal"), Text(source, "targetPortal"), kISCSITooLong));
  if (RequireText(source, "iqn", path, errors))
    CheckISCSIName(Text(source, "iqn"), !context.persistent, path.Child("iqn"), errors);
  if (const std::int64_t lun = Int(source, "lun"); lun < 0 || lun > 255) {
    errors.push_back(Invalid(path.Child("lun"), Value(lun), RangeMessage(0, 255)));
  }
  if ((Bool(source, "chapAuthDiscovery") || Bool(source, "chapAuthSession")) && !IsSet(source, "secretRef")) {
    errors.push_back(Required(path.Child("secretRef")));
  }
  if (context.persistent && IsSet(source, "secretRef")) {
    const FieldPath secret = path.Child("secretRef");
    RequireText(source["secretRef"], "name", secret, errors);
  }
  if (named) CheckISCSIName(Text(source, "initiatorName"), !context.persistent, path.Child("initiatorname"), errors);
}

void CheckGlusterfs(const Context& context, Value source, const FieldPath& path, FieldErrors& errors) {
  if (!context.persistent || !IsSet(source, "endpointsNamespace")) return;
  const std::string_view name = Text(source, "endpointsNamespace");
  const FieldPath at = path.Child("endpointsNamespace");
  if (name.empty()) {
    errors.push_back(Invalid(at, name, "if the endpointnamespace is set, it must be a valid namespace name"));
  } else {
    CheckDNSLabel(name, at, errors);
  }
}

void CheckFlocker(const Context&, Value source, const FieldPath& path, FieldErrors& errors) {
  const std::string_view name = Text(source, "datasetName"), uuid = Text(source, "datasetUUID");
  if (name.empty() && uuid.empty()) errors.push_back(Required(path, "one of datasetName and datasetUUID is required"));
  if (!name.empty() && !uuid.empty()) {
    errors.push_back(Invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously"));
  }
  if (name.find('/') != std::string_view::npos)
    errors.push_back(Invalid(path.Child("datasetName"), name, "must not contain '/'"));
}

// cinder and storageos: a secret has a name, in persistent volumes a namespace too.
void CheckSecretRef(const Context& context, Value source, const FieldPath& path, FieldErrors& errors) {
  if (!IsSet(source, "secretRef")) return;
  const FieldPath at = path.Child("secretRef");
  RequireText(source["secretRef"], "name", at, errors);
  if (context.persistent) RequireText(source["secretRef"], "namespace", at, errors);
}

bool IsHostPort(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view host = text.substr(0, colon);
  if (host.starts_with('[')) return host.ends_with(']');
  return host.find(':') == std::string_view::npos && host.find('[') == std::string_view::npos;
}

void CheckQuobyte(const Context&, Value source, const FieldPath& path, FieldErrors& errors) {
  constexpr std::string_view kPairs = "must be a host:port pair or multiple pairs separated by commas";
  const std::string_view registry = Text(source, "registry");
  if (registry.empty()) {
    errors.push_back(Required(path.Child("registry"), kPairs));
  } else if (Text(source, "tenant").size() >= 65) {
    errors.push_back(Required(path.Child("tenant"), "must be a UUID and may not exceed a length of 64 characters"));
  } else {
    for (const std::string_view pair : base::Split(registry, ',')) {
      if (!IsHostPort(pair)) errors.push_back(Invalid(path.Child("registry"), registry, kPairs));
    }
  }
  RequireText(source, "volume", path, errors);
}

void CheckFC(const Context&, Value source, const FieldPath& path, FieldErrors& errors) {
  const FieldPath targets = path.Child("targetWWNs");
  const bool wwns = !source["targetWWNs"].empty(), wwids = !source["wwids"].empty();
  if (!wwns && !wwids) errors.push_back(Required(targets, "must specify either targetWWNs or wwids, but not both"));
  if (wwns && wwids)
    errors.push_back(
        Invalid(targets, source["targetWWNs"], "targetWWNs and wwids can not be specified simultaneously"));
  if (!wwns) return;
  const Value lun = source["lun"];
  if (lun.is_null()) {
    errors.push_back(Required(path.Child("lun"), "lun is required if targetWWNs is specified"));
  } else if (lun.as_int() < 0 || lun.as_int() > 255) {
    errors.push_back(Invalid(path.Child("lun"), lun, RangeMessage(0, 255)));
  }
}

void CheckFlexVolume(const Context&, Value source, const FieldPath& path, FieldErrors& errors) {
  const FieldPath options = path.Child("options");
  for (const object::Member& option : SortedMembers(source["options"])) {
    const std::string domain = "." + base::ToLower(option.key.substr(0, option.key.find('/')));
    if (domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io")) {
      errors.push_back(
          Invalid(options.Key(option.key), option.key, "kubernetes.io and k8s.io namespaces are reserved"));
    }
  }
}

void CheckAzureFile(const Context& context, Value source, const FieldPath& path, FieldErrors& errors) {
  if (context.persistent && IsSet(source, "secretNamespace")) RequireText(source, "secretNamespace", path, errors);
}

void CheckAzureDisk(const Context&, Value source, const FieldPath& path, FieldErrors& errors) {
  constexpr std::string_view kCaching[] = {"None", "ReadOnly", "ReadWrite"};
  constexpr std::string_view kKinds[] = {"Dedicated", "Managed", "Shared"};
  constexpr std::string_view kManaged[] = {
      "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"};
  constexpr std::string_view kBlob[] = {
      "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"};
  if (IsSet(source, "cachingMode")) CheckOneOf(source["cachingMode"], kCaching, path.Child("cachingMode"), errors);
  if (!IsSet(source, "kind")) return;
  CheckOneOf(source["kind"], kKinds, path.Child("kind"), errors);
  const bool managed = Text(source, "kind") == "Managed";
  if (!Text(source, "diskURI").starts_with(managed ? "/subscriptions/" : "https://")) {
    errors.push_back(
        NotSupported(path.Child("diskURI"), Value(Text(source, "diskURI")), managed ? Names(kManaged) : Names(kBlob)));
  }
}

void CheckStorageOS(const Context& context, Value source, const FieldPath& path, FieldErrors& errors) {
  if (const std::string_view name = Text(source, "volumeName"); !name.empty())
    CheckDNSLabel(name, path.Child("volumeName"), errors);
  if (const std::string_view name = Text(source, "volumeNamespace"); !name.empty())
    CheckDNSLabel(name, path.Child("volumeNamespace"), errors);
  CheckSecretRef(context, source, path, errors);
}

void CheckInlineCSI(const Context&, Value source, const FieldPath& path, FieldErrors& errors) {
  CheckCSIDriverName(Text(source, "driver"), path.Child("driver"), errors);
  if (!IsSet(source, "nodePublishSecretRef")) return;
  const FieldPath secret = path.Child("nodePublishSecretRef");
  if (RequireText(source["nodePublishSecretRef"], "name", secret, errors)) {
    CheckDNSSubdomain(Text(source["nodePublishSecretRef"], "name"), path.Child("name"),
                      errors);  // not under the reference, as upstream
  }
}

void CheckPersistentCSI(const Context&, Value source, const FieldPath& path, FieldErrors& errors) {
  CheckCSIDriverName(Text(source, "driver"), path.Child("driver"), errors);
  RequireText(source, "volumeHandle", path, errors);
  for (const std::string_view key :
       {"controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef"}) {
    const Value secret = source[key];
    if (secret.is_null()) continue;
    const FieldPath at = path.Child(key);
    if (RequireText(secret, "name", at, errors)) CheckDNSSubdomain(Text(secret, "name"), at.Child("name"), errors);
    if (RequireText(secret, "namespace", at, errors))
      CheckDNSLabel(Text(secret, "namespace"), at.Child("namespace"), errors);
  }
}

void CheckEphemeral(const Context&, Value source, const FieldPath& path, FieldErrors& errors) {
  if (!IsSet(source, "volumeClaimTemplate")) {
    errors.push_back(Required(path.Child("volumeClaimTemplate")));
  } else {
    ValidateClaimTemplate(source["volumeClaimTemplate"], path.Child("volumeClaimTemplate"), errors);
  }
}

void CheckImage(const Context& context, Value source, const FieldPath& path, FieldErrors& errors) {
  if (context.options.is_pod) RequireText(source, "reference", path, errors);
  RequireOneOf(source["pullPolicy"], kPullPolicies, path.Child("pullPolicy"), errors);
}

void CheckLocal(const Context&, Value source, const FieldPath& path, FieldErrors& errors) {
  if (RequireText(source, "path", path, errors)) CheckNoBacksteps(Text(source, "path"), path.Child("path"), errors);
}

void CheckProjected(const Context& context, Value source, const FieldPath& path, FieldErrors& errors) {
  ValidateProjectedSource(source, context.options, path, errors);
}

void CheckDownwardAPI(const Context&, Value source, const FieldPath& path, FieldErrors& errors) {
  CheckFileMode(source, "defaultMode", path, errors);
  for (const Value item : source["items"].items()) CheckDownwardAPIFile(item, path, errors);  // no index, as upstream
}

constexpr SourceRow kPodSources[] = {
    {"emptyDir", {}, CheckEmptyDir},
    {"hostPath", {}, CheckHostPath},
    {"gitRepo", {"repository"}, CheckGitRepo},
    {"gcePersistentDisk", {"pdName"}, CheckPartition, "persistentDisk"},
    {"awsElasticBlockStore", {"volumeID"}, CheckPartition},
    {"secret", {"secretName"}, CheckKeyedItems},
    {"nfs", {"server", "path"}, CheckNFS},
    {"iscsi", {}, CheckISCSI},
    {"glusterfs", {"endpoints", "path"}},
    {"flocker", {}, CheckFlocker},
    {"persistentVolumeClaim", {"claimName"}},
    {"rbd", {"monitors", "image"}},
    {"cinder", {"volumeID"}, CheckSecretRef},
    {"cephfs", {"monitors"}, nullptr, "cephfs", "cephFS"},
    {"quobyte", {}, CheckQuobyte},
    {"downwardAPI", {}, CheckDownwardAPI, "downwardAPI", "downwarAPI"},
    {"fc", {}, CheckFC},
    {"flexVolume", {"driver"}, CheckFlexVolume},
    {"configMap", {"name"}, CheckKeyedItems},
    {"azureFile", {"secretName", "shareName"}},
    {"vsphereVolume", {"volumePath"}},
    {"photonPersistentDisk", {"pdID"}},
    {"portworxVolume", {"volumeID"}},
    {"azureDisk", {"diskName", "diskURI"}, CheckAzureDisk},
    {"storageos", {"volumeName"}, CheckStorageOS},
    {"projected", {}, CheckProjected},
    {"scaleIO", {"gateway", "system", "volumeName"}},
    {"csi", {}, CheckInlineCSI},
    {"ephemeral", {}, CheckEphemeral},
    {"image", {}, CheckImage},
};

constexpr SourceRow kPersistentSources[] = {
    {"hostPath", {}, CheckHostPath},
    {"gcePersistentDisk", {"pdName"}, CheckPartition, "persistentDisk"},
    {"awsElasticBlockStore", {"volumeID"}, CheckPartition},
    {"glusterfs", {"endpoints", "path"}, CheckGlusterfs},
    {"flocker", {}, CheckFlocker},
    {"nfs", {"server", "path"}, CheckNFS},
    {"rbd", {"monitors", "image"}},
    {"quobyte", {}, CheckQuobyte},
    {"cephfs", {"monitors"}, nullptr, "cephfs", "cephFS"},
    {"iscsi", {}, CheckISCSI},
    {"cinder", {"volumeID"}, CheckSecretRef},
    {"fc", {}, CheckFC},
    {"flexVolume", {"driver"}, CheckFlexVolume, {}, {}, false},
    {"azureFile", {"secretName", "shareName"}, CheckAzureFile},
    {"vsphereVolume", {"volumePath"}},
    {"photonPersistentDisk", {"pdID"}},
    {"portworxVolume", {"volumeID"}},
    {"azureDisk", {"diskName", "diskURI"}, CheckAzureDisk},
    {"scaleIO", {"gateway", "system", "volumeName"}},
    {"local", {}, CheckLocal},
    {"storageos", {"volumeName"}, CheckStorageOS},
    {"csi", {}, CheckPersistentCSI},
};

}  // namespace

void CheckHostPath(const Context&, Value source, const FieldPath& path, FieldErrors& errors) {
  if (!RequireText(source, "path", path, errors)) return;
  CheckNoBacksteps(Text(source, "path"), path.Child("path"), errors);
  if (IsSet(source, "type")) CheckOneOf(source["type"], kHostPathTypes, path.Child("type"), errors);
}

void CheckKeyToPath(Value item, const FieldPath& path, FieldErrors& errors) {
  RequireTexts(item, {"key", "path"}, path, errors);
  CheckLocalNonReservedPath(Text(item, "path"), path.Child("path"), errors);
  CheckFileMode(item, "mode", path, errors);
}

void CheckCSIDriverName(std::string_view name, const FieldPath& path, FieldErrors& errors) {
  if (name.empty()) return errors.push_back(Required(path));
  if (name.size() > kDriverNameBytesMax) errors.push_back(validation::TooLong(path, kDriverNameBytesMax));
  AddInvalid(path, name, validation::IsDNS1123Subdomain(base::ToLower(name)), errors);
}

int ValidateSources(std::span<const SourceRow> table, const Context& context, Value holder, const FieldPath& path,
                    FieldErrors& errors) {
  int count = 0;
  for (const SourceRow& row : table) {
    const Value source = holder[row.key];
    if (source.is_null()) continue;
    if (count > 0 && row.counts_alone) {
      errors.push_back(Forbidden(path.Child(row.repeated_name.empty() ? row.key : row.repeated_name), kMoreThanOne));
    } else {
      ++count;
      const FieldPath at = path.Child(row.path_name.empty() ? row.key : row.path_name);
      for (const std::string_view key : row.required) {
        if (source[key].as_string().empty() && source[key].empty()) errors.push_back(Required(at.Child(key)));
      }
      if (row.check != nullptr) row.check(context, source, at, errors);
      if (row.key == "local" && !context.has_node_affinity) {
        errors.push_back(Required(path.Child("nodeAffinity"), "Local volume requires node affinity"));
      }
      if (row.key == "ephemeral" && !context.pod_name.empty() && !context.name.empty()) {
        const std::string claim = std::string(context.pod_name) + "-" + std::string(context.name);
        for (const std::string& message : validation::IsDNS1123Subdomain(claim)) {
          errors.push_back(
              Invalid(path.Child("name"), context.name, "PVC name " + base::GoQuote(claim) + ": " + message));
        }
      }
    }
    if (row.key == "iscsi" && !context.persistent && IsSet(source, "initiatorName") &&
        context.name.size() + 1 + Text(source, "targetPortal").size() > kISCSISessionBytesMax) {
      errors.push_back(Invalid(path.Child("name"), context.name, kISCSITooLong));
    }
  }
  return count;
}

std::span<const SourceRow> PodVolumeSources() { return kPodSources; }
std::span<const SourceRow> PersistentVolumeSources() { return kPersistentSources; }

}  // namespace keelson::registry::core
