package controller_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/controller"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
	"github.com/openshift/update-preflight/test/await"
	"github.com/openshift/update-preflight/test/build"
)

const (
	minor = "4.19.1"
	patch = "4.18.9"
)

func TestObjectsOfOffers(t *testing.T) {
	w := newWorld(t)
	w.install()
	w.setVersion(available(patch, minor))
	w.start()
	w.awaitObjects(patch+" ahead Pending", minor+" ahead Pending")
	if diff := cmp.Diff(v1alpha1.Target{Image: image(minor)}, w.object(minor).Spec.Target); diff != "" {
		t.Errorf("the target (-want +got):\n%s", diff)
	}
	w.setVersion(available(patch))
	w.awaitObjects(patch + " ahead Pending")
	w.setVersion()
	w.awaitObjects()
}

func TestVerdictsAreProjected(t *testing.T) {
	w := newWorld(t)
	w.install()
	w.setVersion(available(minor))
	w.start()
	w.awaitObjects(minor + " ahead Pending")
	blocked := w.run(minor, blocks("RiskA"))
	status := w.awaitStatus(minor, "Blocked", phase(v1alpha1.Blocked))
	if status.Run != blocked || !slices.Equal(status.Blocking, []string{"RiskA"}) || status.ValidUntil == nil {
		t.Errorf("the status is not that of the run %s: %+v", blocked, status)
	}
	blockedIn := w.cluster.Now().Truncate(time.Second)
	await.Until(w.t, "the next second, since times are recorded to the second", func(context.Context) bool {
		return time.Now().Truncate(time.Second).After(blockedIn.Add(time.Second))
	})
	ready := w.run(minor)
	if output, err := w.kubectl("wait", "--for=condition=Ready", "--timeout=60s", "updatepreflight/"+minor); err != nil {
		t.Errorf("kubectl wait: %v: %s", err, output)
	}
	status = w.object(minor).Status
	if status.Run != ready || status.Decision != "Ready" || len(status.History) != 1 || status.History[0].Run != ready {
		t.Errorf("the status is not that of the run %s: %+v", ready, status)
	}
	want := []string{
		"Warning Blocked: " + minor + ": blocked by RiskA. See: oc preflight status " + blocked,
		"Normal Ready: " + minor + ": no finding blocks",
	}
	await.Until(w.t, "the events are "+strings.Join(want, ", "),
		func(ctx context.Context) bool { return slices.Equal(w.events(ctx, minor), want) })

	// The status is a projection: changes of other clients are overwritten.
	forged := w.object(minor)
	forged.Status.Decision, forged.Status.Blocking = "Blocked", []string{"Forged"}
	if err := w.client.Status().Update(t.Context(), forged); err != nil {
		t.Fatal(err)
	}
	w.setVersion(available(minor, patch)) // an event
	w.awaitStatus(minor, "the verdict of the record", func(s v1alpha1.UpdatePreflightStatus) bool {
		return s.Decision == "Ready" && len(s.Blocking) == 0
	})
}

// An edited record has no verdict.
func TestForgedRecordsAreNotProjected(t *testing.T) {
	w := newWorld(t)
	w.install()
	w.setVersion(available(minor))
	w.run(minor, blocks("RiskA"))
	w.start()
	w.awaitStatus(minor, "Blocked", phase(v1alpha1.Blocked))
	var headers corev1.ConfigMapList
	if err := w.client.List(t.Context(), &headers, client.InNamespace(record.Namespace), client.HasLabels{record.Label}); err != nil {
		t.Fatal(err)
	}
	forged := &headers.Items[0]
	forged.Data["verdict.json"] = strings.ReplaceAll(forged.Data["verdict.json"], "Blocked", "Ready")
	forged.Labels["preflight.openshift.io/decision"] = "Ready"
	if err := w.client.Update(t.Context(), forged); err != nil {
		t.Fatal(err)
	}
	status := w.awaitStatus(minor, "no verdict", func(s v1alpha1.UpdatePreflightStatus) bool { return s.Decision == "" })
	if status.Phase != v1alpha1.Pending {
		t.Errorf("the phase is %s, want Pending", status.Phase)
	}
}

