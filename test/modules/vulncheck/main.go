// Vulncheck fails when a published module of the repository calls code with a
// known vulnerability. It runs in the root of the repository.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/openshift/update-preflight/test/modules"
)

func main() {
	database := flag.String("db", modules.VulnerabilityDatabase, "the vulnerability database, a URL")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := modules.CheckVulnerabilities(ctx, ".", *database, os.Stdout)
	stop()
	switch {
	case errors.Is(err, modules.ErrUnreachable):
		fmt.Fprintf(os.Stderr, "warning: known vulnerabilities were NOT checked: %v\n", err)
		fmt.Fprintln(os.Stderr, "Name a copy of the database with `make lint VULNDB=file:///DIRECTORY`.")
	case err != nil:
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
