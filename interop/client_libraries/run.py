#!/usr/bin/env python3
"""Client libraries of other languages, from public registries, against the server.

usage: run.py KEELSON WORK_FOLDER [--only NAME[,NAME]] [--python-source FOLDER] [--real BIN_FOLDER] [--shrink]

  client-go       the program of interop/clients (Go module proxy)
  python          python/checks.py with the package `kubernetes` of PyPI
  python-dynamic  the tests of the dynamic client that the same release has in its source package
  python-e2e      kubernetes/e2e_test of --python-source, a checkout of kubernetes-client/python, with the same release of the library; skipped without
  javascript      javascript/checks.mjs with @kubernetes/client-node of npm
  rust            rust/src/main.rs with kube of crates.io
  java            java/official/Checks.java with io.kubernetes:client-java of Maven Central
  java-fabric8    java/fabric8/Checks.java with io.fabric8:kubernetes-client of Maven Central

Versions are pinned (python/requirements.txt, javascript/package-lock.json, rust/Cargo.lock, java/*/pom.xml, go.mod); nothing that is fetched is kept here: it is installed into the user's
cache. Each client gets its own server with a fake kubelet, on which pod default/one runs. A program prints a line for each check: "ok NAME" or
"FAIL NAME what was wrong". expected-failures.txt has the checks that fail: client/check, a tab, the reason; it may only shrink. Prints a table.
--real runs the same on kube-apiserver and etcd of that folder: what fails there, too, is the library's.
"""
import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(ROOT, "test", "system"), os.path.dirname(HERE)]
from fake_kubelet import FakeKubelet  # noqa: E402
from harness import Client, Server  # noqa: E402
from outcomes import conclude, expected_failures, write_junit  # noqa: E402
from rig import RealPair  # noqa: E402

EXPECTED = os.path.join(HERE, "expected-failures.txt")
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "keelson", "clients")
MINUTES = 20  # for one client


class Skipped(Exception):
    pass


def need(program):
    if not shutil.which(program):
        raise Skipped("%s is not installed" % program)


def key_of(*files):
    """A folder name that changes with the pinned versions."""
    digest = hashlib.sha256()
    for name in files:
        with open(os.path.join(HERE, name), "rb") as f:
            digest.update(f.read())
    return digest.hexdigest()[:12]


def install(name, files, make):
    """The folder in the cache in which make(folder) has installed a client, once for each set of pinned versions."""
    folder = os.path.join(CACHE, name + "-" + key_of(*files))
    if not os.path.isdir(folder):
        made = folder + ".new"
        shutil.rmtree(made, ignore_errors=True)
        os.makedirs(made)
        make(made)
        os.rename(made, folder)
    return folder


def call(*command, **kwargs):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kwargs)
    if done.returncode:
        raise Skipped("%s failed: %s" % (" ".join(command[:4]), done.stdout.strip()[-300:]))


# ---- The clients. Each returns its command and, where output is not in our form, a function line → (name, outcome, message) or None.

def client_go(a):
    need("go")
    program = os.path.join(a.folder, "client-go-program")
    call("go", "build", "-o", program, ".", cwd=os.path.join(os.path.dirname(HERE), "clients"))
    return [program], {}, own_lines


def python_packages(folder):
    # Not a virtual environment: those have absolute paths in them, and the folder is renamed when it is complete.
    call(sys.executable, "-m", "pip", "install", "-q", "--no-input", "--disable-pip-version-check", "--target", os.path.join(folder, "packages"), "-r", os.path.join(HERE, "python", "requirements.txt"))
    with open(os.path.join(HERE, "python", "requirements.txt")) as f:
        library = [line.strip() for line in f if line.startswith("kubernetes==")][0]
    call(sys.executable, "-m", "pip", "download", "-q", "--no-input", "--disable-pip-version-check", "--no-deps", "--no-binary", ":all:", "-d", folder, library)
    archive = [name for name in os.listdir(folder) if name.endswith(".tar.gz")][0]
    call("tar", "-xzf", archive, cwd=folder)
    os.rename(os.path.join(folder, archive[:-len(".tar.gz")]), os.path.join(folder, "source"))


def python_folder():
    return install("python", ["python/requirements.txt"], python_packages)


def python(a):
    return [sys.executable, os.path.join(HERE, "python", "checks.py")], {"PYTHONPATH": os.path.join(python_folder(), "packages")}, own_lines


