#!/usr/bin/env bash
# Formatting, headers that compile alone, layering. usage: tools/lint.sh [format|headers|layers|includes|ratchet]...; all of them without
# arguments.
set -uo pipefail
cd "$(dirname "$0")/.."
checks=("$@")
[ ${#checks[@]} -eq 0 ] && checks=(format headers layers includes ratchet)
problems=0

check_format() {
  local bad
  bad=$(git ls-files '*.cc' '*.h' | xargs -P "$(nproc)" -n 20 clang-format-19 --dry-run 2>&1 | sed -nE 's/^([^:]+):[0-9]+.*/\1/p' | sort -u)
  [ -z "$bad" ] && return
  echo "$bad"
  echo "lint: $(wc -l <<<"$bad") files are not formatted: make format"
  problems=1
}

check_ratchet() {
  tools/ratchet.py || problems=1
}

# Per target and without transitivity, where layers.txt is per folder.
check_includes() {
  local targets=build/release/targets.txt
  if ! [ -f $targets ]; then
    echo "lint: no configured build in build/release: make build"
    problems=1
    return
  fi
  tools/includes.py $targets || problems=1
}

# Each header in a file of its own, compiled through ccache, so that a second run costs little.
check_headers() {
  local build=build/release out=build/lint
  if ! [ -d $build/include-roots ]; then
    echo "lint: no configured build in $build: make build"
    problems=1
    return
  fi
  mkdir -p $out
  local roots=()
  # What protoc wrote stands in folders of its own, once it is built.
  for root in $build/include-roots/*/ $build/src/*/*/generated/; do roots+=("-I$root"); done
  local launcher=()
  command -v ccache >/dev/null && launcher=(ccache)
  if ! git ls-files 'src/*.h' | xargs -P "$(nproc)" -I{} bash -c '
    out=$1; header=$2; shift 2
    name=${header//\//_}
    printf "#include \"%s\"\n" "${header#src/}" >"$out/$name.cc"
    "$@" -c "$out/$name.cc" -o "$out/$name.o" || { echo "lint: $header does not compile alone"; exit 1; }
  ' _ $out {} "${launcher[@]}" clang++-19 -std=c++23 -O0 -Wall -Wextra -Werror -Wno-missing-field-initializers -Wno-unused-const-variable \
    -DBOOST_ASIO_NO_DEPRECATED -DBOOST_ASIO_SEPARATE_COMPILATION -DBOOST_ASIO_HAS_CO_AWAIT -DBOOST_BEAST_USE_STD_STRING_VIEW "${roots[@]}"; then
    problems=1
  fi
}

check_layers() {
  local bad
  bad=$(git ls-files 'src/*.h' 'src/*.cc' | xargs awk '
    BEGIN {
      while ((getline line < "tools/layers.txt") > 0) {
        if (line ~ /^#/) continue
        split(line, part, ":")
        known[part[1]] = 1
        count = split(part[2], names, " ")
        for (i = 1; i <= count; i++) may[part[1], names[i]] = 1
        may[part[1], part[1]] = 1
        may[part[1], "base"] = 1
      }
    }
    /^#include "/ {
      split(FILENAME, path, "/")
      split($2, target, "/")
      from = path[2]
      to = substr(target[1], 2)
      if (!(to in known)) next
      test = FILENAME ~ /_(test|bench|fuzz|suite|harness)\.(cc|h)$|\/contract_suite\//
      if (may[from, to] || may[from, "*"] || (to == "testing" && test)) next
      print FILENAME ":" FNR ": " from " may not name " to
    }')
  [ -z "$bad" ] && return
  echo "$bad"
  echo "lint: layers are broken (tools/layers.txt)"
  problems=1
}

for check in "${checks[@]}"; do "check_$check"; done
[ $problems -eq 0 ] && echo "lint: fine"
exit $problems
