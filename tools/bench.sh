#!/usr/bin/env bash
# usage: tools/bench.sh                      Keelson beside kube-apiserver + etcd, the rows of docs/benchmarks.md, and the README's table; FAST=1 for the short form
#        tools/bench.sh list_scale           what a LIST costs with 1,000, 10,000 and 100,000 pods, beside kube-apiserver; SIZES=1000,10000 for less
#        tools/bench.sh growth               objects from 1,000 to 1,000,000, many watches, many clients that come back; arguments as of bench/growth.py
#        tools/bench.sh definitions          many CustomResourceDefinitions, beside kube-apiserver
#        tools/bench.sh custom_resources     custom resources beside built-in kinds, and large ones in the watch cache, beside kube-apiserver
#        tools/bench.sh worst_cases          CPU and peak memory of one request in the worst cases that are known, beside kube-apiserver (which takes minutes)
#        tools/bench.sh NAME [arguments]     the microbenchmarks beside the code whose name contains NAME (all: "_bench")
set -euo pipefail
cd "$(dirname "$0")/.."
filter=${1:-}
[ $# -gt 0 ] && shift

if [ -z "$filter" ] || [ "$filter" = list_scale ] || [ "$filter" = growth ] || [ "$filter" = definitions ] || [ "$filter" = custom_resources ] ||
  [ "$filter" = worst_cases ]; then
  cmake --build build/release --target keelson >/dev/null
  if ! command -v go >/dev/null; then
    echo "bench: the comparison needs Go for the load program and the real servers; tools/bench.sh _bench runs the microbenchmarks" >&2
    exit 1
  fi
  work=build/release/bench
  mkdir -p $work
  if [ "$filter" = growth ]; then
    (cd interop/keelson-load && go build -o ../../$work/keelson-load .)
    bench/growth.py build/release/keelson $work/growth $work/keelson-load --out bench/results/$(date -u +%Y-%m-%d)-growth.md "$@"
    exit
  fi
  interop/build.sh kube-apiserver etcd
  if [ "$filter" = definitions ] || [ "$filter" = custom_resources ] || [ "$filter" = worst_cases ]; then
    bench/$filter.py build/release/keelson $work/$filter --beside "${XDG_CACHE_HOME:-$HOME/.cache}/keelson/bin" "$@"
    exit
  fi
  (cd interop/keelson-load && go build -o ../../$work/keelson-load .)
  "${CXX:-clang++-19}" -std=c++23 -O2 -o $work/floor-server bench/floors/server.cc -lnghttp2 -lssl -lcrypto -lpthread
  if [ "$filter" = list_scale ]; then
    bench/list_scale.py build/release/keelson $work/scale $work/keelson-load "${XDG_CACHE_HOME:-$HOME/.cache}/keelson/bin" ${SIZES:+--sizes "$SIZES"} \
      --out bench/results/$(date -u +%Y-%m-%d)-list-scale.md "$@"
    exit
  fi
  out=bench/results/$(date -u +%Y-%m-%d)${FAST:+-fast}
  bench/compare.py build/release/keelson $work/run $work/keelson-load "${XDG_CACHE_HOME:-$HOME/.cache}/keelson/bin" ${FAST:+--fast} --floor $work/floor-server --out "$out"
  [ -n "${FAST:-}" ] || bench/report.py "$out.json" README.md >/dev/null
  bench/trend.py
  exit 0
fi

mapfile -t targets < <(ninja -C build/release -t targets all | sed -nE 's/^([a-z0-9_]+_bench): phony.*/\1/p' | grep -v ^cmake_ | sort -u | grep -F -- "$filter" || true)
if [ ${#targets[@]} -eq 0 ]; then
  echo "bench: there is no benchmark with \"$filter\" in its name" >&2
  exit 1
fi
ninja -C build/release "${targets[@]}" >/dev/null
for target in "${targets[@]}"; do
  echo "bench: $target"
  "$(find build/release/src -type f -executable -name "$target" | head -1)" "$@"
done
