"""The real parts around a server, for the tests and comparisons of this folder. Python 3 standard library only.

RealPair is kube-apiserver with etcd, with the same members as harness.Server; Controllers is kube-controller-manager, kube-scheduler and kwok
(which plays the kubelets) on any of the two. Everything listens on 127.0.0.1, and pods, nodes and services have addresses of 127.0.0.0/8,
so that nothing outside the machine is ever dialled.
"""
import argparse
import os
import shutil
import signal
import ssl
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
    """kube-apiserver and etcd on free ports, with their own certificates."""

    def __init__(self, folder, programs, flags=(), etcd_flags=(), environment=None):
        self.folder = os.path.abspath(folder)
        self.programs = programs
        self.flags, self.etcd_flags = list(flags), list(etcd_flags)
        self.environment = dict(os.environ, **(environment or {}))
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
        self.processes.append(subprocess.Popen([os.path.join(self.programs, name)] + list(arguments), stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self.environment))

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
                   "--listen-peer-urls=" + peers, "--initial-advertise-peer-urls=" + peers, "--initial-cluster=default=" + peers, "--log-level=error", *self.etcd_flags)
        path = lambda name: os.path.join(self.pki, name)  # noqa: E731
        configured = any(flag.startswith("--authorization-config=") for flag in self.flags)  # excludes --authorization-mode
        modes = [] if configured else ["--authorization-mode=Node,RBAC"]
        self.spawn("kube-apiserver", "--etcd-servers=" + store, "--secure-port=%d" % self.port, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
                   "--client-ca-file=" + path("ca.crt"), "--tls-cert-file=" + path("apiserver.crt"), "--tls-private-key-file=" + path("apiserver.key"),
                   "--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + path("sa.key"),
                   "--service-account-signing-key-file=" + path("sa.key"), "--endpoint-reconciler-type=none",
                   "--service-cluster-ip-range=" + SERVICE_RANGE, *modes, *self.flags)
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
    """Arguments of every program of this folder: our binary, a work folder that it may empty, and the folder of the real programs."""
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

    def program(self, name, *arguments, log=None):
        with open(os.path.join(self.folder, (log or name) + ".log"), "w") as out:
            process = subprocess.Popen([os.path.join(self.programs, name)] + list(arguments), stdout=out, stderr=out, stdin=subprocess.DEVNULL)
        self.processes.append((log or name, process))

    def start(self, nodes, pods=POD_RANGE, manager=True):
        client = Client(self.server)
        for i in range(nodes):
            client.must(201, "POST", "/api/v1/nodes", node("node-%02d" % i))
        client.close()
        pki, kubeconfig = self.server.pki, self.server.kubeconfig
        common = ["--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
                  "--bind-address=127.0.0.1", "--kube-api-qps=1000", "--kube-api-burst=1000"]
        # Nodes are not given up when a busy machine keeps kwok from its leases for a minute.
        if manager:
            self.program("kube-controller-manager", *common, "--secure-port=%d" % free_port(), "--use-service-account-credentials=false",
                         "--root-ca-file=" + os.path.join(pki, "ca.crt"), "--service-account-private-key-file=" + os.path.join(pki, "sa.key"),
                         "--cluster-signing-cert-file=" + os.path.join(pki, "ca.crt"), "--cluster-signing-key-file=" + os.path.join(pki, "ca.key"),
                         "--node-monitor-grace-period=5m", "--concurrent-namespace-syncs=20")
        self.program("kube-scheduler", *common, "--secure-port=%d" % free_port())
        self.program("kwok", "--kubeconfig=" + kubeconfig, "--config=" + os.path.join(os.path.dirname(os.path.abspath(__file__)), "kwok", "stages.yaml"), "--manage-all-nodes=true", "--node-lease-duration-seconds=40", "--cidr=" + pods, "--node-ip=127.0.0.1",
                     "--node-port=%d" % free_port(), "--server-address=127.0.0.1:%d" % free_port())
        return self

    def stop(self):
        """Stops the programs and reports those that ended by themselves."""
        for name, process in reversed(self.processes):
            if process.poll() is not None:
                print("note: %s ended by itself with %d; the end of its log:" % (name, process.returncode))
                with open(os.path.join(self.folder, name + ".log")) as f:
                    print("".join(f.readlines()[-8:]))
            else:
                process.terminate()
        for _, process in self.processes:
            end(process, 10)


NODE_KUBECONFIG = """apiVersion: v1
kind: Config
clusters: [{name: it, cluster: {server: "https://127.0.0.1:%(port)d", certificate-authority: "%(pki)s/ca.crt"}}]
users: [{name: it, user: {client-certificate: "%(folder)s/%(name)s.crt", client-key: "%(folder)s/%(name)s.key"}}]
contexts: [{name: it, context: {cluster: it, user: it}}]
current-context: it
"""


