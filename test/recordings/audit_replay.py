#!/usr/bin/env python3
"""Replay the audit goldens: start a server with each group's policy and flags, send the requests,
compare the audit events it writes.  The goldens are in KEELSON_SUITES/audit, whose README.md describes the format.

  audit_replay.py --server 'kube-apiserver --etcd-servers={etcd}' --etcd etcd [--filter REGEX] FOLDER_OR_FILE...
  audit_replay.py --server 'keelson --data-dir={data}' ../shared/testdata/audit

The last line is "N passed, N failed" (cases); exit code 1 when something failed, 2 on usage errors.
Python 3 standard library and the openssl command only.  Everything runs on loopback.
"""
import argparse
import base64
import glob
import gzip
import http.server
import json
import os
import re
import shlex
import shutil
import socket
import ssl
import stat
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import replay  # noqa: E402
from replay import Mismatch, instantiate, match, short  # noqa: E402

replay.KINDS.update({
    "dur": r"(?:\d+(?:\.\d+)?(?:ns|µs|us|ms|h|m|s))+",       # a Go duration
    "peer": r"[\w.:-]+",                                      # host:port of the scripted peer
    "cabundle": r"[A-Za-z0-9+/=]+",
    "dir": r"[^\"]+",
    "prefix": r"[\w-]+",                                      # first part of a key in the storage
    "rot": r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}",          # time in the name of a rotated file
})
replay.KINDS["binding"] = r"system:(?:discovery|public-info-viewer)"     # both allow; which one is found first is chance
replay.WILD.update({"dur", "rot", "binding", "prefix"})
LATENCY = "apiserver.latency.k8s.io/"
TOKENS = ('t-alice,alice,u-alice,"devs"\n' 't-bob,bob,u-bob,"devs,ops"\n' 't-root,root,u-root,"system:masters,ops"\n'
          't-node,system:node:n1,u-n1,"system:nodes"\n')


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def pki(d):
    run = lambda *a: subprocess.run(["openssl", *a], cwd=d, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=ca", "-days", "2")
    for name, subj, ext in (("admin", "/O=system:masters/CN=admin", "extendedKeyUsage=clientAuth"),
                            ("server", "/CN=server", "subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth")):
        run("req", "-newkey", "rsa:2048", "-nodes", "-keyout", name + ".key", "-out", name + ".csr", "-subj", subj)
        with open(os.path.join(d, name + ".ext"), "w") as f:
            f.write(ext)
        run("x509", "-req", "-in", name + ".csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-out", name + ".crt",
            "-days", "2", "-extfile", name + ".ext")
    run("genrsa", "-out", "sa.key", "2048")


# ---------------------------------------------------------------- the scripted peer (audit webhook and admission webhooks)

class Peer:
    """HTTP for the audit webhook, HTTPS for admission webhooks, both scripted by the group.

    script: {"audit": [status, …] (then 200), "admission": {path: {"allowed":…, "patch":…, "delay":…, …}}}
    """

    def __init__(self, script, pkidir):
        self.script, self.lock, self.posts = script or {}, threading.Lock(), []
        self.statuses = list(self.script.get("audit") or [])
        peer = self

        class H(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *a):
                pass

            def do_POST(self):
                data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                out = peer.admission(self.path, data) if self.path.startswith("/admit") else None
                code = 200
                if out is None:
                    with peer.lock:
                        code = peer.statuses.pop(0) if peer.statuses else peer.script.get("auditStatus", 200)
                        peer.posts.append((code, self.path, dict(self.headers.items()), data))
                    out = b""
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(out)))
                self.end_headers()
                self.wfile.write(out)

        class S(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *a):
                pass
        self.plain = S(("127.0.0.1", 0), H)
        self.tls = S(("127.0.0.1", 0), H)
        ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ctx.load_cert_chain(os.path.join(pkidir, "server.crt"), os.path.join(pkidir, "server.key"))
        self.tls.socket = ctx.wrap_socket(self.tls.socket, server_side=True, do_handshake_on_connect=False)
        for s in (self.plain, self.tls):
            threading.Thread(target=s.serve_forever, args=(0.05,), daemon=True).start()
        self.plain_addr = "127.0.0.1:%d" % self.plain.server_address[1]
        self.addr = "127.0.0.1:%d" % self.tls.server_address[1]

    def admission(self, path, data):
        s = (self.script.get("admission") or {}).get(path.split("?")[0])
        if s is None:
            return None
        rv = json.loads(data)
        if s.get("delay"):
            time.sleep(s["delay"])
        res = {"uid": rv["request"]["uid"], "allowed": s.get("allowed", True)}
        if s.get("patch") is not None:
            res["patchType"] = "JSONPatch"
            res["patch"] = base64.b64encode(json.dumps(s["patch"]).encode()).decode()
        for k in ("status", "warnings", "auditAnnotations"):
            if k in s:
                res[k] = s[k]
        return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": res}).encode()

    def events(self):
        """Events of the accepted posts, in order of arrival."""
        with self.lock:
            posts = list(self.posts)
        out = []
        for code, _, _, data in posts:
            if code == 200:
                out += json.loads(data).get("items") or []
        return out

    def close(self):
        for s in (self.plain, self.tls):
            s.shutdown()
            s.server_close()


