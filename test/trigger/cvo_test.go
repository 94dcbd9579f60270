package trigger_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	configclient "github.com/openshift/client-go/config/clientset/versioned"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"

	"github.com/openshift/update-preflight/cmd/oc-preflight/command"
	"github.com/openshift/update-preflight/runner/trigger/guard"
	"github.com/openshift/update-preflight/runner/trigger/published"
	"github.com/openshift/update-preflight/test/versionoperator"
)

// CVO rejects a selected update while the controller checks it and while it is Blocked, and
// starts it once the remedy has been verified.
func TestCVOFollowsTheVerdict(t *testing.T) {
	const gate = "ack-5.1-kube-1.38-api-removals-in-5.2"
	w := newWorld(t, map[string][]string{minor: {"slow"}})
	w.State.Gates[gate] = "Kubernetes 1.38 removes APIs that may be used in this cluster."
	w.offer(minor)
	w.publish()
	operator := versionoperator.Start(t, local.Config)

	w.selectUpdate(configv1.Update{Version: minor})
	missing := w.awaitClusterVersion("there is no verdict", rejectedWith("PreflightMissing"))
	if got := missing.Status.Desired.Version; got == minor {
		t.Errorf("CVO started the update to %s without a verdict", got)
	}
	w.start("--ahead=0")
	w.awaitClusterVersion("the run is in progress",
		rejectedWith(`Preconditions failed for payload loaded version="`+minor+`" image="`+w.images[minor]+
			`": Precondition "Preflight" failed because of "PreflightInProgress": the preflight of `+minor+
			` is in progress; see: oc preflight status`))
	blocked := w.awaitClusterVersion("the verdict is Blocked",
		rejectedWith("the preflight of "+minor+" is Blocked by AdminAck-"+gate+"; see: oc preflight status "))

	if blocked.Status.ObservedGeneration >= blocked.Generation {
		t.Error("the preflight must not wait until CVO has raised observedGeneration, which takes it minutes")
	}

	// The message must be stable, since CVO writes its status whenever it changes.
	before := operator.Writes.Load()
	operator.AwaitSyncs(t, 5)
	if after := operator.Writes.Load(); after != before {
		t.Errorf("CVO wrote its status %d times while nothing changed", after-before)
	}

	w.preflight("ack", gate)
	w.run()
	done := w.awaitClusterVersion("the update is completed", completed(minor))
	if condition := find(done, "ReleaseAccepted"); condition.Status != configv1.ConditionTrue || condition.Reason != "PayloadLoaded" {
		t.Errorf("the condition is %+v, want True and PayloadLoaded", condition)
	}
	if risks := done.Status.History[0].AcceptedRisks; risks != "" {
		t.Errorf("the history has accepted risks %q, but nothing was accepted", risks)
	}
}

func TestCVORecordsAcceptedRisks(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		// accept has the accepted findings of a run before the selection; none if nil.
		accept []string
		force  bool
		risks  string
	}{
		"Accepted": {
			reason: "an accepted finding does not block, and is recorded as a risk", accept: []string{"Zoo.Animal"},
			risks: `Precondition "Preflight" failed because of "PreflightAccepted": the preflight of 5.2.0 is Ready with accepted findings: Zoo.Animal`,
		},
		"Forced": {
			reason: "force bypasses every precondition", force: true,
			risks: `Forced through blocking failures: Precondition "Preflight" failed because of "PreflightMissing": the preflight of 5.2.0 is not recorded; run: oc preflight run --to 5.2.0`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string][]string{minor: {"fail"}})
			w.offer(minor)
			if tc.accept != nil {
				w.run("--accept", strings.Join(tc.accept, ","))
			}
			w.publish()
			versionoperator.Start(t, local.Config)
			w.selectUpdate(configv1.Update{Version: minor, Image: w.images[minor], Force: tc.force})
			done := w.awaitClusterVersion("the update is completed", completed(minor))
			if got := done.Status.History[0].AcceptedRisks; got != tc.risks {
				t.Errorf("%s, but the history has %q, want %q", tc.reason, got, tc.risks)
			}
		})
	}
}

// The signals of a Blocked verdict are inputs of the next run: CVO copies Upgradeable=False
// of the ClusterOperator to ClusterVersion, and rejects the update. They must not keep the
// verdict Blocked.
func TestOwnSignalsAreNoInputs(t *testing.T) {
	const gate = "ack-5.1-kube-1.38-api-removals-in-5.2"
	w := newWorld(t, map[string][]string{minor: {"pass"}})
	w.State.Gates[gate] = "Kubernetes 1.38 removes APIs that may be used in this cluster."
	w.offer(minor)
	t.Cleanup(w.removeSignals)
	versionoperator.Start(t, local.Config)
	w.start("--signal=clusterOperator", "--signal=admission=Deny")
	w.awaitRuns(minor + " ahead Complete Blocked")
	signaled := w.awaitClusterVersion("CVO copies the signal", func(v *configv1.ClusterVersion) bool {
		return find(v, configv1.OperatorUpgradeable).Status == configv1.ConditionFalse
	})
	if message := find(signaled, configv1.OperatorUpgradeable).Message; !strings.Contains(message,
		"Cluster operator update-preflight should not be upgraded") {
		t.Errorf("Upgradeable=False has another cause: %s", message)
	}
	w.awaitSelection("denied", func(err error) bool { return err != nil && strings.Contains(err.Error(), "its verdict is Blocked") })

	w.preflight("ack", gate)
	w.run()
	w.awaitClusterVersion("CVO has removed the signal", func(v *configv1.ClusterVersion) bool {
		return find(v, configv1.OperatorUpgradeable).Status == ""
	})
	w.awaitSelection("allowed", func(err error) bool { return err == nil })
	w.selectUpdate(configv1.Update{Version: minor})
	w.awaitClusterVersion("the update is completed", completed(minor))
}

