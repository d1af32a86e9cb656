#!/usr/bin/env python3
"""Admission sees every write exactly once. usage: admission_matrix_test.py KEELSON WORK_FOLDER

The matrix is generated from discovery, with every API version on: each verb that writes, of each resource and subresource, plain and as
a dry run; besides apply and PUT that create, deletecollection and connections. A mutating and a validating webhook that match everything
record what they are sent, a policy that matches everything reports its input as a warning, the plugins' counters show how often each
was called, and a quota counts creations. A resource or subresource that the tables below do not know fails the test.
"""
import json
import os
import re
import shutil
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "system"))
from harness import Client, Server  # noqa: E402
from sample_objects import CONTAINER, definition, sample  # noqa: E402
from webhook_peer import WebhookPeer  # noqa: E402

NAMESPACE = "matrix"
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
WEBHOOKS_SKIP = {"validatingwebhookconfigurations", "mutatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings",
                 "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"}
# As upstream's exclusion list (pkg/kubeapiserver/admission/exclusion).
POLICIES_SKIP = {"validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
                 "selfsubjectreviews", "tokenreviews", "localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews",
                 "subjectaccessreviews"}
# Plugins whose counters are looked at, with their phase and operations.
PLUGINS = {"MutatingAdmissionPolicy": ("admit", "CREATE UPDATE CONNECT DELETE"), "MutatingAdmissionWebhook": ("admit", "CREATE UPDATE CONNECT DELETE"),
           "ValidatingAdmissionPolicy": ("validate", "CREATE UPDATE CONNECT DELETE"),
           "ValidatingAdmissionWebhook": ("validate", "CREATE UPDATE CONNECT DELETE"), "ResourceQuota": ("validate", "CREATE UPDATE")}
REVIEWS = {"authentication.k8s.io", "authorization.k8s.io"}
# Resources whose status the server's own controllers write soon after a create.
WRITTEN_BY_CONTROLLERS = {"apiservices", "customresourcedefinitions", "flowschemas"}
# Resources whose DELETE pins the uid of the object before admission sees the options.
PINNED = {"namespaces", "customresourcedefinitions"}
METHODS = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE", "get": "GET"}


class Resource:
    """One resource or subresource of discovery."""

    def __init__(self, group, version, entry):
        self.group, self.version = group, version
        self.name, _, self.subresource = entry["name"].partition("/")
        self.namespaced, self.verbs, self.kind = entry["namespaced"], entry["verbs"], entry["kind"]
        self.kind_group, self.kind_version = entry.get("group", group), entry.get("version", version)
        if "group" not in entry and "version" not in entry:
            self.kind_group, self.kind_version = group, version

    def path(self, name="", subresource=""):
        path = "/apis/%s/%s" % (self.group, self.version) if self.group else "/api/" + self.version
        if self.namespaced:
            path += "/namespaces/" + NAMESPACE
        return path + "/" + self.name + ("/" + name if name else "") + ("/" + subresource if subresource else "")

    def __str__(self):
        return "%s/%s %s%s" % (self.group, self.version, self.name, "/" + self.subresource if self.subresource else "")


