#!/usr/bin/env python3
"""The Python client (PyPI: kubernetes) against a server. Prints a line for each check: ok or FAIL, its name, what was wrong.

KUBECONFIG names the server. Pod "one" of namespace default runs on a fake kubelet (run.py).
"""
import os
import sys
import threading
import time
import traceback

from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.rest import ApiException
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock
from kubernetes.stream import portforward, stream

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "pythons.clients.example.com"},
    "spec": {"group": "clients.example.com", "scope": "Namespaced", "names": {"plural": "pythons", "singular": "python", "kind": "Python"}, "versions": [
        {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
         "schema": {"openAPIV3Schema": {"type": "object", "properties": {
             "spec": {"type": "object", "properties": {"replicas": {"type": "integer", "default": 1}, "color": {"type": "string", "enum": ["red", "green"]}}},
             "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}}}}}}]}}
CHECKS = []
LEASE_SECONDS = 3


def check(function):
    CHECKS.append(function)
    return function


def equal(got, want):
    if got != want:
        raise AssertionError("got %r, want %r" % (got, want))


def refused(status, reason, call, *arguments, **options):
    """The error that a call ends with."""
    try:
        call(*arguments, **options)
    except ApiException as error:
        equal(error.status, status)
        if reason not in error.body:
            raise AssertionError("%r is not in %s" % (reason, error.body))
        return error
    raise AssertionError("no error %d" % status)


def config_map(name, data, **metadata):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, **metadata), data=data)


def deployment(name):
    template = client.V1PodTemplateSpec(metadata=client.V1ObjectMeta(labels={"app": name}), spec=client.V1PodSpec(containers=[
        client.V1Container(name="c", image="example.com/i", ports=[client.V1ContainerPort(container_port=80)])]))
    return client.V1Deployment(metadata=client.V1ObjectMeta(name=name), spec=client.V1DeploymentSpec(
        replicas=2, selector=client.V1LabelSelector(match_labels={"app": name}), template=template))


@check
def typed_objects(core, namespace):
    made = core.create_namespaced_config_map(namespace, config_map("a", {"k": "v"}, labels={"l": "1"}))
    equal(core.read_namespaced_config_map("a", namespace).to_dict(), made.to_dict())
    made.data["k"] = "w"
    replaced = core.replace_namespaced_config_map("a", namespace, made)
    equal(replaced.data, {"k": "w"})
    refused(409, "AlreadyExists", core.create_namespaced_config_map, namespace, config_map("a", {}))
    refused(409, "the object has been modified", core.replace_namespaced_config_map, "a", namespace, made)
    refused(422, "Invalid value", core.create_namespaced_config_map, namespace, config_map("Not A Name", {}))
    equal(core.delete_namespaced_config_map("a", namespace).status, "Success")
    refused(404, "NotFound", core.read_namespaced_config_map, "a", namespace)
    secret = core.create_namespaced_secret(namespace, client.V1Secret(metadata=client.V1ObjectMeta(generate_name="s-"), string_data={"p": "x"}))
    equal((secret.data, secret.metadata.name[:2], secret.type), ({"p": "eA=="}, "s-", "Opaque"))
    core.delete_collection_namespaced_secret(namespace)
    equal(core.list_namespaced_secret(namespace).items, [])


@check
def workloads_and_scale(core, namespace):
    apps = client.AppsV1Api()
    made = apps.create_namespaced_deployment(namespace, deployment("d"))
    equal((made.spec.strategy.type, made.spec.template.spec.restart_policy), ("RollingUpdate", "Always"))
    scale = apps.read_namespaced_deployment_scale("d", namespace)
    equal(scale.spec.replicas, 2)
    scale.spec.replicas = 5
    equal(apps.replace_namespaced_deployment_scale("d", namespace, scale).spec.replicas, 5)
    status = apps.patch_namespaced_deployment_status("d", namespace, {"status": {"replicas": 5, "observedGeneration": 2}})
    equal(status.status.replicas, 5)
    job = client.BatchV1Api().create_namespaced_job(namespace, client.V1Job(metadata=client.V1ObjectMeta(name="j"), spec=client.V1JobSpec(
        suspend=True, template=client.V1PodTemplateSpec(spec=client.V1PodSpec(restart_policy="Never", containers=[client.V1Container(name="c", image="i")])))))
    equal((job.spec.completions, job.spec.backoff_limit), (1, 6))


@check
def patches(core, namespace):
    core.create_namespaced_config_map(namespace, config_map("p", {"a": "1", "b": "2"}))

    def send(body, content_type):
        return core.patch_namespaced_config_map("p", namespace, body, _content_type=content_type).data
    equal(send({"data": {"a": None, "c": "3"}}, "application/merge-patch+json"), {"b": "2", "c": "3"})
    equal(send([{"op": "replace", "path": "/data/b", "value": "4"}], "application/json-patch+json"), {"b": "4", "c": "3"})
    equal(send({"data": {"d": "5"}}, "application/strategic-merge-patch+json"), {"b": "4", "c": "3", "d": "5"})
    refused(422, "the server rejected our request due to an error in our request", core.patch_namespaced_config_map, "p", namespace,
            [{"op": "test", "path": "/data/b", "value": "no"}], _content_type="application/json-patch+json")
    # Strategic: containers merge by name.
    apps = client.AppsV1Api()
    apps.create_namespaced_deployment(namespace, deployment("s"))
    merged = apps.patch_namespaced_deployment("s", namespace, {"spec": {"template": {"spec": {"containers": [{"name": "e", "image": "j"}]}}}},
                                              _content_type="application/strategic-merge-patch+json")
    equal([c.name for c in merged.spec.template.spec.containers], ["e", "c"])


@check
def apply(core, namespace):
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ssa"}, "data": {"a": "1"}}

    def send(data, manager, force=False):
        return core.patch_namespaced_config_map("ssa", namespace, dict(body, data=data), field_manager=manager, force=force, _content_type="application/apply-patch+yaml")
    made = send({"a": "1", "b": "1"}, "one")
    equal([m.manager for m in made.metadata.managed_fields], ["one"])
    refused(409, 'conflict with \\"one\\"', send, {"a": "2"}, "two")
    equal(send({"a": "2"}, "two", True).data, {"a": "2", "b": "1"})
    equal(send({}, "one").data, {"a": "2"})


@check
def paged_lists(core, namespace):
    for i in range(25):
        core.create_namespaced_config_map(namespace, config_map("n-%02d" % i, {}, labels={"odd": str(i % 2)}))
    names, token, pages = [], None, 0
    while pages == 0 or token:
        page = core.list_namespaced_config_map(namespace, limit=10, _continue=token, label_selector="odd")
        names += [item.metadata.name for item in page.items]
        token, pages = page.metadata._continue, pages + 1
    equal((len(names), pages, names), (25, 3, sorted(names)))
    equal(len(core.list_namespaced_config_map(namespace, label_selector="odd=1").items), 12)
    equal([i.metadata.name for i in core.list_namespaced_config_map(namespace, field_selector="metadata.name=n-03").items], ["n-03"])
    refused(400, "continue key is not valid", core.list_namespaced_config_map, namespace, limit=1, _continue="rubbish")


@check
def watch_and_resume(core, namespace):
    start = core.list_namespaced_config_map(namespace).metadata.resource_version
    for i in range(3):
        core.create_namespaced_config_map(namespace, config_map("w-%d" % i, {"i": str(i)}))
    core.delete_namespaced_config_map("w-1", namespace)

    def take(version, count):
        watcher, seen = watch.Watch(), []
        for event in watcher.stream(core.list_namespaced_config_map, namespace, resource_version=version, timeout_seconds=60, label_selector="!other"):
            if event["object"].metadata.name.startswith("w-"):
                seen.append((event["type"], event["object"].metadata.name, event["object"].metadata.resource_version))
            if len(seen) == count:
                watcher.stop()
        return seen
    first = take(start, 4)
    equal([(kind, name) for kind, name, _ in first], [("ADDED", "w-0"), ("ADDED", "w-1"), ("ADDED", "w-2"), ("DELETED", "w-1")])
    equal(take(first[1][2], 2), first[2:])  # resumed after the second
    refused(500, "", lambda: next(watch.Watch().stream(core.list_namespaced_config_map, namespace, resource_version="x", timeout_seconds=60)))


@check
def dynamic_client(core, namespace):
    dynamic_api = dynamic.DynamicClient(client.ApiClient())
    api = dynamic_api.resources.get(api_version="v1", kind="ConfigMap")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "d"}, "data": {"a": "1"}}
    made = api.create(body=body, namespace=namespace)
    equal(api.get(name="d", namespace=namespace).metadata.uid, made.metadata.uid)
    equal(api.patch(body={"metadata": {"name": "d"}, "data": {"b": "2"}}, namespace=namespace, content_type="application/merge-patch+json").data.to_dict(), {"a": "1", "b": "2"})
    equal(api.server_side_apply(body=dict(body, data={"c": "3"}), namespace=namespace, field_manager="m").data.to_dict(), {"a": "1", "b": "2", "c": "3"})
    try:
        api.create(body=body, namespace=namespace)
        raise AssertionError("created twice")
    except ConflictError:
        pass
    versions = []
    for event in api.watch(namespace=namespace, resource_version=made.metadata.resourceVersion, timeout=60):
        versions.append(event["type"])
        if len(versions) == 2:
            break
    equal(versions, ["MODIFIED", "MODIFIED"])
    api.delete(name="d", namespace=namespace)
    try:
        api.get(name="d", namespace=namespace)
        raise AssertionError("still there")
    except NotFoundError:
        pass
    equal(len(dynamic_api.resources.search(kind="Deployment", group="apps")) > 0, True)


@check
def custom_objects(core, namespace):
    definitions, custom = client.ApiextensionsV1Api(), client.CustomObjectsApi()
    where = ("clients.example.com", "v1", namespace, "pythons")
    definitions.create_custom_resource_definition(DEFINITION)
    for event in watch.Watch().stream(definitions.list_custom_resource_definition, field_selector="metadata.name=" + DEFINITION["metadata"]["name"], timeout_seconds=60):
        if any(c.type == "Established" and c.status == "True" for c in event["object"].status.conditions or []):
            break
    body = {"apiVersion": "clients.example.com/v1", "kind": "Python", "metadata": {"name": "x"}, "spec": {"color": "red"}}
    made = custom.create_namespaced_custom_object(*where, body)
    equal(made["spec"], {"color": "red", "replicas": 1})
    refused(422, "Unsupported value", custom.create_namespaced_custom_object, *where, dict(body, metadata={"name": "y"}, spec={"color": "blue"}))
    equal(custom.patch_namespaced_custom_object(*where, "x", {"spec": {"color": "green"}})["spec"]["color"], "green")
    equal(custom.patch_namespaced_custom_object_status(*where, "x", {"status": {"replicas": 1}})["status"], {"replicas": 1})
    scale = custom.patch_namespaced_custom_object_scale(*where, "x", {"spec": {"replicas": 4}})
    equal((scale["kind"], scale["spec"]["replicas"]), ("Scale", 4))
    equal([i["metadata"]["name"] for i in custom.list_namespaced_custom_object(*where)["items"]], ["x"])
    custom.delete_namespaced_custom_object(*where, "x")
    definitions.delete_custom_resource_definition(DEFINITION["metadata"]["name"])


@check
def discovery(core, namespace):
    groups = {g.name for g in client.ApisApi().get_api_versions().groups}
    equal({"apps", "batch", "rbac.authorization.k8s.io", "apiextensions.k8s.io"} - groups, set())
    equal("pods/exec" in {r.name for r in core.get_api_resources().resources}, True)
    equal(client.VersionApi().get_code().major, "1")
    refused(404, "404 page not found", client.CustomObjectsApi().get_cluster_custom_object, "nowhere.example.com", "v1", "things", "x")


@check
def objects_from_yaml(core, namespace):
    text = [{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "svc"}, "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}},
            {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "two"}}]}]
    utils.create_from_yaml(client.ApiClient(), yaml_objects=text, namespace=namespace)
    equal(core.read_namespaced_service("svc", namespace).spec.type, "ClusterIP")
    try:
        utils.create_from_yaml(client.ApiClient(), yaml_objects=text, namespace=namespace)
        raise AssertionError("created twice")
    except utils.FailToCreateError as error:
        equal([e.status for e in error.api_exceptions], [409, 409, 409])


