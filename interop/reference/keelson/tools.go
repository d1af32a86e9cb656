//go:build tools

package keelson

import (
	_ "k8s.io/apiextensions-apiserver/test/integration/fixtures"
	_ "k8s.io/cri-streaming/pkg/streaming/portforward"
	_ "k8s.io/kubernetes/test/integration/framework"
	_ "k8s.io/sample-apiserver/pkg/apis/wardle/v1alpha1"
)
