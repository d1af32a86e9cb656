#!/usr/bin/env python3
"""--serve-etcd-api: the embedded store of a running server, through etcdctl. usage: etcd_api_test.py KEELSON WORK_FOLDER

Without an address on a socket of this user alone; plain on a loopback address, with a warning; with mutual TLS on every address, for holders of a certificate of the named authority only, also after that
authority was exchanged; an address that others could reach is refused without TLS. etcdctl writes what the API server serves, follows its
changes and saves a snapshot from which another server starts. etcdctl is the one beside $KEELSON_ETCD, else keelson/bin/etcdctl in the
user's cache (interop/build.sh etcd), else the one in PATH.
"""
import json
import os
import shutil
import socket
import stat
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from front_test import RUNNING, Authority, Server, eventually, expect  # noqa: E402
from harness import Client, free_port, skip  # noqa: E402

PREFIX = "/registry/configmaps/default/"


def find_etcdctl():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    beside = os.path.join(os.path.dirname(os.environ.get("KEELSON_ETCD", "")), "etcdctl")
    for candidate in (beside, os.path.join(cache, "keelson", "bin", "etcdctl"), shutil.which("etcdctl")):
        if candidate and os.path.exists(candidate):
            return candidate
    return None


class Etcdctl:
    def __init__(self, program, endpoint, flags=()):
        self.command = [program, "--endpoints", endpoint] + list(flags)

    def run(self, *arguments, stdin=None):
        environment = dict(os.environ, ETCDCTL_API="3")
        return subprocess.run(self.command + list(arguments), input=stdin, capture_output=True, env=environment, timeout=60)

    def __call__(self, *arguments, stdin=None):
        done = self.run(*arguments, stdin=stdin)
        expect(done.returncode == 0, "etcdctl %s: %s" % (" ".join(arguments), done.stderr.decode()))
        return done.stdout

    def refused(self):
        return self.run("--dial-timeout=2s", "--command-timeout=2s", "get", PREFIX, "--prefix", "--keys-only").returncode != 0


def create(server, name):
    client = Client(server)
    status, body = client.request("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": name}, "data": {"colour": "blue"}})
    client.close()
    expect(status == 201, "creating %s: %d" % (name, status))
    return body


def names(server):
    client = Client(server)
    status, body = client.request("GET", "/api/v1/namespaces/default/configmaps")
    client.close()
    expect(status == 200, "list: %d" % status)
    return {item["metadata"]["name"] for item in body["items"]}


def plain(binary, folder, program):
    port = free_port()
    server = Server(binary, folder, flags=["--serve-etcd-api=127.0.0.1:%d" % port])
    server.start()
    ctl = Etcdctl(program, "http://127.0.0.1:%d" % port)
    created = create(server, "one")
    kvs = json.loads(ctl("get", PREFIX + "one", "-w", "json"))["kvs"]
    expect(str(kvs[0]["mod_revision"]) == created["metadata"]["resourceVersion"], "the revision is the resourceVersion")
    # The API server serves changes made by etcdctl.
    ctl("del", PREFIX + "one")
    eventually(lambda: "one" not in names(server), "etcdctl's deletion is not seen")
    create(server, "two")
    expect(b"IS LEADER" in ctl("endpoint", "status", "-w", "table"), "status")
    expect(b"Finished defragmenting" in ctl("defrag"), "defragmentation")
    snapshot = os.path.join(folder, "snapshot")
    ctl("snapshot", "save", snapshot)
    server.stop()
    expect(Etcdctl(program, "http://127.0.0.1:%d" % port).refused(), "the port is still served")

    restored = Server(binary, os.path.join(folder, "restored"))
    os.makedirs(restored.data)
    done = subprocess.run([binary, "store", "restore", snapshot, os.path.join(restored.data, "store")], capture_output=True, text=True)
    expect(done.returncode == 0, "restore: " + done.stderr)
    restored.start()
    expect("two" in names(restored) and "one" not in names(restored), "the restored server has other objects: %s" % names(restored))
    restored.stop()


