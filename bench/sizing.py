#!/usr/bin/env python3
"""Plots for docs/sizing.md and docs/scale.md from the newest bench/results/*-list-scale.md and *-growth.md. usage: bench/sizing.py; writes docs/images/sizing-*.svg
and scale-*.svg"""
import glob
import math
import os
import re

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COLORS = {"keelson": "#0b5cad", "keelson, no JSON kept": "#4c9a2a", "keelson, all JSON kept": "#7b4fb5", "kube-apiserver": "#a4161a",
          "create": "#a4161a", "GET": "#0b5cad", "LIST by label (20)": "#4c9a2a", "watch event": "#7b4fb5", "resident": "#0b5cad"}


def read_growth():
    """column -> [(objects, value)] of the first table of the newest run"""
    found, columns = {}, None
    with open(sorted(glob.glob(TOP + "/bench/results/*-growth.md"))[-1]) as f:
        for line in f:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if cells[0] == "objects of 1 kB":
                columns = cells
            elif columns and len(cells) == len(columns) and re.match(r"[\d,]+$", cells[0]):
                for column, cell in zip(columns[1:], cells[1:]):
                    found.setdefault(column, []).append((float(cells[0].replace(",", "")), float(re.sub(r"[^\d.]", "", cell))))
            elif columns and not line.strip():
                break
    return found


def read():
    """server -> [(pods, JSON ms, protobuf ms, resident MB)]"""
    found = {}
    with open(sorted(glob.glob(TOP + "/bench/results/*-list-scale.md"))[-1]) as f:
        for line in f:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if len(cells) == 9 and cells[0] in COLORS:
                number = [float(re.sub(r"[^\d.]", "", cell)) for cell in cells[1:]]
                found.setdefault(cells[0], []).append((number[0], number[1], number[3], number[7]))
    return found


def plot(title, unit, series, path, noun="pods", width=680, height=360):
    left, right, top, bottom = 100, 190, 40, 50
    xs, ys = [x for points in series.values() for x, _ in points], [y for points in series.values() for _, y in points]
    low, high = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)))
    first, last = math.log10(min(xs)), math.log10(max(xs))
    at = lambda x, y: (left + (math.log10(x) - first) / (last - first) * (width - left - right), height - bottom - (math.log10(y) - low) / (high - low) * (height - top - bottom))
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12"><title>%s</title>' % (width, height, width, height, title),
           '<rect width="100%%" height="100%%" fill="white"/><text x="%d" y="22" font-size="15">%s</text>' % (left, title)]
    for power in range(low, high + 1):
        _, y = at(min(xs), 10 ** power)
        out.append('<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%s</text>' % (left, y, width - right, y, left - 8, y + 4, "{:,}".format(10 ** power) + " " + unit))
    for x in sorted(set(xs)):
        px, _ = at(x, min(ys))
        out.append('<text x="%.1f" y="%d" text-anchor="middle">%s %s</text>' % (px, height - bottom + 20, "{:,}".format(int(x)), noun))
    labels = sorted(((at(*points[-1])[1], name) for name, points in series.items()))
    place = 0
    for y, name in labels:
        place = max(y, place + 16)
        out.append('<text x="%d" y="%.1f" fill="%s">%s</text>' % (width - right + 10, place + 4, COLORS[name], name))
    for name, points in series.items():
        places = [at(x, y) for x, y in points]
        out.append('<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/>' % (COLORS[name], " ".join("%.1f,%.1f" % place for place in places)))
        out += ['<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"/>' % (x, y, COLORS[name]) for x, y in places]
    with open(path, "w") as f:
        f.write("\n".join(out) + "\n</svg>\n")


def main():
    found, images = read(), os.path.join(TOP, "docs", "images")
    os.makedirs(images, exist_ok=True)
    plot("Resident memory", "MB", {name: [(row[0], row[3]) for row in rows] for name, rows in found.items()}, images + "/sizing-memory.svg")
    plot("CPU of one LIST of everything, protobuf", "ms", {name: [(row[0], row[2]) for row in rows] for name, rows in found.items() if "JSON" not in name}, images + "/sizing-list.svg")
    growth = read_growth()
    plot("CPU of one operation", "µs", {name: growth[name] for name in ("create", "GET", "LIST by label (20)", "watch event")}, images + "/scale-cpu.svg", "objects")
    plot("Resident memory", "MB", {"resident": growth["resident"]}, images + "/scale-memory.svg", "objects")


main()
