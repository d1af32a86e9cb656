#!/usr/bin/env python3
"""Plays random sequences of requests on kube-apiserver and on Keelson, step by step, and prints where the answers differ, in clusters of one cause.
usage: interop/sequences.py KEELSON WORK_FOLDER BIN_FOLDER [--only REGEX] [--first SEED] [--count SEQUENCES] [--seeds SEED,...] [--seconds N] [--requests N] [--workers N] [--trace]

A sequence is made from its seed: one kind (built in, or a custom one of RESOURCES), two names, and steps that build on each other: creates, reads in
every form, lists with selectors of every kind, updates with the right, an old or no resourceVersion, the four kinds of patch, applies of several
managers, status, scale and the other subresources, finalizers, owners, deletes with every option, collections, other versions of the same object,
dry runs, field validation, YAML, reviews, other users, discovery and wrong paths. Bodies are those of sweep.py, changed in random fields.
The answers are compared after values that differ by nature are blanked; a resourceVersion is named by the order in which it was first seen, so a
write that should not be one shows. A sequence ends at its first difference: `--first SEED --count 1 --trace` replays it.
Each of the workers is a process with a kube-apiserver, an etcd (in memory, without fsync) and a Keelson of its own; both servers work on a request at the
same time, and answers whose bytes are equal after the blanking are not parsed. Every minute a line tells how far it is.
Exit code 0 where everything is the same, 1 where something differs. It is a tool to find differences, not a test.
"""
import collections
import json
import multiprocessing
import os
import queue
import random
import re
import shutil
import signal
import sys
import time
import traceback
import urllib.parse

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rig import RealPair, arguments_of, parser_of  # noqa: E402
from harness import Server  # noqa: E402
from sweep import ABSENT, BLANKS, FLAGS, NAMESPACE, PATCH_TYPES, Tables, changes, difference, merge_patch, recorded_objects, window  # noqa: E402
from wire import Broken, Wire  # noqa: E402

STEPS_MAX = 24
REPEATS = 3  # of a sequence that differs
GROUP = "sequences.example.com"
SCHEMA = {"type": "object", "properties": {
    "spec": {"type": "object", "x-kubernetes-validations": [{"rule": "!has(self.limit) || self.replicas <= self.limit", "message": "too many"},
                                                            {"rule": "self.fixed == oldSelf.fixed", "message": "fixed is immutable"}], "properties": {
        "replicas": {"type": "integer", "default": 1, "minimum": 0, "maximum": 100}, "limit": {"type": "integer"},
        "fixed": {"type": "string", "default": "f", "maxLength": 10}, "color": {"type": "string", "enum": ["red", "green"]},
        "size": {"x-kubernetes-int-or-string": True}, "when": {"type": "string", "format": "date-time"}, "note": {"type": "string", "nullable": True},
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"], "items": {
            "type": "object", "required": ["port"], "properties": {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "name": {"type": "string"}}}},
        "order": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "integer"}}, "plain": {"type": "array", "maxItems": 3, "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}, "map": {"type": "object", "additionalProperties": {"type": "string", "pattern": "^[a-z]*$"}},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"x": {"type": "string"}, "y": {"type": "number"}}},
        "inner": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}}},
    "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "phase": {"type": "string"}, "selector": {"type": "string"}}}}}
COLUMNS = [{"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"}, {"name": "When", "type": "date", "jsonPath": ".spec.when"}, {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1}]


def definition(plural, kind, scope, versions):
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": plural + "." + GROUP}, "spec": {
        "group": GROUP, "scope": scope, "names": {"plural": plural, "kind": kind, "singular": kind.lower(), "listKind": kind + "List"}, "versions": versions}}


RESOURCES = [
    definition("widgets", "Widget", "Namespaced", [
        {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}, "additionalPrinterColumns": COLUMNS, "selectableFields": [{"jsonPath": ".spec.color"}],
         "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}}},
        {"name": "v1beta1", "served": True, "storage": False, "schema": {"openAPIV3Schema": SCHEMA}, "selectableFields": [{"jsonPath": ".spec.color"}], "subresources": {"status": {}}}]),
    definition("gadgets", "Gadget", "Cluster", [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}])]
WIDGET = {"apiVersion": GROUP + "/v1", "kind": "Widget", "metadata": {"name": "w", "labels": {"a": "b"}}, "spec": {
    "replicas": 2, "color": "red", "size": 5, "when": "2020-01-01T00:00:00Z", "tags": ["a", "b"], "ports": [{"port": 1}, {"port": 2, "protocol": "UDP", "name": "x"}], "order": [3, 1], "plain": [{"a": "1"}],
    "any": {"x": {"y": [1]}}, "map": {"k": "v"}, "whole": {"x": "1"}, "inner": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}}}
GADGET = {"apiVersion": GROUP + "/v1", "kind": "Gadget", "metadata": {"name": "g"}, "a": 1, "b": {"c": [1, 2, {"d": None}]}}
FREE_VALUES = [None, "", "x", 0, -1, 7, 3.5, True, [], {}, ["a"], ["a", "a"], [1], [{"port": 9}], [{"port": 1}, {"port": 1}], {"k": "v"}, {"a": {"b": 1}}, "2021-02-03T04:05:06+01:00", 101, "blue", "1e3"]


