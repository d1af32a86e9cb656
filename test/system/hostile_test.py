#!/usr/bin/env python3
"""Hostile clients against the whole server while an ordinary user is served. usage: hostile_test.py KEELSON WORK_FOLDER

The cases are those of test/http/hostile_test.py that need no long timeouts. The good client is a service account with one right, so that no
group exempts it from the limits of requests in flight. Afterwards the metrics are scraped: what clients made up is not in them.
"""
import importlib.util
import os
import re
import shutil
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "system"))
from harness import Client, Server, config_map  # noqa: E402

spec = importlib.util.spec_from_file_location("hostile", os.path.join(ROOT, "test", "http", "hostile_test.py"))
hostile = importlib.util.module_from_spec(spec)
spec.loader.exec_module(hostile)

NAMESPACE = "/api/v1/namespaces/default"
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"


def good_token(client):
    """Of a service account that may read config maps and nothing else."""
    client.request("POST", NAMESPACE + "/serviceaccounts", {"metadata": {"name": "good"}})
    client.must(201, "POST", RBAC + "/roles", {"metadata": {"name": "good"}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]})
    client.must(201, "POST", RBAC + "/rolebindings", {"metadata": {"name": "good"}, "subjects": [
        {"kind": "ServiceAccount", "name": "good", "namespace": "default"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "good"}})
    client.must(201, "POST", NAMESPACE + "/configmaps", config_map("a", {"k": "v"}))
    return client.must(201, "POST", NAMESPACE + "/serviceaccounts/good/token", {"spec": {}})["status"]["token"]


def check_metrics(client):
    """Labels of a closed set, and a text of a size that does not depend on the requests."""
    status, text = client.request("GET", "/metrics", accept="text/plain")
    text = text.decode()
    groups = set(re.findall(r'apiserver_request_total\{[^}]*group="(g[0-9]+)"', text))
    longest = max(len(line) for line in text.splitlines())
    problems = []
    if status != 200 or not text:
        problems.append("metrics: status %d" % status)
    if groups:
        problems.append("made-up groups in the metrics: %s" % sorted(groups)[:5])
    if longest > 4000:
        problems.append("a line of %d bytes in the metrics" % longest)
    print("metrics: %d lines, longest %d bytes" % (text.count("\n"), longest))
    return problems


def main():
    folder = sys.argv[2]
    shutil.rmtree(folder, ignore_errors=True)
    server = Server(sys.argv[1], folder, in_memory=True).start()
    try:
        client = Client(server)
        target = hostile.Target(server.port, server.process.pid, NAMESPACE + "/configmaps/a", "-", good_token(client))
        watcher = hostile.Watcher(target)
        for name, case in hostile.QUICK.items():
            watcher.run(name, case)
        failed = watcher.judge()
        client.close()
        client = Client(server)
        problems = check_metrics(client)
        print("\n".join(problems))
        client.close()
        return 1 if failed or problems else 0
    finally:
        server.stop()


if __name__ == "__main__":
    sys.exit(main())
