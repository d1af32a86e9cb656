package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	jsonType  = "application/json"
	protobuf  = "application/vnd.kubernetes.protobuf"
	tableType = "application/json;as=Table;g=meta.k8s.io;v=v1"
	perNode   = 20
	perLabel  = 200
)

// rows are the kinds of work, by name. fill makes the data set and is the row of creates; the others need it.
var rows = map[string]func(l *load) row{
	"fill": fill,
	"get": func(l *load) row {
		return l.measure(l.requests, len(l.clients), l.rate, func(client *http.Client, number int) (int64, error) {
			return l.do(client, "GET", l.pod(number*7919%l.objects), jsonType, "", nil)
		})
	},
	"patch": func(l *load) row {
		return l.measure(l.requests, len(l.clients), l.rate, func(client *http.Client, number int) (int64, error) {
			body := fmt.Appendf(nil, `{"metadata":{"annotations":{"patched":"%d"}}}`, number)
			return l.do(client, "PATCH", l.pod(number*7919%l.objects), jsonType, "application/merge-patch+json", body)
		})
	},
	"list-json":     lists(jsonType),
	"list-protobuf": lists(protobuf),
	"list-gzip":     lists(jsonType, "Accept-Encoding", "gzip"),
	"list-table":    lists(tableType),
	"list-node": func(l *load) row {
		return l.measure(max(l.requests/5, 1), len(l.clients), l.rate, func(client *http.Client, number int) (int64, error) {
			return l.do(client, "GET", fmt.Sprintf("/api/v1/pods?resourceVersion=0&fieldSelector=spec.nodeName%%3Dnode-%d", number%(l.objects/perNode)), jsonType, "", nil)
		})
	},
	"list-label": func(l *load) row {
		return l.measure(max(l.requests/20, 1), len(l.clients), l.rate, func(client *http.Client, number int) (int64, error) {
			return l.do(client, "GET", fmt.Sprintf("/api/v1/pods?resourceVersion=0&labelSelector=team%%3Dteam-%d", number%(l.objects/perLabel)), jsonType, "", nil)
		})
	},
	"list-32-clients": func(l *load) row {
		l.connect(32)
		before := memoryMB(l.pids, "VmRSS")
		result := l.measure(32, 32, 0, func(client *http.Client, _ int) (int64, error) {
			return l.do(client, "GET", "/api/v1/pods?resourceVersion=0", jsonType, "", nil)
		})
		result.ResidentMB = before // so that peak minus resident is what the lists needed
		return result
	},
	"watch": func(l *load) row { return watch(l, l.pod, "/api/v1/pods") },
	"clean": func(l *load) row {
		return l.measure(1, 1, 0, func(client *http.Client, _ int) (int64, error) {
			if _, err := l.do(client, "DELETE", "/api/v1/namespaces/"+l.namespace+"/pods?gracePeriodSeconds=0", jsonType, "", nil); err != nil {
				return 0, err
			}
			return l.do(client, "DELETE", "/api/v1/namespaces/"+l.namespace, jsonType, "", nil)
		})
	},
	"idle": func(l *load) row {
		time.Sleep(2 * time.Second)
		return row{Operations: 1, ResidentMB: memoryMB(l.pids, "VmRSS"), PeakMB: memoryMB(l.pids, "VmHWM")}
	},
	"delete": func(l *load) row {
		return l.measure(min(l.requests, l.objects), len(l.clients), l.rate, func(client *http.Client, number int) (int64, error) {
			return l.do(client, "DELETE", l.pod(number)+"?gracePeriodSeconds=0", jsonType, "", nil)
		})
	},
}

func (l *load) pod(number int) string {
	return fmt.Sprintf("/api/v1/namespaces/%s/pods/pod-%05d", l.namespace, number)
}

func lists(accept string, header ...string) func(l *load) row {
	return func(l *load) row {
		// Once before, on both servers: what is made on first use and kept would otherwise depend on how many requests share it.
		l.do(l.clients[0], "GET", "/api/v1/pods?resourceVersion=0", accept, "", nil, header...)
		return l.measure(max(l.requests/250, 10), 2, 0, func(client *http.Client, _ int) (int64, error) {
			return l.do(client, "GET", "/api/v1/pods?resourceVersion=0", accept, "", nil, header...)
		})
	}
}

