//go:build tools

// Package metricsserver pins metrics-server for interop/build.sh.
package metricsserver

import (
	_ "sigs.k8s.io/metrics-server/cmd/metrics-server"
)
