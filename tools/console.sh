#!/usr/bin/env bash
# Fetches what the console is tested with, in the versions of test/console/package-lock.json, into ~/.cache/keelson/console: Playwright and axe-core. Then runs
# those tests. usage: tools/console.sh [NAME ...]
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$HOME/.cache/keelson/console
mkdir -p "$folder"
if ! cmp -s test/console/package-lock.json "$folder/package-lock.json" || ! [ -d "$folder/node_modules/playwright-core" ]; then
  cp test/console/package.json test/console/package-lock.json "$folder/"
  (cd "$folder" && npm ci --no-audit --no-fund --ignore-scripts)
fi
KEELSON_CONSOLE_TESTS="$*" exec python3 test/system/console_test.py build/release/keelson build/release/console-tests playwright
