#!/usr/bin/env bash
# Kubernetes' conformance tests that need no container runtime. Arguments go to interop/conformance/run.py: --group, --focus, --procs, ...
# usage: tools/conformance.sh --focus 'Watchers|ResourceQuota'; through make: make conformance ARGS="--focus Watchers"; FAST=1 leaves out what is expected to fail.
set -uo pipefail
cd "$(dirname "$0")/.."
interop/build.sh kubectl kube-controller-manager kube-scheduler kwok ginkgo e2e.test agnhost kube-apiserver etcd sample-apiserver || exit 1
exec interop/conformance/run.py build/release/keelson build/release/conformance "${XDG_CACHE_HOME:-$HOME/.cache}/keelson/bin" ${FAST:+--skip-expected} "$@"
