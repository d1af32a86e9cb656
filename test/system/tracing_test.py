#!/usr/bin/env python3
"""Compares the spans that the server exports with the tracing goldens. usage: tracing_test.py KEELSON WORK_FOLDER OTLP_COLLECTOR

The goldens are not part of the tree: KEELSON_SUITES, by default ../shared/testdata beside it, folder tracing. Every file there is run: one with
"startup" through audit_replay.py, one with "config" and "cases" against a server with that sampling rate, whose store is an etcd (`keelson
etcd`), so that spans of its calls are there, too. expected_failures/tracing.txt names the cases that differ, one a line with its reason.
"""
import base64
import glob
import http.client
import http.server
import json
import os
import re
import ssl
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, free_port, skip, source_root  # noqa: E402
from otlp import read_export_request  # noqa: E402
from replay_test import read_expected  # noqa: E402
from two_servers_test import EtcdServer, make_pki  # noqa: E402

EXPECTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "expected_failures", "tracing.txt")
NAMESPACE = "tracing"
CLIENT_TRACE = "0af7651916cd43dd8448eb211c80319c"
CLIENT_SPAN = "b7ad6b7169203331"


class Collector:
    """The requests of an exporter, as the collector's process wrote them."""

    def __init__(self, binary):
        self.process = subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split()[1])
        self.lines = []
        self.reader = threading.Thread(target=lambda: self.lines.extend(self.process.stdout), daemon=True)
        self.reader.start()

    def end(self):
        """All spans."""
        self.process.stdin.close()
        self.process.wait(60)
        self.reader.join(60)
        return [span for line in self.lines for span in read_export_request(bytes.fromhex(line.strip()))]


