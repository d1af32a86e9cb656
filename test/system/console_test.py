#!/usr/bin/env python3
"""The console at /console: how its pages are served, and in a real browser what they do. usage: console_test.py KEELSON WORK_FOLDER [NAME ...]

The browser is Debian's chromium, driven through its debugging protocol; without it those tests are left out, saying so. Scripts that need no
document are run by node where it is there.
"""
import base64
import http.client
import json
import os
import pty
import re
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tarfile
import threading
import time
import urllib.parse
import urllib.request

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fake_kubelet import FakeKubelet  # noqa: E402
from harness import Client, Server, config_map, free_port, run_tests, source_root  # noqa: E402

MAPS = "/api/v1/namespaces/default/configmaps"
RUNNING = []
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"}, "spec": {
    "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"}, "versions": [{"name": "v1", "served": True, "storage": True, "schema": {
        "openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "minimum": 1, "description": "How large it is."}, "color": {"type": "string", "enum": ["red", "blue"]}}}}}}}]}}


def expect(condition, text):
    if not condition:
        raise AssertionError(text)


def started(binary, folder, flags=()):
    tokens = os.path.join(folder, "tokens.csv")
    os.makedirs(folder, exist_ok=True)
    with open(tokens, "w") as f:
        f.write('admin-token,root,1,"system:masters"\nguest-token,guest,2\n')
    server = Server(binary, folder, ["--token-auth-file=" + tokens] + list(flags))
    RUNNING.append(server)
    return server.start()


def anonymous(server, path, method="GET"):
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=60, context=ssl._create_unverified_context())
    connection.request(method, path)
    answer = connection.getresponse()
    return answer, answer.read().decode()


class TerminalServer(Server):
    """A server whose stderr is a terminal, as in a start by hand."""

    def start(self):
        self.shown, self.port = "", free_port()
        master, slave = pty.openpty()
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=slave, stdin=subprocess.DEVNULL)
        os.close(slave)
        threading.Thread(target=self.read, args=(master,), daemon=True).start()
        RUNNING.append(self)
        expect(self._wait_ready(time.monotonic()), "the server does not start: " + self.shown)
        return self

    def read(self, master):
        try:
            while True:
                self.shown += os.read(master, 65536).decode(errors="replace")
        except OSError:  # the server has ended
            os.close(master)

    def link(self):
        end = time.monotonic() + 60
        while True:
            found = re.search(r"https://127.0.0.1:%d/console#link=([\w-]+)\s" % self.port, self.shown)
            if found:
                return found.group(1)
            expect(time.monotonic() < end, "no link: " + self.shown)
            time.sleep(0.02)


def session(server, name, body, method="POST", **headers):
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=60, context=ssl._create_unverified_context())
    connection.request(method, "/console/session/" + name, body, {"Content-Type": "application/octet-stream", **{key.replace("_", "-"): value for key, value in headers.items()}})
    answer = connection.getresponse()
    text = answer.read()
    return answer.status, json.loads(text) if text.startswith(b"{") else {}


