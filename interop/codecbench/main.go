// Kubernetes' own codecs beside Keelson's, on the same objects: `tools/beside.sh codec`.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

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

	"keelson/interop/beside"
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
		beside.Must(add(scheme))
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
		beside.Must(err)
		object, _, err := js.Decode(data, nil, nil)
		if err != nil {
			beside.Must(fmt.Errorf("%s: %w", file, err))
		}
		var j, p bytes.Buffer
		beside.Must(js.Encode(object, &j))
		beside.Must(pb.Encode(object, &p))
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
				beside.Must(err)
			}
		},
		"JSONEncode": func() {
			for _, s := range samples {
				beside.Must(js.Encode(s.object, io.Discard))
			}
		},
		"ProtoDecode": func() {
			for _, s := range samples {
				_, _, err := pb.Decode(s.proto, nil, nil)
				beside.Must(err)
			}
		},
		"ProtoEncode": func() {
			for _, s := range samples {
				beside.Must(pb.Encode(s.object, io.Discard))
			}
		},
		"ProtoToJSON": func() {
			for _, s := range samples {
				object, _, err := pb.Decode(s.proto, nil, nil)
				beside.Must(err)
				beside.Must(js.Encode(object, io.Discard))
			}
		},
	}
}

func main() {
	suites := os.Getenv("KEELSON_SUITES")
	if suites == "" {
		suites = filepath.Join(beside.Root(), "..", "shared", "testdata")
	}
	suites, err := filepath.Abs(suites)
	beside.Must(err)
	fixtures, err := filepath.Glob(filepath.Join(suites, "roundtrip", "*.json"))
	beside.Must(err)
	// WatchEvent has no kind of its own, which Go's decoder insists on; codec_bench leaves it out too.
	fixtures = slices.DeleteFunc(fixtures, func(file string) bool { return strings.HasSuffix(file, ".WatchEvent.json") })

	results := beside.Run("KEELSON_SUITES=" + suites)
	sets := [][]sample{load([]string{beside.Pod()}), load(fixtures)}
	names := []string{"pod", fmt.Sprintf("%d kinds", len(fixtures))}
	var table beside.Table
	for _, ours := range results {
		// BM_JSONDecode/0 is the pod's, /1 that of all kinds; repetitions may put more behind it.
		parts := strings.Split(strings.TrimPrefix(ours.Name, "BM_"), "/")
		set := 0
		if parts[1] == "1" {
			set = 1
		}
		if len(sets[set]) == 0 {
			continue // the fixtures are not there
		}
		table.Row(parts[0]+" "+names[set], operations(sets[set])[parts[0]], ours)
	}
	table.End()
}
