// Package records answers: how does a test record runs in a cluster, as runs do?
//
// [In] has the records of a cluster: Completed, Detached and Begin record a run that has ended, that no process holds,
// and that this one holds. The releases are those of [Image].
package records

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/verdict/fingerprint"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/lease"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/test/openshift"
)

// Holder is the process that holds the runs of Begin.
const Holder = "laptop_1"

// Cluster is a cluster with records of runs.
type Cluster struct {
	// Client has no limit of its rate.
	Client kubernetes.Interface
	Store  *recordstore.Store
	Runs   *lease.Runs

	tb     testing.TB
	config *rest.Config
}

// In returns the records of the cluster that a configuration reaches. A Lease of its runs expires after a second.
func In(tb testing.TB, config *rest.Config) Cluster {
	tb.Helper()
	config = rest.CopyConfig(config)
	config.QPS = -1
	client := kubernetes.NewForConfigOrDie(config)
	return Cluster{
		Client: client, Store: recordstore.New(client), Runs: lease.New(client, lease.Duration(time.Second)), tb: tb,
		config: config,
	}
}

// Digest is a digest that consists of one digit.
func Digest(digit rune) string { return "sha256:" + strings.Repeat(string(digit), 64) }

// Image is the release 4.19.DIGIT.
func Image(digit rune) string { return "registry/release@" + Digest(digit) }

// State is that of a cluster at 4.18.3, to which the releases 4.19.0 to 4.19.9 are available.
func State() openshift.State {
	state := openshift.State{Version: "4.18.3", Image: Image('0'), Available: map[string]string{}, Gates: map[string]string{}}
	for _, digit := range "0123456789" {
		state.Available["4.19."+string(digit)] = Image(digit)
	}
	return state
}

// Begin begins a run of the release 4.19.DIGIT, which this process holds.
func (c Cluster) Begin(digit rune, checks ...string) *lease.Held {
	c.tb.Helper()
	return c.begin(c.intent(digit, checks...))
}

func (Cluster) intent(digit rune, checks ...string) record.Intent {
	return record.Intent{
		ID: uuid.NewString(), From: "4.18.3", Target: update.Release{Version: "4.19." + string(digit), Image: Image(digit)},
		ToolVersion: "test", Selection: runner.Options{}.Coverage(), Checks: checks,
	}
}

func (c Cluster) begin(intent record.Intent) *lease.Held {
	c.tb.Helper()
	held, err := c.Runs.Begin(c.tb.Context(), intent, Holder)
	if err != nil {
		c.tb.Fatal(err)
	}
	return held
}

// Detached records a run with these results that no process holds, and returns its ID.
func (c Cluster) Detached(digit rune, checks []string, results ...record.Result) string {
	c.tb.Helper()
	held := c.Begin(digit, checks...)
	for _, result := range results {
		held.Put(result)
	}
	if err := held.Detach(c.tb.Context()); err != nil {
		c.tb.Fatal(err)
	}
	return held.Record().ID
}

// Completed records a run with this report, and returns its ID. state is that of the cluster at the time of the run.
func (c Cluster) Completed(digit rune, decided report.Report, state map[string]string, changes ...func(*record.Intent)) string {
	c.tb.Helper()
	intent := c.intent(digit)
	for _, change := range changes {
		change(&intent)
	}
	held := c.begin(intent)
	decided.Target.Version, decided.Target.Image = held.Record().Target.Version, held.Record().Target.Image
	decided.Run.ID, decided.Run.CompletionTime = held.Record().ID, held.Now().UTC().Format(time.RFC3339)
	text, err := json.Marshal(decided)
	if err != nil {
		c.tb.Fatal(err)
	}
	if err := held.Finish(c.tb.Context(), record.Ending{
		Phase: record.Complete, Verdict: decided.Verdict, Report: text,
		Fingerprint: state,
	}); err != nil {
		c.tb.Fatal(err)
	}
	return held.Record().ID
}

// Fingerprint returns the state of the cluster that a new verdict is based on.
func (c Cluster) Fingerprint() map[string]string {
	c.tb.Helper()
	connected, err := cluster.Connect(c.config, "test")
	if err != nil {
		c.tb.Fatal(err)
	}
	return fingerprint.Read(c.tb.Context(), snapshot.Of(connected))
}

// StartJob creates the Job of a check of a run. The Job controller ignores it, so only the test creates its pods.
func (c Cluster) StartJob(runID, check string) *batchv1.Job {
	c.tb.Helper()
	job, err := c.Client.BatchV1().Jobs("default").Create(c.tb.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: "quorum-" + label.Suffix(runID), Labels: map[string]string{label.Run: runID},
			Annotations: map[string]string{label.AnnotationCheck: check},
		},
		Spec: batchv1.JobSpec{ManagedBy: new("example.com/test"), Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{label.Run: runID}},
			Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "check", Image: "registry/check"}},
			},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		c.tb.Fatal(err)
	}
	return job
}

// Until returns when a condition is true, which a background process makes true.
func (c Cluster) Until(done func() bool) {
	c.tb.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !done() {
		select {
		case <-c.tb.Context().Done():
			c.tb.Fatal("the condition did not become true before the end of the test")
		case <-ticker.C:
		}
	}
}

// NextSecond returns when the clock is in another second, which is the granularity of the times of records.
func (c Cluster) NextSecond() {
	c.tb.Helper()
	now := time.Now().Unix()
	c.Until(func() bool { return time.Now().Unix() > now })
}

// Finding returns a finding of a check of a release.
func Finding(name string, outcome preflight.Outcome, reason string) finding.Finding {
	return finding.Finding{
		Finding: preflight.Finding{Name: name, Outcome: outcome, Reason: reason, Message: "because of " + reason},
		Source:  finding.SourceJob, Blocks: outcome == preflight.Fail || outcome == preflight.Unknown,
	}
}

// Passed is the finding of a check that has passed.
func Passed(name string) finding.Finding { return Finding(name, preflight.Pass, "Passed") }

// Failed is the finding of a check that has failed.
func Failed(name, reason string) finding.Finding { return Finding(name, preflight.Fail, reason) }

// Result returns the result of a check.
func Result(check string, findings ...finding.Finding) record.Result {
	return record.Result{Check: check, Findings: findings}
}

// Report returns a report of these findings that is valid for a day.
func Report(findings ...finding.Finding) report.Report {
	expected := verdict.Expectation{Checks: len(findings), Reported: len(findings)}
	folded, sorted := verdict.Fold(findings, expected, verdict.Policy{})
	folded.ValidUntil = time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
	return report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind, Run: report.Run{Phase: report.PhaseComplete},
		Cluster: report.Cluster{ID: "c1", Version: "4.18.3"}, Target: report.Target{Version: "4.19.0", Signers: []string{}},
		Verdict: folded, Expected: expected, Findings: sorted, Created: []report.Object{},
	}
}