# Differences that stay (docs/differences.md): what they are called, patterns on the request, on the place, on kube-apiserver's and on our value.
KNOWN = [("a status whose object is not there", r"(PUT|PATCH) /api/v1/namespaces/\w+/services/[^/]+/status|PATCH /apis/\S+/validatingadmissionpolicies/[^/]+/status", r"\.status", r"201|400|409|422|500", r"404"),
         ("admin access beside other mistakes", r"(POST|PATCH|PUT) /apis/resource.k8s.io/\S+/resourceclaim(s|templates)", r"\.body\.message", r".*invalid: \[spec.devices.requests\[\d\].adminAccess: Forbidden.*", r".*invalid: spec.devices.requests\[\d\].adminAccess: Forbidden.*"),
         ("an apply of an HorizontalPodAutoscaler that cannot be converted", r"PATCH /apis/autoscaling/\S+ application/apply", r"\.body\.message", r"failed to .*unable to convert unstructured object.*", r"failed to .*unable to convert unstructured object.*"),
         ("an empty caBundle that goes away", r"(PUT|PATCH) /apis/admissionregistration.k8s.io/v1/\w+webhookconfigurations", r"\.body\.metadata\.generation", r"\d+", r"\d+"),
         ("a watch that accepts only PartialObjectMetadataList", r"GET \S+[?&]watch=true\S* +\S*as=PartialObjectMetadataList", r"\.status", r"200", r"406")]


def known(request, where, theirs, ours):
    return next((name for name, *patterns in KNOWN if re.match(patterns[0], request) and all(re.fullmatch(pattern, str(value), re.DOTALL) for pattern, value in zip(patterns[1:], (where, theirs, ours)))), None)


def sorted_errors(message):
    """kube-apiserver walks labels, the properties of a custom resource, and the maps of an applied object until the first unknown field, in random order."""
    if message.startswith("failed to create typed patch object") and "field not declared in schema" in message:
        return "failed to create typed patch object"
    if message.count("metadata.labels: Invalid value") > 1:
        return ", ".join(sorted(re.split(r", (?=metadata\.)|: \[", message.removesuffix("]"))))
    match = re.fullmatch(r"(\w+\.%s .* is invalid: \[)(.*)\]" % re.escape(GROUP), message, re.DOTALL)
    return match.group(1) + ", ".join(sorted(re.split(r", (?=\.?spec|\.?status|<nil>)", match.group(2)))) + "]" if match else message


def altered(document, path, value):
    """The document with one value changed; only what is on the path is copied."""
    copied = list(document) if isinstance(document, list) else dict(document)
    if len(path) > 1:
        copied[path[0]] = altered(copied[path[0]], path[1:], value)
    elif value is ABSENT:
        del copied[path[0]]
    else:
        copied[path[0]] = value
    return copied


# One pattern for everything that is blanked in the bytes of an answer; see Player.quick.
QUICK = re.compile(rb'(?:"resourceVersion":"|resourceVersion: "|in object meta: |in record \(|the precondition \()(?P<version>\d+)(?![0-9a-f-])|"(?:nodePort|healthCheckNodePort)":(?P<port>\d+)|'
                   rb'(?P<uid>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})|(?P<time>20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)|kube-api-access-(?P<gen>[a-z0-9]{5})|(?P<ip>\b10\.0\.\d+\.\d+\b)|in scheme (?P<scheme>\\"[^"]*")')


