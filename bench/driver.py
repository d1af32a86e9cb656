"""Shared part of the programs of this folder: the load program, the two servers, and the description of the machine. Python 3 standard library only."""
import json
import os
import platform
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "interop"))
from rig import Keelson, RealPair, free_port  # noqa: E402

SERVERS = ("keelson", "kube-apiserver")


def add_arguments(parser):
    parser.add_argument("keelson")
    parser.add_argument("folder")
    parser.add_argument("load")
    parser.add_argument("programs")
    parser.add_argument("--only", choices=SERVERS)


def chosen(arguments):
    """(name, make) of each requested server; make(part, flags) is a new one that keeps its files in a folder of that name."""
    for name in SERVERS:
        if arguments.only in (None, name):
            folder = os.path.join(arguments.folder, name)
            yield name, lambda part, flags=(), n=name, f=folder: (Keelson(arguments.keelson, os.path.join(f, part), flags=flags) if n == "keelson"
                                                                 else RealPair(os.path.join(f, part), arguments.programs, flags=flags))


class Floor:
    """bench/floors/server.cc: what TLS, HTTP/2, sockets and disk cost for the same answers. `sizes`: its --NAME bytes."""

    def __init__(self, binary, folder, sizes):
        self.folder, self.binary, self.sizes = os.path.abspath(folder), os.path.abspath(binary), sizes
        self.pki, self.process, self.port = self.folder, None, None
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)

    def start(self):
        key = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=floor"]
        subprocess.run(key + ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "admin.key", "-out", "admin.crt"], cwd=self.folder, check=True, capture_output=True)
        shutil.copy(os.path.join(self.folder, "admin.crt"), os.path.join(self.folder, "ca.crt"))
        self.port = free_port()
        command = [self.binary, "--port", str(self.port), "--cert", "admin.crt", "--key", "admin.key", "--log", "log"]
        for name, size in self.sizes.items():
            command += ["--" + name, str(int(size))]
        self.process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        if self.process.stdout.readline() != b"ready\n":
            raise RuntimeError("bench: the floor server did not start")
        return self

    def pids(self):
        return [self.process.pid]

    def stop(self):
        self.process.kill()  # it has nothing to finish
        self.process.wait()


class Driver:
    def __init__(self, server, load, requests):
        self.requests = requests
        self.command = [load, "--server", "https://127.0.0.1:%d" % server.port, "--ca", os.path.join(server.pki, "ca.crt"), "--cert", os.path.join(server.pki, "admin.crt"),
                        "--key", os.path.join(server.pki, "admin.key"), "--pid", ",".join(map(str, server.pids()))]

    def row(self, name, objects, arguments, requests=None):
        command = self.command + ["--objects", str(objects), "--requests", str(requests or self.requests)] + arguments
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=900)
            result = json.loads(done.stdout.strip().splitlines()[-1])
        except (IndexError, ValueError, subprocess.TimeoutExpired) as error:
            print("bench: %s gave nothing: %s" % (name, getattr(error, "stderr", None) or done.stderr[-500:]))
            return None
        result["aboveMB"] = result["peakMB"] - result["residentMB"]
        print("  %-22s %7d done %4d errors %6.1f s %9.0f µs CPU %8.0f/s  p50 %.1f ms p99 %.1f ms, %.0f MB resident, %.0f MB peak, %d bytes %s" % (
            name, result["operations"], result["errors"], result["seconds"], result["cpuMicros"], result["perSecond"], result["p50Millis"], result["p99Millis"],
            result["residentMB"], result["peakMB"], result["bytes"], result.get("firstError", "")[:300]), flush=True)
        return result

    def filled(self, sizes):
        """Fills the data set up to each size in turn and yields it; ends where that fails."""
        done = 0
        for size in sizes:
            if self.row("fill to %d" % size, size, ["--from", str(done), "fill"]) is None:
                return
            done = size
            yield size


def version(command):
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip().splitlines()[0]
    except (OSError, IndexError):
        return "?"


def commit():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return version(["git", "-C", root, "describe", "--always", "--dirty", "--abbrev=9"])


def machine():
    model = "?"
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    with open("/proc/meminfo") as f:
        memory = int(f.readline().split()[1]) // 1048576
    return "%d × %s, %d GB, Linux %s" % (os.cpu_count(), model, memory, platform.release())
