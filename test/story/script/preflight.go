// Package script answers: which commands do the demos show, in which order?
package script

import (
	"context"
	"path/filepath"

	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/story"
	"github.com/openshift/update-preflight/test/story/terminal"
)

// Preflight shows a preflight that is Blocked, the remedies that its report names, the
// preflight that is Ready after them, and the plan to a later release.
func Preflight(ctx context.Context, t *terminal.Terminal) error {
	preflight := []string{"oc-preflight", "run", "--to-latest", "--prometheus", t.Monitoring}
	t.Title("Is it safe to update to the newest available release?")
	page := filepath.Join(t.Root, "bin", "report.html")
	if err := t.Run(ctx, exit.Blocked, append(preflight, "--report", "html="+page)...); err != nil {
		return err
	}
	t.Step("the same report as a page: " + page)
	if err := t.Follow(ctx); err != nil {
		return err
	}
	t.Title("Is it safe after the remedies?")
	if err := t.Run(ctx, exit.Ready, preflight...); err != nil {
		return err
	}
	t.Title("Which updates lead to " + story.Later + ", and how long do they take?")
	plan := []string{"oc-preflight", "plan", "--to", story.Later, "--graph", story.GraphFile(t.Directory), "--prometheus", t.Monitoring}
	if err := t.Run(ctx, exit.Ready, plan...); err != nil {
		return err
	}
	t.Show("\n")
	t.Step("done: Blocked with causes and remedies, then Ready, then the plan of later updates")
	return nil
}