class Player:
    """One server in one sequence: the last answer about each object, and the order of resource versions."""

    def __init__(self, server):
        self.wire = Wire(server, "sequences/1")
        self.begin()
        self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        self.ask("POST", "/api/v1/namespaces/%s/serviceaccounts" % NAMESPACE, {"metadata": {"name": "default"}})

    def begin(self):
        self.live, self.old, self.versions = {}, {}, {}

    def post(self, method, path, body, content_type, accept, more=()):
        headers = [("Accept", accept), *more]
        if body is not None:
            headers.append(("Content-Type", content_type))
            body = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body, separators=(",", ":")).encode()
        try:
            self.wire.send(method, path, headers, body)
        except Broken:  # an idle connection that the server has closed meanwhile
            self.wire.send(method, path, headers, body)

    def take(self):
        try:
            status, headers, self.raw = self.wire.receive()
        except Broken as e:
            self.raw = b""
            return {"status": 0, "warnings": [], "body": repr(e)}
        return {"status": status, "type": dict(headers).get("content-type"), "warnings": [value for name, value in headers if name == "warning"]}

    def parsed(self):
        return json.loads(self.raw) if self.raw[:1] == b"{" else self.raw.decode(errors="replace")

    def ask(self, method, path, body=None, content_type="application/json", accept="application/json"):
        self.post(method, path, body, content_type, accept)
        answer = self.take()
        return dict(answer, body=self.parsed()) if answer["status"] else answer

    def quick(self):
        """The bytes of the answer without what differs by nature. None for lists, whose own version is no object's."""
        if b'"items":' in self.raw or b'"rows":' in self.raw:
            return None
        return QUICK.sub(lambda m: b"<%s>" % (self.version(m.group("version").decode()).encode() if m.lastgroup == "version" else m.lastgroup.encode()), self.raw)

    def version(self, text):
        return "<rv%d>" % self.versions.setdefault(text, len(self.versions))

    def blank(self, value, key=""):
        if isinstance(value, dict):
            if "items" in value or "rows" in value:  # of a list: other objects' writes move it
                value = dict(value, metadata={k: v for k, v in value.get("metadata", {}).items() if k != "resourceVersion"})
            return {self.blank(k): self.blank(v, k) for k, v in value.items()}
        if isinstance(value, list):
            items = [self.blank(item, key) for item in value]
            # Managers are sorted by time, which the two servers do not share; causes of a conflict and the
            # custom resources of a group come in random order from kube-apiserver.
            return sorted(items, key=json.dumps) if key in ("managedFields", "causes", "resources") else items
        if key in ("nodePort", "healthCheckNodePort", "continue", "token", "serverAddress"):
            return "<%s>" % key
        if key == "resourceVersion" and isinstance(value, str):
            return self.version(value)
        if isinstance(value, str):
            for pattern, text in BLANKS:
                value = pattern.sub(text, value)
            value = re.sub(r"\b(continue|serverAddress|token|nodePort|healthCheckNodePort): (?:\w+ value: )?[^\s,\]]+", r"\1: <>", value)
            value = re.sub(r'([nN]odePort\\+": ?|^Duplicate value: )3\d{4}\b', r"\1<>", value)
            if "\nitems:" in value or "\nrows:" in value:  # a list as YAML
                value = re.sub(r"(?m)^  resourceVersion: .*\n", "", value)
            if "\nkind: APIResourceList\n" in value:
                value = "\n".join(sorted(value.split("\n")))
            value = re.sub(r'(resourceVersion: "|in object meta: |in record \(|the precondition \()(\d+)(?![0-9a-f-])', lambda m: m.group(1) + self.version(m.group(2)), value)
            value = sorted_errors(value)
            if key == "cells":
                value = "<age>" if re.fullmatch(r"\d+s", value) else re.sub(r":3\d{4}/", ":<port>/", value)
        return value


class Kind:
    def __init__(self, collection, body, found):
        self.collection, self.body, self.found = collection, body, found
        words = collection.strip("/").split("/")
        self.plural, self.version = words[-1], "v1" if words[0] == "api" else "/".join(words[1:3])
        others = [v for v in VERSIONS.get(self.plural, ()) if v != self.version] if self.version in VERSIONS.get(self.plural, ()) else []
        self.others = [(v, collection.replace("/api/v1/" if self.version == "v1" else "/apis/%s/" % self.version, "/api/v1/" if v == "v1" else "/apis/%s/" % v)) for v in others]


VERSIONS = {"widgets": [GROUP + "/v1", GROUP + "/v1beta1"], "horizontalpodautoscalers": ["autoscaling/v1", "autoscaling/v2"], "events": ["v1", "events.k8s.io/v1"]}
SUBRESOURCES = {"pods": ["ephemeralcontainers", "resize", "binding", "eviction", "status"], "namespaces": ["finalize", "status"], "certificatesigningrequests": ["approval", "status"],
                "serviceaccounts": ["token"], "nodes": ["status"], "services": ["status"], "replicationcontrollers": ["scale", "status"]}
SUB_BODIES = {"token": [{"spec": {"audiences": ["a"]}}, {"spec": {"expirationSeconds": 5}}, {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "none"}}}, {}],
              "binding": [{"target": {"kind": "Node", "name": "n"}}, {"target": {"kind": "Pod", "name": "n"}}, {"target": {"name": ""}}, {}],
              "eviction": [{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {}}, {"apiVersion": "policy/v1", "kind": "Eviction", "deleteOptions": {"dryRun": ["All"]}}, {}]}
