#!/usr/bin/env python3
"""Writes docs/metrics.md from a running server. usage: tools/metrics-doc.py [--check] [KEELSON]

Starts the binary in memory, makes a few requests so that counters have begun, and lists every family of /metrics with its type, stability and
help; then those that the sources define and that appear later. --check writes nothing and fails when the page lacks a metric, names one that is
neither served nor in the sources, or when the dashboard (packaging/grafana) asks for one that is not on the page.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(TOP, "test", "system"))
from harness import Client, Server, config_map  # noqa: E402

PAGE = os.path.join(TOP, "docs", "metrics.md")
HEAD = """# Metrics

Every metric, written by `tools/metrics-doc.py` from the running binary and the sources; the test `docs_metrics` compares. Names, labels and buckets are
kube-apiserver's, so its dashboards and alerts fit; `keelson_*` are our own. `keelson top` shows the most useful ones in the terminal.
`packaging/grafana/keelson.json` (in the package `/usr/share/keelson/grafana/keelson.json`) is a Grafana dashboard for them.

## On a server that has had a few requests

| metric | type | stability | meaning |
|---|---|---|---|
"""
LATER = """
## With their first event
Counters with labels appear with their first event, and some metrics (encryption, webhooks, egress, embedded controllers) with their capability in use.
`kubernetes_healthcheck*` are on `/metrics/slis`.

| metric | type | meaning |
|---|---|---|
"""
DASHBOARD = os.path.join(TOP, "packaging", "grafana", "keelson.json")
MAPS = "/api/v1/namespaces/default/configmaps"


def families(text):
    """name -> (type, stability, help)"""
    found = {}
    for name, help_text in re.findall(r"^# HELP (\S+) (.*)$", text, re.M):
        stability = re.match(r"\[(\w+)\] ", help_text)
        kind = re.search(r"^# TYPE %s (\w+)$" % re.escape(name), text, re.M)
        found[name] = (kind.group(1) if kind else "", stability.group(1).lower() if stability else "", re.sub(r"^\[\w+\] ", "", help_text))
    return found


def ask(binary):
    folder = tempfile.mkdtemp()
    server = Server(binary, folder).start()
    try:
        client = Client(server)
        client.must(201, "POST", MAPS, config_map("a", {"a": "b"}))
        for _ in range(2):
            client.must(200, "GET", MAPS)
        client.request("GET", MAPS + "?watch=1&timeoutSeconds=1")
        client.request("GET", "/nothing")
        client.must(200, "PATCH", MAPS + "/a?fieldManager=x", {"data": {"a": "c"}}, content_type="application/merge-patch+json")
        client.must(200, "DELETE", MAPS + "/a")
        return client.request("GET", "/metrics", accept="text/plain")[1].decode()
    finally:
        server.stop()
        shutil.rmtree(folder)


LITERALS = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
DEFINITION = re.compile(r'(\.name = )?"([a-z]+_[a-z0-9_]+)",\s*(?:(?:\.help =\s*)?%s)?' % LITERALS)


def in_sources():
    """name -> (type, help) of the metrics that the sources define: a name, then its help text."""
    found = {}
    for path in glob.glob(os.path.join(TOP, "src", "**", "*.cc"), recursive=True):
        if path.endswith(("_test.cc", "_bench.cc", "_fuzz.cc")):
            continue
        with open(path) as f:
            source = f.read()
        for match in DEFINITION.finditer(source):
            help_text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', match.group(3) or ""))
            kinds = re.findall(r"(Counter|Gauge|Histogram)s?\b", source[max(0, match.start() - 300):match.start()])
            # A definition without a text is one only as a member of its options, right after the word for its type.
            if kinds and (re.match(r"[A-Z].* ", help_text) or (match.group(1) and re.search(r"(Counter|Gauge|Histogram)s\(\s*\{$", source[:match.start()]))):
                found[match.group(2)] = kinds[-1].lower(), help_text if re.match(r"[A-Z].* ", help_text) else ""
    return found


def in_a_literal(name):
    """Whether the sources have the name at all: what this run did not make appear is not gone."""
    return subprocess.run(["grep", "-rqF", '"%s"' % name, os.path.join(TOP, "src"), "--include=*.cc", "--include=*.h"]).returncode == 0


def of_dashboard():
    with open(DASHBOARD) as f:
        expressions = [target["expr"] for panel in json.load(f)["panels"] for target in panel.get("targets", [])]
    return {re.sub("_bucket$", "", name) for name in re.findall(r"\b((?:apiserver|authentication|etcd|keelson|process)_[a-z0-9_]+)", " ".join(expressions))}


def main():
    arguments = [word for word in sys.argv[1:] if word != "--check"]
    served = families(ask(arguments[0] if arguments else os.path.join(TOP, "build/release/keelson")))
    defined = in_sources()
    if "--check" not in sys.argv:
        rows = ["| `%s` | %s | %s | %s |\n" % (name, kind, stability, text.replace("|", "\\|")) for name, (kind, stability, text) in sorted(served.items())]
        later = ["| `%s` | %s | %s |\n" % (name, kind, text.replace("|", "\\|")) for name, (kind, text) in sorted(defined.items()) if name not in served]
        with open(PAGE, "w") as f:
            f.write(HEAD + "".join(rows) + LATER + "".join(later))
        rows += later
        print("%s: %d metrics" % (os.path.relpath(PAGE, TOP), len(rows)))
        return 0
    with open(PAGE) as f:
        documented = set(re.findall(r"^\| `(\w+)` \|", f.read(), re.M))
    missing = sorted((set(served) | set(defined)) - documented)
    gone = sorted(name for name in documented - set(served) - set(defined) if not in_a_literal(name))
    unknown = sorted(of_dashboard() - documented)
    for name in missing:
        print("docs/metrics.md lacks %s: run tools/metrics-doc.py" % name)
    for name in gone:
        print("docs/metrics.md names %s, which is gone: run tools/metrics-doc.py" % name)
    for name in unknown:
        print("packaging/grafana/keelson.json asks for %s, which docs/metrics.md does not have" % name)
    return 1 if missing or gone or unknown else 0


if __name__ == "__main__":
    sys.exit(main())
