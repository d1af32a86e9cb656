#!/usr/bin/env python3
"""Tables and plots from what compare.py measured. usage: report.py bench/results/DATE.json writes .md, .html and (with rsvg-convert) .png beside it."""
import html
import json
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True

# row, how it is called in the table, budget in the unit of the column, column
ROWS = [
    ("start", "start to ready, empty store", 100, "startMillis"),
    ("idle", "resident memory, idle", 30, "residentMB"),
    ("loaded", "resident memory, all pods", 120, "residentMB"),
    ("fill", "create a pod, CPU", 250, "cpuMicros"),
    ("fill", "create a pod, per second", 5000, "perSecond"),
    ("get", "get a pod, JSON", 50, "cpuMicros"),
    ("patch", "merge-patch a pod", 300, "cpuMicros"),
    ("list-json", "list all pods, JSON", 60000, "cpuMicros"),
    ("list-protobuf", "the same, protobuf", 40000, "cpuMicros"),
    ("list-gzip", "the same, gzip", 50000, "cpuMicros"),
    ("list-table", "the same, Table", 80000, "cpuMicros"),
    ("list-node", "list by spec.nodeName (20 pods)", 100, "cpuMicros"),
    ("list-label", "list by label (200 pods)", 1000, "cpuMicros"),
    ("storm", "32 clients list everything at once: peak above the resident", 40, "aboveMB"),
    ("storm-cold", "such a storm as the first LISTs since the start: peak above the resident", None, "aboveMB"),
    ("watch", "deliver one watch event to one watcher", 5, "cpuMicros"),
    ("watch-shared", "such an event, 25 watches a connection", None, "cpuMicros"),
    ("delete", "delete a pod", None, "cpuMicros"),
    ("patch-policy", "merge-patch a pod that a validating policy looks at", None, "cpuMicros"),
    ("patch-webhook", "merge-patch a pod that a webhook looks at", None, "cpuMicros"),
    ("get-audit", "get a pod, audited (RequestResponse)", None, "cpuMicros"),
    ("patch-audit", "merge-patch a pod, audited (RequestResponse)", None, "cpuMicros"),
    ("get-no-fairness", "get a pod, without priority and fairness", None, "cpuMicros"),
    ("connect", "new connection with a client certificate, one request", None, "cpuMicros"),
    ("fill-custom", "create a custom resource of 1 kB", None, "cpuMicros"),
    ("get-custom", "get a custom resource", None, "cpuMicros"),
    ("list-custom", "list 2,000 custom resources", None, "cpuMicros"),
]
# Rows whose budget is for 10,000 pods and says nothing about another number.
SIZED = {"loaded", "list-label", "list-json", "list-protobuf", "list-gzip", "list-table", "storm"}
REAL, OURS = "#9aa5b1", "#2563a8"


def shown(value, column):
    if value is None:
        return "–"
    if column == "cpuMicros":
        return "%.1f ms" % (value / 1000) if value >= 10000 else "%.0f µs" % value if value >= 20 else "%.1f µs" % value
    return {"residentMB": "%.0f MB", "aboveMB": "%.0f MB", "startMillis": "%.0f ms", "perSecond": "%.0f/s"}[column] % value


def budget_rows(result):
    """name, column, theirs, ours, ratio (how many times better we are), budget, met."""
    for row, name, budget, column in ROWS:
        theirs, ours = (result[server].get(row, {}).get(column) for server in ("kube-apiserver", "keelson"))
        if theirs is None and ours is None:
            continue
        if row in SIZED and result["objects"] != 10000:
            budget = None
        more = column == "perSecond"
        # Beside next to nothing every ratio is large and says nothing.
        ratio = None if not theirs or not ours or (column == "aboveMB" and ours < 5) else ours / theirs if more else theirs / ours
        met = None if budget is None or ours is None else ours >= budget if more else ours <= budget
        yield name, column, theirs, ours, ratio, budget, met


