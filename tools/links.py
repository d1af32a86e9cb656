#!/usr/bin/env python3
"""Checks the links of the book. usage: tools/links.py

Every link of a page to a file, or to a heading in one, leads somewhere; every page under docs/ is reached from docs/README.md; every image is shown.
"""
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
START = "docs/README.md"


def headings(text):
    """Anchors as GitHub makes them."""
    found = set()
    for heading in re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M):
        found.add(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-"))
    return found


def main():
    names = subprocess.run(["git", "-C", TOP, "ls-files", "*.md"], check=True, capture_output=True, text=True).stdout.split()
    texts = {}
    for name in names:
        with open(os.path.join(TOP, name)) as f:
            texts[name] = f.read()
    problems, reached, waiting = [], {START}, [START]
    links = {}
    for name, text in texts.items():
        plain = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.M | re.S)
        for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", plain):
            if re.match(r"[a-z]+:", target):
                continue
            path = os.path.normpath(os.path.join(os.path.dirname(name), target)) if target else name
            links.setdefault(name, set()).add(path)
            if not os.path.exists(os.path.join(TOP, path)):
                problems.append("%s: there is no %s" % (name, target))
            elif anchor and path in texts and anchor not in headings(texts[path]):
                problems.append("%s: %s has no heading for #%s" % (name, path, anchor))
    while waiting:
        for path in links.get(waiting.pop(), set()) - reached:
            reached.add(path)
            waiting.append(path)
    shown = set().union(*links.values())
    problems += ["%s is not reached from %s" % (name, START) for name in names if name.startswith("docs/") and name not in reached]
    images = subprocess.run(["git", "-C", TOP, "ls-files", "docs/images"], check=True, capture_output=True, text=True).stdout.split()
    problems += ["%s is shown by no page" % name for name in images if name not in shown]
    for problem in sorted(problems):
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
