package tableview_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/runner/fleet/tableview"
	"github.com/openshift/update-preflight/test/golden"
)

// example is a fleet with every state.
func example() tableview.Table {
	ack := fleet.Cause{
		Name: "AdminAck-ack-4.18-boot-images", Outcome: preflight.Fail, Reason: "AdminAckRequired",
		Message:     "Read https://docs.example.com/boot-images first.",
		Remediation: "Do what the message requires, then acknowledge the gate.",
		Actions: []finding.Action{{
			Type: finding.ActionAcknowledge, Value: "ack-4.18-boot-images",
			Command: "oc preflight ack ack-4.18-boot-images --context prod-01",
		}},
	}
	drain := fleet.Cause{
		Name: "Drain", Outcome: preflight.Unknown, Reason: "BudgetUnknown", Message: "PodDisruptionBudget shop/db is not up to date.",
		Remediation: "Check the controller of the budget.", Acceptable: true,
		Actions: []finding.Action{{
			Type: finding.ActionAccept, Value: "Drain",
			Command: "oc preflight fleet targets --to 4.19.12 --contexts 'prod-*' --accept Drain",
		}},
	}
	row := func(name string, state fleet.State, version, message string, causes ...fleet.Cause) fleet.Row {
		return fleet.Row{
			Cluster: fleet.Cluster{Name: name, ID: "id-" + name, Source: "context " + name}, State: state, Version: version,
			Target: "4.19.12", Message: message, Causes: causes, Observed: "2026-11-26T05:00:00Z",
		}
	}
	after := func(name, status, message string) fleet.Row {
		made := row(name, fleet.Updated, "4.19.12", "it runs 4.19.12 already; nothing was evaluated")
		made.Update = &fleet.Update{
			Stage: "Updated", Since: "2026-11-26T03:00:00Z",
			Judgement: &fleet.Judgement{Status: status, Message: message},
		}
		if status != "" {
			made.Update.Judgement.Since = "2026-11-26T04:00:00Z"
		}
		made.LastUpdate = &fleet.LastUpdate{
			From: "4.18.21", To: "4.19.12",
			Outcome: map[string]string{"True": "Good", "False": "Regressed", "Unknown": "Unknown"}[status],
		}
		if status == "False" {
			made.LastUpdate.Objects = []string{"Deployment shop/web", "Route shop/web"}
		}
		if status == "" {
			made.LastUpdate = nil // a hub does not state it
		}
		return made
	}
	rows := []fleet.Row{
		row("prod-clear", fleet.Clear, "4.18.21", ""),
		row("prod-done", fleet.Updated, "4.19.12", "it runs 4.19.12 already; nothing was evaluated"),
		after("prod-good", "True", "the update from 4.18.21 to 4.19.12 has settled, and nothing that was good before is bad"),
		after("prod-regressed", "False", "2 problems that the cluster did not have before the update"),
		after("prod-unread", "Unknown", "unknown whether the stored judgement of run 0123 is authentic: the key may not be read by this user"),
		after("prod-hub", "", ""),
		row("prod-both", fleet.Blocked, "4.18.20", "", ack, drain),
		row("prod-drain", fleet.Undecided, "4.18.21", "", drain),
		row("prod-away", fleet.Unreachable, "", "it did not answer within 2m0s"),
		row("prod-asleep", fleet.Hibernating, "4.18.21", "spec.powerState is Hibernating"),
		row("prod-new", fleet.NotInstalled, "", "spec.installed is false"),
	}
	for i := range 12 {
		rows = append(rows, row(fmt.Sprintf("prod-%02d", i+1), fleet.Blocked, "4.18.20", "", ack))
	}
	table := fleet.Of("4.19.12", rows)
	table.Time, table.ToolVersion = "2026-11-26T05:00:10Z", "v1.0.0"
	table.Notices = []string{"admin (context admin) has the API server of prod-01 (context prod-01): it is read once"}
	return tableview.Table{Table: table}
}

func TestDocument(t *testing.T) {
	for _, name := range format.Names(example()) {
		golden.Compare(t, "testdata/fleet."+name, written(t, name, example(), format.Style{Details: true}))
	}
	golden.Compare(t, "testdata/fleet-brief.text", written(t, "text", example(), format.Style{Width: 80}))
}

