"""A small kubelet for tests: logs, exec, attach and port forwarding over HTTPS with SPDY/3.1 upgrades. Python standard library only.

Containers are pretended: a log is what the test has put there, a command is run as a process of this machine (with a pseudo terminal when
one is asked for), a forwarded port answers with its number and then echoes. Every request is remembered in `requests`.
"""
import base64
import fcntl
import hashlib
import http.server
import json
import os
import pty
import select
import signal
import ssl
import struct
import subprocess
import termios
import threading
import time
import urllib.parse
import zlib

WORDS = """options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow authorization
cache-control connection content-base content-encoding content-language content-length content-location content-md5 content-range content-type
date etag expect expires from host if-match if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards
pragma proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade user-agent vary via warning
www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie keep-alive origin""".replace("\n", " ").split(" ")
TEXT = ("100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative Information204 No "
        "Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 "
        "Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,"
        "image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,"
        "sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.")
DICTIONARY = b"".join(struct.pack(">I", len(w)) + w.replace("_", " ").encode() for w in WORDS) + TEXT.encode()


class Spdy:
    """The answering side of one SPDY connection; a callback per stream that the peer opens."""

    def __init__(self, connection, on_stream):
        self.connection, self.on_stream = connection, on_stream
        self.inflater, self.deflater = zlib.decompressobj(zdict=DICTIONARY), zlib.compressobj(zdict=DICTIONARY)
        self.lock, self.streams, self.closed = threading.Lock(), {}, False

    def send(self, data):
        with self.lock:
            if not self.closed:
                try:
                    self.connection.sendall(data)
                except OSError:
                    self.closed = True

    def data(self, stream, data, end=False):
        self.send(struct.pack(">II", stream, (int(end) << 24) | len(data)) + data)

    def reply(self, stream):
        with self.lock:
            block = self.deflater.compress(struct.pack(">I", 0)) + self.deflater.flush(zlib.Z_SYNC_FLUSH)
        self.send(struct.pack(">HHI", 0x8003, 2, 4 + len(block)) + struct.pack(">I", stream) + block)

    def _read(self, size):
        data = b""
        while len(data) < size:
            piece = self._receive(size - len(data))
            if piece is None:
                select.select([self.connection], [], [])
            elif not piece:
                return None
            else:
                data += piece
        return data

    def _receive(self, size):
        """The available bytes, None if there are none. A TLS connection is used by one thread at a time."""
        with self.lock:
            self.connection.setblocking(False)
            try:
                return self.connection.recv(size)
            except ssl.SSLWantReadError:
                return None
            finally:
                self.connection.setblocking(True)

    def _headers(self, block):
        text, headers = self.inflater.decompress(block), {}
        count, at = struct.unpack_from(">I", text)[0], 4
        for _ in range(count):
            pair = []
            for _ in range(2):
                size = struct.unpack_from(">I", text, at)[0]
                pair.append(text[at + 4:at + 4 + size].decode())
                at += 4 + size
            headers[pair[0].lower()] = pair[1]
        return headers

    def serve(self):
        try:
            while True:
                head = self._read(8)
                if head is None:
                    break
                first, second = struct.unpack(">II", head)
                payload = self._read(second & 0xffffff)
                if payload is None:
                    break
                if not first & 0x80000000:
                    stream = self.streams.get(first)
                    if stream and payload:
                        stream(payload)
                    if stream and second >> 24 & 1:
                        stream(b"")
                elif first & 0xffff == 1:  # SYN_STREAM
                    number = struct.unpack_from(">I", payload)[0]
                    headers = self._headers(payload[10:])
                    self.reply(number)
                    self.streams[number] = self.on_stream(self, number, headers)
                elif first & 0xffff == 6:  # PING
                    self.send(head + payload)
        except (OSError, ValueError):
            pass
        self.closed = True
        for stream in list(self.streams.values()):
            if stream:
                stream(b"")


