package testing

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	genericfeatures "k8s.io/apiserver/pkg/features"
	serveroptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/tracing"
	"k8s.io/kube-aggregator/pkg/apiserver"
	netutils "k8s.io/utils/net"

	"keelson/interop/reference/keelson"

	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	"k8s.io/kubernetes/test/utils/ktesting"
)

// StartTestServer starts the server under test as a process, with the flags that the test asked for.
func StartTestServer(t ktesting.TB, instanceOptions *TestServerInstanceOptions, customFlags []string, storageConfig *storagebackend.Config) (result TestServer, err error) {
	if instanceOptions == nil {
		instanceOptions = NewDefaultTestServerOptions()
	}
	if instanceOptions.BinaryVersion != "" {
		return result, fmt.Errorf("keelson: the version of the program cannot be set (%s)", instanceOptions.BinaryVersion)
	}
	if result.TmpDir, err = os.MkdirTemp("", "keelson-reference"); err != nil {
		return result, err
	}
	defer func() {
		if result.TearDownFn == nil {
			os.RemoveAll(result.TmpDir)
		}
	}()

	gate := utilfeature.DefaultMutableFeatureGate.DeepCopy()
	base := keelson.Features(gate)
	s, sets, err := newOptions(gate, instanceOptions)
	if err != nil {
		return result, err
	}
	fs := pflag.NewFlagSet("test", pflag.PanicOnError)
	for _, set := range sets {
		fs.AddFlagSet(set)
	}
	s.SecureServing.ServerCert.CertDirectory = result.TmpDir
	s.SecureServing.ServerCert.FixtureDirectory = keelson.KeyFolder()
	s.ServiceClusterIPRanges = "10.0.0.0/16"
	s.Etcd.StorageConfig = *storageConfig
	if s.SecureServing.BindPort, err = keelson.FreePort(); err != nil {
		return result, err
	}
	s.SecureServing.ExternalAddress = netutils.ParseIPSloppy("127.0.0.1")
	base = append(base, keelson.Changed(sets)...)
	if instanceOptions.EnableCertAuth {
		certFlags, err := certificates(s, instanceOptions, result.TmpDir)
		if err != nil {
			return result, err
		}
		base = append(base, certFlags...)
	}

	customFlags = keelson.Joined(customFlags)
	if err := fs.Parse(customFlags); err != nil {
		return result, err
	}
	if err := s.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return result, err
	}
	keelson.Follow(t, gate)
	accounts, err := keelson.ServiceAccountFlags(result.TmpDir, ecdsaPrivateKey)
	if err != nil {
		return result, err
	}
	flags := keelson.Override(keelson.Override(base, customFlags), accounts)
	if err := s.SecureServing.MaybeDefaultWithSelfSignedCerts("127.0.0.1", []string{"kubernetes.default.svc", "kubernetes.default", "kubernetes"}, nil); err != nil {
		return result, err
	}
	pair := s.SecureServing.ServerCert.CertKey
	flags = keelson.Override(flags, []string{"--tls-cert-file=" + pair.CertFile, "--tls-private-key-file=" + pair.KeyFile})

	if instanceOptions.EnableCertAuth && gate.Enabled(genericfeatures.UnknownVersionInteroperabilityProxy) {
		s.PeerCAFile = pair.CertFile
		flags = append(flags, "--peer-ca-file="+s.PeerCAFile, "--peer-advertise-ip=127.0.0.1", fmt.Sprintf("--peer-advertise-port=%d", s.SecureServing.BindPort))
	}
	if period := controlplaneapiserver.LeaseCandidateGCPeriod; period != 30*time.Minute { // a variable that tests set
		flags = append(flags, "--lease-candidate-gc-period="+period.String())
	}
	hostName, err := keelson.HostName()
	if err != nil {
		return result, err
	}

	spec := keelson.Spec{HostName: hostName, Name: t.Name(), Dir: result.TmpDir, Port: s.SecureServing.BindPort, Flags: flags, NoWait: instanceOptions.SkipHealthzCheck}
	if instanceOptions.StorageVersionWrapFunc != nil {
		spec.Exclude = []string{"poststarthook/" + apiserver.StorageVersionPostStartHookName}
	}
	server, err := keelson.Start(t, spec)
	if err != nil {
		return result, err
	}
	if err := waitForDefaultNamespace(server.Config); err != nil {
		server.Stop()
		return result, err
	}
	etcdClient, _, err := GetEtcdClients(storageConfig.Transport)
	if err != nil {
		server.Stop()
		return result, err
	}
	result.ClientConfig = restclient.CopyConfig(server.Config)
	result.ClientConfig.QPS = 1000
	result.ClientConfig.Burst = 10000
	if s.Traces.ConfigFile != "" { // The Go server's own client sends the trace of its context.
		result.ClientConfig.Wrap(tracing.WrapperFor(tracing.NewNoopTracerProvider()))
	}
	result.ServerOpts = s
	result.EtcdClient = etcdClient
	result.EtcdStoragePrefix = storageConfig.Prefix
	result.TearDownFn = func() {
		server.Stop()
		etcdClient.Close()
		os.RemoveAll(result.TmpDir)
	}
	return result, nil
}

