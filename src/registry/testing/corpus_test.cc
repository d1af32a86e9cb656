#include "registry/testing/corpus.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "registry/apps/strategies.h"
#include "registry/batch/strategies.h"
#include "registry/core/service.h"
#include "registry/core/strategies.h"

namespace keelson::registry::testing {
namespace {

const Strategy* Find(std::string_view group, std::string_view kind) {
  for (const std::span<const Strategy> strategies : {core::CoreStrategies(), apps::AppsStrategies(), batch::BatchStrategies()}) {
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
    return errors;
  }
  if (object["kind"].as_string() != "Pod" || !old.is_null() || !object["spec"]["serviceAccountName"].is_null()) return {};
  object.EnsureMap(call.arena, "spec").Set(call.arena, "serviceAccountName", "default");
  return {};
}

// The answer is made by a part that strategies do not have.
constexpr std::initializer_list<const char*> kNeedAdmission = {
    "pod/update-tolerations-remove",          // DefaultTolerationSeconds puts them back
    "service/create-clusterip-out-of-range",  // told by the allocator
};

TEST(Corpus, RecordedAnswers) {
  constexpr std::string_view kFiles[] = {"configmap", "secret", "serviceaccount", "namespace", "pod", "podtemplate", "persistentvolumeclaim",
                                        "deployment", "replicaset", "statefulset", "daemonset", "controllerrevision", "job", "cronjob",
                                        "service", "node", "persistentvolume", "endpoints", "resourcequota", "limitrange", "event",
                                        "replicationcontroller"};
  int passed = 0, failed = 0;
  const char* only = std::getenv("KEELSON_CORPUS_FILE");
  for (const std::string_view file : kFiles) {
    if (only != nullptr && file != only) continue;
    const CorpusResult result = RunCorpus(file, Find, {.before_validation = Admit, .skip = {kNeedAdmission.begin(), kNeedAdmission.end()}});
    if (!result.found) GTEST_SKIP() << "no recordings: set KEELSON_CORPUS";
    passed += result.passed;
    failed += result.failed;
    std::cout << file << ": " << result.passed << " passed, " << result.failed << " failed\n";
    for (const std::string& failure : result.failures) ADD_FAILURE() << failure;
  }
  std::cout << passed << " passed, " << failed << " failed\n";
}

}  // namespace
}  // namespace keelson::registry::testing