def mutual_tls(binary, folder, program):
    authority = Authority(os.path.join(folder, "ca"), "backup-ca")
    client = authority.issue("client", "/CN=backup")
    strangers = Authority(os.path.join(folder, "others"), "others-ca")
    stranger = strangers.issue("stranger", "/CN=backup")
    trusted = os.path.join(folder, "trusted.crt")
    shutil.copy(authority.crt, trusted)
    port = free_port()
    # The serving certificate is the server's own.
    server = Server(binary, folder, flags=["--serve-etcd-api=0.0.0.0:%d" % port, "--serve-etcd-api-client-ca-file=" + trusted])
    server.start()
    create(server, "sealed")
    ca = "--cacert=" + os.path.join(server.data, "pki", "ca.crt")

    def as_holder(pair):
        return Etcdctl(program, "https://127.0.0.1:%d" % port, [ca, "--cert=" + pair[0], "--key=" + pair[1]])
    ctl = as_holder(client)
    expect((PREFIX + "sealed").encode() in ctl("get", PREFIX, "--prefix", "--keys-only"), "get")
    expect(b"is healthy" in ctl("endpoint", "health") + ctl.run("endpoint", "health").stderr, "health")
    ctl("snapshot", "save", os.path.join(folder, "snapshot"))
    watch = subprocess.Popen(ctl.command + ["watch", PREFIX, "--prefix", "--rev=1"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(os.environ, ETCDCTL_API="3"))
    try:
        expect(watch.stdout.readline() == b"PUT\n" and watch.stdout.readline().startswith(PREFIX.encode()), "watch")
    finally:
        watch.kill()
        watch.wait()
    https = "https://127.0.0.1:%d" % port
    expect(Etcdctl(program, https, [ca]).refused(), "a client without a certificate was answered")
    expect(as_holder(stranger).refused(), "a certificate of another authority was accepted")
    # Every user of the API has a certificate of its authority; it must not give access to the store.
    admin = [os.path.join(server.data, "pki", "admin" + end) for end in (".crt", ".key")]
    expect(as_holder(admin).refused(), "a certificate of the API's authority was accepted")
    expect(Etcdctl(program, "http://127.0.0.1:%d" % port).refused(), "a client without TLS was answered")
    # Another authority takes over without a restart.
    shutil.copy(strangers.crt, trusted + ".new")
    os.rename(trusted + ".new", trusted)
    eventually(lambda: not as_holder(stranger).refused(), "the new authority's clients are refused")
    expect(as_holder(client).refused(), "the old authority's clients are still served")
    server.stop()


def health(path):
    """/health through a Unix socket."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: etcd\r\n\r\n")
        answer = b""
        while chunk := connection.recv(4096):
            answer += chunk
    return answer


def logged(server, text):
    with open(server.log_path, encoding="utf-8") as log:
        return text in log.read()


def own_socket(binary, folder, program):
    """Without an address: a socket for this user alone, and no warning."""
    server = Server(binary, folder, flags=["--serve-etcd-api"])
    server.start()
    path = os.path.join(server.data, "etcd.sock")
    mode = stat.S_IMODE(os.stat(path).st_mode)
    expect(mode == 0o600, "the socket's mode is %o" % mode)
    expect(b'"health":"true"' in health(path), "health: %s" % health(path))
    expect(not logged(server, "The etcd API is served without TLS"), "a warning without a reason")
    if program:
        created = create(server, "one")
        kvs = json.loads(Etcdctl(program, "unix://" + path)("get", PREFIX + "one", "-w", "json"))["kvs"]
        expect(str(kvs[0]["mod_revision"]) == created["metadata"]["resourceVersion"], "the revision is the resourceVersion")
    server.kill()
    server.start()  # A stale socket is replaced.
    expect(b'"health":"true"' in health(path), "health after a crash")
    server.stop()
    expect(not os.path.exists(path), "the socket is still there")


def open_port(binary, folder):
    server = Server(binary, folder, flags=["--serve-etcd-api=127.0.0.1:0"])
    server.start()
    expect(logged(server, "The etcd API is served without TLS"), "no warning")
    # The authority of the API's clients is not accepted for the etcd API.
    ca = os.path.join(server.data, "pki", "ca.crt")
    server.stop()
    done = subprocess.run([binary, "--data-dir=" + server.data, "--secure-port=%d" % free_port(), "--serve-etcd-api=127.0.0.1:0",
                           "--serve-etcd-api-client-ca-file=" + ca], capture_output=True, text=True, timeout=60)
    expect(done.returncode == 1, "the API's own authority: ended with %d" % done.returncode)
    expect("--serve-etcd-api-client-ca-file contains an authority of the API's clients" in done.stderr, done.stderr)


def refusals(binary, folder):
    def start(*flags):
        done = subprocess.run([binary, "--data-dir=" + os.path.join(folder, "refused"), "--secure-port=%d" % free_port()] + list(flags), capture_output=True,
                              text=True, timeout=60)
        expect(done.returncode == 1, "%s: ended with %d" % (flags, done.returncode))
        return done.stderr
    text = start("--serve-etcd-api=0.0.0.0:0")
    expect("--serve-etcd-api: the etcd API gives out everything that is stored, to anybody who connects: it is served on a loopback address or with mutual "
           "TLS only, not on 0.0.0.0:0" in text, text)
    text = start("--serve-etcd-api=0.0.0.0:0", "--serve-etcd-api-client-ca-file=/no/such/file")
    expect("--serve-etcd-api: cannot read the clients' authorities from /no/such/file" in text, text)
    text = start("--serve-etcd-api=127.0.0.1:0", "--serve-etcd-api-cert-file=a", "--serve-etcd-api-key-file=b")
    expect("needs --serve-etcd-api-client-ca-file" in text, text)


def main():
    binary, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    refusals(binary, folder)
    program = find_etcdctl()
    try:
        own_socket(binary, os.path.join(folder, "socket"), program)
        open_port(binary, os.path.join(folder, "open"))
        if not program:
            skip("no etcdctl: set KEELSON_ETCD, or run interop/build.sh etcd where Go is installed")
        plain(binary, os.path.join(folder, "plain"), program)
        mutual_tls(binary, os.path.join(folder, "tls"), program)
    finally:
        for server in RUNNING:
            if server.process and server.process.poll() is None:
                server.kill()
    print("etcd API: plain, mutual TLS, refusals")


if __name__ == "__main__":
    main()
