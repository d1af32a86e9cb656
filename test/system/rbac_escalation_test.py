#!/usr/bin/env python3
"""RBAC escalation on every way to write. usage: rbac_escalation_test.py KEELSON WORK_FOLDER

`writer` may write roles and bindings and nothing else; `patcher` may update and patch but not create. Every row must be refused.
The same rows by somebody with `escalate` and `bind` must succeed, so that a row cannot be refused for another reason. Resource claims
have a status of which parts need permissions of their own: these, too.
"""
import json
import os
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, Server  # noqa: E402

RBAC = "/apis/rbac.authorization.k8s.io/v1"
NS = RBAC + "/namespaces/default"
JSON = "application/json"
PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
RULE = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
HELD = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
NOT_HELD = "is attempting to grant RBAC permissions not currently held"
CLUSTER_ADMIN = "must have cluster-admin privileges to use the aggregationRule"
AGGREGATION = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
REF = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
SUBJECT = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "writer"}

failures = []


class UserClient(Client):
    def __init__(self, server, user):
        super().__init__(server)
        self.user = user
        self.extra = {}

    def request(self, method, path, body=None, content_type=JSON, accept=JSON):
        headers = {"Accept": accept, "Impersonate-User": self.user, **self.extra}
        if body is not None:
            headers["Content-Type"] = content_type
            body = body if isinstance(body, str) else json.dumps(body)
        self.connection.request(method, path, body, headers)
        response = self.connection.getresponse()
        data = response.read()
        return response.status, json.loads(data) if "json" in (response.getheader("Content-Type") or "") else data


def named(kind, name, **fields):
    return dict({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}}, **fields)


def change(patch_type, kind, name, fields):
    """A patch of the type that sets `fields`."""
    if patch_type == "json":
        return [{"op": "add", "path": "/" + key, "value": value} for key, value in fields.items()]
    return named(kind, name, **fields) if patch_type == "apply" else fields


def rows():
    """(what, method, path, content type, body, part of the message)"""
    for dry in ("?dryRun=All", "?"):
        for kind, base in (("Role", NS + "/roles"), ("ClusterRole", RBAC + "/clusterroles")):
            name = kind.lower()
            body = {"rules": [RULE]}
            yield "create", "POST", base + dry, JSON, named(kind, "new-" + name, **body), NOT_HELD
            yield "create by PUT", "PUT", base + "/put-" + name + dry, JSON, named(kind, "put-" + name, **body), NOT_HELD
            yield "create by apply", "PATCH", base + "/app-" + name + dry + "&fieldManager=m", PATCHES["apply"], named(kind, "app-" + name, **body), NOT_HELD
            yield "update", "PUT", base + "/old-" + name + dry, JSON, named(kind, "old-" + name, **body), NOT_HELD
            for patch_type, media in PATCHES.items():
                yield "patch " + patch_type, "PATCH", base + "/old-" + name + dry + "&fieldManager=m&force=true" * (patch_type == "apply"), media, \
                    change(patch_type, kind, "old-" + name, body), NOT_HELD
        cluster = RBAC + "/clusterroles"
        body = {"rules": [], "aggregationRule": AGGREGATION}
        yield "create aggregation", "POST", cluster + dry, JSON, named("ClusterRole", "new-agg", **body), CLUSTER_ADMIN
        yield "aggregation by PUT", "PUT", cluster + "/put-agg" + dry, JSON, named("ClusterRole", "put-agg", **body), CLUSTER_ADMIN
        yield "aggregation by update", "PUT", cluster + "/old-clusterrole" + dry, JSON, named("ClusterRole", "old-clusterrole", **body), CLUSTER_ADMIN
        yield "aggregation away", "PUT", cluster + "/old-aggregated" + dry, JSON, named("ClusterRole", "old-aggregated", rules=[HELD]), CLUSTER_ADMIN
        for patch_type, media in PATCHES.items():
            yield "aggregation by " + patch_type, "PATCH", cluster + "/old-agg2" + dry + "&fieldManager=m&force=true" * (patch_type == "apply"), media, \
                change(patch_type, "ClusterRole", "old-agg2", {"aggregationRule": AGGREGATION}), CLUSTER_ADMIN
        for kind, base in (("RoleBinding", NS + "/rolebindings"), ("ClusterRoleBinding", RBAC + "/clusterrolebindings")):
            name = kind.lower()
            body = {"roleRef": REF, "subjects": [SUBJECT]}
            yield "bind", "POST", base + dry, JSON, named(kind, "new-" + name, **body), NOT_HELD
            yield "bind by PUT", "PUT", base + "/put-" + name + dry, JSON, named(kind, "put-" + name, **body), NOT_HELD
            yield "bind by apply", "PATCH", base + "/app-" + name + dry + "&fieldManager=m", PATCHES["apply"], named(kind, "app-" + name, **body), NOT_HELD
            yield "bind by update", "PUT", base + "/old-" + name + dry, JSON, named(kind, "old-" + name, **body), NOT_HELD
            for patch_type, media in PATCHES.items():
                body = {"roleRef": REF, "subjects": [SUBJECT]} if patch_type == "apply" else {"subjects": [SUBJECT]}
                yield "bind by " + patch_type, "PATCH", base + "/old-" + name + dry + "&fieldManager=m&force=true" * (patch_type == "apply"), media, \
                    change(patch_type, kind, "old-" + name, body), NOT_HELD


