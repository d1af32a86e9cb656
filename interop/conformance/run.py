#!/usr/bin/env python3
"""Kubernetes' own conformance tests that need no container runtime, against the server with controller-manager, scheduler and kwok.

usage: run.py KEELSON WORK_FOLDER BIN_FOLDER [--group api-machinery|others|auth|webhooks|aggregator|alone] [--focus REGEX] [--skip-expected] [--procs N] [--shrink]
              [--real] [--list FILE] [--no-second-attempt]

The tests are those of api-machinery.txt, others.txt, auth.txt (sig-auth's that are not conformance), webhooks.txt (AdmissionWebhook, run
with local processes instead of pods, in their own run) and aggregator.txt (likewise) beside this file, and alone.txt (what needs no other controllers than the
embedded ones, in a run without kube-controller-manager): every one of them passes on kube-apiserver on the same rig
(--real runs them there). expected-failures.txt names those that fail here, one a line: the name, a tab, the reason. It may only shrink:
a test in it that passes fails the run until its line is gone (--shrink removes such lines). A test that fails and is not in it
is tried a second time alone; if it fails again the run fails. Writes junit.xml into the work folder.
"""
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(HERE))
from outcomes import conclude, expected_failures, lines, read_junit, write_junit  # noqa: E402
from aggregation_test import front_proxy_flags  # noqa: E402
from local_servers import LocalServers  # noqa: E402
from two_servers_test import make_pki  # noqa: E402
from rig import POD_RANGE, Client, Controllers, Keelson, RealPair, arguments_of, end, parser_of  # noqa: E402

NODES = 4
EXPECTED_MINUTES = 6
EXPECTED_PROCS = 8
GROUPS = ["api-machinery", "others", "auth", "webhooks", "aggregator", "alone"]
LOCAL = ("webhooks", "aggregator")  # the groups whose pods run as local processes
ALONE = "alone"                     # the group that runs with the embedded controllers
# Endpoint slices may not hold loopback addresses, and the tests wait for them. Nothing is ever sent to these (RFC 5737).
WEBHOOK_PODS = "192.0.2.0/24"
EXPECTED = os.path.join(HERE, "expected-failures.txt")


def wait_for_rig(server):
    """Nodes ready and the controllers at work; the tests would wait too, but would not say for what."""
    client, deadline = Client(server), time.monotonic() + 180
    while time.monotonic() < deadline:
        nodes = client.request("GET", "/api/v1/nodes")[1].get("items", [])
        ready = sum(any(c["type"] == "Ready" and c["status"] == "True" for c in n["status"].get("conditions", [])) and not n["spec"].get("taints") for n in nodes)
        account = client.request("GET", "/api/v1/namespaces/default/serviceaccounts/default")[0]
        if ready == NODES and account == 200:
            client.close()
            return
        time.sleep(0.5)
    sys.exit("conformance: the rig did not come up: %d nodes ready, service account %s" % (ready, account))


def let_schedule(server):
    """Without kube-controller-manager the initial taint of a node is not removed."""
    client, deadline = Client(server), time.monotonic() + 180
    waiting = {"node-%02d" % i for i in range(NODES)}
    while waiting and time.monotonic() < deadline:
        for name in sorted(waiting):
            node = client.must(200, "GET", "/api/v1/nodes/" + name)
            if any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", [])):
                client.must(200, "PATCH", "/api/v1/nodes/" + name, {"spec": {"taints": None}}, content_type="application/merge-patch+json")
                waiting.discard(name)
        time.sleep(0.1)
    client.close()


