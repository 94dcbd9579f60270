package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/verdict"
)

func TestNodesPullImages(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		mode    string
		animals map[string]animal
		code    int
		// want is the outcome and the reason of the finding ImagePull, message a part of
		// its message.
		want, message string
		decision      verdict.Decision
	}{
		"Checks": {
			reason: "the node pulls the image of the check", mode: "pull",
			animals: map[string]animal{"healthy": {Ending: "pass"}}, want: "Pass ImagesPulled", message: "1 image, all", decision: verdict.Ready,
		},
		"All": {
			reason: "the node also pulls an image without a program", mode: "pull-all",
			animals: map[string]animal{"healthy": {Ending: "pass"}}, want: "Pass ImagesPulled", message: "2 images, all", decision: verdict.Ready,
		},
		"Missing": {
			reason: "one image does not exist", mode: "pull", code: 3,
			animals: map[string]animal{"healthy": {Ending: "pass"}, "ghost": {Ending: "pass", Image: missingImage}},
			want:    "Fail ImagePullFailed", message: "cannot pull 1 of 2 images: ghost (", decision: verdict.Blocked,
		},
	} {
		t.Run(name, func(t *testing.T) {
			publish(t, tc.animals)
			result := runPreflight(t, tc.code, "--to", to, "--images", tc.mode)
			found := byName(result)
			pulled := found["ImagePull"]
			if got := fmt.Sprintf("%s %s", pulled.Outcome, pulled.Reason); got != tc.want || !strings.Contains(pulled.Message, tc.message) {
				t.Errorf("%s: %s: %q, want %s: %q", tc.reason, got, pulled.Message, tc.want, tc.message)
			}
			if space := found["NodeDiskSpace"]; space.Source != finding.SourceImage || space.Evidence["nodesWithKnownSpace"] != "1" {
				t.Errorf("%s: %+v, want the disk space that the kubelet reports", tc.reason, space)
			}
			if result.Verdict.Decision != tc.decision {
				t.Errorf("%s: %s, want %s", tc.reason, result.Verdict.Decision, tc.decision)
			}
			testCluster.ExpectNothingLeft(t)
		})
	}
}
