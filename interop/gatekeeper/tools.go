//go:build tools

// Package gatekeeper pins Gatekeeper for interop/build.sh.
package gatekeeper

import (
	_ "github.com/open-policy-agent/gatekeeper/v3"
)
