#!/usr/bin/env python3
"""shardSelector of LIST, WATCH and DELETECOLLECTION (gate ShardedListAndWatch). usage: sharding_test.py KEELSON FOLDER"""
import http.client
import json
import os
import shutil
import sys
import urllib.parse

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, Server, config_map  # noqa: E402

MAPS = "/api/v1/namespaces/default/configmaps"
HALVES = ["shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')",
          "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"]
WIDGETS = "/apis/example.com/v1/widgets"


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def fnv(text):
    value = 0xcbf29ce484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001b3 % 2 ** 64
    return value


def half_of(item):
    return 0 if fnv(item["metadata"]["uid"]) < 2 ** 63 else 1


def query(selector, **more):
    return "?" + urllib.parse.urlencode({"shardSelector": selector, **more})


def names(items):
    return sorted(item["metadata"]["name"] for item in items)


def lists(client, created):
    for half, selector in enumerate(HALVES):
        want = names([one for one in created if half_of(one) == half])
        answer = client.must(200, "GET", MAPS + query(selector))
        check(names(answer["items"]) == want, (half, names(answer["items"]), want))
        check(answer["metadata"]["shardInfo"] == {"selector": selector}, answer["metadata"])
        spaced = client.must(200, "GET", MAPS + query("  " + selector.replace(" ", "") + " "))
        check(spaced["metadata"]["shardInfo"] == {"selector": selector}, spaced["metadata"])
        at_zero = client.must(200, "GET", MAPS + query(selector, resourceVersion="0"))
        check(names(at_zero["items"]) == want, at_zero)
        paged, token = [], ""
        while True:
            page = client.must(200, "GET", MAPS + query(selector, limit=3, **{"continue": token}))
            check(len(page["items"]) <= 3 and page["metadata"]["shardInfo"] == {"selector": selector}, page["metadata"])
            paged += page["items"]
            token = page["metadata"].get("continue", "")
            if not token:
                break
        check(names(paged) == want, (names(paged), want))
        table = client.must(200, "GET", MAPS + query(selector), accept="application/json;as=Table;v=v1;g=meta.k8s.io")
        check(len(table["rows"]) == len(want) and "shardInfo" not in table["metadata"], table["metadata"])
        partial = client.must(200, "GET", MAPS + query(selector), accept="application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")
        check(len(partial["items"]) == len(want) and "shardInfo" not in partial["metadata"], partial["metadata"])
        status, proto = client.request("GET", MAPS + query(selector), accept="application/vnd.kubernetes.protobuf")
        check(status == 200 and selector.encode() in proto, "protobuf has shardInfo")
    both = client.must(200, "GET", MAPS + query(" || ".join(HALVES)))
    check(names(both["items"]) == names(created), "both halves are everything")
    spaces = sum(len(client.must(200, "GET", "/api/v1/configmaps" + query(half.replace("uid", "namespace")))["items"]) for half in HALVES)
    check(spaces == len(client.must(200, "GET", "/api/v1/configmaps")["items"]), "shards by namespace are everything")


def refused(client):
    want = "invalid shard selector: all shard ranges must use the same field, got \"object.metadata.uid\" and \"object.metadata.namespace\""
    bad = query(HALVES[0] + " || " + HALVES[1].replace("uid", "namespace"))
    for path in (MAPS + bad, MAPS + bad + "&watch=1"):
        answer = client.must(500, "GET", path)
        check(answer["message"] == want and "reason" not in answer, answer)


def watches(client, server):
    version = client.must(200, "GET", MAPS)["metadata"]["resourceVersion"]
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=60, context=server.context())
    connection.request("GET", MAPS + query(HALVES[0], watch=1, resourceVersion=version))
    stream = connection.getresponse()
    wanted = []
    for i in range(20):
        made = client.must(201, "POST", MAPS, config_map("watched-%d" % i, {}))
        client.must(200, "PATCH", MAPS + "/watched-%d" % i, {"data": {"a": "b"}}, content_type="application/merge-patch+json")
        client.must(200, "DELETE", MAPS + "/watched-%d" % i)
        if half_of(made) == 0:
            wanted += [(event, "watched-%d" % i) for event in ("ADDED", "MODIFIED", "DELETED")]
    check(wanted, "no object in the shard")
    for want in wanted:
        event = json.loads(stream.readline())
        check((event["type"], event["object"]["metadata"]["name"]) == want, (event, want))
    _, metrics = client.request("GET", "/metrics", accept="text/plain")
    check('apiserver_watch_shards_total{group="",resource="configmaps"} 1' in metrics.decode(), "gauge of open watches")
    check("apiserver_watch_filtered_events_total{" in metrics.decode(), "counter of events")
    connection.close()


def custom_resources(client):
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    client.must(201, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster", "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
                 "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}]}})
    created = []
    for i in range(10):
        widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w%d" % i}}
        while True:
            status, answer = client.request("POST", WIDGETS, widget)
            if status == 201:
                break
            check(status == 404, answer)  # not served yet
        created.append(answer)
    for half, selector in enumerate(HALVES):
        answer = client.must(200, "GET", WIDGETS + query(selector))
        check(names(answer["items"]) == names([one for one in created if half_of(one) == half]), answer)
        check("shardInfo" not in answer["metadata"], "lists of custom resources have none")


def main():
    binary, folder = sys.argv[1:3]
    shutil.rmtree(folder, ignore_errors=True)
    server = Server(binary, os.path.join(folder, "on"), ["--feature-gates=ShardedListAndWatch=true"], in_memory=True).start()
    try:
        client = Client(server)
        created = [client.must(201, "POST", MAPS, config_map("map-%d" % i, {})) for i in range(20)]
        lists(client, created)
        refused(client)
        watches(client, server)
        custom_resources(client)
        client.must(200, "DELETE", MAPS + query(HALVES[0]))
        left = client.must(200, "GET", MAPS)["items"]
        check(names(left) == names([one for one in created if half_of(one) == 1]), "only one shard is deleted")
    finally:
        server.stop()
    server = Server(binary, os.path.join(folder, "off"), in_memory=True).start()
    try:
        client = Client(server)
        for i in range(4):
            client.must(201, "POST", MAPS, config_map("map-%d" % i, {}))
        for selector in (HALVES[0], "nonsense"):
            answer = client.must(200, "GET", MAPS + query(selector))
            check(len(answer["items"]) == 4 and "shardInfo" not in answer["metadata"], "ignored while the gate is off")
    finally:
        server.stop()
    print("sharding: ok")


if __name__ == "__main__":
    main()
