// Package fleets_test answers: does oc-preflight judge many clusters at once, on five real API servers?
package fleets_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/test/build"
	"github.com/openshift/update-preflight/test/story"
	"github.com/openshift/update-preflight/test/story/script"
	"github.com/openshift/update-preflight/test/story/terminal"
)

// The story of `make fleet-demo`.
func TestFleet(t *testing.T) {
	var out bytes.Buffer
	shown, err := terminal.New(&out, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if shown.Preflight, err = build.Compile(t.Context(), "cmd/oc-preflight"); err != nil {
		t.Fatal(err)
	}
	fleet, stop, err := script.OpenFleet(t.Context(), shown)
	t.Cleanup(func() {
		if err := stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	err = fleet.Update(t.Context())
	t.Logf("%s", &out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"4 Blocked, 1 Unreachable", "oc preflight ack " + story.Gate + " --context " + story.FleetAck,
		"oc --context " + story.FleetOverrides + " patch clusterversion version",
		"oc --context " + story.FleetBudget + " -n shop patch poddisruptionbudget orders",
		"--accept " + story.Risk, "connection refused", "5 Ready", "the cluster runs or installs 5.1.3",
		"Good: the update from " + story.From + " to " + story.To, "Regressed: 1 problem",
		"the update was not good: 1 problem that the cluster did not have before the update",
		"1 of 2 clusters failed, and 0 may fail", "1 of 2 clusters succeeded, and 1 failed; 1 may fail", "taken by 2 clusters of this fleet",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the demo does not show %q", want)
		}
	}
}
