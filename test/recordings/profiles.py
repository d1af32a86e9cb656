"""Profiles: how a server is started for cases that need special flags, files and credentials.

profiledefs.py holds the definitions (plain data).  replay.py --start CMD --profile NAME uses this
module to make keys and certificates, write the files, run scripted peers (OIDC issuers, webhooks),
start CMD with the flags, wait until it is ready, run the cases of the profile and stop it.
Cases with "startup" start a server that must refuse.  See README.md, "Profiles".
Python 3 standard library and the openssl command only; everything stays on the loopback interface.
"""
import base64
import hashlib
import hmac
import http.client
import http.server
import json
import os
import queue
import random
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time

BASE = {                                        # as the cases without a profile were recorded
    "bind-address": "127.0.0.1", "advertise-address": "127.0.0.1",
    "client-ca-file": "${pki}/ca.crt", "tls-cert-file": "${pki}/server.crt", "tls-private-key-file": "${pki}/server.key",
    "service-account-key-file": "${pki}/sa.key", "service-account-signing-key-file": "${pki}/sa.key",
    "service-account-issuer": "https://kubernetes.default.svc", "service-cluster-ip-range": "10.0.0.0/16",
    "authorization-mode": "Node,RBAC", "endpoint-reconciler-type": "none",
}
b64 = lambda d: base64.urlsafe_b64encode(d).rstrip(b"=").decode()
unb64 = lambda s: base64.urlsafe_b64decode(s + "=" * (-len(s) % 4))


def defs():
    import profiledefs
    return profiledefs.PROFILES


def free_port():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    n = s.getsockname()[1]
    s.close()
    return n


