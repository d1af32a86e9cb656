#!/usr/bin/env python3
"""Encryption at rest with a KMS plugin, and a configuration that changes while the server runs. usage: encryption_test.py KEELSON WORK_FOLDER
KMS_TEST_PLUGIN

KMS v1 is refused without its gate and works with it; then the file names v2 first, and within seconds new secrets are sealed with v2, old ones
are still read, and are sealed anew when they are written again; a file with an error changes nothing. The values in etcd are checked. etcd is
found as two_servers_test.py finds it.
"""
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, free_port  # noqa: E402
from two_servers_test import Etcd, EtcdServer, find_etcd, make_pki  # noqa: E402

CONFIG = """apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers: [%s, {identity: {}}]
"""
SECRETS = "/api/v1/namespaces/default/secrets"
RELOAD_SECONDS = 50  # the file is looked at every second; once a minute it would be read anyway


def provider(version, socket):
    return "{kms: {apiVersion: %s, name: plug-%s, endpoint: 'unix://%s'}}" % (version, version, socket)


def raw(etcd, name):
    key = base64.b64encode(b"/registry/secrets/default/" + name.encode()).decode()
    request = urllib.request.Request(etcd.url + "/v3/kv/range", json.dumps({"key": key}).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as response:
        return base64.b64decode(json.load(response)["kvs"][0]["value"])


def create(client, name):
    client.must(201, "POST", SECRETS, {"metadata": {"name": name}, "data": {"k": base64.b64encode(name.encode()).decode()}})


def reads(client, name):
    return base64.b64decode(client.must(200, "GET", SECRETS + "/" + name)["data"]["k"]).decode() == name


def reloads(client, status):
    text = client.must(200, "GET", "/metrics").decode()
    found = re.search(r'^apiserver_encryption_config_controller_automatic_reloads_total\{[^}]*status="%s"[^}]*\} (\S+)' % status, text, re.M)
    return float(found.group(1)) if found else 0


def wait(what, condition):
    end = time.monotonic() + RELOAD_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("waited in vain: " + what)
        time.sleep(0.5)


def main():
    binary, folder, plugin_binary = sys.argv[1], os.path.abspath(sys.argv[2]), sys.argv[3]
    etcd_binary = find_etcd()
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    pki = make_pki(os.path.join(folder, "pki"))
    socket = "/tmp/keelson-encryption-%d.sock" % os.getpid()  # a socket's path must be short
    config = os.path.join(folder, "encryption.yaml")

    def write(text):
        with open(config + ".new", "w") as f:
            f.write(text)
        os.replace(config + ".new", config)
    etcd = Etcd(etcd_binary, folder)
    plugin = subprocess.Popen([plugin_binary, socket, "key-1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    server = None
    try:
        plugin.stdout.readline()
        write(CONFIG % provider("v1", socket))
        server = EtcdServer(binary, os.path.join(folder, "server"), etcd.url, "127.0.0.1", pki)
        server.arguments.append("--encryption-provider-config=" + config)
        server.port = free_port()
        refused = subprocess.run(server.command(), capture_output=True, text=True, timeout=120)
        assert refused.returncode != 0 and "KMSv1" in refused.stderr, refused.stderr
        server.arguments += ["--feature-gates=KMSv1=true", "--encryption-provider-config-automatic-reload=true"]
        server.start()
        client = Client(server)
        create(client, "first")
        assert raw(etcd, "first").startswith(b"k8s:enc:kms:v1:plug-v1:"), raw(etcd, "first")[:40]
        assert reads(client, "first")
        assert "[+]kms-providers ok" in client.must(200, "GET", "/readyz?verbose").decode()
        print("v1 seals with its gate", flush=True)

        write(CONFIG % (provider("v2", socket) + ", " + provider("v1", socket)))
        wait("the reload", lambda: reloads(client, "success") >= 1)
        create(client, "second")
        assert raw(etcd, "second").startswith(b"k8s:enc:kms:v2:plug-v2:"), raw(etcd, "second")[:40]
        assert reads(client, "first") and reads(client, "second")
        before = raw(etcd, "first")
        assert before.startswith(b"k8s:enc:kms:v1:")
        unchanged = client.must(200, "GET", SECRETS + "/first")
        client.must(200, "PUT", SECRETS + "/first", unchanged)
        assert raw(etcd, "first").startswith(b"k8s:enc:kms:v2:plug-v2:"), "a write that changes nothing seals anew"
        print("v2 took over while the server ran", flush=True)

        write("kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources: [{resources: [secrets], providers: [{aesgcm: {}}]}]\n")
        wait("the failed reload", lambda: reloads(client, "failure") >= 1)
        create(client, "third")
        assert raw(etcd, "third").startswith(b"k8s:enc:kms:v2:plug-v2:")
        assert reads(client, "first")
        print("a wrong file changes nothing", flush=True)

        # Without the first provider's key, after a restart, everything is still there.
        write(CONFIG % (provider("v2", socket) + ", " + provider("v1", socket)))
        server.stop()
        server.start()
        client = Client(server)
        assert all(reads(client, name) for name in ("first", "second", "third"))
        print("1 passed, 0 failed")
    finally:
        if server is not None and server.process is not None:
            server.stop()
        plugin.stdin.close()
        plugin.wait(30)
        etcd.stop()
        if os.path.exists(socket):
            os.unlink(socket)


if __name__ == "__main__":
    main()
