"""Scripted peers of an API server: the HTTPS servers it calls (webhooks, aggregated API servers).

A recorded case may declare peers; the replayer starts them on 127.0.0.1, the server under
test calls them, and what they received is compared with the recording.  The format is described
in README.md under "Peers".  Python 3 standard library and the openssl command only.
"""
import atexit
import base64
import copy
import fnmatch
import hashlib
import json
import os
import re
import shutil
import socket
import socketserver
import ssl
import subprocess
import tempfile
import threading
import time

KEPT = ("Host", "User-Agent", "Content-Type", "Accept", "Accept-Encoding", "Authorization", "Connection", "Upgrade", "Via",
        "X-Stream-Protocol-Version", "Sec-Websocket-Protocol", "If-None-Match", "Location", "X-Custom", "Cookie")
KEPT_PREFIX = ("X-Remote-", "X-Forwarded-", "Impersonate-")
PRESENT = ("Audit-Id", "Traceparent", "X-Kubernetes-Pf-Flowschema-Uid")     # their value is not compared
IN = re.compile(r"\$\{(in|pad)\.([^}]*)\}")


# ---------------------------------------------------------------- certificates

class Authority:
    """A CA made once per process, and leaves for sets of names."""
    lock, dir, leaves = threading.Lock(), None, {}

    @classmethod
    def run(cls, *args):
        subprocess.run(("openssl",) + args, cwd=cls.dir, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)

    @classmethod
    def leaf(cls, names, expired=False):
        with cls.lock:
            if cls.dir is None:
                cls.dir = tempfile.mkdtemp(prefix="peers-")
                for ca in ("ca", "other"):
                    cls.run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                            ca + ".key", "-out", ca + ".crt", "-subj", "/CN=peers-" + ca, "-days", "2")
            key = (tuple(names), expired)
            if key not in cls.leaves:
                n = "leaf%d" % len(cls.leaves)
                san = ",".join(("IP:" if re.fullmatch(r"[0-9.]+|.*:.*", x) else "DNS:") + x for x in names)
                with open(os.path.join(cls.dir, n + ".ext"), "w") as f:
                    f.write("subjectAltName=%s\nextendedKeyUsage=serverAuth\n" % san)
                cls.run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", n + ".key",
                        "-out", n + ".csr", "-subj", "/CN=peer")
                cls.run("x509", "-req", "-in", n + ".csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-out",
                        n + ".crt", "-days", "2", "-extfile", n + ".ext")
                cls.leaves[key] = os.path.join(cls.dir, n)
            return cls.leaves[key]

    @classmethod
    def bundle(cls, ca="ca"):
        with open(os.path.join(cls.dir, ca + ".crt"), "rb") as f:
            return base64.b64encode(f.read()).decode()

    @classmethod
    def forget(cls):
        if cls.dir:
            shutil.rmtree(cls.dir, ignore_errors=True)


atexit.register(Authority.forget)


# ---------------------------------------------------------------- templates of answers

def dig(o, path):
    for p in path.split(".") if path else []:
        p = p.replace("~1", ".")
        if isinstance(o, list) and p.lstrip("-").isdigit() and -len(o) <= int(p) < len(o):
            o = o[int(p)]
        elif isinstance(o, dict) and p in o:
            o = o[p]
        else:
            return None
    return o


def fill(t, body):
    """Fill ${in.PATH} (from the JSON body received) and ${pad.N} (N times x)."""
    if isinstance(t, str):
        def value(m):
            return "x" * int(m.group(2)) if m.group(1) == "pad" else dig(body, m.group(2))
        m = IN.fullmatch(t)
        if m:
            return value(m)
        return IN.sub(lambda m: "" if value(m) is None else str(value(m)), t)
    if isinstance(t, list):
        return [fill(x, body) for x in t]
    if isinstance(t, dict):
        if set(t) == {"$base64"}:
            v = fill(t["$base64"], body)
            return base64.b64encode((v if isinstance(v, str) else json.dumps(v)).encode()).decode()
        return {fill(k, body): fill(v, body) for k, v in t.items()}
    return t


