//go:build tools

// Package sampleapiserver pins Kubernetes' example of an aggregated API server for interop/build.sh.
package sampleapiserver

import (
	_ "k8s.io/sample-apiserver"
)
