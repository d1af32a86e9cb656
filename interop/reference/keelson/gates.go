package keelson

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
)

// Follow sets the gates of the test program as those of the server for the time of the test: tests ask them what to expect.
func Follow(t featuregatetesting.TB, gate featuregate.MutableVersionedFeatureGate) {
	own := utilfeature.DefaultMutableFeatureGate
	if !gate.EmulationVersion().EqualTo(own.EmulationVersion()) || !gate.MinCompatibilityVersion().EqualTo(own.MinCompatibilityVersion()) {
		featuregatetesting.SetFeatureGateVersionsDuringTest(t, own, gate.EmulationVersion(), gate.MinCompatibilityVersion())
	}
	overrides := map[featuregate.Feature]bool{}
	for name := range own.GetAll() {
		if gate.Enabled(name) != own.Enabled(name) {
			overrides[name] = gate.Enabled(name)
		}
	}
	if len(overrides) > 0 {
		featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, overrides)
	}
}
