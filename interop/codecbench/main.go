// Kubernetes' own codecs beside Keelson's, on the same objects: `go run . ../../build/release/src/codec/codec_bench` from this
// folder. Prints CPU nanoseconds per pass for both and the ratio.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1alpha1 "k8s.io/api/admissionregistration/v1alpha1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apidiscoveryv2beta1 "k8s.io/api/apidiscovery/v2beta1"
	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	appsv1beta1 "k8s.io/api/apps/v1beta1"
	appsv1beta2 "k8s.io/api/apps/v1beta2"
	authenticationv1 "k8s.io/api/authentication/v1"
	authenticationv1alpha1 "k8s.io/api/authentication/v1alpha1"
	authenticationv1beta1 "k8s.io/api/authentication/v1beta1"
	authorizationv1 "k8s.io/api/authorization/v1"
	authorizationv1beta1 "k8s.io/api/authorization/v1beta1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	batchv1beta1 "k8s.io/api/batch/v1beta1"
	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1alpha1 "k8s.io/api/certificates/v1alpha1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1alpha2 "k8s.io/api/coordination/v1alpha2"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	discoveryv1beta1 "k8s.io/api/discovery/v1beta1"
	eventsv1 "k8s.io/api/events/v1"
	eventsv1beta1 "k8s.io/api/events/v1beta1"
	extensionsv1beta1 "k8s.io/api/extensions/v1beta1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	flowcontrolv1beta1 "k8s.io/api/flowcontrol/v1beta1"
	flowcontrolv1beta2 "k8s.io/api/flowcontrol/v1beta2"
	flowcontrolv1beta3 "k8s.io/api/flowcontrol/v1beta3"
	imagepolicyv1alpha1 "k8s.io/api/imagepolicy/v1alpha1"
	networkingv1 "k8s.io/api/networking/v1"
	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	nodev1 "k8s.io/api/node/v1"
	nodev1alpha1 "k8s.io/api/node/v1alpha1"
	nodev1beta1 "k8s.io/api/node/v1beta1"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	rbacv1 "k8s.io/api/rbac/v1"
	rbacv1alpha1 "k8s.io/api/rbac/v1alpha1"
	rbacv1beta1 "k8s.io/api/rbac/v1beta1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	storagev1alpha1 "k8s.io/api/storage/v1alpha1"
	storagev1beta1 "k8s.io/api/storage/v1beta1"
	storagemigrationv1beta1 "k8s.io/api/storagemigration/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

var scheme = runtime.NewScheme()

func init() {
	for _, add := range []func(*runtime.Scheme) error{
		admissionv1.AddToScheme, admissionv1beta1.AddToScheme, admissionregistrationv1.AddToScheme,
		admissionregistrationv1alpha1.AddToScheme, admissionregistrationv1beta1.AddToScheme, apidiscoveryv2.AddToScheme,
		apidiscoveryv2beta1.AddToScheme, apiserverinternalv1alpha1.AddToScheme, appsv1.AddToScheme, appsv1beta1.AddToScheme,
		appsv1beta2.AddToScheme, authenticationv1.AddToScheme, authenticationv1alpha1.AddToScheme, authenticationv1beta1.AddToScheme,
		authorizationv1.AddToScheme, authorizationv1beta1.AddToScheme, autoscalingv1.AddToScheme, autoscalingv2.AddToScheme,
		batchv1.AddToScheme, batchv1beta1.AddToScheme, certificatesv1.AddToScheme, certificatesv1alpha1.AddToScheme,
		certificatesv1beta1.AddToScheme, coordinationv1.AddToScheme, coordinationv1alpha2.AddToScheme, coordinationv1beta1.AddToScheme,
		corev1.AddToScheme, discoveryv1.AddToScheme, discoveryv1beta1.AddToScheme, eventsv1.AddToScheme, eventsv1beta1.AddToScheme,
		extensionsv1beta1.AddToScheme, flowcontrolv1.AddToScheme, flowcontrolv1beta1.AddToScheme, flowcontrolv1beta2.AddToScheme,
		flowcontrolv1beta3.AddToScheme, imagepolicyv1alpha1.AddToScheme, networkingv1.AddToScheme, networkingv1beta1.AddToScheme,
		nodev1.AddToScheme, nodev1alpha1.AddToScheme, nodev1beta1.AddToScheme, policyv1.AddToScheme, policyv1beta1.AddToScheme,
		rbacv1.AddToScheme, rbacv1alpha1.AddToScheme, rbacv1beta1.AddToScheme, resourcev1.AddToScheme, resourcev1alpha3.AddToScheme,
		resourcev1beta1.AddToScheme, resourcev1beta2.AddToScheme, schedulingv1.AddToScheme, schedulingv1alpha2.AddToScheme,
		schedulingv1beta1.AddToScheme, storagev1.AddToScheme, storagev1alpha1.AddToScheme, storagev1beta1.AddToScheme,
		storagemigrationv1beta1.AddToScheme,
	} {
		must(add(scheme))
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type sample struct {
	object      runtime.Object
	json, proto []byte
}

func load(files []string) []sample {
	js := jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme, scheme, jsonserializer.SerializerOptions{})
	pb := protobuf.NewSerializer(scheme, scheme)
	var samples []sample
	for _, file := range files {
		data, err := os.ReadFile(file)
		must(err)
		object, _, err := js.Decode(data, nil, nil)
		if err != nil {
			must(fmt.Errorf("%s: %w", file, err))
		}
		var j, p bytes.Buffer
		must(js.Encode(object, &j))
		must(pb.Encode(object, &p))
		samples = append(samples, sample{object, j.Bytes(), p.Bytes()})
	}
	return samples
}

// One pass over the samples for each operation, as codec_bench does it.
func operations(samples []sample) map[string]func() {
	js := jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme, scheme, jsonserializer.SerializerOptions{})
	pb := protobuf.NewSerializer(scheme, scheme)
	return map[string]func(){
		"JSONDecode": func() {
			for _, s := range samples {
				_, _, err := js.Decode(s.json, nil, nil)
				must(err)
			}
		},
		"JSONEncode": func() {
			for _, s := range samples {
				must(js.Encode(s.object, io.Discard))
			}
		},
		"ProtoDecode": func() {
			for _, s := range samples {
				_, _, err := pb.Decode(s.proto, nil, nil)
				must(err)
			}
		},
		"ProtoEncode": func() {
			for _, s := range samples {
				must(pb.Encode(s.object, io.Discard))
			}
		},
		"ProtoToJSON": func() {
			for _, s := range samples {
				object, _, err := pb.Decode(s.proto, nil, nil)
				must(err)
				must(js.Encode(object, io.Discard))
			}
		},
	}
}

