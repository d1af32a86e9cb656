#include "registry/testing/corpus.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "registry/core/service.h"

namespace keelson::registry::testing {
namespace {

// Effects of allocators and the ServiceAccount plugin; the recordings were made with them.
FieldErrors Admit(const Call& call, Value object, Value old) {
  if (object["kind"].as_string() == "Service") {
    constexpr std::string_view kIPv4[] = {"IPv4"};
    FieldErrors errors;
    if (!old.is_null()) core::PatchAllocatedValues(call.arena, object, old);
    core::NormalizeClusterIPs(call.arena, object, old);
    core::InitIPFamilyFields(call.arena, object, old, kIPv4, validation::AddressRules::kStrict, errors);
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
constexpr std::initializer_list<const char*> kNeedOthers = {
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
    "resourceclaim/create-admin-access",  // needs the namespace's labels
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
  } else if (kind == "CertificateSigningRequest") {
    spec.Erase("extra");  // set by the x509 authenticator
  } else if (kind == "PersistentVolume" || kind == "PersistentVolumeClaim" || kind == "VolumeAttributesClass") {
    object["metadata"].Erase("finalizers");
  } else if (kind == "Node") {
    Value taints = spec["taints"];
    for (std::size_t i = taints.size(); i-- > 0;) {
      if (taints[i]["key"].as_string() == "node.kubernetes.io/not-ready") taints.Remove(i);
    }
    if (taints.empty()) spec.Erase("taints");
  }
}

void RunAll(std::string_view below) {
  const char* const only = std::getenv("KEELSON_CORPUS_FILE");  // the end of a file's name
  const std::vector<std::string> files = CorpusFiles(below);
  ASSERT_FALSE(files.empty()) << "no recordings of " << below;
  const CorpusOptions options{
      .before_validation = Admit, .skip = {kNeedOthers.begin(), kNeedOthers.end()}, .compare_without = WithoutOthers};
  int passed = 0, failed = 0;
  for (const std::string& file : files) {
    if (only != nullptr && !file.ends_with(only)) continue;
    const CorpusResult result = RunCorpus(file, options);
    passed += result.passed;
    failed += result.failed;
    std::cout << file << ": " << result.passed << " passed, " << result.failed << " failed\n";
    for (const std::string& failure : result.failures) ADD_FAILURE() << failure;
  }
  std::cout << below << ": " << passed << " passed, " << failed << " failed\n";
  EXPECT_TRUE(only != nullptr || passed > 0);
}

TEST(Corpus, Validation) { RunAll("validation"); }
TEST(Corpus, CRUD) { RunAll("crud"); }
TEST(Corpus, CustomResourceDefinitions) { RunAll("crd"); }
TEST(Corpus, Services) { RunAll("service.json"); }
TEST(Corpus, Namespaces) { RunAll("namespaces.json"); }
TEST(Corpus, Events) { RunAll("events.json"); }
TEST(Corpus, Warnings) { RunAll("admission/warnings.json"); }

}  // namespace
}  // namespace keelson::registry::testing