# ---------------------------------------------------------------- a server for one group

class Server:
    def __init__(self, opts, group, etcd):
        self.opts, self.group = opts, group
        self.dir = tempfile.mkdtemp(prefix="audit", dir=opts.tmp)
        self.peer = Peer(group.get("peer"), opts.pki)
        self.port = free_port()
        self.subst = {"dir": self.dir, "peer": self.peer.addr}
        w = lambda n, t: open(os.path.join(self.dir, n), "w").write(t)
        if group.get("policy") is not None:
            w("policy.yaml", group["policy"])
        w("tokens.csv", TOKENS)
        w("webhook.kubeconfig", json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": "http://%s/audit" % self.peer.plain_addr}}], "users": [{"name": "u", "user": {}}]}))
        for n, t in (group.get("files") or {}).items():
            w(n, t)
        p = opts.pki
        cmd = [x.format(etcd=etcd or "", data=os.path.join(self.dir, "data"), port=self.port, dir=self.dir, pki=p) for x in shlex.split(opts.server)]
        os.mkdir(os.path.join(self.dir, "data"))
        cmd += ["--secure-port=%d" % self.port, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--client-ca-file=%s/ca.crt" % p,
                "--tls-cert-file=%s/server.crt" % p, "--tls-private-key-file=%s/server.key" % p, "--service-account-key-file=%s/sa.key" % p,
                "--service-account-signing-key-file=%s/sa.key" % p, "--service-account-issuer=https://kubernetes.default.svc",
                "--service-cluster-ip-range=10.0.0.0/16", "--authorization-mode=Node,RBAC", "--endpoint-reconciler-type=none",
                "--token-auth-file=%s/tokens.csv" % self.dir]
        if etcd:
            cmd.append("--etcd-prefix=/" + os.path.basename(self.dir))      # every group has storage of its own
        cmd += [f.replace("${dir}", self.dir) for f in group.get("flags") or []]
        self.cmd = cmd
        self.out = open(os.path.join(self.dir, "stdout"), "wb")
        self.err = open(os.path.join(self.dir, "stderr"), "wb")
        self.proc = subprocess.Popen(cmd, stdout=self.out, stderr=self.err, cwd=self.dir)
        self.client = replay.Client({"server": "https://127.0.0.1:%d" % self.port, "ca": p + "/ca.crt", "cert": p + "/admin.crt", "key": p + "/admin.key"})

    def text(self, name):
        with open(os.path.join(self.dir, name), "rb") as f:
            return f.read().decode("utf-8", "replace")

    def wait_ready(self, seconds=60):
        end = time.time() + seconds
        while time.time() < end:
            if self.proc.poll() is not None:
                raise Mismatch("the server ended at start: " + short(self.text("stderr").strip()[-600:]))
            try:
                if self.client.call("GET", "/readyz")[0] == 200:
                    return
            except Mismatch:
                pass
            time.sleep(0.05)
        raise Mismatch("the server was not ready in %d s" % seconds)

    def logs(self):
        """All lines of the log backend, rotated files first."""
        if self.group.get("sink") == "stdout":
            return [ln for ln in self.text("stdout").split("\n")[:-1] if ln]
        path = os.path.join(self.dir, self.group.get("log") or "audit.log")
        base, ext = os.path.splitext(path)
        data = b""
        for f in sorted(glob.glob(base + "-*")):
            data += (gzip.open if f.endswith(".gz") else open)(f, "rb").read()
        if os.path.exists(path):
            data += open(path, "rb").read()
        return data.decode("utf-8", "replace").split("\n")[:-1]

    def by_id(self):
        """audit id -> events (objects, or lines of the legacy format), in the order written."""
        out = {}
        if self.group.get("sink") == "webhook":
            rank = ["RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"]
            for e in sorted(self.peer.events(), key=lambda e: rank.index(e.get("stage")) if e.get("stage") in rank else 9):
                out.setdefault(e.get("auditID"), []).append(e)     # batches are sent side by side
            return out
        for ln in self.logs():
            if ln[:1] == "{":
                try:
                    e = json.loads(ln)
                except ValueError:
                    raise Mismatch("not JSON: " + short(ln))
                out.setdefault(e.get("auditID"), []).append(e)
            else:
                m = re.search(r' AUDIT: id="((?:[^"\\]|\\.)*)"', ln)
                if m:
                    out.setdefault(m.group(1), []).append(ln)
        return out

    def stop(self, keep=False):
        if self.proc.poll() is None:
            self.proc.terminate()
            try:
                self.proc.wait(20)
            except subprocess.TimeoutExpired:
                self.proc.kill()
                self.proc.wait()
        self.out.close()
        self.err.close()
        self.peer.close()
        if not keep:
            shutil.rmtree(self.dir, ignore_errors=True)


class Etcd:
    def __init__(self, binary, tmp):
        self.dir = tempfile.mkdtemp(prefix="etcd", dir=tmp)
        port, peer = free_port(), free_port()
        self.url = "http://127.0.0.1:%d" % port
        self.proc = subprocess.Popen([binary, "--data-dir", self.dir, "--listen-client-urls", self.url, "--advertise-client-urls", self.url,
                                      "--listen-peer-urls", "http://127.0.0.1:%d" % peer, "--initial-advertise-peer-urls", "http://127.0.0.1:%d" % peer,
                                      "--initial-cluster", "default=http://127.0.0.1:%d" % peer, "--unsafe-no-fsync", "--log-level", "error"],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port), 0.2).close()
                return
            except OSError:
                time.sleep(0.05)

    def stop(self):
        self.proc.terminate()
        self.proc.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


