#!/usr/bin/env bash
# Runs the tests of one build folder with ctest and ends with "N passed, N failed", counted from the results: every case of a
# GoogleTest binary counts, a binary that died counts as one failure, any other test as one.
# usage: tools/run-tests.sh build/release [ctest arguments]
set -uo pipefail
cd "$(dirname "$0")/.."
build=${1:?usage: tools/run-tests.sh BUILD_FOLDER [ctest arguments]}
shift

results=$PWD/$build/test-results
rm -rf "$results"
mkdir -p "$results/gtest"
# More at a time than cores only makes time limits tight. A system test that fails runs once more, the log
# has both outcomes; the reports of GoogleTest binaries keep the first.
export TSAN_OPTIONS="suppressions=$PWD/tools/tsan.supp ${TSAN_OPTIONS:-}"
GTEST_OUTPUT="xml:$results/gtest/" ctest --test-dir "$build" --output-on-failure --no-tests=error --repeat until-pass:2 -j "$(nproc)" \
  --output-junit "$results/ctest.xml" "$@"
status=$?

passed=0
failed=0
skipped=0
attribute() { sed -nE "0,/<testsuites? /s/.*<testsuites? .*$2=\"([0-9]+)\".*/\1/p" "$1" | head -1; }
while read -r name outcome; do
  report=$results/gtest/${name}_test.xml
  if [ "$outcome" = fail ] && ! [ -f "$report" ]; then
    failed=$((failed + 1))
  elif [ -f "$report" ]; then
    total=$(attribute "$report" tests)
    bad=$(($(attribute "$report" failures) + $(attribute "$report" errors)))
    skip=$(grep -c 'result="skipped"' "$report")
    skipped=$((skipped + skip))
    passed=$((passed + total - bad - skip))
    failed=$((failed + bad))
    # The cases are fine but the binary is not: a leak or a race found at exit.
    if [ "$outcome" = fail ] && [ "$bad" -eq 0 ]; then failed=$((failed + 1)); fi
  elif [ "$outcome" = run ]; then
    passed=$((passed + 1))
  else
    skipped=$((skipped + 1))
  fi
done < <(sed -nE 's/.*<testcase name="([^"]+)".* status="([a-z]+)".*/\1 \2/p' "$results/ctest.xml" 2>/dev/null)

if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then failed=1; fi
if [ "$passed" -eq 0 ] && [ "$failed" -eq 0 ]; then failed=1; fi
[ "$skipped" -gt 0 ] && echo "$skipped skipped"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
