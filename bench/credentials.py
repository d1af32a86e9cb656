#!/usr/bin/env python3
"""CPU time of a GET with a client certificate and with a service account token. usage: credentials.py KEELSON WORK_FOLDER [--requests N] [--rounds N]

One keep-alive connection each; rounds of the two follow each other and the best of each counts.
"""
import argparse
import os
import shutil
import ssl
import sys

sys.dont_write_bytecode = True
top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(top, "test", "system")]
from harness import Client, Server, config_map  # noqa: E402

OBJECT = "/api/v1/namespaces/default/configmaps/small"
RBAC = "/apis/rbac.authorization.k8s.io/v1/"


class WithToken(Client):
    def __init__(self, server, token):
        super().__init__(server, context=ssl.create_default_context(cafile=os.path.join(server.pki, "ca.crt")))
        self.headers = {"Accept": "application/json", "Authorization": "Bearer " + token}

    def get(self):
        self.connection.request("GET", OBJECT, headers=self.headers)
        response = self.connection.getresponse()
        response.read()
        assert response.status == 200, response.status


class WithCertificate(WithToken):
    def __init__(self, server):
        Client.__init__(self, server)
        self.headers = {"Accept": "application/json"}


def measure(server, client, count):
    for _ in range(500):
        client.get()
    before = server.cpu_seconds()
    for _ in range(count):
        client.get()
    return (server.cpu_seconds() - before) / count * 1e6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("keelson")
    parser.add_argument("folder")
    parser.add_argument("--requests", type=int, default=10000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    server = Server(options.keelson, options.folder).start()
    try:
        admin = Client(server)
        admin.must(201, "POST", os.path.dirname(OBJECT), config_map("small", {"key": "value"}))
        admin.must(201, "POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "reader"}})
        admin.must(201, "POST", RBAC + "clusterrolebindings", {"metadata": {"name": "reader"}, "subjects": [
            {"kind": "ServiceAccount", "name": "reader", "namespace": "default"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}})
        token = admin.must(201, "POST", "/api/v1/namespaces/default/serviceaccounts/reader/token", {"spec": {}})["status"]["token"]
        clients = {"certificate": lambda: WithCertificate(server), "token": lambda: WithToken(server, token)}
        best = {}
        for _ in range(options.rounds):
            for name, connect in clients.items():
                client = connect()
                best[name] = min(best.get(name, 1e9), measure(server, client, options.requests))
                client.close()
    finally:
        server.stop()
    print("GET, CPU of the server: certificate %.1f µs, service account token %.1f µs (%+.1f %%)"
          % (best["certificate"], best["token"], (best["token"] / best["certificate"] - 1) * 100))


if __name__ == "__main__":
    main()
