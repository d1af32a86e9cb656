#!/usr/bin/env python3
"""Answers to requests that are broken, odd or in the wrong order. usage: answers_test.py KEELSON WORK_FOLDER [--real BIN_FOLDER]

A table of requests with status and message. --real asks kube-apiserver instead: every row holds there too.
"""
import collections
import json
import os
import shutil
import sys
import threading
import time

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "test", "system"), os.path.join(ROOT, "interop")]
from harness import Client, Server  # noqa: E402

NAMESPACE = "/api/v1/namespaces/default"
MAP, NONE = NAMESPACE + "/configmaps/a", NAMESPACE + "/configmaps/none"
LIMITS = NAMESPACE + "/limitranges/new"
POD, SCALE = NAMESPACE + "/pods/p", "/apis/apps/v1/namespaces/default/deployments/d/scale"
CONTAINERS = {"containers": [{"name": "c", "image": "i"}]}
REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"
JSON, YAML = "application/json", "application/yaml"
MERGE, STRATEGIC, PATCH = "application/merge-patch+json", "application/strategic-merge-patch+json", "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
NOT_FOUND = 'configmaps "none" not found'
PATCHED, NO_KIND = ' "" is invalid: patch: Invalid value: "%s": %s', "couldn't get version/kind; json parse error: json: cannot unmarshal "
INTO_MAP = "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal %s into Go value of type map[string]interface {}"
UID = ("Operation cannot be fulfilled on limitranges \"new\": StorageError: invalid object, Code: 4, Key: %s/limitranges/default/new, "
       "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: u, UID in object meta: ")

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"


def definition(schema, **spec):
    """A custom resource definition with the subresource status and more in its schema and spec."""
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": dict({"type": "object"}, **schema)}}
    return json.dumps({"metadata": {"name": "ds.example.com"}, "spec": dict({"group": "example.com", "scope": "Cluster", "versions": [version], "names": {
        "plural": "ds", "singular": "d", "kind": "D", "listKind": "DList"}}, **spec)})


