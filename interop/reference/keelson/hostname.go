package keelson

import (
	"os"
	_ "unsafe" // for linkname

	_ "k8s.io/apiserver/pkg/server" // has the function
)

// Tests set it (SetHostnameFuncForTests) to give each server its own identity; the package has nothing that reads it.
//
//go:linkname hostnameFunc k8s.io/apiserver/pkg/server.hostnameFunc
var hostnameFunc func() (string, error)

// HostName is the host name that the test set for the next server, or "" for the machine's.
func HostName() (string, error) {
	name, err := hostnameFunc()
	if err != nil {
		return "", err
	}
	if own, err := os.Hostname(); err != nil || own == name {
		return "", err
	}
	return name, nil
}
