package runner_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/updateplan/graphsource"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/lease"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/test/kubelet"
	"github.com/openshift/update-preflight/test/openshift"
)

// newKubelet ends the pods of the checks of the world with an exit code.
func newKubelet(t *testing.T, w world, exitCode int32) *kubelet.Kubelet {
	t.Helper()
	return kubelet.Start(t, w.cluster.Kubernetes, "default", exitCode)
}

// withJobs returns a world whose checks are run.
func withJobs(t *testing.T) world {
	t.Helper()
	w := newWorld(t, map[string]string{})
	w.options.Selection.NoJobs, w.options.Judgement.Accept = false, nil
	w.options.Limits.Timeout = time.Minute
	w.options.Selection.Images = "off"
	w.options.Judgement.Accept = accepting("Images")
	return w
}

// whenJobExists calls do once the Job of a run exists.
func whenJobExists(t *testing.T, w world, do func()) {
	t.Helper()
	jobs, err := w.cluster.Kubernetes.BatchV1().Jobs("default").Watch(t.Context(), metav1.ListOptions{LabelSelector: label.Run})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer jobs.Stop()
		for event := range jobs.ResultChan() {
			if event.Type == watch.Added {
				do()
				return
			}
		}
	}()
}

func expectOnlyRecord(t *testing.T, w world, id string, phase record.Phase) {
	t.Helper()
	jobs, err := w.cluster.Kubernetes.BatchV1().Jobs("").List(t.Context(), metav1.ListOptions{LabelSelector: label.Run})
	if err != nil || len(jobs.Items) > 0 {
		t.Errorf("%d Jobs are left, error %v", len(jobs.Items), err)
	}
	leases, err := w.cluster.Kubernetes.CoordinationV1().Leases(record.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(leases.Items) > 0 {
		t.Errorf("%d Leases are left, error %v", len(leases.Items), err)
	}
	found, err := recordstore.New(w.cluster.Kubernetes).Get(t.Context(), id)
	if err != nil || found.Phase != phase {
		t.Errorf("the phase of the record is %q, want %q; error %v", found.Phase, phase, err)
	}
}

func TestTwoRunsOfOneReleaseAreOne(t *testing.T) {
	w := withJobs(t)
	node := newKubelet(t, w, 0)
	var reports [2]report.Report
	var errs [2]error
	var both sync.WaitGroup
	whenJobExists(t, w, node.End)
	for i := range reports {
		both.Go(func() { reports[i], errs[i] = runner.Run(t.Context(), w.cluster, w.target, w.options) })
	}
	both.Wait()
	for i, decided := range reports {
		if errs[i] != nil || decided.Run.ID != reports[0].Run.ID || decided.Verdict.Decision != verdict.Ready {
			t.Errorf("run %s, decision %q, error %v; want Ready of run %s", decided.Run.ID, decided.Verdict.Decision, errs[i], reports[0].Run.ID)
		}
	}
	if got := node.Pods(); got != 1 {
		t.Errorf("%d pods were started for one check", got)
	}
	expectOnlyRecord(t, w, reports[0].Run.ID, record.Complete)
}

// CVO raises observedGeneration minutes after a change of the spec: the run is recorded, and
// its Jobs run, before that.
func TestRunIsRecordedBeforeCVOHasProcessedTheSpec(t *testing.T) {
	w := withJobs(t)
	w.options.Limits.Timeout = 10 * time.Minute
	node := newKubelet(t, w, 0)
	if _, err := w.cluster.OpenShift.ConfigV1().ClusterVersions().Patch(t.Context(), "version", types.MergePatchType,
		[]byte(`{"spec":{"channel":"fast"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	observed := make(chan error, 1)
	whenJobExists(t, w, func() {
		node.End()
		observed <- openshift.Observe(t.Context(), config)
	})
	started := ""
	w.options.Hooks.Observer = observer{started: func(run string) { started = run }, reported: func([]finding.Finding) {
		if started == "" {
			t.Error("a check has reported before the run was recorded")
		}
	}}
	decided := w.run(t)
	if err := <-observed; err != nil || decided.Verdict.Decision != verdict.Ready {
		t.Errorf("decision %s, error %v; want Ready: %+v", decided.Verdict.Decision, err, decided.Verdict)
	}
}

func TestDetachedRunIsContinued(t *testing.T) {
	w := withJobs(t)
	node := newKubelet(t, w, 0)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	whenJobExists(t, w, interrupt)
	w.options.Hooks.OnInterrupt = func(string) runner.Interruption { return runner.Detach }
	detached, err := runner.Run(ctx, w.cluster, w.target, w.options)
	if err != nil || detached.Run.Phase != report.PhaseInterrupted || !detached.Run.Detached {
		t.Fatalf("phase %s, detached %t, error %v; want Interrupted and detached", detached.Run.Phase, detached.Run.Detached, err)
	}
	if detached.Removal != nil {
		t.Errorf("the objects of a detached run were deleted: %+v", detached.Removal)
	}
	node.End()
	decided := w.run(t)
	if decided.Run.ID != detached.Run.ID || decided.Run.StartTime != detached.Run.StartTime || decided.Verdict.Decision != verdict.Ready {
		t.Errorf("run %s of %s, %s; want run %s of %s, Ready; findings: %+v", decided.Run.ID, decided.Run.StartTime, decided.Verdict.Decision,
			detached.Run.ID, detached.Run.StartTime, decided.Findings)
	}
	if got := node.Pods(); got != 1 {
		t.Errorf("%d pods were started for one check", got)
	}
	expectOnlyRecord(t, w, decided.Run.ID, record.Complete)
}

func TestInterruptedRunIsCleanedUp(t *testing.T) {
	w := withJobs(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	whenJobExists(t, w, interrupt)
	decided, err := runner.Run(ctx, w.cluster, w.target, w.options)
	if err != nil || decided.Run.Phase != report.PhaseInterrupted || decided.Run.Detached || decided.Verdict.Decision != verdict.Undecided ||
		decided.Verdict.ValidUntil != "" {
		t.Errorf("%+v %+v, error %v; want Interrupted, Undecided, and no validity", decided.Run, decided.Verdict, err)
	}
	expectOnlyRecord(t, w, decided.Run.ID, record.Interrupted)
}

func TestCanceledRunIsCleanedUp(t *testing.T) {
	w := withJobs(t)
	records := lease.New(w.cluster.Kubernetes)
	started := make(chan string, 1)
	w.options.Hooks.Observer = observer{started: func(run string) { started <- run }}
	canceled := make(chan error, 1)
	whenJobExists(t, w, func() { canceled <- records.Cancel(t.Context(), <-started) })
	decided, err := runner.Run(t.Context(), w.cluster, w.target, w.options)
	if err != nil || decided.Run.Phase != report.PhaseInterrupted {
		t.Errorf("phase %s, error %v; want Interrupted", decided.Run.Phase, err)
	}
	if err := <-canceled; err != nil {
		t.Error(err)
	}
	expectOnlyRecord(t, w, decided.Run.ID, record.Canceled)
}

func TestRunWithOtherSelectionIsRejected(t *testing.T) {
	w := withJobs(t)
	node := newKubelet(t, w, 0)
	rejected := make(chan error, 1)
	whenJobExists(t, w, func() {
		other := w.options
		other.Selection.Skip = []string{check}
		_, err := runner.Run(t.Context(), w.cluster, w.target, other)
		rejected <- err
		node.End()
	})
	decided := w.run(t)
	if err := <-rejected; err == nil || !strings.Contains(err.Error(), decided.Run.ID) {
		t.Errorf("error %v, want one with the ID of run %s", err, decided.Run.ID)
	}
}

// A run in progress precedes a completed one: Run and Attach join it, although the results
// of an earlier run are valid.
func TestRunInProgressPrecedesReuse(t *testing.T) {
	for name, join := range map[string]func(context.Context, world, string) (report.Report, error){
		"Run": func(ctx context.Context, w world, _ string) (report.Report, error) {
			return runner.Run(ctx, w.cluster, w.target, w.options)
		},
		"Attach": func(ctx context.Context, w world, id string) (report.Report, error) {
			return runner.Attach(ctx, w.cluster, id, graphsource.Request{}, w.options)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := withJobs(t)
			node := newKubelet(t, w, 0)
			node.End()
			if first := w.run(t); first.Verdict.Decision != verdict.Ready {
				t.Fatalf("decision %s, want Ready", first.Verdict.Decision)
			}
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			rerun := w
			rerun.options.Limits.Rerun = true
			rerun.options.Hooks.OnInterrupt = func(string) runner.Interruption { return runner.Detach }
			whenJobExists(t, w, interrupt)
			detached, err := runner.Run(ctx, w.cluster, w.target, rerun.options)
			if err != nil || detached.Run.Phase != report.PhaseInterrupted {
				t.Fatalf("phase %s, error %v; want Interrupted", detached.Run.Phase, err)
			}
			joined, err := join(t.Context(), w, detached.Run.ID)
			if err != nil || joined.Run.ID != detached.Run.ID || joined.Run.ChecksFrom != "" {
				t.Errorf("run %s with the checks of %q, error %v; want run %s with its own", joined.Run.ID, joined.Run.ChecksFrom, err, detached.Run.ID)
			}
			expectOnlyRecord(t, w, detached.Run.ID, record.Complete)
		})
	}
}

// Every ID that is reported names a record with the verdict of that report.
func TestEveryRunIsRecorded(t *testing.T) {
	for name, change := range map[string]func(*world){
		"Reused":      func(*world) {},
		"WithoutJobs": func(w *world) { w.options.Selection.NoJobs = true },
	} {
		t.Run(name, func(t *testing.T) {
			w := withJobs(t)
			newKubelet(t, w, 0).End()
			w.run(t)
			w.state.Gates["ack-4.18-new"] = "Read https://example.com/new first."
			w.apply(t)
			change(&w)
			decided := w.run(t)
			found, err := recordstore.New(w.cluster.Kubernetes).Get(t.Context(), decided.Run.ID)
			if err != nil || decided.Verdict.Decision != verdict.Blocked || found.Decision != string(verdict.Blocked) {
				t.Errorf("decision %s, recorded %q, error %v; want Blocked in both", decided.Verdict.Decision, found.Decision, err)
			}
		})
	}
}

// Checks whose pass is still valid are not run again, all other findings are determined
// again: a report has no outdated findings.
func TestChecksThatPassedAreNotRunAgain(t *testing.T) {
	w := withJobs(t)
	node := newKubelet(t, w, 0)
	node.End()
	first := w.run(t)
	if first.Verdict.Decision != verdict.Ready || first.Run.ChecksFrom != "" {
		t.Fatalf("%+v, checks from %q; want Ready by its own checks", first.Verdict, first.Run.ChecksFrom)
	}
	second := w.run(t)
	if second.Run.ChecksFrom != first.Run.ID || second.Verdict.Decision != verdict.Ready || node.Pods() != 1 {
		t.Errorf("checks from %q, %s, %d pods; want those of %s, Ready, 1 pod", second.Run.ChecksFrom, second.Verdict.Decision, node.Pods(),
			first.Run.ID)
	}
	if second.Expected.Reported != second.Expected.Checks || find(t, second, check).Outcome != preflight.Pass {
		t.Errorf("expected %+v, and %s to pass", second.Expected, check)
	}
	if second.Verdict.ValidUntil > first.Verdict.ValidUntil {
		t.Errorf("the verdict is valid until %s, but the reused results only until %s", second.Verdict.ValidUntil, first.Verdict.ValidUntil)
	}

	w.state.Gates["ack-4.18-new"] = "Read https://example.com/new first."
	w.apply(t)
	if decided := w.run(t); decided.Verdict.Decision != verdict.Blocked || decided.Run.ChecksFrom != first.Run.ID {
		t.Errorf("%s with a new gate, checks from %q; want Blocked, and the checks of %s", decided.Verdict.Decision, decided.Run.ChecksFrom,
			first.Run.ID)
	}
}

// A result does not hold where its check could not be run now.
func TestResultNeedsWhatItsJobNeeds(t *testing.T) {
	w := withJobs(t)
	newKubelet(t, w, 0).End()
	if first := w.run(t); first.Verdict.Decision != verdict.Ready {
		t.Fatalf("%s, want Ready", first.Verdict.Decision)
	}
	quotas := w.cluster.Kubernetes.CoreV1().ResourceQuotas("default")
	full := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "full"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/jobs.batch": resource.MustParse("0")}},
	}
	if _, err := quotas.Create(t.Context(), full, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := quotas.Delete(context.WithoutCancel(t.Context()), "full", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		found, err := quotas.Get(ctx, "full", metav1.GetOptions{})
		return err == nil && len(found.Status.Hard) > 0, err
	})
	if err != nil {
		t.Fatalf("the quota has no effect: %v", err)
	}
	if f := find(t, w.run(t), check); f.Outcome != preflight.Unknown {
		t.Errorf("the reused result is %+v, want Unknown: its Job cannot be created", f)
	}
}

func TestChecksAreRunAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		exitCode int32
		change   func(t *testing.T, w *world)
	}{
		"Option": {reason: "the option is set", change: func(_ *testing.T, w *world) { w.options.Limits.Rerun = true }},
		"Failed": {reason: "the cause of a failure may be fixed", exitCode: preflight.ExitFail, change: func(*testing.T, *world) {}},
		"Tool": {
			reason: "another version may evaluate differently",
			change: func(_ *testing.T, w *world) { w.options.Hooks.ToolVersion = "newer" },
		},
		"Node": {reason: "a check may depend on nodes, and one was added", change: func(t *testing.T, w *world) {
			t.Helper()
			nodes := w.cluster.Kubernetes.CoreV1().Nodes()
			if _, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := nodes.Delete(context.WithoutCancel(t.Context()), "new", metav1.DeleteOptions{}); err != nil {
					t.Error(err)
				}
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := withJobs(t)
			node := newKubelet(t, w, tc.exitCode)
			node.End()
			w.run(t)
			before := node.Pods()
			tc.change(t, &w)
			if decided := w.run(t); decided.Run.ChecksFrom != "" || node.Pods() <= before {
				t.Errorf("%s: checks from %q, %d pods after %d", tc.reason, decided.Run.ChecksFrom, node.Pods(), before)
			}
		})
	}
}
