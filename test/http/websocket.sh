#!/bin/sh
# WebSocket conformance: Autobahn's fuzzing client against the example server's echo. Prints every case that is not OK; fails if one failed.
# websocket.sh [cases], as "1.*,2.*,9.1.*"; default all but compression (12, 13), which is not offered. Needs Python 2.7 (for Autobahn 0.8.2)
# and, the first time, PyPI.
. "$(dirname "$0")/common.sh"
python=${PYTHON2:-python2.7}
# pyenv's python2.7 says no until a version is chosen; take the newest that is installed.
"$python" -c "" 2>/dev/null || python=$(ls "${PYENV_ROOT:-$HOME/.pyenv}"/versions/2.7*/bin/python2.7 2>/dev/null | tail -1)
[ -n "$python" ] || { echo "SKIPPED: Python 2.7 is missing (PYTHON2 names one)"; exit 77; }
place=${AUTOBAHN:-${XDG_CACHE_HOME:-$HOME/.cache}/keelson/autobahn}
if ! PYTHONPATH=$place "$python" -c "import autobahntestsuite.wstest" 2>/dev/null; then
  # Without wsaccel, which is only for speed and takes long to compile. A namespace package in a --target folder needs its own __init__.
  { "$python" -m pip install -q --no-deps --target "$place" autobahntestsuite==0.8.2 autobahn==0.10.9 &&
    "$python" -m pip install -q --target "$place" twisted==20.3.0 txaio==2.1.0 jinja2==2.11.3 klein==17.10.0 markdown==3.1.1 pyopenssl==19.1.0 cryptography==3.3.2 unittest2 &&
    touch "$place/zope/__init__.py"; } >"$work/pip" 2>&1 || { tail -3 "$work/pip"; echo "SKIPPED: Autobahn could not be installed"; exit 77; }
fi
start_example
cases=$(echo "${1:-*}" | sed 's/[^,]*/"&"/g')
cat >"$work/spec.json" <<END
{"outdir": "$work/reports", "servers": [{"agent": "keelson", "url": "ws://127.0.0.1:$port/ws"}], "cases": [$cases], "exclude-cases": ["12.*", "13.*"], "exclude-agent-cases": {}}
END
(cd "$work" && PYTHONPATH=$place "$python" -c "from autobahntestsuite.wstest import run; run()" -m fuzzingclient -s "$work/spec.json" >"$work/out" 2>&1) || { tail -20 "$work/out"; exit 1; }
python3 - "$work/reports/index.json" <<'END'
import collections, json, sys
cases = json.load(open(sys.argv[1]))["keelson"]
count = collections.Counter(case["behavior"] for case in cases.values())
for name, case in sorted(cases.items(), key=lambda item: [int(n) for n in item[0].split(".")]):
    if case["behavior"] != "OK":
        print(name, case["behavior"], "close:", case["behaviorClose"])
print("%d cases: %s" % (len(cases), ", ".join("%d %s" % (n, word) for word, n in count.most_common())))
bad = sum(n for word, n in count.items() if word in ("FAILED", "UNIMPLEMENTED", "UNCLEAN"))
sys.exit(1 if bad or not cases else 0)
END
