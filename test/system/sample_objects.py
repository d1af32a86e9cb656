"""A small valid object of every resource, for tests that walk over discovery.

SAMPLES has one entry per (group, resource): the object without apiVersion, kind and metadata. NAMES overrides the name where a
kind does not take any. A resource without an entry makes sample() fail: a new resource needs an object here.
"""
import base64
import copy
import subprocess

CONTAINER = {"name": "c", "image": "registry.example/c:1"}
POD = {"spec": {"containers": [CONTAINER]}}
LABELS = {"app": "sample"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER]}}
JOB = {"template": {"spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}}
WORKLOAD = {"spec": {"replicas": 0, "selector": {"matchLabels": LABELS}, "template": TEMPLATE}}
RULES = [{"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothings"]}]
WEBHOOK = {"name": "none.example.com", "clientConfig": {"url": "https://127.0.0.1:1/"}, "rules": RULES, "sideEffects": "None", "admissionReviewVersions": ["v1"]}
ADMISSION, RBAC, STORAGE, RESOURCE = "admissionregistration.k8s.io", "rbac.authorization.k8s.io", "storage.k8s.io", "resource.k8s.io"
REVIEW = {"spec": {"user": "u", "resourceAttributes": {"verb": "get", "resource": "pods"}}}
GB = {"storage": "1Gi"}


def certificate_request():
    """A PEM encoded certificate request, as CertificateSigningRequests carry it."""
    made = subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "/dev/null",
                           "-subj", "/O=example/CN=u"], check=True, capture_output=True)
    return base64.b64encode(made.stdout).decode()


def definition(plural, kind, group):
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
                                               "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}}}}
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}, "scale": scale}}
    return {"spec": {"group": group, "scope": "Namespaced", "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": kind + "List"},
                     "versions": [version]}}


def policy_binding(policy):
    return {"spec": {"policyName": policy, "validationActions": ["Audit"]}}


