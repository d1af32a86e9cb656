// Kubernetes' own validation of a pod beside Keelson's, on the same pod: `tools/beside.sh validation`.
package main

import (
	"encoding/json"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/capabilities"

	"keelson/interop/beside"
)

func main() {
	capabilities.Initialize(capabilities.Capabilities{AllowPrivileged: true})
	text, err := os.ReadFile(beside.Pod())
	beside.Must(err)
	versioned := &corev1.Pod{}
	beside.Must(json.Unmarshal(text, versioned))
	legacyscheme.Scheme.Default(versioned)
	pod := &core.Pod{}
	beside.Must(legacyscheme.Scheme.Convert(versioned, pod, nil))
	changed := pod.DeepCopy()
	if changed.Labels == nil {
		changed.Labels = map[string]string{}
	}
	changed.Labels["changed"] = "yes"

	theirs := map[string]func(){
		"BM_ValidatePod": func() {
			options := podutil.GetValidationOptionsFromPodSpecAndMeta(&pod.Spec, nil, &pod.ObjectMeta, nil)
			options.ResourceIsPod = true
			beside.Must(validation.ValidatePodCreate(pod, options).ToAggregate())
		},
		"BM_ValidatePodUpdate": func() {
			options := podutil.GetValidationOptionsFromPodSpecAndMeta(&changed.Spec, &pod.Spec, &changed.ObjectMeta, &pod.ObjectMeta)
			options.ResourceIsPod = true
			beside.Must(validation.ValidatePodUpdate(changed, pod, options).ToAggregate())
		},
	}

	var table beside.Table
	for _, ours := range beside.Run() {
		table.Row(ours.Name, theirs[ours.Name], ours)
	}
	table.End()
}
