// One JSON review over a warm TLS connection: Go's net/http beside Keelson's webhook client, against the same server in its own process:
// `tools/beside.sh call`.
package main

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"keelson/interop/beside"
)

const budget = 80_000 // nanoseconds of CPU a call

type attributes struct {
	Namespace string `json:"namespace"`
	Verb      string `json:"verb"`
	Group     string `json:"group"`
	Version   string `json:"version"`
	Resource  string `json:"resource"`
	Name      string `json:"name"`
}

type review struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		ResourceAttributes attributes `json:"resourceAttributes"`
		User               string     `json:"user"`
		Groups             []string   `json:"groups"`
	} `json:"spec"`
	Status struct {
		Allowed bool   `json:"allowed"`
		Reason  string `json:"reason,omitempty"`
	} `json:"status"`
}

func newReview() *review {
	r := &review{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"}
	r.Spec.ResourceAttributes = attributes{"default", "get", "", "v1", "pods", "web-7d4b9c6f5-x2v8k"}
	r.Spec.User = "system:serviceaccount:default:web"
	r.Spec.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"}
	return r
}

// serve allows every review until its standard input ends. It prints its address, then its certificate.
func serve() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	beside.Must(err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	beside.Must(err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	beside.Must(err)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		answer := newReview()
		answer.Status.Allowed = true
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(answer)
	})
	server := &http.Server{Handler: handler, TLSConfig: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}}
	go server.ServeTLS(listener, "", "")
	fmt.Println(listener.Addr())
	pem.Encode(os.Stdout, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	os.Stdout.Close()
	io.Copy(io.Discard, os.Stdin)
}

func call(client *http.Client, url string) {
	body, err := json.Marshal(newReview())
	beside.Must(err)
	response, err := client.Post(url, "application/json", bytes.NewReader(body))
	beside.Must(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	beside.Must(err)
	var answer review
	beside.Must(json.Unmarshal(text, &answer))
	if !answer.Status.Allowed {
		beside.Must(fmt.Errorf("not allowed"))
	}
}

func newClient(ca []byte, http2 bool) *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: http2}
	return &http.Client{Transport: transport}
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "serve" {
		serve()
		return
	}
	self, err := os.Executable()
	beside.Must(err)
	server := exec.Command(self, "serve")
	stop, err := server.StdinPipe()
	beside.Must(err)
	output, err := server.StdoutPipe()
	beside.Must(err)
	beside.Must(server.Start())
	reader := bufio.NewReader(output)
	address, err := reader.ReadString('\n')
	beside.Must(err)
	ca, err := io.ReadAll(reader)
	beside.Must(err)
	url := "https://" + address[:len(address)-1] + "/authorize"
	folder, err := os.MkdirTemp("", "callbench")
	beside.Must(err)
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "ca.crt")
	beside.Must(os.WriteFile(file, ca, 0o600))
	request, err := json.Marshal(newReview())
	beside.Must(err)

	h2, h1 := newClient(ca, true), newClient(ca, false)
	theirs := map[string]func(){
		"BM_ReviewHTTP2/process_time": func() { call(h2, url) },
		"BM_ReviewHTTP1/process_time": func() { call(h1, url) },
	}
	missed := 0
	fmt.Printf("%-30s %12s %12s %8s\n", "operation", "Go ns", "Keelson ns", "ratio")
	for _, ours := range beside.Run("KEELSON_CALL_URL="+url, "KEELSON_CALL_CA="+file, "KEELSON_CALL_BODY="+string(request)) {
		best := beside.Measure(theirs[ours.Name]).Nanoseconds
		for range 2 {
			best = min(best, beside.Measure(theirs[ours.Name]).Nanoseconds)
		}
		mark := ""
		if ours.Time > budget {
			mark = "  above the budget"
			missed++
		}
		fmt.Printf("%-30s %12.0f %12.0f %7.1fx%s\n", ours.Name, best, ours.Time, best/ours.Time, mark)
	}
	fmt.Printf("budget: %d ns of CPU a call, exceeded by %d\n", budget, missed)
	stop.Close()
	beside.Must(server.Wait())
}
