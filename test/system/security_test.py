#!/usr/bin/env python3
"""Past vulnerabilities of kube-apiserver, tested on the whole server. usage: security_test.py KEELSON WORK_FOLDER

Each check is named after the CVE whose hole it looks for; docs/security.md lists all of them with the tests that live elsewhere.
"""
import base64
import http.client
import http.server
import json
import os
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "system"))
from front_test import Authority  # noqa: E402
from harness import SANITIZED, Client, Server, config_map, memory_bound  # noqa: E402

NAMESPACE = "/api/v1/namespaces/default"
CANARY = "canary-5b1e7c0f"
CONTAINER = {"name": "c", "image": "i"}
FAILED = []


def check(name, condition, detail=""):
    print("%s: %s" % (name, "ok" if condition else "FAILED " + str(detail)))
    if not condition:
        FAILED.append(name)


def anonymous(server, method, path, headers=None, body=None):
    context = ssl.create_default_context(cafile=os.path.join(server.pki, "ca.crt"))
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=60, context=context)
    connection.request(method, path, body, headers or {})
    response = connection.getresponse()
    data = response.read()
    connection.close()
    return response.status, data


def cve_2015_5305_and_2022_3162(client):
    """Names and namespaces that are dots, slashes and their encodings reach nothing outside their prefix."""
    client.must(201, "POST", NAMESPACE + "/secrets", {"metadata": {"name": "canary"}, "stringData": {"k": CANARY}})
    encoded = base64.b64encode(CANARY.encode()).decode()
    segments = [".", "..", "%2e%2e", "%2E%2E%2fdefault", "..%2fdefault", "default%2f..%2fdefault", "%00", "%252e%252e", ".%2fdefault", ""]
    leaks = []
    for segment in segments:
        for path in ("/api/v1/namespaces/%s/secrets", "/api/v1/namespaces/%s/configmaps", "/api/v1/namespaces/%s/configmaps/canary",
                     "/apis/apps/v1/namespaces/%s/deployments", "/api/v1/namespaces/default/configmaps/%s",
                     "/api/v1/watch/namespaces/%s/configmaps?timeoutSeconds=1", "/api/v1/namespaces/%s/configmaps?limit=1&continue=Li4v"):
            client.connection.request("GET", path % segment, None, {"Accept": "application/json"})
            response = client.connection.getresponse()  # also watches, whose responses are not a single document
            status, text = response.status, response.read().decode(errors="replace")
            secrets = path.startswith("/api/v1/namespaces/%s/secrets") and segment == ""  # all namespaces: meant
            if encoded in text and not secrets:
                leaks.append((path % segment, status))
    check("CVE-2015-5305, CVE-2022-3162: path segments", not leaks, leaks)
    for name in (".", "..", "a/b", "a%2fb"):
        status, _ = client.request("POST", NAMESPACE + "/configmaps", config_map(name, {}))
        check("CVE-2015-5305: object named %r" % name, status == 422, status)


def cve_2019_11248(server, client):
    """Without credentials nothing but health and version answers."""
    paths = client.must(200, "GET", "/")["paths"]
    paths += ["/", "/debug/pprof", "/debug/pprof/profile", "/debug/flags/v", "/metrics", "/metrics/slis", "/logs", "/flagz", "/statusz", "/configz",
              "/api/v1/pods", "/apis/apps/v1/deployments", "/openapi/v2", "/openapi/v3", "/debug/api_priority_and_fairness/dump_requests",
              "/api/v1/nodes/x/proxy/metrics", "//debug/pprof", "/healthz/../debug/pprof", "/version/../debug/pprof", "/livez/%2e%2e/metrics"]
    allowed = ("/healthz", "/livez", "/readyz", "/version")
    open_paths = [path for path in paths if anonymous(server, "GET", path)[0] == 200 and not path.startswith(allowed)]
    check("CVE-2019-11248: anonymous crawl of %d paths" % len(paths), not open_paths, open_paths)


