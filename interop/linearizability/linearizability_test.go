// Recorded histories of concurrent clients of the embedded store, served through etcd's API, and of a real etcd of three members, with
// processes killed and started again: porcupine looks for an order of the operations that explains what every client saw. Test only; see README.md.
package linearizability

import (
	"context"
	"fmt"
	"math/rand"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	clients   = 6
	keys      = 3
	opTimeout = 2 * time.Second
	runFor    = 8 * time.Second
	checkFor  = 60 * time.Second
	killEvery = 1500 * time.Millisecond
	opsMax    = 4000
)

type kind int

const (
	get kind = iota
	put
	swap // writes when the value is what was read before
)

type input struct {
	kind     kind
	key      int
	value    int // what is written
	expected int // of swap
}

type output struct {
	unknown bool // no answer: it may have happened, or may happen later
	value   int  // of get; 0 when there is none
	swapped bool
}

var model = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := make([][]porcupine.Operation, keys)
		for _, op := range history {
			k := op.Input.(input).key
			parts[k] = append(parts[k], op)
		}
		return parts
	},
	Init: func() interface{} { return 0 },
	Step: func(state, in, out interface{}) (bool, interface{}) {
		value, i, o := state.(int), in.(input), out.(output)
		switch i.kind {
		case get:
			return o.unknown || o.value == value, value
		case put:
			return true, i.value
		default:
			if o.unknown {
				if value == i.expected {
					return true, i.value
				}
				return true, value
			}
			if o.swapped {
				return value == i.expected, i.value
			}
			return value != i.expected, value
		}
	},
	DescribeOperation: func(in, out interface{}) string { return fmt.Sprintf("%+v -> %+v", in, out) },
}

// cluster is one or more processes that serve etcd's API; one at a time is killed (SIGKILL) and started again.
type cluster struct {
	t         *testing.T
	commands  [][]string
	endpoints []string
	processes []*exec.Cmd
}

func (c *cluster) start(i int) {
	process := exec.Command(c.commands[i][0], c.commands[i][1:]...)
	if err := process.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.processes[i] = process
}

func (c *cluster) kill(i int) {
	_ = c.processes[i].Process.Kill()
	_ = c.processes[i].Wait()
}

