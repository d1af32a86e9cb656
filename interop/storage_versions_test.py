#!/usr/bin/env python3
"""StorageVersion objects: those that kube-apiserver and Keelson write for themselves, and answers to the same requests. usage: storage_versions_test.py
KEELSON WORK_FOLDER BIN_FOLDER
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rig import Client, compare  # noqa: E402

VERSIONS = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions"
ONE = {"apiServerID": "a", "encodingVersion": "v1", "decodableVersions": ["v1"]}
CONDITION = {"type": "a", "status": "True", "reason": "r", "message": "m"}
STATUSES = [
    {"storageVersions": [ONE, {"apiServerID": "a", "encodingVersion": "V1/", "decodableVersions": ["v2", "a/b/c", "/v1"], "servedVersions": ["v1", "v3"]}],
     "commonEncodingVersion": "v1", "conditions": [dict(CONDITION, reason="", message=""), {"type": "a b", "status": "", "reason": "x", "message": "y"}]},
    {"storageVersions": [ONE, {"apiServerID": "A_", "encodingVersion": "v2", "decodableVersions": ["v1"]}]},
    {"storageVersions": [ONE]},
    {"commonEncodingVersion": "v1"},
    {"storageVersions": [ONE], "commonEncodingVersion": "v2"},
    {"storageVersions": [ONE], "commonEncodingVersion": "v1", "conditions": [CONDITION, CONDITION]},
    {"storageVersions": [dict(ONE, servedVersions=["v1"])], "commonEncodingVersion": "v1", "conditions": [CONDITION]},
]
ROLES = ["/apis/rbac.authorization.k8s.io/v1/%s/system:controller:%s" % (kind, name) for kind in ("clusterroles", "clusterrolebindings")
         for name in ("storage-version-garbage-collector", "storage-version-migrator-controller")]


def without_meta(answer):
    if not isinstance(answer, dict):
        return answer
    if answer.get("kind") == "Status":
        return answer.get("message")
    for field in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
        answer.get("metadata", {}).pop(field, None)
    return answer


def answers(server):
    client = Client(server)
    found = {}
    for one in client.must(200, "GET", VERSIONS)["items"]:
        entry, = one["status"]["storageVersions"]
        # kube-apiserver takes the served versions from a map, in random order.
        found["object " + one["metadata"]["name"]] = (
            entry["encodingVersion"], entry["decodableVersions"], sorted(entry["servedVersions"]), one["status"]["commonEncodingVersion"],
            [{key: value for key, value in condition.items() if key != "lastTransitionTime"} for condition in one["status"]["conditions"]],
            "managedFields" in one["metadata"])
    found["objects"] = len(found)
    found["discovery"] = client.must(200, "GET", "/apis/internal.apiserver.k8s.io/v1alpha1")
    found["columns"] = client.must(200, "GET", VERSIONS + "/core.pods", accept="application/json;as=Table;g=meta.k8s.io;v=v1")["columnDefinitions"]
    for path in ROLES:
        found[path] = without_meta(client.must(200, "GET", path))
    for name in ("nodot", "A_.B_", "g.example.com.widgets"):
        status, answer = client.request("POST", VERSIONS, {"metadata": {"name": name}, "status": {"commonEncodingVersion": "v1"}})
        found["create " + name] = (status, without_meta(answer))
    for number, status in enumerate(STATUSES):
        code, answer = client.request("PATCH", VERSIONS + "/g.example.com.widgets/status", {"metadata": {"labels": {"a": "b"}}, "status": status},
                                      content_type="application/merge-patch+json")
        found["status %d" % number] = (code, without_meta(answer))
    rows = client.must(200, "GET", VERSIONS + "/g.example.com.widgets", accept="application/json;as=Table;g=meta.k8s.io;v=v1")["rows"]
    found["row"] = rows[0]["cells"][:3]
    code, answer = client.request("PUT", VERSIONS + "/g.example.com.widgets", {"metadata": {"name": "g.example.com.widgets"}})
    found["put without a version"] = (code, without_meta(answer))
    return found


if __name__ == "__main__":
    sys.exit(compare(__doc__, answers, flags=["--feature-gates=StorageVersionAPI=true,StorageVersionMigrator=true",
                                              "--runtime-config=internal.apiserver.k8s.io/v1alpha1=true,storagemigration.k8s.io/v1beta1=true"]))
