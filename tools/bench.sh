#!/usr/bin/env bash
# Builds and runs the microbenchmarks beside the code. usage: tools/bench.sh [name filter] [benchmark arguments]
set -euo pipefail
cd "$(dirname "$0")/.."
filter=${1:-}
[ $# -gt 0 ] && shift
mapfile -t targets < <(ninja -C build/release -t targets all | sed -nE 's/^([a-z0-9_]+_bench): phony.*/\1/p' | sort -u | grep -F -- "$filter" || true)
if [ ${#targets[@]} -eq 0 ]; then
  echo "bench: there is no benchmark${filter:+ with \"$filter\" in its name} yet" >&2
  exit 1
fi
ninja -C build/release "${targets[@]}" >/dev/null
for target in "${targets[@]}"; do
  echo "bench: $target"
  "$(find build/release/src -type f -executable -name "$target" | head -1)" "$@"
done