# method, path, content type, body, status, message ("" if the body is not a Status, None if it has uids or versions)
ROWS = [
    # 404 comes before all errors of the patch.
    ("PATCH", NONE, MERGE, "{bad", 404, NOT_FOUND),
    ("PATCH", NONE, STRATEGIC, "[]", 404, NOT_FOUND),
    ("PATCH", NONE, PATCH, "{}", 404, NOT_FOUND),
    ("PATCH", MAP, MERGE, "{bad", 400, "error decoding patch: invalid character 'b' looking for beginning of object key string"),
    # The media type of a patch is compared with its case; that of a body is not.
    ("PATCH", MAP, "Application/Merge-Patch+JSON", "{}", 415, None),
    ("PUT", MAP, "Application/JSON", '{"metadata":{"name":"a"}}', 200, ""),
    # Reviews have no metadata.
    ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", JSON,
     '{"metadata":{"labels":{"a":"b"}},"spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}', 422, None),
    # What a patch makes of an object may be none, or may not say what it is. New values are shown as they were sent, objects on the way to them sorted.
    ("PATCH", MAP + "?fieldValidation=Ignore", MERGE, "[]", 422, PATCHED % ("[]", NO_KIND + 'array into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }')),
    ("PATCH", MAP, PATCH, '[{"op":"replace","path":"","value":{"kind":5,"apiVersion":"v1"}}]', 422,
     PATCHED % (r'{\"apiVersion\":\"v1\",\"kind\":5}', NO_KIND + "number into Go struct field .kind of type string")),
    ("PATCH", MAP, PATCH, '[{"op":"replace","path":"","value":{"kind":"ConfigMap","apiVersion":"v1","data":{"z":"1"}}},{"op":"add","path":"/data/k","value":{"b":1,"a":2}}]', 422,
     PATCHED % (r'{\"apiVersion\":\"v1\",\"data\":{\"k\":{\"b\":1,\"a\":2},\"z\":\"1\"},\"kind\":\"ConfigMap\"}', "json: cannot unmarshal object into Go struct field ConfigMap.data of type string")),
    # A strategic merge patch cannot make an object one of another kind; a merge patch tries to.
    ("PATCH", MAP, STRATEGIC, '{"kind":"Foo","apiVersion":"x/y"}', 200, ""),
    # Bytes in a strategic merge patch.
    ("PATCH", NAMESPACE + "/secrets/a", STRATEGIC, '{"data":{"k":"$$"}}', 422,
     ' "" is invalid: patch: Invalid value: "map[data:map[k:$$]]": error decoding from json: illegal base64 data at input byte 0'),
    ("PATCH", NAMESPACE + "/secrets/a", STRATEGIC, '{"data":{"k":5}}', 422,
     ' "" is invalid: patch: Invalid value: "map[data:map[k:5]]": cannot restore slice from int64'),
    # Applied configurations that are not objects.
    ("PATCH", MAP + "?fieldManager=m", APPLY, "{bad", 400,
     "error decoding YAML: error converting YAML to JSON: yaml: line 1: did not find expected ',' or '}'"),
    ("PATCH", MAP + "?fieldManager=m", APPLY, "[]", 400, INTO_MAP % "array"),
    ("PATCH", MAP + "?fieldManager=m", APPLY, "a", 400, INTO_MAP % "string"),
    ("PATCH", MAP + "?fieldManager=m", APPLY, "1.5", 400, INTO_MAP % "number"),
    ("PATCH", MAP + "?fieldManager=m", APPLY, "true", 400, INTO_MAP % "bool"),
    ("PATCH", MAP + "?fieldManager=m", APPLY, "null", 400, "invalid object type: /, Kind="),
    # An apply that changes nothing leaves raw JSON as it was written, so that it still is the same.
    ("PATCH", REVISIONS + "/a?fieldManager=m", APPLY, '{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"a"}}', 200, ""),
    ("PATCH", MAP + "?fieldManager=m&fieldValidation=Strict", APPLY, "apiVersion: v1\nkind: ConfigMap\nkind: ConfigMap\nmetadata: {name: a}\n", 400,
     'error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  line 3: key "kind" already set in map'),
    # A merge patch or a JSON patch that does not reach raw JSON leaves its text but for white space; a strategic merge patch sorts it.
    ("PATCH", REVISIONS + "/compact?dryRun=All", MERGE, '{"metadata":{"labels":{"a":"b"}}}', 200, ""),
    ("PATCH", REVISIONS + "/compact?dryRun=All", PATCH, '[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]', 200, ""),
    ("PATCH", REVISIONS + "/a?dryRun=All", MERGE, '{"metadata":{"labels":{"a":"b"}}}', 422, 'ControllerRevision.apps "a" is invalid: data: Invalid value: {"b":1,"a":2}: field is immutable'),
    ("PATCH", REVISIONS + "/a?dryRun=All", STRATEGIC, '{"metadata":{"labels":{"a":"b"}}}', 422, 'ControllerRevision.apps "a" is invalid: data: Invalid value: {"a":2,"b":1}: field is immutable'),
    # The first document of several.
    ("POST", NAMESPACE + "/configmaps?dryRun=All", YAML, "metadata: {name: b}\n---\nmetadata: {name: c}\n", 201, ""),
    ("POST", NAMESPACE + "/configmaps?dryRun=All", YAML, "metadata: {name: b}\n...\n{bad", 201, ""),
    ("PATCH", MAP + "?fieldValidation=Ignore", MERGE, "{bad", 400, "Invalid JSON Patch"),
    # A list that is there is set, also when it is empty.
    ("POST", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates?dryRun=All", JSON,
     '{"metadata":{"name":"t"},"spec":{"metadata":{"ownerReferences":[]},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"d"}}]}}}}', 422,
     'ResourceClaimTemplate.resource.k8s.io "t" is invalid: spec.metadata.ownerReferences: Forbidden: cannot be set'),
    # A Status is known in every version.
    ("PUT", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/a", JSON, '{"kind":"Status"}', 400,
     'Status in version "v2" cannot be handled as a HorizontalPodAutoscaler: converting (v1.Status) to (autoscaling.HorizontalPodAutoscaler): unknown conversion'),
    # A document of YAML 1.2.
    ("POST", NAMESPACE + "/configmaps?dryRun=All", YAML, "%YAML 1.1\n---\nmetadata: {name: b}\n", 201, ""),
    ("PATCH", MAP + "?fieldManager=m", APPLY, "%YAML 1.2\n---\nmetadata: {name: a}\n", 400, "error decoding YAML: error converting YAML to JSON: yaml: found incompatible YAML document"),
    ("PATCH", MAP + "?fieldManager=m", APPLY, "# a comment\n%YAML 1.2\n---\nmetadata: {name: a}\n", 400, "error decoding YAML: error converting YAML to JSON: yaml: line 1: found incompatible YAML document"),
    # A continued list is not narrowed to the one object that its selector pins.
    ("GET", NAMESPACE + "/configmaps?fieldSelector=metadata.name=a&continue=x", JSON, None, 400, "invalid continue token: continue key is not valid: illegal base64 data at input byte 0"),
    # What is set at the root of a schema counts although it is empty; what has a default must not preserve unknown fields.
    ("POST", DEFINITIONS, JSON, definition({"not": {}}), 422, None),
    ("POST", DEFINITIONS, JSON, definition({"oneOf": []}), 422, None),
    ("POST", DEFINITIONS, JSON, definition({"title": "", "nullable": False, "not": None}), 201, ""),
    ("POST", DEFINITIONS, JSON, definition({"properties": {"a": {"type": "string", "default": "b"}}}, preserveUnknownFields=True), 422,
     'CustomResourceDefinition.apiextensions.k8s.io "ds.example.com" is invalid: [spec.preserveUnknownFields: Invalid value: true: must be false in order to use defaults in the schema, '
     'spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead]'),
    # Paths whose handlers look at no method, and one that does.
    ("POST", "/apis/apps", JSON, "{}", 200, ""),
    ("DELETE", "/openapi/v3", JSON, "", 200, ""),
    ("PUT", "/openapi/v3/none", JSON, "{}", 404, ""),
    ("POST", "/openid/v1/jwks", JSON, "{}", 405, "the server does not allow this method on the requested resource"),
    # A selector in an error: labels first, nothing empty.
    ("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", JSON,
     '{"metadata":{"name":"a"},"spec":{"minAvailable":1,"maxUnavailable":"1%","selector":{"matchExpressions":[{"key":"k","operator":"Exists","values":[]}],"matchLabels":{"b":"c","a":"b"}}}}',
     422, 'PodDisruptionBudget.policy "a" is invalid: spec: Invalid value: {"MinAvailable":1,"Selector":{"matchLabels":{"a":"b","b":"c"},'
     '"matchExpressions":[{"key":"k","operator":"Exists"}]},"MaxUnavailable":"1%","UnhealthyPodEvictionPolicy":null}: '
     "minAvailable and maxUnavailable cannot be both set"),
    # Maps in an error are sorted.
    ("PUT", "/apis/storage.k8s.io/v1/storageclasses/a", JSON, '{"metadata":{"name":"a"},"provisioner":"p","parameters":{"b":"c","a":"b"}}', 422,
     'StorageClass.storage.k8s.io "a" is invalid: parameters: Invalid value: {"a":"b","b":"c"}: field is immutable'),
    # A subresource's object has the name that the path says.
    ("POST", "/api/v1/namespaces/none/pods/x/binding", JSON, "{}", 404, 'namespaces "none" not found'),
    # Nothing is deleted in all namespaces at once.
    ("DELETE", "/api/v1/namespaces//configmaps", JSON, "", 400, "Namespace parameter required."),
    ("DELETE", "/api/v1/namespaces//configmaps?labelSelector=none", JSON, "", 200, ""),
    # Bindings and evictions.
    ("POST", POD + "/binding?dryRun=All", JSON, '{"target":{"name":"n"}}', 400, "name in URL does not match name in Binding object"),
    ("POST", POD + "/binding?dryRun=All", JSON, '{"metadata":{"name":"p","uid":"u"},"target":{"name":"n"}}', 409, None),
    ("POST", POD + "/binding?dryRun=All", JSON, '{"metadata":{"name":"p","resourceVersion":"1"},"target":{"name":"n"}}', 409, None),
    ("POST", NAMESPACE + "/bindings?dryRun=All", JSON, '{"metadata":{"name":"p","uid":"u"},"target":{"name":"n"}}', 201, ""),
    ("POST", POD + "/eviction?dryRun=All", JSON, '{"metadata":{"name":"p"},"deleteOptions":{"dryRun":["x"]}}', 500,
     "Non-matching dry-run options in request and content: [All] and [x]"),
    ("POST", POD + "/eviction?dryRun=All", JSON, '{"metadata":{"name":"p"},"deleteOptions":{"propagationPolicy":"X"}}', 422,
     'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "X": supported values: "Foreground", "Background", "Orphan", "nil"'),
    # Scales.
    ("PATCH", SCALE + "?dryRun=All&fieldManager=m&force=true", APPLY, '{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"x"},"spec":{"replicas":2}}',
     400, "the name of the object (x) does not match the name on the URL (d)"),
    ("PUT", SCALE + "?dryRun=All", JSON, '{"metadata":{"name":"d","uid":"u"},"spec":{"replicas":1}}', 409, None),
    # Objects that an apply or an update would create.
    ("PATCH", NONE + "?fieldManager=m", APPLY, '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"uid":"u"}}', 409,
     'Operation cannot be fulfilled on configmaps "none": uid mismatch: the provided object specified uid u, and no existing object was found'),
    ("PUT", LIMITS, JSON, '{"metadata":{"name":"new","uid":"u"}}', 409, UID % "/registry"),
    ("PUT", LIMITS + "?dryRun=All", JSON, '{"metadata":{"name":"new","uid":"u"}}', 409, UID % ""),
    ("PUT", LIMITS, JSON, '{"metadata":{"name":"new","resourceVersion":"x"}}', 500, 'strconv.ParseUint: parsing "x": invalid syntax'),
    ("PUT", NONE, JSON, '{"metadata":{"name":"none","resourceVersion":"x"}}', 404, NOT_FOUND),
    ("PUT", MAP, JSON, '{"metadata":{"name":"a","resourceVersion":"x"}}', 500, 'strconv.ParseUint: parsing "x": invalid syntax'),
    # A name that is taken, with a generateName beside it.
    ("POST", NAMESPACE + "/configmaps", JSON, '{"metadata":{"name":"a","generateName":"x"}}', 409,
     'configmaps "a" already exists, the server was not able to generate a unique name for the object'),
    ("POST", NAMESPACE + "/configmaps?dryRun=All", JSON, '{"metadata":{"name":"a","generateName":"x"}}', 409,
     'configmaps "a" already exists, the server was not able to generate a unique name for the object'),
    # A system priority class can be deleted with the whole collection only.
    ("DELETE", "/apis/scheduling.k8s.io/v1/priorityclasses/system-cluster-critical", JSON, "", 403,
     'priorityclasses.scheduling.k8s.io "system-cluster-critical" is forbidden: this is a system priority class and cannot be deleted'),
    ("DELETE", "/apis/scheduling.k8s.io/v1/priorityclasses?dryRun=All", JSON, "", 200, ""),
    # The body of a delete is read by a scheme that has meta.k8s.io alone.
    ("DELETE", NONE, JSON, '{"kind":"Status"}', 400, "converting (v1.Status) to (v1.DeleteOptions): unknown conversion"),
    ("DELETE", NONE, JSON, '{"kind":"Table","apiVersion":"meta.k8s.io/v1"}', 400, "converting (v1.Table) to (v1.DeleteOptions): unknown conversion"),
    ("DELETE", NONE, JSON, '{"kind":"Pod","apiVersion":"v1"}', 400, 'no kind "Pod" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"'),
    ("DELETE", NONE, YAML, "kind: Pod", 400, 'no kind "Pod" is registered for version "meta.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111"'),
    ("DELETE", NONE, JSON, '{"kind":"DeleteOptions","apiVersion":"foo/v1"}', 404, NOT_FOUND),
]


