#!/usr/bin/env python3
"""Checks the tests that docs/security.md names. usage: tools/security-tests.py

Every test in backticks exists: `system_X` is registered in test/CMakeLists.txt, `X_fuzz` is a fuzz target, `x_test.cc` and `x_test.py` are files, `Suite.Name` and
`Suite.*` are gtest names, and a lower-case name behind `system_X` is a function of that test. With a folder in front (`http: Client.FollowsNoRedirect`) the test belongs to that folder's test program; the folder holds for
the names behind it in the same cell. Every row of the tables of findings and CVEs has a test or refers to another finding (M6), or is not applicable.
"""
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = "docs/security.md"
TABLES = {"Findings of the review": 35, "Vulnerabilities of kube-apiserver's past": 32}  # heading -> least number of rows
GTEST = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", re.M)
NAME = re.compile(r"^[A-Z]\w*\.(?:\w+|\*)$")


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        return f.read()


def listed(pattern):
    return subprocess.run(["git", "-C", TOP, "ls-files", "-co", "--exclude-standard", pattern], check=True, capture_output=True, text=True).stdout.split()


class Tests:
    def __init__(self):
        self.files = set(listed("*_test.cc") + listed("*_test.py"))
        self.programs, self.others = {}, set()  # test program -> its sources; further names of ctest
        for name in listed("*CMakeLists.txt"):
            text, folder = re.sub(r"#.*", "", read(name)), os.path.dirname(name)
            for program, sources in re.findall(r"keelson_test\((\w+)\s+TESTS\s([^)]*)\)", text):
                self.programs[program] = [os.path.join(folder, source) for source in re.findall(r"\S+\.cc", sources)]
            self.others.update("system_" + test for test in re.findall(r"keelson_system_test\((\w+)", text))
            self.others.update("%s_%s" % (module, stem) for module, stem in re.findall(r"keelson_fuzz\((\w+) (?:\w+/)*(\w+)\.cc", text))
            self.others.update(re.findall(r"add_test\(NAME (\w+)", text))
            self.others.update("system_replay_" + area for areas in re.findall(r"foreach\(area IN ITEMS ([^)]*)\)", text) for area in areas.split())
        self.names = {}  # file -> gtest names in it, with the suites' wildcards
        self.suites = listed("*_cases.cc")  # contract suites, which several programs run
        for name in self.files.union(self.suites):
            if name.endswith(".cc"):
                found = GTEST.findall(read(name))
                self.names[name] = {"%s.%s" % pair for pair in found} | {suite + ".*" for suite, _ in found}

    def exists(self, program, name):
        """None when the name is not that of a test."""
        if NAME.match(name):
            sources = self.programs[program] + self.suites if program else self.names
            return any(name in self.names.get(source, ()) for source in sources)
        if re.match(r"^\w+_test\.(cc|py)$", name):
            return any(os.path.basename(path) == name for path in (self.programs[program] if program else self.files))
        if re.match(r"^(system_\w+|\w+_fuzz)$", name):
            return name in self.others
        return True if name in self.others else None


def cells(text, tests, problems):
    """The number of existing tests that a cell names."""
    program, count, system = None, 0, None
    for quoted in re.findall(r"`([^`]+)`", text):
        if system and re.match(r"^[a-z0-9]+(_[a-z0-9]+)+$", quoted) and quoted not in tests.others:
            if "def %s(" % quoted not in read("test/system/%s_test.py" % system):
                problems.append("%s: test/system/%s_test.py has no %s" % (PAGE, system, quoted))
            continue
        match = re.match(r"^(\w+): (.*)$", quoted)
        if match and match.group(1) in tests.programs:
            program, quoted = match.groups()
        elif match and (NAME.match(match.group(2)) or "_test.cc" in match.group(2)):
            problems.append("%s: there is no test program %s_test" % (PAGE, match.group(1)))
            continue
        for name in quoted.split(", "):
            found = tests.exists(program, name)
            if found is None:
                continue
            if not found:
                problems.append("%s: there is no test %s%s" % (PAGE, program + ": " if program else "", name))
            count += 1
            if name.startswith("system_"):
                program = None
            system = name[len("system_"):] if "test/system/%s_test.py" % name[len("system_"):] in tests.files else None
    return count


def main():
    tests, problems = Tests(), []
    sections = dict(zip(*[iter(re.split(r"^## (.*)$", read(PAGE), flags=re.M)[1:])] * 2))
    ids = set(re.findall(r"^\| ([CHM]?\d+) \|", sections["Findings of the review"], re.M))
    for heading, text in sections.items():
        rows = 0
        for line in text.splitlines():
            count = cells(line, tests, problems)
            row = re.match(r"^\| ([CHM]?\d+) \|(.*)\|$", line)
            if heading not in TABLES or not row:
                continue
            rows += 1
            references = set(re.findall(r"\b[CHM]\d+\b", row.group(2).rsplit("|", 1)[-1])) & ids
            if not count and not references and "not applicable" not in row.group(2):
                problems.append("%s: row %s of '%s' names no test" % (PAGE, row.group(1), heading))
        if rows < TABLES.get(heading, 0):
            problems.append("%s: '%s' has %d rows, not %d" % (PAGE, heading, rows, TABLES[heading]))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
