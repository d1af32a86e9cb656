"""The real parts around a server, for the tests and comparisons of this folder. Python 3 standard library only.

RealPair is kube-apiserver with etcd, with the same members as harness.Server; Controllers is kube-controller-manager, kube-scheduler and kwok
(which plays the kubelets) on any of the two. Everything listens on 127.0.0.1, and pods, nodes and services have addresses of 127.0.0.0/8,
so that nothing outside the machine is ever dialled.
"""
import argparse
import os
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "test", "system"))
from harness import Client, Server, free_port  # noqa: E402

SERVICE_RANGE = "127.96.0.0/16"
POD_RANGE = "127.100.0.0/16"

KUBECONFIG = """apiVersion: v1
kind: Config
clusters: [{name: it, cluster: {server: "https://127.0.0.1:%d", certificate-authority: "%s/ca.crt"}}]
users: [{name: admin, user: {client-certificate: "%s/admin.crt", client-key: "%s/admin.key"}}]
contexts: [{name: it, context: {cluster: it, user: admin}}]
current-context: it
"""


class Keelson(Server):
    """Our server with the service range of the rig."""

    def __init__(self, binary, folder, flags=(), **kwargs):
        super().__init__(binary, folder, flags=["--service-cluster-ip-range=" + SERVICE_RANGE] + list(flags), **kwargs)

    def pids(self):
        return [self.process.pid]


def end(process, seconds=20):
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class RealPair:
    """kube-apiserver and etcd on free ports, with certificates of their own."""

    def __init__(self, folder, programs, flags=()):
        self.folder = os.path.abspath(folder)
        self.programs = programs
        self.flags = list(flags)
        self.pki = os.path.join(self.folder, "pki")
        self.processes = []
        os.makedirs(self.pki)

    def openssl(self, *arguments):
        subprocess.run(["openssl"] + list(arguments), check=True, capture_output=True, cwd=self.pki)

    def certificates(self):
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        self.openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-days", "7", "-subj", "/CN=bench-ca")
        for name, subject, extension in (("apiserver", "/CN=apiserver", "subjectAltName=IP:127.0.0.1"), ("admin", "/O=system:masters/CN=admin", "extendedKeyUsage=clientAuth")):
            with open(os.path.join(self.pki, name + ".ext"), "w") as f:
                f.write(extension + "\n")
            self.openssl("req", *key, "-keyout", name + ".key", "-out", name + ".csr", "-subj", subject)
            self.openssl("x509", "-req", "-in", name + ".csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "7", "-extfile", name + ".ext", "-out", name + ".crt")
        self.openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "sa.key")

    def spawn(self, name, *arguments):
        log = open(os.path.join(self.folder, name + ".log"), "w")
        self.processes.append(subprocess.Popen([os.path.join(self.programs, name)] + list(arguments), stdout=log, stderr=log, stdin=subprocess.DEVNULL))

    def start(self):
        self.certificates()
        client, peer, self.port = free_port(), free_port(), free_port()
        self.kubeconfig = os.path.join(self.folder, "admin.kubeconfig")
        with open(self.kubeconfig, "w") as f:
            f.write(KUBECONFIG % (self.port, self.pki, self.pki, self.pki))
        begin = time.monotonic()
        store = "http://127.0.0.1:%d" % client
        peers = "http://127.0.0.1:%d" % peer
        self.spawn("etcd", "--data-dir=" + os.path.join(self.folder, "etcd"), "--listen-client-urls=" + store, "--advertise-client-urls=" + store,
                   "--listen-peer-urls=" + peers, "--initial-advertise-peer-urls=" + peers, "--initial-cluster=default=" + peers, "--log-level=error")
        path = lambda name: os.path.join(self.pki, name)  # noqa: E731
        self.spawn("kube-apiserver", "--etcd-servers=" + store, "--secure-port=%d" % self.port, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
                   "--client-ca-file=" + path("ca.crt"), "--tls-cert-file=" + path("apiserver.crt"), "--tls-private-key-file=" + path("apiserver.key"),
                   "--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + path("sa.key"),
                   "--service-account-signing-key-file=" + path("sa.key"), "--authorization-mode=Node,RBAC", "--endpoint-reconciler-type=none",
                   "--service-cluster-ip-range=" + SERVICE_RANGE, *self.flags)
        while time.monotonic() - begin < 120:
            if any(p.poll() is not None for p in self.processes):
                break
            try:
                if Client(self).request("GET", "/readyz")[0] == 200:
                    self.start_seconds = time.monotonic() - begin
                    return self
            except OSError:
                pass
            time.sleep(0.02)
        self.stop()
        raise RuntimeError("kube-apiserver did not become ready; logs in " + self.folder)

    context = Server.context

    def stop(self):
        for process in reversed(self.processes):
            end(process)

    def pids(self):
        return [p.pid for p in self.processes]


