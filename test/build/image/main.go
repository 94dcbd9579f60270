// Image builds the image of the controller and pushes it, without a container engine.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/openshift/update-preflight/test/installation"
	"github.com/openshift/update-preflight/test/release"
)

func main() {
	registry := flag.String("registry", "", "host:port of the registry")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	pullSpec, err := installation.PushImage(ctx, &release.Binaries{}, *registry)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	fmt.Println(pullSpec)
}