def attempt(names, server, programs, folder, procs, minutes):
    """Runs the tests with these names. Returns name -> (outcome, message, seconds)."""
    os.makedirs(folder, exist_ok=True)
    # Ginkgo matches against the suite's name, a space and the test's name; some names are the end or the beginning of others.
    focus = " (" + "|".join(re.escape(name) for name in names) + ")$"
    junit = os.path.join(folder, "ginkgo.xml")
    command = [os.path.join(programs, "ginkgo"), "run", "--procs=%d" % procs, "--no-color", "--keep-going", "--timeout=%dm" % minutes, "--focus=" + focus, "--output-dir=" + folder,
               "--junit-report=ginkgo.xml", os.path.join(programs, "e2e.test"), "--", "--kubeconfig=" + server.kubeconfig, "--provider=skeleton", "--kubectl-path=" + os.path.join(programs, "kubectl"),
               "--dump-logs-on-failure=false", "--disable-log-dump", "--num-nodes=%d" % NODES, "--e2e-output-dir=" + folder, "--repo-root=" + folder]
    log = open(os.path.join(folder, "e2e.log"), "w")
    environment = dict(os.environ, KUBECONFIG=server.kubeconfig, TMPDIR=folder)
    process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment)
    try:
        process.wait(minutes * 60 + 60)
    except subprocess.TimeoutExpired:
        pass
    finally:
        end(process, 30)
    if not os.path.exists(junit):
        sys.exit("conformance: the tests did not run; see " + log.name)
    ran = read_junit(junit)
    for name in list(ran):  # labels may stand at the end of the name, as their own list
        ran.setdefault(re.sub(r" \[(sig-[^\]]*|[^\]]*, [^\]]*)\]$", "", name), ran[name])
    return {name: ran.get(name, ("failed", "there is no such test in this version", 0.0)) for name in names}


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--group", choices=GROUPS)
    parser.add_argument("--focus", help="only tests whose name contains a match")
    parser.add_argument("--list", help="the names of this file instead of the lists kept here")
    parser.add_argument("--skip-expected", action="store_true", help="do not run what is expected to fail")
    parser.add_argument("--real", action="store_true", help="kube-apiserver and etcd in Keelson's place")
    parser.add_argument("--procs", type=int, default=4, help="tests at a time; most of them wait most of the time")
    parser.add_argument("--minutes", type=int, default=120, help="the whole run ends after this time")
    parser.add_argument("--shrink", action="store_true", help="remove the lines of expected-failures.txt that pass")
    parser.add_argument("--no-second-attempt", action="store_true")
    a = arguments_of(parser)
    expected = {} if a.real else expected_failures(EXPECTED)
    local, alone = a.group in LOCAL, a.group == ALONE
    if alone and a.real:
        sys.exit("conformance: kube-apiserver has no embedded controllers")
    names = lines(a.list) if a.list else [n for g in GROUPS if a.group == g or (a.group is None and g not in (*LOCAL, ALONE)) for n in lines(os.path.join(HERE, g + ".txt"))]
    names = [n for n in names if not a.focus or re.search(a.focus, n)]
    left_out = [n for n in names if a.skip_expected and n in expected]
    names = [n for n in names if n not in set(left_out)]
    if not names:
        sys.exit("conformance: no test has such a name")
    folder = a.folder
    begin = time.monotonic()
    # One test waits until its continue token has been compacted away; sig-auth's expect NodeRestriction, which kubeadm and others enable.
    flags = ["--etcd-compaction-interval=1m", "--enable-admission-plugins=NodeRestriction"]
    if a.group == "aggregator":
        os.makedirs(folder, exist_ok=True)
        flags += front_proxy_flags(make_pki(os.path.join(folder, "front-proxy")))
    server = RealPair(os.path.join(folder, "server"), a.programs, flags) if a.real else Keelson(a.keelson, os.path.join(folder, "server"), flags, controllers=alone)
    server.start()
    controllers = Controllers(server, folder, a.programs)
    second, servers = [], None
    try:
        controllers.start(NODES, pods=WEBHOOK_PODS if local else POD_RANGE, manager=not alone)
        if alone:
            let_schedule(server)
        wait_for_rig(server)
        if local:
            servers = LocalServers(server, folder, a.programs)
        print("conformance: %d tests, %d at a time; log in %s" % (len(names), a.procs, os.path.join(folder, "first", "e2e.log")), flush=True)
        known = [n for n in names if n in expected]
        results = {}
        if len(known) < len(names):
            results = attempt([n for n in names if n not in expected], server, a.programs, os.path.join(folder, "first"), a.procs, a.minutes)
        if known:
            # Some of them would wait without end for what is not built: they run in a separate phase with enough parallelism that they do not delay others.
            print("conformance: %d that are expected to fail, for at most %d minutes" % (len(known), EXPECTED_MINUTES), flush=True)
            results.update(attempt(known, server, a.programs, os.path.join(folder, "expected"), EXPECTED_PROCS, EXPECTED_MINUTES))
            results.update({n: ("failed", r[1], r[2]) for n, r in results.items() if n in expected and r[0] == "skipped"})  # not reached in that time
        again = [n for n in names if results[n][0] == "failed" and n not in expected]
        if again and not a.no_second_attempt:
            print("conformance: %d failed and are tried once more, alone" % len(again), flush=True)
            for name, result in attempt(again, server, a.programs, os.path.join(folder, "second"), 1, a.minutes).items():
                if result[0] == "passed":
                    second.append(name)
                results[name] = result
    finally:
        if servers:
            servers.stop()
        controllers.stop()
        server.stop()
    write_junit(os.path.join(folder, "junit.xml"), "conformance", results, expected)
    print("conformance: %.0f minutes; JUnit in %s" % ((time.monotonic() - begin) / 60, os.path.join(folder, "junit.xml")))
    sys.exit(conclude("conformance", results, EXPECTED, expected, a.shrink, second, left_out))


if __name__ == "__main__":
    main()
