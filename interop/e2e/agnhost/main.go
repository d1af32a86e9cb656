// The webhooks of agnhost, the image of Kubernetes' e2e tests, as a program for this machine (interop/local_servers.py).
package main

import (
	"os"

	"github.com/spf13/cobra"
	"k8s.io/kubernetes/test/images/agnhost/webhook"
)

func main() {
	root := &cobra.Command{Use: "agnhost"}
	root.AddCommand(webhook.CmdWebhook)
	if root.Execute() != nil {
		os.Exit(1)
	}
}
