#!/usr/bin/env python3
"""Writes docs/metrics.md from a running server. usage: tools/metrics-doc.py [--check] [KEELSON]

Starts the binary in memory, makes a few requests so that counters have begun, and lists every family of /metrics with its type, stability and
help. --check writes nothing and fails when the page lacks a metric or names one that is neither served nor in the sources.
"""
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

Every metric of `/metrics` on a server that has had a few requests, written by `tools/metrics-doc.py` from the running binary. Counters with labels appear with
their first event, so a quiet server shows fewer, and some (encryption, audit webhooks, egress) only with their capability in use. Names, labels and
buckets are kube-apiserver's, so its dashboards and alerts fit; `keelson_*` are our own. `/metrics/slis` has `kubernetes_healthcheck*` beside these. `keelson
top` shows the most useful ones in the terminal.

| metric | type | stability | meaning |
|---|---|---|---|
"""
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


def in_sources():
    return subprocess.run(["grep", "-rhoE", '"[a-z]+_[a-z0-9_]+"', os.path.join(TOP, "src"), "--include=*.cc", "--include=*.h"], capture_output=True, text=True).stdout


def main():
    arguments = [word for word in sys.argv[1:] if word != "--check"]
    served = families(ask(arguments[0] if arguments else os.path.join(TOP, "build/release/keelson")))
    if "--check" not in sys.argv:
        rows = ["| `%s` | %s | %s | %s |\n" % (name, kind, stability, text.replace("|", "\\|")) for name, (kind, stability, text) in sorted(served.items())]
        with open(PAGE, "w") as f:
            f.write(HEAD + "".join(rows))
        print("%s: %d metrics" % (os.path.relpath(PAGE, TOP), len(rows)))
        return 0
    with open(PAGE) as f:
        documented = set(re.findall(r"^\| `(\w+)` \|", f.read(), re.M))
    sources = in_sources()
    missing = sorted(set(served) - documented)
    gone = sorted(name for name in documented - set(served) if '"%s"' % name not in sources)
    for name in missing:
        print("docs/metrics.md lacks %s: run tools/metrics-doc.py" % name)
    for name in gone:
        print("docs/metrics.md names %s, which is gone: run tools/metrics-doc.py" % name)
    return 1 if missing or gone else 0


if __name__ == "__main__":
    sys.exit(main())
