package framework

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"

	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	authorization "k8s.io/kubernetes/pkg/apis/authorization"
	authorizationconversion "k8s.io/kubernetes/pkg/apis/authorization/v1"
	"k8s.io/kubernetes/pkg/controlplane"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	generatedopenapi "k8s.io/kubernetes/pkg/generated/openapi"
	authorizationutil "k8s.io/kubernetes/pkg/registry/authorization/util"
)

// bridged is what a changed configuration comes to.
type bridged struct {
	flags []string
	stops []func() // end the webhooks
	own   bool     // the test took the loopback client's token away: its authenticator decides who every client is
}

// anyToken is sent by clients of a test whose authenticator looks at no token: without one, no webhook would be asked.
const anyToken = "any"

// bridge makes the configuration of a Go server that never runs, lets the test change it, and returns the flags that have the same effect: an
// authenticator or authorizer of the test becomes a webhook that this process serves.
func bridge(ctx context.Context, t testing.TB, opts *options.ServerRunOptions, modify func(*controlplane.Config), folder string) bridged {
	var flags []string
	var stops []func()
	config := configOf(ctx, t, opts)
	generic := config.ControlPlane.Generic
	authn, authz, sources := generic.Authentication.Authenticator, generic.Authorization.Authorizer, config.ControlPlane.Extra.APIResourceConfigSource
	expiration, audiences := config.ControlPlane.Extra.ServiceAccountMaxExpiration, strings.Join(generic.Authentication.APIAudiences, ",")
	modify(config)
	if !same(authn, generic.Authentication.Authenticator) {
		hook := &tokenHook{generic.Authentication.Authenticator, len(generic.Authentication.APIAudiences) > 0}
		path, stop := serve(t, hook, folder, "authentication")
		stops = append(stops, stop)
		flags = append(flags, "--authentication-token-webhook-config-file="+path, "--authentication-token-webhook-version=v1", "--authentication-token-webhook-cache-ttl=0s")
	}
	if !same(authz, generic.Authorization.Authorizer) {
		path, stop := serve(t, &accessHook{generic.Authorization.Authorizer}, folder, "authorization")
		stops = append(stops, stop)
		flags = append(flags, "--authorization-webhook-config-file="+path, "--authorization-webhook-version=v1", "--authorization-webhook-cache-authorized-ttl=0s",
			"--authorization-webhook-cache-unauthorized-ttl=0s", "--authorization-mode=Webhook,"+strings.Join(opts.Authorization.Modes, ","))
	}
	if now, ok := config.ControlPlane.Extra.APIResourceConfigSource.(*serverstorage.ResourceConfig); ok && !same(sources, config.ControlPlane.Extra.APIResourceConfigSource) {
		flags = append(flags, runtimeConfig(now)...)
	}
	if now := config.ControlPlane.Extra.ServiceAccountMaxExpiration; now != expiration {
		flags = append(flags, "--service-account-max-token-expiration="+now.String(), fmt.Sprintf("--service-account-extend-token-expiration=%v", config.ControlPlane.Extra.ExtendExpiration))
	}
	if now := strings.Join(generic.Authentication.APIAudiences, ","); now != audiences && now != "" {
		flags = append(flags, "--api-audiences="+now)
	}
	if kind := config.Extra.EndpointReconcilerType; string(kind) != opts.EndpointReconcilerType {
		flags = append(flags, "--endpoint-reconciler-type="+string(kind))
	}
	return bridged{flags: flags, stops: stops, own: generic.LoopbackClientConfig.BearerToken == ""}
}

