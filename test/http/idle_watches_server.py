#!/usr/bin/env python3
"""Memory of idle watches on the whole server. usage: idle_watches_server.py KEELSON WORK_FOLDER [CONNECTIONS] [SECONDS]

h2load opens CONNECTIONS (5,000) HTTP/2 connections, a hundred each second, with a watch each, then with ten each; the watches end after SECONDS (120; more on a busy
machine). Below 40 kB for a connection with its watch, below 2 kB for each further watch; one event must reach all of them: h2load tells how many
bytes it got.
"""
import os
import re
import resource
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "system"))
from harness import Client, Server, config_map, skip  # noqa: E402

TOKEN = "idle"
MAPS = "/api/v1/namespaces/default/configmaps"


def watches(client):
    text = client.request("GET", "/metrics", accept="*/*")[1].decode()
    return sum(int(float(line.rsplit(" ", 1)[1])) for line in text.splitlines() if line.startswith("apiserver_longrunning_requests{") and 'verb="WATCH"' in line)


def measure(binary, folder, connections, each, seconds):
    """Resident anonymous kB above the idle server, with connections × each watches."""
    os.makedirs(folder)
    tokens = os.path.join(folder, "tokens.csv")
    with open(tokens, "w") as f:
        f.write("%s,bench,bench,system:masters\n" % TOKEN)
    server = Server(binary, folder, flags=["--token-auth-file=" + tokens]).start()
    try:
        client = Client(server)
        revision = client.must(200, "GET", MAPS)["metadata"]["resourceVersion"]
        before, already = server.memory_kb("RssAnon"), watches(client)  # not the program's own pages, which the kernel may drop at any time
        path = "%s?watch=1&resourceVersion=%s&timeoutSeconds=%d" % (MAPS, revision, seconds)
        load = subprocess.Popen(["h2load", "-r", "100", "-c", str(connections), "-n", str(connections * each), "-m", str(each), "-t", "1", "-H", "Authorization: Bearer " + TOKEN,
                                 "https://127.0.0.1:%d%s" % (server.port, path)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        end = time.monotonic() + seconds - 10
        while (count := watches(client) - already) < connections * each:
            if time.monotonic() > end:
                raise RuntimeError("only %d watches were opened" % count)
            time.sleep(0.5)
        used = server.memory_kb("RssAnon") - before
        client.must(201, "POST", MAPS, config_map("event", {"key": "value"}))
        report = load.communicate(timeout=seconds + 120)[0]
        succeeded = int(re.search(r"(\d+) succeeded", report).group(1))
        data = int(re.search(r"\((\d+)\) data", report).group(1))
        event = data // (connections * each)
        print("%d × %d watches: %d kB, %d ended well, %d bytes each" % (connections, each, used, succeeded, event), flush=True)
        if succeeded != connections * each or data % (connections * each) or event < 100:
            raise RuntimeError("the event did not reach all: " + report[-800:])
        return used
    finally:
        server.stop(60)


def main():
    if shutil.which("h2load") is None:
        skip("h2load is missing (Debian package nghttp2-client)")
    binary, folder = sys.argv[1], os.path.abspath(sys.argv[2])
    connections = int(sys.argv[3]) if len(sys.argv) > 3 else 5000
    seconds = int(sys.argv[4]) if len(sys.argv) > 4 else 120
    resource.setrlimit(resource.RLIMIT_NOFILE, (connections + 1000, max(connections + 1000, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    shutil.rmtree(folder, ignore_errors=True)
    one = measure(binary, os.path.join(folder, "one"), connections, 1, seconds)
    ten = measure(binary, os.path.join(folder, "ten"), connections, 10, seconds)
    per_connection, per_watch = one / connections, (ten - one) / (connections * 9)
    print("%d connections with a watch: %.2f kB each; each further watch %.2f kB" % (connections, per_connection, per_watch))
    return 0 if per_connection < 40 and per_watch < 2 else 1


if __name__ == "__main__":
    sys.exit(main())