def check(what, client, method, path, media, body, want_status, want_text):
    status, answer = client.request(method, path, body, content_type=media)
    message = answer.get("message", "") if isinstance(answer, dict) else str(answer)
    if status not in want_status or want_text not in message:
        failures.append("%s as %s: %s %s: got %d %s" % (what, client.user, method, path, status, message))


def prepare(admin):
    rbac_rule = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "clusterroles", "rolebindings", "clusterrolebindings"], "verbs": []}
    verbs = ["get", "create", "update", "patch"]
    users = {
        "writer": [dict(rbac_rule, verbs=verbs), HELD],
        "binder": [dict(rbac_rule, verbs=verbs + ["escalate", "bind"])],
        "patcher": [dict(rbac_rule, verbs=["get", "update", "patch"]), {"apiGroups": ["", "coordination.k8s.io"], "resources": ["configmaps", "leases"], "verbs": ["get", "update", "patch"]}],
    }
    for user, rules in users.items():
        admin.must(201, "POST", RBAC + "/clusterroles", named("ClusterRole", "is-" + user, rules=rules))
        ref = dict(REF, name="is-" + user)
        admin.must(201, "POST", RBAC + "/clusterrolebindings", named("ClusterRoleBinding", "is-" + user, roleRef=ref, subjects=[dict(SUBJECT, name=user)]))
    admin.must(201, "POST", NS + "/roles", named("Role", "old-role", rules=[HELD]))
    for name in ("old-clusterrole", "old-agg2"):
        admin.must(201, "POST", RBAC + "/clusterroles", named("ClusterRole", name, rules=[HELD]))
    admin.must(201, "POST", RBAC + "/clusterroles", named("ClusterRole", "old-aggregated", rules=[HELD], aggregationRule=AGGREGATION))
    admin.must(201, "POST", NS + "/rolebindings", named("RoleBinding", "old-rolebinding", roleRef=REF, subjects=[]))
    admin.must(201, "POST", RBAC + "/clusterrolebindings", named("ClusterRoleBinding", "old-clusterrolebinding", roleRef=REF, subjects=[]))


def create_needs_create(patcher, admin):
    """PUT and apply that create need the create permission; updates of what is there do not."""
    core = "/api/v1/namespaces/default/configmaps/c?fieldManager=m"
    lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l"
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}}
    lease_body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}}
    text = 'User "patcher" cannot create resource "%s" in API group "%s" in the namespace "default"'
    for dry in ("", "&dryRun=All"):
        check("apply creates", patcher, "PATCH", core + dry, PATCHES["apply"], config, (403,), text % ("configmaps", ""))
        check("PUT creates", patcher, "PUT", lease + "?" + dry, JSON, lease_body, (403,), text % ("leases", "coordination.k8s.io"))
    role = named("Role", "never", rules=[])
    check("PUT creates a role", patcher, "PUT", NS + "/roles/never", JSON, role, (403,), text % ("roles", "rbac.authorization.k8s.io"))
    check("apply creates a role", patcher, "PATCH", NS + "/roles/never?fieldManager=m", PATCHES["apply"], role, (403,), text % ("roles", "rbac.authorization.k8s.io"))
    admin.must(201, "POST", "/api/v1/namespaces/default/configmaps", config)
    created = admin.must(201, "POST", lease.rsplit("/", 1)[0], lease_body)
    lease_body["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"]
    check("apply updates", patcher, "PATCH", core + "&force=true", PATCHES["apply"], config, (200,), "")
    check("PUT updates", patcher, "PUT", lease, JSON, lease_body, (200,), "")