def with_token(server, method, path, token, body=None):
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=60, context=ssl._create_unverified_context())
    connection.request(method, path, body, {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read()


REVIEW = ("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews")
REVIEW_BODY = '{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'


def links(binary, folder):
    """A link signs in once, from pages of this server only; nothing of it is in a log, a metric or an audit event."""
    policy, log = os.path.join(folder, "policy.yaml"), os.path.join(folder, "audit.log")
    with open(policy, "w") as f:
        f.write("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]\n")
    server = TerminalServer(binary, folder, ["--audit-policy-file=" + policy, "--audit-log-path=" + log, "-v=5"]).start()
    link = server.link()
    expect(len(link) >= 43, "less than 256 bits: " + link)
    origin = "https://127.0.0.1:%d" % server.port
    for what, answer, status in (
            ("GET", session(server, "open", None, method="GET"), 405), ("PUT", session(server, "open", link, method="PUT"), 403),
            ("another origin", session(server, "open", link, Origin="https://example.com"), 403), ("no origin at all", session(server, "open", link, Origin="null"), 403),
            ("another site", session(server, "open", link, Sec_Fetch_Site="cross-site"), 403), ("a plain form", session(server, "open", link, Content_Type="text/plain"), 415),
            ("a wrong link", session(server, "open", "A" * 43), 403), ("nothing", session(server, "open", ""), 403), ("too much", session(server, "open", "A" * 10000), 400)):
        expect(answer[0] == status, "%s: %s" % (what, answer))
    status, opened = session(server, "open", link, Origin=origin, Sec_Fetch_Site="same-origin")
    expect(status == 201, "the link: %d %s" % (status, opened))
    expect(session(server, "open", link)[0] == 403, "a link is good twice")
    token = opened["token"]
    status, answer = with_token(server, *REVIEW, token, REVIEW_BODY)
    user = json.loads(answer)["status"]["userInfo"]
    expect(status == 201 and user["username"] == "admin" and set(user["groups"]) == {"system:masters", "system:authenticated"}, answer)
    expect(with_token(server, "GET", "/api/v1/secrets", token)[0] == 200, "the session cannot read")
    expect(with_token(server, "GET", "/api/v1/secrets", link)[0] == 401, "a link is a token")
    expect(session(server, "renew", token)[0] == 200 and session(server, "renew", token + "x")[0] == 403, "renewal")
    expect(session(server, "end", token)[0] == 200 and session(server, "renew", token)[0] == 403, "the end of a session")

    done = subprocess.run([binary, "console", "--data-dir=" + server.data], capture_output=True, text=True, timeout=120)
    expect(done.returncode == 0 and done.stdout.startswith(origin + "/console#link="), done.stdout + done.stderr)
    second = done.stdout.strip().split("#link=")[1]
    expect(second != link and session(server, "open", second)[0] == 201, "the link of the command")

    metrics = Client(server).must(200, "GET", "/metrics").decode()
    server.stop()
    with open(log) as f:
        audited = f.read()
    events = [json.loads(line) for line in audited.splitlines()]
    ids = [event["user"].get("extra", {}).get("authentication.kubernetes.io/credential-id", [""])[0] for event in events if event["requestURI"].startswith("/api/v1/secrets")]
    expect(any(one.startswith("CONSOLE=") for one in ids), "the audit log does not tell the session: %s" % ids)
    expect(any(event["requestURI"] == "/console/session/open" for event in events), "the exchange is not audited")
    with open(server.log_path) as f:
        rest = audited + metrics + f.read() + server.shown.replace("#link=" + link, "")
    for secret in (link, second, token):
        expect(secret not in rest, "a secret is in a log")
    expect(server.shown.count("#link=") == 1, "links: " + server.shown)


def no_links(binary, folder):
    """Not in a log file, and not where the console is off."""
    server = started(binary, folder)
    done = subprocess.run([binary, "console", "--data-dir=" + server.data], capture_output=True, text=True, timeout=120)
    expect(done.returncode == 0 and "#link=" in done.stdout, done.stderr)
    server.stop()
    with open(server.log_path) as f:
        text = f.read()
    expect("KUBECONFIG=" in text and "#link" not in text, "a link in a log file: " + text)
    server = TerminalServer(binary, folder + "/off", ["--console=false"]).start()
    expect(session(server, "open", "x")[0] == 403, "links without a console")
    done = subprocess.run([binary, "console", "--data-dir=" + server.data], capture_output=True, text=True, timeout=120)
    expect(done.returncode == 1 and "--console" in done.stderr, done.stderr)
    server.stop()
    expect("#link" not in server.shown, server.shown)
    done = subprocess.run([binary, "console", "--data-dir=" + server.data], capture_output=True, text=True, timeout=120)
    expect(done.returncode == 1 and "no server runs on" in done.stderr, done.stderr)
    server = TerminalServer(binary, folder + "/pages-alone", ["--console-links=false"]).start()
    expect(anonymous(server, "/console")[0].status == 200, "the console went with its links")
    expect(session(server, "open", "x")[0] == 404, "links can be opened")
    done = subprocess.run([binary, "console", "--data-dir=" + server.data], capture_output=True, text=True, timeout=120)
    expect(done.returncode == 1 and "--console-links" in done.stderr, done.stderr)
    server.stop()
    expect("KUBECONFIG=" in server.shown and "#link" not in server.shown, server.shown)


class Stream:
    """Audit events as the page reads them."""

    def __init__(self, server, query=""):
        self.connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=60, context=server.context())
        self.connection.request("GET", "/console/api/audit?" + query)
        self.answer = self.connection.getresponse()
        expect(self.answer.status == 200, "audit: %d" % self.answer.status)

    def until(self, wanted):
        seen = []
        while True:
            event = json.loads(self.answer.readline())
            seen.append(event)
            if wanted(event):
                return seen


def audit(binary, folder):
    """Events are recorded while a viewer is connected, at the level Metadata, for authorized users; the policy is kept."""
    server = started(binary, folder)
    client = Client(server)
    client.must(201, "POST", MAPS, config_map("before", {}))
    everything, creates = Stream(server), Stream(server, "verb=create&resource=secrets&user=admin")
    secret = {"metadata": {"name": "s"}, "stringData": {"password": "hunter2"}}
    client.must(201, "POST", "/api/v1/namespaces/default/secrets", secret)
    client.must(200, "GET", "/api/v1/namespaces/default/secrets/s")
    with_token(server, "GET", "/api/v1/nodes", "guest-token")
    with_token(server, "GET", "/api/v1/nodes", "wrong")
    seen = everything.until(lambda event: event.get("responseStatus", {}).get("code") == 401)
    expect(not any(event.get("objectRef", {}).get("name") == "before" for event in seen), "recorded while nobody looked")
    expect({"create", "get", "list"} <= {event["verb"] for event in seen}, str(seen))
    expect(any(event["user"].get("username") == "guest" and event["responseStatus"]["code"] == 403 for event in seen), str(seen))
    expect(all(event["level"] == "Metadata" and "requestObject" not in event for event in seen) and "hunter2" not in json.dumps(seen), "more than metadata")
    client.must(201, "POST", "/api/v1/namespaces/default/secrets", {**secret, "metadata": {"name": "t"}})
    seen = creates.until(lambda event: event["objectRef"]["name"] == "t")
    expect(all(event["verb"] == "create" and event["objectRef"]["resource"] == "secrets" for event in seen) and len(seen) == 2, str(seen))
    for token in ("guest-token", "wrong"):
        expect(with_token(server, "GET", "/console/api/audit", token)[0] in (401, 403), "audit for everybody")
    expect(anonymous(server, "/console/api/audit")[0].status == 403, "audit for everybody")
    expect("apiserver_audit_event_total 0" in client.must(200, "GET", "/metrics").decode(), "counted as events of a backend")
    role = {"metadata": {"name": "auditor"}, "rules": [{"nonResourceURLs": ["/console/api/audit"], "verbs": ["get"]}]}
    client.must(201, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
    client.must(201, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {"metadata": {"name": "auditor"}, "subjects": [{"kind": "User", "name": "guest", "apiGroup": "rbac.authorization.k8s.io"}],
                "roleRef": {"kind": "ClusterRole", "name": "auditor", "apiGroup": "rbac.authorization.k8s.io"}})
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {"user": "guest", "nonResourceAttributes": {"path": "/console/api/audit", "verb": "get"}}}
    end = time.monotonic() + 60
    while not client.must(201, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"]:
        expect(time.monotonic() < end, "the role is not in force")
        time.sleep(0.05)
    many = [Stream(server) for _ in range(14)]
    status, text = client.request("GET", "/console/api/audit")
    expect(status == 429, "more than 16 followers: %d %s" % (status, text))
    for stream in many + [everything, creates]:
        stream.connection.close()
    server.stop()
    policy = os.path.join(folder, "policy.yaml")
    with open(policy, "w") as f:
        f.write("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- {level: None, resources: [{resources: [configmaps]}]}\n- {level: RequestResponse}\n")
    server = started(binary, folder + "/policy", ["--audit-policy-file=" + policy, "--audit-log-path=" + folder + "/audit.log"])
    client, stream = Client(server), Stream(server)
    client.must(201, "POST", MAPS, config_map("unseen", {}))
    client.must(201, "POST", "/api/v1/namespaces/default/secrets", secret)
    seen = stream.until(lambda event: event.get("objectRef", {}).get("name") == "s" and event["stage"] == "ResponseComplete")
    expect("unseen" not in json.dumps(seen) and "hunter2" not in json.dumps(seen) and "requestObject" not in json.dumps(seen), str(seen))
    server.stop()


def store(binary, folder):
    """Figures, backup, download, check and defragmentation, for those who may."""
    server = started(binary, folder)
    client = Client(server)
    figures = client.must(200, "GET", "/console/api/store")
    expect(figures["embedded"] and figures["revision"] > 0 and figures["bytes"] > 0 and figures["diskFreeBytes"] > 0 and "lastBackup" not in figures, str(figures))
    ends = {row["flag"]: row["secondsLeft"] / 86400 for row in figures["certificates"]}
    expect(360 < ends["--tls-cert-file"] <= 366 and 3600 < ends["--client-ca-file"] < 3700 and "--etcd-certfile" not in ends, str(figures))
    message = client.must(200, "POST", "/console/api/store/backup")["message"]
    figures = client.must(200, "GET", "/console/api/store")
    expect(figures["lastBackup"]["name"] in message and figures["lastBackup"]["ageSeconds"] < 600 and figures["backups"] == 1, "%s %s" % (message, figures))
    expect("whole" in client.must(200, "POST", "/console/api/store/check")["message"], "check")
    expect("now" in client.must(200, "POST", "/console/api/store/defragment")["message"], "defragment")
    status, archive = client.request("POST", "/console/api/store/download")
    path = os.path.join(folder, "download.tar")
    with open(path, "wb") as f:
        f.write(archive)
    with tarfile.open(path) as tar:
        expect({"backup.txt", "pki/ca.key", "store.snapshot"} <= set(tar.getnames()), tar.getnames())
    done = subprocess.run([binary, "backup", "verify", path], capture_output=True, text=True, timeout=120)
    expect(status == 200 and done.returncode == 0, done.stderr)
    expect(os.listdir(server.data + "/downloads") == [], "the download stays on the server")
    # A user with get on every URL may see the figures, and gets no keys.
    client.must(201, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", {"metadata": {"name": "reader"}, "rules": [{"nonResourceURLs": ["*"], "verbs": ["get"]}]})
    client.must(201, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {"metadata": {"name": "reader"}, "subjects": [{"kind": "User", "name": "guest", "apiGroup": "rbac.authorization.k8s.io"}],
                "roleRef": {"kind": "ClusterRole", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}})
    end = time.monotonic() + 60
    while with_token(server, "GET", "/console/api/store", "guest-token")[0] != 200:
        expect(time.monotonic() < end, "the role is not in force")
        time.sleep(0.05)
    for work in ("backup", "download", "check", "defragment"):
        for method, token, wanted in (("POST", "guest-token", 403), ("GET", "guest-token", 405), ("POST", "wrong", 401)):
            status = with_token(server, method, "/console/api/store/" + work, token)[0]
            expect(status == wanted, "%s %s of %s: %d" % (method, work, token, status))
        expect(anonymous(server, "/console/api/store/" + work, "POST")[0].status == 403, "anonymous " + work)
    server.stop()


def pages(binary, folder):
    """The pages are public, with a strict policy; nothing else becomes public with them."""
    server = started(binary, folder)
    files = os.listdir(os.path.join(source_root(), "src", "console", "files"))
    for path in ["", "/"] + ["/" + name for name in files]:
        answer, text = anonymous(server, "/console" + path)
        expect(answer.status == 200 and text, "%s: %d" % (path, answer.status))
        policy = answer.getheader("Content-Security-Policy")
        expect("default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy, policy)
        expect(answer.getheader("X-Content-Type-Options") == "nosniff", path)
        expect(not re.search(r"https?://(?!www.w3.org/2000/svg)", text), "%s names another place" % path)
        expect("innerHTML" not in text or path.endswith("dom.js"), "%s: innerHTML" % path)
    for path, method in (("/console/nothing", "GET"), ("/console/../metrics", "GET"), ("/consoles", "GET"), ("/console", "POST"), ("/metrics", "GET")):
        status = anonymous(server, path, method)[0].status
        expect(status >= 400, "%s %s: %d" % (method, path, status))
    expect("/console" not in json.dumps(Client(server).must(200, "GET", "/")), "it is listed")
    server.stop()
    server = started(binary, folder + "/off", ["--console=false"])
    expect(anonymous(server, "/console")[0].status == 403, "it cannot be switched off")
    server.stop()


def connections(binary, folder):
    """Pages leave the HTTP/2 connection of an unauthenticated client open; other responses end it."""
    if shutil.which("curl") is None:
        print("connections: no curl, left out")
        return
    server = started(binary, folder)

    def opened(path):
        url = "https://127.0.0.1:%d%s" % (server.port, path)
        done = subprocess.run(["curl", "-sk", "--http2", "-w", "%{http_version} %{num_connects}\\n", "-o", "/dev/null", "-o", "/dev/null", url, url],
                              capture_output=True, text=True, timeout=120)
        return done.stdout.split("\n")[:2]

    expect(opened("/console/main.js") == ["2 1", "2 0"], "a page ends its connection: %s" % opened("/console/main.js"))
    expect(opened("/version") == ["2 1", "2 1"], "nobody keeps a connection: %s" % opened("/version"))
    server.stop()


NODE = """
import { toYAML, diffLines, editable } from "./yaml.js";
import { clientRows, parseMetrics, requestRows, slowestRows } from "./server.js";
import { describe, pathAt } from "./explain.js";
import { changers } from "./history.js";
import { changedMeanwhile, mergePatch } from "./patch.js";
import { takenFrom } from "./change.js";
import { changesOf } from "./edit.js";
import { documents, placeOf } from "./apply.js";
import { resolve } from "./fields.js";
import { schemaOf } from "./form.js";
import { ruleRows } from "./access.js";
import { refersTo } from "./relations.js";
import { counted } from "./home.js";
import { eventCells } from "./audit.js";
import { outcome, portForwardCommand, words } from "./pod.js";
import { age, spaceLeft } from "./store.js";
import { keyText, Screen } from "./terminal.js";
import { yamlLines } from "./yaml.js";
import { unowned } from "./owned.js";
import { cellOf, compile } from "./jsonpath.js";
import { chosenColumns, usualColumns } from "./columns.js";
import { ruleAllows } from "./allowed.js";
import { rank } from "./find.js";
const check = (got, want) => { if (JSON.stringify(got) !== JSON.stringify(want)) { console.error(JSON.stringify(got), "instead of", JSON.stringify(want)); process.exit(1); } };
check(toYAML({ a: [1, "x: y", { b: [] }], c: "1", d: "l1\\nl2\\n", e: {}, f: null, g: "yes" }), 'a:\\n- 1\\n- "x: y"\\n- b: []\\nc: "1"\\nd: |\\n  l1\\n  l2\\ne: {}\\nf: null\\ng: "yes"\\n');
check(diffLines("a\\nb\\nc", "a\\nx\\nc"), [" a", "-b", "+x", " c"]);
check(editable({ metadata: { name: "a", uid: "u", managedFields: [] }, status: {}, spec: 1 }), { metadata: { name: "a" }, spec: 1 });
check(requestRows(parseMetrics('apiserver_request_total{code="500",verb="GET",resource="pods",group=""} 4\\n'), null, 2), [["GET pods", "2.0", "0.00", 4]]);
check(mergePatch({ a: 1, b: { c: 1, d: [1] }, e: 1 }, { a: 1, b: { c: 2, d: [1] } }), { e: null, b: { c: 2 } });
check(mergePatch({ l: [{ a: 1, b: 2 }], m: [1], n: null }, { l: [{ b: 2, a: 1 }], m: [], n: null }), { m: [] });
check(changedMeanwhile({ a: 1, b: { c: 2 }, d: null, e: [2] }, { a: 0, b: { c: 1, x: 1 }, d: 1, e: [1] }, { a: 0, b: { c: 1, x: 2 }, d: 1, e: [1], f: 1 }), []);
check(changedMeanwhile({ a: 1, b: { c: 2 }, d: null, n: 1 }, { b: { c: 1 }, d: 1 }, { b: { c: 3 }, n: 2 }), [".b.c", ".d", ".n"]);
const fields = (...entries) => ({ metadata: { managedFields: entries.map(([manager, fieldsV1, subresource]) => ({ manager, operation: "Update", subresource, fieldsV1 })) } });
check(takenFrom(fields(["a", { "f:s": { "f:x": {}, "f:l": { 'k:{"n":"c"}': { ".": {}, "f:i": {} } } } }], ["keelson-console", { "f:q": {} }], ["b", { "f:x": {} }, "status"]), fields(["a", { "f:s": { "f:l": { 'k:{"n":"c"}': { ".": {} } } } }])),
      [{ manager: "a", field: ".s.x" }, { manager: "a", field: '.s.l[{"n":"c"}].i' }]);
check(takenFrom(fields(["a", { "f:x": {} }]), fields(["a", { "f:x": {} }], ["c", { "f:y": {} }])), []);
const named = (more) => ({ apiVersion: "v1", kind: "K", metadata: { name: "n" }, ...more });
check(changesOf(named({ a: 1, b: [1] }), named({ b: [1], c: 2, status: { x: 1 } })), { a: null, c: 2 });
check([named({ kind: "L" }), [], null, { ...named(), metadata: { name: "m" } }].map((wanted) => { try { return changesOf(named(), wanted); } catch (error) { return error.status; } }), [0, 0, 0, 0]);
check(documents("# c\\n---\\na: 1\\n--- # d\\nb: |\\n  x\\n  ---\\n---\\n  # only this\\n").length, 2);
const offered = [{ group: "apps", version: "v1", kind: "D", plural: "ds", namespaced: true }, { group: "", version: "v1", kind: "N", plural: "ns", namespaced: false }];
check([placeOf({ apiVersion: "apps/v2", kind: "D", metadata: { name: "x" } }, offered, "").path, placeOf({ apiVersion: "v1", kind: "N", metadata: { name: "x", namespace: "y" } }, offered, "z").path],
      ["/apis/apps/v2/namespaces/default/ds/x", "/api/v1/ns/x"]);
const version = (...entries) => ({ metadata: { managedFields: entries.map(([manager, time]) => ({ manager, time })) } });
check(changers(version(["a", 1], ["b", 1]), version(["a", 1], ["b", 2], ["c", 2])).map((entry) => entry.manager), ["b", "c"]);
check(changers(null, version(["a", 1])).length, 1);
const owns = (fields) => ({ metadata: { managedFields: [{ manager: "a", time: 1, fieldsV1: fields }] } });
check([changers(owns({ x: {}, y: { z: {} } }), owns({ x: {} })).length, changers(owns({ y: {} }), owns({ y: { z: {} } })).length], [0, 1]);
check(resolve({ description: "own", allOf: [{ $ref: "#/components/schemas/x" }] }, { x: { type: "string", description: "x" } }), { type: "string", description: "own" });
const kind = { group: "g", version: "v1", kind: "K" };
check(schemaOf({ components: { schemas: { a: {}, b: { "x-kubernetes-group-version-kind": [kind], type: "object" } } } }, kind).type, "object");
check(ruleRows({ resourceRules: [{ verbs: ["get"], apiGroups: [""], resources: ["pods"] }], nonResourceRules: [{ verbs: ["get"], nonResourceURLs: ["/version"] }] }),
      [["get", "pods in core", "all"], ["get", "/version", ""]]);
const spec = { volumes: [{ name: "x", configMap: { name: "settings" } }], serviceAccountName: "me" };
check([refersTo(spec, ["configMap"], "settings"), refersTo(spec, ["configMap"], "x"), refersTo(spec, ["serviceAccountName"], "me"), refersTo(spec, ["secret"], "settings")], [true, false, true, false]);
const event = { verb: "get", stage: "ResponseComplete", requestURI: "/x", user: { username: "a" }, stageTimestamp: "2026-11-17T05:30:00.250000Z", requestReceivedTimestamp: "2026-11-17T05:30:00.200000Z" };
check(eventCells({ ...event, responseStatus: { code: 200 }, objectRef: { resource: "pods", subresource: "log", namespace: "n", name: "p" }, impersonatedUser: { username: "b" } }),
      ["05:30:00.250", "a as b", "get", "pods/log n p", "200", "50 ms", ""]);
check(eventCells(event).slice(3, 5), ["/x", ""]);
const asked = [event, { ...event, userAgent: "kubectl/v1 (linux)", responseStatus: { code: 404 } }, { ...event, userAgent: "kubectl/v1" }, { ...event, verb: "watch" }, { ...event, stage: "ResponseStarted" }];
check(clientRows(asked), [["a, kubectl/v1", 2, 1, 50], ["a, -", 1, 0, 50]]);
check(slowestRows([event, { ...event, stageTimestamp: "2026-11-17T05:30:01.200000Z", requestURI: "/slow" }]).map((row) => row[0] + row[2]), ["get /slow1000", "get /x50"]);
const yaml = "metadata:\\n  name: a\\n  labels:\\n    app: b\\nspec:\\n  containers:\\n  - name: c\\n    ports:\\n    - containerPort: 1\\n      name: p\\n  - image: i\\n  replicas: 1\\n";
const pathOfLine = (text) => pathAt(yaml, yaml.indexOf(text) + 1).join(".");
check(["name: a", "app: b", "- name: c", "name: p", "- image", "replicas", "spec"].map(pathOfLine),
      ["metadata.name", "metadata.labels.app", "spec.containers.name", "spec.containers.ports.name", "spec.containers.image", "spec.replicas", "spec"]);
const described = { P: { properties: { list: { type: "array", items: { $ref: "#/components/schemas/I" } }, labels: { type: "object", additionalProperties: { type: "string", description: "L" } } } }, I: { properties: { n: { type: "integer", description: "N" } } } };
check([describe(["list", "n"], { $ref: "#/components/schemas/P" }, described), describe(["labels", "x"], described.P, described), describe(["no"], described.P, described)],
      [{ type: "integer", description: "N" }, { type: "string", description: "L" }, null]);
check(counted(parseMetrics('apiserver_resource_objects{group="",resource="pods"} 3\\napiserver_resource_objects{group="",resource="gone"} 9\\n'), [{ group: "", plural: "pods" }]).map((row) => row.count), [3]);
check([age(0), age(61), age(3600), age(100000)], ["0 s", "1 min 1 s", "1 h", "1 d 3 h"]);
check([spaceLeft({ quotaBytes: 10, bytes: 4, diskFreeBytes: 5 }), spaceLeft({ quotaBytes: 0, bytes: 4, diskFreeBytes: 5 }), spaceLeft({ quotaBytes: 3, bytes: 4, diskFreeBytes: 5 })], [5, 5, 0]);
check(outcome({ status: "Failure", message: "m", details: { causes: [{ reason: "ExitCode", message: "3" }] } }), "The command has ended with exit code 3.");
check(words(`sh -c 'echo "a b"' ""`), ["sh", "-c", 'echo "a b"', ""]);
check(portForwardCommand({ metadata: { namespace: "n", name: "p" }, spec: { containers: [{ ports: [{ containerPort: 80 }, { containerPort: 8443 }] }] } }, { plural: "pods" }),
      "kubectl port-forward -n n pod/p 8080:80 8443:8443");
const screen = (columns, rows, ...texts) => { const made = new Screen(columns, rows); texts.forEach((text) => made.write(text)); return made; };
check(screen(10, 3, "ab\\r\\ncd\\b\\bX\\ty").text(), "ab\\nXd      y");
check(screen(5, 3, "abcdefg").text(), "abcde\\nfg");
check(screen(9, 2, "1\\r\\n2\\r\\n3").text(), "2\\n3");
check(screen(9, 2, "1\\r\\n2\\r\\n3").history.length, 1);
check(screen(9, 4, "one\\x1b[2;3Hx\\x1b[A\\x1b[1K\\x1b", "[31", ";1mr").text(), "   r\\n  x");
check(screen(9, 4, "\\x1b[31;1mr\\x1b[0mn").lines[0].map((cell) => cell.s), ["fg1 bold", ""]);
check(screen(9, 4, "\\x1b[38;5;200;1mr\\x1b]0;title\\x07\\x1b(Bs").lines[0].map((cell) => cell.s + cell.c), ["boldr", "bolds"]);
check(screen(9, 4, "main\\x1b[?1049h\\x1b[Heditor\\x1b[?1049l!").text(), "main!");
check(screen(9, 4, "1\\r\\n2\\r\\n3\\r\\n4\\x1b[2;3r\\x1b[3H\\n\\x1b[2HX").text(), "1\\nX\\n\\n4");
check(screen(9, 3, "a\\r\\nb\\x1b[H\\x1b[Lz\\x1b[2J").text(), "");
check(screen(9, 3, "\\u{1F600}x").lines[0].length, 2);
const resized = screen(9, 3, "a\\r\\nb\\r\\nc"); resized.resize(9, 2); check([resized.text(), resized.history.length, resized.y], ["b\\nc", 1, 1]);
const held = { apiVersion: "v1", kind: "K", metadata: { name: "a", uid: "u", labels: { x: "1", y: "2" }, managedFields: [{ manager: "m", operation: "Apply", fieldsV1: { "f:metadata": { "f:labels": { "f:x": {} } },
  "f:spec": { "f:list": { 'k:{"name":"one"}': { ".": {}, "f:name": {} } }, "f:set": { 'v:"p"': {} }, "f:atomic": {}, "f:empty": { ".": {} } } } }] },
  spec: { list: [{ name: "one", port: 1 }, { name: "two" }], set: ["p", "q"], atomic: { deep: 1 }, empty: { z: 1 }, defaulted: { d: 1 } } };
check([...unowned(held)].sort(), ["/metadata/labels/y", "/metadata/uid", "/spec/defaulted", "/spec/empty/z", "/spec/list/0/port", "/spec/list/1", "/spec/set/1"]);
check([...unowned({ metadata: {}, spec: 1 })], []);
const client = (text) => ({ spec: { a: 1, b: [{ name: "n", c: 1 }] }, metadata: { name: "x", annotations: { "kubectl.kubernetes.io/last-applied-configuration": text }, managedFields: [{ manager: "kubectl-client-side-apply", operation: "Update",
  fieldsV1: { "f:metadata": { "f:annotations": { ".": {}, "f:kubectl.kubernetes.io/last-applied-configuration": {} } }, "f:spec": { "f:a": {}, "f:b": { 'k:{"name":"n"}': { ".": {}, "f:name": {}, "f:c": {} } } } } }] } });
check([...unowned(client('{"spec":{"b":[{"name":"n"}]}}'))], ["/spec/a", "/spec/b/0/c"]);
check([[...unowned(client("not JSON"))], [...unowned(client('{"spec":{}}'))]], [[], ["/spec/a", "/spec/b"]]);
check(yamlLines({ a: { b: 1 }, c: [{ d: 1, e: 2 }] }, new Set(["/a", "/c/0/e"])), [{ text: "a:", grey: true }, { text: "  b: 1", grey: true }, { text: "c:", grey: false }, { text: "- d: 1", grey: false }, { text: "  e: 2", grey: true }]);
const pods = { metadata: { labels: { "a.b/c": "l", x: "y" } }, spec: { list: [{ n: "a", v: 1, t: true }, { n: "b", v: 2 }], nodeName: "node" } };
const path = (text) => cellOf(compile(text)(pods));
check([".spec.nodeName", "spec.nodeName", "{.spec.nodeName}", "$.spec.nodeName", ".spec.list[0].n", ".spec.list[-1].n", ".spec.list[*].v", ".spec.list.*.n", "..n", ".metadata.labels.a\\\\.b/c", ".metadata.labels['a.b/c']",
       '.spec.list[?(@.n=="b")].v', ".spec.list[?(@.v>=2)].n", ".spec.list[?(@.t)].n", ".spec.list[?(@.n!='a')].n", ".spec.list[0]", ".spec.none.more[3]", ".spec.list[?(@.t==true)].v"].map(path),
      ["node", "node", "node", "node", "a", "b", "1,2", "a,b", "a,b", "l", "l", "2", "b", "a", "b", '{"n":"a","v":1,"t":true}', "", "1"]);
check([".a[", ".a[?(x)]", ".a]", ".a{", "..", ".constructor"].map((text) => { try { return cellOf(compile(text)({ a: 1 })); } catch { return "refused"; } }), ["refused", "refused", "refused", "refused", "refused", ""]);
const defined = [{ name: "Name", priority: 0 }, { name: "IP", priority: 1 }, { name: "Age", priority: 0 }], cells = { cells: ["n", "i", "1d"], object: pods };
const shown = (columns) => columns.map((column) => column.name + "=" + column.cell(cells));
check([shown(usualColumns(defined, false)), shown(usualColumns(defined, true)), shown(chosenColumns(defined, ["Age", "gone", "Node:.spec.nodeName", "Name"]))], [["Name=n", "Age=1d"], ["Name=n", "IP=i", "Age=1d"], ["Age=1d", "Node=node", "Name=n"]]);
const granted = { verbs: ["get"], apiGroups: [""], resources: ["pods", "*/log"], resourceNames: ["p"] };
check([ruleAllows(granted, "get", "", "pods", "p"), ruleAllows(granted, "get", "", "pods", "q"), ruleAllows(granted, "list", "", "pods", "p"), ruleAllows(granted, "get", "apps", "pods", "p"),
       ruleAllows(granted, "get", "", "pods/log", "p"), ruleAllows(granted, "get", "", "pods/exec", "p"), ruleAllows({ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }, "x", "g", "r/s", "")], [true, false, false, false, true, false, true]);
check([rank("labelled-one", "one"), rank("labelled-one", "lblone"), rank("labelled-one", "onel")], [0, 1, -1]);
const key = (name, more) => keyText({ key: name, ...more }, false);
check([key("a"), key("c", { ctrlKey: true }), key("Enter"), key("ArrowUp"), keyText({ key: "ArrowUp" }, true), key("Shift"), key("b", { altKey: true }), key("]", { ctrlKey: true })],
      ["a", "\\x03", "\\r", "\\x1b[A", "\\x1bOA", null, "\\x1bb", null]);
"""


def scripts(binary, folder):
    if shutil.which("node") is None:
        print("scripts: no node, left out")
        return
    for name in os.listdir(os.path.join(source_root(), "src", "console", "files")):
        shutil.copy(os.path.join(source_root(), "src", "console", "files", name), folder)
    for name, text in (("package.json", '{"type":"module"}'), ("test.js", NODE)):
        with open(os.path.join(folder, name), "w") as f:
            f.write(text)
    done = subprocess.run(["node", folder + "/test.js"], capture_output=True, text=True, timeout=120)
    expect(done.returncode == 0, done.stderr)


class Browser:
    """One page of a headless chromium."""

    def __init__(self, folder):
        self.process = subprocess.Popen(["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-port=0",
                                         "--ignore-certificate-errors", "--no-first-run", "--disable-background-networking", "--user-data-dir=" + folder, "about:blank"],
                                        stdout=subprocess.DEVNULL, stderr=open(folder + ".log", "w"))
        RUNNING.append(self)
        end = time.monotonic() + 120
        while not os.path.exists(folder + "/DevToolsActivePort"):
            expect(time.monotonic() < end and self.process.poll() is None, "chromium does not start")
            time.sleep(0.1)
        port = int(open(folder + "/DevToolsActivePort").readline())
        with urllib.request.urlopen("http://127.0.0.1:%d/json" % port, timeout=60) as answer:
            page = [target for target in json.load(answer) if target["type"] == "page"][0]
        self.socket = socket.create_connection(("127.0.0.1", port), 120)
        path = page["webSocketDebuggerUrl"].split("/", 3)[3]
        self.socket.sendall(("GET /%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                             "Sec-WebSocket-Key: %s\r\n\r\n" % (path, port, base64.b64encode(os.urandom(16)).decode())).encode())
        self.file = self.socket.makefile("rb")
        while self.file.readline() not in (b"\r\n", b""):
            pass
        self.number, self.urls, self.failures = 0, [], []
        self.command("Network.enable")
        self.command("Page.enable")
        self.command("Log.enable")

    def command(self, method, **parameters):
        self.number += 1
        payload = json.dumps({"id": self.number, "method": method, "params": parameters}).encode()
        mask = b"\0\0\0\0"
        head = struct.pack(">BBH", 0x81, 0x80 | 126, len(payload)) if len(payload) < 65536 else struct.pack(">BBQ", 0x81, 0x80 | 127, len(payload))
        self.socket.sendall(head + mask + payload)
        while True:
            first, size = self.file.read(2)
            size &= 0x7F
            if size == 126:
                size = struct.unpack(">H", self.file.read(2))[0]
            elif size == 127:
                size = struct.unpack(">Q", self.file.read(8))[0]
            message = json.loads(self.file.read(size))
            if message.get("method") == "Network.requestWillBeSent":
                self.urls.append(message["params"]["request"]["url"])
            if message.get("method") == "Network.loadingFailed" and not message["params"].get("canceled"):
                self.failures.append(message["params"]["errorText"])
            if message.get("method") == "Log.entryAdded":
                self.failures.append(message["params"]["entry"]["text"])
            if message.get("id") == self.number:
                expect("error" not in message, str(message))
                return message["result"]

    def run(self, script):
        result = self.command("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        expect("exceptionDetails" not in result, "%s: %s" % (script[:200], result.get("exceptionDetails")))
        return result["result"].get("value")

    def holds(self, script):
        """False, too, while the page is replaced by another."""
        try:
            return self.run(script)
        except AssertionError as error:
            if "navigated" in str(error) or "context was destroyed" in str(error):
                return False
            raise

    def until(self, script, what, seconds=60):
        end = time.monotonic() + seconds
        while not self.holds(script):
            if time.monotonic() > end:
                raise AssertionError("%s; the page has: %s; failures: %s" % (what, self.run("document.body?.innerText || ''")[:1500], self.failures[-5:]))
            time.sleep(0.05)

    def has(self, text, seconds=60):
        self.until("(document.body ? document.body.innerText : '').includes(%s)" % json.dumps(text), "no %r" % text, seconds)

    def click(self, text):
        self.until("[...document.querySelectorAll('button')].some((b) => b.textContent === %s && !b.disabled)" % json.dumps(text), "no button %r" % text)
        self.run("[...document.querySelectorAll('button')].find((b) => b.textContent === %s).click()" % json.dumps(text))

    def go(self, hash_):
        self.run("location.hash = %s" % json.dumps(hash_))


AXE = os.environ.get("KEELSON_AXE", os.path.expanduser("~/.cache/keelson/axe.min.js"))  # of the npm package axe-core
FINDINGS = "axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.target.join(' ')).slice(0, 3).join(', ')))"


def accessible(browser, view):
    """No finding of axe, in light and in dark. Left out without axe-core."""
    if not os.path.exists(AXE):
        return
    if not browser.run("typeof axe === 'object'"):
        with open(AXE) as f:
            browser.run(f.read() + "; 0")
    for scheme in ("dark", "light"):
        browser.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        findings = browser.run(FINDINGS)
        expect(not findings, "%s, %s: %s" % (view, scheme, findings))


def sign_in(browser, server, token):
    browser.command("Page.navigate", url="https://127.0.0.1:%d/console" % server.port)
    browser.has("Sign in")
    browser.run("document.querySelector('input[type=password]').value = %s; document.querySelector('form').requestSubmit()" % json.dumps(token))


def browser(binary, folder):
    if shutil.which("chromium") is None:
        print("browser: no chromium, left out")
        return
    if not os.path.exists(AXE):
        print("browser: no axe-core at %s, its checks are left out" % AXE)
    server = started(binary, folder)
    client = Client(server)
    client.must(201, "POST", MAPS, config_map("first", {"a": "<script>alert(1)</script>"}))
    page = Browser(folder + "/profile")

    sign_in(page, server, "wrong")
    page.has("Not signed in")
    accessible(page, "sign in")
    sign_in(page, server, "admin-token")
    page.until("document.getElementById('user').textContent === 'root'", "not signed in")
    page.until("document.querySelectorAll('#kinds a').length > 50", "no kinds")
    page.run("const s = document.getElementById('search'); s.value = 'dplymnt'; s.dispatchEvent(new Event('input'))")
    page.until("document.querySelectorAll('#kinds a').length === 1 && document.querySelector('#kinds a').textContent === 'Deployment'", "the search")

    # Names of every kind, by the same box.
    page.run("s.value = 'fir'; s.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', ctrlKey: true}))")
    page.has("1 found.")
    accessible(page, "find")
    expect(page.run("document.querySelector('main tbody a').getAttribute('href')") == "#/object/core/v1/configmaps/default/first", "the link")

    # A table that follows what happens.
    page.go("#/list/core/v1/configmaps")
    page.has("first")
    client.must(201, "POST", MAPS, config_map("second", {"a": "b"}))
    page.has("second")
    client.must(200, "DELETE", MAPS + "/second")
    page.until("!document.querySelector('main').innerText.includes('second')", "a deleted object stays")
    accessible(page, "list")

    # The choices are in the URL and are restored from it: fields, wide columns, sorting, filter.
    page.run("const f1 = document.querySelector('[aria-label=\"Field selector\"]'); f1.value = 'metadata.name=first'; f1.dispatchEvent(new Event('change'))")
    page.until("location.hash.includes('fields=') && document.querySelectorAll('main tbody a').length === 1", "the field selector")
    page.go("#/list/core/v1/services?wide=1&sort=-Name&filter=kube")
    page.until("[...document.querySelectorAll('main th')].some((t) => t.textContent === 'Selector') && document.querySelectorAll('main tbody a').length === 1", "wide columns")
    page.run("document.querySelectorAll('main th')[1].click()")
    page.until("location.hash.includes('sort=Name') && location.hash.includes('wide=1') && location.hash.includes('filter=kube')", "the sorting is not in the address")
    page.run("document.activeElement.blur(); document.dispatchEvent(new KeyboardEvent('keydown', {key: 'k', ctrlKey: true}))")
    page.until("document.activeElement.id === 'search'", "Control and K")

    # An edit: dry run with its diff, then the change; what another manages is a conflict.
    page.go("#/object/core/v1/configmaps/default/first")
    page.has("<script>alert(1)</script>")
    page.click("Edit")
    page.run("const e = document.querySelector('textarea'); e.setSelectionRange(e.value.indexOf('name: first'), e.value.indexOf('name: first')); e.dispatchEvent(new Event('click'))")
    page.has("metadata.name <string>")
    page.run("const t = document.querySelector('textarea'); t.value += 'immutable: false\\n'; t.dispatchEvent(new Event('input'))")
    page.click("Dry run")
    page.has("+immutable: false")
    accessible(page, "edit")
    expect("immutable" not in client.must(200, "GET", MAPS + "/first"), "the dry run wrote")
    page.click("Save")
    page.has("Saved.")
    expect(client.must(200, "GET", MAPS + "/first")["immutable"] is False, "not saved")
    client.must(200, "PATCH", MAPS + "/first?fieldManager=other&force=true", json.dumps(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "first"}, "data": {"z": "other"}}), content_type="application/apply-patch+yaml")
    page.go("#/")
    page.go("#/object/core/v1/configmaps/default/first")
    page.has("z: other")
    page.click("Edit")
    page.run("const u = document.querySelector('textarea'); u.value = u.value.replace('z: other', 'z: mine'); u.dispatchEvent(new Event('input'))")
    page.click("Dry run")
    page.has(".data.z, managed by other")
    expect(page.run("[...document.querySelectorAll('button')].find((b) => b.textContent === 'Save').disabled"), "a conflict can be saved")

    # What happened to it, and back: the newest version is what `other` did, the one before is what the console did.
    page.go("#/")
    page.go("#/object/core/v1/configmaps/default/first")
    page.has("created")
    rows = page.run("[...document.querySelectorAll('main tbody tr')].slice(0, 3).map((row) => [...row.cells].slice(1, 3).map((cell) => cell.innerText))")
    expect(rows[0][0] == "other" and rows[1][0] == "keelson-console" and rows[2][1] == "created", "history: %s" % rows)
    page.run("[...document.querySelectorAll('button')].filter((b) => b.textContent === 'Show')[0].click()")
    page.has("+  z: other")
    accessible(page, "object")
    page.run("[...document.querySelectorAll('button')].filter((b) => b.textContent === 'Put back')[0].click()")
    page.has("-  z: other")
    expect(client.must(200, "GET", MAPS + "/first")["data"].get("z") == "other", "the dry run wrote")
    page.click("Put back now")
    page.has("Put back.")
    expect("z" not in client.must(200, "GET", MAPS + "/first")["data"], "not put back")

    # Owners and owned, as a tree.
    first = client.must(200, "GET", MAPS + "/first")
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "first", "uid": first["metadata"]["uid"]}
    account = client.must(201, "POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "owned", "ownerReferences": [owner]}})
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    replicas = client.must(201, "POST", "/apis/apps/v1/namespaces/default/replicasets", {"metadata": {"name": "below", "ownerReferences": [{**owner, "kind": "ServiceAccount", "name": "owned", "uid": account["metadata"]["uid"]}]},
                           "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}})
    page.go("#/object/apps/v1/replicasets/default/below")
    page.has("ServiceAccount owned")
    page.until("document.querySelector('.tree')?.innerText.replace(/\\s+/g, ' ').trim() === 'ConfigMap first ServiceAccount owned ReplicaSet below'", "the owners of " + replicas["metadata"]["name"])
    page.go("#/object/core/v1/configmaps/default/first")
    page.has("nothing found that it owns")
    page.click("Look in every kind")
    page.until("document.querySelector('.tree').innerText.replace(/\\s+/g, ' ').trim() === 'ConfigMap first ServiceAccount owned ReplicaSet below'", "what it owns")
    accessible(page, "tree")

    # The first view.
    page.go("#/")
    page.has("Most numerous")
    accessible(page, "start")

    # A form made of the schema, for a custom resource.
    client.must(201, "POST", CRDS, WIDGETS)
    page.run("location.reload()")
    page.has("Sign in")
    page.run("document.querySelector('input[type=password]').value = 'admin-token'; document.querySelector('form').requestSubmit()")
    page.until("[...document.querySelectorAll('#kinds a')].some((a) => a.textContent === 'Widget')", "no custom resource")
    page.go("#/new/example.com/v1/widgets")
    page.has("How large it is.")
    page.run("""(() => {
      const field = (name) => [...document.querySelectorAll('.field')].find((f) => f.querySelector('label').textContent.replace(' *', '') === name).querySelector('input,select');
      field('name').value = 'w'; field('size').value = '-1'; field('color').value = '"red"'; })()""")
    page.click("Dry run")
    page.has("spec.size in body should be greater than or equal to 1")
    accessible(page, "form")
    page.run("[...document.querySelectorAll('.field')].find((f) => f.querySelector('label').textContent === 'size *').querySelector('input').value = '3'")
    page.click("Create")
    page.has("Created.")
    expect(client.must(200, "GET", "/apis/example.com/v1/namespaces/default/widgets/w")["spec"] == {"size": 3, "color": "red"}, "not created")

    form_edit(page, client)

    # Access reviews.
    page.go("#/access")
    page.has("* in *")
    page.run("const q = document.querySelectorAll('main form')[1]; q.elements.user.value = 'guest'; q.requestSubmit()")
    page.until("document.querySelector('main p[role=status]').textContent.startsWith('No.')", "the answer")
    accessible(page, "access")
    page.run("document.getElementById('readonly').click()")
    page.go("#/object/core/v1/configmaps/default/first")
    page.has("Owners")
    expect(not page.run("[...document.querySelectorAll('button')].some((b) => ['Edit', 'Delete', 'Put back'].includes(b.textContent))"), "read only")
    page.run("document.getElementById('readonly').click()")

    # The server's own page.
    page.go("#/server")
    page.has("ready: every check passes")
    page.has("global-default")
    page.has("root, Mozilla/5.0")
    page.until("/--tls-cert-file\\t.*\\t36\\d d/.test(document.body.innerText)", "certificates")
    accessible(page, "server")

    # Many objects: only rows in view are in the document.
    for i in range(600):
        client.must(201, "POST", MAPS, config_map("many-%04d" % i, {}))
    page.go("#/list/core/v1/configmaps")
    page.has("500 and 1")
    page.click("Load more")
    page.until("!/ and \\d* more/.test(document.body.innerText)", "the second page")
    rows = page.run("document.querySelectorAll('tbody tr').length")
    expect(rows < 200, "%d rows in the document" % rows)

    # A user without permissions.
    sign_in(page, server, "guest-token")
    page.until("document.getElementById('user').textContent === 'guest'", "not signed in")
    page.go("#/list/core/v1/secrets")
    page.has("Not permitted")
    elsewhere = [url for url in page.urls if not url.startswith(("https://127.0.0.1:%d/" % server.port, "about:", "data:"))]
    expect(len(page.urls) > 20 and not elsewhere, "requests to elsewhere: %s" % elsewhere)
    server.stop()


# The input below a label, in the first element that the selector finds; opens what is folded on its way.
FIELD = """window.field = (name, within) => [...(within || document.querySelector('main section')).querySelectorAll('.field')].find((f) => f.querySelector('label').textContent.replace(' *', '') === name)
  .querySelector('input,select,textarea');
window.folded = (name, within) => [...(within || document.querySelector('main section')).querySelectorAll('details')].find((d) => d.querySelector('summary').textContent.replace(' *', '') === name);
"""
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def open_form(page, path, text):
    page.go("#/")
    page.go("#/object/" + path)
    page.has(text)
    page.click("Edit as form")
    page.until("document.querySelector('main section form.schema')", "no form")
    page.run(FIELD + "0")


def form_edit(page, client):
    """Existing objects by a form: only what was changed is sent, after a dry run, and others' changes elsewhere are not a conflict."""
    widget = "/apis/example.com/v1/namespaces/default/widgets/w"
    open_form(page, "example.com/v1/widgets/default/w", "size: 3")
    accessible(page, "edit as form")
    page.click("Dry run")
    page.has("Nothing is changed.")
    expect(page.run("field('size').value + field('color').value") == '3"red"', "the values are not in the form")
    page.run("field('size').value = '-1'")
    page.click("Dry run")
    page.has("spec.size in body should be greater than or equal to 1")
    page.run("field('size').value = '5'; field('color').value = ''")
    page.click("Dry run")
    page.has("-  color: red")
    page.has("+  size: 5")
    expect(client.must(200, "GET", widget)["spec"] == {"size": 3, "color": "red"}, "the dry run wrote")
    page.click("Save")
    page.has("Saved.")
    expect(client.must(200, "GET", widget)["spec"] == {"size": 5}, "not saved")

    # A list of another manager with what a form does not show; its other fields stay that manager's.
    client.must(201, "POST", DEPLOYMENTS + "?fieldManager=pipeline", {"metadata": {"name": "web", "annotations": {"note": "two\nlines"}}, "spec": {
        "replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}}, "spec": {
            "volumes": [{"name": "scratch", "emptyDir": {}}], "containers": [{"name": "main", "image": "example.com/web:1", "args": ["", "-v"]}]}}}})
    open_form(page, "apps/v1/deployments/default/web", "replicas: 2")
    page.click("Dry run")
    page.has("Nothing is changed.")
    page.run("field('image').value = 'example.com/web:2'; field('value', folded('annotations')).value = 'three\\nmore\\nlines'")
    page.click("Dry run")
    page.has('+        image: "example.com/web:2"')
    page.has('.spec.template.spec.containers[{"name":"main"}].image, managed by pipeline')
    page.run("document.getElementById('take-over').click()")
    # A status update and another field by another user.
    client.must(200, "PATCH", DEPLOYMENTS + "/web/status", {"status": {"observedGeneration": 1}}, content_type="application/merge-patch+json")
    client.must(200, "PATCH", DEPLOYMENTS + "/web?fieldManager=autoscaler", {"spec": {"replicas": 7}}, content_type="application/merge-patch+json")
    page.click("Save")
    page.until("!document.querySelector('main form.schema') && document.querySelector('main pre')?.innerText.includes('example.com/web:2')", "not saved")
    web = client.must(200, "GET", DEPLOYMENTS + "/web")
    pod = web["spec"]["template"]["spec"]
    expect(web["spec"]["replicas"] == 7 and pod["containers"][0]["image"] == "example.com/web:2" and pod["containers"][0]["args"] == ["", "-v"]
           and pod["volumes"] == [{"name": "scratch", "emptyDir": {}}] and web["metadata"]["annotations"]["note"] == "three\nmore\nlines", json.dumps(web))
    mine = [entry for entry in web["metadata"]["managedFields"] if entry["manager"] == "keelson-console"]
    expect(len(mine) == 1 and "f:image" in json.dumps(mine) and "f:args" not in json.dumps(mine) and "f:replicas" not in json.dumps(mine), "ownership: %s" % mine)

    # The same field changed by another user is a conflict, and nothing is written.
    open_form(page, "apps/v1/deployments/default/web", "replicas: 7")
    page.run("field('replicas').value = '9'")
    page.click("Dry run")
    page.has("+  replicas: 9")
    page.run("document.getElementById('take-over').click()")
    client.must(200, "PATCH", DEPLOYMENTS + "/web?fieldManager=autoscaler", {"spec": {"replicas": 8}}, content_type="application/merge-patch+json")
    page.click("Save")
    page.has("Somebody else has changed the same fields")
    page.has(".spec.replicas")
    expect(client.must(200, "GET", DEPLOYMENTS + "/web")["spec"]["replicas"] == 8, "a change is lost")
    page.click("Open the new version")
    page.until("!document.querySelector('main form.schema') && document.querySelector('main pre')?.innerText.includes('replicas: 8')", "not opened anew")


def care(binary, folder):
    """In the browser: in by a link, the audit events, care of the store, a shell."""
    if shutil.which("chromium") is None:
        print("care: no chromium, left out")
        return
    server = TerminalServer(binary, folder).start()
    client = Client(server)
    kubelet = FakeKubelet(server.pki + "/apiserver.crt", server.pki + "/apiserver.key")
    make_pod(client, kubelet)
    page = Browser(folder + "/profile")
    link = server.link()
    page.command("Page.navigate", url="https://127.0.0.1:%d/console#link=%s" % (server.port, link))
    page.until("document.getElementById('user') && document.getElementById('user').textContent === 'admin'", "not signed in by the link")
    expect(link not in page.run("location.href"), "the secret stays in the address")
    expect(page.run("JSON.stringify([localStorage.length, sessionStorage.length, document.cookie])") == '[0,0,""]', "something is stored")

    page.go("#/audit")
    page.has("waiting for events")
    client.must(201, "POST", MAPS, config_map("audited", {}))
    page.has("configmaps default audited")
    page.run("const v = document.getElementById('audit-verb'); v.value = 'delete'; v.form.requestSubmit()")
    page.until("location.hash === '#/audit?verb=delete'", "the filter is not in the address")
    client.must(200, "DELETE", MAPS + "/audited")
    page.until("[...document.querySelectorAll('main tbody tr')].length > 0 && [...document.querySelectorAll('main tbody tr')].every((r) => r.cells[2].textContent === 'delete')", "the filter")
    accessible(page, "audit")

    page.go("#/store")
    page.has("Space left")
    page.click("Back up now")
    page.has("ago: keelson-")
    page.click("Check")
    page.has("whole.")
    page.click("Defragment")
    page.has(" before, ")
    accessible(page, "store")
    downloads = folder + "/downloads"
    page.command("Browser.setDownloadBehavior", behavior="allow", downloadPath=downloads)
    page.click("Download a backup")
    page.has("Keep it like a password.")
    end = time.monotonic() + 60
    while not (os.path.isdir(downloads) and [name for name in os.listdir(downloads) if name.endswith(".tar")]):
        expect(time.monotonic() < end, "no download")
        page.run("0")
        time.sleep(0.05)

    page.go("#/object/core/v1/pods/default/one")
    page.click("Shell")
    page.click("Connect")
    page.until("/[$#] /.test(document.querySelector('.terminal')?.innerText || '')", "no prompt")
    shell_keys(page, "echo $((6*7))x; stty size")
    page.has("42x")
    page.until("/\\n\\d+ \\d+/.test(document.querySelector('.terminal').innerText)", "no size")
    size = page.run("document.querySelector('.terminal').innerText.match(/\\n(\\d+) (\\d+)/).slice(1).map(Number)")
    expect(size[0] == 24 and size[1] != 80, "the size is not told: %s" % size)
    accessible(page, "shell")
    shell_keys(page, "exit 3")
    page.has("exit code 3")
    page.click("Attach")
    page.click("Connect")
    page.until("document.activeElement.className === 'terminal'", "the terminal has no focus")
    shell_keys(page, "echoed by cat")
    page.has("echoed by cat")
    page.run("document.getElementById('readonly').click()")
    page.until("![...document.querySelectorAll('button')].some((b) => ['Shell', 'Attach'].includes(b.textContent))", "a shell while reading only")
    page.click("Port forward")
    page.has("kubectl port-forward -n default pod/one 8080:8080")

    page.click("Sign out")
    page.has("Nobody is signed in.")
    page.go("#link=" + link)
    page.has("The link does not sign in")
    server.stop()
    kubelet.stop()


MODULES = os.environ.get("KEELSON_PLAYWRIGHT", os.path.expanduser("~/.cache/keelson/console/node_modules"))  # tools/console.sh


def playwright(binary, folder):
    """test/console/console.mjs: greyed defaults, columns, keys, search, rights, every view. KEELSON_CONSOLE_TESTS names some."""
    if shutil.which("chromium") is None or shutil.which("node") is None or not os.path.isdir(MODULES + "/playwright-core"):
        print("playwright: no chromium, no node or no %s (tools/console.sh), left out" % MODULES)
        return
    server = started(binary, folder, ["--disable-admission-plugins=ServiceAccount"])
    script = os.path.join(source_root(), "test", "console", "console.mjs")
    done = subprocess.run(["node", script, "https://127.0.0.1:%d" % server.port] + os.environ.get("KEELSON_CONSOLE_TESTS", "").split(), capture_output=True, text=True, timeout=900,
                          env=dict(os.environ, KEELSON_PLAYWRIGHT=MODULES))
    print(done.stdout + done.stderr, end="", flush=True)
    expect(done.returncode == 0, "see above")
    server.stop()


def make_pod(client, kubelet):
    client.must(201, "POST", "/api/v1/nodes", {"metadata": {"name": "n"}, "status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet.port}}}})
    client.must(201, "POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    client.must(201, "POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "one"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 8080}]}]}})


def shell_keys(page, text):
    """Types into the terminal as a keyboard does."""
    page.run("document.querySelector('.terminal').focus()")
    for c in text:
        page.command("Input.dispatchKeyEvent", type="keyDown", key=c, text=c)
        page.command("Input.dispatchKeyEvent", type="keyUp", key=c)
    page.command("Input.dispatchKeyEvent", type="keyDown", key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
    page.command("Input.dispatchKeyEvent", type="keyUp", key="Enter", code="Enter", windowsVirtualKeyCode=13)


POD = '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-%06d","labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"example.com/web:1.0"}]}}'


def resident(server):
    with open("/proc/%d/status" % server.process.pid) as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)) / 1024


