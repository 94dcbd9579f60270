package rehearsal_test

import (
	"log/slog"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/rehearsal"
)

// TestAsks asks about the next pods of controllers whose pods a drain evicts.
func TestAsks(t *testing.T) {
	asOperator(t)
	for name, tc := range map[string]struct {
		// id is that of the namespace.
		reason, id, before, then string
		// says is a part of why it is refused; empty for a pod that is admitted. by refuses it.
		by, says string
		full     bool
	}{
		"Admitted":     {reason: "nothing refuses it", id: "a", before: app},
		"LimitRange":   {reason: "a ratio that is newer than the pod", id: "b", before: app, then: ratio, by: "LimitRange", says: "max limit to request ratio"},
		"RuntimeClass": {reason: "a class that was deleted since", id: "c", before: classed, then: "delete RuntimeClass gone-c", by: "the API server", says: `RuntimeClass "gone-c" not found`},
		"Full":         {reason: "a quota without room until a pod is evicted", id: "d", before: app, then: replaced(quota, "RESOURCE", "pods"), by: `quota "few"`, says: "exceeded quota", full: true},
		"Unspecified": {
			reason: "a quota of what the template does not request is no matter of room", id: "e", before: app, then: replaced(quota, "RESOURCE", "requests.cpu"), by: `quota "few"`,
			says: "must specify requests.cpu",
		},
		"PodSecurity": {
			reason: "a level that is newer than the pod", id: "f", before: app, then: replaced(namespace, "name: NS", "name: NS, labels: {pod-security.kubernetes.io/enforce: restricted}"),
			by: "Pod Security", says: "violates PodSecurity",
		},
	} {
		t.Run(name, func(t *testing.T) {
			fill := strings.NewReplacer("NS", "asked-"+tc.id, "ID", tc.id)
			prepare(t, fill.Replace(tc.before), fill.Replace(tc.then))
			set := replicaSetOf(t, "asked-"+tc.id)
			gone := preflight.Object{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: set.Namespace, Name: "gone"}
			said, err := rehearsal.Asks(server, rehearsal.Guarded, slog.New(slog.DiscardHandler)).Ask(t.Context(), []preflight.Object{set, gone})
			if err != nil {
				t.Fatal(err)
			}
			got, asked := said[set]
			if !asked || len(said) != 1 || (got.Admitted != nil) != (tc.says == "") || got.By != tc.by || got.Full != tc.full || !strings.Contains(got.Why, tc.says) {
				t.Errorf("%s: %+v", tc.reason, said)
			}
			noGuard(t)
		})
	}
}

const (
	ratio   = `{apiVersion: v1, kind: LimitRange, metadata: {name: r, namespace: NS}, spec: {limits: [{type: Container, default: {cpu: "1"}, defaultRequest: {cpu: 100m}, maxLimitRequestRatio: {cpu: "2"}}]}}`
	classed = namespace + `---
{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: gone-ID}, handler: runc}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: app, namespace: NS}
spec:
  selector: {matchLabels: {app: one}}
  template:
    metadata: {labels: {app: one}}
    spec: {runtimeClassName: gone-ID, containers: [{name: a, image: "example.com/a:1"}]}
`
)

// replicaSetOf is the ReplicaSet of the Deployment of a namespace.
func replicaSetOf(t *testing.T, namespace string) preflight.Object {
	t.Helper()
	sets, err := server.Kubernetes.AppsV1().ReplicaSets(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(sets.Items) != 1 {
		t.Fatalf("%d ReplicaSets: %v", len(sets.Items), err)
	}
	return preflight.Object{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "ReplicaSet", Namespace: namespace, Name: sets.Items[0].Name}
}

// noGuard fails the test where a guard is left.
func noGuard(t *testing.T) {
	t.Helper()
	policies, err := server.Kubernetes.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range policies.Items {
		if strings.HasPrefix(policies.Items[i].Name, "preflight-rehearsal-") {
			t.Errorf("%s is left", policies.Items[i].Name)
		}
	}
}

// TestNothingToAsk has no guard created for nothing.
func TestNothingToAsk(t *testing.T) {
	asks := rehearsal.Asks(server, rehearsal.Guarded, slog.New(slog.DiscardHandler))
	if said, err := asks.Ask(t.Context(), nil); err != nil || len(said) > 0 {
		t.Errorf("%v, %v", said, err)
	}
	if rehearsal.Asks(server, rehearsal.Off, nil) != nil {
		t.Error("a rehearsal that is off asks")
	}
}
