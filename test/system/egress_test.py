#!/usr/bin/env python3
"""The egress selector with the protocol GRPC: logs, exec, webhooks and the store go through a konnectivity server. usage: egress_test.py KEELSON WORK_FOLDER
KONNECTIVITY_TEST_SERVER

The konnectivity server is the test's own (gRPC's library, server and agent in one program); interop/konnectivity_test.py does the same with the real ones.
exec needs a kubectl (see kubectl_test.py for which), the store an etcd (see two_servers_test.py).
"""
import json
import os
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fake_kubelet import FakeKubelet  # noqa: E402
from harness import Client, Server, config_map  # noqa: E402
from kubectl_test import find_kubectl  # noqa: E402
from two_servers_test import Etcd, EtcdServer, find_etcd, make_pki  # noqa: E402
from webhook_peer import WebhookPeer, make_certificate  # noqa: E402

checks = 0


def check(what, got, want):
    global checks
    checks += 1
    if got != want:
        raise AssertionError("%s: got %r, want %r" % (what, got, want))


class KonnectivityTestServer:
    def __init__(self, binary, socket):
        self.process = subprocess.Popen([binary, socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def stop(self):
        """The number of dials; None if it was requested before."""
        if self.process.stdin.closed:
            return None
        self.process.stdin.close()
        self.process.wait(30)
        return int(self.process.stdout.read().split()[0])


def write_config(folder, socket, names):
    path = os.path.join(folder, "egress.json")
    with open(path, "w") as f:
        json.dump({"apiVersion": "apiserver.k8s.io/v1beta1", "kind": "EgressSelectorConfiguration", "egressSelections": [
            {"name": name, "connection": {"proxyProtocol": "GRPC", "transport": {"uds": {"udsName": socket}}}} for name in names]}, f)
    return path


def dials(client):
    """(started, failed) of apiserver_egress_dialer_*, all labels together."""
    text = client.must(200, "GET", "/metrics", accept="text/plain").decode()
    counts = {"start_total": 0, "failure_count": 0}
    for line in text.splitlines():
        for name in counts:
            if line.startswith("apiserver_egress_dialer_dial_%s{" % name):
                assert 'protocol="grpc"' in line and 'transport="uds"' in line, line
                counts[name] += int(float(line.split()[-1]))
    return counts["start_total"], counts["failure_count"]


def make_pod(client, kubelet_port):
    client.must(201, "POST", "/api/v1/nodes", {"metadata": {"name": "node-1"}, "status": {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}], "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet_port}}}})
    client.must(201, "POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    client.must(201, "POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "one"}, "spec": {
        "nodeName": "node-1", "containers": [{"name": "c", "image": "i"}]}})
    client.must(200, "PATCH", "/api/v1/namespaces/default/pods/one/status", {"status": {
        "phase": "Running", "podIP": "127.0.0.9", "podIPs": [{"ip": "127.0.0.9"}], "conditions": [{"type": "Ready", "status": "True"}]}},
        content_type="application/merge-patch+json")


def carry_logs(client, kubelet):
    kubelet.log("c", "x" * 100_000)
    kubelet.log("c", "last")
    status, body = client.request("GET", "/api/v1/namespaces/default/pods/one/log")
    check("log", (status, body), (200, b"x" * 100_000 + b"\nlast\n"))


def carry_exec(server, folder):
    try:
        binary = find_kubectl()
    except SystemExit:
        print("exec is left out: no kubectl")
        return
    for websockets in ("true", "false"):
        ran = subprocess.run([binary, "--kubeconfig=" + server.kubeconfig, "exec", "-i", "one", "--", "sh", "-c", "cat; echo err >&2; exit 7"], input=b"y" * 300_000,
                             capture_output=True, timeout=60, env=dict(os.environ, KUBECTL_REMOTE_COMMAND_WEBSOCKETS=websockets, HOME=folder))
        # client-go v1.32 may read the first, empty message of a stream before it knows the stream, and says so.
        errors = [line for line in ran.stderr.splitlines() if b"Unknown stream id" not in line]
        check("exec, WebSocket " + websockets, (ran.returncode, len(ran.stdout), errors[0]), (7, 300_000, b"err"))


def carry_webhooks(client, peer):
    client.must(201, "POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", {"metadata": {"name": "hook"}, "webhooks": [{
        "name": "hook.example.com", "clientConfig": peer.client_config("/validate"), "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]}]})
    deadline = time.monotonic() + 30
    for number in range(1000):
        client.must(201, "POST", "/api/v1/namespaces/default/configmaps", config_map("hooked-%d" % number, {}))
        if peer.take():
            break
        assert time.monotonic() < deadline, "the webhook is not called"
    check("webhook", True, True)


def without_proxy(client, kubelet):
    """The proxy is gone: nothing is dialled past it."""
    before = len(kubelet.requests)
    status, answer = client.request("GET", "/api/v1/namespaces/default/pods/one/log?timestamps=true")
    check("log without the proxy", status, 500)
    assert "connection error: desc = \\\"transport: Error while dialing: dial unix" in json.dumps(answer), answer
    check("requests past the proxy", len(kubelet.requests), before)
    assert dials(client)[1] > 0


def use_cluster(server, kubelet, peer, proxy):
    """Returns the server's count of dials that succeeded."""
    client = Client(server)
    make_pod(client, kubelet.port)
    carry_logs(client, kubelet)
    carry_exec(server, server.folder)
    carry_webhooks(client, peer)
    started, failed = dials(client)
    check("failed dials", failed, 0)
    assert started >= 2, started
    seen = proxy.stop()
    if seen is not None:
        check("dials that the proxy saw", seen, started)
    without_proxy(client, kubelet)
    client.close()
    return started


def run_cluster(binary, folder, start_proxy):
    socket = os.path.join(folder, "proxy.sock")
    proxy = start_proxy(socket)
    kubelet = FakeKubelet(*make_certificate(folder))
    peer = WebhookPeer(folder)
    server = Server(binary, folder, flags=["--egress-selector-config-file=" + write_config(folder, socket, ["cluster", "controlplane"])])
    try:
        return use_cluster(server.start(), kubelet, peer, proxy)
    finally:
        server.stop()
        kubelet.stop()
        proxy.stop()


class ProxiedEtcdServer(EtcdServer):
    def __init__(self, binary, folder, etcd, pki, config, flags=()):
        super().__init__(binary, folder, etcd, "127.0.0.1", pki)
        self.arguments += ["--egress-selector-config-file=" + config] + list(flags)


def etcd_certificates(pki):
    """The flags of a client of the TLS etcd."""
    return ["--etcd-cafile=" + os.path.join(pki, "ca.crt"), "--etcd-certfile=" + os.path.join(pki, "admin.crt"), "--etcd-keyfile=" + os.path.join(pki, "admin.key")]


def doctor(binary, folder, etcd, config, flags):
    """keelson doctor reaches etcd in the same way; without the proxy it does not reach it."""
    ran = subprocess.run([binary, "doctor", "--etcd-servers=" + etcd.url, "--egress-selector-config-file=" + config, "--cert-dir=" + os.path.join(folder, "doctor")] + flags,
                         capture_output=True, text=True, timeout=120)
    return ran.stdout + ran.stderr


def use_store(binary, folder, server, proxy, etcd, config, flags):
    client = Client(server)
    client.must(201, "POST", "/api/v1/namespaces/default/configmaps", config_map("stored", {"key": "v" * 500_000}))
    check("stored", len(client.must(200, "GET", "/api/v1/namespaces/default/configmaps/stored")["data"]["key"]), 500_000)
    started, failed = dials(client)
    check("etcd: failed dials", failed, 0)
    assert started >= 1, started
    client.close()
    server.stop()
    told = doctor(binary, folder, etcd, config, flags)
    assert etcd.url + " answers in" in told, "doctor through the proxy: " + told
    migrated = subprocess.run([binary, "migrate", "--from=" + etcd.url, "--to=" + os.path.join(folder, "migrated"), "--egress-selector-config-file=" + config] +
                              [flag.replace("--etcd-", "--from-") for flag in flags], capture_output=True, text=True, timeout=300)
    check("migrate through the proxy", migrated.returncode, 0)
    seen = proxy.stop()
    if seen is not None:
        assert seen > started, (seen, started)
    told = doctor(binary, folder, etcd, config, flags)
    check("doctor without the proxy", etcd.url + " answers in" in told, False)


def run_store(binary, folder, start_proxy, tls=False):
    try:
        etcd_binary = find_etcd()
    except SystemExit:
        print("the store is left out: no etcd")
        return
    os.makedirs(folder)
    socket = os.path.join(folder, "proxy.sock")
    pki = make_pki(os.path.join(folder, "pki"))
    proxy, etcd = start_proxy(socket), Etcd(etcd_binary, folder, pki if tls else None)
    config, flags = write_config(folder, socket, ["etcd"]), etcd_certificates(pki) if tls else []
    server = ProxiedEtcdServer(binary, folder, etcd.url, pki, config, flags)
    try:
        etcd.await_listening()  # so that no dial of the server fails
        use_store(binary, folder, server.start(), proxy, etcd, config, flags)
    finally:
        server.stop()
        proxy.stop()
        etcd.stop()


def main():
    binary, folder, konnectivity = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), os.path.abspath(sys.argv[3])
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)

    def start(socket):
        return KonnectivityTestServer(konnectivity, socket)
    started = run_cluster(binary, folder, start)
    run_store(binary, os.path.join(folder, "store"), start)
    run_store(binary, os.path.join(folder, "store-tls"), start, tls=True)
    print("%d checks passed; %d connections through the proxy" % (checks, started))


if __name__ == "__main__":
    main()
