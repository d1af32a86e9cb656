#!/usr/bin/env python3
"""Starts kube-apiserver and Keelson with the same wrong flags and files and prints where the errors differ.
usage: interop/startup_sweep.py KEELSON WORK_FOLDER [--bin FOLDER] [--only REGEX] [--sample PERCENT]

Every flag of kube-apiserver gets values that are empty, of another type, negative, too large or name no file; every field of each file of
configuration is left out, emptied, made of another type, too long, unknown or said twice. The etcd that both are given does not answer, so a
start ends with the error or is stopped once it waits for etcd. Exit code 0 where everything is the same, 1 where something differs. It is a
tool to find differences, not a test.
"""
import argparse
import base64
import copy
import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

START_TIMEOUT = 20  # seconds
POLL = 0.03
VALUES = {
    "int": ["", "x", "-1", "0", "99999999999999999999", "1.5", "70000"],
    "int32": ["", "x", "-1", "0", "3000000000"],
    "duration": ["", "x", "-1s", "0", "5", "1h30", "999999h", "1ns"],
    "bool": ["", "x", "2", "TRUE"],
    "string": ["", "x", "/no/such/file", " ", "a/b", "https://x", "{garbage}", "{folder}"],
    "strings": ["", "x", "a,,b", "*", "a,a"],
    "float": ["x", "-1", "0", "2", "NaN"],
    "ip": ["x", "", "1.2.3.4", "::1"],
    "stringToString": ["x", "x=y", "=1", "a=b,c"],
    "mapStringBool": ["x", "x=true", "=true"],
    "namedCertKey": ["x", "a,b", "a:b"],
    "portRange": ["x", "1-2", "5-1"],
}
WAITS = re.compile(rb"connection refused|Waiting for etcd")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def kubeconfig():
    return {"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1/x"}}], "users": [{"name": "u", "user": {}}]}