SAMPLES = {
    ("", "bindings"): {"target": {"kind": "Node", "name": "sample"}},
    ("", "configmaps"): {"data": {"k": "v"}},
    ("", "endpoints"): {"subsets": []},
    ("", "events"): {"involvedObject": {"namespace": "NAMESPACE"}, "reason": "r", "source": {"component": "c"}},
    ("", "limitranges"): {"spec": {"limits": [{"type": "Pod", "max": {"cpu": "1000"}}]}},
    ("", "namespaces"): {},
    ("", "nodes"): {},
    ("", "persistentvolumeclaims"): {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": GB}}},
    ("", "persistentvolumes"): {"spec": {"accessModes": ["ReadWriteOnce"], "capacity": GB, "hostPath": {"path": "/tmp/sample"}}},
    ("", "pods"): POD,
    ("", "podtemplates"): {"template": TEMPLATE},
    ("", "replicationcontrollers"): {"spec": {"replicas": 0, "selector": LABELS, "template": TEMPLATE}},
    ("", "resourcequotas"): {"spec": {"hard": {"count/nothings.example.com": "1"}}},
    ("", "secrets"): {"stringData": {"k": "v"}},
    ("", "serviceaccounts"): {},
    ("", "services"): {"spec": {"ports": [{"port": 80}]}},
    (ADMISSION, "mutatingadmissionpolicies"): {"spec": {
        "matchConstraints": {"resourceRules": RULES}, "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: \"test\", path: \"/a\", value: \"b\"}]"}}]}},
    (ADMISSION, "mutatingadmissionpolicybindings"): {"spec": {"policyName": "none"}},
    (ADMISSION, "mutatingwebhookconfigurations"): {"webhooks": [WEBHOOK]},
    (ADMISSION, "validatingadmissionpolicies"): {"spec": {"matchConstraints": {"resourceRules": RULES}, "validations": [{"expression": "true"}]}},
    (ADMISSION, "validatingadmissionpolicybindings"): policy_binding("none"),
    (ADMISSION, "validatingwebhookconfigurations"): {"webhooks": [WEBHOOK]},
    ("apiextensions.k8s.io", "customresourcedefinitions"): definition("samples", "Sample", "crd.example.com"),
    ("apiregistration.k8s.io", "apiservices"): {"spec": {
        "group": "GROUP", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100, "insecureSkipTLSVerify": True,
        "service": {"namespace": "default", "name": "none"}}},
    ("apps", "controllerrevisions"): {"data": {"a": 1}, "revision": 1},
    ("apps", "daemonsets"): {"spec": {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}},
    ("apps", "deployments"): WORKLOAD,
    ("apps", "replicasets"): WORKLOAD,
    ("apps", "statefulsets"): {"spec": dict(WORKLOAD["spec"], serviceName="s")},
    ("authentication.k8s.io", "selfsubjectreviews"): {},
    ("authentication.k8s.io", "tokenreviews"): {"spec": {"token": "none"}},
    ("authorization.k8s.io", "localsubjectaccessreviews"): {"spec": dict(REVIEW["spec"], resourceAttributes={"verb": "get", "resource": "pods", "namespace": "NAMESPACE"})},
    ("authorization.k8s.io", "selfsubjectaccessreviews"): {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}},
    ("authorization.k8s.io", "selfsubjectrulesreviews"): {"spec": {"namespace": "default"}},
    ("authorization.k8s.io", "subjectaccessreviews"): REVIEW,
    ("autoscaling", "horizontalpodautoscalers"): {"spec": {"maxReplicas": 1, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}},
    ("batch", "cronjobs"): {"spec": {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": JOB}}},
    ("batch", "jobs"): {"spec": dict(JOB, suspend=True)},
    ("certificates.k8s.io", "certificatesigningrequests"): {"spec": {"request": "CSR", "signerName": "example.com/s", "usages": ["client auth"]}},
    ("coordination.k8s.io", "leases"): {"spec": {}},
    ("coordination.k8s.io", "leasecandidates"): {"spec": {"leaseName": "l", "binaryVersion": "1.36.0", "emulationVersion": "1.36.0",
                                                          "strategy": "OldestEmulationVersion"}},
    ("discovery.k8s.io", "endpointslices"): {"addressType": "IPv4", "endpoints": []},
    ("events.k8s.io", "events"): {"regarding": {"namespace": "NAMESPACE"}, "reason": "r", "action": "a", "type": "Normal", "reportingController": "example.com/c",
                                  "reportingInstance": "i", "eventTime": "2026-01-01T00:00:00.000000Z"},
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): {"spec": {"priorityLevelConfiguration": {"name": "exempt"}}},
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): {"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}},
    ("networking.k8s.io", "ingressclasses"): {"spec": {"controller": "example.com/c"}},
    ("networking.k8s.io", "ingresses"): {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}},
    ("internal.apiserver.k8s.io", "storageversions"): {"spec": {}},
    ("networking.k8s.io", "ipaddresses"): {"spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "none"}}},
    ("networking.k8s.io", "networkpolicies"): {"spec": {"podSelector": {}}},
    ("networking.k8s.io", "servicecidrs"): {"spec": {"cidrs": ["10.99.0.0/24"]}},
    ("node.k8s.io", "runtimeclasses"): {"handler": "h"},
    ("policy", "poddisruptionbudgets"): {"spec": {"minAvailable": 0, "selector": {"matchLabels": {"app": "none"}}}},
    (RBAC, "clusterrolebindings"): {"roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}},
    (RBAC, "clusterroles"): {"rules": []},
    (RBAC, "rolebindings"): {"roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}},
    (RBAC, "roles"): {"rules": []},
    (RESOURCE, "deviceclasses"): {"spec": {}},
    (RESOURCE, "resourceclaims"): {"spec": {}},
    (RESOURCE, "resourceclaimtemplates"): {"spec": {"spec": {}}},
    (RESOURCE, "resourceslices"): {"spec": {"driver": "d.example.com", "nodeName": "none", "pool": {"name": "none", "generation": 1, "resourceSliceCount": 1}}},
    ("scheduling.k8s.io", "priorityclasses"): {"value": 1},
    (STORAGE, "csidrivers"): {"spec": {}},
    (STORAGE, "csinodes"): {"spec": {"drivers": []}},
    (STORAGE, "csistoragecapacities"): {"storageClassName": "s"},
    (STORAGE, "storageclasses"): {"provisioner": "example.com/p"},
    (STORAGE, "volumeattachments"): {"spec": {"attacher": "a.example.com", "nodeName": "none", "source": {"persistentVolumeName": "none"}}},
    (STORAGE, "volumeattributesclasses"): {"driverName": "d.example.com", "parameters": {"a": "b"}},
    # Of definition("gadgets", "Gadget", "matrix.example.com").
    ("matrix.example.com", "gadgets"): {"spec": {"replicas": 1}},
}

# The name of the nth object of a resource, for kinds whose names say something.
NAMES = {
    ("", "bindings"): lambda n: "bound-%d" % n,
    ("networking.k8s.io", "ipaddresses"): lambda n: "192.0.2.%d" % (n + 1),
    ("apiextensions.k8s.io", "customresourcedefinitions"): lambda n: "samples%d.crd.example.com" % n,
    ("internal.apiserver.k8s.io", "storageversions"): lambda n: "example.com.sample%d" % n,
    ("apiregistration.k8s.io", "apiservices"): lambda n: "v1.api%d.example.com" % n,
}


def replaced(value, old, new):
    if isinstance(value, dict):
        return {k: replaced(v, old, new) for k, v in value.items()}
    if isinstance(value, list):
        return [replaced(v, old, new) for v in value]
    return new if value == old else value


def sample(group, version, resource, kind, number=0, namespace="default"):
    """The nth object of a resource, ready to be sent; KeyError where SAMPLES does not know the resource."""
    body = copy.deepcopy(SAMPLES[group, resource])
    name = NAMES.get((group, resource), lambda n: "sample-%d" % n)(number)
    if group == "certificates.k8s.io":
        body = replaced(body, "CSR", certificate_request())
    body = replaced(replaced(body, "NAMESPACE", namespace), "GROUP", "api%d.example.com" % number)
    if resource == "customresourcedefinitions":
        body = definition("samples%d" % number, "Sample%d" % number, "crd.example.com")
    body.update(apiVersion=group + "/" + version if group else version, kind=kind, metadata={"name": name})
    return body