def check_eviction(client):
    """The budget's status is written by the server's own client."""
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    client.must(201, "POST", NAMESPACE + "/pods", {"metadata": {"name": "evicted", "labels": {"e": "e"}}, "spec": CONTAINERS})
    client.must(201, "POST", budgets, {"metadata": {"name": "b"}, "spec": {"minAvailable": 0, "selector": {"matchLabels": {"e": "e"}}}})
    pod = client.must(200, "GET", NAMESPACE + "/pods/evicted")
    pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    client.must(200, "PUT", NAMESPACE + "/pods/evicted/status", pod)
    budget = client.must(200, "GET", budgets + "/b")
    budget["status"] = {"observedGeneration": 1, "disruptionsAllowed": 2, "currentHealthy": 2, "desiredHealthy": 0, "expectedPods": 2}
    client.must(200, "PUT", budgets + "/b/status", budget)
    client.must(201, "POST", NAMESPACE + "/pods/evicted/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "evicted"}})
    managers = [(entry["manager"], entry.get("subresource")) for entry in client.must(200, "GET", budgets + "/b")["metadata"]["managedFields"]]
    if ("kube-apiserver", "status") not in managers:
        print("an eviction's status update: managers are %s" % managers)
        return 1
    return 0


def check_yaml_duplicates(client):
    """Keys that a YAML body has twice are warned of, as unknown fields are."""
    client.connection.request("POST", NAMESPACE + "/configmaps?dryRun=All", "metadata:\n  name: doubled\ndata: {a: b}\ndata: {a: c}\n",
                              {"Content-Type": YAML, "Accept": JSON})
    response = client.connection.getresponse()
    response.read()
    warning = response.getheader("Warning") or ""
    if response.status != 201 or 'line 4: key \\"data\\" already set in map' not in warning:
        print("a duplicate key of a YAML body: status %d, warning %r" % (response.status, warning))
        return 1
    return 0



def check_empty_list_apply(client):
    """An apply whose only news is an empty list changes nothing, so it writes nothing."""
    client.must(201, "POST", NAMESPACE + "/configmaps", {"metadata": {"name": "e", "labels": {"a": "b"}}})
    path, config = NAMESPACE + "/configmaps/e?fieldManager=m", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "e", "labels": {"a": "b"}}}
    first = client.must(200, "PATCH", path, config, content_type=APPLY)
    config["metadata"]["finalizers"] = []
    second = client.must(200, "PATCH", path, config, content_type=APPLY)
    if first != second:
        print("an apply with an empty list: %s, then %s" % (first, second))
        return 1
    return 0


