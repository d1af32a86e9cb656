"""Webhooks and aggregated API servers of Kubernetes' own e2e tests as local processes. Python 3 standard library only.

The e2e tests deploy agnhost or sample-apiserver as a pod behind a service. Here kwok's pods run nothing: for every such service a process is started with the
certificate of the test's secret, and connections to the service's cluster IP (of 127.0.0.0/8, so that it is on this machine) are forwarded to it.
"""
import base64
import os
import socket
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
from rig import Client, end, free_port  # noqa: E402

# service -> the secret with its certificate; LocalServers.commands() knows what is started.
# The conversion webhook of the e2e tests is not among them: it wants the configuration of a pod.
SERVICES = {"e2e-test-webhook": "sample-webhook-secret", "sample-api": "sample-apiserver-secret"}
POLL_SECONDS = 0.2


class Forwarder:
    def __init__(self, address, to):
        self.to = to
        self.listener = socket.create_server(address)
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            try:
                target = socket.create_connection(self.to, 10)
            except OSError:
                connection.close()
                continue
            for source, sink in ((connection, target), (target, connection)):
                threading.Thread(target=self.pump, args=(source, sink), daemon=True).start()

    @staticmethod
    def pump(source, sink):
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    break
                sink.sendall(data)
        except OSError:
            pass
        try:
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self.listener.close()


class LocalServers:
    """Follows the services of a server until stop()."""

    def __init__(self, server, folder, programs):
        self.server, self.folder, self.programs = server, os.path.join(folder, "local"), programs
        self.running = {}  # uid -> (processes, forwarder)
        self.started = 0
        self.stopping = threading.Event()
        os.makedirs(self.folder)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        client = Client(self.server)
        while not self.stopping.wait(POLL_SECONDS):
            try:
                self.follow(client)
            except (OSError, ValueError) as error:
                print("local servers: %r" % error)
                client = Client(self.server)

    def follow(self, client):
        services = {s["metadata"]["uid"]: s for s in client.must(200, "GET", "/api/v1/services")["items"] if s["metadata"]["name"] in SERVICES}
        for uid in list(self.running):
            if uid not in services:
                self.end(uid)
        for uid, service in services.items():
            if uid not in self.running:
                self.start(client, uid, service)

    def start(self, client, uid, service):
        name = service["metadata"]["name"]
        status, answer = client.request("GET", "/api/v1/namespaces/%s/secrets/%s" % (service["metadata"]["namespace"], SERVICES[name]))
        if status != 200:
            return
        files = {}
        for key in ("tls.crt", "tls.key"):
            files[key] = os.path.join(self.folder, uid + "." + key)
            with open(files[key], "wb") as f:
                f.write(base64.b64decode(answer["data"][key]))
        port = free_port()
        with open(os.path.join(self.folder, uid + ".log"), "w") as log:
            processes = [subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL) for command in self.commands(name, uid, files, port)]
        address = (service["spec"]["clusterIP"], service["spec"]["ports"][0]["port"])
        self.running[uid] = (processes, Forwarder(address, ("127.0.0.1", port)))
        self.started += 1

    def commands(self, service, uid, files, port):
        """The program that a pod of the test would run."""
        def program(name):
            return os.path.join(self.programs, name)
        tls = ["--tls-cert-file=" + files["tls.crt"], "--tls-private-key-file=" + files["tls.key"]]
        if service == "e2e-test-webhook":
            return [[program("agnhost"), "webhook", "--port=%d" % port] + tls]
        store, peers = ("http://127.0.0.1:%d" % free_port() for _ in range(2))
        kubeconfig = self.server.kubeconfig
        return [[program("etcd"), "--data-dir=" + os.path.join(self.folder, uid + ".etcd"), "--listen-client-urls=" + store, "--advertise-client-urls=" + store,
                 "--listen-peer-urls=" + peers, "--initial-advertise-peer-urls=" + peers, "--initial-cluster=default=" + peers, "--log-level=error"],
                [program("sample-apiserver"), "--etcd-servers=" + store, "--bind-address=127.0.0.1", "--secure-port=%d" % port, "--kubeconfig=" + kubeconfig,
                 "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig] + tls]

    def end(self, uid):
        processes, forwarder = self.running.pop(uid)
        forwarder.close()
        for process in reversed(processes):
            end(process, 5)

    def stop(self):
        self.stopping.set()
        self.thread.join()
        for uid in list(self.running):
            self.end(uid)
        print("local servers: %d were started" % self.started)