def exit_status(code):
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {"metadata": {}, "status": "Failure", "reason": "NonZeroExitCode", "message": "command terminated with non-zero exit code",
            "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]}}


class Command:
    """Runs one command once all streams that its query asks for are open."""

    def __init__(self, words, query):
        self.words, self.tty = words, query.get("tty") == ["1"]
        self.wanted = {"error"} | ({"stdin"} if query.get("input") else set()) | ({"stdout"} if query.get("output") else set())
        if query.get("error") and not self.tty:
            self.wanted.add("stderr")
        if self.tty:
            self.wanted.add("resize")
        self.open, self.size, self.master, self.stdin, self.ended = {}, None, None, None, False

    def on_stream(self, spdy, number, headers):
        kind = headers["streamtype"]
        self.open[kind] = number
        if set(self.open) >= self.wanted:
            threading.Thread(target=self.run, args=(spdy,), daemon=True).start()
        return {"stdin": self.on_stdin, "resize": self.on_resize}.get(kind)

    def on_stdin(self, data):
        if self.ended:
            return
        self.ended = not data
        for _ in range(500):
            if self.stdin is not None:
                break
            time.sleep(0.01)
        try:
            if data:
                os.write(self.stdin, data)
            elif self.master is None:
                os.close(self.stdin)
        except OSError:
            pass

    def on_resize(self, data):
        for line in data.splitlines():
            self.size = json.loads(line)
            if self.master is not None:
                self.set_size()

    def set_size(self):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", self.size["Height"], self.size["Width"], 0, 0))

    def run(self, spdy):
        outputs = {}
        if self.tty:
            for _ in range(100):  # the first size comes right after the streams
                if self.size:
                    break
                time.sleep(0.01)
            child, self.master = pty.fork()
            if child == 0:
                os.execvp(self.words[0], self.words)
            if self.size:
                self.set_size()
            self.stdin, outputs = self.master, {self.master: "stdout"}
        else:
            process = subprocess.Popen(self.words, stdin=subprocess.PIPE if "stdin" in self.open else subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
            if process.stdin:
                self.stdin = os.dup(process.stdin.fileno())
                process.stdin.close()
            outputs = {process.stdout.fileno(): "stdout", process.stderr.fileno(): "stderr"}
        while outputs:
            for fd in select.select(list(outputs), [], [])[0]:
                try:
                    data = os.read(fd, 32768)
                except OSError:
                    data = b""
                if not data:
                    outputs.pop(fd)
                elif outputs[fd] in self.open:
                    spdy.data(self.open[outputs[fd]], data)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if self.tty else process.wait()
        spdy.data(self.open["error"], json.dumps(exit_status(code)).encode(), True)
        for kind in ("stdout", "stderr", "stdin"):
            if kind in self.open:
                spdy.data(self.open[kind], b"", True)


class PortForward:
    def __init__(self):
        self.pairs = {}

    def on_stream(self, spdy, number, headers):
        port = headers["port"]
        if headers["streamtype"] == "error":
            return None
        spdy.data(number, b"port %s\n" % port.encode())

        def echo(data):
            spdy.data(number, data, end=not data)
        return echo


def serve_websocket_port_forward(connection, ports):
    """Port forwarding as older clients do it, over a WebSocket: two channels for each port (data, errors), each opened by the port's number. Says which port it
    is, and echoes."""
    def read(count):
        data = b""
        while len(data) < count:
            more = connection.recv(count - len(data))
            if not more:
                raise OSError("the client is gone")
            data += more
        return data

    def send(opcode, payload):
        size = len(payload)
        length = bytes([size]) if size < 126 else b"\x7e" + struct.pack(">H", size) if size < 1 << 16 else b"\x7f" + struct.pack(">Q", size)
        connection.sendall(bytes([0x80 | opcode]) + length + payload)
    for i, port in enumerate(ports):
        for channel in (2 * i, 2 * i + 1):
            send(2, bytes([channel]) + struct.pack("<H", port))
        send(2, bytes([2 * i]) + b"port %d\n" % port)
    try:
        while True:
            head = read(2)
            size = head[1] & 0x7F
            if size >= 126:
                size = struct.unpack(">H" if size == 126 else ">Q", read(2 if size == 126 else 8))[0]
            mask = read(4)
            payload = bytes(byte ^ mask[i % 4] for i, byte in enumerate(read(size)))
            if head[0] & 0x0F == 8:
                return send(8, payload)
            if head[0] & 0x0F == 9:
                send(10, payload)
            elif len(payload) > 1:
                send(2, payload)
    except OSError:
        pass


class FakeKubelet:
    def __init__(self, cert, key, client_ca=None, address="127.0.0.1"):
        self.requests, self.logs, self.lock = [], {}, threading.Condition()
        kubelet = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                kubelet.handle(self)
            do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_OPTIONS = do_GET

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        if client_ca:
            context.load_verify_locations(client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
        self.server = http.server.ThreadingHTTPServer((address, 0), Handler)
        self.server.daemon_threads = True
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def log(self, container, line):
        """Appends a line; None ends the log."""
        with self.lock:
            self.logs.setdefault(container, []).append(line)
            self.lock.notify_all()

    def handle(self, request):
        url = urllib.parse.urlsplit(request.path)
        query = urllib.parse.parse_qs(url.query, keep_blank_values=True)
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        self.requests.append({"method": request.command, "path": url.path, "query": query, "headers": dict(request.headers), "body": body,
                              "raw_query": url.query})
        parts = url.path.strip("/").split("/")
        if parts[0] == "containerLogs":
            return self.send_log(request, parts[3], query)
        if parts[0] in ("exec", "attach"):
            return self.upgrade(request, Command(query.get("command") or ["cat"], query).on_stream)
        if parts[0] == "portForward" and request.headers.get("Upgrade", "").lower() == "websocket":
            return self.websocket_port_forward(request, [int(p) for value in query.get("port", []) + query.get("ports", []) for p in value.split(",")])
        if parts[0] == "portForward":
            return self.upgrade(request, PortForward().on_stream)
        answer = ("%s %s" % (request.command, request.path)).encode()
        self.send(request, 200, answer)

    def send(self, request, code, body, content_type="text/plain"):
        request.send_response(code)
        request.send_header("Content-Type", content_type)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def send_log(self, request, container, query):
        if container not in self.logs:
            code = int(container[5:]) if container.startswith("code-") else 404
            return self.send(request, code, b"no log of " + container.encode())
        follow, tail = query.get("follow") == ["true"], query.get("tailLines")
        request.send_response(200)
        request.send_header("Content-Type", "text/plain")
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        lines = [line for line in self.logs[container] if line is not None]
        at = max(0, len(lines) - int(tail[0])) if tail else 0
        try:
            while True:
                with self.lock:
                    lines = list(self.logs[container])
                    if at >= len(lines) and follow:
                        self.lock.wait(0.2)
                        continue
                if at >= len(lines) or lines[at] is None:
                    break
                data = (lines[at] + "\n").encode()
                request.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                request.wfile.flush()
                at += 1
            request.wfile.write(b"0\r\n\r\n")
        except OSError:
            pass

    def websocket_port_forward(self, request, ports):
        accept = hashlib.sha1(request.headers["Sec-WebSocket-Key"].encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
        request.send_response(101)
        for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", base64.b64encode(accept).decode()), ("Sec-WebSocket-Protocol", "v4.channel.k8s.io")):
            request.send_header(name, value)
        request.end_headers()
        request.wfile.flush()
        request.close_connection = True
        serve_websocket_port_forward(request.connection, ports)

    def upgrade(self, request, on_stream):
        if request.headers.get("Upgrade") != "SPDY/3.1":
            return self.send(request, 400, b"an upgrade to SPDY/3.1 is required")
        protocols = [p.strip() for value in request.headers.get_all("X-Stream-Protocol-Version") or [] for p in value.split(",")]
        request.send_response(101)
        request.send_header("Upgrade", "SPDY/3.1")
        request.send_header("Connection", "Upgrade")
        for known in ("portforward.k8s.io", "v5.channel.k8s.io", "v4.channel.k8s.io"):
            if known in protocols:
                request.send_header("X-Stream-Protocol-Version", known)
                break
        request.end_headers()
        request.wfile.flush()
        request.close_connection = True
        Spdy(request.connection, on_stream).serve()


signal.signal(signal.SIGPIPE, signal.SIG_IGN)