def check_null_metadata_apply(client):
    """An apply with a null creationTimestamp and resourceVersion is no change: the store restores them before it compares."""
    path = NAMESPACE + "/configmaps/nulls?fieldManager=m"
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "nulls", "creationTimestamp": None, "resourceVersion": None}, "data": {"a": "b"}}
    first = client.must(201, "PATCH", path, config, content_type=APPLY)
    # managedFields have seconds: the next apply has another time.
    time.sleep(max(0.0, 1.05 - (time.time() % 1)))
    second = client.must(200, "PATCH", path, config, content_type=APPLY)
    if first != second:
        print("an apply with null metadata: %s, then %s" % (first, second))
        return 1
    return 0


def check_large_objects(client):
    """Objects that are too large only with their managedFields are written without them; an apply is refused."""
    path, data = NAMESPACE + "/configmaps", {"this-key-is-very-long-so-as-to-create-a-very-large-serialized-fieldset-%d" % i: "A" for i in range(9999)}
    client.must(201, "POST", path, {"metadata": {"name": "large-create"}, "data": data})
    for name in ("large-update", "large-patch"):
        client.must(201, "POST", path, {"metadata": {"name": name}})
    client.must(200, "PUT", path + "/large-update", {"metadata": {"name": "large-update"}, "data": data})
    client.must(200, "PATCH", path + "/large-patch", {"data": data}, content_type=MERGE)
    failed = 0
    for name in ("large-create", "large-update", "large-patch"):
        metadata = client.must(200, "GET", path + "/" + name)["metadata"]
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        status, answer = client.request("PATCH", path + "/%s?fieldManager=m" % name, config, content_type=APPLY)
        if "managedFields" in metadata or status != 500 or answer.get("message") != "etcdserver: request is too large":
            failed += 1
            print("%s: managedFields %s, apply %d %s" % (name, "managedFields" in metadata, status, str(answer)[:200]))
        client.must(200, "DELETE", path + "/" + name)
    return failed


def remove_definition(client):
    path = DEFINITIONS.split("?")[0] + "/ds.example.com"
    client.must(200, "DELETE", path)
    while client.request("GET", path)[0] != 404:
        time.sleep(0.05)


