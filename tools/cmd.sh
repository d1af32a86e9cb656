#!/usr/bin/env bash
# kubectl's own command tests (Kubernetes' test/cmd) on this server. ONLY names some, with commas; arguments go to interop/cmd/run.py: --minutes, --shrink.
set -uo pipefail
cd "$(dirname "$0")/.."
interop/build.sh etcd kubectl kubectl-convert kube-controller-manager || exit 1
exec interop/cmd/run.py build/release/keelson build/release/cmd "${XDG_CACHE_HOME:-$HOME/.cache}/keelson/bin" ${ONLY:+--only "$ONLY"} "$@"