// podParts are the JSON of a pod around its team, name and node: a pod of about 7.6 kB as answered, with two containers with environment, probes, mounts and
// resources, as Deployments have them. It is marshalled once: for each pod that takes 40 µs, a fifth of what this program spends on a create.
var podParts = sync.OnceValue(func() [][]byte {
	const team, name, node = "(team)", "(name)", "(node)"
	environment := []map[string]any{}
	for i := range 12 {
		environment = append(environment, map[string]any{"name": fmt.Sprintf("SETTING_%02d", i), "value": fmt.Sprintf("value-%d-of-a-setting", i)})
	}
	containers := []map[string]any{}
	for i := range 2 {
		probe := map[string]any{"httpGet": map[string]any{"path": "/healthz", "port": 8080}, "periodSeconds": 10}
		containers = append(containers, map[string]any{
			"name": fmt.Sprintf("container-%d", i), "image": "registry.invalid/team/application:v1.2.3", "args": []string{"--verbose", "--port=8080"}, "env": environment,
			"ports":          []map[string]any{{"name": fmt.Sprintf("http-%d", i), "containerPort": 8080 + i}},
			"livenessProbe":  probe,
			"readinessProbe": probe,
			"resources":      map[string]any{"requests": map[string]any{"cpu": "100m", "memory": "128Mi"}, "limits": map[string]any{"cpu": "1", "memory": "1Gi"}},
			"volumeMounts":   []map[string]any{{"name": "data", "mountPath": "/data"}},
		})
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": name,
			"labels":      map[string]any{"app": "load", "team": team},
			"annotations": map[string]any{"description": "a pod of the load program"}},
		"spec": map[string]any{"nodeName": node, "automountServiceAccountToken": false, "containers": containers,
			"volumes": []map[string]any{{"name": "data", "emptyDir": map[string]any{}}}},
	})
	if err != nil {
		panic(err)
	}
	parts := [][]byte{}
	for _, marker := range []string{team, name, node} {
		before, after, found := bytes.Cut(body, []byte(marker))
		if !found {
			panic(marker + " is not in the pod, or not in this order")
		}
		parts, body = append(parts, before), after
	}
	return append(parts, body)
})

func podBody(number int) []byte {
	parts := podParts()
	body := fmt.Appendf(nil, "%steam-%d%spod-%05d", parts[0], number/perLabel, parts[1], number)
	return fmt.Appendf(body, "%snode-%d%s", parts[2], number/perNode, parts[3])
}

func fill(l *load) row {
	l.do(l.clients[0], "POST", "/api/v1/namespaces", jsonType, jsonType, []byte(`{"metadata":{"name":"`+l.namespace+`"}}`))
	l.do(l.clients[0], "POST", "/api/v1/namespaces/"+l.namespace+"/serviceaccounts", jsonType, jsonType, []byte(`{"metadata":{"name":"default"}}`))
	path := "/api/v1/namespaces/" + l.namespace + "/pods"
	return l.measure(max(l.objects-l.from, 1), len(l.clients), l.rate, func(client *http.Client, number int) (int64, error) {
		return l.do(client, "POST", path, jsonType, jsonType, podBody(l.from+number))
	})
}

