#!/usr/bin/env python3
"""Two API servers on one etcd that serve different resources, as peers. usage: peer_proxy_test.py KEELSON WORK_FOLDER

Each has API versions that the other has switched off (--runtime-config): requests for them arrive at the server that has them, with the user's
identity, watches and errors included; discovery lists what both serve; a request is proxied once at most; a peer that is gone is 503. Once with
two Keelson servers, once with Keelson and kube-apiserver, where every check runs in both directions. etcd and kube-apiserver are
$KEELSON_ETCD, else keelson/bin in the user's cache (interop/build.sh), else those in PATH. Each server needs its own host name (its identity is made of
it), so they run in UTS namespaces.
"""
import http.client
import json
import os
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, free_port, skip  # noqa: E402
from two_servers_test import Etcd, EtcdServer, find_etcd, wait_for  # noqa: E402

DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
checks = 0


def check(what, condition, detail=""):
    global checks
    checks += 1
    if not condition:
        raise AssertionError("%s: %s" % (what, detail))


def find_program(name):
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    for candidate in (os.path.join(cache, "keelson", "bin", name), shutil.which(name)):
        if candidate and os.path.exists(candidate):
            return candidate
    return None


def own_host_name(name):
    """The command prefix that sets this host name."""
    for unshare in (["unshare", "--uts"], ["unshare", "--user", "--map-root-user", "--uts"]):
        prefix = unshare + ["sh", "-c", 'echo "$0" >/proc/sys/kernel/hostname && exec "$@"', name]
        try:
            ran = subprocess.run(prefix + ["cat", "/proc/sys/kernel/hostname"], capture_output=True, text=True)
        except OSError:
            continue
        if ran.returncode == 0 and ran.stdout.strip() == name:
            return prefix
    skip("no UTS namespaces: servers of one machine would have the same identity")


def make_pki(folder):
    """Authorities of the API and of front proxies; certificates of the servers, of clients, and of the servers as clients of each other."""
    def openssl(*arguments):
        subprocess.run(("openssl",) + arguments, check=True, capture_output=True, cwd=folder)
    os.makedirs(folder)
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    for ca in ("ca", "front-proxy-ca"):
        openssl("req", "-x509", *key, "-keyout", ca + ".key", "-out", ca + ".crt", "-days", "2", "-subj", "/CN=" + ca)
    with open(os.path.join(folder, "extensions"), "w") as f:
        f.write("subjectAltName=IP:127.0.0.1,DNS:kubernetes.default.svc\nextendedKeyUsage=serverAuth,clientAuth\n")
    for name, subject, ca in (("server", "/CN=kube-apiserver", "ca"), ("admin", "/O=system:masters/CN=admin", "ca"), ("alice", "/O=dev/O=ops/CN=alice", "ca"),
                              ("proxy", "/CN=front-proxy-client", "front-proxy-ca")):
        openssl("req", *key, "-keyout", name + ".key", "-out", name + ".csr", "-subj", subject)
        openssl("x509", "-req", "-in", name + ".csr", "-CA", ca + ".crt", "-CAkey", ca + ".key", "-CAcreateserial", "-out", name + ".crt", "-days", "2", "-extfile", "extensions")
    openssl("genrsa", "-out", "sa.key", "2048")
    openssl("rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub")
    return folder


class PeerServer(EtcdServer):
    def __init__(self, name, binary, folder, etcd, pki, runtime_config):
        # kube-apiserver 1.36 publishes its advertised address whatever --peer-advertise-ip says; Keelson must publish the flag's.
        self.real = os.path.basename(binary) == "kube-apiserver"
        super().__init__(binary, os.path.join(folder, name), etcd.url, "127.0.0.1" if self.real else "10.99.0.1", pki)
        self.name, self.start_timeout = name, 120
        self.prefix = own_host_name(name)
        self.arguments += ["--endpoint-reconciler-type=none", "--runtime-config=" + runtime_config, "--peer-ca-file=" + os.path.join(pki, "ca.crt"),
                           "--proxy-client-cert-file=" + os.path.join(pki, "proxy.crt"), "--proxy-client-key-file=" + os.path.join(pki, "proxy.key"),
                           "--requestheader-client-ca-file=" + os.path.join(pki, "front-proxy-ca.crt"), "--requestheader-allowed-names=front-proxy-client",
                           "--requestheader-username-headers=X-Remote-User", "--requestheader-uid-headers=X-Remote-Uid", "--requestheader-group-headers=X-Remote-Group",
                           "--requestheader-extra-headers-prefix=X-Remote-Extra-"]

    def command(self):
        return self.prefix + super().command() + ([] if self.real else ["--peer-advertise-ip=127.0.0.1", "--peer-advertise-port=%d" % self.port])

    def alice(self):
        context = self.context()
        context.load_cert_chain(os.path.join(self.pki, "alice.crt"), os.path.join(self.pki, "alice.key"))
        return Client(self, context=context)


