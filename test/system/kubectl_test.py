#!/usr/bin/env python3
"""A session of a real kubectl against a fresh server. usage: kubectl_test.py KEELSON WORK_FOLDER

kubectl: $KEELSON_KUBECTL, else keelson/bin/kubectl in the user's cache (tools/interop.sh builds it), else the one in PATH. There are
no controllers: where a command waits for one (rollout status), the session writes the status itself.
"""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Server, skip  # noqa: E402

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: web:v2
        ports: [{containerPort: 80}]
"""

REPLICA_SET = """
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web-%(revision)d
  labels: {app: web, pod-template-hash: h%(revision)d}
  annotations: {deployment.kubernetes.io/revision: "%(revision)d"}
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: %(uid)s, controller: true}]
spec:
  replicas: 0
  selector: {matchLabels: {app: web, pod-template-hash: h%(revision)d}}
  template:
    metadata: {labels: {app: web, pod-template-hash: h%(revision)d}}
    spec:
      containers: [{name: main, image: "web:v%(revision)d", ports: [{containerPort: 80}]}]
"""


def find_kubectl():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    for candidate in (os.environ.get("KEELSON_KUBECTL"), os.path.join(cache, "keelson", "bin", "kubectl"), shutil.which("kubectl")):
        if candidate and os.access(candidate, os.X_OK):
            return candidate
    skip("no kubectl: set KEELSON_KUBECTL, install Debian's kubernetes-client, or run make interop where Go is installed")


class Session:
    def __init__(self, kubectl, server, folder):
        self.kubectl = kubectl
        self.folder = folder
        self.environment = {"HOME": folder, "KUBECONFIG": server.kubeconfig, "PATH": os.environ["PATH"], "LC_ALL": "C"}
        self.commands = 0
        self.failures = []
        self.left_out = []
        version = json.loads(subprocess.run([kubectl, "version", "--client", "-o", "json"], env=self.environment, capture_output=True,
                                            text=True, check=True).stdout)["clientVersion"]
        self.version = version["gitVersion"]
        self.minor = int(re.sub(r"\D", "", version["minor"]))

    def run(self, arguments, expect=None, absent=None, stdin=None, code=0, environment=None, since=0):
        """One command; expect and absent are patterns for its output, code the exit status, since kubectl's minor version."""
        if self.minor < since:
            self.left_out.append(arguments)
            return ""
        self.commands += 1
        result = subprocess.run([self.kubectl] + shlex.split(arguments), env=dict(self.environment, **(environment or {})), input=stdin,
                                stdin=None if stdin is not None else subprocess.DEVNULL, capture_output=True, text=True, timeout=60, cwd=self.folder)
        output = result.stdout + result.stderr
        problem = None
        if result.returncode != code:
            problem = "exit status %d, expected %d" % (result.returncode, code)
        elif expect is not None and not re.search(expect, output, re.M | re.S):
            problem = "no match for %r" % expect
        elif absent is not None and re.search(absent, output, re.M | re.S):
            problem = "unexpected match for %r" % absent
        print("%-4s kubectl %s" % ("FAIL" if problem else "ok", arguments))
        if problem:
            print("     %s; the output was:\n%s" % (problem, output[:3000]))
            self.failures.append(arguments)
        return result.stdout

    def json(self, arguments, **kwargs):
        text = self.run(arguments + " -o json", **kwargs)
        try:
            return json.loads(text)
        except ValueError:
            return {}

    def check(self, what, condition):
        print("%-4s %s" % ("ok" if condition else "FAIL", what))
        if not condition:
            self.failures.append(what)

    def file(self, name, text, mode=0o644):
        path = os.path.join(self.folder, name)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, mode)
        return path


