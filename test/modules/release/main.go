// Release makes the modules of the repository require each other with the
// version that is its argument, and prints the commands that publish it. It
// runs in the root of the repository.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/openshift/update-preflight/test/modules"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: release VERSION")
	}
	tags, err := modules.Prepare(".", args[0])
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "The modules require each other with %s. Test, then commit and tag them together:\n", args[0])
	fmt.Fprintf(out, "  git commit --all --message 'release: %s'\n", args[0])
	for _, tag := range tags {
		fmt.Fprintf(out, "  git tag %s\n", tag)
	}
	fmt.Fprintf(out, "  git push --atomic origin HEAD %s\n", strings.Join(tags, " "))
	return nil
}
