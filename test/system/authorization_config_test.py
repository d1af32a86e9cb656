#!/usr/bin/env python3
"""The AuthorizationConfiguration file is followed. usage: authorization_config_test.py KEELSON WORK_FOLDER

A new text takes effect as a whole; a text that cannot be used, or that lacks a type which was there at the start, changes nothing.
"""
import json
import os
import shutil
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, Server  # noqa: E402

PATH = "/api/v1/namespaces/default/configmaps"
SECONDS = 60


def text(*types):
    entries = [{"type": t, "name": t.lower()} for t in types]
    return json.dumps({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration", "authorizers": entries})


def write(path, content):
    with open(path + ".new", "w") as f:
        f.write(content)
    os.rename(path + ".new", path)


class UserClient(Client):
    def status(self):
        self.connection.request("GET", PATH, headers={"Impersonate-User": "bob"})
        response = self.connection.getresponse()
        response.read()
        return response.status


def until(client, wanted):
    deadline = time.monotonic() + SECONDS
    while client.status() != wanted:
        if time.monotonic() > deadline:
            raise AssertionError("never became %d" % wanted)
        time.sleep(0.05)


def reloads(client, status):
    _, metrics = client.request("GET", "/metrics", accept="text/plain")
    for line in metrics.decode().splitlines():
        if line.startswith("apiserver_authorization_config_controller_automatic_reloads_total{") and 'status="%s"' % status in line:
            return float(line.split()[-1])
    return 0


def main():
    folder = sys.argv[2]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    path = os.path.join(folder, "authz.json")
    write(path, text("Node", "RBAC"))
    server = Server(sys.argv[1], folder, flags=["--authorization-config=" + os.path.abspath(path)], in_memory=True).start()
    try:
        admin, bob = Client(server), UserClient(server)
        until(bob, 403)
        write(path, text("Node", "RBAC", "AlwaysAllow"))
        until(bob, 200)
        assert reloads(admin, "success") == 1, reloads(admin, "success")
        for bad in ("{", text("Node", "AlwaysDeny"), text()):
            failures = reloads(admin, "failure")
            write(path, bad)
            deadline = time.monotonic() + SECONDS
            while reloads(admin, "failure") == failures:
                assert time.monotonic() < deadline, "no failed reload for " + bad
                time.sleep(0.05)
            assert bob.status() == 200, "a refused file must change nothing"
        write(path, text("RBAC", "Node"))
        until(bob, 403)
    finally:
        server.stop()
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