func (c *cluster) startAll() {
	c.processes = make([]*exec.Cmd, len(c.commands))
	for i := range c.commands {
		c.start(i)
	}
	c.t.Cleanup(func() {
		for i := range c.commands {
			c.kill(i)
		}
	})
	deadline := time.Now().Add(60 * time.Second)
	for _, endpoint := range c.endpoints {
		for {
			conn, err := net.DialTimeout("tcp", endpoint, time.Second)
			if err == nil {
				conn.Close()
				break
			}
			if time.Now().After(deadline) {
				c.t.Fatal("it does not start: ", err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestEmbeddedStoreIsLinearizableWithCrashes(t *testing.T) {
	binary := os.Getenv("KEELSON_KV_ETCD")
	if binary == "" {
		t.Skip("KEELSON_KV_ETCD does not name a program that serves the embedded store through etcd's API")
	}
	address := freeAddress(t)
	c := &cluster{t: t, endpoints: []string{address}, commands: [][]string{{binary, "--data-dir=" + t.TempDir() + "/store", "--listen-client-urls=http://" + address}}}
	check(t, c)
}

// The same through the same clients on a real etcd of three members: what the other implementation of the contract rests on.
func TestEtcdClusterIsLinearizableWithCrashes(t *testing.T) {
	binary := os.Getenv("KEELSON_ETCD")
	if binary == "" {
		t.Skip("KEELSON_ETCD does not name an etcd")
	}
	c := &cluster{t: t}
	peers, names := []string{}, []string{}
	for i := 0; i < 3; i++ {
		peers = append(peers, "http://"+freeAddress(t))
		names = append(names, fmt.Sprintf("m%d=%s", i, peers[i]))
	}
	for i := 0; i < 3; i++ {
		address := freeAddress(t)
		c.endpoints = append(c.endpoints, address)
		c.commands = append(c.commands, []string{binary, fmt.Sprintf("--name=m%d", i), fmt.Sprintf("--data-dir=%s/m%d", t.TempDir(), i), "--listen-client-urls=http://" + address,
			"--advertise-client-urls=http://" + address, "--listen-peer-urls=" + peers[i], "--initial-advertise-peer-urls=" + peers[i],
			"--initial-cluster=" + strings.Join(names, ","), "--log-level=error"})
	}
	check(t, c)
}

// check runs the clients and the crashes, and asks porcupine.
func check(t *testing.T, s *cluster) {
	seed := time.Now().UnixNano()
	if text := os.Getenv("KEELSON_SEED"); text != "" {
		seed, _ = strconv.ParseInt(text, 10, 64)
	}
	t.Logf("KEELSON_SEED=%d", seed)
	s.startAll()
	runFor := runFor
	if text := os.Getenv("KEELSON_SECONDS"); text != "" {
		seconds, _ := strconv.Atoi(text)
		runFor = time.Duration(seconds) * time.Second
	}

	var (
		mu      sync.Mutex
		history []porcupine.Operation
		next    int
		wg      sync.WaitGroup
	)
	start := time.Now()
	stop := start.Add(runFor)
	now := func() int64 { return time.Since(start).Nanoseconds() }
	fresh := func() int {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next
	}
	id := 0
	for c := 0; c < clients; c++ {
		wg.Add(1)
		go func(random *rand.Rand, thread int) {
			defer wg.Done()
			for time.Now().Before(stop) {
				cli, err := clientv3.New(clientv3.Config{Endpoints: s.endpoints, DialTimeout: opTimeout})
				if err != nil {
					continue
				}
				// A client without an answer starts as a new one, so that its open operation stays open.
				thread = runClient(cli, random, thread, &mu, &history, now, fresh, &id, stop)
				cli.Close()
			}
		}(rand.New(rand.NewSource(seed+int64(c))), -1)
	}
	kills := 0
	for time.Now().Before(stop.Add(-killEvery)) {
		time.Sleep(killEvery)
		victim := kills % len(s.commands)
		s.kill(victim)
		kills++
		s.start(victim)
	}
	wg.Wait()

	mu.Lock()
	defer mu.Unlock()
	// Operations without an answer may take effect at any later time.
	end := now()
	unknown := 0
	for i := range history {
		if history[i].Output.(output).unknown {
			history[i].Return = end
			unknown++
		}
	}
	result, info := porcupine.CheckOperationsVerbose(model, history, checkFor)
	t.Logf("%d operations of %d clients, %d of them without an answer, %d crashes: %v", len(history), clients, unknown, kills, result)
	if len(history) < 50 {
		t.Fatal("too few operations to say anything")
	}
	if result != porcupine.Ok {
		path := os.TempDir() + "/keelson-linearizability.html"
		if f, err := os.Create(path); err == nil {
			_ = porcupine.Visualize(model, info, f)
			f.Close()
		}
		t.Fatalf("not linearizable: %v, see %s", result, path)
	}
}

func runClient(cli *clientv3.Client, random *rand.Rand, thread int, mu *sync.Mutex, history *[]porcupine.Operation, now func() int64,
	fresh func() int, ids *int, stop time.Time) int {
	mu.Lock()
	thread = *ids
	*ids++
	mu.Unlock()
	last := make([]int, keys)
	for time.Now().Before(stop) {
		k := random.Intn(keys)
		name := fmt.Sprintf("/k%d", k)
		in := input{kind: kind(random.Intn(3)), key: k}
		if in.kind != get {
			in.value = fresh()
			if in.value > opsMax {
				return thread
			}
		}
		in.expected = last[k]
		var out output
		ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
		call := now()
		var err error
		switch in.kind {
		case get:
			var r *clientv3.GetResponse
			if r, err = cli.Get(ctx, name); err == nil && len(r.Kvs) > 0 {
				out.value, _ = strconv.Atoi(string(r.Kvs[0].Value))
			}
			last[k] = out.value
		case put:
			_, err = cli.Put(ctx, name, strconv.Itoa(in.value))
			last[k] = in.value
		case swap:
			compare := clientv3.Compare(clientv3.Value(name), "=", strconv.Itoa(in.expected))
			if in.expected == 0 {
				compare = clientv3.Compare(clientv3.Version(name), "=", 0)
			}
			var r *clientv3.TxnResponse
			if r, err = cli.Txn(ctx).If(compare).Then(clientv3.OpPut(name, strconv.Itoa(in.value))).Commit(); err == nil {
				out.swapped = r.Succeeded
			}
			if out.swapped {
				last[k] = in.value
			}
		}
		cancel()
		out.unknown = err != nil
		if !(in.kind == get && out.unknown) { // A read without an answer says nothing.
			mu.Lock()
			*history = append(*history, porcupine.Operation{ClientId: thread, Input: in, Call: call, Output: out, Return: now()})
			mu.Unlock()
		}
		if out.unknown {
			return thread
		}
	}
	return thread
}