def openssl(*args, data=None):
    p = subprocess.run(("openssl",) + args, input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if p.returncode:
        raise RuntimeError("openssl %s: %s" % (args[0], p.stderr.decode("utf-8", "replace")))
    return p.stdout


# ---------------------------------------------------------------- keys, certificates, tokens

class Pki:
    """Keys and certificates of one run, made on first use."""
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="corpus-pki-")
        self.lock = threading.RLock()
        self.jwks = {}
        for name in ("ca", "proxy-ca", "other-ca", "peer-ca"):
            self.cert(name, name, ca=None, isca=True)
        self.cert("mid-ca", "mid-ca", ca="ca", isca=True)
        self.cert("server", "server", eku="serverAuth", san="DNS:localhost,IP:127.0.0.1")
        self.cert("peer", "peer", ca="peer-ca", eku="serverAuth", san="DNS:localhost,IP:127.0.0.1")
        self.cert("admin", "admin", o=["system:masters"])
        self.key("sa")
        openssl("pkey", "-in", self.p("sa.key"), "-pubout", "-out", self.p("sa.pub"))

    def p(self, f):
        return os.path.join(self.dir, f)

    def cert(self, name, cn="", o=(), uid=None, ca="ca", eku="clientAuth", san=None, isca=False, days=2, chain=None):
        with self.lock:
            if os.path.exists(self.p(name + ".crt")):
                return
            dn = ["%d.O = %s" % (i, v) for i, v in enumerate(o)]
            dn += ["%d.kubeuid = %s" % (i, v) for i, v in enumerate([uid] if isinstance(uid, str) else uid or [])]
            dn += ["CN = " + cn] if cn else []
            ext = ["basicConstraints=critical,CA:TRUE", "keyUsage=keyCertSign,cRLSign,digitalSignature"] if isca else []
            ext += ["extendedKeyUsage=" + eku] if eku and not isca else []
            ext += ["subjectAltName=" + san] if san else []
            with open(self.p(name + ".cnf"), "w") as f:
                f.write("oid_section = oids\n[oids]\nkubeuid = 1.3.6.1.4.1.57683.2\n[req]\ndistinguished_name = dn\n"
                        "prompt = no\nutf8 = yes\nstring_mask = utf8only\n[dn]\n%s\n[ext]\n%s\n" % ("\n".join(dn), "\n".join(ext)))
            openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", self.p(name + ".key"))
            req = ("req", "-new", "-key", self.p(name + ".key"), "-config", self.p(name + ".cnf"))
            if ca is None:
                openssl(*req, "-x509", "-days", str(days), "-extensions", "ext", "-out", self.p(name + ".crt"))
            else:
                openssl("x509", "-req", "-CA", self.p(ca + ".crt"), "-CAkey", self.p(ca + ".key"), "-set_serial",
                        str(random.SystemRandom().getrandbits(60)), "-days", str(days), "-extfile", self.p(name + ".cnf"),
                        "-extensions", "ext", "-out", self.p(name + ".crt"), data=openssl(*req))
            if chain:
                with open(self.p(name + ".crt"), "a") as f:
                    f.write(open(self.p(chain + ".crt")).read())

    def key(self, name):
        """Private key file; the name's ending chooses the type: es256, es384, es512, otherwise RSA 2048."""
        with self.lock:
            path = self.p(name + ".key")
            if not os.path.exists(path):
                curve = {"es256": "prime256v1", "es384": "secp384r1", "es512": "secp521r1"}.get(name[-5:])
                if curve:
                    openssl("ecparam", "-name", curve, "-genkey", "-noout", "-out", path)
                else:
                    openssl("genrsa", "-out", path, "2048")
            return path

    def public(self, name):
        return openssl("pkey", "-in", self.key(name), "-pubout", "-outform", "DER")

    def kid(self, name):
        return b64(hashlib.sha256(self.public(name)).digest())

    def jwk(self, name, kid=None, alg=None):
        der = self.public(name)
        out = {"use": "sig", "kid": kid or name, "alg": alg or {"es256": "ES256", "es384": "ES384", "es512": "ES512"}.get(name[-5:], "RS256")}
        if name[-5:] in ("es256", "es384", "es512"):
            n = {"es256": 32, "es384": 48, "es512": 66}[name[-5:]]
            out.update(kty="EC", crv={32: "P-256", 48: "P-384", 66: "P-521"}[n], x=b64(der[-2 * n:-n]), y=b64(der[-n:]))
        else:
            mod = openssl("rsa", "-in", self.key(name), "-modulus", "-noout").decode().strip().split("=")[1]
            out.update(kty="RSA", n=b64(bytes.fromhex(mod)), e="AQAB")
        return out

    def sign(self, alg, name, data):
        if alg == "none":
            return b""
        md = {"256": "sha256", "384": "sha384", "512": "sha512"}[alg[2:]]
        if alg.startswith("HS"):                # the public key as the secret: the classic confusion attack
            return hmac.new(openssl("pkey", "-in", self.key(name), "-pubout"), data, md).digest()
        args = ["dgst", "-" + md, "-sign", self.key(name)]
        if alg.startswith("PS"):
            args += ["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:-1"]
        sig = openssl(*args, data=data)
        if alg.startswith("ES"):
            n, out, i = {"256": 32, "384": 48, "512": 66}[alg[2:]], b"", 2 + (sig[1] == 0x81)
            for _ in (0, 1):
                ln = sig[i + 1]
                out += sig[i + 2:i + 2 + ln].lstrip(b"\0").rjust(n, b"\0")
                i += 2 + ln
            return out
        return sig


def mint(pki, spec):
    """A token: from scratch, or from another token with changes.  "now+60" in a claim is a time."""
    header, claims, sig = {}, {}, None
    if spec.get("from"):
        h, c, s = spec["from"].split(".")
        header, claims, sig = json.loads(unb64(h)), json.loads(unb64(c)), unb64(s)
    key = spec.get("key")
    alg = spec.get("alg") or header.get("alg") or "RS256"
    if key:
        header = {"alg": alg, "kid": pki.kid(key) if key.startswith("sa") else key}
    header["alg"] = alg
    header.update(spec.get("header") or {})

    def when(v):
        m = re.fullmatch(r"now([+-]\d+)?", v) if isinstance(v, str) else None
        if m:
            return int(time.time()) + int(m.group(1) or 0)
        if isinstance(v, dict):
            return {k: when(x) for k, x in v.items() if x is not None}
        return [when(x) for x in v] if isinstance(v, list) else v

    def merge(a, d):
        for k, v in d.items():
            if isinstance(v, dict) and isinstance(a.get(k), dict):
                merge(a[k], v)
            else:
                a[k] = v
        return a
    enc = lambda o: b64(json.dumps({k: v for k, v in o.items() if v is not None}, separators=(",", ":")).encode())
    h, c = enc(header), enc(when(merge(claims, spec.get("claims") or {})))
    if spec.get("from") and not spec.get("claims") and not key and not spec.get("header") and alg == json.loads(unb64(spec["from"].split(".")[0])).get("alg"):
        h, c = spec["from"].split(".")[:2]
    if key or alg == "none":
        sig = pki.sign(alg, key, (h + "." + c).encode())
    if spec.get("tamper"):
        sig = bytes([sig[0] ^ 1]) + sig[1:]
    return h + "." + c + "." + b64(sig)


