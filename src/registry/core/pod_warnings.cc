// Warnings about pods and templates: valid fields that are deprecated or have no effect.
#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <memory_resource>
#include <set>

#include "base/strings.h"
#include "registry/core/node_labels.h"
#include "registry/core/persistent_volume_claim.h"
#include "registry/core/pod.h"
#include "registry/core/pod_security.h"
#include "registry/core/pod_spec.h"
#include "registry/core/resources.h"
#include "registry/rules/address.h"
#include "registry/semantic.h"
#include "schema/types.h"

namespace keelson::registry::core {
namespace {

// Answers carry a few kilobytes of warnings at most; a pod of the largest size must not make millions of them.
constexpr std::size_t kRemarksMax = 1000;
constexpr std::size_t kUsualNamesBytes = 4096;  // room for the names of a container's variables; more are allocated
constexpr std::string_view kNullSelector = "a null labelSelector results in matching no pod";

void WarnPlacement(const Call& call, Value spec, const FieldPath& path) {
  const FieldPath selector = path.Child("nodeSelector");
  for (const object::Member& label : SortedMembers(spec["nodeSelector"])) {
    if (const std::string_view message = DeprecatedNodeLabel(label.key); !message.empty())
      Warning(call, selector.Key(label.key), message);
  }
  const Value affinity = spec["affinity"]["nodeAffinity"];
  const FieldPath affinity_path = path.Child("affinity");
  const FieldPath node_path = affinity_path.Child("nodeAffinity");
  const FieldPath required = node_path.Child("requiredDuringSchedulingIgnoredDuringExecution");
  const FieldPath terms = required.Child("nodeSelectorTerms");
  const FieldPath preferred = node_path.Child("preferredDuringSchedulingIgnoredDuringExecution");
  std::int64_t index = 0;
  for (const Value term : affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"].items()) {
    WarnNodeSelectorTerm(call, term, false, terms.Index(index++));
  }
  index = 0;
  for (const Value term : affinity["preferredDuringSchedulingIgnoredDuringExecution"].items()) {
    const FieldPath at = preferred.Index(index++);
    WarnNodeSelectorTerm(call, term["preference"], true, at.Child("preference"));
  }
  const FieldPath spread = path.Child("topologySpreadConstraints");
  index = 0;
  for (const Value constraint : spec["topologySpreadConstraints"].items()) {
    const FieldPath at = spread.Index(index++);
    const std::string key(Text(constraint, "topologyKey"));
    if (const std::string_view message = DeprecatedNodeLabel(key); !message.empty()) {
      Warning(call, at.Child("topologyKey"), key + " is " + std::string(message));
    }
    if (!IsSet(constraint, "labelSelector")) Warning(call, at.Child("labelSelector"), kNullSelector);
  }
}

void WarnAnnotations(const Call& call, Value annotations, const FieldPath& path) {
  struct {
    std::string_view key, message;
  } constexpr kDeprecated[] = {
      {"scheduler.alpha.kubernetes.io/critical-pod",
       "non-functional in v1.16+; use the \"priorityClassName\" field instead"},
      {"security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"},
      {"security.alpha.kubernetes.io/unsafe-sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"},
  };
  for (const auto& [key, message] : kDeprecated) {
    if (annotations.Has(key)) Warning(call, path.Key(key), message);
  }
}

void WarnVolumes(const Call& call, Value spec, const FieldPath& path) {
  struct {
    std::string_view key, shown, message;
  } constexpr kDeprecated[] = {
      {"photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"},
      {"gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"},
      {"scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
      {"flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"},
      {"storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"},
      {"quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"},
      {"glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
      {"ephemeral", "ephemeral", ""},
      {"cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"},
      {"rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"},
  };
  std::int64_t index = 0;
  for (const Value volume : spec["volumes"].items()) {
    const FieldPath at = path.Index(index++);
    for (const auto& [key, shown, message] : kDeprecated) {
      if (!IsSet(volume, key)) continue;
      const FieldPath source = at.Child(shown);
      if (!message.empty()) {
        Warning(call, source, message);
      } else if (IsSet(volume[key], "volumeClaimTemplate")) {
        const FieldPath claim = source.Child("volumeClaimTemplate");
        WarnClaimSpec(call, volume[key]["volumeClaimTemplate"]["spec"], claim.Child("spec"));
      }
    }
  }
}

// Paths that are inside each other, told as pairs in the order they came.
class Overlaps {
 public:
  void Add(std::string_view path, std::string source) {
    while (path.ends_with('/')) path.remove_suffix(1);
    const std::size_t number = shown_.size();
    shown_.push_back(base::GoQuote(path) + (source.empty() ? "" : " (" + source + ")"));
    if (path.empty()) return;
    std::vector<std::size_t> others;
    const auto take = [&](std::string_view other) {
      const auto [begin, end] = taken_.equal_range(other);
      for (auto at = begin; at != end && others.size() < kRemarksMax; ++at) others.push_back(at->second);
    };
    for (std::size_t slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/', slash + 1))
      take(path.substr(0, slash));
    take(path);
    const std::string inside = std::string(path) + "/";
    for (auto at = taken_.lower_bound(inside);
         at != taken_.end() && at->first.starts_with(inside) && others.size() < kRemarksMax; ++at) {
      others.push_back(at->second);
    }
    std::ranges::sort(others);
    for (const std::size_t other : others) {
      if (found_.size() < kRemarksMax) found_.push_back(shown_[number] + " with " + shown_[other]);
    }
    taken_.emplace(path, number);
  }
  void AddAll(Value items, const std::string& source) {
    for (const Value item : items.items()) Add(Text(item, "path"), source);
  }
  const std::vector<std::string>& found() const { return found_; }

 private:
  std::multimap<std::string, std::size_t, std::less<>> taken_;
  std::vector<std::string> shown_, found_;
};

void WarnOverlappingPaths(const Call& call, Value spec) {
  for (const Value volume : spec["volumes"].items()) {
    const auto name = [&] { return base::GoQuote(Text(volume, "name")); };
    const auto tell = [&](const Overlaps& overlaps, const std::string& what) {
      for (const std::string& pair : overlaps.found())
        call.warnings.push_back("volume " + name() + " (" + what + "): overlapping paths: " + pair);
    };
    struct {
      std::string_view key, shown, name;
    } constexpr kKeyed[] = {
        {"configMap", "ConfigMap ", "name"}, {"secret", "Secret ", "secretName"}, {"downwardAPI", "DownwardAPI", ""}};
    for (const auto& [key, shown, name_key] : kKeyed) {
      if (!IsSet(volume, key)) continue;
      Overlaps overlaps;
      overlaps.AddAll(volume[key]["items"], "");
      tell(overlaps, std::string(shown) + (name_key.empty() ? "" : base::GoQuote(Text(volume[key], name_key))));
    }
    Overlaps projected;
    for (const Value source : volume["projected"]["sources"].items()) {
      if (source.empty()) {
        call.warnings.push_back("volume " + name() + " (Projected) has no sources provided");
      } else if (IsSet(source["configMap"], "items")) {
        projected.AddAll(source["configMap"]["items"], "ConfigMap " + base::GoQuote(Text(source["configMap"], "name")));
      } else if (IsSet(source["secret"], "items")) {
        projected.AddAll(source["secret"]["items"], "Secret " + base::GoQuote(Text(source["secret"], "name")));
      } else if (IsSet(source["downwardAPI"], "items")) {
        projected.AddAll(source["downwardAPI"]["items"], "DownwardAPI");
      } else if (IsSet(source, "serviceAccountToken")) {
        projected.Add(Text(source["serviceAccountToken"], "path"), "ServiceAccountToken");
      } else if (const Value bundle = source["clusterTrustBundle"]; !bundle.is_null()) {
        projected.Add(
            Text(bundle, "path"),
            "ClusterTrustBundle " + base::GoQuote(Text(bundle, IsSet(bundle, "name") ? "name" : "signerName")));
      }
    }
    tell(projected, "Projected");
  }
}

void WarnRepeated(const Call& call, Value list, std::string_view key, std::string_view what, const FieldPath& path) {
  NameSet seen;
  std::int64_t index = 0;
  for (const Value item : list.items()) {
    const FieldPath at = path.Index(index++);
    if (!seen.emplace(Text(item, key)).second) {
      Warning(call, at.Child(key), "duplicate " + std::string(what) + " " + base::GoQuote(Text(item, key)));
    }
  }
}

void WarnFraction(const Call& call, Value list, std::string_view name, const FieldPath& path) {
  const Value quantity = list[name];
  if (quantity.is_null() || QuantityOf(quantity).MilliValue() % 1000 == 0) return;
  Warning(call, path.Key(name),
          "fractional byte value " + base::GoQuote(QuantityText(quantity)) + " is invalid, must be an integer");
}

void WarnEnvironment(const Call& call, Value container, const FieldPath& path) {
  std::array<std::byte, kUsualNamesBytes> buffer;
  std::pmr::monotonic_buffer_resource memory(buffer.data(), buffer.size());
  std::pmr::set<std::string_view> seen(&memory);
  std::int64_t index = 0;
  for (const Value variable : container["env"].items()) {
    const FieldPath at = path.Index(index++);
    const std::string_view name = Text(variable, "name");
    if (seen.insert(name).second) continue;
    // Extending a variable with itself is fine: PATH=$(PATH):/x.
    const std::string reference = "$(" + std::string(name) + ")";
    const std::string_view value = Text(variable, "value");
    const bool extends =
        !IsSet(variable, "valueFrom") && value != reference && value.find(reference) != std::string_view::npos;
    if (!extends)
      Warning(call, at,
              "hides previous definition of " + base::GoQuote(name) + ", which may be dropped when using apply");
  }
}

void WarnContainers(const Call& call, Value spec, Value metadata, bool in_template, const FieldPath& path,
                    const FieldPath& annotations_path) {
  const Value annotations = metadata["annotations"];
  const Value pod_profile = spec["securityContext"]["appArmorProfile"];
  const auto warn_annotations = [&](Value container) {
    const std::string seccomp = std::string(kSeccompContainerAnnotationPrefix).append(Text(container, "name"));
    if (!IsSet(container["securityContext"], "seccompProfile") && annotations.Has(seccomp)) {
      Warning(call, annotations_path.Key(seccomp),
              "non-functional in v1.27+; use the \"seccompProfile\" field instead");
    }
    const std::string app_armor = std::string(kAppArmorAnnotationPrefix).append(Text(container, "name"));
    if (const Value* annotation = annotations.Find(app_armor);
        in_template && annotation != nullptr && !IsSet(container["securityContext"], "appArmorProfile")) {
      const Value field = AppArmorFieldForAnnotation(call.arena, annotation->as_string());
      const bool same = !pod_profile.is_null() && !field.is_null() &&
                        SemanticEqual(pod_profile, field, schema::types::core_v1::kAppArmorProfile);
      if (!same)
        Warning(call, annotations_path.Key(app_armor),
                "deprecated since v1.30; use the \"appArmorProfile\" field instead");
    }
  };
  VisitContainers(spec, path, [&](Value container, const FieldPath& at) {
    if (!annotations.empty()) warn_annotations(container);
    const FieldPath resources = at.Child("resources");
    for (const std::string_view name : {"memory", "ephemeral-storage"}) {
      for (const std::string_view list : {"limits", "requests"}) {
        WarnFraction(call, container["resources"][list], name, resources.Child(list));
      }
    }
    WarnEnvironment(call, container, at.Child("env"));
  });
}

// Warnings name port blocks by their paths, which must be kept: paths do not outlive their parents.
void WarnPorts(const Call& call, Value spec, const FieldPath& path) {
  struct Block {
    std::string at;
    Value port;
  };
  std::map<std::string, std::vector<Block>> by_port;
  std::map<std::string, std::string, std::less<>> by_name;
  std::vector<std::string> about_names;
  VisitContainers(spec, path, [&](Value container, const FieldPath& container_path) {
    const FieldPath ports = container_path.Child("ports");
    std::int64_t index = 0;
    for (const Value port : container["ports"].items()) {
      const std::string at = ports.Index(index++).ToString();
      const std::string_view host_ip = Text(port, "hostIP");
      const std::int64_t host_port = Int(port, "hostPort"), number = Int(port, "containerPort");
      if (!host_ip.empty() && host_port == 0) {
        call.warnings.push_back(at + ": hostIP set without hostPort: {Name:" + std::string(Text(port, "name")) +
                                " HostPort:0 ContainerPort:" + std::to_string(number) + " Protocol:" +
                                std::string(Text(port, "protocol")) + " HostIP:" + std::string(host_ip) + "}");
      }
      auto& others = by_port[std::to_string(number) + "/" + std::string(Text(port, "protocol"))];
      if (call.warnings.size() >= kRemarksMax) return;
      for (const Block& other : others) {
        const std::string_view other_ip = Text(other.port, "hostIP");
        const std::int64_t other_port = Int(other.port, "hostPort");
        if (host_ip == other_ip && host_port == other_port) {
          call.warnings.push_back(at + ": duplicate port definition with " + other.at);
        } else if (host_port == 0 || other_port == 0) {
          call.warnings.push_back(at + ": overlapping port definition with " + other.at);
        } else if (host_port == other_port && host_ip.empty() != other_ip.empty()) {
          call.warnings.push_back(at + ": dangerously ambiguous port definition with " + other.at);
        }
      }
      if (others.size() < kRemarksMax) others.push_back({at, port});
      if (const std::string_view name = Text(port, "name"); !name.empty()) {
        const auto [first, fresh] = by_name.emplace(name, at);
        if (!fresh) {
          about_names.push_back(at + ": duplicate port name " + base::GoQuote(name) + " with " + first->second +
                                ", services and probes that select ports by name will use " + first->second);
        }
      }
    }
  });
  call.warnings.insert(call.warnings.end(), about_names.begin(), about_names.end());
}

void WarnAffinitySelectors(const Call& call, Value affinity, const FieldPath& path) {
  for (const std::string_view kind : {"podAffinity", "podAntiAffinity"}) {
    const FieldPath at = path.Child(kind);
    const FieldPath required = at.Child("requiredDuringSchedulingIgnoredDuringExecution");
    const FieldPath preferred = at.Child("preferredDuringSchedulingIgnoredDuringExecution");
    std::int64_t index = 0;
    for (const Value term : affinity[kind]["requiredDuringSchedulingIgnoredDuringExecution"].items()) {
      const FieldPath one = required.Index(index++);
      if (!IsSet(term, "labelSelector")) Warning(call, one.Child("labelSelector"), kNullSelector);
    }
    index = 0;
    for (const Value term : affinity[kind]["preferredDuringSchedulingIgnoredDuringExecution"].items()) {
      const FieldPath one = preferred.Index(index++);
      const FieldPath inner = one.Child("podAffinityTerm");
      if (!IsSet(term["podAffinityTerm"], "labelSelector")) Warning(call, inner.Child("labelSelector"), kNullSelector);
    }
  }
}

}  // namespace

void WarnName(const Call& call, Value object, std::string_view use) {
  const Messages messages = validation::IsDNS1123Label(Text(object["metadata"], "name"));
  if (messages.empty()) return;
  call.warnings.push_back("metadata.name: this is used in " + std::string(use) +
                          ", which can result in surprising behavior; a DNS label is recommended: [" +
                          base::Join(messages, " ") + "]");
}

void WarnPodSpec(const Call& call, Value spec, Value metadata, const FieldPath& prefix) {
  const FieldPath path = prefix.Child("spec"), metadata_path = prefix.Child("metadata");
  const FieldPath annotations = metadata_path.Child("annotations");
  WarnPlacement(call, spec, path);
  WarnAnnotations(call, metadata["annotations"], annotations);
  WarnVolumes(call, spec, path.Child("volumes"));
  WarnOverlappingPaths(call, spec);
  WarnRepeated(call, spec["hostAliases"], "ip", "ip", path.Child("hostAliases"));
  const FieldPath secrets = path.Child("imagePullSecrets");
  WarnRepeated(call, spec["imagePullSecrets"], "name", "name", secrets);
  std::int64_t index = 0;
  for (const Value secret : spec["imagePullSecrets"].items()) {
    const FieldPath at = secrets.Index(index++);
    if (Text(secret, "name").empty()) Warning(call, at.Child("name"), "invalid empty name \"\"");
  }
  for (const std::string_view name : {"memory", "ephemeral-storage"})
    WarnFraction(call, spec["overhead"], name, path.Child("overhead"));
  if (!IsSet(spec["securityContext"], "seccompProfile") && metadata["annotations"].Has(kSeccompPodAnnotation)) {
    Warning(call, annotations.Key(kSeccompPodAnnotation),
            "non-functional in v1.27+; use the \"seccompProfile\" field instead");
  }
  WarnContainers(call, spec, metadata, !prefix.empty(), path, annotations);
  WarnPorts(call, spec, path);
  if (Int(spec, "terminationGracePeriodSeconds") < 0) {
    Warning(call, path.Child("terminationGracePeriodSeconds"),
            "must be >= 0; negative values are invalid and will be treated as 1");
  }
  WarnAffinitySelectors(call, spec["affinity"], path.Child("affinity"));
  const FieldPath dns = path.Child("dnsConfig"), aliases = path.Child("hostAliases");
  const FieldPath servers = dns.Child("nameservers");
  index = 0;
  for (const Value server : spec["dnsConfig"]["nameservers"].items()) {
    rules::WarnAboutIP(servers.Index(index++), server.as_string(), call.warnings);
  }
  index = 0;
  for (const Value alias : spec["hostAliases"].items()) {
    const FieldPath at = aliases.Index(index++);
    rules::WarnAboutIP(at.Child("ip"), Text(alias, "ip"), call.warnings);
  }
}

void WarnPodOnCreate(const Call& call, Value pod, Value) {
  WarnName(call, pod, "the Pod's hostname");
  WarnPodSpec(call, pod["spec"], pod["metadata"], FieldPath());
}

}  // namespace keelson::registry::core