def groups_of(client, profile=""):
    answer = client.must(200, "GET", "/apis", accept=DISCOVERY + profile)
    return {"%s/%s" % (group["metadata"]["name"], version["version"]): [r["resource"] for r in version.get("resources", [])]
            for group in answer["items"] for version in group["versions"]}


def await_served(client, version):
    wait_for("%s is known" % version, lambda: (lambda g: (version in g, sorted(g)))(groups_of(client)), 90)


def raw(server, method, path, headers, body=None):
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=60, context=server.context())
    connection.request(method, path, body, headers)
    response = connection.getresponse()
    data = response.read()
    connection.close()
    return response, data


def metric(client, name, **labels):
    text = client.must(200, "GET", "/metrics").decode()
    wanted = ['%s="%s"' % label for label in labels.items()]
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name) and all(w in line for w in wanted))


def deployment(name):
    return {"metadata": {"name": name}, "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}},
                                                 "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}


def job(name):
    return {"metadata": {"name": name}, "spec": {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}



def certificate_request(folder, name):
    path = os.path.join(folder, name + ".request")
    subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", path + ".key", "-out", path, "-subj", "/CN=someone"],
                   check=True, capture_output=True)
    with open(path, "rb") as f:
        import base64
        encoded = base64.b64encode(f.read()).decode()
    return {"metadata": {"name": name}, "spec": {"request": encoded, "signerName": "example.com/signer", "usages": ["client auth"]}}


def proxied_requests(near, far, folder, kind):
    """`near` does not serve `kind` and certificates.k8s.io, `far` does."""
    collection, version, make = kind
    group, number = version.split("/")
    resource = collection.rsplit("/", 1)[1]
    client, other, name = Client(near), Client(far), near.name + "-one"
    await_served(client, version)
    check("nopeer lists the server's own", version not in groups_of(client, ";profile=nopeer"))
    before = metric(client, "apiserver_rerouted_request_total", code="201", group=group, version=number, resource=resource)
    created = client.must(201, "POST", collection, make(name))
    check("created by the peer", created["metadata"]["uid"] and created["apiVersion"] == version, created)
    check("the same object", other.must(200, "GET", collection + "/" + name)["metadata"]["uid"] == created["metadata"]["uid"])
    check("read through the peer", client.must(200, "GET", collection + "/" + name) == other.must(200, "GET", collection + "/" + name))
    after = metric(client, "apiserver_rerouted_request_total", code="201", group=group, version=number, resource=resource)
    check("counted", after == before + 1, (before, after))
    check("a list with a query", len(client.must(200, "GET", collection + "?fieldSelector=metadata.name%3D" + name + "&limit=5")["items"]) == 1)
    patched = client.must(200, "PATCH", collection + "/" + name, {"metadata": {"labels": {"x": "y"}}}, content_type="application/merge-patch+json")
    check("patched", patched["metadata"]["labels"]["x"] == "y", patched)
    check("the peer's conflict", client.request("POST", collection, make(name))[1].get("reason") == "AlreadyExists")
    check("a subresource", client.must(200, "GET", collection + "/" + name + "/status")["metadata"]["name"] == name)

    response, data = raw(near, "GET", collection + "/" + name, {"X-Kubernetes-Peer-Proxied": "true"})
    check("proxied once at most", response.status == 404 and data == b"404 page not found\n", (response.status, data))

    connection = http.client.HTTPSConnection("127.0.0.1", near.port, timeout=90, context=near.context())
    connection.request("GET", collection + "?watch=true&resourceVersion=" + patched["metadata"]["resourceVersion"])
    watch = connection.getresponse()
    check("watch", watch.status == 200, watch.status)
    other.must(200, "DELETE", collection + "/" + name)
    event = json.loads(watch.readline())
    while event["object"]["metadata"]["name"] != name:
        event = json.loads(watch.readline())
    check("the watch goes through the peer", event["type"] in ("DELETED", "MODIFIED"), event)
    connection.close()
    return client


def identity(near, far, folder):
    """Certificate signing requests record who made them; near does not serve them."""
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    await_served(Client(near), "certificates.k8s.io/v1")
    for role, body in (("clusterroles", {"rules": [{"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"], "verbs": ["create"]}]}),
                       ("clusterrolebindings", {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "requests"},
                                                "subjects": [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "ops"}]})):
        status, answer = Client(far).request("POST", "/apis/rbac.authorization.k8s.io/v1/" + role, dict(body, metadata={"name": "requests"}))
        check(role, status in (201, 409), answer)
    alice = near.alice()
    made = certificate_request(folder, near.name)

    def create():
        status, answer = alice.request("POST", path, made)
        return status == 201, answer
    wait_for("alice may create requests", create, 60)
    seen = Client(far).must(200, "GET", path + "/" + near.name)["spec"]
    check("user", seen["username"] == "alice" and seen["groups"] == ["dev", "ops", "system:authenticated"], seen)
    check("what alice may not do", alice.request("GET", path)[0] == 403)
    response, data = raw(near, "GET", path, {"X-Remote-User": "mallory", "X-Remote-Group": "system:masters"})
    check("identity headers of a client mean nothing", response.status == 200, (response.status, data))


