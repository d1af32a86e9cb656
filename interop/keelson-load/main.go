// Command keelson-load puts load on a Kubernetes API server and prints what it cost, one JSON line a row. It speaks HTTP/2 with the
// standard library only, so that its own cost stays small, and works against any server:
//
//	keelson-load --server https://127.0.0.1:6443 --ca ca.crt --cert admin.crt --key admin.key --pid 1234,1235 fill get list-json ...
//
// --pid names the server's processes (API server, store): their CPU time and peak memory are part of every row. With --rate the load
// is open-loop: requests start on a fixed schedule whatever happened to those before, and latency counts from the scheduled time, so
// that queueing shows. Without it each client sends its next request when the last is answered (throughput).
//
// README.md beside this file explains the rows and the fields of the output.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

type load struct {
	base      string
	clients   []*http.Client // one connection each
	pids      []int
	objects   int
	requests  int
	rate      float64
	namespace string
	from      int // fill: the first pod to make
	watchers  int
	shared    int // row watch: connections that the watches share; 0: each has its own
	changes   int
	config    *tls.Config
	token     string
}

// row is one line of output. Costs are of the server processes, per operation.
type row struct {
	Name       string  `json:"name"`
	Operations int     `json:"operations"`
	Errors     int     `json:"errors"`
	Clients    int     `json:"clients,omitempty"`
	Rate       float64 `json:"rate,omitempty"` // scheduled operations a second; 0: closed loop
	Seconds    float64 `json:"seconds"`
	PerSecond  float64 `json:"perSecond"`
	CPUMicros  float64 `json:"cpuMicros"` // server CPU time of one operation
	P50Millis  float64 `json:"p50Millis"`
	P99Millis  float64 `json:"p99Millis"`
	P999Millis float64 `json:"p999Millis"`
	MaxMillis  float64 `json:"maxMillis"`
	Bytes      int64   `json:"bytes"` // answered, per operation
	ResidentMB float64 `json:"residentMB"`
	PeakMB     float64 `json:"peakMB"`
	FirstError string  `json:"firstError,omitempty"`
}

func main() {
	server := flag.String("server", "https://127.0.0.1:6443", "the API server")
	ca := flag.String("ca", "", "CA certificate")
	cert := flag.String("cert", "", "client certificate")
	key := flag.String("key", "", "client key")
	tokenFile := flag.String("token-file", "", "file with a bearer token, instead of a client certificate")
	insecure := flag.Bool("insecure-skip-tls-verify", false, "do not check the server's certificate")
	pids := flag.String("pid", "", "the server's process ids, separated by commas")
	clients := flag.Int("clients", 16, "connections")
	l := &load{}
	flag.IntVar(&l.objects, "objects", 10000, "pods of the data set")
	flag.IntVar(&l.requests, "requests", 5000, "small requests a row")
	flag.Float64Var(&l.rate, "rate", 0, "requests a second in the rows of small requests; 0 means as fast as answers come")
	flag.StringVar(&l.namespace, "namespace", "load", "where the pods are made")
	flag.IntVar(&l.from, "from", 0, "row fill: the number of the first pod to make, to add to a data set")
	flag.IntVar(&l.watchers, "watchers", 100, "row watch: watches")
	flag.IntVar(&l.shared, "watch-connections", 0, "row watch: connections that the watches share; 0 means one for each")
	flag.IntVar(&l.changes, "changes", 200, "row watch: changes that every watch sees")
	flag.Usage = usage
	flag.Parse()
	debug.SetGCPercent(800) // its heap is small; the server needs the processor more
	l.base = strings.TrimSuffix(*server, "/")
	for _, text := range strings.Split(*pids, ",") {
		if pid, err := strconv.Atoi(text); err == nil {
			l.pids = append(l.pids, pid)
		}
	}
	config, err := tlsConfig(*ca, *cert, *key, *insecure)
	if err == nil && *tokenFile != "" {
		var data []byte
		data, err = os.ReadFile(*tokenFile)
		l.token = strings.TrimSpace(string(data))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "keelson-load:", err)
		os.Exit(2)
	}
	l.config = config
	l.connect(*clients)
	output := json.NewEncoder(os.Stdout)
	failed := false
	for _, name := range flag.Args() {
		run, found := rows[name]
		if !found {
			fmt.Fprintf(os.Stderr, "keelson-load: there is no row %q\n", name)
			os.Exit(2)
		}
		result := run(l)
		result.Name = name
		output.Encode(result)
		failed = failed || result.Operations == 0
	}
	if failed {
		os.Exit(1)
	}
}

func usage() {
	fmt.Fprintln(flag.CommandLine.Output(), "usage: keelson-load [flags] row...\nrows: "+strings.Join(slices.Sorted(maps.Keys(rows)), " "))
	flag.PrintDefaults()
}

