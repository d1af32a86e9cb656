#!/usr/bin/env python3
"""Replay the recordings against a Kubernetes API server.

Cases were recorded from kube-apiserver v1.36.4.  Every case is independent: it gets a
fresh namespace and a fresh prefix for cluster scoped names, and removes what it made.
See README.md beside this file for the format.

The last line of the output is always "N passed, N failed"; the exit code is 1 when a
case failed, 2 on usage errors.  Python 3 standard library only.
"""
import argparse
import http.client
import json
import os
import queue
import random
import re
import ssl
import sys
import threading
import time
from urllib.parse import urlsplit

sys.dont_write_bytecode = True
sys.path.append(os.path.dirname(os.path.abspath(__file__)))
import peers  # noqa: E402

USER_AGENT = "corpus/1"
PLACE = re.compile(r"\$\{(peer\.[a-z0-9]+\.[a-zA-Z]+|[a-z0-9]*[a-z])(\d*)\}")
TIME_RE = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"
KINDS = {
    "uid": r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    "rv": r"[1-9]\d*",
    "lrv": r"[1-9]\d*",
    "created": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
    "time": TIME_RE,
    "t": TIME_RE,
    "gen": r"[bcdfghjklmnpqrstvwxz2456789]{5}",
    "ip": r"[0-9a-f.:]+",
    "port": r"\d+",
    "jwt": r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+",
    "cont": r"[A-Za-z0-9_=-]+",
    "hash": r"[0-9A-Fa-f]{8,}",
    "sha": r"[0-9a-f]{64}",
    "num": r"\d+",
    "any": r".*",
    "addr": r"[\w.:\[\]-]+",
    "svh": r"[A-Za-z0-9+/]{11}=",
    "age": r"(?:\d+[smhdy])+",
    "ns": r"[a-z0-9-]+",
    "pfx": r"[a-z0-9-]+",
}
WILD = {"time", "t", "num", "hash", "any", "age", "svh", "addr"}        # any value of the shape, never bound
INTS = {"port"}                                # whole-string placeholder stands for a JSON integer
COMPARED = ("Content-Type", "Warning", "Retry-After", "Allow", "Location", "Www-Authenticate")
DEFAULT_CT = "application/json"


class Mismatch(Exception):
    pass


# ---------------------------------------------------------------- templates

def instantiate(t, b):
    """Fill the placeholders of a request template from the bindings."""
    if isinstance(t, str):
        m = PLACE.fullmatch(t)
        if m and (m.group(1) in INTS or m.group(1).startswith("peer.") and m.group(1).endswith(".port")):
            return int(b[m.group(1) + m.group(2)])
        def sub(m):
            k = m.group(1) + m.group(2)
            if k not in b:
                if m.group(1) not in KINDS:
                    return m.group(0)
                raise Mismatch("the request needs %s, which no earlier response gave" % k)
            return str(b[k])
        return PLACE.sub(sub, t)
    if isinstance(t, list):
        return [instantiate(x, b) for x in t]
    if isinstance(t, dict):
        return {instantiate(k, b): instantiate(v, b) for k, v in t.items()}
    return t


def match_str(t, a, b, path, out):
    if "${" not in t:
        if t != a:
            out.append((path, t, a))
        return
    whole = PLACE.fullmatch(t)
    if whole and (whole.group(1) in INTS or whole.group(1).startswith("peer.") and whole.group(1).endswith(".port")):
        k = whole.group(1) + whole.group(2)
        if isinstance(a, bool) or not isinstance(a, int):
            out.append((path, "an integer (%s)" % t, a))
        elif k in b and b[k] != a:
            out.append((path, "%r (%s)" % (b[k], t), a))
        else:
            b[k] = a
        return
    if not isinstance(a, str):
        out.append((path, t, a))
        return
    rx, pos, seen = "", 0, set()
    for m in PLACE.finditer(t):
        kind, k = m.group(1), m.group(1) + m.group(2)
        rx += re.escape(t[pos:m.start()])
        pos = m.end()
        if kind not in KINDS:
            rx += re.escape(str(b.get(k, m.group(0))))
        elif kind in WILD:
            rx += "(?:%s)" % KINDS[kind]
        elif k in b:
            rx += re.escape(str(b[k]))
        elif k in seen:
            rx += "(?P=%s)" % k
        else:
            seen.add(k)
            rx += "(?P<%s>%s)" % (k, KINDS[kind])
    rx += re.escape(t[pos:])
    m = re.fullmatch(rx, a, re.S)
    if not m:
        exp = PLACE.sub(lambda q: str(b.get(q.group(1) + q.group(2), q.group(0))), t)
        out.append((path, exp if exp == t else "%s   [template %s]" % (exp, t), a))
        return
    for k in seen:
        b[k] = int(m.group(k)) if k.rstrip("0123456789") in INTS else m.group(k)
    if whole and whole.group(1) in ("t", "time"):
        b[whole.group(1) + whole.group(2)] = a      # not compared, but later requests may send it back


