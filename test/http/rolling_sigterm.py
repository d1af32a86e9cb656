#!/usr/bin/env python3
"""SIGTERM under load, again and again, against the whole server. usage: rolling_sigterm.py KEELSON WORK_FOLDER [ROUNDS]

h2load sends requests all the time; the server gets SIGTERM in the middle and is started again. Every request that the server took (its access log has a
line for each) must have been answered with 200, a client that only listens must get GOAWAY without an error, and the exit status must be 0.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
sys.path.insert(0, os.path.join(os.path.dirname(here), "system"))
from harness import Server, skip  # noqa: E402
from hostile_test import PREFACE, Target, frame, request  # noqa: E402

TOKEN = "rolling"
SETTINGS, PING, GOAWAY = 4, 6, 7


def frames(data):
    while len(data) >= 9:
        size = int.from_bytes(data[:3], "big")
        yield data[3], data[9:9 + size]
        data = data[9 + size:]


class Listener:
    """An HTTP/2 connection with one request that then only answers pings, like an idle client."""

    def __init__(self, port):
        self.connection = Target(port, 0, "", "").connect("h2")
        fields = request("/version") + b"\0\x0dauthorization" + bytes([len("Bearer " + TOKEN)]) + b"Bearer " + TOKEN.encode()
        self.connection.sendall(PREFACE + frame(1, 5, 1, fields))
        self.seen = b""

    def until_end(self):
        self.connection.settimeout(60)
        answered = 0
        while True:
            more = self.connection.recv(65536)
            if not more:
                return
            self.seen += more
            kinds = list(frames(self.seen))
            pings = [payload for kind, payload in kinds if kind == PING]
            for payload in pings[answered:]:
                self.connection.sendall(frame(PING, 1, 0, payload))
            answered = len(pings)

    def goaways(self):
        return [int.from_bytes(payload[4:8], "big") for kind, payload in frames(self.seen) if kind == GOAWAY]


def round_of(binary, folder, number):
    tokens = os.path.join(folder, "tokens.csv")
    with open(tokens, "w") as f:
        f.write("%s,bench,bench,system:masters\n" % TOKEN)
    log = os.path.join(folder, "server.log")
    if os.path.exists(log):
        os.rename(log, os.path.join(folder, "server.%d.log" % number))
    server = Server(binary, folder, flags=["-v=3", "--token-auth-file=" + tokens]).start()
    listener = Listener(server.port)
    load = subprocess.Popen(["h2load", "-D", "8", "-c", "20", "-m", "10", "-t", "1", "-H", "Authorization: Bearer " + TOKEN, "https://127.0.0.1:%d/version" % server.port],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    time.sleep(3)
    server.process.send_signal(signal.SIGTERM)
    listener.until_end()
    status = server.process.wait(60)
    report = load.communicate(timeout=60)[0]
    codes = [int(n) for n in re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", report).groups()]
    with open(log, errors="replace") as f:
        taken = sum(1 for line in f if '"HTTP" ' in line and 'URI="/version"' in line) - 1  # the listener's own
    print("round %d: exit status %d, %d requests taken, %d answered with 200, %d otherwise, GOAWAY codes %s" % (
        number, status, taken, codes[0], sum(codes[1:]), listener.goaways()), flush=True)
    return status == 0 and codes[0] == taken and sum(codes[1:]) == 0 and taken > 0 and listener.goaways() and not any(listener.goaways())


def main():
    if shutil.which("h2load") is None:
        skip("h2load is missing (Debian package nghttp2-client)")
    binary, folder = sys.argv[1], os.path.abspath(sys.argv[2])
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    good = [round_of(binary, folder, i + 1) for i in range(rounds)]
    print("%d of %d rounds without a lost request" % (sum(map(bool, good)), rounds))
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
