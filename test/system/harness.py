"""Starts the built server for the tests of this folder and talks to it. Python 3 standard library only.

A Server owns one process, its data folder and its log. Ports are taken from the kernel and the start is repeated when somebody
else got the port first, so several tests can run side by side. Everything stays on 127.0.0.1.
"""
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time

SKIPPED = 77  # ctest's SKIP_RETURN_CODE


def skip(reason):
    print("SKIPPED: " + reason)
    sys.exit(SKIPPED)


# A sanitizer keeps what was freed (up to 256 MB), pads every object and catches signals of a crash itself.
SANITIZED = "KEELSON_SANITIZED" in os.environ


def memory_bound(kilobytes):
    """A bound of a server's memory, or of its growth."""
    return 8 * kilobytes + 256 * 1024 if SANITIZED else kilobytes


def source_root():
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


PORTS = set()  # given out; its user may not listen on it yet


def free_port():
    """A port without a listener, another one each time."""
    while True:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        if port not in PORTS:
            PORTS.add(port)
            return port


# Most tests expect the answers of an API server without controllers, as the recordings were made.
BARE = "--embedded-controllers=off"


class Server:
    def __init__(self, binary, folder, flags=(), in_memory=False, start_timeout=60, controllers=False):
        self.binary = os.path.abspath(binary)
        self.folder = os.path.abspath(folder)
        self.flags = ([] if controllers else [BARE]) + list(flags)
        self.in_memory = in_memory
        self.start_timeout = start_timeout
        self.process = None
        self.port = None
        self.start_seconds = None
        os.makedirs(self.folder, exist_ok=True)
        self.log_path = os.path.join(self.folder, "server.log")
        self.data = os.path.join(self.folder, "data")

    def start(self):
        for _ in range(5):
            self.port = free_port()
            log = open(self.log_path, "ab")
            offset = log.tell()
            begin = time.monotonic()
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL)
            log.close()
            if self._wait_ready(begin):
                return self
            with open(self.log_path, "rb") as f:
                f.seek(offset)
                tail = f.read().decode(errors="replace")
            if "address already in use" not in tail:
                raise RuntimeError("the server did not start:\n" + tail[-4000:])
        raise RuntimeError("no free port found")

    def command(self):
        args = [self.binary, "--secure-port=%d" % self.port, "--data-dir=" + (":memory:" if self.in_memory else self.data)]
        if self.in_memory:
            args.append("--cert-dir=" + os.path.join(self.folder, "certs"))
        return args + self.flags

    def _wait_ready(self, begin):
        while time.monotonic() - begin < self.start_timeout:
            if self.process.poll() is not None:
                return False
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1):
                    pass
                self.pki = self._find_pki()
                if self.pki:
                    client = Client(self)
                    status, _ = client.request("GET", "/readyz")
                    client.close()
                    if status == 200:
                        self.start_seconds = time.monotonic() - begin
                        return True
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.005)
        self.process.kill()
        self.process.wait()
        return False

    def _find_pki(self):
        """The data folder, or for an in-memory server the folder that its start message names."""
        folder = self.data
        if self.in_memory:
            folder = None
            with open(self.log_path, errors="replace") as f:
                for line in f:
                    if "KUBECONFIG=" in line:
                        folder = os.path.dirname(line.split("KUBECONFIG=")[1].split()[0])
        if folder and os.path.exists(os.path.join(folder, "admin.kubeconfig")):
            self.kubeconfig = os.path.join(folder, "admin.kubeconfig")
            return os.path.join(folder, "pki")
        return None

    def context(self):
        context = ssl.create_default_context(cafile=os.path.join(self.pki, "ca.crt"))
        context.load_cert_chain(os.path.join(self.pki, "admin.crt"), os.path.join(self.pki, "admin.key"))
        return context

    def kill(self):
        """kill -9."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, seconds=30):
        """SIGTERM; a server that does not end in time fails the test."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise RuntimeError("the server did not end within %d s of SIGTERM" % seconds)

    def memory_kb(self, field="VmRSS"):
        with open("/proc/%d/status" % self.process.pid) as f:
            for line in f:
                if line.startswith(field + ":"):
                    return int(line.split()[1])
        return 0

    def cpu_seconds(self):
        with open("/proc/%d/stat" % self.process.pid) as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Client:
    """One keep-alive connection with the admin's certificate."""

    def __init__(self, server, timeout=60, context=None):
        self.connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=timeout, context=context or server.context())

    def request(self, method, path, body=None, content_type="application/json", accept="application/json"):
        headers = {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = content_type
            if not isinstance(body, (bytes, str)):
                body = json.dumps(body)
        try:
            self.connection.request(method, path, body, headers)
            response = self.connection.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError):
            if method != "GET":
                raise
            # The server ends connections on which nothing happened for 90 s, which a busy machine can make of any pause.
            self.connection.close()
            self.connection.request(method, path, body, headers)
            response = self.connection.getresponse()
        data = response.read()
        if "json" in (response.getheader("Content-Type") or ""):
            return response.status, json.loads(data)
        return response.status, data

    def must(self, expected, method, path, body=None, **kwargs):
        status, answer = self.request(method, path, body, **kwargs)
        if status != expected:
            raise AssertionError("%s %s: expected %d, got %d: %s" % (method, path, expected, status, answer))
        return answer

    def close(self):
        self.connection.close()


def config_map(name, data, labels=None):
    metadata = {"name": name}
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def run_tests(tests, running=(), on_request=()):
    """The main() of a test program with several tests: KEELSON WORK_FOLDER [NAME]...; each gets a fresh folder of its own. Those of `on_request` run only by name.
    Processes (`.process`) that a test leaves in `running` are killed after it. Returns the exit code."""
    binary, folder, chosen = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3:]
    failures = 0
    for test in list(tests) + list(on_request):
        if test.__name__ not in chosen if chosen else test in on_request:
            continue
        place = os.path.join(folder, test.__name__)
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        begin = time.monotonic()
        try:
            test(binary, place)
            result = "ok"
        except Exception as error:  # any failure is a finding; the next test runs all the same
            failures += 1
            result = "FAILED: %s: %s" % (type(error).__name__, error)
        while running:
            process = running.pop().process
            if process and process.poll() is None:
                process.kill()
                process.wait()
        print("%s: %s (%.1f s)" % (test.__name__, result, time.monotonic() - begin), flush=True)
    return 1 if failures else 0
