#!/usr/bin/env python3
"""Checks that each name a Python script takes from another script of the project (`import x; x.name`, `from x import name`) exists there.
usage: tools/python-names.py [--self-test]

A rename is found without running each script. Modules are looked up beside the script, then by their
name alone, since scripts extend sys.path; a module name that occurs twice is checked against all of its files.
"""
import ast
import collections
import os
import subprocess
import sys


def defined(tree):
    """Names that a module defines. Those of functions and classes inside count too: a false match is harmless."""
    names = {"__doc__", "__file__", "__name__"}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
    return names


def problems(sources):
    """`sources`: path → text. Yields one line for each name that does not exist."""
    trees = {path: ast.parse(text, path) for path, text in sources.items()}
    modules = collections.defaultdict(list)
    for path in trees:
        modules[os.path.splitext(os.path.basename(path))[0]].append(path)
    names = {path: defined(tree) for path, tree in trees.items()}

    def missing(path, module, name):
        files = [file for file in modules[module] if file != path]
        beside = [file for file in files if os.path.dirname(file) == os.path.dirname(path)]
        return not any(name in names[file] for file in beside or files)

    for path, tree in trees.items():
        imported = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                imported.update({alias.asname or alias.name: alias.name for alias in node.names if alias.name in modules})
            elif isinstance(node, ast.ImportFrom) and node.module in modules:
                for alias in node.names:
                    if alias.name != "*" and missing(path, node.module, alias.name):
                        yield "%s:%d: %s has no %s" % (path, node.lineno, node.module, alias.name)
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in imported:
                module = imported[node.value.id]
                if missing(path, module, node.attr):
                    yield "%s:%d: %s has no %s" % (path, node.lineno, module, node.attr)


def self_test():
    sources = {"a/front.py": "def run():\n    pass\n", "a/user.py": "import front\nfront.run()\nfront.main()\nfrom front import gone\n", "b/front.py": "def main():\n    pass\n"}
    found = list(problems(sources))
    assert found == ["a/user.py:4: front has no gone", "a/user.py:3: front has no main"], found
    assert list(problems({"c/user.py": "import front\nfront.main()\n", **sources}))[:1] == ["a/user.py:4: front has no gone"]


def main():
    self_test()
    if sys.argv[1:] == ["--self-test"]:
        return 0
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    paths = subprocess.run(["git", "-C", root, "ls-files", "*.py"], capture_output=True, text=True, check=True).stdout.split()
    sources = {}
    for path in paths:
        with open(os.path.join(root, path)) as file:
            sources[path] = file.read()
    found = list(problems(sources))
    print("\n".join(found) if found else "lint: names of %d scripts exist" % len(paths))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
