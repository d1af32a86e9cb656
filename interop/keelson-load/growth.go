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
	changers   = 16                    // row watch-nodes: connections that make the changes
	patience   = 60 * time.Second      // row watch-nodes: without any event, before those that lack are called missing
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

// nodeWatch is one watch of watchNodes: how many events it has read, and why it ended if it did.
type nodeWatch struct {
	node, seen int
	ended      string
}

// nodeWatches are all of them, with the latencies of their events.
type nodeWatches struct {
	sync.Mutex
	all       []nodeWatch
	latencies []time.Duration
	opened    int
}

// follow opens watch number `i` and reads its events until it ends.
func (w *nodeWatches) follow(l *load, i int, client *http.Client, revision string) {
	body, err := l.open(client, fmt.Sprintf("/api/v1/pods?watch=true&timeoutSeconds=3600&fieldSelector=spec.nodeName%%3Dnode-%d&resourceVersion=%s", w.all[i].node, revision))
	w.Lock()
	w.opened++
	w.Unlock()
	end := func(reason string) {
		w.Lock()
		defer w.Unlock()
		w.all[i].ended = reason
	}
	if err != nil {
		end("not opened: " + err.Error())
		return
	}
	defer body.Close()
	for reader := bufio.NewReaderSize(body, 1<<14); ; {
		line, err := reader.ReadBytes('\n')
		if err != nil {
			end(err.Error())
			return
		}
		sent := sentAt(line)
		if sent == 0 {
			end("an event that is no change: " + string(line[:min(len(line), 300)]))
			return
		}
		latency := time.Since(time.Unix(0, sent))
		w.Lock()
		w.all[i].seen++
		w.latencies = append(w.latencies, latency)
		w.Unlock()
	}
}

// missing counts the events that were made (by node) and not read, and describes them.
func (w *nodeWatches) missing(made []atomic.Int64) (count int, text string) {
	w.Lock()
	defer w.Unlock()
	at, ended, reason := 0, 0, ""
	for _, watch := range w.all {
		if lack := int(made[watch.node].Load()) - watch.seen; lack > 0 {
			count, at = count+lack, at+1
		}
		if watch.ended != "" {
			ended, reason = ended+1, watch.ended
		}
	}
	if count == 0 && ended == 0 {
		return 0, ""
	}
	return count + ended, fmt.Sprintf("%d events missing at %d watches; %d watches ended, such as: %s", count, at, ended, reason)
}

// watchNodes lets each watch follow the pods of one node, as a kubelet does, while pods are changed on a schedule (--rate, --changes). An operation is one
// change, which the watches of one node see: its cost is that of the write, of these events and of everything that many watches of other nodes add to it. Latency
// counts from the moment the change was sent until its event was read. An event is missing when it was not read although nothing came for a while.
func watchNodes(l *load) row {
	revision, err := l.revision()
	if err != nil {
		return row{FirstError: err.Error()}
	}
	connections := l.watchers
	if l.shared > 0 {
		connections = l.shared
	}
	l.connect(changers + connections) // changes have connections of their own: those of the watches have no stream left
	nodes := max(l.objects/perNode, 1)
	watches := &nodeWatches{all: make([]nodeWatch, l.watchers)}
	for i := range watches.all {
		watches.all[i].node = i % nodes
	}
	for i := range l.watchers {
		go watches.follow(l, i, l.clients[changers+i%connections], revision)
	}
	progress := func() (opened, seen int) {
		watches.Lock()
		defer watches.Unlock()
		return watches.opened, len(watches.latencies)
	}
	for opened, _ := progress(); opened < l.watchers; opened, _ = progress() {
		time.Sleep(10 * time.Millisecond)
	}
	made := make([]atomic.Int64, nodes)
	result := l.measure(l.changes, changers, l.rate, func(client *http.Client, number int) (int64, error) {
		pod := number * 7919 % l.objects
		body := fmt.Appendf(nil, `{"metadata":{"annotations":{"watched":"%d"}}}`, time.Now().UnixNano())
		size, err := l.do(client, "PATCH", l.pod(pod), jsonType, "application/merge-patch+json", body)
		if err == nil {
			made[pod/perNode].Add(1)
		}
		return size, err
	})
	_, before := progress()
	for quiet := time.Now(); time.Since(quiet) < patience; time.Sleep(10 * time.Millisecond) {
		if missing, _ := watches.missing(made); missing == 0 {
			break
		}
		if _, seen := progress(); seen > before {
			before, quiet = seen, time.Now()
		}
	}
	missing, text := watches.missing(made)
	result.Errors += missing
	if text != "" && result.FirstError != "" {
		text += "; "
	}
	result.FirstError = text + result.FirstError
	result.Clients = l.watchers
	watches.Lock()
	defer watches.Unlock()
	result.latency(watches.latencies)
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
