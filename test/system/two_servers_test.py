#!/usr/bin/env python3
"""Two servers on one etcd. usage: two_servers_test.py KEELSON WORK_FOLDER [SERVICES]

Both create services with cluster IPs and node ports at the same time, by several clients each: no address and no port is given out twice, and
what one has written the other sees. The service kubernetes has the endpoints of both; when one is killed, its lease expires and its
endpoint goes. etcd is $KEELSON_ETCD, else keelson/bin/etcd in the user's cache (interop/build.sh etcd), else the one in PATH.
"""
import os
import shutil
import socket
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, Server, free_port, skip  # noqa: E402

CLIENTS = 4


def find_etcd():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    for candidate in (os.environ.get("KEELSON_ETCD"), os.path.join(cache, "keelson", "bin", "etcd"), shutil.which("etcd")):
        if candidate and os.path.exists(candidate):
            return candidate
    skip("no etcd: set KEELSON_ETCD, or run interop/build.sh etcd where Go is installed")


class Etcd:
    """With the folder of make_pki(), its clients use TLS and have certificates of that authority."""

    def __init__(self, binary, folder, pki=None):
        self.url, peer = "%s://127.0.0.1:%d" % ("https" if pki else "http", free_port()), "http://127.0.0.1:%d" % free_port()
        flags = ["--client-cert-auth", "--trusted-ca-file=" + os.path.join(pki, "ca.crt"), "--cert-file=" + os.path.join(pki, "server.crt"),
                 "--key-file=" + os.path.join(pki, "server.key")] if pki else []
        log = open(os.path.join(folder, "etcd.log"), "w")
        self.process = subprocess.Popen([binary, "--data-dir=" + os.path.join(folder, "etcd"), "--listen-client-urls=" + self.url, "--advertise-client-urls=" + self.url,
                                         "--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=default=" + peer, "--unsafe-no-fsync"] + flags,
                                        stdout=log, stderr=log)

    def await_listening(self):
        host, port = self.url.split("//")[1].split(":")
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection((host, int(port)), 10).close()
                return self
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise AssertionError("etcd does not listen")
                time.sleep(0.05)

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


def make_pki(folder):
    """An authority, a serving certificate, an admin and a key for service account tokens: what kube-apiserver is given."""
    def openssl(*arguments):
        subprocess.run(("openssl",) + arguments, check=True, capture_output=True, cwd=folder)
    os.makedirs(folder)
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-days", "2", "-subj", "/CN=ca")
    with open(os.path.join(folder, "extensions"), "w") as f:
        f.write("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n")
    for name, subject in (("server", "/CN=kube-apiserver"), ("admin", "/O=system:masters/CN=admin")):
        openssl("req", *key, "-keyout", name + ".key", "-out", name + ".csr", "-subj", subject)
        openssl("x509", "-req", "-in", name + ".csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-out", name + ".crt", "-days", "2", "-extfile", "extensions")
    openssl("genrsa", "-out", "sa.key", "2048")
    openssl("rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub")
    return folder


class EtcdServer(Server):
    """A server that is started as a kube-apiserver is: its store is etcd, its certificates are given."""

    def __init__(self, binary, folder, etcd, address, pki):
        super().__init__(binary, folder)
        self.pki_folder = pki

        def file(name):
            return os.path.join(pki, name)
        self.arguments = ["--etcd-servers=" + etcd, "--bind-address=127.0.0.1", "--advertise-address=" + address, "--endpoint-reconciler-type=lease",
                          "--service-cluster-ip-range=10.0.0.0/24", "--service-node-port-range=30000-30999", "--authorization-mode=RBAC",
                          "--tls-cert-file=" + file("server.crt"), "--tls-private-key-file=" + file("server.key"), "--client-ca-file=" + file("ca.crt"),
                          "--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + file("sa.pub"),
                          "--service-account-signing-key-file=" + file("sa.key")]

    def command(self):
        return [self.binary, "--secure-port=%d" % self.port] + self.arguments

    def _find_pki(self):
        return self.pki_folder