def floor_of(result, name):
    """The floor of a row (cost of the bare work) in the same run; older results have none."""
    row = next(row for row, shown_as, _, _ in ROWS if shown_as == name)
    return result.get("floor", {}).get(row, {}).get("cpuMicros") or None


def budget_table(result):
    lines = ["| work | kube-apiserver + etcd | Keelson | ratio | floor | Keelson to floor | budget |  |", "|---|---:|---:|---:|---:|---:|---:|---|"]
    for name, column, theirs, ours, ratio, budget, met in budget_rows(result):
        floor = floor_of(result, name) if column == "cpuMicros" else None
        lines.append("| %s | %s | %s | %s | %s | %s | %s | %s |" % (
            name, shown(theirs, column), shown(ours, column), "–" if ratio is None else "%.1f×" % ratio, shown(floor, column), "–" if not floor or not ours else "%.1f×" % (ours / floor), shown(budget, column),
            {None: "", True: "met", False: "not met"}[met]))
    return lines


def cell(row, key, form):
    return form % row[key] if row and key in row else "–"


BUSY = 2  # load average; less than that is what the build just before the run leaves behind


def markdown(result):
    real, ours = result["kube-apiserver"], result["keelson"]
    lines = ["# Keelson beside kube-apiserver, %s" % result["date"], "",
             "%d pods%s. %s; load average %.1f at the start." % (result["objects"], " (`FAST=1`)" if result["fast"] else "", result["machine"], result["loadAverage"]),
             "%s. The run took %.0f minutes." % (result["versions"], result["minutes"]),
             "Cost is CPU time of all server processes per operation. The budgets are for 10,000 pods; docs/benchmarks.md tells what the rows mean.",
             "The floor is what TLS, HTTP/2, sockets and one sync cost for the same answers in the same run (bench/floors).", ""]
    if result["loadAverage"] > BUSY:
        lines += ["**The machine was busy with other work at the start:** wall times, latency and throughput mean little, and CPU times are higher than on an idle one.", ""]
    lines += budget_table(result)
    lines += ["", "CPU time of all server processes an operation, their peak memory, and latency, for every row (`-open`: open-loop, at a fixed rate):", "",
              "| row | kube-apiserver: CPU | peak | p50 | p99 | Keelson: CPU | peak | p50 | p99 | bytes an answer (real, ours) | errors (real, ours) |", "|---|" + "---:|" * 8 + "---|---|"]
    for row in [r for r in dict.fromkeys(list(ours) + list(real)) if r not in ("start", "series")]:
        a, b = real.get(row), ours.get(row)
        cells = [part for r in (a, b) for part in (shown(r.get("cpuMicros") if r else None, "cpuMicros"), cell(r, "peakMB", "%.0f MB"), cell(r, "p50Millis", "%.1f ms"), cell(r, "p99Millis", "%.1f ms"))]
        lines.append("| %s | %s | %s, %s | %s, %s |" % (row, " | ".join(cells), cell(a, "bytes", "%d"), cell(b, "bytes", "%d"), cell(a, "errors", "%d"), cell(b, "errors", "%d")))
    for key, title, columns in SERIES:
        a, b = real.get("series", {}).get(key, []), ours.get("series", {}).get(key, [])
        if not a and not b:
            continue
        lines += ["", title + ":", "", "| %s | %s |" % (key, " | ".join("%s: %s" % (server, name) for server in ("kube-apiserver", "Keelson") for _, name, _ in columns)), "|---:|" + "---:|" * (2 * len(columns))]
        for x in sorted({p["x"] for p in a + b}):
            points = [next((p for p in line if p["x"] == x), {}) for line in (a, b)]
            lines.append("| %d | %s |" % (x, " | ".join(cell(p, column, form) for p in points for column, _, form in columns)))
    return "\n".join(lines) + "\n"