def leases(servers, etcd, etcdctl):
    found = {}
    for lease in Client(servers[0]).must(200, "GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases?labelSelector=apiserver.kubernetes.io%2Fidentity%3Dkube-apiserver")["items"]:
        found[lease["metadata"]["labels"]["kubernetes.io/hostname"]] = lease
    for server in servers:
        lease = found[server.name]
        check("annotation", lease["metadata"]["annotations"] == {"kubernetes.io/peer-advertise-address": "127.0.0.1:%d" % server.port}, lease)
        check("holder", lease["spec"]["holderIdentity"].startswith(lease["metadata"]["name"] + "_") and lease["spec"]["leaseDurationSeconds"] == 3600, lease)
    if etcdctl:
        listed = subprocess.run([etcdctl, "--endpoints=" + etcd.url, "get", "--prefix", "--keys-only", "/registry/peerserverleases/"], capture_output=True, text=True, check=True).stdout.split()
        check("addresses", sorted(listed) == sorted("/registry/peerserverleases/" + found[s.name]["metadata"]["name"] for s in servers), listed)


def custom_resources(servers):
    """Both serve CRDs by themselves: none is proxied."""
    group = "peers.example.com"
    Client(servers[0]).must(201, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {"metadata": {"name": "things." + group}, "spec": {
        "group": group, "scope": "Namespaced", "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]}})
    for server in servers:
        client = Client(server)
        wait_for("%s serves things" % server.name, lambda: (lambda s: (s == 200, s))(client.request("GET", "/apis/%s/v1/things" % group)[0]), 60)
        check("served locally", metric(client, "apiserver_rerouted_request_total", group=group) == 0)


def gone(near, far, kind):
    """far ends as it should: its identity lease is gone, no server has the resource. Then killed: the lease stays, its address for a while."""
    collection = kind[0]
    client = Client(near)
    far.stop(60)
    wait_for("a peer that has ended serves nothing", lambda: (lambda s: (s == (404, b"404 page not found\n"), s))(client.request("GET", collection)), 60)
    far.start()

    def served():
        status, answer = client.request("GET", collection)
        return status == 200, answer
    wait_for("the peer is back", served, 90)
    far.kill()
    status, answer = client.request("GET", collection)
    check("a peer that was killed", status == 503 and answer == b"error trying to reach service: dial tcp 127.0.0.1:%d: connect: connection refused\n" % far.port, (status, answer))

    def unknown():
        status, answer = client.request("GET", collection)
        return status == 503 and isinstance(answer, dict) and answer["message"] == "Error getting ip and port info of the remote server while proxying", answer
    wait_for("the address of a peer that was killed is gone", unknown, 90)
    check("counted", metric(client, "apiserver_peer_proxy_errors_total", type="endpoint_resolution") >= 1)


def failed_starts(binary, folder):
    """Flags that do not go together: kube-apiserver's words."""
    os.makedirs(folder)
    pki = make_pki(os.path.join(folder, "pki"))
    ca, cert, key, junk = (os.path.join(pki, name) for name in ("ca.crt", "proxy.crt", "proxy.key", "sa.pub"))
    gone = os.path.join(pki, "gone")
    transport = "failed to create proxy transport: "
    for flags, error in (((ca, "", ""), "error building peer proxy handler, proxy-cert-file not specified"),
                         ((ca, cert, ""), "error building peer proxy handler, proxy-key-file not specified"),
                         ((ca, cert, gone), transport + "open %s: no such file or directory" % gone),
                         ((gone, cert, key), transport + "open %s: no such file or directory" % gone),
                         ((junk, cert, key), transport + "unable to load root certificates: unable to parse bytes as PEM block")):
        names = ("--peer-ca-file=", "--proxy-client-cert-file=", "--proxy-client-key-file=")
        ran = subprocess.run([binary, "--data-dir=:memory:", "--cert-dir=" + os.path.join(folder, "certs"), "--bind-address=127.0.0.1", "--secure-port=%d" % free_port()] +
                             [name + value for name, value in zip(names, flags) if value], capture_output=True, text=True, timeout=120)
        told = ran.stdout + ran.stderr
        check(error, ran.returncode != 0 and error in told.replace('\\"', '"'), told[-2000:])


DEPLOYMENTS = ("/apis/apps/v1/namespaces/default/deployments", "apps/v1", deployment)
JOBS = ("/apis/batch/v1/namespaces/default/jobs", "batch/v1", job)


def run(folder, etcd_binary, binaries):
    os.makedirs(folder)
    pki = make_pki(os.path.join(folder, "pki"))
    etcd = Etcd(etcd_binary, folder)
    servers = []
    try:
        for name, binary, config in zip(("peer-one", "peer-number-two"), binaries, ("apps/v1=false,certificates.k8s.io/v1=false", "batch/v1=false,storage.k8s.io/v1beta1=true")):
            servers.append(PeerServer(name, binary, folder, etcd, pki, config).start())
        one, two = servers
        await_served(Client(one), "storage.k8s.io/v1beta1")
        proxied_requests(one, two, folder, DEPLOYMENTS)
        proxied_requests(two, one, folder, JOBS)
        identity(one, two, folder)
        leases(servers, etcd, find_program("etcdctl"))
        custom_resources(servers)
        merged = [groups_of(Client(server)) for server in servers]
        check("both list the same group versions", sorted(merged[0]) == sorted(merged[1]), [sorted(m) for m in merged])
        check("in the same order", list(merged[0]) == list(merged[1]), [list(m) for m in merged])
        gone(one, two, DEPLOYMENTS)
        two.start()
        wait_for("peers again", lambda: (lambda s: (s[0] == 200, s))(Client(two).request("GET", JOBS[0])), 90)
        gone(two, one, JOBS)
    finally:
        for server in servers:
            if server.process and server.process.poll() is None:
                server.stop()
        etcd.stop()


def main():
    binary, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    failed_starts(binary, os.path.join(folder, "starts"))
    etcd, real = find_etcd(), find_program("kube-apiserver")
    own_host_name("probe")
    begin = time.monotonic()
    run(os.path.join(folder, "two"), etcd, (binary, binary))
    print("two Keelson servers: %d checks" % checks, flush=True)
    if real:
        run(os.path.join(folder, "mixed"), etcd, (binary, real))
        run(os.path.join(folder, "mixed-other-way"), etcd, (real, binary))
    else:
        print("left out: a mixed pair, because there is no kube-apiserver (interop/build.sh kube-apiserver)")
    print("peer proxy: %d checks passed in %.0f s" % (checks, time.monotonic() - begin))


if __name__ == "__main__":
    main()