class Identity:
    """A client certificate of the server's authority, with a kubeconfig: server, pki and port as Client wants them."""

    def __init__(self, server, folder, name, subject):
        self.server, self.port, self.pki, self.folder, self.name = server, server.port, server.pki, os.path.abspath(folder), name
        os.makedirs(self.folder, exist_ok=True)
        key, request, extension = self.path("key"), self.path("csr"), self.path("ext")
        with open(extension, "w") as f:
            f.write("extendedKeyUsage=clientAuth\n")
        ca = os.path.join(self.pki, "ca")
        for arguments in (["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", request, "-subj", subject],
                          ["x509", "-req", "-in", request, "-CA", ca + ".crt", "-CAkey", ca + ".key", "-set_serial", str(time.time_ns()), "-days", "2",
                           "-extfile", extension, "-out", self.path("crt")]):
            subprocess.run(["openssl"] + arguments, check=True, capture_output=True)
        self.kubeconfig = self.path("kubeconfig")
        with open(self.kubeconfig, "w") as f:
            f.write(NODE_KUBECONFIG % {"port": self.port, "pki": self.pki, "folder": self.folder, "name": name})

    def path(self, extension):
        return os.path.join(self.folder, self.name + "." + extension)

    def context(self):
        context = ssl.create_default_context(cafile=os.path.join(self.pki, "ca.crt"))
        context.load_cert_chain(self.path("crt"), self.path("key"))
        return context


class KubeadmControllers(Controllers):
    """The same programs with the identities that kubeadm gives them: the controller-manager's controllers act as their own service accounts, and each node
    has its own kwok that knows only the node's certificate (system:node:NAME in system:nodes)."""

    def allow_ready_check(self):
        """kwok lists the nodes once before it starts, which no kubelet does and the Node authorizer does not allow: here RBAC does. All else is the Node
        authorizer's."""
        admin = Client(self.server)
        rbac = "/apis/rbac.authorization.k8s.io/v1/"
        admin.must(201, "POST", rbac + "clusterroles", {"metadata": {"name": "kwok-ready"}, "rules": [
            {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}]})
        admin.must(201, "POST", rbac + "clusterrolebindings", {"metadata": {"name": "kwok-ready"}, "subjects": [
            {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:nodes"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kwok-ready"}})
        admin.close()

    def start(self, nodes):
        self.nodes = {}
        credentials = os.path.join(self.folder, "credentials")
        manager = Identity(self.server, credentials, "controller-manager", "/CN=system:kube-controller-manager")
        scheduler = Identity(self.server, credentials, "scheduler", "/CN=system:kube-scheduler")

        def common(identity):
            return ["--kubeconfig=" + identity.kubeconfig, "--authentication-kubeconfig=" + identity.kubeconfig,
                    "--authorization-kubeconfig=" + identity.kubeconfig, "--bind-address=127.0.0.1", "--secure-port=%d" % free_port(), "--leader-elect=true"]
        pki = self.server.pki
        self.program("kube-controller-manager", *common(manager), "--use-service-account-credentials=true", "--root-ca-file=" + os.path.join(pki, "ca.crt"),
                     "--service-account-private-key-file=" + os.path.join(pki, "sa.key"), "--cluster-signing-cert-file=" + os.path.join(pki, "ca.crt"),
                     "--cluster-signing-key-file=" + os.path.join(pki, "ca.key"), "--node-monitor-grace-period=5m")
        self.program("kube-scheduler", *common(scheduler))
        self.allow_ready_check()
        for i in range(nodes):
            name = "node-%02d" % i
            identity = Identity(self.server, credentials, name, "/O=system:nodes/CN=system:node:" + name)
            self.nodes[name] = identity
            client = Client(identity, context=identity.context())
            client.must(201, "POST", "/api/v1/nodes", node(name))  # as a kubelet registers itself
            client.close()
            # No lease: kwok lists leases, which a node may not; the conditions it renews keep the node ready.
            self.program("kwok", "--kubeconfig=" + identity.kubeconfig, "--config=" + os.path.join(os.path.dirname(os.path.abspath(__file__)), "kwok", "stages.yaml"),
                         "--manage-single-node=" + name, "--node-lease-duration-seconds=0", "--cidr=" + POD_RANGE, "--node-ip=127.0.0.1",
                         "--node-port=%d" % free_port(), "--server-address=127.0.0.1:%d" % free_port(), log=name)
        return self