// A controller without the definition runs, and uses it when it is created.
// An edit that changes no label ends a verdict at once, too.
func TestAttacksByEditedRecord(t *testing.T) {
	w := newWorld(t)
	w.install()
	w.setVersion(available(minor))
	w.run(minor)
	w.start()
	w.awaitStatus(minor, "Ready", func(s v1alpha1.UpdatePreflightStatus) bool { return s.Decision == "Ready" })
	var headers corev1.ConfigMapList
	if err := w.client.List(t.Context(), &headers, client.InNamespace(record.Namespace), client.HasLabels{record.Label}); err != nil {
		t.Fatal(err)
	}
	edited := &headers.Items[0]
	edited.Data["verdict.json"] += " "
	if err := w.client.Update(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	w.awaitStatus(minor, "no verdict", func(s v1alpha1.UpdatePreflightStatus) bool { return s.Decision == "" })
}

// The cluster-version operator only compares times: the controller states in the record that
// a verdict has ended.
func TestChangedClusterEndsTheRecordedVerdict(t *testing.T) {
	w := newWorld(t)
	w.install()
	w.setVersion(available(minor))
	id := w.run(minor)
	w.start()
	w.awaitStatus(minor, "Ready", func(s v1alpha1.UpdatePreflightStatus) bool { return s.Decision == "Ready" })
	added := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "added"}}
	w.create(added)
	t.Cleanup(func() {
		if err := w.client.Delete(context.WithoutCancel(t.Context()), added); err != nil {
			t.Error(err)
		}
	})
	await.Until(t, "the record states the end of the verdict", func(ctx context.Context) bool {
		found, err := recordstore.New(w.cluster.Kubernetes).Get(ctx, id)
		return err == nil && found.Ended == "Node added is new" && found.Verified() == nil
	})
}

// An administrator whose version differs from the controller's is not locked out: the verdict counts, with the difference,
// until the controller has made its own.
func TestVerdictOfAnotherVersionCounts(t *testing.T) {
	w := newWorld(t)
	w.install()
	w.setVersion(available(minor, patch))
	own := w.run(patch)
	w.toolVersion = "other"
	w.run(minor)
	w.start()
	w.awaitObjects(patch+" ahead Ready", minor+" ahead Ready")
	if status := w.object(patch).Status; status.Run != own {
		t.Errorf("the status is that of run %s, want %s", status.Run, own)
	}
	message := meta.FindStatusCondition(w.object(minor).Status.Conditions, v1alpha1.ConditionReady).Message
	if want := "the run was made by version other, which differs from the controller's " + toolVersion; !strings.Contains(message, want) {
		t.Errorf("the condition states %q, which lacks %q", message, want)
	}
}

// A run that cannot be made is stated with its cause.
func TestFailedRunIsReported(t *testing.T) {
	w := newWorld(t)
	w.install()
	w.setVersion(available(minor), desired(configv1.Update{Version: minor}))
	lead(t, w.cluster, w.log, controller.Options{
		Run:     runner.Options{Limits: runner.Limits{Timeout: time.Nanosecond}},
		Signals: newSignals(t, w.cluster),
	})
	status := w.awaitStatus(minor, "RunFailed", func(s v1alpha1.UpdatePreflightStatus) bool {
		condition := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
		return condition != nil && condition.Reason == "RunFailed" && strings.Contains(condition.Message, "deadline exceeded")
	})
	if status.Phase != v1alpha1.Pending {
		t.Errorf("the phase is %s, want Pending", status.Phase)
	}
	await.Until(w.t, "an event has the cause", func(ctx context.Context) bool {
		events := w.events(ctx, minor)
		return len(events) > 0 && strings.HasPrefix(events[len(events)-1], "Warning RunFailed: "+minor+": the last run failed") &&
			strings.Contains(events[len(events)-1], "deadline exceeded")
	})
	w.setVersion()
}

