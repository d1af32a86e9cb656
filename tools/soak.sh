#!/usr/bin/env bash
# The durability and watch tests in their long form and definitions that come and go, again and again with new seeds. usage: tools/soak.sh [minutes], 10 by default; make soak ARGS=1
set -uo pipefail
cd "$(dirname "$0")/.."
end=$(($(date +%s) + ${1:-10} * 60))
passed=0 failed=0
while [ "$(date +%s)" -lt "$end" ]; do
  seed=$RANDOM
  echo "soak: seed $seed"
  for command in "test/system/durability_test.py build/release/keelson build/release/soak/durability 10000 5" \
    "test/system/watch_test.py build/release/keelson build/release/soak/watch 100 2000" \
    "test/system/definitions_soak.py build/release/keelson build/release/soak/definitions ${KEELSON_SOAK_DEFINITIONS:-2}"; do
    if KEELSON_SEED=$seed $command; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
  done
done
echo "$passed passed, $failed failed"
[ "$passed" -gt 0 ] && [ "$failed" -eq 0 ]
