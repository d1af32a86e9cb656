package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func checkErrors(ctx context.Context, s *suite) error {
	client := s.client.CoreV1().ConfigMaps(s.namespace)
	if _, err := client.Get(ctx, "absent", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("get of nothing: %v", err)
	}
	made, err := client.Create(ctx, configMap("a", nil), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if _, err := client.Create(ctx, configMap("a", nil), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("second create: %v", err)
	}
	if _, err := client.Create(ctx, configMap("Bad_Name", nil), metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		return fmt.Errorf("bad name: %v", err)
	}
	stale := made.DeepCopy()
	made.Data = map[string]string{"x": "1"}
	if _, err := client.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
		return err
	}
	stale.Data = map[string]string{"x": "2"}
	if _, err := client.Update(ctx, stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		return fmt.Errorf("stale update: %v", err)
	}
	wrong := types.UID("00000000-0000-0000-0000-000000000000")
	if err := client.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}}); !apierrors.IsConflict(err) {
		return fmt.Errorf("delete with a wrong uid: %v", err)
	}
	anonymous, err := kubernetes.NewForConfig(rest.AnonymousClientConfig(s.config))
	if err != nil {
		return err
	}
	if _, err := anonymous.CoreV1().ConfigMaps(s.namespace).List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		return fmt.Errorf("anonymous list: %v", err)
	}
	return nil
}

func checkDiscovery(_ context.Context, s *suite) error {
	groups, lists, err := s.client.Discovery().ServerGroupsAndResources()
	if err != nil {
		return err
	}
	resources := 0
	for _, list := range lists {
		resources += len(list.APIResources)
	}
	if len(groups) < 15 || resources < 100 {
		return fmt.Errorf("%d groups and %d resources", len(groups), resources)
	}
	version, err := s.client.Discovery().ServerVersion()
	if err != nil || version.Minor != "36" {
		return fmt.Errorf("version %v, %v", version, err)
	}
	paths, err := s.client.Discovery().OpenAPIV3().Paths()
	if err != nil {
		return err
	}
	core, found := paths["api/v1"]
	if !found {
		return errors.New("no OpenAPI of api/v1")
	}
	document, err := core.Schema("application/json")
	if err != nil || len(document) < 100000 {
		return fmt.Errorf("OpenAPI of api/v1 has %d bytes, %v", len(document), err)
	}
	return nil
}

// checkOpenAPIV2 asks as old clients do: the whole document, in protobuf only.
func checkOpenAPIV2(_ context.Context, s *suite) error {
	document, err := s.client.Discovery().OpenAPISchema()
	if err == nil && len(document.GetDefinitions().GetAdditionalProperties()) < 300 {
		return fmt.Errorf("%d definitions", len(document.GetDefinitions().GetAdditionalProperties()))
	}
	return err
}

func checkPagedList(ctx context.Context, s *suite) error {
	if err := s.fill(ctx, "page", 230); err != nil {
		return err
	}
	client := s.client.CoreV1().ConfigMaps(s.namespace)
	options := metav1.ListOptions{Limit: 50}
	names, revision := []string{}, ""
	for {
		page, err := client.List(ctx, options)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			names = append(names, item.Name)
		}
		if revision == "" {
			revision = page.ResourceVersion
			if page.RemainingItemCount == nil || *page.RemainingItemCount != 180 {
				return fmt.Errorf("remainingItemCount %v", page.RemainingItemCount)
			}
			// What changes between the pages must not show: they all are of the first page's revision.
			if err := client.Delete(ctx, "page-0200", metav1.DeleteOptions{}); err != nil {
				return err
			}
			if err := s.fill(ctx, "other", 20); err != nil {
				return err
			}
		}
		if page.ResourceVersion != revision {
			return fmt.Errorf("pages of revisions %s and %s", revision, page.ResourceVersion)
		}
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	if len(names) != 230 {
		return fmt.Errorf("%d names in the pages", len(names))
	}
	exact, err := client.List(ctx, metav1.ListOptions{ResourceVersion: revision, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	if err != nil || len(exact.Items) != 230 {
		return fmt.Errorf("list at exactly %s: %d items, %v", revision, len(exact.Items), err)
	}
	return nil
}

// follow changes objects while an informer runs, and waits until the informer's store equals a list.
func (s *suite) follow(ctx context.Context, informer cache.SharedIndexInformer) error {
	if err := s.fill(ctx, "before", 300); err != nil {
		return err
	}
	var lock sync.Mutex
	added, updated, deleted := 0, 0, 0
	count := func(counter *int) { lock.Lock(); *counter++; lock.Unlock() }
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { count(&added) },
		UpdateFunc: func(any, any) { count(&updated) },
		DeleteFunc: func(any) { count(&deleted) },
	})
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	defer close(stop)
	go informer.Run(stop)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return errors.New("the informer did not sync")
	}
	if got := len(informer.GetStore().ListKeys()); got != 300 {
		return fmt.Errorf("%d objects after sync", got)
	}
	if err := s.fill(ctx, "during", 100); err != nil {
		return err
	}
	client := s.client.CoreV1().ConfigMaps(s.namespace)
	for i := range 100 {
		name := fmt.Sprintf("before-%04d", i)
		if i%2 == 0 {
			err = client.Delete(ctx, name, metav1.DeleteOptions{})
		} else {
			_, err = client.Update(ctx, configMap(name, map[string]string{"n": "changed"}), metav1.UpdateOptions{})
		}
		if err != nil {
			return err
		}
	}
	listed, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	want := map[string]string{}
	for _, item := range listed.Items {
		want[item.Name] = item.ResourceVersion
	}
	for {
		got := map[string]string{}
		for _, object := range informer.GetStore().List() {
			accessor, err := meta.Accessor(object)
			if err != nil {
				return err
			}
			got[accessor.GetName()] = accessor.GetResourceVersion()
		}
		lock.Lock()
		counts := [3]int{added, updated, deleted}
		lock.Unlock()
		if maps.Equal(want, got) && counts == [3]int{400, 50, 50} {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d objects listed, %d in the informer; events %v", len(want), len(got), counts)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *suite) typedInformer(ctx context.Context, config *rest.Config) (*recorder, error) {
	config, queries := record(config)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(s.namespace))
	if err := s.follow(ctx, factory.Core().V1().ConfigMaps().Informer()); err != nil {
		return nil, err
	}
	if !queries.saw("sendInitialEvents=true") {
		return nil, errors.New("the informer did not use WatchList")
	}
	return queries, nil
}

