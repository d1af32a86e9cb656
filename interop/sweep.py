#!/usr/bin/env python3
"""Sends the same requests to kube-apiserver and to Keelson and prints where the answers differ, in clusters of one cause.
usage: interop/sweep.py KEELSON WORK_FOLDER [--bin FOLDER] [--only REGEX] [--verbs create,update,patch] [--sample PERCENT] [--pairs PERCENT]

The objects are those of the recordings' create cases (KEELSON_CORPUS, by default test/recordings/corpus) and of sweep_objects.jsonl beside this
file (one a line: path, label, body; every volume, probe, metric and so on once); the tables in api/ say what their fields are. A change of
one kind's field is tried on the first object that has it. Every field of every object is left out, emptied, made too long, negative, of
another type, of each enum value, and every field that an object does not have is added; pairs of such changes show the order of errors.
Creates are dry runs in one namespace, so tens of thousands of requests leave nothing behind; updates and patches (merge, strategic, JSON,
apply) are dry runs on one stored object of each kind. Values that differ by nature (uid, times, versions, addresses, generated names) are blanked before comparing.
Exit code 0 where everything is the same, 1 where something differs. It is a tool to find differences, not a test: some stay (docs/flags.md).
"""
import argparse
import collections
import copy
import glob
import hashlib
import http.client
import json
import os
import random
import re
import sys
import threading

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "bench"), os.path.join(ROOT, "test", "system")]
from rig import RealPair  # noqa: E402
from harness import Server  # noqa: E402

FLAGS = ["--authorization-mode=Node,RBAC", "--service-cluster-ip-range=10.0.0.0/16", "--endpoint-reconciler-type=none"]
NAMESPACE = "sweep"
LONG = "a" * 300
ABSENT = object()
PATCH_TYPES = {"merge": "application/merge-patch+json", "strategic": "application/strategic-merge-patch+json",
               "json": "application/json-patch+json", "apply": "application/apply-patch+yaml"}
