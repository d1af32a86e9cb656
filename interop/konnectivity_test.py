#!/usr/bin/env python3
"""The real konnectivity server and agent carry logs, exec, webhooks and the store. usage: konnectivity_test.py KEELSON WORK_FOLDER

The checks are those of test/system/egress_test.py. Both programs come from interop/build.sh konnectivity-server konnectivity-agent; openssl makes their
certificates. The server listens for Keelson on a Unix socket in the mode grpc, the agent dials it on 127.0.0.1.
"""
import os
import random
import shutil
import socket as sockets
import subprocess
import sys
import time
import urllib.request

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "test", "system"))
import egress_test  # noqa: E402
from harness import skip  # noqa: E402
from two_servers_test import make_pki  # noqa: E402

BIN = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "keelson", "bin")


def registered_port():
    """A free port below 49152: konnectivity refuses ephemeral ones."""
    while True:
        port = random.randrange(20000, 32000)
        with sockets.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


class Konnectivity:
    def __init__(self, folder, pki, socket):
        agent_port, health_port = registered_port(), registered_port()
        log = open(os.path.join(folder, "konnectivity.log"), "a")

        def file(name):
            return os.path.join(pki, name)
        self.server = subprocess.Popen([
            os.path.join(BIN, "konnectivity-server"), "--mode=grpc", "--uds-name=" + socket, "--delete-existing-uds-file", "--server-port=0",
            "--agent-port=%d" % agent_port, "--agent-bind-address=127.0.0.1", "--admin-port=%d" % registered_port(), "--admin-bind-address=127.0.0.1",
            "--health-port=%d" % health_port, "--health-bind-address=127.0.0.1", "--cluster-cert=" + file("server.crt"), "--cluster-key=" + file("server.key"),
            "--cluster-ca-cert=" + file("ca.crt")], stdout=log, stderr=log)
        self.agent = subprocess.Popen([
            os.path.join(BIN, "konnectivity-agent"), "--proxy-server-host=127.0.0.1", "--proxy-server-port=%d" % agent_port, "--ca-cert=" + file("ca.crt"),
            "--agent-cert=" + file("admin.crt"), "--agent-key=" + file("admin.key"), "--health-server-port=%d" % registered_port(),
            "--admin-server-port=%d" % registered_port()], stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while not self.ready(health_port):
            if time.monotonic() > deadline or self.server.poll() is not None or self.agent.poll() is not None:
                self.stop()
                raise AssertionError("konnectivity does not start: " + log.name)
            time.sleep(0.1)

    @staticmethod
    def ready(port):
        """The server is ready once an agent is connected."""
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d/readyz" % port, timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def stop(self):
        for process in (self.agent, self.server):
            process.kill()
            process.wait()


def main():
    binary, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    for name in ("konnectivity-server", "konnectivity-agent"):
        if not os.path.exists(os.path.join(BIN, name)):
            skip("no %s: interop/build.sh %s" % (name, name))
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    pki = make_pki(os.path.join(folder, "konnectivity-pki"))

    def start(socket):
        return Konnectivity(folder, pki, socket)
    started = egress_test.run_cluster(binary, folder, start)
    egress_test.run_store(binary, os.path.join(folder, "store"), start)
    print("%d checks passed with the real konnectivity; %d connections through it" % (egress_test.checks, started))


if __name__ == "__main__":
    main()
