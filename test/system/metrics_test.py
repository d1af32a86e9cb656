#!/usr/bin/env python3
"""/metrics of the whole server after some traffic. usage: metrics_test.py KEELSON WORK_FOLDER

Every family is upstream's, with its type, stability and labels (src/app/testdata/metrics.tsv), or begins with keelson_; and the counts are those of
the traffic.
"""
import http.client
import json
import os
import re
import shutil
import ssl
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, Server, config_map, source_root  # noqa: E402

MAPS = "/api/v1/namespaces/default/configmaps"
SERIES = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def upstream():
    rows = {}
    with open(os.path.join(source_root(), "src", "app", "testdata", "metrics.tsv")) as f:
        next(f)
        for line in f:
            name, kind, stability, labels = line.rstrip("\n").split("\t")
            rows[name] = (kind, stability, set(filter(None, labels.split(","))) - {"le", "quantile"})
    return rows


class Scrape:
    def __init__(self, text):
        self.types, self.stability, self.series = {}, {}, []
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split()
                self.types[name] = kind
            elif line.startswith("# HELP "):
                _, _, name, *words = line.split(" ")
                self.stability[name] = words[0][1:-1] if words and re.fullmatch(r"\[[A-Z]+\]", words[0]) else ""
            elif line:
                name, labels, value = SERIES.match(line).groups()
                self.series.append((name, dict(LABEL.findall(labels or "")), float(value)))

    def sum(self, family, **labels):
        return sum(value for name, has, value in self.series if name == family and all(has.get(k) == v for k, v in labels.items()))


def scrape(client):
    return Scrape(client.must(200, "GET", "/metrics", accept="*/*").decode())


def traffic(server):
    """Ten objects, a list, a watch that sees them, a dry run, a missing object, a stranger and no handshake at all."""
    client = Client(server)
    revision = client.must(200, "GET", MAPS)["metadata"]["resourceVersion"]
    for i in range(10):
        client.must(201, "POST", MAPS, config_map("m%d" % i, {"v": "x" * 100}))
    watch = Client(server)
    watch.connection.request("GET", "%s?watch=true&resourceVersion=%s" % (MAPS, revision), headers={"Accept": "application/json"})
    response = watch.connection.getresponse()
    events = [json.loads(response.readline()) for _ in range(10)]
    if [event["type"] for event in events] != ["ADDED"] * 10:
        raise AssertionError("the watch saw %s" % events)
    client.must(201, "POST", MAPS + "?dryRun=All", config_map("dry", {}))
    client.must(404, "GET", MAPS + "/nobody")
    client.must(200, "GET", "/livez", accept="*/*")
    stranger = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=30, context=ssl._create_unverified_context())
    stranger.request("GET", MAPS)
    if stranger.getresponse().status != 403:
        raise AssertionError("anonymous may list")
    impostor = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=30, context=ssl._create_unverified_context())
    impostor.request("GET", MAPS, headers={"Authorization": "Bearer nonsense"})
    if impostor.getresponse().status != 401:
        raise AssertionError("any token will do")
    plain = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    plain.request("GET", "/")
    plain.getresponse()
    return client, watch


def check_families(shown):
    problems, rows = [], upstream()
    for name, kind in sorted(shown.types.items()):
        if name.startswith("keelson_"):
            continue
        if name not in rows:
            problems.append("%s is neither upstream's nor keelson_..." % name)
            continue
        want_kind, want_stability, want_labels = rows[name]
        if (kind, shown.stability[name]) != (want_kind, want_stability):
            problems.append("%s is a %s %s, upstream's is a %s %s" % (name, shown.stability[name], kind, want_stability, want_kind))
        for series, labels, _ in shown.series:
            # A label without a value is not in upstream's recording, so ours may have more of them, never fewer.
            if re.fullmatch(name + "(_bucket|_sum|_count)?", series) and not want_labels <= set(labels) and series not in rows.keys() - {name}:
                problems.append("%s%s lacks labels of %s" % (series, labels, sorted(want_labels)))
                break
    return problems


def check_counts(before, after):
    maps = {"group": "", "version": "v1", "resource": "configmaps"}
    wanted = [
        (10, "apiserver_request_total", dict(maps, verb="POST", dry_run="", code="201", scope="resource")),
        (1, "apiserver_request_total", dict(maps, verb="POST", dry_run="All")),
        (1, "apiserver_request_total", dict(maps, verb="GET", code="404")),
        (11, "apiserver_request_duration_seconds_count", dict(maps, verb="POST")),
        (10, "apiserver_request_sli_duration_seconds_count", dict(maps, verb="POST")),
        (10, "apiserver_watch_events_total", maps),
        (10, "apiserver_watch_events_sizes_count", maps),
        (10, "apiserver_watch_events_sizes_bucket", dict(maps, le="1024")),
        (1, "apiserver_request_total", {"verb": "GET", "component": "", "subresource": "/livez", "code": "200"}),
        (1, "apiserver_longrunning_requests", dict(maps, verb="WATCH")),
        (1, "authorization_attempts_total", {"result": "no-opinion"}),
        (1, "authorization_duration_seconds_count", {"result": "no-opinion"}),
        (1, "authentication_attempts", {"result": "error"}),
        (1, "authentication_duration_seconds_count", {"result": "error"}),
    ]
    problems = []
    for want, name, labels in wanted:
        got = after.sum(name, **labels) - before.sum(name, **labels)
        if got != want:
            problems.append("%s%s rose by %g, not by %d" % (name, labels, got, want))
    # Metrics of the scrapes and the other requests.
    for least, name, labels in [(15, "authenticated_user_requests", {}), (15, "authorization_attempts_total", {"result": "allowed"}),
                                (15, "apiserver_client_certificate_expiration_seconds_count", {}), (1, "apiserver_tls_handshake_errors_total", {})]:
        if after.sum(name, **labels) - before.sum(name, **labels) < least:
            problems.append("%s%s rose by %g" % (name, labels, after.sum(name, **labels) - before.sum(name, **labels)))
    if after.sum("apiserver_client_certificate_expiration_seconds_bucket", le="0") != 0:
        problems.append("an expired certificate was seen")
    return problems


def main():
    binary, folder = sys.argv[1:3]
    shutil.rmtree(folder, ignore_errors=True)
    server = Server(binary, folder).start()
    try:
        before = scrape(Client(server))
        client, watch = traffic(server)
        after = scrape(client)
        problems = check_families(after) + check_counts(before, after)
        watch.close()
    finally:
        server.stop()
    for problem in problems:
        print("FAILED: " + problem)
    print("%d families, %d series" % (len(after.types), len(after.series)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