func newOptions(gate featuregate.MutableVersionedFeatureGate, instanceOptions *TestServerInstanceOptions) (*options.ServerRunOptions, map[string]*pflag.FlagSet, error) {
	version := compatibility.DefaultKubeEffectiveVersionForTest()
	version.SetEmulationVersion(gate.EmulationVersion())
	version.SetMinCompatibilityVersion(gate.MinCompatibilityVersion())
	registry := basecompatibility.NewComponentGlobalsRegistry()
	if err := registry.Register(basecompatibility.DefaultKubeComponent, version, gate); err != nil {
		return nil, nil, err
	}
	s := options.NewServerRunOptions()
	s.GenericServerRunOptions.ComponentGlobalsRegistry = registry
	named := s.Flags()
	if instanceOptions.RequestTimeout > 0 {
		s.GenericServerRunOptions.RequestTimeout = instanceOptions.RequestTimeout
	}
	return s, named.FlagSets, nil
}

// certificates makes the authorities of clients and of the front proxy, and the server's own client certificate for aggregated servers.
func certificates(s *options.ServerRunOptions, instanceOptions *TestServerInstanceOptions, folder string) ([]string, error) {
	var proxy keelson.Authority
	var err error
	if given := instanceOptions.ProxyCA; given != nil {
		proxy = keelson.Authority{Cert: given.ProxySigningCert, Key: given.ProxySigningKey}
	} else if proxy, err = keelson.NewAuthority("front-proxy-ca"); err != nil {
		return nil, err
	}
	clients, err := keelson.NewAuthority("client-ca")
	if err != nil {
		return nil, err
	}
	headers := serveroptions.NewDelegatingAuthenticationOptions().RequestHeader
	if headers.ClientCAFile, err = proxy.Write(folder, "proxy-ca.crt"); err != nil {
		return nil, err
	}
	if s.Authentication.ClientCert.ClientCA, err = clients.Write(folder, "client-ca.crt"); err != nil {
		return nil, err
	}
	if s.ProxyClientCertFile, s.ProxyClientKeyFile, err = proxy.Client(folder, "misty"); err != nil {
		return nil, err
	}
	flags := []string{
		"--requestheader-client-ca-file=" + headers.ClientCAFile, "--requestheader-allowed-names=ash,misty,brock",
		"--client-ca-file=" + s.Authentication.ClientCert.ClientCA,
		"--proxy-client-cert-file=" + s.ProxyClientCertFile, "--proxy-client-key-file=" + s.ProxyClientKeyFile,
	}
	for name, values := range map[string][]string{
		"requestheader-username-headers":     headers.UsernameHeaders,
		"requestheader-uid-headers":          headers.UIDHeaders,
		"requestheader-group-headers":        headers.GroupHeaders,
		"requestheader-extra-headers-prefix": headers.ExtraHeaderPrefixes,
	} {
		for _, value := range values {
			flags = append(flags, "--"+name+"="+value)
		}
	}
	return flags, nil
}

func waitForDefaultNamespace(config *restclient.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(context.Background(), 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("keelson: no default namespace: %w", err)
	}
	return nil
}