def cve_2019_11250(server, client):
    """Tokens and secrets are in no log at any verbosity."""
    anonymous(server, "GET", "/api/v1/pods", {"Authorization": "Bearer " + CANARY})
    anonymous(server, "GET", "/api/v1/pods", {"Authorization": "Basic " + CANARY, "Cookie": CANARY})
    client.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": CANARY}})
    client.request("PATCH", NAMESPACE + "/secrets/canary", {"stringData": {"k": CANARY + "2"}}, content_type="application/merge-patch+json")
    client.request("POST", NAMESPACE + "/secrets", {"metadata": {"name": "b!ad"}, "stringData": {"k": CANARY}})
    with open(server.log_path, errors="replace") as log:
        lines = [line for line in log if CANARY in line or base64.b64encode(CANARY.encode()).decode() in line]
    check("CVE-2019-11250, CVE-2020-8565: no canary in the log at -v=10", not lines, lines[:3])


def canary_credentials(binary, folder):
    """Credentials of every kind, good and bad, through every path at -v=10: in no log, audit event, metric or error text."""
    os.makedirs(folder, exist_ok=True)
    tokens = os.path.join(folder, "tokens.csv")
    with open(tokens, "w") as f:
        f.write("%s-static,canary-user,canary-uid,\"system:masters\"\n" % CANARY)
    policy = os.path.join(folder, "policy.yaml")
    with open(policy, "w") as f:
        # Answers that hand out tokens are recorded whole at RequestResponse, as upstream does: policies leave them out.
        f.write("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n  resources:\n  - group: \"\"\n    resources: [serviceaccounts/token]\n"
                "- level: RequestResponse\n")
    audit = os.path.join(folder, "audit.log")
    server = Server(binary, folder, ["-v=10", "--token-auth-file=" + tokens, "--audit-policy-file=" + policy, "--audit-log-path=" + audit,
                                     "--enable-bootstrap-token-auth", "--audit-log-mode=blocking"], in_memory=True).start()
    jwt = ".".join(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in ('{"alg":"RS256"}', '{"iss":"x","sub":"%s"}' % CANARY, CANARY))
    bearer = base64.urlsafe_b64encode((CANARY + "-socket").encode()).decode().rstrip("=")
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
    credentials = [{"Authorization": "Bearer %s-static" % CANARY}, {"Authorization": "Bearer %s-unknown" % CANARY}, {"Authorization": "Bearer abcdef." + CANARY[:16]},
                   {"Authorization": "Bearer " + jwt}, {"Authorization": "Basic " + base64.b64encode((CANARY + ":p").encode()).decode()}, {"Cookie": "t=" + CANARY},
                   dict(upgrade, **{"Sec-WebSocket-Protocol": "base64url.bearer.authorization.k8s.io." + bearer})]
    client = Client(server)
    client.must(201, "POST", NAMESPACE + "/serviceaccounts", {"metadata": {"name": "canary"}})
    account = client.must(201, "POST", NAMESPACE + "/serviceaccounts/canary/token", {"spec": {}})["status"]["token"]
    credentials += [{"Authorization": "Bearer " + account}, {"Authorization": "Bearer " + account[:-8] + "AAAAAAAA"}]
    answers = b""
    for headers in credentials:
        for method, path in (("GET", "/api/v1/pods"), ("POST", NAMESPACE + "/configmaps"), ("DELETE", NAMESPACE + "/configmaps/none"),
                             ("PATCH", NAMESPACE + "/configmaps/none"), ("GET", "/api/v1/pods?watch=true&timeoutSeconds=1&resourceVersion=x"), ("GET", "/none")):
            answers += anonymous(server, method, path, dict(headers, **{"Content-Type": "application/json"}), None if method == "GET" else "{}")[1]
    answers += client.request("GET", "/metrics", accept="text/plain")[1]
    client.close()
    server.stop()
    secrets = account.split(".")[1:] + [account.split(".")[2][:-8]] + [CANARY + "-", CANARY[:16], base64.urlsafe_b64encode(CANARY.encode())[:16].decode(), bearer[:16], jwt.split(".")[1], jwt.split(".")[2]]
    for where, text in (("answers and metrics", answers.decode(errors="replace")), ("audit events", open(audit, errors="replace").read()),
                        ("log", open(server.log_path, errors="replace").read())):
        found = [secret for secret in secrets if secret in text]
        check("canary credentials: none in %s (%d bytes)" % (where, len(text)), text and not found, found)