@check
def leases(core, namespace):
    api = client.CoordinationV1Api()
    made = api.create_namespaced_lease(namespace, client.V1Lease(metadata=client.V1ObjectMeta(name="l"), spec=client.V1LeaseSpec(
        holder_identity="me", lease_duration_seconds=15, renew_time="2026-01-02T03:04:05.123456Z")))
    equal((made.spec.holder_identity, made.spec.renew_time.microsecond), ("me", 123456))
    made.spec.holder_identity = "you"
    equal(api.replace_namespaced_lease("l", namespace, made).spec.holder_identity, "you")


@check
def leader_election(core, namespace):
    led = []

    def candidate(name, stop):
        def lead():
            led.append(name)
            stop.wait(60)
        settings = electionconfig.Config(ConfigMapLock("leader", namespace, name), lease_duration=LEASE_SECONDS, renew_deadline=2, retry_period=1, onstarted_leading=lead, onstopped_leading=lambda: None)
        threading.Thread(target=leaderelection.LeaderElection(settings).run, daemon=True).start()
    stop = threading.Event()
    candidate("first", stop)
    deadline = time.monotonic() + 60
    while not led and time.monotonic() < deadline:
        time.sleep(0.05)
    candidate("second", stop)
    time.sleep(LEASE_SECONDS + 1)  # longer than the lease: the second takes over if renewals fail
    equal(led, ["first"])
    stop.set()