// What built-in checks read has changed: the verdict is judged again, and ends where its
// decision differs.
func TestVerdictIsJudgedAgain(t *testing.T) {
	w := newWorld(t)
	w.install()
	w.setVersion(available(minor))
	etcd := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: "etcd"}}
	w.create(etcd)
	t.Cleanup(func() {
		if err := w.client.Delete(context.WithoutCancel(t.Context()), etcd); err != nil {
			t.Error(err)
		}
	})
	same := w.run(patch, finding.Unknown(finding.ReportedReason("Unknown"), "it is unknown").Named("Etcd.Quorum").From(finding.SourceJob))
	id := w.run(minor, finding.Unknown(finding.ReportedReason("Unknown"), "it is unknown").Named("Etcd.Quorum").From(finding.SourceJob))
	lead(t, w.cluster, w.log, controller.Options{
		Ahead: 3, Run: runner.Options{Limits: runner.Limits{Timeout: stepTimeout}}, JudgePause: time.Millisecond,
		Signals: newSignals(t, w.cluster),
	})
	w.awaitStatus(minor, "Undecided", phase(v1alpha1.Undecided))
	etcd.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{
		Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse, Reason: "NotYet", LastTransitionTime: metav1.Now(),
	}}
	if err := w.client.Status().Update(t.Context(), etcd); err != nil {
		t.Fatal(err)
	}
	records := recordstore.New(w.cluster.Kubernetes)
	await.Until(t, "the record states the end of the verdict", func(ctx context.Context) bool {
		found, err := records.Get(ctx, id)
		return err == nil && found.Ended == "the cluster has changed: after reevaluation, the decision is Blocked" && found.Verified() == nil
	})
	if found, err := records.Get(t.Context(), same); err != nil || found.Ended != "" {
		t.Errorf("the verdict on a release that is not offered has ended: %s, %v", found.Ended, err)
	}
}

func TestDefinitionIsMissing(t *testing.T) {
	w := newWorld(t)
	w.setVersion(available(minor))
	w.start()
	await.Until(w.t, "the log has the missing definition", func(context.Context) bool {
		return strings.Contains(w.log.String(), "updatepreflights.preflight.openshift.io")
	})
	w.setVersion(available(minor, patch)) // another event does not log another message
	w.install()
	w.awaitObjects(patch+" ahead Pending", minor+" ahead Pending")
	if count := strings.Count(w.log.String(), "CustomResourceDefinition does not exist"); count != 1 {
		t.Errorf("the log has the missing definition %d times, want 1", count)
	}
	w.uninstall()
	await.Until(w.t, "the log has the missing definition again", func(context.Context) bool {
		return strings.Count(w.log.String(), "CustomResourceDefinition does not exist") == 2
	})
	w.create(w.definition())
	w.awaitObjects(patch+" ahead Pending", minor+" ahead Pending")
	w.setVersion(available(minor))
	w.awaitObjects(minor + " ahead Pending")
	deleted := w.object(minor)
	if err := w.client.Delete(t.Context(), deleted); err != nil {
		t.Fatal(err)
	}
	await.Until(w.t, "an object that was deleted is created again", func(ctx context.Context) bool {
		var found v1alpha1.UpdatePreflight
		return w.client.Get(ctx, client.ObjectKeyFromObject(deleted), &found) == nil && found.UID != deleted.UID
	})
}

// requestFor returns an object of an administrator for a version, whose registry does not exist.
func requestFor(name, version string) *v1alpha1.UpdatePreflight {
	return &v1alpha1.UpdatePreflight{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.UpdatePreflightSpec{Target: v1alpha1.Target{Image: "127.0.0.1:1/release@" + strings.SplitAfter(image(version),
			"@")[1]}},
	}
}

