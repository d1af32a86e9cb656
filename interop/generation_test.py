#!/usr/bin/env python3
"""When metadata.generation moves: kube-apiserver and Keelson given the same objects one after the other. usage: generation_test.py KEELSON WORK_FOLDER
BIN_FOLDER

Most kinds count a change of spec in which nil and empty are the same; NetworkPolicies and webhook configurations count what reflect.DeepEqual
sees, to which an empty list is a change from none.
"""
import copy
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from corrupt_objects_test import ask  # noqa: E402
from rig import compare  # noqa: E402

POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
INGRESSES = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
HOOKS = "/apis/admissionregistration.k8s.io/v1/%swebhookconfigurations"
HOOK = {"name": "a.example.com", "clientConfig": {"url": "https://127.0.0.1/x"}, "sideEffects": "None", "admissionReviewVersions": ["v1"]}
POD = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def cases():
    """(collection, field, values of it one after the other)."""
    yield POLICIES, "spec", [{"podSelector": {}}, {"podSelector": {}}, {"podSelector": {"matchLabels": {}}}, {"podSelector": {}, "ingress": []}, {"podSelector": {}},
                             {"podSelector": {}, "ingress": [{}]}, {"podSelector": {}, "ingress": [{"from": [], "ports": []}]}, {"podSelector": {}, "ingress": [{"from": None}]},
                             {"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]}, {"podSelector": {}, "ingress": [{"ports": [{"port": 80, "protocol": "TCP"}]}]}]
    for kind in ("validating", "mutating"):
        yield HOOKS % kind, "webhooks", [[HOOK], [HOOK], [dict(HOOK, rules=[])], [dict(HOOK, matchConditions=[])], [HOOK], [dict(HOOK, timeoutSeconds=10)], [dict(HOOK, timeoutSeconds=9)],
                                         [], None, [], [HOOK]]
    yield INGRESSES, "spec", [{"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}, {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}, "rules": [], "tls": []}]
    yield DEPLOYMENTS, "spec", [{"selector": {"matchLabels": {"a": "b"}}, "template": POD}, {"selector": {"matchLabels": {"a": "b"}, "matchExpressions": []}, "template": POD},
                                {"selector": {"matchLabels": {"a": "b"}}, "template": POD, "replicas": 2}]


def generations(server):
    """collection, step and value → the generation after it."""
    found = {}
    for collection, field, values in cases():
        name = "g-" + collection.rsplit("/", 1)[1]
        for number, value in enumerate(values):
            body = {"metadata": {"name": name}, field: copy.deepcopy(value)}
            if number == 0:
                status, answer = ask(server, "POST", collection, body)
            else:
                body["metadata"]["resourceVersion"] = version
                status, answer = ask(server, "PUT", collection + "/" + name, body)
            if status not in (200, 201):
                raise RuntimeError("%s: %d %s" % (collection, status, answer))
            version = answer["metadata"]["resourceVersion"]
            found["%s, step %d: %s" % (collection.rsplit("/", 1)[1], number, str(value)[-70:])] = answer["metadata"].get("generation")
    return found


if __name__ == "__main__":
    # The configurations would judge our own writes.
    sys.exit(compare(__doc__, generations, real_flags=["--disable-admission-plugins=ValidatingAdmissionWebhook,MutatingAdmissionWebhook"]))
