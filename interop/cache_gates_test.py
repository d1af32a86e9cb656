#!/usr/bin/env python3
"""The watch cache's gates switched off: kube-apiserver and Keelson get the same requests, each on its own etcd. usage: cache_gates_test.py KEELSON
WORK_FOLDER BIN_FOLDER

WatchList=false, ListFromCacheSnapshot=false and SizeBasedListCostEstimate=false at once. Codes and messages of lists and watches with every
combination of options that the gates decide about must be the same, and the figures that they switch off must be gone from both.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from corrupt_objects_test import ask  # noqa: E402
from rig import compare  # noqa: E402

GATES = ["--feature-gates=WatchList=false,ListFromCacheSnapshot=false,SizeBasedListCostEstimate=false"]
MAPS = "/api/v1/namespaces/default/configmaps"


def answers(server):
    """name → what can be compared."""
    made = [ask(server, "POST", MAPS, {"metadata": {"name": "m%d" % i}})[1]["metadata"]["resourceVersion"] for i in range(6)]
    found = {}

    def note(name, path):
        status, answer = ask(server, "GET", path)
        if isinstance(answer, dict):
            items = [item["metadata"]["name"] for item in answer.get("items", [])]
            answer = [answer.get("type"), items, answer.get("message"), bool(answer.get("metadata", {}).get("continue")), answer.get("metadata", {}).get("remainingItemCount")]
        found[name] = (status, answer)
        return answer
    for flag in ("true", "false"):
        for match in ("", "&resourceVersionMatch=NotOlderThan", "&resourceVersionMatch=Exact"):
            note("watch, sendInitialEvents=%s%s" % (flag, match), MAPS + "?watch=1&timeoutSeconds=1&sendInitialEvents=%s%s" % (flag, match))
    note("watch, bookmarks", MAPS + "?watch=1&timeoutSeconds=1&allowWatchBookmarks=1&resourceVersion=0")
    note("list, sendInitialEvents", MAPS + "?sendInitialEvents=true")
    note("exact", MAPS + "?resourceVersionMatch=Exact&resourceVersion=" + made[2])
    note("exact, pages", MAPS + "?limit=2&resourceVersion=" + made[3])
    note("not older", MAPS + "?resourceVersionMatch=NotOlderThan&limit=2&resourceVersion=" + made[3])
    page = ask(server, "GET", MAPS + "?limit=2")[1]
    for number in (2, 3):
        token = page["metadata"].get("continue", "")
        note("page %d" % number, MAPS + "?limit=2&continue=" + token)
        page = ask(server, "GET", MAPS + "?limit=2&continue=" + token)[1]
    metrics = ask(server, "GET", "/metrics")[1]
    found["size estimates"] = len(re.findall(r"^apiserver_resource_size_estimate_bytes\{", metrics, re.M))
    found["gates"] = sorted(line for line in metrics.splitlines() if re.match(r'kubernetes_feature_enabled\{name="(WatchList|ListFromCacheSnapshot|SizeBasedListCostEstimate)"', line))
    return found


if __name__ == "__main__":
    sys.exit(compare(__doc__, answers, GATES))
