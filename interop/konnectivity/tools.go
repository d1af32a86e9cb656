//go:build tools

// Package konnectivity pins the konnectivity server and agent for interop/build.sh.
package konnectivity

import (
	_ "sigs.k8s.io/apiserver-network-proxy/cmd/agent"
	_ "sigs.k8s.io/apiserver-network-proxy/cmd/server"
)
