#!/usr/bin/env python3
"""Plays random sequences of requests on kube-apiserver and on Keelson, step by step, and prints where the answers differ, in clusters of one cause.
usage: interop/sequences.py KEELSON WORK_FOLDER BIN_FOLDER [--only REGEX] [--first SEED] [--count SEQUENCES] [--seconds N] [--trace]

A sequence is made from its seed: one kind (built in, or a custom one of RESOURCES), two names, and steps that build on each other: creates, reads in
every form, updates with the right, an old or no resourceVersion, the four kinds of patch, applies of several managers, status and scale,
finalizers, owners, deletes with every option, collections, dry runs, field validation. Bodies are those of sweep.py, changed in random fields.
The answers are compared after values that differ by nature are blanked; a resourceVersion is named by the order in which it was first seen, so a
write that should not be one shows. A sequence ends at its first difference: `--first SEED --count 1 --trace` replays it.
Exit code 0 where everything is the same, 1 where something differs. It is a tool to find differences, not a test.
"""
import collections
import copy
import http.client
import json
import os
import random
import re
import sys
import time
import urllib.parse

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rig import RealPair, arguments_of, parser_of  # noqa: E402
from harness import Server  # noqa: E402
from sweep import ABSENT, BLANKS, FLAGS, NAMESPACE, PATCH_TYPES, Side, Tables, changed, changes, difference, merge_patch, recorded_objects, window  # noqa: E402

STEPS_MAX = 14
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


def sorted_errors(message):
    """kube-apiserver walks the properties of a custom resource in random order."""
    match = re.fullmatch(r"(\w+\.%s .* is invalid: \[)(.*)\]" % re.escape(GROUP), message, re.DOTALL)
    return match.group(1) + ", ".join(sorted(re.split(r", (?=spec|status|<nil>)", match.group(2)))) + "]" if match else message


class Player(Side):
    """One server in one sequence: the last answer about each object, and the order of resource versions."""

    def begin(self):
        self.live, self.old, self.versions = {}, {}, {}

    def send(self, method, path, body=None, content_type="application/json", accept="application/json"):
        if not hasattr(self.local, "connection"):
            self.local.connection = http.client.HTTPSConnection("127.0.0.1", self.server.port, context=self.server.context(), timeout=60)
        headers = {"User-Agent": "sequences/1", "Accept": accept}
        if body is not None:
            headers["Content-Type"] = content_type
        try:
            self.local.connection.request(method, path, None if body is None else body if isinstance(body, (str, bytes)) else json.dumps(body), headers)
            response = self.local.connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException) as e:
            del self.local.connection
            return {"status": 0, "warnings": [], "body": repr(e)}
        warnings = [value for name, value in response.getheaders() if name.lower() == "warning"]
        return {"status": response.status, "type": response.getheader("Content-Type"), "warnings": warnings, "body": json.loads(text) if text[:1] == b"{" else text.decode(errors="replace")}

    def version(self, text):
        return "<rv%d>" % self.versions.setdefault(text, len(self.versions))

    def blank(self, value, key=""):
        if isinstance(value, dict):
            if "items" in value or "rows" in value:  # of a list: other objects' writes move it
                value = dict(value, metadata={k: v for k, v in value.get("metadata", {}).items() if k != "resourceVersion"})
            return {self.blank(k): self.blank(v, k) for k, v in value.items()}
        if isinstance(value, list):
            items = [self.blank(item, key) for item in value]
            # Managers are sorted by time, which the two servers do not share; causes of a conflict come in random order from kube-apiserver.
            return sorted(items, key=json.dumps) if key in ("managedFields", "causes") else items
        if key in ("nodePort", "healthCheckNodePort", "continue"):
            return "<%s>" % key
        if key == "resourceVersion" and isinstance(value, str):
            return self.version(value)
        if isinstance(value, str):
            for pattern, text in BLANKS:
                value = pattern.sub(text, value)
            value = re.sub(r'(resourceVersion: "|in object meta: |in record \(|the precondition \()(\d+)', lambda m: m.group(1) + self.version(m.group(2)), value)
            value = sorted_errors(value)
            if key == "cells" and re.fullmatch(r"\d+s", value):
                value = "<age>"
        return value


