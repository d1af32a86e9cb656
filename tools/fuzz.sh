#!/usr/bin/env bash
# Runs every fuzz target for a while, starting from its corpus. usage: tools/fuzz.sh [seconds per target] [name filter]
set -uo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
filter=${2:-}
found=0
bad=0
while read -r binary; do
  name=$(basename "$binary")
  [[ $name == *$filter* ]] || continue
  found=$((found + 1))
  corpora=()
  [ -d "$binary.corpus" ] && corpora=("$binary.corpus/") # a link that the build makes
  work=build/fuzz/corpus/$name
  mkdir -p "$work"
  limits=(-timeout=10)
  if [ "$name" = app_requests_fuzz ]; then # a whole server: its threads run on at the end, a request may wait for its timeout
    limits=(-timeout=300 -detect_leaks=0)
    tools/fuzz/request_seeds.py "${KEELSON_CORPUS:-test/recordings/corpus}" "$work" >/dev/null
  fi
  echo "fuzz: $name for ${seconds}s"
  "$binary" -max_total_time="$seconds" -rss_limit_mb=2048 "${limits[@]}" -print_final_stats=0 -artifact_prefix="$work/crash-" "$work" "${corpora[@]}" \
    >"$work.log" 2>&1 || { tail -30 "$work.log"; echo "fuzz: $name failed; the input is in $work/"; bad=$((bad + 1)); }
done < <(find build/fuzz/src build/fuzz/tools -type f -executable -name '*_fuzz' 2>/dev/null | sort)
echo "$((found - bad)) passed, $bad failed"
[ "$found" -gt 0 ] && [ "$bad" -eq 0 ]
