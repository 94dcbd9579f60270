package guard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/ownsignal"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/trigger/guard"
	"github.com/openshift/update-preflight/runner/trigger/owned"
	"github.com/openshift/update-preflight/test/await"
	"github.com/openshift/update-preflight/test/prometheus"
)

func resources(object preflight.Object) schema.GroupVersionResource {
	version, _ := schema.ParseGroupVersion(object.APIVersion)
	names := map[string]string{
		"ClusterOperator": "clusteroperators", "PrometheusRule": "prometheusrules",
		"ValidatingAdmissionPolicy": "validatingadmissionpolicies", "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
	}
	return version.WithResource(names[object.Kind])
}

func get(t *testing.T, object preflight.Object) *unstructured.Unstructured {
	t.Helper()
	found, err := client().Resource(resources(object)).Namespace(object.Namespace).Get(t.Context(), object.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// switches are all, of which only one is applied at a time.
func switches(t *testing.T) []*guard.Switch {
	t.Helper()
	return []*guard.Switch{
		guard.Alert(client()), guard.ClusterOperator(client(), "v1.0.0", at(start)), admission(t, guard.Warn, start), admission(t, guard.Deny, start),
	}
}

// The same verdicts change nothing, every object is listed and labeled, and a removal
// leaves nothing.
func TestSwitches(t *testing.T) {
	verdicts := []guard.Verdict{verdict("4", "4.18.4", "Ready"), chosen(verdict("5", "4.19.1", "Blocked"))}
	for _, each := range switches(t) {
		t.Run(each.Name(), func(t *testing.T) {
			if found, err := each.List(t.Context()); err != nil || len(found) > 0 {
				t.Fatalf("before it is applied: %v, %v", found, err)
			}
			apply(t, each, verdicts...)
			listed, err := each.List(t.Context())
			if err != nil || len(listed) == 0 {
				t.Fatalf("objects: %v, %v", listed, err)
			}
			var first []map[string]any
			for _, object := range listed {
				found := get(t, object)
				first = append(first, content(found))
				if found.GetLabels()[owned.Label] != each.Name() || found.GetManagedFields()[0].Manager != owned.FieldManager {
					t.Errorf("%v: labels %v, manager %q", object, found.GetLabels(), found.GetManagedFields()[0].Manager)
				}
			}
			apply(t, each, verdicts...)
			for i, object := range listed {
				if diff := cmp.Diff(first[i], content(get(t, object))); diff != "" {
					t.Errorf("%v was changed by the same verdicts (-first, +second):\n%s", object, diff)
				}
			}
			deleted, err := each.Remove(t.Context())
			slices.Reverse(deleted)
			if diff := cmp.Diff(listed, deleted); err != nil || diff != "" {
				t.Errorf("deleted (-want, +got): %v\n%s", err, diff)
			}
			if deleted, err := each.Remove(t.Context()); err != nil || len(deleted) > 0 {
				t.Errorf("deleted again: %v, %v", deleted, err)
			}
			if found, err := each.List(t.Context()); err != nil || len(found) > 0 {
				t.Errorf("left: %v, %v", found, err)
			}
		})
	}
}

// content is an object without what the API server and, for a policy, its controller set.
func content(object *unstructured.Unstructured) map[string]any {
	object = object.DeepCopy()
	object.SetResourceVersion("")
	object.SetManagedFields(nil)
	if object.GetKind() == "ValidatingAdmissionPolicy" {
		unstructured.RemoveNestedField(object.Object, "status")
	}
	return object.Object
}

// An object that has a name of the preflight and is not the preflight's is neither
// changed nor deleted.
func TestForeignObject(t *testing.T) {
	operators := openshift().ConfigV1().ClusterOperators()
	foreign := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: "update-preflight"}}
	created, err := operators.Create(t.Context(), foreign, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = operators.Delete(context.WithoutCancel(t.Context()), "update-preflight", metav1.DeleteOptions{})
	})
	made := guard.ClusterOperator(client(), "v1.0.0", at(start))
	_, listed := made.List(t.Context())
	_, removed := made.Remove(t.Context())
	for name, err := range map[string]error{"Apply": made.Apply(t.Context(), guard.State{}), "Remove": removed, "List": listed} {
		if err == nil || !strings.Contains(err.Error(), `ClusterOperator "update-preflight" is not of the preflight`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	found, err := operators.Get(t.Context(), "update-preflight", metav1.GetOptions{})
	if err != nil || found.ResourceVersion != created.ResourceVersion {
		t.Errorf("the object was changed: %v, %v", found, err)
	}
}

func TestInvalidVerdicts(t *testing.T) {
	var many []guard.Verdict
	for i := range 501 {
		many = append(many, guard.Verdict{Digest: fmt.Sprintf("sha256:%064x", i), Version: "4.18.4"})
	}
	for name, tc := range map[string]struct {
		reason   string
		verdicts []guard.Verdict
		want     string
	}{
		"Many":      {"an object has a size", many, "501 verdicts"},
		"Digest":    {"a digest becomes a key of a ConfigMap", []guard.Verdict{{Digest: "sha256:../x", Version: "4.18.4"}}, `"sha256:../x"`},
		"Version":   {"a version is part of messages", []guard.Verdict{{Digest: digest("4"), Version: "4.18.4\nx"}}, `"4.18.4\nx"`},
		"SameTwice": {"one digest has one verdict", []guard.Verdict{verdict("4", "4.18.4", "Ready"), verdict("4", "4.18.4", "Blocked")}, digest("4")},
		"TwoChosen": {"Upgradeable depends on one target", []guard.Verdict{chosen(verdict("4", "4.18.4", "Ready")), chosen(verdict("5", "4.18.5", "Ready"))}, "both 4.18.4 and 4.18.5"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, each := range switches(t) {
				if err := each.Apply(t.Context(), guard.State{Verdicts: tc.verdicts}); err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%s: %s: want an error with %q, got %v", each.Name(), tc.reason, tc.want, err)
				}
				if found, err := each.List(t.Context()); err != nil || len(found) > 0 {
					t.Errorf("%s: %s: objects were made: %v, %v", each.Name(), tc.reason, found, err)
				}
			}
		})
	}
}

