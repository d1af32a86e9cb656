#!/usr/bin/env python3
"""CPU time of the rows over the commits that were measured: bench/results/*.json to trend.md and trend.svg beside them.
usage: trend.py [RESULTS_FOLDER]
"""
import glob
import html
import json
import os
import re
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import report  # noqa: E402

ROWS = ["get", "fill", "patch", "list-json", "list-protobuf", "list-node", "list-label", "watch", "watch-shared", "connect"]
COLORS = ["#2563a8", "#c2410c", "#15803d", "#7e22ce", "#b45309", "#0e7490", "#be123c", "#4d7c0f", "#6d28d9", "#475569"]


def runs(folder):
    """(date, commit, {row: (ours, floor)}) of each full run, oldest first."""
    found = []
    for path in glob.glob(os.path.join(folder, "*.json")):
        with open(path) as f:
            result = json.load(f)
        if not isinstance(result, dict) or result.get("fast") or "keelson" not in result or result.get("objects") != 10000:
            continue
        commit = re.search(r"Keelson at (\S+?);", result.get("versions", ""))
        costs = {row: (result["keelson"][row]["cpuMicros"], result.get("floor", {}).get(row, {}).get("cpuMicros")) for row in ROWS if row in result["keelson"]}
        found.append((result["date"], commit.group(1) if commit else "?", costs))
    return sorted(found, key=lambda run: run[0])


def table(found):
    lines = ["# CPU time of an operation, commit by commit", "", "Keelson, and in brackets its multiple of the floor measured in the same run. 10,000 pods.", "",
             "| date | commit | %s |" % " | ".join(ROWS), "|---|---|" + "---:|" * len(ROWS)]
    for date, commit, costs in found:
        cells = []
        for row in ROWS:
            ours, floor = costs.get(row, (None, None))
            cells.append(report.shown(ours, "cpuMicros") + (" (%.1f×)" % (ours / floor) if ours and floor else ""))
        lines.append("| %s | %s | %s |" % (date, commit, " | ".join(cells)))
    return "\n".join(lines) + "\n"


def plot(found):
    """Each row as a share of what it cost in the first run that has it."""
    width, height, left, top = 900, 360, 60, 30
    x = lambda i: left + (width - left - 170) * (i / max(len(found) - 1, 1))  # noqa: E731
    y = lambda share: top + (height - top - 40) * (1 - min(share, 1.5) / 1.5)  # noqa: E731
    out = [report.text(10, 20, "CPU time of an operation, as a share of the first run's", size=15)]
    for share in (0, 0.5, 1, 1.5):
        out.append('<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/>' % (left, width - 170, y(share), y(share)))
        out.append(report.text(left - 6, y(share) + 4, "%.0f %%" % (share * 100), "end", 11))
    for i, (date, commit, _) in enumerate(found):
        out.append(report.text(x(i), height - 12, html.escape(commit[:9]), "middle", 10, "#555"))
    for row, color in zip(ROWS, COLORS):
        points = [(i, costs[row][0]) for i, (_, _, costs) in enumerate(found) if row in costs and costs[row][0]]
        if not points:
            continue
        first = points[0][1]
        out.append('<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/>' % (color, " ".join("%.1f,%.1f" % (x(i), y(cost / first)) for i, cost in points)))
        out += ['<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>' % (x(i), y(cost / first), color) for i, cost in points]
        out.append(report.text(width - 160, top + 16 * ROWS.index(row) + 12, "%s: %s" % (row, report.shown(points[-1][1], "cpuMicros")), color=color))
    return '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif"><rect width="100%%" height="100%%" fill="white"/>%s</svg>\n' % (width, height, "\n".join(out))


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "results")
    found = runs(folder)
    if not found:
        sys.exit("trend: no full run in %s yet" % folder)
    for name, content in (("trend.md", table(found)), ("trend.svg", plot(found))):
        with open(os.path.join(folder, name), "w") as f:
            f.write(content)
    print("bench: %d runs in %s" % (len(found), os.path.join(folder, "trend.md")))


if __name__ == "__main__":
    main()