func configOf(ctx context.Context, t testing.TB, opts *options.ServerRunOptions) *controlplane.Config {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	opts.SecureServing.Listener = listener
	completed, err := opts.Complete(ctx)
	if err != nil {
		t.Fatal(err)
	}
	schemes := []*runtime.Scheme{legacyscheme.Scheme, apiextensionsapiserver.Scheme, aggregatorscheme.Scheme}
	generic, informers, storage, err := controlplaneapiserver.BuildGenericConfig(completed.CompletedOptions, schemes, controlplane.DefaultAPIResourceConfigSource(), generatedopenapi.GetOpenAPIDefinitions)
	if err != nil {
		t.Fatal(err)
	}
	config, _, _, err := app.CreateKubeAPIServerConfig(completed, generic, informers, storage)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// same compares two interface values; those of a type that cannot be compared are different.
func same(a, b interface{}) (equal bool) {
	defer func() {
		if recover() != nil {
			equal = false
		}
	}()
	return a == b
}

// runtimeConfig is --runtime-config for what is enabled and is not by default.
func runtimeConfig(config *serverstorage.ResourceConfig) []string {
	defaults := controlplane.DefaultAPIResourceConfigSource()
	var entries []string
	for version, enabled := range config.GroupVersionConfigs {
		if !legacyscheme.Scheme.IsVersionRegistered(version) { // a test of all versions there ever were
			continue
		}
		if was, ok := defaults.GroupVersionConfigs[version]; enabled && (!ok || !was) {
			entries = append(entries, version.String()+"=true")
		}
	}
	for resource, enabled := range config.ResourceConfigs {
		if was, ok := defaults.ResourceConfigs[resource]; enabled && (!ok || !was) {
			entries = append(entries, resource.GroupVersion().String()+"/"+resource.Resource+"=true")
		}
	}
	if len(entries) == 0 {
		return nil
	}
	return []string{"--runtime-config=" + strings.Join(entries, ",")}
}

const hookKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: it, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: it, user: {}}]
contexts: [{name: it, context: {cluster: it, user: it}}]
current-context: it
`

func serve(t testing.TB, handler http.Handler, folder, name string) (kubeconfig string, stop func()) {
	server := httptest.NewTLSServer(handler)
	authority := filepath.Join(folder, name+"-webhook.crt")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	kubeconfig = filepath.Join(folder, name+"-webhook.kubeconfig")
	for path, text := range map[string][]byte{authority: certificate, kubeconfig: []byte(fmt.Sprintf(hookKubeconfig, server.URL, authority))} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return kubeconfig, func() {
		server.CloseClientConnections()
		server.Close()
	}
}

type tokenHook struct {
	authenticator authenticator.Request
	audiences     bool // the server of the test looks at them
}

func (h *tokenHook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review authenticationv1.TokenReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx := r.Context()
	if h.audiences && len(review.Spec.Audiences) > 0 {
		ctx = authenticator.WithAudiences(ctx, review.Spec.Audiences)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://127.0.0.1/", nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	request.Header.Set("Authorization", "Bearer "+review.Spec.Token)
	response, ok, err := h.authenticator.AuthenticateRequest(request)
	if err != nil {
		review.Status.Error = err.Error()
	}
	if ok && response != nil {
		review.Status.Authenticated = true
		review.Status.Audiences = response.Audiences
		if len(review.Status.Audiences) == 0 {
			review.Status.Audiences = review.Spec.Audiences
		}
		review.Status.User = authenticationv1.UserInfo{Username: response.User.GetName(), UID: response.User.GetUID(), Groups: response.User.GetGroups()}
		for key, values := range response.User.GetExtra() {
			if review.Status.User.Extra == nil {
				review.Status.User.Extra = map[string]authenticationv1.ExtraValue{}
			}
			review.Status.User.Extra[key] = values
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

type accessHook struct{ authorizer authorizer.Authorizer }

func (h *accessHook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var spec authorization.SubjectAccessReviewSpec
	if err := authorizationconversion.Convert_v1_SubjectAccessReviewSpec_To_authorization_SubjectAccessReviewSpec(&review.Spec, &spec, nil); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	decision, reason, err := h.authorizer.Authorize(r.Context(), authorizationutil.AuthorizationAttributesFrom(spec))
	review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: decision == authorizer.DecisionAllow, Denied: decision == authorizer.DecisionDeny, Reason: reason}
	if err != nil {
		review.Status.EvaluationError = err.Error()
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}