# key, title, (column, its name, form)
SERIES = [
    ("objects", "LIST of all pods as JSON, as the data set grows", [("cpuMicros", "CPU µs", "%.0f"), ("peakMB", "peak MB", "%.0f")]),
    ("watchers", "One watch event at one watcher, by the number of watchers", [("cpuMicros", "CPU µs", "%.1f"), ("p99Millis", "p99 ms", "%.1f"), ("peakMB", "peak MB", "%.0f")]),
    ("clients", "GET of a pod, by the number of clients", [("perSecond", "per second", "%.0f"), ("cpuMicros", "CPU µs", "%.0f"), ("p99Millis", "p99 ms", "%.1f")]),
]


def text(x, y, content, anchor="start", size=12, color="#222"):
    return '<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%d" fill="%s">%s</text>' % (x, y, anchor, size, color, html.escape(content))


def bars(result, width):
    """How many times less Keelson needs, row by row, on a logarithmic axis; a mark where the budget is."""
    rows = [(name, column, ratio, theirs, ours, budget, met) for name, column, theirs, ours, ratio, budget, met in budget_rows(result) if ratio]
    left, step, top = 330, 24, 40
    limit = max([2.0] + [r[2] for r in rows]) * 1.6
    from math import log10
    scale = (width - left - 150) / log10(limit)
    at = lambda value: left + max(log10(max(value, 0.1)), 0) * scale  # noqa: E731
    out = [text(10, 22, "How many times better than kube-apiserver + etcd (logarithmic; the line is the budget)", size=15)]
    for number, (name, column, ratio, theirs, ours, budget, met) in enumerate(rows):
        y = top + number * step
        out.append(text(left - 8, y + 14, name if len(name) < 52 else name[:50] + "…", "end"))
        out.append('<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>' % (left, y + 3, max(at(ratio) - left, 1), step - 8, OURS if met is not False else "#7aa7d9"))
        if budget:
            mark = at(budget / theirs if column == "perSecond" else theirs / budget)
            out.append('<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#c2410c" stroke-width="2"/>' % (mark, mark, y + 1, y + step - 3))
        out.append(text(at(ratio) + 6, y + 14, "%.1f× (%s)" % (ratio, shown(ours, column))))
    return out, top + len(rows) * step + 20


def chart(result, key, title, column, name, x0, y0, width, height):
    """One series of both servers, logarithmic on both axes."""
    from math import log10
    lines = [(REAL, "kube-apiserver + etcd", result["kube-apiserver"].get("series", {}).get(key, [])), (OURS, "Keelson", result["keelson"].get("series", {}).get(key, []))]
    points = [(p["x"], p[column]) for _, _, line in lines for p in line if p.get(column, 0) > 0]
    if not points:
        return []
    low, high = min(p[1] for p in points) * 0.6, max(p[1] for p in points) * 1.6
    first, last = min(p[0] for p in points), max(p[0] for p in points)
    fx = lambda x: x0 + 60 + (width - 110) * (log10(x / first) / log10(last / first) if last > first else 0.5)  # noqa: E731
    fy = lambda y: y0 + height - 34 - (height - 74) * (log10(y / low) / log10(high / low))  # noqa: E731
    out = [text(x0 + 10, y0 + 16, "%s: %s" % (title, name), size=13)]
    for x in sorted({p[0] for p in points}):
        out.append(text(fx(x), y0 + height - 16, "%d" % x, "middle", 11, "#555"))
    out.append(text(x0 + width / 2, y0 + height - 2, key, "middle", 11, "#555"))
    for color, server, line in lines:
        shownpoints = [(fx(p["x"]), fy(p[column]), p[column]) for p in line if p.get(column, 0) > 0]
        out.append('<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/>' % (color, " ".join("%.1f,%.1f" % p[:2] for p in shownpoints)))
        for x, y, value in shownpoints:
            out.append('<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>' % (x, y, color))
            out.append(text(x, y - 7, "%.0f" % value if value >= 10 else "%.1f" % value, "middle", 10, "#333"))
    return out


