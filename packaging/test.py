#!/usr/bin/env python3
"""Tries out what build.py made. usage: packaging/test.py BUILD_FOLDER PACKAGE_FOLDER WORK_FOLDER [STEP ...]

reproducible  a second build gives the same bytes
folders       modules and a program built in two folders with the preset `reproducible` give the same bytes; KEELSON_FOLDERS_TARGET=keelson: all of it
lint          lintian has no errors and no warnings
units         systemd-analyze verifies the units and judges how closed they are
image         the OCI layout: every digest and size; its file system runs as its user in a chroot
container     the image as umoci unpacks it, run by runc without capabilities, with a read-only root
containerd    the image as containerd imports it: the kubelet's question for its short name finds it
install       a fresh Debian 12: install, serve, upgrade under load, remove, purge; nothing acknowledged is lost, nothing is left
emulated      what is built for arm64, run by qemu: package and image, each serves, keeps what was written over a restart, and stops

For arm64 the steps that install or run natively are left out.
"""
import filecmp
import glob
import gzip
import hashlib
import http.client
import io
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tarfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDERS_TARGET = "keelson_schema"  # sources of the tree, generated ones, and the program that generates them
EXPOSURE_MAX = 3.0  # of systemd-analyze security, 0 (closed) to 10


def expect(condition, text):
    if not condition:
        raise AssertionError(text)


def run(*command, code=0, **kwargs):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL, **kwargs)
    expect(code is None or done.returncode == code, "%s: exit code %d\n%s" % (" ".join(command), done.returncode, done.stdout[-4000:]))
    return done.stdout