# ---------------------------------------------------------------- scripted peers

class Peers:
    """One HTTPS server for all issuers and webhooks of a profile, each below its own path."""
    def __init__(self, pki, specs):
        self.pki, self.lock, self.log = pki, threading.Lock(), []
        self.specs = json.loads(json.dumps(specs))
        self.port = free_port()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *a):
                pass

            def serve(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                whole, _, query = self.path.partition("?")
                name, _, rest = whole.lstrip("/").partition("/")
                with outer.lock:
                    spec = json.loads(json.dumps(outer.specs.get(name) or {}))
                status, out = outer.answer(name, "/" + rest + ("?" + query if query else ""), spec, self, body)
                if status is None:
                    self.close_connection = True
                    return self.connection.close()
                data = out if isinstance(out, bytes) else json.dumps(out).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            do_GET = do_POST = do_PUT = serve

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            def handle_error(self, *a):
                pass
            def finish_request(self, req, addr):
                try:
                    req = ctx.wrap_socket(req, server_side=True)
                except (OSError, ssl.SSLError):
                    return
                super().finish_request(req, addr)
        ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ctx.load_cert_chain(pki.p("peer.crt"), pki.p("peer.key"))
        ctx.load_verify_locations(pki.p("ca.crt"))
        ctx.verify_mode = ssl.CERT_OPTIONAL
        self.server = Server(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.1,), daemon=True).start()

    def url(self, name):
        return "https://127.0.0.1:%d/%s" % (self.port, name)

    def answer(self, name, path, spec, rq, body):
        if spec.get("down"):
            return (None, None) if spec["down"] == "close" else (int(spec["down"]), {})
        if spec.get("type") == "issuer":
            if path.endswith("/.well-known/openid-configuration"):
                doc = {"issuer": self.url(name), "jwks_uri": self.url(name) + "/keys", "response_types_supported": ["id_token"],
                       "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["RS256", "ES256"]}
                doc.update(json.loads(self.fill(json.dumps(spec.get("document") or {}))))
                return 200, doc
            if path == "/keys":
                return 200, {"keys": [self.pki.jwk(k) for k in spec.get("keys", [])]}
            if path.startswith("/claims/"):     # distributed claims
                with self.lock:
                    self.log.append((name, {"method": rq.command, "path": path, "authorization": rq.headers.get("Authorization")}))
                c = (spec.get("claims") or {}).get(path[8:])
                if c is None:
                    return 404, {}
                return 200, mint(self.pki, json.loads(self.fill(json.dumps(c)))).encode()
            return 404, {}
        if spec.get("type") == "hook":
            try:
                doc = json.loads(body)
            except ValueError:
                doc = None
            seen = {"method": rq.command, "path": path, "contentType": rq.headers.get("Content-Type"), "body": doc}
            if rq.headers.get("Authorization"):
                seen["authorization"] = rq.headers["Authorization"]
            cert = rq.connection.getpeercert() if hasattr(rq.connection, "getpeercert") else None
            if cert:
                seen["cert"] = ",".join(v for rdn in cert["subject"] for k, v in rdn if k == "commonName")
            with self.lock:
                self.log.append((name, seen))
            for r in spec.get("rules", []):
                if all(re.search(rx, str(dig(doc, p))) for p, rx in (r.get("when") or {}).items()):
                    if r.get("close"):
                        return None, None
                    if r.get("sleep"):
                        time.sleep(r["sleep"])
                    if "raw" in r:
                        return r.get("code", 200), r["raw"].encode()
                    out = {"apiVersion": (doc or {}).get("apiVersion"), "kind": (doc or {}).get("kind"), "metadata": {}}
                    out.update(r.get("answer") or {})
                    return r.get("code", 200), out
            return 200, {"apiVersion": (doc or {}).get("apiVersion"), "kind": (doc or {}).get("kind"), "status": {}}
        return 404, {}

    def fill(self, s):
        return re.sub(r"\$\{(\w+)\}", lambda m: self.url(m.group(1)) if m.group(1) in self.specs else m.group(0), s)

    def received(self, name, containing):
        with self.lock:
            return [r for n, r in self.log if n == name and (not containing or containing in json.dumps(r))]

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


def dig(o, path):
    for p in path.split("."):
        o = o.get(p) if isinstance(o, dict) else None
    return "" if o is None else o


# ---------------------------------------------------------------- starting servers

class Start:
    """A server process started from CMD with flags and files."""
    def __init__(self, cmd, pki, flags, files=None, peers=None, base=True):
        self.pki, self.dir = pki, tempfile.mkdtemp(prefix="corpus-run-")
        self.port = free_port()
        self.peers = Peers(pki, peers) if peers else None
        for f, content in (files or {}).items():
            self.write(f, content)
        m = re.search(r"corpus-run-(.*)", self.dir)
        cmd = [w.replace("{dir}", self.dir).replace("{id}", re.sub(r"\W", "", m.group(1)).lower()) for w in shlex.split(cmd)]
        allf = dict(BASE if base else {}, **{"secure-port": str(self.port)})
        allf.update(flags or {})
        for k, v in allf.items():
            for x in (v if isinstance(v, list) else [v]):
                if x is True:
                    cmd.append("--" + k)
                elif x is not None:
                    cmd.append(k if k.startswith("-") else "--%s=%s" % (k, self.fill(x)) if not k.startswith("arg:") else self.fill(x))
        self.cmd = cmd
        self.err = open(os.path.join(self.dir, "stderr"), "wb")
        env = {k: v for k, v in os.environ.items() if k not in ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")}
        self.proc = subprocess.Popen(cmd, stdout=subprocess.DEVNULL, stderr=self.err, stdin=subprocess.DEVNULL, env=env, cwd=self.dir)

    def values(self):
        v = {"dir": self.dir, "pki": self.pki.dir}
        for n in (self.peers.specs if self.peers else ()):
            v[n] = self.peers.url(n)
        return v

    def fill(self, s):
        v = self.values()

        def sub(m):
            kind, _, rest = m.group(1).partition(":")
            if kind == "pem":
                return open(self.pki.p(rest)).read()
            if kind == "b64":
                return base64.b64encode(open(self.pki.p(rest), "rb").read()).decode()
            if kind == "key":
                return self.pki.key(rest)
            return v.get(kind, m.group(0))
        return re.sub(r"\$\{([a-z0-9]+(?::[\w.-]+)?)\}", sub, s)

    def deep(self, o):
        if isinstance(o, dict):
            return {k: self.deep(v) for k, v in o.items()}
        return [self.deep(x) for x in o] if isinstance(o, list) else self.fill(o) if isinstance(o, str) else o

    def write(self, name, content):
        """A text (placeholders filled in), or an object written as JSON, which is YAML too."""
        data = self.fill(content) if isinstance(content, str) else json.dumps(self.deep(content), indent=1)
        path = os.path.join(self.dir, name)
        if content is None:
            return os.path.exists(path) and os.remove(path)
        with open(path + ".tmp", "w", encoding="utf-8") as f:
            f.write(data)
        os.replace(path + ".tmp", path)

    def stderr(self):
        with open(os.path.join(self.dir, "stderr"), encoding="utf-8", errors="replace") as f:
            return f.read()

    def wait_exit(self, seconds):
        try:
            return self.proc.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def stop(self):
        if self.proc.poll() is None:
            self.proc.terminate()
            if self.wait_exit(3) is None:
                self.proc.kill()
                self.proc.wait()
        self.err.close()
        if self.peers:
            self.peers.stop()
        shutil.rmtree(self.dir, ignore_errors=True)


KLOG = re.compile(r"^[IWEF]\d{4} [\d:.]+ +\d+ [\w.-]+:\d+\] ")


def log_lines(text):
    """Lines without their klog header; a value written over several lines becomes one quoted line."""
    text = re.sub(r"=<\n((?:\t.*\n)+) >", lambda m: "=" + json.dumps("\n".join(x[1:] for x in m.group(1).rstrip("\n").split("\n")), ensure_ascii=False), text)
    return [KLOG.sub("", ln) for ln in text.split("\n") if ln.strip()]


def startup(cmd, pki, spec, seconds=40):
    """(exit code, "ready" or None, stderr lines) of a start that should fail."""
    s = Start(cmd, pki, spec.get("flags"), spec.get("files"), spec.get("peers"))
    try:
        ctx, code, end = ssl._create_unverified_context(), None, time.time() + seconds
        ctx.load_cert_chain(pki.p("admin.crt"), pki.p("admin.key"))
        while code is None and time.time() < end:
            code = s.wait_exit(0.1)
            conn = http.client.HTTPSConnection("127.0.0.1", s.port, timeout=10, context=ctx)
            try:
                conn.request("GET", "/readyz")
                code = "ready" if code is None and conn.getresponse().status == 200 else code
            except (OSError, http.client.HTTPException):
                pass
            conn.close()
        lines = log_lines(s.stderr())
        for k, v in sorted(s.values().items(), key=lambda kv: -len(kv[1])):
            lines = [ln.replace(v, "${%s}" % k) for ln in lines]
        return code, lines
    finally:
        s.stop()


def run_startup(cmd, pki, spec, seconds=40):
    """None when the server refused as recorded, otherwise a report."""
    code, lines = startup(cmd, pki, spec, seconds)
    out = []
    if spec.get("ready"):
        return None if code == "ready" else ["the server must start, but: %s %s" % (code, "\n".join(lines[-3:]))]
    if code is None or code == "ready":
        out.append("the server runs, expected exit code %d" % spec["exit"])
    elif code != spec["exit"]:
        out.append("exit code %s, expected %d" % (code, spec["exit"]))
    for want in spec["stderr"]:
        rx = ".*".join(re.escape(x) for x in want.split("${any}"))
        if not any(re.fullmatch(rx, ln, re.S) for ln in lines):
            out += ["    no such line on stderr", "      - expected %s" % want, "      + got      %s" % "\n                 ".join(lines[-4:])]
    return out or None


class Profile:
    """A running server of a profile."""
    def __init__(self, replay, cmd, name, pki, timeout=60, ready=90):
        self.replay, self.name, self.pki = replay, name, pki
        d = defs()[name]
        self.creds = d.get("credentials") or {}
        for n, c in self.creds.items():
            if "x509" in c:
                pki.cert("cred-%s-%s" % (name, n), **c["x509"])
        self.start = Start(cmd, pki, d.get("flags"), d.get("files"), d.get("peers"))
        self.client = make_client(replay, self, timeout)
        deadline, last = time.time() + ready, "no answer"
        while True:
            if self.start.proc.poll() is not None:
                last = "exit code %s: %s" % (self.start.proc.returncode, "\n".join(log_lines(self.start.stderr())[-3:]))
                break
            try:
                status, _, body = self.client.call("GET", "/readyz")
                if status == 200:
                    break
                last = body.decode("utf-8", "replace")[-300:]
            except (replay.Mismatch, OSError) as e:
                last = str(e)
            if time.time() > deadline:
                break
            time.sleep(0.1)
        else:
            last = None
        if self.start.proc.poll() is not None or time.time() > deadline:
            self.start.stop()
            raise RuntimeError("server for profile %s did not become ready: %s" % (name, last))
        self.bindings = self.start.values()
        for n, c in self.creds.items():
            if "token" in c or "jwt" in c:
                self.bindings["tok" + n] = self.token(c)

    def token(self, c):
        return self.start.fill(c["token"]) if "token" in c else mint(self.pki, self.start.deep(c["jwt"]))

    def act(self, step, b):
        """Steps that are not requests to the server."""
        fill = lambda t: self.replay.instantiate(self.start.deep(t), b)
        if "file" in step:
            self.start.write(step["file"]["name"], fill(step["file"]["content"]))
        if "mint" in step:
            for k, spec in step["mint"].items():
                b[k] = mint(self.pki, fill(spec))
        if "peer" in step:
            with self.start.peers.lock:
                for n, change in step["peer"].items():
                    self.start.peers.specs[n].update(change)
        if "sleep" in step:
            time.sleep(step["sleep"])
        if "received" in step:
            return {"status": 0, "body": self.start.peers.received(step["received"], self.replay.instantiate(step.get("containing", ""), b))}
        return {"status": 0}

    def stop(self):
        self.start.stop()


def make_client(replay, profile, timeout):
    pki = profile.pki

    class Client(replay.Client):
        def cred(self, name, headers):
            """Connection and headers of a named credential."""
            c = profile.creds[name]
            h = dict(headers or {})
            if "headers" in c:
                h = dict(c["headers"], **h)
            if "token" in c or "jwt" in c:
                h.setdefault("Authorization", "Bearer " + profile.bindings["tok" + name])
            ctx = self.context({"ca": pki.p("ca.crt")})
            if "x509" in c:
                f = pki.p("cred-%s-%s" % (profile.name, name))
                ctx.load_cert_chain(f + ".crt", f + ".key")
            return replay.http.client.HTTPSConnection(self.host, self.port, timeout=self.timeout, context=ctx), h

        def call(self, method, path, headers=None, body=None, anonymous=False):
            if not isinstance(anonymous, str):
                return super().call(method, path, headers, body, anonymous)
            conn, h = self.cred(anonymous, headers)
            try:
                r = self.open(conn, method, path, h, body, True)
                return r.status, r.headers, r.read()
            except (replay.http.client.HTTPException, OSError) as e:
                raise replay.Mismatch("%s %s: %s: %s" % (method, path, type(e).__name__, e))
            finally:
                conn.close()

        def watch(self, method, path, headers, body=None, anonymous=False):
            if not isinstance(anonymous, str):
                return super().watch(method, path, headers, body)
            conn, h = self.cred(anonymous, headers)
            return conn, self.open(conn, method, path, h, body, True)
    c = Client({"server": "https://127.0.0.1:%d" % profile.start.port, "ca": pki.p("ca.crt"), "cert": pki.p("admin.crt"),
                "key": pki.p("admin.key"), "timeout": timeout})
    c.profile = profile
    return c


# ---------------------------------------------------------------- running

def wanted(cases, names):
    """profile name -> its cases, for the requested profiles (all: everything incl. start-up cases)."""
    out = {}
    for c in cases:
        n = "startup" if "startup" in c else c.get("profile") or "default"
        if n in names or "all" in names:
            out.setdefault(n, []).append(c)
    return out


def run(replay, a, cases, report):
    """replay.py --start: report(case, lines, seconds) is called for every case."""
    pki = Pki()
    try:
        for name, cs in sorted(wanted(cases, a.profile or ["default"]).items()):
            if name == "startup":
                pool(cs, a.jobs, lambda c: timed(report, c, lambda: run_startup(a.start, pki, c["startup"], 40 if a.retry_seconds >= 30 else 10)))
                continue
            try:
                p = Profile(replay, a.start, name, pki, a.timeout, 90 if a.retry_seconds >= 30 else 20)
            except Exception as e:
                for c in cs:
                    report(c, [str(e)], 0)
                continue
            try:
                go = lambda c: timed(report, c, lambda: replay.run_case(p.client, c, a.retry_seconds))
                pool([c for c in cs if not c.get("serial")], a.jobs, go)
                for c in cs:
                    if c.get("serial"):
                        go(c)
            finally:
                p.stop()
    finally:
        shutil.rmtree(pki.dir, ignore_errors=True)


def timed(report, case, f):
    t0 = time.time()
    try:
        lines = f()
    except Exception as e:
        lines = ["%s: %s" % (type(e).__name__, e)]
    report(case, lines, time.time() - t0)


def pool(items, jobs, f):
    q = queue.Queue()
    for x in items:
        q.put(x)

    def worker():
        while True:
            try:
                x = q.get_nowait()
            except queue.Empty:
                return
            f(x)
    ts = [threading.Thread(target=worker, daemon=True) for _ in range(max(1, jobs))]
    [t.start() for t in ts]
    [t.join() for t in ts]
