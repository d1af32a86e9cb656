#!/usr/bin/env python3
"""The real controllers on the server. usage: controllers_test.py KEELSON WORK_FOLDER BIN_FOLDER

kube-controller-manager, kube-scheduler and kwok (which plays the kubelets of ten nodes) work on a fresh server. Checked: the controllers
become leaders, a Deployment of 100 replicas becomes available on the nodes, is scaled and rolled to a new image, a
service gets an endpoint slice, deleting the Deployment collects its pods, a Job completes, and a namespace with things in it goes away.
"""
import json
import os
import shutil
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rig import Client, Controllers, Keelson  # noqa: E402

NODES = 10
REPLICAS = 100


def deployment(replicas):
    labels = {"app": "web"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "strategy": {"rollingUpdate": {"maxSurge": "50%", "maxUnavailable": "50%"}},
                     "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "web:v1", "ports": [{"containerPort": 80}]}]}}}}


class Rig:
    def __init__(self, server, folder, programs):
        self.server = server
        self.client = Client(server)
        self.controllers = Controllers(server, folder, programs)
        self.results = []

    def get(self, path):
        return self.client.request("GET", path)

    def items(self, path):
        status, answer = self.get(path)
        return answer.get("items", []) if status == 200 else []

    def step(self, what, condition, seconds):
        """Waits until condition() holds; it returns (holds, what is seen)."""
        begin = time.monotonic()
        while True:
            try:
                holds, seen = condition()
            except (KeyError, TypeError) as error:
                holds, seen = False, repr(error)
            if holds or time.monotonic() - begin > seconds:
                break
            time.sleep(0.2)
        self.results.append(holds)
        print("%-4s %-58s %6.1f s   %s" % ("ok" if holds else "FAIL", what, time.monotonic() - begin, seen), flush=True)
        return holds


def run(rig):
    c = rig.client
    rig.controllers.start(NODES)

    def leaders():
        holders = {lease["metadata"]["name"]: lease["spec"].get("holderIdentity") for lease in rig.items("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases")}
        return bool(holders.get("kube-controller-manager") and holders.get("kube-scheduler")), sorted(holders)
    rig.step("controller-manager and scheduler lead", leaders, 60)

    def ready_nodes():
        ready = sum(any(x["type"] == "Ready" and x["status"] == "True" for x in n["status"].get("conditions", [])) for n in rig.items("/api/v1/nodes"))
        return ready == NODES, "%d ready" % ready
    rig.step("%d nodes are ready" % NODES, ready_nodes, 60)

    rig.step("service account default appears", lambda: (rig.get("/api/v1/namespaces/default/serviceaccounts/default")[0] == 200, ""), 60)
    rig.step("root CA config map appears", lambda: (rig.get("/api/v1/namespaces/default/configmaps/kube-root-ca.crt")[0] == 200, ""), 60)

    c.must(201, "POST", "/apis/apps/v1/namespaces/default/deployments", deployment(REPLICAS))
    path = "/apis/apps/v1/namespaces/default/deployments/web"

    def available(count, image):
        def condition():
            d = rig.get(path)[1]
            status = d.get("status", {})
            pods = [p for p in rig.items("/api/v1/namespaces/default/pods") if p["spec"]["containers"][0]["image"] == image and not p["metadata"].get("deletionTimestamp")]
            seen = "available %s, updated %s, of %s pods %d have a node, %d run" % (
                status.get("availableReplicas", 0), status.get("updatedReplicas", 0), len(pods), sum("nodeName" in p["spec"] for p in pods), sum(p["status"].get("phase") == "Running" for p in pods))
            return (status.get("observedGeneration") == d["metadata"]["generation"] and status.get("availableReplicas") == count and status.get("updatedReplicas") == count
                    and status.get("replicas") == count and len(pods) == count), seen
        return condition
    rig.step("a Deployment of %d replicas is available" % REPLICAS, available(REPLICAS, "web:v1"), 150)

    # Pods have loopback addresses here, which no slice may hold: a service that selects nothing gets the empty slice.
    c.must(201, "POST", "/api/v1/namespaces/default/services", {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "none"}, "spec": {"selector": {"app": "none"}, "ports": [{"port": 80}]}})

    def endpoints():
        slices = rig.items("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io/service-name=none")
        kinds = [s["addressType"] for s in slices]
        return kinds == ["IPv4"], "slices %s" % kinds
    rig.step("a service gets its endpoint slice", endpoints, 20)

    c.must(200, "PATCH", path + "/scale", {"spec": {"replicas": 30}}, content_type="application/merge-patch+json")
    rig.step("it is scaled to 30", available(30, "web:v1"), 90)
    c.must(200, "PATCH", path, {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "web:v2"}]}}}}, content_type="application/strategic-merge-patch+json")
    rig.step("it is rolled to a new image", available(30, "web:v2"), 120)
    c.must(200, "DELETE", path)
    rig.step("deleting it collects its pods", lambda: (lambda n: (n == 0, "%d left" % n))(len(rig.items("/api/v1/namespaces/default/pods?labelSelector=app=web"))), 120)

    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once", "annotations": {}},
           "spec": {"completions": 3, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "job:v1"}]}}}}
    status, answer = c.request("POST", "/apis/batch/v1/namespaces/default/jobs", job)
    rig.step("a Job of 3 completes", lambda: (rig.get("/apis/batch/v1/namespaces/default/jobs/once")[1]["status"].get("succeeded") == 3,
                                              "" if status == 201 else json.dumps(answer)), 60)

    c.must(201, "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gone"}})
    c.must(201, "POST", "/api/v1/namespaces/gone/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}})
    c.must(200, "DELETE", "/api/v1/namespaces/gone")
    rig.step("a namespace with things in it goes away", lambda: (rig.get("/api/v1/namespaces/gone")[0] == 404, json.dumps(rig.get("/api/v1/namespaces/gone")[1].get("status"))[:300]), 60)


def main():
    binary, folder, programs = sys.argv[1:4]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the programs are ended too
    shutil.rmtree(folder, ignore_errors=True)
    server = Keelson(binary, folder).start()
    rig = Rig(server, folder, programs)
    try:
        run(rig)
    finally:
        rig.controllers.stop()
        print("server: %.1f s CPU, peak %.0f MB; logs in %s" % (server.cpu_seconds(), server.memory_kb("VmHWM") / 1024, folder))
        server.stop()
    print("controllers: %d passed, %d failed" % (rig.results.count(True), rig.results.count(False)))
    sys.exit(0 if rig.results and all(rig.results) else 1)


if __name__ == "__main__":
    main()
