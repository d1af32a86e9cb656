#!/usr/bin/env python3
"""Priority and fairness under overload, beside kube-apiserver + etcd: ten mice (one small GET after another, each its own user) while an
elephant floods the same priority level.
usage: fairness.py KEELSON WORK_FOLDER [BIN_FOLDER] [--seconds N] [--only keelson|kube-apiserver]

Both servers have few seats (--max-requests-inflight=12 --max-mutating-requests-inflight=4), so that they are overloaded by seats and not by this
machine's cores. Printed for each scenario: GETs of the mice a second, their p50 and p99, the slowest mouse's share of an equal share, how many
were refused; and the elephant's answers. kube-apiserver comes from BIN_FOLDER (default: the cache that `make interop` fills).
"""
import argparse
import http.client
import os
import re
import shutil
import ssl
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(top, "interop"), os.path.join(top, "test", "system")]
from harness import Client, config_map, skip  # noqa: E402
from rig import Keelson, RealPair  # noqa: E402

MICE = 10
OBJECTS = 1000
SMALL = "/api/v1/namespaces/default/configmaps/small"
LIST = "/api/v1/namespaces/default/configmaps"
FLAGS = ["--authorization-mode=AlwaysAllow", "--max-requests-inflight=12", "--max-mutating-requests-inflight=4"]
# The elephant's load: its path and h2load's connections and streams.
SCENARIOS = (("mice alone", None, 0, 0),
             ("against 200 GETs at once", SMALL, 20, 10),
             ("against 40 LISTs of %d objects at once" % OBJECTS, LIST, 20, 2),
             ("against watches that come and go", LIST + "?watch=1&timeoutSeconds=1", 20, 10))


class Mouse(threading.Thread):
    def __init__(self, server, number, until):
        super().__init__()
        context = ssl._create_unverified_context()  # without a client certificate: the token says who it is
        self.connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=60, context=context)
        self.headers, self.until = {"Authorization": "Bearer mouse-%d" % number}, until
        self.latencies, self.refused, self.error = [], 0, None

    def run(self):
        try:
            while time.monotonic() < self.until:
                begin = time.monotonic()
                self.connection.request("GET", SMALL, headers=self.headers)
                response = self.connection.getresponse()
                response.read()
                status = response.status
                if status == 200:
                    self.latencies.append(time.monotonic() - begin)
                elif status == 429:
                    self.refused += 1
                else:
                    raise RuntimeError("status %d" % status)
        except Exception as e:  # reported by the main thread
            self.error = e


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))] * 1000 if values else float("nan")


def run_scenario(server, path, connections, streams, seconds):
    elephant = None
    if path:
        elephant = subprocess.Popen(["h2load", "-c", str(connections), "-m", str(streams), "-t", "1", "-D", str(seconds + 1), "-H", "Authorization: Bearer elephant",
                                     "https://127.0.0.1:%d%s" % (server.port, path)], stdout=subprocess.PIPE, text=True)
        time.sleep(0.5)  # the flood is there
    mice = [Mouse(server, i, time.monotonic() + seconds) for i in range(MICE)]
    for mouse in mice:
        mouse.start()
    for mouse in mice:
        mouse.join()
    errors = [mouse.error for mouse in mice if mouse.error]
    if errors:
        raise errors[0]
    every = [latency for mouse in mice for latency in mouse.latencies]
    share = min(len(mouse.latencies) for mouse in mice) / max(1.0, len(every) / MICE)
    line = "%6.0f GETs/s, p50 %6.1f ms, p99 %7.1f ms, least share %.2f, %d refused" % (
        len(every) / seconds, percentile(every, 0.5), percentile(every, 0.99), share, sum(mouse.refused for mouse in mice))
    if elephant:
        out = elephant.communicate()[0]
        codes = re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", out)
        line += "; elephant: %s answered, %s refused" % ((codes.group(1), codes.group(3)) if codes else ("?", "?"))
    return line


def fill(server):
    client = Client(server)
    for i in range(OBJECTS):
        client.must(201, "POST", LIST, config_map("object-%d" % i, {"key": "x" * 500}))
    client.must(201, "POST", LIST, config_map("small", {"key": "value"}))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("keelson")
    parser.add_argument("folder", type=os.path.abspath)
    parser.add_argument("programs", nargs="?", default=os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "keelson", "bin"))
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--only", choices=["keelson", "kube-apiserver"])
    options = parser.parse_args()
    if shutil.which("h2load") is None:
        skip("h2load is missing (Debian package nghttp2-client)")
    shutil.rmtree(options.folder, ignore_errors=True)
    os.makedirs(options.folder)
    tokens = os.path.join(options.folder, "tokens.csv")
    with open(tokens, "w") as f:
        for user in ["elephant"] + ["mouse-%d" % i for i in range(MICE)]:
            f.write("%s,%s,%s\n" % (user, user, user))
    flags = FLAGS + ["--token-auth-file=" + tokens]
    servers = []
    if options.only != "kube-apiserver":
        servers.append(("keelson", Keelson(options.keelson, os.path.join(options.folder, "keelson"), flags=flags)))
    if options.only != "keelson" and os.path.exists(os.path.join(options.programs, "kube-apiserver")):
        servers.append(("kube-apiserver", RealPair(os.path.join(options.folder, "real"), options.programs, flags=flags)))
    for name, server in servers:
        server.start()
        try:
            fill(server)
            print("%s, load average %.1f" % (name, os.getloadavg()[0]))
            for scenario, path, connections, streams in SCENARIOS:
                print("  %-42s %s" % (scenario, run_scenario(server, path, connections, streams, options.seconds)), flush=True)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
