// Kubernetes' own validation of a pod beside Keelson's, on the same pod, in one run. From this folder:
//
//	go run . ../../../build/release/src/registry/catalog/registry_catalog_bench
//
// Prints CPU nanoseconds per operation for both and the ratio.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/capabilities"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	capabilities.Initialize(capabilities.Capabilities{AllowPrivileged: true})
	file, err := filepath.Abs(filepath.Join("..", "..", "codecbench", "testdata", "pod.json"))
	must(err)
	text, err := os.ReadFile(file)
	must(err)
	versioned := &corev1.Pod{}
	must(json.Unmarshal(text, versioned))
	legacyscheme.Scheme.Default(versioned)
	pod := &core.Pod{}
	must(legacyscheme.Scheme.Convert(versioned, pod, nil))
	changed := pod.DeepCopy()
	if changed.Labels == nil {
		changed.Labels = map[string]string{}
	}
	changed.Labels["changed"] = "yes"

	theirs := map[string]float64{
		"BM_ValidatePod": perOp(func() {
			options := podutil.GetValidationOptionsFromPodSpecAndMeta(&pod.Spec, nil, &pod.ObjectMeta, nil)
			options.ResourceIsPod = true
			must(validation.ValidatePodCreate(pod, options).ToAggregate())
		}),
		"BM_ValidatePodUpdate": perOp(func() {
			options := podutil.GetValidationOptionsFromPodSpecAndMeta(&changed.Spec, &pod.Spec, &changed.ObjectMeta, &pod.ObjectMeta)
			options.ResourceIsPod = true
			must(validation.ValidatePodUpdate(changed, pod, options).ToAggregate())
		}),
	}

	command := exec.Command(os.Args[1], "--benchmark_format=json")
	command.Env = append(os.Environ(), "KEELSON_POD="+file)
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
	runtime.GC()
	begin, rounds := cpu(), 0
	for cpu()-begin < time.Second {
		for range 20 {
			work()
		}
		rounds += 20
	}
	return float64(cpu()-begin) / float64(rounds)
}
