package hostedruns_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/hostedruns"
	"github.com/openshift/update-preflight/test/await"
)

func (w *world) hostedClusters() dynamic.ResourceInterface {
	return w.management.Dynamic.Resource(hypershift.GroupVersion().WithResource("hostedclusters")).Namespace("clusters")
}

// denied reports whether the API server denies the update of a hosted cluster to a release.
func (w *world) denied(ctx context.Context, name, digit string) bool {
	patch := `{"spec":{"release":{"image":"` + pullSpec(digit) + `"}}}`
	_, err := w.hostedClusters().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	return apierrors.IsInvalid(err)
}

// The hosted clusters take turns, one run at a time, and their verdicts are shown and honored.
func TestTurns(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"one", "three", "two"} {
		w.create(name)
	}
	w.decide = func(_ context.Context, name, _ string) (report.Report, error) {
		if name == "two" {
			return decided(verdict.Blocked, "RiskA"), nil
		}
		return decided(verdict.Ready), nil
	}
	w.lead(func(o *hostedruns.Options) { o.Ahead = 2 })
	w.awaitShown("one 4.18.4 ahead Ready", "one 4.19.0 ahead Ready", "three 4.18.4 ahead Ready", "three 4.19.0 ahead Ready",
		"two 4.18.4 ahead Blocked", "two 4.19.0 ahead Blocked")
	want := []string{"one 4.19.0", "three 4.19.0", "two 4.19.0", "one 4.18.4", "three 4.18.4", "two 4.18.4"}
	if diff := cmp.Diff(want, w.runs()); diff != "" || w.most != 1 {
		t.Errorf("%d runs side by side; runs (-want, +got):\n%s", w.most, diff)
	}
	await.Until(t, "the verdicts are honored", func(ctx context.Context) bool {
		return !w.denied(ctx, "one", "4") && !w.denied(ctx, "three", "9") && w.denied(ctx, "two", "4") && w.denied(ctx, "one", "5")
	})
	shown := w.object("two")
	ready := meta.FindStatusCondition(shown.Status.Conditions, v1alpha1.ConditionReady)
	if !slices.Equal(shown.Status.Blocking, []string{"RiskA"}) || !strings.Contains(ready.Message, "hosted cluster clusters/two") {
		t.Errorf("the verdict is not that of the hosted cluster: %+v, %+v", shown.Status, ready)
	}
	if until := shown.Status.ValidUntil; until == nil || until.After(time.Now().Add(hostedruns.MaxAge+time.Minute)) {
		t.Errorf("the verdict is valid until %s", until)
	}
}

// A guest that does not respond, or cannot be reached, delays no other hosted cluster.
func TestUnreachable(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a-hangs", "b-unreachable", "c-fails", "d-works"} {
		w.create(name)
	}
	w.decide = func(ctx context.Context, name, _ string) (report.Report, error) {
		switch name {
		case "a-hangs":
			<-ctx.Done()
			return report.Report{}, ctx.Err()
		case "b-unreachable":
			return decided(verdict.Undecided, "Guest"), nil
		case "c-fails":
			return report.Report{}, errors.New("the release cannot be read")
		}
		return decided(verdict.Ready), nil
	}
	w.lead(func(o *hostedruns.Options) { o.Runs = 2 })
	w.awaitShown("a-hangs 4.19.0 ahead Checking", "b-unreachable 4.19.0 ahead Undecided", "c-fails 4.19.0 ahead Pending",
		"d-works 4.19.0 ahead Ready")
	if got := w.object("b-unreachable").Status.Undecided; !slices.Equal(got, []string{"Guest"}) || w.most != 2 {
		t.Errorf("inconclusive: %q; %d runs side by side", got, w.most)
	}
	await.Until(t, "the failure is shown", func(context.Context) bool {
		//nolint:contextcheck // that of the test
		failed := meta.FindStatusCondition(w.object("c-fails").Status.Conditions, v1alpha1.ConditionReady)
		return failed != nil && strings.Contains(failed.Message, "the release cannot be read")
	})
	if err := w.hostedClusters().Delete(t.Context(), "a-hangs", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.awaitShown("b-unreachable 4.19.0 ahead Undecided", "c-fails 4.19.0 ahead Pending", "d-works 4.19.0 ahead Ready")
}

