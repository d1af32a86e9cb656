#!/usr/bin/env python3
"""The server on an etcd of three members that are killed, stopped and cut off from each other and from the server.
usage: robustness_test.py KEELSON WORK_FOLDER PROGRAMS [--seconds 60] [--seed 1]

Every connection, of members among each other and of the server to each member, goes through a relay on 127.0.0.1 that can hold its bytes back: a partition.
Writers create, update, patch and delete ConfigMaps; each write carries its number and the number of the write that it replaces. Readers get and list
consistently. Watches with bookmarks are broken off and resumed. At the end etcd's own history (etcdctl watch from the first revision) is the truth:

- a write that was acknowledged is in history at its resourceVersion, once; one that was refused is not; one without an answer is there once at most;
- a write is later than everything that anybody knew before it was sent, and replaces what it says that it replaces;
- a consistent read shows nothing that was out of date when it was sent, and a list is the state at its resourceVersion;
- a watch gives every change behind its beginning once and in order, also over its resumptions; nothing before a bookmark comes after it or is missing.
"""
import base64
import bisect
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rig import Client, arguments_of, end, free_port, parser_of  # noqa: E402
from two_servers_test import EtcdServer, make_pki  # noqa: E402

SPACES = ("default", "robust")
NAMES = 8
MEMBERS = 3
SERVER = "server"  # the name of our end in the network
ROOT = "/registry/configmaps/"
REFUSED = (400, 404, 409, 422)


class Network:
    """Who reaches whom. A blocked pair keeps its connections, but no byte passes."""

    def __init__(self):
        self.changed = threading.Condition()
        self.blocked = set()

    def block(self, pairs):
        with self.changed:
            self.blocked |= set(pairs)

    def heal(self):
        with self.changed:
            self.blocked.clear()
            self.changed.notify_all()

    def pass_(self, source, target):
        with self.changed:
            self.changed.wait_for(lambda: frozenset((source, target)) not in self.blocked)


