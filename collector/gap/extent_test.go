package gap_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/gap"
)

func TestExtent(t *testing.T) {
	pods := gap.Gap{Resource: "pods", Partial: true}
	for name, tc := range map[string]struct {
		reason   string
		read     func(context.Context)
		complete bool
		missing  []string
	}{
		"Nothing": {reason: "who read nothing has not read that there is nothing", read: func(context.Context) {}, missing: []string{"nothing was read"}},
		"Proven":  {reason: "a proof and no gap", read: func(ctx context.Context) { gap.Prove(ctx, "the list of the pods") }, complete: true},
		"Gap": {
			reason: "a proof of one list does not close the gap in another",
			read: func(ctx context.Context) {
				gap.Prove(ctx, "the list of the nodes")
				gap.Note(ctx, pods)
			},
			missing: []string{"the archive has only some of all pods"},
		},
		"Failure": {
			reason: "nor does it replace what could not be read",
			read: func(ctx context.Context) {
				gap.Prove(ctx, "the list of the nodes")
				gap.Fail(ctx, errors.New("pods is forbidden"))
			},
			missing: []string{"pods is forbidden"},
		},
		"Many": {
			reason: "what is beyond the limit of the log is not complete either",
			read: func(ctx context.Context) {
				for at := range 1000 {
					gap.Prove(ctx, fmt.Sprint(at))
				}
				gap.Note(ctx, pods)
			},
			missing: []string{"the archive has only some of all pods"},
		},
		"Inner": {
			reason: "what an inner reader reads is not the outer's, unless it is added",
			read: func(ctx context.Context) {
				inner, log := gap.Track(ctx)
				gap.Prove(inner, "the list of the pods")
				_ = log
			},
			missing: []string{"nothing was read"},
		},
		"Added": {
			reason: "the extent of a reading is that of each reader",
			read: func(ctx context.Context) {
				inner, log := gap.Track(ctx)
				gap.Prove(inner, "the list of the pods")
				gap.Add(ctx, log.Extent())
			},
			complete: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, log := gap.Track(t.Context())
			tc.read(ctx)
			got := gap.ExtentOf(ctx)
			if diff := cmp.Diff(tc.missing, got.Missing()); diff != "" || got.Complete() != tc.complete || log.Extent().Complete() != tc.complete {
				t.Errorf("%s: complete %t; missing -want, +got:\n%s", tc.reason, got.Complete(), diff)
			}
		})
	}
	if gap.ExtentOf(t.Context()).Complete() || (gap.Extent{}).Complete() {
		t.Error("a context without a log, and the zero value, are complete")
	}
	if !gap.Proven("a").And(gap.Proven("b")).Complete() || gap.Proven("a").And(gap.Extent{}).And(extentOf(t, pods)).Complete() {
		t.Error("two extents are complete if both are")
	}
}

// extentOf is an extent with a gap.
func extentOf(t *testing.T, of gap.Gap) gap.Extent {
	t.Helper()
	ctx, log := gap.Track(t.Context())
	gap.Note(ctx, of)
	return log.Extent()
}