// watch lets watches of a whole collection, each on its own connection or on shared ones, follow changes; an operation is one event at one watch. The same changes
// are made a few times before without a watch, and the median of what they cost is taken off, so that the cost is that of the delivery and a
// garbage collection in one of them does not make it free. Latency counts from the moment the change was sent until its event was read.
func watch(l *load, object func(number int) string, collection string) row {
	change := func(number int) error {
		body := fmt.Appendf(nil, `{"metadata":{"annotations":{"watched":"%d"}}}`, time.Now().UnixNano())
		_, err := l.do(l.clients[0], "PATCH", object(number%l.objects), jsonType, "application/merge-patch+json", body)
		return err
	}
	changes := func() (float64, error) {
		before := cpuSeconds(l.pids)
		for number := range l.changes {
			if err := change(number); err != nil {
				return 0, err
			}
		}
		return cpuSeconds(l.pids) - before, nil
	}
	if err := change(0); err != nil {
		return row{FirstError: err.Error()}
	}
	alone := make([]float64, 5)
	for i := range alone {
		var err error
		if alone[i], err = changes(); err != nil {
			return row{FirstError: err.Error()}
		}
	}
	slices.Sort(alone)
	revision, err := l.revision()
	if err != nil {
		return row{FirstError: err.Error()}
	}
	connections := l.watchers
	if l.shared > 0 {
		connections = l.shared
	}
	l.connect(connections)
	var events, size, ready atomic.Int64
	var group sync.WaitGroup
	latencies := make([][]time.Duration, l.watchers)
	for i := range l.watchers {
		group.Add(1)
		go func() {
			defer group.Done()
			body, err := l.open(l.clients[i%connections], collection+"?watch=true&timeoutSeconds=120&resourceVersion="+revision)
			ready.Add(1)
			if err != nil {
				return
			}
			defer body.Close()
			reader := bufio.NewReaderSize(body, 1<<16)
			for range l.changes {
				line, err := reader.ReadBytes('\n')
				if err != nil {
					return
				}
				size.Add(int64(len(line)))
				events.Add(1)
				if sent := sentAt(line); sent != 0 {
					latencies[i] = append(latencies[i], time.Since(time.Unix(0, sent)))
				}
			}
		}()
	}
	for ready.Load() < int64(l.watchers) {
		time.Sleep(10 * time.Millisecond)
	}
	resetPeak(l.pids)
	before, begin := cpuSeconds(l.pids), time.Now()
	if _, err := changes(); err != nil {
		return row{FirstError: err.Error()}
	}
	group.Wait()
	seconds := time.Since(begin).Seconds()
	cpu := max(cpuSeconds(l.pids)-before-alone[len(alone)/2], 0)
	count := int(events.Load())
	result := row{Operations: count, Errors: l.watchers*l.changes - count, Clients: l.watchers, Seconds: seconds, ResidentMB: memoryMB(l.pids, "VmRSS"), PeakMB: memoryMB(l.pids, "VmHWM")}
	result.latency(slices.Concat(latencies...))
	if count > 0 {
		result.PerSecond = float64(count) / seconds
		result.CPUMicros = cpu * 1e6 / float64(count)
		result.Bytes = size.Load() / int64(count)
	}
	return result
}

// open sends a GET and hands out the answer's body, which never ends by itself when it is a watch.
func (l *load) open(client *http.Client, path string) (io.ReadCloser, error) {
	request, err := http.NewRequest("GET", l.base+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", jsonType)
	if l.token != "" {
		request.Header.Set("Authorization", "Bearer "+l.token)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("%s: %d", path, response.StatusCode)
	}
	return response.Body, nil
}

// revision is the store's current resourceVersion, from a list of something small.
func (l *load) revision() (string, error) {
	body, err := l.open(l.clients[0], "/api/v1/namespaces/"+l.namespace+"/configmaps?limit=1")
	if err != nil {
		return "", err
	}
	defer body.Close()
	list := struct {
		Metadata struct{ ResourceVersion string }
	}{}
	err = json.NewDecoder(body).Decode(&list)
	return list.Metadata.ResourceVersion, err
}

// sentAt reads the time that watch put into the annotation, without decoding the event.
func sentAt(line []byte) int64 {
	mark := []byte(`"watched":"`)
	at := bytes.Index(line, mark)
	if at < 0 {
		return 0
	}
	rest := line[at+len(mark):]
	end := bytes.IndexByte(rest, '"')
	if end < 0 {
		return 0
	}
	sent, err := strconv.ParseInt(string(rest[:end]), 10, 64)
	if err != nil {
		return 0
	}
	return sent
}
