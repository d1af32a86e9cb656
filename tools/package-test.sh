#!/usr/bin/env bash
# Tests the results of `make package`: reproducible bytes, lintian, units, image layout, the image run by runc and found by containerd, and install, upgrade under load and purge in a fresh
# Debian 12 (debootstrap into build/package-test). As root. usage: tools/package-test.sh [STEP ...]; steps: reproducible folders lint units image container containerd install
set -uo pipefail
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "package-test: needs root (chroot)"; exit 1; }
missing=""
for tool in lintian debootstrap dpkg-deb runc umoci containerd curl; do command -v $tool >/dev/null || missing="$missing $tool"; done
[ -z "$missing" ] || apt-get install -y --no-install-recommends $missing >/dev/null || exit 1
exec packaging/test.py build/${PRESET:-release} build/package build/package-test "$@"
