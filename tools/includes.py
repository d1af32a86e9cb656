#!/usr/bin/env python3
"""Checks each #include of src/ against the targets that its own target links itself. usage: tools/includes.py TARGETS | --self-test

TARGETS is the file that CMake writes when it configures (keelson_write_targets in cmake/keelson.cmake). The rules:
  library     a source names headers of its own target, of the targets in its DEPS and PRIVATE_DEPS, and of base. Dependencies of
              dependencies do not count, and a sub-folder with its own target (auth/oidc) is not part of its parent (auth).
  header      as a source; a header that names a PRIVATE_DEPS target may only be included by its own target.
  executable  (tests, benchmarks, fuzz targets) also names headers of dependencies of dependencies, and those of other executables.
A header belongs to the target that compiles the .cc of the same name, else to a library of the nearest folder that has any: where
several share the folder (registry), to those that may name what it includes. Headers that only executables include are not checked.
"""
import os
import re
import sys
import tempfile

INCLUDE = re.compile(r'^#include "([^"]+)"')
LINK_ONLY = re.compile(r"\$<LINK_ONLY:([^>]+)>")


class Target:
    def __init__(self, row):
        name, kind, folder, sources, links, interface = (part.strip() for part in row.split("|"))
        self.name, self.folder, self.library = name, folder, kind != "EXECUTABLE"
        self.sources = [os.path.normpath(os.path.join(folder, source)) for source in sources.split()]
        self.public = {plain(link) for link in interface.split() if "$<" not in link}
        self.links = {plain(link) for link in LINK_ONLY.sub(r"\1", links + " " + interface).split()}


def plain(link):
    return link.replace("keelson::", "keelson_")


class Tree:
    def __init__(self, root, rows):
        self.root = root
        self.targets = {target.name: target for target in (Target(row) for row in rows)}
        self.compiled, self.below, self.owned, self.read = {}, {}, {}, {}
        for target in self.targets.values():
            for source in target.sources:
                self.compiled.setdefault(os.path.splitext(source)[0], set()).add(target.name)
            if target.library:
                self.below.setdefault(target.folder, set()).add(target.name)
        self.product = self.product_headers()

    def candidates(self, path):
        """The targets that a header may belong to, by its name and place."""
        stem = os.path.splitext(path)[0]
        compiled = self.compiled.get(stem, set())
        libraries = {name for name in compiled if self.targets[name].library}
        if compiled:
            return libraries or compiled
        folder = os.path.dirname(path)
        while folder.startswith(self.root):
            if folder in self.below:
                return self.below[folder]
            folder = os.path.dirname(folder)
        return set()

    def owners(self, path):
        if path not in self.owned:
            found = self.candidates(path)
            if len(found) > 1:
                named = [self.candidates(header) for _, header in self.includes(path)]
                found = {name for name in found if all(not targets or targets & self.may(name) for targets in named)} or found
            self.owned[path] = found
        return self.owned[path]

    def may(self, name):
        target = self.targets[name]
        return {name, "keelson_base"} | (target.links if target.library else self.closure(target))

    def closure(self, target):
        seen, todo = set(), list(target.links)
        while todo:
            name = todo.pop()
            if name in seen or name not in self.targets:
                continue
            seen.add(name)
            todo += self.targets[name].links
        return seen

    def compilers(self, path):
        """The targets whose rules a file keeps."""
        if path.endswith(".cc"):
            return self.compiled.get(os.path.splitext(path)[0], set())
        return self.owners(path) if path in self.product else set()

    def product_headers(self):
        """The headers that a library's source includes, directly or not."""
        seen = set()
        todo = [source for target in self.targets.values() if target.library for source in target.sources if source.startswith(self.root)]
        while todo:
            for _, header in self.includes(todo.pop()):
                if header not in seen:
                    seen.add(header)
                    todo.append(header)
        return seen

    def problems(self):
        private = {}  # a header that names a private dependency -> (its target, the dependency)
        named_by = []  # (file, line, header, target) of includes from another target
        for path in sorted(self.files()):
            for name in sorted(self.compilers(path)):
                target = self.targets[name]
                for number, header in self.includes(path):
                    owners = self.owners(header)
                    fixture = not target.library and not any(self.targets[owner].library for owner in owners)
                    if owners and not fixture and not owners & self.may(name):
                        yield "%s:%d: %s does not link %s, which has %s" % (
                            self.short(path), number, name, " or ".join(sorted(owners)), self.short(header))
                    if path.endswith(".h") and owners and not owners & (target.public | {name, "keelson_base"}):
                        private[path] = (name, sorted(owners)[0])
                    if target.library and name not in owners:
                        named_by.append((path, number, header, name))
        for path, number, header, name in named_by:
            if header in private and private[header][0] != name:
                yield "%s:%d: %s names %s, a private dependency of %s" % (
                    self.short(path), number, self.short(header), private[header][1], private[header][0])

    def short(self, path):
        return os.path.relpath(path, self.root)

    def includes(self, path):
        """(line, path) of the headers of this tree that a file includes. Headers that the build makes are left out."""
        if path not in self.read:
            self.read[path] = []
            with open(path, encoding="utf-8") as file:
                for number, line in enumerate(file, 1):
                    match = INCLUDE.match(line)
                    if match and os.path.exists(os.path.join(self.root, match.group(1))):
                        self.read[path].append((number, os.path.join(self.root, match.group(1))))
        return self.read[path]

    def files(self):
        for folder, _, names in os.walk(self.root):
            for name in names:
                if name.endswith((".cc", ".h")):
                    yield os.path.join(folder, name)


