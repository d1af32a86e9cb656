#!/usr/bin/env bash
# Installs the Debian packages of tools/packages.txt that are missing: as root or through sudo. Quick when nothing is.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t wanted < <(grep -v '^#' tools/packages.txt)

if ! command -v dpkg-query >/dev/null; then
  echo "setup: this is not Debian; install what these Debian packages hold: ${wanted[*]}" >&2
  command -v clang++-19 >/dev/null && command -v cmake >/dev/null && command -v ninja >/dev/null && exit 0
  exit 1
fi

installed=$(dpkg-query -W -f='${binary:Package} ${db:Status-Status}\n' 2>/dev/null | awk '$2 == "installed" { sub(/:.*/, "", $1); print $1 }')
missing=()
for package in "${wanted[@]}"; do
  grep -qxF -- "$package" <<<"$installed" || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -eq 0 ]; then
  as_root=()
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
  as_root=(sudo)
else
  echo "setup: please install as root: apt-get install ${missing[*]}" >&2
  exit 1
fi

echo "setup: installing ${missing[*]}"
install() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# The package lists may be old or absent: fetch them once and try again.
install >"$log" 2>&1 || { "${as_root[@]}" apt-get update -q >>"$log" 2>&1 && install >>"$log" 2>&1; } || {
  tail -5 "$log" >&2
  echo "setup: could not install: ${missing[*]}" >&2
  exit 1
}
