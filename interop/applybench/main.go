// Kubernetes' own server-side apply, field tracking and strategic merge beside Keelson's, on the same pod:
// `go run . ../../build/release/src/patch/patch_bench` from this folder. Prints CPU nanoseconds per operation for both and the ratio.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	runtimedebug "runtime"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
)

type noDefaults struct{}

func (noDefaults) Default(runtime.Object) {}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	pod := filepath.Join("..", "codecbench", "testdata", "pod.json")
	text, err := os.ReadFile(pod)
	must(err)
	kind := corev1.SchemeGroupVersion.WithKind("Pod")
	manager, err := managedfields.NewDefaultFieldManager(applyconfigurations.NewTypeConverter(scheme.Scheme), scheme.Scheme, noDefaults{},
		scheme.Scheme, kind, corev1.SchemeGroupVersion, "", nil)
	must(err)
	live := &corev1.Pod{}
	must(json.Unmarshal(text, live))
	live.SetGroupVersionKind(kind)
	tree := map[string]any{}
	must(json.Unmarshal(text, &tree))

	config := &unstructured.Unstructured{}
	must(json.Unmarshal(text, config))
	for _, key := range []string{"managedFields", "uid", "resourceVersion", "creationTimestamp", "generation"} {
		unstructured.RemoveNestedField(config.Object, "metadata", key)
	}
	unstructured.RemoveNestedField(config.Object, "status")
	must(unstructured.SetNestedField(config.Object, "yes", "metadata", "labels", "applied"))

	patch := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"changed": "yes"}},
		"spec": map[string]any{"containers": []any{map[string]any{"name": live.Spec.Containers[0].Name, "image": "new",
			"env": []any{map[string]any{"name": "ADDED", "value": "1"}}}}},
	}

	theirs := map[string]float64{
		"BM_UpdatePod": perOp(func() {
			now := live.DeepCopy()
			if now.Labels == nil {
				now.Labels = map[string]string{}
			}
			now.Labels["changed"] = "yes"
			_, err := manager.Update(live, now, "bench")
			must(err)
		}),
		"BM_ApplyPod": perOp(func() {
			_, err := manager.Apply(live, config, "bench", true)
			must(err)
		}),
		"BM_StrategicPatchPod": perOp(func() {
			_, err := strategicpatch.StrategicMergeMapPatch(runtime.DeepCopyJSON(tree), runtime.DeepCopyJSON(patch), &corev1.Pod{})
			must(err)
		}),
	}

	command := exec.Command(os.Args[1], "--benchmark_format=json")
	absolute, err := filepath.Abs(pod)
	must(err)
	command.Env = append(os.Environ(), "KEELSON_POD="+absolute)
	output, err := command.Output()
	must(err)
	var ours struct {
		Benchmarks []struct {
			Name string  `json:"name"`
			Time float64 `json:"cpu_time"`
		} `json:"benchmarks"`
	}
	must(json.Unmarshal(output, &ours))
	fmt.Printf("%-24s %12s %12s %8s\n", "", "Go ns", "Keelson ns", "ratio")
	for _, one := range ours.Benchmarks {
		fmt.Printf("%-24s %12.0f %12.0f %8.1f\n", one.Name, theirs[one.Name], one.Time, theirs[one.Name]/one.Time)
	}
}

// CPU time of the process, with what the garbage collector takes: wall time would count the machine's other work.
func cpu() time.Duration {
	var usage syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func perOp(work func()) float64 {
	for range 20 {
		work() // the caches of reflection
	}
	runtimedebug.GC()
	begin, rounds := cpu(), 0
	for cpu()-begin < time.Second {
		for range 20 {
			work()
		}
		rounds += 20
	}
	return float64(cpu()-begin) / float64(rounds)
}