def check_duplicates_in_order(client):
    """Fields of a custom resource that are there twice are told in the order of the document."""
    client.must(201, "POST", DEFINITIONS.split("?")[0], definition({"x-kubernetes-preserve-unknown-fields": True}))
    while client.request("GET", "/apis/example.com/v1/ds")[0] != 200:
        time.sleep(0.05)
    body = '{"apiVersion":"example.com/v1","kind":"D","metadata":{"name":"a"},"z":{"b":{"x":1,"x":2},"b":{"y":1,"y":2}},"a":[{"q":1,"q":2}],"z":{"c":1,"c":3}}'
    want = 'D in version "v1" cannot be handled as a D: strict decoding error: ' + ", ".join('duplicate field "%s"' % field for field in ("z.b.x", "z.b", "z.b.y", "a[0].q", "z", "z.c"))
    status, answer = client.request("POST", "/apis/example.com/v1/ds?fieldValidation=Strict", body)
    remove_definition(client)
    if (status, answer.get("message")) != (400, want):
        print("duplicate fields: %d %s" % (status, answer.get("message")))
        return 1
    return 0


def check_schemes(client):
    """The servers of definitions and of API services know no kinds but their own, and the others not theirs. Where a scheme was made is told differently by every build."""
    failed = 0
    for path, version, kind, wanted in ((DEFINITIONS.replace("?", "/x?"), "v1", "Pod", "CustomResourceDefinition"), ("/apis/apiregistration.k8s.io/v1/apiservices/x", "v1", "Pod", "APIService"),
                                        (MAP, "apiregistration.k8s.io/v1", "APIService", "ConfigMap"), (MAP, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "ConfigMap")):
        status, answer = client.request("PUT", path, {"apiVersion": version, "kind": kind})
        want = '%s in version "v1" cannot be handled as a %s: no kind "%s" is registered for version "%s" in scheme ' % (kind, wanted, kind, version)
        if status != 400 or not answer["message"].startswith(want):
            failed += 1
            print("%s %s as %s: %d %s" % (version, kind, wanted, status, answer["message"]))
    return failed


def check_custom_resources(client):
    """A custom resource has to have an apiVersion. What validation refuses is no matter of the types of server-side apply. The kind in errors has the group that the object names."""
    failed = 0
    client.must(201, "POST", DEFINITIONS.split("?")[0], definition({"properties": {"size": {"x-kubernetes-int-or-string": True}, "when": {"type": "string", "format": "date-time"}}}))
    while client.request("GET", "/apis/example.com/v1/ds")[0] != 200:
        time.sleep(0.05)
    client.must(201, "POST", "/apis/example.com/v1/ds", {"apiVersion": "example.com/v1", "kind": "D", "metadata": {"name": "a"}})
    status, answer = client.request("POST", "/apis/example.com/v1/ds", {"kind": "D", "metadata": {"name": "b"}})
    if (status, answer.get("message")) != (400, "the API version in the data () does not match the expected API version (example.com/v1)"):
        failed += 1
        print("a custom resource without apiVersion: %d %s" % (status, answer))
    client.must(201, "POST", "/apis/example.com/v1/ds", {"apiVersion": "example.com/v1", "kind": "D", "metadata": {"name": "c"}, "when": [{"x": 1}]})  # a list in a format is not looked at
    status, answer = client.request("PATCH", "/apis/example.com/v1/ds/c?fieldManager=m", {"apiVersion": "example.com/v1", "kind": "D", "metadata": {"name": "c"}}, content_type=APPLY)
    if (status, answer.get("message")) != (500, "failed to create manager for existing fields: failed to convert new object (/c; example.com/v1, Kind=D) to smd typed: .when: expected any scalar, got &{[map[]]}"):
        failed += 1
        print("apply to an object that fits no type: %d %s" % (status, answer))
    for content_type, body, message in (
            (APPLY, {"apiVersion": "example.com/v1", "kind": "D", "metadata": {"name": "a"}, "size": []}, 'D.example.com "a" is invalid: size: Invalid value: "array": size in body must be of type integer,string: "array"'),
            (MERGE, {"apiVersion": "v9"}, 'D "a" is invalid: apiVersion: Invalid value: "v9": must be example.com/v1')):
        status, answer = client.request("PATCH", "/apis/example.com/v1/ds/a?fieldManager=m", body, content_type=content_type)
        if (status, answer.get("message")) != (422, message):
            failed += 1
            print("patch of a custom resource: %d %s" % (status, answer.get("message")))
    remove_definition(client)
    return failed