class BackgroundWatch:
    """`kubectl get --watch` whose lines are read as they come."""

    def __init__(self, session, arguments):
        session.commands += 1
        self.arguments = arguments
        self.lines = []
        self.changed = threading.Condition()
        self.process = subprocess.Popen([session.kubectl] + shlex.split(arguments), env=session.environment, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(line.rstrip("\n"))
                self.changed.notify_all()

    def wait_for(self, count, seconds=30):
        with self.changed:
            return self.changed.wait_for(lambda: len(self.lines) >= count, seconds)

    def end(self):
        self.process.terminate()
        self.process.wait()
        self.reader.join(5)


def discovery(s):
    s.run("version", expect=r"Server Version.*1\.36")
    s.run("cluster-info", expect="control plane|master")
    s.run("api-versions", expect=r"^apps/v1$.*^v1$")
    s.run("api-resources", expect=r"^configmaps\s+cm\s+v1\s+true\s+ConfigMap$.*^namespaces\s+ns\s+v1\s+false\s+Namespace$")
    s.run("api-resources --namespaced=false -o name", expect="^namespaces$", absent="^configmaps$")
    s.run("api-resources --api-group=apps -o wide", expect=r"^deployments\s+deploy\s+apps/v1\s+true\s+Deployment")
    s.run("explain configmap", expect=r"KIND:\s+ConfigMap.*binaryData")
    s.run("explain deployment.spec.template.spec.containers", expect="imagePullPolicy")
    s.run("get --raw /readyz", expect="^ok")
    s.run("get --raw /api/v1/namespaces/default", expect='"kind":"Namespace"')
    s.run("get namespaces", expect=r"default\s+Active.*kube-node-lease.*kube-public.*kube-system")
    s.run("auth can-i create configmaps", expect="^yes")


def config_maps_and_secrets(s):
    s.run("create namespace session", expect="^namespace/session created$")
    s.run("config set-context --current --namespace=session", expect="modified")
    s.run("create configmap first --from-literal=a=1 --from-literal=b=2", expect="^configmap/first created$")
    s.run("create configmap first --from-literal=a=1", expect='configmaps "first" already exists', code=1)
    s.file("settings.txt", "colour=blue\n")
    s.run("create configmap from-file --from-file=settings.txt", expect="created")
    s.run("create configmap dry --from-literal=a=1 --dry-run=server -o name", expect="^configmap/dry$")
    s.run("get configmap dry", expect="NotFound", code=1)
    s.run("create secret generic password --from-literal=word=open-sesame", expect="^secret/password created$")
    s.run("get secret password", expect=r"^NAME\s+TYPE\s+DATA\s+AGE\s+password\s+Opaque\s+1\s")
    s.run("get secret password -o jsonpath='{.data.word}'", expect="^b3Blbi1zZXNhbWU=$")
    s.run("describe secret password", expect=r"word:\s+11 bytes")
    s.run("get configmap first", expect=r"^NAME\s+DATA\s+AGE\s+first\s+2\s")
    s.run("get cm,secret", expect="configmap/first.*secret/password")
    s.run("get configmap first -o yaml", expect=r'^  a: "1"$')
    s.run("get configmap first -o name", expect="^configmap/first$")
    s.run("get configmap first -o go-template='{{.data.b}}'", expect="^2$")
    s.run("get configmap -o custom-columns=N:.metadata.name,A:.data.a", expect=r"^first\s+1$")
    s.run("get configmap -o wide --show-labels", expect=r"LABELS.*first.*<none>")
    s.run("describe configmap first", expect=r"Name:\s+first.*a:\n----\n1")
    s.run("label configmap first tier=front", expect="labeled")
    s.run("label configmap first tier=back", expect="already has a value", code=1)
    s.run("label configmap first tier=back --overwrite", expect="labeled")
    s.run("get configmap -l tier=back -o name", expect="^configmap/first$", absent="from-file")
    s.run("get configmap -l 'tier in (front),!other' -o name", absent="configmap/")
    s.run("get configmap --field-selector metadata.name=from-file -o name", expect="^configmap/from-file$", absent="first")
    s.run("annotate configmap first note=hello", expect="annotated")
    s.run("annotate configmap first note-", expect="annotated")
    s.check("annotation is gone", not s.json("get configmap first").get("metadata", {}).get("annotations"))
    s.run("patch configmap first --type=merge -p '{\"data\":{\"c\":\"3\"}}'", expect="patched")
    s.run("patch configmap first --type=json -p '[{\"op\":\"test\",\"path\":\"/data/c\",\"value\":\"3\"},{\"op\":\"remove\",\"path\":\"/data/c\"}]'", expect="patched")
    s.run("patch configmap first -p '{\"data\":{\"d\":\"4\"}}'", expect="patched")
    s.run("patch configmap first -p '{\"data\":{\"d\":\"4\"}}'", expect="no change")
    s.check("patches arrived", s.json("get configmap first").get("data") == {"a": "1", "b": "2", "d": "4"})
    editor = s.file("editor.sh", "#!/bin/sh\nsed -i 's/a: \"1\"/a: \"edited\"/' \"$1\"\n", 0o755)
    s.run("edit configmap first", expect="edited", environment={"EDITOR": editor, "KUBE_EDITOR": editor})
    s.run("get configmap first -o jsonpath={.data.a}", expect="^edited$")
    s.run("get configmap --sort-by=.metadata.name -o name", expect=r"configmap/first\nconfigmap/from-file")
    s.run("get configmap --chunk-size=1 -o name", expect=r"configmap/first\nconfigmap/from-file")
    s.run("get configmaps -A -o name", expect="configmap/first")


def apply(s):
    path = s.file("cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: applied}\ndata: {a: '1', b: '2'}\n")
    s.run("diff -f cm.yaml", expect=r"^\+  name: applied", code=1)
    s.run("apply -f cm.yaml", expect="configmap/applied created")
    s.run("apply -f cm.yaml", expect="configmap/applied unchanged")
    s.run("diff -f cm.yaml")
    s.file("cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: applied}\ndata: {a: '5'}\n")
    s.run("diff -f cm.yaml", expect=r'^\+  a: "5"', code=1)
    s.run("apply -f -", stdin=open(path).read(), expect="configmap/applied configured")
    s.check("apply removes what left the file", s.json("get configmap applied").get("data") == {"a": "5"})
    s.run("apply view-last-applied configmap applied", expect='a: "5"')
    s.file("cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: owned}\ndata: {a: '1', b: '1'}\n")
    s.run("apply --server-side -f cm.yaml", expect="configmap/owned serverside-applied")
    s.file("cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: owned}\ndata: {a: '2'}\n")
    s.run("apply --server-side --field-manager=other -f cm.yaml", expect=r'conflict with "kubectl".*\.data\.a', code=1)
    s.run("apply --server-side --field-manager=other --force-conflicts -f cm.yaml", expect="serverside-applied")
    owned = s.json("get configmap owned --show-managed-fields")
    s.check("two managers own fields", [m.get("manager") for m in owned.get("metadata", {}).get("managedFields", [])] == ["kubectl", "other"])
    s.check("forced value won", owned.get("data") == {"a": "2", "b": "1"})
    s.file("wrong.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: wrong}\nextra: 1\n")
    s.run("apply -f wrong.yaml", expect='unknown field "extra"', code=1, since=25)
    s.file("replace.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: owned}\ndata: {z: '9'}\n")
    s.run("replace -f replace.yaml", expect="configmap/owned replaced")


def watch(s):
    watching = BackgroundWatch(s, "get configmaps --watch --no-headers -o custom-columns=N:.metadata.name,V:.data.v -l watched=yes")
    # The watch shows what is there first; a first object makes sure that it is running before anything else changes.
    s.run("create configmap w0 --from-literal=v=0")
    s.run("label configmap w0 watched=yes")
    s.check("watch shows the first object", watching.wait_for(1))
    s.run("patch configmap w0 --type=merge -p '{\"data\":{\"v\":\"1\"}}'")
    s.run("delete configmap w0", expect="deleted")
    watching.wait_for(3)
    watching.end()
    s.check("watch saw create, change and delete: %s" % watching.lines, [line.split() for line in watching.lines] == [["w0", "0"], ["w0", "1"], ["w0", "1"]])
    late = threading.Timer(1.0, lambda: subprocess.run([s.kubectl, "delete", "configmap", "w1"], env=s.environment, capture_output=True))
    s.run("create configmap w1")
    late.start()
    s.run("wait --for=delete configmap/w1 --timeout=30s", expect="condition met|not found|deleted|^$")
    late.join()


def workloads(s):
    s.file("web.yaml", DEPLOYMENT)
    s.run("apply -f web.yaml", expect="deployment.apps/web created")
    s.run("get deployment web", expect=r"^web\s+0/2\s+0\s+0\s")
    s.run("scale deployment web --replicas=5", expect="scaled")
    s.run("scale deployment web --current-replicas=1 --replicas=5", code=1, expect="xpected replicas to be 1, was 5")
    s.run("get deployment web -o jsonpath={.spec.replicas}", expect="^5$")
    s.run("set image deployment/web main=web:v3", expect="image updated")
    s.run("set env deployment/web COLOUR=blue", expect="env updated")
    s.run("patch deployment web -p '{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"main\",\"image\":\"web:v2\",\"env\":[{\"name\":\"COLOUR\",\"$patch\":\"delete\"}]}]}}}}'", expect="patched")
    deployment = s.json("get deployment web")
    container = deployment.get("spec", {}).get("template", {}).get("spec", {}).get("containers", [{}])[0]
    s.check("strategic merge patch kept the container's other fields", container.get("image") == "web:v2" and container.get("ports") is not None and not container.get("env"))
    uid = deployment.get("metadata", {}).get("uid", "")
    generation = deployment.get("metadata", {}).get("generation", 0)
    for revision in (1, 2):
        s.run("create -f -", stdin=REPLICA_SET % {"revision": revision, "uid": uid}, expect="created")
    s.run("rollout history deployment/web", expect=r"REVISION.*^1\s.*^2\s")
    s.run("rollout undo deployment/web", expect="rolled back")
    s.run("get deployment web -o jsonpath={.spec.template.spec.containers[0].image}", expect="^web:v1$")
    status = {"status": {"observedGeneration": generation + 1, "replicas": 5, "updatedReplicas": 5, "readyReplicas": 5, "availableReplicas": 5,
                         "conditions": [{"type": "Available", "status": "True", "reason": "Test", "message": "set by the test"}]}}
    s.run("patch deployment web --subresource=status --type=merge -p '%s'" % json.dumps(status), expect="patched", since=24)
    s.run("rollout status deployment/web --timeout=30s", expect="successfully rolled out", since=24)
    s.run("wait --for=condition=Available deployment/web --timeout=30s", expect="condition met", since=24)
    s.run("rollout restart deployment/web", expect="restarted")
    s.run("rollout pause deployment/web", expect="paused")
    s.run("autoscale deployment web --min=1 --max=3", expect="autoscaled")
    s.run("expose deployment web --port=80", expect="service/web exposed")
    s.run("get service web", expect=r"^web\s+ClusterIP\s+\d+\.\d+\.\d+\.\d+\s+<none>\s+80/TCP")
    s.run("create serviceaccount default", expect="created")
    s.run("run solo --image=solo:v1 --restart=Never", expect="pod/solo created")
    s.run("get pod solo", expect=r"^solo\s+0/1\s+Pending\s+0\s")
    s.run("get all", expect="pod/solo.*service/web.*deployment.apps/web.*replicaset.apps/web-1")
    s.run("create job once --image=job:v1", expect="job.batch/once created")
    s.run("create cronjob often --image=job:v1 --schedule='* * * * *'", expect="created")
    s.run("create serviceaccount robot", expect="created")
    s.run("create role reader --verb=get,list --resource=configmaps", expect="created")
    s.run("create rolebinding reader --role=reader --serviceaccount=session:robot", expect="created")


def deletes(s):
    s.run("delete pod solo --grace-period=0 --force", expect="deleted")
    s.run("delete deployment web --cascade=orphan --wait=false", expect="deleted")
    s.run("get deployment web -o jsonpath={.metadata.finalizers}", expect='^."orphan".$')
    s.run("patch deployment web --type=json -p '[{\"op\":\"remove\",\"path\":\"/metadata/finalizers\"}]'", expect="patched")
    s.run("get deployment web", expect="NotFound", code=1)
    s.run("delete replicaset web-2 --cascade=foreground --wait=false", expect="deleted")
    s.run("get replicaset web-2 -o jsonpath={.metadata.finalizers}", expect='^."foregroundDeletion".$')
    s.run("get replicaset web-1 -o name", expect="web-1")
    s.run("delete service,hpa,job,cronjob --all --wait=false", expect="deleted")
    s.run("delete configmap first from-file", expect=r'configmap "first" deleted.*configmap "from-file" deleted')
    s.run("delete configmap first", expect="NotFound", code=1)
    s.run("delete configmap first --ignore-not-found")
    s.run("delete secret password --now", expect="deleted")
    s.run("delete configmaps --all", expect="deleted")
    s.run("get configmaps", expect="No resources found")
    s.run("delete namespace session --wait=false", expect="deleted")
    s.run("get namespace session -o jsonpath={.status.phase}", expect="^Terminating$")


def main():
    binary, folder = sys.argv[1:3]
    kubectl = find_kubectl()
    shutil.rmtree(folder, ignore_errors=True)
    server = Server(binary, folder).start()
    try:
        s = Session(kubectl, server, os.path.abspath(folder))
        print("%s %s" % (kubectl, s.version))
        begin = time.monotonic()
        for part in (discovery, config_maps_and_secrets, apply, watch, workloads, deletes):
            part(s)
        if s.left_out:
            print("left out, this kubectl is too old: %s" % s.left_out)
        print("%d kubectl commands in %.1f s, %d checks failed" % (s.commands, time.monotonic() - begin, len(s.failures)))
        for failure in s.failures:
            print("failed: " + failure)
    finally:
        server.stop()
    sys.exit(1 if s.failures else 0)


if __name__ == "__main__":
    main()
