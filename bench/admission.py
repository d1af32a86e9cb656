#!/usr/bin/env python3
"""CPU time of a create with one webhook, with ten policies of one rule each, and with both, beside kube-apiserver + etcd.
usage: admission.py KEELSON WORK_FOLDER [BIN_FOLDER] [--creates N] [--rounds N] [--only keelson|kube-apiserver] [--instructions]

h2load creates config maps over HTTP/2. The CPU time is that of all server processes (with the store), without the webhook's, which is agnhost; rounds
of the four kinds follow each other, the servers in turns, and the best of each counts, so that a busy machine changes the figures little. Programs come from BIN_FOLDER
(default: the cache that `make interop` fills). --instructions counts instead, under callgrind, what Keelson executes for a create: N and 2 N creates,
the difference divided by N. WORK_FOLDER/KIND.txt has the functions.
"""
import argparse
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(top, "interop"), os.path.join(top, "test", "system"), os.path.join(top, "bench")]
from counts import Instructions, slope  # noqa: E402
from harness import Client, free_port, skip  # noqa: E402
from rig import Keelson, RealPair, end  # noqa: E402
from small_requests import TOKEN, cpu_seconds  # noqa: E402
from webhook_peer import make_certificate  # noqa: E402

POLICIES = 10
IN_FORCE_SECONDS = 120  # callgrind is slow
GROUP = "/apis/admissionregistration.k8s.io/v1/"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
KINDS = ("bare", "webhook", "policies", "both")