class Matrix:
    def __init__(self, server, client, peer):
        self.server, self.client, self.peer = server, client, peer
        self.failed, self.checked, self.numbers = [], 0, {}
        self.expected = {}  # operation -> admissions since the counters were compared
        self.judged, self.mutated = 0, 0  # by the validating and the mutating policy

    def fail(self, what, why):
        print("FAILED %s: %s" % (what, why), flush=True)
        self.failed.append(what)

    # ---------------------------------------------------------------- one request

    def expect(self, operation, times=1):
        self.expected[operation] = self.expected.get(operation, 0) + times

    def count_policies(self, operation, times=1):
        self.judged += times
        self.mutated += times if operation in ("CREATE", "UPDATE") else 0

    def policy_counters(self):
        """The policies' metrics: decisions, evaluated conditions of both, mutations."""
        _, text = self.client.request("GET", "/metrics", accept="text/plain")

        def total(name, *labels):
            lines = [line for line in text.decode().split("\n") if line.startswith(name + "{") and all(label in line for label in labels)]
            return sum(int(line.rsplit(" ", 1)[1]) for line in lines)
        return (total("apiserver_validating_admission_policy_check_total", 'policy="matrix"', 'policy_binding="matrix"', 'error_type="invalid_error"',
                      'enforcement_action="warn"'),
                total("apiserver_admission_match_condition_evaluation_seconds_count", 'kind="policy"', 'name="matrix"', 'type="validate"'),
                total("apiserver_mutating_admission_policy_check_total", 'policy="matrix"', 'policy_binding="matrix"', 'error_type="no_error"'))

    def compare_policies(self, before):
        found = tuple(after - earlier for after, earlier in zip(self.policy_counters(), before))
        wanted = (self.judged, self.judged, self.mutated)
        if found != wanted:
            self.fail("metrics of policies", "%s, not %s" % (found, wanted))

    def compare_counters(self, resource, before):
        """Each plugin was called once per write since `before`."""
        after = self.counters()
        for plugin, (_, operations) in PLUGINS.items():
            for operation in ("CREATE", "UPDATE", "DELETE", "CONNECT"):
                wanted = self.expected.get(operation, 0) if operation in operations.split() else 0
                asked = after.get((plugin, operation), 0) - before.get((plugin, operation), 0)
                if asked != wanted:
                    self.fail(str(resource), "%s was asked %d times to %s, not %d" % (plugin, asked, operation, wanted))
        self.expected = {}
        return after

    def counters(self):
        """Calls of each plugin so far, by (plugin, operation)."""
        _, text = self.client.request("GET", "/metrics", accept="text/plain")
        counts = {}
        pattern = rb'^apiserver_admission_controller_admission_duration_seconds_count\{(.*)\} (\d+)$'
        for labels, count in re.findall(pattern, text, re.M):
            found = dict(re.findall(r'(\w+)="([^"]*)"', labels.decode()))
            if found["name"] in PLUGINS and found["type"] == PLUGINS[found["name"]][0]:
                key = found["name"], found["operation"]
                counts[key] = counts.get(key, 0) + int(count)
        return counts

    def send(self, method, path, body, content_type):
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = content_type
            body = json.dumps(body, separators=(",", ":"))  # Immutable raw fields (ControllerRevision) are compared byte by byte.
        connection = self.client.connection
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        data = response.read()
        saw = [w for w in response.headers.get_all("Warning") or [] if "policy=matrix" in w]
        return response.status, data, saw

    def write(self, what, resource, operation, method, path, body=None, dry_run=False, content_type="application/json", object_=True, old=True,
              allowed=(200, 201, 202), name=None, times=1, subresource=None, kind=None, connect=False):
        """Sends one request and compares what each part of admission saw. Returns the answer."""
        label = "%s: %s%s" % (resource, what, " (dry run)" if dry_run else "")
        if dry_run:
            path += ("&" if "?" in path else "?") + "dryRun=All"
        self.peer.take()
        status, data, warnings = self.send(method, path, body, content_type)
        answer = json.loads(data) if data[:1] == b"{" else data
        if not connect and status not in allowed:
            self.fail(label, "answered %d: %s" % (status, data[:400]))
            return answer
        seen = self.peer.take()
        self.checked += 1
        self.expect(operation, times)
        expected = {"operation": operation, "kind": kind or {"group": resource.kind_group, "version": resource.kind_version, "kind": resource.kind},
                    "resource": {"group": resource.group, "version": resource.version, "resource": resource.name},
                    "subResource": resource.subresource if subresource is None else subresource, "dryRun": dry_run,
                    "namespace": NAMESPACE if resource.namespaced else None}
        skipped = resource.name in WEBHOOKS_SKIP
        for phase in ("/mutate", "/validate"):
            reviews = [request for path_, request in seen if path_ == phase]
            if len(reviews) != (0 if skipped else times):
                self.fail(label, "%s saw %d reviews: %s" % (phase, len(reviews), [(r["operation"], r["resource"], r.get("subResource")) for r in reviews]))
            for review in reviews:
                self.compare(label + " " + phase, expected, review, object_, old, name if times == 1 else None)
        self.compare_policy(label, resource, expected, object_, old, warnings)
        if resource.name not in POLICIES_SKIP:
            self.count_policies(operation, times)
        return answer

    def compare(self, label, expected, review, object_, old, name):
        for key, value in expected.items():
            found = review.get(key)
            if key == "namespace" and value is None:
                if review["resource"]["resource"] == "namespaces":
                    continue
                value = ""
            if key in ("subResource", "namespace"):
                found = found or ""
            if found != value:
                self.fail(label, "%s is %r, not %r" % (key, found, value))
        if name and (review.get("name") or "") != name:
            self.fail(label, "name is %r, not %r" % (review.get("name"), name))
        if review["operation"] == "DELETE" and name:
            pinned = review["options"].get("preconditions", {}).get("uid")
            if pinned != (review["oldObject"]["metadata"]["uid"] if review["resource"]["resource"] in PINNED else None):
                self.fail(label, "preconditions.uid is %r" % pinned)
        for field, wanted in (("object", object_), ("oldObject", old)):
            if (review.get(field) is not None) != wanted:
                self.fail(label, "%s is %s" % (field, "missing" if wanted else "there"))
        if review.get("subResource") == "eviction" and "managedFields" not in review["object"]["metadata"]:
            self.fail(label, "the fields of the eviction are not tracked")
        if review.get("object") and review["object"].get("kind") != review["kind"]["kind"]:
            self.fail(label, "the object's kind is %r" % review["object"].get("kind"))
        if old and review.get("oldObject") and object_ and review.get("object") and "uid" in review["oldObject"].get("metadata", {}):
            if review["object"].get("metadata", {}).get("uid", review["oldObject"]["metadata"]["uid"]) != review["oldObject"]["metadata"]["uid"]:
                self.fail(label, "object and oldObject have different uids")

    def compare_policy(self, label, resource, expected, object_, old, warnings):
        if resource.name in POLICIES_SKIP:
            if warnings:
                self.fail(label, "the policy saw it")
            return
        kind = expected["kind"]
        text = "policy=matrix %s %s/%s.%s %s/%s object=%s old=%s dry=%s" % (
            expected["operation"], kind["group"], kind["version"], kind["kind"], resource.name, expected["subResource"], str(object_).lower(), str(old).lower(),
            str(expected["dryRun"]).lower())
        if len(warnings) != 1 or text not in warnings[0]:
            self.fail(label, "the policy saw %s, not %s" % (warnings, text))

    def both(self, *args, **kwargs):
        """As a dry run, then for good."""
        self.write(*args, dry_run=True, **kwargs)
        return self.write(*args, **kwargs)

    # ---------------------------------------------------------------- resources

    def next_sample(self, resource):
        key = resource.group, resource.name
        number = self.numbers.get(key, 0)
        self.numbers[key] = number + 1
        body = sample(resource.group, resource.version, resource.name, resource.kind, number, NAMESPACE)
        body["metadata"]["labels"] = {"matrix": "true"}
        if resource.group in REVIEWS:
            body["metadata"] = {"namespace": NAMESPACE} if resource.namespaced else {}
        if resource.name == "pods":  # On a node, so that deletions have a grace period: without one they are admitted twice, as upstream.
            body["spec"]["nodeName"] = "node"
        if resource.name == "bindings":
            self.create_pod(body["metadata"]["name"])
        return body

    def create_pod(self, name):
        self.client.must(201, "POST", "/api/v1/namespaces/%s/pods" % NAMESPACE, {"metadata": {"name": name, "labels": {"matrix": "true"}},
                                                                                "spec": {"containers": [CONTAINER]}})
        self.expect("CREATE")
        self.count_policies("CREATE")

    def current(self, path, label):
        """The object as it is now, with a label changed."""
        found = self.client.must(200, "GET", path)
        found["metadata"].setdefault("labels", {})["step"] = label
        return found

    def quota_used(self, resource):
        if not resource.namespaced or resource.name in ("resourcequotas", "bindings") or resource.group in REVIEWS:
            return None
        key = "count/" + resource.name + ("." + resource.group if resource.group else "")
        quota = self.client.must(200, "GET", "/api/v1/namespaces/%s/resourcequotas/%s" % (NAMESPACE, quota_name(resource)))
        return int(quota["status"]["used"][key])

    def creations(self, resource):
        body = self.next_sample(resource)
        name = body["metadata"].get("name")
        before = self.quota_used(resource)
        self.write("create", resource, "CREATE", "POST", resource.path(), body, dry_run=True, old=False, name=name)
        between = self.quota_used(resource)
        self.write("create", resource, "CREATE", "POST", resource.path(), body, old=False, name=name)
        after = self.quota_used(resource)
        if resource.name != "events" and before is not None and (between, after) != (before, before + 1):
            self.fail(str(resource), "quota counted %r, %r, %r before, after a dry run and after a create" % (before, between, after))
        return name

    def settle(self, path):
        """Waits until the server's own controllers have written what they write: the updates of the test would conflict with them."""
        versions = []
        while len(versions) < 50 or len(set(versions[-50:])) > 1:
            found = self.client.must(200, "GET", path)
            if found.get("status", {}).get("conditions"):
                versions.append(found["metadata"]["resourceVersion"])

    def updates(self, resource, name):
        path = resource.path(name)
        if resource.name in WRITTEN_BY_CONTROLLERS:
            self.settle(path)
        self.write("update", resource, "UPDATE", "PUT", path, self.current(path, "1"), dry_run=True, name=name)
        self.write("update", resource, "UPDATE", "PUT", path, self.current(path, "1"), name=name)
        self.both("patch", resource, "UPDATE", "PATCH", path, {"metadata": {"labels": {"step": "2"}}}, content_type=MERGE, name=name)
        applied = {"apiVersion": resource.path().split("/")[2] if not resource.group else resource.group + "/" + resource.version, "kind": resource.kind,
                   "metadata": {"name": name, "labels": {"step": "3"}}}
        self.both("apply", resource, "UPDATE", "PATCH", path + "?fieldManager=matrix&force=true", applied, content_type=APPLY, name=name)

    def creations_by_name(self, resource):
        body = self.next_sample(resource)
        name = body["metadata"]["name"]
        self.both("apply that creates", resource, "CREATE", "PATCH", resource.path(name) + "?fieldManager=matrix", body, content_type=APPLY, old=False, name=name)
        body = self.next_sample(resource)
        name = body["metadata"]["name"]
        if self.client.request("PUT", resource.path(name) + "?dryRun=All", body)[0] != 404:
            self.expect("CREATE")
            self.count_policies("CREATE", 0 if resource.name in POLICIES_SKIP else 1)
            self.both("PUT that creates", resource, "CREATE", "PUT", resource.path(name), body, old=False, name=name)

    def deletions(self, resource, name):
        path = resource.path(name) + "?propagationPolicy=Background"
        self.both("delete", resource, "DELETE", "DELETE", path, object_=False, name=name)
        if "deletecollection" not in resource.verbs:
            return
        selected = resource.path() + "?labelSelector=matrix%3Dtrue"
        left = self.client.must(200, "GET", selected)["items"]
        if resource.name == "flowschemas":
            for item in left:
                self.settle(resource.path(item["metadata"]["name"]))
        while resource.name == "customresourcedefinitions" and any("deletionTimestamp" in item["metadata"] for item in left):
            left = self.client.must(200, "GET", selected)["items"]  # Their finalizer removes them.
        count = sum("deletionTimestamp" not in item["metadata"] for item in left)
        # A pod whose grace period runs is left alone.
        calls = sum("deletionTimestamp" not in item["metadata"] for item in left) if resource.name == "pods" else len(left)
        for dry_run in (True, False):
            self.write("deletecollection", resource, "DELETE", "DELETE", resource.path() + "?labelSelector=matrix%3Dtrue&propagationPolicy=Background",
                       dry_run=dry_run, object_=False, times=calls)
        if count == 0:
            self.fail(str(resource), "nothing was there to be deleted as a collection")

    def resource(self, resource, subresources):
        name = self.creations(resource)
        if "update" in resource.verbs:
            self.updates(resource, name)
            for subresource in subresources:
                self.subresource(resource, subresource, name)
            self.creations_by_name(resource)
            self.deletions(resource, name)

    # ---------------------------------------------------------------- subresources

    def subresource(self, parent, resource, name):
        covered = set()
        for handle, names in SUBRESOURCES.items():
            if resource.subresource in names:
                covered = handle(self, parent, resource, name)
        missing = {verb for verb in resource.verbs if verb != "get"} - covered
        if missing or (not covered and resource.subresource != "log"):
            self.fail(str(resource), "verbs that this test does not know: %s. Add them to SUBRESOURCES." % sorted(missing))

    def object_subresource(self, parent, resource, name):
        """status, approval, finalize, ephemeralcontainers, resize: the object itself, in parts."""
        path = resource.path(name, resource.subresource)
        read = path if "get" in resource.verbs else parent.path(name)
        for dry_run in (True, False):
            self.write("update", resource, "UPDATE", "PUT", path, self.current(read, "4"), dry_run=dry_run, name=name)
        if "patch" in resource.verbs:
            self.both("patch", resource, "UPDATE", "PATCH", path, {"metadata": {"labels": {"step": "5"}}}, content_type=MERGE, name=name)
            api = resource.group + "/" + resource.version if resource.group else resource.version
            self.both("apply", resource, "UPDATE", "PATCH", path + "?fieldManager=sub&force=true",
                      {"apiVersion": api, "kind": resource.kind, "metadata": {"name": name}}, content_type=APPLY, name=name)
        return {"update", "patch"}

    def scale(self, parent, resource, name):
        path = resource.path(name, "scale")
        for dry_run in (True, False):
            scale = self.client.must(200, "GET", path)
            scale["spec"]["replicas"] = 2
            self.write("update", resource, "UPDATE", "PUT", path, scale, dry_run=dry_run, name=name)
        versions = {entry["apiVersion"] for entry in self.client.must(200, "GET", parent.path(name))["metadata"]["managedFields"]}
        if not all(version.startswith(parent.group + "/" if parent.group else "v1") for version in versions):
            self.fail(str(resource), "managed fields of the parent have the versions %s" % sorted(versions))
        self.both("patch", resource, "UPDATE", "PATCH", path, {"spec": {"replicas": 1}}, content_type=MERGE, name=name)
        if parent.name == "gadgets":  # Upstream cannot convert the Scale of a custom resource: 500 before admission.
            return {"update", "patch"}
        self.both("apply", resource, "UPDATE", "PATCH", path + "?fieldManager=sub&force=true",
                  {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name}, "spec": {"replicas": 1}}, content_type=APPLY, name=name)
        return {"update", "patch"}

    def creation_subresource(self, parent, resource, name):
        """binding, eviction, token: a POST of its own kind."""
        bodies = {"binding": {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": "node"}},
                  "eviction": {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "labels": {"matrix": "true"}}},
                  "token": {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}}}
        if resource.subresource != "token":  # Binding and evicting need their own pod.
            name = "pod-for-" + resource.subresource
            self.create_pod(name)
            bodies[resource.subresource]["metadata"]["name"] = name
        self.both("create", resource, "CREATE", "POST", resource.path(name, resource.subresource), bodies[resource.subresource], old=False, name=name)
        return {"create"}

    def connection(self, parent, resource, name):
        """exec, attach, portforward, proxy: nothing answers behind them, admission comes first."""
        query = "?command=a&stdout=true" if resource.subresource == "exec" else "?stdout=true" if resource.subresource == "attach" else ""
        for verb in resource.verbs:
            self.write("connect by " + verb, resource, "CONNECT", METHODS[verb], resource.path(name, resource.subresource) + query, old=False, name=name,
                       connect=True)
        return set(resource.verbs)

    def read_only(self, parent, resource, name):
        return set()


