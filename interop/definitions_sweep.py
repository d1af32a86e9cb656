#!/usr/bin/env python3
"""Sends changed CustomResourceDefinitions and other objects of the second recordings to kube-apiserver and to Keelson and prints where the answers
differ, in clusters of one cause.
usage: interop/definitions_sweep.py KEELSON WORK_FOLDER [--bin FOLDER] [--sample PERCENT] [--seed N] [--others]

The definitions are those that the recordings create (test/recordings/corpus-2 and corpus/crd). Every keyword of OpenAPI and of Kubernetes' extensions is set
to each value of SCHEMA_KEYWORDS in every node of their schemas, pairs of keywords too, and every other field is left out, emptied or given another type.
`--others` changes the fields of all other objects that those recordings create (policies, webhook configurations, API services, reviews) instead. All requests
are dry runs. Known differences: numbers in CEL's `selfType…`, the order of warnings (Go walks maps in random order).
Exit code 0 where everything is the same, 1 where something differs. It is a tool to find differences, not a test.
"""
import argparse
import collections
import glob
import json
import os
import random
import re
import sys

sys.dont_write_bytecode = True
from sweep import ABSENT, BLANKS, FLAGS, LONG, NAMESPACE, ROOT, Side, blank, changed, difference, window  # noqa: E402
from harness import Server  # noqa: E402
from rig import RealPair  # noqa: E402

BLANKS.append((re.compile(r"selfType\d+"), "selfType"))
RULES = ["true", "", "self", "self.nope == 1", "oldSelf == self", "1 +", "self > 1", "has(self.a)", "size(self) > 0", "true\n&& true",
         "self.all(x, self.all(y, x != y))"]
RULE_FIELDS = [{"optionalOldSelf": True}, {"message": " "}, {"message": "a\nb"}, {"messageExpression": "'x'"}, {"messageExpression": "1"},
               {"messageExpression": "nope"}, {"reason": "FieldValueInvalid"}, {"reason": "weird"}, {"reason": ""}, {"fieldPath": ".a"}, {"fieldPath": "a"},
               {"fieldPath": "['a']"}]
SCHEMA_KEYWORDS = {
    "type": ["string", "integer", "number", "boolean", "array", "object", "null", "weird", ""],
    "format": ["int32", "int64", "date-time", "date", "byte", "binary", "weird", "ipv4", "duration", "uuid"],
    "nullable": [True], "default": [None, 1, "x", {}, [], {"unknown": 1}, True, 1.5], "enum": [[], ["a"], ["a", "a"], [1, "x", None], [None]],
    "minimum": [1, -1, 1e300], "maximum": [0, 5], "exclusiveMinimum": [True, 1], "minLength": [-1, 1, 5], "maxLength": [0, -1, 3],
    "pattern": ["^a$", "[", "(?<x>a)", "\\d+"], "minItems": [-1, 1], "maxItems": [0, 2, -1], "uniqueItems": [True, False], "multipleOf": [0, 2, -1],
    "minProperties": [1, -1], "maxProperties": [0, 1, -3], "required": [["nope"], ["a", "a"], [""], []],
    "items": [{"type": "string"}, {}, [], [{"type": "string"}], {"type": "object", "properties": {"a": {"type": "string"}}}],
    "properties": [{"z": {"type": "string"}}, {"metadata": {"type": "object", "properties": {"name": {"type": "string", "pattern": "^a"}}}}, {"z": {}}, {},
                   {"apiVersion": {"type": "integer"}}],
    "additionalProperties": [True, False, {"type": "string"}, {}],
    "allOf": [[{"required": ["a"]}], [{"type": "string"}], [{"properties": {"q": {"type": "string"}}}], []],
    "anyOf": [[{"type": "integer"}, {"type": "string"}], [{"required": ["a"]}, {"required": ["b"]}]], "oneOf": [[{"minimum": 1}]],
    "not": [{"required": ["a"]}, {"default": 1}, {"nullable": True}, {}], "$ref": ["#/definitions/x", ""], "title": ["t"], "description": ["d"],
    "example": [1, {"a": 1}], "externalDocs": [{"url": "u"}], "definitions": [{"x": {"type": "string"}}], "dependencies": [{"a": ["b"]}],
    "patternProperties": [{"a": {"type": "string"}}], "id": ["x"], "$schema": ["x"], "additionalItems": [True],
    "x-kubernetes-preserve-unknown-fields": [True, False], "x-kubernetes-embedded-resource": [True], "x-kubernetes-int-or-string": [True],
    "x-kubernetes-list-type": ["atomic", "set", "map", "weird"], "x-kubernetes-list-map-keys": [["a"], ["nope"], []],
    "x-kubernetes-map-type": ["granular", "atomic", "weird"],
    "x-kubernetes-validations": [[{"rule": rule}] for rule in RULES] + [[dict({"rule": "true"}, **fields)] for fields in RULE_FIELDS],
    "unknownKeyword": [1]}
VALUES = [ABSENT, None, "", "x", "Bad Value!", LONG, 5, -1, 1.5, True, [], {}, ["x"], {"k": "v"}]
PAIRS_PER_NODE = 6