# ---------------------------------------------------------------- steps

def bindings(server):
    b = replay.fresh_names()
    b["peer"] = server.peer.addr
    b["dir"] = server.dir
    b["addr"] = "127.0.0.1:%d" % server.port
    b["prefix"] = os.path.basename(server.dir)
    b["cabundle"] = base64.b64encode(open(os.path.join(server.opts.pki, "ca.crt"), "rb").read()).decode()
    return b


def expand(o):
    """{"$repeat": [text, n]} stands for a long string."""
    if isinstance(o, dict):
        if set(o) == {"$repeat"}:
            return o["$repeat"][0] * o["$repeat"][1]
        return {k: expand(v) for k, v in o.items()}
    return [expand(x) for x in o] if isinstance(o, list) else o


def send(server, step, b, made):
    """One request; returns (audit id, response)."""
    rq = expand(step["request"])
    c = server.client
    path, headers, body = instantiate(rq["path"], b), instantiate(rq.get("headers", {}), b), None
    if "body" in rq:
        body = json.dumps(instantiate(rq["body"], b), ensure_ascii=False)
        headers.setdefault("Content-Type", "application/json")
    elif "rawBody" in rq:
        body = instantiate(rq["rawBody"], b)
    elif "hexBody" in rq:
        body = bytes.fromhex(rq["hexBody"])
    anon = rq.get("anonymous", False)
    if rq.get("token"):
        headers["Authorization"] = "Bearer " + rq["token"]
        anon = True
    if step.get("watch"):
        conn = c.connect(anon)
        r = c.open(conn, rq["method"], path, headers, body)
        status, hdrs = r.status, r.headers
        data = r.readline() if step.get("closeAfter") else r.read()
        conn.close()
    else:
        status, hdrs, data = c.call(rq["method"], path, headers, body, anon)
    res = {"status": status}
    h = {k: hdrs.get_all(k) for k in ("Warning",) if hdrs.get_all(k)}
    given = {k.lower(): v for k, v in headers.items()}.get("audit-id")
    if given or not hdrs.get("Audit-Id"):
        h["Audit-Id"] = hdrs.get("Audit-Id")
    if h:
        res["headers"] = h
    text = data.decode("utf-8", "replace")
    if (hdrs.get("Content-Type") or "").startswith("text/plain") and not text.startswith("{") and len(text) < 500 and not step.get("watch"):
        res["text"] = text
    full = dict(res)
    if text.startswith("{") and not step.get("watch"):
        try:
            full["body"] = json.loads(text)
        except ValueError:
            pass
    replay.note_created(made, rq["method"], path, full)
    aid = hdrs.get("Audit-Id") or (given[0] if isinstance(given, list) else given)
    return aid, res