def mf_key(e):
    return (e.get("operation", ""), e.get("manager", ""), e.get("apiVersion", ""), e.get("subresource", ""))


def match(t, a, b, path, out, opts):
    """Unify template t with the actual value a; differences go to out."""
    if isinstance(t, str):
        return match_str(t, a, b, path, out)
    if isinstance(t, dict):
        if not isinstance(a, dict):
            out.append((path, t, a))
            return
        keys = {}
        for k in t:
            try:
                keys[instantiate(k, b) if "${" in k else k] = k
            except Mismatch:
                keys[k] = k
        order = sorted(keys, key=lambda k: (k == "metadata", k == "managedFields", k))
        for k in order:
            p = path + ("." + k if re.fullmatch(r"[\w-]+", k) else "[%s]" % json.dumps(k))
            if k not in a:
                out.append((p, t[keys[k]], "<absent>"))
            else:
                match(t[keys[k]], a[k], b, p, out, opts)
        for k in a:
            if k not in keys:
                out.append((path + "." + k, "<absent>", a[k]))
        return
    if isinstance(t, list):
        if not isinstance(a, list):
            out.append((path, t, a))
            return
        if path.endswith(".managedFields") and all(isinstance(e, dict) for e in a):
            real = [(e.get("operation", ""), e.get("time", ""), e.get("manager", ""), e.get("apiVersion", ""),
                     e.get("subresource", "")) for e in a]
            if real != sorted(real):
                out.append((path, "sorted by operation, time, manager, apiVersion, subresource", real))
            a = sorted(a, key=mf_key)
            t = sorted(t, key=mf_key)
        mode = opts.get(path) or opts.get("*")
        if mode == "among":                    # every item is one of these; none only when none is expected
            found = {}
            for j, y in enumerate(a):
                for x in t:
                    trial, o = dict(b), []
                    match(x, y, trial, path, o, {})
                    if not o:
                        found.setdefault(id(x), trial)
                        break
                else:
                    out.append(("%s[%d]" % (path, j), "one of %d recorded" % len(t), y))
            for trial in found.values():
                b.update({k: v for k, v in trial.items() if k not in b})
            if t and not a:
                out.append((path, t, "<none>"))
            return
        if mode in ("unordered", "subset"):
            rest = list(enumerate(a))
            for i, x in enumerate(t):
                for j, (n, y) in enumerate(rest):
                    trial, o = dict(b), []
                    match(x, y, trial, path, o, {})
                    if not o:
                        b.update(trial)
                        rest.pop(j)
                        break
                else:
                    out.append(("%s[%d]" % (path, i), x, "<no such item>"))
            if rest and mode == "unordered":
                out.append((path, "<%d items>" % len(t), "%d more: %s" % (len(rest), short([y for _, y in rest]))))
            return
        for i in range(max(len(t), len(a))):
            p = "%s[%d]" % (path, i)
            if i >= len(t):
                out.append((p, "<absent>", a[i]))
            elif i >= len(a):
                out.append((p, t[i], "<absent>"))
            else:
                match(t[i], a[i], b, p, out, opts)
        return
    if type(t) is not type(a) and not (isinstance(t, (int, float)) and isinstance(a, (int, float))
                                       and not isinstance(t, bool) and not isinstance(a, bool)) or t != a:
        out.append((path, t, a))


