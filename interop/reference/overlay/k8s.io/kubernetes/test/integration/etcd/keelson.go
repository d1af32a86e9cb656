package etcd

import (
	"context"
	"os"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	apiextensionsclientset "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/apiserver/pkg/util/feature"
	cacheddiscovery "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	clientset "k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	basecompatibility "k8s.io/component-base/compatibility"

	"keelson/interop/reference/keelson"

	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	integration "k8s.io/kubernetes/cmd/kube-apiserver/app/testing"
	"k8s.io/kubernetes/test/integration/framework"
)

// StartRealAPIServerOrDie starts the server under test as a process, with every API on, JSON in etcd and nothing in /registry.
func StartRealAPIServerOrDie(t *testing.T, configFuncs ...func(*options.ServerRunOptions)) *APIServer {
	folder, err := os.MkdirTemp("", "keelson-reference")
	if err != nil {
		t.Fatal(err)
	}
	gate := feature.DefaultMutableFeatureGate.DeepCopy()
	version := compatibility.DefaultKubeEffectiveVersionForTest()
	version.SetEmulationVersion(gate.EmulationVersion())
	registry := basecompatibility.NewComponentGlobalsRegistry()
	if err := registry.Register(basecompatibility.DefaultKubeComponent, version, gate); err != nil {
		t.Fatal(err)
	}
	opts := options.NewServerRunOptions()
	opts.GenericServerRunOptions.ComponentGlobalsRegistry = registry
	named := opts.Flags()
	opts.SecureServing.ServerCert.CertDirectory = folder
	opts.Etcd.StorageConfig.Transport.ServerList = []string{framework.GetEtcdURL()}
	opts.Etcd.DefaultStorageMediaType = runtime.ContentTypeJSON
	opts.ServiceClusterIPRanges = "10.0.0.0/24"
	opts.Authentication.APIAudiences = []string{keelson.Issuer}
	opts.Authorization.Modes = []string{"RBAC"}
	opts.Admission.GenericAdmission.DisablePlugins = []string{"ServiceAccount"}
	opts.APIEnablement.RuntimeConfig["api/all"] = "true"
	for _, f := range configFuncs {
		f(opts)
	}
	keelson.Follow(t, gate)
	accounts, err := keelson.ServiceAccountFlags(folder, ecdsaPrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	etcdClient, kv, err := integration.GetEtcdClients(opts.Etcd.StorageConfig.Transport)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Delete(context.Background(), "/registry/", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	port, err := keelson.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	flags := append(keelson.Features(gate), keelson.Override(keelson.Changed(named.FlagSets), accounts)...)
	server, err := keelson.Start(t, keelson.Spec{Name: t.Name(), Dir: folder, Port: port, Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	cleanup := func() {
		server.Stop()
		etcdClient.Close()
		os.RemoveAll(folder)
	}
	config := restclient.CopyConfig(server.Config)
	config.QPS, config.Burst = 99999, 9999
	restclient.SetDefaultWarningHandler(restclient.NoWarnings{})
	client := clientset.NewForConfigOrDie(config)
	CreateTestCRDs(t, apiextensionsclientset.NewForConfigOrDie(config), false, GetCustomResourceDefinitionData()...)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cacheddiscovery.NewMemCacheClient(client.Discovery()))
	mapper.Reset()
	_, resources, err := client.Discovery().ServerGroupsAndResources()
	if err != nil {
		cleanup()
		t.Fatal(err)
	}
	return &APIServer{
		Client: client, Dynamic: dynamic.NewForConfigOrDie(config), Config: config, KV: kv, Mapper: mapper,
		Resources: GetResources(t, resources), Cleanup: cleanup,
	}
}