// A verdict does not count once the hosted cluster has another state, and is made again.
func TestChange(t *testing.T) {
	w := newWorld(t)
	w.create("one")
	w.lead(func(*hostedruns.Options) {})
	w.awaitShown("one 4.19.0 ahead Ready")
	w.mutex.Lock()
	w.decide = func(context.Context, string, string) (report.Report, error) {
		return decided(verdict.Blocked, "RiskB"), nil
	}
	w.mutex.Unlock()
	patch := `{"status":{"conditions":[{"type":"ClusterVersionUpgradeable","status":"False","reason":"Test","message":""}]}}`
	if _, err := w.hostedClusters().Patch(t.Context(), "one", types.MergePatchType, []byte(patch), metav1.PatchOptions{},
		"status"); err != nil {
		t.Fatal(err)
	}
	w.awaitShown("one 4.19.0 ahead Blocked")
}

// An administrator requests the preflight of a release that is not offered; the release that the
// HostedCluster requests comes first. Hosted clusters beyond the bound have no runs.
func TestRequests(t *testing.T) {
	w := newWorld(t)
	w.create("one")
	w.create("two")
	for _, name := range []string{"one", "two"} {
		object := &v1alpha1.UpdatePreflight{ObjectMeta: metav1.ObjectMeta{Name: "tonight-" + name}}
		object.Spec.HostedCluster = &v1alpha1.HostedCluster{Namespace: "clusters", Name: name}
		object.Spec.Target.Image = pullSpec("7")
		if err := w.client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	patch := `{"spec":{"release":{"image":"` + pullSpec("4") + `"}}}`
	await.Until(t, "the API server uses no policy of a former test", func(ctx context.Context) bool {
		_, err := w.hostedClusters().Patch(ctx, "one", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err == nil
	})
	w.lead(func(o *hostedruns.Options) { o.Clusters = 1; o.Ahead = 0 })
	w.awaitShown("one 4.18.4 selected Ready", "one Ready", "two New")
	if diff := cmp.Diff([]string{"one 4.18.4", "one "}, w.runs()); diff != "" {
		t.Errorf("runs (-want, +got):\n%s", diff)
	}
	unknown := meta.FindStatusCondition(w.object("two").Status.Conditions, v1alpha1.ConditionReady)
	if !strings.Contains(unknown.Message, "more hosted clusters than the 1 that have preflights") {
		t.Errorf("the cause is not shown: %+v", unknown)
	}
}

func TestImmutable(t *testing.T) {
	w := newWorld(t)
	object := &v1alpha1.UpdatePreflight{ObjectMeta: metav1.ObjectMeta{Name: "immutable"}}
	object.Spec.HostedCluster = &v1alpha1.HostedCluster{Namespace: "clusters", Name: "one"}
	object.Spec.Target.Image = pullSpec("7")
	if err := w.client.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	other := object.DeepCopy()
	other.Spec.HostedCluster.Name = "two"
	none := object.DeepCopy()
	none.Spec.HostedCluster = nil
	for _, changed := range []*v1alpha1.UpdatePreflight{other, none} {
		if err := w.client.Update(t.Context(), changed); err == nil || !strings.Contains(err.Error(), "the hosted cluster is immutable") {
			t.Errorf("want an error, got %v", err)
		}
	}
}

func TestOptions(t *testing.T) {
	for name, options := range map[string]hostedruns.Options{
		"Clusters": {Clusters: hostedruns.MaxClusters + 1, Runs: 1}, "Runs": {Clusters: 1, Runs: hostedruns.MaxRuns + 1},
		"Ahead": {Clusters: 1, Runs: 1, Ahead: 99}, "Missing": {Clusters: 1, Runs: 1},
	} {
		if err := hostedruns.Add(nil, nil, options); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}
