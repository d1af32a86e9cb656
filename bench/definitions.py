#!/usr/bin/env python3
"""Memory and time of many CustomResourceDefinitions.
usage: bench/definitions.py KEELSON WORK_FOLDER [DEFINITIONS] [--real N] [--beside BIN_FOLDER [--theirs DEFINITIONS]]

Two sets: generated definitions of about 3 kB (ten to a group, each with its own schema), and N real ones (default 500) of well-known
projects from the Go module cache, again under other groups when there are fewer. Prints of each: CPU and time per install at the beginning
and at the end (flat when they are alike), time from create to served, resident memory per definition cold and with one object and one
metadata watch each, full discovery and OpenAPI, the start with all of them and what writes of pods cost beside them. Figures, not a test.
With --beside the same of kube-apiserver + etcd from BIN_FOLDER, with fewer definitions (default 100: it takes megabytes for each).
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
import zlib

sys.dont_write_bytecode = True
top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(top, "interop"), os.path.join(top, "test", "system")]
from harness import Client, Server  # noqa: E402
from projects_test import MODULES, module_folder, sample_object  # noqa: E402
from rig import RealPair  # noqa: E402

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PER_GROUP = 10
SERVED_SAMPLES = 10  # definitions of which the time from create to served is taken
# Streams that a server allows on one HTTP/2 connection. Controllers open another connection when one is full; curl would open one for each watch beyond.
WATCHES_PER_CONNECTION = 100
# Changes of the past are in the store until a compaction, and a start reads them for watches that resume. A cluster compacts every five minutes.
COMPACTION_SECONDS = 10
COMPACTION = ["--etcd-compaction-interval=%ds" % COMPACTION_SECONDS]


# Beside the projects of `make projects`: a provider with many definitions, of the kind that clusters have hundreds of.
MORE_MODULES = ["github.com/crossplane-contrib/provider-aws@v0.50.0"]


class Definitions:
    """A set of definitions. Subclasses give the body of a POST and an object of the kind that it defines."""

    def __init__(self, count):
        self.count, self.made = count, {}

    def create(self, client, number):
        status, answer = client.request("POST", DEFINITIONS, *self.body(number))
        if status != 201:
            raise AssertionError("definition %d: %s" % (number, answer))
        self.made[number] = answer

    def collection(self, number):
        spec = self.made[number]["spec"]
        scope = "/namespaces/default" if spec["scope"] == "Namespaced" else ""
        return "/apis/%s/%s%s/%s" % (spec["group"], self.version(number)["name"], scope, spec["names"]["plural"])

    def watch(self, number):
        return self.collection(number).replace("/namespaces/default", "")

    def version(self, number):
        return next(one for one in self.made[number]["spec"]["versions"] if one["storage"])

    def sizes(self):
        """Mean bytes of a definition as JSON, and compressed."""
        texts = [json.dumps(one, separators=(",", ":")).encode() for one in self.made.values()]
        return sum(map(len, texts)) / len(texts), sum(len(zlib.compress(text)) for text in texts) / len(texts)


class Generated(Definitions):
    title = "generated"

    def body(self, number):
        return (definition(number),)

    def object(self, number):
        group, _, kind = names(number)
        return {"apiVersion": group + "/v1", "kind": kind, "metadata": {"name": "one"}, "spec": {"field%da" % number: "x"}}


class Real(Definitions):
    """The definitions of whole modules, each name once; from the second time on under groups with a prefix."""
    title = "real"
    found = None

    def __init__(self, count):
        super().__init__(count)
        if Real.found is None:
            Real.found = self.collect()
        self.total = len(Real.found)
        if not self.total:
            sys.exit("definitions: no module of a project can be had")

    @staticmethod
    def collect():
        texts = {}
        for module in [module for _, module, _ in MODULES] + MORE_MODULES:
            top_folder = module_folder(module)
            for folder, _, files in sorted(os.walk(top_folder)) if top_folder else ():
                for file in sorted(files):
                    if file.endswith(".yaml"):
                        for name, part in Real.parts(os.path.join(folder, file)):
                            texts.setdefault(name, part)
        return [texts[name] for name in sorted(texts)]

    @staticmethod
    def parts(path):
        with open(path, errors="replace") as f:
            text = f.read()
        if "kind: CustomResourceDefinition" not in text or "{{" in text:  # templates are not installed as they are
            return
        for part in re.split(r"(?m)^---.*$", text):
            name = re.search(r"(?m)^  name: ['\"]?([a-z0-9.-]+\.[a-z0-9.-]+)['\"]?$", part)
            group = re.search(r"(?m)^  group: ['\"]?([a-z0-9.-]+)['\"]?$", part)
            # A test's definition is not one that a cluster has; conversion webhooks are not there.
            if name and group and re.search(r"(?m)^apiVersion: apiextensions.k8s.io/v1$", part) and "openAPIV3Schema" in part and "/test" not in path \
                    and "strategy: Webhook" not in part:
                yield name.group(1), (part, name.group(1), group.group(1))

    def body(self, number):
        text, name, group = Real.found[number % self.total]
        if number >= self.total:
            other = "r%d.%s" % (number // self.total, group)
            text = text.replace("name: " + name, "name: " + name[:-len(group)] + other).replace("group: " + group, "group: " + other)
        return text.encode(), "application/yaml"

    def object(self, number):
        made = sample_object(self.made[number], self.version(number))
        made["metadata"]["name"] = "one"
        return made


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


def settled(server, seconds=1.0):
    """Waits until the server uses next to no CPU."""
    while True:
        before = server.cpu_seconds()
        time.sleep(seconds)
        if server.cpu_seconds() - before < 0.1 * seconds:
            return


def idle(server, seconds=5):
    """CPU seconds per second."""
    before = server.cpu_seconds()
    time.sleep(seconds)
    return (server.cpu_seconds() - before) / seconds


def served(client, wanted, number):
    while client.request("GET", wanted.collection(number))[0] != 200:
        pass


def install(server, client, wanted):
    """CPU seconds of each tenth of all but the last SERVED_SAMPLES, until the last of them is served. The store's compactions and the memory that is given
    back in quiet moments come with time, not with a definition: the server is left alone for them between the tenths."""
    count = wanted.count - SERVED_SAMPLES
    cpu, step = [], max(1, count // 10)
    for begin in range(0, count, step):
        start, numbers = server.cpu_seconds(), range(begin, min(count, begin + step))
        for number in numbers:
            wanted.create(client, number)
        served(client, wanted, numbers[-1])
        cpu.append((server.cpu_seconds() - start) / len(numbers))
        settled(server)
    return cpu


def create_to_served(client, wanted):
    took = []
    for number in range(wanted.count - SERVED_SAMPLES, wanted.count):
        start = time.monotonic()
        wanted.create(client, number)
        served(client, wanted, number)
        took.append(time.monotonic() - start)
    return statistics.median(took)


def watch(server, folder, wanted, numbers):
    """Metadata watches that stay open, multiplexed on one HTTP/2 connection as a controller's are: the curl process."""
    config = os.path.join(folder, "watches-%s-%d" % (wanted.title, numbers[0]))
    with open(config, "w") as f:
        for number in numbers:
            f.write('url = "https://127.0.0.1:%d%s?watch=true&timeoutSeconds=3600"\noutput = "/dev/null"\n' % (server.port, wanted.watch(number)))
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
    """CPU in µs of a small write of a pod."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "written"}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    path = "/api/v1/namespaces/default/pods"
    client.request("DELETE", path + "/written?gracePeriodSeconds=0")
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    client.request("POST", "/api/v1/namespaces/default/serviceaccounts", account)
    client.must(201, "POST", path, pod)
    start = server.cpu_seconds()
    for number in range(writes):
        client.must(200, "PATCH", path + "/written", {"metadata": {"annotations": {"n": str(number)}}}, content_type="application/merge-patch+json")
    return (server.cpu_seconds() - start) / writes * 1e6


class Theirs(RealPair):
    """Figures of kube-apiserver and etcd together."""

    def memory_kb(self, field="VmRSS"):
        return sum(int(line.split()[1]) for pid in self.pids() for line in open("/proc/%d/status" % pid) if line.startswith(field + ":"))

    def cpu_seconds(self):
        fields = [open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split() for pid in self.pids()]
        return sum(int(f[11]) + int(f[12]) for f in fields) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        super().stop()
        self.processes.clear()


class Memory:
    """Memory above that of the empty server. Resident memory counts pages of the program, which come and go in megabytes whatever is installed (a start gives
    them back, the first request of a kind brings them): what definitions take is the other part."""

    def __init__(self, server):
        self.server = server
        self.resident, self.own = server.memory_kb(), server.memory_kb("RssAnon")

    def per_definition(self, count):
        own, resident = self.server.memory_kb("RssAnon") - self.own, self.server.memory_kb() - self.resident
        return "%8.1f kB per definition (%+.1f kB with pages of the program)" % (own / count, resident / count)


def run(title, server, folder, wanted):
    print("\n%s, %d %s definitions%s (load of the machine %.1f)" % (
        title, wanted.count, wanted.title, ", %d different" % wanted.total if isinstance(wanted, Real) else "", os.getloadavg()[0]), flush=True)
    server.start()
    watchers = []
    try:
        client = Client(server)
        settled(server)
        empty, alone = Memory(server), write_cost(server, client)
        print("empty server                          %8.1f MB resident, start %.2f s CPU" % (empty.resident / 1024, server.cpu_seconds()), flush=True)
        cpu = install(server, client, wanted)
        print("one definition                        %8.1f kB, %.1f kB compressed" % tuple(size / 1000 for size in wanted.sizes()))
        print("CPU per install                       %8.2f ms at first, %.2f ms at last" % (cpu[0] * 1000, cpu[-1] * 1000))
        print("create to served                      %8.1f ms" % (create_to_served(client, wanted) * 1000))
        settled(server)
        print("cold, after installing                " + empty.per_definition(wanted.count), flush=True)
        client.close()
        for start in ("start with all of them", "start after compaction"):
            if start == "start after compaction":
                client = Client(server)
                print("a write of a pod                      %8.0f µs CPU, %.0f without definitions" % (write_cost(server, client), alone))
                client.close()
                time.sleep(3 * COMPACTION_SECONDS)
                settled(server)
            server.stop()
            server.start()
            settled(server)
            print("%-37s %8.0f ms, %.2f s CPU" % (start, server.start_seconds * 1000, server.cpu_seconds()))
            print("cold, after a start                   " + empty.per_definition(wanted.count), flush=True)
        client = Client(server)
        before, watched = Memory(server), watching(client)
        refused = sum(client.request("POST", wanted.collection(number), wanted.object(number))[0] != 201 for number in range(wanted.count))
        print("objects created                       %8d" % (wanted.count - refused))
        watchers = [watch(server, folder, wanted, range(begin, min(begin + WATCHES_PER_CONNECTION, wanted.count)))
                    for begin in range(0, wanted.count, WATCHES_PER_CONNECTION)]
        deadline = time.monotonic() + 120
        while watching(client) < watched + wanted.count and time.monotonic() < deadline:
            time.sleep(0.2)
        print("watches open                          %8d" % (watching(client) - watched))
        settled(server)
        print("idle with all of them watched         %8.1f ms CPU per second" % (idle(server) * 1000))
        print("one object and one metadata watch more" + before.per_definition(wanted.count))
        print("in all                                " + empty.per_definition(wanted.count))
        documents(server, client)
        print("after discovery and OpenAPI           %8.1f MB resident" % (server.memory_kb() / 1024), flush=True)
    finally:
        for process in watchers:
            process.terminate()
        server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("keelson")
    parser.add_argument("folder")
    parser.add_argument("count", nargs="?", type=int, default=1900)
    parser.add_argument("--real", type=int, default=500)
    parser.add_argument("--beside", metavar="BIN_FOLDER")
    parser.add_argument("--theirs", type=int, default=100)
    arguments = parser.parse_args()
    folder = os.path.abspath(arguments.folder)
    shutil.rmtree(folder, ignore_errors=True)
    for make, count in ((Generated, arguments.count), (Real, arguments.real)):
        if not count:
            continue
        run("Keelson", Server(arguments.keelson, os.path.join(folder, make.title), flags=COMPACTION), folder, make(count))
        if arguments.beside:
            run("kube-apiserver + etcd", Theirs(os.path.join(folder, make.title + "-theirs"), arguments.beside, flags=COMPACTION), folder, make(min(count, arguments.theirs)))


if __name__ == "__main__":
    main()