def self_test():
    """A tree with one break of each rule beside includes that are fine."""
    files = {
        "auth/a.h": '', "auth/a.cc": '#include "auth/a.h"\n#include "base/b.h"\n#include "auth/x/x.h"\n', "auth/x/x.h": '#include "meta/m.h"\n',
        "auth/x/x.cc": '#include "auth/x/x.h"\n#include "auth/a.h"\n', "base/b.h": '', "meta/m.h": '#include "object/o.h"\n', "object/o.h": '',
        "app/c.cc": '#include "auth/x/x.h"\n#include "meta/m.h"\n', "app/c_test.cc": '#include "meta/m.h"\n',
    }
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
            with open(os.path.join(root, name), "w") as file:
                file.write(text)
        rows = ["keelson_base | INTERFACE_LIBRARY | %s/base | | | ", "keelson_object | INTERFACE_LIBRARY | %s/object | | | ",
                "keelson_meta | INTERFACE_LIBRARY | %s/meta | | | keelson::object", "keelson_auth | STATIC_LIBRARY | %s/auth | a.cc | keelson::base | keelson::base",
                "keelson_auth_x | STATIC_LIBRARY | %s/auth/x | x.cc | keelson::auth keelson::meta | keelson::auth $<LINK_ONLY:keelson::meta>",
                "keelson_app | STATIC_LIBRARY | %s/app | c.cc | keelson::auth_x | keelson::auth_x", "app_test | EXECUTABLE | %s/app | c_test.cc | keelson::app | "]
        found = list(Tree(root, [row % root for row in rows]).problems())
    want = ["app/c.cc:2: keelson_app does not link keelson_meta, which has meta/m.h",  # a dependency of a dependency
            "auth/a.cc:3: keelson_auth does not link keelson_auth_x, which has auth/x/x.h",  # a sub-folder
            "app/c.cc:1: auth/x/x.h names keelson_meta, a private dependency of keelson_auth_x",
            "auth/a.cc:3: auth/x/x.h names keelson_meta, a private dependency of keelson_auth_x"]
    if sorted(found) != sorted(want):
        print("includes: self-test failed\nfound:\n  %s\nwanted:\n  %s" % ("\n  ".join(found), "\n  ".join(want)))
        return 1
    return 0


def main():
    if self_test():
        return 1
    if sys.argv[1:] == ["--self-test"]:
        return 0
    root = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src")
    with open(sys.argv[1], encoding="utf-8") as file:
        found = list(Tree(root, file.read().splitlines()).problems())
    print("\n".join(found + ["includes: %d problems" % len(found) if found else "includes: fine"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
