package exitcode_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"testing"

	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/updateplan"
)

func TestCode(t *testing.T) {
	plugin := exec.CommandContext(t.Context(), "sh", "-c", "exit 3").Run()
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   int
	}{
		"None": {reason: "the command succeeded", want: exitcode.Ready},
		"BadInput": {
			reason: "a library states that the request is wrong", err: fmt.Errorf("plan: %w", input.Errorf("no such release")),
			want: exitcode.Usage,
		},
		"Plugin": {
			reason: "the exit code of another program is no decision", err: fmt.Errorf("credentials: %w", plugin),
			want: exitcode.Failed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			if got := exitcode.Code(tc.err, nil, &stderr); got != tc.want {
				t.Errorf("%s: exit code %d (%s), want %d", tc.reason, got, &stderr, tc.want)
			}
		})
	}
}

func TestOfPlan(t *testing.T) {
	for decision, want := range map[updateplan.Decision]int{
		updateplan.Clear: exitcode.Ready, updateplan.LaterFindings: exitcode.Ready,
		updateplan.Blocked: exitcode.Blocked, updateplan.OpenRisks: exitcode.Blocked,
		updateplan.Undecided: exitcode.Undecided, updateplan.Inconclusive: exitcode.Undecided, "Fine": exitcode.Undecided,
	} {
		var stderr bytes.Buffer
		if got := exitcode.Code(exitcode.OfPlan(updateplan.Plan{Decision: decision}), nil, &stderr); got != want {
			t.Errorf("a plan %s has the exit code %d, want %d", decision, got, want)
		}
	}
}
