package framework

import (
	"context"
	"os"
	"path"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/pflag"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	client "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"

	"keelson/interop/reference/keelson"

	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// StartTestServer starts the server under test as a process: the options, as the test changed them, become flags. Of a test that changes the
// configuration of the Go server, what has a flag is taken over (see bridge.go).
func StartTestServer(ctx context.Context, t testing.TB, setup TestServerSetup) (client.Interface, *rest.Config, TearDownFunc) {
	folder, err := os.MkdirTemp("", "keelson-reference")
	if err != nil {
		t.Fatal(err)
	}
	gate := utilfeature.DefaultMutableFeatureGate.DeepCopy()
	opts, sets := newOptions(t, gate, folder)
	etcd := opts.Etcd
	if setup.ModifyServerRunOptions != nil {
		setup.ModifyServerRunOptions(opts)
	}
	if opts.Etcd != etcd { // Flags are bound to the fields of the options that were there before.
		bound := pflag.NewFlagSet("etcd", pflag.PanicOnError)
		opts.Etcd.AddFlags(bound)
		bound.VisitAll(func(f *pflag.Flag) { f.DefValue = sets["etcd"].Lookup(f.Name).DefValue })
		sets["etcd"] = bound
	}
	keelson.Follow(t, gate)
	if err := opts.SecureServing.MaybeDefaultWithSelfSignedCerts("127.0.0.1", []string{"kubernetes.default.svc", "kubernetes.default", "kubernetes"}, nil); err != nil {
		t.Fatal(err)
	}
	flags := append(keelson.Features(gate), keelson.Changed(sets)...)
	var changed bridged
	if setup.ModifyServerConfig != nil {
		changed = bridge(ctx, t, opts, setup.ModifyServerConfig, folder)
		flags = keelson.Override(flags, changed.flags)
	}
	port, err := keelson.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	server, err := keelson.Start(t, keelson.Spec{Name: t.Name(), Dir: folder, Port: port, Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(server.Config)
	config.TLSClientConfig = rest.TLSClientConfig{CAFile: opts.SecureServing.ServerCert.CertKey.CertFile}
	kubeClient := client.NewForConfigOrDie(config)
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 10*time.Second, true, func(ctx context.Context) (bool, error) {
		for _, name := range []string{"default", "kube-system"} {
			if _, err := kubeClient.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{}); err != nil {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		server.Stop()
		t.Fatalf("keelson: no default namespace: %v", err)
	}
	if changed.own {
		config.BearerToken = anyToken
		kubeClient = client.NewForConfigOrDie(config)
	}
	return kubeClient, config, func() {
		server.Stop()
		for _, stop := range changed.stops {
			stop()
		}
		os.RemoveAll(folder)
	}
}

func newOptions(t testing.TB, gate featuregate.MutableVersionedFeatureGate, folder string) (*options.ServerRunOptions, map[string]*pflag.FlagSet) {
	version := compatibility.DefaultKubeEffectiveVersionForTest()
	version.SetEmulationVersion(gate.EmulationVersion())
	registry := basecompatibility.NewComponentGlobalsRegistry()
	if err := registry.Register(basecompatibility.DefaultKubeComponent, version, gate); err != nil {
		t.Fatal(err)
	}
	proxy, err := keelson.NewAuthority("front-proxy-ca")
	if err != nil {
		t.Fatal(err)
	}
	clients, err := keelson.NewAuthority("client-ca")
	if err != nil {
		t.Fatal(err)
	}
	opts := options.NewServerRunOptions()
	opts.GenericServerRunOptions.ComponentGlobalsRegistry = registry
	named := opts.Flags()
	if opts.Authentication.RequestHeader.ClientCAFile, err = proxy.Write(folder, "proxy-ca.crt"); err != nil {
		t.Fatal(err)
	}
	if opts.Authentication.ClientCert.ClientCA, err = clients.Write(folder, "client-ca.crt"); err != nil {
		t.Fatal(err)
	}
	if _, err := keelson.ServiceAccountFlags(folder, ecdsaPrivateKey); err != nil {
		t.Fatal(err)
	}
	key := path.Join(folder, "service-account.key")
	opts.SecureServing.ServerCert.CertDirectory = folder
	opts.SecureServing.ServerCert.FixtureDirectory = keelson.KeyFolder()
	opts.ServiceAccountSigningKeyFile = key
	opts.Authentication.ServiceAccounts.KeyFiles = []string{key}
	opts.Authentication.ServiceAccounts.Issuers = []string{keelson.Issuer}
	opts.Authentication.APIAudiences = []string{keelson.Issuer}
	opts.Etcd.StorageConfig.Prefix = path.Join("/", uuid.New().String(), "registry")
	opts.Etcd.StorageConfig.Transport.ServerList = []string{GetEtcdURL()}
	opts.ServiceClusterIPRanges = "10.0.0.0/24"
	opts.Authentication.RequestHeader.UsernameHeaders = []string{"X-Remote-User"}
	opts.Authentication.RequestHeader.GroupHeaders = []string{"X-Remote-Group"}
	opts.Authentication.RequestHeader.ExtraHeaderPrefixes = []string{"X-Remote-Extra-"}
	opts.Authentication.RequestHeader.AllowedNames = []string{"kube-aggregator"}
	opts.Authorization.Modes = []string{"Node", "RBAC"}
	return opts, named.FlagSets
}
