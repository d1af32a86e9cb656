// Command clients runs client-go's own machinery against a server and checks what it sees: informers (with and without WatchList),
// paged lists, the dynamic and metadata clients, protobuf, server-side apply, leader election, retry on conflict, discovery.
//
//	clients --kubeconfig admin.kubeconfig [--run name]
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// suite is what every check gets: a configuration without client-side limits, a typed JSON client and its own namespace.
type suite struct {
	config    *rest.Config
	client    kubernetes.Interface
	namespace string
}

type check struct {
	name string
	run  func(ctx context.Context, s *suite) error
}

var checks = []check{
	{"errors", checkErrors},
	{"discovery", checkDiscovery},
	{"openapi-v2", checkOpenAPIV2},
	{"openapi-v3", checkOpenAPIV3},
	{"paged-list", checkPagedList},
	{"informer", checkInformer},
	{"informer-protobuf", checkInformerProtobuf},
	{"dynamic", checkDynamic},
	{"dynamic-informer", checkDynamicInformer},
	{"metadata", checkMetadata},
	{"protobuf", checkProtobuf},
	{"server-side-apply", checkServerSideApply},
	{"retry-on-conflict-one-object", checkOneCounter},
	{"retry-on-conflict-many-objects", checkManyCounters},
	{"leader-election", checkLeaderElection},
	{"watch-resume", checkWatchResume},
}

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "how to reach the server")
	only := flag.String("run", "", "run only checks whose name contains this")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	passed, failed := 0, 0
	for _, c := range checks {
		if !strings.Contains(c.name, *only) {
			continue
		}
		begin := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
		err := run(ctx, c, config, client)
		cancel()
		if err != nil {
			failed++
			fmt.Printf("FAIL %-32s %v\n", c.name, err)
			continue
		}
		passed++
		fmt.Printf("ok   %-32s %.1f s\n", c.name, time.Since(begin).Seconds())
	}
	fmt.Printf("client-go: %d passed, %d failed\n", passed, failed)
	if failed > 0 || passed == 0 {
		os.Exit(1)
	}
}

func run(ctx context.Context, c check, config *rest.Config, client kubernetes.Interface) error {
	namespace, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "clients-"}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	defer client.CoreV1().Namespaces().Delete(context.Background(), namespace.Name, metav1.DeleteOptions{})
	return c.run(ctx, &suite{config: config, client: client, namespace: namespace.Name})
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"suite": "clients"}}, Data: data}
}

// fill creates count config maps with 8 clients at a time.
func (s *suite) fill(ctx context.Context, prefix string, count int) error {
	var group sync.WaitGroup
	errs := make(chan error, count)
	slots := make(chan struct{}, 8)
	for i := range count {
		group.Add(1)
		slots <- struct{}{}
		go func() {
			defer group.Done()
			defer func() { <-slots }()
			_, err := s.client.CoreV1().ConfigMaps(s.namespace).Create(ctx, configMap(fmt.Sprintf("%s-%04d", prefix, i), map[string]string{"n": fmt.Sprint(i)}), metav1.CreateOptions{})
			if err != nil {
				errs <- err
			}
		}()
	}
	group.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

// recorder notes the queries and answers' content types that pass through a client.
type recorder struct {
	next    http.RoundTripper
	lock    sync.Mutex
	queries []string
	types   map[string]int
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	r.lock.Lock()
	defer r.lock.Unlock()
	r.queries = append(r.queries, request.URL.RawQuery)
	if err == nil {
		r.types[response.Header.Get("Content-Type")]++
	}
	return response, err
}

func (r *recorder) saw(part string) bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	for _, query := range r.queries {
		if strings.Contains(query, part) {
			return true
		}
	}
	return false
}

func (r *recorder) sawType(part string) bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	for kind := range r.types {
		if strings.Contains(kind, part) {
			return true
		}
	}
	return false
}

func record(config *rest.Config) (*rest.Config, *recorder) {
	r := &recorder{types: map[string]int{}}
	copied := rest.CopyConfig(config)
	copied.Wrap(func(next http.RoundTripper) http.RoundTripper {
		r.next = next
		return r
	})
	return copied, r
}
