// Defaults of pod specs and of pods.
#include "registry/core/image_reference.h"
#include "registry/core/pod.h"
#include "registry/core/pod_spec.h"
#include "registry/core/resources.h"
#include "registry/core/volume_sources.h"

namespace keelson::registry::core {
namespace {

using base::Arena;

constexpr std::int64_t kFileMode = 0644;
constexpr std::int64_t kTokenSeconds = 3600;
constexpr std::int64_t kGraceSeconds = 30;

// A number that is zero counts as absent: fields that are not pointers upstream.
void DefaultNumber(Arena& arena, Value object, std::string_view key, std::int64_t number) {
  if (Int(object, key) == 0) object.Set(arena, key, Value(number));
}

void DefaultPullPolicy(Arena& arena, Value object, std::string_view policy, std::string_view image) {
  DefaultText(arena, object, policy, PullsLatest(image) ? "Always" : "IfNotPresent");
}

void DefaultHTTPGet(Arena& arena, Value handler) {
  if (!IsSet(handler, "httpGet")) return;
  DefaultText(arena, handler["httpGet"], "path", "/");
  DefaultText(arena, handler["httpGet"], "scheme", "HTTP");
}

void DefaultProbe(Arena& arena, Value probe) {
  if (probe.is_null()) return;
  DefaultNumber(arena, probe, "timeoutSeconds", 1);
  DefaultNumber(arena, probe, "periodSeconds", 10);
  DefaultNumber(arena, probe, "successThreshold", 1);
  DefaultNumber(arena, probe, "failureThreshold", 3);
  DefaultHTTPGet(arena, probe);
  if (IsSet(probe, "grpc")) Default(arena, probe["grpc"], "service", "");
}

void DefaultFieldRef(Arena& arena, Value holder) {
  if (IsSet(holder, "fieldRef")) DefaultText(arena, holder["fieldRef"], "apiVersion", "v1");
}

void DefaultContainer(Arena& arena, Value container) {
  DefaultPullPolicy(arena, container, "imagePullPolicy", Text(container, "image"));
  DefaultText(arena, container, "terminationMessagePath", "/dev/termination-log");
  DefaultText(arena, container, "terminationMessagePolicy", "File");
  for (const Value port : container["ports"].items()) DefaultText(arena, port, "protocol", "TCP");
  for (const Value variable : container["env"].items()) {
    DefaultFieldRef(arena, variable["valueFrom"]);
    if (IsSet(variable["valueFrom"], "fileKeyRef"))
      Default(arena, variable["valueFrom"]["fileKeyRef"], "optional", false);
  }
  for (const std::string_view probe : {"livenessProbe", "readinessProbe", "startupProbe"})
    DefaultProbe(arena, container[probe]);
  for (const std::string_view hook : {"postStart", "preStop"}) DefaultHTTPGet(arena, container["lifecycle"][hook]);
  for (const std::string_view list : {"limits", "requests"}) RoundResourceList(arena, container["resources"][list]);
}

void DefaultProjected(Arena& arena, Value source) {
  Default(arena, source, "defaultMode", Value(kFileMode));
  for (const Value one : source["sources"].items()) {
    for (const Value item : one["downwardAPI"]["items"].items()) DefaultFieldRef(arena, item);
    if (IsSet(one, "serviceAccountToken"))
      Default(arena, one["serviceAccountToken"], "expirationSeconds", Value(kTokenSeconds));
  }
}

void DefaultVolume(Arena& arena, Value volume) {
  bool has_source = false;
  for (const SourceRow& row : PodVolumeSources()) has_source |= IsSet(volume, row.key);
  if (!has_source) volume.Set(arena, "emptyDir", Value::Map(arena));
  for (const std::string_view key : {"secret", "configMap", "downwardAPI"}) {
    if (IsSet(volume, key)) Default(arena, volume[key], "defaultMode", Value(kFileMode));
  }
  for (const Value item : volume["downwardAPI"]["items"].items()) DefaultFieldRef(arena, item);
  if (IsSet(volume, "projected")) DefaultProjected(arena, volume["projected"]);
  if (const Value image = volume["image"]; !image.is_null())
    DefaultPullPolicy(arena, image, "pullPolicy", Text(image, "reference"));
  if (IsSet(volume["ephemeral"], "volumeClaimTemplate")) {
    Value claim = volume["ephemeral"]["volumeClaimTemplate"];
    DefaultClaimSpec(arena, claim.EnsureMap(arena, "spec"));
  }
  DefaultStorageSources(arena, volume);
}

// Requests default to limits: a resource with a limit and no request gets the limit as its request.
void DefaultRequestsFromLimits(Arena& arena, Value container) {
  Value resources = container["resources"];
  if (!IsSet(resources, "limits")) return;
  Value requests = resources.EnsureMap(arena, "requests");
  for (const object::Member& limit : SortedMembers(resources["limits"]))
    Default(arena, requests, limit.key, limit.value);
}

void DefaultPodLevelResources(Arena& arena, Value spec) {
  Value own = spec["resources"];
  if (own.is_null()) return;
  for (const std::string_view list : {"limits", "requests"}) RoundResourceList(arena, own[list]);
  if (own["limits"].empty() && own["requests"].empty()) return;
  for (const auto& [name, limit] : AggregateContainers(spec, "limits")) {
    if (!IsHugePageResource(name) || own["requests"].Has(name)) continue;
    Default(arena, own.EnsureMap(arena, "limits"), arena.Copy(name), Value::String(arena, limit.ToString()));
  }
  if (own["limits"].empty()) return;
  for (const auto& [name, request] : AggregateContainers(spec, "requests")) {
    if (!IsSupportedPodLevelResource(name) || !IsOvercommitAllowed(name)) continue;
    Default(arena, own.EnsureMap(arena, "requests"), arena.Copy(name), Value::String(arena, request.ToString()));
  }
  for (const object::Member& limit : SortedMembers(own["limits"])) {
    if (IsSupportedPodLevelResource(limit.key))
      Default(arena, own.EnsureMap(arena, "requests"), limit.key, limit.value);
  }
}

// Annotations of the time before init containers were fields; conversion drops them upstream.
void DropInitContainerAnnotations(Value metadata) {
  Value annotations = metadata["annotations"];
  for (const std::string_view key :
       {"pod.beta.kubernetes.io/init-containers", "pod.alpha.kubernetes.io/init-containers",
        "pod.beta.kubernetes.io/init-container-statuses", "pod.alpha.kubernetes.io/init-container-statuses"}) {
    annotations.Erase(key);
  }
}

}  // namespace

void DefaultStorageSources(Arena& arena, Value holder) {
  if (IsSet(holder, "hostPath")) Default(arena, holder["hostPath"], "type", "");
  if (IsSet(holder, "iscsi")) DefaultText(arena, holder["iscsi"], "iscsiInterface", "default");
  if (const Value rbd = holder["rbd"]; !rbd.is_null()) {
    DefaultText(arena, rbd, "pool", "rbd");
    DefaultText(arena, rbd, "user", "admin");
    DefaultText(arena, rbd, "keyring", "/etc/ceph/keyring");
  }
  if (const Value disk = holder["azureDisk"]; !disk.is_null()) {
    Default(arena, disk, "cachingMode", "ReadWrite");
    Default(arena, disk, "fsType", "ext4");
    Default(arena, disk, "readOnly", false);
    Default(arena, disk, "kind", "Shared");
  }
  if (const Value scale_io = holder["scaleIO"]; !scale_io.is_null()) {
    DefaultText(arena, scale_io, "storageMode", "ThinProvisioned");
    DefaultText(arena, scale_io, "fsType", "xfs");
  }
}

void DefaultClaimSpec(Arena& arena, Value spec) {
  Default(arena, spec, "volumeMode", "Filesystem");
  for (const std::string_view list : {"limits", "requests"}) RoundResourceList(arena, spec["resources"][list]);
}

void SyncServiceAccount(Arena& arena, Value spec) {
  // The deprecated twin: read where the name is empty, written with the name (conversion does both upstream).
  if (Text(spec, "serviceAccountName").empty() && !Text(spec, "serviceAccount").empty()) {
    spec.Set(arena, "serviceAccountName", spec["serviceAccount"]);
  }
  if (Text(spec, "serviceAccountName").empty()) {
    spec.Erase("serviceAccount");
  } else {
    spec.Set(arena, "serviceAccount", spec["serviceAccountName"]);
  }
}

void DefaultPodSpec(Arena& arena, Value spec) {
  SyncServiceAccount(arena, spec);
  for (const Value volume : spec["volumes"].items()) DefaultVolume(arena, volume);
  for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const Value container : spec[list].items()) DefaultContainer(arena, container);
  }
  DefaultText(arena, spec, "dnsPolicy", "ClusterFirst");
  DefaultText(arena, spec, "restartPolicy", "Always");
  Default(arena, spec, "securityContext", Value::Map(arena));
  Default(arena, spec, "terminationGracePeriodSeconds", Value(kGraceSeconds));
  DefaultText(arena, spec, "schedulerName", "default-scheduler");
  RoundResourceList(arena, spec["overhead"]);
}

