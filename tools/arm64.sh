#!/usr/bin/env bash
# A Debian 12 root for arm64 with the libraries that building needs, and qemu's user emulation, in FOLDER; then configures build/arm64 for it.
# Debian's multiarch does not do it alone: librocksdb-dev and libisal-dev of two architectures cannot be installed side by side. Nothing is installed
# on this machine. usage: tools/arm64.sh FOLDER; then ninja -C build/arm64 keelson
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mkdir -p "${1:?usage: tools/arm64.sh FOLDER}" && cd "$1" && pwd)
root=$folder/root
if ! [ -e "$root/usr/lib/aarch64-linux-gnu/librocksdb.a" ]; then
  mkdir -p "$folder/lists/partial" "$folder/debs/partial" "$root"
  touch "$folder/status"
  # Debian's own sources, where others are configured beside them.
  sources=/etc/apt/sources.list.d/debian.sources
  [ -e $sources ] || sources=/etc/apt/sources.list
  apt=(apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::lists="$folder/lists" -o Dir::State::status="$folder/status"
       -o Dir::Cache="$folder" -o Dir::Cache::archives=debs -o Dir::Etc::sourcelist=$sources -o Dir::Etc::sourceparts=/dev/null -o Debug::NoLocking=true
       -o APT::Sandbox::User=)
  "${apt[@]}" update >/dev/null
  libraries=$(grep -E '^(lib.*-dev|zlib1g-dev)$' tools/packages.txt)
  # shellcheck disable=SC2086
  "${apt[@]}" -y --no-install-recommends --download-only install libc6-dev libstdc++-12-dev $libraries >/dev/null
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