SUBRESOURCES = {Matrix.object_subresource: {"status", "approval", "finalize", "ephemeralcontainers", "resize"}, Matrix.scale: {"scale"},
                Matrix.creation_subresource: {"binding", "eviction", "token"}, Matrix.connection: {"exec", "attach", "portforward", "proxy"},
                Matrix.read_only: {"log"}}


def quota_name(resource):
    return "q-" + resource.name + ("." + resource.group if resource.group else "")


def discover(client):
    """[(resource, its subresources)] of every version."""
    versions = [("", "v1", "/api/v1")]
    for group in client.must(200, "GET", "/apis")["groups"]:
        versions += [(group["name"], v["version"], "/apis/" + v["groupVersion"]) for v in group["versions"]]
    found = []
    for group, version, path in versions:
        entries = [Resource(group, version, entry) for entry in client.must(200, "GET", path)["resources"]]
        for resource in entries:
            if not resource.subresource and "create" in resource.verbs:
                found.append((resource, [e for e in entries if e.name == resource.name and e.subresource]))
        parents = {r.name for r, _ in found if (r.group, r.version) == (group, version)}
        assert all(e.name in parents for e in entries if e.subresource), "subresources without a resource that can be created"
    return found


def install(client, peer):
    """The webhooks and the policy that match everything."""
    rules = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]
    message = ("'policy=matrix ' + request.operation + ' ' + request.kind.group + '/' + request.kind.version + '.' + request.kind.kind + ' ' + "
               "request.resource.resource + '/' + (has(request.subResource) ? request.subResource : '') + ' object=' + string(object != null) + "
               "' old=' + string(oldObject != null) + ' dry=' + string(request.dryRun)")
    registration = "/apis/admissionregistration.k8s.io/v1/"
    for kind, plural, path in (("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", "/mutate"),
                               ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", "/validate")):
        webhook = {"name": "matrix.example.com", "clientConfig": peer.client_config(path), "rules": rules, "sideEffects": "None",
                   "admissionReviewVersions": ["v1"], "matchPolicy": "Exact", "failurePolicy": "Fail"}
        client.must(201, "POST", registration + plural, {"kind": kind, "apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "matrix"},
                                                         "webhooks": [webhook]})
    client.must(201, "POST", registration + "validatingadmissionpolicies", {"metadata": {"name": "matrix"}, "spec": {
        "failurePolicy": "Fail", "matchConstraints": {"resourceRules": rules, "matchPolicy": "Exact"},
        "matchConditions": [{"name": "always", "expression": "request.operation != ''"}],
        "validations": [{"expression": "false", "messageExpression": message}]}})
    client.must(201, "POST", registration + "validatingadmissionpolicybindings", {"metadata": {"name": "matrix"}, "spec": {
        "policyName": "matrix", "validationActions": ["Warn"]}})
    # The test of its patch never holds: it runs for every write and changes nothing.
    client.must(201, "POST", registration + "mutatingadmissionpolicies", {"metadata": {"name": "matrix"}, "spec": {
        "failurePolicy": "Fail", "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [dict(rules[0], operations=["CREATE", "UPDATE"])], "matchPolicy": "Exact"},
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: \"test\", path: \"/matrix\", value: \"none\"}]"}}]}})
    client.must(201, "POST", registration + "mutatingadmissionpolicybindings", {"metadata": {"name": "matrix"}, "spec": {"policyName": "matrix"}})


