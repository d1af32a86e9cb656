// Command startup starts and stops an envtest environment some times and prints the seconds of each, a pair a line.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

func main() {
	count := 5
	if len(os.Args) > 1 {
		if number, err := strconv.Atoi(os.Args[1]); err == nil {
			count = number
		}
	}
	for range count {
		environment := &envtest.Environment{}
		begin := time.Now()
		if _, err := environment.Start(); err != nil {
			fmt.Fprintln(os.Stderr, "startup:", err)
			os.Exit(1)
		}
		started := time.Now()
		if err := environment.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "startup:", err)
			os.Exit(1)
		}
		fmt.Printf("%.4f %.4f\n", started.Sub(begin).Seconds(), time.Since(started).Seconds())
	}
}
