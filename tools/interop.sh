#!/usr/bin/env bash
# Real clients against the built server. usage: tools/interop.sh [clients|kubectl|controllers|embedded-controllers|store|linearizability|robustness|etcd-versions|swap|corrupt|differences|konnectivity|aggregation|kubeadm]...; all of them without arguments.
# Builds what it needs from the Go module proxy into the user's cache (interop/build.sh); without Go it says what is skipped.
set -uo pipefail
cd "$(dirname "$0")/.."
tests=("$@")
[ ${#tests[@]} -eq 0 ] && tests=(kubectl clients controllers embedded-controllers store linearizability robustness etcd-versions swap corrupt differences konnectivity aggregation kubeadm)
keelson=build/release/keelson
bin=${XDG_CACHE_HOME:-$HOME/.cache}/keelson/bin
work=build/release/interop
mkdir -p $work
passed=0 failed=0 skipped=0

outcome() { # name, exit status; 77 and a missing Go count as skipped
  case $2 in
    0) passed=$((passed + 1)); echo "interop: $1 passed" ;;
    77 | 3) skipped=$((skipped + 1)); echo "interop: $1 skipped" ;;
    *) failed=$((failed + 1)); echo "interop: $1 FAILED" ;;
  esac
}

for test in "${tests[@]}"; do
  case $test in
    kubectl)
      interop/build.sh kubectl
      test/system/kubectl_test.py $keelson $work/kubectl
      outcome kubectl $? ;;
    clients)
      if command -v go >/dev/null; then
        (cd interop/clients && go build -o ../../$work/clients .) && test/system/with_server.py $keelson $work/clients-server $work/clients
        outcome clients $?
      else
        echo "interop: Go is not installed: the client-go program is not built"
        outcome clients 3
      fi ;;
    controllers)
      interop/build.sh kubectl kube-controller-manager kube-scheduler kwok
      status=$?
      [ $status -eq 0 ] && { interop/controllers_test.py $keelson $work/controllers "$bin"; status=$?; }
      [ $status -eq 0 ] && { interop/controllers_test.py $keelson $work/kubeadm "$bin" --kubeadm; status=$?; }
      outcome controllers $status ;;
    embedded-controllers) # the embedded controllers beside kube-controller-manager, and hand-over between them
      interop/build.sh kube-controller-manager
      status=$?
      [ $status -eq 0 ] && { interop/embedded_controllers_test.py $keelson $work/embedded-controllers "$bin" scenarios handover; status=$?; }
      outcome embedded-controllers $status ;;
    store) # a real kube-apiserver on the embedded store, etcdctl, and migration to etcd and back
      interop/build.sh kubectl kube-apiserver etcd etcdctl
      status=$?
      [ $status -eq 0 ] && { interop/embedded_store_test.py $keelson $work/store "$bin"; status=$?; }
      outcome store $status ;;
    linearizability) # histories of concurrent clients, with crashes, checked by porcupine
      interop/build.sh etcd
      status=$?
      if [ $status -eq 0 ]; then
        ln -sf "$PWD/$keelson" $work/etcd
        (cd interop/linearizability && KEELSON_KV_ETCD=$OLDPWD/$work/etcd KEELSON_ETCD=$bin/etcd go test -count=1 -v ./...)
        status=$?
      fi
      outcome linearizability $status ;;
    robustness) # the server on three members of etcd that are killed and cut off, watches and writes compared with etcd's history
      interop/build.sh etcd etcdctl
      status=$?
      [ $status -eq 0 ] && { interop/robustness_test.py $keelson $work/robustness "$bin"; status=$?; }
      outcome robustness $status ;;
    etcd-versions) # the key-value contract on etcd 3.4, 3.5 and 3.6, and on three members
      interop/build.sh etcd etcd-3.5 etcd-3.4
      status=$?
      if [ $status -eq 0 ]; then
        cmake --build build/release --target kv_etcd_test >/dev/null
        for version in etcd-3.4 etcd-3.5 etcd; do
          KEELSON_ETCD=$bin/$version build/release/src/kv/etcd/kv_etcd_test --gtest_brief=1 --gtest_filter='Etcd/*:Failover.*:TLS.*' || status=1
        done
        KEELSON_ETCD_MEMBERS=3 KEELSON_ETCD=$bin/etcd build/release/src/kv/etcd/kv_etcd_test --gtest_brief=1 --gtest_filter='Etcd/*' || status=1
      fi
      outcome etcd-versions $status ;;
    swap)
      interop/build.sh kube-apiserver etcd
      status=$?
      if [ $status -eq 0 ]; then
        interop/swap_test.py $keelson $work/swap "$bin"
        outcome swap $?
        ninja -C build/release kms_test_plugin >/dev/null
        interop/swap_test.py $keelson $work/swap-encrypted "$bin" --encrypted build/release/src/storage/kms/kms_test_plugin
        status=$?
      fi
      outcome swap-encrypted $status ;;
    corrupt)
      interop/build.sh kube-apiserver etcd && interop/corrupt_objects_test.py $keelson $work/corrupt "$bin"
      outcome corrupt $? ;;
    differences)
      interop/build.sh kube-apiserver etcd && interop/cache_gates_test.py $keelson $work/cache-gates "$bin" && interop/generation_test.py $keelson $work/generation "$bin" &&
        interop/storage_versions_test.py $keelson $work/storage-versions "$bin"
      outcome differences $? ;;
    konnectivity)
      interop/build.sh konnectivity-server konnectivity-agent kubectl etcd && interop/konnectivity_test.py $keelson $work/konnectivity
      outcome konnectivity $? ;;
    aggregation)
      interop/build.sh sample-apiserver metrics-server kubectl etcd
      interop/aggregation_test.py $keelson $work/aggregation "$bin"
      outcome aggregation $?
      interop/build.sh sample-apiserver kube-apiserver etcd && interop/aggregated_documents_test.py $keelson $work/aggregated-documents "$bin"
      outcome aggregated-documents $? ;;
    kubeadm) # the manifests of a real kubeadm, with Keelson in place of kube-apiserver, and back
      interop/build.sh kubeadm kubectl kube-apiserver etcd etcdctl
      status=$?
      [ $status -eq 0 ] && { interop/kubeadm_test.py $keelson $work/kubeadm-phases "$bin"; status=$?; }
      outcome kubeadm $status ;;
    webhook-projects) # cert-manager and Gatekeeper as local processes, on kube-apiserver and on Keelson
      interop/build.sh cert-manager-webhook cert-manager-cainjector cert-manager-controller gatekeeper kubectl kube-apiserver etcd
      status=$?
      [ $status -eq 0 ] && { interop/webhook_projects_test.py $keelson $work/webhook-projects "$bin"; status=$?; }
      outcome webhook-projects $status ;;
    *) echo "interop: there is no test $test" >&2; exit 2 ;;
  esac
done
[ $skipped -gt 0 ] && echo "$skipped skipped"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