func written(t *testing.T, name string, table tableview.Table, style format.Style) []byte {
	t.Helper()
	var text bytes.Buffer
	if err := format.Write(&text, name, table, style); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

// TestAttacksDocument checks that the texts of a cluster stay texts in every format.
func TestAttacksDocument(t *testing.T) {
	const attack = "</td><script>alert(1)</script>\x1b[2J\u202e|x|\n# head\n```\n]]>"
	hostile := fleet.Row{
		Cluster: fleet.Cluster{Name: attack, ID: attack, Source: attack}, State: fleet.Blocked, Version: attack, Target: attack, Message: attack,
		Evidence: attack, Update: &fleet.Update{Judgement: &fleet.Judgement{Status: "False", Since: attack, Message: attack}},
		LastUpdate: &fleet.LastUpdate{From: attack, To: attack, Outcome: attack, Objects: []string{attack}, Message: attack},
		Causes: []fleet.Cause{{
			Name: attack, Outcome: attack, Reason: attack, Message: attack, Remediation: attack,
			Actions: []finding.Action{
				{Type: finding.ActionRun, Command: strings.ReplaceAll(attack, "\n", " ")},
				{Type: finding.ActionRun, Sentence: attack},
			},
		}},
	}
	table := tableview.Table{Table: fleet.Of(attack, []fleet.Row{hostile, {Cluster: fleet.Cluster{Name: "honest"}, State: fleet.Clear}})}
	for _, name := range format.Names(table) {
		text := string(written(t, name, table, format.Style{Details: true}))
		if strings.ContainsAny(text, "\x1b\u202e") || !strings.Contains(text, "honest") && name != "short" {
			t.Errorf("%s: a terminal obeys the text, or a row is missing:\n%s", name, text)
		}
		if name == "html" && strings.Contains(text, "<script>alert") || name == "markdown" && strings.Contains(text, "\n# head") {
			t.Errorf("%s: the text of a cluster is markup:\n%s", name, text)
		}
	}
}

// The headline counts what was evaluated, and no cluster that runs the release already.
func TestHeadline(t *testing.T) {
	row := func(name string, state fleet.State) fleet.Row {
		return fleet.Row{Cluster: fleet.Cluster{Name: name, ID: name}, State: state}
	}
	for name, tc := range map[string]struct {
		reason string
		rows   []fleet.Row
		want   string
	}{
		"All": {
			reason: "all were evaluated", rows: []fleet.Row{row("a", fleet.Clear), row("b", fleet.Clear)},
			want: "of any cluster blocks the update to 4.19.12",
		},
		"Some": {
			reason: "one was not", rows: []fleet.Row{row("a", fleet.Clear), row("b", fleet.Updated)},
			want: "of 1 cluster blocks the update",
		},
		"Ready": {
			reason: "one was not", rows: []fleet.Row{row("a", fleet.Ready), row("b", fleet.Ready), row("c", fleet.Updated)},
			want: "each of 2 clusters may be updated to 4.19.12",
		},
		"None": {
			reason: "nothing was evaluated", rows: []fleet.Row{row("a", fleet.Updated), row("b", fleet.Updated)},
			want: "every cluster runs 4.19.12 already: nothing was evaluated.",
		},
		"Gone": {
			reason: "nor is what does not exist", rows: []fleet.Row{row("a", fleet.Updated), row("b", fleet.NotInstalled)},
			want: "nothing was evaluated.",
		},
		"Unread": {
			reason: "one is unknown", rows: []fleet.Row{row("a", fleet.Updated), row("b", fleet.Unreachable)},
			want: "not every cluster could be evaluated",
		},
		"Blocked": {reason: "one blocks", rows: []fleet.Row{row("a", fleet.Updated), row("b", fleet.Blocked)}, want: "do not update 1 cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			if err := format.Write(&got, "text", tableview.Table{Table: fleet.Of("4.19.12", tc.rows)}, format.Style{}); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(got.String(), tc.want) {
				t.Errorf("%s: %q lacks %q", tc.reason, got.String(), tc.want)
			}
		})
	}
}