def webhook(port, ca):
    return {"metadata": {"name": "bench"}, "webhooks": [{
        "name": "bench.example.com", "clientConfig": {"url": "https://127.0.0.1:%d/configmaps" % port, "caBundle": ca}, "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "timeoutSeconds": 30, "rules": [RULE]}]}


def install(client, kind, hook):
    """The required fields of the kind only."""
    for resource in ("validatingwebhookconfigurations", "validatingadmissionpolicybindings", "validatingadmissionpolicies"):
        client.must(200, "DELETE", GROUP + resource)
    if kind in ("policies", "both"):
        for i in range(POLICIES):
            name = "bench-%d" % i
            client.must(201, "POST", GROUP + "validatingadmissionpolicies", {"metadata": {"name": name}, "spec": {
                "matchConstraints": {"resourceRules": [RULE]}, "validations": [{"expression": "!has(object.data) || size(object.data) != %d" % refused_size(i)}]}})
            client.must(201, "POST", GROUP + "validatingadmissionpolicybindings", {"metadata": {"name": name}, "spec": {
                "policyName": name, "validationActions": ["Deny"]}})
    if kind in ("webhook", "both"):
        client.must(201, "POST", GROUP + "validatingwebhookconfigurations", hook)
    await_in_force(client, kind)


def refused_size(policy):
    """Each policy refuses config maps of one size, so that a dry run shows whether that policy is in force."""
    return 100 + policy


def await_in_force(client, kind):
    """Servers follow policies and webhooks by watches: every one of the kind must refuse its probe, every other one must let it pass."""
    probes = [({"key-%d" % n: "" for n in range(refused_size(i))}, kind in ("policies", "both")) for i in range(POLICIES)]
    probes.append(({"webhook-e2e-test": "webhook-disallow"}, kind in ("webhook", "both")))  # agnhost's own mark
    deadline = time.monotonic() + IN_FORCE_SECONDS
    for data, refused in probes:
        while (client.request("POST", "/api/v1/namespaces/default/configmaps?dryRun=All", {"metadata": {"generateName": "probe-"}, "data": data})[0] != 201) != refused:
            if time.monotonic() > deadline:
                raise RuntimeError("%s: a probe is %s after %d s" % (kind, "not refused" if refused else "refused", IN_FORCE_SECONDS))
            time.sleep(0.05)


def creates(server, body, count, streams=8):
    command = ["h2load", "-c", "2" if streams > 1 else "1", "-m", str(streams), "-t", "1", "-n", str(count), "-H", "Authorization: Bearer " + TOKEN, "-H", "Content-Type: application/json",
               "-d", body, "https://127.0.0.1:%d/api/v1/namespaces/default/configmaps" % server.port]
    before = cpu_seconds(server.pids())
    out = subprocess.run(command, capture_output=True, text=True).stdout
    used = cpu_seconds(server.pids()) - before
    status = re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", out)
    if status is None or int(status.group(1)) != count:
        raise RuntimeError("h2load: " + out[-600:])
    return used / count * 1e6


def measure_round(server, body, hook, options, best):
    """One round of all kinds; the lowest cost of each is kept in best."""
    client = Client(server)
    for kind in KINDS:
        install(client, kind, hook)
        creates(server, body, 200)
        best[kind] = min(best.get(kind, 1e9), creates(server, body, options.creates))
    client.close()


def measure(servers, body, hook, options):
    """All servers run all the time and take turns, so that they meet the same load of the machine."""
    results = {name: {} for name in servers}
    try:
        for server in servers.values():
            server.start()
        for _ in range(options.rounds):
            for name, server in servers.items():
                measure_round(server, body, hook, options, results[name])
    finally:
        for server in servers.values():
            server.stop()
    return results


def count(binary, folder, flags, body, hook, options):
    """Instructions and allocations of a create, of each kind."""
    counter = Instructions(binary, folder, flags)
    server, counts = counter.server, {}
    try:
        client = Client(server, timeout=300)
        for kind in KINDS:
            install(client, kind, hook)
            creates(server, body, 50, streams=1)
            seen = []
            for many in (options.creates, 2 * options.creates):
                counter.begin()
                creates(server, body, many, streams=1)
                seen.append(counter.finish())
            counts[kind] = slope(seen[1], seen[0], options.creates)
            counter.keep(kind, folder)
    finally:
        end(server.process)
    return counts


def report_counts(counts):
    print("%-16s %12s %12s %12s %12s %16s %16s" % ("of a create", *KINDS, "webhook call", "policy rule"))
    for what, unit in (("instructions", 1000), ("allocations", 1)):
        values = {kind: counts[kind][what] / unit for kind in KINDS}
        print("%-16s %12.1f %12.1f %12.1f %12.1f %16.1f %16.2f" % ("1000 " + what if unit > 1 else what, *(values[kind] for kind in KINDS), values["webhook"] - values["bare"],
                                                                  (values["policies"] - values["bare"]) / POLICIES))


def costs(best):
    """The columns of the table: each kind, a webhook call, a policy rule."""
    return [*(best[kind] for kind in KINDS), best["webhook"] - best["bare"], (best["policies"] - best["bare"]) / POLICIES]


def report(results):
    print("load average at the end: %s; %d CPUs" % (" ".join("%.1f" % load for load in os.getloadavg()), os.cpu_count()))
    print("%-16s %12s %12s %12s %12s %16s %16s" % ("CPU µs a create", *KINDS, "webhook call", "policy rule"))
    for name, best in results.items():
        print("%-16s %12.0f %12.0f %12.0f %12.0f %16.0f %16.1f" % (name, *costs(best)))
    if len(results) == 2:
        ours, theirs = (costs(results[name]) for name in ("keelson", "kube-apiserver"))
        print("%-16s %12s %12s %12s %12s %16s %16s" % ("ratio", *("%.1fx" % (b / a) for a, b in zip(ours, theirs))))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("keelson")
    parser.add_argument("folder", type=os.path.abspath)
    parser.add_argument("programs", nargs="?", default=os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "keelson", "bin"))
    parser.add_argument("--creates", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--only", choices=["keelson", "kube-apiserver"])
    options = parser.parse_args()
    if shutil.which("h2load") is None:
        skip("h2load is missing (Debian package nghttp2-client)")
    agnhost = os.path.join(options.programs, "agnhost")
    if not os.path.exists(agnhost):
        skip("agnhost is missing: interop/build.sh agnhost")
    shutil.rmtree(options.folder, ignore_errors=True)
    os.makedirs(options.folder)
    tokens, body = os.path.join(options.folder, "tokens.csv"), os.path.join(options.folder, "body.json")
    with open(tokens, "w") as f:
        f.write("%s,bench,bench,system:masters\n" % TOKEN)
    with open(body, "w") as f:
        json.dump({"metadata": {"generateName": "bench-"}, "data": {"key": "value"}}, f)
    certificate, key = make_certificate(os.path.join(options.folder, "peer"))
    port = free_port()
    with open(os.path.join(options.folder, "webhook.log"), "w") as log:
        peer = subprocess.Popen([agnhost, "webhook", "--tls-cert-file=" + certificate, "--tls-private-key-file=" + key, "--port=%d" % port], stdout=log, stderr=log)
    with open(certificate, "rb") as f:
        hook = webhook(port, base64.b64encode(f.read()).decode())
    flags = ["--token-auth-file=" + tokens]
    try:
        if options.instructions:
            return report_counts(count(options.keelson, options.folder, flags, body, hook, options))
        servers = {"keelson": Keelson(options.keelson, os.path.join(options.folder, "keelson"), flags=flags),
                   "kube-apiserver": RealPair(os.path.join(options.folder, "real"), options.programs, flags)}
        results = measure({name: server for name, server in servers.items() if options.only in (None, name)}, body, hook, options)
    finally:
        end(peer)
    report(results)


if __name__ == "__main__":
    main()
