#!/usr/bin/env python3
"""kubectl's own command tests (Kubernetes' test/cmd) against the server, with the real kubectl and kube-controller-manager.

usage: run.py KEELSON WORK_FOLDER BIN_FOLDER [--only NAME[,NAME]] [--minutes N] [--shrink]

The scripts come from the module proxy, in the copy of the source that interop/reference/run.py makes; nothing of them is kept here. A test is one of
their functions, run_NAME_tests. expected-failures.txt has a line for each that fails here: the name, a tab, the reason. It may only shrink. Prints what
failed; the scripts' output is in WORK_FOLDER/driver.log, junit.xml beside it.
"""
import glob
import os
import re
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
import xml.etree.ElementTree as ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), "reference")]
from outcomes import conclude, expected_failures, write_junit  # noqa: E402
from rig import arguments_of, end, free_port, parser_of  # noqa: E402
import run as reference  # noqa: E402

EXPECTED = os.path.join(HERE, "expected-failures.txt")
# As hack/make-rules/test-cmd.sh starts kube-apiserver.
FLAGS = ["--authorization-mode=RBAC,AlwaysAllow", "--enable-admission-plugins=LimitRanger,ResourceQuota", "--runtime-config=api/v1", "--endpoint-reconciler-type=none",
         "--disable-admission-plugins=ServiceAccount,DefaultStorageClass,DefaultTolerationSeconds,MutatingAdmissionWebhook,ValidatingAdmissionWebhook,StorageObjectInUseProtection"]
KUBECONFIG = """kind: Config
apiVersion: v1
users: [{name: it, user: {token: admin-token}}]
clusters: [{name: it, cluster: {server: "https://127.0.0.1:%d", insecure-skip-tls-verify: true}}]
contexts: [{name: it, context: {cluster: it, user: it}}]
current-context: it
"""
MINUTES = 90


def spawn(a, name, *arguments):
    log = open(os.path.join(a.folder, name + ".log"), "w")
    return subprocess.Popen(arguments, stdout=log, stderr=log, stdin=subprocess.DEVNULL)


def start(a, source, store, port):
    """The server, once it is healthy."""
    key = os.path.join(a.folder, "service-account.key")
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    data = os.path.join(source, "hack/testdata/")
    process = spawn(a, "server", a.keelson, "--etcd-servers=" + store.url, "--secure-port=%d" % port, "--bind-address=127.0.0.1", "--cert-dir=" + os.path.join(a.folder, "tmp"),
                    "--service-account-key-file=" + key, "--service-account-signing-key-file=" + key, "--service-account-issuer=https://kubernetes.default.svc",
                    "--service-cluster-ip-range=10.0.0.0/24", "--client-ca-file=" + data + "ca/ca.crt", "--token-auth-file=" + data + "auth-tokens.csv", *FLAGS)
    request = urllib.request.Request("https://127.0.0.1:%d/healthz" % port, headers={"Authorization": "Bearer admin-token"})
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        try:
            if urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=5).status == 200:
                return process
        except OSError:
            time.sleep(0.1)
    end(process)
    sys.exit("cmd: the server did not start; see %s/server.log" % a.folder)


def controllers(a, source, port):
    path = os.path.join(a.folder, "controllers.kubeconfig")
    with open(path, "w") as f:
        f.write(KUBECONFIG % port)
    authority = os.path.join(source, "hack/testdata/ca/ca")
    return spawn(a, "controllers", os.path.join(a.programs, "kube-controller-manager"), "--kubeconfig=" + path, "--secure-port=%d" % free_port(), "--bind-address=127.0.0.1", "--leader-elect=false",
                 "--cluster-signing-cert-file=" + authority + ".crt", "--cluster-signing-key-file=" + authority + ".key")


def outcomes(folder):
    """Name → (outcome, message, seconds) of the reports that the scripts wrote."""
    results = {}
    for path in glob.glob(os.path.join(folder, "*.xml")):
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            name = re.sub(r"^run_|_tests$", "", case.get("name"))
            failure = case.find("failure")
            results[name] = ("passed" if failure is None else "failed", "" if failure is None else (failure.text or "").strip()[-300:], float(case.get("time") or 0))
    results.pop("record_command_canary", None)
    return results


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--only", default="", help="names, with commas")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="for all of them; those that did not end by then are not counted")
    parser.add_argument("--shrink", action="store_true", help="remove the lines of expected-failures.txt that pass")
    a = arguments_of(parser)
    reports = os.path.join(a.folder, "reports")
    for folder in (reports, os.path.join(a.folder, "tmp")):
        os.makedirs(folder)
    _, modules, versions = reference.prepare()
    source = os.path.join(modules, "%s@%s" % (reference.KUBERNETES, versions[reference.KUBERNETES]))
    port, running = free_port(), []
    store = reference.Etcd(a.programs, a.folder)
    try:
        running.append(start(a, source, store, port))
        running.append(controllers(a, source, port))
        env = dict(os.environ, SERVER_PORT=str(port), PROGRAMS=os.path.abspath(a.programs), WHAT=a.only.replace(",", " "), KUBE_JUNIT_REPORT_DIR=reports, TMPDIR=os.path.join(a.folder, "tmp"),
                   ALLOW_SKEW="1", PATH=os.path.abspath(a.programs) + ":" + os.environ["PATH"])
        with open(os.path.join(a.folder, "driver.log"), "w") as log:
            driver = subprocess.Popen(["bash", os.path.join(HERE, "driver.sh")], cwd=source, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
            try:
                driver.wait(a.minutes * 60)
            except subprocess.TimeoutExpired:
                print("cmd: ended after %g minutes" % a.minutes)
                os.killpg(driver.pid, signal.SIGKILL)
                driver.wait()
    finally:
        for process in reversed(running):
            end(process)
        store.stop()
    results, expected = outcomes(reports), expected_failures(EXPECTED)
    if not results:
        sys.exit("cmd: nothing ran; see %s/driver.log" % a.folder)
    write_junit(os.path.join(a.folder, "junit.xml"), "cmd", results, expected)
    sys.exit(conclude("cmd", results, EXPECTED, expected, a.shrink, quiet=True))


if __name__ == "__main__":
    main()
