package runplan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
)

// Of each target, as many runs are remembered as double the pause, and the newest of them.
func TestRemember(t *testing.T) {
	began := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	image := func(digit int) string { return fmt.Sprintf("quay.io/release@sha256:%064d", digit) }
	var runs []runplan.Run
	for i := range 9 {
		for target := range 2 {
			runs = runplan.Remember(runs, runplan.Run{
				Target: update.Release{Image: image(target)},
				Ended:  began.Add(time.Duration(i) * time.Minute),
			})
		}
	}
	for target := range 2 {
		ended := runplan.State{Runs: runs}.Ended(runplan.Target{Release: update.Release{Image: image(target)}})
		if len(ended) != 7 || ended[0].Ended != began.Add(8*time.Minute) || ended[6].Ended != began.Add(2*time.Minute) {
			t.Errorf("target %d: %d runs: %v", target, len(ended), ended)
		}
	}
}