def check_other_group(client):
    """Managers of an event through one of its groups are forgotten with a write through the other."""
    path = "/%s/namespaces/default/events"
    client.must(201, "POST", path % "api/v1", {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}})
    metadata = client.must(200, "PATCH", path % "apis/events.k8s.io/v1" + "/e", {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE)["metadata"]
    versions = [entry["apiVersion"] for entry in metadata["managedFields"]]
    if versions != ["events.k8s.io/v1"]:
        print("managers of an event: %s" % versions)
        return 1
    return 0


def check_empty_conversion_webhook(client):
    """A conversion webhook with neither a client nor versions is dropped: nobody owns it."""
    failed = 0
    for webhook, owned in (({}, False), ({"conversionReviewVersions": []}, True)):
        body = definition({}, conversion={"strategy": "None", "webhook": webhook})
        made = client.must(201, "POST", DEFINITIONS, body)
        got = "f:webhook" in made["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:conversion"]
        if got != owned or "webhook" in made["spec"]["conversion"]:
            failed += 1
            print("conversion webhook %s: owned %s, want %s: %s" % (webhook, got, owned, made["spec"]["conversion"]))
    return failed


def check_sent_version(client):
    """A dry run of an update that would create answers with the resourceVersion that was sent."""
    path, body = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles/none", {"metadata": {"name": "none", "resourceVersion": "7"}, "rules": []}
    answer = client.must(201, "PUT", path + "?dryRun=All", body)
    if answer["metadata"].get("resourceVersion") != "7":
        print("dry run of an update that creates: %s" % answer["metadata"])
        return 1
    return 0


def check_forms(client):
    """What can be no form of a list is told before mistakes in the options, of a watch too. The aggregated form of /apis can be had by any method."""
    watch, nothing, aggregated = NAMESPACE + "/configmaps?watch=true&sendInitialEvents=true", "application/json;as=Nothing;v=v1;g=meta.k8s.io", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    failed = 0
    for method, path, form, want in (("GET", watch, nothing, 406), ("GET", watch, JSON, 422), ("GET", NAMESPACE + "/configmaps?watch=true&resourceVersion=x", YAML, 500), ("GET", NAMESPACE + "/configmaps?resourceVersion=x", nothing.replace("Nothing", "PartialObjectMetadata"), 400), ("GET", NAMESPACE + "/configmaps?sendInitialEvents=true", "text/html", 406),
                                     ("POST", "/apis", aggregated, 200), ("DELETE", "/apis", aggregated, 200), ("POST", "/apis/", aggregated, 406), ("POST", "/api", aggregated, 405)):
        got = client.request(method, path, accept=form)[0]
        if got != want:
            failed += 1
            print("%s %s as %s: want %d, got %d" % (method, path, form, want, got))
    return failed


def check_overlapping_definition(client):
    """A definition whose paths or models a built-in kind has is left out of OpenAPI v2: no name is there twice."""
    for group in ("apiextensions.k8s.io", "apiextensions.apis.pkg.apiextensions-apiserver.k8s.io"):
        client.must(201, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
            "metadata": {"name": "customresourcedefinitions." + group, "annotations": {"api-approved.kubernetes.io": "unapproved, test-only"}},
            "spec": {"group": group, "scope": "Cluster", "names": {"plural": "customresourcedefinitions", "singular": "customresourcedefinition",
                                                                   "kind": "CustomResourceDefinition", "listKind": "CustomResourceDefinitionList"},
                     "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"probe": {"type": "boolean"}}}}}]}})
    # Definitions are published in order of their creation, in time: the last one is there when the others are.
    client.must(201, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {"metadata": {"name": "probes.example.com"}, "spec": {
        "group": "example.com", "scope": "Cluster", "names": {"plural": "probes", "kind": "Probe", "listKind": "ProbeList"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]}})
    twice = []

    def pairs(members):
        twice.extend(name for name, count in collections.Counter(name for name, _ in members).items() if count > 1)
        return dict(members)
    end = time.monotonic() + 60
    while True:
        twice.clear()
        document = json.loads(raw(client, "/openapi/v2", JSON)[1], object_pairs_hook=pairs)
        if "/apis/example.com/v1/probes" in document["paths"]:
            break
        if time.monotonic() > end:
            print("OpenAPI v2 does not show a new definition")
            return 1
        time.sleep(0.1)
    if twice:
        print("OpenAPI v2 has twice: %s" % twice)
    return 1 if twice else 0


def check_tables(client):
    """Subresources without a TableConvertor answer 406; rows of an empty list are null where the default convertor makes them."""
    table, failed = "application/json;as=Table;v=v1;g=meta.k8s.io", 0
    for path, status in ((NAMESPACE + "/pods/none/resize", 406), (NAMESPACE + "/pods/none/ephemeralcontainers", 406), (NAMESPACE + "/pods/none/status", 404),
                         ("/apis/apiregistration.k8s.io/v1/apiservices/v1.apps/status", 406), ("/apis/apiregistration.k8s.io/v1/apiservices/v1.apps", 200),
                         ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/none/status", 406), ("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/none/status", 406),
                         ("/apis/certificates.k8s.io/v1/certificatesigningrequests/none/approval", 406)):
        got = raw(client, path, table)[0]
        if got != status:
            failed += 1
            print("a Table of %s: status %d, want %d" % (path, got, status))
    if raw(client, "/apis/apiregistration.k8s.io/v1/apiservices/v1.apps/status", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")[0] != 200:
        failed += 1
        print("metadata of a subresource without a TableConvertor")
    for path, rows in ((NAMESPACE + "/limitranges", None), ("/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities", None), (NAMESPACE + "/endpoints?labelSelector=none", [])):
        got = json.loads(raw(client, path, table)[1])["rows"]
        if got != rows:
            failed += 1
            print("a Table of no %s: rows %s, want %s" % (path, got, rows))
    return failed


def check_converted_manager(client):
    """An annotation that the conversion to the hub drops belongs to no manager."""
    path, kind = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers", {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler"}
    made = client.must(201, "POST", path, dict(kind, metadata={"name": "h"}, spec={"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}))
    same = client.must(200, "PATCH", path + "/h", {"metadata": {"annotations": {"autoscaling.alpha.kubernetes.io/metrics": "[]"}}}, content_type=MERGE)
    if made["metadata"]["managedFields"] != same["metadata"]["managedFields"]:
        print("managers of a dropped annotation: %s, before %s" % (same["metadata"]["managedFields"], made["metadata"]["managedFields"]))
        return 1
    return 0


def check_patched_version(client):
    """A merge or JSON patch may change apiVersion to another version of the kind: the result is read as that version and converted. v2 keeps none of the
    annotations in which v1 carries what it has no fields for."""
    path = "/apis/autoscaling/%s/namespaces/default/horizontalpodautoscalers"
    client.must(201, "POST", path % "v1", {"metadata": {"name": "v"}, "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}})
    failed = 0
    for to, content_type, body, version, utilization in (
            ("v2", MERGE, {"apiVersion": "autoscaling/v1", "spec": {"targetCPUUtilizationPercentage": 70}}, "autoscaling/v2", 70),
            ("v2", PATCH, [{"op": "replace", "path": "/apiVersion", "value": "autoscaling/v1"}, {"op": "add", "path": "/spec/targetCPUUtilizationPercentage", "value": 60}], "autoscaling/v2", 60),
            ("v2", MERGE, {"apiVersion": "autoscaling/v1", "spec": {"minReplicas": 2}}, "autoscaling/v2", 80),
            ("v1", MERGE, {"apiVersion": "autoscaling/v2", "spec": {"metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]}},
             "autoscaling/v1", 50),
            ("v2", MERGE, {"metadata": {"annotations": {"autoscaling.alpha.kubernetes.io/metrics": "[]", "autoscaling.alpha.kubernetes.io/behavior": "{}"}}}, "autoscaling/v2", 50)):
        status, answer = client.request("PATCH", path % to + "/v", body, content_type=content_type)
        spec = answer.get("spec", {})
        seen = spec.get("targetCPUUtilizationPercentage") if to == "v1" else spec.get("metrics", [{}])[0].get("resource", {}).get("target", {}).get("averageUtilization")
        if (status, answer.get("apiVersion"), seen, answer.get("metadata", {}).get("annotations")) != (200, version, utilization, None):
            failed += 1
            print("patch %s at %s: status %d %s" % (json.dumps(body), to, status, json.dumps(answer)[:500]))
    status, answer = client.request("PATCH", path % "v2" + "/v", {"apiVersion": "apps/v1"}, content_type=MERGE)
    if status != 422:
        failed += 1
        print("patch to a version without the kind: status %d %s" % (status, answer))
    return failed


def check_excluded_resources(client):
    """Policies do not see reviews: one that refuses everything refuses no review."""
    group = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
    client.must(201, "POST", group + "ies", {"metadata": {"name": "refuse"}, "spec": {
        "failurePolicy": "Fail", "validations": [{"expression": "false", "message": "refused"}],
        "matchConstraints": {"resourceRules": [{"apiGroups": ["", "authentication.k8s.io", "authorization.k8s.io"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["configmaps", "selfsubjectreviews", "selfsubjectaccessreviews"]}]}}})
    client.must(201, "POST", group + "ybindings", {"metadata": {"name": "refuse"}, "spec": {"policyName": "refuse", "validationActions": ["Deny"]}})
    end = time.monotonic() + 60
    while client.request("POST", NAMESPACE + "/configmaps?dryRun=All", {"metadata": {"name": "refused"}})[0] != 422 and time.monotonic() < end:
        time.sleep(0.1)
    failed = 0
    for path, body in (("/apis/authentication.k8s.io/v1/selfsubjectreviews", {}),
                       ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}})):
        status = client.request("POST", path, body)[0]
        if status != 201:
            failed += 1
            print("a policy that refuses everything: %s has status %d" % (path, status))
    for path in ("ybindings/refuse", "ies/refuse"):
        client.must(200, "DELETE", group + path)
    while client.request("POST", NAMESPACE + "/configmaps?dryRun=All", {"metadata": {"name": "refused"}})[0] != 201 and time.monotonic() < end:
        time.sleep(0.1)
    return failed


def check_owners_of_a_patch(client):
    """A patch with an owner twice is warned of after admission, an update before it."""
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "50afb8bf-32b1-47fa-87b0-1bd84a976b0e"}
    client.must(201, "POST", NAMESPACE + "/configmaps", {"metadata": {"name": "owned", "ownerReferences": [owner]}})
    client.connection.request("PATCH", NAMESPACE + "/configmaps/owned?dryRun=All", json.dumps([{"op": "add", "path": "/metadata/ownerReferences/-", "value": owner}]),
                              {"Content-Type": PATCH, "Accept": JSON})
    response = client.connection.getresponse()
    response.read()
    warning = response.getheader("Warning") or ""
    if "contains duplicate entries after mutating admission happens" not in warning:
        print("an owner twice in a patch: status %d, warning %r" % (response.status, warning))
        return 1
    return 0


def check_late_account(server, client):
    """A pod waits a while for the account "default" of its namespace, which a controller makes."""
    client.must(201, "POST", "/api/v1/namespaces", {"metadata": {"name": "late"}})

    def make():
        time.sleep(0.3)
        other = Client(server)
        other.request("POST", "/api/v1/namespaces/late/serviceaccounts", {"metadata": {"name": "default"}})  # controllers may be faster
        other.close()
    maker = threading.Thread(target=make)
    maker.start()
    status, answer = client.request("POST", "/api/v1/namespaces/late/pods", {"metadata": {"name": "p"}, "spec": CONTAINERS})
    maker.join()
    if status != 201:
        print("a pod before its account: status %d %s" % (status, answer))
    return status != 201


def raw(client, path, accept):
    client.connection.request("GET", path, headers={"Accept": accept})
    response = client.connection.getresponse()
    return response.status, response.read().decode()


def check_laid_out_lists(client):
    """Lists as YAML and as JSON with line breaks, which are sent item by item."""
    path = "/api/v1/namespaces/laid-out/configmaps"
    client.must(201, "POST", "/api/v1/namespaces", {"metadata": {"name": "laid-out"}})
    for name, data in (("b", {"lines": "one\ntwo\n", "long": "word " * 60}), ("c", {}), ("d", {"quoted": ": x"})):
        client.must(201, "POST", path, {"metadata": {"name": name}, "data": data})
    query = path + "?fieldSelector=metadata.name!=kube-root-ca.crt"
    wrong = []
    compact = json.loads(raw(client, query, JSON)[1])
    if raw(client, query + "&pretty=true", JSON) != (200, json.dumps(compact, indent=2)):
        wrong.append("JSON with line breaks")
    status, text = raw(client, query, YAML)
    tail = "kind: ConfigMapList\nmetadata:\n  resourceVersion: \"%s\"\n" % compact["metadata"]["resourceVersion"]
    if status != 200 or not text.startswith("apiVersion: v1\nitems:\n- data:\n    lines: |\n      one\n      two\n    long: ") or text.count("\n- ") != 3 or not text.endswith(tail):
        wrong.append("YAML")
    status, text = raw(client, query, "application/yaml;as=Table;g=meta.k8s.io;v=v1")
    if status != 200 or not text.startswith("apiVersion: meta.k8s.io/v1\ncolumnDefinitions:\n- ") or text.count("\n- cells:") != 3:
        wrong.append("a Table as YAML")
    if raw(client, query + "&labelSelector=none", YAML)[1].split("\n")[:3] != ["apiVersion: v1", "items: []", "kind: ConfigMapList"]:
        wrong.append("an empty list as YAML")
    client.must(201, "POST", path, {"metadata": {"name": "e"}, "data": {"control": "\x7f"}})
    if raw(client, query, YAML)[0] != 500:
        wrong.append("YAML of control characters")
    for what in wrong:
        print("lists that are laid out: %s" % what)
    return len(wrong)


def started(folder, flags=()):
    shutil.rmtree(folder, ignore_errors=True)
    if "--real" in sys.argv:
        from rig import RealPair
        return RealPair(folder, sys.argv[sys.argv.index("--real") + 1], flags).start()
    return Server(sys.argv[1], folder, flags, in_memory=True).start()


def check_without_fairness(folder):
    """Nobody writes conditions of flow schemas without priority and fairness. The watch ends by itself."""
    server = started(folder, ["--enable-priority-and-fairness=false"])
    try:
        client, path = Client(server), "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
        made = client.must(201, "POST", path, {"metadata": {"name": "f"}, "spec": {"priorityLevelConfiguration": {"name": "none"}, "matchingPrecedence": 1000}})
        query = "?watch=true&timeoutSeconds=2&fieldSelector=metadata.name=f&resourceVersion=" + made["metadata"]["resourceVersion"]
        events = raw(client, path + query, JSON)[1]
        client.close()
    finally:
        server.stop()
    if events:
        print("a flow schema without priority and fairness: %s" % events[:300])
        return 1
    return 0


def main():
    folder = sys.argv[2]
    server = started(folder)
    failed = 0
    try:
        client = Client(server)
        client.must(201, "POST", NAMESPACE + "/configmaps", {"metadata": {"name": "a"}})
        client.must(201, "POST", NAMESPACE + "/secrets", {"metadata": {"name": "a"}})
        client.must(201, "POST", "/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": "a"}, "provisioner": "p"})
        client.request("POST", NAMESPACE + "/serviceaccounts", {"metadata": {"name": "default"}})  # there with controllers only
        client.must(201, "POST", NAMESPACE + "/pods", {"metadata": {"name": "p"}, "spec": CONTAINERS})
        client.must(201, "POST", "/apis/apps/v1/namespaces/default/deployments", {"metadata": {"name": "d"}, "spec": {
            "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": CONTAINERS}}})
        client.must(201, "POST", REVISIONS, '{"metadata": {"name": "a"}, "revision": 1, "data": {"b": 1, "a": 2}}')
        client.must(201, "POST", REVISIONS, '{"metadata":{"name":"compact"},"revision":1,"data":{"b":1,"a":2}}')
        for method, path, content_type, body, status, message in ROWS:
            got, answer = client.request(method, path, body, content_type=content_type)
            text = answer.get("message", "") if isinstance(answer, dict) else ""
            if got != status or message not in (None, text):
                failed += 1
                print("%s %s %r\n  want %d %r\n  got  %d %s" % (method, path, body, status, message, got, text))
        failed += check_eviction(client) + check_yaml_duplicates(client) + check_laid_out_lists(client) + check_empty_list_apply(client)
        failed += check_null_metadata_apply(client) + check_large_objects(client) + check_tables(client) + check_converted_manager(client) + check_patched_version(client)
        failed += check_late_account(server, client) + check_excluded_resources(client) + check_owners_of_a_patch(client) + check_overlapping_definition(client)
        failed += check_duplicates_in_order(client) + check_schemes(client) + check_custom_resources(client) + check_other_group(client)
        failed += check_sent_version(client) + check_forms(client) + check_empty_conversion_webhook(client)
        client.close()
    finally:
        server.stop()
    failed += check_without_fairness(folder + "-unfair")
    print("%d rows, %d failed" % (len(ROWS), failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