// publish publishes the recorded verdicts until the end of the test, as a controller does
// that runs nothing.
func (w *world) publish() {
	w.t.Helper()
	w.t.Cleanup(func() {
		if _, err := published.Remove(context.WithoutCancel(w.t.Context()), w.client); err != nil {
			w.t.Error(err)
		}
	})
	listed, err := w.records.List(w.t.Context())
	if err == nil {
		_, err = published.Apply(w.t.Context(), w.client, listed, "", time.Now())
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// removeSignals removes all signals, and waits until the API server denies no selection any
// longer: it reads policies once a second.
func (w *world) removeSignals() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.t.Context()), timeout)
	defer cancel()
	if _, err := guard.Uninstall(ctx, dynamic.NewForConfigOrDie(local.Config)); err != nil {
		w.t.Error(err)
	}
	if err := awaitSelection(ctx, patch, func(err error) bool { return err == nil }); err != nil {
		w.t.Errorf("the policy is still in effect: %v", err)
	}
}

// awaitSelection waits until the error of a dry run of the selection of minor is as
// expected.
func (w *world) awaitSelection(want string, expected func(error) bool) {
	w.t.Helper()
	ctx, cancel := w.while()
	defer cancel()
	if err := awaitSelection(ctx, minor, expected); err != nil {
		w.t.Fatalf("the selection is not %s: %v; %v", want, context.Cause(ctx), err)
	}
}

// awaitSelection waits until the error of a dry run of the selection of a version is as
// expected. It returns the last one if ctx ends before.
func awaitSelection(ctx context.Context, version string, expected func(error) bool) error {
	client := configclient.NewForConfigOrDie(local.Config).ConfigV1().ClusterVersions()
	selection := []byte(`{"spec":{"desiredUpdate":{"version":"` + version + `"}}}`)
	var last error
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, last = client.Patch(ctx, "version", types.MergePatchType, selection, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return expected(last), nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// run runs the preflight of minor, which must be Ready.
func (w *world) run(args ...string) {
	w.t.Helper()
	w.preflight(append([]string{"run", "--to", minor, "--prometheus", w.monitoring}, args...)...)
}

// preflight runs oc-preflight in this process; it must succeed.
func (w *world) preflight(args ...string) {
	w.t.Helper()
	var stdout, stderr bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr}
	args = append([]string{"oc-preflight", "--kubeconfig", local.Kubeconfig}, args...)
	if code := command.Execute(w.t.Context(), args, streams); code != 0 {
		w.t.Fatalf("%q: exit code %d, want 0:\n%s%s", args, code, &stdout, &stderr)
	}
}

// selectUpdate selects an update as oc adm upgrade does.
func (w *world) selectUpdate(update configv1.Update) {
	w.t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"desiredUpdate": update}})
	if err != nil {
		w.t.Fatal(err)
	}
	client := configclient.NewForConfigOrDie(local.Config).ConfigV1().ClusterVersions()
	if _, err := client.Patch(w.t.Context(), "version", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// awaitClusterVersion waits until ClusterVersion is as expected, and returns it.
func (w *world) awaitClusterVersion(want string, expected func(*configv1.ClusterVersion) bool) *configv1.ClusterVersion {
	w.t.Helper()
	ctx, cancel := w.while()
	defer cancel()
	found, err := versionoperator.Await(ctx, local.Config, timeout, expected)
	if err != nil {
		w.t.Fatalf("ClusterVersion does not show that %s: %v; %v", want, context.Cause(ctx), err)
	}
	return found
}

func find(object *configv1.ClusterVersion, kind configv1.ClusterStatusConditionType) configv1.ClusterOperatorStatusCondition {
	i := slices.IndexFunc(object.Status.Conditions, func(c configv1.ClusterOperatorStatusCondition) bool { return c.Type == kind })
	if i < 0 {
		return configv1.ClusterOperatorStatusCondition{}
	}
	return object.Status.Conditions[i]
}

func rejectedWith(text string) func(*configv1.ClusterVersion) bool {
	return func(object *configv1.ClusterVersion) bool {
		condition := find(object, "ReleaseAccepted")
		return condition.Status == configv1.ConditionFalse && condition.Reason == "PreconditionChecks" &&
			strings.Contains(condition.Message, text)
	}
}

func completed(version string) func(*configv1.ClusterVersion) bool {
	return func(object *configv1.ClusterVersion) bool {
		return object.Status.Desired.Version == version && object.Status.History[0].Version == version &&
			object.Status.History[0].State == configv1.CompletedUpdate
	}
}
