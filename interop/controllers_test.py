#!/usr/bin/env python3
"""The real controllers on the server. usage: controllers_test.py KEELSON WORK_FOLDER BIN_FOLDER [--kubeadm]

kube-controller-manager, kube-scheduler and kwok (which plays the kubelets of ten nodes) work on a fresh server. Checked: the controllers
become leaders, a Deployment of 100 replicas becomes available on the nodes, is scaled and rolled to a new image, a
service gets an endpoint slice, deleting the Deployment collects its pods, a Job completes, a StatefulSet, a DaemonSet and a CronJob do their
work, a HorizontalPodAutoscaler keeps its minimum, a PodDisruptionBudget guards evictions, and a namespace with things in it goes away.
--kubeadm: the same with the identities of a kubeadm cluster under Node,RBAC and NodeRestriction: controllers act as their service accounts
(--use-service-account-credentials), each of three nodes works with its own certificate and gets nothing that is another node's.
"""
import json
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rig import Client, Controllers, Keelson, KubeadmControllers, arguments_of, parser_of  # noqa: E402

NODES = 10
REPLICAS = 100
KUBEADM_NODES = 3
KUBEADM_FLAGS = ["--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction"]
CONTROLLER_ACCOUNTS = ["cronjob-controller", "deployment-controller", "job-controller", "namespace-controller", "replicaset-controller",
                       "service-account-controller", "statefulset-controller"]