def await_policies(client, peer):
    """Webhooks and policies work once a dry run reaches both."""
    for _ in range(500):
        peer.take()
        client.connection.request("POST", "/api/v1/namespaces/default/configmaps?dryRun=All", json.dumps({"metadata": {"name": "probe"}}),
                                  {"Content-Type": "application/json"})
        response = client.connection.getresponse()
        response.read()
        seen = len(peer.take()) == 2 and "policy=matrix" in (response.getheader("Warning") or "")
        if seen and b"apiserver_mutating_admission_policy_check_total{" in client.request("GET", "/metrics", accept="text/plain")[1]:
            return
    raise AssertionError("webhooks and policies are not there")


def prepare(client, resources):
    client.must(201, "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    client.request("POST", "/api/v1/namespaces/%s/serviceaccounts" % NAMESPACE, {"metadata": {"name": "default"}})
    client.must(201, "POST", "/api/v1/nodes", {"metadata": {"name": "node"}})
    done = set()
    for resource, _ in resources:
        if not resource.namespaced or resource.group in REVIEWS or resource.name in ("bindings", "resourcequotas") or quota_name(resource) in done:
            continue
        done.add(quota_name(resource))
        key = "count/" + resource.name + ("." + resource.group if resource.group else "")
        path = "/api/v1/namespaces/%s/resourcequotas" % NAMESPACE
        quota = client.must(201, "POST", path, {"metadata": {"name": quota_name(resource)}, "spec": {"hard": {key: "1000"}}})
        quota["status"] = {"hard": {key: "1000"}, "used": {key: "0"}}
        client.must(200, "PUT", path + "/" + quota_name(resource) + "/status", quota)


def main():
    binary, folder = sys.argv[1], sys.argv[2]
    only = sys.argv[3:]
    shutil.rmtree(folder, ignore_errors=True)
    peer = WebhookPeer(folder)
    server = Server(binary, folder, ["--runtime-config=api/all=true"], in_memory=True).start()
    try:
        client = Client(server)
        gadgets = dict(definition("gadgets", "Gadget", "matrix.example.com"), metadata={"name": "gadgets.matrix.example.com"})
        client.must(201, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", gadgets)
        resources = discover(client)
        while not any(resource.name == "gadgets" for resource, _ in resources):
            resources = discover(client)
        prepare(client, resources)
        install(client, peer)
        await_policies(client, peer)
        matrix = Matrix(server, client, peer)
        counters, policies = matrix.counters(), matrix.policy_counters()
        for resource, subresources in resources:
            if only and resource.name not in only:
                continue
            try:
                matrix.resource(resource, subresources)
            except (KeyError, AssertionError) as error:
                matrix.fail(str(resource), repr(error))
            counters = matrix.compare_counters(resource, counters)
        matrix.compare_policies(policies)
        client.close()
    finally:
        server.stop()
        peer.close()
    print("%d resources, %d writes, %d failures" % (len(resources), matrix.checked, len(matrix.failed)))
    return 1 if matrix.failed else 0


if __name__ == "__main__":
    sys.exit(main())