def svg(result):
    width = 1000
    parts, y = bars(result, width)
    half, height = width // 2, 230
    cells = [(key, title, column, name) for key, title, columns in SERIES for column, name, _ in columns if result["keelson"].get("series", {}).get(key)]
    for number, (key, title, column, name) in enumerate(cells):
        short = {"objects": "LIST of all pods", "watchers": "watch event", "clients": "GET of a pod"}[key]
        parts += chart(result, key, short, column, name, (number % 2) * half, y + (number // 2) * height, half, height)
    y += ((len(cells) + 1) // 2) * height
    parts += ['<rect x="10" y="%d" width="12" height="12" fill="%s"/>' % (y, REAL), text(28, y + 11, "kube-apiserver + etcd"),
              '<rect x="190" y="%d" width="12" height="12" fill="%s"/>' % (y, OURS), text(208, y + 11, "Keelson (pale: budget not met)"),
              text(width - 10, y + 11, "%s, %d pods, %s" % (result["date"], result["objects"], result["machine"]), "end", 10, "#555")]
    return '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif"><rect width="100%%" height="100%%" fill="white"/>%s</svg>' % (
        width, y + 24, width, y + 24, "\n".join(parts))


def page(result):
    body, table = [], False
    for line in markdown(result).splitlines():
        if line.startswith("|"):
            if set(line) <= set("|-:"):
                continue
            cells = [html.escape(c.strip()) for c in line.strip("|").split("|")]
            body.append(("" if table else "<table>") + "<tr>%s</tr>" % "".join(("<td>%s</td>" if table else "<th>%s</th>") % c for c in cells))
            table = True
            continue
        if table:
            body.append("</table>")
            table = False
        if line.startswith("# "):
            body.append("<h1>%s</h1>" % html.escape(line[2:]))
            body.append(svg(result))
        elif line:
            body.append("<p>%s</p>" % html.escape(line.replace("**", "").replace("`", "")))
    if table:
        body.append("</table>")
    style = "body{font:14px sans-serif;max-width:1020px;margin:2em auto}table{border-collapse:collapse;margin:1em 0}td,th{border:1px solid #ccc;padding:2px 8px;text-align:right}td:first-child{text-align:left}"
    return '<!doctype html><meta charset="utf-8"><title>Keelson beside kube-apiserver</title><style>%s</style>\n%s\n' % (style, "\n".join(body))


def write(result, out):
    written = []
    for ending, content in ((".json", json.dumps(result, indent=1) + "\n"), (".md", markdown(result)), (".html", page(result))):
        with open(out + ending, "w") as f:
            f.write(content)
        written.append(out + ending)
    if shutil.which("rsvg-convert"):
        subprocess.run(["rsvg-convert", "--format=png", "--output=" + out + ".png"], input=svg(result).encode(), check=True)
        written.append(out + ".png")
    else:
        print("bench: no PNG: rsvg-convert is missing (Debian package librsvg2-bin)")
    return written


def readme(result, path):
    """Puts the newest table between the marks of the README."""
    begin, finish = "<!-- bench: begin -->", "<!-- bench: end -->"
    with open(path) as f:
        content = f.read()
    if begin not in content or finish not in content:
        sys.exit("%s has no marks %s and %s" % (path, begin, finish))
    head, rest = content.split(begin, 1)
    tail = rest.split(finish, 1)[1]
    note = "%s; %d pods; %s." % (result["date"], result["objects"], result["machine"]) + (" The machine was busy with other work." if result["loadAverage"] > BUSY else "")
    with open(path, "w") as f:
        f.write(head + begin + "\n" + note + "\n\n" + "\n".join(budget_table(result)) + "\n" + finish + tail)


if __name__ == "__main__":
    with open(sys.argv[1]) as f:
        loaded = json.load(f)
    print(write(loaded, sys.argv[1][:-len(".json")]))
    if len(sys.argv) > 2:
        readme(loaded, sys.argv[2])
