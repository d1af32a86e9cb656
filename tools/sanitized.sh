#!/usr/bin/env bash
# Runs a test of programs that are built with sanitizers and fails when any of them, child processes too, reported something: a server's exit
# status is often not looked at, and the thread sanitizer goes on after a report. Reports are printed and stay in the folder.
# usage: tools/sanitized.sh REPORT_FOLDER COMMAND [ARGUMENT]...
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
reports=${1:?usage: tools/sanitized.sh REPORT_FOLDER COMMAND [ARGUMENT]...}
shift
rm -rf "$reports"
mkdir -p "$reports"
export ASAN_OPTIONS="log_path=$reports/report ${ASAN_OPTIONS:-}"
export LSAN_OPTIONS="log_path=$reports/report ${LSAN_OPTIONS:-}"
export UBSAN_OPTIONS="log_path=$reports/report print_stacktrace=1 ${UBSAN_OPTIONS:-}"
export TSAN_OPTIONS="log_path=$reports/report suppressions=$root/tools/tsan.supp ${TSAN_OPTIONS:-}"
export KEELSON_SANITIZED=1  # bounds of memory are wider (test/system/harness.py)
"$@"
status=$?
found=$(find "$reports" -type f | sort)
[ -z "$found" ] && exit "$status"
for report in $found; do
  echo "== $report"
  head -c 20000 "$report"
done
echo "sanitizers reported something: see $reports (exit status of the test: $status)"
exit 1
