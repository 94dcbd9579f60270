package exitcode_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"testing"

	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/collector/input"
)

func TestCode(t *testing.T) {
	plugin := exec.CommandContext(t.Context(), "sh", "-c", "exit 3").Run()
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   int
	}{
		"None":     {reason: "the command succeeded", want: exitcode.Ready},
		"BadInput": {reason: "a library states that the request is wrong", err: fmt.Errorf("plan: %w", input.Errorf("no such release")), want: exitcode.Usage},
		"Plugin":   {reason: "the exit code of another program is no decision", err: fmt.Errorf("credentials: %w", plugin), want: exitcode.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			if got := exitcode.Code(tc.err, "oc preflight", &stderr); got != tc.want {
				t.Errorf("%s: exit code %d (%s), want %d", tc.reason, got, &stderr, tc.want)
			}
		})
	}
}
