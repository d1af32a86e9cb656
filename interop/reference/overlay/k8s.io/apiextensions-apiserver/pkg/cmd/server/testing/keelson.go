package testing

import (
	"net"
	"os"

	"github.com/spf13/pflag"

	extensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	basecompatibility "k8s.io/component-base/compatibility"
	featuregatetesting "k8s.io/component-base/featuregate/testing"

	"keelson/interop/reference/keelson"
)

// StartTestServer starts the server under test as a process. Flags that only a server for custom resources alone has are left out: it asks
// another server who a client is and what it may do.
func StartTestServer(t Logger, _ *TestServerInstanceOptions, customFlags []string, storageConfig *storagebackend.Config) (result TestServer, err error) {
	if result.TmpDir, err = os.MkdirTemp("", "keelson-reference"); err != nil {
		return result, err
	}
	defer func() {
		if result.TearDownFn == nil {
			os.RemoveAll(result.TmpDir)
		}
	}()
	gate := utilfeature.DefaultMutableFeatureGate.DeepCopy()
	flags := append(keelson.Features(gate), "--runtime-config=api/all=true", "--service-cluster-ip-range=10.0.0.0/24", "--endpoint-reconciler-type=none")
	s := options.NewCustomResourceDefinitionsServerOptions(os.Stdout, os.Stderr)
	version := compatibility.DefaultKubeEffectiveVersionForTest()
	version.SetEmulationVersion(gate.EmulationVersion())
	registry := basecompatibility.NewComponentGlobalsRegistry()
	if err := registry.Register(basecompatibility.DefaultKubeComponent, version, gate); err != nil {
		return result, err
	}
	s.ServerRunOptions.ComponentGlobalsRegistry = registry
	fs := pflag.NewFlagSet("test", pflag.PanicOnError)
	s.AddFlags(fs)
	s.RecommendedOptions.SecureServing.ServerCert.CertDirectory = result.TmpDir
	s.RecommendedOptions.SecureServing.ServerCert.FixtureDirectory = keelson.KeyFolder()
	if storageConfig != nil {
		s.RecommendedOptions.Etcd.StorageConfig = *storageConfig
		flags = append(flags, keelson.Changed(map[string]*pflag.FlagSet{"all": fs})...)
	}
	if err := s.APIEnablement.RuntimeConfig.Set("api/all=true"); err != nil {
		return result, err
	}
	customFlags = keelson.Joined(customFlags)
	if err := fs.Parse(customFlags); err != nil {
		return result, err
	}
	if err := registry.Set(); err != nil {
		return result, err
	}
	keelson.Follow(t.(featuregatetesting.TB), gate)
	flags = keelson.Override(flags, keelson.Without(customFlags, "authentication-skip-lookup", "authentication-kubeconfig", "authorization-kubeconfig", "kubeconfig"))
	accounts, err := keelson.ServiceAccountKey(result.TmpDir)
	if err != nil {
		return result, err
	}
	if result.CompletedConfig, err = configOf(s); err != nil {
		return result, err
	}
	port, err := keelson.FreePort()
	if err != nil {
		return result, err
	}
	name := "apiextensions"
	if named, ok := t.(interface{ Name() string }); ok {
		name = named.Name()
	}
	server, err := keelson.Start(t, keelson.Spec{Name: name, Dir: result.TmpDir, Port: port, Flags: append(flags, append(accounts, "--cert-dir="+result.TmpDir)...)})
	if err != nil {
		return result, err
	}
	result.ClientConfig = server.Config
	result.ClientConfig.ContentType, result.ClientConfig.DisableCompression = "", false // set by kube-apiserver alone
	result.ServerOpts = s
	result.TearDownFn = func() {
		server.Stop()
		os.RemoveAll(result.TmpDir)
	}
	return result, nil
}

// configOf is the configuration of a Go server with the same options, which never runs: tests take the place of their objects in etcd from it.
func configOf(s *options.CustomResourceDefinitionsServerOptions) (completed extensionsapiserver.CompletedConfig, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return completed, err
	}
	defer listener.Close()
	s.RecommendedOptions.SecureServing.Listener = listener
	if err := s.Complete(); err != nil {
		return completed, err
	}
	config, err := s.Config()
	if err != nil {
		return completed, err
	}
	return config.Complete(), nil
}
