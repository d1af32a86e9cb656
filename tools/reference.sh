#!/usr/bin/env bash
# Kubernetes' own integration tests on this server. ONLY names packages, with commas; arguments go to interop/reference/run.py: --focus, --shrink, ...
# usage: tools/reference.sh --focus 'TestApply'; through make: make reference ONLY=apiserver/apply ARGS="--focus TestApply"
set -uo pipefail
cd "$(dirname "$0")/.."
interop/build.sh etcd || exit 1
exec interop/reference/run.py build/release/keelson build/release/reference "${XDG_CACHE_HOME:-$HOME/.cache}/keelson/bin" ${ONLY:+--only "$ONLY"} "$@"