def core_of(binary, folder, flags):
    """Sends a token to a server, crashes it where core files are allowed, and returns whether a core was dumped, and the core file's path or ""."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    tokens = os.path.join(folder, "tokens.csv")
    with open(tokens, "w") as f:
        f.write("%s-core,canary-user,canary-uid\n" % CANARY)
    here, limits = os.getcwd(), resource.getrlimit(resource.RLIMIT_CORE)
    server = Server(binary, folder, ["--token-auth-file=" + tokens] + flags, in_memory=True)
    try:
        os.chdir(folder)  # where a core file of a plain pattern goes
        resource.setrlimit(resource.RLIMIT_CORE, (limits[1], limits[1]))
        server.start()
    finally:
        os.chdir(here)
        resource.setrlimit(resource.RLIMIT_CORE, limits)
    anonymous(server, "GET", "/api/v1/pods", {"Authorization": "Bearer %s-core" % CANARY})
    os.kill(server.process.pid, signal.SIGSEGV)
    _, status = os.waitpid(server.process.pid, 0)
    server.process.returncode = -signal.SIGSEGV  # it was waited for
    core = [name for name in os.listdir(folder) if name.startswith("core")]
    return os.WCOREDUMP(status), os.path.join(folder, core[0]) if core else ""


def core_files(binary, folder):
    """A crash writes no core file, which would hold credentials; with --allow-core-dumps it does, which shows that the check sees one."""
    if SANITIZED:
        print("core files: not looked at, the sanitizer catches the signal")
        return
    dumped, core = core_of(binary, folder, [])
    check("canary credentials: no core file", not dumped and not core, (dumped, core))
    with open("/proc/sys/kernel/core_pattern") as f:
        plain = f.read().strip().startswith("core")
    if plain and resource.getrlimit(resource.RLIMIT_CORE)[1] != 0:
        dumped, core = core_of(binary, folder, ["--allow-core-dumps"])
        check("--allow-core-dumps: a core file", dumped and core, (dumped, core))
    else:
        print("--allow-core-dumps is not checked: this machine writes no core files")
    shutil.rmtree(folder, ignore_errors=True)


def cve_2017_1000056(client):
    """Pod security holds on every path that can change a pod's containers."""
    client.must(201, "POST", "/api/v1/namespaces", {"metadata": {"name": "strict", "labels": {"pod-security.kubernetes.io/enforce": "baseline"}}})
    client.request("POST", "/api/v1/namespaces/strict/serviceaccounts", {"metadata": {"name": "default"}})
    pods = "/api/v1/namespaces/strict/pods"
    privileged = dict(CONTAINER, securityContext={"capabilities": {"add": ["SYS_ADMIN"]}})  # validation lets it pass, unlike privileged: true
    status, _ = client.request("POST", pods, {"metadata": {"name": "p"}, "spec": {"containers": [privileged]}})
    check("CVE-2017-1000056: create", status == 403, status)
    status, _ = client.request("POST", pods, {"metadata": {"name": "p"}, "spec": {"containers": [CONTAINER], "initContainers": [dict(privileged, name="i")]}})
    check("CVE-2017-1000056: init container", status == 403, status)
    client.must(201, "POST", pods, {"metadata": {"name": "p"}, "spec": {"containers": [CONTAINER]}})
    patch = {"spec": {"ephemeralContainers": [dict(privileged, name="e")]}}
    status, _ = client.request("PATCH", pods + "/p/ephemeralcontainers", patch, content_type="application/strategic-merge-patch+json")
    check("CVE-2017-1000056: ephemeral container", status == 403, status)
    status, _ = client.request("PATCH", pods + "/p", {"spec": {"hostNetwork": True}}, content_type="application/merge-patch+json")
    check("CVE-2017-1000056: update", status in (403, 422), status)