def merge(o, p):
    if not isinstance(p, dict):
        return p
    o = dict(o) if isinstance(o, dict) else {}
    for k, v in p.items():
        if v is None:
            o.pop(k, None)
        else:
            o[k] = merge(o.get(k), v)
    return o


def move(o, src, dst):
    *up, last = src.split(".")
    cur = dig(o, ".".join(up))
    if not isinstance(cur, dict) or last not in cur:
        return
    v, cur = cur.pop(last), o
    *up, last = dst.split(".")
    for p in up:
        cur = cur.setdefault(p, {})
    cur[last] = v


def convert(rules, body):
    """Objects of a ConversionReview brought to the desired version: rules[version] = {move, merge}."""
    want, out = dig(body, "request.desiredAPIVersion") or "", []
    rule = rules.get(want.rsplit("/", 1)[-1]) or {}
    for o in dig(body, "request.objects") or []:
        o = copy.deepcopy(o)
        o["apiVersion"] = want
        for src, dst in (rule.get("move") or {}).items():
            move(o, src, dst)
        out.append(merge(o, rule.get("merge") or {}))
    return out


def compose(ans, body):
    """Answer body: bytes and the default content type."""
    if "review" in ans:                                   # shorthand for an AdmissionReview
        r = dict(ans["review"])
        if isinstance(r.get("patch"), list):
            r["patch"] = {"$base64": r["patch"]}
            r.setdefault("patchType", "JSONPatch")
        t = {"apiVersion": "${in.apiVersion}", "kind": "${in.kind}", "response": dict({"uid": "${in.request.uid}"}, **r)}
    elif "convert" in ans:                                # shorthand for a ConversionReview
        t = {"apiVersion": "${in.apiVersion}", "kind": "${in.kind}",
             "response": merge({"uid": "${in.request.uid}", "result": {"status": "Success"},
                                "convertedObjects": convert(ans["convert"], body)}, ans.get("response") or {})}
    elif "body" in ans:
        t = ans["body"]
    else:
        return fill(ans.get("rawBody", ""), body).encode(), "text/plain"
    return json.dumps(fill(t, body)).encode(), "application/json"


# ---------------------------------------------------------------- the servers

class Server(socketserver.ThreadingTCPServer):
    daemon_threads, allow_reuse_address, request_queue_size = True, True, 64

    def handle_error(self, request, client_address):
        pass


