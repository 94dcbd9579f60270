package plannedrun_test

import (
	"context"
	"errors"
	"testing"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/selection"
	"github.com/openshift/update-preflight/runner/trigger/plannedrun"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
)

// The options of the controller are those of all runs; the object that requests a run adds its own.
func TestOptions(t *testing.T) {
	all := runner.Options{Selection: selection.Selection{Images: image.Blobs}}
	for name, tc := range map[string]struct {
		reason   string
		object   runplan.Object
		images   image.Mode
		accepted int
	}{
		"Own":    {reason: "no object requests the run", images: image.Blobs},
		"Images": {reason: "the mode of the object comes first", object: runplan.Object{Name: "a", Images: image.Off}, images: image.Off},
		"NoMode": {reason: "an object without a mode has that of all runs", object: runplan.Object{Name: "a"}, images: image.Blobs},
		"Accepts": {
			reason: "what the object accepts is accepted", object: runplan.Object{Name: "a", Accepted: []string{"Risk"}},
			images: image.Blobs, accepted: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			made := plannedrun.Options(t.Context(), all, runplan.Target{Requester: record.Ahead, Object: tc.object})
			if made.Selection.Images != tc.images || len(made.Judgement.Accept) != tc.accepted || made.Hooks.Requester != record.Ahead {
				t.Errorf("%s: images %q, %d accepted, requested by %q", tc.reason, made.Selection.Images, len(made.Judgement.Accept),
					made.Hooks.Requester)
			}
		})
	}
}

// A run that is ended early is continued by the next leader, unless its result is not needed.
func TestStart(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		cause  error
		want   runner.Interruption
	}{
		"NotNeeded": {reason: "its target was withdrawn", cause: plannedrun.ErrNotNeeded, want: runner.CleanUp},
		"Other":     {reason: "another run comes first", cause: errors.New("postponed"), want: runner.Detach},
		"End":       {reason: "the program ends", want: runner.Detach},
	} {
		t.Run(name, func(t *testing.T) {
			var left runner.Interruption
			announced := make(chan struct{})
			preflight := func(ctx context.Context, target runplan.Target) (report.Report, error) {
				<-ctx.Done()
				left = plannedrun.Options(ctx, runner.Options{}, target).Hooks.OnInterrupt("")
				return report.Report{}, ctx.Err()
			}
			begun := plannedrun.Start(t.Context(), runplan.Target{}, runplan.Run{}, preflight, func() { close(announced) })
			begun.Cancel(tc.cause)
			result := <-begun.Ended()
			<-announced
			if left != tc.want || result.Cause == nil || tc.cause != nil && !errors.Is(result.Cause, tc.cause) {
				t.Errorf("%s: %s, ended for %v, want %s", tc.reason, left, result.Cause, tc.want)
			}
		})
	}
}

// Runs with another mode of the images are other runs.
func TestSelection(t *testing.T) {
	selects := plannedrun.Selection(runner.Options{})
	if selects("") != "" || selects(image.Manifests) != "" || selects(image.Blobs) == "" {
		t.Errorf("selections %q, %q, %q", selects(""), selects(image.Manifests), selects(image.Blobs))
	}
}
