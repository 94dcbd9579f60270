package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/openshift/update-preflight/runner/trigger/console"
)

// consoleFlags are about the web console of OpenShift.
type consoleFlags struct{ downloads string }

func (c *consoleFlags) add(set *pflag.FlagSet) {
	set.StringVar(&c.downloads, "cli-downloads", "", "https:// URL with the released files of oc-preflight, in a directory vX.Y.Z for each version. The web console links to those of this version. Default: no links.")
}

func (c consoleFlags) validate() error {
	if c.downloads == "" {
		return nil
	}
	if _, err := console.Address(c.downloads); err != nil {
		return fmt.Errorf("--cli-downloads: %w", err)
	}
	return nil
}
