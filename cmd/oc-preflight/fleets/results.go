package fleets

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/internal/program"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/question"
	"github.com/openshift/update-preflight/runner/fleet/results"
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
	option.Declare(c.Flags(), option.Option{Group: option.Output, Effect: option.OnDisplay}, "results", "max-age")
}

// open opens the directory; nil where no results are kept.
func (f *resultFlags) open(c *cobra.Command) (*results.Directory, error) {
	if f.path == "" {
		return nil, nil //nolint:nilnil // no directory
	}
	asked, err := question.Key(c)
	if err != nil {
		return nil, exitcode.BadUsage(fmt.Errorf("--results: %w", err))
	}
	opened, err := results.Open(f.path, program.Version()+" "+asked, f.maxAge, time.Now)
	if err != nil {
		return nil, exitcode.BadUsage(fmt.Errorf("--results: %w", err))
	}
	return opened, nil
}