def deployment(replicas):
    labels = {"app": "web"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "strategy": {"rollingUpdate": {"maxSurge": "50%", "maxUnavailable": "50%"}},
                     "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "web:v1", "ports": [{"containerPort": 80}]}]}}}}


class Rig:
    def __init__(self, server, folder, programs, kubeadm=False):
        self.server = server
        self.client = Client(server)
        self.nodes = KUBEADM_NODES if kubeadm else NODES
        self.controllers = (KubeadmControllers if kubeadm else Controllers)(server, folder, programs)
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
    rig.controllers.start(rig.nodes)

    def leaders():
        holders = {lease["metadata"]["name"]: lease["spec"].get("holderIdentity") for lease in rig.items("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases")}
        return bool(holders.get("kube-controller-manager") and holders.get("kube-scheduler")), sorted(holders)
    rig.step("controller-manager and scheduler lead", leaders, 60)

    def ready_nodes():
        ready = sum(any(x["type"] == "Ready" and x["status"] == "True" for x in n["status"].get("conditions", [])) for n in rig.items("/api/v1/nodes"))
        return ready == rig.nodes, "%d ready" % ready
    rig.step("%d nodes are ready" % rig.nodes, ready_nodes, 60)

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

    cron_job(rig)  # its first minute passes while the others are watched
    stateful_set(rig)
    daemon_set(rig)
    autoscaler(rig)
    disruption_budget(rig)
    rig.step("the CronJob has started a Job", lambda: (lambda jobs: (len(jobs) >= 1, "%d jobs" % len(jobs)))(
        [j for j in rig.items("/apis/batch/v1/namespaces/default/jobs") if owner(j) == "every-minute"]), 90)

    c.must(201, "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gone"}})
    c.must(201, "POST", "/api/v1/namespaces/gone/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}})
    c.must(201, "POST", "/api/v1/namespaces/gone/services", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
    c.must(201, "POST", "/apis/apps/v1/namespaces/gone/deployments", deployment(5))
    rig.step("a Deployment in it has its pods", lambda: (lambda n: (n == 5, "%d pods" % n))(len(rig.items("/api/v1/namespaces/gone/pods"))), 60)
    c.must(200, "DELETE", "/api/v1/namespaces/gone")
    rig.step("a namespace with things in it goes away", lambda: (rig.get("/api/v1/namespaces/gone")[0] == 404, json.dumps(rig.get("/api/v1/namespaces/gone")[1].get("status"))[:300]), 60)


def identities(rig):
    """Permissions of kubeadm's identities."""
    def accounts():
        names = {a["metadata"]["name"] for a in rig.items("/api/v1/namespaces/kube-system/serviceaccounts")}
        return names.issuperset(CONTROLLER_ACCOUNTS), "%d service accounts" % len(names)
    rig.step("controllers have service accounts of their own", accounts, 30)
    for name in ("mounted", "other"):
        rig.client.must(201, "POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": name}, "stringData": {"k": "v"}})
    pod = pod_template("mounts")
    pod["metadata"]["name"] = "mounts"
    pod["spec"].update({"nodeName": "node-00", "volumes": [{"name": "s", "secret": {"secretName": "mounted"}}]})
    rig.client.must(201, "POST", "/api/v1/namespaces/default/pods", pod)
    rig.step("a node runs a pod that mounts a secret", lambda: (running(pods_of(rig, "mounts")) == 1, ""), 60)
    clients = {name: Client(identity, context=identity.context()) for name, identity in rig.controllers.nodes.items()}
    secret = "/api/v1/namespaces/default/secrets/"
    label = {"metadata": {"labels": {"node-restriction.kubernetes.io/x": "y"}}}
    merge = {"content_type": "application/merge-patch+json"}
    for what, who, request, wanted in (
            ("the node reads the secret its pod mounts", "node-00", ("GET", secret + "mounted"), 200),
            ("it does not read another secret", "node-00", ("GET", secret + "other"), 403),
            ("another node does not read it", "node-01", ("GET", secret + "mounted"), 403),
            ("a node does not list secrets", "node-00", ("GET", "/api/v1/secrets"), 403),
            ("a node does not change another node", "node-00", ("PATCH", "/api/v1/nodes/node-01/status", {"status": {"phase": "Running"}}), 403),
            ("a node does not set reserved labels of its own", "node-00", ("PATCH", "/api/v1/nodes/node-00", label), 403),
            ("a node does not delete another node's pod", "node-01", ("DELETE", "/api/v1/namespaces/default/pods/mounts"), 403),
            ("a node does not make a token for a pod elsewhere", "node-01", ("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", {
                "spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "mounts", "uid": pods_of(rig, "mounts")[0]["metadata"]["uid"]}}}), 403),
            ("a node makes a token for its pod", "node-00", ("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", {
                "spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "mounts", "uid": pods_of(rig, "mounts")[0]["metadata"]["uid"]}}}), 201)):
        status, answer = clients[who].request(*request, **(merge if request[0] == "PATCH" else {}))
        rig.step(what, lambda: (status == wanted, "%d %s" % (status, answer.get("message", ""))), 0)


def pod_template(app):
    return {"metadata": {"labels": {"app": app}}, "spec": {"terminationGracePeriodSeconds": 1, "containers": [{"name": "main", "image": app + ":v1"}]}}


def owner(thing):
    return (thing["metadata"].get("ownerReferences") or [{"name": ""}])[0]["name"]


def pods_of(rig, app):
    return [p for p in rig.items("/api/v1/namespaces/default/pods?labelSelector=app=" + app) if not p["metadata"].get("deletionTimestamp")]


def running(pods):
    return sum(p["status"].get("phase") == "Running" for p in pods)


def stateful_set(rig):
    path = "/apis/apps/v1/namespaces/default/statefulsets"
    rig.client.must(201, "POST", path, {"metadata": {"name": "db"}, "spec": {
        "serviceName": "db", "replicas": 3, "selector": {"matchLabels": {"app": "db"}}, "template": pod_template("db")}})

    def names(wanted):
        def condition():
            pods = pods_of(rig, "db")
            seen = sorted(p["metadata"]["name"] for p in pods)
            return seen == wanted and running(pods) == len(wanted) and rig.get(path + "/db")[1]["status"].get("readyReplicas", 0) == len(wanted), seen
        return condition
    rig.step("a StatefulSet numbers its pods", names(["db-0", "db-1", "db-2"]), 90)
    created = {p["metadata"]["name"]: p["metadata"]["uid"] for p in pods_of(rig, "db")}
    rig.client.must(200, "PATCH", path + "/db/scale", {"spec": {"replicas": 1}}, content_type="application/merge-patch+json")
    rig.step("scaled down, the last go first", names(["db-0"]), 60)
    rig.step("and the first is still the same", lambda: ([p["metadata"]["uid"] for p in pods_of(rig, "db")] == [created.get("db-0")], ""), 5)


def daemon_set(rig):
    path = "/apis/apps/v1/namespaces/default/daemonsets"
    rig.client.must(201, "POST", path, {"metadata": {"name": "agent"}, "spec": {
        "selector": {"matchLabels": {"app": "agent"}}, "template": pod_template("agent")}})

    def everywhere():
        nodes = sorted(p["spec"].get("nodeName", "") for p in pods_of(rig, "agent"))
        status = rig.get(path + "/agent")[1]["status"]
        return len(set(nodes)) == rig.nodes == len(nodes) and status.get("numberReady") == rig.nodes, "%d pods, %s ready" % (len(nodes), status.get("numberReady"))
    rig.step("a DaemonSet has a pod on every node", everywhere, 90)
    rig.client.must(200, "DELETE", path + "/agent")
    rig.step("deleted, its pods go", lambda: (not pods_of(rig, "agent"), ""), 60)


def cron_job(rig):
    rig.client.must(201, "POST", "/apis/batch/v1/namespaces/default/cronjobs", {"metadata": {"name": "every-minute"}, "spec": {
        "schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "job:v1"}]}}}}}})


def autoscaler(rig):
    apps = "/apis/apps/v1/namespaces/default/deployments"
    rig.client.must(201, "POST", apps, {"metadata": {"name": "scaled"}, "spec": {
        "replicas": 1, "selector": {"matchLabels": {"app": "scaled"}}, "template": pod_template("scaled")}})
    rig.client.must(201, "POST", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", {"metadata": {"name": "scaled"}, "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "scaled"}, "minReplicas": 3, "maxReplicas": 5,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]}})

    def kept():
        status = rig.get("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/scaled")[1].get("status", {})
        replicas = rig.get(apps + "/scaled")[1]["spec"]["replicas"]
        conditions = {x["type"]: x["status"] for x in status.get("conditions") or []}
        return replicas == 3 and conditions.get("AbleToScale") == "True", "replicas %s, %s" % (replicas, conditions)
    rig.step("a HorizontalPodAutoscaler keeps the minimum", kept, 90)


def disruption_budget(rig):
    apps = "/apis/apps/v1/namespaces/default/deployments"
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    rig.client.must(201, "POST", apps, {"metadata": {"name": "guarded"}, "spec": {
        "replicas": 3, "selector": {"matchLabels": {"app": "guarded"}}, "template": pod_template("guarded")}})
    rig.client.must(201, "POST", budgets, {"metadata": {"name": "guard"}, "spec": {"minAvailable": 3, "selector": {"matchLabels": {"app": "guarded"}}}})

    def allowed(count):
        def condition():
            status = rig.get(budgets + "/guard")[1].get("status", {})
            seen = {k: status.get(k) for k in ("disruptionsAllowed", "currentHealthy", "observedGeneration")}
            return status.get("currentHealthy") == 3 and status.get("disruptionsAllowed") == count, seen
        return condition
    rig.step("a PodDisruptionBudget counts its pods", allowed(0), 90)
    victim = pods_of(rig, "guarded")[0]["metadata"]["name"]

    def evict():
        return rig.client.request("POST", "/api/v1/namespaces/default/pods/%s/eviction" % victim,
                                  {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": victim}})
    status, answer = evict()
    rig.step("an eviction against it is refused", lambda: (
        status == 429 and answer["details"]["causes"][0]["reason"] == "DisruptionBudget", "%d %s" % (status, answer.get("message"))), 0)
    rig.client.must(200, "PATCH", budgets + "/guard", {"spec": {"minAvailable": 2}}, content_type="application/merge-patch+json")
    rig.step("one disruption is allowed", allowed(1), 30)
    status, answer = evict()
    rig.step("an eviction within it is accepted", lambda: (status == 201, status), 0)
    rig.step("the pod is replaced", lambda: (lambda pods: (
        running(pods) == 3 and victim not in [p["metadata"]["name"] for p in pods], "%d run" % running(pods)))(pods_of(rig, "guarded")), 60)


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--kubeadm", action="store_true")
    arguments = arguments_of(parser)
    folder = arguments.folder
    server = Keelson(arguments.keelson, folder, KUBEADM_FLAGS if arguments.kubeadm else ()).start()
    rig = Rig(server, folder, arguments.programs, arguments.kubeadm)
    try:
        run(rig)
        if arguments.kubeadm:
            identities(rig)
    finally:
        rig.controllers.stop()
        print("server: %.1f s CPU, peak %.0f MB; logs in %s" % (server.cpu_seconds(), server.memory_kb("VmHWM") / 1024, folder))
        server.stop()
    print("controllers: %d passed, %d failed" % (rig.results.count(True), rig.results.count(False)))
    sys.exit(0 if rig.results and all(rig.results) else 1)


if __name__ == "__main__":
    main()