func TestUpgradeable(t *testing.T) {
	expired := chosen(verdict("5", "4.19.1", "Ready"))
	expired.ValidUntil = start
	noDigest := chosen(verdict("5", "4.19.1", "Ready"))
	noDigest.Digest = ""
	for name, tc := range map[string]struct {
		reason   string
		verdicts []guard.Verdict
		status   configv1.ConditionStatus
		message  string
	}{
		"NoTarget":  {"no target is chosen", []guard.Verdict{verdict("5", "4.19.1", "Blocked")}, configv1.ConditionTrue, "No target is chosen."},
		"Ready":     {"the target is Ready, and another one is not", []guard.Verdict{chosen(verdict("5", "4.19.1", "Ready")), verdict("6", "4.19.2", "Blocked")}, configv1.ConditionTrue, "The preflight of 4.19.1 is Ready."},
		"Blocked":   {"the target and the remedy are named", []guard.Verdict{chosen(verdict("5", "4.19.1", "Blocked"))}, configv1.ConditionFalse, ownsignal.Message("the preflight of 4.19.1 is Blocked. Follow its report: oc preflight status --to 4.19.1")},
		"Undecided": {"Undecided is not Ready", []guard.Verdict{chosen(verdict("5", "4.19.1", "Undecided"))}, configv1.ConditionFalse, ownsignal.Message("the preflight of 4.19.1 is Undecided. Follow its report: oc preflight status --to 4.19.1")},
		"NoVerdict": {"no verdict is not Ready", []guard.Verdict{chosen(verdict("5", "4.19.1", ""))}, configv1.ConditionFalse, ownsignal.Message("the preflight of 4.19.1 has no verdict. Follow its report: oc preflight status --to 4.19.1")},
		"NoVersion": {"the version of the target is unknown", []guard.Verdict{chosen(verdict("5", "", "Blocked"))}, configv1.ConditionFalse, ownsignal.Message("the preflight of " + digest("5") + " is Blocked. Follow its report: oc preflight status --to-image " + digest("5"))},
		"NoDigest":  {"the image of the target has no digest", []guard.Verdict{noDigest}, configv1.ConditionFalse, ownsignal.Message("the preflight of 4.19.1 has no verdict, since the image has no digest. Follow its report: oc preflight status --to 4.19.1")},
		"Expired":   {"a verdict that has expired is none", []guard.Verdict{expired}, configv1.ConditionFalse, ownsignal.Message("the preflight of 4.19.1 has a verdict that is no longer valid. Follow its report: oc preflight status --to 4.19.1")},
	} {
		t.Run(name, func(t *testing.T) {
			apply(t, guard.ClusterOperator(client(), "v1.0.0", at(start)), tc.verdicts...)
			got := conditionsOf(t)
			want := map[configv1.ClusterStatusConditionType]configv1.ConditionStatus{
				configv1.OperatorAvailable: configv1.ConditionTrue, configv1.OperatorProgressing: configv1.ConditionFalse,
				configv1.OperatorDegraded: configv1.ConditionFalse, configv1.OperatorUpgradeable: tc.status,
			}
			for kind, status := range want {
				if got[kind].Status != status {
					t.Errorf("%s: %s is %s, want %s", tc.reason, kind, got[kind].Status, status)
				}
			}
			closed := got[configv1.OperatorUpgradeable]
			if closed.Message != tc.message {
				t.Errorf("%s: message %q, want %q", tc.reason, closed.Message, tc.message)
			}
			// CVO repeats it, and the next preflight does not count it.
			if closed.Status == configv1.ConditionFalse && !ownsignal.Upgradeable("RiskNameNotCompatibleWithReasonProperty", closed.Message) {
				t.Errorf("%s: the signal is not recognized as own: %q", tc.reason, closed.Message)
			}
		})
	}
}