def pytest(tree, *tests):
    """Tests of the library, with the module that finds the cluster (ours where the release has none)."""
    base = os.path.join(tree, "kubernetes", "e2e_test")
    if not os.path.isdir(base):
        os.makedirs(base)
        open(os.path.join(base, "__init__.py"), "w").close()
        shutil.copy(os.path.join(HERE, "python", "e2e_base.py"), os.path.join(base, "base.py"))
    command = [sys.executable, "-m", "pytest", "-v", "--tb=line", "-p", "no:cacheprovider", "-o", "addopts=", *tests]
    return command, {"PYTHONPATH": tree + ":" + os.path.join(python_folder(), "packages"), "cwd": tree}, pytest_lines


def source_tree(a, name):
    """A copy of the release's source, which the tests may write into."""
    tree = os.path.join(a.folder, name + "-source")
    shutil.copytree(os.path.join(python_folder(), "source"), tree)
    return tree


def python_dynamic(a):
    return pytest(source_tree(a, "python-dynamic"), "kubernetes/dynamic/test_client.py", "kubernetes/dynamic/test_discovery.py", "kubernetes/leaderelection/leaderelection_test.py")


def python_e2e(a):
    if not a.python_source:
        raise Skipped("no --python-source: a checkout of kubernetes-client/python")
    tree = source_tree(a, "python-e2e")
    shutil.copytree(os.path.join(a.python_source, "kubernetes", "e2e_test"), os.path.join(tree, "kubernetes", "e2e_test"))
    shutil.copy(os.path.join(HERE, "python", "e2e_base.py"), os.path.join(tree, "kubernetes", "e2e_test", "base.py"))
    # Those that wait, some for ever, until a kubelet runs their pod.
    return pytest(tree, "kubernetes/e2e_test", "-k", "not (pod_apis or pod_exec or exit_code or portforward)")


def javascript(a):
    need("npm")

    def make(folder):
        for name in ("package.json", "package-lock.json"):
            shutil.copy(os.path.join(HERE, "javascript", name), folder)
        call("npm", "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", cwd=folder)
    folder = install("javascript", ["javascript/package.json", "javascript/package-lock.json"], make)
    program = os.path.join(a.folder, "javascript-program")  # beside its packages, or Node.js does not find them
    os.makedirs(program)
    shutil.copy(os.path.join(HERE, "javascript", "checks.mjs"), program)
    os.symlink(os.path.join(folder, "node_modules"), os.path.join(program, "node_modules"))
    return ["node", os.path.join(program, "checks.mjs")], {}, own_lines


def rust(a):
    need("cargo")
    target = os.path.join(CACHE, "rust-target")  # cargo itself knows what of it is out of date
    call("cargo", "build", "--quiet", "--locked", "--target-dir", target, cwd=os.path.join(HERE, "rust"))
    return [os.path.join(target, "debug", "checks")], {}, own_lines


def java_program(a, library):
    """The command that runs Checks.java of a folder of java/ with the packages that its pom.xml names."""
    need("mvn")
    need("javac")
    source = os.path.join(HERE, "java", library)

    def make(folder):
        call("mvn", "-q", "-B", "-f", os.path.join(source, "pom.xml"), "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=" + folder)
    packages = os.path.join(install("java-" + library, ["java/%s/pom.xml" % library], make), "*")
    classes = os.path.join(a.folder, library + "-classes")
    call("javac", "-nowarn", "-cp", packages, "-d", classes, os.path.join(source, "Checks.java"))
    return ["java", "-cp", classes + ":" + packages, "Checks"], {}, own_lines


def java(a):
    return java_program(a, "official")


def java_fabric8(a):
    return java_program(a, "fabric8")


CLIENTS = {"client-go": client_go, "python": python, "python-dynamic": python_dynamic, "python-e2e": python_e2e, "javascript": javascript, "rust": rust, "java": java, "java-fabric8": java_fabric8}


# ---- Output

def own_lines(line):
    match = re.match(r"(ok|FAIL) +(\S+)\s*(.*)", line)
    return match and (match.group(2), "passed" if match.group(1) == "ok" else "failed", match.group(3))


def pytest_lines(line):
    match = re.match(r"\S+::(\S+) (PASSED|FAILED|ERROR|SKIPPED)", line)
    if match:
        return match.group(1).replace("::", "."), {"PASSED": "passed", "SKIPPED": "skipped"}.get(match.group(2), "failed"), ""
    return None


# ---- One run

