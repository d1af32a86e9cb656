#include "registry/testing/corpus.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <span>

#include "registry/apps/strategies.h"
#include "registry/batch/strategies.h"
#include "registry/core/service.h"
#include "registry/core/strategies.h"

namespace keelson::registry::testing {
namespace {

const Strategy* Find(std::string_view group, std::string_view kind) {
  for (const std::span<const Strategy> strategies :
       {core::CoreStrategies(), apps::AppsStrategies(), batch::BatchStrategies()}) {
    for (const Strategy& strategy : strategies) {
      if (strategy.group == group && strategy.kind == kind) return &strategy;
    }
  }
  return nullptr;
}

// What allocators and the ServiceAccount plugin do; the recordings were made with them.
FieldErrors Admit(const Call& call, Value object, Value old) {
  if (object["kind"].as_string() == "Service") {
    constexpr std::string_view kIPv4[] = {"IPv4"};
    FieldErrors errors;
    if (!old.is_null()) core::PatchAllocatedValues(call.arena, object, old);
    core::NormalizeClusterIPs(call.arena, object, old);
    core::InitIPFamilyFields(call.arena, object, old, kIPv4, errors);
    if (core::NeedsHealthCheckNodePort(object) && object["spec"]["healthCheckNodePort"].is_null()) {
      object["spec"].Set(call.arena, "healthCheckNodePort", 30999);
    }
    return errors;
  }
  if (object["kind"].as_string() != "Pod" || !old.is_null() || !object["spec"]["serviceAccountName"].is_null())
    return {};
  object.EnsureMap(call.arena, "spec").Set(call.arena, "serviceAccountName", "default");
  return {};
}

// The answer is made by a part that strategies do not have.
constexpr std::initializer_list<const char*> kNeedAdmission = {
    "pod/update-tolerations-remove",          // DefaultTolerationSeconds puts them back
    "service/create-clusterip-out-of-range",  // told by allocators, as the next ones
    "service/clusterip-allocated",
    "service/clusterip-bad-network",
    "service/clusterip-bad-broadcast",
    "service/clusterip-bad-outside",
    "service/nodeport",
    "service/nodeport-allocated",
    "service/nodeport-shared-protocols",
    "controllerrevisions/patch",  // their data is compared by its bytes, and a recording has lost its white space
    "controllerrevisions/watch",
};

// Takes away what allocators and admission plugins make.
void WithoutOthers(base::Arena&, Value object) {
  const std::string_view kind = object["kind"].as_string();
  Value spec = object["spec"];
  if (kind == "Pod") {
    for (const std::string_view key : {"tolerations", "priority", "preemptionPolicy"}) spec.Erase(key);
    const auto drop_token = [](Value holder, std::string_view key) {
      Value list = holder[key];
      for (std::size_t i = list.size(); i-- > 0;) {
        if (list[i]["name"].as_string().starts_with("kube-api-access")) list.Remove(i);
      }
      if (list.empty()) holder.Erase(key);
    };
    drop_token(spec, "volumes");
    for (const std::string_view list : {"containers", "initContainers", "ephemeralContainers"}) {
      for (const Value container : spec[list].items()) drop_token(container, "volumeMounts");
    }
  } else if (kind == "Service") {
    for (const std::string_view key : {"clusterIP", "clusterIPs", "healthCheckNodePort"}) spec.Erase(key);
    for (Value port : spec["ports"].items()) port.Erase("nodePort");
  } else if (kind == "PersistentVolume" || kind == "PersistentVolumeClaim") {
    object["metadata"].Erase("finalizers");
  } else if (kind == "Node") {
    Value taints = spec["taints"];
    for (std::size_t i = taints.size(); i-- > 0;) {
      if (taints[i]["key"].as_string() == "node.kubernetes.io/not-ready") taints.Remove(i);
    }
    if (taints.empty()) spec.Erase("taints");
  }
}

void RunAll(std::string_view folder, std::span<const std::string_view> files) {
  int passed = 0, failed = 0;
  const char* only = std::getenv("KEELSON_CORPUS_FILE");
  for (const std::string_view file : files) {
    if (only != nullptr && file != only) continue;
    const CorpusOptions options{.folder = std::string(folder),
                                .before_validation = Admit,
                                .skip = {kNeedAdmission.begin(), kNeedAdmission.end()},
                                .compare_without = WithoutOthers};
    const CorpusResult result = RunCorpus(file, Find, options);
    if (!result.found) GTEST_SKIP() << "no recordings: set KEELSON_CORPUS";
    passed += result.passed;
    failed += result.failed;
    std::cout << folder << "/" << file << ": " << result.passed << " passed, " << result.failed << " failed\n";
    for (const std::string& failure : result.failures) ADD_FAILURE() << failure;
  }
  std::cout << folder << ": " << passed << " passed, " << failed << " failed\n";
}

TEST(Corpus, Validation) {
  constexpr std::string_view kFiles[] = {"configmap",
                                         "secret",
                                         "serviceaccount",
                                         "namespace",
                                         "pod",
                                         "podtemplate",
                                         "persistentvolumeclaim",
                                         "deployment",
                                         "replicaset",
                                         "statefulset",
                                         "daemonset",
                                         "controllerrevision",
                                         "job",
                                         "cronjob",
                                         "service",
                                         "node",
                                         "persistentvolume",
                                         "endpoints",
                                         "resourcequota",
                                         "limitrange",
                                         "event",
                                         "replicationcontroller"};
  RunAll("validation", kFiles);
}

TEST(Corpus, CRUDOfCore) {
  constexpr std::string_view kFiles[] = {"configmaps",
                                         "endpoints",
                                         "events",
                                         "limitranges",
                                         "namespaces",
                                         "nodes",
                                         "persistentvolumeclaims",
                                         "persistentvolumes",
                                         "pods",
                                         "podtemplates",
                                         "replicationcontrollers",
                                         "resourcequotas",
                                         "secrets",
                                         "serviceaccounts",
                                         "services"};
  RunAll("crud/core", kFiles);
}

TEST(Corpus, CRUDOfApps) {
  constexpr std::string_view kFiles[] = {"controllerrevisions", "daemonsets", "deployments", "replicasets",
                                         "statefulsets"};
  RunAll("crud/apps", kFiles);
}

TEST(Corpus, CRUDOfBatch) {
  constexpr std::string_view kFiles[] = {"cronjobs", "jobs"};
  RunAll("crud/batch", kFiles);
}

TEST(Corpus, WholeAreas) {
  constexpr std::string_view kFiles[] = {"service", "namespaces", "events", "admission/warnings"};
  RunAll(".", kFiles);
}

TEST(Corpus, Subresources) {
  constexpr std::string_view kFiles[] = {"subresources"};
  RunAll("crud", kFiles);
}

}  // namespace
}  // namespace keelson::registry::testing
