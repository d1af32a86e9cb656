#!/usr/bin/env python3
"""A disk that others fill. usage: full_disk_test.py KEELSON WORK_FOLDER

The data folder is on a small file system. While a neighbour has all its space, creates are refused and deletions go on from the space
that is set aside for them. When that is gone, too, a write fails: log, metric and readyz say so, reads go on. When the space is back,
the same process takes writes again. Needs the right to mount a tmpfs.
"""
import concurrent.futures
import os
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, Server, config_map, skip  # noqa: E402

PATH = "/api/v1/namespaces/default/configmaps"
OBJECTS = 2400  # their deletions are more than the half megabyte that a log has ahead
WRITERS = 8


def name(i):
    return ("c%d" % i).ljust(250, "x")  # long names make long records


def expect(condition, message):
    if not condition:
        raise AssertionError(message)


def eventually(condition, message, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        expect(time.monotonic() < end, message)
        time.sleep(0.05)


def fill(folder):
    """Takes all space that is left."""
    with open(os.path.join(folder, "neighbour"), "ab", buffering=0) as file:
        try:
            while True:
                file.write(b"n" * 65536)
        except OSError:
            pass


def text(client, path):
    status, body = client.request("GET", path, accept="*/*")
    return status, body.decode()


def metric(client, name):
    for line in text(client, "/metrics")[1].splitlines():
        if line.startswith(name + " "):
            return float(line.split()[1])
    return None


def create(server, numbers):
    client = Client(server)
    for i in numbers:
        client.must(201, "POST", PATH, config_map(name(i), {"k": "v"}))
    client.close()


def run(binary, folder, disk):
    server = Server(binary, folder)
    server.data = os.path.join(disk, "data")
    server.start()
    pid = server.process.pid
    client = Client(server)
    with concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
        for done in [pool.submit(create, server, range(first, OBJECTS, WRITERS)) for first in range(WRITERS)]:
            done.result()
    fill(disk)

    def refused():
        status, body = client.request("POST", PATH, config_map("refused", {}))
        if status == 201:
            client.must(200, "DELETE", PATH + "/refused")
        return status == 500 and "database space exceeded" in body["message"]
    eventually(refused, "creates are not refused on a full disk")
    for i in range(100):
        client.must(200, "DELETE", PATH + "/" + name(i))

    # The neighbour takes what is given up, until nothing is left.
    deleted = 100
    while deleted < OBJECTS:
        if deleted % 10 == 0:
            fill(disk)
        status, _ = client.request("DELETE", PATH + "/" + name(deleted))
        if status != 200:
            break
        deleted += 1
    expect(deleted < OBJECTS, "no write has failed")
    client.must(200, "GET", PATH + "/" + name(OBJECTS - 1))

    def unready():
        status, body = text(client, "/readyz?verbose")
        return status == 500 and "[-]etcd failed" in body
    eventually(unready, "readyz does not tell of the failure")
    eventually(lambda: metric(client, "keelson_store_refuses_writes") == 1, "the metric does not tell of the failure")
    with open(server.log_path, encoding="utf-8") as log:
        expect(log.read().count("Store refuses writes until it has recovered") == 1, "the log does not tell of the failure once")

    os.remove(os.path.join(disk, "neighbour"))
    eventually(lambda: client.request("POST", PATH, config_map("again", {}))[0] in (201, 409), "writes do not go on")
    eventually(lambda: text(client, "/readyz") == (200, "ok"), "readyz does not tell of the recovery")
    eventually(lambda: metric(client, "keelson_store_refuses_writes") == 0, "the metric does not tell of the recovery")
    expect(server.process.poll() is None and server.process.pid == pid, "another process")
    found = {item["metadata"]["name"] for item in client.must(200, "GET", PATH)["items"]}
    expect("again" in found and name(OBJECTS - 1) in found and name(0) not in found, "objects are lost")
    client.close()
    server.stop()
    server.start()
    client = Client(server)
    after = {item["metadata"]["name"] for item in client.must(200, "GET", PATH)["items"]}
    expect(after == found, "the reopened store has other objects")
    client.close()
    server.stop()
    print("full disk: %d deletions before a write failed, recovered without a restart" % deleted)


def main():
    binary, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    disk = os.path.join(folder, "disk")
    os.makedirs(disk)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=192m,mode=0700", "keelson-test", disk], capture_output=True).returncode != 0:
        skip("this user may not mount a file system")
    try:
        run(binary, folder, disk)
    finally:
        subprocess.run(["umount", "-l", disk], capture_output=True)


if __name__ == "__main__":
    main()
