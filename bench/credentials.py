#!/usr/bin/env python3
"""Cost of a GET with a client certificate and with a service account token.
usage: credentials.py KEELSON WORK_FOLDER [--requests N] [--rounds N] [--instructions]

Both users have the same rights, by the same ClusterRoleBinding, and one warm keep-alive HTTP/1.1 connection each, made by the same code: the requests differ in
the Authorization header only. CPU time of the server: rounds of the two follow each other and the best of each counts. --instructions counts under
valgrind's callgrind instead, which a busy machine does not change; WORK_FOLDER/{certificate,token}.txt then have the functions.
"""
import argparse
import os
import shutil
import ssl
import subprocess
import sys

sys.dont_write_bytecode = True
top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(top, "bench"), os.path.join(top, "interop"), os.path.join(top, "test", "system")]
from counts import Instructions, slope  # noqa: E402
from harness import Client, Server, config_map  # noqa: E402
from rig import end  # noqa: E402

OBJECT = "/api/v1/namespaces/default/configmaps/small"
RBAC = "/apis/rbac.authorization.k8s.io/v1/"
WARM = 300  # requests before the measured ones


class Reader(Client):
    def __init__(self, server, pair=None, token=None):
        context = ssl.create_default_context(cafile=os.path.join(server.pki, "ca.crt"))
        if pair:
            context.load_cert_chain(*pair)
        super().__init__(server, context=context)
        self.headers = {"Accept": "application/json"}
        if token:
            self.headers["Authorization"] = "Bearer " + token

    def get(self, count):
        for _ in range(count):
            self.connection.request("GET", OBJECT, headers=self.headers)
            response = self.connection.getresponse()
            response.read()
            assert response.status == 200, response.status


def client_certificate(server, folder):
    """A certificate of the user `reader`, signed by the server's own authority."""
    path = lambda name: os.path.join(folder, name)  # noqa: E731
    run = lambda *arguments: subprocess.run(("openssl",) + arguments, check=True, capture_output=True)  # noqa: E731
    with open(path("reader.ext"), "w") as f:
        f.write("extendedKeyUsage=clientAuth\n")
    run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", path("reader.key"), "-out", path("reader.csr"), "-subj", "/O=readers/CN=reader")
    run("x509", "-req", "-in", path("reader.csr"), "-CA", os.path.join(server.pki, "ca.crt"), "-CAkey", os.path.join(server.pki, "ca.key"), "-CAserial",
        path("serial"), "-CAcreateserial", "-days", "2", "-extfile", path("reader.ext"), "-out", path("reader.crt"))
    return path("reader.crt"), path("reader.key")


def prepare(server, folder):
    """{name: function that connects}"""
    admin = Client(server)
    admin.must(201, "POST", os.path.dirname(OBJECT), config_map("small", {"key": "value"}))
    admin.must(201, "POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "reader"}})
    admin.must(201, "POST", RBAC + "clusterrolebindings", {"metadata": {"name": "reader"}, "subjects": [
        {"kind": "ServiceAccount", "name": "reader", "namespace": "default"}, {"kind": "User", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}})
    token = admin.must(201, "POST", "/api/v1/namespaces/default/serviceaccounts/reader/token", {"spec": {}})["status"]["token"]
    admin.close()
    pair = client_certificate(server, folder)
    return {"certificate": lambda: Reader(server, pair=pair), "token": lambda: Reader(server, token=token)}


def cpu_time(server, clients, requests, rounds):
    best = {}
    for _ in range(rounds):
        for name, connect in clients.items():
            client = connect()
            client.get(WARM)
            before = server.cpu_seconds()
            client.get(requests)
            best[name] = min(best.get(name, 1e9), (server.cpu_seconds() - before) / requests * 1e6)
            client.close()
    return best


def instructions(counter, clients, requests, folder):
    counts = {}
    for name, connect in clients.items():
        client = connect()
        client.get(WARM)
        runs = []
        for count in (requests, 2 * requests):
            counter.begin()
            client.get(count)
            runs.append(counter.finish())
        counter.keep(name, folder)
        counts[name] = slope(runs[1], runs[0], requests)
        client.close()
    return counts


def show(what, figures, unit):
    certificate, token = figures["certificate"], figures["token"]
    print("GET, %s: certificate %.1f%s, service account token %.1f%s (%+.1f %%)" % (what, certificate, unit, token, unit, (token / certificate - 1) * 100))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("keelson")
    parser.add_argument("folder")
    parser.add_argument("--requests", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--instructions", action="store_true")
    options = parser.parse_args()
    folder = os.path.abspath(options.folder)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    if options.instructions:
        counter = Instructions(options.keelson, folder, [])
        try:
            counts = instructions(counter, prepare(counter.server, folder), options.requests or 1000, folder)
        finally:
            end(counter.server.process)
        for what in ("instructions", "allocations"):
            show(what, {name: count[what] for name, count in counts.items()}, "")
        return
    server = Server(options.keelson, folder).start()
    try:
        best = cpu_time(server, prepare(server, folder), options.requests or 10000, options.rounds)
    finally:
        server.stop()
    show("CPU of the server", best, " µs")


if __name__ == "__main__":
    main()
