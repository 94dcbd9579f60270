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
		// want is "outcome reason" of the finding ImagePull, says what it says.
		want, says string
		decision   verdict.Decision
	}{
		"Checks": {
			reason: "the node has the image of the check, and could not start what is not in it", mode: "pull",
			animals: map[string]animal{"healthy": {Ending: "pass"}}, want: "Pass ImagesPulled", says: "all 1 images", decision: verdict.Ready,
		},
		"All": {
			reason: "an image without any program can be pulled, too", mode: "pull-all",
			animals: map[string]animal{"healthy": {Ending: "pass"}}, want: "Pass ImagesPulled", says: "all 2 images", decision: verdict.Ready,
		},
		"Missing": {
			reason: "the node says that one is not there, and has the other", mode: "pull", code: 3,
			animals: map[string]animal{"healthy": {Ending: "pass"}, "ghost": {Ending: "pass", Image: ghostImage}},
			want:    "Fail ImagePullFailed", says: "cannot pull 1 of 2 images: ghost (", decision: verdict.Blocked,
		},
	} {
		t.Run(name, func(t *testing.T) {
			publish(t, tc.animals)
			decided := reported(t, tc.code, "--to", to, "--images", tc.mode)
			found := byName(decided)
			pulled := found["ImagePull"]
			if got := fmt.Sprintf("%s %s", pulled.Outcome, pulled.Reason); got != tc.want || !strings.Contains(pulled.Message, tc.says) {
				t.Errorf("%s: %s: %q, want %s: %q", tc.reason, got, pulled.Message, tc.want, tc.says)
			}
			if space := found["NodeDiskSpace"]; space.Source != finding.SourceImage || space.Evidence["nodesWithKnownSpace"] != "1" {
				t.Errorf("%s: %+v, want what the kubelet says about its disk", tc.reason, space)
			}
			if decided.Verdict.Decision != tc.decision {
				t.Errorf("%s: %s, want %s", tc.reason, decided.Verdict.Decision, tc.decision)
			}
			house.ExpectNothingLeft(t)
		})
	}
}
