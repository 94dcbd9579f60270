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
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/trigger/guard"
	"github.com/openshift/update-preflight/test/await"
)

func TestChoose(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		texts  []string
		want   guard.Choice
		err    string
	}{
		"None":         {reason: "all are off by default"},
		"All":          {reason: "they are independent", texts: []string{"alert", "clusterOperator", "admission=Deny"}, want: guard.Choice{Alert: true, ClusterOperator: true, Admission: guard.Deny}},
		"Twice":        {reason: "a repetition changes nothing", texts: []string{"admission=Warn", "admission=Warn"}, want: guard.Choice{Admission: guard.Warn}},
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
	if got := verdicts(t); got[digest("4")] != "not valid: it was valid until 2026-11-22T13:00:00Z" || got[digest("5")] != "Ready" {
		t.Errorf("the policy uses %v; the verdict on 4.18.4 has expired", got)
	}
	if got := conditionsOf(t)[configv1.OperatorUpgradeable]; got.Status != configv1.ConditionFalse || !strings.Contains(got.Message, "no longer valid") {
		t.Errorf("the verdict has expired: %+v", got)
	}
	now = late.ValidUntil
	if next := applySet(t, made, state); !next.IsZero() || !strings.HasPrefix(verdicts(t)[digest("5")], "not valid: ") {
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
	const cause = "ValidatingAdmissionPolicy \"update-preflight\" is not of the preflight"
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
	if (degraded.Status == configv1.ConditionTrue) != (cause != "") || !strings.Contains(degraded.Message, cause) || len(degraded.Message) > 1024 {
		t.Errorf("want the cause %q, got %+v", cause, degraded)
	}
	if conditions[configv1.OperatorAvailable].Status != configv1.ConditionTrue || conditions[configv1.OperatorProgressing].Status != configv1.ConditionFalse {
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
			Digest: fmt.Sprintf("sha256:%064x", i), Version: "4.18.4-" + strings.Repeat("x", 200), Decision: "Undecided", ValidUntil: start.Add(time.Hour), Chosen: i == 0,
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
