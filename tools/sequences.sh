#!/usr/bin/env bash
# Random sequences of requests on kube-apiserver and on this server. Arguments go to interop/sequences.py: --first, --count, --only, --trace, ...
set -uo pipefail
cd "$(dirname "$0")/.."
interop/build.sh kube-apiserver etcd || exit 1
exec interop/sequences.py build/release/keelson build/release/sequences "${XDG_CACHE_HOME:-$HOME/.cache}/keelson/bin" "$@"
