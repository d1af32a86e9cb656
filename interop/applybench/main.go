// Kubernetes' own server-side apply, field tracking and strategic merge beside Keelson's, on the same pod: `tools/beside.sh apply`.
package main

import (
	"encoding/json"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"

	"keelson/interop/beside"
)

type noDefaults struct{}

func (noDefaults) Default(runtime.Object) {}

func main() {
	text, err := os.ReadFile(beside.Pod())
	beside.Must(err)
	kind := corev1.SchemeGroupVersion.WithKind("Pod")
	manager, err := managedfields.NewDefaultFieldManager(applyconfigurations.NewTypeConverter(scheme.Scheme), scheme.Scheme, noDefaults{},
		scheme.Scheme, kind, corev1.SchemeGroupVersion, "", nil)
	beside.Must(err)
	live := &corev1.Pod{}
	beside.Must(json.Unmarshal(text, live))
	live.SetGroupVersionKind(kind)
	tree := map[string]any{}
	beside.Must(json.Unmarshal(text, &tree))

	config := &unstructured.Unstructured{}
	beside.Must(json.Unmarshal(text, config))
	for _, key := range []string{"managedFields", "uid", "resourceVersion", "creationTimestamp", "generation"} {
		unstructured.RemoveNestedField(config.Object, "metadata", key)
	}
	unstructured.RemoveNestedField(config.Object, "status")
	beside.Must(unstructured.SetNestedField(config.Object, "yes", "metadata", "labels", "applied"))

	patch := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"changed": "yes"}},
		"spec": map[string]any{"containers": []any{map[string]any{"name": live.Spec.Containers[0].Name, "image": "new",
			"env": []any{map[string]any{"name": "ADDED", "value": "1"}}}}},
	}

	theirs := map[string]func(){
		"BM_UpdatePod": func() {
			now := live.DeepCopy()
			if now.Labels == nil {
				now.Labels = map[string]string{}
			}
			now.Labels["changed"] = "yes"
			_, err := manager.Update(live, now, "bench")
			beside.Must(err)
		},
		"BM_ApplyPod": func() {
			_, err := manager.Apply(live, config, "bench", true)
			beside.Must(err)
		},
		"BM_StrategicPatchPod": func() {
			_, err := strategicpatch.StrategicMergeMapPatch(runtime.DeepCopyJSON(tree), runtime.DeepCopyJSON(patch), &corev1.Pod{})
			beside.Must(err)
		},
	}

	var table beside.Table
	for _, ours := range beside.Run() {
		table.Row(ours.Name, theirs[ours.Name], ours)
	}
	table.End()
}
