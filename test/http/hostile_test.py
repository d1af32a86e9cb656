#!/usr/bin/env python3
"""Hostile clients against a server that speaks TLS on 127.0.0.1, while a good client asks all the time.

hostile_test.py                         starts build/release/src/http/http_example
hostile_test.py PORT PID [PATH STREAM]  uses a running server: PATH answers quickly (default /healthz), STREAM is long (or "-")

Every case must end with the right status or a closed connection, the good client must be answered within two seconds each time (more on a
busy machine), and the server's resident memory must stay within 100 MB of what it was. Standard library only.
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

MEMORY_MB = 100
PATIENCE = 100  # seconds: above the longest timeout of the server (idle, 90 s)


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0)


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
    def __init__(self, port, pid, path, stream):
        self.port, self.pid, self.path, self.stream = port, pid, path, stream

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


SLOW = {"slow headers, HTTP/1.1": slow_headers_1, "slow headers, HTTP/2": slow_headers_2, "silence after the handshake": silent_tls,
        "500 half-open connections": half_open, "slow body": slow_body_1}
READERS = {"slow reader, HTTP/1.1": slow_reader_1, "1,800 streams with a closed window": slow_reader_2}
QUICK = {"10,000 rapid resets": rapid_resets, "head of 1 MiB": oversized_1, "CONTINUATION flood": continuation_flood,
         "PING flood": flood(frame(6, 0, 0, b"12345678")), "SETTINGS flood": flood(frame(4, 0, 0)),
         "PRIORITY flood": flood(frame(2, 0, 1, b"\0\0\0\0\x10")), "garbage, HTTP/1.1": garbage_1, "garbage, HTTP/2": garbage_2,
         "garbage instead of TLS": garbage_tls, "plain HTTP on the TLS port": plain_http, "300 connections opened and closed": many_connections}


def calm_seconds(target):
    """The slowest of twenty answers before anything happens: a busy machine is not the server's fault."""
    slowest = 0.0
    for _ in range(20):
        begin = time.monotonic()
        with target.connect("http/1.1") as connection:
            connection.sendall(f"GET {target.path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            read_to_end(connection)
        slowest = max(slowest, time.monotonic() - begin)
    return slowest


def good_client(target, stop, results):
    """In a process of its own, so that the attackers' Python does not hold it up."""
    answers, slowest, problem = 0, 0.0, None
    try:
        while not stop.wait(0.05):
            begin = time.monotonic()
            with target.connect("http/1.1") as connection:
                connection.sendall(f"GET {target.path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
                answer = read_to_end(connection)
            # 429 is an answer too: a whole server may shed load by its limits of requests in flight.
            expect(answer[9:12] in (b"200", b"429"), f"got {answer[:80]!r}")
            slowest = max(slowest, time.monotonic() - begin)
            answers += 1
    except Exception as error:
        problem = str(error)
    results.put((answers, slowest, problem))


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
    target = Target(port, pid, path, stream)
    calm = calm_seconds(target)
    idle = target.memory()
    peak = idle
    stop, results = multiprocessing.Event(), multiprocessing.Queue()
    good = multiprocessing.Process(target=good_client, args=(target, stop, results))
    good.start()
    failures = []

    def run(name, case):
        begin = time.monotonic()
        try:
            case(target)
            result = "ok"
        except Exception as problem:
            failures.append(name)
            result = f"FAILED: {problem}"
        print(f"{name}: {result} ({time.monotonic() - begin:.1f} s)", flush=True)

    side = [threading.Thread(target=run, args=item) for item in list(SLOW.items()) + (list(READERS.items()) if stream != "-" else [])]
    for thread in side:
        thread.start()
    for name, case in QUICK.items():
        run(name, case)
        peak = max(peak, target.memory())
    while any(thread.is_alive() for thread in side):
        peak = max(peak, target.memory())
        time.sleep(0.1)
    stop.set()
    answers, slowest, problem = results.get()
    good.join()
    if problem is not None:
        failures.append(f"good client: {problem}")
    print(f"good client: {answers} answers, slowest {slowest * 1000:.0f} ms (before: {calm * 1000:.0f} ms)")
    print(f"memory: {idle:.0f} MB idle, {peak:.0f} MB at most")
    if slowest > max(2, 20 * calm):
        failures.append("the good client waited too long")
    if peak > idle + MEMORY_MB:
        failures.append("too much memory")
    if process is not None:
        process.terminate()
        process.wait()
    print("failures: " + "; ".join(failures) if failures else "all cases ended well")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