def run_case(server, case, b, made):
    """Sends the case's requests; returns [(audit id, response)] of its steps."""
    replay.setup(server.client, case, b, made)
    for path, obj in (case.get("setup") or {}).get("objects") or []:
        obj = instantiate(obj, b)
        replay.must(server.client, instantiate(path, b), obj, made)
    if case.get("settle"):
        time.sleep(case["settle"])
    out = []
    for step in case["steps"]:
        if step.get("sleep"):
            time.sleep(step["sleep"])
        out.append(send(server, step, b, made))
    return out


def wait_events(server, wanted, seconds):
    """wanted: audit id -> number of events; waits until all are there (or the time is over)."""
    end = time.time() + seconds
    while True:
        got = server.by_id()
        if all(len(got.get(i, [])) >= n for i, n in wanted.items()) or time.time() > end:
            return got
        time.sleep(0.1)


def compare_event(t, a, b, path, out):
    t = expand(t)
    if isinstance(a, dict) and isinstance(t, dict):
        a = dict(a)
        ann, want = dict(a.get("annotations") or {}), t.get("annotations") or {}
        for k in [k for k in ann if k.startswith(LATENCY) and k not in want]:
            del ann[k]                                    # depends on the speed of the machine
        if ann:
            a["annotations"] = ann
        else:
            a.pop("annotations", None)
    match(t, a, b, path, out, {})


def webhook_posts(server, mine):
    """Requests to the audit webhook: [{status, path, headers, kind, apiVersion, events: n}], only posts with events of ours."""
    out = []
    with server.peer.lock:
        posts = list(server.peer.posts)
    for code, path, headers, data in posts:
        d = json.loads(data)
        n = sum(1 for e in d.get("items") or [] if e.get("auditID") in mine)
        if n:
            hs = {k: v for k, v in headers.items() if k in ("Content-Type", "Accept", "Accept-Encoding")}
            out.append({"status": code, "path": path, "headers": hs, "kind": d.get("kind"), "apiVersion": d.get("apiVersion"),
                        "metadata": d.get("metadata"), "events": n})
    return out


def files_of(server):
    out = []
    d = os.path.join(server.dir, os.path.dirname(server.group.get("log") or "audit.log"))
    base = os.path.splitext(os.path.basename(server.group.get("log") or "audit.log"))[0]
    for f in sorted(os.listdir(d)):
        if f.startswith(base):
            st = os.stat(os.path.join(d, f))
            out.append([f, "%o" % stat.S_IMODE(st.st_mode)])
    return out


def settle_files(server, want, seconds):
    end = time.time() + seconds
    while True:
        out, got = [], files_of(server)
        match(want, got, {}, "files", out, {})
        if not out or time.time() > end:
            return out
        time.sleep(0.2)


# ---------------------------------------------------------------- startup cases

def run_startup(opts, group, case, etcd):
    """A start that must fail: {"policy":…, "flags": […], "exit": 1, "error": text}."""
    g = {"policy": case.get("policy"), "flags": case.get("flags"), "files": case.get("files")}
    s = Server(opts, g, etcd)
    try:
        try:
            rc = s.proc.wait(case.get("within", 20))
        except subprocess.TimeoutExpired:
            rc = None
        return rc, s.text("stderr"), s.text("stdout"), s.dir
    finally:
        s.stop()


def go_quote(s):
    return s.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")


def check_startup(opts, group, case, etcd):
    rc, err, out, d = run_startup(opts, group, case, etcd)
    diffs = []
    if (rc is not None and rc != 0) != (case["exit"] != 0):
        diffs.append(("exit code", case["exit"], "%s: %s" % ("still running" if rc is None else rc, short(err.strip()[-500:]))))
        return diffs
    for k in ("error", "warning"):
        if case.get(k):
            want = case[k].replace("${dir}", d)
            if want not in err and go_quote(want) not in err and go_quote(go_quote(want)) not in err:
                diffs.append(("stderr", want, short(err.strip()[-800:])))
    return diffs


# ---------------------------------------------------------------- main

def load(paths):
    groups = {}
    for p in paths:
        fs = [p] if os.path.isfile(p) else sorted(os.path.join(d, f) for d, _, fs in os.walk(p) for f in fs if f.endswith(".json"))
        for f in fs:
            g = json.load(open(f, encoding="utf-8"))
            if "group" not in g:
                continue
            if g["group"] in groups:
                groups[g["group"]]["cases"] += g["cases"]      # the same server for shared and held-out cases
            else:
                groups[g["group"]] = g
    return groups


