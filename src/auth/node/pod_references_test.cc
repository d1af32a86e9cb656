#include "auth/node/pod_references.h"

#include <gtest/gtest.h>

#include "codec/json.h"
#include "codec/protobuf.h"
#include "schema/schema.h"

namespace keelson::auth::node {
namespace {

constexpr std::string_view kPod = R"({
  "apiVersion": "v1", "kind": "Pod",
  "metadata": {"name": "web", "namespace": "ns", "annotations": {"a": "b"}},
  "spec": {
    "nodeName": "n1", "serviceAccountName": "sa",
    "imagePullSecrets": [{"name": "pull"}],
    "containers": [{"name": "c",
      "envFrom": [{"secretRef": {"name": "from"}}, {"configMapRef": {"name": "cmfrom"}}],
      "env": [{"name": "x", "valueFrom": {"secretKeyRef": {"name": "key", "key": "k"}}},
              {"name": "y", "valueFrom": {"configMapKeyRef": {"name": "cmkey", "key": "k"}}},
              {"name": "z", "value": "plain"}]}],
    "initContainers": [{"name": "i", "env": [{"name": "x", "valueFrom": {"secretKeyRef": {"name": "init", "key": "k"}}}]}],
    "ephemeralContainers": [{"name": "e", "envFrom": [{"secretRef": {"name": "ephemeral"}}]}],
    "volumes": [
      {"name": "v1", "secret": {"secretName": "volume"}},
      {"name": "v2", "projected": {"sources": [{"secret": {"name": "projected"}}, {"configMap": {"name": "cmprojected"}},
                                               {"serviceAccountToken": {"path": "t"}}]}},
      {"name": "v3", "azureFile": {"secretName": "azure", "shareName": "s"}},
      {"name": "v4", "cephfs": {"monitors": ["m"], "secretRef": {"name": "ceph"}}},
      {"name": "v5", "cinder": {"volumeID": "i", "secretRef": {"name": "cinder"}}},
      {"name": "v6", "flexVolume": {"driver": "d", "secretRef": {"name": "flex"}}},
      {"name": "v7", "rbd": {"monitors": ["m"], "image": "i", "secretRef": {"name": "rbd"}}},
      {"name": "v8", "scaleIO": {"gateway": "g", "system": "s", "volumeName": "v", "secretRef": {"name": "scaleio"}}},
      {"name": "v9", "storageos": {"volumeName": "v", "secretRef": {"name": "storageos"}}},
      {"name": "v10", "iscsi": {"targetPortal": "p", "iqn": "q", "lun": 0, "secretRef": {"name": "iscsi"}}},
      {"name": "v11", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "csi"}}},
      {"name": "v12", "configMap": {"name": "cmvolume"}},
      {"name": "v13", "persistentVolumeClaim": {"claimName": "claim"}},
      {"name": "v14", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
      {"name": "v15", "emptyDir": {}}],
    "resourceClaims": [{"name": "r1", "resourceClaimName": "direct"}, {"name": "r2", "resourceClaimTemplateName": "t"},
                       {"name": "r3", "resourceClaimTemplateName": "t"}, {"name": "r4", "resourceClaimTemplateName": "t"}]
  },
  "status": {"resourceClaimStatuses": [{"name": "r2", "resourceClaimName": "made"}, {"name": "r3"}],
             "extendedResourceClaimStatus": {"requestMappings": [], "resourceClaimName": "extended"}}
})";

std::string Names(const PodReferences& references, ReferenceType type) {
  std::string names;
  for (const Reference& reference : references.references) {
    if (reference.type == type) names += (names.empty() ? "" : " ") + reference.name;
  }
  return names;
}

std::string Stored(base::Arena& arena, std::string_view json, Value* value = nullptr) {
  const schema::Struct* type = schema::FindKind("", "v1", "Pod");
  auto decoded = codec::DecodeJSON(arena, json, *type);
  EXPECT_TRUE(decoded.ok());
  if (value != nullptr) *value = decoded->value;
  std::string stored;
  codec::EncodeProto(decoded->value, *type, stored);
  return stored;
}

TEST(PodReferences, EveryKindOfReference) {
  base::Arena arena;
  Value pod;
  const std::string stored = Stored(arena, kPod, &pod);
  const auto read = ReadPodReferences(stored);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->node_name, "n1");
  EXPECT_EQ(Names(*read, ReferenceType::kServiceAccount), "sa");
  EXPECT_EQ(Names(*read, ReferenceType::kSecret),
            "azure ceph cinder csi ephemeral flex from init iscsi key projected pull rbd scaleio storageos volume");
  EXPECT_EQ(Names(*read, ReferenceType::kConfigMap), "cmfrom cmkey cmprojected cmvolume");
  EXPECT_EQ(Names(*read, ReferenceType::kPersistentVolumeClaim), "claim web-v14");
  EXPECT_EQ(Names(*read, ReferenceType::kResourceClaim), "direct extended made");
  EXPECT_EQ(*read, PodReferencesOf(pod)) << "bytes and decoded pod must agree";
}

TEST(PodReferences, MirrorPodRefersToNothing) {
  base::Arena arena;
  std::string json(kPod);
  json.replace(json.find("\"a\": \"b\""), 8, "\"kubernetes.io/config.mirror\": \"x\"");
  Value pod;
  const auto read = ReadPodReferences(Stored(arena, json, &pod));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->node_name, "n1");
  EXPECT_TRUE(read->references.empty());
  EXPECT_EQ(*read, PodReferencesOf(pod));
}

TEST(PodReferences, DamagedBytesAreRefused) {
  base::Arena arena;
  const std::string stored = Stored(arena, kPod);
  EXPECT_FALSE(ReadPodReferences("{}").has_value());
  for (std::size_t size = 0; size < stored.size(); size += 7) ReadPodReferences(stored.substr(0, size));
}

}  // namespace
}  // namespace keelson::auth::node
