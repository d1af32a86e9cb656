#!/usr/bin/env bash
# A Debian 12 root for arm64 with the libraries that building needs, and qemu's user emulation, in FOLDER; then configures build/arm64 for it.
# Debian's multiarch does not do it alone: librocksdb-dev and libisal-dev of two architectures cannot be installed side by side. Nothing is installed
# on this machine. usage: tools/arm64.sh FOLDER; then ninja -C build/arm64 keelson
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mkdir -p "${1:?usage: tools/arm64.sh FOLDER}" && cd "$1" && pwd)
root=$folder/root
if ! [ -e "$root/usr/lib/aarch64-linux-gnu/librocksdb.a" ]; then
  mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial" "$folder/debs" "$root"
  touch "$folder/status"
  apt=(apt-get -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::lists="$folder/lists" -o Dir::State::status="$folder/status"
       -o Dir::Cache="$folder/cache" -o Dir::Etc::sourcelist=/etc/apt/sources.list.d/debian.sources -o Dir::Etc::sourceparts=/dev/null)
  "${apt[@]}" update >/dev/null
  libraries=$(grep -E '^(lib.*-dev|zlib1g-dev)$' tools/packages.txt)
  # shellcheck disable=SC2086
  "${apt[@]}" --print-uris -y --no-install-recommends install libc6-dev libstdc++-12-dev $libraries | sed -nE "s/^'([^']+)'.*/\1/p" |
    xargs -P 4 -n 8 wget -q -nc -P "$folder/debs"
  for package in "$folder"/debs/*.deb; do dpkg-deb -x "$package" "$root"; done
  # One /lib, as on an installed system; links that begin with / stay inside; CMake files that name /usr mean this one.
  [ -L "$root/lib" ] || { cp -a "$root/lib/." "$root/usr/lib/" && rm -r "$root/lib" && ln -s usr/lib "$root/lib"; }
  find "$root" -type l -lname '/*' | while read -r link; do ln -sfnr "$root$(readlink "$link")" "$link"; done
  # Programs of the build are this machine's.
  mkdir -p "$root/usr/bin" && ln -sf /usr/bin/protoc /usr/bin/grpc_*_plugin "$root/usr/bin/"
  find "$root/usr" -name '*.cmake' -exec sed -i -E "s|([\";])/usr([/\"])|\1$root/usr\2|g" {} +
fi
if ! command -v qemu-aarch64-static >/dev/null && ! [ -e "$folder/qemu/usr/bin/qemu-aarch64-static" ]; then
  (cd "$folder/debs" && apt-get download qemu-user-static 2>/dev/null && dpkg-deb -x qemu-user-static*.deb "$folder/qemu")
fi
KEELSON_ARM64_ROOT=$root cmake --preset arm64
