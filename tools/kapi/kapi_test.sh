#!/bin/sh
# kapi_test.sh KAPI: broken tables are refused with file and line; a good one is compiled, and not rewritten when nothing changed.
set -eu
kapi=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/api" "$work/out"

# expect TEXT MESSAGE: TEXT as a table must fail with MESSAGE.
expect() {
  printf '%b' "$1" > "$work/api/a.kapi"
  if "$kapi" "$work/out" "$work/api" a.kapi 2> "$work/error"; then
    echo "accepted: $1" >&2
    exit 1
  fi
  if ! grep -qF "$2" "$work/error"; then
    echo "wanted: $2" >&2
    cat "$work/error" >&2
    exit 1
  fi
}
head='package a/v1 proto x.a.v1\n'
expect "${head}type T\n  name 1 strin\n" 'api/a.kapi:3: `strin` is no type'
expect "${head}type T\n  name 1 string\n  other 1 string\n" 'api/a.kapi:4: protobuf field number 1 is used twice in T'
expect "${head}type T\n  name 1 string\n  name 2 string\n" 'api/a.kapi:4: JSON name `name` is there twice in T'
expect "${head}type T\n  name x string\n" 'api/a.kapi:3: `x` is no protobuf field number (use - for none)'
expect "${head}type T\n  name 1 string sometimes\n" 'api/a.kapi:3: unknown attribute `sometimes`'
expect "${head}type T\n  name 1 Missing\n" 'api/a.kapi:3: no type Missing in a/v1'
expect "${head}type T\n  name 1 b.Missing\n" 'api/a.kapi:3: unknown package `b`'
expect "${head}type T\n\ntype T\n" 'type T is there twice'
expect "${head}typo T\n" 'api/a.kapi:2: unknown word `typo`'
expect "${head}  name 1 string\n" 'api/a.kapi:2: an indented line belongs to a `type` or a `resource`'
expect "${head}resource ts T cluster\n" 'api/a.kapi:2: no type T in a/v1'
expect "${head}type T\n  name 1 []string list=map\n" 'api/a.kapi:3: list=map needs keys'
expect "${head}resource ts T cluster\n  facts prefx=a\n" 'api/a.kapi:3: unknown fact `prefx`'
expect "${head}resource ts T cluster\n  facts prefix\n" 'api/a.kapi:3: fact `prefix` needs a value'
expect "${head}resource ts T cluster\n  facts json=yes\n" 'api/a.kapi:3: fact `json` has no value'
expect "${head}serves a/v1 priority=1\n" 'api/a.kapi:2: expected `priority=GROUP,VERSION`'
expect "type T\n" 'no `package` line'

printf '%b' "${head}type T\n  inline - U\n  name 1 string\n\ntype U\n  kind 1 string\n" > "$work/api/a.kapi"
"$kapi" "$work/out" "$work/api" a.kapi
grep -qF 'const Struct& kU = tables::a_v1_types[1];' "$work/out/schema/types.h"
touch -d '2001-01-01' "$work/out/a_v1.cc"
"$kapi" "$work/out" "$work/api" a.kapi
test "$(date -r "$work/out/a_v1.cc" +%Y)" = 2001