def claim_status(server, admin):
    """Parts of a resource claim's status need permissions of their own: resourceclaims/binding, and resourceclaims/driver for each driver."""
    claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    status = {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims/status"], "verbs": ["get", "patch"]}
    users = {
        "bare": [status],
        "scheduler": [status, dict(status, resources=["resourceclaims/binding"], verbs=["patch"])],
        "driver": [status, dict(status, resources=["resourceclaims/driver"], resourceNames=["d.example.com"], verbs=["arbitrary-node:patch"])],
        "system:serviceaccount:default:local": [status, dict(status, resources=["resourceclaims/driver"], verbs=["associated-node:patch"])],
    }
    for number, (user, rules) in enumerate(users.items()):
        admin.must(201, "POST", RBAC + "/clusterroles", named("ClusterRole", "claim-%d" % number, rules=rules))
        admin.must(201, "POST", RBAC + "/clusterrolebindings", named("ClusterRoleBinding", "claim-%d" % number, roleRef=dict(REF, name="claim-%d" % number), subjects=[dict(SUBJECT, name=user)]))
    admin.must(201, "POST", claims, {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"},
                                     "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "x"}}]}}})
    clients = {user: UserClient(server, user) for user in users}
    for client in clients.values():
        while client.request("GET", claims + "/c/status")[0] != 200:
            pass  # the authorizer follows a watch
    device = {"driver": "d.example.com", "pool": "p", "device": "1"}
    node = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}
    allocation = {"status": {"allocation": {"devices": {"results": [dict(device, request="r")]}, "nodeSelector": node}}}
    devices = {"status": {"devices": [device]}}
    binding = 'changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="patch" permission: resourceclaims.resource.k8s.io is forbidden: ' \
              'User "%s" cannot patch resource "resourceclaims/binding" in API group "resource.k8s.io" at the cluster scope'
    driver = 'changing status.devices requires resource="resourceclaims/driver", verb="[%s]" permission: resourceclaims.resource.k8s.io "d.example.com" is forbidden: ' \
             'User "%s" cannot %s resource "resourceclaims/driver" in API group "resource.k8s.io" in the namespace "default"'
    path, merge, remote = claims + "/c/status", PATCHES["merge"], "arbitrary-node:patch"
    for user in ("bare", "driver"):
        check("allocation", clients[user], "PATCH", path, merge, allocation, (422,), binding % user)
    check("allocation", clients["scheduler"], "PATCH", path, merge, allocation, (200,), "")
    for user in ("bare", "scheduler"):
        check("devices", clients[user], "PATCH", path, merge, devices, (422,), driver % (remote, user, remote))
    check("labels", clients["bare"], "PATCH", path, merge, {"metadata": {"labels": {"a": "b"}}}, (200,), "")
    check("devices", clients["driver"], "PATCH", path + "?dryRun=All", merge, devices, (200,), "")
    local = clients["system:serviceaccount:default:local"]
    check("devices without a node", local, "PATCH", path, merge, devices, (422,), driver % (remote, local.user, remote))
    local.extra = {"Impersonate-Extra-authentication.kubernetes.io%2Fnode-name": "n1"}
    check("devices from the node", local, "PATCH", path, merge, devices, (200,), "")
    check("devices removed", clients["bare"], "PATCH", path, merge, {"status": {"devices": None}}, (422,), driver % (remote, "bare", remote))
    check("deallocation", clients["scheduler"], "PATCH", path, merge, {"status": {"allocation": None}}, (200,), "")


def main():
    folder = sys.argv[2]
    shutil.rmtree(folder, ignore_errors=True)
    server = Server(sys.argv[1], folder, in_memory=True).start()
    try:
        admin = Client(server)
        prepare(admin)
        writer, binder, patcher = (UserClient(server, user) for user in ("writer", "binder", "patcher"))
        while writer.request("GET", NS + "/roles/old-role")[0] != 200 or binder.request("GET", NS + "/roles/old-role")[0] != 200 \
                or patcher.request("GET", NS + "/roles/old-role")[0] != 200:
            pass  # the authorizer follows a watch
        count = 0
        for what, method, path, media, body, text in rows():
            check(what, writer, method, path, media, body, (403,), text)
            count += 1
        create_needs_create(patcher, admin)
        claim_status(server, admin)
        # Metadata of the garbage collector may change without the right; a label may not.
        old = NS + "/rolebindings/old-rolebinding"
        check("finalizers only", writer, "PATCH", old, PATCHES["merge"], {"metadata": {"finalizers": ["a.b/c"]}}, (200,), "")
        check("label", writer, "PATCH", old, PATCHES["merge"], {"metadata": {"labels": {"a": "b"}}}, (403,), NOT_HELD)
        check("held rules", writer, "POST", NS + "/roles", JSON, named("Role", "held", rules=[HELD]), (201,), "")
        check("missing role", writer, "POST", NS + "/rolebindings", JSON, named("RoleBinding", "m", roleRef=dict(REF, name="zz"), subjects=[]), (404,),
              'rolebindings.rbac.authorization.k8s.io "zz" not found')
        check("invalid role", writer, "POST", NS + "/roles", JSON, named("Role", "inv", rules=[dict(RULE, apiGroups=["x"]), {"verbs": []}]), (403,), NOT_HELD)
        for what, method, path, media, body, text in rows():
            if "?dryRun=All" in path:
                check(what, binder, method, path, media, body, (200, 201), "")
        print("%d refusals checked" % count)
    finally:
        server.stop()
    for failure in failures:
        print("FAILED: " + failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
