#!/usr/bin/env python3
"""Writes docs/flags-reference.md from `keelson --help`. usage: tools/flags-doc.py [--check] [KEELSON]

--check writes nothing and fails when the page is not what the binary says, or when a flag of Keelson's own has no word in docs/ beside that page.
"""
import glob
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(TOP, "docs", "flags-reference.md")
HEAD = """# Every flag

Written by `tools/flags-doc.py` from `keelson --help`; the test `docs_flags` compares both. Names, types and defaults are kube-apiserver's, the last groups
are our own. Defaults that the embedded store changes, and how values are written, are in [flags](flags.md).
"""
GATES_HEAD = """
## Feature gates

For `--feature-gates`. Gates without an effect in an API server are taken as upstream takes them.

| gate | stage | default |
|---|---|---|
"""


def parse(text):
    """[(group, [(flag, type, lines)])] in the order of the help text."""
    groups = []
    for line in text.splitlines():
        group = re.match(r"(\S.*) flags:$", line)
        flag = re.match(r" +(?:-\w, )?--([a-z0-9-]+)(?: (\S+))? {2,}(\S.*)$", line)
        if group:
            groups.append((group.group(1), []))
        elif flag and groups:
            groups[-1][1].append((flag.group(1), flag.group(2) or "", [flag.group(3)]))
        elif groups and groups[-1][1] and line.startswith(" " * 20):
            groups[-1][1][-1][2].append(line.strip())
    return groups


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def page(groups):
    out, gates = [HEAD], []
    for group, flags in groups:
        out.append("\n## %s\n\n| flag | type | default | meaning |\n|---|---|---|---|\n" % group)
        for name, kind, lines in flags:
            if name == "feature-gates":
                gates, lines = lines[1:], [lines[0].replace(" Options are:", " Options: at the end of this page.")]
            text = " ".join(lines)
            default = re.search(r" \(default (\S.*?)\)$", text)
            if default:
                text = text[:default.start()]
            out.append("| `--%s` | %s | %s | %s |\n" % (name, kind or "bool", "`%s`" % cell(default.group(1)) if default else "", cell(text)))
    out.append(GATES_HEAD)
    for gate in gates:
        name, stage, default = re.match(r"kube:(\w+)=true\|false \((\w+) - default=(\w+)\)$", gate).groups()
        out.append("| `%s` | %s | %s |\n" % (name, stage.lower(), default))
    return "".join(out)


def untold(groups):
    """Flags of Keelson's own that no other page names."""
    texts = ""
    for path in glob.glob(os.path.join(TOP, "docs", "**", "*.md"), recursive=True):
        if path != PAGE:
            with open(path) as f:
                texts += f.read()
    own = next(flags for group, flags in groups if group == "Keelson")
    return [name for name, _, _ in own if not re.search("--%s(?![a-z-])" % re.escape(name), texts)]


def main():
    arguments = [word for word in sys.argv[1:] if word != "--check"]
    binary = arguments[0] if arguments else os.path.join(TOP, "build/release/keelson")
    groups = parse(subprocess.run([binary, "--help"], check=True, capture_output=True, text=True).stdout)
    text = page(groups)
    if "--check" not in sys.argv:
        with open(PAGE, "w") as f:
            f.write(text)
        print("%s: %d flags" % (os.path.relpath(PAGE, TOP), sum(len(flags) for _, flags in groups)))
        return 0
    with open(PAGE) as f:
        written = f.read()
    for line in sorted(set(text.splitlines()) ^ set(written.splitlines())):
        print("%s: %s" % ("the page lacks" if line in text.splitlines() else "the binary does not have", line))
    if written != text:
        print("docs/flags-reference.md is not what `keelson --help` says: run tools/flags-doc.py")
    missing = untold(groups)
    for name in missing:
        print("no page but the reference names --%s" % name)
    return 1 if written != text or missing else 0


if __name__ == "__main__":
    sys.exit(main())
