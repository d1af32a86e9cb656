#!/usr/bin/env python3
"""Memory and time of many CustomResourceDefinitions.
usage: bench/definitions.py KEELSON WORK_FOLDER [DEFINITIONS] [--beside BIN_FOLDER [--theirs DEFINITIONS]]

Generates definitions of about 3 kB (ten to a group, each with a schema of its own) and prints: CPU and time per install at the beginning
and at the end (flat when they are alike), time from create to served, resident memory per definition cold and with one object and one
metadata watch each, full discovery and OpenAPI, the start with all of them and what writes of pods cost beside them. Figures, not a test.
With --beside the same of kube-apiserver + etcd from BIN_FOLDER, with fewer definitions (default 100: it takes megabytes for each).
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(top, "interop"), os.path.join(top, "test", "system")]
from harness import Client, Server, config_map  # noqa: E402
from rig import RealPair  # noqa: E402

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PER_GROUP = 10


def names(number):
    return "g%d.bench.example.com" % (number // PER_GROUP), "kind%ds" % number, "Kind%d" % number


def definition(number):
    group, plural, kind = names(number)
    text = "Words about field %d of " + kind + ", as generators write them from the comments of a Go type, a line or two."
    properties = {"field%d%s" % (number, letter): {"type": "string", "description": text % i, "maxLength": 100 + i}
                  for i, letter in enumerate("abcdefghij")}
    spec = {"type": "object", "properties": dict(properties, replicas={"type": "integer", "minimum": 0, "default": 1})}
    status = {"type": "object", "properties": {"conditions": {"type": "array", "items": {
        "type": "object", "required": ["type", "status"], "properties": {
            key: {"type": "string", "description": text % i} for i, key in enumerate(("type", "status", "reason", "message"))}}}}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": plural + "." + group},
            "spec": {"group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": kind}, "versions": [
                {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                 "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}}}]}}


def collection(number):
    group, plural, _ = names(number)
    return "/apis/%s/v1/namespaces/default/%s" % (group, plural)


def settled(server, seconds=1.0):
    """Waits until the server uses next to no CPU."""
    while True:
        before = server.cpu_seconds()
        time.sleep(seconds)
        if server.cpu_seconds() - before < 0.1 * seconds:
            return


def install(server, client, count):
    """CPU seconds of each tenth."""
    cpu = []
    for begin in range(0, count, max(1, count // 10)):
        start = server.cpu_seconds()
        for number in range(begin, min(count, begin + max(1, count // 10))):
            client.must(201, "POST", DEFINITIONS, definition(number))
        settled(server)
        cpu.append((server.cpu_seconds() - start) / max(1, count // 10))
    return cpu


def create_to_served(client, first, samples=10):
    took = []
    for number in range(first, first + samples):
        start = time.monotonic()
        client.must(201, "POST", DEFINITIONS, definition(number))
        while client.request("GET", collection(number))[0] != 200:
            pass
        took.append(time.monotonic() - start)
    return statistics.median(took)


def watch(server, folder, numbers):
    """Metadata watches that stay open, multiplexed on HTTP/2 connections as a controller's are: the curl process."""
    config = os.path.join(folder, "watches-%d" % numbers[0])
    with open(config, "w") as f:
        for number in numbers:
            group, plural, _ = names(number)
            f.write('url = "https://127.0.0.1:%d/apis/%s/v1/%s?watch=true&timeoutSeconds=3600"\noutput = "/dev/null"\n' % (server.port, group, plural))
    return subprocess.Popen(
        ["curl", "-s", "--http2", "--parallel", "--parallel-max", "300", "--cacert", os.path.join(server.pki, "ca.crt"),
         "--cert", os.path.join(server.pki, "admin.crt"), "--key", os.path.join(server.pki, "admin.key"),
         "-H", "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "-K", config],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def watching(client):
    """Watches that the server has open."""
    _, text = client.request("GET", "/metrics", accept="text/plain")
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.decode().splitlines()
               if line.startswith("apiserver_longrunning_requests{") and 'verb="WATCH"' in line)


DOCUMENTS = (("/apis", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"), ("/openapi/v3", "application/json"), ("/openapi/v2", "application/json"))


def documents(server, client):
    for path, accept in DOCUMENTS:
        start, spent = time.monotonic(), server.cpu_seconds()
        status, body = client.request("GET", path, accept=accept)
        print("GET %-33s %8.0f ms, %.2f s CPU (%d, %.1f MB)" % (
            path, (time.monotonic() - start) * 1000, server.cpu_seconds() - spent, status, (len(body) if isinstance(body, bytes) else len(json.dumps(body))) / 1e6))


def write_cost(server, client, writes=500):
    """CPU in µs of a small write of a built-in kind."""
    client.request("DELETE", "/api/v1/namespaces/default/configmaps/written")
    client.must(201, "POST", "/api/v1/namespaces/default/configmaps", config_map("written", {"n": "0"}))
    start = server.cpu_seconds()
    for number in range(writes):
        client.must(200, "PATCH", "/api/v1/namespaces/default/configmaps/written", {"data": {"n": str(number)}}, content_type="application/merge-patch+json")
    return (server.cpu_seconds() - start) / writes * 1e6


class Theirs(RealPair):
    """Figures of kube-apiserver and etcd together."""

    def memory_kb(self):
        return sum(int(line.split()[1]) for pid in self.pids() for line in open("/proc/%d/status" % pid) if line.startswith("VmRSS:"))

    def cpu_seconds(self):
        fields = [open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split() for pid in self.pids()]
        return sum(int(f[11]) + int(f[12]) for f in fields) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        super().stop()
        self.processes.clear()


def theirs(programs, folder, count):
    print("\nkube-apiserver + etcd, %d definitions" % count)
    server = Theirs(os.path.join(folder, "theirs"), programs).start()
    try:
        client = Client(server)
        settled(server)
        empty, alone = server.memory_kb(), write_cost(server, client)
        cpu = install(server, client, count)
        print("CPU per install %.2f ms at first, %.2f ms at last" % (cpu[0] * 1000, cpu[-1] * 1000))
        print("after installing                      %8.1f kB per definition" % ((server.memory_kb() - empty) / count), flush=True)
        print("a write of a config map               %8.0f µs CPU, %.0f without definitions" % (write_cost(server, client), alone))
        documents(server, client)
        client.close()
        server.stop()
        server.start()
        settled(server)
        print("start with all of them                %8.0f ms, %.2f s CPU" % (server.start_seconds * 1000, server.cpu_seconds()))
        print("after a start                         %8.1f kB per definition" % ((server.memory_kb() - empty) / count), flush=True)
    finally:
        server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("keelson")
    parser.add_argument("folder")
    parser.add_argument("count", nargs="?", type=int, default=1900)
    parser.add_argument("--beside", metavar="BIN_FOLDER")
    parser.add_argument("--theirs", type=int, default=100)
    arguments = parser.parse_args()
    binary, folder, count = arguments.keelson, arguments.folder, arguments.count
    shutil.rmtree(folder, ignore_errors=True)
    ours(binary, folder, count)
    if arguments.beside:
        theirs(arguments.beside, folder, arguments.theirs)


def ours(binary, folder, count):
    server = Server(binary, folder).start()
    watchers = []
    try:
        client = Client(server)
        size = len(json.dumps(definition(0)))
        settled(server)
        empty, alone = server.memory_kb(), write_cost(server, client)
        print("empty server                          %8.1f MB resident" % (empty / 1024), flush=True)
        cpu = install(server, client, count)
        print("%d definitions of %d bytes: CPU per install %.2f ms at first, %.2f ms at last" % (count, size, cpu[0] * 1000, cpu[-1] * 1000))
        print("create to served                      %8.1f ms" % (create_to_served(client, count) * 1000))
        settled(server)
        print("cold, after installing                %8.1f kB per definition" % ((server.memory_kb() - empty) / count), flush=True)
        client.close()
        server.stop()
        server.start()
        settled(server)
        print("start with all of them                %8.0f ms, %.2f s CPU" % (server.start_seconds * 1000, server.cpu_seconds()))
        cold = server.memory_kb()
        print("cold, after a start                   %8.1f kB per definition" % ((cold - empty) / count), flush=True)
        client = Client(server)
        print("a write of a config map               %8.0f µs CPU, %.0f without definitions" % (write_cost(server, client), alone))
        before, watched = server.memory_kb(), watching(client)
        for number in range(count):
            client.must(201, "POST", collection(number), {"apiVersion": names(number)[0] + "/v1", "kind": names(number)[2],
                                                          "metadata": {"name": "one"}, "spec": {"field%da" % number: "x"}})
        watchers = [watch(server, folder, range(begin, min(begin + 200, count))) for begin in range(0, count, 200)]
        deadline = time.monotonic() + 60
        while watching(client) < watched + count and time.monotonic() < deadline:
            time.sleep(0.2)
        print("watches open                          %8d" % (watching(client) - watched))
        settled(server)
        print("one object and one metadata watch     %8.1f kB more per definition" % ((server.memory_kb() - before) / count))
        print("in all                                %8.1f kB per definition" % ((server.memory_kb() - empty) / count))
        documents(server, client)
        print("after discovery and OpenAPI           %8.1f MB resident" % (server.memory_kb() / 1024), flush=True)
    finally:
        for process in watchers:
            process.terminate()
        server.stop()


if __name__ == "__main__":
    main()
