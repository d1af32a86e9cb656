//go:build tools

// Package e2e pins the Kubernetes end-to-end tests, which interop/build.sh builds as e2e.test, and their runner.
package e2e

import (
	_ "github.com/onsi/ginkgo/v2/ginkgo"
	_ "k8s.io/kubernetes/test/e2e"
)
