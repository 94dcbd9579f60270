package controller_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
	"github.com/openshift/update-preflight/runner/trigger/schedule"
	"github.com/openshift/update-preflight/test/await"
)

func TestDecideScheduled(t *testing.T) {
	t.Parallel()
	const scheduled, other = "4.19.1", "4.18.9"
	runs := planned{Run: scheduled, Requester: record.Ahead}
	for name, tc := range map[string]struct {
		reason   string
		version  *configv1.ClusterVersion
		in       time.Duration
		runs     []runplan.Run
		draining bool
		want     planned
	}{
		"Early": {
			reason: "the first run is two hours before", version: clusterVersion(), in: 5 * time.Hour,
			want: planned{Next: 3 * time.Hour},
		},
		"First": {reason: "the run is due, without a delay", version: clusterVersion(), in: 2 * time.Hour, want: runs},
		"Second": {
			reason: "the second run is thirty minutes before", version: clusterVersion(), in: time.Hour,
			runs: []runplan.Run{ended(scheduled, verdict.Ready, 50*time.Minute)}, want: planned{Next: 30 * time.Minute},
		},
		"SecondDue": {
			reason: "a verdict of the first run does not suffice", version: clusterVersion(), in: 30 * time.Minute,
			runs: []runplan.Run{ended(scheduled, verdict.Ready, 80*time.Minute)}, want: runs,
		},
		"Done": {
			reason: "nothing more is due", version: clusterVersion(), in: 10 * time.Minute,
			runs: []runplan.Run{ended(scheduled, verdict.Ready, 15*time.Minute)},
		},
		"Over": {reason: "MUO has started the update", version: clusterVersion(), in: -time.Minute},
		"Running": {
			reason: "the run continues although nothing offers its release", version: clusterVersion(), in: time.Hour,
			runs: []runplan.Run{progress(scheduled, record.Ahead)}, want: runs,
		},
		"Selected": {reason: "a selected target comes first", version: clusterVersion(available(other),
			desired(configv1.Update{Version: other})), in: time.Hour, want: planned{Run: other, Requester: record.BySelection}},
		"Offered": {
			reason: "a scheduled run comes before runs ahead", version: clusterVersion(available(other, scheduled)), in: time.Hour,
			want: runs,
		},
		"Updating": {
			reason:  "nothing runs during an update",
			version: clusterVersion(condition(configv1.OperatorProgressing, configv1.ConditionTrue)), in: time.Hour,
		},
		"Draining": {reason: "no check starts on a node that is drained", version: clusterVersion(), in: time.Hour, draining: true},
		"Accepted": {reason: "CVO has accepted it", version: clusterVersion(accepted(scheduled)), in: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := runplan.Decide(runplan.State{
				Now: noon, ClusterVersion: tc.version, Draining: tc.draining, Ahead: 3, Runs: tc.runs,
				Scheduled: &schedule.Scheduled{Release: update.Release{Version: scheduled, Image: image(scheduled)}, At: noon.Add(tc.in)},
			})
			if diff := cmp.Diff(tc.want, plannedOf(plan)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// The managed-upgrade-operator is installed while the controller runs, and schedules an
// update: its UpdatePreflight states whether the verdict is available in time.
func TestScheduledUpdate(t *testing.T) {
	w := newWorld(t)
	w.install()
	w.setVersion(available(minor))
	w.start()
	w.awaitStatus(minor, "Pending", phase(v1alpha1.Pending))
	config := w.schedule(minor, "")
	w.awaitOutlook(minor, metav1.ConditionUnknown, schedule.Pending)
	w.run(minor, blocks("Check"))
	w.awaitOutlook(minor, metav1.ConditionFalse, schedule.Blocked)

	violation := config.DeepCopy()
	if err := unstructured.SetNestedField(violation.Object, "tomorrow", "spec", "upgradeAt"); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Patch(t.Context(), violation, client.MergeFrom(config)); err != nil {
		t.Fatal(err)
	}
	w.awaitOutlook(minor, metav1.ConditionUnknown, schedule.Outlook(schedule.InvalidUpgradeAt))
	await.Until(w.t, "the violation is logged",
		func(context.Context) bool { return strings.Contains(w.log.String(), "reason=InvalidUpgradeAt") })
}

// The update to the next minor version is in another channel, whose graph has the release.
func TestScheduledUpdateOfAnotherChannel(t *testing.T) {
	const next = "4.19.7"
	graphs := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("channel") != "stable-4.19" || r.URL.Query().Has("id") {
			t.Errorf("requested %s", r.URL)
		}
		fmt.Fprintf(rw, `{"nodes":[{"version":%q,"payload":%q}]}`, next, image(next))
	}))
	t.Cleanup(graphs.Close)
	w := newWorld(t)
	w.install()
	w.setVersion(available(patch))
	w.setUpstream(graphs.URL)
	w.start()
	w.schedule(next, "stable-4.19")
	w.awaitOutlook(next, metav1.ConditionUnknown, schedule.Pending)
}

// schedule installs the managed-upgrade-operator's resource, and schedules an update.
func (w *world) schedule(version, channel string) *unstructured.Unstructured {
	w.t.Helper()
	w.installUpgradeConfigs()
	config := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"type": "OSD", "PDBForceDrainTimeout": int64(60), "upgradeAt": time.Now().Add(5 * time.Hour).Format(time.RFC3339),
		"desired": map[string]any{"version": version, "channel": channel},
	}}}
	config.SetAPIVersion("upgrade.managed.openshift.io/v1alpha1")
	config.SetKind("UpgradeConfig")
	config.SetNamespace(record.Namespace)
	config.SetName(schedule.Name)
	w.create(config)
	return config
}

// setUpstream sets the update service of the cluster for the time of the test.
func (w *world) setUpstream(address string) {
	w.t.Helper()
	set := func(ctx context.Context, address string) {
		patch := fmt.Appendf(nil, `{"spec":{"upstream":%q}}`, address)
		if err := w.client.Patch(ctx, &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}},
			client.RawPatch(types.MergePatchType, patch)); err != nil {
			w.t.Error(err)
		}
	}
	set(w.t.Context(), address)
	w.t.Cleanup(func() { set(context.WithoutCancel(w.t.Context()), "") })
}

func (w *world) awaitOutlook(name string, status metav1.ConditionStatus, reason schedule.Outlook) {
	w.t.Helper()
	w.awaitStatus(name, string(reason), func(s v1alpha1.UpdatePreflightStatus) bool {
		found := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionScheduledUpdate)
		return found != nil && found.Status == status && found.Reason == string(reason)
	})
}

func (w *world) installUpgradeConfigs() {
	w.t.Helper()
	text, err := os.ReadFile("../../../collector/health/testdata/upgradeconfigs.crd.yaml")
	if err != nil {
		w.t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, crd); err != nil {
		w.t.Fatal(err)
	}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: record.Namespace}})
	w.create(crd)
	w.t.Cleanup(func() {
		if err := w.client.Delete(context.WithoutCancel(w.t.Context()), crd); client.IgnoreNotFound(err) != nil {
			w.t.Error(err)
		}
	})
	await.Until(w.t, "UpgradeConfigs are served", func(ctx context.Context) bool {
		all := &unstructured.UnstructuredList{}
		all.SetAPIVersion("upgrade.managed.openshift.io/v1alpha1")
		all.SetKind("UpgradeConfigList")
		return w.client.List(ctx, all) == nil
	})
}
