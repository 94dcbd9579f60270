package findingview_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/findingview"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// The commands of a finding name the cluster where there are two, and none is shown for a finding that does not count.
func TestCommands(t *testing.T) {
	in := func(cluster, command string) finding.Action {
		return finding.Action{Type: finding.ActionRun, Command: command, Cluster: cluster}
	}
	acknowledge := finding.Action{Type: finding.ActionAcknowledge, Command: "oc preflight ack gate"}
	for name, tc := range map[string]struct {
		reason  string
		actions []finding.Action
		bypass  *finding.Bypass
		want    []document.Command
		whole   bool
	}{
		"One": {
			reason: "there is one cluster", actions: []finding.Action{in("", "oc get a")},
			want: []document.Command{{Text: "oc get a"}},
		},
		"Management": {
			reason: "the NodePool is in the management cluster", actions: []finding.Action{in(finding.Management, "oc get a")},
			want: []document.Command{{Lead: "In the management cluster:", Text: "oc get a"}},
		},
		"Guest": {
			reason: "the node is in the guest", actions: []finding.Action{in(finding.Guest, "oc get a")},
			want: []document.Command{{Lead: "In the guest:", Text: "oc get a"}},
		},
		"NoCommand": {reason: "an action for which no command is known is a sentence of the remedy", actions: []finding.Action{in("", "")}},
		"Acknowledged": {
			reason: "a command that confirms a message is shown below all of it", actions: []finding.Action{acknowledge},
			want: []document.Command{{Text: "oc preflight ack gate", Accepts: true}}, whole: true,
		},
		"Bypassed": {
			reason: "nothing is to be done", actions: []finding.Action{in("", "oc get a")},
			bypass: &finding.Bypass{By: finding.ByAcceptedRisk},
		},
	} {
		t.Run(name, func(t *testing.T) {
			item := findingview.Item(finding.Finding{
				Finding: preflight.Finding{Name: "Check", Outcome: preflight.Fail}, Actions: tc.actions,
				Bypass: tc.bypass,
			})
			if diff := cmp.Diff(tc.want, item.Commands); diff != "" || item.Whole != tc.whole {
				t.Errorf("%s: whole is %t, want %t; -want +got:\n%s", tc.reason, item.Whole, tc.whole, diff)
			}
		})
	}
}