class Kind:
    def __init__(self, collection, body, found):
        self.collection, self.body, self.found = collection, body, found


def kinds(tables, only):
    result = []
    for collection, _, body in recorded_objects():
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
        self.label = "s%d" % seed
        for player in players:
            player.begin()

    def document(self, name):
        body = copy.deepcopy(self.kind.body)
        body["metadata"]["name"] = name
        body["metadata"].setdefault("labels", {})["sequence"] = self.label
        return body

    def mutated(self, body, changes_max=2):
        for _ in range(self.chance.randint(0, changes_max)):
            if not self.kind.found:
                return body
            path, _, value = self.chance.choice(self.kind.found)
            try:
                body = changed(body, path, value)
            except (KeyError, IndexError, TypeError):
                pass
        return body

    def query(self, *extra):
        words = [word for word in extra if word]
        if self.chance.random() < 0.12:
            words.append("dryRun=All")
        if self.chance.random() < 0.3:
            words.append("fieldValidation=" + self.chance.choice(["Strict", "Warn", "Ignore"]))
        if self.chance.random() < 0.3 and not any(w.startswith("fieldManager") for w in words):
            words.append("fieldManager=" + self.chance.choice(["m1", "m2"]))
        return "?" + "&".join(words) if words else ""

    # Each step returns (method, path, body maker, content type, accept); the maker gets the player, so that bodies have its versions and uids.
    def create(self, name):
        body = self.mutated(self.document(name))
        if self.chance.random() < 0.2 and isinstance(body.get("metadata"), dict):
            body["metadata"]["finalizers"] = ["example.com/f"]
        return "POST", self.kind.collection + self.query(), lambda player: body

    def get(self, name):
        accept = self.chance.choice(["application/json"] * 3 + ["application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/yaml"])
        return "GET", "%s/%s%s" % (self.kind.collection, name, self.chance.choice(["", "", "/status", "?resourceVersion=0"])), lambda player: None, "", accept

    def list(self, name):
        accept = self.chance.choice(["application/json"] * 2 + ["application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"])
        words = [self.chance.choice(["labelSelector=sequence=" + self.label, "labelSelector=sequence%20in%20(" + self.label + ")", "fieldSelector=metadata.name=" + name])]
        if self.chance.random() < 0.3:
            words.append("limit=1")
        return "GET", self.kind.collection + "?" + "&".join(words), lambda player: None, "", accept

    def update(self, name):
        mode, where = self.chance.choice(["live"] * 4 + ["none", "old", "bad", "otherUID"]), self.chance.choice(["", "", "", "/status"])
        change = self.mutated
        state = self.chance.getstate()

        def make(player):
            self.chance.setstate(state)
            body = change(copy.deepcopy(player.live.get(name) or self.document(name)))
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
        return "PATCH", "%s/%s%s%s" % (self.kind.collection, name, where, self.query()), lambda player: body, PATCH_TYPES[form]

    def apply(self, name):
        body = self.mutated(self.document(name), 1)
        for part in ("spec", "data"):
            if isinstance(body.get(part), dict) and self.chance.random() < 0.6:
                body[part] = {key: value for key, value in body[part].items() if self.chance.random() < 0.6}
        force = self.chance.choice(["", "&force=true", "&force=true", "&force=false"])
        where = self.chance.choice([""] * 5 + ["/status"])
        return "PATCH", "%s/%s%s%s" % (self.kind.collection, name, where, self.query("fieldManager=" + self.chance.choice(["m1", "m2"]) + force)), lambda player: body, PATCH_TYPES["apply"]

    def delete(self, name):
        choice = self.chance.choice(["none", "none", "uid", "badUID", "badVersion", "Foreground", "Orphan", "Background", "grace", "dry", "both", "query"])
        path = "%s/%s" % (self.kind.collection, name)

        def make(player):
            live = (player.live.get(name) or {}).get("metadata", {})
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
        """Returns (requests sent, None or (name, difference))."""
        steps = [self.create, self.get, self.list, self.update, self.update, self.patch, self.patch, self.apply, self.apply, self.delete, self.delete_collection, self.scale, self.raw]
        weights = [3, 3, 1, 3, 2, 3, 3, 4, 2, 2, 0.5, 0.7, 0.7]
        sent = 0
        for number in range(self.chance.randint(5, STEPS_MAX)):
            name = self.chance.choice(self.names)
            step = self.create if number == 0 else self.chance.choices(steps, weights)[0]
            method, path, make, *rest = step(name)
            answers = [self.answer(player, name, method, path, make, *rest) for player in self.players]
            sent += 1
            found = difference(answers[0], answers[1])
            if self.trace:
                print("%s %s %s\n  %s\n  %s" % (method, path, json.dumps(make(self.players[0]))[:1500], json.dumps(answers[0])[:1500], json.dumps(answers[1])[:1500]))
            if found and answers[0]["status"] != 0:
                return sent, ("%s %s %s" % (method, path, rest[0] if rest else ""), json.dumps(make(self.players[0]))[:700], found, step.__name__)
        return sent, None

    def answer(self, player, name, method, path, make, content_type="application/json", accept="application/json"):
        answer = player.send(method, path, make(player), content_type, accept)
        body = answer["body"]
        if isinstance(body, dict) and method != "GET" and answer["status"] < 300 and body.get("metadata", {}).get("name") == name and "dryRun" not in path and body.get("kind") == self.kind.body.get("kind"):
            if name in player.live:
                player.old[name] = player.live[name]["metadata"]["resourceVersion"]
            player.live[name] = body
        return player.blank(answer)

    def end(self):
        for player in self.players:
            for name in self.names:
                path = "%s/%s" % (self.kind.collection, name)
                if player.send("DELETE", path + "?gracePeriodSeconds=0")["status"] < 300:
                    player.send("PATCH", path, {"metadata": {"finalizers": None}}, PATCH_TYPES["merge"])


