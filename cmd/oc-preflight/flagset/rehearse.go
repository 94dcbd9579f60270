package flagset

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/completion"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/runner/rehearsal"
)

// Rehearse is --rehearse: whether the API server is asked by dry runs.
type Rehearse struct{ mode string }

// Add adds the flag; what states what is asked.
func (f *Rehearse) Add(c *cobra.Command, what string) {
	c.Flags().StringVar(&f.mode, "rehearse", "", what+" Guarded, the default, also has the API server deny everything else; unguarded leaves that to this client.")
	c.Flags().Lookup("rehearse").NoOptDefVal = string(rehearsal.Guarded)
	option.Declare(c.Flags(), option.Option{Group: option.Jobs, Effect: option.OnAnswer}, "rehearse")
	completion.Fixed(c, "rehearse", string(rehearsal.Guarded), string(rehearsal.Unguarded))
}

// Mode is the mode that is chosen.
func (f *Rehearse) Mode() rehearsal.Mode { return rehearsal.Mode(f.mode) }

// Check rejects an unknown mode.
func (f *Rehearse) Check() error {
	if !f.Mode().Known() {
		return fmt.Errorf("--rehearse: %q is not one of %q", f.mode, []rehearsal.Mode{rehearsal.Guarded, rehearsal.Unguarded})
	}
	return nil
}
