#!/usr/bin/env bash
# Profiles of the server in rows of the comparison (perf). usage: tools/profile.sh [--rows get,patch] [--objects N]; by default the three rows furthest from their budget.
set -euo pipefail
cd "$(dirname "$0")/.."
work=build/release/bench
mkdir -p $work
(cd interop/keelson-load && go build -o ../../$work/keelson-load .)
exec bench/profile.py build/release/keelson build/release/profile $work/keelson-load "$@"
