// Both ends of watches through an aggregating server, for ../proxied_watches.py.
//
//	proxiedwatches serve ADDRESS          an aggregated server of watched.example.com/v1; a line on standard input sends that many events to each watch
//	proxiedwatches watch URL CA CERT KEY COUNT PER_CONNECTION    opens watches, prints "open", then "received N" for each line with a number to wait for
package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const resources = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"watched.example.com/v1","resources":[{"name":"things","singularName":"thing",` +
	`"namespaced":true,"kind":"Thing","verbs":["get","list","watch"]}]}`

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type backend struct {
	mutex    sync.Mutex
	watchers map[chan int]bool
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/apis/watched.example.com/v1":
		fmt.Fprint(w, resources)
	case r.URL.Query().Get("watch") != "":
		wake := make(chan int, 16)
		b.mutex.Lock()
		b.watchers[wake] = true
		b.mutex.Unlock()
		defer func() {
			b.mutex.Lock()
			delete(b.watchers, wake)
			b.mutex.Unlock()
		}()
		event := fmt.Sprintf(`{"type":"MODIFIED","object":{"kind":"Thing","apiVersion":"watched.example.com/v1","metadata":{"name":"one"},"data":"%s"}}`+"\n",
			strings.Repeat("x", 1000))
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		for {
			select {
			case n := <-wake:
				for range n {
					fmt.Fprint(w, event)
					w.(http.Flusher).Flush()
				}
			case <-r.Context().Done():
				return
			}
		}
	default:
		http.NotFound(w, r)
	}
}

func serve(address string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(err)
	listener, err := net.Listen("tcp", address)
	must(err)
	b := &backend{watchers: map[chan int]bool{}}
	server := &http.Server{Handler: b, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 1000},
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}}
	go server.ServeTLS(listener, "", "")
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		n, err := strconv.Atoi(lines.Text())
		must(err)
		b.mutex.Lock()
		for wake := range b.watchers {
			wake <- n
		}
		fmt.Println(len(b.watchers))
		b.mutex.Unlock()
	}
}

func watch(url, ca, cert, key string, count, perConnection int) {
	pem, err := os.ReadFile(ca)
	must(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	pair, err := tls.LoadX509KeyPair(cert, key)
	must(err)
	var received atomic.Int64
	var opened sync.WaitGroup
	var client *http.Client
	for i := range count {
		if i%perConnection == 0 {
			client = &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}}}
		}
		opened.Add(1)
		open := func(client *http.Client) {
			response, err := client.Get(url)
			must(err)
			if response.StatusCode != 200 {
				must(fmt.Errorf("%s", response.Status))
			}
			opened.Done()
			for lines := bufio.NewReader(response.Body); ; received.Add(1) {
				if _, err := lines.ReadSlice('\n'); err != nil && err != bufio.ErrBufferFull {
					return
				}
			}
		}
		if i%perConnection == 0 {
			go open(client)
			time.Sleep(5 * time.Millisecond) // the connection is there before others want to share it
		} else {
			go open(client)
		}
	}
	opened.Wait()
	fmt.Println("open")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		n, err := strconv.ParseInt(lines.Text(), 10, 64)
		must(err)
		for received.Load() < n {
			time.Sleep(time.Millisecond)
		}
		fmt.Println("received", received.Load())
	}
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		serve(os.Args[2])
		return
	}
	if len(os.Args) != 8 {
		must(fmt.Errorf("usage: see the comment at the top"))
	}
	count, err := strconv.Atoi(os.Args[6])
	must(err)
	perConnection, err := strconv.Atoi(os.Args[7])
	must(err)
	watch(os.Args[2], os.Args[3], os.Args[4], os.Args[5], count, perConnection)
}