def walk(value, path):
    yield path, value
    children = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    for key, child in children:
        yield from walk(child, path + [key])


def is_schema(path, value):
    if not isinstance(value, dict) or "openAPIV3Schema" not in path:
        return False
    return path[-1] in ("openAPIV3Schema", "items", "additionalProperties", "not") or path[-2] in ("properties", "anyOf", "allOf", "oneOf")


def changes(body, chance):
    """(path, new value) of everything worth changing in an object"""
    for path, value in walk(body, []):
        if is_schema(path, value):
            for keyword, values in SCHEMA_KEYWORDS.items():
                for new in values:
                    yield path + [keyword], new
            for _ in range(PAIRS_PER_NODE):
                yield path, {**value, **{keyword: chance.choice(SCHEMA_KEYWORDS[keyword]) for keyword in chance.sample(sorted(SCHEMA_KEYWORDS), 2)}}
        elif not path or path in (["apiVersion"], ["kind"]):
            continue
        for new in VALUES:
            yield path, new
    yield ["unknownField"], 1


def recorded(others):
    """(path, case, body) of every object that a recording creates, each body once"""
    seen = set()
    recordings = os.path.join(ROOT, "test", "recordings")
    files = glob.glob(os.path.join(recordings, "corpus-2", "**", "*.json"), recursive=True) + glob.glob(os.path.join(recordings, "corpus", "crd", "**", "*.json"), recursive=True)
    for file in sorted(files):
        for case in json.load(open(file))["cases"]:
            for request in (step.get("request") or {} for step in case.get("steps", ())):
                if request.get("method") != "POST" or not isinstance(request.get("body"), dict):
                    continue
                text = json.dumps([request["path"], request["body"]]).replace("${ns}", NAMESPACE).replace("${pfx}", "sweep")
                text = re.sub(r'"caBundle": "\$\{peer[^"]*"', '"caBundle": "Cg=="', re.sub(r'"\$\{peer\.\w+\.port\}"', "443", text))
                text = re.sub(r"\$\{peer\.\w+\.(url|addr)\}", lambda m: "https://127.0.0.1:1" if m[1] == "url" else "127.0.0.1:1", text)
                path, body = json.loads(text)
                key = json.dumps({name: part for name, part in body.items() if name != "metadata"}, sort_keys=True)
                if "${" in text or key in seen or "name" not in (body.get("metadata") or {}):
                    continue
                seen.add(key)
                if path.split("?")[0].endswith("/customresourcedefinitions") != others:
                    yield path.split("?")[0], case["name"], body


def requests(arguments):
    """(name, path, body) of every request; a change is tried on two objects at most"""
    chance, tried = random.Random(arguments.seed), collections.Counter()
    for path, label, body in recorded(arguments.others):
        for place, value in changes(body, chance):
            key = (path if arguments.others else "", json.dumps([step for step in place if isinstance(step, str)][-3:]), str(value)[:40])
            if tried[key] >= 2 or chance.random() * 100 >= arguments.sample:
                continue
            tried[key] += 1
            try:
                new = changed(body, place, value)
            except (KeyError, IndexError, TypeError):
                continue
            shown = "ABSENT" if value is ABSENT else json.dumps(value)
            yield "%s %s=%s" % (label, ".".join(map(str, place)), shown[:60]), path, new


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("keelson")
    parser.add_argument("folder")
    parser.add_argument("--bin", default=os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "keelson", "bin"))
    parser.add_argument("--sample", default=100, type=float, help="percent of the changes")
    parser.add_argument("--seed", default=1, type=int)
    parser.add_argument("--others", action="store_true")
    arguments = parser.parse_args()
    os.makedirs(arguments.folder, exist_ok=True)
    pair = RealPair(os.path.join(arguments.folder, "real"), arguments.bin, FLAGS[1:2]).start()
    server = Server(arguments.keelson, os.path.join(arguments.folder, "ours"), FLAGS, in_memory=True).start()
    try:
        real, ours = Side(pair), Side(server)
        clusters, sent = collections.defaultdict(list), 0
        for name, path, body in requests(arguments):
            sent += 1
            answers = [blank(side.ask("POST", path + "?dryRun=All", body)) for side in (real, ours)]
            found = difference(*answers)
            if not found or answers[0]["status"] == 0:
                continue
            generic = [re.sub(r"\d+", "N", re.sub(r"a{40,}", "LONG", re.sub(r'"[^"]*"', '"_"', str(part))))[:110] for part in found]
            cluster = clusters[" | ".join(generic)]
            cluster.append(name)
            if len(cluster) == 1:
                shown = window(*found[1:])
                print("%s\n    at %s\n    kube-apiserver: %s\n    keelson:        %s" % (name, found[0], str(shown[0])[:600], str(shown[1])[:600]), flush=True)
        for members in sorted(clusters.values(), key=len, reverse=True):
            print("%6d x %s" % (len(members), members[0]))
        print("%d requests, %d differ, %d clusters" % (sent, sum(map(len, clusters.values())), len(clusters)))
        return 1 if clusters else 0
    finally:
        server.stop()
        pair.stop()


if __name__ == "__main__":
    sys.exit(main())
