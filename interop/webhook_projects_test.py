#!/usr/bin/env python3
"""cert-manager and Gatekeeper as local processes, used as their users do, on kube-apiserver and on Keelson with equal answers. usage:
webhook_projects_test.py KEELSON WORK_FOLDER BIN_FOLDER

Their manifests come from the Go module cache, at the versions that cert-manager/ and gatekeeper/ pin. Their webhooks are Services whose cluster IP is a
loopback address. cert-manager: webhook, cainjector and controller; an Issuer and a Certificate until the Secret is there, and one that the webhook
refuses. Gatekeeper: a constraint that refuses a pod, and a mutation. A project whose programs are not built (interop/build.sh NAME) is left out.
"""
import base64
import json
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, os.path.join(os.path.dirname(here), "test", "system")]
from aggregation_test import Kubectl, await_true, check, start  # noqa: E402
from harness import SKIPPED, free_port  # noqa: E402
from projects_test import documents  # noqa: E402
from rig import Client, compare, end  # noqa: E402

PROGRAMS = os.path.abspath(sys.argv[3]) if len(sys.argv) > 3 else ""
CERT_MANAGER, GATEKEEPER = ["cert-manager-webhook", "cert-manager-cainjector", "cert-manager-controller"], ["gatekeeper"]
WAIT = 300  # seconds: a busy machine


def built(names):
    return all(os.path.exists(os.path.join(PROGRAMS, name)) for name in names)


def module(folder, name):
    run = subprocess.run(["go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", name], capture_output=True, text=True, cwd=os.path.join(here, folder))
    return run.stdout.strip()


def service(client, namespace, name, address, port):
    client.must(201, "POST", "/api/v1/namespaces/%s/services" % namespace, {"metadata": {"name": name}, "spec": {"clusterIP": address, "ports": [
        {"name": "https", "port": port}]}})


# ---- cert-manager

def webhook_configuration(kind, path, port):
    """As the chart's."""
    rule = {"apiGroups": ["cert-manager.io", "acme.cert-manager.io"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["*/*"]}
    hook = {"name": "webhook.cert-manager.io", "rules": [rule], "admissionReviewVersions": ["v1"], "matchPolicy": "Equivalent", "timeoutSeconds": 30,
            "failurePolicy": "Fail", "sideEffects": "None",
            "clientConfig": {"service": {"name": "cert-manager-webhook", "namespace": "cert-manager", "path": path, "port": port}}}
    if kind == "Validating":
        hook["namespaceSelector"] = {"matchExpressions": [{"key": "cert-manager.io/disable-validation", "operator": "NotIn", "values": ["true"]}]}
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind + "WebhookConfiguration", "webhooks": [hook], "metadata": {
        "name": "cert-manager-webhook", "annotations": {"cert-manager.io/inject-ca-from-secret": "cert-manager/cert-manager-webhook-ca"}}}


def cert_manager_processes(server, port):
    def program(name, *flags):
        return start(server.folder, name, [os.path.join(PROGRAMS, name), "--kubeconfig=" + server.kubeconfig, *flags])
    return [program("cert-manager-webhook", "--secure-port=%d" % port, "--healthz-port=%d" % free_port(), "--dynamic-serving-ca-secret-namespace=cert-manager",
                    "--dynamic-serving-ca-secret-name=cert-manager-webhook-ca", "--dynamic-serving-dns-names=cert-manager-webhook.cert-manager.svc"),
            program("cert-manager-cainjector", "--leader-elect=false"),
            program("cert-manager-controller", "--leader-elect=false", "--cluster-resource-namespace=cert-manager",
                    "--metrics-listen-address=127.0.0.1:%d" % free_port())]


ISSUER = {"apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": "own", "namespace": "default"}, "spec": {"selfSigned": {}}}
CERTIFICATE = {"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": "web", "namespace": "default"}, "spec": {
    "secretName": "web-tls", "dnsNames": ["web.example.com"], "issuerRef": {"name": "own"}, "privateKey": {"algorithm": "ECDSA", "size": 256}}}


def conditions(answer):
    return sorted((one["type"], one["status"], one.get("reason"), one.get("message")) for one in answer.get("status", {}).get("conditions", []))