def cve_2016_1905(client):
    """M6: admission sees every verb and patch type of every subresource that writes, also dry runs and creates by apply."""
    registration = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
    deployments = "/apis/apps/v1/namespaces/default/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
    client.must(201, "POST", deployments, {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}})
    client.must(201, "POST", NAMESPACE + "/pods", {"metadata": {"name": "evicted"}, "spec": {"containers": [CONTAINER]}})
    client.must(201, "POST", registration + "ies", {"metadata": {"name": "deny"}, "spec": {
        "failurePolicy": "Fail", "validations": [{"expression": "false"}],
        "matchConstraints": {"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "scope": "Namespaced", "resources": ["*/*"]}]}}})
    client.must(201, "POST", registration + "ybindings", {"metadata": {"name": "deny"}, "spec": {"policyName": "deny", "validationActions": ["Deny"]}})

    def denied(method, path, body, content_type="application/json"):
        status, answer = client.request(method, path, body, content_type=content_type)
        return status in (403, 422) and "ValidatingAdmissionPolicy 'deny'" in answer["message"], "%d %s" % (status, answer)
    end = time.monotonic() + 30
    while not denied("POST", NAMESPACE + "/configmaps?dryRun=All", {"metadata": {"name": "c"}})[0] and time.monotonic() < end:
        time.sleep(0.05)
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d", "namespace": "default"}, "spec": {"replicas": 3}}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "evicted"}}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "evicted"}, "target": {"kind": "Node", "name": "n"}}
    merge, apply = "application/merge-patch+json", "application/apply-patch+yaml"
    for name, request in {
            "PUT scale": ("PUT", deployments + "/d/scale", scale),
            "merge patch of scale": ("PATCH", deployments + "/d/scale", {"spec": {"replicas": 3}}, merge),
            "apply of scale": ("PATCH", deployments + "/d/scale?fieldManager=m&force=true", json.dumps(scale), apply),
            "dry run of scale": ("PUT", deployments + "/d/scale?dryRun=All", scale),
            "status": ("PATCH", deployments + "/d/status", {"status": {"replicas": 1}}, merge),
            "eviction": ("POST", NAMESPACE + "/pods/evicted/eviction", eviction),
            "pods/binding": ("POST", NAMESPACE + "/pods/evicted/binding", binding),
            "bindings": ("POST", NAMESPACE + "/bindings", binding),
            "token": ("POST", NAMESPACE + "/serviceaccounts/default/token", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}),
            "create by apply": ("PATCH", NAMESPACE + "/configmaps/c?fieldManager=m", json.dumps(config_map), apply),
            "JSON patch": ("PATCH", deployments + "/d", [{"op": "add", "path": "/metadata/labels", "value": {"x": "y"}}], "application/json-patch+json"),
            "strategic patch": ("PATCH", deployments + "/d", {"metadata": {"labels": {"x": "y"}}}, "application/strategic-merge-patch+json"),
            "delete": ("DELETE", deployments + "/d", None),
            "deletecollection": ("DELETE", deployments, None)}.items():
        held, seen = denied(*request)
        check("CVE-2016-1905, M6: " + name, held, seen[:300])
    client.must(200, "DELETE", registration + "ybindings/deny")
    client.must(200, "DELETE", registration + "ies/deny")
    while denied("POST", NAMESPACE + "/configmaps?dryRun=All", {"metadata": {"name": "c"}})[0] and time.monotonic() < end + 30:
        time.sleep(0.05)


def cve_2023_2728_and_2024_3177(client):
    """A service account that may mount some secrets only: every spelling of a reference is refused."""
    accounts = NAMESPACE + "/serviceaccounts"
    client.must(201, "POST", accounts, {"metadata": {"name": "few", "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}, "secrets": [{"name": "mine"}]})
    ref = {"name": "other"}
    spellings = {
        "env": {"env": [{"name": "e", "valueFrom": {"secretKeyRef": {"name": "other", "key": "k"}}}]},
        "envFrom": {"envFrom": [{"secretRef": ref}]},
    }
    for where in ("containers", "initContainers"):
        for name, fields in spellings.items():
            spec = {"serviceAccountName": "few", "containers": [CONTAINER]}
            spec[where] = [dict(CONTAINER, name="x", **fields)]
            status, _ = client.request("POST", NAMESPACE + "/pods?dryRun=All", {"metadata": {"name": "m"}, "spec": spec})
            check("CVE-2023-2728, CVE-2024-3177: %s of %s" % (name, where), status == 403, status)
    spec = {"serviceAccountName": "few", "containers": [CONTAINER], "volumes": [{"name": "v", "secret": {"secretName": "other"}}]}
    status, _ = client.request("POST", NAMESPACE + "/pods?dryRun=All", {"metadata": {"name": "m"}, "spec": spec})
    check("CVE-2023-2728: volume", status == 403, status)
    client.must(201, "POST", NAMESPACE + "/pods", {"metadata": {"name": "m"}, "spec": {"serviceAccountName": "few", "containers": [CONTAINER]}})
    patch = {"spec": {"ephemeralContainers": [dict(CONTAINER, name="e", **spellings["envFrom"])]}}
    status, body = client.request("PATCH", NAMESPACE + "/pods/m/ephemeralcontainers", patch, content_type="application/strategic-merge-patch+json")
    # Upstream's plain error, so 500.
    check("CVE-2023-2728: envFrom of ephemeralContainers", status == 500 and "does not reference that secret" in str(body), "%d %s" % (status, body))


def cve_2024_0793(client):
    """An object patched through one version is readable through all of them."""
    scalers = "/namespaces/default/horizontalpodautoscalers"
    client.must(201, "POST", "/apis/autoscaling/v1" + scalers, {"metadata": {"name": "h"}, "spec": {
        "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}, "maxReplicas": 3}})
    for patch in ({"metadata": {"annotations": {"autoscaling.alpha.kubernetes.io/metrics": '[{"type":"Resource"}]'}}},
                  {"metadata": {"annotations": {"autoscaling.alpha.kubernetes.io/behavior": "{}"}}},
                  {"spec": {"targetCPUUtilizationPercentage": None}}, {"spec": {"metrics": [{}]}}):
        client.request("PATCH", "/apis/autoscaling/v1" + scalers + "/h", patch, content_type="application/merge-patch+json")
        client.request("PATCH", "/apis/autoscaling/v2" + scalers + "/h", patch, content_type="application/merge-patch+json")
        for version in ("v1", "v2"):
            status, answer = client.request("GET", "/apis/autoscaling/%s" % version + scalers + "/h")
            check("CVE-2024-0793: autoscaling/%s reads after %s" % (version, json.dumps(patch)[:60]), status == 200, answer)


def deletecollection_memory(server, client):
    """A collection is deleted with the memory of one object at a time: 80 kB for each once."""
    maps = "/api/v1/namespaces/many/configmaps"
    client.must(201, "POST", "/api/v1/namespaces", {"metadata": {"name": "many"}})
    for i in range(1500):
        client.must(201, "POST", maps, config_map("m%d" % i, {"k": "v"}))
    before = server.memory_kb()
    client.must(200, "DELETE", maps + "?dryRun=All")
    grown = server.memory_kb() - before
    check("M2: deletecollection of 1,500 objects", grown < memory_bound(40 * 1024), "%d kB" % grown)


def cve_2020_8554(binary, folder):
    """With DenyServiceExternalIPs no service gets or changes external addresses."""
    server = Server(binary, folder, ["--enable-admission-plugins=DenyServiceExternalIPs"], in_memory=True).start()
    try:
        client = Client(server)
        service = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], "externalIPs": ["192.0.2.1"]}}
        status, _ = client.request("POST", NAMESPACE + "/services", service)
        check("CVE-2020-8554: create", status == 403, status)
        client.must(201, "POST", NAMESPACE + "/services", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
        status, _ = client.request("PATCH", NAMESPACE + "/services/s", {"spec": {"externalIPs": ["192.0.2.1"]}}, content_type="application/merge-patch+json")
        check("CVE-2020-8554: patch", status == 403, status)
        client.close()
    finally:
        server.stop()


class Redirecting:
    """A kubelet that sends every request elsewhere, and the elsewhere, which counts who comes."""

    def __init__(self, cert, key):
        self.visits, self.asked = 0, []
        self.elsewhere = socket.create_server(("127.0.0.1", 0))
        self.kubelet = socket.create_server(("127.0.0.1", 0))
        self.port = self.kubelet.getsockname()[1]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        threading.Thread(target=self._count, daemon=True).start()
        threading.Thread(target=self._redirect, args=(context,), daemon=True).start()

    def _count(self):
        while True:
            connection, _ = self.elsewhere.accept()
            self.visits += 1
            connection.close()

    def _redirect(self, context):
        while True:
            connection, _ = self.kubelet.accept()
            try:
                with context.wrap_socket(connection, server_side=True) as tls:
                    request = tls.recv(65536).decode(errors="replace")
                    self.asked.append(request.split("\r\n")[0])
                    location = "https://127.0.0.1:%d/stolen" % self.elsewhere.getsockname()[1]
                    tls.sendall(("HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % location).encode())
            except OSError:
                pass


def cve_2018_1002102_and_2020_8559(binary, folder):
    """A kubelet that redirects logs, exec, attach and port forwarding is not followed."""
    os.makedirs(folder, exist_ok=True)
    cert, key = os.path.join(folder, "k.crt"), os.path.join(folder, "k.key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", cert,
                    "-days", "2", "-subj", "/CN=n", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    kubelet = Redirecting(cert, key)
    server = Server(binary, folder, ["--kubelet-certificate-authority=" + cert, "--kubelet-preferred-address-types=InternalIP"], in_memory=True).start()
    try:
        client = Client(server)
        client.must(201, "POST", "/api/v1/nodes", {"metadata": {"name": "n"}, "status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}], "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet.port}}}})
        client.request("POST", NAMESPACE + "/serviceaccounts", {"metadata": {"name": "default"}})
        client.must(201, "POST", NAMESPACE + "/pods", {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [CONTAINER]}})
        upgrade = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": "v4.channel.k8s.io"}
        for method, path, headers in (("GET", "/log", {}), ("POST", "/exec?command=a&stdout=true", upgrade), ("POST", "/attach?stdout=true", upgrade),
                                      ("POST", "/portforward", dict(upgrade, **{"X-Stream-Protocol-Version": "portforward.k8s.io"}))):
            connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=60, context=server.context())
            connection.request(method, NAMESPACE + "/pods/p" + path, None, headers)
            response = connection.getresponse()
            response.read()
            location = response.getheader("Location") or ""
            connection.close()
            check("CVE-2018-1002102, CVE-2020-8559: %s" % path.split("?")[0], response.status not in (101, 200) and "stolen" not in location,
                  (response.status, location))
        check("CVE-2018-1002102: the kubelet was asked", len(kubelet.asked) >= 4, kubelet.asked)
        check("CVE-2018-1002102: nobody went where it pointed", kubelet.visits == 0, kubelet.visits)
        client.close()
    finally:
        server.stop()


class Webhook:
    """Allows everything and remembers it; sends what comes to /redirect elsewhere, and counts who follows."""

    def __init__(self, folder):
        authority = Authority(os.path.join(folder, "webhook"), "webhook-ca")
        cert, key = authority.issue("server", "/CN=webhook", "subjectAltName=IP:127.0.0.1")
        with open(authority.crt, "rb") as file:
            self.ca = base64.b64encode(file.read()).decode()
        self.reviews, self.visits = [], 0
        webhook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path.startswith("/redirect"):
                    self.send_response(302)
                    self.send_header("Location", "https://127.0.0.1:%d/stolen" % webhook.port)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                if self.path.startswith("/stolen"):
                    webhook.visits += 1
                review = json.loads(body)
                webhook.reviews.append(review["request"])
                answer = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {
                    "uid": review["request"]["uid"], "allowed": True}}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_GET = do_POST

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def configuration(self, path, resources):
        return {"metadata": {"name": path}, "webhooks": [{
            "name": path + ".example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Fail", "timeoutSeconds": 10,
            "clientConfig": {"url": "https://127.0.0.1:%d/%s" % (self.port, path), "caBundle": self.ca},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": resources}]}]}


def cve_2020_8561_and_2021_25735(client, folder):
    """A webhook that redirects is not followed; a webhook sees the whole old object."""
    webhook = Webhook(folder)
    configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    client.must(201, "POST", "/api/v1/nodes", {"metadata": {"name": "n", "labels": {"a": "b"}}, "spec": {
        "podCIDR": "10.0.0.0/24", "providerID": "p", "unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}]}})
    client.must(201, "POST", configurations, webhook.configuration("record", ["nodes", "nodes/status"]))
    client.must(201, "POST", configurations, webhook.configuration("redirect", ["configmaps"]))
    end = time.monotonic() + 30
    while time.monotonic() < end:
        before = client.must(200, "GET", "/api/v1/nodes/n")
        patch = {"metadata": {"labels": {"a": str(time.monotonic_ns())}}, "spec": {"unschedulable": None, "taints": None}}
        client.must(200, "PATCH", "/api/v1/nodes/n", patch, content_type="application/merge-patch+json")
        if webhook.reviews:
            break
    check("CVE-2021-25735: the webhook is called", bool(webhook.reviews))
    if webhook.reviews:
        check("CVE-2021-25735: the old object is whole", webhook.reviews[-1]["oldObject"] == before, webhook.reviews[-1]["oldObject"])
    before = client.must(200, "GET", "/api/v1/nodes/n")
    client.must(200, "PATCH", "/api/v1/nodes/n/status", {"status": {"phase": "Running"}}, content_type="application/merge-patch+json")
    check("CVE-2021-25735: the old object of a status", webhook.reviews[-1]["oldObject"] == before, webhook.reviews[-1]["oldObject"])
    while time.monotonic() < end:
        status, answer = client.request("POST", NAMESPACE + "/configmaps?dryRun=All", config_map("redirected", {}))
        if status != 201:
            break
    check("CVE-2020-8561: a redirect fails the call", status == 500, "%d %s" % (status, answer))
    check("CVE-2020-8561: nobody follows a redirect", webhook.visits == 0, webhook.visits)
    for name in ("record", "redirect"):
        client.must(200, "DELETE", configurations + "/" + name)
    while client.request("POST", NAMESPACE + "/configmaps?dryRun=All", config_map("free", {}))[0] != 201 and time.monotonic() < end + 30:
        time.sleep(0.05)


def main():
    binary, folder = sys.argv[1], sys.argv[2]
    shutil.rmtree(folder, ignore_errors=True)
    server = Server(binary, os.path.join(folder, "main"), ["-v=10"], in_memory=True).start()
    try:
        client = Client(server)
        client.request("POST", NAMESPACE + "/serviceaccounts", {"metadata": {"name": "default"}})
        cve_2015_5305_and_2022_3162(client)
        cve_2019_11248(server, client)
        cve_2017_1000056(client)
        cve_2016_1905(client)
        cve_2020_8561_and_2021_25735(client, folder)
        cve_2023_2728_and_2024_3177(client)
        cve_2024_0793(client)
        cve_2019_11250(server, client)
        deletecollection_memory(server, client)
        client.close()
    finally:
        server.stop()
    canary_credentials(binary, os.path.join(folder, "canaries"))
    core_files(binary, os.path.join(folder, "core"))
    cve_2020_8554(binary, os.path.join(folder, "external"))
    cve_2018_1002102_and_2020_8559(binary, os.path.join(folder, "kubelet"))
    print("failed: " + "; ".join(FAILED) if FAILED else "all holes are closed")
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
