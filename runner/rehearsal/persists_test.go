package rehearsal_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/rehearsal"
	"github.com/openshift/update-preflight/test/await"
)

// parts of a payload: 900 manifests of the kinds that a real one has, in thirty namespaces.
const perNamespace = 30

// payloadOf are the manifests of a payload whose images have a tag.
func payloadOf(tag string) string {
	var documents []string
	for i := range perNamespace {
		fill := strings.NewReplacer("NS", fmt.Sprintf("openshift-payload-%d", i), "ID", fmt.Sprint(i), "example.com/a:2", "example.com/a:"+tag,
			"MODES", "a, "+tag)
		documents = append(documents, fill.Replace(namespace), fill.Replace(replaced(things, "thingsID", "partsID", "ThingID", "PartID")))
		for j := range perNamespace - 2 {
			documents = append(documents, strings.ReplaceAll(fill.Replace(part(j)), "NAME", fmt.Sprintf("part-%d", j)))
		}
	}
	return strings.Join(documents, "---\n")
}

// part is one of the kinds of a payload.
func part(j int) string {
	parts := []string{
		replaced(appNext, "name: app", "name: NAME", "spec:\n  selector", "spec:\n  replicas: 0\n  selector"),
		replaced(settings, "settings", "NAME", `a: "1"`, `a: "MODES"`),
		`{apiVersion: v1, kind: Service, metadata: {name: NAME, namespace: NS}, spec: {ports: [{port: 443}], selector: {app: MODES}}}`,
		`{apiVersion: v1, kind: ServiceAccount, metadata: {name: NAME, namespace: NS}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: NAME, namespace: NS}, rules: [{apiGroups: [""], resources: [pods], verbs: [get, MODES]}]}`,
		replaced(binding, "name: b", "name: NAME", "ROLE", "view"),
	}
	return strings.ReplaceAll(parts[j%len(parts)], "MODES", "a")
}

// TestNothingPersists rehearses a whole payload over a healthy cluster: nothing is refused, and afterwards etcd has the
// same keys at the same
// revisions, but for leases. The payload is really applied then.
func TestNothingPersists(t *testing.T) {
	asOperator(t)
	prepare(t, payloadOf("v1"), "")
	manifests := manifestsOf(t, strings.ReplaceAll(payloadOf("v2"), `a: "a"`, `a: "b"`))
	before := settled(t)
	findings := rehearse(t, manifests)
	if len(findings) != 1 || findings[0].Name != rehearsal.Name || findings[0].Outcome != preflight.Pass {
		t.Fatalf("%+v, want that all are accepted", findings)
	}
	t.Log(findings[0].Message)
	after, err := store.Revisions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, withoutLeases(after)); diff != "" {
		t.Errorf("keys that the rehearsal changed:\n%s", diff)
	}
	if err := apply(t, manifests); err != nil {
		t.Errorf("really applied: %v", err)
	}
}

// settled are the keys and their revisions, once the controllers have done with the Deployments.
func settled(t *testing.T) (found map[string]int64) {
	t.Helper()
	const quiet = 20 // polls in a row without a change
	same := 0
	await.Until(t, "no changes", func(ctx context.Context) bool {
		all, err := store.Revisions(ctx)
		if err != nil || !observed(ctx, t) {
			same = 0
			return false
		}
		last := found
		if found = withoutLeases(all); maps.Equal(last, found) {
			same++
		} else {
			same = 0
		}
		return same == quiet
	})
	return found
}

// observed reports whether the controller of Deployments has seen each of them, and stated it.
func observed(ctx context.Context, t *testing.T) bool {
	t.Helper()
	list, err := server.Kubernetes.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return !slices.ContainsFunc(list.Items, func(d appsv1.Deployment) bool {
		return d.Status.ObservedGeneration < d.Generation || len(d.Status.Conditions) < 2
	})
}

// withoutLeases leaves out the leases of Kubernetes, and those of API servers: masterleases and peerserverleases.
func withoutLeases(all map[string]int64) map[string]int64 {
	maps.DeleteFunc(all, func(key string, _ int64) bool { return strings.Contains(key, "leases/") })
	return all
}

// BenchmarkRehearsal rehearses a whole payload of 900 manifests, a third of which changes an object.
func BenchmarkRehearsal(b *testing.B) {
	asOperator(b)
	prepare(b, payloadOf("v1"), "")
	manifests := manifestsOf(b, strings.ReplaceAll(payloadOf("v2"), `a: "a"`, `a: "b"`))
	b.ReportAllocs()
	for b.Loop() {
		rehearse(b, manifests)
	}
}