def short(v, n=600):
    s = v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)
    return s if len(s) <= n else s[:n] + "… (%d characters)" % len(s)


# ---------------------------------------------------------------- HTTP

class Client:
    def __init__(self, cfg):
        u = urlsplit(cfg["server"])
        self.https, self.host, self.port = u.scheme != "http", u.hostname, u.port or (443 if u.scheme != "http" else 80)
        self.base = u.path.rstrip("/")
        self.token = cfg.get("token")
        self.timeout = cfg.get("timeout") or 60
        self.ca = cfg.get("ca")
        self.ctx = self.anon = None
        if self.https:
            self.ctx, self.anon = self.context(cfg), self.context(cfg)
            if cfg.get("cert"):
                self.ctx.load_cert_chain(cfg["cert"], cfg.get("key") or cfg["cert"])
        self.local = threading.local()

    @staticmethod
    def context(cfg):
        if cfg.get("ca"):
            c = ssl.create_default_context(cafile=cfg["ca"])
            c.check_hostname = False
        else:
            c = ssl._create_unverified_context()
        return c

    def connect(self, anonymous=False):
        if not self.https:
            return http.client.HTTPConnection(self.host, self.port, timeout=self.timeout)
        return http.client.HTTPSConnection(self.host, self.port, timeout=self.timeout, context=self.anon if anonymous else self.ctx)

    def open(self, conn, method, path, headers, body, anonymous=False):
        h = {"User-Agent": USER_AGENT, "Accept": "application/json"}
        if self.token and not anonymous:
            h["Authorization"] = "Bearer " + self.token
        h.update(headers)
        h = {k: v for k, v in h.items() if v is not None}
        data = body.encode() if isinstance(body, str) else body
        conn.putrequest(method, self.base + path, skip_accept_encoding=True)
        for k, v in h.items():
            for x in (v if isinstance(v, list) else [v]):
                conn.putheader(k, x)
        if data is not None:
            conn.putheader("Content-Length", str(len(data)))
        elif method in ("POST", "PUT", "PATCH"):
            conn.putheader("Content-Length", "0")
        conn.endheaders(data)
        return conn.getresponse()

    def call(self, method, path, headers=None, body=None, anonymous=False):
        slot = "anon" if anonymous else "conn"
        for attempt in (0, 1):
            conn = getattr(self.local, slot, None)
            fresh = conn is None
            if fresh:
                conn = self.connect(anonymous)
                setattr(self.local, slot, conn)
            try:
                r = self.open(conn, method, path, headers or {}, body, anonymous)
                data = r.read()
                if r.will_close:
                    conn.close()
                    setattr(self.local, slot, None)
                return r.status, r.headers, data
            except (http.client.HTTPException, OSError) as e:
                conn.close()
                setattr(self.local, slot, None)
                if fresh or attempt:
                    raise Mismatch("%s %s: %s: %s" % (method, path, type(e).__name__, e))

    def watch(self, method, path, headers, body=None):
        conn = self.connect()
        r = self.open(conn, method, path, headers or {}, body)
        return conn, r


def read_events(conn, r, count=None):
    events, junk = [], b""
    try:
        while count is None or len(events) < count:
            line = r.readline()
            if not line:
                break
            if line.strip():
                try:
                    events.append(json.loads(line))
                except ValueError:
                    junk += line
    finally:
        conn.close()
    if junk:
        events.append({"unparsable": junk.decode("utf-8", "replace")})
    return events


