#!/usr/bin/env bash
# Runs inside a copy of Kubernetes' source: sources test/cmd as hack/make-rules/test-cmd.sh does, against a server that runs already.
# Environment: SERVER_PORT, PROGRAMS (kubectl), WHAT (names without run_ and _tests; "": all), KUBE_JUNIT_REPORT_DIR, TMPDIR.
set -o errexit -o nounset -o pipefail
make() { :; } # nothing of the source is built
source hack/lib/init.sh
source hack/lib/test.sh
export THIS_PLATFORM_BIN=$PROGRAMS SECURE_API_PORT=$SERVER_PORT
source test/cmd/legacy-script.sh

# One test reads a file of the source from GitHub.
kubectl() {
  local arguments=("${@//https:\/\/raw.githubusercontent.com\/kubernetes\/kubernetes\/master\//}")
  # The proxy runs in the background and is killed by its process id, which must not be that of a shell around it.
  [[ ${1:-} != proxy ]] || exec "$(type -P kubectl)" "${arguments[@]}"
  command kubectl "${arguments[@]}"
}
kube::etcd::start() { :; } # the server has its store
kube::etcd::cleanup() { :; }
setup
kubectl create -f - <<'END'
{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "127.0.0.1", "annotations": {"save-managers": "true"}}, "status": {"capacity": {"memory": "1Gi"}}}
END
export SUPPORTED_RESOURCES=("*")
runTests
