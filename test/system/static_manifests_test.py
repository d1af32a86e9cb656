#!/usr/bin/env python3
"""Static admission manifests (gate ManifestBasedAdmissionControlConfig). usage: static_manifests_test.py KEELSON WORK_FOLDER

Policies and webhooks from files judge writes, also those of admission's own configuration; a changed folder is read while the server runs, a broken one
changes nothing; their names are reserved; bad folders end the start with upstream's texts.
"""
import base64
import hashlib
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, Server, config_map, free_port  # noqa: E402
from webhook_peer import WebhookPeer  # noqa: E402

GATE = "--feature-gates=ManifestBasedAdmissionControlConfig=true"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
RELOAD_SECONDS = 30

POLICY = """apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %(name)s.static.k8s.io}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: ['', admissionregistration.k8s.io], apiVersions: [v1], resources: [configmaps, validatingadmissionpolicies], operations: [CREATE]}
  validations: [{expression: "object.metadata.name != '%(forbidden)s'", message: "%(forbidden)s is not wanted"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %(name)s-binding.static.k8s.io}
spec: {policyName: %(name)s.static.k8s.io, validationActions: [Deny]}
"""


def write(path, text):
    with open(path + ".new", "w") as f:
        f.write(text)
    os.replace(path + ".new", path)


def configuration(folder, policies=None, webhooks=None):
    path = os.path.join(folder, "admission.yaml")
    text = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n"
    for name, kind, where in (("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyConfiguration", policies),
                              ("MutatingAdmissionWebhook", "WebhookAdmissionConfiguration", webhooks)):
        if where:
            text += ("- name: %s\n  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: %s, staticManifestsDir: '%s'}\n"
                     % (name, kind, where))
    write(path, text)
    return "--admission-control-config-file=" + path


def refused_start(binary, folder, flags):
    command = [binary, "--secure-port=%d" % free_port(), "--data-dir=:memory:", "--embedded-controllers=off"] + flags
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, cwd=folder)
    assert ended.returncode != 0
    return ended.stdout.replace('\\"', '"')


def check_start_errors(binary, folder):
    manifests = os.path.join(folder, "bad")
    os.makedirs(manifests)
    config = configuration(folder, policies=manifests)
    text = refused_start(binary, folder, [config])
    assert ("staticManifestsDir: Forbidden: staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate to be enabled"
            in text), text
    write(os.path.join(manifests, "a.yaml"), POLICY.replace("%(name)s.static.k8s.io}", "plain}", 1) % {"name": "p", "forbidden": "x"})
    text = refused_start(binary, folder, [config, GATE])
    want = ('failed to initialize admission plugin "ValidatingAdmissionPolicy": failed to load static policy manifests from "%s": error loading '
            '%s/a.yaml: "plain" in file "%s/a.yaml" must have a name ending with ".static.k8s.io"' % (manifests, manifests, manifests))
    assert want in text, text
    text = refused_start(binary, folder, [configuration(folder, policies="relative"), GATE])
    assert 'staticManifestsDir: Invalid value: "relative": must be an absolute file path' in text, text


def denied(client, path, name, body):
    status, answer = client.request("POST", path, body)
    return answer["message"] if status == 422 else ""


HOOK = """{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {"name": "hooks.static.k8s.io"},
 "webhooks": [{"name": "hook.example.com", "clientConfig": %s, "admissionReviewVersions": ["v1"], "sideEffects": "None",
  "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["configmaps", "validatingadmissionpolicies"], "operations": ["CREATE"]}]}]}
"""


def check_webhooks(client, peer):
    client.must(201, "POST", CONFIG_MAPS, config_map("hooked", {}))
    client.must(201, "POST", POLICIES, policy_object("hooked"))
    seen = [(path, request["kind"]["kind"], request["name"]) for path, request in peer.take()]
    assert seen == [("/static", "ConfigMap", "hooked"), ("/static", "ValidatingAdmissionPolicy", "hooked")], seen


def policy_object(name):
    return {"metadata": {"name": name}, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}]},
        "validations": [{"expression": "true"}]}}


def check_policies(client, policies):
    message = denied(client, CONFIG_MAPS, "first", config_map("first", {}))
    assert message == ("configmaps \"first\" is forbidden: ValidatingAdmissionPolicy 'p.static.k8s.io' with binding 'p-binding.static.k8s.io' "
                       "denied request: first is not wanted"), message
    # Policies of the API never see policies; static ones do.
    assert "first is not wanted" in denied(client, POLICIES, "first", policy_object("first"))
    status, answer = client.request("POST", POLICIES, policy_object("mine.static.k8s.io"))
    assert status == 422 and answer["message"].endswith(
        'metadata.name: Invalid value: "mine.static.k8s.io": names ending with ".static.k8s.io" are reserved for static manifest-based '
        "configurations and cannot be managed via the API"), answer
    names = [item["metadata"]["name"] for item in client.must(200, "GET", POLICIES)["items"]]
    assert names == ["hooked"], "static policies are no objects of the API: %s" % names
    path = os.path.join(policies, "policy.yaml")
    write(path, "nonsense: [")
    wait("a failed reload", lambda: reloads(client, "failure") == 1)
    assert denied(client, CONFIG_MAPS, "first", config_map("first", {})), "the last good manifests stay in force"
    write(path, POLICY % {"name": "p", "forbidden": "second"})
    wait("the reload", lambda: reloads(client, "success") == 2)
    assert denied(client, CONFIG_MAPS, "second", config_map("second", {}))
    client.must(201, "POST", CONFIG_MAPS, config_map("first", {}))
    identities = set(re.findall(r'apiserver_id_hash="([^"]*)"', client.must(200, "GET", "/metrics").decode()))
    assert identities == {"sha256:" + hashlib.sha256(identity().encode()).hexdigest()}, identities


def identity():
    """Upstream's APIServerID: made of the host name, so that it is the same after a restart."""
    data = b"".join(struct.pack(">H", len(part)) + part for part in (socket.gethostname().encode(), b"kube-apiserver"))
    return "apiserver-" + base64.b32encode(hashlib.sha256(data).digest()[:16]).decode().rstrip("=").lower()


def reloads(client, status):
    text = client.must(200, "GET", "/metrics").decode()
    found = re.search(r'^apiserver_manifest_admission_config_controller_automatic_reloads_total\{[^}]*plugin="ValidatingAdmissionPolicy",status="%s"\} '
                      r'(\S+)' % status, text, re.M)
    return float(found.group(1)) if found else 0


def wait(what, condition):
    end = time.monotonic() + RELOAD_SECONDS
    while not condition():
        assert time.monotonic() < end, "waited in vain: " + what
        time.sleep(0.05)


def main():
    binary, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    check_start_errors(binary, folder)
    policies = os.path.join(folder, "policies")
    os.makedirs(policies)
    write(os.path.join(policies, "policy.yaml"), POLICY % {"name": "p", "forbidden": "first"})
    webhooks = os.path.join(folder, "webhooks")
    os.makedirs(webhooks)
    peer = WebhookPeer(os.path.join(folder, "peer"))
    write(os.path.join(webhooks, "hook.json"), HOOK % json.dumps(peer.client_config("/static")))
    server = Server(binary, os.path.join(folder, "server"), [GATE, configuration(folder, policies=policies, webhooks=webhooks)]).start()
    try:
        check_webhooks(Client(server), peer)
        check_policies(Client(server), policies)
    finally:
        server.stop()
        peer.close()
    print("static manifests: fine")


if __name__ == "__main__":
    main()