# Kinds that are only ever created, and what is changed in them.
REVIEWS = [("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {"resourceAttributes": {"namespace": "x", "verb": "get", "resource": "pods", "group": ""}}}),
           ("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {"user": "u", "groups": ["g"], "resourceAttributes": {"verb": "list", "resource": "pods", "fieldSelector": {"requirements": [{"key": "a", "operator": "In", "values": ["b"]}]}}}}),
           ("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {"user": "system:kube-scheduler", "nonResourceAttributes": {"path": "/healthz", "verb": "get"}}}),
           ("/apis/authorization.k8s.io/v1/namespaces/%s/localsubjectaccessreviews" % NAMESPACE, {"spec": {"user": "u", "resourceAttributes": {"namespace": NAMESPACE, "verb": "get", "resource": "pods", "labelSelector": {"rawSelector": "a=b"}}}}),
           ("/apis/authentication.k8s.io/v1/selfsubjectreviews", {}), ("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x.y.z", "audiences": ["a"]}}),
           ("/api/v1/namespaces/%s/bindings" % NAMESPACE, {"metadata": {"name": "none"}, "target": {"kind": "Node", "name": "n"}})]
SELECTORS = ["a=b", "a!=b", "a", "!a", "a in (b,c)", "a notin (b)", "a in ()", "a in b", "a=b,", "=", "a==b", "a>1", "a>x", "a<5,b", "a=b=c", "-a", "a=-", "%", "a in (x,,y)", "", " a = b ", "a/b/c", "x.y/z=w", "a=" + "l" * 64]
FIELDS = ["metadata.name=x", "metadata.name!=x", "metadata.name==x", "metadata.namespace=" + NAMESPACE, "spec.nodeName=n", "status.phase=Running", "status.phase!=Running", "type=Opaque", "spec.color=red", "spec.unschedulable=true",
          "involvedObject.name=x", "reason=r", "spec.x=y", "metadata.name", "metadata.name=a,metadata.name=b", "metadata.name in (a)", "x\\=y=z", "metadata.uid=1", "status.successful=0", "spec.replicas=1", "metadata.labels.a=b"]
READS = ["/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1", "/apis/batch/v1", "/apis/autoscaling", "/apis/autoscaling/v2", "/apis/none", "/apis/apps/v9", "/healthz", "/livez/ping", "/readyz/none", "/apis/" + GROUP, "/apis/%s/v1" % GROUP,
         "/apis/apiextensions.k8s.io/v1", "/apis/rbac.authorization.k8s.io/v1", "/openapi/v3/none", "/none", "/api/v1/", "/api/v2", "/apis/", "/apis/apps/v1/", "/api/v1/watch", "/api/v1/none", "/api/v1/namespaces/%s/none" % NAMESPACE, "/api/v1/pods/x"]
DISCOVERY = ["application/json"] * 3 + ["application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json", "application/yaml", "text/html", "*/*", "application/xml", "application/json;q=0.5,application/yaml"]
OBJECTS = ["application/json"] * 5 + ["application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/yaml", "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
                                     "application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io", "application/xml", "application/json;as=Nothing;v=v1;g=meta.k8s.io", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "*/*", "application/json;pretty=1"]
LISTS = [accept.replace("PartialObjectMetadata;", "PartialObjectMetadataList;") for accept in OBJECTS]
USERS = [("Impersonate-User", "u"), ("Impersonate-User", "system:kube-scheduler"), ("Impersonate-User", "system:anonymous"), ("Impersonate-User", "system:serviceaccount:%s:default" % NAMESPACE), ("Impersonate-User", "system:node:n"), ("Impersonate-Group", "g")]


def kinds(tables, only):
    result = []
    definitions = [("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "", definition("things", "Thing", "Namespaced", RESOURCES[0]["spec"]["versions"][:1]))]
    for collection, _, body in [*recorded_objects(), *definitions]:
        words = collection.strip("/").split("/")
        kind = tables.kinds.get(("v1" if words[0] == "api" else "/".join(words[1:3]), words[-1]))
        if kind is None or not re.search(only, collection) or "name" not in body.get("metadata", {}):
            continue
        found = [c for c in changes(tables, ("struct", kind), body, []) if c[0][:2] != ["metadata", "name"] and c[0][:2] != ["metadata", "namespace"] and c[0] != ["metadata"]]
        result.append(Kind(collection, body, found))
    by_collection = collections.defaultdict(list)
    for kind in result:
        by_collection[kind.collection].append(kind)
    for collection, body in (("/apis/%s/v1/namespaces/%s/widgets" % (GROUP, NAMESPACE), WIDGET), ("/apis/%s/v1/gadgets" % GROUP, GADGET)):
        if re.search(only, collection):
            found = [(["spec", name], "free", value) for name in SCHEMA["properties"]["spec"]["properties"] for value in FREE_VALUES + [ABSENT]] if "spec" in body else [([name], "free", v) for name in "abz" for v in FREE_VALUES]
            kind = Kind(collection, body, [c for c in found if c[2] is not ABSENT or c[0][-1] in body["spec"]])
            by_collection[collection] = [kind] * 3
    return list(by_collection.values())


class Sequence:
    def __init__(self, seed, all_kinds, players, trace):
        self.chance = random.Random(seed)
        self.kind = self.chance.choice(self.chance.choice(all_kinds))
        self.seed, self.players, self.trace = seed, players, trace
        self.names = ["s%d-%s" % (seed, letter) for letter in "ab"]
        if self.kind.plural == "customresourcedefinitions":  # their names have to fit their content
            self.names = ["s%d%s.%s" % (seed, letter, GROUP) for letter in "ab"]
        self.label = "s%d" % seed
        for player in players:
            player.begin()

    def document(self, name):
        metadata = self.kind.body["metadata"]
        body = dict(self.kind.body, metadata=dict(metadata, name=name, labels=dict(metadata.get("labels") or {}, sequence=self.label)))
        if self.kind.plural == "customresourcedefinitions":
            plural = name.split(".")[0]
            body["spec"] = dict(body["spec"], names={"plural": plural, "singular": plural + "x", "kind": "K" + plural, "listKind": "L" + plural})
        return body

    def mutated(self, body, changes_max=2):
        for _ in range(self.chance.randint(0, changes_max)):
            if not self.kind.found:
                return body
            path, _, value = self.chance.choice(self.kind.found)
            try:
                body = altered(body, path, value)
            except (KeyError, IndexError, TypeError, ValueError):
                pass
        return body

    def query(self, *extra):
        words = [word for word in extra if word]
        if self.chance.random() < 0.2 or self.kind.plural == "customresourcedefinitions":  # of which two hundred installed ones would slow everything down
            words.append("dryRun=" + self.chance.choice(["All"] * 12 + ["Some"]))
        if self.chance.random() < 0.3:
            words.append("fieldValidation=" + self.chance.choice(["Strict", "Warn", "Ignore"] * 5 + ["Bad"]))
        if self.chance.random() < 0.3 and not any(w.startswith("fieldManager") for w in words):
            words.append("fieldManager=" + self.chance.choice(["m1", "m2"] * 8 + ["m" * 129, "%07"]))
        return "?" + "&".join(words) if words else ""

    def place(self):
        """The collection, sometimes of another version of the same objects, with that version or None."""
        if self.kind.others and self.chance.random() < 0.3:
            version, collection = self.chance.choice(self.kind.others)
            return collection, version
        return self.kind.collection, None

    def written(self, body):
        """(body, content type): sometimes as YAML, of which JSON with spaces is a form."""
        if self.chance.random() < 0.08:
            return "# yaml\n---\n" + json.dumps(body, indent=1), "application/yaml"
        return body, "application/json"

    # Each step returns (method, path, body maker, content type, accept, headers); the maker gets the player, so that bodies have its versions and uids.
    def create(self, name):
        body = self.mutated(self.document(name))
        if self.chance.random() < 0.2 and isinstance(body.get("metadata"), dict):
            body["metadata"]["finalizers"] = ["example.com/f"]
        body, content_type = self.written(body)
        return "POST", self.kind.collection + self.query(), lambda player: body, content_type

    def get(self, name):
        tail = self.chance.choice(["", "", "", "", "/status", "?resourceVersion=0", "?resourceVersion=x", "?pretty=true", "/"])
        return "GET", "%s/%s%s" % (self.place()[0], name, tail), lambda player: None, "", self.chance.choice(OBJECTS)

    def list(self, name):
        quote = urllib.parse.quote
        words = ["labelSelector=" + quote("sequence=%s,%s" % (self.label, self.chance.choice(SELECTORS))) if self.chance.random() < 0.5 else
                 self.chance.choice(["labelSelector=sequence=" + self.label, "labelSelector=sequence%20in%20(" + self.label + ")", "fieldSelector=metadata.name=" + name])]
        if self.chance.random() < 0.3:
            words.append("limit=" + self.chance.choice(["1"] * 5 + ["0", "-1", "x"]))
        if self.chance.random() < 0.4 and not words[0].startswith("field"):
            words.append("fieldSelector=" + quote(self.chance.choice(FIELDS)))
        if self.chance.random() < 0.2:
            words.append(self.chance.choice(["resourceVersion=0", "resourceVersion=x", "resourceVersionMatch=Exact", "resourceVersion=0&resourceVersionMatch=Exact", "resourceVersion=0&resourceVersionMatch=NotOlderThan", "resourceVersionMatch=Bad&resourceVersion=1",
                                             "sendInitialEvents=true", "allowWatchBookmarks=true", "continue=x", "timeoutSeconds=5", "timeoutSeconds=x", "pretty=true", "watch=true&sendInitialEvents=true", "watch=true&resourceVersion=x",
                                             "watch=true&resourceVersionMatch=Exact", "watch=true&sendInitialEvents=true&resourceVersionMatch=Exact", "unknown=1"]))
        return "GET", self.place()[0] + "?" + "&".join(words), lambda player: None, "", self.chance.choice(LISTS)

    def watch_list(self, name):
        return "GET", self.kind.collection + "?watch=true&timeoutSeconds=1&fieldSelector=metadata.name=" + name + self.chance.choice(["&resourceVersion=0", ""]), lambda player: None, "", self.chance.choice(LISTS[:8])

    def discovery(self, name):
        path = self.chance.choice([self.chance.choice(READS), self.chance.choice(READS), "/".join(self.kind.collection.split("/")[:4 if self.kind.collection.startswith("/apis") else 3])])
        method = "GET" if self.chance.random() < 0.85 else self.chance.choice(["POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE"])
        return method, path, lambda player: None, "", self.chance.choice(DISCOVERY)

    def review(self, name):
        path, body = self.chance.choice(REVIEWS)
        for _ in range(self.chance.randint(0, 2)):
            at = self.chance.choice([["spec"], ["spec", "user"], ["spec", "groups"], ["spec", "resourceAttributes"], ["spec", "resourceAttributes", "verb"], ["spec", "resourceAttributes", "namespace"], ["spec", "nonResourceAttributes"], ["spec", "token"], ["spec", "namespace"],
                                     ["metadata"], ["target"], ["status"], ["spec", "resourceAttributes", "labelSelector"], ["spec", "resourceAttributes", "fieldSelector"], ["kind"], ["apiVersion"], ["zzz"]])
            try:
                body = altered(body, at, self.chance.choice(FREE_VALUES + [{"path": "/x", "verb": "get"}, {"rawSelector": "a in"}, {"requirements": [{"key": "k", "operator": "Bad"}]}, {"name": "n"}, {"namespace": "other"}]))
            except (KeyError, TypeError, ValueError):
                pass
        body, content_type = self.written(body)
        return "POST", path + self.query(), lambda player: body, content_type

    def other_user(self, name):
        """Any of the other steps as somebody who may little."""
        step = self.chance.choice([self.get, self.list, self.create, self.patch, self.discovery, self.review])(name)
        headers = self.chance.sample(USERS, self.chance.randint(1, 2))
        return (*step, *("application/json",) * (5 - len(step)), headers) if headers[0][0] != headers[-1][0] or len(headers) == 1 else (*step, *("application/json",) * (5 - len(step)), headers[:1])

    def subresource(self, name):
        there = self.chance.choice(SUBRESOURCES.get(self.kind.plural, ["status", "scale", "none"]))
        path = "%s/%s/%s" % (self.kind.collection, name, there)
        if there in SUB_BODIES:
            body = self.chance.choice(SUB_BODIES[there])
            return self.chance.choice(["POST", "POST", "POST", "PUT", "GET"]), path + self.query(), lambda player: dict(body, metadata=dict(body.get("metadata", {}), name=name)) if self.flip(name) else body
        if self.chance.random() < 0.3:
            return "GET", path, lambda player: None, "", self.chance.choice(OBJECTS)
        step = self.chance.choice([self.update, self.patch, self.apply])(name)
        tail = step[1].partition("?")
        return (step[0], path + tail[1] + tail[2], *step[2:])

    @staticmethod
    def flip(name):
        return name.endswith("a")

    def update(self, name):
        mode, where = self.chance.choice(["live"] * 4 + ["none", "old", "bad", "otherUID"]), self.chance.choice(["", "", "", "/status"])
        change, bare = self.mutated, self.chance.random() < 0.3
        state = self.chance.getstate()

        def make(player):
            self.chance.setstate(state)
            body = change(json.loads(player.live[name]) if name in player.live else self.document(name))
            metadata = body.get("metadata")
            if isinstance(metadata, dict):
                if mode == "none":
                    metadata.pop("resourceVersion", None)
                elif mode == "old":
                    metadata["resourceVersion"] = player.old.get(name, "1")
                elif mode == "bad":
                    metadata["resourceVersion"] = "abc"
                elif mode == "otherUID":
                    metadata["uid"] = "11111111-1111-1111-1111-111111111111"
                if bare:
                    metadata.pop("managedFields", None)
            return body
        return "PUT", "%s/%s%s%s" % (self.kind.collection, name, where, self.query()), make

    def patch(self, name):
        form, where = self.chance.choice(["merge", "strategic", "json"]), self.chance.choice(["", "", "", "/status"])
        special = [{"metadata": {"finalizers": ["example.com/f"]}}, {"metadata": {"finalizers": None}}, {"metadata": {"labels": {"x": "y", "a": None}}}, {"metadata": {"annotations": {"k": "v"}}},
                   {"metadata": {"resourceVersion": "1"}}, {"metadata": {"uid": "x"}}, {"metadata": {"generation": 99}}, {"metadata": {"managedFields": []}}, {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}}, {},
                   {"status": {"phase": "Running"}}, {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u", "blockOwnerDeletion": True}]}},
                   {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/f"]}}, {"spec": {"$patch": "replace"}}, {"kind": "Other"}, {"apiVersion": "v9"}]
        if form != "json":
            if self.chance.random() < 0.45 or not self.kind.found:
                body = self.chance.choice(special)
            else:
                path, _, value = self.chance.choice(self.kind.found)
                try:
                    body = merge_patch(self.kind.body, path, value)
                except (KeyError, IndexError, TypeError):
                    body = {}
        else:
            body = []
            for _ in range(self.chance.randint(1, 2)):
                path, _, value = self.chance.choice(self.kind.found) if self.kind.found else (["metadata", "labels"], "", {})
                pointer = "".join("/" + str(p).replace("~", "~0").replace("/", "~1") for p in path)
                operation = self.chance.choice(["add", "add", "replace", "remove", "test", "copy", "move"])
                step = {"op": operation, "path": pointer}
                if operation in ("copy", "move"):
                    step = {"op": operation, "from": pointer, "path": "/metadata/annotations/x"}
                elif operation != "remove":
                    step["value"] = None if value is ABSENT else value
                body.append(step)
        return "PATCH", "%s/%s%s%s" % (self.place()[0], name, where, self.query()), lambda player: body, PATCH_TYPES[form]

    def apply(self, name):
        body = self.mutated(self.document(name), 1)
        for part in ("spec", "data"):
            if isinstance(body.get(part), dict) and self.chance.random() < 0.6:
                body[part] = {key: value for key, value in body[part].items() if self.chance.random() < 0.6}
        force = self.chance.choice(["", "&force=true", "&force=true", "&force=false"])
        where = self.chance.choice([""] * 5 + ["/status"])
        collection, version = self.place()
        if version:
            body["apiVersion"] = version
        return "PATCH", "%s/%s%s%s" % (collection, name, where, self.query("fieldManager=" + self.chance.choice(["m1", "m2"]) + force)), lambda player: body, PATCH_TYPES["apply"]

    def delete(self, name):
        choice = self.chance.choice(["none", "none", "uid", "badUID", "badVersion", "Foreground", "Orphan", "Background", "grace", "dry", "both", "query"])
        path = "%s/%s" % (self.kind.collection, name)

        def make(player):
            live = json.loads(player.live[name])["metadata"] if name in player.live else {}
            return {"none": None, "uid": {"preconditions": {"uid": live.get("uid", "x")}}, "badUID": {"preconditions": {"uid": "x"}}, "badVersion": {"preconditions": {"resourceVersion": "1"}}, "grace": {"gracePeriodSeconds": 0},
                    "dry": {"dryRun": ["All"]}, "both": {"orphanDependents": True, "propagationPolicy": "Orphan"}, "query": None}.get(choice, {"propagationPolicy": choice})
        return "DELETE", path + ("?gracePeriodSeconds=0&propagationPolicy=Background" if choice == "query" else ""), make

    def delete_collection(self, name):
        return "DELETE", self.kind.collection + "?labelSelector=sequence=" + self.label + self.chance.choice(["", "&dryRun=All", "&gracePeriodSeconds=0"]), lambda player: None

    def scale(self, name):
        path = "%s/%s/scale" % (self.kind.collection, name)
        if self.chance.random() < 0.4:
            return "GET", path, lambda player: None
        body = {"spec": {"replicas": self.chance.choice([0, 3, -1, "x"])}}
        return "PATCH", path + self.query(), lambda player: body, PATCH_TYPES[self.chance.choice(["merge", "strategic", "apply"])]

    def raw(self, name):
        bodies = ["", "{", "null", "[]", '{"kind":"Status"}', '{"metadata":{"name":"x"},"metadata":{"name":"y"}}', '{"apiVersion":"v1","kind":"Pod"}', "a: b", '"x"']
        body = self.chance.choice(bodies)
        method, path = self.chance.choice([("POST", self.kind.collection), ("PUT", self.kind.collection + "/" + name), ("PATCH", self.kind.collection + "/" + name), ("DELETE", self.kind.collection + "/" + name)])
        kind = self.chance.choice(["application/json", "application/yaml", "application/xml", "application/vnd.kubernetes.protobuf", PATCH_TYPES["merge"], PATCH_TYPES["apply"], PATCH_TYPES["json"], PATCH_TYPES["strategic"]])
        return method, path + self.query(), lambda player: body, kind

    def play(self):
        """Returns (requests sent, None or (request, body, difference))."""
        steps = [self.create, self.get, self.list, self.update, self.patch, self.apply, self.delete, self.delete_collection, self.scale, self.raw, self.subresource, self.discovery, self.review, self.other_user, self.watch_list]
        weights = [3, 8, 3, 5, 6, 6, 2, 0.5, 0.7, 0.7, 2, 2, 0.7, 1.5, 0.01]
        sent = 0
        for number in range(self.chance.randint(8, STEPS_MAX)):
            name = self.chance.choice(self.names)
            step = self.create if number == 0 else self.chance.choices(steps, weights)[0]
            method, path, make, *rest = step(name)
            found = self.compare(name, method, path, make, *rest)
            sent += 1
            if found:
                return sent, ("%s %s %s" % (method, path, " ".join(map(str, rest))), json.dumps(make(self.players[0]))[:700], found)
        return sent, None

    def compare(self, name, method, path, make, content_type="application/json", accept="application/json", headers=()):
        for player in self.players:
            player.post(method, path, make(player), content_type, accept, headers)
        answers = [player.take() for player in self.players]
        if answers[0]["status"] == 0:  # kube-apiserver drops the connection of a request that made it panic
            return None
        texts = [player.quick() for player in self.players]
        same = answers[0] == answers[1] and texts[0] == texts[1] and texts[0] is not None
        if not same or self.trace:
            answers = [player.blank(dict(answer, body=player.parsed())) for player, answer in zip(self.players, answers)]
        if self.trace:
            print("%s %s %s %s\n  %s\n  %s" % (method, path, " ".join(map(str, (content_type, accept, headers))), json.dumps(make(self.players[0]))[:1500], json.dumps(answers[0])[:3000], json.dumps(answers[1])[:3000]))
        if method != "GET" and "dryRun" not in path:
            for player, answer in zip(self.players, answers):
                self.remember(player, name, answer["status"])
        return None if same else difference(answers[0], answers[1])

    def remember(self, player, name, status):
        """Keeps the object that a write answered with, for the bodies of later updates."""
        start = b'{"kind":"%s","apiVersion":"%s","metadata":{"name":"%s",' % (self.kind.body["kind"].encode(), self.kind.body["apiVersion"].encode(), name.encode())
        custom = b'{"apiVersion":"%s","kind":"%s",' % (self.kind.body["apiVersion"].encode(), self.kind.body["kind"].encode())
        if status < 300 and (player.raw.startswith(start) or player.raw.startswith(custom) and b'"name":"%s"' % name.encode() in player.raw):
            if name in player.live:
                player.old[name] = json.loads(player.live[name])["metadata"]["resourceVersion"]
            player.live[name] = player.raw

    def end(self):
        for player in self.players:
            for name in self.names:
                path = "%s/%s" % (self.kind.collection, name)
                if player.ask("DELETE", path + "?gracePeriodSeconds=0")["status"] < 300:
                    player.ask("PATCH", path, {"metadata": {"finalizers": None}}, PATCH_TYPES["merge"])


def install(player):
    for crd in RESOURCES:
        player.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        for _ in range(600):
            if player.ask("GET", "/apis/%s/v1/%s" % (GROUP, crd["spec"]["names"]["plural"]))["status"] == 200:
                break
            time.sleep(0.1)
    time.sleep(2)  # kube-apiserver serves the old schema for a moment after it serves the new resource


class Servers:
    """A kube-apiserver and a Keelson for one worker."""

    def __init__(self, a, number):
        folder = os.path.join(a.folder, str(number))
        os.makedirs(folder)
        self.memory = os.path.join(a.memory, "keelson-sequences-%d-%d" % (os.getpid(), number))  # etcd's data
        self.pair = RealPair(os.path.join(folder, "real"), a.programs, [FLAGS[1], "--enable-priority-and-fairness=false", "--profiling=false"], etcd_flags=["--unsafe-no-fsync", "--data-dir=" + self.memory],
                             environment={"GOGC": "400"})
        self.server = Server(a.keelson, os.path.join(folder, "ours"), [*FLAGS, "--enable-priority-and-fairness=false"], in_memory=True)

    def __enter__(self):
        self.pair.start()
        self.server.start()
        players = [Player(self.pair), Player(self.server)]
        for player in players:
            install(player)
        return players

    def __exit__(self, *_):
        self.server.stop()
        self.pair.stop()
        shutil.rmtree(self.memory, ignore_errors=True)


def confirmed(seed, every, players, trace):
    """(requests sent, None or a difference that shows every time). What shows is repeated from the beginning of a second: where the clock goes on between two writes,
    managedFields get a new time, and a write that would change nothing else is one. Such repeats do not count."""
    sent, counted = 0, 0
    for attempt in range(3 * REPEATS):
        if attempt:
            time.sleep(1 - time.time() % 1)
        second = int(time.time())
        sequence = Sequence(seed, every, players, trace)
        count, found = sequence.play()
        within = int(time.time()) == second
        sequence.end()
        sent += count
        counted += within
        if not found or counted == REPEATS:
            return sent, found
    return sent, None


def work(a, number, results):
    """Plays every a.workers-th seed. Puts (seed, requests, None or a difference) into results, and None at the end."""
    def ended(*_):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the servers are being stopped
        sys.exit(1)
    signal.signal(signal.SIGTERM, ended)
    try:
        every, begin = kinds(Tables(), a.only), time.monotonic()
        with Servers(a, number) as players:
            for seed in a.seeds[number::a.workers] or range(a.first + number, a.first + a.count, a.workers):
                if time.monotonic() - begin > a.seconds:
                    break
                results.put((seed, *confirmed(seed, every, players, a.trace)))
    except Exception:
        results.put((0, 0, ("worker %d ended" % number, "", ("", "", traceback.format_exc()))))
    finally:
        results.put(None)


class Report:
    """Counts, and the clusters of differences of one cause."""

    def __init__(self):
        self.clusters, self.known = collections.defaultdict(list), collections.Counter()
        self.sent, self.played, self.begin, self.told = 0, 0, time.monotonic(), time.monotonic()

    def add(self, seed, count, found):
        self.sent, self.played = self.sent + count, self.played + 1
        stays = found and known(found[0], *found[2])
        if stays:
            self.known[stays] += 1
        elif found:
            name, body, (where, theirs, ours) = found
            generic = [re.sub(r"a{40,}", "LONG", re.sub(r's\d+-?[ab]|"[^"]*"', '"_"', str(part)))[:100] for part in (where, theirs, ours)]
            cluster = self.clusters[" | ".join(generic)]
            cluster.append(seed)
            if len(cluster) == 1:
                theirs, ours = window(theirs, ours)
                print("seed %d: %s\n    body %s\n    at %s\n    kube-apiserver: %s\n    keelson:        %s" % (seed, urllib.parse.unquote(name), body, where, str(theirs)[:500], str(ours)[:500]), flush=True)
        if time.monotonic() - self.told > 60:
            self.told = time.monotonic()
            print("-- " + self.line(), flush=True)

    def line(self):
        seconds = time.monotonic() - self.begin
        return "%d sequences, %d requests to each, %.0f a second, %d sequences differ, %d clusters" % (self.played, self.sent, self.sent / max(seconds, 1), sum(map(len, self.clusters.values())), len(self.clusters))

    def finish(self):
        for generic, seeds in sorted(self.clusters.items(), key=lambda item: -len(item[1])):
            print("%5d x seed %d: %s" % (len(seeds), seeds[0], generic))
        for name, count in self.known.items():
            print("%5d x known: %s" % (count, name))
        print(self.line())
        return 1 if self.clusters else 0


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--only", default="", help="a pattern on the collection's path")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seeds", default=[], type=lambda text: [int(word) for word in text.split(",")], help="these instead, with commas")
    parser.add_argument("--seconds", type=float, default=1e9, help="ends after this time")
    parser.add_argument("--requests", type=int, default=1 << 60, help="ends after so many")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--memory", default="/dev/shm", help="a folder in memory, for etcd")
    parser.add_argument("--trace", action="store_true")
    a = arguments_of(parser)
    os.makedirs(a.folder)
    results, report = multiprocessing.Queue(10000), Report()
    workers = [multiprocessing.Process(target=work, args=(a, number, results)) for number in range(a.workers)]
    for worker in workers:
        worker.start()
    running = len(workers)
    try:
        while running and report.sent < a.requests:
            try:
                result = results.get(timeout=10)
            except queue.Empty:
                running = sum(worker.is_alive() for worker in workers)
                continue
            if result is None:
                running -= 1
            else:
                report.add(*result)
    finally:
        for worker in workers:
            worker.terminate()
        results.cancel_join_thread()
        code = report.finish()
    return code


if __name__ == "__main__":
    sys.exit(main())
