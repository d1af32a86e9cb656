#!/usr/bin/env python3
"""Runs the commands of docs/recipes unchanged. usage: recipes_test.py KEELSON WORK_FOLDER [NAME ...]

The shell finds a `keelson` that adds a free port, so that several tests can run side by side, and where a page manages a service a `systemctl`
that starts and stops one server. Folders of the system are folders of the test.
"""
import functools
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, Server, config_map, free_port, run_tests, source_root  # noqa: E402
from kubectl_test import find_kubectl  # noqa: E402

MAPS = "/api/v1/namespaces/default/configmaps"
CRD = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"}, "spec": {
    "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"}, "versions": [
        {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}


def expect(condition, text):
    if not condition:
        raise AssertionError(text)


def page(name):
    with open(os.path.join(source_root(), "docs", "recipes", name)) as f:
        return f.read()


def indented(text):
    """The blocks of a page that are set in by four spaces, as scripts."""
    blocks = re.findall(r"(?:^    .*\n(?:\s*\n(?=    ))?)+", text, re.M)
    return [re.sub(r"^    ", "", block, flags=re.M) for block in blocks]


def steps(text):
    """The scripts below `run:` of a workflow, in order."""
    workflow = re.search(r"```yaml\n(.*?)```", text, re.S).group(1)
    return [re.sub(r"^ {4}", "", many, flags=re.M) if many else one for many, one in re.findall(r"run: (?:\|\n((?:    .*\n)+)|(.+))", workflow)]


def script(path, text):
    with open(path, "w") as f:
        f.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)


