#!/usr/bin/env python3
"""Kubernetes' own integration tests (test/integration, and those of apiextensions-apiserver) against the server.

usage: run.py KEELSON WORK_FOLDER BIN_FOLDER [--only PACKAGE[,PACKAGE]] [--focus REGEX] [--build-only | --no-build] [--shrink]

The tests come from the Go module proxy at the version of go.mod. A copy of the two modules gets the files of overlay/, which start Keelson as a
process where the tests would start a Go server inside themselves (prepare()); everything else of them stays as it is. Each package gets an etcd
of its own. left-out.txt names the tests that are not run, because they reach into the memory of the Go server; expected-failures.txt those that
fail here. In both a line is package, slash, test, a tab, the reason; in left-out.txt a test may be followed by a slash and the pattern of a subtest. expected-failures.txt may only shrink: a test in it that passes fails the run until
its line is gone (--shrink removes such lines). Prints a line for each package, then every failure; writes junit.xml into the work folder.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(HERE))
from outcomes import conclude, expected_failures, write_junit  # noqa: E402
from rig import arguments_of, end, free_port, parser_of  # noqa: E402

KUBERNETES, EXTENSIONS = "k8s.io/kubernetes", "k8s.io/apiextensions-apiserver"
# Our files declare these functions; the modules' own are renamed.
REPLACED = {
    (KUBERNETES, "cmd/kube-apiserver/app/testing/testserver.go"): "StartTestServer",
    (KUBERNETES, "test/integration/framework/test_server.go"): "StartTestServer",
    (KUBERNETES, "test/integration/etcd/server.go"): "StartRealAPIServerOrDie",
    (EXTENSIONS, "pkg/cmd/server/testing/testserver.go"): "StartTestServer",
}
NAMES = ["apiserver", "apiserver/admissionwebhook", "apiserver/anonymous", "apiserver/apply", "apiserver/cel", "apiserver/cel/authorizerselector/selectordisabled",
         "apiserver/cel/authorizerselector/selectorenabled", "apiserver/certreload", "apiserver/coordinatedleaderelection", "apiserver/discovery",
         "apiserver/egressselector", "apiserver/flowcontrol", "apiserver/httpproxy", "apiserver/oidc", "apiserver/openapi", "apiserver/peerproxy", "apiserver/podlogs",
         "apiserver/portforward", "apiserver/tracing", "auth", "controlplane", "controlplane/audit", "controlplane/transformation", "client", "apimachinery", "dryrun",
         "etcd", "objectmeta", "openshift", "quota", "serviceaccount", "secrets", "storageversion", "ttlcontroller"]
# Name here → import path.
PACKAGES = dict({name: KUBERNETES + "/test/integration/" + name for name in NAMES},
                **{"apiextensions": EXTENSIONS + "/test/integration", "apiextensions/conversion": EXTENSIONS + "/test/integration/conversion"})
EXPECTED = os.path.join(HERE, "expected-failures.txt")
LEFT_OUT = os.path.join(HERE, "left-out.txt")
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "keelson", "reference")
PACKAGE_MINUTES = 20


def go(*arguments, env=None, **kwargs):
    return subprocess.run(["go", *arguments], cwd=HERE, check=True, text=True, env=env, **kwargs)


def prepare():
    """A module cache of its own: links to the user's, but the two modules are copies with our files in them. Go refuses -overlay for files of the
    module cache, and a replaced module would be compiled a second time, whole. Returns the environment for go."""
    go("mod", "download", "-x" if os.environ.get("V") else "-json", stdout=subprocess.DEVNULL)
    shared = go("env", "GOMODCACHE", stdout=subprocess.PIPE).stdout.strip()
    own = os.path.join(CACHE, "mod")
    versions = {}
    for module in (KUBERNETES, EXTENSIONS):
        versions[module] = go("list", "-m", "-f", "{{if .Replace}}{{.Replace.Version}}{{else}}{{.Version}}{{end}}", module, stdout=subprocess.PIPE).stdout.strip()
    copied = {"%s@%s" % (module, version) for module, version in versions.items()}
    link(shared, own, copied)
    for module, version in versions.items():
        place = os.path.join(own, "%s@%s" % (module, version))
        if os.path.islink(place):  # of a run with another version: writing would go into the user's module cache
            os.remove(place)
        if not os.path.exists(place):
            shutil.copytree(os.path.join(shared, "%s@%s" % (module, version)), place + ".new")
            subprocess.run(["chmod", "-R", "u+w", place + ".new"], check=True)
            # The module cache has no executable files; tests run some of these, and expect one not to be executable.
            subprocess.run(["find", place + ".new/test", "-name", "*.sh", "!", "-name", "*-not-executable.sh", "-exec", "chmod", "u+x", "{}", "+"], check=True)
            subprocess.run(["find", place + ".new/test", "-path", "*/fixtures/*", "-name", "kubectl-*", "-type", "f", "-exec", "chmod", "u+x", "{}", "+"], check=True)
            os.rename(place + ".new", place)
        ours = os.path.join(HERE, "overlay", module)
        for folder, _, files in os.walk(ours):
            for name in files:
                write(os.path.join(place, os.path.relpath(folder, ours), name), open(os.path.join(folder, name)).read())
    for (module, path), function in REPLACED.items():
        original = open(os.path.join(shared, "%s@%s" % (module, versions[module]), path)).read()
        renamed, count = re.subn(r"(?m)^func %s\(" % function, "func %sInProcess(" % function, original)
        if count != 1:
            sys.exit("reference: %s of %s has no function %s" % (path, module, function))
        write(os.path.join(own, "%s@%s" % (module, versions[module]), path), renamed)
    # Go keeps an index of a module cache, in which the imports of our files may be those of an earlier run.
    return dict(os.environ, CGO_ENABLED="0", GOMODCACHE=own, GOFLAGS="-mod=readonly -buildvcs=false", GODEBUG="goindex=0"), own, versions


def link(shared, own, copied, below=""):
    """Links to the folders of modules; folders on the way to the copied modules are real."""
    os.makedirs(os.path.join(own, below), exist_ok=True)
    for name in os.listdir(os.path.join(shared, below)):
        path = os.path.join(below, name)
        if path in copied:
            continue
        if any(module.startswith(path + "/") for module in copied):
            link(shared, own, copied, path)
        elif not os.path.lexists(os.path.join(own, path)):
            os.symlink(os.path.join(shared, path), os.path.join(own, path))


def write(path, text):
    if os.path.exists(path) and open(path).read() == text:
        return
    with open(path, "w") as f:
        f.write(text)


def program_of(name):
    """Named as `go test` names it: tests expect it as the manager of the fields that they write."""
    return os.path.join(CACHE, "bin", name.replace("/", "-"), os.path.basename(PACKAGES[name]) + ".test")


def build(name, env, folder):
    """Compiles one package's tests. Returns the program, or nothing if that failed."""
    os.makedirs(folder, exist_ok=True)
    program = program_of(name)
    os.makedirs(os.path.dirname(program), exist_ok=True)
    log = os.path.join(folder, "build.log")
    with open(log, "w") as f:
        done = subprocess.run(["go", "test", "-c", "-p", "2", "-trimpath", "-vet=off", "-ldflags=-s -w", "-o", program, PACKAGES[name]], cwd=HERE, env=env, stdout=f, stderr=f)
    if done.returncode:
        print("reference: %s does not compile; see %s" % (name, log))
        return None
    return program