def kubelet_of(folder):
    files = {}
    for name, subject in (("kubelet", "/CN=node-1"), ("client", "/CN=apiserver")):
        files[name] = [os.path.join(folder, name + end) for end in (".crt", ".key")]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-out", files[name][0], "-keyout", files[name][1],
                        "-subj", subject, "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    kubelet = FakeKubelet(*files["kubelet"], client_ca=files["client"][0])
    for container, lines in (("c", ["first", "second"]), ("ended", ["only", None])):
        for line in lines:
            kubelet.log(container, line)
    return kubelet, ["--kubelet-client-certificate=" + files["client"][0], "--kubelet-client-key=" + files["client"][1], "--kubelet-certificate-authority=" + files["kubelet"][0]]


def make_pod(client, port):
    client.must(201, "POST", "/api/v1/nodes", {"metadata": {"name": "node-1", "labels": {"kubernetes.io/hostname": "node-1"}}, "status": {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}], "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}})
    client.must(201, "POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "one"}, "spec": {"nodeName": "node-1", "containers": [
        {"name": "c", "image": "i", "ports": [{"containerPort": 8080}]}, {"name": "ended", "image": "i"}]}})
    client.must(200, "PATCH", "/api/v1/namespaces/default/pods/one/status", {"status": {"phase": "Running", "podIP": "127.0.0.9", "podIPs": [{"ip": "127.0.0.9"}]}},
                content_type="application/merge-patch+json")


def run(a, name):
    """Check → (outcome, message, seconds)."""
    command, environment, read = CLIENTS[name](a)
    folder = os.path.join(a.folder, name)
    os.makedirs(folder)
    kubelet, flags = kubelet_of(folder)
    flags.append("--disable-admission-plugins=ServiceAccount")
    place = os.path.join(folder, "server")
    server = RealPair(place, a.real, flags) if a.real else Server(a.keelson, place, flags, in_memory=True, controllers=name != "client-go")  # which counts the config maps of its namespace
    server.start()
    results = {}
    try:
        client = Client(server)
        make_pod(client, kubelet.port)
        client.close()
        where = environment.pop("cwd", folder)
        with open(os.path.join(folder, "output.log"), "w") as log:
            process = subprocess.Popen(command, env=dict(os.environ, KUBECONFIG=server.kubeconfig, HOME=folder, PYTHONDONTWRITEBYTECODE="1", **environment), cwd=where,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)
            for line in process.stdout:
                log.write(line)
                log.flush()
                found = read(line.strip())
                if found:
                    results[name + "/" + found[0]] = (found[1], found[2], 0.0)
            process.wait(MINUTES * 60)
        if not a.real and server.process.poll() is not None:
            results[name + "/(server)"] = ("failed", "the server ended", 0.0)
        if not results:
            results[name + "/(run)"] = ("failed", "nothing ran; see %s" % log.name, 0.0)
    finally:
        server.stop()
        kubelet.stop()
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("keelson", type=os.path.abspath)
    parser.add_argument("folder", type=os.path.abspath)
    parser.add_argument("--only", default="", help="clients, with commas")
    parser.add_argument("--python-source", default=os.environ.get("KEELSON_PYTHON_CLIENT"))
    parser.add_argument("--real", help="the folder of kube-apiserver and etcd")
    parser.add_argument("--shrink", action="store_true", help="remove the lines of expected-failures.txt that pass")
    a = parser.parse_args()
    shutil.rmtree(a.folder, ignore_errors=True)
    os.makedirs(a.folder)
    names = [n for n in a.only.split(",") if n] or list(CLIENTS)
    for name in names:
        if name not in CLIENTS:
            sys.exit("clients: no client %s; there are %s" % (name, ", ".join(CLIENTS)))
    expected, results, table = expected_failures(EXPECTED), {}, []
    for name in names:
        try:
            outcome = run(a, name)
        except Skipped as reason:
            table.append("clients: %-16s skipped: %s" % (name, reason))
            print(table[-1], flush=True)
            continue
        count = lambda kind, known: sum(r[0] == kind and (n in expected) == known for n, r in outcome.items())  # noqa: E731
        table.append("clients: %-16s %3d run %3d passed %3d failed %3d failed as expected %3d skipped" % (
            name, len(outcome), count("passed", False) + count("passed", True), count("failed", False), count("failed", True), count("skipped", False) + count("skipped", True)))
        print(table[-1], flush=True)
        results.update(outcome)
    if not results:
        sys.exit(77)
    write_junit(os.path.join(a.folder, "junit.xml"), "clients", results, expected)
    sys.exit(conclude("clients", results, EXPECTED, expected, a.shrink, quiet=True))


if __name__ == "__main__":
    main()
