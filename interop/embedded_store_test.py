#!/usr/bin/env python3
"""A real kube-apiserver on the embedded store, which is served through etcd's API. usage: embedded_store_test.py KEELSON WORK_FOLDER BIN_FOLDER

The same binary, called `etcd`, replaces etcd. kubectl works on that kube-apiserver, also after the store was killed and started
again; etcdctl reads and writes the store and saves a snapshot of it, from which a store is made that holds the same; and the store moves
to a real etcd and back with `keelson migrate` while the kube-apiserver writes to it.
"""
import json
import os
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rig import Client, Keelson, RealPair, arguments_of, end, free_port, parser_of  # noqa: E402

OBJECTS = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop}, data: {colour: blue}}
- {apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {selector: {app: web}, ports: [{port: 80}]}}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web, namespace: shop}
  spec:
    selector: {matchLabels: {app: web}}
    template:
      metadata: {labels: {app: web}}
      spec: {containers: [{name: main, image: web}]}
"""


class Session:
    def __init__(self, pair, programs):
        self.pair, self.programs = pair, programs
        self.store = next(a.split("=", 1)[1] for a in pair.processes[0].args if a.startswith("--listen-client-urls="))

    def kubectl(self, *arguments, stdin=None, check=True):
        done = subprocess.run([os.path.join(self.programs, "kubectl"), "--kubeconfig", self.pair.kubeconfig] + list(arguments), input=stdin,
                              capture_output=True, text=True, timeout=120)
        if check and done.returncode != 0:
            raise AssertionError("kubectl %s: %s" % (" ".join(arguments), done.stderr))
        return done.stdout

    def etcdctl(self, *arguments, endpoint=None):
        done = subprocess.run([os.path.join(self.programs, "etcdctl"), "--endpoints", endpoint or self.store] + list(arguments), capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, "etcdctl %s: %s" % (" ".join(arguments), done.stderr)
        return done.stdout

    def contents(self, endpoint=None):
        """Every Kubernetes key with its value and revision."""
        answer = json.loads(self.etcdctl("get", "/registry/", "--prefix", "-w", "json", endpoint=endpoint))
        return {kv["key"]: (kv.get("value"), kv["mod_revision"]) for kv in answer.get("kvs", [])}


def works(session):
    s = session
    s.kubectl("apply", "-f", "-", stdin=OBJECTS)
    s.kubectl("label", "configmap", "settings", "-n", "shop", "season=autumn")
    s.kubectl("patch", "configmap", "settings", "-n", "shop", "-p", '{"data":{"colour":"red"}}')
    assert s.kubectl("get", "configmap", "settings", "-n", "shop", "-o", "jsonpath={.data.colour}{.metadata.labels.season}") == "redautumn"
    s.kubectl("scale", "deployment", "web", "-n", "shop", "--replicas=3")
    assert s.kubectl("get", "deployment", "web", "-n", "shop", "-o", "jsonpath={.spec.replicas}") == "3"
    watch = subprocess.Popen([os.path.join(s.programs, "kubectl"), "--kubeconfig", s.pair.kubeconfig, "get", "configmaps", "-n", "shop", "--watch-only", "-o", "name"],
                             stdout=subprocess.PIPE, text=True)
    try:
        seen = []
        reader = threading.Thread(target=lambda: seen.append(watch.stdout.readline().strip()))
        reader.start()
        for i in range(60):  # Events are seen only once the watch is established.
            s.kubectl("create", "configmap", "seen-%d" % i, "-n", "shop")
            reader.join(1)
            if not reader.is_alive():
                break
        assert seen and seen[0].startswith("configmap/seen-"), seen
    finally:
        watch.kill()
        watch.wait()
    for i in range(40):
        s.kubectl("create", "configmap", "page-%02d" % i, "-n", "default")
    listed = s.kubectl("get", "configmaps", "-n", "default", "--chunk-size=7", "-o", "name").split()
    assert len([name for name in listed if "/page-" in name]) == 40, listed
    s.kubectl("delete", "service", "web", "-n", "shop")
    assert "NotFound" in subprocess.run([os.path.join(s.programs, "kubectl"), "--kubeconfig", s.pair.kubeconfig, "get", "service", "web", "-n", "shop"],
                                        capture_output=True, text=True).stderr
    print("kubectl works on kube-apiserver on the embedded store")


def survives_a_crash(session):
    pair = session.pair
    pair.processes[0].send_signal(signal.SIGKILL)
    pair.processes[0].wait()
    before = list(pair.processes[0].args)
    log = open(os.path.join(pair.folder, "etcd-2.log"), "w")
    pair.processes[0] = subprocess.Popen(before, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while True:
        try:
            session.kubectl("create", "configmap", "after-the-crash", "-n", "shop")
            break
        except (AssertionError, subprocess.TimeoutExpired):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)
    assert session.kubectl("get", "configmap", "settings", "-n", "shop", "-o", "jsonpath={.data.colour}") == "red"
    print("and after the store was killed and started again")


def snapshot(session, keelson, folder):
    s = session
    s.etcdctl("endpoint", "health")
    assert "3.6" in s.etcdctl("endpoint", "status", "-w", "json")
    s.etcdctl("put", "/elsewhere", "by hand")
    assert s.etcdctl("get", "/elsewhere", "--print-value-only").strip() == "by hand"
    file = os.path.join(folder, "snapshot.db")
    s.etcdctl("snapshot", "save", file)
    contents = s.contents()
    restored = os.path.join(folder, "restored")
    subprocess.run([keelson, "store", "restore", file, restored], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([keelson, "store", "check", restored], check=True, stdout=subprocess.DEVNULL)
    address = "http://127.0.0.1:%d" % free_port()
    log = open(os.path.join(folder, "restored.log"), "w")
    server = subprocess.Popen([keelson, "etcd", "--data-dir=" + restored, "--listen-client-urls=" + address], stdout=log, stderr=log)
    try:
        again = s.contents(endpoint=address)
    finally:
        end(server)
    same = [key for key in contents if again.get(key) == contents[key]]
    # Leases of the kube-apiserver may have been renewed between the snapshot and the list.
    assert len(same) >= len(contents) - 5 and len(again) >= len(contents) - 2, (len(same), len(contents), len(again))
    print("etcdctl snapshot save, restored: %d of %d keys with the same value and revision" % (len(same), len(contents)))


def real_etcd(folder, programs):
    client, peer = "http://127.0.0.1:%d" % free_port(), "http://127.0.0.1:%d" % free_port()
    log = open(folder + ".log", "w")
    process = subprocess.Popen([os.path.join(programs, "etcd"), "--data-dir=" + folder, "--listen-client-urls=" + client, "--advertise-client-urls=" + client,
                                "--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=default=" + peer, "--log-level=error"], stdout=log, stderr=log)
    return process, client


def overrides(session, keelson, folder, programs):
    """Our own server with its embedded store, and config maps in an etcd."""
    real, address = real_etcd(os.path.join(folder, "override-etcd"), programs)
    try:
        server = Keelson(keelson, os.path.join(folder, "overrides"), ["--etcd-servers-overrides=/configmaps#" + address]).start()
        try:
            client = Client(server)
            client.must(201, "POST", "/api/v1/namespaces/default/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "elsewhere"}})
            client.must(201, "POST", "/api/v1/namespaces/default/secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "here"}})
            names = [item["metadata"]["name"] for item in client.must(200, "GET", "/api/v1/namespaces/default/configmaps")["items"]]
            assert "elsewhere" in names, names
            keys = session.etcdctl("get", "", "--prefix", "--keys-only", endpoint=address).split()
            assert "/registry/configmaps/default/elsewhere" in keys and not any("secrets" in key for key in keys), keys
            client.must(200, "GET", "/readyz/etcd-override-0")
            client.must(200, "GET", "/readyz/etcd-override-readiness-0")
            real.send_signal(signal.SIGSTOP)  # An etcd that does not answer makes the server unready, not unhealthy for good.
            deadline = time.monotonic() + 60
            while client.request("GET", "/readyz/etcd-override-readiness-0")[0] == 200:
                assert time.monotonic() < deadline, "an etcd that does not answer is ready"
                time.sleep(0.2)
            real.send_signal(signal.SIGCONT)
            while client.request("GET", "/readyz/etcd-override-readiness-0")[0] != 200:
                assert time.monotonic() < deadline + 60, "it is not ready again"
                time.sleep(0.2)
        finally:
            server.stop()
    finally:
        end(real)
    print("--etcd-servers-overrides: config maps in an etcd, the rest in the embedded store; its checks notice when it hangs")


def migrates(session, keelson, folder, programs):
    """To a real etcd while the kube-apiserver goes on writing, and from there into a folder."""
    s = session
    real, client = real_etcd(os.path.join(folder, "real-etcd"), programs)
    try:
        out = os.path.join(folder, "migrate.log")
        with open(out, "w") as f:
            moving = subprocess.Popen([keelson, "migrate", "--from", s.store, "--to", client, "--follow"], stdout=f, stderr=f)
            deadline = time.monotonic() + 180
            while "following" not in open(out).read():
                assert moving.poll() is None and time.monotonic() < deadline, open(out).read()
                time.sleep(0.1)
            for i in range(5):
                s.kubectl("create", "configmap", "moving-%d" % i, "-n", "shop")
            end(s.pair.processes[1])  # The kube-apiserver stops; the last changes are taken over.
            moving.send_signal(signal.SIGINT)
            assert moving.wait(60) == 0, open(out).read()
        ours, theirs = s.contents(), s.contents(endpoint=client)
        assert ours == theirs, "keys differ: %s" % sorted(set(ours.items()) ^ set(theirs.items()))[:3]
        back = os.path.join(folder, "back")
        subprocess.run([keelson, "migrate", "--from", client, "--to", back], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([keelson, "store", "check", back], check=True, stdout=subprocess.DEVNULL)
        print("keelson migrate to etcd and back: %d keys with the same value and revision" % len(ours))
    finally:
        end(real)


def main():
    arguments = arguments_of(parser_of(__doc__))
    keelson, folder, programs = arguments.keelson, arguments.folder, arguments.programs
    links = os.path.join(folder, "programs")
    os.makedirs(links)
    os.symlink(keelson, os.path.join(links, "etcd"))
    os.symlink(os.path.join(programs, "kube-apiserver"), os.path.join(links, "kube-apiserver"))
    pair = RealPair(os.path.join(folder, "pair"), links).start()
    try:
        session = Session(pair, programs)
        works(session)
        survives_a_crash(session)
        snapshot(session, keelson, folder)
        overrides(session, keelson, folder, programs)
        migrates(session, keelson, folder, programs)
    finally:
        pair.stop()


if __name__ == "__main__":
    main()