def use_cert_manager(kubectl, client, server):
    found = {}
    apply = ["apply", "-f", "-"]
    # The webhook answers when it has its certificate and cainjector has written the authority into the configurations.
    await_true("the issuer is accepted", lambda: kubectl.run(*apply, stdin=json.dumps(ISSUER))[0] == 0, WAIT)
    refused = dict(CERTIFICATE, metadata={"name": "bad", "namespace": "default"}, spec={"secretName": "bad", "issuerRef": {"name": "own"}, "duration": "1m"})
    found["refused certificate"] = kubectl.run(*apply, stdin=json.dumps(refused))[2]
    kubectl.must(*apply, stdin=json.dumps(CERTIFICATE))
    kubectl.must("wait", "--for=condition=Ready", "certificate/web", "--timeout=%ds" % WAIT)
    custom = "/apis/cert-manager.io/v1/namespaces/default/"
    for kind in ("issuers/own", "certificates/web"):
        found[kind] = conditions(client.must(200, "GET", custom + kind))
    requests = client.must(200, "GET", custom + "certificaterequests")["items"]
    # The mutating webhook records the requesting user.
    found["requests"] = [(conditions(one), bool(one["spec"].get("username")), one["spec"].get("usages")) for one in requests]
    secret = client.must(200, "GET", "/api/v1/namespaces/default/secrets/web-tls")
    found["secret"] = (secret["type"], sorted(secret["data"]), secret["metadata"]["annotations"]["cert-manager.io/alt-names"])
    certificate = os.path.join(server.folder, "web.crt")
    with open(certificate, "wb") as f:
        f.write(base64.b64decode(secret["data"]["tls.crt"]))
    found["certificate"] = subprocess.run(["openssl", "x509", "-in", certificate, "-noout", "-ext", "subjectAltName"], capture_output=True, text=True).stdout
    table = kubectl.must("get", "certificates", "--no-headers").split()
    found["kubectl get"] = table[:3]
    # A change: the certificate is issued anew.
    kubectl.must("patch", "certificate", "web", "--type=merge", "-p", json.dumps({"spec": {"dnsNames": ["web.example.com", "www.example.com"]}}))

    def issued():
        annotations = client.must(200, "GET", "/api/v1/namespaces/default/secrets/web-tls")["metadata"]["annotations"]
        return annotations["cert-manager.io/alt-names"] == "web.example.com,www.example.com"
    await_true("the certificate is issued anew", issued, WAIT)
    kubectl.must("delete", "certificate", "web")
    return found


def cert_manager(server, kubectl, client):
    source, port = module("cert-manager", "github.com/cert-manager/cert-manager"), free_port()
    client.must(201, "POST", "/api/v1/namespaces", {"metadata": {"name": "cert-manager"}})
    for _, text in documents(os.path.join(source, "deploy", "crds")):
        kubectl.must("apply", "--server-side", "-f", "-", stdin=text.decode())
    kubectl.must("wait", "--for=condition=Established", "crd", "--all", "--timeout=%ds" % WAIT)
    service(client, "cert-manager", "cert-manager-webhook", "127.96.0.31", port)
    for kind, path in (("Mutating", "/mutate"), ("Validating", "/validate")):
        kubectl.must("apply", "-f", "-", stdin=json.dumps(webhook_configuration(kind, path, port)))
    processes = cert_manager_processes(server, port)
    try:
        return use_cert_manager(kubectl, client, server)
    finally:
        for process in processes:
            end(process)
        for kind in ("mutating", "validating"):
            client.request("DELETE", "/apis/admissionregistration.k8s.io/v1/%swebhookconfigurations/cert-manager-webhook" % kind)


# ---- Gatekeeper

def json_documents(text):
    """kubectl prints one document after the other."""
    decoder, at = json.JSONDecoder(), 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        one, at = decoder.raw_decode(text, at)
        yield one


def gatekeeper_manifests(kubectl, source, port):
    """deploy/gatekeeper.yaml with a port for the Service that needs no privilege. Its Deployments do not run here."""
    printed = kubectl.must("create", "--dry-run=client", "-o", "json", "-f", os.path.join(source, "deploy", "gatekeeper.yaml"))
    items = [one for one in json_documents(printed) if one["kind"] not in ("Deployment", "PodDisruptionBudget", "ResourceQuota")]
    for one in items:
        if one["kind"] == "Service":
            one["spec"].update(clusterIP="127.96.0.32", ports=[{"name": "https", "port": port}])
        for hook in one.get("webhooks", []):
            hook["clientConfig"]["service"]["port"] = port
            hook["timeoutSeconds"] = 30
    return items


def play_kubelet(client, folder):
    """The Secret that Gatekeeper's certificate rotation fills, as the files that a kubelet would project."""
    secret = client.must(200, "GET", "/api/v1/namespaces/gatekeeper-system/secrets/gatekeeper-webhook-server-cert")
    for name, text in (secret.get("data") or {}).items():
        path = os.path.join(folder, name)
        with open(path + ".new", "wb") as f:
            f.write(base64.b64decode(text))
        os.rename(path + ".new", path)
    return "tls.crt" in (secret.get("data") or {})


CONSTRAINT = {"apiVersion": "constraints.gatekeeper.sh/v1beta1", "kind": "K8sRequiredLabels", "metadata": {"name": "pods-must-have-gk"}, "spec": {
    "match": {"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}], "namespaces": ["default"]}, "parameters": {"labels": ["gatekeeper"]}}}
MUTATION = {"apiVersion": "mutations.gatekeeper.sh/v1", "kind": "AssignMetadata", "metadata": {"name": "owner"}, "spec": {
    "match": {"scope": "Namespaced", "kinds": [{"apiGroups": [""], "kinds": ["Pod"]}]}, "location": "metadata.labels.owner", "parameters": {"assign": {"value": "admin"}}}}


def pod(name, labels):
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", "labels": labels}, "spec": {
        "automountServiceAccountToken": False, "containers": [{"name": "c", "image": "i"}]}})


