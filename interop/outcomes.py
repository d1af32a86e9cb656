"""Outcomes of suites that are not ours: reads Ginkgo's JUnit, holds them against a list of expected failures, prints and writes JUnit.

A list of expected failures has a test a line: its name, a tab, the reason. It may only shrink: a test in it that passes fails the
run until its line is gone.
"""
import os
import re
import sys
import xml.etree.ElementTree as ElementTree


def lines(path):
    with open(path) as f:
        return [line.rstrip("\n") for line in f if line.strip() and not line.startswith("#")]


def expected_failures(path):
    result = {}
    for line in lines(path) if os.path.exists(path) else []:
        name, _, reason = line.partition("\t")
        if not reason.strip():
            sys.exit("%s has a line without a reason: %s" % (path, name))
        result[name] = reason.strip()
    return result


def read_junit(path):
    """name -> (passed|failed|skipped, message, seconds), of the specs alone (Ginkgo marks them with [It])."""
    results = {}
    for case in ElementTree.parse(path).iter("testcase"):
        name = case.get("name")
        if name.startswith("[It] "):
            name = name[5:]
        elif case.find("failure") is None and case.find("error") is None:
            continue  # set-up and tear-down count only when they fail
        problem = case.find("failure") if case.find("failure") is not None else case.find("error")
        skipped = case.find("skipped")
        if problem is not None:
            results[name] = ("failed", " ".join((problem.get("message") or problem.text or "").split()), float(case.get("time") or 0))
        elif skipped is not None:
            results[name] = ("skipped", re.sub("^skipped( - )?", "", skipped.get("message") or ""), float(case.get("time") or 0))
        else:
            results[name] = ("passed", "", float(case.get("time") or 0))
    return results


def write_junit(path, suite_name, results, expected):
    suite = ElementTree.Element("testsuite", name=suite_name, tests=str(len(results)), failures=str(sum(r[0] == "failed" and n not in expected for n, r in results.items())),
                                skipped=str(sum(r[0] == "skipped" or (r[0] == "failed" and n in expected) for n, r in results.items())))
    for name, (outcome, message, seconds) in sorted(results.items()):
        case = ElementTree.SubElement(suite, "testcase", name=name, classname=suite_name, time="%.1f" % seconds)
        if outcome == "failed" and name in expected:
            ElementTree.SubElement(case, "skipped", message="expected to fail: " + expected[name])
        elif outcome != "passed":
            ElementTree.SubElement(case, "failure" if outcome == "failed" else "skipped", message=message)
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def conclude(suite, results, expected_path, expected, shrink=False, second=(), left_out=(), quiet=False):
    """Prints every outcome with its reason and the last line with the counts. Returns the exit status."""
    for name in sorted(results):
        outcome, message, seconds = results[name]
        known = outcome == "failed" and name in expected
        note = "expected: " + expected[name] if known else message if outcome != "passed" else "at the second attempt" if name in second else ""
        if not (quiet and outcome == "passed" and not note):
            print("%-7s %6.1f s  %s%s" % ("known" if known else outcome, seconds, name, "\n                   " + note[:400] if note else ""))
    for name in left_out:
        print("%-7s           %s\n                   not run, expected to fail: %s" % ("left", name, expected[name]))
    failed = [n for n, r in results.items() if r[0] == "failed" and n not in expected]
    known = [n for n, r in results.items() if r[0] == "failed" and n in expected]
    surprising = [n for n, r in results.items() if r[0] == "passed" and n in expected]
    if surprising and shrink:
        with open(expected_path) as f:
            kept = [line for line in f if line.partition("\t")[0] not in surprising]
        with open(expected_path, "w") as f:
            f.writelines(kept)
        print("%s: %d lines removed from %s" % (suite, len(surprising), expected_path))
        surprising = []
    for name in surprising:
        print("%s: it passes now, so its line in %s has to go: %s" % (suite, os.path.basename(expected_path), name))
    print("%d passed (%d at the second attempt), %d failed, %d failed as expected, %d skipped" % (
        sum(r[0] == "passed" for r in results.values()), len(second), len(failed), len(known) + len(left_out), sum(r[0] == "skipped" for r in results.values())))
    return 1 if failed or surprising else 0
