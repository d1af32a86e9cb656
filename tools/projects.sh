#!/usr/bin/env bash
# make projects: installs the CustomResourceDefinitions of well-known projects from the Go module proxy and uses their kinds; then cert-manager and
# Gatekeeper as local processes, where interop/build.sh has built them. ARGS names projects of the first part; all without, and only then the second part runs.
# Skips, saying so, without go or a module proxy.
set -euo pipefail
cd "$(dirname "$0")/.."
run() { # exit status 77 is a skip
  local status=0
  "$@" || status=$?
  [ "$status" = 77 ] || return "$status"
}
run python3 test/system/projects_test.py build/release/keelson build/projects "$@"
[ $# -gt 0 ] || run interop/webhook_projects_test.py build/release/keelson build/webhook-projects "${XDG_CACHE_HOME:-$HOME/.cache}/keelson/bin"
