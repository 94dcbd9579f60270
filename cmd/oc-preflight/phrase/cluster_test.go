package phrase_test

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/phrase"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/runner/fleet/roster"
)

// A command that changes something may be typed where the connected cluster is the one that is evaluated. Elsewhere it is
// a sentence that names the cluster.
func TestChangesOfAnotherCluster(t *testing.T) {
	change := finding.Change("oc -n openshift-config patch configmap admin-acks --type merge")
	for name, tc := range map[string]struct {
		reason string
		given  []string
		action finding.Action
		// want is the command, or a sentence that begins with a capital letter.
		want string
	}{
		"Connected": {
			reason: "the cluster of the request", given: []string{"run", "--to-latest", "--context", "prod"}, action: change,
			want: "oc --context prod -n openshift-config patch configmap admin-acks --type merge",
		},
		"Archive": {
			reason: "whichever cluster is current", given: []string{"targets", "--archive", "a"}, action: change,
			want: "On cluster 5d1c only: `oc -n openshift-config patch configmap admin-acks --type merge`",
		},
		"ArchiveTo": {
			reason: "the context is not that of the archive", given: []string{"targets", "--archive", "a", "--context", "prod"},
			action: change, want: "On cluster 5d1c only: `oc -n openshift-config patch configmap admin-acks --type merge`",
		},
		"Ack": {
			reason: "a request to this program may change a cluster, too", given: []string{"targets", "--archive", "a"},
			action: finding.Acknowledge("ack-4.18"), want: "On cluster 5d1c only: `oc preflight ack ack-4.18`",
		},
		"AckHostile": {
			reason: "the name of a gate is one word", given: []string{"run", "--to-latest"}, action: finding.Acknowledge("a;touch b"),
			want: "oc preflight ack 'a;touch b'",
		},
		"AckFlag": {
			reason: "the name of a gate is no flag", given: []string{"run", "--to-latest"}, action: finding.Acknowledge("--all"),
			want: "",
		},
		"Delete": {
			reason: "a deletion changes something", given: []string{"targets", "--archive", "a"},
			action: finding.Delete("oc delete pod x"), want: "On cluster 5d1c only: `oc delete pod x`",
		},
		"Read": {
			reason: "nothing is changed", given: []string{"targets", "--archive", "a"}, action: finding.Read("oc get nodes"),
			want: "oc get nodes",
		},
		"Local": {
			reason: "no cluster is concerned", given: []string{"targets", "--archive", "a"},
			action: finding.OnThisMachine("podman login r"), want: "podman login r",
		},
		"Pipeline": {
			reason: "the write is the second call", given: []string{"run", "--to-latest", "--kubeconfig", "k"},
			action: finding.Change("oc get x -o json | oc replace -f -"), want: "oc --kubeconfig k get x -o json | oc --kubeconfig k replace -f -",
		},
		"Grep": {reason: "only oc has a connection", given: []string{"run", "--to-latest", "--context", "c"}, action: finding.Read(
			"oc get prometheusrules -A -o yaml | grep -F %s", "oc get"), want: "oc --context c get prometheusrules -A -o yaml | grep -F 'oc get'"},
		"Guest": {
			reason: "the connection is that of the management cluster", given: []string{"targets", "--hosted-cluster", "c/a"},
			action: change, want: "In the guest cluster only, by its kubeconfig: `oc -n openshift-config patch configmap admin-acks --type merge`",
		},
		"GuestAck": {reason: "the acknowledgement is in the guest, which ack does not reach", given: []string{
			"targets", "--hosted-cluster",
			"c/a",
		}, action: finding.Acknowledge("g"), want: "In the guest cluster only, by its kubeconfig: `oc preflight ack g`"},
		"Token": {
			reason: "a token is not repeated, and a placeholder is no command", given: []string{
				"run", "--to-latest", "--token",
				"secret", "--context", "c",
			}, action: finding.Read("oc get nodes"),
			want: "With the token of this request as --token: `oc --context c get nodes`",
		},
		"TokenLocal": {
			reason: "no cluster is concerned", given: []string{"run", "--to-latest", "--token", "secret"},
			action: finding.OnThisMachine("podman login r"), want: "podman login r",
		},
		"ScriptOf": {
			reason: "nothing is known of it, and another cluster may be current", given: []string{"status", "--archive", "a"},
			action: finding.Script("oc delete x"), want: "On cluster 5d1c only: `oc delete x`",
		},
		"Earlier": {
			reason: "a record of an earlier version has no words", given: []string{"status", "--archive", "a"},
			action: finding.Action{Type: finding.ActionRun, Command: "oc patch x"}, want: "On cluster 5d1c only: `oc patch x`",
		},
		"Again": {
			reason: "a flag that has a value without one", given: []string{"run", "--to-latest", "--rehearse"},
			action: finding.Retry(""), want: "oc preflight run --to 4.19.3 --rehearse",
		},
		"AgainValue": {
			reason: "a value behind such a flag would be an argument", given: []string{"run", "--to-latest", "--rehearse=unguarded"},
			action: finding.Retry(""), want: "oc preflight run --to 4.19.3 --rehearse=unguarded",
		},
		"RolesOf": {
			reason: "the roles are those of the request", given: []string{"run", "--to-latest", "--rehearse"}, action: finding.Roles(),
			want: "oc preflight auth run --to 4.19.3 --rehearse",
		},
		"Script": {
			reason: "nothing is known of what an author wrote", given: []string{"run", "--to-latest", "--context", "c"},
			action: finding.Script("oc delete x"), want: "oc delete x",
		},
	} {
		t.Run(name, func(t *testing.T) {
			decided := report.Report{Cluster: report.Cluster{ID: "5d1c"}, Target: report.Target{Version: "4.19.3", Image: "r@sha256:1"}}
			decided.Findings = []finding.Finding{finding.Fail(finding.ReportedReason("R"), "m").Do(tc.action)}
			got := requested(t, "", tc.given...).WithCommands(decided).Findings[0].Actions[0]
			if got.Command+got.Sentence != tc.want || got.Command != "" && got.Sentence != "" || strings.Contains(got.Sentence, "secret") {
				t.Errorf("%s:\ncommand %s\nsentence %s\nwant %s", tc.reason, got.Command, got.Sentence, tc.want)
			}
		})
	}
}

