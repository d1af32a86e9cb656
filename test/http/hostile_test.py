#!/usr/bin/env python3
"""Hostile clients against a server that speaks TLS on 127.0.0.1, while a good client asks all the time.

hostile_test.py                         starts build/release/src/http/http_example
hostile_test.py PORT PID [PATH STREAM]  uses a running server: PATH answers quickly (default /healthz), STREAM is long (or "-")

Every case must end with the right status or a closed connection. During each the good client must be answered 200, nine times in ten
within 100 ms and never above two seconds (more on a busy machine; 429 is a failure). The server's resident memory must stay within
100 MB of what it was. With KEELSON_GOOD_TOKEN in the environment the good client and the cases that need a user send that bearer token.
Standard library only.
"""
import multiprocessing
import os
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

SANITIZED = "KEELSON_SANITIZED" in os.environ  # several times slower, and keeps up to 256 MB of what was freed
MEMORY_MB = 400 if SANITIZED else 100
PATIENCE = 100  # seconds: above the longest timeout of the server (idle, 90 s)
USUAL = 1 if SANITIZED else 0.1  # seconds in which nine of ten answers come, on a machine that has nothing else to do

# Pairs of texts after which libstdc++'s std::hash (MurmurHash64A with a fixed seed) is in the same state: any choice of one from each, in this
# order, gives one of 16,384 keys with the same hash.
COLLIDING = """M1qBOZNToNfudX4n rskKxPmv-JzOITWZ hqXsVkfm54UDFrhT qqWUgpBD1jrpa3IB R2-dX59exjSkJnJp 8s9GU4BrJxk37p9O CXn7keE5BsIhw_z6
yzb4PtGabWNXSiPF EDJqrzA24gC2Ay0H 9ZXL2G95hYe_ePsi RcPKKEPSjWb0DGRI 0X4reAD7v5xYbbYG QDYpixYIFjP3peY4 IH5MVqOXkY.Ku8eg Vj7fm_OEUu3RE83x
A72M5Ijewu)I906v dqw_8Lus0a9MQSg6 G1MkHE75o-PkntaP gu1Q3R47zfwJKLVf gZsN-BniW7Ksxh.L Wn47sAykESlmaXMD cFqe53ogf_VcB9mB zya95P2s6-r79VoM
qSXn73gQxw/1PkXc jyd7QKw9uiJobYNt S7WfFUhwhQ+mOI0M fpm4amd3DMYRnCuZ 41KcIp5tZofM./Wk""".split()


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0)
LARGE_FRAMES = PREFACE + frame(4, 1, 0)  # the server's settings are acknowledged: frames of 256 KiB are allowed


def literal(name, value):
    def integer(number, prefix):
        limit = (1 << prefix) - 1
        if number < limit:
            return bytes([number])
        out = [limit]
        number -= limit
        while number >= 128:
            out.append(number % 128 + 128)
            number //= 128
        return bytes(out + [number])

    return b"\0" + integer(len(name), 7) + name + integer(len(value), 7) + value


def request(path, method=b"GET"):
    return b"".join(literal(*field) for field in ((b":method", method), (b":scheme", b"https"), (b":path", path.encode()), (b":authority", b"x")))