class Webhook(http.server.BaseHTTPRequestHandler):
    """Allows everything, and keeps the headers it was sent."""
    protocol_version = "HTTP/1.1"
    seen = []

    def log_message(self, *arguments):
        pass

    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Webhook.seen.append(dict(self.headers.items()))
        body = json.dumps({"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": {"uid": review["request"]["uid"], "allowed": True}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def serve_webhook(pki):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Webhook)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(pki, "server.crt"), os.path.join(pki, "server.key"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


class Etcd:
    def __init__(self, binary, folder):
        self.url = "http://127.0.0.1:%d" % free_port()
        self.process = subprocess.Popen([binary, "etcd", "--data-dir=" + os.path.join(folder, "etcd"), "--listen-client-urls=" + self.url,
                                         "--advertise-client-urls=" + self.url], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


def hook_configurations(case, webhook_port, ca):
    """The webhook configurations that a case's spans name: (resource, object)."""
    made = []
    for span in case["spans"]:
        kind = re.match(r"Call (mutating|validating) webhook$", span["name"])
        if not kind:
            continue
        title = kind.group(1).capitalize()
        made.append((kind.group(1) + "webhookconfigurations", {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": title + "WebhookConfiguration", "metadata": {"name": "tracing-hooks"},
            "webhooks": [{"name": span["attributes"]["webhook"], "sideEffects": "None", "admissionReviewVersions": ["v1"],
                          "clientConfig": {"url": "https://127.0.0.1:%d/admit/noop" % webhook_port, "caBundle": ca},
                          "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}},
                          "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]}]}))
    return made


class Run:
    """One server with one sampling rate."""

    def __init__(self, arguments, folder, rate):
        self.keelson, collector = arguments
        os.makedirs(folder)
        self.pki = make_pki(os.path.join(folder, "pki"))
        self.collector = Collector(collector)
        self.etcd = Etcd(self.keelson, folder)
        config = os.path.join(folder, "tracing.yaml")
        with open(config, "w") as f:
            f.write("apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: 127.0.0.1:%d\n" % self.collector.port)
            if rate is not None:
                f.write("samplingRatePerMillion: %d\n" % rate)
        tokens = os.path.join(folder, "tokens.csv")
        with open(tokens, "w") as f:
            f.write('t-alice,alice,u-alice,"devs"\nt-root,root,u-root,"system:masters"\nt-monitor,monitor,u-m,"system:monitoring"\n')
        self.server = EtcdServer(self.keelson, folder, self.etcd.url, "10.1.2.3", self.pki)
        self.server.arguments += ["--tracing-config-file=" + config, "--token-auth-file=" + tokens]
        self.server.start()
        self.hooks = serve_webhook(self.pki)
        with open(os.path.join(self.pki, "ca.crt"), "rb") as f:
            self.ca = base64.b64encode(f.read()).decode()
        client = Client(self.server)
        client.must(201, "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        client.must(201, "POST", "/api/v1/namespaces/%s/serviceaccounts" % NAMESPACE, {"metadata": {"name": "default"}})
        client.close()

    def send(self, case):
        """Sends a case's request; its status and audit ID."""
        client = Client(self.server)
        hooks = hook_configurations(case, self.hooks, self.ca)
        for resource, hook in hooks:
            client.must(201, "POST", "/apis/admissionregistration.k8s.io/v1/" + resource, hook)
        if hooks:
            self.wait_for_hooks(client, len(hooks))
        # A consistent list waits for the watch cache: a write that finds it behind would try twice.
        for resource in ("configmaps", "pods"):
            client.must(200, "GET", "/api/v1/namespaces/%s/%s?limit=1" % (NAMESPACE, resource))
        status, audit_id = self.exchange(case["request"])
        for resource, hook in hooks:
            client.must(200, "DELETE", "/apis/admissionregistration.k8s.io/v1/%s/%s" % (resource, hook["metadata"]["name"]))
        client.close()
        return status, audit_id

    def wait_for_hooks(self, client, count):
        """Until a dry run calls all of them: configurations are followed, not read with each request."""
        for attempt in range(1000):
            before = len(Webhook.seen)
            client.must(201, "POST", "/api/v1/namespaces/%s/configmaps?dryRun=All" % NAMESPACE, {"metadata": {"name": "probe-%d" % attempt}})
            if len(Webhook.seen) - before == count:
                return
        raise AssertionError("the webhooks were not called")

    def exchange(self, request):
        context = ssl.create_default_context(cafile=os.path.join(self.pki, "ca.crt"))
        headers = {"Accept": "application/json", "User-Agent": "corpus/1"}
        if request.get("token"):
            headers["Authorization"] = "Bearer " + request["token"]
        else:
            context.load_cert_chain(os.path.join(self.pki, "admin.crt"), os.path.join(self.pki, "admin.key"))
        body = request.get("rawBody")
        if "body" in request:
            body = json.dumps(request["body"])
        if body is not None:
            headers["Content-Type"] = "application/json"
        headers.update(request.get("headers") or {})
        connection = http.client.HTTPSConnection("127.0.0.1", self.server.port, timeout=60, context=context)
        connection.request(request["method"], request["path"].replace("${ns}", NAMESPACE), body, headers)
        response = connection.getresponse()
        response.read()
        connection.close()
        return response.status, response.getheader("Audit-Id")

    def end(self):
        self.server.stop()
        spans = self.collector.end()
        self.etcd.stop()
        return spans


def pattern_of(text):
    """A golden's text with what is volatile in it as wildcards."""
    parts = re.split(r"(\$\{[\w-]+\})", text)
    return "".join(re.escape(NAMESPACE) if part == "${ns}" else ".+" if part.startswith("${") else re.escape(part) for part in parts)


def same_value(golden, ours, volatile):
    if isinstance(golden, int):
        return isinstance(ours, int) and (volatile or golden == ours)
    if golden == "${port}":
        return isinstance(ours, int)
    return isinstance(ours, str) and re.fullmatch(pattern_of(golden), ours, re.S) is not None


def attribute_differences(golden, ours, volatile):
    """Sizes depend on the length of names here; in events counts do, too."""
    for key in sorted(golden.keys() | ours.keys()):
        if key not in ours or key not in golden:
            yield "attribute %s: %s" % (key, "missing" if key not in ours else "too many")
        elif not same_value(golden[key], ours[key], volatile or key.endswith(".size")):
            yield "attribute %s: %r, not %r" % (key, ours[key], golden[key])


def span_differences(golden, ours):
    name = pattern_of(golden["name"])
    if not re.fullmatch(name, ours["name"]):
        yield "name %r, not %r" % (ours["name"], golden["name"])
        return
    for key in ("kind", "scope", "parent", "flags"):
        if golden.get(key) != ours.get(key):
            yield "%s: %s %r, not %r" % (golden["name"], key, ours.get(key), golden.get(key))
    if golden.get("traceState", "") != ours["traceState"]:
        yield "%s: traceState %r" % (golden["name"], ours["traceState"])
    if (golden.get("trace") == "client's") != (ours["traceId"] == CLIENT_TRACE):
        yield "%s: trace %s" % (golden["name"], ours["traceId"])
    if golden.get("links", []) != ours["links"]:
        yield "%s: links %r, not %r" % (golden["name"], ours["links"], golden.get("links", []))
    if golden.get("status") and golden["status"] != ours["status"]:
        yield "%s: status %r, not %r" % (golden["name"], ours["status"], golden["status"])
    for difference in attribute_differences(golden["attributes"], ours["attributes"], False):
        yield "%s: %s" % (golden["name"], difference)
    want, have = golden.get("events", []), ours["events"]
    if [e["name"] for e in want] != [e["name"] for e in have]:
        yield "%s: events %s, not %s" % (golden["name"], [e["name"] for e in have], [e["name"] for e in want])
        return
    for expected, seen in zip(want, have):
        for difference in attribute_differences(expected["attributes"], seen["attributes"], True):
            yield "%s: event %s: %s" % (golden["name"], expected["name"], difference)


class Spans:
    """All spans of a run, by request."""

    def __init__(self, spans):
        self.by_id = {span["spanId"]: span for span in spans}
        self.children = {}
        for span in spans:
            self.children.setdefault(span["parentSpanId"], []).append(span)
        self.of = {}
        for span in spans:
            audit_id = span["attributes"].get("audit-id")
            if audit_id:
                self.of.setdefault(audit_id, []).append(span)

    def tree(self, audit_id):
        """The spans of a request, numbered, each with its parent's number."""
        mine = self.of.get(audit_id)
        if not mine:
            return []
        root = mine[0]
        while root["parentSpanId"] in self.by_id:
            root = self.by_id[root["parentSpanId"]]
        found, stack = [], [root]
        while stack:  # each before its children, those by start
            span = stack.pop()
            found.append(span)
            stack += sorted(self.children.get(span["spanId"], []), key=lambda child: -child["start"])
        numbers = {span["spanId"]: i + 1 for i, span in enumerate(found)}
        out = []
        for span in found:
            span = dict(span)
            remote = span["parentSpanId"] == CLIENT_SPAN
            span["parent"] = "remote" if remote else numbers.get(span["parentSpanId"])
            out.append(span)
        return out


def case_differences(case, status, ours):
    if case["status"] != status:
        yield "status %d, not %d" % (status, case["status"])
    golden = case.get("spans", [])
    if [s["name"] for s in golden] != [s["name"] for s in ours] and len(golden) != len(ours):
        yield "spans %s, not %s" % ([s["name"] for s in ours], [s["name"] for s in golden])
        return
    for expected, seen in zip(golden, ours):
        yield from span_differences(expected, seen)


def run_cases(arguments, folder, name, golden, seen):
    rate = re.search(r"samplingRatePerMillion (\d+)", golden["config"])
    run = Run(arguments, os.path.join(folder, name), int(rate.group(1)) if rate else None)
    sent = [(case,) + run.send(case) for case in golden["cases"]]
    spans = run.end()
    seen += spans
    by_request = Spans(spans)
    failures = {}
    for case, status, audit_id in sent:
        differences = list(case_differences(case, status, by_request.tree(audit_id)))
        if differences:
            failures["%s/%s" % (name, case["name"])] = differences
    unasked = [s for s in spans if rate is None and s["traceId"] != CLIENT_TRACE]
    if unasked:
        failures["%s/unsampled" % name] = ["%d spans without a client's traceparent" % len(unasked)]
    return len(golden["cases"]) + (0 if rate else 1), failures


def run_startup(keelson, suites, folder, name, path):
    replay = os.path.join(os.path.dirname(os.path.abspath(suites)), "tools", "audit_replay.py")
    if not os.path.exists(replay):
        skip("no audit_replay.py beside the suites: " + replay)
    done = subprocess.run([sys.executable, replay, "--server", keelson + " --data-dir={data}", "--names-only", path], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=600)
    counts = re.search(r"(\d+) passed, (\d+) failed\s*$", done.stdout)
    if not counts:
        sys.exit("audit_replay.py did not end:\n" + done.stdout[-2000:])
    failed = re.findall(r"^FAIL (\S+)", done.stdout, re.M)
    return int(counts.group(1)) + int(counts.group(2)), {"%s/%s" % (name, f.split("/")[-1]): ["see audit_replay.py"] for f in failed}


def run_without_goldens(arguments, folder):
    """Spans of Kubernetes' tracing test that the goldens do not have: steps of a DELETE with a body, the serializer of a watch in protobuf."""
    run = Run(arguments, os.path.join(folder, "without-goldens"), None)
    trace = {"traceparent": "00-%s-%s-01" % (CLIENT_TRACE, CLIENT_SPAN)}
    path = "/api/v1/namespaces/${ns}/configmaps"
    run.exchange({"method": "POST", "path": path, "body": {"metadata": {"name": "gone"}}})
    run.exchange({"method": "GET", "path": path + "?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", "headers": dict(trace, Accept="application/vnd.kubernetes.protobuf")})
    run.exchange({"method": "DELETE", "path": path + "/gone", "body": {"kind": "DeleteOptions", "apiVersion": "v1"}, "headers": trace})
    spans = {span["name"]: span for span in run.end()}
    failures = {}
    events = [event["name"] for event in spans["Delete"]["events"]]
    wanted = ["limitedReadBody succeeded", "Decoded delete options", "Recorded the audit event", "About to delete object from database", "Object deleted from database"]
    if events[:5] != wanted:
        failures["without-goldens/delete"] = ["events %s" % events]
    watch = spans["WatchServer.HandleHTTP"]["attributes"]
    if watch["mediaType"] != "application/vnd.kubernetes.protobuf;stream=watch" or '"encoder":"raw-protobuf"' not in watch["encoder"]:
        failures["without-goldens/watch"] = [repr(watch)]
    return 2, failures


def check_resource(golden, seen):
    """Every resource and scope that upstream showed, of those that we make spans of, and no scope that it has not."""
    failures = {}
    scopes = {entry[2] for entry in golden["seen"]}
    for span in seen:
        resource = span["resource"]
        if set(resource) != {"service.name", "service.instance.id"} or resource["service.name"] != "apiserver" or \
                not resource["service.instance.id"].startswith("apiserver-"):
            failures["resource/resource"] = [repr(resource)]
        if span["scope"] not in scopes or span["scopeVersion"] or span["schemaUrl"]:
            failures["resource/scope"] = [span["scope"]]
    missing = scopes - {span["scope"] for span in seen}
    if missing:
        failures["resource/scopes"] = sorted(missing)
    return 3, failures


def main():
    keelson, folder, collector = (os.path.abspath(path) for path in sys.argv[1:4])
    suites = os.environ.get("KEELSON_SUITES") or os.path.join(os.path.dirname(source_root()), "shared", "testdata")
    files = sorted(glob.glob(os.path.join(suites, "tracing", "*.json")))
    if not files:
        skip("no tracing goldens in %s: set KEELSON_SUITES" % os.path.join(suites, "tracing"))
    subprocess.run(["rm", "-rf", folder], check=True)
    os.makedirs(folder)
    failures, seen, resources = {}, [], []
    for path in files:
        name = os.path.splitext(os.path.basename(path))[0]
        with open(path) as f:
            golden = json.load(f)
        if golden.get("startup"):
            total, failed = run_startup(keelson, suites, folder, name, path)
        elif "cases" in golden:
            total, failed = run_cases((keelson, collector), folder, name, golden, seen)
        else:
            resources.append((name, golden))
            continue
        print("%s: %d of %d" % (name, total - len(failed), total))
        failures.update(failed)
    for name, golden in resources:
        if "seen" in golden:
            total, failed = check_resource(golden, seen)
            print("%s: %d of %d" % (name, total - len(failed), total))
            failures.update(failed)
    total, failed = run_without_goldens((keelson, collector), folder)
    print("without goldens: %d of %d" % (total - len(failed), total))
    failures.update(failed)
    expected = read_expected(EXPECTED)
    for name in sorted(failures):
        print("%s: %s" % ("differs as expected" if name in expected else "FAILED", name))
        for difference in failures[name][:5]:
            print("    " + difference)
    for name in sorted(expected.keys() - failures.keys()):
        print("passes now, take it off the list: %s" % name)
    sys.exit(1 if failures.keys() - expected.keys() else 0)


if __name__ == "__main__":
    main()
