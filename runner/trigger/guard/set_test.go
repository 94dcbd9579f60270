package guard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/ownsignal"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/trigger/guard"
	"github.com/openshift/update-preflight/runner/trigger/owned"
	"github.com/openshift/update-preflight/test/await"
	"github.com/openshift/update-preflight/test/prometheus"
)

func TestChoose(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		texts  []string
		want   guard.Choice
		err    string
	}{
		"None": {reason: "all are off by default"},
		"All": {
			reason: "they are independent", texts: []string{"alert", "clusterOperator", "admission=Deny"},
			want: guard.Choice{Alert: true, ClusterOperator: true, Admission: guard.Deny},
		},
		"Twice": {
			reason: "a repetition changes nothing", texts: []string{"admission=Warn", "admission=Warn"},
			want: guard.Choice{Admission: guard.Warn},
		},
		"BothModes":    {reason: "the policy has one mode", texts: []string{"admission=Warn", "admission=Deny"}, err: "both Warn and Deny"},
		"NoMode":       {reason: "the mode is explicit", texts: []string{"admission"}, err: `"admission" is not one of`},
		"Unknown":      {reason: "the text is named", texts: []string{"alert", "alerts"}, err: `"alerts" is not one of`},
		"UnknownMode":  {reason: "the text is named", texts: []string{"admission=Audit"}, err: `"admission=Audit" is not one of`},
		"NeedlessMode": {reason: "only the policy has a mode", texts: []string{"alert=Warn"}, err: `"alert=Warn" is not one of`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := guard.Choose(tc.texts...)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.err, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// set makes a set, which is removed at the end of the test.
func set(t *testing.T, now func() time.Time, signals ...string) *guard.Set {
	t.Helper()
	createNamespace(t)
	chosen, err := guard.Choose(signals...)
	if err != nil {
		t.Fatal(err)
	}
	made, err := guard.NewSet(client(), chosen, "v1.0.0", now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { uninstall(context.WithoutCancel(t.Context()), t) })
	return made
}

func uninstall(ctx context.Context, t *testing.T) []preflight.Object {
	t.Helper()
	deleted, err := guard.Uninstall(ctx, client())
	if err != nil {
		t.Error(err)
	}
	return deleted
}

// applySet applies a set, and returns when to apply it again.
func applySet(t *testing.T, s *guard.Set, state guard.State) time.Time {
	t.Helper()
	next, err := s.Apply(t.Context(), state)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// policy is the object that has the verdicts.
var policy = preflight.Object{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicy", Name: "update-preflight"}

// verdicts are the decisions of the policy, by digest.
func verdicts(t *testing.T) map[string]string {
	t.Helper()
	policies := kubernetes.NewForConfigOrDie(config).AdmissionregistrationV1().ValidatingAdmissionPolicies()
	found, err := policies.Get(t.Context(), policy.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(found.Spec.Variables, func(variable admissionv1.Variable) bool { return variable.Name == "verdicts" })
	if i < 0 {
		t.Fatal("the policy has no variable with the verdicts")
	}
	decisions := map[string]string{}
	if err := json.Unmarshal([]byte(found.Spec.Variables[i].Expression), &decisions); err != nil {
		t.Fatal(err)
	}
	return decisions
}

// active are the names and modes of the switches that are on.
func active(t *testing.T) []string {
	t.Helper()
	effects, err := guard.Active(t.Context(), client())
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, effect := range effects {
		if effect.Limit == "" || effect.WithoutController == "" {
			t.Errorf("a switch without its limits: %+v", effect)
		}
		names = append(names, strings.TrimSuffix(effect.Name+"="+string(effect.Mode), "="))
	}
	return names
}

// Each switch, and all together, follow a target that is Blocked, fixed, and Blocked again,
// and leave nothing when they are turned off.
func TestSwitchesFollowTheVerdict(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		signals []string
	}{
		"None":            {reason: "only the ClusterOperator exists", signals: []string{}},
		"Alert":           {reason: "the alert depends on metrics", signals: []string{"alert"}},
		"ClusterOperator": {reason: "Upgradeable follows the verdict", signals: []string{"clusterOperator"}},
		"Warn":            {reason: "a warning follows the verdict", signals: []string{"admission=Warn"}},
		"Deny":            {reason: "the denial follows the verdict", signals: []string{"admission=Deny"}},
		"All":             {reason: "no switch disturbs another", signals: []string{"admission=Deny", "alert", "clusterOperator"}},
	} {
		t.Run(name, func(t *testing.T) {
			made := set(t, at(start), tc.signals...)
			for _, decision := range []string{"Blocked", "Ready", "Blocked"} {
				applySet(t, made, guard.State{Verdicts: []guard.Verdict{chosen(verdict("5", "4.18.5", decision))}})
				if diff := cmp.Diff(tc.signals, active(t)); diff != "" {
					t.Errorf("%s: the switches that are on (-want, +got):\n%s", tc.reason, diff)
				}
				expectSignals(t, tc.reason, tc.signals, decision)
			}
			applySet(t, set(t, at(start)), guard.State{Verdicts: []guard.Verdict{chosen(verdict("5", "4.18.5", "Blocked"))}})
			if diff := cmp.Diff([]string{}, active(t)); diff != "" {
				t.Errorf("%s: the switches that are on after they were turned off (-want, +got):\n%s", tc.reason, diff)
			}
			expectSignals(t, tc.reason, nil, "Blocked")
			want := []preflight.Object{{APIVersion: "config.openshift.io/v1", Kind: "ClusterOperator", Name: "update-preflight"}}
			if diff := cmp.Diff(want, uninstall(t.Context(), t)); diff != "" {
				t.Errorf("%s: objects that are left after they were turned off (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// expectSignals fails unless the signals allow, or do not allow, the update to 4.18.5.
func expectSignals(t *testing.T, reason string, signals []string, decision string) {
	t.Helper()
	isReady := decision == guard.Ready
	upgradeable, found := conditionsOf(t)[configv1.OperatorUpgradeable]
	if on := slices.Contains(signals, "clusterOperator"); found != on || on && (upgradeable.Status == configv1.ConditionTrue) != isReady {
		t.Errorf("%s: Upgradeable is %+v, and the verdict is Ready: %t", reason, upgradeable, isReady)
	}
	isDenied, isWarned := slices.Contains(signals, "admission=Deny"), slices.Contains(signals, "admission=Warn")
	clusterVersion(t, nil, updates()...)
	await.Until(t, reason+": the API server uses the verdict "+decision, func(ctx context.Context) bool {
		got := request(ctx, t, blockedRequest)
		return (got.denied != "") == (isDenied && !isReady) && got.objects() == ((isDenied || isWarned) && !isReady)
	})
}

// A verdict expires without an event in the cluster, at the next Apply.
func TestVerdictExpires(t *testing.T) {
	now := start
	made := set(t, func() time.Time { return now }, "clusterOperator", "admission=Deny")
	early, late := chosen(verdict("4", "4.18.4", "Ready")), verdict("5", "4.18.5", "Ready")
	early.ValidUntil = start.Add(time.Hour)
	state := guard.State{Verdicts: []guard.Verdict{late, early, verdict("6", "4.18.6", "Blocked")}}
	if next := applySet(t, made, state); !next.Equal(early.ValidUntil) {
		t.Errorf("the first verdict expires at %s, but it is to be applied again at %s", early.ValidUntil, next)
	}
	now = early.ValidUntil
	if next := applySet(t, made, state); !next.Equal(late.ValidUntil) {
		t.Errorf("the next verdict expires at %s, but it is to be applied again at %s", late.ValidUntil, next)
	}
	if got := verdicts(t); got[digest("4")] != "expired: it was valid until 2026-11-22T13:00:00Z" || got[digest("5")] != "Ready" {
		t.Errorf("the policy uses %v; the verdict on 4.18.4 has expired", got)
	}
	if got := conditionsOf(t)[configv1.OperatorUpgradeable]; got.Status != configv1.ConditionFalse ||
		!strings.Contains(got.Message, "no longer valid") {
		t.Errorf("the verdict has expired: %+v", got)
	}
	now = late.ValidUntil
	if next := applySet(t, made, state); !next.IsZero() || !strings.HasPrefix(verdicts(t)[digest("5")], "expired: ") {
		t.Errorf("all verdicts have expired: next at %s, %v", next, verdicts(t))
	}
}

// A controller that ends does not remove its objects; another one with the same switches
// changes nothing, and Available does not change.
func TestRestart(t *testing.T) {
	state := guard.State{Verdicts: []guard.Verdict{chosen(verdict("5", "4.18.5", "Blocked"))}}
	signals := []string{"admission=Deny", "alert", "clusterOperator"}
	applySet(t, set(t, at(start), signals...), state)
	before, err := openshift().ConfigV1().ClusterOperators().Get(t.Context(), "update-preflight", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	applySet(t, set(t, at(start.Add(time.Hour)), signals...), state)
	after, err := openshift().ConfigV1().ClusterOperators().Get(t.Context(), "update-preflight", metav1.GetOptions{})
	if err != nil || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the ClusterOperator was changed by a restart: %v\n%s", err, cmp.Diff(before, after))
	}
	if got := conditionsOf(t)[configv1.OperatorAvailable]; got.Status != configv1.ConditionTrue || !got.LastTransitionTime.Time.Equal(start) {
		t.Errorf("Available has changed: %+v", got)
	}
}

// A switch that cannot be applied is a cause of Degraded; the others are applied.
func TestDegraded(t *testing.T) {
	made := set(t, at(start), "admission=Deny", "clusterOperator")
	policies := client().Resource(resources(policy))
	foreign := &unstructured.Unstructured{}
	foreign.SetAPIVersion(policy.APIVersion)
	foreign.SetKind(policy.Kind)
	foreign.SetName(policy.Name)
	if err := errors.Join(
		unstructured.SetNestedSlice(foreign.Object, []any{map[string]any{"expression": "true"}}, "spec", "validations"),
		unstructured.SetNestedSlice(foreign.Object, []any{map[string]any{
			"apiGroups": []any{"example.com"}, "apiVersions": []any{"*"}, "operations": []any{"*"}, "resources": []any{"*"},
		}}, "spec", "matchConstraints", "resourceRules"),
	); err != nil {
		t.Fatal(err)
	}
	if _, err := policies.Create(t.Context(), foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	state := guard.State{Verdicts: []guard.Verdict{chosen(verdict("5", "4.18.5", "Blocked"))}}
	const cause = "ValidatingAdmissionPolicy \"update-preflight\" does not belong to the preflight"
	if _, err := made.Apply(t.Context(), state); err == nil || !strings.Contains(err.Error(), cause) {
		t.Errorf("want an error with %q, got %v", cause, err)
	}
	expectDegraded(t, cause)
	if got := conditionsOf(t)[configv1.OperatorUpgradeable]; got.Status != configv1.ConditionFalse {
		t.Errorf("the other switch was not applied: %+v", got)
	}
	if err := policies.Delete(t.Context(), policy.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	applySet(t, made, state)
	expectDegraded(t, "")
	state.Degraded = "the verdicts could not be read:\x1b[1m " + strings.Repeat("x", 1<<20)
	applySet(t, made, state)
	expectDegraded(t, "the verdicts could not be read: xxx")
}

// expectDegraded fails unless Degraded has the cause, or is False without one; Available is
// True in any case.
func expectDegraded(t *testing.T, cause string) {
	t.Helper()
	conditions := conditionsOf(t)
	degraded := conditions[configv1.OperatorDegraded]
	if (degraded.Status == configv1.ConditionTrue) != (cause != "") || !strings.Contains(degraded.Message, cause) ||
		len(degraded.Message) > 1024 {
		t.Errorf("want the cause %q, got %+v", cause, degraded)
	}
	if conditions[configv1.OperatorAvailable].Status != configv1.ConditionTrue ||
		conditions[configv1.OperatorProgressing].Status != configv1.ConditionFalse {
		t.Errorf("Available is not True, or Progressing is not False: %+v", conditions)
	}
}

// unserved sends requests for ClusterOperators to an API that does not exist.
type unserved struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (u unserved) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.URL.Path = strings.Replace(request.URL.Path, "clusteroperators", "unserved", 1)
	return u.RoundTripper.RoundTrip(request)
}

func TestWithoutClusterOperators(t *testing.T) {
	plain := rest.CopyConfig(config)
	plain.Wrap(func(next http.RoundTripper) http.RoundTripper { return unserved{next} })
	for name, tc := range map[string]struct {
		reason  string
		chosen  guard.Choice
		healthy bool
	}{
		"Off": {reason: "a cluster without the API has no ClusterOperator", healthy: true},
		"On":  {reason: "a switch that was turned on has no effect", chosen: guard.Choice{ClusterOperator: true}},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := guard.NewSet(dynamic.NewForConfigOrDie(plain), tc.chosen, "v1.0.0", at(start))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := made.Apply(t.Context(), guard.State{}); (err == nil) != tc.healthy {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// The maximum number of verdicts fits into the objects.
func TestManyVerdicts(t *testing.T) {
	var many []guard.Verdict
	for i := range guard.MaxVerdicts {
		many = append(many, guard.Verdict{
			Digest: fmt.Sprintf("sha256:%064x", i), Version: "4.18.4-" + strings.Repeat("x", 200), Decision: "Undecided",
			ValidUntil: start.Add(time.Hour), Chosen: i == 0,
		})
	}
	applySet(t, set(t, at(start), "admission=Deny", "alert", "clusterOperator"), guard.State{Verdicts: many})
	if got := len(verdicts(t)); got != guard.MaxVerdicts {
		t.Errorf("the policy uses %d verdicts, want %d", got, guard.MaxVerdicts)
	}
}

// Uninstall removes the objects that deny first, for any choice, and may be repeated.
func TestUninstall(t *testing.T) {
	applySet(t, set(t, at(start), "admission=Deny", "alert", "clusterOperator"), guard.State{})
	var got []string
	for _, object := range uninstall(t.Context(), t) {
		got = append(got, object.Kind)
	}
	want := []string{"ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy", "PrometheusRule", "ClusterOperator"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("deleted (-want, +got):\n%s", diff)
	}
	if again := uninstall(t.Context(), t); len(again) > 0 {
		t.Errorf("deleted again: %v", again)
	}
}

// The metrics have the job of the Service.
func TestJobOfTheMetrics(t *testing.T) {
	for _, rule := range rules(t) {
		if strings.Contains(rule.Expr, "job=") && !strings.Contains(rule.Expr, `job="`+guard.Service+`"`) {
			t.Errorf("the expression %q selects another job than %q", rule.Expr, guard.Service)
		}
	}
}

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
		guard.Alert(client()), guard.ClusterOperator(client(), "v1.0.0", at(start)), admission(t, guard.Warn, start),
		admission(t, guard.Deny, start),
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
		if err == nil || !strings.Contains(err.Error(), `ClusterOperator "update-preflight" does not belong to the preflight`) {
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
		"Many":    {"an object has a size", many, "501 verdicts"},
		"Digest":  {"a digest becomes a key of a ConfigMap", []guard.Verdict{{Digest: "sha256:../x", Version: "4.18.4"}}, `"sha256:../x"`},
		"Version": {"a version is part of messages", []guard.Verdict{{Digest: digest("4"), Version: "4.18.4\nx"}}, `"4.18.4\nx"`},
		"SameTwice": {
			"one digest has one verdict",
			[]guard.Verdict{verdict("4", "4.18.4", "Ready"), verdict("4", "4.18.4", "Blocked")},
			digest("4"),
		},
		"TwoChosen": {
			"Upgradeable depends on one target",
			[]guard.Verdict{chosen(verdict("4", "4.18.4", "Ready")), chosen(verdict("5", "4.18.5", "Ready"))},
			"both 4.18.4 and 4.18.5",
		},
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
		"NoTarget": {"no target is chosen", []guard.Verdict{verdict("5", "4.19.1", "Blocked")}, configv1.ConditionTrue, "No target is chosen."},
		"Ready": {"the target is Ready, and another one is not", []guard.Verdict{
			chosen(verdict("5", "4.19.1", "Ready")),
			verdict("6", "4.19.2", "Blocked"),
		}, configv1.ConditionTrue, "The preflight of 4.19.1 is Ready."},
		"Blocked": {
			"the target and the remedy are named",
			[]guard.Verdict{chosen(verdict("5", "4.19.1", "Blocked"))},
			configv1.ConditionFalse,
			ownsignal.Message("the preflight of 4.19.1 is Blocked. Follow its report: oc preflight status --to 4.19.1"),
		},
		"Undecided": {
			"Undecided is not Ready",
			[]guard.Verdict{chosen(verdict("5", "4.19.1", "Undecided"))},
			configv1.ConditionFalse,
			ownsignal.Message("the preflight of 4.19.1 is Undecided. Follow its report: oc preflight status --to 4.19.1"),
		},
		"NoVerdict": {
			"no verdict is not Ready",
			[]guard.Verdict{chosen(verdict("5", "4.19.1", ""))},
			configv1.ConditionFalse,
			ownsignal.Message("the preflight of 4.19.1 has no verdict. Follow its report: oc preflight status --to 4.19.1"),
		},
		"NoVersion": {
			"the version of the target is unknown",
			[]guard.Verdict{chosen(verdict("5", "", "Blocked"))},
			configv1.ConditionFalse,
			ownsignal.Message("the preflight of " + digest("5") + " is Blocked. Follow its report: oc preflight status --to-image " + digest("5")),
		},
		"NoDigest": {"the image of the target has no digest", []guard.Verdict{noDigest}, configv1.ConditionFalse, ownsignal.Message(
			"the preflight of 4.19.1 has no verdict, since the image has no digest. Follow its report: oc preflight status --to 4.19.1")},
		"Expired": {
			"a verdict that has expired is none",
			[]guard.Verdict{expired},
			configv1.ConditionFalse,
			ownsignal.Message("the preflight of 4.19.1 has a verdict that is no longer valid. Follow its report: oc preflight status --to 4.19.1"),
		},
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
	if !got[configv1.OperatorUpgradeable].LastTransitionTime.Time.Equal(later) ||
		!got[configv1.OperatorAvailable].LastTransitionTime.Time.Equal(start) {
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
	found := get(t, preflight.Object{
		APIVersion: "monitoring.coreos.com/v1", Kind: "PrometheusRule", Namespace: ownsignal.Namespace,
		Name: "update-preflight",
	})
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
		"Ready": {"the verdict is Ready", []prometheus.Rule{
			up, series("Ready", "true", "1"), series("Blocked", "true", "0"),
			series("Undecided", "true", "0"),
		}, nil},
		"Blocked": {"the verdict is Blocked", []prometheus.Rule{
			up, series("Ready", "true", "0"), series("Blocked", "true", "1"),
			series("Undecided", "true", "0"),
		}, []string{blocked}},
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
		if !ownsignal.Alert(name, string(alert.Labels["namespace"])) || alert.Labels["openShiftUpdatePrecheck"] != "true" ||
			alert.Labels["severity"] != "warning" {
			t.Errorf("alert %s has the labels %v", name, alert.Labels)
		}
		if alert.State == prometheusv1.AlertStateFiring {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
