// Command generate writes entries.json: what "oc preflight explain" prints, from
// the comments of the source code.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/openshift/update-preflight/cmd/oc-preflight/explain"
	"github.com/openshift/update-preflight/cmd/oc-preflight/explain/source"
)

func main() {
	if err := generate(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// generate is called by go generate, in the directory of package explain.
func generate() error {
	entries, _, err := source.Parse("../../..", explain.Directories()...)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(entries, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile("entries.json", append(text, '\n'), 0o644) //nolint:gosec // a source file
}
