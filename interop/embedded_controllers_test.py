#!/usr/bin/env python3
"""The embedded controllers beside kube-controller-manager. usage: embedded_controllers_test.py KEELSON WORK_FOLDER BIN_FOLDER [scenarios|handover|cost]...

scenarios: cascades in each mode, cycles, missing owners, owners in other namespaces, custom resources, quotas, namespaces with and without
  finalizers: step by step, first with kube-controller-manager (embedded controllers off), then with the embedded ones. After each step the
  objects that are left must be the same.
handover: kube-controller-manager starts and stops three times beside the embedded controllers while clients make and delete trees of owners and
  namespaces. At the end everything that had to go is gone, what had to stay is there with its uid, and nothing was deleted twice.
cost: OBJECTS objects with owners: memory of each side, time to delete a tree of TREE children; idle CPU with and without controllers.
"""
import collections
import json
import os
import random
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rig import Client, Controllers, Identity, Keelson, arguments_of, parser_of  # noqa: E402
from harness import free_port  # noqa: E402

PARTS = ("scenarios", "handover", "cost")
CORE = "/api/v1/namespaces/"
MERGE = "application/merge-patch+json"
DEADLINE = 180
HANDOVERS = 3
WRITERS = 4
OBJECTS = int(os.environ.get("OBJECTS", "100000"))
TREE = int(os.environ.get("TREE", "10000"))
MANAGED = ("namespace-controller,garbage-collector-controller,serviceaccount-controller,root-ca-certificate-publisher-controller,"
           "clusterrole-aggregation-controller,resourcequota-controller,ttl-after-finished-controller,validatingadmissionpolicy-status-controller")
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "ships.example.com"},
    "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "ships", "singular": "ship", "kind": "Ship", "listKind": "ShipList"},
             "versions": [{"name": "v1", "served": True, "storage": True,
                           "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}


def wait(what, condition, seconds=DEADLINE):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError("not within %d s: %s" % (seconds, what))


class Manager(Controllers):
    """kube-controller-manager alone, with the controllers that the server embeds, each as its own service account."""

    def start(self):
        pki = self.server.pki
        identity = Identity(self.server, os.path.join(self.folder, "credentials"), "controller-manager", "/CN=system:kube-controller-manager")
        self.program("kube-controller-manager", "--kubeconfig=" + identity.kubeconfig, "--authentication-kubeconfig=" + identity.kubeconfig,
                     "--authorization-kubeconfig=" + identity.kubeconfig, "--bind-address=127.0.0.1", "--secure-port=%d" % free_port(),
                     "--use-service-account-credentials=true", "--controllers=" + MANAGED, "--root-ca-file=" + os.path.join(pki, "ca.crt"),
                     "--kube-api-qps=1000", "--kube-api-burst=1000", "--service-account-private-key-file=" + os.path.join(pki, "sa.key"))
        return self


class Objects:
    """Config maps, ships and namespaces of one server, made and deleted as a scenario says."""

    def __init__(self, server):
        self.client = Client(server)

    def namespace(self, name):
        self.client.must(201, "POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        wait("service account of " + name, lambda: self.client.request("GET", CORE + name + "/serviceaccounts/default")[0] == 200)
        wait("bundle of " + name, lambda: self.client.request("GET", CORE + name + "/configmaps/kube-root-ca.crt")[0] == 200)

    def make(self, namespace, name, owners=(), finalizers=(), ship=False):
        body = {"apiVersion": "example.com/v1" if ship else "v1", "kind": "Ship" if ship else "ConfigMap",
                "metadata": {"name": name, "ownerReferences": list(owners), "finalizers": list(finalizers)}}
        return dict(body, **self.client.must(201, "POST", self.path(namespace, ship=ship), body))

    @staticmethod
    def path(namespace, name="", ship=False):
        return ("/apis/example.com/v1/namespaces/%s/ships" % namespace if ship else CORE + namespace + "/configmaps") + ("/" + name if name else "")

    @staticmethod
    def owner(made, block=None):
        reference = {"apiVersion": made["apiVersion"], "kind": made["kind"], "name": made["metadata"]["name"], "uid": made["metadata"]["uid"]}
        return reference if block is None else dict(reference, blockOwnerDeletion=block)

    def delete(self, namespace, name, policy, ship=False):
        self.client.must(200, "DELETE", self.path(namespace, name, ship), {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy})

    def patch(self, namespace, name, metadata, ship=False):
        self.client.must(200, "PATCH", self.path(namespace, name, ship), {"metadata": metadata}, content_type=MERGE)

    def left(self, namespace):
        """Everything of the namespace that controllers may touch, without what differs between two runs."""
        found = []
        for kind, path in (("ConfigMap", self.path(namespace)), ("Ship", self.path(namespace, ship=True)), ("ServiceAccount", CORE + namespace + "/serviceaccounts"),
                           ("ResourceQuota", CORE + namespace + "/resourcequotas")):
            for item in self.client.must(200, "GET", path)["items"]:
                metadata = item["metadata"]
                if metadata["name"].startswith("probe"):
                    continue
                owners = [(o["kind"], o["name"], o.get("blockOwnerDeletion")) for o in metadata.get("ownerReferences", [])]
                found.append((kind, metadata["name"], owners, metadata.get("finalizers", []), "deletionTimestamp" in metadata, item.get("status")))
        status, answer = self.client.request("GET", "/api/v1/namespaces/" + namespace)
        conditions = answer.get("status", {}).get("conditions", []) if status == 200 else []
        found.append(("Namespace", status, answer.get("status", {}).get("phase") if status == 200 else None,
                      sorted((c["type"], c["status"], c["reason"], c["message"]) for c in conditions)))
        return found

    def settled(self, namespace):
        """What is left once several orphans that were made later were collected and nothing changed between them."""
        seen = []
        while len(seen) < 3 or any(one != seen[-1] for one in seen[-3:]):
            name = "probe-%d" % len(seen)
            status, found = self.client.request("GET", "/api/v1/namespaces/" + namespace)
            if status == 200 and found["status"]["phase"] == "Active":
                self.make(namespace, name, [{"apiVersion": "v1", "kind": "ConfigMap", "name": "never-was", "uid": "11111111-1111-1111-1111-%012d" % len(seen)}])
                wait("a probe is collected", lambda: self.client.request("GET", self.path(namespace, name))[0] == 404)
            else:
                time.sleep(1)  # nothing can be made here any more
            seen.append(self.left(namespace))
        return seen[-1]


# A scenario is a generator: it yields the name of each step once the step's requests were answered.

def background(o, ns):
    owner = o.make(ns, "owner")
    child = o.make(ns, "child", [o.owner(owner)])
    o.make(ns, "grandchild", [o.owner(child)])
    o.make(ns, "stranger")
    yield "made"
    o.delete(ns, "owner", "Background")
    yield "owner deleted"


def orphan(o, ns):
    owner, other = o.make(ns, "owner"), o.make(ns, "other")
    child = o.make(ns, "child", [o.owner(owner)])
    o.make(ns, "shared", [o.owner(owner), o.owner(other, True)])
    o.make(ns, "grandchild", [o.owner(child)])
    o.delete(ns, "owner", "Orphan")
    yield "owner deleted"
    o.delete(ns, "other", "Background")
    yield "the other owner deleted"


def foreground(o, ns):
    owner = o.make(ns, "owner")
    o.make(ns, "blocking", [o.owner(owner, True)], ["example.com/held"])
    o.make(ns, "loose", [o.owner(owner, False)], ["example.com/held"])
    free = o.make(ns, "free", [o.owner(owner, True)])
    o.make(ns, "below", [o.owner(free, True)], ["example.com/held"])
    o.delete(ns, "owner", "Foreground")
    yield "owner deleted"
    o.patch(ns, "below", {"finalizers": None})
    yield "the grandchild lets go"
    o.patch(ns, "blocking", {"finalizers": None})
    yield "the blocking child lets go"
    o.patch(ns, "loose", {"finalizers": None})
    yield "the other child lets go"


def unblocked(o, ns):
    owner = o.make(ns, "owner")
    o.make(ns, "blocking", [o.owner(owner, True)], ["example.com/held"])
    o.delete(ns, "owner", "Foreground")
    yield "owner deleted"
    o.patch(ns, "blocking", {"ownerReferences": None})
    yield "the reference is gone"


def foreground_then_orphan(o, ns):
    owner = o.make(ns, "owner", finalizers=["example.com/held"])
    o.make(ns, "child", [o.owner(owner, True)], ["example.com/held"])
    o.delete(ns, "owner", "Foreground")
    yield "in the foreground"
    o.delete(ns, "owner", "Orphan")
    yield "as an orphan"
    o.patch(ns, "owner", {"finalizers": None})
    yield "the owner lets go"


def two_owners(o, ns):
    first, second = o.make(ns, "first"), o.make(ns, "second")
    o.make(ns, "child", [o.owner(first, True), o.owner(second, True)])
    o.delete(ns, "first", "Foreground")
    yield "the first deleted"
    o.delete(ns, "second", "Foreground")
    yield "the second deleted"


def cycle(o, ns):
    first = o.make(ns, "first")
    second = o.make(ns, "second", [o.owner(first, True)])
    third = o.make(ns, "third", [o.owner(second, True)])
    o.patch(ns, "first", {"ownerReferences": [o.owner(third, True)]})
    yield "a ring of three"
    o.delete(ns, "second", "Foreground")
    yield "one deleted in the foreground"
    me = o.make(ns, "me")
    o.patch(ns, "me", {"ownerReferences": [o.owner(me, True)]})
    yield "an owner of itself"
    o.delete(ns, "me", "Foreground")
    yield "deleted in the foreground"


def missing(o, ns):
    absent = {"apiVersion": "v1", "kind": "ConfigMap", "name": "absent", "uid": "22222222-2222-2222-2222-222222222222"}
    live = o.make(ns, "live")
    o.make(ns, "of-nobody", [absent])
    o.make(ns, "of-another-uid", [dict(o.owner(live), uid="22222222-2222-2222-2222-222222222223")])
    o.make(ns, "of-unknown-kind", [dict(absent, kind="Unknown", uid="22222222-2222-2222-2222-222222222224")])
    o.make(ns, "of-unknown-group", [dict(absent, apiVersion="nowhere.example.com/v1", uid="22222222-2222-2222-2222-222222222225")])
    o.make(ns, "of-both", [dict(absent, uid="22222222-2222-2222-2222-222222222226"), o.owner(live)])
    yield "made"


def other_namespace(o, ns):
    o.namespace(ns + "-far")
    far = o.make(ns + "-far", "far")
    o.make(ns, "crossing", [o.owner(far)])
    o.make(ns + "-far", "near", [o.owner(far)])
    yield "made"
    o.delete(ns + "-far", "far", "Background")
    yield "the owner deleted"


def custom(o, ns):
    ship = o.make(ns, "ship", ship=True)
    o.make(ns, "cargo", [o.owner(ship, True)])
    boat = o.make(ns, "boat", [o.owner(ship, True)], ship=True)
    o.make(ns, "oar", [o.owner(boat)], ship=True)
    yield "made"
    o.delete(ns, "ship", "Orphan", ship=True)
    yield "the ship deleted, its things orphaned"
    o.delete(ns, "boat", "Foreground", ship=True)
    yield "the boat deleted"


def quota(o, ns):
    hard = {"configmaps": "20", "count/ships.example.com": "5", "count/serviceaccounts": "3"}
    o.client.must(201, "POST", CORE + ns + "/resourcequotas", {"metadata": {"name": "quota"}, "spec": {"hard": hard}})
    yield "made"
    owner = o.make(ns, "owner")
    for i in range(4):
        o.make(ns, "child-%d" % i, [o.owner(owner)])
    o.make(ns, "ship", ship=True)
    yield "used"
    o.delete(ns, "owner", "Background")
    yield "given back"


def namespace_held(o, ns):
    o.make(ns, "plain")
    owner = o.make(ns, "owner", finalizers=["example.com/held"])
    o.make(ns, "child", [o.owner(owner, True)])
    o.make(ns, "ship", finalizers=["example.com/held"], ship=True)
    o.client.must(200, "DELETE", "/api/v1/namespaces/" + ns)
    wait("its conditions", lambda: "NamespaceFinalizersRemaining" in json.dumps(o.client.request("GET", "/api/v1/namespaces/" + ns)))
    yield "deleted"
    o.patch(ns, "ship", {"finalizers": None}, ship=True)
    wait("the ship is gone", lambda: o.client.request("GET", o.path(ns, "ship", True))[0] == 404)
    wait("the namespace tells it", lambda: "ships" not in json.dumps(o.client.request("GET", "/api/v1/namespaces/" + ns)[1].get("status", {})))
    yield "the ship lets go"
    o.patch(ns, "owner", {"finalizers": None})
    wait("the namespace is gone", lambda: o.client.request("GET", "/api/v1/namespaces/" + ns)[0] == 404)
    yield "the owner lets go"


def account(o, ns):
    path = CORE + ns + "/serviceaccounts/default"
    first = o.client.must(200, "GET", path)["metadata"]["uid"]
    o.client.must(200, "DELETE", path)
    wait("another account", lambda: o.client.request("GET", path)[1].get("metadata", {}).get("uid", first) != first)
    o.client.must(200, "PATCH", o.path(ns, "kube-root-ca.crt"), {"data": {"other": "x"}}, content_type=MERGE)
    yield "account deleted, bundle changed"


def many(o, ns):
    owner = o.make(ns, "owner")
    for i in range(TREE):
        o.make(ns, "child-%d" % i, [o.owner(owner, True)])
    o.delete(ns, "owner", "Foreground")
    wait("the owner is gone", lambda: o.client.request("GET", o.path(ns, "owner"))[0] == 404, 1200)
    yield "%d children deleted" % TREE


SCENARIOS = (background, orphan, foreground, unblocked, foreground_then_orphan, two_owners, cycle, missing, other_namespace, custom, quota, namespace_held,
             account, many)


def observe(server):
    """(scenario, step) → what was left after it."""
    seen = {}
    objects = Objects(server)
    objects.client.must(201, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    wait("the custom resource", lambda: objects.client.request("GET", "/apis/example.com/v1/ships")[0] == 200)
    # The garbage collector follows a new kind some time later: an orphan of that kind shows it.
    objects.namespace("first")
    objects.make("first", "orphan", [{"apiVersion": "v1", "kind": "ConfigMap", "name": "never-was", "uid": "11111111-1111-1111-1111-111111111111"}], ship=True)
    wait("the collector knows the custom resource", lambda: objects.client.request("GET", objects.path("first", "orphan", True))[0] == 404)
    for scenario in SCENARIOS:
        ns = scenario.__name__.replace("_", "-")
        objects.namespace(ns)
        for step in scenario(objects, ns):
            seen[ns, step] = objects.settled(ns)
        print("     %s: %d steps" % (ns, sum(key[0] == ns for key in seen)), flush=True)
    return seen


def scenarios(arguments):
    theirs, ours = None, None
    folder = os.path.join(arguments.folder, "with-manager")
    server = Keelson(arguments.keelson, folder).start()
    manager = Manager(server, folder, arguments.programs).start()
    try:
        print("     with kube-controller-manager")
        theirs = observe(server)
    finally:
        manager.stop()
        server.stop()
    server = Keelson(arguments.keelson, os.path.join(arguments.folder, "embedded"), controllers=True).start()
    try:
        print("     with the embedded controllers")
        ours = observe(server)
    finally:
        server.stop()
    failed = [key for key in theirs if json.dumps(theirs[key]) != json.dumps(ours.get(key))]
    for key in failed:
        print("FAIL %s: %s\n     kube-controller-manager %s\n     embedded                %s" % (*key, json.dumps(theirs[key]), json.dumps(ours.get(key))))
    print("scenarios: %d steps, %d differ" % (len(theirs), len(failed)))
    return not failed


class Writer(threading.Thread):
    """Makes trees and namespaces and deletes some of them; remembers what must go and what must stay."""

    def __init__(self, server, number, stop):
        super().__init__(daemon=True)
        self.objects, self.random, self.number, self.stop = Objects(server), random.Random(number), number, stop
        self.goes, self.stays, self.error, self.rounds = [], {}, None, 0

    def run(self):
        try:
            self.objects.client.must(201, "POST", "/api/v1/namespaces", {"metadata": {"name": "home-%d" % self.number}})
            while not self.stop.is_set():
                self.tree("home-%d" % self.number, "t%d" % self.rounds)
                if self.rounds % 10 == 0:
                    self.doomed("doomed-%d-%d" % (self.number, self.rounds))
                self.rounds += 1
                self.stop.wait(0.02)  # so that the controllers can follow
        except Exception as error:  # noqa: BLE001  Reported by the main thread.
            self.error = error

    def tree(self, ns, name):
        o = self.objects
        owner = o.make(ns, name)
        made = [o.make(ns, "%s-%d" % (name, i), [o.owner(owner, True)]) for i in range(3)]
        made.append(o.make(ns, name + "-below", [o.owner(made[0], True)]))
        policy = self.random.choice(("Background", "Foreground", "Orphan", None))
        if policy is None:
            self.keep(ns, owner, *made)
            return
        o.delete(ns, name, policy)
        self.goes.append(o.path(ns, name))
        if policy == "Orphan":
            self.keep(ns, *made)
        else:
            self.goes.extend(o.path(ns, one["metadata"]["name"]) for one in made)

    def keep(self, ns, *made):
        for one in made:
            self.stays[self.objects.path(ns, one["metadata"]["name"])] = one["metadata"]["uid"]

    def doomed(self, ns):
        self.objects.client.must(201, "POST", "/api/v1/namespaces", {"metadata": {"name": ns}})
        for i in range(5):
            self.objects.make(ns, "m%d" % i)
        self.objects.client.must(200, "DELETE", "/api/v1/namespaces/" + ns)
        self.goes.append("/api/v1/namespaces/" + ns)


def deletions(log):
    """DELETE requests of controllers that were answered 200: object → how often by whom."""
    found = collections.defaultdict(collections.Counter)
    with open(log) as f:
        for line in f:
            event = json.loads(line)
            if event["verb"] == "delete" and event.get("responseStatus", {}).get("code") == 200 and "kube-system:" in event["user"]["username"]:
                found[event["requestURI"].split("?")[0]]["embedded" if " keelson/" in event["userAgent"] else "kube-controller-manager"] += 1
    return found


def leads(client):
    status, lease = client.request("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager")
    return lease["spec"].get("holderIdentity", "") if status == 200 else ""


def handover(arguments):
    folder = os.path.join(arguments.folder, "handover")
    os.makedirs(folder)
    policy, log = os.path.join(folder, "policy.yaml"), os.path.join(folder, "audit.log")
    with open(policy, "w") as f:
        f.write("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata, verbs: [create, update, patch, delete]}]\n")
    server = Keelson(arguments.keelson, folder, ["--audit-policy-file=" + policy, "--audit-log-path=" + log], controllers=True).start()
    stop = threading.Event()
    writers = [Writer(server, i, stop) for i in range(WRITERS)]
    client = Client(server)
    manager = None
    try:
        for writer in writers:
            writer.start()
        for number in range(HANDOVERS):
            begin = time.monotonic()
            manager = Manager(server, folder, arguments.programs).start()
            previous = leads(client)
            wait("kube-controller-manager leads", lambda: leads(client) not in ("", previous))
            took = time.monotonic() - begin
            rounds = sum(w.rounds for w in writers)
            wait("work with kube-controller-manager", lambda: sum(w.rounds for w in writers) > rounds + 100 or any(w.error for w in writers))
            manager.stop()
            manager = None
            probe = "after-%d" % number
            client.must(201, "POST", "/api/v1/namespaces", {"metadata": {"name": probe}})
            begin = time.monotonic()
            wait("the embedded controllers work again", lambda: client.request("GET", CORE + probe + "/serviceaccounts/default")[0] == 200)
            print("     hand-over %d: kube-controller-manager leads after %.1f s, the embedded controllers work %.1f s after it ended" % (
                number + 1, took, time.monotonic() - begin), flush=True)
        stop.set()
        for writer in writers:
            writer.join()
            if writer.error:
                raise writer.error
        goes = [path for w in writers for path in w.goes]
        for path in goes:
            wait(path + " is gone", lambda: client.request("GET", path)[0] == 404)
        wrong = [path for w in writers for path, uid in w.stays.items() if client.request("GET", path)[1].get("metadata", {}).get("uid") != uid]
    finally:
        stop.set()
        if manager:
            manager.stop()
        server.stop()
    found = deletions(log)
    by = sum(found.values(), collections.Counter())
    # kube-controller-manager alone may ask again for an object that is being deleted in the foreground.
    twice = [path for path, count in found.items() if count["embedded"] > 1 or len(count) > 1]
    print("handover: %d objects had to go and went, %d had to stay, %d of them are missing; deletions %s; %d deleted twice %s" % (
        len(goes), sum(len(w.stays) for w in writers), len(wrong), dict(by), len(twice), twice[:3]))
    # kube-controller-manager itself orphans objects before it knows all dependents when it has just started: that is reported, and is not our fault.
    theirs = [path for path in wrong if found[path]["embedded"] == 0]
    for path in wrong[:10]:
        print("%s %s was deleted wrongly by %s" % ("note" if path in theirs else "FAIL", path, dict(found[path])))
    return len(wrong) == len(theirs) and not twice and len(by) == 2


def memory(pid):
    with open("/proc/%d/status" % pid) as f:
        return int(next(line for line in f if line.startswith("VmRSS")).split()[1])


def cpu(pid):
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fill(objects, count):
    """count children of a hundred owners, and a tree apart."""
    owners = [objects.make("fill", "owner-%d" % i) for i in range(100)]
    for i in range(count - 100):
        objects.make("fill", "child-%d" % i, [objects.owner(owners[i % 100], True)])


def idle(pids, seconds=20):
    before = [cpu(pid) for pid in pids]
    time.sleep(seconds)  # an interval that is measured, nothing waits for it
    return sum(cpu(pid) - was for pid, was in zip(pids, before)) * 1000 / seconds


def measure(name, server, pids, controllers):
    objects = Objects(server)
    objects.client.must(201, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    objects.client.must(201, "POST", "/api/v1/namespaces", {"metadata": {"name": "fill"}})
    objects.client.must(201, "POST", "/api/v1/namespaces", {"metadata": {"name": "tree"}})
    if controllers:
        wait("controllers work", lambda: objects.client.request("GET", CORE + "tree/serviceaccounts/default")[0] == 200)
    wait("the custom resource", lambda: objects.client.request("GET", "/apis/example.com/v1/ships")[0] == 200)
    quiet, empty = idle(pids), [memory(pid) for pid in pids]
    fill(objects, OBJECTS)
    if controllers:
        objects.settled("tree")
    full = [memory(pid) for pid in pids]
    line = "%-28s idle %.2f ms of CPU a second, %s MB; with %d objects %s MB" % (
        name, quiet, "+".join("%.1f" % (m / 1024) for m in empty), OBJECTS, "+".join("%.1f" % (m / 1024) for m in full))
    if controllers:
        owner = objects.make("tree", "owner")
        for i in range(TREE):
            objects.make("tree", "child-%d" % i, [objects.owner(owner, True)])
        before, begin = [cpu(pid) for pid in pids], time.monotonic()
        objects.delete("tree", "owner", "Foreground")
        wait("the owner is gone", lambda: objects.client.request("GET", objects.path("tree", "owner"))[0] == 404, 1200)
        line += "; %d children deleted in %.1f s, %s s of CPU" % (TREE, time.monotonic() - begin, "+".join("%.1f" % (cpu(p) - b) for p, b in zip(pids, before)))
    print("cost: " + line, flush=True)


def cost(arguments):
    for name, controllers, managed in (("embedded controllers", True, False), ("kube-controller-manager", False, True), ("no controllers", False, False)):
        folder = os.path.join(arguments.folder, "cost-" + name.replace(" ", "-"))
        server = Keelson(arguments.keelson, folder, controllers=controllers).start()
        manager = Manager(server, folder, arguments.programs).start() if managed else None
        try:
            measure(name, server, [server.process.pid] + [p.pid for _, p in manager.processes] if manager else [server.process.pid], controllers or managed)
        finally:
            if manager:
                manager.stop()
            server.stop()
    return True


def main():
    parser = parser_of(__doc__)
    parser.add_argument("parts", nargs="*", default=[])
    arguments = arguments_of(parser)
    passed = [globals()[part](arguments) for part in (arguments.parts or PARTS)]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