def send(client, step, b, watches):
    """Perform one step; returns the observed response as a dict."""
    if "watchEnd" in step:
        conn, r = watches.pop(step["watchEnd"])
        return {"status": r.status, "events": read_events(conn, r, step.get("count"))}
    if "request" not in step:
        return client.profile.act(step, b)
    rq = step["request"]
    path = instantiate(rq["path"], b)
    headers = instantiate(rq.get("headers", {}), b)
    body = None
    if "body" in rq:
        body = json.dumps(instantiate(rq["body"], b), ensure_ascii=False)
        headers.setdefault("Content-Type", "application/json")
    elif "rawBody" in rq:
        body = instantiate(rq["rawBody"], b)
    if "upgrade" in step:
        base = {"User-Agent": USER_AGENT, "Connection": "Upgrade"}
        status, hdrs, data = peers.upgrade(client.connect(), rq["method"], path, dict(base, **headers), step["upgrade"])
        return {"status": status, "headers": head(hdrs), "text": data.decode("utf-8", "replace")}
    if step.get("watch") or "watchStart" in step:
        conn, r = client.watch(rq["method"], path, headers, body, *([rq["as"]] if rq.get("as") else []))
        res = {"status": r.status, "headers": head(r.headers)}
        if r.status != 200:
            decode(res, r.headers, r.read())
            conn.close()
        elif "watchStart" in step:
            watches[step["watchStart"]] = (conn, r)
        else:
            res["events"] = read_events(conn, r, step.get("count"))
        return res
    status, hdrs, data = client.call(rq["method"], path, headers, body, rq.get("as") or rq.get("anonymous", False))
    res = {"status": status, "headers": head(hdrs)}
    decode(res, hdrs, data)
    if "pick" in step and isinstance(res.get("body"), dict) and status == 200:
        res["body"] = pick(res["body"], instantiate(step["pick"], b))
    return res


def pick(body, paths):
    """The parts of a large document that a step compares: a list of key paths, absent ones left out."""
    out = {}
    for keys in paths:
        src, dst = body, out
        for i, k in enumerate(keys):
            if not isinstance(src, dict) or k not in src:
                break
            src = src[k]
            dst = dst.setdefault(k, {}) if i < len(keys) - 1 else dst.update({k: src}) or dst
    return out


def head(h):
    out = {}
    for k in COMPARED:
        v = h.get_all(k)
        if v:
            out[k] = v if k == "Warning" else v[0]
    if out.get("Content-Type") == DEFAULT_CT:
        del out["Content-Type"]
    elif "Content-Type" not in out:
        out["Content-Type"] = None
    if not h.get("Audit-Id"):
        out["Audit-Id"] = None
    return out


def decode(res, h, data):
    ct = h.get("Content-Type") or ""
    if ct.split(";")[0] == "application/json":
        try:
            res["body"] = json.loads(data)
            return
        except ValueError:
            pass
    if "protobuf" in ct:
        res["prefixHex"] = data[:4].hex()
        return
    if data:
        res["text"] = data.decode("utf-8", "replace")


# ---------------------------------------------------------------- setup and cleanup

REVIEWS = ("tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews",
           "localsubjectaccessreviews", "selfsubjectreviews", "bindings")


def parse_path(p):
    """(collection path, name, subresource) of a request path."""
    p = p.split("?")[0]
    s = p.strip("/").split("/")
    i = 2 if s[0] == "api" else 3 if s[0] == "apis" else None
    if i is None or len(s) <= i:
        return None
    if s[i] == "namespaces" and len(s) > i + 2 and s[i + 2] not in ("finalize", "status"):
        i += 2
    return "/" + "/".join(s[:i + 1]), s[i + 1] if len(s) > i + 1 else None, s[i + 2] if len(s) > i + 2 else None


def note_created(made, method, path, res):
    if res.get("status") not in (200, 201) or "dryRun" in path or method not in ("POST", "PUT", "PATCH"):
        return
    q = parse_path(path)
    if not q or q[2]:
        return
    coll, name, _ = q
    if coll.rsplit("/", 1)[1] in REVIEWS:
        return
    if method == "POST":
        body = res.get("body")
        name = isinstance(body, dict) and isinstance(body.get("metadata"), dict) and body["metadata"].get("name")
        if not name and "text" in res:
            m = re.search(r"(?m)^  name: (\S+)", res["text"])
            name = m and m.group(1)
    elif res["status"] != 201:
        return
    if name and (coll + "/" + name) not in made:
        made.append(coll + "/" + name)


