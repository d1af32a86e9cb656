#!/usr/bin/env python3
"""Coordinated leader election (gate CoordinatedLeaderElection). usage: leader_election_test.py KEELSON FOLDER

The server elects the candidate with the oldest emulation version, asks a better one's predecessor to go, leaves the choice to third-party strategies and
deletes expired candidates. A lease of the controller that another server has taken comes back when it expires. Without the candidates' API the server is
not ready, as upstream.
"""
import datetime
import os
import shutil
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, Server  # noqa: E402

GATE = "--feature-gates=CoordinatedLeaderElection=true"
API = "--runtime-config=coordination.k8s.io/v1beta1=true"
TIMERS = ["--coordinated-leadership-lease-duration=3s", "--coordinated-leadership-renew-deadline=2s", "--coordinated-leadership-retry-period=200ms"]
CANDIDATES = "/apis/coordination.k8s.io/v1beta1/namespaces/default/leasecandidates"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/%s/leases"
LEADER = LEASES % "kube-system" + "/leader-election-controller"


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def now(ago=0):
    return (datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=ago)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def candidate(name, lease, version, strategy="OldestEmulationVersion", renewed_ago=0):
    return {"metadata": {"name": name}, "spec": {"leaseName": lease, "binaryVersion": "1.36.0", "emulationVersion": version, "strategy": strategy,
                                                 "renewTime": now(renewed_ago)}}


def wait_for(client, path, accept, what, timeout=60):
    """The object once `accept` takes it (None: it does not exist)."""
    deadline = time.monotonic() + timeout
    while True:
        status, answer = client.request("GET", path)
        if accept(answer if status == 200 else None):
            return answer
        check(time.monotonic() < deadline, "%s: %s" % (what, answer))
        time.sleep(0.05)


def holder(lease):
    return lease and lease["spec"].get("holderIdentity")


def elections(client):
    _, health = client.request("GET", "/healthz?verbose", accept="text/plain")
    check("[+]poststarthook/start-kube-apiserver-coordinated-leader-election-controller ok" in health.decode(), health)
    client.must(201, "POST", CANDIDATES, candidate("a", "app", "1.35.0"))
    lease = wait_for(client, LEASES % "default" + "/app", lambda lease: holder(lease) == "a", "the only candidate holds the lease")
    check((lease["spec"]["strategy"], lease["spec"]["leaseDurationSeconds"]) == ("OldestEmulationVersion", 5), lease)
    # The holder renews for a minute: a better candidate is preferred, and does not take the lease away.
    lease["spec"].update(renewTime=now(), leaseDurationSeconds=60)
    client.must(200, "PUT", LEASES % "default" + "/app", lease)
    client.must(201, "POST", CANDIDATES, candidate("b", "app", "1.34.0"))
    for _ in range(2):  # the election needs an answer of both
        got = client.must(200, "GET", CANDIDATES + "/a")
        got["spec"]["renewTime"] = now()
        client.must(200, "PUT", CANDIDATES + "/a", got)
        lease = wait_for(client, LEASES % "default" + "/app", lambda lease: holder(lease) == "a", "the holder stays")
    lease = wait_for(client, LEASES % "default" + "/app", lambda lease: lease["spec"].get("preferredHolder") == "b", "the older version is preferred")
    check(holder(lease) == "a", lease)
    client.must(201, "POST", CANDIDATES, candidate("c", "foreign", "1.35.0", strategy="example.com/own"))
    lease = wait_for(client, LEASES % "default" + "/foreign", lambda lease: lease is not None, "a lease of a third party's strategy")
    check(holder(lease) is None and lease["spec"]["strategy"] == "example.com/own", lease)
    client.must(201, "POST", CANDIDATES, candidate("expired", "old", "1.35.0", renewed_ago=3600))
    wait_for(client, CANDIDATES + "/expired", lambda got: got is None, "an expired candidate is deleted")
    # A candidate that was silent for a minute is asked first.
    client.must(201, "POST", CANDIDATES, candidate("silent", "quiet", "1.35.0", renewed_ago=60))
    wait_for(client, CANDIDATES + "/silent", lambda got: "pingTime" in got["spec"], "a silent candidate is asked")


def one_server(binary, folder):
    server = Server(binary, folder, [GATE, API, "--lease-candidate-gc-period=100ms"] + TIMERS, in_memory=True).start()
    try:
        client = Client(server)
        leader = wait_for(client, LEADER, holder, "the server leads")
        check(leader["spec"]["leaseDurationSeconds"] == 3, leader)
        taken_lease(client)
        elections(client)
    finally:
        server.stop()


def taken_lease(client):
    """Another server holds the lease for a second: this one stops electing, then leads again."""
    own = holder(client.must(200, "GET", LEADER))
    while True:
        lease = client.must(200, "GET", LEADER)
        lease["spec"].update(holderIdentity="another", renewTime=now(), leaseDurationSeconds=1)
        status, answer = client.request("PUT", LEADER, lease)
        if status == 200:
            break
        check(status == 409, answer)  # renewed meanwhile
    lease = wait_for(client, LEADER, lambda got: holder(got) == own, "the lease comes back when it has expired")
    check(lease["spec"]["leaseTransitions"] >= 1, lease)


def not_ready(binary, folder):
    server = Server(binary, folder, [GATE])
    server._wait_ready = lambda begin: True  # it never is
    server.start()
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                server.pki = server._find_pki()
                status, answer = Client(server).request("GET", "/readyz?verbose", accept="text/plain")
                if status == 500 and b"[-]informer-sync failed" in answer and b"[+]poststarthook/start-kube-apiserver-coordinated" in answer:
                    return
            except (OSError, TypeError):
                pass  # no port or no certificates so far
            time.sleep(0.05)
        raise AssertionError("not seen: not ready because candidates are not served")
    finally:
        server.stop()


def main():
    binary, folder = sys.argv[1:3]
    shutil.rmtree(folder, ignore_errors=True)
    one_server(binary, os.path.join(folder, "one"))
    not_ready(binary, os.path.join(folder, "not_ready"))
    print("leader election: ok")


if __name__ == "__main__":
    main()