class Etcd:
    def __init__(self, programs, folder):
        client, peer = free_port(), free_port()
        self.url, peers = "http://127.0.0.1:%d" % client, "http://127.0.0.1:%d" % peer
        log = open(os.path.join(folder, "etcd.log"), "w")
        self.process = subprocess.Popen([os.path.join(programs, "etcd"), "--data-dir=" + os.path.join(folder, "etcd"), "--listen-client-urls=" + self.url, "--advertise-client-urls=" + self.url,
                                         "--listen-peer-urls=" + peers, "--initial-advertise-peer-urls=" + peers, "--initial-cluster=default=" + peers, "--log-level=error", "--unsafe-no-fsync"],
                                        stdout=log, stderr=log)

    def stop(self):
        end(self.process)


def run(name, program, source, a, folder, left_out):
    """Runs one package. Returns test → (outcome, message, seconds), of top-level tests."""
    logs = os.path.join(folder, "servers")
    os.makedirs(logs, exist_ok=True)
    temporary = tempfile.mkdtemp(prefix="ref")  # short: tests listen on Unix sockets in it
    etcd = Etcd(a.programs, folder)
    env = dict(os.environ, KEELSON=a.keelson, KEELSON_LOGS=logs, KEELSON_KEYS=os.path.join(CACHE, "keys"), KUBE_INTEGRATION_ETCD_URL=etcd.url, TMPDIR=temporary,
               PATH=a.programs + ":" + os.environ["PATH"])
    listed = subprocess.run([program, "-test.list", a.focus or "."], cwd=source, env=env, capture_output=True, text=True).stdout.split()
    tests = [t for t in listed if t.startswith("Test") and name + "/" + t not in left_out]
    results, log = {}, open(os.path.join(folder, "test.log"), "w")
    try:
        pattern = "^(" + "|".join(tests) + ")$"
        if tests:
            command = [program, "-test.v=test2json", "-test.timeout=%dm" % a.minutes, "-test.run=" + pattern] + skipped_subtests(name, left_out)
            process = subprocess.Popen(command, cwd=source, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            try:
                results = outcomes_of(process.stdout, log, set(tests))
            finally:
                end(process)
    finally:
        etcd.stop()
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(os.path.join(folder, "etcd"), ignore_errors=True)
    for test in tests:
        results.setdefault(test, ("failed", "did not end; see %s" % log.name, 0.0))
    return results, [t for t in listed if name + "/" + t in left_out]


def skipped_subtests(package, left_out):
    """-test.skip for the lines of a package that name a subtest."""
    names = [line[len(package) + 1:] for line in left_out if line.startswith(package + "/Test")]
    return ["-test.skip=" + "|".join("^%s$/^%s$" % tuple(n.split("/", 1)) for n in names if "/" in n)] if any("/" in n for n in names) else []


def outcomes_of(stream, log, wanted):
    """Reads until each of the wanted tests has an outcome. The program goes on for five minutes to look for goroutines that the Go server left behind;
    the options that the overlay made have some, which never end."""
    results, running = {}, {}
    for raw in stream:
        line = raw.decode("utf-8", "replace").replace("\x16", "")
        log.write(line)
        log.flush()
        match = re.match(r"\s*--- (PASS|FAIL|SKIP): (\S+) \(([0-9.]+)s\)", line)
        if match:
            word, test, seconds = match.groups()
            top = test.split("/")[0]
            if "/" in test:
                running.setdefault(top, []).extend([test[len(top) + 1:]] if word == "FAIL" else [])
            else:
                subtests = running.get(top, [])
                message = "%d subtests: %s" % (len(subtests), ", ".join(subtests)[:300]) if subtests else ""
                results[test] = ({"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}[word], message, float(seconds))
                if wanted <= results.keys():
                    break
    return results


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--only", default="", help="packages, with commas")
    parser.add_argument("--focus", help="only tests whose name matches")
    parser.add_argument("--minutes", type=int, default=PACKAGE_MINUTES, help="for one package")
    parser.add_argument("--no-build", action="store_true", help="use the programs of the last run")
    parser.add_argument("--build-only", action="store_true", help="compile the packages' tests, run nothing")
    parser.add_argument("--shrink", action="store_true", help="remove the lines of expected-failures.txt that pass")
    a = arguments_of(parser)
    names = [n for n in a.only.split(",") if n] or list(PACKAGES)
    for name in names:
        if name not in PACKAGES:
            sys.exit("reference: no package %s; there are %s" % (name, ", ".join(PACKAGES)))
    expected, left_out = expected_failures(EXPECTED), expected_failures(LEFT_OUT)
    env, modules, versions = prepare()
    results, table = {}, []
    for name in names:
        folder = os.path.join(a.folder, name)
        begin = time.monotonic()
        program = program_of(name) if a.no_build else build(name, env, folder)
        if not program:
            results[name + "/(build)"] = ("failed", "does not compile", 0.0)
            continue
        if a.build_only:
            print("reference: %s built in %.0f s" % (name, time.monotonic() - begin), flush=True)
            continue
        os.makedirs(folder, exist_ok=True)
        built = time.monotonic()
        module = EXTENSIONS if PACKAGES[name].startswith(EXTENSIONS) else KUBERNETES
        source = os.path.join(modules, "%s@%s%s" % (module, versions[module], PACKAGES[name][len(module):]))
        outcome, left = run(name, program, source, a, folder, left_out)
        count = lambda kind, known: sum(r[0] == kind and (n in known_names) == known for n, r in outcome.items())  # noqa: E731
        known_names = {t for t in outcome if name + "/" + t in expected}
        row = "reference: %-50s %3d run %3d passed %3d failed %3d failed as expected %3d skipped %3d left out (%.0f s, built in %.0f s)" % (
            name, len(outcome), count("passed", False) + count("passed", True), count("failed", False), count("failed", True),
            count("skipped", False) + count("skipped", True), len(left), time.monotonic() - built, built - begin)
        table.append(row)
        print(row, flush=True)
        results.update({name + "/" + test: r for test, r in outcome.items()})
    if a.build_only:
        sys.exit(1 if results else 0)
    write_junit(os.path.join(a.folder, "junit.xml"), "reference", results, expected)
    sys.exit(conclude("reference", results, EXPECTED, expected, a.shrink, quiet=True))


if __name__ == "__main__":
    main()
