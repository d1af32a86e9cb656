#!/usr/bin/env python3
"""Manifests of a real kubeadm, with Keelson in place of the static pod's kube-apiserver. usage: kubeadm_test.py KEELSON WORK_FOLDER BIN_FOLDER

kubeadm makes certificates, kubeconfigs and the manifests of etcd and kube-apiserver. Their commands are started as in the manifests, with
Keelson under the name kube-apiserver; the phases of kubeadm that talk to the server follow, then the way back: a real kube-apiserver on the same etcd
with the same flags. The recipe is docs/recipes/kubeadm.md. Ports are free ones; nothing outside the work folder is written.
"""
import json
import os
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "test", "system"))
from harness import free_port  # noqa: E402
from rig import arguments_of, end, parser_of  # noqa: E402

CONFIG = """apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: %(address)s, bindPort: %(port)d}
nodeRegistration: {name: node-1, criSocket: "unix:///nowhere.sock", imagePullSerial: false}
bootstrapTokens: [{token: abcdef.0123456789abcdef}]
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: %(version)s
certificatesDir: %(folder)s/pki
controlPlaneEndpoint: %(address)s:%(port)d
etcd: {local: {dataDir: %(folder)s/etcd}}
"""


class Cluster:
    def __init__(self, arguments):
        self.folder, self.programs, self.processes = arguments.folder, arguments.programs, []
        os.makedirs(self.folder)
        self.port, self.ports = free_port(), {}
        version = subprocess.run([self.programs + "/kubeadm", "version", "-o", "short"], check=True, capture_output=True, text=True).stdout.strip()
        # An address that kubeadm accepts; only this machine is ever dialled.
        self.address = subprocess.run(["hostname", "-I"], check=True, capture_output=True, text=True).stdout.split()[0]
        self.config = self.folder + "/config.yaml"
        with open(self.config, "w") as f:
            f.write(CONFIG % {"folder": self.folder, "port": self.port, "address": self.address, "version": version})
        self.environment = dict(os.environ, KUBEADM_INIT_DRYRUN_DIR=self.folder + "/dry", KUBECONFIG=self.folder + "/admin.conf")
        os.makedirs(self.folder + "/dry")

    def kubeadm(self, *phase):
        done = subprocess.run([self.programs + "/kubeadm", "init", "phase", *phase, "--config=" + self.config], env=self.environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, "kubeadm %s: %s%s" % (phase, done.stdout, done.stderr)

    def kubectl(self, *arguments):
        done = subprocess.run([self.programs + "/kubectl", *arguments], env=self.environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, "kubectl %s: %s%s" % (arguments, done.stdout, done.stderr)
        return done.stdout

    def command_of(self, name):
        """The words of a static pod's command, from the manifest that kubeadm wrote."""
        for where, _, files in os.walk(self.folder + "/dry"):
            if name + ".yaml" in files:
                with open(os.path.join(where, name + ".yaml")) as f:
                    text = f.read()
                block = re.search(r"^  - command:\n((?:    - .*\n)+)", text, re.M).group(1)
                return [json.loads(word) if word.startswith('"') else word.strip("'") for word in re.findall(r"^    - (.*)$", block, re.M)]
        raise AssertionError("no manifest of %s in %s" % (name, self.folder))

    def elsewhere(self, word):
        """etcd's ports, which kubeadm does not let choose, as free ones of this machine."""
        for fixed in ("2379", "2380", "2381"):
            word = re.sub(r"(?<=:)%s\b" % fixed, lambda _: str(self.ports.setdefault(fixed, free_port())), word)
        return word

    def start(self, name, program, until):
        words = [self.elsewhere(word) for word in self.command_of(name)]
        log = open("%s/%s.log" % (self.folder, os.path.basename(program)), "a")
        process = subprocess.Popen([program] + words[1:], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.processes.append(process)
        deadline = time.monotonic() + 120
        while not until():
            with open(log.name) as f:
                assert process.poll() is None and time.monotonic() < deadline, "%s: %s" % (program, f.read()[-4000:])
            time.sleep(0.05)
        return process

    def ready(self):
        done = subprocess.run([self.programs + "/kubectl", "get", "--raw", "/readyz"], env=self.environment, capture_output=True, text=True)
        return done.stdout == "ok"

    def etcd_ready(self):
        pki = self.folder + "/pki/etcd/"
        done = subprocess.run([self.programs + "/etcdctl", "--endpoints=https://127.0.0.1:%s" % self.ports["2379"], "--cacert=" + pki + "ca.crt", "--cert=" + pki + "server.crt",
                               "--key=" + pki + "server.key", "endpoint", "health"], capture_output=True, text=True)
        return done.returncode == 0


def run(cluster, keelson):
    for phase in (["certs", "all"], ["kubeconfig", "admin", "--kubeconfig-dir=" + cluster.folder], ["kubeconfig", "super-admin", "--kubeconfig-dir=" + cluster.folder],
                  ["etcd", "local", "--dry-run"], ["control-plane", "apiserver", "--dry-run"]):
        cluster.kubeadm(*phase)
    flags = [word.split("=")[0] for word in cluster.command_of("kube-apiserver")[1:]]
    doctor = subprocess.run([keelson, "doctor"] + [cluster.elsewhere(word) for word in cluster.command_of("kube-apiserver")[1:]], capture_output=True, text=True)
    assert "FAIL" in doctor.stdout and "connection refused" in doctor.stdout and doctor.stdout.count("FAIL") == 1, "doctor before etcd runs: " + doctor.stdout + doctor.stderr
    cluster.start("etcd", cluster.programs + "/etcd", cluster.etcd_ready)
    # admin.conf's group gets its role from kubeadm itself; super-admin.conf is of system:masters.
    cluster.environment["KUBECONFIG"] = cluster.folder + "/super-admin.conf"
    os.symlink(keelson, cluster.folder + "/kube-apiserver")
    ours = cluster.start("kube-apiserver", cluster.folder + "/kube-apiserver", cluster.ready)
    # A node as its kubelet would make it.
    cluster.kubectl("create", "-f", write(cluster, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1", "labels": {"kubernetes.io/hostname": "node-1"}}}))
    for phase in (["upload-config", "kubeadm"], ["upload-config", "kubelet"], ["bootstrap-token"], ["addon", "all"]):
        cluster.kubeadm(*phase, "--kubeconfig=" + cluster.folder + "/super-admin.conf")
    # The phase mark-control-plane takes the kubeconfig of /etc/kubernetes alone: the same by hand.
    cluster.kubectl("label", "node", "node-1", "node-role.kubernetes.io/control-plane=")
    cluster.kubectl("taint", "node", "node-1", "node-role.kubernetes.io/control-plane=:NoSchedule")
    # The reads of a joining node: the published cluster info, and with the bootstrap token alone its configuration.
    info = cluster.kubectl("get", "configmap", "-n", "kube-public", "cluster-info", "-o", "jsonpath={.data}")
    assert "jws-kubeconfig" in info or "kubeconfig" in info, info
    token = ["--server=https://%s:%d" % (cluster.address, cluster.port), "--certificate-authority=" + cluster.folder + "/pki/ca.crt", "--token=abcdef.0123456789abcdef", "--kubeconfig=/dev/null"]
    who = cluster.kubectl("auth", "whoami", "-o", "json", *token)
    assert "system:bootstrappers:kubeadm:default-node-token" in who, who
    assert "kubernetesVersion" in cluster.kubectl("get", "configmap", "-n", "kube-system", "kubeadm-config", "-o", "yaml", *token)
    for kind, name in (("deployment", "coredns"), ("daemonset", "kube-proxy"), ("service", "kube-dns")):
        cluster.kubectl("get", kind, "-n", "kube-system", name)
    before = objects(cluster)
    end(ours)
    assert ours.returncode == 0, ours.returncode
    cluster.start("kube-apiserver", cluster.programs + "/kube-apiserver", cluster.ready)
    after = objects(cluster)
    changed = [key for key in before if before[key] != after.get(key)]
    assert not changed, "kube-apiserver sees them otherwise: %s" % changed
    print("kubeadm: %d flags of its manifest, phases up to the add-ons, %d objects the same for kube-apiserver on the same etcd" % (len(flags), len(before)))


def write(cluster, value):
    path = cluster.folder + "/object.json"
    with open(path, "w") as f:
        json.dump(value, f)
    return path


def objects(cluster):
    """Objects made by kubeadm, by kind and name."""
    kinds = "configmaps,secrets,serviceaccounts,deployments,daemonsets,services,roles,rolebindings"
    found = {}
    for namespace in ("kube-system", "kube-public"):
        for item in json.loads(cluster.kubectl("get", kinds, "-n", namespace, "-o", "json"))["items"]:
            if item["metadata"]["name"] != "extension-apiserver-authentication":  # each server writes its own
                found[item["kind"], namespace, item["metadata"]["name"]] = item
    return found


def main():
    arguments = arguments_of(parser_of(__doc__))
    cluster = Cluster(arguments)
    try:
        run(cluster, arguments.keelson)
    finally:
        for process in reversed(cluster.processes):
            end(process)
    return 0


if __name__ == "__main__":
    sys.exit(main())
