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
// preflight that is Ready after them, the plan to a later release, and that the update was good.
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
	if err := t.Run(ctx, exit.Ready, append(preflight, "--rehearse")...); err != nil {
		return err
	}
	t.Title("Which updates lead to " + story.Later + ", and how long do they take?")
	plan := []string{"oc-preflight", "plan", "--to", story.Later, "--graph", story.GraphFile(t.Directory), "--prometheus", t.Monitoring}
	if err := t.Run(ctx, exit.Ready, plan...); err != nil {
		return err
	}
	t.Title("Was the update good?")
	t.Step("reporting that the cluster has run " + story.To +
		" for an hour, in place of CVO, and moving the baseline of the preflight before that")
	if err := story.Update(ctx, t.Cluster, t.Release); err != nil {
		return err
	}
	if err := t.RunLines(ctx, exit.Ready, "Good", after("--prometheus", t.Monitoring)...); err != nil {
		return err
	}
	t.Show("\n")
	t.Step("done: Blocked with causes and remedies, then Ready, the plan of later updates, and a good update")
	return nil
}

// after is the command that waits for the judgement of the last update.
func after(more ...string) []string {
	return append([]string{"oc-preflight", "after", "--watch", "--interval", "2s"}, more...)
}