def use_gatekeeper(kubectl, client, source):
    found = {}
    kubectl.must("apply", "-f", os.path.join(source, "example", "templates", "k8srequiredlabels_template.yaml"))
    await_true("the constraint's kind is there", lambda: kubectl.run("apply", "-f", "-", stdin=json.dumps(CONSTRAINT))[0] == 0, WAIT)
    await_true("the mutation is accepted", lambda: kubectl.run("apply", "-f", "-", stdin=json.dumps(MUTATION))[0] == 0, WAIT)

    def refused():
        return "denied the request" in kubectl.run("create", "--dry-run=server", "-f", "-", stdin=pod("bad", {}))[2]
    await_true("a pod without the label is refused", refused, WAIT)

    def mutated():
        code, out, _ = kubectl.run("create", "--dry-run=server", "-o", "jsonpath={.metadata.labels.owner}", "-f", "-", stdin=pod("good", {"gatekeeper": "yes"}))
        return code == 0 and out == "admin"
    await_true("a pod gets its label", mutated, WAIT)
    found["refused pod"] = kubectl.run("create", "-f", "-", stdin=pod("bad", {"a": "b"}))[2]
    kubectl.must("create", "-f", "-", stdin=pod("good", {"gatekeeper": "yes"}))
    found["mutated pod"] = client.must(200, "GET", "/api/v1/namespaces/default/pods/good")["metadata"]["labels"]
    found["refused update"] = kubectl.run("label", "pod", "good", "gatekeeper-")[2]
    bad = dict(MUTATION, metadata={"name": "bad"}, spec=dict(MUTATION["spec"], location="spec.containers"))
    found["refused mutation"] = kubectl.run("apply", "-f", "-", stdin=json.dumps(bad))[2]
    constraint = dict(CONSTRAINT, spec=dict(CONSTRAINT["spec"], enforcementAction="warn"))
    kubectl.must("apply", "-f", "-", stdin=json.dumps(constraint))

    def warned():
        code, _, err = kubectl.run("create", "--dry-run=server", "-f", "-", stdin=pod("bad", {}))
        found["warning"] = err
        return code == 0 and "Warning" in err
    await_true("a pod without the label is warned of", warned, WAIT)
    return found


def gatekeeper(server, kubectl, client):
    source, port, certificates = module("gatekeeper", "github.com/open-policy-agent/gatekeeper/v3"), free_port(), os.path.join(server.folder, "gatekeeper-certs")
    os.makedirs(certificates)
    manifests = gatekeeper_manifests(kubectl, source, port)
    late = [one for one in manifests if one["kind"].endswith("WebhookConfiguration")]
    kubectl.must("apply", "--server-side", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": [one for one in manifests if one not in late]}))
    kubectl.must("wait", "--for=condition=Established", "crd", "--all", "--timeout=%ds" % WAIT)
    kubectl.must("apply", "--server-side", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": late}))
    environment = {"POD_NAMESPACE": "gatekeeper-system", "POD_NAME": "gatekeeper-local", "NAMESPACE": "gatekeeper-system", "CONTAINER_NAME": "manager"}
    os.environ.update(environment)
    process = start(server.folder, "gatekeeper", [
        os.path.join(PROGRAMS, "gatekeeper"), "--kubeconfig=" + server.kubeconfig, "--port=%d" % port, "--host=127.96.0.32", "--cert-dir=" + certificates,
        "--logtostderr", "--exempt-namespace=gatekeeper-system", "--operation=webhook", "--operation=mutation-webhook", "--operation=status",
        "--operation=mutation-status", "--operation=generate", "--disable-opa-builtin={http.send}", "--debug-use-fake-pod", "--shutdown-delay=0",
        "--health-addr=127.0.0.1:%d" % free_port(), "--prometheus-port=%d" % free_port()])
    try:
        await_true("the certificate is there", lambda: play_kubelet(client, certificates), WAIT)
        return use_gatekeeper(kubectl, client, source)
    finally:
        end(process)
        for kind in ("mutating", "validating"):
            client.request("DELETE", "/apis/admissionregistration.k8s.io/v1/%swebhookconfigurations/gatekeeper-%s-webhook-configuration" % (kind, kind))


def answers(server):
    kubectl, client, found = Kubectl(server), Client(server, timeout=120), {}
    client.request("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})  # kube-controller-manager would make it
    for name, programs, use in (("cert-manager", CERT_MANAGER, cert_manager), ("gatekeeper", GATEKEEPER, gatekeeper)):
        if not built(programs):
            continue
        begin = time.monotonic()
        for key, value in use(server, kubectl, client).items():
            found["%s: %s" % (name, key)] = value
        print("%s on %s: %.0f s" % (name, os.path.basename(server.folder), time.monotonic() - begin), flush=True)
    check("something was asked", found)
    return found


if __name__ == "__main__":
    if not built(CERT_MANAGER) and not built(GATEKEEPER):
        print("skipped: neither cert-manager nor Gatekeeper is built (interop/build.sh cert-manager-webhook cert-manager-cainjector cert-manager-controller gatekeeper)")
        sys.exit(SKIPPED)
    sys.exit(compare(__doc__, answers))
