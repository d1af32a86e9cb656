#!/usr/bin/env bash
# Everything that takes long, one after the other, and a table at the end: outcome, minutes, the last line each printed. Logs in build/nightly.
# usage: tools/nightly.sh [test|asan|tsan|fuzz|simulate|soak|interop|conformance|envtest|reference|cmd|clients|sequences]...; all of them without arguments.
# SECONDS_EACH: for one fuzz target (60). SIMULATION_HOURS (1000), from a new seed each night. SOAK_MINUTES (30). SEQUENCES: random sequences beside kube-apiserver (20000), from a new seed each night.
set -uo pipefail
cd "$(dirname "$0")/.."
parts=("$@")
[ ${#parts[@]} -eq 0 ] && parts=(test asan tsan fuzz simulate soak interop conformance envtest reference cmd clients sequences)
mkdir -p build/nightly
seed=${SEED:-$(date +%Y%m%d)0000}
table=() failed=0

command_of() {
  case $1 in
    fuzz) echo "make fuzz SECONDS=${SECONDS_EACH:-60}" ;;
    simulate) echo "make simulate HOURS=${SIMULATION_HOURS:-1000} SEED=$seed" ;;
    soak) echo "make soak ARGS=${SOAK_MINUTES:-30}" ;;
    sequences) echo "tools/sequences.sh --first $seed --count ${SEQUENCES:-20000}" ;;
    test | asan | tsan | interop | conformance | envtest | reference | cmd | clients) echo "make $1" ;;
    *) return 1 ;;
  esac
}

for part in "${parts[@]}"; do
  command=$(command_of "$part") || { echo "nightly: no part $part" >&2; exit 2; }
done
for part in "${parts[@]}"; do
  begin=$(date +%s) log=build/nightly/$part.log
  echo "nightly: $part (log $log)"
  if $(command_of "$part") >"$log" 2>&1; then outcome=passed; else outcome=failed failed=$((failed + 1)); fi
  last=$(grep -v '^make' "$log" | tail -n 1 | cut -c 1-100)
  table+=("$(printf '%-12s %-7s %4d min  %s' "$part" "$outcome" $((($(date +%s) - begin) / 60)) "$last")")
done
echo
printf '%s\n' "${table[@]}"
echo "$((${#parts[@]} - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
