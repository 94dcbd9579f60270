// Package records_test answers: are recorded runs reported as they were, with their
// present standing? Records are written as a run writes them, to a real API
// server, and the commands are called as a user calls them. No node is needed:
// where pods are asked for what they print, a kubelet's API is served here.
package records_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/cmd/oc-preflight/command"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/openshift"
)

var local *cluster.Cluster

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { local = c }, cluster.ControlPlaneOnly())
}

const (
	ready       = 0
	failed      = 1
	badInput    = 2
	blocked     = 3
	undecided   = 4
	interrupted = 130
)

// world is the cluster with no record in it.
type world struct {
	t       *testing.T
	client  kubernetes.Interface
	records *record.Store
}

func newWorld(t *testing.T) world {
	t.Helper()
	config := rest.CopyConfig(local.Config)
	config.QPS = -1
	client := kubernetes.NewForConfigOrDie(config)
	if err := openshift.Apply(t.Context(), config, openshift.State{Version: "4.18.3", Image: "registry/release@" + digest('0')}); err != nil {
		t.Fatal(err)
	}
	ours := metav1.ListOptions{LabelSelector: "preflight.openshift.io/record"}
	if err := client.CoreV1().ConfigMaps(record.Namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, ours); err != nil {
		t.Fatal(err)
	}
	if err := client.CoordinationV1().Leases(record.Namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, ours); err != nil {
		t.Fatal(err)
	}
	return world{t: t, client: client, records: record.New(client, record.LeaseDuration(time.Second))}
}

func digest(digit rune) string { return "sha256:" + strings.Repeat(string(digit), 64) }

// begin begins a run of the release whose digest is that digit.
func (w world) begin(release rune, checks ...string) *record.Held {
	w.t.Helper()
	held, err := w.records.Begin(w.t.Context(), record.Intent{
		ID: uuid.NewString(), From: "4.18.3", Target: update.Release{Version: "4.19." + string(release), Image: "registry/release@" + digest(release)},
		ToolVersion: "test", Checks: checks,
	}, "laptop_1")
	if err != nil {
		w.t.Fatal(err)
	}
	return held
}

// left is a run that was detached from, with these results.
func (w world) left(release rune, checks []string, results ...record.Result) string {
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

// ended is a run that was completed with this report.
func (w world) ended(release rune, decided report.Report, basis map[string]string) string {
	w.t.Helper()
	held := w.begin(release)
	decided.Run.ID, decided.Run.CompletionTime = held.Record().ID, held.Now().UTC().Format(time.RFC3339)
	text, err := json.Marshal(decided)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := held.Finish(w.t.Context(), record.Ending{Phase: record.Complete, Verdict: decided.Verdict, Report: text, Fingerprint: basis}); err != nil {
		w.t.Fatal(err)
	}
	return held.Record().ID
}

// found is one of a check of a release.
func found(name string, outcome preflight.Outcome, reason string) finding.Finding {
	return finding.Finding{Finding: preflight.Finding{Name: name, Outcome: outcome, Reason: reason, Message: "because of " + reason}, Source: finding.SourceJob, Blocks: outcome == preflight.Fail || outcome == preflight.Unknown}
}

func result(check string, findings ...finding.Finding) record.Result {
	return record.Result{Check: check, Findings: findings}
}

// decided is a report of these findings that holds for a day.
func decided(findings ...finding.Finding) report.Report {
	expected := verdict.Expectation{Checks: len(findings), Reported: len(findings)}
	decided, sorted := verdict.Fold(findings, expected, verdict.Policy{})
	decided.ValidUntil = time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
	return report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind, Run: report.Run{Phase: report.PhaseComplete},
		Cluster: report.Cluster{ID: "c1", Version: "4.18.3"}, Target: report.Target{Version: "4.19.0", Signers: []string{}},
		Verdict: decided, Expected: expected, Findings: sorted, Created: []preflight.Object{},
	}
}

// output is what a command left.
type output struct{ stdout, stderr string }

// call calls oc-preflight, and expects that exit code.
func (w world) call(code int, args ...string) output {
	w.t.Helper()
	return w.callIn(w.t.Context(), code, args...)
}

func (w world) callIn(ctx context.Context, code int, args ...string) output {
	w.t.Helper()
	var stdout, stderr bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr}
	args = append([]string{"oc-preflight", "--kubeconfig", local.Kubeconfig}, args...)
	if got := command.Execute(ctx, args, streams); got != code {
		w.t.Fatalf("%s: exit code %d, want %d\n%s%s", strings.Join(args[3:], " "), got, code, &stdout, &stderr)
	}
	w.t.Logf("$ oc preflight %s\n%s%s", strings.Join(args[3:], " "), &stdout, &stderr)
	return output{stdout: stdout.String(), stderr: stderr.String()}
}

// says expects these words in a text.
func (w world) says(text string, words ...string) {
	w.t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			w.t.Errorf("it does not say %q:\n%s", word, text)
		}
	}
}
