"""HTTPS servers on 127.0.0.1 that the server under test calls: admission webhooks that record what they are sent, and ones that misbehave.

Python 3 standard library and the openssl command only.
"""
import base64
import http.server
import json
import os
import socket
import ssl
import struct
import subprocess
import threading
import time


def make_certificate(folder):
    """A self-signed certificate for 127.0.0.1: paths of certificate and key."""
    os.makedirs(folder, exist_ok=True)
    cert, key = os.path.join(folder, "peer.crt"), os.path.join(folder, "peer.key")
    if not os.path.exists(cert):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", cert,
                        "-days", "2", "-subj", "/CN=peer", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    return cert, key


class WebhookPeer:
    """Allows every AdmissionReview and keeps it: peer.take() returns [(path, request)] since the last take()."""

    def __init__(self, folder):
        cert, key = make_certificate(folder)
        with open(cert, "rb") as f:
            self.ca_bundle = base64.b64encode(f.read()).decode()
        self.lock, self.received = threading.Lock(), []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        peer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with peer.lock:
                    peer.received.append((self.path.split("?")[0], sent["request"]))
                answer = json.dumps(dict(sent, request=None, response={"uid": sent["request"]["uid"], "allowed": True})).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = "https://127.0.0.1:%d" % self.server.server_address[1]

    def client_config(self, path):
        return {"url": self.url + path, "caBundle": self.ca_bundle}

    def take(self):
        with self.lock:
            taken, self.received = self.received, []
        return taken

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class FaultyPeer:
    """Does what no webhook should. Each connection reads one request and hands it to faults[path](connection, review)."""

    def __init__(self, folder, faults):
        cert, key = make_certificate(folder)
        with open(cert, "rb") as f:
            self.ca_bundle = base64.b64encode(f.read()).decode()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(cert, key)
        self.faults, self.lock, self.called = faults, threading.Lock(), []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "https://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def client_config(self, path):
        return {"url": self.url + path, "caBundle": self.ca_bundle}

    def accept(self):
        while True:
            try:
                plain, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(plain,), daemon=True).start()

    def serve(self, plain):
        try:
            with self.context.wrap_socket(plain, server_side=True) as connection:
                head = b""
                while b"\r\n\r\n" not in head:
                    data = connection.recv(65536)
                    if not data:
                        return
                    head += data
                head, _, body = head.partition(b"\r\n\r\n")
                path = head.split()[1].decode().split("?")[0]
                length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
                while len(body) < length:
                    body += connection.recv(65536)
                with self.lock:
                    self.called.append(path)
                self.faults[path](connection, json.loads(body))
        except OSError:
            pass  # The server under test has ended the connection.

    def close(self):
        self.listener.close()


# Faults of a FaultyPeer: answers that never end, until the server hangs up.
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
MEGABYTE = b" " * (1 << 20)
TRICKLE_SECONDS = 0.02  # between two bytes


def trickle_body(connection, review):
    connection.sendall(OK + b"Content-Length: 100000\r\n\r\n")
    while True:
        connection.sendall(b" ")
        time.sleep(TRICKLE_SECONDS)


def trickle_head(connection, review):
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while True:
        connection.sendall(b"x")
        time.sleep(TRICKLE_SECONDS)


def gigabyte(connection, review):
    connection.sendall(OK + b"Content-Length: %d\r\n\r\n" % (1024 * len(MEGABYTE)))
    for _ in range(1024):
        connection.sendall(MEGABYTE)


def endless_chunks(connection, review):
    connection.sendall(OK + b"Transfer-Encoding: chunked\r\n\r\n")
    while True:
        connection.sendall(b"100000\r\n" + MEGABYTE + b"\r\n")


def endless_head(connection, review):
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        connection.sendall(b"X-Field: " + b"x" * 8000 + b"\r\n")


def reset(connection):
    """Ends a connection with RST."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    os.close(connection.detach())
