package fleet_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/fleet"
)

func cause(name string) fleet.Cause {
	return fleet.Cause{Name: name, Outcome: preflight.Fail, Reason: "Reason", Message: "message of " + name}
}

func row(name string, state fleet.State, causes ...fleet.Cause) fleet.Row {
	return fleet.Row{Cluster: fleet.Cluster{Name: name, Source: "test"}, State: state, Causes: causes}
}

func TestOf(t *testing.T) {
	rows := []fleet.Row{
		row("e", fleet.Ready),
		row("d", fleet.Unreachable),
		row("c", fleet.Blocked, cause("Both"), cause("Often")),
		row("b", fleet.Blocked, cause("Often")),
		row("a", fleet.Blocked, cause("Alone")),
		row("f", fleet.Blocked, cause("Alone")),
	}
	table := fleet.Of("4.19.1", rows)
	var groups, names []string
	for _, group := range table.Groups {
		groups = append(groups, group.Cause.Name+" "+strings.Join(group.Clusters, ","))
	}
	for _, each := range table.Rows {
		names = append(names, each.Cluster.Name)
	}
	if diff := cmp.Diff([]string{"Alone a,f", "Often b,c", "Both c"}, groups); diff != "" {
		t.Errorf("the cause that alone blocks the most clusters is first (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "f", "d", "e"}, names); diff != "" {
		t.Errorf("the worst state is first (-want +got):\n%s", diff)
	}
	want := fleet.Counts{Clusters: 6, Ready: 1, Blocked: 4, Unreachable: 1}
	if diff := cmp.Diff(want, table.Counts); diff != "" || table.Decision != verdict.Blocked {
		t.Errorf("%s: -want +got:\n%s", table.Decision, diff)
	}
	slices.Reverse(rows)
	if diff := cmp.Diff(table, fleet.Of("4.19.1", rows)); diff != "" {
		t.Errorf("the order of the rows changes the table (-want +got):\n%s", diff)
	}
}

// TestFrees has what is fixed when one cause is.
func TestFrees(t *testing.T) {
	repeats := func(names ...string) fleet.Cause {
		made := cause("ClusterVersionUpgradeable")
		made.Repeats = names
		return made
	}
	unread := fleet.Unread(fleet.Cluster{Name: "a"}, "TimedOut", "it did not answer", "Wait.")
	for name, tc := range map[string]struct {
		reason string
		row    fleet.Row
		want   map[string]int
	}{
		"Repeated": {
			reason: "CVO repeats the operator", row: row("a", fleet.Blocked, cause("Etcd"), repeats("Etcd")),
			want: map[string]int{"Etcd": 1},
		},
		"Several": {
			reason: "one of two operators frees none",
			row:    row("a", fleet.Blocked, cause("Etcd"), cause("DNS"), repeats("DNS", "Etcd")),
		},
		"Other": {reason: "the operator is not the only cause", row: row("a", fleet.Blocked, cause("Etcd"), repeats("Etcd"), cause("Drain"))},
		"Own":   {reason: "CVO has causes of its own", row: row("a", fleet.Blocked, cause("Etcd"), repeats())},
		"Accepted": {
			reason: "it repeats what is no cause of the row, and remains",
			row:    row("a", fleet.Blocked, cause("Etcd"), repeats("DNS", "Etcd")),
		},
		"Alone": {
			reason: "it repeats itself", row: row("a", fleet.Blocked, repeats("ClusterVersionUpgradeable")),
			want: map[string]int{"ClusterVersionUpgradeable": 1},
		},
		"Unread": {reason: "what else is against the update is not known", row: unread},
	} {
		t.Run(name, func(t *testing.T) {
			for _, group := range fleet.Of("", []fleet.Row{tc.row}).Groups {
				if group.Frees != tc.want[group.Cause.Name] {
					t.Errorf("%s: %s frees %d, want %d", tc.reason, group.Cause.Name, group.Frees, tc.want[group.Cause.Name])
				}
			}
		})
	}
}

func TestDecision(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		states []fleet.State
		want   verdict.Decision
	}{
		"None":  {reason: "no cluster is no evidence", want: verdict.Undecided},
		"Ready": {reason: "all are", states: []fleet.State{fleet.Ready, fleet.Ready}, want: verdict.Ready},
		"Clear": {
			reason: "the checks of the release were not run", states: []fleet.State{fleet.Ready, fleet.Clear},
			want: verdict.NothingKnown,
		},
		"Undecided":   {reason: "one is", states: []fleet.State{fleet.Ready, fleet.Undecided}, want: verdict.Undecided},
		"Unreachable": {reason: "nothing is known of one", states: []fleet.State{fleet.Ready, fleet.Unreachable}, want: verdict.Undecided},
		"Hibernating": {
			reason: "a cluster that is stopped has no verdict", states: []fleet.State{fleet.Ready, fleet.Hibernating},
			want: verdict.Undecided,
		},
		"NotInstalled": {
			reason: "what is not installed is not updated", states: []fleet.State{fleet.Ready, fleet.NotInstalled},
			want: verdict.Ready,
		},
		"NoCluster": {reason: "none is installed", states: []fleet.State{fleet.NotInstalled}, want: verdict.Undecided},
		"Blocked":   {reason: "the worst decides", states: []fleet.State{fleet.Undecided, fleet.Blocked, fleet.Ready}, want: verdict.Blocked},
		"Other": {
			reason: "a state that this version does not know is not in favor", states: []fleet.State{fleet.Ready, "Fine"},
			want: verdict.Undecided,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var rows []fleet.Row
			for _, state := range tc.states {
				rows = append(rows, row("a", state))
			}
			if got := fleet.Of("", rows).Decision; got != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestOfReport(t *testing.T) {
	twice := finding.Fail(finding.ReportedReason("Reason"), "message").Named("Name").From(finding.SourceRisk)
	ready := report.Report{Verdict: verdict.Verdict{Decision: verdict.Ready}}
	narrowed := ready
	narrowed.Verdict.Narrowed = []string{"check Etcd.Quorum"}
	ended := ready
	ended.Standing = &report.Standing{Ended: []string{"a node was added"}}
	for name, tc := range map[string]struct {
		reason  string
		judged  report.Report
		want    fleet.State
		causes  int
		message string
	}{
		"Ready": {reason: "nothing is against it", judged: ready, want: fleet.Ready},
		"Blocked": {
			reason: "two findings of one name are one cause",
			judged: report.Report{Verdict: verdict.Verdict{Decision: verdict.Blocked}, Findings: []finding.Finding{twice, twice}},
			want:   fleet.Blocked, causes: 1,
		},
		"Incomplete": {
			reason: "checks that did not report are a cause",
			judged: report.Report{Verdict: verdict.Verdict{Decision: verdict.Undecided}, Expected: verdict.Expectation{Checks: 2, Reported: 1}},
			want:   fleet.Undecided, causes: 1,
		},
		"Narrowed": {
			reason: "what the request left out may be against it", judged: narrowed, want: fleet.Ready,
			message: "excluded by the request: check Etcd.Quorum",
		},
		"Ended": {reason: "a verdict that no longer holds is not in favor", judged: ended, want: fleet.Undecided},
		"Other": {
			reason: "a decision of a later version is not in favor", judged: report.Report{Verdict: verdict.Verdict{Decision: "Fine"}},
			want: fleet.Undecided, causes: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := fleet.OfReport(fleet.Cluster{Name: "a"}, tc.judged)
			if got.State != tc.want || len(got.Causes) != tc.causes || !strings.Contains(got.Message, tc.message) {
				t.Errorf("%s: %s with %d causes, %q; want %s with %d, %q", tc.reason, got.State, len(got.Causes), got.Message, tc.want, tc.causes,
					tc.message)
			}
		})
	}
}

// TestAttacksTable checks that no cluster breaks the row of another or the size of the table.
func TestAttacksTable(t *testing.T) {
	long := strings.Repeat("n", 10_000)
	hostile := row(long+"\x1b[2J", fleet.Ready, cause("a"))
	hostile.Cluster.Labels = map[string]string{}
	for i := range 1000 {
		hostile.Cluster.Labels[strings.Repeat("l", i)] = long
		hostile.Causes = append(hostile.Causes, fleet.Cause{
			Name: strings.Repeat("c", i) + "\u202e", Message: long + long, Remediation: long,
			Actions: slices.Repeat([]finding.Action{finding.Read("rm -rf %s", long)}, 100),
		})
		hostile.Targets = append(hostile.Targets, fleet.Candidate{Version: long, State: "Fine"})
	}
	other := row(long+"x", fleet.Ready)
	table := fleet.Of(long, []fleet.Row{hostile, other, other})
	text, err := json.Marshal(table)
	if err != nil || len(text) > 200<<10 || strings.ContainsAny(string(text), "\x1b\u202e") {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if table.Counts.Ready != 2 || table.Counts.Undecided != 1 {
		t.Errorf("a row that is Ready and has causes is Undecided: %+v", table.Counts)
	}
	if a, b := table.Rows[1].Cluster.Name, table.Rows[2].Cluster.Name; a == b || !strings.HasSuffix(b, " (3)") {
		t.Errorf("names are unique: %q, %q", a, b)
	}
	if strings.Contains(string(text), "rm -rf") {
		t.Error("a command that is cut does something else")
	}
}

// Rows of one cluster ID are of one cluster, but for those of a list that has each cluster once.
func TestOneID(t *testing.T) {
	const id = "5d1c2f04-7a3e-4f0b-9a55-0c6a7f3b9e18"
	of := func(name, source string, state fleet.State, observed string) fleet.Row {
		return fleet.Row{
			Cluster: fleet.Cluster{Name: name, ID: id, Source: source, Archived: strings.HasPrefix(source, "archive ")},
			State:   state, Observed: observed,
		}
	}
	upper := func(row fleet.Row) fleet.Row {
		row.Cluster.ID = strings.ToUpper(row.Cluster.ID)
		return row
	}
	kept := of("b", "context b", fleet.Ready, "2026-11-01T00:00:00Z")
	kept.Evidence = "result of 2026-11-01T00:00:00Z"
	for name, tc := range map[string]struct {
		reason string
		rows   []fleet.Row
		want   string
		notice string
	}{
		"Worst": {reason: "a cluster cannot hide what is against the update of another", rows: []fleet.Row{
			of("a", "context a", fleet.Ready, ""),
			of("b", "kubeconfig b", fleet.Blocked, ""),
		}, want: "b Blocked", notice: "listed once, as b"},
		"Newest": {
			reason: "what blocked was fixed since", rows: []fleet.Row{of("a", "archive a", fleet.Blocked, "2026-11-01T00:00:00Z"), of("b",
				"archive b", fleet.Clear, "2026-11-02T00:00:00Z")}, want: "b Clear",
			notice: "since its archive is newer: 2026-11-02T00:00:00Z instead of 2026-11-01T00:00:00Z",
		},
		"Older": {reason: "what is new blocks", rows: []fleet.Row{
			of("a", "archive a", fleet.Blocked, "2026-11-02T00:00:00Z"),
			of("b", "archive b", fleet.Clear, "2026-11-01T00:00:00Z"),
		}, want: "a Blocked", notice: "b (archive b) have the cluster ID"},
		"NoTime": {reason: "it is unknown which is newer", rows: []fleet.Row{
			of("a", "archive a", fleet.Clear, "2026-11-02T00:00:00Z"),
			of("b", "archive b", fleet.Blocked, ""),
		}, want: "b Blocked", notice: "listed once, as b"},
		"Live": {
			reason: "an archive does not hide what the cluster states",
			rows: []fleet.Row{of("a", "context a", fleet.Blocked, "2026-11-03T00:00:00Z"), of("b", "archive b", fleet.Clear,
				"2026-11-02T00:00:00Z")}, want: "a Blocked", notice: "b (archive b) have the cluster ID " + id +
				": listed once, as a, since an archive is older than the cluster: 2026-11-03T00:00:00Z instead of 2026-11-02T00:00:00Z",
		},
		"Fixed": {
			reason: "what blocked when the archive was gathered was fixed since",
			rows: []fleet.Row{
				of("a", "archive a", fleet.Blocked, "2026-11-02T00:00:00Z"),
				of("b", "context b", fleet.Ready, "2026-11-03T00:00:00Z"),
			}, want: "b Ready", notice: "a (archive a) have the cluster ID",
		},
		"Ahead": {reason: "the time of an archive is not by the clock of the cluster", rows: []fleet.Row{of("a", "archive a", fleet.Clear,
			"2026-11-04T00:00:00Z"), of("b", "context b", fleet.Blocked, "2026-11-03T00:00:00Z")}, want: "b Blocked", notice: "listed once, as b"},
		"Silent": {reason: "the cluster was not read", rows: []fleet.Row{
			of("a", "archive a", fleet.Clear, "2026-11-02T00:00:00Z"),
			of("b", "context b", fleet.Unreachable, ""),
		}, want: "b Unreachable", notice: "listed once, as b"},
		"Kept": {
			reason: "a result that was kept may be older than the archive",
			rows:   []fleet.Row{of("a", "archive a", fleet.Blocked, "2026-11-02T00:00:00Z"), kept}, want: "a Blocked", notice: "listed once, as a",
		},
		"Case": {reason: "a UUID is the same in other letters", rows: []fleet.Row{of("a", "hub", fleet.Ready, ""), upper(of("b", "hub",
			fleet.Blocked, ""))}, want: "a Undecided, b Undecided", notice: "a and b (hub) claim the cluster ID " + strings.ToUpper(id)},
		"Hub": {reason: "one of the two states the ID of the other", rows: []fleet.Row{
			of("a", "hub", fleet.Ready, ""),
			of("b", "hub", fleet.Blocked, ""),
		}, want: "a Undecided, b Undecided", notice: "a and b (hub) claim the cluster ID " + id},
	} {
		t.Run(name, func(t *testing.T) {
			table := fleet.Of("", tc.rows)
			var got []string
			for _, row := range table.Rows {
				got = append(got, row.Cluster.Name+" "+string(row.State))
			}
			if text := strings.Join(got, ", "); text != tc.want || len(table.Notices) != 1 || !strings.Contains(table.Notices[0], tc.notice) {
				t.Errorf("%s: %s, %q", tc.reason, text, table.Notices)
			}
		})
	}
}

// A row of a cluster does not hide what another row of it states about its update.
func TestJudgementsOfOneID(t *testing.T) {
	of := func(name, status string) fleet.Row {
		made := row(name, fleet.Clear)
		made.Cluster.ID, made.Cluster.Source = "5d1c2f04-7a3e-4f0b-9a55-0c6a7f3b9e18", "context "+name
		made.Update = &fleet.Update{Stage: "Updated"}
		if status != "" {
			made.Update.Judgement = &fleet.Judgement{Status: status}
		}
		return made
	}
	for name, tc := range map[string]struct{ reason, first, second, want string }{
		"Equal":     {reason: "both state it", first: "True", second: "True", want: "True"},
		"None":      {reason: "neither states anything", want: ""},
		"Regressed": {reason: "the second one is not good", first: "True", second: "False", want: "False"},
		"Unread":    {reason: "the user of one may not read it", first: "Unknown", second: "True", want: "Unknown"},
		"Unstated":  {reason: "one states nothing", first: "True", want: "Unknown"},
		"Unjudged":  {reason: "one that states nothing hides none that is not good", second: "False", want: "False"},
	} {
		t.Run(name, func(t *testing.T) {
			table := fleet.Of("4.19.1", []fleet.Row{of("a", tc.first), of("b", tc.second)})
			got := ""
			if judged := table.Rows[0].Update.Judgement; judged != nil {
				got = judged.Status
			}
			if len(table.Rows) != 1 || got != tc.want {
				t.Errorf("%s: %d rows, %q; want one, %q", tc.reason, len(table.Rows), got, tc.want)
			}
		})
	}
}
