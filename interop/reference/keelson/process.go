// Package keelson starts the server under test as a process for Kubernetes' integration tests, in the place of the Go server that they would start
// inside themselves. The environment names the program (KEELSON), a folder for logs (KEELSON_LOGS) and one for keys that tests share (KEELSON_KEYS).
package keelson

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
)

// The name that the certificate of the loopback client's connections is for, and the user behind its token, as in the Go server.
const (
	loopbackName  = "apiserver-loopback-client"
	loopbackUser  = "system:apiserver"
	loopbackGroup = "system:masters"
	startTimeout  = time.Minute
	stopTimeout   = 20 * time.Second
)

// Logger is the part of testing.T that a start needs.
type Logger interface {
	Logf(format string, args ...interface{})
}

// Spec is one server to start.
type Spec struct {
	Name   string   // of the test; the log file is named after it
	Dir    string   // for the files that the server reads
	Port   int      // of 127.0.0.1, free
	Flags  []string // without --secure-port, --bind-address, and the loopback client's
	NoWait bool     // do not wait for /healthz
	// Health checks that are left out of the wait.
	Exclude []string
	// Of the process; "": the machine's. Identities of servers are made of it.
	HostName string
}

// Server is a running process.
type Server struct {
	Config *rest.Config // of a client that may do everything
	Log    string       // path
	Flags  []string     // all, for messages

	command *exec.Cmd
	ended   chan struct{}
}

var starts atomic.Int64

// FreePort returns a port of 127.0.0.1 on which nobody listened a moment ago.
func FreePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

type keyPair struct{ cert, key []byte }

// One pair for all servers of a test program: making an RSA key takes longer than starting the server.
var loopbackPair = sync.OnceValues(func() (keyPair, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKeyWithFixtures(loopbackName, nil, nil, KeyFolder())
	return keyPair{certificate, key}, err
})

// KeyFolder is a folder in which made keys are kept for the next test, or "".
func KeyFolder() string {
	folder := os.Getenv("KEELSON_KEYS")
	if folder == "" || os.MkdirAll(folder, 0o700) != nil {
		return ""
	}
	return folder
}

// Start starts the server and waits until it is healthy. The error has the end of the server's log.
func Start(t Logger, spec Spec) (*Server, error) {
	program := os.Getenv("KEELSON")
	if program == "" {
		return nil, fmt.Errorf("KEELSON does not name the server to test")
	}
	token, flags, err := loopbackFlags(spec)
	if err != nil {
		return nil, err
	}
	pair, err := loopbackPair()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(logFolder(spec.Dir), fmt.Sprintf("%s.%d.%d.log", strings.ReplaceAll(spec.Name, "/", "_"), os.Getpid(), starts.Add(1))))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	flags = append(flags, fmt.Sprintf("--secure-port=%d", spec.Port), "--bind-address=127.0.0.1")
	fmt.Fprintf(log, "%s %s\n", program, strings.Join(flags, " "))
	s := &Server{
		Log:   log.Name(),
		Flags: flags,
		Config: &rest.Config{
			Host:        fmt.Sprintf("https://127.0.0.1:%d", spec.Port),
			BearerToken: token,
			QPS:         -1,
			// As the loopback client of the Go server (BuildGenericConfig).
			ContentConfig:      rest.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf"},
			DisableCompression: true,
			TLSClientConfig:    rest.TLSClientConfig{ServerName: loopbackName, CAData: pair.cert},
		},
		command: exec.Command(program, flags...),
		ended:   make(chan struct{}),
	}
	s.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if spec.HostName != "" { // needs root: its own UTS namespace
		s.command = exec.Command("sh", append([]string{"-c", `echo "$0" >/proc/sys/kernel/hostname && exec "$@"`, spec.HostName, program}, flags...)...)
		s.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWUTS}
	}
	s.command.Stdout, s.command.Stderr = log, log
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(s.ended)
		_ = s.command.Wait()
	}()
	t.Logf("keelson: process %d on port %d, log %s", s.command.Process.Pid, spec.Port, s.Log)
	if err := s.wait(spec); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

func logFolder(otherwise string) string {
	folder := os.Getenv("KEELSON_LOGS")
	if folder == "" || os.MkdirAll(folder, 0o755) != nil {
		return otherwise
	}
	return folder
}

// loopbackFlags writes the loopback client's certificate and token. A token file that the test asked for is copied, with one more line.
func loopbackFlags(spec Spec) (token string, flags []string, err error) {
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return "", nil, err
	}
	token = hex.EncodeToString(random)
	var tokens bytes.Buffer
	for _, flag := range spec.Flags {
		if path, ok := strings.CutPrefix(flag, "--token-auth-file="); ok {
			text, err := os.ReadFile(path)
			if err != nil {
				return "", nil, err
			}
			tokens.Write(text)
			tokens.WriteString("\n")
			continue
		}
		flags = append(flags, flag)
	}
	fmt.Fprintf(&tokens, "%s,%s,%s,%s\n", token, loopbackUser, token, loopbackGroup)
	pair, err := loopbackPair()
	if err != nil {
		return "", nil, err
	}
	path := func(name string) string { return filepath.Join(spec.Dir, name) }
	for name, text := range map[string][]byte{"loopback.crt": pair.cert, "loopback.key": pair.key, "loopback-tokens.csv": tokens.Bytes()} {
		if err := os.WriteFile(path(name), text, 0o600); err != nil {
			return "", nil, err
		}
	}
	return token, append(flags, "--token-auth-file="+path("loopback-tokens.csv"),
		"--tls-sni-cert-key="+path("loopback.crt")+","+path("loopback.key")+":"+loopbackName), nil
}

// wait returns when /healthz is good, or only when the port answers if the test does not want health.
func (s *Server) wait(spec Spec) error {
	client, err := rest.HTTPClientFor(s.Config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	url := s.Config.Host + "/healthz?x"
	for _, name := range spec.Exclude {
		url += "&exclude=" + name
	}
	last := "nothing"
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		select {
		case <-s.ended:
			return fmt.Errorf("the server ended: %s", s.tail())
		default:
		}
		response, err := client.Get(url)
		if err != nil {
			continue
		}
		response.Body.Close()
		last = response.Status
		if response.StatusCode == http.StatusOK || spec.NoWait {
			return nil
		}
	}
	return fmt.Errorf("/healthz is not ok (%s): %s", last, s.tail())
}

func (s *Server) tail() string {
	text, _ := os.ReadFile(s.Log)
	if len(text) > 1000 {
		text = text[len(text)-1000:]
	}
	return string(text)
}

// Stop ends the process, in order first. It may be called twice.
func (s *Server) Stop() {
	_ = s.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(stopTimeout):
		_ = s.command.Process.Kill()
		<-s.ended
	}
}
