#!/usr/bin/env python3
"""Plugins that are off by default, with an AdmissionConfiguration file. usage: admission_plugins_test.py KEELSON WORK_FOLDER

The rules of each plugin are tested beside its code; here they are switched on by flags and read their files.
"""
import json
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "system"))
from harness import Client, Server, free_port  # noqa: E402
from webhook_peer import FaultyPeer  # noqa: E402

PODS = "/api/v1/namespaces/ns/pods"
FAILED = []
REVIEWS = []


def check(name, condition, detail=""):
    print("%s: %s" % (name, "ok" if condition else "FAILED " + str(detail)), flush=True)
    if not condition:
        FAILED.append(name)


def review_images(connection, review):
    """Allows images of registry.example only."""
    REVIEWS.append(review)
    good = all(c["image"].startswith("registry.example/") for c in review["spec"]["containers"])
    answer = dict(review, status={"allowed": good, "reason": "" if good else "not ours"})
    body = json.dumps(answer).encode()
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w") as f:
        f.write(text if isinstance(text, str) else json.dumps(text))
    return path


def configuration(folder, peer):
    """An AdmissionConfiguration with sections inline and in files of their own, by relative and absolute path."""
    kubeconfig = write(folder, "images.kubeconfig", {
        "apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": peer.url + "/images", "certificate-authority-data": peer.ca_bundle}}]})
    write(folder, "images.yaml", "imagePolicy:\n  kubeConfigFile: %s\n  allowTTL: 50\n  defaultAllow: false\n" % kubeconfig)
    quota = write(folder, "quota.yaml", "apiVersion: apiserver.config.k8s.io/v1\nkind: ResourceQuotaConfiguration\nlimitedResources:\n"
                  "- resource: persistentvolumeclaims\n  matchContains: [\".storageclass.storage.k8s.io/\"]\n")
    plugins = [{"name": "ImagePolicyWebhook", "path": "images.yaml"}, {"name": "ResourceQuota", "path": quota},
               {"name": "PodNodeSelector", "configuration": {"podNodeSelectorPluginConfig": {"clusterDefaultNodeSelector": "zone=a"}}},
               {"name": "EventRateLimit", "configuration": {"apiVersion": "eventratelimit.admission.k8s.io/v1alpha1", "kind": "Configuration",
                                                            "limits": [{"type": "Namespace", "qps": 1, "burst": 1}]}}]
    return write(folder, "admission.yaml", {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins})


def pod(name, image):
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": image, "imagePullPolicy": "Never"}]}}


def refused(answer):
    return answer[0], answer[1].get("message", "")


def behaviour(client):
    # NamespaceAutoProvision makes the namespace, so nothing else creates it here.
    client.must(201, "POST", "/api/v1/namespaces/ns/serviceaccounts", {"metadata": {"name": "default"}})
    check("NamespaceAutoProvision", client.request("GET", "/api/v1/namespaces/ns")[0] == 200)
    made = client.must(201, "POST", PODS, pod("a", "registry.example/a"))
    check("PodNodeSelector", made["spec"].get("nodeSelector") == {"zone": "a"}, made["spec"])
    check("AlwaysPullImages", made["spec"]["containers"][0]["imagePullPolicy"] == "Always", made["spec"])
    answer = refused(client.request("POST", PODS, pod("b", "elsewhere.example/b")))
    check("ImagePolicyWebhook denies", answer == (403, 'pods "b" is forbidden: image policy webhook backend denied one or more images: not ours'), answer)
    client.must(201, "POST", PODS, pod("c", "registry.example/a"))
    check("ImagePolicyWebhook caches", len(REVIEWS) == 2, len(REVIEWS))
    answer = refused(client.request("POST", "/api/v1/namespaces/ns/services", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 1}], "externalIPs": ["192.0.2.1"]}}))
    check("DenyServiceExternalIPs", answer[0] == 403 and "Use of external IPs is denied by admission control" in answer[1], answer)
    claim = {"metadata": {"name": "c"}, "spec": {"storageClassName": "gold", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    answer = refused(client.request("POST", "/api/v1/namespaces/ns/persistentvolumeclaims", claim))
    check("ResourceQuota's limitedResources", answer == (403, 'persistentvolumeclaims "c" is forbidden: insufficient quota to consume: gold.storageclass.storage.'
                                                         'k8s.io/persistentvolumeclaims,gold.storageclass.storage.k8s.io/requests.storage'), answer)
    statuses = {client.request("POST", "/api/v1/namespaces/ns/events", {"metadata": {"name": "e%d" % i}, "involvedObject": {"namespace": "ns"}})[0]
                for i in range(20)}
    check("EventRateLimit", statuses == {201, 429}, statuses)


def start_errors(binary, folder):
    """Files that cannot be used end the start with upstream's words."""
    cases = {
        "missing.yaml": (None, 'unable to read admission control configuration from "%s" [open %s: no such file or directory]'),
        "kind.yaml": ("apiVersion: apiserver.config.k8s.io/v1\nkind: Other\n", 'no kind "Other" is registered for version "apiserver.config.k8s.io/v1"'),
        "section.yaml": ("apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n- name: EventRateLimit\n  path: none.yaml\n",
                         "Couldn't open admission plugin configuration"),
        "limits.yaml": ("apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins: []\n",
                        "couldn't init admission plugin \"EventRateLimit\": limits: Invalid value: null: must not be empty"),
    }
    for name, (text, wanted) in cases.items():
        path = os.path.join(folder, name)
        if text is not None:
            write(folder, name, text)
        ended = subprocess.run([os.path.abspath(binary), "--data-dir=:memory:", "--secure-port=%d" % free_port(), "--cert-dir=" + os.path.join(folder, "certs"),
                                "--enable-admission-plugins=EventRateLimit", "--admission-control-config-file=" + path],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, text=True)
        wanted = wanted % (path, path) if "%s" in wanted else wanted
        check("start with " + name, ended.returncode != 0 and wanted in ended.stdout.replace('\\"', '"'), ended.stdout[-500:])


def main():
    binary, folder = sys.argv[1], os.path.abspath(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    peer = FaultyPeer(folder, {"/images": review_images})
    plugins = "NamespaceAutoProvision,PodNodeSelector,AlwaysPullImages,ImagePolicyWebhook,DenyServiceExternalIPs,EventRateLimit"
    server = Server(binary, folder, ["--enable-admission-plugins=" + plugins, "--admission-control-config-file=" + configuration(folder, peer)],
                    in_memory=True).start()
    try:
        client = Client(server)
        behaviour(client)
        client.close()
    finally:
        server.stop()
        peer.close()
    start_errors(binary, folder)
    print("failed: " + "; ".join(FAILED) if FAILED else "every plugin does its work")
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
