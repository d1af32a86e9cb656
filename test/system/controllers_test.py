#!/usr/bin/env python3
"""The embedded controllers: what a newcomer does first, with kubectl, and scenarios of each controller. usage: controllers_test.py KEELSON
WORK_FOLDER

Waiting is bounded by DEADLINE and by nothing else: a loop looks again until what it wants is there.
"""
import json
import os
import shutil
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, Server, config_map, free_port  # noqa: E402
from kubectl_test import Session, find_kubectl  # noqa: E402

DEADLINE = 60
CORE = "/api/v1/namespaces/"
CHILDREN = 10000

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "ships.example.com"},
    "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "ships", "singular": "ship", "kind": "Ship", "listKind": "ShipList"},
             "versions": [{"name": "v1", "served": True, "storage": True,
                           "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}


def wait(what, condition, seconds=None):
    end = time.monotonic() + (seconds or DEADLINE)
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError("not within %d s: %s" % (seconds or DEADLINE, what))


def settle(client, namespace):
    """Waits until the collector has looked at everything that was there when this was called: an orphan made now goes."""
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "never-was", "uid": "11111111-1111-1111-1111-111111111111"}
    probe = make(client, namespace, "probe", [owner])
    wait("the probe is collected", lambda: gone(client, namespace, probe["metadata"]["name"]))


def reference(owner, block=None):
    made = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    if block is not None:
        made["blockOwnerDeletion"] = block
    return made


def make(client, namespace, name, owners=(), finalizers=()):
    body = config_map(name, {"a": "b"})
    body["metadata"]["ownerReferences"] = list(owners)
    body["metadata"]["finalizers"] = list(finalizers)
    answer = client.must(201, "POST", CORE + namespace + "/configmaps", body)
    return dict(answer, apiVersion="v1", kind="ConfigMap")


def get(client, namespace, name):
    status, answer = client.request("GET", CORE + namespace + "/configmaps/" + name)
    return answer if status == 200 else None


def gone(client, namespace, name):
    return get(client, namespace, name) is None


def delete(client, namespace, name, policy=None):
    body = {"kind": "DeleteOptions", "apiVersion": "v1"}
    if policy:
        body["propagationPolicy"] = policy
    return client.must(200, "DELETE", CORE + namespace + "/configmaps/" + name, body)


def new_namespace(client, name):
    client.must(201, "POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    wait("service account of " + name, lambda: client.request("GET", CORE + name + "/serviceaccounts/default")[0] == 200)
    return name


def tour(server, folder):
    """README's tour, with kubectl."""
    s = Session(find_kubectl(), server, os.path.abspath(folder))
    s.run("wait --for=create --timeout=60s serviceaccount/default", since=31)
    s.run("run web --image=nginx", expect="pod/web created")
    s.run("get pod web", expect="Pending")
    s.run("create token default", expect=r"^ey")
    s.run("create namespace demo", expect="created")
    s.run("create configmap greeting --namespace demo --from-literal=hello=world", expect="created")
    s.run("delete namespace demo", expect="deleted")
    s.run("get namespace demo", expect="NotFound", code=1)
    s.run("create deployment app --image=nginx", expect="created")
    uid = s.run("get deployment app -o jsonpath={.metadata.uid}")
    child = s.file("child.yaml", """
apiVersion: v1
kind: ConfigMap
metadata:
  name: child
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: app, uid: %s}]
""" % uid)
    s.run("create -f " + child, expect="created")
    s.run("delete deployment app", expect="deleted")
    s.run("wait --for=delete --timeout=60s configmap/child")
    s.run("get configmap child", expect="NotFound", code=1)
    s.run("get configmap kube-root-ca.crt -o jsonpath={.data}", expect="BEGIN CERTIFICATE")
    if s.failures:
        raise AssertionError("kubectl: %s" % s.failures)


def service_accounts(client):
    name = new_namespace(client, "accounts")
    path = CORE + name + "/serviceaccounts/default"
    first = client.must(200, "GET", path)["metadata"]
    client.must(200, "DELETE", path)
    wait("another default account", lambda: client.request("GET", path)[1].get("metadata", {}).get("uid", first["uid"]) != first["uid"])
    managers = {m["manager"] for m in client.must(200, "GET", path)["metadata"].get("managedFields", [])}
    assert managers <= {"kube-controller-manager"}, managers
    bundle = CORE + name + "/configmaps/kube-root-ca.crt"
    wait("bundle", lambda: client.request("GET", bundle)[0] == 200)
    want = client.must(200, "GET", bundle)["data"]
    client.must(200, "PATCH", bundle, {"data": {"ca.crt": "x", "other": "y"}}, content_type="application/merge-patch+json")
    wait("the bundle is put right", lambda: client.must(200, "GET", bundle)["data"] == want)
    client.must(200, "DELETE", bundle)
    wait("the bundle is back", lambda: client.request("GET", bundle)[0] == 200)


def namespaces(client):
    name = new_namespace(client, "doomed")
    for i in range(50):
        make(client, name, "m%d" % i)
    client.must(201, "POST", CORE + name + "/secrets", {"metadata": {"name": "s"}})
    client.must(201, "POST", "/apis/apps/v1/namespaces/%s/deployments" % name, {"metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
    client.must(201, "POST", "/apis/example.com/v1/namespaces/%s/ships" % name, {"apiVersion": "example.com/v1", "kind": "Ship", "metadata": {"name": "s"}})
    held = make(client, name, "held", finalizers=["example.com/held"])
    client.must(200, "DELETE", "/api/v1/namespaces/" + name)

    def conditions():
        namespace = client.must(200, "GET", "/api/v1/namespaces/" + name)
        found = {c["type"]: c for c in namespace["status"].get("conditions", [])}
        return found if len(found) == 5 else None
    found = wait("conditions", conditions)
    for kind, status, reason, message in (
            ("NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered", "All resources successfully discovered"),
            ("NamespaceDeletionGroupVersionParsingFailure", "False", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
            ("NamespaceDeletionContentFailure", "False", "ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
            ("NamespaceContentRemaining", "True", "SomeResourcesRemain", "Some resources are remaining: configmaps. has 1 resource instances"),
            ("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain",
             "Some content in the namespace has finalizers remaining: example.com/held in 1 resource instances")):
        got = found[kind]
        assert (got["status"], got["reason"], got["message"]) == (status, reason, message), got
    left = client.must(200, "GET", CORE + name + "/configmaps")["items"]
    assert [c["metadata"]["name"] for c in left] == [held["metadata"]["name"]], left
    client.must(200, "PATCH", CORE + name + "/configmaps/held", {"metadata": {"finalizers": None}}, content_type="application/merge-patch+json")
    wait("the namespace is gone", lambda: client.request("GET", "/api/v1/namespaces/" + name)[0] == 404)
    assert client.must(200, "GET", "/apis/example.com/v1/ships")["items"] == []


def cascades(client):
    name = new_namespace(client, "cascades")
    # Background: the owner goes at once, children and their children follow.
    owner = make(client, name, "owner")
    child = make(client, name, "child", [reference(owner)])
    make(client, name, "grandchild", [reference(child)])
    delete(client, name, "owner", "Background")
    for one in ("owner", "child", "grandchild"):
        wait(one + " is gone", lambda: gone(client, name, one))

    # Orphan: children stay, without the reference.
    owner = make(client, name, "owner")
    make(client, name, "child", [reference(owner)])
    delete(client, name, "owner", "Orphan")
    wait("the owner is gone", lambda: gone(client, name, "owner"))
    assert "ownerReferences" not in get(client, name, "child")["metadata"]
    settle(client, name)
    assert not gone(client, name, "child")
    delete(client, name, "child")

    # Foreground: the owner waits for children that block it, and for no others.
    owner = make(client, name, "owner")
    make(client, name, "blocking", [reference(owner, True)], ["example.com/held"])
    make(client, name, "loose", [reference(owner, False)])
    delete(client, name, "owner", "Foreground")
    wait("the loose child is gone", lambda: gone(client, name, "loose"))
    wait("the blocking child is being deleted", lambda: "deletionTimestamp" in get(client, name, "blocking")["metadata"])
    settle(client, name)
    assert get(client, name, "owner")["metadata"]["finalizers"] == ["foregroundDeletion"]
    client.must(200, "PATCH", CORE + name + "/configmaps/blocking", {"metadata": {"finalizers": None}}, content_type="application/merge-patch+json")
    wait("the owner is gone", lambda: gone(client, name, "owner"))

    # A blocking reference that is taken away lets the owner go.
    owner = make(client, name, "owner")
    make(client, name, "blocking", [reference(owner, True)], ["example.com/held"])
    delete(client, name, "owner", "Foreground")
    wait("the blocking child is being deleted", lambda: "deletionTimestamp" in get(client, name, "blocking")["metadata"])
    client.must(200, "PATCH", CORE + name + "/configmaps/blocking", {"metadata": {"ownerReferences": None}}, content_type="application/merge-patch+json")
    wait("the owner is gone", lambda: gone(client, name, "owner"))
    client.must(200, "PATCH", CORE + name + "/configmaps/blocking", {"metadata": {"finalizers": None}}, content_type="application/merge-patch+json")

    # Two owners: the reference to the one that went is dropped.
    first, second = make(client, name, "first"), make(client, name, "second")
    make(client, name, "child", [reference(first), reference(second)])
    delete(client, name, "first", "Background")
    wait("one reference is left", lambda: [r["name"] for r in get(client, name, "child")["metadata"]["ownerReferences"]] == ["second"])
    delete(client, name, "second", "Background")
    wait("the child is gone", lambda: gone(client, name, "child"))


def missing_owners(client):
    name, other = new_namespace(client, "missing"), new_namespace(client, "elsewhere")
    absent = {"apiVersion": "v1", "kind": "ConfigMap", "name": "absent", "uid": "22222222-2222-2222-2222-222222222222"}
    make(client, name, "of-nobody", [absent])
    wait("a child of nobody is collected", lambda: gone(client, name, "of-nobody"))

    # The name is there, with another UID.
    live = make(client, name, "live")
    make(client, name, "of-another", [dict(reference(live), uid=absent["uid"])])
    wait("a child of another UID is collected", lambda: gone(client, name, "of-another"))

    # An owner of a kind that is not served does not cause a deletion.
    make(client, name, "of-unknown", [dict(absent, kind="Unknown", uid="33333333-3333-3333-3333-333333333333")])
    settle(client, name)
    assert not gone(client, name, "of-unknown")

    # An owner in another namespace does not exist here: the child goes, an event says why.
    far = make(client, other, "far")
    make(client, name, "crossing", [reference(far)])
    wait("a child of another namespace is collected", lambda: gone(client, name, "crossing"))

    def event():
        for one in client.must(200, "GET", CORE + name + "/events")["items"]:
            if one["reason"] == "OwnerRefInvalidNamespace":
                return one
        return None
    # An owner without events so far is looked up in the child's namespace, where it is absent: then there is no event. As long as the
    # graph remembers that absent owner (a moment longer than its child), a child in the owner's own namespace does not correct it.
    make(client, other, "near", [reference(far)])
    attempts = iter(range(1000))

    def crossed():
        child = "crossing%d" % next(attempts)
        make(client, name, child, [reference(far)])
        wait("a child of another namespace is collected", lambda: gone(client, name, child))
        client.must(200, "PATCH", CORE + other + "/configmaps/near", {"data": {"seen": child}}, content_type="application/merge-patch+json")
        return event()
    told = wait("an event", crossed)
    want = 'ownerRef [v1/ConfigMap, namespace: missing, name: far, uid: %s] does not exist in namespace "missing"' % far["metadata"]["uid"]
    assert told["message"] == want, told["message"]
    assert told["source"]["component"] == "garbage-collector-controller" and told["type"] == "Warning", told
    assert not gone(client, other, "near")

    # A cluster-scoped object cannot have a namespaced owner: it stays.
    client.must(201, "POST", "/api/v1/nodes", {"metadata": {"name": "n", "ownerReferences": [reference(live)]}})
    settle(client, name)
    client.must(200, "GET", "/api/v1/nodes/n")
    client.must(200, "DELETE", "/api/v1/nodes/n")


def cycles(client):
    name = new_namespace(client, "cycles")
    # Two that own each other: neither is collected by itself; deleting one in the background takes the other along.
    first = make(client, name, "first")
    second = make(client, name, "second", [reference(first, True)])
    client.must(200, "PATCH", CORE + name + "/configmaps/first", {"metadata": {"ownerReferences": [reference(second, True)]}},
                content_type="application/merge-patch+json")
    settle(client, name)
    assert not gone(client, name, "first") and not gone(client, name, "second")
    delete(client, name, "first", "Foreground")
    wait("both are gone", lambda: gone(client, name, "first") and gone(client, name, "second"))
    # One that owns itself.
    me = make(client, name, "me")
    client.must(200, "PATCH", CORE + name + "/configmaps/me", {"metadata": {"ownerReferences": [reference(me, True)]}},
                content_type="application/merge-patch+json")
    delete(client, name, "me", "Background")
    wait("it is gone", lambda: gone(client, name, "me"))


def custom_resources(client):
    name = new_namespace(client, "custom")
    path = "/apis/example.com/v1/namespaces/%s/ships" % name
    ship = client.must(201, "POST", path, {"apiVersion": "example.com/v1", "kind": "Ship", "metadata": {"name": "owner"}})
    make(client, name, "cargo", [reference(ship)])
    boat = {"apiVersion": "example.com/v1", "kind": "Ship", "metadata": {"name": "boat", "ownerReferences": [reference(ship)]}}
    client.must(201, "POST", path, boat)
    client.must(200, "DELETE", path + "/owner", {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"})
    wait("the cargo is gone", lambda: gone(client, name, "cargo"))
    wait("the boat is gone", lambda: client.request("GET", path + "/boat")[0] == 404)
    # Orphaning a custom resource takes a JSON merge patch.
    ship = client.must(201, "POST", path, {"apiVersion": "example.com/v1", "kind": "Ship", "metadata": {"name": "owner"}})
    client.must(201, "POST", path, dict(boat, metadata=dict(boat["metadata"], ownerReferences=[reference(ship)])))
    client.must(200, "DELETE", path + "/owner", {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Orphan"})
    wait("the owner is gone", lambda: client.request("GET", path + "/owner")[0] == 404)
    assert "ownerReferences" not in client.must(200, "GET", path + "/boat")["metadata"]


def cluster_roles(client):
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    view = wait("rules of the role view", lambda: client.must(200, "GET", path + "/view").get("rules"))
    assert any("pods" in rule.get("resources", []) for rule in view), view
    rule = {"apiGroups": ["example.com"], "resources": ["ships"], "verbs": ["get"]}
    client.must(201, "POST", path, {"metadata": {"name": "ships-view", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}, "rules": [rule]})
    for name in ("view", "edit", "admin"):  # each selects the one before
        wait("the rule in " + name, lambda: rule in client.must(200, "GET", path + "/" + name)["rules"])
    client.must(200, "DELETE", path + "/ships-view")
    for name in ("view", "edit", "admin"):
        wait("no rule in " + name, lambda: rule not in client.must(200, "GET", path + "/" + name)["rules"])
    fields = client.must(200, "GET", path + "/view")["metadata"].get("managedFields", [])
    assert any(m["manager"] == "clusterrole-aggregation-controller" and m["operation"] == "Apply" for m in fields), fields


def quotas(client):
    name = new_namespace(client, "quotas")
    path = CORE + name + "/resourcequotas"
    hard = {"pods": "2", "requests.cpu": "1", "configmaps": "5", "count/ships.example.com": "3", "count/deployments.apps": "1"}
    client.must(201, "POST", path, {"metadata": {"name": "q"}, "spec": {"hard": hard}})

    def used(want):
        def look():
            status = client.must(200, "GET", path + "/q").get("status", {})
            return status.get("hard") == hard and status.get("used") == want
        try:
            wait("usage", look)
        except AssertionError:
            raise AssertionError("expected %s, got %s" % (want, client.must(200, "GET", path + "/q").get("status")))
    nothing = {"pods": "0", "requests.cpu": "0", "configmaps": "1", "count/ships.example.com": "0", "count/deployments.apps": "0"}
    used(nothing)  # kube-root-ca.crt is a config map
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "300m"}}}]}}
    client.must(201, "POST", CORE + name + "/pods", pod)
    make(client, name, "m")
    ships = "/apis/example.com/v1/namespaces/%s/ships" % name
    client.must(201, "POST", ships, {"apiVersion": "example.com/v1", "kind": "Ship", "metadata": {"name": "s"}})
    used(dict(nothing, pods="1", configmaps="2", **{"requests.cpu": "300m", "count/ships.example.com": "1"}))
    # Deleted objects free their quota.
    client.must(200, "DELETE", CORE + name + "/pods/p")
    delete(client, name, "m")
    client.must(200, "DELETE", ships + "/s")
    used(nothing)
    # A pod that has ended counts no more.
    client.must(201, "POST", CORE + name + "/pods", pod)
    used(dict(nothing, pods="1", **{"requests.cpu": "300m"}))
    client.must(200, "PATCH", CORE + name + "/pods/p/status", {"status": {"phase": "Succeeded"}}, content_type="application/merge-patch+json")
    used(nothing)
    # Another limit shows at once.
    hard["pods"] = "7"
    client.must(200, "PATCH", path + "/q", {"spec": {"hard": {"pods": "7"}}}, content_type="application/merge-patch+json")
    used(nothing)


def quotas_of_recreated_definitions(client):
    """A definition that is made again, or only after a quota that counts its objects, is followed by that quota at once."""
    name = new_namespace(client, "counted")
    definition = json.loads(json.dumps(DEFINITION).replace("ship", "boat").replace("Ship", "Boat"))
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    quota, boats = CORE + name + "/resourcequotas/q", "/apis/example.com/v1/namespaces/%s/boats" % name

    def used():
        return client.must(200, "GET", quota).get("status", {}).get("used", {}).get("count/boats.example.com")
    client.must(201, "POST", CORE + name + "/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"count/boats.example.com": "3"}}})
    for _ in range(2):
        client.must(201, "POST", definitions, definition)
        wait("boats are counted", lambda: used() == "0")
        boat = {"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "b"}}
        wait("boats are served", lambda: client.request("POST", boats, boat)[0] == 201)
        wait("the boat is counted", lambda: used() == "1")
        client.must(200, "DELETE", boats + "/b")
        wait("the boat frees its quota", lambda: used() == "0")
        client.must(200, "DELETE", definitions + "/boats.example.com")
        wait("the definition is gone", lambda: client.request("GET", definitions + "/boats.example.com")[0] == 404)


def jobs(client):
    name = new_namespace(client, "jobs")
    path = "/apis/batch/v1/namespaces/%s/jobs" % name
    for job, ttl in (("soon", 0), ("late", 3600), ("never", None)):
        spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
        if ttl is not None:
            spec["ttlSecondsAfterFinished"] = ttl
        client.must(201, "POST", path, {"metadata": {"name": job}, "spec": spec})
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        conditions = [{"type": kind, "status": "True", "lastTransitionTime": now} for kind in ("SuccessCriteriaMet", "Complete")]
        client.must(200, "PATCH", path + "/" + job + "/status",
                    {"status": {"startTime": now, "completionTime": now, "conditions": conditions}}, content_type="application/merge-patch+json")
    wait("the finished job is gone", lambda: client.request("GET", path + "/soon")[0] == 404)
    for job in ("late", "never"):
        client.must(200, "GET", path + "/" + job)


def policies(client):
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"

    def policy(name, resources, validations, variables=(), **spec):
        rules = [{"apiGroups": [group], "apiVersions": ["v1"], "operations": ["*"], "resources": names} for group, names in resources]
        body = {"metadata": {"name": name}, "spec": dict(spec, matchConstraints={"resourceRules": rules}, variables=list(variables), validations=validations)}
        client.must(201, "POST", path, body)

        def checked():
            status = client.must(200, "GET", path + "/" + name).get("status", {})
            return status if status.get("observedGeneration") == 1 and "typeChecking" in status else None
        return wait("status of " + name, checked)["typeChecking"].get("expressionWarnings", [])

    deployments = [("apps", ["deployments"])]
    assert policy("fine", deployments, [{"expression": "object.spec.replicas > 1"}]) == []
    assert policy("wildcard", [("*", ["*"])], [{"expression": "object.nothing == 1"}]) == []
    warnings = policy("typo", deployments, [
        {"expression": "object.spec.replica > 1"},
        {"expression": "object.spec.replicas > 1", "messageExpression": "'only ' + object.spec.replicas"},
        {"expression": "variables.count < 5 && oldObject.metadata.name.startsWith('a')"}], [{"name": "count", "expression": "object.spec.replicas"}])
    assert [w["fieldRef"] for w in warnings] == ["spec.validations[0].expression", "spec.validations[1].messageExpression"], warnings
    want = "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'replica'\n | object.spec.replica > 1\n | ...........^\n"
    assert warnings[0]["warning"] == want, warnings[0]["warning"]
    assert "found no matching overload for '_+_' applied to '(string, int)'" in warnings[1]["warning"], warnings[1]["warning"]
    # Two kinds, and params of their own kind; a custom resource has its schema's fields.
    warnings = policy("two", [("", ["configmaps"]), ("apps", ["deployments"])], [{"expression": "object.data['a'] == params.data['b'] && params.metadata.name == ''"}],
                      paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    assert [w["warning"].split(":")[0] for w in warnings] == ["apps/v1, Kind=Deployment"], warnings
    warnings = policy("params", [("", ["configmaps"])], [{"expression": "params.spec == 1"}], paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    assert len(warnings) == 1 and "undefined field 'spec'" in warnings[0]["warning"], warnings


def metrics(client):
    text = client.must(200, "GET", "/metrics", accept="*/*").decode()
    for name in ("serviceaccount", "root_ca_cert_publisher", "namespace", "garbage_collector_attempt_to_delete", "garbage_collector_attempt_to_orphan",
                 "ClusterRoleAggregator", "resourcequota_primary", "resourcequota_priority", "ttl_jobs_to_delete", "validatingadmissionpolicy-status"):
        for family in ("adds_total", "depth", "queue_duration_seconds_count", "work_duration_seconds_count", "unfinished_work_seconds"):
            assert 'workqueue_%s{name="%s"}' % (family, name) in text, (family, name)
    health = client.must(200, "GET", "/healthz?verbose", accept="*/*").decode()
    for name in ("garbage-collector-controller", "namespace-controller", "serviceaccount-controller", "resourcequota-controller"):
        assert "[+]%s ok" % name in health, (name, health)
    assert "garbage-collector-controller" not in client.must(200, "GET", "/readyz?verbose", accept="*/*").decode()
    for family in ("root_ca_cert_publisher_sync_total", "garbagecollector_controller_resources_sync_error_total",
                   "ttl_after_finished_controller_job_deletion_duration_seconds_count"):
        assert family in text, family


def many_children(server, client):
    name = new_namespace(client, "many")
    owner = make(client, name, "owner")
    for i in range(CHILDREN):
        make(client, name, "child-%d" % i, [reference(owner, True)])
    before, begin = server.cpu_seconds(), time.monotonic()
    delete(client, name, "owner", "Foreground")
    wait("the owner is gone", lambda: gone(client, name, "owner"), 400)
    print("     %d children and their owner deleted in %.1f s, %.1f s of CPU, %d MB resident" % (
        CHILDREN, time.monotonic() - begin, server.cpu_seconds() - before, server.memory_kb() // 1024))
    left = client.must(200, "GET", CORE + name + "/configmaps?limit=10")["items"]
    assert [c["metadata"]["name"] for c in left] == ["kube-root-ca.crt"], left


def hand_over(client, log_path):
    """A kube-controller-manager that takes its lease is left alone; when it gives it up, the controllers run again."""
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    lease = {"metadata": {"name": "kube-controller-manager"}, "spec": {
        "holderIdentity": "host_1", "leaseDurationSeconds": 3600, "renewTime": "2026-01-01T00:00:00.000000Z"}}
    for _ in range(3):
        client.must(201, "POST", path, lease)
        wait("they stop", lambda: open(log_path).read().count("Stopped controller") > 0 and
             open(log_path).read().count("Stopped controller") == open(log_path).read().count("Started controller"))
        client.must(201, "POST", "/api/v1/namespaces", {"metadata": {"name": "meanwhile"}})
        for _ in range(20):
            client.must(200, "GET", "/api/v1/namespaces/meanwhile")
        assert client.request("GET", CORE + "meanwhile/serviceaccounts/default")[0] == 404
        client.must(200, "DELETE", path + "/kube-controller-manager")
        wait("the service account", lambda: client.request("GET", CORE + "meanwhile/serviceaccounts/default")[0] == 200)
        client.must(200, "DELETE", "/api/v1/namespaces/meanwhile")
        wait("the namespace is gone", lambda: client.request("GET", "/api/v1/namespaces/meanwhile")[0] == 404)


class StoreUser(Server):
    """A server on the store of another one, through its etcd API, that runs controllers."""

    def __init__(self, binary, folder, owner, port):
        super().__init__(binary, folder)
        self.owner = owner
        self.etcd = "http://127.0.0.1:%d" % port

    def command(self):
        pki = self.owner.pki
        return [self.binary, "--secure-port=%d" % self.port, "--etcd-servers=" + self.etcd, "--embedded-controllers=on", "--bind-address=127.0.0.1",
                "--advertise-address=127.0.0.1", "--authorization-mode=RBAC", "--service-account-issuer=https://kubernetes.default.svc",
                "--tls-cert-file=" + pki + "/apiserver.crt", "--tls-private-key-file=" + pki + "/apiserver.key", "--client-ca-file=" + pki + "/ca.crt",
                "--service-account-key-file=" + pki + "/sa.pub", "--service-account-signing-key-file=" + pki + "/sa.key"]

    def _find_pki(self):
        return self.owner.pki

    def leads(self):
        with open(self.log_path, errors="replace") as f:
            text = f.read()
        return text.count("Started controller") > text.count("Stopped controller")


def several_servers(binary, folder):
    """Two servers on one store: one runs the controllers; when it dies, the other one does; a server that ends gives the lease up."""
    port = free_port()
    store = Server(binary, os.path.join(folder, "store"), flags=["--serve-etcd-api=127.0.0.1:%d" % port]).start()
    users = []
    try:
        users = [StoreUser(binary, os.path.join(folder, "user-%d" % i), store, port).start() for i in range(2)]
        wait("one of them leads", lambda: any(user.leads() for user in users))
        client = Client(store)
        new_namespace(client, "first")
        assert [user.leads() for user in users].count(True) == 1, "both lead"
        leader, other = sorted(users, key=lambda user: not user.leads())
        leader.kill()
        new_namespace(client, "second")
        assert other.leads()
        other.stop()
        lease = client.must(200, "GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/keelson-embedded-controllers")
        assert lease["spec"].get("holderIdentity", "") == "" and lease["spec"]["leaseTransitions"] >= 1, lease["spec"]
    finally:
        for user in users:
            user.stop()
        store.stop()


def identities(binary, folder):
    """Audit shows each controller as its service account, allowed by its own role."""
    os.makedirs(folder, exist_ok=True)
    policy, log = os.path.join(folder, "policy.yaml"), os.path.join(folder, "audit.log")
    with open(policy, "w") as f:
        f.write("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata, verbs: [create, update, patch, delete]}]\n")
    server = Server(binary, folder, flags=["--audit-policy-file=" + policy, "--audit-log-path=" + log], controllers=True).start()
    try:
        client = Client(server)
        name = new_namespace(client, "audited")
        owner = make(client, name, "owner")
        make(client, name, "child", [reference(owner)])
        delete(client, name, "owner", "Background")
        wait("the child is gone", lambda: gone(client, name, "child"))
        client.must(200, "DELETE", "/api/v1/namespaces/" + name)
        wait("the namespace is gone", lambda: client.request("GET", "/api/v1/namespaces/" + name)[0] == 404)
    finally:
        server.stop()
    seen = {}
    with open(log) as f:
        for line in f:
            event = json.loads(line)
            user = event["user"]["username"]
            if user.startswith("system:serviceaccount:kube-system:"):
                assert event["annotations"]["authorization.k8s.io/decision"] == "allow", event
                seen[user.rsplit(":", 1)[1]] = event["annotations"]["authorization.k8s.io/reason"]
    for account in ("service-account-controller", "root-ca-cert-publisher", "generic-garbage-collector", "namespace-controller"):
        assert 'ClusterRole "system:controller:%s"' % account in seen.get(account, ""), (account, seen)


def main():
    binary, folder = sys.argv[1:3]
    shutil.rmtree(folder, ignore_errors=True)
    identities(binary, os.path.join(folder, "identities"))
    print("ok   identities")
    several_servers(binary, os.path.join(folder, "several"))
    print("ok   several_servers")
    server = Server(binary, folder, controllers=True).start()
    try:
        client = Client(server)
        client.must(201, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
        wait("the custom resource", lambda: client.request("GET", "/apis/example.com/v1/ships")[0] == 200)
        wait("the first service account", lambda: client.request("GET", CORE + "default/serviceaccounts/default")[0] == 200)
        for part in (service_accounts, namespaces, cascades, missing_owners, cycles, custom_resources, cluster_roles, quotas, quotas_of_recreated_definitions, jobs, policies, metrics):
            part(client)
            print("ok   " + part.__name__)
        many_children(server, client)
        print("ok   many_children")
        hand_over(client, server.log_path)
        print("ok   hand_over")
        tour(server, folder)
    finally:
        server.stop()


if __name__ == "__main__":
    main()
