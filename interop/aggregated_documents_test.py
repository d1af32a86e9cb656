#!/usr/bin/env python3
"""Discovery and OpenAPI with one aggregated server, kube-apiserver's and Keelson's, document by document. usage: aggregated_documents_test.py KEELSON WORK_FOLDER PROGRAMS_FOLDER

sample-apiserver runs behind each server in turn, as in aggregation_test.py. Every discovery document (legacy and aggregated, JSON) and every OpenAPI document that it
adds or changes must be the same: v2 as a whole but for descriptions, v3 the root document's keys and the documents of the aggregated group versions.
"""
import json
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from aggregation_test import available, await_true, delegated, front_proxy_flags, register, start  # noqa: E402
from rig import Keelson, RealPair, arguments_of, end, parser_of  # noqa: E402
from harness import SKIPPED, Client, free_port  # noqa: E402
from two_servers_test import Etcd, make_pki  # noqa: E402

GROUP, VERSIONS = "wardle.example.com", ("v1alpha1", "v1beta1")
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def get(client, path, accept="application/json"):
    status, answer = client.request("GET", path, accept=accept)
    return status, json.loads(answer) if isinstance(answer, bytes) and answer.startswith(b"{") else answer


KINDS = "x-kubernetes-group-version-kind"


def comparable(value, parameters):
    """Without descriptions (those of built-in kinds are Keelson's own); with parameters in the place of references to them, since their names are a hash of their
    text; without the kinds of the aggregated group, which only kube-apiserver adds to definitions of its own (docs/differences.md)."""
    if isinstance(value, list):
        return [comparable(item, parameters) for item in value]
    if not isinstance(value, dict):
        return value
    if str(value.get("$ref")).startswith("#/parameters/"):
        return comparable(parameters[value["$ref"].split("/")[-1]], parameters)
    out = {key: comparable(item, parameters) for key, item in value.items() if key != "description" or not isinstance(item, str)}
    if isinstance(out.get(KINDS), list) and len(out[KINDS]) > 1:
        out[KINDS] = [kind for kind in out[KINDS] if kind["group"] != GROUP]
    return out


def documents(client):
    """name -> what must be the same on both servers."""
    seen = {"/apis": get(client, "/apis"), "/apis aggregated": get(client, "/apis", AGGREGATED), "/api aggregated": get(client, "/api", AGGREGATED),
            "/apis aggregated, nopeer": get(client, "/apis", AGGREGATED + ";profile=nopeer"), "/apis/" + GROUP: get(client, "/apis/" + GROUP)}
    for version in VERSIONS:
        seen["/apis/%s/%s" % (GROUP, version)] = get(client, "/apis/%s/%s" % (GROUP, version))
        seen["/openapi/v3/apis/%s/%s" % (GROUP, version)] = get(client, "/openapi/v3/apis/%s/%s" % (GROUP, version))
    seen["/openapi/v3/apis/" + GROUP] = get(client, "/openapi/v3/apis/" + GROUP)
    status, root = get(client, "/openapi/v3")
    seen["/openapi/v3, keys"] = status, sorted(root["paths"])
    ours = [key for key in root["paths"] if GROUP in key]
    seen["/openapi/v3, URLs"] = {key: root["paths"][key]["serverRelativeURL"].split("?hash=")[0] for key in ours}
    status, whole = get(client, "/openapi/v2")
    for part in ("paths", "definitions"):
        seen["/openapi/v2, names of " + part] = status, sorted(whole[part])
        for name, value in whole[part].items():
            seen["/openapi/v2, " + name] = comparable(value, whole["parameters"])
    missing = sorted(name for name in set(re.findall('"#/parameters/([^"]*)"', json.dumps(whole))) if name not in whole["parameters"])
    missing += sorted(name for name in set(re.findall('"#/definitions/([^"]*)"', json.dumps(whole))) if name not in whole["definitions"])
    seen["/openapi/v2, references to nothing"] = missing
    rest = {key: value for key, value in whole.items() if key not in ("paths", "definitions", "parameters")}
    rest["info"] = dict(rest["info"], version="")
    seen["/openapi/v2, the rest"] = rest
    return seen


def with_sample_apiserver(server, folder, programs, address):
    port, etcd = free_port(), None
    os.makedirs(folder, exist_ok=True)
    etcd = Etcd(os.path.join(programs, "etcd"), folder)
    process = start(folder, "sample-apiserver", [
        os.path.join(programs, "sample-apiserver"), "--etcd-servers=" + etcd.url, "--bind-address=" + address, "--secure-port=%d" % port,
        "--cert-dir=" + os.path.join(folder, "sample-certs"), "--tls-private-key-file=", "--tls-cert-file="] + delegated(server))
    try:
        client = Client(server, timeout=120)
        register(client, "wardle", address, port, GROUP, VERSIONS[0])
        client.must(201, "POST", "/apis/apiregistration.k8s.io/v1/apiservices", {"metadata": {"name": "%s.%s" % (VERSIONS[1], GROUP)}, "spec": {
            "group": GROUP, "version": VERSIONS[1], "groupPriorityMinimum": 1000, "versionPriority": 20, "insecureSkipTLSVerify": True,
            "service": {"namespace": "wardle", "name": "api", "port": port}}})
        for version in VERSIONS:
            await_true(version, lambda: available(client, "%s.%s" % (version, GROUP)), 120)  # noqa: B023

        def complete():
            """Both versions are in every merged document."""
            items = get(client, "/apis", AGGREGATED)[1]["items"]
            found = [v for g in items if g["metadata"]["name"] == GROUP for v in g["versions"]]
            keys = get(client, "/openapi/v3")[1]["paths"]
            definitions = get(client, "/openapi/v2")[1]["definitions"]
            return (len(found) == 2 and all(v.get("resources") and v["freshness"] == "Current" for v in found)
                    and all("apis/%s/%s" % (GROUP, v) in keys for v in VERSIONS) and all(any("wardle" in d and v in d for d in definitions) for v in VERSIONS))
        await_true("the documents are merged", complete, 180)
        return documents(client)
    finally:
        end(process)
        etcd.stop()


def main():
    arguments = arguments_of(parser_of(__doc__))
    programs = os.path.abspath(arguments.programs)
    missing = [name for name in ("sample-apiserver", "kube-apiserver", "etcd") if not os.path.exists(os.path.join(programs, name))]
    if missing:
        print("SKIPPED: not built (interop/build.sh): " + " ".join(missing))
        return SKIPPED
    os.makedirs(arguments.folder)
    flags = front_proxy_flags(make_pki(os.path.join(arguments.folder, "front-proxy")))
    seen = []
    for name, server, address in (("real", RealPair(os.path.join(arguments.folder, "real"), programs, flags), "127.96.0.51"),
                                  ("ours", Keelson(arguments.keelson, os.path.join(arguments.folder, "ours"), flags), "127.96.0.52")):
        server.start()
        try:
            seen.append(with_sample_apiserver(server, os.path.join(arguments.folder, name + "-backend"), programs, address))
        finally:
            server.stop()
    for name, documents_seen in zip(("real", "ours"), seen):
        with open(os.path.join(arguments.folder, name + ".json"), "w") as f:
            json.dump(documents_seen, f, indent=1, sort_keys=True)
    theirs, ours = seen
    names = sorted(set(theirs) | set(ours))
    failed = [name for name in names if theirs.get(name) != ours.get(name)]
    for name in failed:
        print("FAIL %s: see real.json and ours.json in %s" % (name, arguments.folder))
    print("%d documents equal, %d differ" % (len(names) - len(failed), len(failed)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
