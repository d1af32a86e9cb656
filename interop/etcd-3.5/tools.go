//go:build tools

// Package etcd pins etcd 3.5 for interop/build.sh.
package etcd

import _ "go.etcd.io/etcd/server/v3"
