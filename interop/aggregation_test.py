#!/usr/bin/env python3
"""sample-apiserver and metrics-server as local processes behind Keelson. usage: aggregation_test.py KEELSON WORK_FOLDER PROGRAMS_FOLDER

Each has a Service whose cluster IP is a loopback address on which the process listens, so the aggregator reaches it as in a cluster. sample-apiserver: discovery,
kubectl explain, apply, get, watch, patch and delete, warnings and
errors of the backend; the group goes with its APIService. metrics-server: kubectl top from a kubelet that the test
plays. A program that is not built (interop/build.sh NAME) is left out.
"""
import http.server
import json
import os
import shutil
import ssl
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rig import Keelson, end  # noqa: E402
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "test", "system"))
from harness import SKIPPED, Client, free_port  # noqa: E402
from kubectl_test import find_kubectl  # noqa: E402
from two_servers_test import Etcd, make_pki  # noqa: E402
from webhook_peer import make_certificate  # noqa: E402

checks = 0


def check(what, condition, detail=""):
    global checks
    checks += 1
    if not condition:
        raise AssertionError("%s: %s" % (what, detail))


def await_true(what, condition, seconds=90):
    deadline = time.monotonic() + seconds
    while not condition():
        check(what, time.monotonic() < deadline, "not within %d s" % seconds)
        time.sleep(0.2)


class Kubectl:
    def __init__(self, server):
        self.command = [find_kubectl(), "--kubeconfig=" + server.kubeconfig, "--cache-dir=" + os.path.join(server.folder, "kubectl-cache")]

    def run(self, *arguments, stdin=None):
        ran = subprocess.run(self.command + list(arguments), input=stdin, capture_output=True, text=True, timeout=120)
        return ran.returncode, ran.stdout, ran.stderr

    def must(self, *arguments, stdin=None):
        code, out, err = self.run(*arguments, stdin=stdin)
        check("kubectl " + " ".join(arguments), code == 0, err)
        return out