def run_group(opts, group, etcd, report):
    if group.get("startup"):
        for case in group["cases"]:
            try:
                report(group, case, check_startup(opts, group, case, etcd))
            except (Mismatch, OSError) as e:
                report(group, case, [("start", "", str(e))])
        return
    server = Server(opts, group, etcd)
    keep = False
    try:
        server.wait_ready()
        done = []
        for case in group["cases"]:
            b, made = bindings(server), []
            try:
                got = run_case(server, case, b, made)
                wanted = {}
                for (aid, _), step in zip(got, case["steps"]):
                    wanted[aid] = wanted.get(aid, 0) + len(step["events"])
                wait_events(server, wanted, opts.wait if not case.get("slow") else case["slow"])
                done.append((case, b, got, None))
            except (Mismatch, OSError) as e:
                done.append((case, b, None, str(e)))
            finally:
                replay.cleanup(server.client, made)
        time.sleep(0.5)                                       # anything that should not have come
        files = settle_files(server, group["logFiles"], 5) if group.get("logFiles") else []
        events = server.by_id()
        for case, b, got, err in done:
            if err:
                report(group, case, [("request", "", err)])
                continue
            out, used = [], {}
            for i, ((aid, res), step) in enumerate(zip(got, case["steps"])):
                p = "step %d (%s %s)" % (i + 1, step["request"]["method"], step["request"]["path"])
                match(step["response"], res, b, p + " response", out, {})
                have = events.get(aid, []) if not group.get("partial") else []
                start = used.get(aid, 0)
                last = all(x[0] != aid for x in got[i + 1:])
                mine = have[start:] if last else have[start:start + len(step["events"])]
                used[aid] = start + len(mine)
                if len(mine) != len(step["events"]):
                    st = lambda es: [e.get("stage") if isinstance(e, dict) else e for e in es]
                    out.append((p + " events", st(step["events"]), st(mine)))
                for j, (t, a) in enumerate(zip(step["events"], mine)):
                    compare_event(t, a, b, "%s events[%d]" % (p, j), out)
            if case.get("posts"):
                match(case["posts"], webhook_posts(server, {x[0] for x in got}), b, "posts", out, {})
            report(group, case, out + files)
            files = []
    except Mismatch as e:
        for case in group["cases"]:
            report(group, case, [("start", "", str(e))])
    finally:
        server.stop(keep)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--server", required=True, help="command; {etcd}, {data}, {port}, {dir}, {pki} are filled in, flags are appended")
    ap.add_argument("--etcd", help="etcd binary, when the command has {etcd}")
    ap.add_argument("--filter", action="append", default=[], help="only cases whose group/name matches")
    ap.add_argument("--wait", type=float, default=5, help="seconds to wait for the events of a case")
    ap.add_argument("--jobs", type=int, default=1)
    ap.add_argument("--max-diff", type=int, default=5, help="differences shown per case")
    ap.add_argument("--names-only", action="store_true")
    ap.add_argument("--list", action="store_true")
    ap.add_argument("paths", nargs="+", metavar="FOLDER_OR_FILE")
    o = ap.parse_args()
    groups = load(o.paths)
    for g in list(groups):
        groups[g]["cases"] = [c for c in groups[g]["cases"] if not o.filter or any(re.search(f, g + "/" + c["name"]) for f in o.filter)]
        if not groups[g]["cases"]:
            del groups[g]
    if o.list:
        for g in groups.values():
            for c in g["cases"]:
                print(g["group"] + "/" + c["name"])
        return 0
    o.tmp = tempfile.mkdtemp(prefix="auditreplay")
    o.pki = os.path.join(o.tmp, "pki")
    os.mkdir(o.pki)
    count, lock = [0, 0], threading.Lock()

    def report(group, case, diffs):
        with lock:
            count[bool(diffs)] += 1
            if diffs:
                print("FAIL %s/%s" % (group["group"], case["name"]), flush=True)
                for d in [] if o.names_only else diffs[:o.max_diff]:
                    print("  %s\n    want %s\n    got  %s" % (d[0], short(d[1]), short(d[2])), flush=True)

    todo = list(groups.values())

    def worker():
        etcd = Etcd(o.etcd, o.tmp) if "{etcd}" in o.server else None
        try:
            while True:
                with lock:
                    if not todo:
                        return
                    g = todo.pop(0)
                run_group(o, g, etcd and etcd.url, report)
        finally:
            if etcd:
                etcd.stop()
    try:
        if "{etcd}" in o.server and not o.etcd:
            ap.error("--etcd is needed")
        pki(o.pki)
        ts = [threading.Thread(target=worker) for _ in range(o.jobs)]
        [t.start() for t in ts]
        [t.join() for t in ts]
    finally:
        shutil.rmtree(o.tmp, ignore_errors=True)
    print("%d passed, %d failed" % tuple(count))
    return 1 if count[1] or not count[0] else 0


if __name__ == "__main__":
    sys.exit(main())