@check
def log(core, namespace):
    def read(**options):  # The release makes str(bytes) of a body that is a text.
        return core.read_namespaced_pod_log("one", "default", container="c", _preload_content=False, **options).data
    equal(read(), b"first\nsecond\n")
    equal(read(tail_lines=1), b"second\n")
    equal([line for line in watch.Watch().stream(core.read_namespaced_pod_log, "one", "default", container="ended")], ["only"])
    refused(400, "container nope is not valid", core.read_namespaced_pod_log, "one", "default", container="nope")


@check
def execute(core, namespace):
    def run(*command, **options):
        return stream(core.connect_get_namespaced_pod_exec, "one", "default", container="c", command=list(command), stderr=True, stdin=False, stdout=True, tty=False, **options)
    equal(run("sh", "-c", "echo out"), "out\n")
    session = stream(core.connect_get_namespaced_pod_exec, "one", "default", container="c", command=["sh", "-c", "read x; echo got $x; echo bad >&2; exit 3"],
                     stderr=True, stdin=True, stdout=True, tty=False, _preload_content=False)
    session.write_stdin("word\n")
    session.run_forever(timeout=60)
    equal((session.read_stdout(), session.read_stderr(), session.returncode), ("got word\n", "bad\n", 3))
    try:
        stream(core.connect_get_namespaced_pod_exec, "none", "default", command=["true"], stdout=True)
        raise AssertionError("exec in a pod that is not there")
    except (ApiException, AttributeError) as error:  # The release fails on an ApiException without a body.
        equal("404 Not Found" in str(error) + str(error.__context__), True)