class Target:
    def __init__(self, port, pid, path, stream, token=""):
        self.port, self.pid, self.path, self.stream, self.token = port, pid, path, stream, token

    def good_request(self):
        authorization = f"Authorization: Bearer {self.token}\r\n" if self.token else ""
        return f"GET {self.path} HTTP/1.1\r\nHost: x\r\n{authorization}Connection: close\r\n\r\n".encode()

    def cpu(self):
        with open(f"/proc/{self.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def plain(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def connect(self, protocol):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # without the system's CAs, which take long to read
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols([protocol])
        return context.wrap_socket(self.plain(), server_hostname="localhost")

    def memory(self):
        with open(f"/proc/{self.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def read_to_end(connection):
    data = b""
    try:
        while True:
            more = connection.recv(65536)
            if not more:
                return data
            data += more
    except socket.timeout:
        raise
    except OSError:  # reset, or an alert: closed all the same
        return data


def send(connection, data):
    try:
        connection.sendall(data)
    except OSError:
        pass  # the server has had enough


def expect(condition, text):
    if not condition:
        raise AssertionError(text)


# Each case gets a Target and raises when the server behaves badly. Those in SLOW wait for timeouts and run side by side.
def slow_headers_1(target):
    connection = target.connect("http/1.1")
    for byte in b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ":
        send(connection, bytes([byte]))
    expect(b"200" not in read_to_end(connection), "an unfinished head was answered")


def slow_headers_2(target):
    connection = target.connect("h2")
    send(connection, PREFACE + frame(1, 0, 1, request(target.path)[:5]))
    read_to_end(connection)


def silent_tls(target):
    connection = target.connect("h2")
    read_to_end(connection)


def half_open(target):
    connections = [target.plain() for _ in range(500)]
    for connection in connections[:250]:
        send(connection, b"\x16\x03\x01\x02\x00\x01")  # the start of a ClientHello
    for connection in connections:
        read_to_end(connection)


def slow_body_1(target):
    connection = target.connect("http/1.1")
    send(connection, b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf")
    head = connection.recv(65536)
    expect(head[9:12] in (b"408", b"400", b"401", b"403", b"404", b"405", b"504"), f"slow body got {head[:60]!r}")
    read_to_end(connection)


def slow_reader_1(target):
    connection = target.connect("http/1.1")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    send(connection, f"GET {target.stream} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    time.sleep(20)
    connection.close()


def slow_reader_2(target):
    connections = []
    for _ in range(20):
        connection = target.connect("h2")
        send(connection, PREFACE + frame(4, 0, 0, struct.pack(">HI", 4, 0)))  # a window of nothing
        send(connection, b"".join(frame(1, 5, 2 * i + 1, request(target.stream)) for i in range(90)))
        connections.append(connection)
    time.sleep(20)
    for connection in connections:
        connection.close()


def rapid_resets(target):
    connection = target.connect("h2")
    send(connection, PREFACE)
    for start in range(0, 10000, 100):
        batch = b""
        for i in range(start, start + 100):
            batch += frame(1, 5, 2 * i + 1, request(target.path)) + frame(3, 0, 2 * i + 1, b"\0\0\0\x08")
        send(connection, batch)
    expect(frame(7, 0, 0)[3:4] in read_to_end(connection), "no GOAWAY")


def oversized_1(target):
    connection = target.connect("http/1.1")
    send(connection, b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * (1024 * 1024 + 10) + b"\r\n\r\n")
    expect(b" 431 " in read_to_end(connection), "no 431")


def continuation_flood(target):
    connection = target.connect("h2")
    send(connection, PREFACE + frame(1, 1, 1, request(target.path)))
    for _ in range(2000):
        send(connection, frame(9, 0, 1, literal(b"x", b"y" * 16000)))
    read_to_end(connection)


def flood(data):
    def run(target):
        connection = target.connect("h2")
        send(connection, PREFACE)
        for _ in range(200):
            send(connection, data * 200)
        read_to_end(connection)

    return run


def garbage_1(target):
    connection = target.connect("http/1.1")
    send(connection, os.urandom(4000) + b"\r\n\r\n")
    read_to_end(connection)


def garbage_2(target):
    connection = target.connect("h2")
    send(connection, PREFACE + b"\xff" * 4000)
    read_to_end(connection)


def garbage_tls(target):
    for data in (os.urandom(4000), b"\x16\x03\x01\x02\x00" + os.urandom(600), b"\x80" * 100):
        connection = target.plain()
        send(connection, data)
        connection.shutdown(socket.SHUT_WR)
        read_to_end(connection)


def plain_http(target):
    connection = target.plain()
    send(connection, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    expect(read_to_end(connection).startswith(b"HTTP/1.0 400 Bad Request"), "plain HTTP was not refused properly")


def many_connections(target):
    connections = []
    for _ in range(300):
        connection = target.connect("h2")
        send(connection, PREFACE)
        connections.append(connection)
    for connection in connections:
        connection.close()


def repeated_field(path, name, value, count):
    """A header block in which `name: value` is said once and repeated by one byte each (HPACK's table, entry 62)."""
    return request(path) + b"\x40" + bytes([len(name)]) + name + bytes([len(value)]) + value + b"\xbe" * (count - 1)


def cookie_crumbs(target):
    """Cookies in 13,000 pieces: 2.3 s of CPU once, in a block of 13 kB."""
    begin = target.cpu()
    for _ in range(10):
        connection = target.connect("h2")
        send(connection, PREFACE + frame(1, 5, 1, repeated_field(target.path, b"cookie", b"a=b", 13000)))
        read_to_end(connection)
    expect(target.cpu() - begin < 3, f"cookies took {target.cpu() - begin:.1f} s of CPU")


def indexed_flood(target):
    """Fifteen million fields of one byte each in CONTINUATION frames: 20 s of CPU where all are decoded."""
    begin = target.cpu()
    connection = target.connect("h2")
    send(connection, LARGE_FRAMES + frame(1, 1, 1, repeated_field(target.path, b"x", b"y", 100)))
    for _ in range(60):
        send(connection, frame(9, 0, 1, b"\xbe" * 250000))
    read_to_end(connection)
    expect(target.cpu() - begin < 3, f"the block took {target.cpu() - begin:.1f} s of CPU")


def closed_windows(target):
    """800 anonymous requests whose answers are never read: they hold no seat."""
    connections = []
    for _ in range(8):
        connection = target.connect("h2")
        send(connection, PREFACE + frame(4, 0, 0, struct.pack(">HI", 4, 0)))
        batch = b"".join(frame(1, 5, 2 * i + 1, request("/api/v1/pods", b"POST" if i % 2 else b"GET")) for i in range(100))
        send(connection, batch)
        connections.append(connection)
    time.sleep(8)
    for connection in connections:
        connection.close()


def unread_bodies(target):
    """Request bodies that no handler reads, on 6 connections of 60 streams."""
    connections = []
    for _ in range(6):
        connection = target.connect("h2")
        send(connection, LARGE_FRAMES + frame(4, 0, 0, struct.pack(">HI", 4, 0)))
        for i in range(60):
            send(connection, frame(1, 4, 2 * i + 1, request("/api/v1/pods", b"POST")) + frame(0, 0, 2 * i + 1, b"b" * 200000))
        connections.append(connection)
    time.sleep(2)
    for connection in connections:
        connection.close()


def made_up_urls(target):
    """Long and many made-up URLs: none becomes the label of a metric."""
    for i in range(20):
        connection = target.connect("http/1.1")
        path = "/apis/g%d/v1/%s" % (i, "x" * 900000)
        send(connection, f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        read_to_end(connection)
    for batch in range(10):
        connection = target.connect("http/1.1")
        for i in range(200):
            send(connection, f"GET /apis/g{batch}/v1/r{i} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        send(connection, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        read_to_end(connection)


def colliding_keys(count):
    keys = [""]
    for i in range(0, len(COLLIDING), 2):
        keys = [key + choice for key in keys for choice in COLLIDING[i:i + 2]]
    return keys[:count]


def hash_flood(target):
    """A review whose labels collide in an unseeded hash: 8 s of CPU for 40,000 keys once. Any user may send it."""
    if not target.token:
        return
    labels = ",".join('"%s":""' % key for key in colliding_keys(12000))
    body = ('{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1","metadata":{"labels":{%s}}}' % labels).encode()
    begin = target.cpu()
    for _ in range(4):
        connection = target.connect("http/1.1")
        send(connection, (f"POST /apis/authentication.k8s.io/v1/selfsubjectreviews HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {target.token}\r\n"
                          f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n").encode() + body)
        read_to_end(connection)
    expect(target.cpu() - begin < 4, f"four reviews took {target.cpu() - begin:.1f} s of CPU")


SLOW = {"slow headers, HTTP/1.1": slow_headers_1, "slow headers, HTTP/2": slow_headers_2, "silence after the handshake": silent_tls,
        "500 half-open connections": half_open, "slow body": slow_body_1}
READERS = {"slow reader, HTTP/1.1": slow_reader_1, "1,800 streams with a closed window": slow_reader_2}
QUICK = {"10,000 rapid resets": rapid_resets, "head of 1 MiB": oversized_1, "CONTINUATION flood": continuation_flood,
         "PING flood": flood(frame(6, 0, 0, b"12345678")), "SETTINGS flood": flood(frame(4, 0, 0)),
         "PRIORITY flood": flood(frame(2, 0, 1, b"\0\0\0\0\x10")), "garbage, HTTP/1.1": garbage_1, "garbage, HTTP/2": garbage_2,
         "cookies in 13,000 pieces": cookie_crumbs, "CONTINUATION flood of one-byte fields": indexed_flood,
         "800 anonymous requests with closed windows": closed_windows, "bodies that nobody reads": unread_bodies,
         "made-up URLs": made_up_urls, "hash flooding": hash_flood,
         "garbage instead of TLS": garbage_tls, "plain HTTP on the TLS port": plain_http, "300 connections opened and closed": many_connections}


def ask(target):
    """Seconds that one answer of the good client takes, with its own connection."""
    begin = time.monotonic()
    with target.connect("http/1.1") as connection:
        connection.sendall(target.good_request())
        answer = read_to_end(connection)
    expect(answer[9:12] == b"200", f"got {answer[:200]!r}")
    return time.monotonic() - begin


def calm_seconds(target):
    """The slowest of twenty answers before anything happens: a busy machine is not the server's fault."""
    return max(ask(target) for _ in range(20))


def good_client(target, stop, results):
    """In its own process, so that the attackers' Python does not hold it up."""
    seconds, problem = [], None
    try:
        while not stop.wait(0.05):
            seconds.append((time.monotonic(), ask(target)))
    except Exception as error:
        problem = str(error)
    results.put((seconds, problem))


class Watcher:
    """Runs the good client beside hostile cases, and judges it and the server's memory at the end."""

    def __init__(self, target):
        self.target = target
        self.calm = calm_seconds(target)
        self.idle = self.peak = target.memory()
        self.failures, self.spans = [], []
        self.stop, self.results = multiprocessing.Event(), multiprocessing.Queue()
        self.good = multiprocessing.Process(target=good_client, args=(target, self.stop, self.results))
        self.good.start()

    def run(self, name, case):
        begin = time.monotonic()
        try:
            case(self.target)
            result = "ok"
        except Exception as problem:
            self.failures.append(name)
            result = f"FAILED: {problem}"
        self.spans.append((name, begin, time.monotonic()))
        self.peak = max(self.peak, self.target.memory())
        print(f"{name}: {result} ({time.monotonic() - begin:.1f} s)", flush=True)

    def judge(self):
        self.stop.set()
        seconds, problem = self.results.get()
        self.good.join()
        if problem is not None:
            self.failures.append(f"good client: {problem}")
        slowest = max((took for _, took in seconds), default=0)
        print(f"good client: {len(seconds)} answers, slowest {slowest * 1000:.0f} ms (before: {self.calm * 1000:.0f} ms)")
        print(f"memory: {self.idle:.0f} MB idle, {self.peak:.0f} MB at most")
        usual = max(USUAL, 10 * self.calm)
        for name, begin, end in self.spans:
            during = sorted(took for at, took in seconds if begin <= at + took and at <= end)
            if during and during[len(during) * 9 // 10] > usual:
                self.failures.append(f"{name}: the good client waited {during[len(during) * 9 // 10] * 1000:.0f} ms, usually at most {usual * 1000:.0f}")
        if slowest > max(2, 20 * self.calm):
            self.failures.append("the good client waited too long")
        if self.peak > self.idle + MEMORY_MB:
            self.failures.append("too much memory")
        print("failures: " + "; ".join(self.failures) if self.failures else "all cases ended well")
        return 1 if self.failures else 0


def main():
    process = None
    if len(sys.argv) >= 3:
        port, pid = int(sys.argv[1]), int(sys.argv[2])
        path = sys.argv[3] if len(sys.argv) > 3 else "/healthz"
        stream = sys.argv[4] if len(sys.argv) > 4 else "-"
    else:
        work = tempfile.mkdtemp()
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                        work + "/key.pem", "-out", work + "/cert.pem", "-days", "2", "-subj", "/CN=localhost"], check=True, capture_output=True)
        binary = os.environ.get("BUILD", "build/release") + "/src/http/http_example"
        process = subprocess.Popen([binary, "0", work + "/cert.pem", work + "/key.pem", "2"], stdout=subprocess.PIPE, text=True)
        port, pid = int(process.stdout.readline().rsplit(":", 1)[1]), process.pid
        path, stream = "/", "/stream/100000000"
    watcher = Watcher(Target(port, pid, path, stream, os.environ.get("KEELSON_GOOD_TOKEN", "")))
    side = [threading.Thread(target=watcher.run, args=item) for item in list(SLOW.items()) + (list(READERS.items()) if stream != "-" else [])]
    for thread in side:
        thread.start()
    for name, case in QUICK.items():
        watcher.run(name, case)
    while any(thread.is_alive() for thread in side):
        watcher.peak = max(watcher.peak, watcher.target.memory())
        time.sleep(0.1)
    failed = watcher.judge()
    if process is not None:
        process.terminate()
        process.wait()
    return failed


if __name__ == "__main__":
    sys.exit(main())
