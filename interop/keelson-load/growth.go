package main

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	perGroup   = 20                    // small objects with the same label
	retryEvery = 20 * time.Millisecond // row resume: how soon a client whose server is away asks again
)

func init() {
	rows["fill-small"] = fillSmall
	rows["get-small"] = func(l *load) row {
		return l.measure(l.requests, len(l.clients), l.rate, func(client *http.Client, number int) (int64, error) {
			return l.do(client, "GET", l.small(number*7919%l.objects), jsonType, "", nil)
		})
	}
	rows["list-small-label"] = func(l *load) row {
		return l.measure(max(l.requests/5, 1), len(l.clients), l.rate, func(client *http.Client, number int) (int64, error) {
			return l.do(client, "GET", fmt.Sprintf("/api/v1/configmaps?resourceVersion=0&labelSelector=group%%3Dgroup-%d", number*7919%(l.objects/perGroup)), jsonType, "", nil)
		})
	}
	rows["watch-small"] = func(l *load) row { return watch(l, l.small, "/api/v1/configmaps") }
	rows["watch-nodes"] = watchNodes
	rows["resume"] = resume
}

func (l *load) small(number int) string {
	return fmt.Sprintf("/api/v1/namespaces/%s/configmaps/small-%07d", l.namespace, number)
}

// fillSmall makes config maps of about 1 kB.
func fillSmall(l *load) row {
	l.do(l.clients[0], "POST", "/api/v1/namespaces", jsonType, jsonType, []byte(`{"metadata":{"name":"`+l.namespace+`"}}`))
	path := "/api/v1/namespaces/" + l.namespace + "/configmaps"
	text := strings.Repeat("all work and no play ", 33)
	return l.measure(max(l.objects-l.from, 1), len(l.clients), l.rate, func(client *http.Client, number int) (int64, error) {
		number += l.from
		body := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"small-%07d","labels":{"group":"group-%d"}},"data":{"text":"%s"}}`, number, number/perGroup, text)
		return l.do(client, "POST", path, jsonType, jsonType, body)
	})
}

// watchNodes lets each watch follow the pods of one node, as a kubelet does, while pods are changed on a schedule (--rate, --changes). An operation is one
// change, which one watch sees: its cost is that of the write and of everything that many watches of other nodes add to it. Latency counts from the
// moment the change was sent until its event was read.
func watchNodes(l *load) row {
	revision, err := l.revision()
	if err != nil {
		return row{FirstError: err.Error()}
	}
	connections := l.watchers
	if l.shared > 0 {
		connections = l.shared
	}
	l.connect(connections)
	nodes := max(l.objects/perNode, 1)
	var mutex sync.Mutex
	var opened, failed atomic.Int64
	latencies := []time.Duration{}
	for i := range l.watchers {
		go func() {
			body, err := l.open(l.clients[i%connections], fmt.Sprintf("/api/v1/pods?watch=true&timeoutSeconds=600&fieldSelector=spec.nodeName%%3Dnode-%d&resourceVersion=%s", i%nodes, revision))
			opened.Add(1)
			if err != nil {
				failed.Add(1)
				return
			}
			defer body.Close()
			reader := bufio.NewReaderSize(body, 1<<14)
			for {
				line, err := reader.ReadBytes('\n')
				if err != nil {
					return
				}
				if sent := sentAt(line); sent != 0 {
					latency := time.Since(time.Unix(0, sent))
					mutex.Lock()
					latencies = append(latencies, latency)
					mutex.Unlock()
				}
			}
		}()
	}
	for opened.Load() < int64(l.watchers) {
		time.Sleep(10 * time.Millisecond)
	}
	result := l.measure(l.changes, min(16, len(l.clients)), l.rate, func(client *http.Client, number int) (int64, error) {
		body := fmt.Appendf(nil, `{"metadata":{"annotations":{"watched":"%d"}}}`, time.Now().UnixNano())
		return l.do(client, "PATCH", l.pod(number*7919%l.objects), jsonType, "application/merge-patch+json", body)
	})
	wanted := 0
	for number := range result.Operations {
		node := number * 7919 % l.objects / perNode
		wanted += l.watchers / nodes
		if node < l.watchers%nodes {
			wanted++
		}
	}
	seen := func() int { mutex.Lock(); defer mutex.Unlock(); return len(latencies) }
	for end := time.Now().Add(30 * time.Second); seen() < wanted && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	mutex.Lock()
	defer mutex.Unlock()
	result.Clients = l.watchers
	result.Errors += int(failed.Load()) + max(wanted-len(latencies), 0)
	result.latency(latencies)
	return result
}

// resume opens watches, each on a connection of its own, says "open" on the error output, and waits until their server has gone and every watch goes on at the
// server that came back. An operation is one watch that went on; seconds count from the first answer after the outage to the last watch.
func resume(l *load) row {
	revision, err := l.revision()
	if err != nil {
		return row{FirstError: err.Error()}
	}
	l.connect(l.watchers)
	path := "/api/v1/pods?watch=true&timeoutSeconds=600&resourceVersion=" + revision
	var opened atomic.Int64
	resumed := make([]time.Time, l.watchers)
	var group sync.WaitGroup
	for i := range l.watchers {
		group.Add(1)
		go func() {
			defer group.Done()
			body, err := l.open(l.clients[i], path)
			opened.Add(1)
			if err != nil {
				return
			}
			bufio.NewReader(body).ReadString(0) // until it ends
			body.Close()
			for {
				if body, err = l.open(l.clients[i], path); err == nil {
					resumed[i] = time.Now()
					defer body.Close()
					return
				}
				time.Sleep(retryEvery)
			}
		}()
	}
	for opened.Load() < int64(l.watchers) {
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Fprintln(os.Stderr, "open")
	group.Wait()
	latencies, first := []time.Duration{}, time.Time{}
	for _, at := range resumed {
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	for _, at := range resumed {
		if !at.IsZero() {
			latencies = append(latencies, at.Sub(first))
		}
	}
	result := row{Operations: len(latencies), Errors: l.watchers - len(latencies), Clients: l.watchers}
	result.latency(latencies)
	result.Seconds = result.MaxMillis / 1000
	return result
}