func conditionsOf(t *testing.T) map[configv1.ClusterStatusConditionType]configv1.ClusterOperatorStatusCondition {
	t.Helper()
	found, err := openshift().ConfigV1().ClusterOperators().Get(t.Context(), "update-preflight", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	conditions := map[configv1.ClusterStatusConditionType]configv1.ClusterOperatorStatusCondition{}
	for _, condition := range found.Status.Conditions {
		conditions[condition.Type] = condition
	}
	return conditions
}

// A condition has the time of its last transition, and the operator lists the objects
// that must-gather collects.
func TestClusterOperatorStatus(t *testing.T) {
	blocked, ready := chosen(verdict("5", "4.19.1", "Blocked")), chosen(verdict("5", "4.19.1", "Ready"))
	later := start.Add(time.Hour)
	apply(t, guard.ClusterOperator(client(), "v1.0.0", at(start)), blocked)
	apply(t, guard.ClusterOperator(client(), "v1.0.0", at(later)), blocked)
	if got := conditionsOf(t)[configv1.OperatorUpgradeable].LastTransitionTime; !got.Time.Equal(start) {
		t.Errorf("the condition did not change since %s, but its last transition is at %s", start, got)
	}
	apply(t, guard.ClusterOperator(client(), "v1.0.0", at(later)), ready)
	got := conditionsOf(t)
	if !got[configv1.OperatorUpgradeable].LastTransitionTime.Time.Equal(later) || !got[configv1.OperatorAvailable].LastTransitionTime.Time.Equal(start) {
		t.Errorf("only Upgradeable has changed at %s: %+v", later, got)
	}
	found, err := openshift().ConfigV1().ClusterOperators().Get(t.Context(), "update-preflight", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]configv1.OperandVersion{{Name: "operator", Version: "v1.0.0"}}, found.Status.Versions); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	const namespace = "openshift-update-preflight"
	want := []configv1.ObjectReference{
		{Resource: "namespaces", Name: namespace},
		{Resource: "configmaps", Namespace: "openshift-cluster-version"},
		{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Name: "updatepreflights.preflight.openshift.io"},
		{Group: "preflight.openshift.io", Resource: "updatepreflights"},
		{Group: "monitoring.coreos.com", Resource: "prometheusrules", Namespace: namespace, Name: "update-preflight"},
		{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies", Name: "update-preflight"},
		{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicybindings", Name: "update-preflight"},
	}
	if diff := cmp.Diff(want, found.Status.RelatedObjects); diff != "" {
		t.Errorf("related objects (-want +got):\n%s", diff)
	}
}

// rules are those that the API server has stored.
func rules(t *testing.T) []prometheus.Rule {
	t.Helper()
	apply(t, guard.Alert(client()))
	found := get(t, preflight.Object{APIVersion: "monitoring.coreos.com/v1", Kind: "PrometheusRule", Namespace: ownsignal.Namespace, Name: "update-preflight"})
	groups, _, err := unstructured.NestedSlice(found.Object, "spec", "groups")
	if err != nil || len(groups) != 1 {
		t.Fatalf("groups: %v, %v", groups, err)
	}
	var parsed struct {
		Rules []prometheus.Rule `json:"rules"`
	}
	text, err := json.Marshal(groups[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed.Rules
}

// The expressions are evaluated by a real Prometheus.
func TestAlerts(t *testing.T) {
	const blocked, silent = "UpdatePreflightBlocked", "UpdatePreflightUnknown"
	var shared prometheus.Shared
	t.Cleanup(func() {
		if err := shared.Stop(); err != nil {
			t.Error(err)
		}
	})
	up := prometheus.Rule{Record: "update_preflight_up", Expr: "vector(1)", Labels: map[string]string{"job": "update-preflight"}}
	down := up
	down.Expr = "vector(0)"
	series := func(decision, isGuard, value string) prometheus.Rule {
		return prometheus.Rule{
			Record: "update_preflight_verdict", Expr: "vector(" + value + ")",
			Labels: map[string]string{"target": "4.19.1", "digest": digest("5"), "decision": decision, "guard": isGuard},
		}
	}
	for name, tc := range map[string]struct {
		reason string
		series []prometheus.Rule
		want   []string
	}{
		"Ready":     {"the verdict is Ready", []prometheus.Rule{up, series("Ready", "true", "1"), series("Blocked", "true", "0"), series("Undecided", "true", "0")}, nil},
		"Blocked":   {"the verdict is Blocked", []prometheus.Rule{up, series("Ready", "true", "0"), series("Blocked", "true", "1"), series("Undecided", "true", "0")}, []string{blocked}},
		"Undecided": {"Undecided is not Ready", []prometheus.Rule{up, series("Undecided", "true", "1")}, []string{blocked}},
		"Other":     {"the target is not the one that stops updates", []prometheus.Rule{up, series("Blocked", "false", "1")}, nil},
		"Silent":    {"the controller does not report", nil, []string{silent}},
		"Down":      {"the controller reports that it is down", []prometheus.Rule{down}, []string{silent}},
	} {
		t.Run(name, func(t *testing.T) {
			alerts := rules(t)
			if len(alerts) != 2 || alerts[1].For != "10m" {
				t.Fatalf("the second alert waits for 10m: %+v", alerts)
			}
			alerts[1].For = "" // it fires at once
			server := shared.Load(t, slices.Concat(tc.series, alerts)...)
			var got []string
			await.Until(t, "the alerts fire", func(ctx context.Context) bool {
				got = firing(ctx, t, server.URL)
				return cmp.Equal(tc.want, got)
			})
		})
	}
}

// firing returns the names of the alerts that fire. Each is an own signal and has the
// labels of a risk of updates.
func firing(ctx context.Context, t *testing.T, url string) []string {
	t.Helper()
	find := func(context.Context) (*rest.Config, error) { return &rest.Config{Host: url}, nil }
	active, err := monitoring.New(find, monitoring.DefaultTimeout).Alerts(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, alert := range active {
		name := string(alert.Labels["alertname"])
		if !ownsignal.Alert(name, string(alert.Labels["namespace"])) || alert.Labels["openShiftUpdatePrecheck"] != "true" || alert.Labels["severity"] != "warning" {
			t.Errorf("alert %s has the labels %v", name, alert.Labels)
		}
		if alert.State == prometheusv1.AlertStateFiring {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
