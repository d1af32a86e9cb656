#!/usr/bin/env python3
"""Makes the Debian packages and the container image of a built tree. usage: packaging/build.py BUILD_FOLDER OUTPUT_FOLDER

Everything written depends on the commit alone: files are dated by it, owned by root and sorted. Needs dpkg-deb, objcopy and strip.
"""
import glob
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HERE = os.path.join(TOP, "packaging")
MAINTAINER = "Keelson maintainers <keelson@users.noreply.example>"


def run(*command, **kwargs):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **kwargs).stdout.strip()


def read(*path):
    with open(os.path.join(*path)) as f:
        return f.read()


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w" if isinstance(text, str) else "wb") as f:
        f.write(text)
    os.chmod(path, mode)


def version():
    return re.search(r'kKeelsonVersion = "([^"]+)"', read(TOP, "src/app/version.h")).group(1)


class Host:
    """Library paths, packages and runner for binaries of an architecture."""
    folder = ""  # before the paths of its files
    strip, objcopy = "strip", "objcopy"

    def __init__(self):
        self.arch = run("dpkg", "--print-architecture")

    def run(self, binary, *arguments):
        return run(binary, *arguments)

    def libraries(self, binary):
        """The shared libraries that the binary is loaded with: name -> file, and the loader's path."""
        found, loader = {}, None
        for line in run("ldd", binary).splitlines():
            words = line.split()
            if "=>" in words:
                found[words[0]] = words[words.index("=>") + 1]
            elif words[0].startswith("/"):
                loader = words[0]
        return found, loader

    def package_of(self, path):
        """(package, version) of a file."""
        for name in (path, os.path.realpath(path), path.replace("/lib/", "/usr/lib/", 1), os.path.realpath(path).replace("/usr/lib/", "/lib/", 1)):
            result = subprocess.run(["dpkg-query", "-S", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            if result.returncode == 0:
                package = result.stdout.split(":")[0]
                return package, run("dpkg-query", "-W", "-f=${Version}\n", package).splitlines()[0]
        raise SystemExit("no package holds %s" % path)


class Root:
    """The same for a binary of another architecture that was built with a root of tools/arm64.sh: nothing of it is installed here, and qemu runs it."""
    strip, objcopy = "llvm-strip-19", "llvm-objcopy-19"

    def __init__(self, folder, emulator):
        self.arch, self.folder, self.emulator = "arm64", folder, emulator
        self.libs = os.path.join(folder, "usr/lib/aarch64-linux-gnu")
        self.owners = {}
        for package in sorted(glob.glob(os.path.join(os.path.dirname(folder), "debs/*.deb"))):
            names = [os.path.basename(line.split(" -> ")[0].split()[-1]) for line in run("dpkg-deb", "--contents", package).splitlines() if ".so" in line]
            if names:
                name, version_ = run("dpkg-deb", "--show", "--showformat=${Package} ${Version}", package).split()
                for library in names:
                    # A library's own package, not the one with the link for builds.
                    if library not in self.owners or not name.endswith("-dev"):
                        self.owners[library] = name, version_

    def run(self, binary, *arguments):
        return run(self.emulator, "-L", self.folder, binary, *arguments)

    def libraries(self, binary):
        found, waiting = {}, [binary]
        while waiting:
            needed = re.findall(r"\(NEEDED\)\s+Shared library: \[([^\]]+)\]", run("readelf", "-d", waiting.pop()))
            for name in set(needed) - set(found):
                found[name] = os.path.join(self.libs, name)
                waiting.append(found[name])
        loader = re.search(r"program interpreter: (\S+)\]", run("readelf", "-l", binary)).group(1)
        found.pop(os.path.basename(loader), None)
        return found, loader

    def package_of(self, path):
        return self.owners[os.path.basename(path)]


def machine_of(build):
    cache = read(build, "CMakeCache.txt")
    root = re.search(r"^KEELSON_ARM64_ROOT:PATH=(.+)$", cache, re.M)
    if not root:
        return Host()
    return Root(root.group(1), re.search(r"^KEELSON_QEMU:FILEPATH=(.+)$", cache, re.M).group(1))


def depends(machine, binary):
    """Each package with the version here as its lower bound."""
    packages = dict(machine.package_of(path) for path in machine.libraries(binary)[0].values())
    return ["%s (>= %s)" % (package, re.sub(r"[-+~][^-+~]*$", "", packages[package])) for package in sorted(packages)]


# Libraries that are linked into the binary as archives or compiled into it from headers.
EMBEDDED = ["librocksdb-dev", "libgrpc-dev", "libprotobuf-dev", "libabsl-dev", "libcares-dev", "libsnappy-dev", "liblz4-dev", "libzstd-dev",
            "libgflags-dev", "libboost1.81-dev", "libupb-dev"]


def notices(machine, binary):
    """Licences of everything that is in the binary or shipped beside it, once each."""
    packages = {machine.package_of(path)[0] for path in machine.libraries(binary)[0].values()}
    packages |= {p for p in EMBEDDED if os.path.exists("%s/usr/share/doc/%s/copyright" % (machine.folder, p))}
    out = ["Keelson is licensed under the Apache License, Version 2.0. It contains or is linked with the following works.\n"]
    for package in sorted(packages):
        path = "%s/usr/share/doc/%s/copyright" % (machine.folder, package)
        if os.path.exists(path):
            out.append("\n%s\n%s\n%s\n" % ("=" * 100, package, "=" * 100))
            out.append(read(path))
    return "".join(out)


def roff(text):
    return text.replace("\\", "\\\\").replace("-", "\\-").replace("\n.", "\n\\&.")


def man_page(machine, binary, date):
    text = machine.run(binary, "--help")
    commands, flags = [], []
    for name, summary in re.findall(r"^  ([a-z-]+) {2,}(\S.*)$", text.split("Commands:")[1].split("\n\n")[0], re.M):
        usage = machine.run(binary, "help", name).split("\n\n", 1)[1]
        commands.append(".SS %s\n%s\n.PP\n.nf\n%s\n.fi" % (name, roff(summary), roff(usage)))
    for match in re.finditer(r"^ +(?:-\w, )?--(\S+)(?: (\S+))? {2,}(\S.*(?:\n {20,}\S.*)*)", text, re.M):
        name, kind, usage = match.groups()
        flags.append(".TP\n.B \\-\\-%s%s\n%s" % (roff(name), " \\fI%s\\fR" % kind if kind else "", roff(" ".join(usage.split()))))
    page = read(HERE, "man/keelson.1.in")
    for key, value in {"DATE": date, "VERSION": version(), "KUBERNETES": machine.run(binary, "--version").split()[1],
                       "COMMANDS": "\n".join(commands), "FLAGS": "\n".join(flags)}.items():
        page = page.replace("@%s@" % key, value)
    return page


def packed(text):
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0, compresslevel=9) as f:
        f.write(text.encode() if isinstance(text, str) else text)
    return out.getvalue()


def control(fields):
    return "".join("%s: %s\n" % (key, value) for key, value in fields.items() if value)


def deb(root, fields, output, epoch):
    size = sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(root) for f in files if "DEBIAN" not in d and not os.path.islink(os.path.join(d, f)))
    fields["Installed-Size"] = str((size + 1023) // 1024)
    sums = []
    for folder, _, files in sorted(os.walk(root)):
        for name in sorted(files):
            path = os.path.join(folder, name)
            if "DEBIAN" not in folder and not os.path.islink(path):
                with open(path, "rb") as f:
                    sums.append("%s  %s\n" % (hashlib.md5(f.read()).hexdigest(), os.path.relpath(path, root)))
    write(os.path.join(root, "DEBIAN/md5sums"), "".join(sums))
    write(os.path.join(root, "DEBIAN/control"), control(fields))
    # Debug symbols are compressed already. One thread: with more, dpkg-deb splits the archive into blocks unless memory is short at that
    # moment, so the bytes would depend on what else the machine does.
    level = "-z1" if fields["Section"] == "debug" else "-z6"
    run("dpkg-deb", "--root-owner-group", "--threads-max=1", "-Zxz", level, "--build", root, output, env=dict(os.environ, SOURCE_DATE_EPOCH=str(epoch)))
    print("%s: %d kB" % (os.path.relpath(output, TOP), os.path.getsize(output) // 1024))


DESCRIPTION = """Kubernetes API server with its own store
 Keelson serves the API of Kubernetes: kubectl, controllers, operators and
 client libraries work against it unchanged. Alone it needs nothing but a
 folder; with etcd it takes the place of kube-apiserver in a cluster, with
 the same flags."""


def debian(machine, build, output, work, epoch, date):
    arch = machine.arch
    binary = os.path.join(build, "keelson")
    root, symbols = os.path.join(work, "deb"), os.path.join(work, "dbgsym")
    target = os.path.join(root, "usr/bin/keelson")
    os.makedirs(os.path.dirname(target))
    shutil.copy(binary, target)
    build_id = re.search(r"Build ID: (\w+)", run("readelf", "-n", binary)).group(1)
    debug = os.path.join(symbols, "usr/lib/debug/.build-id", build_id[:2], build_id[2:] + ".debug")
    os.makedirs(os.path.dirname(debug))
    run(machine.objcopy, "--only-keep-debug", "--compress-debug-sections=zlib", binary, debug)
    os.chmod(debug, 0o644)
    run(machine.strip, "--strip-unneeded", "--remove-section=.comment", "--remove-section=.note", target)
    os.chmod(target, 0o755)
    os.makedirs(os.path.join(root, "usr/lib/keelson"))
    os.symlink("../../bin/keelson", os.path.join(root, "usr/lib/keelson/kube-apiserver"))
    for unit in ("keelson", "keelson-apiserver"):
        write(os.path.join(root, "lib/systemd/system/%s.service" % unit), read(HERE, "systemd/%s.service" % unit))
    write(os.path.join(root, "etc/default/keelson"), read(HERE, "debian/default"))
    share = os.path.join(root, "usr/share")
    write(os.path.join(share, "man/man1/keelson.1.gz"), packed(man_page(machine, binary, date[:10])))
    for shell, path in (("bash", "bash-completion/completions/keelson"), ("zsh", "zsh/vendor-completions/_keelson"), ("fish", "fish/vendor_completions.d/keelson.fish")):
        write(os.path.join(share, path), machine.run(binary, "completion", shell) + "\n")
    write(os.path.join(share, "keelson/grafana/keelson.json"), read(HERE, "grafana/keelson.json"))
    write(os.path.join(share, "doc/keelson/copyright"), notices(machine, binary))
    write(os.path.join(share, "lintian/overrides/keelson"), read(HERE, "debian/lintian-overrides"))
    stamp = run("date", "-u", "-R", "-d", "@%d" % epoch)
    write(os.path.join(share, "doc/keelson/changelog.gz"),
          packed("keelson (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- %s  %s\n" % (version(), MAINTAINER, stamp)))
    for script in ("postinst", "prerm", "postrm"):
        write(os.path.join(root, "DEBIAN", script), read(HERE, "debian", script), 0o755)
    write(os.path.join(root, "DEBIAN/conffiles"), "/etc/default/keelson\n")
    common = {"Package": "keelson", "Version": version(), "Architecture": arch, "Maintainer": MAINTAINER}
    deb(root, {**common, "Depends": ", ".join(depends(machine, binary) + ["adduser", "init-system-helpers (>= 1.52)", "tzdata"]), "Suggests": "kubernetes-client, etcd-server",
               "Section": "admin", "Priority": "optional", "Description": DESCRIPTION}, os.path.join(output, "keelson_%s_%s.deb" % (version(), arch)), epoch)
    deb(symbols, {**common, "Package": "keelson-dbgsym", "Depends": "keelson (= %s)" % version(), "Section": "debug", "Priority": "optional",
                  "Build-Ids": build_id, "Description": "debug symbols for keelson"}, os.path.join(output, "keelson-dbgsym_%s_%s.deb" % (version(), arch)), epoch)
    return target


def add(archive, name, epoch, data=None, mode=0o644, link=None, folder=False, owner=0):
    info = tarfile.TarInfo(name)
    info.mtime, info.mode, info.uid, info.gid = epoch, mode, owner, owner
    if folder:
        info.type, info.mode = tarfile.DIRTYPE, mode
    elif link:
        info.type, info.linkname = tarfile.SYMTYPE, link
    else:
        info.size = len(data)
    archive.addfile(info, io.BytesIO(data) if data is not None else None)


USER = 65532


ZONES = "/usr/share/zoneinfo"


def time_zones():
    """The files of the tz database, for named zones in CEL expressions."""
    for folder, folders, names in os.walk(ZONES):
        folders[:] = sorted(set(folders) - {"posix", "right"})  # copies of the rest
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as f:
                if f.read(4) == b"TZif":
                    yield path


def layer(machine, binary, epoch):
    """A root file system with the binary, its libraries, the certificates of public authorities, the tz database and nothing else."""
    found, loader = machine.libraries(binary)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        files = {"usr/bin/keelson": (binary, 0o755), os.path.relpath(loader, "/"): (os.path.realpath(machine.folder + loader), 0o755)}
        for name, path in found.items():
            files["usr/lib/" + name] = (os.path.realpath(path), 0o644)
        if os.path.exists("/etc/ssl/certs/ca-certificates.crt"):
            files["etc/ssl/certs/ca-certificates.crt"] = ("/etc/ssl/certs/ca-certificates.crt", 0o644)
        for path in time_zones():
            files[os.path.relpath(path, "/")] = (os.path.realpath(path), 0o644)
        folders = {os.path.dirname(name)[:i] for name in files for i in [len(os.path.dirname(name))]} | {"etc", "usr", "usr/bin", "usr/lib"}
        every = set()
        for folder in folders | {"etc/ssl", "etc/ssl/certs"}:
            while folder:
                every.add(folder)
                folder = os.path.dirname(folder)
        for folder in sorted(every):
            add(archive, folder, epoch, mode=0o755, folder=True)
        add(archive, "tmp", epoch, mode=0o1777, folder=True)
        add(archive, "data", epoch, mode=0o700, folder=True, owner=USER)
        add(archive, "etc/passwd", epoch, b"root:x:0:0:root:/root:/sbin/nologin\nkeelson:x:%d:%d:keelson:/data:/sbin/nologin\n" % (USER, USER))
        add(archive, "etc/group", epoch, b"root:x:0:\nkeelson:x:%d:\n" % USER)
        add(archive, "etc/nsswitch.conf", epoch, b"hosts: files dns\n")
        for name in sorted(files):
            path, mode = files[name]
            with open(path, "rb") as f:
                add(archive, name, epoch, f.read(), mode)
        add(archive, "usr/bin/kube-apiserver", epoch, link="keelson", mode=0o777)
        add(archive, "usr/bin/etcd", epoch, link="keelson", mode=0o777)
    return out.getvalue()


def image(machine, binary, output, epoch, date):
    arch, plain = machine.arch, layer(machine, binary, epoch)
    blobs = {}

    def blob(data, kind):
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"mediaType": "application/vnd.oci.image.%s" % kind, "digest": digest, "size": len(data)}

    root = blob(packed(plain), "layer.v1.tar+gzip")
    config = blob(json.dumps({
        "created": date, "architecture": arch, "os": "linux",
        "config": {"User": "%d:%d" % (USER, USER), "ExposedPorts": {"6443/tcp": {}}, "WorkingDir": "/data", "Env": ["PATH=/usr/bin"],
                   "Entrypoint": ["/usr/bin/keelson"], "Cmd": ["--data-dir=/data", "--bind-address=0.0.0.0"], "Volumes": {"/data": {}},
                   "Labels": {"org.opencontainers.image.title": "keelson", "org.opencontainers.image.version": version(), "org.opencontainers.image.licenses": "Apache-2.0"}},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(plain).hexdigest()]},
        "history": [{"created": date, "created_by": "packaging/build.py"}]}, sort_keys=True).encode(), "config.v1+json")
    manifest = blob(json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": [root]}, sort_keys=True).encode(), "manifest.v1+json")
    # containerd stores an image under the second name, or else under the first as it is; the kubelet looks for "keelson:0.2.0" under its full name.
    name = "keelson:%s" % version()
    manifest["annotations"] = {"org.opencontainers.image.ref.name": name, "io.containerd.image.name": "docker.io/library/" + name}
    manifest["platform"] = {"architecture": arch, "os": "linux"}
    path = os.path.join(output, "keelson-%s-%s.oci.tar" % (version(), arch))
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        add(archive, "oci-layout", epoch, b'{"imageLayoutVersion":"1.0.0"}')
        add(archive, "index.json", epoch, json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [manifest]}, sort_keys=True).encode())
        for folder in ("blobs", "blobs/sha256"):
            add(archive, folder, epoch, mode=0o755, folder=True)
        for digest in sorted(blobs):
            add(archive, "blobs/sha256/" + digest.split(":")[1], epoch, blobs[digest])
    print("%s: %d kB, %d kB unpacked" % (os.path.relpath(path, TOP), os.path.getsize(path) // 1024, len(plain) // 1024))


def main():
    build, output = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or run("git", "-C", TOP, "log", "-1", "--format=%ct"))
    date = run("date", "-u", "-d", "@%d" % epoch, "+%Y-%m-%dT%H:%M:%SZ")
    machine = machine_of(build)
    work = os.path.join(output, "work-" + machine.arch)
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    os.umask(0o022)
    stripped = debian(machine, build, output, work, epoch, date)
    image(machine, stripped, output, epoch, date)
    shutil.rmtree(work)


main()