def install(player):
    for crd in RESOURCES:
        player.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        for _ in range(600):
            if player.send("GET", "/apis/%s/v1/%s" % (GROUP, crd["spec"]["names"]["plural"]))["status"] == 200:
                break
            time.sleep(0.1)
    time.sleep(2)  # kube-apiserver serves the old schema for a moment after it serves the new resource


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--only", default="", help="a pattern on the collection's path")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=1e9, help="ends after this time")
    parser.add_argument("--trace", action="store_true")
    a = arguments_of(parser)
    os.makedirs(a.folder)
    pair = RealPair(os.path.join(a.folder, "real"), a.programs, FLAGS[1:2]).start()
    server = Server(a.keelson, os.path.join(a.folder, "ours"), FLAGS, in_memory=True).start()
    clusters, sent, played, begin = collections.defaultdict(list), 0, 0, time.monotonic()
    try:
        players = [Player(pair), Player(server)]
        for player in players:
            player.begin()
            install(player)
        every = kinds(Tables(), a.only)
        for seed in range(a.first, a.first + a.count):
            if time.monotonic() - begin > a.seconds:
                break
            sequence = Sequence(seed, every, players, a.trace)
            count, found = sequence.play()
            sequence.end()
            sent, played = sent + count, played + 1
            if found:
                name, body, (where, theirs, ours), step = found
                generic = [re.sub(r"a{40,}", "LONG", re.sub(r's\d+-[ab]|"[^"]*"', '"_"', str(part)))[:100] for part in (where, theirs, ours)]
                cluster = clusters[" | ".join(generic)]
                cluster.append(seed)
                if len(cluster) == 1:
                    theirs, ours = window(theirs, ours)
                    print("seed %d: %s\n    body %s\n    at %s\n    kube-apiserver: %s\n    keelson:        %s" % (seed, urllib.parse.unquote(name), body, where, str(theirs)[:500], str(ours)[:500]), flush=True)
        for generic, seeds in sorted(clusters.items(), key=lambda item: -len(item[1])):
            print("%5d x seed %d: %s" % (len(seeds), seeds[0], generic))
        print("%d sequences, %d requests to each, %d sequences differ, %d clusters" % (played, sent, sum(map(len, clusters.values())), len(clusters)))
        return 1 if clusters else 0
    finally:
        server.stop()
        pair.stop()


if __name__ == "__main__":
    sys.exit(main())
