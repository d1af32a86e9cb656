package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"time"
)

const (
	definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	admission   = "/apis/admissionregistration.k8s.io/v1/"
	widgets     = "/apis/bench.keelson.example/v1/namespaces/%s/widgets"
	customMax   = 2000 // custom resources of the data set
)

func init() {
	rows["connect"] = connects
	rows["fill-custom"] = fillCustom
	rows["get-custom"] = func(l *load) row {
		return l.measure(l.requests, len(l.clients), l.rate, func(client *http.Client, number int) (int64, error) {
			return l.do(client, "GET", fmt.Sprintf(widgets+"/widget-%05d", l.namespace, number*7919%l.custom()), jsonType, "", nil)
		})
	}
	rows["list-custom"] = func(l *load) row {
		return l.measure(max(l.requests/50, 10), 2, 0, func(client *http.Client, _ int) (int64, error) {
			return l.do(client, "GET", fmt.Sprintf(widgets+"?resourceVersion=0", l.namespace), jsonType, "", nil)
		})
	}
	rows["patch-policy"] = func(l *load) row {
		name := "keelson-load"
		policy := map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{"failurePolicy": "Fail", "matchConstraints": matchPods("resourceRules"),
			"validations": []any{map[string]any{"expression": "object.spec.containers.all(c, c.image.startsWith('registry.invalid/')) && size(object.metadata.annotations) < 100"}}}}
		binding := map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{"policyName": name, "validationActions": []any{"Deny"}}}
		return l.admitted(map[string]any{"validatingadmissionpolicies/" + name: policy, "validatingadmissionpolicybindings/" + name: binding})
	}
	rows["patch-webhook"] = func(l *load) row {
		address, authority, err := serveReviews()
		if err != nil {
			return row{FirstError: err.Error()}
		}
		hook := map[string]any{"name": "load.keelson.example", "admissionReviewVersions": []any{"v1"}, "sideEffects": "None", "rules": matchPods("")["rules"],
			"clientConfig": map[string]any{"url": "https://" + address + "/", "caBundle": base64.StdEncoding.EncodeToString(authority)}}
		return l.admitted(map[string]any{"validatingwebhookconfigurations/keelson-load": map[string]any{"metadata": map[string]any{"name": "keelson-load"}, "webhooks": []any{hook}}})
	}
}

// connects measures new connections: TLS with the client's certificate, one small request, and the end.
func connects(l *load) row {
	return l.measure(max(l.requests/5, 10), len(l.clients), l.rate, func(_ *http.Client, _ int) (int64, error) {
		transport := &http.Transport{TLSClientConfig: l.config.Clone(), ForceAttemptHTTP2: true, DisableCompression: true}
		defer transport.CloseIdleConnections()
		return l.do(&http.Client{Transport: transport}, "GET", "/version", jsonType, "", nil)
	})
}

func (l *load) custom() int { return min(l.objects, customMax) }

// fillCustom makes a kind of about 1 kB and its objects.
func fillCustom(l *load) row {
	text := map[string]any{"type": "string"}
	schema := map[string]any{"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object", "properties": map[string]any{
		"size": map[string]any{"type": "integer", "minimum": 0}, "colour": text, "parts": map[string]any{"type": "array", "items": map[string]any{"type": "object", "properties": map[string]any{"name": text, "text": text}}}}}}}
	definition, _ := json.Marshal(map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "widgets.bench.keelson.example"},
		"spec": map[string]any{"group": "bench.keelson.example", "scope": "Namespaced", "names": map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": schema}}}}})
	l.do(l.clients[0], "POST", "/api/v1/namespaces", jsonType, jsonType, []byte(`{"metadata":{"name":"`+l.namespace+`"}}`))
	l.do(l.clients[0], "POST", definitions, jsonType, jsonType, definition)
	path := fmt.Sprintf(widgets, l.namespace)
	for range 200 { // until it is served
		if _, err := l.do(l.clients[0], "GET", path+"?limit=1", jsonType, "", nil); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	return l.measure(l.custom(), len(l.clients), l.rate, func(client *http.Client, number int) (int64, error) {
		parts := []any{}
		for i := range 10 {
			parts = append(parts, map[string]any{"name": fmt.Sprintf("part-%d", i), "text": "one of the parts of a widget of the load program"})
		}
		body, err := json.Marshal(map[string]any{"apiVersion": "bench.keelson.example/v1", "kind": "Widget", "metadata": map[string]any{"name": fmt.Sprintf("widget-%05d", number)},
			"spec": map[string]any{"size": number, "colour": "red", "parts": parts}})
		if err != nil {
			return 0, err
		}
		return l.do(client, "POST", path, jsonType, jsonType, body)
	})
}

// matchPods is a rule for updates of pods, under the name that policies or webhooks have for it.
func matchPods(name string) map[string]any {
	if name == "" {
		name = "rules"
	}
	return map[string]any{name: []any{map[string]any{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"UPDATE"}, "resources": []any{"pods"}}}}
}

// admitted measures patches while these objects of admissionregistration.k8s.io exist.
func (l *load) admitted(objects map[string]any) row {
	for path, object := range objects {
		body, _ := json.Marshal(object)
		resource, _, _ := bytes.Cut([]byte(path), []byte("/"))
		if _, err := l.do(l.clients[0], "POST", admission+string(resource), jsonType, jsonType, body); err != nil {
			return row{FirstError: err.Error()}
		}
		defer l.do(l.clients[0], "DELETE", admission+path, jsonType, "", nil)
	}
	time.Sleep(3 * time.Second) // until both servers have taken notice
	return rows["patch"](l)
}

// serveReviews answers admission reviews on its own port, with its own certificate, and allows everything.
func serveReviews() (address string, authority []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "keelson-load"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return "", nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{TLSConfig: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, Handler: http.HandlerFunc(review)}
	go server.ServeTLS(listener, "", "")
	return listener.Addr().String(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

func review(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	asked := struct {
		Request struct{ UID string }
	}{}
	if err == nil {
		err = json.Unmarshal(body, &asked)
	}
	if err != nil || r.Context().Err() == context.Canceled {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", jsonType)
	json.NewEncoder(w).Encode(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": map[string]any{"uid": asked.Request.UID, "allowed": true}})
}
