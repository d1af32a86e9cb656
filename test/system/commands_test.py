#!/usr/bin/env python3
"""First contact with the program: help, starts that fail, the banner, backups of a running server, doctor, top, envtest-assets.
usage: commands_test.py KEELSON WORK_FOLDER [NAME ...]
"""
import http.client
import json
import os
import pty
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import sys
import tarfile
import termios
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, Server, config_map, free_port, run_tests  # noqa: E402

MAPS = "/api/v1/namespaces/default/configmaps"
RUNNING = []  # processes that are ended when a test fails


def expect(condition, text):
    if not condition:
        raise AssertionError(text)


def eventually(condition, text, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError(text)


def run(*command, code=0, **kwargs):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, **kwargs)
    expect(done.returncode == code, "%s: exit code %d: %s%s" % (" ".join(command), done.returncode, done.stdout, done.stderr))
    return done.stdout + done.stderr


def on_terminal(command, until=None, send=signal.SIGTERM, seconds=60):
    """The output of a command whose stdin, stdout and stderr are a terminal. Once `until` is in it, the signal or the text `send` ends it."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(command[0], command)
    text, end = "", time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            part = os.read(fd, 65536).decode(errors="replace")
        except OSError:
            break
        text += part
        if until and until in text:
            os.write(fd, send.encode()) if isinstance(send, str) else os.kill(pid, send)
            until = None
    os.kill(pid, signal.SIGKILL) if time.monotonic() >= end else None
    _, status = os.waitpid(pid, 0)
    usual = termios.ICANON | termios.ECHO | termios.ISIG
    expect(termios.tcgetattr(fd)[3] & usual == usual, "%s leaves the terminal in another mode" % command)
    os.close(fd)
    return text.replace("\r\n", "\n"), os.waitstatus_to_exitcode(status)


def started(binary, folder, flags=()):
    server = Server(binary, folder, flags)
    RUNNING.append(server)
    return server.start()


def log_of(server):
    with open(server.log_path, errors="replace") as f:
        return f.read()


def start_problems(binary, folder):
    secret = os.path.join(folder, "secret.key")
    open(secret, "w").close()
    os.chmod(secret, 0)
    flags = ["--tls-cert-file=/nope", "--client-ca-file=/nope2", "--kubelet-certificate-authority=/nope3", "--secure-port=0", "--data-dir=" + folder + "/d"]
    text = run(binary, *flags, code=1)
    for line in ("--tls-cert-file: open /nope: no such file or directory", "--tls-private-key-file is missing: --tls-cert-file needs it",
                 "--client-ca-file: open /nope2: no such file", "--kubelet-certificate-authority: open /nope3: no such file",
                 '"command failed" err="--secure-port 0 must be between'):
        expect(line in text, "%r is not in %s" % (line, text))
    text, code = on_terminal([binary] + flags)
    expect(code == 1 and text.count("Error: ") == 5 and "command failed" not in text, text)
    expect("a boolean flag takes its value after '=': --flag=false" in run(binary, "--allow-privileged", "false", code=1), "no hint")
    expect("--data-dir is empty" in run(binary, "--data-dir=", code=1), "an empty --data-dir is taken")
    if os.geteuid() != 0:
        text = run(binary, "--client-ca-file=" + secret, "--data-dir=" + folder + "/d", code=1)
        expect("--client-ca-file: open %s: permission denied" % secret in text, text)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        text = run(binary, "--secure-port=%d" % taken.getsockname()[1], "--data-dir=" + folder + "/d", code=1)
    expect("address already in use" in text and "--secure-port" in text, text)


def banner(binary, folder):
    command = [binary, "--data-dir=" + os.path.relpath(folder + "/data"), "--secure-port=%d" % free_port()]
    for number in range(2):
        text, code = on_terminal(command, until="kubectl get namespaces")
        expect(code == 0 and "  export KUBECONFIG=%s/data/admin.kubeconfig\n" % folder in text, "start %d: %s" % (number, text))
    server = started(binary, folder + "/json", ["--logging-format=json"])
    server.stop()
    for line in log_of(server).splitlines():
        json.loads(line)


def flags_in_force(binary, folder):
    server = started(binary, folder, ["--profiling=false"])
    status, text = Client(server).request("GET", "/flagz", accept="text/plain")
    values = dict(line.split(":", 1) for line in text.decode().splitlines() if ":" in line)
    want = {"bind-address": "127.0.0.1", "authorization-mode": "[Node,RBAC]", "data-dir": server.data, "profiling": "false",
            "client-ca-file": server.data + "/pki/ca.crt", "service-cluster-ip-range": "10.0.0.0/24"}
    for name, value in want.items():
        expect(values.get(name, "").strip() == value, "%s: %s" % (name, values.get(name)))
    server.stop()


def etcd_flags(folder):
    key = os.path.join(folder, "sa.key")
    run("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key)
    return ["--service-account-issuer=https://k", "--service-account-key-file=" + key, "--service-account-signing-key-file=" + key,
            "--service-cluster-ip-range=10.0.0.0/24", "--authorization-mode=RBAC", "--cert-dir=" + folder + "/certs"]


def etcd_awaited(binary, folder):
    """While etcd does not answer, the cause is logged and a signal ends the server. A silent etcd is not blamed on TLS."""
    with socket.socket() as silent:  # accepts connections (backlog) and never answers
        silent.bind(("127.0.0.1", 0))
        silent.listen(64)
        address = "://127.0.0.1:%d" % silent.getsockname()[1]
        for url, cause in (("http://127.0.0.1:%d" % free_port(), "connection refused: nothing listens there"),
                           ("http" + address, "it accepts the connection and does not answer"),
                           ("https" + address, "TLS: no answer to the handshake")):
            with open(folder + "/log", "w") as log:
                process = subprocess.Popen([binary, "--etcd-servers=" + url, "--secure-port=%d" % free_port()] + etcd_flags(folder), stderr=log, stdin=subprocess.DEVNULL)
            try:
                eventually(lambda: cause in open(log.name).read(), "%s: %r is not logged" % (url, cause), 18)
                process.terminate()
                expect(process.wait(15) == 0, "exit code %s" % process.returncode)
            finally:
                process.kill()
            text = open(log.name).read()
            expect("Waiting for etcd" in text and ("TLS" in text) == ("TLS" in cause), "%s: %s" % (url, text))


def etcd_not_needed_to_find_mistakes(binary, folder):
    """A mistake in a file that a flag names ends the start, also while etcd does not answer."""
    broken = folder + "/broken"
    with open(broken, "w") as f:
        f.write("kind: [")
    for flag in ("--encryption-provider-config", "--audit-policy-file", "--admission-control-config-file", "--tracing-config-file", "--authentication-config"):
        text = run(binary, "--etcd-servers=http://127.0.0.1:%d" % free_port(), "--secure-port=%d" % free_port(), "--audit-log-path=-",
                   flag + "=" + broken, *etcd_flags(folder), code=1)
        expect("command failed" in text, "%s: %s" % (flag, text[-300:]))


def etcd_lost(binary, folder):
    """A lost etcd is logged, and so is its return."""
    url = "http://127.0.0.1:%d" % free_port()
    etcd = subprocess.Popen([binary, "etcd", "--data-dir=:memory:", "--listen-client-urls=" + url], stderr=subprocess.DEVNULL)
    log = open(folder + "/log", "w+")
    server = subprocess.Popen([binary, "--etcd-servers=" + url, "--secure-port=%d" % free_port()] + etcd_flags(folder), stderr=log)
    try:
        eventually(lambda: "Serving securely" in open(log.name).read(), "not ready")
        etcd.send_signal(signal.SIGSTOP)
        eventually(lambda: "The store is not healthy" in open(log.name).read(), "the loss is not told")
        etcd.send_signal(signal.SIGCONT)
        eventually(lambda: "The store is healthy again" in open(log.name).read(), "the return is not told")
    finally:
        etcd.send_signal(signal.SIGCONT)
        for process in (server, etcd):
            process.terminate()
            process.wait(30)


def backup(binary, folder):
    server = started(binary, folder, ["--backup-interval=1s", "--backup-retention=2"])
    client = Client(server)
    for i in range(50):
        client.must(201, "POST", MAPS, config_map("m%d" % i, {"a": "b" * 1000}))
    file = folder + "/b.tar"
    text = run(binary, "backup", "save", "--data-dir", server.data, file)
    expect(file in text and stat.S_IMODE(os.stat(file).st_mode) == 0o600, text)
    with tarfile.open(file) as archive:
        names = archive.getnames()
    expect("pki/ca.key" in names and "pki/sa.key" in names and names[-1] == "store.snapshot", str(names))
    expect("already there" in run(binary, "backup", "save", "--data-dir", server.data, file, code=1), "overwritten")
    expect("whole" in run(binary, "backup", "verify", file), "not verified")
    token = client.must(201, "POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "s"}}) and client.must(
        201, "POST", "/api/v1/namespaces/default/serviceaccounts/s/token", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})["status"]["token"]
    # The schedule keeps two.
    scheduled = lambda: [name for name in os.listdir(server.data + "/backups") if name.endswith("Z.tar")]  # noqa: E731
    eventually(lambda: "Removed an old backup" in log_of(server), "none is removed")
    eventually(lambda: len(scheduled()) == 2, "not two: %s" % scheduled())
    run(binary, "backup", "verify", os.path.join(server.data, "backups", scheduled()[0]))
    context = server.context()
    server.stop()
    # Of a stopped one, and guided back: old credentials stay valid.
    run(binary, "backup", "save", "--data-dir", server.data, folder + "/stopped.tar")
    text = run(binary, "backup", "restore", folder + "/stopped.tar", folder + "/second/data")
    expect("Next: " in text and "--encryption-provider-config" in text, text)
    run(binary, "backup", "restore", folder + "/stopped.tar", folder + "/second/data", code=1)
    second = started(binary, folder + "/second")
    client = Client(second, context=context)
    expect(len(client.must(200, "GET", MAPS)["items"]) == 50, "maps are lost")
    with socket.create_connection(("127.0.0.1", second.port), 30) as plain:
        connection = ssl.create_default_context(cafile=second.pki + "/ca.crt").wrap_socket(plain, server_hostname="127.0.0.1")
        connection.sendall(b"GET /apis HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n" % token.encode())
        expect(b" 200 " in connection.recv(100), "the old token is refused")
    second.stop()
    with open(folder + "/stopped.tar", "r+b") as f:
        f.seek(-5000, os.SEEK_END)
        f.write(b"damage")
    run(binary, "backup", "verify", folder + "/stopped.tar", code=1)


def lost_keys(binary, folder):
    server = started(binary, folder)
    server.stop()
    for lost, other in (("ca.key", "ca.crt"), ("sa.key", "sa.pub")):
        path = os.path.join(server.pki, lost)
        os.rename(path, path + ".away")
        text = run(binary, "--data-dir=" + server.data, "--secure-port=%d" % server.port, code=1)
        expect("%s is missing, but %s is there" % (path, os.path.join(server.pki, other)) in text and not os.path.exists(path), text)
        os.rename(path + ".away", path)
    server.start()
    server.stop()


def old_certificate(folder, begin, end):
    """A self-signed pair that is valid from `begin` to `end` (YYYYMMDD)."""
    os.makedirs(folder)
    with open(folder + "/ca.cnf", "w") as f:
        f.write("[ca]\ndefault_ca=c\n[c]\ndir=%s\ndatabase=$dir/index\nserial=$dir/serial\nnew_certs_dir=$dir\ndefault_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n" % folder)
    open(folder + "/index", "w").close()
    with open(folder + "/serial", "w") as f:
        f.write("01\n")
    key_file, crt = folder + "/x.key", folder + "/x.crt"
    run("openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=x", "-keyout", key_file, "-out", folder + "/x.csr")
    run("openssl", "ca", "-batch", "-selfsign", "-config", folder + "/ca.cnf", "-in", folder + "/x.csr", "-keyfile", key_file, "-startdate", begin + "000000Z",
        "-enddate", end + "000000Z", "-out", crt, "-notext")
    os.chmod(key_file, 0o600)
    return crt, key_file


def doctor(binary, folder):
    """Faults that are made on purpose, one after the other; each has to be found, and a sound server to be passed."""
    data, port = folder + "/data", "--secure-port=%d" % free_port()
    server = Server(binary, folder)
    RUNNING.append(server)
    server.start()
    Client(server).must(201, "POST", MAPS, config_map("a", {"a": "b"}))
    expect("0 broken" in run(binary, "doctor", "--data-dir=" + data, "--secure-port=%d" % server.port), "a running server")
    server.stop()
    sound = run(binary, "doctor", "--data-dir=" + data, port)
    expect("0 broken" in sound and "every checksum right" in sound, sound)
    found = []

    def fault(name, text, *flags, code=1, etcd=False):
        out = run(binary, "doctor", *([] if etcd else ["--data-dir=" + data]), port, *flags, code=code)
        expect(any(text in line and line.startswith("FAIL" if code else "warn") for line in out.splitlines()), "%s: %r is not in %s" % (name, text, out))
        found.append(name)

    os.chmod(data, 0o755)
    fault("folder open to others", "is open to other users (mode 0755)")
    os.chmod(data, 0o700)
    os.chmod(data + "/pki/sa.key", 0o644)
    fault("key open to others", "other users may read secrets")
    os.chmod(data + "/pki/sa.key", 0o600)
    os.rename(data + "/pki/ca.key", folder + "/ca.key")
    fault("lost key", "ca.key is missing")
    os.rename(folder + "/ca.key", data + "/pki/ca.key")
    shutil.copy(data + "/pki/apiserver.key", folder + "/apiserver.key")
    shutil.copy(data + "/pki/admin.key", data + "/pki/apiserver.key")
    fault("key of another certificate", "apiserver.key is not the key of")
    shutil.copy(folder + "/apiserver.key", data + "/pki/apiserver.key")
    crt, key = old_certificate(folder + "/old", "20200101", "20210101")
    fault("ended certificate", "x.crt ended at 2021-01-01", "--tls-cert-file=" + crt, "--tls-private-key-file=" + key)
    crt, key = old_certificate(folder + "/new", "20900101", "20910101")
    fault("certificate of the future", "x.crt is valid from 2090", "--tls-cert-file=" + crt, "--tls-private-key-file=" + key)
    crt, key = old_certificate(folder + "/soon", "20200101", time.strftime("%Y%m%d", time.gmtime(time.time() + 5 * 86400)))
    fault("certificate that ends soon", "x.crt ends at", "--tls-cert-file=" + crt, "--tls-private-key-file=" + key, code=0)
    shutil.copy(data + "/pki/apiserver.crt", folder + "/apiserver.crt")
    for suffix in ("crt", "key"):
        shutil.copy(folder + "/soon/x." + suffix, data + "/pki/apiserver." + suffix)
    fault("foreign certificate", "is not signed by")
    for suffix in ("crt", "key"):
        shutil.copy(folder + "/apiserver." + suffix, data + "/pki/apiserver." + suffix)
    fault("file of a flag", "--client-ca-file: open /nope", "--client-ca-file=/nope")
    fault("deprecated flag", "has been deprecated", "--kubelet-read-only-port=10255", code=0)
    fault("unknown flag", "unknown flag: --secure-prot", "--secure-prot=1")
    fault("bad value", "--secure-port 0 must be between", "--secure-port=0")
    fault("dead etcd", "connection refused", "--etcd-servers=http://127.0.0.1:%d" % free_port(), *etcd_flags(folder), etcd=True)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        fault("taken port", "address already in use", "--secure-port=%d" % taken.getsockname()[1])
    os.utime(data + "/lock", (time.time() + 86400, time.time() + 86400))
    fault("clock that went back", "was written in the future")
    os.utime(data + "/lock")
    database = os.path.join(data, "store", "db")
    for name in sorted(os.listdir(database)):
        path = os.path.join(database, name)
        if name.endswith((".log", ".sst")) and os.path.getsize(path) > 100:
            with open(path, "r+b") as f:
                f.seek(os.path.getsize(path) // 2)
                f.write(b"damage damage damage")
    fault("damaged store", "store: ")
    expect(len(found) >= 10, str(found))
    print("doctor found %d faults: %s" % (len(found), ", ".join(found)))


def top(binary, folder):
    server = started(binary, folder)
    client = Client(server)
    for _ in range(20):
        client.must(200, "GET", MAPS)
    text = run(binary, "top", "--kubeconfig", server.kubeconfig, "--once")
    for part in ("memory ", "LIST configmaps", "FLOW CONTROL", "global-default", "RESOURCES, largest"):
        expect(part in text, "%r is not in %s" % (part, text))
    several = dict(os.environ, KUBECONFIG="%s/absent:%s" % (folder, server.kubeconfig))
    expect("LIST configmaps" in run(binary, "top", "--once", env=several), "$KUBECONFIG with two files")
    expect("may this user get /metrics" in run(binary, "top", "--kubeconfig", dead_kubeconfig(server, folder, free_port()), code=1), "no advice")
    # Live: keys and signals end it, also while the server does not answer, and leave the terminal as it was.
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        unanswered = dead_kubeconfig(server, folder, silent.getsockname()[1])
        for kubeconfig, until in ((server.kubeconfig, "REQUESTS, slowest"), (unanswered, "Waiting for the server")):
            for send, code in (("q", 0), ("\x03", 0), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, -signal.SIGINT), (signal.SIGHUP, -signal.SIGHUP)):
                begin = time.monotonic()
                text, ended = on_terminal([binary, "top", "--kubeconfig", kubeconfig], until, send)
                expect(ended == code and time.monotonic() - begin < 8,  # the client itself gives up after 10 s
                       "%r: exit code %d after %.1f s" % (send, ended, time.monotonic() - begin))
                expect("\x1b[?1049h" in text and text.endswith("\x1b[?25h\x1b[?1049l"), "%r: the screen is not restored: %r" % (send, text[-80:]))
    server.stop()


def dead_kubeconfig(server, folder, port):
    with open(server.kubeconfig) as f:
        text = f.read().replace(":%d" % server.port, ":%d" % port)
    path = folder + "/dead.kubeconfig"
    with open(path, "w") as f:
        f.write(text)
    return path


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


PARENT = """
import os, subprocess, sys, time
processes = [subprocess.Popen(command.split("\\n"), stderr=open(sys.argv[1] + "/log%d" % i, "w")) for i, command in enumerate(sys.argv[2:])]
print(" ".join(str(p.pid) for p in processes), flush=True)
time.sleep(600)
"""


def envtest_assets(binary, folder):
    """Starts the two programs of the folder as envtest does; they end with the process that started them."""
    assets = folder + "/my assets"
    expect("KUBEBUILDER_ASSETS=" + assets in run(binary, "envtest-assets", assets), "not told")
    expect(shutil.which("kubectl") is None or os.path.exists(assets + "/kubectl"), "no kubectl")
    key = folder + "/sa.key"
    run("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key)

    def control_plane(place, extra=()):
        os.makedirs(place)
        url, port = "http://127.0.0.1:%d" % free_port(), free_port()
        etcd = [assets + "/etcd", "--listen-peer-urls=http://localhost:0", "--data-dir=" + place + "/etcd", "--advertise-client-urls=" + url,
                "--listen-client-urls=" + url, "--unsafe-no-fsync=true"]
        # envtest's own arguments.
        server = [assets + "/kube-apiserver", "--allow-privileged=true", "--authorization-mode=RBAC", "--bind-address=127.0.0.1", "--cert-dir=" + place + "/certs",
                  "--disable-admission-plugins=ServiceAccount", "--etcd-servers=" + url, "--secure-port=%d" % port, "--service-account-issuer=https://127.0.0.1/",
                  "--service-account-key-file=" + key, "--service-account-signing-key-file=" + key, "--service-cluster-ip-range=10.0.0.0/24"] + list(extra)
        parent = subprocess.Popen([sys.executable, "-c", PARENT, place, "\n".join(etcd), "\n".join(server)], stdout=subprocess.PIPE, text=True)
        pids = [int(word) for word in parent.stdout.readline().split()]
        return place, url, port, parent, pids

    def ready(place):
        return lambda: "Serving securely" in open(place + "/log1").read()

    tokens = folder + "/tokens.csv"
    with open(tokens, "w") as f:
        f.write('secret,admin,1,"system:masters"\n')
    place, url, port, parent, pids = control_plane(folder + "/first", ["--token-auth-file=" + tokens])
    eventually(ready(place), "not ready: " + open(place + "/log1").read())
    expect(not os.path.exists(place + "/etcd"), "etcd is not in memory")
    context = ssl._create_unverified_context()

    def call(method, path, body=None):
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=context)
        connection.request(method, path, json.dumps(body) if body else None, {"Authorization": "Bearer secret", "Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    expect(call("POST", MAPS, config_map("first", {"a": "b"}))[0] == 201, "no write")
    run(binary, "migrate", "--from", url, "--to", folder + "/store")
    run(binary, "store", "snapshot", folder + "/store", folder + "/objects.snapshot")
    parent.kill()
    parent.wait()
    eventually(lambda: not any(alive(pid) for pid in pids), "the servers outlive the test")

    run(binary, "envtest-assets", assets, "--snapshot-from", folder + "/objects.snapshot")
    place, url, port, parent, pids = control_plane(folder + "/second", ["--token-auth-file=" + tokens])
    eventually(ready(place), "not ready: " + open(place + "/log0").read() + open(place + "/log1").read())
    expect(call("GET", MAPS + "/first")[0] == 200, "the snapshot's object is not there")
    parent.kill()
    parent.wait()
    eventually(lambda: not any(alive(pid) for pid in pids), "the servers outlive the test")


def help_texts(binary, folder):
    """Every command prints its usage, on stdout and with exit code 0; mistyped words are errors that name the nearest one."""
    listed = run(binary, "help").split("Commands:")[1].split("\n\n")[0]
    names = [line.split()[0] for line in listed.splitlines() if line.startswith("  ")]
    expect({"store", "migrate", "etcd", "backup", "doctor", "console", "top"} <= set(names), listed)
    for name in names:
        for words in ([name, "--help"], [name, "-h"], ["help", name]):
            done = subprocess.run([binary] + words, capture_output=True, text=True, timeout=120)
            expect(done.returncode == 0 and done.stderr == "" and done.stdout.startswith("keelson %s: " % name) and "usage: keelson " + name in done.stdout,
                   "%s: %d %s%s" % (words, done.returncode, done.stdout, done.stderr))
    with open("/dev/full", "w") as full:
        for words in (["help"], ["store", "--help"], ["--help"], ["version"]):
            expect(subprocess.run([binary] + words, stdout=full, timeout=120).returncode == 1, "%s: output that is lost is not an error" % words)
    as_etcd = os.path.join(folder, "etcd")
    os.symlink(binary, as_etcd)
    expect("--listen-client-urls" in run(as_etcd, "--help"), "etcd --help")
    for words in (["--lisen-client-urls=x"], ["x"], ["--listen-client-urls=https://127.0.0.1:0", "--data-dir=:memory:"]):
        expect(run(binary, "etcd", *words, code=1).startswith("Error: "), "etcd %s" % words)
    for words, nearest in ((["storre"], '"store"'), (["store", "chek", "x"], '"check"'), (["--etcd-server=x"], "--etcd-servers"), (["--secure-prot=1"], "--secure-port"), (["help", "docter"], '"doctor"'),
                           (["backup", "sav"], '"save"'), (["migrate", "--frm", "x"], '"--from"'), (["completion", "bsh"], '"bash"')):
        text = run(binary, *words, code=1)
        expect("did you mean" in text.lower() and nearest in text, "%s: %s" % (words, text))


# Completes the words given as arguments, the last one being typed, as bash does on TAB.
BASH = """
compopt() { :; }
source /dev/stdin
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_keelson
printf '%s\\n' "${COMPREPLY[@]}"
"""


def completion(binary, folder):
    """The scripts of all shells parse; bash completes commands, their words and flags, and files."""
    for shell, check in (("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")):
        script = os.path.join(folder, shell)
        with open(script, "w") as f:
            f.write(run(binary, "completion", shell))
        if shutil.which(shell):
            run(shell, check, script)
    with open(folder + "/bash") as f:
        script = f.read()

    def complete(*words):
        done = subprocess.run(["bash", "-c", BASH, "bash", "keelson", *words], input=script, capture_output=True, text=True, timeout=60, cwd=folder)
        expect(done.returncode == 0 and not done.stderr, "%s: %s" % (words, done.stderr))
        return done.stdout.split()

    for words, want in ((("doc",), ["doctor"]), (("store", ""), ["check", "snapshot", "restore", "defragment"]), (("backup", "r"), ["restore"]),
                        (("backup", "save", "--"), ["--data-dir"]), (("top", "--o"), ["--once"]), (("migrate", "--from-k"), ["--from-keyfile"]),
                        (("completion", ""), ["bash", "zsh", "fish"]), (("help", "envtest"), ["envtest-assets"]), (("doctor", "--etcd-cert"), ["--etcd-certfile"]),
                        (("--etcd-cert",), ["--etcd-certfile"]), (("-v=2", "--etcd-cert"), ["--etcd-certfile"]), (("store", "--"), []),
                        (("etcd", "--listen-c"), ["--listen-client-urls"]), (("store", "check", "zs"), ["zsh"]), (("--data-dir=zs",), ["zsh"]),
                        (("--data-dir", "=", "zs"), ["zsh"])):
        expect(complete(*words) == want, "%s: %s" % (words, complete(*words)))


def store_folders(binary, folder):
    """A mistyped folder is an error, not a new store; one that is in use is told with what to do."""
    for verb, more in (("check", []), ("snapshot", [folder + "/snapshot"]), ("defragment", [])):
        text = run(binary, "store", verb, folder + "/nothing", *more, code=1)
        expect("there is no store in" in text and not os.path.exists(folder + "/nothing"), "%s: %s" % (verb, text))
    server = started(binary, folder)
    for verb, more in (("check", []), ("snapshot", [folder + "/snapshot"]), ("defragment", [])):
        text = run(binary, "store", verb, server.data, *more, code=1)
        expect("in use" in text and "keelson backup save" in text, "%s: %s" % (verb, text))
    server.stop()


def migrated_folder(binary, folder):
    """A store that is made beside the place where a server looks for it is refused, not passed over for an empty one."""
    server = started(binary, folder)
    Client(server).must(201, "POST", MAPS, config_map("moved", {"a": "b"}))
    server.stop()
    run(binary, "migrate", "--from", server.data, "--to", folder + "/bare")
    text = run(binary, "--data-dir=" + folder + "/bare", "--secure-port=%d" % free_port(), code=1)
    expect("is itself a store" in text and "FOLDER/store" in text, text)
    run(binary, "migrate", "--from", server.data, "--to", folder + "/whole/store")
    server = Server(binary, folder + "/second")
    server.data = folder + "/whole"
    RUNNING.append(server)
    server.start()
    Client(server).must(200, "GET", MAPS + "/moved")
    server.stop()


TESTS = [help_texts, completion, store_folders, migrated_folder, start_problems, banner, flags_in_force, etcd_awaited, etcd_not_needed_to_find_mistakes, etcd_lost, backup, lost_keys, doctor, top, envtest_assets]


if __name__ == "__main__":
    sys.exit(run_tests(TESTS, RUNNING))