def register(client, name, address, port, group, version):
    """A Service with an endpoint, and the APIService in front of it."""
    namespace = "/api/v1/namespaces/%s/" % name
    client.must(201, "POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    client.must(201, "POST", namespace + "services", {"metadata": {"name": "api"}, "spec": {"clusterIP": address, "ports": [{"name": "https", "port": port}]}})
    client.must(201, "POST", "/apis/discovery.k8s.io/v1/namespaces/%s/endpointslices" % name, {
        "metadata": {"name": "api-1", "labels": {"kubernetes.io/service-name": "api"}}, "addressType": "IPv4", "ports": [{"name": "https", "port": port}],
        "endpoints": [{"addresses": ["192.0.2.1"], "conditions": {"ready": True}}]})
    client.must(201, "POST", "/apis/apiregistration.k8s.io/v1/apiservices", {"metadata": {"name": "%s.%s" % (version, group)}, "spec": {
        "group": group, "version": version, "groupPriorityMinimum": 1000, "versionPriority": 15, "insecureSkipTLSVerify": True,
        "service": {"namespace": name, "name": "api", "port": port}}})


def available(client, name):
    status, service = client.request("GET", "/apis/apiregistration.k8s.io/v1/apiservices/" + name)
    return status == 200 and any(c["type"] == "Available" and c["status"] == "True" for c in service.get("status", {}).get("conditions", []))


def start(folder, name, command):
    return subprocess.Popen(command, stdout=open(os.path.join(folder, name + ".log"), "w"), stderr=subprocess.STDOUT)


def delegated(server):
    return ["--kubeconfig=" + server.kubeconfig, "--authentication-kubeconfig=" + server.kubeconfig, "--authorization-kubeconfig=" + server.kubeconfig]


def front_proxy_flags(pki):
    """How aggregated servers know that a request comes from Keelson, and who made it."""
    return ["--requestheader-client-ca-file=" + os.path.join(pki, "ca.crt"), "--proxy-client-cert-file=" + os.path.join(pki, "admin.crt"),
            "--proxy-client-key-file=" + os.path.join(pki, "admin.key"), "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-"]


FLUNDER = {"apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder", "metadata": {"name": "one", "labels": {"a": "b"}}}


def sample_apiserver(server, client, kubectl, folder, programs):
    address, port = "127.96.0.21", free_port()
    etcd = Etcd(os.path.join(programs, "etcd"), folder)
    process = start(folder, "sample-apiserver", [
        os.path.join(programs, "sample-apiserver"), "--etcd-servers=" + etcd.url, "--bind-address=" + address, "--secure-port=%d" % port,
        "--cert-dir=" + os.path.join(folder, "sample-certs"), "--tls-private-key-file=", "--tls-cert-file="] + delegated(server))
    try:
        register(client, "wardle", address, port, "wardle.example.com", "v1alpha1")
        await_true("v1alpha1.wardle.example.com is available", lambda: available(client, "v1alpha1.wardle.example.com"))
        check("api-resources", "flunders" in kubectl.must("api-resources", "--api-group=wardle.example.com"))
        await_true("explain", lambda: kubectl.run("explain", "flunders.spec", "--api-version=wardle.example.com/v1alpha1")[0] == 0)
        check("explain", "FIELD" in kubectl.must("explain", "flunders", "--api-version=wardle.example.com/v1alpha1").upper())
        watch = subprocess.Popen(kubectl.command + ["get", "flunders", "--watch", "-o", "name"], stdout=subprocess.PIPE, text=True)
        kubectl.must("apply", "-f", "-", stdin=json.dumps(FLUNDER))
        check("watch", watch.stdout.readline().strip() == "flunder.wardle.example.com/one")
        kubectl.must("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(dict(FLUNDER, spec={"reference": "two"})))
        check("apply", kubectl.must("get", "flunder", "one", "-o", "jsonpath={.spec.flunderReference}{.spec.reference}") == "two")
        check("watch sees the change", watch.stdout.readline().strip() == "flunder.wardle.example.com/one")
        kubectl.must("patch", "flunder", "one", "--type=merge", "-p", '{"metadata":{"labels":{"c":"d"}}}')
        check("label selector", kubectl.must("get", "flunders", "-l", "c=d", "-o", "name").strip() == "flunder.wardle.example.com/one")
        _, _, err = kubectl.run("create", "-f", "-", stdin=json.dumps(dict(FLUNDER, metadata={"name": "two"})))
        check("the backend's warning", "Warning: wardle.example.com/v1alpha1 Flunder is deprecated" in err, err)
        code, _, err = kubectl.run("create", "-f", "-", stdin=json.dumps(dict(FLUNDER, metadata={"name": "two"})))
        check("the backend's conflict", code != 0 and "(AlreadyExists)" in err, err)
        kubectl.must("delete", "flunder", "one")
        watch.kill()
        watch.wait()
        check("identity", client.request("GET", "/apis/wardle.example.com/v1alpha1/namespaces/default/flunders/one")[0] == 404)
        client.must(200, "DELETE", "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.wardle.example.com")
        await_true("the group goes", lambda: client.request("GET", "/apis/wardle.example.com/v1alpha1")[0] == 404)
    finally:
        end(process)
        etcd.stop()


RESOURCE_METRICS = """# TYPE node_cpu_usage_seconds_total counter
node_cpu_usage_seconds_total %(cpu).3f %(now)d
# TYPE node_memory_working_set_bytes gauge
node_memory_working_set_bytes 1.048576e+09 %(now)d
# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{container="c",namespace="default",pod="one"} %(cpu).3f %(now)d
# TYPE container_memory_working_set_bytes gauge
container_memory_working_set_bytes{container="c",namespace="default",pod="one"} 5.24288e+07 %(now)d
# TYPE container_start_time_seconds gauge
container_start_time_seconds{container="c",namespace="default",pod="one"} 1.7e+09
"""


class MetricsKubelet:
    """Half a processor in use, by its one container."""

    def __init__(self, folder):
        begin = time.time()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                now = time.time()
                body = (RESOURCE_METRICS % {"cpu": 100 + (now - begin) * 0.5, "now": int(now * 1000)}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*make_certificate(folder))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def metrics_server(server, client, kubectl, folder, programs):
    address, port = "127.96.0.22", free_port()
    kubelet = MetricsKubelet(folder)
    client.must(201, "POST", "/api/v1/nodes", {"metadata": {"name": "node-1"}, "status": {
        "capacity": {"cpu": "4", "memory": "8Gi"}, "allocatable": {"cpu": "4", "memory": "8Gi"}, "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}], "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet.port}}}})
    client.must(201, "POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    client.must(201, "POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "one"}, "spec": {
        "nodeName": "node-1", "containers": [{"name": "c", "image": "i"}]}})
    client.must(200, "PATCH", "/api/v1/namespaces/default/pods/one/status", {"status": {"phase": "Running"}}, content_type="application/merge-patch+json")
    process = start(folder, "metrics-server", [
        os.path.join(programs, "metrics-server"), "--bind-address=" + address, "--secure-port=%d" % port, "--cert-dir=" + os.path.join(folder, "metrics-certs"),
        "--kubelet-insecure-tls", "--kubelet-preferred-address-types=InternalIP", "--kubelet-use-node-status-port", "--metric-resolution=10s",
        "--kubelet-request-timeout=5s"] + delegated(server))
    try:
        register(client, "metrics", address, port, "metrics.k8s.io", "v1beta1")
        await_true("v1beta1.metrics.k8s.io is available", lambda: available(client, "v1beta1.metrics.k8s.io"), seconds=120)
        await_true("kubectl top nodes", lambda: kubectl.run("top", "nodes")[0] == 0)
        top = kubectl.must("top", "nodes", "--no-headers").split()
        check("node", top[0] == "node-1" and 300 <= int(top[1].rstrip("m")) <= 700 and top[3] == "1000Mi", top)
        top = kubectl.must("top", "pods", "--no-headers").split()
        check("pod", top[0] == "one" and 300 <= int(top[1].rstrip("m")) <= 700 and top[2] == "50Mi", top)
    finally:
        end(process)


def main():
    binary, folder, programs = (os.path.abspath(argument) for argument in sys.argv[1:4])
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    parts = [(name, run) for name, run in (("sample-apiserver", sample_apiserver), ("metrics-server", metrics_server))]
    missing = [name for name, _ in parts if not os.path.exists(os.path.join(programs, name))]
    for name in missing:
        print("left out: %s is not built (interop/build.sh %s)" % (name, name))
    if len(missing) == len(parts):
        return SKIPPED
    server = Keelson(binary, os.path.join(folder, "keelson"), flags=front_proxy_flags(make_pki(os.path.join(folder, "front-proxy")))).start()
    try:
        client = Client(server)
        kubectl = Kubectl(server)
        for name, run in parts:
            if name not in missing:
                run(server, client, kubectl, folder, programs)
                print(name + " works behind the server", flush=True)
    finally:
        server.stop()
    print("%d checks passed" % checks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