def eventually(condition, text, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        expect(time.monotonic() < end, text)
        time.sleep(0.1)


def only(pattern):
    found = [path for path in glob.glob(pattern) if "dbgsym" not in path]
    expect(len(found) == 1, "%s: %s" % (pattern, found))
    return found[0]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Test:
    def __init__(self, build, packages, work):
        self.build, self.packages, self.work = build, packages, work
        with open(build + "/CMakeCache.txt") as f:
            emulator = re.search(r"^KEELSON_QEMU:FILEPATH=(.+)$", f.read(), re.M)
        self.emulator = emulator and emulator.group(1)
        self.arch = "arm64" if emulator else run("dpkg", "--print-architecture").strip()
        self.deb = only(packages + "/keelson_*_%s.deb" % self.arch)
        self.image_file = only(packages + "/keelson-*-%s.oci.tar" % self.arch)

    def reproducible(self):
        again = os.path.join(self.work, "again")
        shutil.rmtree(again, ignore_errors=True)
        run(os.path.join(HERE, "build.py"), self.build, again)
        for path in glob.glob(self.packages + "/keelson*[_-]%s.*" % self.arch):
            expect(filecmp.cmp(path, os.path.join(again, os.path.basename(path)), shallow=False), "%s differs" % path)
        shutil.rmtree(again)

    def folders(self):
        made = []
        for name in ("one", "another-folder"):
            folder = os.path.join(self.work, name)
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
            archive = os.path.join(self.work, name + ".tar")
            run("git", "-C", os.path.dirname(HERE), "archive", "--output=" + os.path.abspath(archive), "HEAD")
            with tarfile.open(archive) as sources:
                sources.extractall(folder)
            run("cmake", "--preset", "reproducible", cwd=folder)
            run("cmake", "--build", "build/reproducible", "--target", *os.environ.get("KEELSON_FOLDERS_TARGET", FOLDERS_TARGET).split(), cwd=folder)
            made.append({})
            for path in glob.glob(folder + "/build/reproducible/**", recursive=True):
                is_program = os.path.isfile(path) and os.access(path, os.X_OK) and not re.search("/(CMakeFiles|include-roots)/", path)
                if not path.endswith(".a") and not is_program:
                    continue
                with open(path, "rb") as f:
                    data = f.read()
                expect(os.path.abspath(folder).encode() not in data, "%s is named in %s" % (folder, path))
                made[-1][os.path.relpath(path, folder)] = hashlib.sha256(data).hexdigest()
            shutil.rmtree(folder)
        differing = sorted(name for name in set(made[0]) | set(made[1]) if made[0].get(name) != made[1].get(name))
        expect(made[0] and not differing, "they differ: %s" % differing)
        print("  the same bytes in two folders: %s" % ", ".join(os.path.basename(name) for name in sorted(made[0])))

    def lint(self):
        text = run("lintian", "--fail-on=error,warning", self.deb, code=None)
        bad = [line for line in text.splitlines() if line.startswith(("E: ", "W: "))]
        expect(not bad, "\n".join(bad))

    def units(self):
        root = os.path.join(self.work, "unpacked")
        shutil.rmtree(root, ignore_errors=True)
        run("dpkg-deb", "-x", self.deb, root)
        for unit in sorted(glob.glob(root + "/lib/systemd/system/*.service")):
            text = run("systemd-analyze", "verify", "--root=" + root, "--man=no", os.path.basename(unit), code=None)
            # Units that are not in the package are not in this root either.
            bad = [line for line in text.splitlines() if os.path.basename(unit) in line and "not found" not in line]
            expect(not bad, text)
            if unit.endswith("/keelson.service"):
                text = run("systemd-analyze", "security", "--offline=true", unit, code=None)
                exposure = float(text.split("Overall exposure level for")[1].split(":")[1].split()[0])
                expect(exposure <= EXPOSURE_MAX, text)

    def layout(self):
        """Checks every blob of the image; unpacks it. Returns (root folder, configuration)."""
        folder = os.path.join(self.work, "image")
        shutil.rmtree(folder, ignore_errors=True)
        with tarfile.open(self.image_file) as archive:
            archive.extractall(folder)

        def blob(descriptor):
            with open(os.path.join(folder, "blobs", *descriptor["digest"].split(":")), "rb") as f:
                data = f.read()
            expect(len(data) == descriptor["size"] and "sha256:" + hashlib.sha256(data).hexdigest() == descriptor["digest"], "blob %s" % descriptor)
            return data

        with open(folder + "/oci-layout") as f:
            expect(json.load(f) == {"imageLayoutVersion": "1.0.0"}, "oci-layout")
        with open(folder + "/index.json") as f:
            index = json.load(f)
        expect(index["schemaVersion"] == 2 and len(index["manifests"]) == 1, "index.json")
        manifest = json.loads(blob(index["manifests"][0]))
        config = json.loads(blob(manifest["config"]))
        expect(manifest["mediaType"] == "application/vnd.oci.image.manifest.v1+json" and config["rootfs"]["type"] == "layers", "media types")
        expect(len(config["rootfs"]["diff_ids"]) == len(manifest["layers"]), "layers")
        root = os.path.join(self.work, "image-root")
        shutil.rmtree(root, ignore_errors=True)
        total = 0
        for layer, diff_id in zip(manifest["layers"], config["rootfs"]["diff_ids"]):
            plain = gzip.decompress(blob(layer))
            expect("sha256:" + hashlib.sha256(plain).hexdigest() == diff_id, "diff id")
            total += len(plain)
            with tarfile.open(fileobj=io.BytesIO(plain)) as archive:
                archive.extractall(root)
        expect(total < 60e6, "%d bytes" % total)
        uid = int(config["config"]["User"].split(":")[0])
        expect(uid != 0 and os.stat(root + "/data").st_uid == uid, "it runs as root")
        expect(config["architecture"] == self.arch == index["manifests"][0]["platform"]["architecture"], "architecture")
        return root, config["config"]

    def image(self):
        root, config = self.layout()
        uid = int(config["User"].split(":")[0])
        command = config["Entrypoint"] + config["Cmd"]
        port = free_port()
        with Server(root, command + ["--secure-port=%d" % port], port, root + "/data", uid) as server:
            server.write("image")

    def container(self):
        folder = os.path.join(self.work, "container")
        shutil.rmtree(folder, ignore_errors=True)
        with tarfile.open(self.image_file) as archive:
            archive.extractall(folder)
        with open(folder + "/index.json") as f:
            tag = json.load(f)["manifests"][0].get("annotations", {}).get("org.opencontainers.image.ref.name", "latest")
        bundle = folder + "/bundle"
        run("umoci", "unpack", "--image", "%s:%s" % (folder, tag), bundle)
        port = free_port()
        with open(bundle + "/config.json") as f:
            config = json.load(f)
        process, uid = config["process"], config["process"]["user"]["uid"]
        process.update(terminal=False, args=process["args"] + ["--secure-port=%d" % port], noNewPrivileges=True, capabilities={})
        config["root"]["readonly"] = True
        # The network of this machine, so that the test reaches the server; data in a folder of the test.
        config["linux"]["namespaces"] = [n for n in config["linux"]["namespaces"] if n["type"] != "network"]
        data = folder + "/data"
        os.makedirs(data, mode=0o700)
        os.chown(data, uid, process["user"]["gid"])
        config["mounts"] = [m for m in config["mounts"] if m["destination"] != "/data"] + [
            {"destination": "/data", "type": "bind", "source": data, "options": ["bind", "rw", "nosuid", "nodev"]}]
        with open(bundle + "/config.json", "w") as f:
            json.dump(config, f)
        name = "keelson-test-%d" % os.getpid()
        with Server("/", ["runc", "run", "--bundle", bundle, name], port, data, 0, folder + ".log") as server:
            server.write("container")
            expect(json.loads(run("runc", "state", name))["status"] == "running", "runc state")
        expect(name not in run("runc", "list", "-q"), "the container is left behind")
        # The command of kubeadm's static pod, as root, which the pod's files belong to (docs/recipes/kubeadm.md).
        process.update(args=["kube-apiserver", "--version"], user={"uid": 0, "gid": 0})
        with open(bundle + "/config.json", "w") as f:
            json.dump(config, f)
        expect("Kubernetes v" in run("runc", "run", "--bundle", bundle, name), "kube-apiserver")

    def containerd(self):
        folder = os.path.abspath(os.path.join(self.work, "containerd"))
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        address = folder + "/socket"
        with open(folder + "/config.toml", "w") as f:
            f.write('version = 2\nroot = "%s/root"\nstate = "%s/state"\n[grpc]\naddress = "%s"\n' % (folder, folder, address) +
                    '[plugins."io.containerd.grpc.v1.cri".containerd]\nsnapshotter = "native"\n')
        with open(folder + ".log", "w") as log:
            process = subprocess.Popen(["containerd", "--config", folder + "/config.toml"], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            eventually(lambda: os.path.exists(address), "containerd does not start: %s.log" % folder)
            run("ctr", "--address", address, "--namespace", "k8s.io", "images", "import", "--snapshotter", "native", self.image_file)
            with tarfile.open(self.image_file) as archive:
                index = json.load(archive.extractfile("index.json"))
            name = index["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"]
            eventually(lambda: self.image_status(address, name), "the kubelet does not find %s" % name)
            expect(not self.image_status(address, "other:1"), "an image that is not there is found")
        finally:
            process.terminate()
            process.wait(30)

    @staticmethod
    def image_status(address, name):
        """The kubelet's question, a call of the container runtime interface: the answer without an image has no bytes."""
        def field(data):  # number 1 of a protobuf message
            return b"\x0a" + bytes([len(data)]) + data

        message = field(field(name.encode()))
        answer = subprocess.run(
            ["curl", "--silent", "--fail", "--http2-prior-knowledge", "--unix-socket", address, "--header", "content-type: application/grpc", "--header", "te: trailers",
             "--data-binary", "@-", "http://localhost/runtime.v1.ImageService/ImageStatus"], input=b"\0" + len(message).to_bytes(4, "big") + message, stdout=subprocess.PIPE)
        expect(answer.returncode == 0, "curl: exit code %d" % answer.returncode)
        return len(answer.stdout) > 5

    def emulated(self):
        package = os.path.join(self.work, "unpacked")
        shutil.rmtree(package, ignore_errors=True)
        run("dpkg-deb", "-x", self.deb, package)
        libraries = re.search(r"^KEELSON_ARM64_ROOT:PATH=(.+)$", open(self.build + "/CMakeCache.txt").read(), re.M).group(1)
        image = self.layout()[0]
        for root, binary in ((libraries, package + "/usr/bin/keelson"), (image, image + "/usr/bin/keelson")):
            start = [self.emulator, "-L", root, binary]
            expect("speaks Kubernetes" in run(*start, "version"), "version")
            data, port = os.path.join(self.work, "emulated-data"), free_port()
            shutil.rmtree(data, ignore_errors=True)
            command = start + ["--data-dir=" + data, "--secure-port=%d" % port]
            with Server("/", command, port, data, 0, data + ".log") as server:
                server.write("first")
            with Server("/", command, port, data, 0, data + ".log") as server:
                expect(server.call("GET", MAPS + "/first")["data"] == {"a": "b"}, "a write is lost")
            expect("every checksum right" in run(*start, "doctor", "--data-dir=" + data, "--secure-port=%d" % free_port()), "doctor")

    def install(self):
        root = self.fresh_root()
        before = listing(root)
        shutil.copy(self.deb, root + "/keelson.deb")
        run("chroot", root, "apt-get", "install", "-y", "--no-install-recommends", "/keelson.deb", env=PLAIN)
        data, port = root + "/var/lib/keelson", free_port()
        uid = os.stat(data).st_uid
        expect(uid != 0 and os.stat(data).st_mode & 0o777 == 0o700, "the folder's owner and mode")
        expect("speaks Kubernetes" in run("chroot", root, "keelson", "version"), "version")
        command = ["/usr/bin/keelson", "--data-dir=/var/lib/keelson", "--secure-port=%d" % port]
        written = self.upgrade_under_load(root, command, port, data, uid)
        run("chroot", root, "apt-get", "remove", "-y", "keelson", env=PLAIN)
        expect(os.path.exists(data + "/pki/ca.key"), "removal loses data")
        run("chroot", root, "apt-get", "purge", "-y", "--autoremove", "keelson", env=PLAIN)
        left = sorted(set(listing(root)) - set(before) - {"/keelson.deb", "/upgrade.deb"})
        # Files that dpkg, apt, ldconfig and adduser maintain.
        own = ("/var/lib/dpkg/", "/var/lib/apt/", "/var/log/", "/var/cache/", "/etc/passwd-", "/etc/group-", "/etc/shadow-", "/etc/gshadow-", "/etc/ld.so.cache", "/run/adduser")
        left = [path for path in left if not path.startswith(own)]
        expect(not left, "left behind: %s" % left)
        expect("keelson" not in open(root + "/etc/passwd").read(), "the user is left")
        print("  %d writes acknowledged during the upgrade, none lost" % written)

    def upgrade_under_load(self, root, command, port, data, uid):
        """The package's own restart needs systemd: here the server is restarted as the unit does it, between two versions of the package."""
        newer = os.path.join(self.work, "newer")
        shutil.rmtree(newer, ignore_errors=True)
        run("dpkg-deb", "-R", self.deb, newer)
        with open(newer + "/DEBIAN/control") as f:
            control = f.read()
        version = control.split("Version: ")[1].split("\n")[0]
        with open(newer + "/DEBIAN/control", "w") as f:
            f.write(control.replace("Version: " + version, "Version: " + version + "+1"))
        run("dpkg-deb", "-Znone", "-b", newer, root + "/upgrade.deb")
        names, stop = [], threading.Event()

        def load(server):
            number = 0
            while not stop.is_set():
                number += 1
                try:
                    server.write("load-%d" % number)
                    names.append("load-%d" % number)
                except (OSError, http.client.HTTPException):
                    time.sleep(0.05)  # between the two servers

        first = Server(root, command, port, data, uid).__enter__()
        thread = threading.Thread(target=load, args=(first,))
        thread.start()
        while len(names) < 50:
            time.sleep(0.05)
        run("chroot", root, "apt-get", "install", "-y", "/upgrade.deb", env=PLAIN)
        first.__exit__()
        with Server(root, command, port, data, uid) as second:
            before = len(names)
            while len(names) < before + 50:
                time.sleep(0.05)
            stop.set()
            thread.join()
            present = {item["metadata"]["name"] for item in second.call("GET", MAPS)["items"]}
        lost = [name for name in names if name not in present]
        expect(not lost, "lost: %s" % lost[:10])
        return len(names)

    def fresh_root(self):
        base, root = os.path.join(self.work, "bookworm.tar"), os.path.join(self.work, "root")
        shutil.rmtree(root, ignore_errors=True)
        if not os.path.exists(base):
            made = os.path.join(self.work, "bookworm")
            shutil.rmtree(made, ignore_errors=True)
            mirror = [line.split()[1] for path in glob.glob("/etc/apt/sources.list.d/*.sources") for line in open(path) if line.startswith("URIs:")]
            run("debootstrap", "--variant=minbase", "--include=adduser,init-system-helpers", "bookworm", made, *mirror[:1])
            run("tar", "-C", made, "-cf", base, ".")
            shutil.rmtree(made)
        os.makedirs(root)
        run("tar", "-C", root, "-xf", base)
        for path in ["/etc/resolv.conf"] + glob.glob("/etc/apt/sources.list.d/*") + glob.glob("/etc/apt/apt.conf.d/*proxy*"):
            shutil.copy(path, root + path)
        os.path.exists(root + "/etc/apt/sources.list") and os.remove(root + "/etc/apt/sources.list")
        run("chroot", root, "apt-get", "update", env=PLAIN)
        return root


PLAIN = dict(os.environ, LC_ALL="C", DEBIAN_FRONTEND="noninteractive", PATH="/usr/sbin:/usr/bin:/sbin:/bin")
MAPS = "/api/v1/namespaces/default/configmaps"


def listing(root):
    return [os.path.join(folder, name)[len(root):] for folder, folders, files in os.walk(root) for name in files + folders
            if not folder.startswith((root + "/proc", root + "/sys", root + "/dev"))]


class Server:
    """The installed server in its root, as its user; talks to it as its administrator."""

    def __init__(self, root, command, port, data, uid, log=None):
        self.log_path = log or root + ".log"
        self.root, self.command, self.port, self.data, self.uid = root, command, port, data, uid

    def __enter__(self):
        def enter():
            os.chroot(self.root)
            os.chdir("/")
            os.setgid(self.uid)
            os.setuid(self.uid)

        os.makedirs(self.root + "/dev", exist_ok=True)
        self.log = open(self.log_path, "w")
        self.process = subprocess.Popen(self.command, preexec_fn=enter, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL, env={"PATH": "/usr/bin"})
        end = time.monotonic() + 60
        while time.monotonic() < end:
            expect(self.process.poll() is None, "it ended: " + open(self.log.name).read())
            try:
                self.context = ssl.create_default_context(cafile=self.data + "/pki/ca.crt")
                self.context.load_cert_chain(self.data + "/pki/admin.crt", self.data + "/pki/admin.key")
                self.call("GET", "/api/v1/namespaces/default")
                return self
            except (OSError, http.client.HTTPException, AssertionError):
                time.sleep(0.1)
        raise AssertionError("not ready: " + open(self.log.name).read())

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        expect(self.process.wait(60) == 0, "exit code %s" % self.process.returncode)

    def call(self, method, path, body=None):
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=self.context)
        connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        data = answer.read()
        expect(answer.status in (200, 201), "%s %s: %d %s" % (method, path, answer.status, data[:300]))
        return json.loads(data)

    def write(self, name):
        self.call("POST", MAPS, {"metadata": {"name": name}, "data": {"a": "b"}})


def main():
    build, packages, work = (os.path.abspath(path) for path in sys.argv[1:4])
    os.makedirs(work, exist_ok=True)
    test = Test(build, packages, work)
    failed = 0
    steps = ["reproducible", "lint", "units", "emulated"] if test.emulator else ["reproducible", "folders", "lint", "units", "image", "container", "containerd", "install"]
    for step in sys.argv[4:] or steps:
        try:
            getattr(test, step)()
            print("%s: ok" % step, flush=True)
        except Exception as error:  # the next step runs all the same
            failed += 1
            print("%s: FAILED: %s: %s" % (step, type(error).__name__, error), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
