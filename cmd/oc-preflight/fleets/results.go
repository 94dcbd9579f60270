package fleets

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/openshift/update-preflight/cmd/internal/program"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/fleet/results"
)

// resultFlags are about the results that are kept.
type resultFlags struct {
	path   string
	maxAge time.Duration
}

func (f *resultFlags) add(c *cobra.Command) {
	const maxAge = time.Hour
	c.Flags().StringVar(&f.path, "results", "", "Directory in which the result of each cluster is kept. The same request continues there: a cluster that has a result is not asked again. Default: none are kept.")
	c.Flags().DurationVar(&f.maxAge, "max-age", maxAge, "With --results: age at which the result of a cluster no longer counts.")
}

// open opens the directory; nil where no results are kept.
func (f *resultFlags) open(c *cobra.Command, accepted []acceptance.Acceptance) (*results.Directory, error) {
	if f.path == "" {
		return nil, nil //nolint:nilnil // no directory
	}
	if checks := c.Flags().Lookup("checks"); checks != nil && checks.Changed {
		return nil, exitcode.BadUsage(errors.New("--results cannot be combined with --checks: what those check may change"))
	}
	opened, err := results.Open(f.path, requestOf(c, accepted), f.maxAge, time.Now)
	if err != nil {
		return nil, exitcode.BadUsage(fmt.Errorf("--results: %w", err))
	}
	return opened, nil
}

// requestOf is equal for commands that judge a cluster equally: by the program, the flags and the
// content of the acceptance files.
func requestOf(c *cobra.Command, accepted []acceptance.Acceptance) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %s\n", program.Version(), c.Name())
	other := besides()
	c.Flags().VisitAll(func(flag *pflag.Flag) {
		if !other[flag.Name] {
			fmt.Fprintf(sum, "%s=%q\n", flag.Name, flag.Value.String())
		}
	})
	for _, each := range accepted {
		fmt.Fprintf(sum, "%q %q %q %q %q %q %q %q\n", each.Risk, each.Reason, each.Owner, each.Expires, each.Versions, each.Clusters, each.Names, each.Labels)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// besides are the flags that select the clusters, and those that change how they are asked and shown.
// None changes the verdict on a cluster.
func besides() map[string]bool {
	return map[string]bool{
		"contexts": true, "kubeconfigs": true, "archives": true, "hive": true, "hosted": true,
		"max-parallel": true, "cluster-timeout": true, "results": true, "max-age": true, "watch": true, "interval": true,
		"output": true, "report": true, "color": true, "details": true, "quiet": true, "limit": true, "v": true,
		"kubeconfig": true, "context": true, "help": true,
	}
}
