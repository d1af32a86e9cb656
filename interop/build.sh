#!/usr/bin/env bash
# Builds the real parts for tests and benchmarks from the Go module proxy at the versions that the go.mod files here pin, into
# ${XDG_CACHE_HOME:-~/.cache}/keelson/bin. Existing programs are kept. usage: interop/build.sh [name]...; all of them without arguments.
set -euo pipefail
cd "$(dirname "$0")"
bin=${XDG_CACHE_HOME:-$HOME/.cache}/keelson/bin
wanted=("$@")
[ ${#wanted[@]} -eq 0 ] && wanted=(kubectl kube-apiserver kube-controller-manager kube-scheduler kubeadm etcd etcdctl kwok ginkgo e2e.test agnhost)

missing=()
for name in "${wanted[@]}"; do [ -x "$bin/$name" ] || missing+=("$name"); done
[ ${#missing[@]} -eq 0 ] && exit 0
if ! command -v go >/dev/null; then
  echo "interop: Go is not installed, so these are not built and what needs them is skipped: ${missing[*]}" >&2
  exit 3
fi
mkdir -p "$bin"

version=v$(sed -nE 's/.*k8s.io\/kubernetes v([0-9.]+)$/\1/p' kubernetes/go.mod | head -1)
minor=$(cut -d. -f2 <<<"$version")
stamp=k8s.io/component-base/version
build() { # module folder, package, name, linker flags
  echo "interop: building $3"
  (cd "$1" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w ${4:-}" -o "$bin/.$3.new" "$2")
  mv "$bin/.$3.new" "$bin/$3"
}
for name in "${missing[@]}"; do
  case $name in
    kube*) build kubernetes "k8s.io/kubernetes/cmd/$name" "$name" \
      "-X $stamp.gitVersion=$version -X $stamp.gitMajor=1 -X $stamp.gitMinor=$minor" ;;
    etcd) build etcd go.etcd.io/etcd/server/v3 etcd ;;
    etcd-3.5) build etcd-3.5 go.etcd.io/etcd/server/v3 etcd-3.5 ;;
    etcd-3.4) # Debian's, unpacked: installing the package would start a service.
      unpacked=$(mktemp -d)
      (cd "$unpacked" && apt-get download -q etcd-server >/dev/null 2>&1 && dpkg -x etcd-server_3.4*.deb .) || { echo "interop: Debian's etcd-server 3.4 cannot be fetched" >&2; exit 3; }
      install "$unpacked/usr/bin/etcd" "$bin/etcd-3.4"
      rm -rf "$unpacked" ;;
    etcdctl | etcdutl) build etcd "go.etcd.io/etcd/$name/v3" "$name" ;;
    e2e.test)
      echo "interop: building $name"
      (cd e2e && CGO_ENABLED=0 go test -c -vet=off -trimpath -ldflags "-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=1 -X $stamp.gitMinor=$minor" \
        -o "$bin/.$name.new" k8s.io/kubernetes/test/e2e)
      mv "$bin/.$name.new" "$bin/$name" ;;
    agnhost) build e2e ./agnhost agnhost ;;
    ginkgo) build e2e github.com/onsi/ginkgo/v2/ginkgo ginkgo ;;
    kwok) build kwok sigs.k8s.io/kwok/cmd/kwok kwok ;;
    konnectivity-*) build konnectivity "sigs.k8s.io/apiserver-network-proxy/cmd/${name#konnectivity-}" "$name" ;;
    sample-apiserver) build sample-apiserver k8s.io/sample-apiserver "$name" ;;
    cert-manager-*) build cert-manager "github.com/cert-manager/cert-manager/cmd/${name#cert-manager-}" "$name" ;;
    gatekeeper) build gatekeeper github.com/open-policy-agent/gatekeeper/v3 "$name" ;;
    metrics-server) build metrics-server sigs.k8s.io/metrics-server/cmd/metrics-server "$name" ;;
    *) echo "interop: nobody knows how to build $name" >&2; exit 2 ;;
  esac
done