// CPU time of one call, garbage collection included, so that a busy machine does not favour either side.
func cpuNanoseconds(pass func()) float64 {
	cpu := func() int64 {
		var usage syscall.Rusage
		must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
		return usage.Utime.Nano() + usage.Stime.Nano()
	}
	pass()
	runs := 0
	start := cpu()
	for cpu()-start < int64(500*time.Millisecond) {
		for i := 0; i < 10; i++ {
			pass()
			runs++
		}
	}
	return float64(cpu()-start) / float64(runs)
}

func main() {
	if len(os.Args) != 2 {
		must(fmt.Errorf("usage: codecbench CODEC_BENCH (run in interop/codecbench)"))
	}
	suites := os.Getenv("KEELSON_SUITES")
	if suites == "" {
		suites = "../../../shared/testdata"
	}
	suites, err := filepath.Abs(suites)
	must(err)
	fixtures, err := filepath.Glob(filepath.Join(suites, "roundtrip", "*.json"))
	must(err)
	// WatchEvent has no kind of its own, which Go's decoder insists on; codec_bench leaves it out too.
	fixtures = slices.DeleteFunc(fixtures, func(file string) bool { return strings.HasSuffix(file, ".WatchEvent.json") })

	bench, err := filepath.Abs(os.Args[1])
	must(err)
	command := exec.Command(bench, "--benchmark_format=json", "--benchmark_min_time=0.5")
	command.Dir = "../.."
	command.Env = append(os.Environ(), "KEELSON_SUITES="+suites)
	out, err := command.Output()
	must(err)
	var report struct {
		Benchmarks []struct {
			Name    string  `json:"name"`
			CPUTime float64 `json:"cpu_time"`
			Rate    float64 `json:"bytes_per_second"`
		} `json:"benchmarks"`
	}
	must(json.Unmarshal(out, &report))

	sets := [][]sample{load([]string{"testdata/pod.json"}), load(fixtures)}
	names := []string{"pod", fmt.Sprintf("%d kinds", len(fixtures))}
	fmt.Printf("%-12s %-10s %12s %12s %8s %12s\n", "operation", "objects", "Go ns", "Keelson ns", "ratio", "JSON MB/s")
	for _, b := range report.Benchmarks {
		name := strings.TrimPrefix(b.Name, "BM_")
		set := 0
		if strings.HasSuffix(name, "/1") {
			set = 1
		}
		operation := name[:strings.Index(name, "/")]
		pass := operations(sets[set])[operation]
		ours := b.CPUTime
		theirs := cpuNanoseconds(pass)
		fmt.Printf("%-12s %-10s %12.0f %12.0f %7.1fx %12.0f\n", operation, names[set], theirs, ours, theirs/ours, b.Rate/1e6)
	}
}
