#!/usr/bin/env bash
# Client libraries of several languages, from public registries, on this server. ONLY names some, with commas; arguments go to
# interop/client_libraries/run.py: --python-source, --shrink.
set -uo pipefail
cd "$(dirname "$0")/.."
exec interop/client_libraries/run.py build/release/keelson build/release/clients ${ONLY:+--only "$ONLY"} "$@"