void DefaultPodTemplate(Arena& arena, Value holder, std::string_view key) {
  Value pod_template = holder.EnsureMap(arena, key);
  DropInitContainerAnnotations(pod_template["metadata"]);
  DefaultPodSpec(arena, pod_template.EnsureMap(arena, "spec"));
}

void DefaultPod(Arena& arena, Value pod) {
  Value spec = pod.EnsureMap(arena, "spec");
  DropInitContainerAnnotations(pod["metadata"]);
  DefaultPodSpec(arena, spec);
  // Pods only, not templates: conversion makes a negative period one second.
  if (Int(spec, "terminationGracePeriodSeconds") < 0) spec.Set(arena, "terminationGracePeriodSeconds", Value(1));
  for (const std::string_view list : {"containers", "initContainers"}) {
    for (const Value container : spec[list].items()) {
      DefaultRequestsFromLimits(arena, container);
      if (!Bool(spec, "hostNetwork")) continue;
      for (const Value port : container["ports"].items()) {
        if (Int(port, "hostPort") == 0 && Int(port, "containerPort") != 0) {
          Value mutable_port = port;
          mutable_port.Set(arena, "hostPort", port["containerPort"]);
        }
      }
    }
  }
  DefaultPodLevelResources(arena, spec);
  Default(arena, spec, "enableServiceLinks", true);
  Value status = pod["status"];
  // status.podIP is the first of podIPs; where they differ the singular one wins, as conversion has it.
  for (const auto& [single, plural] : {std::pair{"podIP", "podIPs"}}) {
    const std::string_view ip = Text(status, single);
    const std::string_view first = Text(status[plural][std::size_t{0}], "ip");
    if (!ip.empty() && ip != first) {
      Value one = Value::Map(arena, 1);
      one.Set(arena, "ip", status[single]);
      Value list = Value::List(arena, 1);
      list.Append(arena, one);
      status.Set(arena, plural, list);
    } else if (ip.empty() && !first.empty()) {
      status.Set(arena, single, status[plural][std::size_t{0}]["ip"]);
    }
  }
  for (const std::string_view list : {"initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"}) {
    for (const Value container : status[list].items()) {
      RoundResourceList(arena, container["allocatedResources"]);
      for (const std::string_view key : {"limits", "requests"}) RoundResourceList(arena, container["resources"][key]);
    }
  }
}

}  // namespace keelson::registry::core