// connect makes sure that there are that many clients, each with its own connection.
func (l *load) connect(count int) {
	for len(l.clients) < count {
		l.clients = append(l.clients, &http.Client{Transport: &http.Transport{TLSClientConfig: l.config.Clone(), ForceAttemptHTTP2: true, DisableCompression: true}})
	}
}

func tlsConfig(ca, cert, key string, insecure bool) (*tls.Config, error) {
	config := &tls.Config{InsecureSkipVerify: insecure}
	if ca != "" {
		authority, err := os.ReadFile(ca)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(authority) {
			return nil, fmt.Errorf("no certificate in %s", ca)
		}
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// do sends one request and reads the whole answer, and returns its length.
func (l *load) do(client *http.Client, method, path, accept, contentType string, body []byte, header ...string) (int64, error) {
	request, err := http.NewRequestWithContext(context.Background(), method, l.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Accept", accept)
	if l.token != "" {
		request.Header.Set("Authorization", "Bearer "+l.token)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 500))
		return 0, fmt.Errorf("%s %s: %d %s", method, path, response.StatusCode, text)
	}
	return io.Copy(io.Discard, response.Body)
}

// measure runs operations 0..count-1 over the clients and notes their cost. A rate makes it open-loop.
func (l *load) measure(count, clients int, rate float64, operation func(client *http.Client, number int) (int64, error)) row {
	clients = min(clients, len(l.clients))
	for i := range clients { // connections are part of the set-up
		l.do(l.clients[i], "GET", "/version", "application/json", "", nil)
	}
	latencies := make([]time.Duration, count)
	var next, bytes, errors atomic.Int64
	var firstError atomic.Value
	resetPeak(l.pids)
	before, begin := cpuSeconds(l.pids), time.Now()
	var group sync.WaitGroup
	one := func(client *http.Client, number int, scheduled time.Time) {
		size, err := operation(client, number)
		latencies[number] = time.Since(scheduled)
		bytes.Add(size)
		if err != nil {
			errors.Add(1)
			firstError.CompareAndSwap(nil, err.Error())
		}
	}
	if rate > 0 {
		for number := range count {
			scheduled := begin.Add(time.Duration(float64(number) / rate * float64(time.Second)))
			time.Sleep(time.Until(scheduled))
			group.Add(1)
			go func() { defer group.Done(); one(l.clients[number%clients], number, scheduled) }()
		}
	} else {
		for i := range clients {
			group.Add(1)
			go func() {
				defer group.Done()
				for {
					number := int(next.Add(1)) - 1
					if number >= count {
						return
					}
					one(l.clients[i], number, time.Now())
				}
			}()
		}
	}
	group.Wait()
	seconds := time.Since(begin).Seconds()
	cpu := cpuSeconds(l.pids) - before
	done := count - int(errors.Load())
	result := row{Operations: done, Errors: int(errors.Load()), Clients: clients, Rate: rate, Seconds: seconds, ResidentMB: memoryMB(l.pids, "VmRSS"), PeakMB: memoryMB(l.pids, "VmHWM")}
	result.latency(latencies)
	if done > 0 {
		result.PerSecond = float64(done) / seconds
		result.CPUMicros = cpu * 1e6 / float64(done)
		result.Bytes = bytes.Load() / int64(done)
	}
	if text, ok := firstError.Load().(string); ok {
		result.FirstError = text
	}
	return result
}

// latency notes the quantiles of what it is given, which it sorts.
func (r *row) latency(all []time.Duration) {
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	r.P50Millis, r.P99Millis, r.P999Millis = millis(all[len(all)/2]), millis(all[len(all)*99/100]), millis(all[len(all)*999/1000])
	r.MaxMillis = millis(all[len(all)-1])
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// cpuSeconds is user and system time of the processes by their CPU clocks, in nanoseconds; /proc counts in steps of 10 ms.
func cpuSeconds(pids []int) float64 {
	total := 0.0
	for _, pid := range pids {
		var spent syscall.Timespec
		clock := uintptr(^pid<<3 | 2) // the process's CPU clock, as clock_getcpuclockid(3) makes it
		if _, _, err := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(int32(clock)), uintptr(unsafe.Pointer(&spent)), 0); err == 0 {
			total += float64(spent.Sec) + float64(spent.Nsec)/1e9
		}
	}
	return total
}

func resetPeak(pids []int) {
	for _, pid := range pids {
		os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
	}
}

func memoryMB(pids []int, field string) float64 {
	total := 0.0
	for _, pid := range pids {
		data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		for _, line := range strings.Split(string(data), "\n") {
			if rest, found := strings.CutPrefix(line, field+":"); found {
				kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
				total += kb / 1024
			}
		}
	}
	return total
}
