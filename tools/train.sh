#!/usr/bin/env bash
# Makes cmake/profile/keelson.profdata, the counts that the build optimizes with (cmake/profile.cmake): a server with counters gets the load of `make bench` in its short
# form, then the recordings. Needs Go for the load program and llvm-19 to merge. Two minutes after a build of its own; run it when what a request does has changed. usage: tools/train.sh
set -euo pipefail
cd "$(dirname "$0")/.."
for tool in go llvm-profdata-19; do command -v $tool >/dev/null || { echo "train: needs $tool" >&2; exit 1; }; done
cmake --preset train >/dev/null
cmake --build build/train --target keelson
work=build/train/work
rm -rf $work && mkdir -p $work/counts
(cd interop/keelson-load && go build -o ../../$work/keelson-load .)
export LLVM_PROFILE_FILE=$PWD/$work/counts/%p.profraw
bench/compare.py build/train/keelson $work/bench $work/keelson-load - --only keelson --fast
test/system/replay_test.py "$PWD/build/train/keelson" $work/replay
mkdir -p cmake/profile
llvm-profdata-19 merge --sparse -o cmake/profile/keelson.profdata $work/counts
ls -l cmake/profile/keelson.profdata
