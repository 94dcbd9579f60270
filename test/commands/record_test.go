package commands_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/lease"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/program"
)

// world is the cluster, initially without run records.
type world struct {
	t       *testing.T
	client  kubernetes.Interface
	state   openshift.State
	records *recordstore.Store
	runs    *lease.Runs
}

func newWorld(t *testing.T) world {
	t.Helper()
	byDefault.use(t)
	config := rest.CopyConfig(byDefault.Config)
	config.QPS = -1
	client := kubernetes.NewForConfigOrDie(config)
	state := openshift.State{Version: "4.18.3", Image: "registry/release@" + digest('0'), Available: map[string]string{}, Gates: map[string]string{}}
	for _, target := range "0123456789" {
		state.Available["4.19."+string(target)] = "registry/release@" + digest(target)
	}
	w := world{t: t, client: client, state: state, records: recordstore.New(client), runs: lease.New(client, lease.Duration(time.Second))}
	w.present()
	return w
}

// present writes the state to the cluster.
func (w world) present() {
	w.t.Helper()
	if err := openshift.Apply(w.t.Context(), byDefault.Config, w.state); err != nil {
		w.t.Fatal(err)
	}
}

func digest(digit rune) string { return "sha256:" + strings.Repeat(string(digit), 64) }

// begin begins a run of the release whose digest consists of that digit.
func (w world) begin(release rune, checks ...string) *lease.Held {
	w.t.Helper()
	held, err := w.runs.Begin(w.t.Context(), record.Intent{
		ID: uuid.NewString(), From: "4.18.3", Target: update.Release{Version: "4.19." + string(release), Image: "registry/release@" + digest(release)},
		ToolVersion: "test", Selection: runner.Options{}.Coverage(), Checks: checks,
	}, "laptop_1")
	if err != nil {
		w.t.Fatal(err)
	}
	return held
}

// detachedRun records a run with these results that no process holds, and returns its ID.
func (w world) detachedRun(release rune, checks []string, results ...record.Result) string {
	w.t.Helper()
	held := w.begin(release, checks...)
	for _, result := range results {
		held.Put(result)
	}
	if err := held.Detach(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return held.Record().ID
}

// completedRun records a run with this report, and returns its ID.
func (w world) completedRun(release rune, decided report.Report, state map[string]string) string {
	w.t.Helper()
	held := w.begin(release)
	decided.Target.Version, decided.Target.Image = held.Record().Target.Version, held.Record().Target.Image
	decided.Run.ID, decided.Run.CompletionTime = held.Record().ID, held.Now().UTC().Format(time.RFC3339)
	text, err := json.Marshal(decided)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := held.Finish(w.t.Context(), record.Ending{Phase: record.Complete, Verdict: decided.Verdict, Report: text, Fingerprint: state}); err != nil {
		w.t.Fatal(err)
	}
	return held.Record().ID
}

// newFinding returns a finding of a check of a release.
func newFinding(name string, outcome preflight.Outcome, reason string) finding.Finding {
	return finding.Finding{Finding: preflight.Finding{Name: name, Outcome: outcome, Reason: reason, Message: "because of " + reason}, Source: finding.SourceJob, Blocks: outcome == preflight.Fail || outcome == preflight.Unknown}
}

func result(check string, findings ...finding.Finding) record.Result {
	return record.Result{Check: check, Findings: findings}
}

// newReport returns a report of these findings that is valid for a day.
func newReport(findings ...finding.Finding) report.Report {
	expected := verdict.Expectation{Checks: len(findings), Reported: len(findings)}
	folded, sorted := verdict.Fold(findings, expected, verdict.Policy{})
	folded.ValidUntil = time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
	return report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind, Run: report.Run{Phase: report.PhaseComplete},
		Cluster: report.Cluster{ID: "c1", Version: "4.18.3"}, Target: report.Target{Version: "4.19.0", Signers: []string{}},
		Verdict: folded, Expected: expected, Findings: sorted, Created: []report.Object{},
	}
}

// call runs oc-preflight, and verifies its exit code.
func (w world) call(code int, args ...string) program.Result {
	w.t.Helper()
	got := program.Call(w.t, args...)
	if got.Code != code {
		w.t.Fatalf("%s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got.Code, code, got.Stdout, got.Stderr)
	}
	return got
}

// contains verifies that a text contains all of these parts.
func (w world) contains(text string, parts ...string) {
	w.t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			w.t.Errorf("the output does not contain %q:\n%s", part, text)
		}
	}
}