def documents(folder):
    """flag -> (a good file, flags that it needs)."""
    hook, authority, key = (os.path.join(folder, name) for name in ("hook.kubeconfig", "ca.crt", "ca.key"))
    secret = base64.b64encode(b"0" * 32).decode()
    with open(authority) as f:
        pem = f.read()
    return {
        "authentication-config": ({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": [{
                "issuer": {"url": "https://issuer.example", "discoveryURL": "https://d.example/.well-known", "certificateAuthority": pem,
                           "audiences": ["a", "b"], "audienceMatchPolicy": "MatchAny"},
                "claimValidationRules": [{"claim": "hd", "requiredValue": "x"}, {"expression": "claims.x == 'y'", "message": "m"}],
                "claimMappings": {"username": {"claim": "sub", "prefix": "p:"}, "groups": {"expression": "claims.groups"}, "uid": {"claim": "uid"},
                                  "extra": [{"key": "example.com/a", "valueExpression": "claims.a"}]},
                "userValidationRules": [{"expression": "!user.username.startsWith('system:')", "message": "no"}]}],
            "anonymous": {"enabled": True, "conditions": [{"path": "/livez"}]}}, {}),
        "authorization-config": ({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration", "authorizers": [
                {"type": "Node", "name": "node"}, {"type": "RBAC", "name": "rbac"}, {"type": "Webhook", "name": "hook", "webhook": {
                    "timeout": "3s", "subjectAccessReviewVersion": "v1", "matchConditionSubjectAccessReviewVersion": "v1", "failurePolicy": "NoOpinion",
                    "authorizedTTL": "10s", "unauthorizedTTL": "10s", "cacheAuthorizedRequests": True,
                    "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": hook},
                    "matchConditions": [{"expression": "has(request.resourceAttributes)"}, {"expression": "request.user != 'x'"}]}}]}, {"authorization-mode": None}),
        "encryption-provider-config": ({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration", "resources": [
                {"resources": ["secrets", "configmaps", "*.apps"], "providers": [
                    {"aescbc": {"keys": [{"name": "k1", "secret": secret}, {"name": "k2", "secret": secret}]}}, {"aesgcm": {"keys": [{"name": "k1", "secret": secret}]}},
                    {"secretbox": {"keys": [{"name": "k1", "secret": secret}]}}, {"identity": {}}]},
                {"resources": ["events"], "providers": [{"identity": {}}]}]}, {}),
        "audit-policy-file": ({
            "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "omitManagedFields": True, "rules": [
                {"level": "Metadata", "users": ["a"], "userGroups": ["g"], "verbs": ["get"], "namespaces": ["n"], "omitStages": ["Panic"], "omitManagedFields": False,
                 "resources": [{"group": "", "resources": ["pods", "pods/log"], "resourceNames": ["x"]}]},
                {"level": "None", "nonResourceURLs": ["/healthz*", "/x"]}, {"level": "RequestResponse"}]}, {"audit-log-path": "-"}),
        "egress-selector-config-file": ({
            "apiVersion": "apiserver.k8s.io/v1beta1", "kind": "EgressSelectorConfiguration", "egressSelections": [
                {"name": "cluster", "connection": {"proxyProtocol": "HTTPConnect", "transport": {"tcp": {
                    "url": "https://127.0.0.1:1", "tlsConfig": {"caBundle": authority, "clientCert": authority, "clientKey": key}}}}},
                {"name": "controlplane", "connection": {"proxyProtocol": "GRPC", "transport": {"uds": {"udsName": "/none.sock"}}}},
                {"name": "etcd", "connection": {"proxyProtocol": "Direct"}}]}, {}),
        "tracing-config-file": ({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "TracingConfiguration", "endpoint": "127.0.0.1:1", "samplingRatePerMillion": 100}, {}),
        "admission-control-config-file": ({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": [
                {"name": "PodSecurity", "configuration": {
                    "apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration",
                    "defaults": {"enforce": "baseline", "enforce-version": "latest", "audit": "restricted", "audit-version": "v1.20", "warn": "privileged", "warn-version": "latest"},
                    "exemptions": {"usernames": ["u"], "runtimeClasses": ["r"], "namespaces": ["n"]}}},
                {"name": "EventRateLimit", "configuration": {
                    "apiVersion": "eventratelimit.admission.k8s.io/v1alpha1", "kind": "Configuration",
                    "limits": [{"type": "Server", "qps": 5, "burst": 6}, {"type": "Namespace", "qps": 5, "burst": 6, "cacheSize": 10}]}},
                {"name": "ResourceQuota", "configuration": {
                    "apiVersion": "apiserver.config.k8s.io/v1", "kind": "ResourceQuotaConfiguration", "limitedResources": [
                        {"resource": "pods", "apiGroup": "", "matchContains": [".cpu"], "matchScopes": [{"scopeName": "PriorityClass", "operator": "In", "values": ["x"]}]}]}},
                {"name": "ValidatingAdmissionWebhook", "configuration": {
                    "apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration", "kubeConfigFile": hook}}]}, {"enable-admission-plugins": "EventRateLimit"}),
    }


def paths_of(value, path=()):
    yield path
    for key in (value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()):
        yield from paths_of(value[key], path + (key,))


def at(value, path):
    for key in path:
        value = value[key]
    return value


def with_change(value, path, change):
    """`change` is (new value,), or () to leave the field out."""
    if not path:
        return change[0]
    value = copy.deepcopy(value)
    holder = at(value, path[:-1])
    if change:
        holder[path[-1]] = change[0]
    else:
        del holder[path[-1]]
    return value


def changes_of(value, path):
    old = at(value, path)
    if path:
        yield ()
    for new in (None, "", "x", -1, 1.5, True, [], {}, ["x"], [1], {"unknown": 1}) if path else (None, "x", [], {}):
        if new != old:
            yield (new,)
    if isinstance(old, str):
        yield from ((new,) for new in ("a" * 300, " " + old, old + "/", "v1", "-", "*"))
    elif isinstance(old, list) and old:
        yield from ((old + old,), ([None],))
    elif isinstance(old, dict):
        yield (dict(old, unknownField=1),)
    elif isinstance(old, bool):
        yield from ((not old,), ("true",))
    elif isinstance(old, int):
        yield from ((0,), (2 ** 40,), (str(old),))


