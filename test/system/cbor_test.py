#!/usr/bin/env python3
"""Objects in CBOR (gate CBORServingAndStorage). usage: cbor_test.py KEELSON WORK_FOLDER [--real BIN_FOLDER]

Reads, lists, watches, writes, patches and deletes with application/cbor, and what is refused. --real asks kube-apiserver with the gate
instead: every expectation here holds there too.
"""
import os
import shutil
import struct
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "test", "system"), os.path.join(ROOT, "interop")]
from harness import Client, Server  # noqa: E402

MAGIC = b"\xd9\xd9\xf7"
GATE = "--feature-gates=CBORServingAndStorage=true"
CBOR, APPLY = "application/cbor", "application/apply-patch+cbor"
MAPS, SECRETS = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/secrets"


class Raw(bytes):
    """CBOR that is put in as it is."""


def head(major, value):
    for limit, info, form in ((24, None, ""), (1 << 8, 24, ">B"), (1 << 16, 25, ">H"), (1 << 32, 26, ">I")):
        if value < limit:
            return bytes([major << 5 | (value if info is None else info)]) + (struct.pack(form, value) if form else b"")
    return bytes([major << 5 | 27]) + struct.pack(">Q", value)


def encode(value):
    if isinstance(value, Raw):
        return bytes(value)
    if isinstance(value, bool):
        return b"\xf5" if value else b"\xf4"
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, bytes):  # bytes of an object, as upstream's clients write them
        return head(6, 22) + head(2, len(value)) + value
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(encode, value))
    return head(5, len(value)) + b"".join(encode(key) + encode(item) for key, item in value.items())


def decode(data, at=0):
    """(value, where it ends). Texts are byte strings; those with tag 22 are bytes."""
    major, info = data[at] >> 5, data[at] & 31
    at += 1
    value = info
    if 24 <= info <= 27:
        size = 1 << (info - 24)
        value, at = int.from_bytes(data[at:at + size], "big"), at + size
    if major == 0:
        return value, at
    if major == 1:
        return -1 - value, at
    if major in (2, 3):
        return data[at:at + value].decode(), at + value
    if major == 4:
        items = []
        for _ in range(value):
            item, at = decode(data, at)
            items.append(item)
        return items, at
    if major == 5:
        members = {}
        for _ in range(value):
            key, at = decode(data, at)
            members[key], at = decode(data, at)
        return members, at
    if major == 6 and value == 22:
        size, start = data[at] & 31, at + 1
        if size == 24:
            size, start = data[at + 1], at + 2
        return data[start:start + size], start + size
    if major == 6:
        return decode(data, at)
    if info in (25, 26, 27):
        return struct.unpack({25: ">e", 26: ">f", 27: ">d"}[info], data[at - (1 << (info - 24)):at])[0], at
    return {20: False, 21: True, 22: None}[info], at


def expect(condition, text):
    global checks
    checks += 1
    if not condition:
        raise AssertionError(text)


checks = 0


