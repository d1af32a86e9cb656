//go:build tools

// Package certmanager pins cert-manager for interop/build.sh. v1.11 is the last minor whose programs are packages of the module itself.
package certmanager

import (
	_ "github.com/cert-manager/cert-manager/cmd/cainjector"
	_ "github.com/cert-manager/cert-manager/cmd/controller"
	_ "github.com/cert-manager/cert-manager/cmd/webhook"
)