BLANKS = [(re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "<uid>"), (re.compile(r"20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
          (re.compile(r"kube-api-access-[a-z0-9]{5}"), "kube-api-access-<gen>"), (re.compile(r"\b10\.0\.\d+\.\d+\b"), "<ip>"),
          (re.compile(r'in scheme "[^"]*"'), "in scheme"), (re.compile(r'("resourceVersion\\?":\\?")\d+'), r"\1<rv>"),
          (re.compile(r"X509SHA256=[0-9a-f]{64}"), "<sha>"), (re.compile(r"(gen-|Bad Value!|a{40,})[bcdfghjklmnpqrstvwxz2456789]{5}\b"), r"\1<gen>")]


class Tables:
    """api/*.kapi: which fields a type has, and which type a resource."""

    def __init__(self):
        self.types, self.kinds = {}, {}
        for path in glob.glob(os.path.join(ROOT, "api", "**", "*.kapi"), recursive=True):
            package, serves, fields = None, [], None
            for line in open(path):
                words = line.split()
                if not words or line.startswith("#"):
                    continue
                if line[0] == " ":
                    if fields is not None:
                        fields.append((words[0], words[2], words[3:]))
                    continue
                fields = None
                if words[0] == "package":
                    package = words[1]
                elif words[0] == "serves":
                    serves = words[1:]
                elif words[0] == "resource":
                    self.kinds.update({(version, words[1]): (package, words[2]) for version in serves})
                elif words[0] == "type":
                    fields = self.types[(package, words[1])] = []

    def resolve(self, package, text):
        """("list", (package, item)), ("map", ...), ("struct", (package, name)) or (scalar, None)"""
        text = text.lstrip("*")
        for prefix, kind in (("[]", "list"), ("map<", "map")):
            if text.startswith(prefix):
                return kind, (package, text[len(prefix):].rstrip(">"))
        if text[0].isupper():
            return "struct", (package, text)
        if "." in text:
            near, name = text.rsplit(".", 1)
            return next((("struct", key) for key in self.types if key[1] == name and key[0].startswith(near)), ("any", None))
        return text, None

    def fields(self, key):
        for name, text, attributes in self.types.get(key, []):
            kind = self.resolve(key[0], text)
            if name == "inline":
                yield from self.fields(kind[1])
            else:
                yield name, kind, attributes


def scalars(kind, attributes):
    """The value for a field of this type, by name."""
    enum = [a[5:].split("|") for a in attributes if a.startswith("enum=")]
    if enum:
        return dict({"empty": "", "bad": "Weird", "type": 5, "null": None}, **{value: value for value in enum[0]})
    return {"string": {"empty": "", "bad": "Bad Value!", "long": LONG, "type": 5, "x": "x", "null": None},
            "int32": {"neg": -1, "zero": 0, "one": 1, "big": 2**31 - 1, "frac": 1.5, "type": "x", "null": None},
            "bool": {"true": True, "false": False, "type": "x"},
            "quantity": {"neg": "-1", "zero": "0", "bad": "abc", "milli": "1m", "int": 5, "empty": ""},
            "int-or-string": {"neg": -1, "zero": 0, "bad": "abc", "percent": "50%", "over": "150%", "big": 70000, "type": True},
            "bytes": {"bad": "$$", "ok": "AAEC", "type": 5},
            "time": {"bad": "x", "ok": "2010-01-01T00:00:00Z", "type": 5}}.get({"int64": "int32", "microtime": "time"}.get(kind, kind), {"text": "x", "map": {}})


def sample_of(tables, kind, element, attributes, depth):
    if kind == "struct":
        return {name: sample_of(tables, at[0], at[1], more, depth - 1) for name, at, more in tables.fields(element)
                if depth > 1 or depth == 1 and at[0] not in ("struct", "list", "map")}
    if kind in ("list", "map"):
        inner = tables.resolve(*element)
        value = sample_of(tables, inner[0], inner[1], attributes, depth - 1)
        return [value] if kind == "list" else {"k": value}
    values = scalars(kind, attributes)
    return values.get("x", values.get("one", values.get("ok", next(iter(values.values())))))


def changes(tables, kind, value, path):
    """(path, name, new value) of everything worth changing below `value`"""
    if kind[0] == "list" and isinstance(value, list):
        for i, item in enumerate(value[:4]):
            yield from changes(tables, tables.resolve(*kind[1]), item, path + [i])
        return
    if kind[0] != "struct" or not isinstance(value, dict):
        return
    for name, at, attributes in tables.fields(kind[1]):
        here = path + [name]
        if here in (["apiVersion"], ["kind"], ["status"]) or name in ("managedFields", "selfLink", "resourceVersion"):
            continue
        has = name in value
        if has:
            yield here, "absent", ABSENT
        if at[0] not in ("struct", "list", "map"):
            for label, new in scalars(at[0], attributes).items():
                yield here, label, new
            continue
        yield here, "empty", [] if at[0] == "list" else {}
        if not has:
            yield here, "sample", sample_of(tables, at[0], at[1], attributes, 2)
            continue
        yield here, "type", 5
        if at[0] == "list" and value[name]:
            yield here, "twice", value[name] + [copy.deepcopy(value[name][-1])]
        if at[0] == "map":
            for key in ("bad key!", "", LONG):
                yield here + [key], "key", next(iter(value[name].values()), "x")
        yield from changes(tables, at, value[name], here)
    yield path + ["unknownField"], "unknown", 1


def changed(document, path, value):
    document = at = copy.deepcopy(document)
    for key in path[:-1]:
        at = at[key]
    if value is ABSENT:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return document


def merge_patch(base, path, value):
    """Lists are replaced whole."""
    if isinstance(path[0], int):
        return changed(base, path, value)
    if len(path) == 1:
        return {path[0]: None if value is ABSENT else value}
    return {path[0]: merge_patch(base[path[0]], path[1:], value)}


class Side:
    """One server: a connection per thread, and the objects that updates and patches are tried on."""

    def __init__(self, server):
        self.server, self.local, self.stored, self.lock = server, threading.local(), {}, threading.Lock()
        self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        self.ask("POST", "/api/v1/namespaces/%s/serviceaccounts" % NAMESPACE, {"metadata": {"name": "default"}})

    def ask(self, method, path, body, content_type="application/json"):
        if not hasattr(self.local, "connection"):
            self.local.connection = http.client.HTTPSConnection("127.0.0.1", self.server.port, context=self.server.context(), timeout=60)
        headers = {"User-Agent": "sweep/1", "Accept": "application/json", "Content-Type": content_type}
        try:
            self.local.connection.request(method, path, json.dumps(body), headers)
            response = self.local.connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException) as e:  # kube-apiserver drops the connection of a request that made it panic
            del self.local.connection
            return {"status": 0, "warnings": [], "body": repr(e)}
        warnings = [value for name, value in response.getheaders() if name.lower() == "warning"]
        return {"status": response.status, "warnings": warnings, "body": json.loads(text) if text[:1] == b"{" else text.decode(errors="replace")}

    def object(self, collection, body):
        key = collection + json.dumps(body, sort_keys=True)
        with self.lock:
            if key not in self.stored:
                body = changed(body, ["metadata", "name"], body["metadata"]["name"] + hashlib.sha1(key.encode()).hexdigest()[:6])
                self.stored[key] = self.ask("POST", collection, body)
            return self.stored[key]


def blank(value, key=""):
    if isinstance(value, dict):
        return {blank(k): blank(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [blank(item, key) for item in value]
    if key in ("nodePort", "healthCheckNodePort", "resourceVersion"):
        return "<%s>" % key
    if isinstance(value, str):
        for pattern, text in BLANKS:
            value = pattern.sub(text, value)
    return value


def difference(real, ours, path=""):
    """The first place where they differ: (path, real, ours), or None."""
    if isinstance(real, dict) and isinstance(ours, dict):
        pairs = [("%s.%s" % (path, k), real.get(k, "<absent>"), ours.get(k, "<absent>")) for k in list(real) + [k for k in ours if k not in real]]
    elif isinstance(real, list) and isinstance(ours, list):
        size = max(len(real), len(ours))
        pairs = [("%s[]" % path, a, b) for a, b in zip(real + ["<absent>"] * (size - len(real)), ours + ["<absent>"] * (size - len(ours)))]
    else:
        return None if real == ours else (path, real, ours)
    return next((found for found in (difference(a, b, at) for at, a, b in pairs) if found), None)


def recorded_objects():
    folder = os.environ.get("KEELSON_CORPUS") or os.path.join(ROOT, "test", "recordings", "corpus")
    for path in sorted(glob.glob(os.path.join(folder, "crud", "*", "*.json"))):
        seen = set()
        for case in json.load(open(path))["cases"]:
            request = case["steps"][0]["request"]
            text = json.dumps(request.get("body")).replace("${ns}", NAMESPACE).replace("${pfx}", "sweep")
            if request["method"] == "POST" and "create-" in case["name"] + "create-" and text not in seen and '"kind"' in text and "${" not in text:
                seen.add(text)
                yield request["path"].split("?")[0].replace("${ns}", NAMESPACE), case["name"], json.loads(text)
    for line in open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "sweep_objects.jsonl")):
        yield json.loads(line)


def fresh(kind, found, seen):
    """The changes that were not tried on another object of the kind."""
    for path, what, value in found:
        key = (kind, tuple("#" if isinstance(step, int) else step for step in path), what)
        if key not in seen:
            seen.add(key)
            yield path, what, value


def window(real, ours):
    """Long texts from shortly before where they differ."""
    if not (isinstance(real, str) and isinstance(ours, str) and len(real) > 400):
        return real, ours
    at = next((i for i, (a, b) in enumerate(zip(real, ours)) if a != b), min(len(real), len(ours)))
    return tuple("..." + text[max(0, at - 80):at + 400] for text in (real, ours))


def requests(tables, arguments):
    """(name, ask(side)) of every case"""
    chance = random.Random(1)
    seen = set()
    for collection, label, body in recorded_objects():
        words = collection.strip("/").split("/")
        kind = tables.kinds.get(("v1" if words[0] == "api" else "/".join(words[1:3]), words[-1]))
        if kind is None or not re.search(arguments.only, collection) or "name" not in body.get("metadata", {}):
            continue
        found = [c for c in fresh(kind, changes(tables, ("struct", kind), body, []), seen) if chance.random() * 100 < arguments.sample]
        name = "/".join(words) + " " + label + " "

        def stored(method, make, content_type="application/json", suffix="", collection=collection, body=body):
            def ask(side):
                base = side.object(collection, body)
                if base["status"] != 201:
                    return base
                live = base["body"]
                return side.ask(method, "%s/%s?dryRun=All%s" % (collection, live["metadata"]["name"], suffix), make(copy.deepcopy(live)), content_type)
            return ask

        for path, what, value in found:
            title = name + ".".join(str(p)[:40] for p in path) + "=" + what
            if "create" in arguments.verbs:
                yield title, lambda side, new=changed(body, path, value), to=collection: side.ask("POST", to + "?dryRun=All", new)
            if path[:2] == ["metadata", "name"]:
                continue
            if "update" in arguments.verbs and what != "type":
                def update(live, path=path, value=value):
                    live["metadata"].pop("managedFields", None)
                    try:
                        return changed(live, path, value)
                    except (KeyError, IndexError, TypeError):
                        return live
                yield title + " PUT", stored("PUT", update)
            if "patch" in arguments.verbs:
                for form in ("merge", "strategic"):
                    yield title + " " + form, stored("PATCH", lambda live, patch=merge_patch(body, path, value): patch, PATCH_TYPES[form])
                pointer = "".join("/" + str(p).replace("~", "~0").replace("/", "~1") for p in path)
                operation = {"op": "remove", "path": pointer} if value is ABSENT else {"op": "add", "path": pointer, "value": value}
                yield title + " json", stored("PATCH", lambda live, patch=[operation]: patch, PATCH_TYPES["json"])

                def applied(live, new=changed(body, path, value)):
                    return changed(new, ["metadata", "name"], live["metadata"]["name"]) if isinstance(new.get("metadata"), dict) else new
                yield title + " apply", stored("PATCH", applied, PATCH_TYPES["apply"], "&fieldManager=sweep&force=true")
        for _ in range(int(len(found) * arguments.pairs / 100) if "create" in arguments.verbs else 0):
            (a, x, v), (b, y, w) = chance.sample(found, 2)
            try:
                both = changed(changed(body, a, v), b, w)
            except (KeyError, IndexError, TypeError):
                continue
            yield name + "pair", lambda side, new=both, to=collection: side.ask("POST", to + "?dryRun=All", new)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("keelson")
    parser.add_argument("folder")
    parser.add_argument("--bin", default=os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "keelson", "bin"))
    parser.add_argument("--only", default="", help="a pattern on the collection's path")
    parser.add_argument("--verbs", default="create,update,patch", type=lambda text: text.split(","))
    parser.add_argument("--sample", default=100, type=float, help="percent of the changes")
    parser.add_argument("--pairs", default=25, type=float, help="percent of the changes that are also tried two at once")
    arguments = parser.parse_args()
    os.makedirs(arguments.folder, exist_ok=True)
    pair = RealPair(os.path.join(arguments.folder, "real"), arguments.bin, FLAGS[1:2]).start()
    server = Server(arguments.keelson, os.path.join(arguments.folder, "ours"), FLAGS, in_memory=True).start()
    try:
        real, ours = Side(pair), Side(server)
        clusters, sent = collections.defaultdict(list), 0
        for name, ask in requests(Tables(), arguments):
            sent += 1
            answers = blank(ask(real)), blank(ask(ours))
            found = difference(*answers)
            if found and answers[0]["status"] != 0:
                generic = [re.sub(r"a{40,}", "LONG", re.sub(r'"[^"]*"', '"_"', str(part)))[:120] for part in found]
                cluster = clusters[" | ".join(generic)]
                cluster.append(name)
                if len(cluster) == 1:
                    a, b = window(*found[1:])
                    print("%s\n    at %s\n    kube-apiserver: %s\n    keelson:        %s" % (name, found[0], str(a)[:600], str(b)[:600]), flush=True)
        for members in sorted(clusters.values(), key=len, reverse=True):
            print("%6d x %s" % (len(members), members[0]))
        print("%d requests, %d differ, %d clusters" % (sent, sum(map(len, clusters.values())), len(clusters)))
        return 1 if clusters else 0
    finally:
        server.stop()
        pair.stop()


if __name__ == "__main__":
    sys.exit(main())
