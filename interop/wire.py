"""HTTP/1.1 over one kept TLS connection, as little work per request as Python allows: for programs that send hundreds of thousands of requests."""
import socket


class Broken(Exception):
    """The server ended the connection in the middle of a request; the next request opens a new one."""


class Wire:
    def __init__(self, server, agent):
        self.port, self.context = server.port, server.context()
        self.agent, self.socket, self.rest, self.bodiless = agent, None, b"", False

    def close(self):
        if self.socket:
            self.socket.close()
        self.socket, self.rest = None, b""

    def send(self, method, path, headers=(), body=None):
        """Sends without waiting for the answer, so that two servers work at the same time."""
        if self.socket is None:
            plain = socket.create_connection(("127.0.0.1", self.port), timeout=60)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.socket, self.rest = self.context.wrap_socket(plain, server_hostname="127.0.0.1"), b""
        lines = ["%s %s HTTP/1.1" % (method, path), "Host: 127.0.0.1", "User-Agent: " + self.agent, *("%s: %s" % pair for pair in headers)]
        if body is not None:
            lines.append("Content-Length: %d" % len(body))
        self.bodiless = method == "HEAD"
        try:
            self.socket.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b""))
        except OSError as e:
            self.close()
            raise Broken(repr(e))

    def more(self):
        try:
            data = self.socket.recv(65536) if self.socket else b""
        except OSError as e:
            self.close()
            raise Broken(repr(e))
        if not data:
            self.close()
            raise Broken("closed")
        self.rest += data

    def until(self, end):
        while (at := self.rest.find(end)) < 0:
            self.more()
        found, self.rest = self.rest[:at], self.rest[at + len(end):]
        return found

    def take(self, size):
        while len(self.rest) < size:
            self.more()
        found, self.rest = self.rest[:size], self.rest[size:]
        return found

    def receive(self):
        """(status, [(lower-case name, value)], body)"""
        lines = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines[1:])]
        known, status, body = dict(headers), int(lines[0].split(" ", 2)[1]), b""
        if self.bodiless or status in (204, 304):
            pass
        elif "content-length" in known:
            body = self.take(int(known["content-length"]))
        elif known.get("transfer-encoding") == "chunked":
            while size := int(self.until(b"\r\n").split(b";")[0], 16):
                body += self.take(size)
                self.take(2)
            self.until(b"\r\n")
        if known.get("connection") == "close":
            self.close()
        return status, headers, body