// A row of a fleet has commands for its cluster where a flag selects that, and sentences elsewhere.
func TestChangesOfAFleet(t *testing.T) {
	change := finding.Change("oc adm uncordon a")
	for name, tc := range map[string]struct {
		reason string
		flags  []string
		action finding.Action
		want   string
	}{
		"Context": {
			reason: "the context selects it", flags: []string{"context", "a b"}, action: change,
			want: "oc --context 'a b' adm uncordon a",
		},
		"Archive": {
			reason: "an archive is not connected", flags: []string{"archive", "x"}, action: change,
			want: "On cluster shop only: `oc adm uncordon a`",
		},
		"Hub": {reason: "a report of a hub has no connection", action: change, want: "On cluster shop only: `oc adm uncordon a`"},
		"Script": {
			reason: "what an author wrote is kept", flags: []string{"context", "c"}, action: finding.Script("oc delete x"),
			want: "oc delete x",
		},
		"ScriptOf": {reason: "nothing is known of it", action: finding.Script("oc delete x"), want: "On cluster shop only: `oc delete x`"},
		"Read":     {reason: "nothing is changed", action: finding.Read("oc get nodes"), want: "oc get nodes"},
		"Ack":      {reason: "no flag selects the ConfigMap", flags: []string{"archive", "x"}, action: finding.Acknowledge("g"), want: ""},
		"AckOf": {
			reason: "the context selects it", flags: []string{"context", "c"}, action: finding.Acknowledge("g"),
			want: "oc preflight ack g --context c",
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := &cobra.Command{Use: "oc preflight", Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "oc preflight"}}
			verb := &cobra.Command{Use: "targets"}
			root.AddCommand(verb)
			row := fleet.Row{Causes: []fleet.Cause{{Name: "A", Actions: []finding.Action{tc.action}}}}
			actions := phrase.OfFleet(verb, "").Row(roster.Member{Cluster: fleet.Cluster{Name: "shop"}, Flags: tc.flags}, row).Causes[0].Actions
			got := ""
			for _, each := range actions {
				got += each.Command + each.Sentence
			}
			if got != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
