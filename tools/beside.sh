#!/usr/bin/env bash
# usage: tools/beside.sh [codec] [apply] [validation] [cel] [call]     our microbenchmarks beside Kubernetes' own Go code, on the same objects
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- codec apply validation cel call
command -v go >/dev/null || { echo "beside: this needs Go" >&2; exit 1; }
for name in "$@"; do
  case $name in
    codec) target=codec_bench program=src/codec/codec_bench folder=interop/codecbench ;;
    apply) target=patch_bench program=src/patch/patch_bench folder=interop/applybench ;;
    validation) target=registry_catalog_bench program=src/registry/catalog/registry_catalog_bench folder=interop/kubernetes/validationbench ;;
    cel) target=cel_bench program=src/cel/cel_bench folder=interop/celbench ;;
    call) target=webhook_bench program=src/webhook/webhook_bench folder=interop/callbench ;;
    *) echo "beside: there is no comparison \"$name\"" >&2; exit 1 ;;
  esac
  ninja -C build/release "$target" >/dev/null
  echo "beside: $name"
  program=$PWD/build/release/$program
  (cd "$folder" && go run . "$program")
done