class Peer:
    def __init__(self, name, doc, inst, client_ca):
        self.name, self.inst = name, inst
        self.doc = inst(doc)
        self.lock, self.log, self.background, self.used = threading.Lock(), [], [], {}
        self.ctx = self.server = None
        leaf = Authority.leaf(self.doc.get("names") or ["localhost", "127.0.0.1"])
        if not self.doc.get("plain"):
            self.ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.ctx.load_cert_chain(leaf + ".crt", leaf + ".key")
            self.ctx.sni_callback = lambda s, n, c: setattr(s, "sni", n)
            if client_ca and self.doc.get("clientCert"):
                self.ctx.verify_mode = ssl.CERT_OPTIONAL
                self.ctx.load_verify_locations(client_ca)
        if self.doc.get("down"):                          # the port is bound without a listener
            self.sock = socket.socket()
            self.sock.bind(("127.0.0.1", 0))
            self.port = self.sock.getsockname()[1]
            return
        peer = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                try:
                    peer.connection(self.request)
                except (OSError, ValueError):
                    pass
        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def stop(self):
        if self.server:
            self.server.shutdown()
            self.server.server_close()
        else:
            self.sock.close()

    def connection(self, sock):
        sock.settimeout(90)
        sni = cert = None
        if self.ctx:
            sock = self.ctx.wrap_socket(sock, server_side=True)
            sni, cert = getattr(sock, "sni", None), sock.getpeercert()
        f = sock.makefile("rb")
        while True:
            line = f.readline(65536).decode("latin-1").strip()
            if not line:
                return
            method, path, _ = line.split(" ", 2)
            headers = []
            while True:
                h = f.readline(65536).decode("latin-1").rstrip("\r\n")
                if not h:
                    break
                k, _, v = h.partition(":")
                headers.append((k.strip().title(), v.strip()))
            low = dict(headers)
            data = b""
            if low.get("Transfer-Encoding", "").lower() == "chunked":
                while True:
                    n = int(f.readline().split(b";")[0], 16)
                    data += f.read(n)
                    f.readline()
                    if not n:
                        break
            elif low.get("Content-Length"):
                data = f.read(int(low["Content-Length"]))
            if not self.exchange(sock, f, method, path, headers, data, sni, cert):
                break
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        sock.close()

    def observe(self, method, path, headers, data, sni, cert):
        rq = {"method": method, "path": path, "headers": {}}
        for k, v in headers:
            if k in PRESENT:
                rq["headers"][k] = "${any}"
            elif k in KEPT or k.startswith(KEPT_PREFIX):
                if k in rq["headers"] or k == "X-Remote-Group":
                    old = rq["headers"].get(k, [])
                    rq["headers"][k] = (old if isinstance(old, list) else [old]) + [v]
                else:
                    rq["headers"][k] = v
        if sni and self.doc.get("sni"):
            rq["sni"] = sni
        if self.doc.get("clientCert"):
            cn = [x[0][1] for x in (cert or {}).get("subject", ()) if x[0][0] == "commonName"]
            rq["clientCert"] = cn[0] if cn else None
        body = None
        if data:
            try:
                body = rq["body"] = json.loads(data)
            except ValueError:
                if re.search("protobuf|cbor", rq["headers"].get("Content-Type", "")):
                    rq["prefixHex"] = data[:4].hex()
                else:
                    rq["text"] = data.decode("utf-8", "replace")
        return rq, body

    def matches(self, m, rq, body):
        path, _, query = rq["path"].partition("?")
        for k, want in m.items():
            if k == "path": got = path
            elif k == "query": got = query
            elif k == "method": got = rq["method"]
            elif k.startswith("header."): got = rq["headers"].get(k[7:].title())
            else: got = dig(body, k)
            if isinstance(got, list) and not isinstance(want, list): got = got[0] if got else None
            if isinstance(want, str) and isinstance(got, str):
                if not fnmatch.fnmatchcase(got, want): return False
            elif isinstance(want, list):
                if got not in want: return False
            elif got != want: return False
        return True

    def exchange(self, sock, f, method, path, headers, data, sni, cert):
        rq, body = self.observe(method, path, headers, data, sni, cert)
        ans = {"status": 404, "rawBody": "no answer scripted\n"}
        with self.lock:
            if any(self.matches(m, rq, body) for m in self.doc.get("ignore") or []):
                self.background.append((rq, body))
            else:
                self.log.append(rq)
            for i, a in enumerate(self.doc.get("answers") or []):
                if self.matches(a.get("match") or {}, rq, body) and self.used.get(i, 0) < a.get("times", 1 << 30):
                    self.used[i] = self.used.get(i, 0) + 1
                    ans = a
                    break
        if ans.get("delay"):
            time.sleep(ans["delay"])
        if ans.get("close"):
            return False
        if "upgrade" in ans:
            return self.upgrade(sock, f, ans, dict(headers))
        out, ct = compose(ans, body)
        h = {"Content-Type": ct}
        h.update({k: fill(v, body) for k, v in (ans.get("headers") or {}).items()})
        head = "HTTP/1.1 %d %s\r\n" % (ans.get("status", 200), ans.get("reason", "X"))
        for k, v in h.items():
            for x in (v if isinstance(v, list) else [v]):
                if x is not None:
                    head += "%s: %s\r\n" % (k, x)
        if "chunks" in ans:
            sock.sendall((head + "Transfer-Encoding: chunked\r\n\r\n").encode())
            for c in ans["chunks"]:
                c = fill(c, body)
                c = (c if isinstance(c, str) else json.dumps(c) + "\n").encode()
                sock.sendall(b"%x\r\n%s\r\n" % (len(c), c))
                time.sleep(ans.get("chunkDelay", 0.05))
            if ans.get("cut"):
                return False
            sock.sendall(b"0\r\n\r\n")
            return True
        if method == "HEAD":
            out = b""
        if ans.get("short"):                              # promise more than is sent, then close
            sock.sendall((head + "Content-Length: %d\r\n\r\n" % (len(out) + 100)).encode() + out)
            return False
        sock.sendall((head + "Content-Length: %d\r\n\r\n" % len(out)).encode() + out)
        return True

    def upgrade(self, sock, f, ans, headers):
        """Answer 101 and echo every byte until the other side ends."""
        head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n" % ans["upgrade"]
        if "Sec-Websocket-Key" in headers:
            digest = hashlib.sha1((headers["Sec-Websocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
            head += "Sec-WebSocket-Accept: %s\r\n" % base64.b64encode(digest).decode()
        sock.sendall((head + "\r\n").encode())
        while True:
            data = f.read1(65536)
            if not data:
                return False
            sock.sendall(data)


def split(log):
    """ConversionReviews taken apart: one entry per object and wanted version, each once."""
    out, seen = [], set()
    for rq in log:
        for o in dig(rq.get("body"), "request.objects") or [None]:
            body = copy.copy(rq.get("body"))
            if o is not None:
                body["request"] = dict(body["request"], objects=[o])
            key = json.dumps([dig(body, "request.desiredAPIVersion"), o, rq["path"]], sort_keys=True)
            if key not in seen:
                seen.add(key)
                out.append(dict(rq, body=body))
    return out


class Peers:
    """The peers of one case; binds their placeholders in b."""
    def __init__(self, case, b, instantiate, client_ca=None):
        self.peers = {}
        for name, doc in (case.get("peers") or {}).items():
            if not doc.get("answers") and not doc.get("down"):
                doc = dict(doc, answers=[])
            # ports are known only after the start: answers may not name their own peer's port
            p = self.peers[name] = Peer(name, doc, lambda d: instantiate(d, b), client_ca)
            k = "peer.%s." % name
            b[k + "port"] = p.port
            b[k + "addr"] = "127.0.0.1:%d" % p.port
            b[k + "url"] = ("http" if doc.get("plain") else "https") + "://127.0.0.1:%d" % p.port
            b[k + "caBundle"] = Authority.bundle()
            b[k + "otherCaBundle"] = Authority.bundle("other")

    def clear(self):
        for p in self.peers.values():
            with p.lock:
                p.log = []

    def taken(self, step):
        """Requests to the peers since clear(), and the background requests that the step collects."""
        out = {}
        for name, p in self.peers.items():
            with p.lock:
                got = []
                for c in step.get("collect") or []:
                    if c.get("peer", name) == name:
                        got += [rq for rq, body in p.background if p.matches(p.inst(c["match"]), rq, body)][:c.get("count", 1)]
                got += split(p.log) if p.doc.get("conversions") else p.log
            if got:
                out[name] = [rq["method"] + " " + rq["path"] for rq in got] if step.get("brief") else got
        return out

    def stop(self):
        for p in self.peers.values():
            p.stop()


# ---------------------------------------------------------------- upgrades through the server under test

def upgrade(conn, method, path, headers, text):
    """Ask for an upgrade, send text, and read as many bytes back: (status, headers, text)."""
    import http.client
    conn.connect()
    s = conn.sock
    s.settimeout(10)
    lines = ["%s %s HTTP/1.1" % (method, path), "Host: %s" % conn.host]
    for k, v in headers.items():
        lines += ["%s: %s" % (k, x) for x in (v if isinstance(v, list) else [v]) if x is not None]
    s.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
    f = s.makefile("rb")
    status = int(f.readline().split(b" ")[1])
    h = http.client.parse_headers(f)
    if status != 101:
        n = h.get("Content-Length")
        data = f.read(int(n)) if n else b""
        conn.close()
        return status, h, data
    s.sendall(text.encode())
    data = b""
    while len(data) < len(text.encode()):
        more = f.read1(len(text.encode()) - len(data))
        if not more:
            break
        data += more
    conn.close()
    return status, h, data