class Relay:
    """Listens for one member. `source_of` tells who connected, by the port of its end."""

    def __init__(self, network, target, source_of):
        self.network, self.target, self.source_of = network, target, source_of
        self.port, self.target_port = free_port(), free_port()
        self.listener = socket.create_server(("127.0.0.1", self.port), backlog=64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near, address = self.listener.accept()
            threading.Thread(target=self.connect, args=(near, address[1]), daemon=True).start()

    def connect(self, near, port):
        source = self.source_of(port, self.port)
        self.network.pass_(source, self.target)
        try:
            far = socket.create_connection(("127.0.0.1", self.target_port), 5)
            far.settimeout(None)
        except OSError:
            near.close()
            return
        threading.Thread(target=self.pump, args=(near, far, source), daemon=True).start()
        self.pump(far, near, source)

    def pump(self, source, sink, name):
        try:
            while data := source.recv(65536):
                self.network.pass_(name, self.target)
                sink.sendall(data)
        except OSError:
            pass
        for end_ in (source, sink):
            try:
                end_.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Cluster:
    """Three members of etcd behind relays."""

    def __init__(self, binary, folder, network):
        self.binary, self.folder, self.processes = binary, folder, [None] * MEMBERS
        self.peers = [Relay(network, i, self.member_at) for i in range(MEMBERS)]
        self.clients = [Relay(network, i, lambda *_: SERVER) for i in range(MEMBERS)]
        self.direct = ["http://127.0.0.1:%d" % relay.target_port for relay in self.clients]
        self.relayed = ["http://127.0.0.1:%d" % relay.port for relay in self.clients]
        for i in range(MEMBERS):
            self.start(i)

    def start(self, i):
        members = ",".join("m%d=http://127.0.0.1:%d" % (n, self.peers[n].port) for n in range(MEMBERS))
        log = open(os.path.join(self.folder, "etcd-%d.log" % i), "a")
        self.processes[i] = subprocess.Popen([
            self.binary, "--name=m%d" % i, "--data-dir=" + os.path.join(self.folder, "m%d" % i), "--listen-client-urls=" + self.direct[i],
            "--advertise-client-urls=" + self.direct[i], "--listen-peer-urls=http://127.0.0.1:%d" % self.peers[i].target_port,
            "--initial-advertise-peer-urls=http://127.0.0.1:%d" % self.peers[i].port, "--initial-cluster=" + members, "--log-level=warn",
            "--heartbeat-interval=50", "--election-timeout=500"], stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def kill(self, i):
        self.processes[i].kill()
        self.processes[i].wait()

    def member_at(self, port, to):
        """The member whose end of a connection has this port: the kernel's table has its inode, the process has that among its files."""
        with open("/proc/net/tcp") as f:
            rows = [row.split() for row in f.readlines()[1:]]
        inode = next((row[9] for row in rows if row[1].endswith(":%04X" % port) and row[2].endswith(":%04X" % to)), None)
        for i, process in enumerate(self.processes):
            try:
                folder = "/proc/%d/fd/" % process.pid
                if any(os.readlink(folder + name) == "socket:[%s]" % inode for name in os.listdir(folder)):
                    return i
            except (OSError, AttributeError):
                continue
        return None

    def stop(self):
        for process in self.processes:
            process.send_signal(signal.SIGCONT)
            end(process, 5)


class Record:
    """What clients did and saw. Judged at the end."""

    def __init__(self):
        self.lock = threading.Lock()
        self.told, self.last = 0, 0
        self.writes, self.reads, self.lists, self.watches = {}, [], [], []
        self.counts = {}

    def count(self, what):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def tell(self, revision):
        with self.lock:
            self.told = max(self.told, revision)

    def begin(self, kind, key):
        with self.lock:
            self.last += 1
            write = {"number": self.last, "kind": kind, "key": key, "told": self.told, "outcome": "unknown"}
            self.writes[self.last] = write
            return write


def item_of(item):
    metadata = item["metadata"]
    return "%s/%s" % (metadata["namespace"], metadata["name"]), int(metadata["resourceVersion"]), int(item.get("data", {}).get("write", 0))


class Traffic:
    def __init__(self, record, server, seed):
        self.record, self.server, self.seed, self.ending, self.threads = record, server, seed, threading.Event(), []

    def run(self, function, number):
        thread = threading.Thread(target=self.loop, args=(function, random.Random(self.seed * 1000 + number)), daemon=True)
        self.threads.append(thread)
        thread.start()

    def loop(self, function, rng):
        """The function gets a connection; a new one after each failure of the old one."""
        while not self.ending.is_set():
            client = None
            try:
                client = Client(self.server, timeout=8)
                while not self.ending.is_set():
                    function(client, rng)
            except (OSError, http.client.HTTPException, ValueError):
                self.record.count("connections lost")
                time.sleep(0.05)
            finally:
                if client:
                    client.close()

    def write(self, client, rng):
        space, name = rng.choice(SPACES), "c%d" % rng.randrange(NAMES)
        path = "/api/v1/namespaces/%s/configmaps" % space
        kind = rng.choice(("create", "create", "update", "update", "patch", "delete"))
        old = None
        if kind in ("update", "patch"):
            status, old = client.request("GET", path + "/" + name + ("?resourceVersion=0" if rng.random() < 0.3 else ""))
            if status != 200:
                return
        write = self.record.begin(kind, space + "/" + name)
        data = {"write": str(write["number"]), "saw": str(item_of(old)[2]) if old else "0"}
        if kind == "create":
            status, answer = client.request("POST", path, {"metadata": {"name": name, "labels": {"half": str(rng.randrange(2))}}, "data": data})
        elif kind == "delete":
            status, answer = client.request("DELETE", path + "/" + name)
        elif kind == "update":
            old["data"] = data
            old["metadata"].setdefault("labels", {})["half"] = str(rng.randrange(2))
            status, answer = client.request("PUT", path + "/" + name, old)
        else:
            patch = {"metadata": {"resourceVersion": old["metadata"]["resourceVersion"]}, "data": data}
            status, answer = client.request("PATCH", path + "/" + name, patch, content_type="application/merge-patch+json")
        if status in (200, 201):
            if kind != "delete":
                write["revision"] = item_of(answer)[1]
                self.record.tell(write["revision"])
            write["outcome"] = "done"
        elif status in REFUSED:
            write["outcome"] = "refused"
        else:
            time.sleep(0.02)

    def read(self, client, rng):
        told = self.record.told
        space = rng.choice(SPACES)
        if rng.random() < 0.5:
            name = "c%d" % rng.randrange(NAMES)
            status, answer = client.request("GET", "/api/v1/namespaces/%s/configmaps/%s" % (space, name))
            if status == 200:
                item = item_of(answer)
                self.record.tell(item[1])
                self.record.reads.append((told, item[0], item))
            elif status == 404:
                self.record.reads.append((told, "%s/%s" % (space, name), None))
        else:
            wide = rng.random() < 0.5
            status, answer = client.request("GET", "/api/v1/configmaps" if wide else "/api/v1/namespaces/%s/configmaps" % space)
            if status == 200:
                revision = int(answer["metadata"]["resourceVersion"])
                self.record.tell(revision)
                self.record.lists.append((told, "" if wide else space + "/", revision, sorted(item_of(item) for item in answer["items"])))
        if status >= 500:
            time.sleep(0.02)

    def watch(self, space):
        """A function that follows changes: lists once, and resumes each time."""
        base = "/api/v1/configmaps" if not space else "/api/v1/namespaces/%s/configmaps" % space
        state = {"space": space + "/" if space else "", "at": None, "seen": None}

        def follow(client, rng):
            if state["at"] is None:
                status, answer = client.request("GET", base)
                if status != 200:
                    time.sleep(0.05)
                    return
                state["at"] = int(answer["metadata"]["resourceVersion"])
                state["seen"] = {"space": state["space"], "begin": state["at"], "events": []}
                self.record.watches.append(state["seen"])
            self.record.count("watches")
            path = "%s?watch=true&allowWatchBookmarks=true&resourceVersion=%d&timeoutSeconds=%d" % (base, state["at"], rng.randrange(2, 30))
            client.connection.request("GET", path, headers={"Accept": "application/json"})
            response = client.connection.getresponse()
            if response.status != 200:
                response.read()
                self.record.count("watches refused with %d" % response.status)
                if response.status == 410:
                    state["at"] = None
                time.sleep(0.05)
                return
            left = rng.randrange(1, 400)
            while left > 0 and (line := response.readline()):
                left -= 1
                event = json.loads(line)
                if event["type"] == "ERROR":
                    self.record.count("watches ended with %s" % event["object"].get("code"))
                    if event["object"].get("code") == 410:
                        state["at"] = None
                    break
                revision = int(event["object"]["metadata"]["resourceVersion"])
                item = (None, revision, 0) if event["type"] == "BOOKMARK" else item_of(event["object"])
                state["seen"]["events"].append((event["type"], item))
                state["at"] = revision
                self.record.tell(revision)
            client.close()
            client.connection.close()
        return follow


class Judge:
    """Compares the record with etcd's history: (revision, key, write or None for a deletion, saw, value's key)."""

    def __init__(self, record, history):
        self.record, self.history, self.failures = record, history, []
        self.of_key, self.by_write = {}, {}
        for entry in history:
            self.of_key.setdefault(entry[1], []).append(entry)
            if entry[2]:
                if entry[2] in self.by_write:
                    self.fail("write %d happened twice: %s and %s" % (entry[2], self.by_write[entry[2]], entry))
                self.by_write[entry[2]] = entry

    def fail(self, text):
        self.failures.append(text)

    def state(self, key, revision):
        """The write that the key has at the revision, as (revision, write), or None."""
        entries = self.of_key.get(key, [])
        at = bisect.bisect_right([entry[0] for entry in entries], revision)
        return None if at == 0 or entries[at - 1][2] is None else (entries[at - 1][0], entries[at - 1][2])

    def judge(self):
        for write in self.record.writes.values():
            self.judge_write(write)
        for key, entries in self.of_key.items():
            before = None
            for entry in entries:
                if entry[2] is not None and entry[2] in self.record.writes and entry[3] != (before[2] if before and before[2] else 0):
                    self.fail("%s replaced %s" % (entry, before))
                before = entry
        for told, key, item in self.record.reads:
            self.judge_read(told, key, item)
        for told, prefix, revision, items in self.record.lists:
            expected = sorted((key,) + found for key in self.of_key if key.startswith(prefix) and (found := self.state(key, revision)))
            if revision < told or [item for item in items if item[2]] != [item for item in expected if item[2]]:
                self.fail("list of %r at %d (known before: %d) has %s, not %s" % (prefix, revision, told, items, expected))
        for watch in self.record.watches:
            self.judge_watch(watch)
        return self.failures

    def judge_write(self, write):
        entry = self.by_write.get(write["number"])
        if write["kind"] == "delete":
            return
        if entry and entry[1] != write["key"]:
            self.fail("%s is at %s" % (write, entry))
        if write["outcome"] == "refused" and entry:
            self.fail("refused, and happened: %s" % write)
        if write["outcome"] == "done" and (not entry or entry[0] != write["revision"]):
            self.fail("acknowledged, and not in history: %s, %s" % (write, entry))
        if entry and entry[0] <= write["told"]:
            self.fail("older than what was known before it was sent: %s, %s" % (write, entry))

    def judge_read(self, told, key, item):
        if item is None:
            # It must have been absent at one moment since.
            if self.state(key, told) and not any(entry[0] > told and entry[2] is None for entry in self.of_key[key]):
                self.fail("get of %s found nothing, known before: %d" % (key, told))
            return
        after = [entry for entry in self.of_key.get(key, []) if entry[0] > item[1]]
        if self.state(key, item[1]) != (item[1], item[2]):
            self.fail("get of %s showed %s, which never was" % (key, item))
        elif after and after[0][0] <= told:
            self.fail("get of %s showed %s, known before: %s" % (key, item, after[0]))

    def judge_watch(self, watch):
        changes = [entry for entry in self.history if entry[0] > watch["begin"] and entry[1].startswith(watch["space"])]
        place = 0
        for kind, (key, revision, number) in watch["events"]:
            if kind == "BOOKMARK":
                if place < len(changes) and changes[place][0] <= revision:
                    return self.fail("bookmark %d before %s, watch of %r" % (revision, changes[place], watch["space"]))
                continue
            if place == len(changes):
                return self.fail("%s %s is behind history" % (kind, (key, revision)))
            wanted = changes[place]
            existed = self.state(wanted[1], wanted[0] - 1)
            wanted_kind = "DELETED" if wanted[2] is None else "MODIFIED" if existed else "ADDED"
            wanted_number = existed[1] if wanted[2] is None and existed else wanted[2]
            if (kind, revision, key, number) != (wanted_kind, wanted[0], wanted[1], wanted_number):
                return self.fail("watch of %r got %s, wanted %s of %s" % (watch["space"], (kind, revision, key, number), wanted_kind, wanted))
            place += 1


def faults(rng, cluster, network, server, record, until):
    everyone = list(range(MEMBERS)) + [SERVER]
    while time.monotonic() < until:
        time.sleep(rng.uniform(0.3, 1.5))
        victim = rng.randrange(MEMBERS)
        pause = rng.uniform(0.2, 6)
        kind = rng.choice(("kill", "kill", "stop", "partition", "partition", "partition", "cut", "minority", "restart"))
        record.count("faults: " + kind)
        if kind == "kill":
            cluster.kill(victim)
            time.sleep(pause / 2)
            cluster.start(victim)
        elif kind == "stop":
            cluster.processes[victim].send_signal(signal.SIGSTOP)
            time.sleep(pause)
            cluster.processes[victim].send_signal(signal.SIGCONT)
        elif kind == "restart":
            server.kill()
            server.start()
        else:
            others = [SERVER] if kind == "cut" else list(range(MEMBERS)) if kind == "partition" else everyone
            network.block(frozenset((victim, other)) for other in others if other != victim)
            time.sleep(pause)
            network.heal()


def history_of(etcdctl, endpoint):
    """Everything that happened to ConfigMaps, from etcd itself."""
    subprocess.run([etcdctl, "--endpoints=" + endpoint, "put", ROOT + "zz-end", "{}"], check=True, capture_output=True)
    watch = subprocess.Popen([etcdctl, "--endpoints=" + endpoint, "watch", "--prefix", ROOT, "--rev=1", "-w", "json"], stdout=subprocess.PIPE)
    history = []
    try:
        for line in watch.stdout:
            for event in json.loads(line).get("Events", []):
                pair = event["kv"]
                key = base64.b64decode(pair["key"]).decode()[len(ROOT):]
                if key == "zz-end":
                    return history
                value = None if event.get("type") == 1 else json.loads(base64.b64decode(pair["value"])).get("data", {})
                history.append((pair["mod_revision"], key, None if value is None else int(value.get("write", 0)), int((value or {}).get("saw", 0))))
    finally:
        watch.kill()
        watch.wait()
    raise RuntimeError("etcdctl ended")


def unnoticed(record, history):
    """Spoilt copies of what was seen, each of which must be a failure; the names of those that are none."""
    def watch(change):
        longest = max(record.watches, key=lambda seen: sum(kind != "BOOKMARK" for kind, _ in seen["events"]))
        events = list(longest["events"])
        places = [i for i, (kind, _) in enumerate(events) if kind != "BOOKMARK"][:-1]
        change(events, places[len(places) // 2], places[len(places) // 2 + 1])
        return dict(watches=[dict(longest, events=events)])

    def swap(events, a, b):
        events[a], events[b] = events[b], events[a]
    done = next(write for write in record.writes.values() if write["outcome"] == "done" and "revision" in write)
    late = next(entry for entry in reversed(history) if entry[2])
    spoilt = {
        "an event is missing": watch(lambda events, a, b: events.pop(a)),
        "an event is repeated": watch(lambda events, a, b: events.insert(a, events[a])),
        "events change places": watch(swap),
        "a bookmark is early": watch(lambda events, a, b: events.insert(a, ("BOOKMARK", (None, events[b][1][1], 0)))),
        "an acknowledged write is lost": dict(writes={done["number"]: dict(done, revision=late[0] + 1)}),
        "a refused write happened": dict(writes={done["number"]: dict(done, outcome="refused")}),
        "a get is stale": dict(reads=[(late[0] + 1, done["key"], (done["key"], 1, done["number"]))]),
        "a list is incomplete": dict(lists=[(0, "", late[0], [])]),
        "a list is stale": dict(lists=[(late[0] + 1,) + record.lists[-1][1:]]),
    }
    names = []
    for name, fields in spoilt.items():
        copy = Record()
        copy.__dict__.update(fields)
        if not Judge(copy, history).judge():
            names.append(name)
    return names


class Rig(EtcdServer):
    def __init__(self, binary, folder, etcd, pki):
        super().__init__(binary, folder, etcd, "127.0.0.1", pki)
        self.fixed = free_port()
        self.arguments = [flag for flag in self.arguments if "reconciler" not in flag] + [
            "--endpoint-reconciler-type=none", "--storage-media-type=application/json", "--etcd-compaction-interval=0", "--embedded-controllers=off"]

    def command(self):
        self.port = self.fixed  # A restart is where it was.
        return super().command()


def settle(server):
    """The server answers a write again."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if Client(server, timeout=8).request("POST", "/api/v1/namespaces/robust/configmaps", {"metadata": {"generateName": "settled-"}})[0] == 201:
                return
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(0.1)
    raise RuntimeError("no write within 60 s of the last fault")


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = arguments_of(parser)
    os.makedirs(arguments.folder)
    pki = make_pki(os.path.join(arguments.folder, "pki"))
    network, record, rng = Network(), Record(), random.Random(arguments.seed)
    cluster = Cluster(os.path.join(arguments.programs, "etcd"), arguments.folder, network)
    server = Rig(arguments.keelson, os.path.join(arguments.folder, "server"), ",".join(cluster.relayed), pki)
    try:
        server.start()
        client = Client(server)
        client.must(201, "POST", "/api/v1/namespaces", {"metadata": {"name": "robust"}})
        traffic = Traffic(record, server, arguments.seed)
        functions = [traffic.write] * 4 + [traffic.read] * 2 + [traffic.watch(""), traffic.watch("default"), traffic.watch("robust"), traffic.watch("")]
        for number, function in enumerate(functions):
            traffic.run(function, number)
        faults(rng, cluster, network, server, record, time.monotonic() + arguments.seconds)
        settle(server)
        time.sleep(2)
        traffic.ending.set()
        for thread in traffic.threads:
            thread.join(40)
        history = history_of(os.path.join(arguments.programs, "etcdctl"), cluster.direct[0])
    finally:
        network.heal()
        server.stop()
        cluster.stop()
    failures = Judge(record, history).judge()
    outcomes = [write["outcome"] for write in record.writes.values()]
    print("seed %d, %.0f s: %d writes (%s), %d gets, %d lists, %d events of watches, %d revisions; %s" % (
        arguments.seed, arguments.seconds, len(outcomes), ", ".join("%d %s" % (outcomes.count(o), o) for o in ("done", "refused", "unknown")), len(record.reads),
        len(record.lists), sum(len(watch["events"]) for watch in record.watches), len(history), ", ".join("%s: %d" % pair for pair in sorted(record.counts.items()))))
    failures += ["the judge does not notice that " + name for name in unnoticed(record, history)]
    for failure in failures[:20]:
        print("FAIL " + failure)
    print("%d failures" % len(failures))
    return 1 if failures or not history else 0


if __name__ == "__main__":
    sys.exit(main())