def many(binary, folder):
    """100,000 pods (KEELSON_CONSOLE_OBJECTS): first paint, scrolling to the end, memory. Only when it is named."""
    count = int(os.environ.get("KEELSON_CONSOLE_OBJECTS", "100000"))
    server = started(binary, folder, ["--disable-admission-plugins=ServiceAccount"])

    def create(first, last):
        client = Client(server)
        for i in range(first, last):
            client.must(201, "POST", "/api/v1/namespaces/default/pods", POD % i)

    parts = [threading.Thread(target=create, args=(i * count // 4, (i + 1) * count // 4)) for i in range(4)]
    for part in parts:
        part.start()
    for part in parts:
        part.join()
    page = Browser(folder + "/profile")
    sign_in(page, server, "admin-token")
    page.until("document.getElementById('user').textContent === 'root'", "not signed in")
    before, begin = resident(server), time.monotonic()
    page.go("#/list/core/v1/pods")
    page.has("web-000000")
    paint = time.monotonic() - begin
    page.has("500 and %d more" % (count - 500))
    with_page, begin = resident(server), time.monotonic()
    page.run("""(async () => {
      const scroller = document.querySelector('.scroller'), frame = () => new Promise(requestAnimationFrame);
      window.slowest = 0;
      while (/ and .* more/.test(document.querySelector('.tools').innerText) || !document.body.innerText.includes('web-%06d')) {
        const at = performance.now();
        scroller.scrollTop = scroller.scrollHeight;
        await frame();
        window.slowest = Math.max(window.slowest, performance.now() - at);
      } })()""" % (count - 1))
    scrolled = time.monotonic() - begin
    rows = page.run("document.querySelectorAll('tbody tr').length")
    expect(rows < 200, "%d rows in the document" % rows)
    begin = time.monotonic()
    page.run("const f = document.querySelector('.tools input'); f.value = 'web-%06d'; f.dispatchEvent(new Event('input'))" % (count - 7))
    page.has("1 of %d" % count)
    filtered = time.monotonic() - begin
    heap = page.command("Runtime.getHeapUsage")["usedSize"] / 1e6
    print("%d pods: first rows after %.2f s, the last one after %.1f s of scrolling (slowest frame %.0f ms), filter %.2f s; page %.0f MB; server %.0f MB, +%.1f MB with "
          "the page, +%.1f MB after scrolling" % (count, paint, scrolled, page.run("window.slowest"), filtered, heap, before, with_page - before, resident(server) - before))
    server.stop()


def screenshots(binary, folder):
    """Pictures for docs/console.md. Only when it is named."""
    server = started(binary, folder)
    client = Client(server)
    for name, replicas in (("web", 3), ("api", 2), ("worker", 5)):
        client.must(201, "PATCH", "/apis/apps/v1/namespaces/default/deployments/%s?fieldManager=kubectl" % name, {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": {"app": name}}, "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": {
                "metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": "example.com/%s:1.0" % name}]}}}}, content_type="application/apply-patch+yaml")
    path = "/apis/apps/v1/namespaces/default/deployments/web"
    for manager, patch in (("pipeline", {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "example.com/web:1.1"}]}}}}), ("autoscaler", {"spec": {"replicas": 12}})):
        client.must(200, "PATCH", path + "?fieldManager=" + manager, json.dumps(patch), content_type="application/strategic-merge-patch+json")
    client.must(201, "POST", CRDS, WIDGETS)
    page = Browser(folder + "/profile")
    page.command("Emulation.setDeviceMetricsOverride", width=1200, height=760, deviceScaleFactor=1, mobile=False)

    def scheme(value):
        page.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": value}])

    def picture(name):
        page.run("document.getElementById('status').replaceChildren(); document.activeElement?.blur?.()")
        data = base64.b64decode(page.command("Page.captureScreenshot", format="png")["data"])
        if shutil.which("pngquant"):  # a third of the size, with 256 colours
            data = subprocess.run(["pngquant", "--speed=1", "--strip", "256", "-"], input=data, capture_output=True, check=True).stdout
        with open(os.path.join(source_root(), "docs", "images", "console-%s.png" % name), "wb") as f:
            f.write(data)

    page.command("Page.navigate", url="https://127.0.0.1:%d/console" % server.port)
    page.has("Sign in")
    picture("sign-in")
    sign_in(page, server, "admin-token")
    page.until("[...document.querySelectorAll('#kinds a')].some((a) => a.textContent === 'Widget')", "no custom resource")
    client.must(201, "POST", "/api/v1/namespaces/default/events", {"metadata": {"name": "web"}, "involvedObject": {"kind": "Deployment", "apiVersion": "apps/v1", "namespace": "default", "name": "web"},
                "type": "Warning", "reason": "FailedCreate", "message": "quota exceeded", "lastTimestamp": "2026-11-17T20:00:00Z"})
    page.go("#/server")
    page.has("global-default")
    page.go("#/")
    page.has("Most numerous")
    picture("start")
    page.go("#/list/apps/v1/deployments")
    page.has("worker")
    picture("list")
    scheme("dark")
    page.go("#/list/apps/v1/deployments?column=Name&column=Ready&column=Images&" + urllib.parse.urlencode(
        {"column": "Strategy:.spec.strategy.type"}) + "&" + urllib.parse.urlencode({"column": "Team:.metadata.labels.app"}) + "&sort=Name")
    page.has("RollingUpdate")
    page.click("Columns")
    page.has("Usual columns")
    picture("columns-dark")
    scheme("light")
    page.run("[...document.querySelectorAll('button')].find((b) => b.textContent === 'Usual columns').click()")
    page.go("#/object/apps/v1/deployments/default/web")
    page.has("created")
    picture("object")
    scheme("dark")
    picture("object-dark")
    scheme("light")
    page.run("[...document.querySelectorAll('button')].filter((b) => b.textContent === 'Put back')[0].click()")
    page.has("Put back now")
    page.run("[...document.querySelectorAll('h2')].find((h) => h.textContent === 'History').scrollIntoView()")
    picture("history")
    page.run("document.querySelector('[data-key=e]').click()")
    page.run("const t = document.querySelector('textarea'); t.value = t.value.replace(/replicas: \\d+/, 'replicas: 20'); t.style.minHeight = '14rem';"
             "t.setSelectionRange(t.value.indexOf('replicas'), t.value.indexOf('replicas')); t.dispatchEvent(new Event('input')); t.dispatchEvent(new Event('click'))")
    page.has("spec.replicas <integer>")
    page.click("Dry run")
    page.has("others manage fields")
    page.run("document.querySelector('main').scrollTop = 0")
    picture("conflict")
    page.go("#/apply")
    page.has("Apply YAML")
    page.run("const a = document.querySelector('textarea'); a.style.minHeight = '14rem'; a.value = %s" % json.dumps(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: api\nspec:\n  replicas: 3\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: greeting\ndata:\n  hello: world\n"))
    page.click("Dry run")
    page.has("would be created")
    picture("apply")
    page.go("#/new/example.com/v1/widgets")
    page.has("How large it is.")
    picture("form")
    page.go("#/find/" + urllib.parse.quote("app=web"))
    page.has("1 found.")
    picture("find")
    page.go("#/access")
    page.has("* in *")
    page.run("const q = document.querySelectorAll('main form')[1]; q.elements.user.value = 'guest'; q.requestSubmit()")
    page.until("document.querySelector('main p[role=status]').textContent.startsWith('No.')", "the answer")
    picture("access")
    page.run("document.getElementById('help').click()")
    page.has("rows of a list")
    picture("keys")
    page.run("document.getElementById('keys').close()")
    for value in ("light", "dark"):
        scheme(value)
        page.go("#/")
        page.go("#/server")
        page.has("global-default")
        picture("server" + ("" if value == "light" else "-dark"))
    scheme("light")
    page.go("#/audit?resource=deployments")
    page.has("waiting for events")
    for replicas in (4, 6):
        client.must(200, "PATCH", path + "?fieldManager=autoscaler", json.dumps({"spec": {"replicas": replicas}}), content_type="application/merge-patch+json")
        client.must(200, "GET", path)
        with_token(server, "DELETE", path, "guest-token")
    page.until("document.querySelectorAll('main tbody tr').length >= 6", "no events")
    picture("audit")
    page.go("#/store")
    page.click("Back up now")
    page.has("ago: keelson-")
    picture("store")
    kubelet = FakeKubelet(server.pki + "/apiserver.crt", server.pki + "/apiserver.key")
    make_pod(client, kubelet)
    page.go("#/object/core/v1/pods/default/one")
    page.click("Shell")
    page.run("const c = document.querySelector('[aria-label=Command]'); c.value = 'env -i \"PS1=web-0:~$ \" TERM=xterm sh'")
    page.click("Connect")
    page.until("(document.querySelector('.terminal')?.innerText || '').includes('web-0')", "no prompt")
    shell_keys(page, "printf '\\033[32mready\\033[0m\\n'; stty size")
    page.until("document.querySelector('.terminal').innerText.split('web-0').length === 3", "no answer")
    picture("shell")
    kubelet.stop()
    server.stop()


TESTS = [pages, connections, links, no_links, audit, store, scripts, browser, care]
ON_REQUEST = [playwright, many, screenshots]


if __name__ == "__main__":
    sys.exit(run_tests(TESTS, RUNNING, ON_REQUEST))