class Sweep:
    def __init__(self, options):
        self.folder = os.path.abspath(options.folder)
        os.makedirs(self.folder, exist_ok=True)
        self.real = os.path.join(options.bin, "kube-apiserver")
        self.ours = os.path.abspath(options.keelson)
        quiet = dict(check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder)
        subprocess.run(["openssl", "genrsa", "-out", "sa.key", "2048"], **quiet)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=ca", "-days", "2"], **quiet)
        with open(os.path.join(self.folder, "hook.kubeconfig"), "w") as f:
            json.dump(kubeconfig(), f)
        self.garbage = os.path.join(self.folder, "garbage")
        with open(self.garbage, "w") as f:
            f.write("garbage: [")
        key = os.path.join(self.folder, "sa.key")
        self.flags = {"etcd-servers": "http://127.0.0.1:1", "service-account-issuer": "https://x", "service-account-key-file": key,
                      "service-account-signing-key-file": key, "service-cluster-ip-range": "10.0.0.0/24", "authorization-mode": "Node,RBAC",
                      "advertise-address": "127.0.0.1", "bind-address": "127.0.0.1"}
        self.same = self.different = 0

    def start(self, binary, flags):
        """The output of a start: its errors, or ["waits"] when it got as far as etcd."""
        place = tempfile.mkdtemp(dir=self.folder)
        log = os.path.join(place, "log")
        given = dict(self.flags, **{"cert-dir": place + "/certs", "secure-port": str(free_port())})
        given.update(flags)
        with open(log, "wb") as out:
            process = subprocess.Popen([binary] + ["--%s=%s" % item for item in given.items() if item[1] is not None], stdout=out, stderr=out, cwd=place)
        end, waits = time.time() + START_TIMEOUT, False
        while process.poll() is None and time.time() < end and not waits:
            with open(log, "rb") as f:
                waits = bool(WAITS.search(f.read()))
            time.sleep(POLL)
        process.kill()
        process.wait()
        with open(log, encoding="utf-8", errors="replace") as f:
            text = f.read().replace(place, "<folder>").replace(given["secure-port"] or "<port>", "<port>")
        shutil.rmtree(place)
        errors = re.findall(r'"command failed" err=(.*)', text) + re.findall(r"^Error: (.*)", text, re.M)
        return errors or (["waits"] if waits or "127.0.0.1:1" in text else [text[-300:]])

    def compare(self, title, flags):
        real, ours = self.start(self.real, flags), self.start(self.ours, flags)
        if real == ours:
            self.same += 1
            return
        self.different += 1
        print("%s\n    kube-apiserver: %s\n    keelson:        %s" % (title, " | ".join(real), " | ".join(ours)), flush=True)

    def named_flags(self):
        text = subprocess.run([self.real, "--help"], capture_output=True, text=True, check=True).stdout
        return re.findall(r"^ +(?:-\w, )?--([a-z0-9-]+)(?: (\w+))?", text, re.M)

    def cases(self):
        """(title, flags) of every start."""
        for name, kind in self.named_flags():
            if name in ("help", "version"):
                continue
            for value in VALUES.get(kind or "bool", VALUES["string"]):
                value = value.replace("{garbage}", self.garbage).replace("{folder}", self.folder)
                yield "--%s=%s" % (name, value), {name: value}
        for name in self.flags:
            yield "without --%s" % name, {name: None}
        for name, (document, needs) in documents(self.folder).items():
            path = os.path.join(self.folder, "document.yaml")
            for field in paths_of(document):
                for change in changes_of(document, field):
                    with open(path, "w") as f:
                        json.dump(with_change(document, field, change), f)
                    yield "--%s %s %s" % (name, ".".join(map(str, field)), json.dumps(change[0])[:80] if change else "left out"), dict(needs, **{name: path})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("keelson")
    parser.add_argument("folder")
    parser.add_argument("--bin", default=os.path.expanduser("~/.cache/keelson/bin"))
    parser.add_argument("--only", default="", help="only starts whose title matches")
    parser.add_argument("--sample", type=float, default=100, help="percent of the starts")
    options = parser.parse_args()
    sweep, chance = Sweep(options), random.Random(1)
    for title, flags in sweep.cases():
        if re.search(options.only, title) and chance.random() * 100 < options.sample:
            sweep.compare(title, flags)
    print("%d starts, %d differ" % (sweep.same + sweep.different, sweep.different))
    sys.exit(1 if sweep.different else 0)


if __name__ == "__main__":
    main()
