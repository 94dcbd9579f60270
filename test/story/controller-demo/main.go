// Controller-demo shows the controller on a real cluster: it is installed from manifests/,
// an offered update is Blocked before it is selected, and Ready when it is selected after
// the remedies. With --switches, the selection is also guarded.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/openshift/update-preflight/test/story/script"
	"github.com/openshift/update-preflight/test/story/terminal"
)

func main() {
	switches := flag.String("switches", "", "also show these switches, of "+strings.Join(script.Switches(), ", ")+"; separated by commas")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, strings.FieldsFunc(*switches, func(r rune) bool { return r == ',' }))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, switches []string) (err error) {
	if err := script.CheckSwitches(switches); err != nil {
		return fmt.Errorf("--switches: %w", err)
	}
	t, err := terminal.Open(ctx, os.Stdout, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close(ctx)) }()
	controller, err := script.NewController(ctx, t, switches...)
	if err != nil {
		return err
	}
	if err := controller.Update(ctx); err != nil {
		return err
	}
	return controller.Uninstall(ctx)
}