def create_services(server, prefix, count, results, errors):
    try:
        client = Client(server, timeout=120)
        for i in range(count):
            status, answer = client.request("POST", "/api/v1/namespaces/default/services", {
                "metadata": {"name": "%s-%d" % (prefix, i)}, "spec": {"type": "NodePort", "ports": [{"name": "p%d" % n, "port": 80 + n} for n in range(1 + i % 2)]}})
            if status != 201:
                raise AssertionError("service %s-%d: %d %s" % (prefix, i, status, answer))
            results.append((answer["metadata"]["name"], answer["spec"]["clusterIP"], [p["nodePort"] for p in answer["spec"]["ports"]]))
        client.close()
    except Exception as e:
        errors.append(e)


def addresses(client):
    answer = client.must(200, "GET", "/api/v1/namespaces/default/endpoints/kubernetes")
    return sorted(a["ip"] for subset in answer.get("subsets") or [] for a in subset.get("addresses", []))


def wait_for(what, condition, seconds):
    begin, seen = time.monotonic(), None
    while time.monotonic() - begin < seconds:
        seen = condition()
        if seen[0]:
            print("%s after %.1f s" % (what, time.monotonic() - begin))
            return
        time.sleep(0.2)
    raise AssertionError("%s: not within %d s, seen %s" % (what, seconds, seen[1]))


def main():
    binary, folder = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 15
    etcd_binary = find_etcd()
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    folder = os.path.abspath(folder)
    pki = make_pki(os.path.join(folder, "pki"))
    etcd = Etcd(etcd_binary, folder)
    servers = []
    try:
        # Advertised addresses that an Endpoints object may hold; nothing connects to them.
        for number, address in enumerate(("10.99.0.1", "10.99.0.2")):
            servers.append(EtcdServer(binary, os.path.join(folder, "server-%d" % number), etcd.url, address, pki).start())
        clients = [Client(s) for s in servers]
        wait_for("both servers are endpoints of kubernetes", lambda: (lambda a: (a == ["10.99.0.1", "10.99.0.2"], a))(addresses(clients[0])), 60)

        results, errors, threads = [], [], []
        for number, server in enumerate(servers):
            for c in range(CLIENTS):
                threads.append(threading.Thread(target=create_services, args=(server, "s%d-%d" % (number, c), count, results, errors)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        ips = [r[1] for r in results]
        ports = [p for r in results for p in r[2]]
        assert len(results) == 2 * CLIENTS * count, len(results)
        assert len(set(ips)) == len(ips), "an address was given out twice: %s" % sorted(ips)
        assert len(set(ports)) == len(ports), "a node port was given out twice: %s" % sorted(ports)
        print("%d services, %d node ports through two servers: none twice" % (len(ips), len(ports)))
        for client in clients:
            seen = {s["metadata"]["name"]: s["spec"]["clusterIP"] for s in client.must(200, "GET", "/api/v1/namespaces/default/services")["items"]}
            assert all(seen.get(name) == ip for name, ip, _ in results), "a server does not see all services"

        # An address allocated by one server is refused by the other, and allocated again once it is free.
        name, ip, taken = results[0]
        other = clients[1 if name.startswith("s0") else 0]
        body = {"metadata": {"name": "again"}, "spec": {"type": "NodePort", "clusterIP": ip, "ports": [{"port": 80, "nodePort": taken[0]}]}}
        status, answer = other.request("POST", "/api/v1/namespaces/default/services", body)
        assert status == 422 and "already allocated" in answer["message"], (status, answer)
        other.must(200, "DELETE", "/api/v1/namespaces/default/services/" + name)

        def again():
            status, answer = other.request("POST", "/api/v1/namespaces/default/services", body)
            return status == 201, answer
        wait_for("a released address and port are free on the other server", again, 30)

        servers[1].kill()
        wait_for("the killed server's endpoint is gone", lambda: (lambda a: (a == ["10.99.0.1"], a))(addresses(clients[0])), 90)
    finally:
        for server in servers:
            if server.process and server.process.poll() is None:
                server.stop()
        etcd.stop()
    print("two servers: passed")


if __name__ == "__main__":
    main()