def cleanup(client, made):
    made.sort(key=lambda p: "/admissionregistration.k8s.io/" in p)       # webhooks and policies go first
    for p in reversed(made):
        try:
            opts = json.dumps({"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
            js = {"Content-Type": "application/json"}
            status, _, data = client.call("DELETE", p, js, opts)
            if status == 404:
                continue
            if p.startswith("/api/v1/namespaces/") and p.count("/") == 4:
                name = p.rsplit("/", 1)[1]
                client.call("PUT", p + "/finalize", js, json.dumps(
                    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {"finalizers": []}}))
            obj = json.loads(data) if data[:1] == b"{" else {}
            if (obj.get("metadata") or {}).get("finalizers") or (obj.get("metadata") or {}).get("deletionTimestamp"):
                client.call("PATCH", p, {"Content-Type": "application/merge-patch+json"},
                            '{"metadata":{"finalizers":null}}')
        except (Mismatch, ValueError):
            pass


def fresh_names():
    r = "".join(random.SystemRandom().choice("bcdfghjklmnpqrstvwxz") for _ in range(8))
    return {"ns": "c" + r, "pfx": "p" + r}


def setup(client, case, b, made):
    s = case.get("setup") or {}
    for suffix, opts in (s.get("namespaces") or {}).items():
        ns = b["ns"] + suffix
        meta = {"name": ns}
        for k in ("labels", "annotations"):
            if opts.get(k):
                meta[k] = instantiate(opts[k], b)
        must(client, "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}, made)
        if opts.get("sa"):
            must(client, "/api/v1/namespaces/%s/serviceaccounts" % ns,
                 {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}, made)


def must(client, path, obj, made):
    status, _, data = client.call("POST", path, {"Content-Type": "application/json"}, json.dumps(obj))
    if status != 201:
        raise Mismatch("setup: POST %s: %d %s" % (path, status, short(data.decode("utf-8", "replace"))))
    made.append(path + "/" + obj["metadata"]["name"])


# ---------------------------------------------------------------- comparing

def compare(step, res, b, objrvs):
    """Differences between the recorded and the observed response of one step."""
    exp, out = step["response"], []
    if exp["status"] != res["status"]:
        detail = res.get("body") if "body" in res else res.get("text", "")
        if isinstance(detail, dict) and detail.get("kind") == "Status":
            detail = detail.get("message", "")
        out.append(("status code", exp["status"], "%s: %s" % (res["status"], short(detail))))
        return out
    if step.get("brief"):
        match(step.get("peers", {}), res.get("peers", {}), b, "$peers", out, dict(step.get("lists") or {}))
        return out
    if "headers" in exp or "headers" in res:
        eh, ah = exp.get("headers", {}), res.get("headers", {})
        for k in sorted(set(eh) | set(ah)):
            show = lambda h: h.get(k, "application/json" if k == "Content-Type" else
                                   "<present>" if k == "Audit-Id" else "<absent>")
            x, y = show(eh), show(ah)
            if isinstance(x, list) and isinstance(y, list) and len(x) == len(y):
                for i, (p, q) in enumerate(zip(x, y)):
                    match_str(p, q, b, "header %s[%d]" % (k, i), out)
            elif isinstance(x, str) and isinstance(y, str):
                match_str(x, y, b, "header " + k, out)
            elif x != y:
                out.append(("header " + k, x, y))
    opts = dict(step.get("lists") or {})
    for part in ("body", "events", "text", "prefixHex"):
        if part in exp and part in res:
            match(exp[part], res[part], b, {"body": "$", "events": "$events"}.get(part, part), out, opts)
        elif part in exp:
            out.append((part, exp[part], "<absent>"))
        elif part in res:
            out.append((part, "<absent>", short(res[part])))
    if "peers" in res:
        match(step.get("peers", {}), res["peers"], b, "$peers", out, opts)
    if not out and "body" in exp and "request" in step and re.search(r"[?&](resourceVersion|continue)=", step["request"]["path"]) is None:
        md = res["body"].get("metadata") if isinstance(res["body"], dict) else None
        if isinstance(md, dict) and isinstance(res["body"].get("items"), list) and str(md.get("resourceVersion", "")).isdigit():
            low = max([int(v) for v in objrvs(b)] or [0])
            if int(md["resourceVersion"]) < low:
                out.append(("$.metadata.resourceVersion", "at least %d, the newest object seen" % low, md["resourceVersion"]))
    return out


def obj_rvs(b):
    return [v for k, v in b.items() if re.fullmatch(r"rv\d+", k)]


def run_case(client, case, retry_cap=30):
    """None when the case passed, otherwise a readable report."""
    b, made, watches, lines, pp = fresh_names(), [], {}, None, None
    try:
        b.update(client.profile.bindings if getattr(client, "profile", None) else {})
        pp = peers.Peers(case, b, instantiate, client.ca)
        setup(client, case, b, made)
        for i, step in enumerate(case["steps"]):
            label = "step %d (%s)" % (i + 1, step.get("name", ""))
            deadline = time.time() + min(step.get("retrySeconds", 0), retry_cap)
            while True:
                trial = dict(b)
                pp.clear()
                res = send(client, step, trial, watches)
                if case.get("peers"):
                    res["peers"] = pp.taken(step)
                if "request" in step:
                    note_created(made, step["request"]["method"], instantiate(step["request"]["path"], b), res)
                diff = compare(step, res, trial, obj_rvs)
                if not diff or time.time() >= deadline:
                    break
                time.sleep(0.1)
            b = trial
            if diff:
                if "request" in step:
                    rq = step["request"]
                    label += ": %s %s" % (rq["method"], instantiate(rq["path"], b))
                lines = [label]
                for p, e, a in diff[:25]:
                    lines += ["    at %s" % p, "      - expected %s" % short(e), "      + got      %s" % short(a)]
                if len(diff) > 25:
                    lines.append("    … and %d more differences" % (len(diff) - 25))
                break
        else:
            rvs = [(n, int(b[n])) for n in case.get("rvOrder", []) if n in b]
            for (n1, v1), (n2, v2) in zip(rvs, rvs[1:]):
                if not v1 < v2:
                    lines = ["resourceVersions do not grow: %s=%d, then %s=%d" % (n1, v1, n2, v2)]
                    break
    except Mismatch as e:
        lines = [str(e)]
    except Exception as e:                      # a server that breaks the protocol must not stop the run
        lines = ["%s: %s" % (type(e).__name__, e)]
    for conn, _ in watches.values():
        conn.close()
    cleanup(client, made)
    if pp:
        pp.stop()
    return lines


# ---------------------------------------------------------------- command line

def load(paths):
    cases = []
    for root in paths:
        files = []
        if os.path.isfile(root):
            files = [root]
        for d, _, fs in os.walk(root):
            files += [os.path.join(d, f) for f in fs if f.endswith(".json")]
        for f in sorted(files):
            with open(f, encoding="utf-8") as fh:
                doc = json.load(fh)
            for c in doc["cases"]:
                c["name"] = doc["group"] + "/" + c["name"]
                cases.append(c)
    return cases


def junit(path, results):
    from xml.sax.saxutils import escape, quoteattr
    clean = lambda s: re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "?", s)
    with open(path, "w", encoding="utf-8") as f:
        f.write('<?xml version="1.0" encoding="UTF-8"?>\n<testsuite name="corpus" tests="%d" failures="%d">\n' %
                (len(results), sum(1 for r in results if r[1])))
        for name, lines, secs in results:
            f.write("<testcase classname=%s name=%s time=\"%.3f\">" % (quoteattr(name.rsplit("/", 1)[0]), quoteattr(name), secs))
            if lines:
                f.write("<failure message=%s>%s</failure>" % (quoteattr(clean(lines[0])), escape(clean("\n".join(lines)))))
            f.write("</testcase>\n")
        f.write("</testsuite>\n")


def main(argv=None):
    here = os.path.dirname(os.path.abspath(__file__))
    ap = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter,
                                 epilog=__doc__.split("\n\n", 1)[1])
    ap.add_argument("corpus", nargs="*", default=[os.path.join(here, "corpus")],
                    help="folders or files of recordings (default: corpus/ beside this program)")
    ap.add_argument("--server", default="https://127.0.0.1:6443", help="base URL of the server (default %(default)s)")
    ap.add_argument("--ca", help="CA file of the server (without it the server certificate is not verified)")
    ap.add_argument("--cert", help="client certificate file; a member of system:masters, CN admin")
    ap.add_argument("--key", help="client key file")
    ap.add_argument("--token", help="bearer token instead of a client certificate")
    ap.add_argument("--filter", action="append", default=[], metavar="REGEX",
                    help="only cases whose name matches (may repeat: any of them)")
    ap.add_argument("--skip", action="append", default=[], metavar="REGEX", help="leave out cases whose name matches")
    ap.add_argument("--jobs", type=int, default=4, help="cases run side by side (default %(default)s)")
    ap.add_argument("--retry-seconds", type=float, default=30, metavar="S",
                    help="longest wait in polling steps (default %(default)s); small values make a failing server fail fast")
    ap.add_argument("--timeout", type=float, default=60, metavar="S", help="of one request (default %(default)s)")
    ap.add_argument("--list", action="store_true", help="list the case names and stop")
    ap.add_argument("--max-diff", type=int, default=0, metavar="N", help="print the differences of the first N failures only (0: all)")
    ap.add_argument("--names-only", action="store_true", help="print the names of failing cases without differences")
    ap.add_argument("--junit", metavar="FILE", help="also write a JUnit report")
    ap.add_argument("--start", metavar="CMD", help="start the server itself with this command and the profile's flags; {dir} is a folder of "
                    "this start, {id} a word of its own (for --etcd-prefix=/{id} or --data-dir={dir}/data)")
    ap.add_argument("--profile", action="append", metavar="NAME", help="with --start: the profile to run (may repeat; `all`; "
                    "`startup`: starts that must fail; `default`: cases without a profile)")
    ap.add_argument("-v", "--verbose", action="store_true", help="print passing cases too")
    a = ap.parse_args(argv)
    for p in a.corpus:
        if not os.path.exists(p):
            ap.error("no such corpus: " + p)
    cases = [c for c in load(a.corpus)
             if (not a.filter or any(re.search(f, c["name"]) for f in a.filter))
             and not any(re.search(f, c["name"]) for f in a.skip)]
    if a.list:
        for c in cases:
            print(c["name"])
        return 0
    if not a.start:
        cases = [c for c in cases if not c.get("profile") and "startup" not in c]
    client = Client({"server": a.server, "ca": a.ca, "cert": a.cert, "key": a.key, "token": a.token, "timeout": a.timeout})
    try:
        a.start or client.call("GET", "/version")
    except (Mismatch, OSError) as e:
        print("cannot reach the server: %s" % e, file=sys.stderr)
        print("0 passed, %d failed" % len(cases))
        return 1
    results, lock, shown = [], threading.Lock(), [0]

    def one(case):
        t0 = time.time()
        report(case, run_case(client, case, a.retry_seconds), time.time() - t0)

    def report(case, lines, secs):
        with lock:
            results.append((case["name"], lines, secs))
            if lines:
                print("FAIL %s" % case["name"])
                shown[0] += 1
                if not a.names_only and (not a.max_diff or shown[0] <= a.max_diff):
                    for ln in lines:
                        print("  " + ln)
                sys.stdout.flush()
            elif a.verbose:
                print("ok   %s (%.2fs)" % (case["name"], secs), flush=True)

    if a.start:
        import profiles
        profiles.run(sys.modules[__name__], a, cases, report)
        cases = []
    q = queue.Queue()
    for c in cases:
        if not c.get("serial"):
            q.put(c)

    def worker():
        while True:
            try:
                c = q.get_nowait()
            except queue.Empty:
                return
            one(c)

    threads = [threading.Thread(target=worker, daemon=True) for _ in range(max(1, a.jobs))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for c in cases:
        if c.get("serial"):
            one(c)
    if a.junit:
        junit(a.junit, sorted(results, key=lambda r: r[0]))
    areas = {}
    for name, lines, _ in results:
        n = areas.setdefault(name.split("/")[0], [0, 0])
        n[1 if lines else 0] += 1
    for k in sorted(areas):
        print("%-12s %4d passed, %4d failed" % (k, *areas[k]))
    failed = sum(1 for r in results if r[1])
    print("%d passed, %d failed" % (len(results) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
