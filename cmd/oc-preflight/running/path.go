package running

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
)

// pathFlags select a path of updates instead of one release.
type pathFlags struct {
	path  bool
	hops  []string
	minor string
	graph flagset.Graph
}

func (f *pathFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.path, "path", false, "Check each update of the best path to the target: \"plan\" finds it. --to names any release of the update graph, and --to-latest is the default.")
	c.Flags().StringArrayVar(&f.hops, "hop", nil, "Next release of a path to check: version or pull spec; repeated in order, the last is the target.")
	c.Flags().StringVar(&f.minor, "to-minor", "", "With --path: minor version of the target, such as 4.18: its newest release that can be reached.")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Again: option.Targeting}, "path", "to-minor")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Again: option.Targeting, Values: option.Updates}, "hop")
	f.graph.Add(c)
}

// requested reports whether a path is.
func (f pathFlags) requested() bool { return f.path || len(f.hops) > 0 }

// check rejects values that are none.
func (f pathFlags) check() error {
	return errors.Join(f.graph.Validate(), flagset.CheckMinor(f.minor))
}

// flag selects the same path again, in the graph that other flags select.
func (f pathFlags) flag(target flagset.Target) string {
	text := "--path"
	switch {
	case len(f.hops) > 0:
		text = "--hop " + strings.Join(f.hops, " --hop ")
	case f.minor != "":
		text += " --to-minor " + f.minor
	case target.Release.Version != "":
		text += " --to " + target.Release.Version
	}
	return text
}