// The signature of the release is not verified, so the verdict is Undecided.
func TestRequestRuns(t *testing.T) {
	w := newWorld(t)
	w.install()
	w.start()
	later := requestFor("later", patch)
	later.Spec.When = &v1alpha1.When{At: &metav1.Time{Time: time.Now().Add(time.Hour)}}
	w.create(later)
	w.create(requestFor("mine", minor))
	status := w.awaitStatus("mine", "Undecided", phase(v1alpha1.Undecided))
	w.awaitStatus("later", "Pending", phase(v1alpha1.Pending))
	recorded, err := recordstore.New(w.cluster.Kubernetes).Get(t.Context(), status.Run)
	if err != nil {
		t.Fatal(err)
	}
	if recorded.Requester != record.ByUser || recorded.Decision != "Undecided" || len(status.Undecided) == 0 {
		t.Errorf("the status is not that of the run %+v: %+v", recorded.Intent, status)
	}
}

// A selected target comes first; the request is continued later, and ends when its object is deleted.
func TestRequestYields(t *testing.T) {
	w := newWorld(t)
	w.install()
	w.start()
	held := w.hold(minor)
	mine := requestFor("mine", minor)
	w.create(mine)
	if status := w.awaitStatus("mine", "Checking", phase(v1alpha1.Checking)); status.Run != held {
		t.Errorf("the run in progress is %q, want %q", status.Run, held)
	}
	logged := func(what, text string, times int) {
		t.Helper()
		await.Until(w.t, what, func(context.Context) bool { return strings.Count(w.log.String(), text) == times })
	}
	logged("the request runs", "requester=user object=mine", 1)
	w.setVersion(desired(configv1.Update{Image: requestFor("", patch).Spec.Target.Image}))
	logged("the request yields", `cause="another run comes first"`, 1)
	logged("the selected target runs", "requester=selected", 1)
	logged("the request continues", "requester=user object=mine", 2)
	if err := w.client.Delete(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	logged("the request is withdrawn", `cause="the result of the run is not needed"`, 1)
	logged("all runs have ended", "the preflight has ended", 3)
	if recorded, err := recordstore.New(w.cluster.Kubernetes).Get(t.Context(), held); err != nil || recorded.Phase != record.Running {
		t.Errorf("the run of another process is in phase %s: %v; it is never canceled", recorded.Phase, err)
	}
	w.setVersion()
}

// Many objects at their bounds delay neither each other nor the controller's own.
func TestHostileObjects(t *testing.T) {
	w := newWorld(t)
	w.install()
	const count = 500
	var accepted []string
	for i := range 64 {
		accepted = append(accepted, fmt.Sprintf("N%0255d", i))
	}
	for i := range count {
		hostile := &v1alpha1.UpdatePreflight{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%0*d", 63, i)},
			Spec: v1alpha1.UpdatePreflightSpec{
				Target:           v1alpha1.Target{Version: "99.99.99-" + strings.Repeat("a", 118)},
				AcceptedFindings: accepted,
			},
		}
		w.create(hostile)
	}
	w.setVersion(available(minor))
	w.start()
	w.awaitStatus(minor, "Pending", phase(v1alpha1.Pending))
	w.awaitStatus(fmt.Sprintf("%0*d", 63, runplan.MaxObjects-2), "New", phase(v1alpha1.New))
	w.run(minor)
	w.awaitStatus(minor, "Ready", phase(v1alpha1.Ready))
}

// kubectl runs kubectl, and returns what it writes.
func (w *world) kubectl(args ...string) (string, error) {
	w.t.Helper()
	root, err := build.Root()
	if err != nil {
		w.t.Fatal(err)
	}
	command := exec.CommandContext(w.t.Context(), build.Bin(root)+"/kubectl", args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	output, err := command.CombinedOutput()
	return string(output), err
}