class Shell:
    """Runs scripts in the folder with their own PATH. Servers that they start in the background are ended by stop()."""

    def __init__(self, binary, folder):
        self.folder, self.port, self.bin = folder, free_port(), os.path.join(folder, "bin")
        os.makedirs(self.bin)
        # A server, or doctor with its flags, gets the port; every other command is passed on as it is.
        script(self.bin + "/keelson", 'case "$1" in --*|doctor) exec %s "$@" --secure-port=%d;; esac\nexec %s "$@"\n' % (binary, self.port, binary))
        os.symlink(find_kubectl(), self.bin + "/kubectl")
        self.environment = {"PATH": self.bin + ":/usr/sbin:/usr/bin:/sbin:/bin", "HOME": folder, "RUNNER_TEMP": folder, "GITHUB_ENV": folder + "/environment"}
        self.environment.update({name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")})  # of tools/sanitized.sh
        self.processes = []

    def run(self, text):
        with open(self.folder + "/out", "w+") as out:
            process = subprocess.Popen(["bash", "-e", "-c", text], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
            self.processes.append(process)
            code = process.wait(120)
            out.seek(0)
            shown = out.read()
        expect(code == 0, "exit code %d of\n%s\n%s" % (code, text, shown))
        return shown

    def stop(self):
        for process in self.processes:
            try:
                os.killpg(process.pid, signal.SIGTERM)
            except ProcessLookupError:
                pass


def ci(shell, binary, folder):
    """The workflow's steps, with what GitHub puts into the environment between them."""
    start, use, failure = steps(page("ci.md"))
    os.makedirs(folder + "/manifests")
    with open(folder + "/manifests/map.json", "w") as f:
        json.dump({"apiVersion": "v1", "kind": "ConfigMap", **config_map("settings", {"a": "b"})}, f)
    shell.run(start)
    with open(folder + "/environment") as f:
        shell.environment.update(line.strip().split("=", 1) for line in f)
    expect("configmap/settings created (server dry run)" in shell.run(use), "the manifests")
    shown = shell.run(failure)
    expect("0 broken" in shown and "KUBECONFIG=" in shown, shown)


def envtest(shell, binary, folder):
    """The assets, and a snapshot with a definition that a new environment begins with."""
    assets, seed = indented(page("envtest.md"))
    assets = assets.replace("go test ./...", "echo assets in $KUBEBUILDER_ASSETS")
    shown = shell.run(assets)
    place = shown.split("assets in ")[1].strip()
    expect({"etcd", "kube-apiserver", "kubectl"} <= set(os.listdir(place)), shown)
    os.makedirs(folder + "/config/crd")
    with open(folder + "/config/crd/widgets.json", "w") as f:
        json.dump(CRD, f)
    shell.run(seed)
    url = "http://127.0.0.1:%d" % free_port()
    etcd = subprocess.Popen([folder + "/assets/etcd", "--listen-client-urls=" + url, "--advertise-client-urls=" + url], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        shell.run("keelson migrate --from %s --to %s/copy/store" % (url, folder))
    finally:
        etcd.terminate()
        etcd.wait()
    server = Server(binary, folder)
    server.data = folder + "/copy"
    server.start()
    try:
        Client(server).must(200, "GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com")
    finally:
        server.stop()


SYSTEMCTL = """
case "$1" in
start) keelson --data-dir=%(data)s >>%(folder)s/log 2>&1 & echo $! >%(folder)s/pid
  until kubectl --kubeconfig %(data)s/admin.kubeconfig get --raw /readyz; do sleep 0.1; done;;
stop) kill $(cat %(folder)s/pid); while kill -0 $(cat %(folder)s/pid) 2>/dev/null; do sleep 0.1; done;;
esac
"""


def backup(shell, binary, folder):
    """Saved while the server runs; restored into a new folder that takes the old one's place."""
    data, backups = folder + "/keelson", folder + "/backup"
    os.makedirs(backups)
    script(shell.bin + "/systemctl", SYSTEMCTL % {"data": data, "folder": folder})
    script(shell.bin + "/chown", "exit 0\n")  # the package's user is not on this machine
    save, restore = (block.replace("/var/lib/keelson", data).replace("/mnt/backup", backups) for block in indented(page("backup.md")))
    # The first commands mean the default folder.
    shell.environment["XDG_DATA_HOME"] = folder
    shell.run("systemctl start keelson")
    shell.environment["KUBECONFIG"] = data + "/admin.kubeconfig"
    shell.run("kubectl create configmap before --from-literal=a=b")
    shell.run(save.replace("FILE", backups + "/today.tar"))
    shell.run("kubectl create configmap after --from-literal=a=b")
    shell.run(restore)
    shown = shell.run("kubectl get configmaps -o name; systemctl stop keelson")
    expect("configmap/before" in shown and "configmap/after" not in shown, shown)
    expect(os.path.isdir(data + "-old"), "the old folder is gone")


class Etcd:
    """An etcd with TLS and client certificates, which are those of a Keelson server: a real one where it is there, otherwise ours."""

    def __init__(self, binary, folder, pki):
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        found = [path for path in (os.environ.get("KEELSON_ETCD"), cache + "/keelson/bin/etcd", shutil.which("etcd")) if path and os.access(path, os.X_OK)]
        self.url, peer = "https://127.0.0.1:%d" % free_port(), "http://127.0.0.1:%d" % free_port()
        command = found[:1] or [binary, "etcd"]
        self.process = subprocess.Popen(command + ["--data-dir=" + folder, "--listen-client-urls=" + self.url, "--advertise-client-urls=" + self.url, "--listen-peer-urls=" + peer,
                                                   "--initial-advertise-peer-urls=" + peer, "--initial-cluster=default=" + peer, "--client-cert-auth", "--cert-file=" + pki + "/apiserver.crt",
                                                   "--key-file=" + pki + "/apiserver.key", "--trusted-ca-file=" + pki + "/ca.crt"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def flags(self, pki):
        return ["--etcd-servers=" + self.url, "--etcd-cafile=%s/ca.crt" % pki, "--etcd-certfile=%s/admin.crt" % pki, "--etcd-keyfile=%s/admin.key" % pki]


def until(check, what):
    end = time.monotonic() + 60
    while not check():
        expect(time.monotonic() < end, what)
        time.sleep(0.05)


def following(shell, command):
    """Starts a migration that follows, and returns when it does: an interrupt ends it."""
    log = open(shell.folder + "/migrate.log", "w")
    process = subprocess.Popen(["bash", "-c", "exec " + command.strip()], cwd=shell.folder, env=shell.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def follows():
        with open(log.name) as f:
            text = f.read()
        expect(process.poll() is None, text)
        return "following the source" in text

    until(follows, "it does not follow")
    return process


def finish(process, log, code=0):
    process.send_signal(signal.SIGINT)
    with open(log) as f:
        expect(process.wait(120) == code, f.read())


class APIServer(Server):
    """A server with the certificates of another one: what the clients have stays valid whatever it stores in."""

    def __init__(self, shell, name, pki, command):
        super().__init__(shell.bin + "/keelson", shell.folder + "/" + name)
        self.port, self.pki = shell.port, pki
        with open(self.log_path, "w") as log:
            self.process = subprocess.Popen(command, cwd=shell.folder, env=shell.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def migrate(shell, binary, folder):
    """From etcd into a folder with a server that goes on writing, and back into another etcd; nothing is lost, and certificates and versions stay."""
    maker = Server(binary, folder + "/maker").start()
    maker.stop()
    pki = maker.data + "/pki"
    for name, source in (("ca.crt", "ca.crt"), ("client.crt", "admin.crt"), ("client.key", "admin.key")):
        shutil.copy(pki + "/" + source, folder + "/" + name)
    own = ["--client-ca-file=%s/ca.crt" % pki, "--service-account-key-file=%s/sa.pub" % pki, "--service-account-signing-key-file=%s/sa.key" % pki, "--service-account-issuer=https://kubernetes.default.svc"]
    serving = ["--tls-cert-file=%s/apiserver.crt" % pki, "--tls-private-key-file=%s/apiserver.key" % pki]
    over, back = indented(page("migrate.md"))
    data, served = folder + "/keelson", "127.0.0.1:%d" % free_port()
    first, second = Etcd(binary, folder + "/first", pki), Etcd(binary, folder + "/second", pki)
    started = []

    def server(name, command):
        started.append(APIServer(shell, name, pki, command))

        def ready():
            expect(started[-1].process.poll() is None, open(started[-1].log_path).read())
            try:
                return Client(started[-1]).request("GET", "/readyz")[0] == 200
            except (OSError, http.client.HTTPException):
                return False

        until(ready, "not ready")
        return started[-1], Client(started[-1])

    try:
        old, client = server("old", [shell.bin + "/keelson"] + first.flags(pki) + own + serving + ["--authorization-mode=RBAC"])
        client.must(201, "POST", MAPS, config_map("early", {"a": "b"}))
        copying, serve = (part.replace("https://127.0.0.1:2379", first.url).replace("/var/lib/keelson", data) for part in re.split(r"# when .*\n", over))
        process = following(shell, copying)
        version = client.must(201, "POST", MAPS, config_map("late", {"a": "b"}))["metadata"]["resourceVersion"]
        old.stop()
        finish(process, folder + "/migrate.log")
        command = serve.split("--client-ca-file")[0].split()
        expect(command == ["keelson", "--data-dir=" + data] and all(flag.split("=")[0] in serve for flag in own), serve)
        new, client = server("new", [shell.bin + "/keelson"] + command[1:] + own + serving + ["--serve-etcd-api=" + served])
        expect(client.must(200, "GET", MAPS + "/late")["metadata"]["resourceVersion"] == version, "another version")
        client.must(200, "GET", MAPS + "/early")
        back = back.replace("127.0.0.1:2381", served).replace("https://127.0.0.1:2379", second.url).replace("/var/lib/keelson", data)
        serve, copying, rest = (line for line in back.splitlines() if not line.startswith("#"))
        expect("--serve-etcd-api=" + served in serve, serve)
        process = following(shell, copying)
        client.must(201, "POST", MAPS, config_map("last", {"a": "b"}))
        new.stop()
        finish(process, folder + "/migrate.log", code=1)
        with open(folder + "/migrate.log") as f:
            expect("the source is gone" in f.read(), "why it ended")
        expect("the target is a copy of the source" in shell.run(rest), "not a copy")
        back_again, client = server("again", [shell.bin + "/keelson"] + second.flags(pki) + own + serving + ["--authorization-mode=RBAC"])
        names = {item["metadata"]["name"] for item in client.must(200, "GET", MAPS)["items"]}
        expect({"early", "late", "last"} <= names, "lost: %s" % names)
        back_again.stop()
    finally:
        for process in [first.process, second.process] + [one.process for one in started if one.process]:
            process.kill()
            process.wait()


def k3s(shell, binary, folder):
    """Keelson with upstream's controller manager and scheduler, as the page starts them: a Deployment's pods are bound to a node."""
    cache = (os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) + "/keelson/bin"
    programs = ["kube-controller-manager", "kube-scheduler"]
    if not all(os.access(cache + "/" + name, os.X_OK) for name in programs):
        print("k3s: no %s in %s (interop/build.sh), left out" % (" and ".join(programs), cache))
        return
    for name in programs:  # their ports are fixed and nobody asks there
        script(shell.bin + "/" + name, 'exec %s/%s "$@" --secure-port=0\n' % (cache, name))
    data = folder + "/keelson"
    text = indented(page("k3s.md"))[0].replace("/var/lib/keelson", data).replace("0.0.0.0", "127.0.0.1").replace("ADDRESS", "127.0.0.1")
    commands = [command for command in text.replace("\\\n", " ").splitlines() if command.strip()]
    expect([command.split()[0] for command in commands] == ["keelson"] + programs, text)
    shell.environment["KUBECONFIG"] = data + "/admin.kubeconfig"
    shell.run(commands[0] + " >server.log 2>&1 &\nuntil kubectl get --raw /readyz; do sleep 0.1; done")
    for command in commands[1:]:
        shell.run(command + " >%s.log 2>&1 &" % command.split()[0])
    with open(folder + "/node.json", "w") as f:
        json.dump({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
                   "capacity": {"cpu": "4", "memory": "8Gi", "pods": "20"}, "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "20"}}}, f)
    shell.run("kubectl create -f node.json; kubectl create deployment web --image=example.com/web --replicas=3")

    def bound():
        # The node controller taints a node without a kubelet: the test keeps it schedulable.
        shell.run("kubectl patch node n --type=merge -p '{\"spec\":{\"taints\":null}}'")
        return shell.run("kubectl get pods -l app=web -o jsonpath='{.items[*].spec.nodeName}'").split() == ["n"] * 3

    until(bound, "the pods are not bound")


TESTS = [ci, envtest, backup, migrate, k3s]


def in_shell(test):
    @functools.wraps(test)
    def run(binary, folder):
        shell = Shell(binary, folder)
        try:
            test(shell, binary, folder)
        finally:
            shell.stop()
    return run


if __name__ == "__main__":
    find_kubectl()
    sys.exit(run_tests([in_shell(test) for test in TESTS]))
