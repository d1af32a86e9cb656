#!/usr/bin/env python3
"""controller-runtime's own test suites through envtest, with our binary as kube-apiserver and as etcd.

usage: run.py KEELSON WORK_FOLDER BIN_FOLDER [--suites cache,builder] [--focus REGEX] [--real] [--shrink] [--no-startup] [--starts N]

envtest starts the two programs of the folder that KUBEBUILDER_ASSETS names; here both are links to our binary (--real: the real ones).
expected-failures.txt lists the failures and their reasons; outcomes.py has its rules. At the end the start-up time of an environment, beside the real pair.
"""
import os
import signal
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(HERE))
from outcomes import conclude, expected_failures, read_junit, write_junit  # noqa: E402
from rig import arguments_of, end, parser_of  # noqa: E402

# Every package of controller-runtime whose suite starts an environment.
SUITES = ["builder", "cache", "client", "client/apiutil", "cluster", "controller", "controller/controllerutil", "envtest", "handler", "internal/controller", "internal/recorder",
          "manager", "manager/internal/integration", "metrics/filters", "source", "webhook"]
EXPECTED = os.path.join(HERE, "expected-failures.txt")
MODULE = "sigs.k8s.io/controller-runtime"
SUITE_SECONDS = 600
GO = dict(os.environ, CGO_ENABLED="0")  # as build.sh builds, so that the compiler's cache is shared


def end_session(session):
    """Ends what a suite left behind: one that fails in its set-up does not stop its servers."""
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % entry) as f:
                if int(f.read().rsplit(")", 1)[1].split()[3]) == session:
                    os.kill(int(entry), signal.SIGTERM)
        except (OSError, IndexError):
            pass  # it ended meanwhile


def run_suite(suite, folder, assets, source, focus):
    """Builds and runs one suite; returns its outcomes by name."""
    binary = os.path.join(folder, suite.replace("/", "-") + ".test")
    label = lambda name: "pkg/%s: %s" % (suite, name)  # noqa: E731
    built = subprocess.run(["go", "test", "-c", "-vet=off", "-trimpath", "-o", binary, "%s/pkg/%s" % (MODULE, suite)], cwd=HERE, capture_output=True, text=True, env=GO)
    if built.returncode != 0:
        return {label("it builds"): ("failed", built.stderr[-400:], 0.0)}
    junit = binary[:-5] + ".xml"
    command = [binary, "-test.v", "-ginkgo.no-color", "-ginkgo.junit-report=" + junit, "-ginkgo.timeout=%ds" % SUITE_SECONDS] + (["-ginkgo.focus=" + focus] if focus else [])
    # Tests read their files from the package's folder; what they write goes into the work folder.
    environment = dict(os.environ, KUBEBUILDER_ASSETS=assets, TMPDIR=folder, KUBEBUILDER_CONTROLPLANE_START_TIMEOUT="60s")
    with open(binary[:-5] + ".log", "w") as log:
        process = subprocess.Popen(command, cwd=os.path.join(source, "pkg", suite), stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment, start_new_session=True)
        try:
            process.wait(SUITE_SECONDS + 60)
        except subprocess.TimeoutExpired:
            pass
        finally:
            end(process)
            end_session(process.pid)
    os.remove(binary)
    results = {}
    with open(binary[:-5] + ".log") as f:  # plain Go tests, beside Ginkgo's entry
        for line in f:
            for mark, outcome in (("--- PASS: ", "passed"), ("--- FAIL: ", "failed"), ("--- SKIP: ", "skipped")):
                if line.startswith(mark):
                    name, _, seconds = line[len(mark):].partition(" ")
                    results[label(name)] = (outcome, "" if outcome == "passed" else "see " + f.name, float(seconds.strip("(s)\n") or 0))
    specs = read_junit(junit) if os.path.exists(junit) else {}
    if specs:  # Ginkgo's own entry says nothing that its specs do not
        results = {name: r for name, r in results.items() if r[0] != "failed"}
    if any(r[0] == "failed" and name.startswith("[BeforeSuite]") for name, r in specs.items()):
        specs = {name: r for name, r in specs.items() if r[0] == "failed"}  # no spec ran
    for name, result in specs.items():
        if not (focus and result[0] == "skipped" and not result[1]):
            results[label(name)] = result
    if process.returncode != 0 and not any(r[0] == "failed" for r in results.values()):
        results[label("it ends well")] = ("failed", "exit status %s; see %s" % (process.returncode, f.name), 0.0)
    return results


def startup(folder, assets, count):
    """Seconds to start and to stop an environment, the median of count."""
    program = os.path.join(folder, "startup")
    subprocess.run(["go", "build", "-trimpath", "-o", program, "./startup"], cwd=HERE, check=True, env=GO)
    done = subprocess.run([program, str(count)], env=dict(os.environ, KUBEBUILDER_ASSETS=assets, TMPDIR=folder, KUBEBUILDER_CONTROLPLANE_START_TIMEOUT="120s"), capture_output=True, text=True)
    pairs = [tuple(map(float, line.split())) for line in done.stdout.splitlines()]
    if done.returncode != 0 or not pairs:
        return None, None, done.stderr[-400:]
    return statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs), ""


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--suites", help="names of packages below pkg, separated by commas: " + ",".join(SUITES))
    parser.add_argument("--focus", help="only specs whose name contains a match")
    parser.add_argument("--real", action="store_true", help="the real kube-apiserver and etcd")
    parser.add_argument("--shrink", action="store_true", help="remove the lines of expected-failures.txt that pass")
    parser.add_argument("--no-startup", action="store_true")
    parser.add_argument("--starts", type=int, default=5)
    a = arguments_of(parser)
    folder = a.folder
    assets = {name: os.path.join(folder, "assets-" + name) for name in ("keelson", "real")}
    for name, path in assets.items():
        os.makedirs(path)
        for program in ("kube-apiserver", "etcd", "kubectl"):
            os.symlink(a.keelson if name == "keelson" and program != "kubectl" else os.path.join(a.programs, program), os.path.join(path, program))
    subprocess.run(["go", "mod", "download"], cwd=HERE, check=True)  # without its source the module has no folder
    source = subprocess.run(["go", "list", "-m", "-f", "{{.Dir}}", MODULE], cwd=HERE, capture_output=True, text=True, check=True).stdout.strip()
    expected = {} if a.real else expected_failures(EXPECTED)
    results = {}
    for suite in a.suites.split(",") if a.suites is not None else SUITES:
        if not suite:
            continue
        outcome = run_suite(suite, folder, assets["real" if a.real else "keelson"], source, a.focus)
        count = lambda kind: sum(r[0] == kind for r in outcome.values())  # noqa: E731
        print("envtest: pkg/%-30s %3d passed %3d failed %3d skipped" % (suite, count("passed"), count("failed"), count("skipped")), flush=True)
        results.update(outcome)
    if not a.no_startup:
        for name, path in assets.items():
            start, stop, problem = startup(folder, path, a.starts)
            print("envtest: an environment of %-27s %s" % ("our binary" if name == "keelson" else "kube-apiserver and etcd",
                  problem or "starts in %.0f ms, stops in %.0f ms (median of %d)" % (start * 1000, stop * 1000, a.starts)), flush=True)
    write_junit(os.path.join(folder, "junit.xml"), "envtest", results, expected)
    sys.exit(conclude("envtest", results, EXPECTED, expected, a.shrink, quiet=True))


if __name__ == "__main__":
    main()
