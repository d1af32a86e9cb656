#!/usr/bin/env python3
"""Seeds for requests_fuzz from recordings. usage: request_seeds.py FOLDER_OF_RECORDINGS OUT_FOLDER [CASES_MAX]

One seed per case: its requests in order, as src/app/requests_fuzz.cc reads them. Placeholders become names that may exist.
"""
import glob
import json
import os
import re
import sys

STEPS_MAX = 8


def fill(text):
    def value(match):
        name = match.group(1)
        return "default" if name.startswith("ns") else "1" if "rv" in name else "00000000-0000-4000-8000-000000000001" if "uid" in name else name
    return re.sub(r"\$\{(\w+)\}", value, text)


def request(step):
    told = step.get("request")
    if not told or "method" not in told or "path" not in told:
        return None
    headers = dict(told.get("headers") or {})
    body = told.get("body", "")
    if not isinstance(body, str):
        body = json.dumps(body, separators=(",", ":"))
    for name, key in (("contentType", "Content-Type"), ("accept", "Accept")):
        if told.get(name):
            headers[key] = told[name]
    if body and not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = "application/json"
    lines = ["%s %s" % (told["method"], told["path"])] + ["%s: %s" % (k, v) for k, v in headers.items() if isinstance(v, str)]
    return fill("\n".join(lines) + "\n\n" + body)


def main():
    recordings, out = sys.argv[1:3]
    most = int(sys.argv[3]) if len(sys.argv) > 3 else 1 << 30
    os.makedirs(out, exist_ok=True)
    written = 0
    for path in sorted(glob.glob(os.path.join(recordings, "**", "*.json"), recursive=True)):
        with open(path) as f:
            told = json.load(f)
        for case in told.get("cases", []) if isinstance(told, dict) else []:
            requests = [text for text in map(request, case.get("steps", [])) if text][:STEPS_MAX]
            if requests and written < most:
                with open(os.path.join(out, "%05d" % written), "w") as f:
                    f.write("\n%%\n".join(requests))
                written += 1
    print("%d seeds" % written)


if __name__ == "__main__":
    main()
