//go:build tools

// Package kwok pins kwok, which plays nodes and kubelets, for interop/build.sh.
package kwok

import (
	_ "sigs.k8s.io/kwok/cmd/kwok"
)
