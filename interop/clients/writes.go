package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
)

func checkProtobuf(ctx context.Context, s *suite) error {
	config, seen := record(s.config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	_, err = client.CoreV1().ServiceAccounts(s.namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	off := false
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: map[string]string{"text": "läßt sich lesen"}},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: &off,
			Containers: []corev1.Container{{Name: "c", Image: "i", Env: []corev1.EnvVar{{Name: "A", Value: ""}},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("1Gi")}}}},
		},
	}
	if _, err := client.CoreV1().Pods(s.namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	binary, err := client.CoreV1().Pods(s.namespace).Get(ctx, "p", metav1.GetOptions{})
	if err != nil {
		return err
	}
	text, err := s.client.CoreV1().Pods(s.namespace).Get(ctx, "p", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if binary.String() != text.String() {
		return fmt.Errorf("protobuf and JSON differ:\n%s\n%s", binary, text)
	}
	if cpu := binary.Spec.Containers[0].Resources.Requests.Cpu().MilliValue(); cpu != 1500 || binary.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		return fmt.Errorf("cpu %d, restart policy %q", cpu, binary.Spec.RestartPolicy)
	}
	if !seen.sawType("application/vnd.kubernetes.protobuf") {
		return errors.New("no answer was protobuf")
	}
	return nil
}

func checkServerSideApply(ctx context.Context, s *suite) error {
	client := s.client.CoreV1().ConfigMaps(s.namespace)
	apply := func(manager string, force bool, data map[string]string) (*corev1.ConfigMap, error) {
		return client.Apply(ctx, applycorev1.ConfigMap("a", s.namespace).WithData(data), metav1.ApplyOptions{FieldManager: manager, Force: force})
	}
	if _, err := apply("one", false, map[string]string{"x": "1", "y": "1"}); err != nil {
		return err
	}
	if _, err := apply("two", false, map[string]string{"x": "2"}); !apierrors.IsConflict(err) {
		return fmt.Errorf("apply of another's field: %v", err)
	}
	if _, err := apply("two", true, map[string]string{"x": "2"}); err != nil {
		return err
	}
	// Manager one gives up both: y goes, x stays because two owns it.
	result, err := apply("one", false, map[string]string{})
	if err != nil {
		return err
	}
	if len(result.Data) != 1 || result.Data["x"] != "2" {
		return fmt.Errorf("data %v", result.Data)
	}
	extracted, err := applycorev1.ExtractConfigMap(result, "two")
	if err != nil || extracted.Data["x"] != "2" {
		return fmt.Errorf("what two owns: %v, %v", extracted, err)
	}
	return nil
}

// count lets clients of it add one to counters, each add a read, a change and an update that may meet a conflict.
func (s *suite) count(ctx context.Context, clients, adds, objects int) error {
	client := s.client.CoreV1().ConfigMaps(s.namespace)
	for i := range objects {
		if _, err := client.Create(ctx, configMap(fmt.Sprintf("counter-%d", i), map[string]string{"n": "0"}), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	backoff := wait.Backoff{Steps: 2000, Duration: 5 * time.Millisecond, Factor: 1, Jitter: 2}
	errs := make(chan error, clients)
	var group sync.WaitGroup
	for number := range clients {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range adds {
				name := fmt.Sprintf("counter-%d", (number+i)%objects)
				err := retry.RetryOnConflict(backoff, func() error {
					object, err := client.Get(ctx, name, metav1.GetOptions{})
					if err != nil {
						return err
					}
					n, err := strconv.Atoi(object.Data["n"])
					if err != nil {
						return err
					}
					object.Data["n"] = strconv.Itoa(n + 1)
					_, err = client.Update(ctx, object, metav1.UpdateOptions{})
					return err
				})
				if err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	group.Wait()
	close(errs)
	for err := range errs {
		return err
	}
	total := 0
	for i := range objects {
		object, err := client.Get(ctx, fmt.Sprintf("counter-%d", i), metav1.GetOptions{})
		if err != nil {
			return err
		}
		n, _ := strconv.Atoi(object.Data["n"])
		total += n
	}
	if total != clients*adds {
		return fmt.Errorf("%d adds were acknowledged, the counters say %d", clients*adds, total)
	}
	return nil
}

func checkOneCounter(ctx context.Context, s *suite) error   { return s.count(ctx, 64, 3, 1) }
func checkManyCounters(ctx context.Context, s *suite) error { return s.count(ctx, 64, 20, 40) }

func checkLeaderElection(ctx context.Context, s *suite) error {
	leading := make(chan string, 10)
	elect := func(ctx context.Context, name string, ended chan<- struct{}) error {
		config := rest.CopyConfig(s.config)
		lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, s.namespace, "boss", resourcelock.ResourceLockConfig{Identity: name}, config, 2*time.Second)
		if err != nil {
			return err
		}
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 6 * time.Second, RenewDeadline: 4 * time.Second, RetryPeriod: 500 * time.Millisecond, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { leading <- name },
				OnStoppedLeading: func() {},
			},
		})
		if err != nil {
			return err
		}
		go func() { elector.Run(ctx); close(ended) }()
		return nil
	}
	first, stopFirst := context.WithCancel(ctx)
	defer stopFirst()
	second, stopSecond := context.WithCancel(ctx)
	defer stopSecond()
	firstEnded, secondEnded := make(chan struct{}), make(chan struct{})
	if err := elect(first, "one", firstEnded); err != nil {
		return err
	}
	if name := <-leading; name != "one" {
		return fmt.Errorf("%s leads", name)
	}
	if err := elect(second, "two", secondEnded); err != nil {
		return err
	}
	select {
	case name := <-leading:
		return fmt.Errorf("%s leads beside one", name)
	case <-time.After(2 * time.Second):
	}
	stopFirst()
	<-firstEnded
	select {
	case <-leading:
	case <-ctx.Done():
		return errors.New("nobody took over")
	}
	lease, err := s.client.CoordinationV1().Leases(s.namespace).Get(ctx, "boss", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if *lease.Spec.HolderIdentity != "two" || *lease.Spec.LeaseTransitions < 1 {
		return fmt.Errorf("held by %s after %d transitions", *lease.Spec.HolderIdentity, *lease.Spec.LeaseTransitions)
	}
	_, err = s.client.CoordinationV1().Leases(s.namespace).Patch(ctx, "boss", types.MergePatchType, []byte(`{"spec":{"renewTime":null}}`), metav1.PatchOptions{})
	stopSecond()
	<-secondEnded
	return err
}