func checkInformer(ctx context.Context, s *suite) error {
	_, err := s.typedInformer(ctx, s.config)
	return err
}

func checkInformerProtobuf(ctx context.Context, s *suite) error {
	config := rest.CopyConfig(s.config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	queries, err := s.typedInformer(ctx, config)
	if err == nil && !queries.sawType("protobuf;stream=watch") {
		return fmt.Errorf("no protobuf watch: %v", queries.types)
	}
	return err
}

func checkDynamic(ctx context.Context, s *suite) error {
	client, err := dynamic.NewForConfig(s.config)
	if err != nil {
		return err
	}
	deployments := client.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace(s.namespace)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "d"},
		"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"a": "b"}},
			"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}},
				"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}}}},
	}}
	made, err := deployments.Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if replicas, _, _ := unstructured.NestedInt64(made.Object, "spec", "replicas"); replicas != 1 {
		return fmt.Errorf("replicas were not defaulted: %d", replicas)
	}
	unstructured.SetNestedField(made.Object, int64(3), "status", "replicas")
	updated, err := deployments.UpdateStatus(ctx, made, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	if replicas, _, _ := unstructured.NestedInt64(updated.Object, "status", "replicas"); replicas != 3 || updated.GetGeneration() != 1 {
		return fmt.Errorf("status update: %d replicas, generation %d", replicas, updated.GetGeneration())
	}
	list, err := deployments.List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].GetKind() != "Deployment" {
		return fmt.Errorf("list: %v, %v", list, err)
	}
	if err := deployments.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return err
	}
	_, err = deployments.Get(ctx, "d", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("after deletecollection: %v", err)
	}
	return nil
}

func checkDynamicInformer(ctx context.Context, s *suite) error {
	client, err := dynamic.NewForConfig(s.config)
	if err != nil {
		return err
	}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, s.namespace, nil)
	return s.follow(ctx, factory.ForResource(configMaps).Informer())
}

func checkMetadata(ctx context.Context, s *suite) error {
	client, err := metadata.NewForConfig(s.config)
	if err != nil {
		return err
	}
	if err := s.fill(ctx, "m", 10); err != nil {
		return err
	}
	objects := client.Resource(configMaps).Namespace(s.namespace)
	list, err := objects.List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 10 || list.Items[3].Labels["suite"] != "clients" {
		return fmt.Errorf("list: %v, %v", list, err)
	}
	watching, err := objects.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return err
	}
	defer watching.Stop()
	patched, err := objects.Patch(ctx, "m-0001", "application/merge-patch+json", []byte(`{"metadata":{"annotations":{"x":"y"}}}`), metav1.PatchOptions{})
	if err != nil || patched.Annotations["x"] != "y" {
		return fmt.Errorf("patch: %v, %v", patched, err)
	}
	event, open := <-watching.ResultChan()
	got, isMetadata := event.Object.(*metav1.PartialObjectMetadata)
	if !open || event.Type != watch.Modified || !isMetadata || got.ResourceVersion != patched.ResourceVersion {
		return fmt.Errorf("event %v", event)
	}
	return nil
}

// checkWatchResume ends a watch and goes on from the last resourceVersion seen: nothing is lost, nothing comes twice.
func checkWatchResume(ctx context.Context, s *suite) error {
	client := s.client.CoreV1().ConfigMaps(s.namespace)
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if err := s.fill(ctx, "w", 60); err != nil {
		return err
	}
	seen, revision := map[string]bool{}, list.ResourceVersion
	for len(seen) < 60 {
		watching, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: revision, AllowWatchBookmarks: true})
		if err != nil {
			return err
		}
		for range 7 {
			if len(seen) == 60 {
				break
			}
			event, open := <-watching.ResultChan()
			object, isConfigMap := event.Object.(*corev1.ConfigMap)
			if !open || !isConfigMap {
				return fmt.Errorf("event %v after %d", event, len(seen))
			}
			revision = object.ResourceVersion
			if event.Type == watch.Bookmark {
				continue
			}
			if seen[object.Name] {
				return fmt.Errorf("%s came twice", object.Name)
			}
			seen[object.Name] = true
		}
		watching.Stop()
	}
	return nil
}
