#!/usr/bin/env bash
# controller-runtime's envtest suites on our binary. Arguments go to interop/envtest/run.py: --suites, --focus, --real, ...
set -uo pipefail
cd "$(dirname "$0")/.."
interop/build.sh kubectl kube-apiserver etcd || exit 1
exec interop/envtest/run.py build/release/keelson build/release/envtest "${XDG_CACHE_HOME:-$HOME/.cache}/keelson/bin" "$@"