class Asker:
    def __init__(self, server):
        self.client = Client(server)

    def __call__(self, code, method, path, body=None, content_type=CBOR, accept=CBOR):
        """The answer, decoded; its Content-Type and Warning in self."""
        headers = {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = content_type
            body = bytes(body) if isinstance(body, Raw) else MAGIC + encode(body)
        connection = self.client.connection
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        data = response.read()
        self.content_type, self.warning = response.getheader("Content-Type"), response.getheader("Warning")
        if self.content_type and self.content_type.startswith(CBOR):
            expect(data.startswith(MAGIC) or not data, "%s %s: no magic: %r" % (method, path, data[:20]))
            answer, end = decode(data) if data else ({}, 0)
            if self.content_type != "application/cbor-seq":
                expect(end == len(data), "%s %s: something follows the object" % (method, path))
            else:
                answer = [answer]
                while end < len(data):
                    expect(data[end:end + 3] == MAGIC, "an event without the magic")
                    event, end = decode(data, end)
                    answer.append(event)
        else:
            answer = data.decode()
        expect(response.status == code, "%s %s: %d instead of %d: %r" % (method, path, response.status, code, answer))
        return answer


def config_map(name, **more):
    return dict({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}, **more)


def reading(ask):
    default = ask(200, "GET", "/api/v1/namespaces/default")
    expect(ask.content_type == CBOR and default["kind"] == "Namespace" and default["metadata"]["name"] == "default", str(default))
    expect(list(default["metadata"]["managedFields"][0]["fieldsV1"]) == ["f:metadata"], "fieldsV1 are no map: %s" % default)
    listed = ask(200, "GET", "/api/v1/namespaces")
    expect(listed["kind"] == "NamespaceList" and len(listed["items"]) == 4 and "kind" not in listed["items"][0], str(listed)[:300])
    expect(int(listed["metadata"]["resourceVersion"]) > 0, str(listed["metadata"]))
    partial = "application/cbor;as=PartialObjectMetadata%s;g=meta.k8s.io;v=v1"
    one = ask(200, "GET", "/api/v1/namespaces/default", accept=partial % "")
    expect(one["kind"] == "PartialObjectMetadata" and one["metadata"] == default["metadata"] and "spec" not in one, str(one))
    many = ask(200, "GET", "/api/v1/namespaces", accept=partial % "List")
    expect(many["kind"] == "PartialObjectMetadataList" and many["items"][0]["kind"] == "PartialObjectMetadata" and many["apiVersion"] == "meta.k8s.io/v1", str(many)[:300])
    expect(ask(200, "GET", MAPS + "?labelSelector=none", accept=partial % "List")["items"] is None, "an empty list of metadata has items")
    expect(ask(200, "GET", MAPS + "?labelSelector=none")["items"] == [], "an empty list has no items")
    resources = ask(200, "GET", "/apis/apps/v1")
    expect(resources["kind"] == "APIResourceList" and any(r["name"] == "deployments" and r["namespaced"] is True for r in resources["resources"]), str(resources)[:200])
    missing = ask(404, "GET", "/api/v1/namespaces/nowhere")
    expect(missing["kind"] == "Status" and missing["code"] == 404 and missing["details"] == {"name": "nowhere", "kind": "namespaces"}, str(missing))


def refusals(ask):
    table = ask(406, "GET", "/api/v1/namespaces", accept="application/cbor;as=Table;g=meta.k8s.io;v=v1")
    expect("application/json, application/yaml, application/vnd.kubernetes.protobuf, application/cbor" in table, table)
    sequence = ask(406, "GET", "/api/v1/namespaces/default", accept="application/cbor-seq")
    expect("Available representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/cbor" in sequence, sequence)
    unknown = ask(406, "GET", "/api/v1/namespaces", accept="foo/bar")
    expect("application/cbor, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch, application/cbor-seq" in unknown, unknown)
    yaml = ask(406, "GET", "/api/v1/namespaces?watch=1", accept="application/yaml")
    expect("application/cbor-seq" in yaml, yaml)
    plain = ask(415, "POST", MAPS, config_map("x"), content_type="foo/bar", accept="application/json")
    expect("application/vnd.kubernetes.protobuf, application/cbor" in plain, plain)
    ask(406, "GET", "/apis")
    ask(406, "GET", "/version")
    broken = "the object provided is unrecognized (must be of type ConfigMap): unable to determine group/version/kind: "
    twice = encode("kind") + encode("ConfigMap")
    for body, want in (
            (Raw(b""), broken + "EOF (<empty>)"),
            (Raw(MAGIC + b"\xff\xff\xff"), broken + 'cbor: unexpected "break" code (d9d9f7ffffff)'),
            (Raw(MAGIC + encode(config_map("c"))[:-3]), broken + "unexpected EOF (d9d9f7a46a61706956657273696f6e627631646b696e6469436f6e666967 ...)"),
            (Raw(MAGIC + encode({}) + b"\0"), broken + "cbor: 1 bytes of extraneous data starting at index 4 (d9d9f7a000)"),
            (Raw(MAGIC + head(5, 2) + twice + twice), broken + 'cbor: found duplicate map key "kind" at map element index 1 (d9d9f7a2646b696e6469436f6e6669674d6170646b696e6469436f6e6669 ...)'),
            ([1, 2], broken + "cbor: cannot unmarshal array into Go value of type v1.TypeMeta (cannot decode CBOR array to struct without toarray option) (d9d9f7820102)"),
            ({"apiVersion": "v1", "kind": "Secret"}, 'Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion')):
        status = ask(400, "POST", MAPS, body)
        expect(status["message"] == want, status["message"])
    unknown = config_map("u", metadata={"name": "u", "bar": 1}, foo=1)
    status = ask(400, "POST", MAPS + "?fieldValidation=Strict", unknown)
    expect(status["message"] == 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: cbor: found unknown field at map element index 4', status["message"])
    del unknown["foo"]
    ask(201, "POST", MAPS + "?dryRun=All", unknown)
    expect(ask.warning == '299 - "cbor: found unknown field at map element index 1"', str(ask.warning))


def writing(ask):
    made = ask(201, "POST", MAPS, config_map("one"))
    expect(made["data"] == {"a": "b"} and made["metadata"]["managedFields"][0]["operation"] == "Update", str(made))
    changed = ask(200, "PUT", MAPS + "/one", dict(made, data={"c": "d"}))
    expect(changed["data"] == {"c": "d"}, str(changed))
    without = ask(201, "POST", MAPS, Raw(encode({"metadata": {"name": "two"}})))
    expect(without["kind"] == "ConfigMap", "a body without magic and kind: %s" % without)
    ask(400, "POST", SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bad"}, "data": {"k": Raw(head(2, 2) + b"\0\1")}})
    secret = ask(201, "POST", SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": b"\0\1hello", "m": Raw(head(2, 8) + b"aGVsbG8=")}})
    expect(secret["data"] == {"k": b"\0\1hello", "m": b"hello"} and secret["type"] == "Opaque", str(secret))
    shown = ask(200, "GET", SECRETS + "/s", accept="application/json")
    expect('"data":{"k":"AAFoZWxsbw==","m":"aGVsbG8="}' in shown, shown)
    revision = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "r"}, "revision": 1, "data": {"x": [1, Raw(b"\xf9\x41\x00"), "y"]}}
    got = ask(201, "POST", "/apis/apps/v1/namespaces/default/controllerrevisions", revision)
    expect(got["data"] == {"x": [1, 2.5, "y"]}, str(got))
    merged = ask(200, "PATCH", MAPS + "/one", Raw(b'{"data":{"e":"f"}}'), content_type="application/merge-patch+json")
    expect(merged["data"] == {"c": "d", "e": "f"}, str(merged))
    configuration = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ap"}, "data": {"a": "1"}}
    applied = ask(201, "PATCH", MAPS + "/ap?fieldManager=me", configuration, content_type=APPLY)
    expect([(m["manager"], m["operation"]) for m in applied["metadata"]["managedFields"]] == [("me", "Apply")], str(applied))
    applied = ask(200, "PATCH", MAPS + "/ap?fieldManager=me", dict(configuration, data={"b": "2"}), content_type=APPLY)
    expect(applied["data"] == {"b": "2"}, str(applied))
    for body, want in ((Raw(MAGIC + b"\xff"), 'cbor: unexpected "break" code'), ([1], "cbor: cannot unmarshal array into Go value of type map[string]interface {}"), (Raw(b""), "EOF")):
        expect(ask(400, "PATCH", MAPS + "/ap?fieldManager=me", body, content_type=APPLY)["message"] == "error decoding YAML: " + want, want)
    expect(ask(422, "PATCH", MAPS + "/ap", configuration, content_type=APPLY)["message"].startswith("PatchOptions.meta.k8s.io"), "an apply without a manager")
    bad = ask(422, "DELETE", MAPS + "/one", {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Nope"})
    expect(bad["details"]["kind"] == "DeleteOptions", str(bad))
    expect(ask(400, "DELETE", MAPS + "/one", Raw(MAGIC + b"\xff"))["message"] == 'unable to determine group/version/kind: cbor: unexpected "break" code', "a broken body")
    gone = ask(200, "DELETE", MAPS + "/one", {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"})
    expect(gone["status"] == "Success", str(gone))


def watching(ask):
    revision = ask(200, "GET", MAPS)["metadata"]["resourceVersion"]
    ask(201, "POST", MAPS, config_map("w"))
    ask(200, "DELETE", MAPS + "/w")
    for accept in (CBOR, "application/cbor;stream=watch"):
        events = ask(200, "GET", "%s?watch=1&resourceVersion=%s&timeoutSeconds=1" % (MAPS, revision), accept=accept)
        expect(ask.content_type == "application/cbor-seq", ask.content_type)
        expect([(e["type"], e["object"]["metadata"]["name"], e["object"]["kind"]) for e in events] == [("ADDED", "w", "ConfigMap"), ("DELETED", "w", "ConfigMap")], str(events))
    partial = "application/cbor;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    events = ask(200, "GET", "%s?watch=1&resourceVersion=%s&timeoutSeconds=1" % (MAPS, revision), accept=partial)
    expect([(e["type"], e["object"]["kind"]) for e in events] == [("ADDED", "PartialObjectMetadata"), ("DELETED", "PartialObjectMetadata")], str(events))
    events = ask(200, "GET", MAPS + "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1")
    expect(events[-1]["type"] == "BOOKMARK" and events[-1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}, str(events[-1]))


def main():
    folder = os.path.abspath(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    real = "--real" in sys.argv
    if real:
        from rig import RealPair
        server = RealPair(folder, sys.argv[sys.argv.index("--real") + 1], [GATE]).start()
    else:
        server = Server(sys.argv[1], folder, flags=[GATE]).start()
    try:
        ask = Asker(server)
        for part in (reading, refusals, writing, watching):
            part(ask)
    finally:
        server.stop()
    if not real:
        plain = Server(sys.argv[1], folder + "-off").start()
        try:
            ask = Asker(plain)
            ask(406, "GET", "/api/v1/namespaces/default")
            ask(415, "POST", MAPS, config_map("x"), accept="application/json")
            ask(415, "PATCH", MAPS + "/x?fieldManager=me", config_map("x"), content_type=APPLY, accept="application/json")
        finally:
            plain.stop()
    print("%d checks passed" % checks)


if __name__ == "__main__":
    main()
