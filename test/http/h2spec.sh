#!/bin/sh
# HTTP/2 conformance over TLS: builds h2spec once and runs it against the example server. Prints failures; fails unless all pass.
# --max-header-length: frames of up to 256 KiB are accepted (upstream's limit), so h2spec's "too large" headers must exceed that.
# /read answers after the request's body, so that violations within a body meet an open stream.
. "$(dirname "$0")/common.sh"
tool=${H2SPEC:-$HOME/.cache/keelson/bin/h2spec}
if [ ! -x "$tool" ]; then
  mkdir -p "$work/module" "$(dirname "$tool")"
  (cd "$work/module" && go mod init h2spec_build >/dev/null 2>&1 && go get github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible >/dev/null 2>&1 &&
    go build -o "$tool" github.com/summerwind/h2spec/cmd/h2spec)
fi
start_server
"$tool" -h 127.0.0.1 -p "$port" -t -k -o 2 --max-header-length 60000 -P /read >"$work/report" 2>&1 || true
sed -n '/^Failures/,$p' "$work/report"
summary=$(tail -1 "$work/report")
echo "$summary"
[ "$summary" = "145 tests, 145 passed, 0 skipped, 0 failed" ]
