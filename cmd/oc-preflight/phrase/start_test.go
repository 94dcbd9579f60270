package phrase_test

import (
	"strings"
	"testing"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
)

// starts are the commands among actions that start an update.
func starts(actions []finding.Action) []string {
	var commands []string
	for _, action := range actions {
		if action.Type == finding.ActionStart {
			commands = append(commands, action.Command)
		}
	}
	return commands
}

func startOf(arguments string) finding.Action {
	return finding.Change("oc").Adding(strings.Fields(arguments)...).Start()
}

func only(t *testing.T, reason, want string, got []string) {
	t.Helper()
	if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || got[0] != want) {
		t.Errorf("%s: the update is started by %q, want %q", reason, got, want)
	}
}

func TestStart(t *testing.T) {
	const available, patch = "adm upgrade --to 4.19.3", `-n clusters patch hostedcluster example --type=merge -p {}`
	for name, tc := range map[string]struct {
		reason  string
		verb    string
		args    []string
		start   string
		stored  string // the command of a stored document
		verdict verdict.Verdict
		phase   string
		ended   []string
		want    string
	}{
		"Ready": {reason: "the kubeconfig selects the cluster", start: available, want: "oc adm upgrade --to 4.19.3"},
		"Connection": {reason: "the command is for the same cluster and user", args: []string{
			"--context", "prod 1", "--as", "admin",
			"--accept", "Risk",
		}, start: available, want: "oc --as admin --context 'prod 1' adm upgrade --to 4.19.3"},
		"Status": {
			reason: "the record has no connection", verb: "status", args: []string{"--kubeconfig", "k"}, start: available,
			want: "oc --kubeconfig k adm upgrade --to 4.19.3",
		},
		"Conditional": {
			reason: "its risks are accepted", args: []string{"--context", "prod"},
			start: "adm upgrade --allow-not-recommended --to 4.19.3", want: "oc --context prod adm upgrade --allow-not-recommended --to 4.19.3",
		},
		"Hosted": {reason: "the connection is that of the management cluster", args: []string{
			"--context", "mgmt", "--hosted-cluster",
			"clusters/example",
		}, start: patch, want: "oc --context mgmt -n clusters patch hostedcluster example --type=merge -p '{}'"},
		"Stored": {
			reason: "a document has the connection of its run", start: available, stored: "oc --context prod " + available,
			want: "oc --context prod " + available,
		},
		"Archive":   {reason: "an archive states what a cluster was", args: []string{"--archive", "a"}, start: available},
		"Blocked":   {reason: "it may not be updated", start: available, verdict: verdict.Verdict{Decision: verdict.Blocked}},
		"Undecided": {reason: "it may not be updated", start: available, verdict: verdict.Verdict{Decision: verdict.Undecided}},
		"Forced":    {reason: "force is no verdict", start: available, verdict: verdict.Verdict{Decision: verdict.Ready, Forced: true}},
		"Narrowed": {
			reason: "something was left out", start: available,
			verdict: verdict.Verdict{Decision: verdict.Ready, Narrowed: []string{"check A"}},
		},
		"Running":  {reason: "the run has not ended", start: available, phase: report.PhaseRunning},
		"Outdated": {reason: "it no longer holds", start: available, ended: []string{"a newer run"}},
		"NothingKnown": {
			reason: "the cluster does not run the release before", start: available,
			verdict: verdict.Verdict{Decision: verdict.NothingKnown, Provisional: true},
		},
		"NoCommand": {reason: "the cluster runs the release already"},
	} {
		t.Run(name, func(t *testing.T) {
			decided := report.Report{Run: report.Run{Phase: report.PhaseComplete}, Verdict: tc.verdict, Target: report.Target{Version: "4.19.3"}}
			if tc.start != "" {
				decided.Actions = []finding.Action{startOf(tc.start)}
				if tc.stored != "" {
					decided.Actions = []finding.Action{{Type: finding.ActionStart, Command: tc.stored}}
				}
			}
			if tc.verdict.Decision == "" {
				decided.Verdict.Decision = verdict.Ready
			}
			if tc.phase != "" {
				decided.Run.Phase = tc.phase
			}
			if tc.ended != nil {
				decided.Standing = &report.Standing{Ended: tc.ended}
			}
			if tc.verb == "" {
				tc.verb = "run"
			}
			request := requested(t, "", append([]string{tc.verb}, tc.args...)...)
			only(t, tc.reason, tc.want, starts(request.WithCommands(decided).Actions))
			path := report.NewPath([]string{"4.19.2", "4.19.3"}, []report.Report{decided})
			only(t, tc.reason+", also in a path", tc.want, starts(request.WithPathCommands(path).Updates[0].Actions))
		})
	}
}

// The first update of a path is not to be started where the path is not to be.
func TestStartOfPath(t *testing.T) {
	first := report.Report{
		Run: report.Run{Phase: report.PhaseComplete}, Verdict: verdict.Verdict{Decision: verdict.Ready},
		Actions: []finding.Action{startOf("adm upgrade --to 4.19.3")},
	}
	later := report.Report{
		Run:     report.Run{Phase: report.PhaseComplete},
		Verdict: verdict.Verdict{Decision: verdict.Blocked, Provisional: true},
	}
	path := report.NewPath([]string{"4.18.9", "4.19.3", "4.20.1"}, []report.Report{first, later})
	only(t, "a later update is blocked", "", starts(requested(t, "", "run").WithPathCommands(path).Updates[0].Actions))
}

// A clear target is not proven to be Ready: its run comes first.
func TestStartOfTargets(t *testing.T) {
	clear := report.Candidate{
		Version: "4.19.3", Available: true, Verdict: verdict.Verdict{Decision: verdict.Ready},
		Actions: []finding.Action{startOf("adm upgrade --to 4.19.3")},
	}
	blocked := report.Candidate{Version: "4.20.1", Available: true, Verdict: verdict.Verdict{Decision: verdict.Blocked}}
	for name, tc := range map[string]struct {
		reason  string
		args    []string
		targets []report.Candidate
		want    string
	}{
		"Clear": {
			reason: "the newest clear one is next", args: []string{"--context", "prod"}, targets: []report.Candidate{blocked, clear},
			want: "oc --context prod adm upgrade --to 4.19.3",
		},
		"Archive": {reason: "an archive states what a cluster was", args: []string{"--archive", "a"}, targets: []report.Candidate{clear}},
		"Blocked": {reason: "no target is clear", targets: []report.Candidate{blocked}},
		"None":    {reason: "the cluster knows no update"},
	} {
		t.Run(name, func(t *testing.T) {
			made := requested(t, "", append([]string{"targets"}, tc.args...)...).WithTargetCommands(report.Targets{Targets: tc.targets})
			only(t, tc.reason, tc.want, starts(made.Actions))
			if len(made.Actions) > 0 && made.Actions[0].Type == finding.ActionStart {
				t.Errorf("%s: the first step is %q, want a run", tc.reason, made.Actions[0].Command)
			}
		})
	}
}