def parser_of(text):
    """What every program of this folder is told: our binary, a folder that it may empty, and the folder of the real programs."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("keelson", type=os.path.abspath)
    parser.add_argument("folder", type=os.path.abspath)
    parser.add_argument("programs")
    return parser


def arguments_of(parser):
    """The arguments, with the folder gone. SIGTERM ends the program as an exception does, so that what it started is ended too."""
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    shutil.rmtree(arguments.folder, ignore_errors=True)
    return arguments


def compare(text, answers, flags=(), real_flags=()):
    """Asks kube-apiserver, then Keelson: answers(server) is name → what must be the same. Returns the exit code."""
    arguments = arguments_of(parser_of(text))
    seen = []
    for server in (RealPair(os.path.join(arguments.folder, "real"), arguments.programs, [*flags, *real_flags]),
                   Keelson(arguments.keelson, os.path.join(arguments.folder, "ours"), flags)):
        server.start()
        try:
            seen.append(answers(server))
        finally:
            server.stop()
    theirs, ours = seen
    failed = [name for name in theirs if theirs[name] != ours.get(name)]
    for name in failed:
        print("FAIL %s\n     kube-apiserver %s\n     keelson        %s" % (name, theirs[name], ours.get(name)))
    print("%d passed, %d failed" % (len(theirs) - len(failed), len(failed)))
    return 1 if failed else 0


def node(name):
    size = {"cpu": "32", "memory": "256Gi", "pods": "110", "ephemeral-storage": "1Ti"}
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}, "labels": labels},
            "spec": {}, "status": {"allocatable": size, "capacity": size}}


class Controllers:
    """kube-controller-manager, kube-scheduler and kwok on a started server, with logs in folder."""

    def __init__(self, server, folder, programs):
        self.server = server
        self.folder = os.path.abspath(folder)
        self.programs = programs
        self.processes = []

    def program(self, name, *arguments):
        log = open(os.path.join(self.folder, name + ".log"), "w")
        process = subprocess.Popen([os.path.join(self.programs, name)] + list(arguments), stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.processes.append((name, process))

    def start(self, nodes):
        client = Client(self.server)
        for i in range(nodes):
            client.must(201, "POST", "/api/v1/nodes", node("node-%02d" % i))
        client.close()
        pki, kubeconfig = self.server.pki, self.server.kubeconfig
        common = ["--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
                  "--bind-address=127.0.0.1", "--kube-api-qps=1000", "--kube-api-burst=1000"]
        # Nodes are not given up when a busy machine keeps kwok from its leases for a minute.
        self.program("kube-controller-manager", *common, "--secure-port=%d" % free_port(), "--use-service-account-credentials=false",
                     "--root-ca-file=" + os.path.join(pki, "ca.crt"), "--service-account-private-key-file=" + os.path.join(pki, "sa.key"),
                     "--node-monitor-grace-period=5m", "--concurrent-namespace-syncs=20")
        self.program("kube-scheduler", *common, "--secure-port=%d" % free_port())
        self.program("kwok", "--kubeconfig=" + kubeconfig, "--config=" + os.path.join(os.path.dirname(os.path.abspath(__file__)), "kwok", "stages.yaml"), "--manage-all-nodes=true", "--node-lease-duration-seconds=40", "--cidr=" + POD_RANGE, "--node-ip=127.0.0.1",
                     "--node-port=%d" % free_port(), "--server-address=127.0.0.1:%d" % free_port())
        return self

    def stop(self):
        """Ends the programs and tells of those that ended by themselves."""
        for name, process in reversed(self.processes):
            if process.poll() is not None:
                print("note: %s ended by itself with %d; the end of its log:" % (name, process.returncode))
                with open(os.path.join(self.folder, name + ".log")) as f:
                    print("".join(f.readlines()[-8:]))
            else:
                process.terminate()
        for _, process in self.processes:
            end(process, 10)