@check
def port_forward(core, namespace):
    forward = portforward(core.connect_get_namespaced_pod_portforward, "one", "default", ports="8080")
    socket = forward.socket(8080)
    socket.setblocking(True)
    socket.settimeout(60)
    socket.sendall(b"hello\n")
    got = b""
    while not got.endswith(b"hello\n"):
        data = socket.recv(100)
        if not data:
            break
        got += data
    equal(got, b"port 8080\nhello\n")
    socket.close()
    equal(forward.error(8080), None)


@check
def reviews(core, namespace):
    answer = client.AuthorizationV1Api().create_self_subject_access_review(client.V1SelfSubjectAccessReview(
        spec=client.V1SelfSubjectAccessReviewSpec(resource_attributes=client.V1ResourceAttributes(verb="get", resource="pods"))))
    equal(answer.status.allowed, True)
    equal("system:masters" in client.AuthenticationV1Api().create_self_subject_review(client.V1SelfSubjectReview()).status.user_info.groups, True)
    core.create_namespaced_service_account(namespace, client.V1ServiceAccount(metadata=client.V1ObjectMeta(name="robot")))
    token = core.create_namespaced_service_account_token("robot", namespace, client.AuthenticationV1TokenRequest(spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=600)))
    seen = client.AuthenticationV1Api().create_token_review(client.V1TokenReview(spec=client.V1TokenReviewSpec(token=token.status.token)))
    equal(seen.status.user.username, "system:serviceaccount:%s:robot" % namespace)


def main():
    config.load_kube_config(os.environ["KUBECONFIG"])
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    for function in CHECKS:
        name = function.__name__
        if only not in name:
            continue
        core = client.CoreV1Api()
        namespace = core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(generate_name="python-"))).metadata.name
        try:
            function(core, namespace)
            print("ok   %s" % name, flush=True)
        except Exception as error:  # noqa: B902 - whatever a client throws is a failed check
            place = traceback.extract_tb(error.__traceback__)[-1]
            print("FAIL %s %s: %s (line %d)" % (name, type(error).__name__, " ".join(str(error).split())[:600], [f for f in traceback.extract_tb(error.__traceback__) if f.filename == __file__][-1].lineno if place else 0), flush=True)
        core.delete_namespace(namespace)
    os._exit(0)  # leader election has threads


if __name__ == "__main__":
    main()
