#!/usr/bin/env python3
"""Hostile clients against the whole server while an ordinary user is served. usage: hostile_test.py KEELSON WORK_FOLDER

The cases are those of test/http/hostile_test.py that need no long timeouts. The good client is a service account with one right, so that no
group exempts it from the limits of requests in flight. Afterwards the metrics are scraped: what clients made up is not in them.
Then definitions and policies that are accepted, and make small requests cost minutes, all memory or the thread's stack.
"""
import importlib.util
import json
import os
import re
import shutil
import sys
import time

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


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
CPU_MAX = 5  # seconds for one request; without bounds each of these takes ten times that, or gigabytes


def items(schema):
    return {"type": "array", "items": schema}


# name, schema of spec, spec, expected status and part of the answer
MULTIPLIED = [
    ("alternatives", items({"type": "integer", "anyOf": [{"maximum": -1}] * 2500 + [{}]}), [1] * 40000,
     422, "must not take more than 40000000 steps"),
    ("required names", items({"type": "object", "required": ["p%d" % i for i in range(5000)]}), [{}] * 40000, 422, "Required value"),
    ("defaults", items({"type": "object", "properties": {"a": {"type": "string", "default": "x" * 50000}}}), [{}] * 40000,
     400, "defaults of the schema add more than"),
    ("rules", items({"type": "integer", "x-kubernetes-validations": [{"rule": "true"}] * 2500}), [1] * 40000,
     422, "running out of cost budget"),
]


def timed(server, what, send):
    """The problems of one request, which `send` makes and checks."""
    before = server.cpu_seconds()
    problem = send()
    cpu = server.cpu_seconds() - before
    print("%s: %.2f s of CPU, %d MB at most" % (what, cpu, server.memory_kb("VmHWM") // 1024))
    if cpu > CPU_MAX:
        problem = (problem or "") + " %.1f s of CPU" % cpu
    return ["%s: %s" % (what, problem)] if problem else []


def check_multiplied(server, client):
    problems = []
    for number, (name, spec_schema, spec, expected, part) in enumerate(MULTIPLIED):
        plural, kind = "w%d" % number, "W%d" % number
        client.must(201, "POST", CRDS, {"metadata": {"name": plural + ".example.com"}, "spec": {
            "group": "example.com", "scope": "Cluster", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": spec_schema}}}}]}})
        path = "/apis/example.com/v1/" + plural
        while client.request("GET", path)[0] != 200:
            time.sleep(0.05)

        def send():
            status, answer = client.request("POST", path, {
                "apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "a"}, "spec": spec})
            if status != expected or part not in json.dumps(answer):
                return "%d %s" % (status, str(answer)[:200])
            return None
        problems += timed(server, name, send)
    return problems


def check_policy_variables(server, client):
    """4,000 variables, each of which refers to the one before, ended the process."""
    last = 4000
    variables = [{"name": "v%d" % i, "expression": "variables.v%d" % (i - 1) if i else "1"} for i in range(last)]
    client.must(201, "POST", POLICIES, {"metadata": {"name": "chain"}, "spec": {
        "matchConstraints": {"resourceRules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]},
        "variables": variables, "validations": [{"expression": "variables.v%d == 1" % (last - 1)}]}})
    client.must(201, "POST", POLICIES.replace("policies", "policybindings"), {
        "metadata": {"name": "chain"}, "spec": {"policyName": "chain", "validationActions": ["Deny"]}})

    def send():
        for number in range(200):  # until the policy is in force
            status, answer = client.request("POST", NAMESPACE + "/configmaps", config_map("chain%d" % number, {}))
            if status != 201:
                return None if "too many variables that refer to each other" in json.dumps(answer) else str(answer)[:200]
            time.sleep(0.05)
        return "the policy is not in force"
    return timed(server, "variables of a policy", send)


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
        problems = check_metrics(client) + check_multiplied(server, client) + check_policy_variables(server, client)
        print("\n".join(problems))
        client.close()
        return 1 if failed or problems else 0
    finally:
        server.stop()


if __name__ == "__main__":
    sys.exit(main())
