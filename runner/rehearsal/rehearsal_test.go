package rehearsal_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/runner/rehearsal"
	"github.com/openshift/update-preflight/runner/rehearsal/merge"
	"github.com/openshift/update-preflight/test/await"
)

// replaced is a text with replacements, which are pairs.
func replaced(text string, pairs ...string) string {
	return strings.NewReplacer(pairs...).Replace(text)
}

// hookOf is a webhook of the row.
func hookOf(kind, path, resources, effects string) string {
	return replaced(hook, "KIND", kind, "PATH", path, "RESOURCES", resources, "EFFECTS", effects)
}

// TestRehearsals rehearses the manifests of each row, then really applies them, and compares: an update is stuck exactly where the
// rehearsal fails.
func TestRehearsals(t *testing.T) {
	t.Parallel()
	asOperator(t)
	url, bundle := webhooks(t)
	id := 0
	for name, tc := range rows() {
		id++
		own := fmt.Sprintf("r%d", id)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fill := strings.NewReplacer("NS", "openshift-rehearsed-"+own, "ID", own, "HOOK", url, "BUNDLE", bundle)
			t.Cleanup(func() { removeHooks(t, own) })
			prepare(t, fill.Replace(tc.before), fill.Replace(tc.then))
			manifests := manifestsOf(t, fill.Replace(tc.target))
			findings := rehearse(t, manifests)
			compareFindings(t, tc, fill, findings)
			stuck := apply(t, manifests)
			if !tc.unsure && (stuck != nil) != tc.stuck {
				t.Errorf("%s: really applied: %v, want stuck: %v", tc.reason, stuck, tc.stuck)
			}
		})
	}
}

func compareFindings(t *testing.T, tc row, fill *strings.Replacer, findings []finding.Finding) {
	t.Helper()
	var got []string
	var messages strings.Builder
	for _, f := range findings {
		messages.WriteString(f.Message + "\n")
		if f.Name != rehearsal.Name {
			got = append(got, fmt.Sprintf("%s %s %s", f.Name, f.Outcome, f.Reason))
		}
		fails := f.Outcome == preflight.Fail
		if fails && !tc.stuck {
			t.Errorf("%s: a false Fail: %s", tc.reason, f.Message)
		}
	}
	var want []string
	for _, each := range tc.want {
		want = append(want, fill.Replace(each))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s%s", tc.reason, diff, messages.String())
	}
	if !strings.Contains(messages.String(), fill.Replace(tc.says)) {
		t.Errorf("%s: the messages do not have %q:\n%s", tc.reason, fill.Replace(tc.says), messages.String())
	}
}

// asOperator gives CVO's account the rights that it has.
func asOperator(tb testing.TB) {
	tb.Helper()
	bound := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster-version-operator"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "openshift-cluster-version", Name: "default"}},
	}
	_, err := server.Kubernetes.RbacV1().ClusterRoleBindings().Create(tb.Context(), bound, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		tb.Fatal(err)
	}
}

// rehearse returns the findings of a rehearsal.
func rehearse(tb testing.TB, manifests []payload.Definition) []finding.Finding {
	tb.Helper()
	findings, err := rehearsal.Rehearsal{
		Cluster: server, Mode: rehearsal.Guarded, Run: uuid.NewString(), Owner: owner(manifests), Manifests: manifests,
		Progress: func(int, int) {},
	}.Findings(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return findings
}

// owner is the UID of ClusterVersion for the row about owners: the objects of others have no owner.
func owner(manifests []payload.Definition) types.UID {
	if manifests[0].Name == "owned" {
		return "5d1c2f04-0000-0000-0000-000000000001"
	}
	return ""
}

// manifestsOf are the documents as those of a release.
func manifestsOf(tb testing.TB, documents string) []payload.Definition {
	tb.Helper()
	var all []payload.Definition
	for document := range strings.SplitSeq(documents, "---\n") {
		object := decode(tb, document)
		all = append(all, payload.Definition{
			File: "manifests.yaml", Kind: object.GroupVersionKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
			Deleted: object.GetAnnotations()["release.openshift.io/delete"] == "true", Manifest: []byte(document),
		})
	}
	return all
}

func decode(tb testing.TB, document string) *unstructured.Unstructured {
	tb.Helper()
	content, err := yaml.YAMLToJSON([]byte(document))
	object := &unstructured.Unstructured{}
	if err == nil {
		err = object.UnmarshalJSON(content)
	}
	if err != nil {
		tb.Fatalf("%v in:\n%s", err, document)
	}
	return object
}

// operator executes the writes of CVO, and those of an administrator before them.
type operator struct {
	client dynamic.Interface
	mapper meta.ResettableRESTMapper
}

func newOperator(tb testing.TB, user string) operator {
	tb.Helper()
	config := rest.CopyConfig(server.Config())
	config.Impersonate.UserName = user
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		tb.Fatal(err)
	}
	return operator{client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(server.Kubernetes.Discovery()))}
}

func (o operator) of(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	mapping, err := o.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		o.mapper.Reset() // its definition may be new
		mapping, err = o.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	if err != nil {
		return nil, err
	}
	return o.client.Resource(mapping.Resource).Namespace(object.GetNamespace()), nil
}

// prepare creates the state of a row.
func prepare(tb testing.TB, before, then string) {
	tb.Helper()
	admin := newOperator(tb, "system:admin-of-the-row")
	admin.client = server.Dynamic
	for _, documents := range []string{before, then} {
		for document := range strings.SplitSeq(documents, "---\n") {
			switch name, isDeletion := strings.CutPrefix(document, "delete "); {
			case isDeletion:
				admin.delete(tb, name)
			case strings.TrimSpace(document) != "":
				admin.put(tb, decode(tb, document))
			}
		}
		awaitPods(tb, before)
	}
}

// until waits until there is no error.
func until(tb testing.TB, do func(context.Context) error) {
	tb.Helper()
	var last string
	await.Until(tb, "no error", func(ctx context.Context) bool {
		err := do(ctx)
		if err != nil && err.Error() != last {
			last = err.Error()
			tb.Log(last)
		}
		return err == nil
	})
}

// put creates or replaces an object; its kind may be new.
func (o operator) put(tb testing.TB, object *unstructured.Unstructured) {
	tb.Helper()
	until(tb, func(ctx context.Context) error {
		client, err := o.of(object)
		if err != nil {
			return err
		}
		_, err = client.Create(ctx, object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			patch, failure := json.Marshal(object)
			if failure != nil {
				return failure
			}
			_, err = client.Patch(ctx, object.GetName(), "application/merge-patch+json", patch, metav1.PatchOptions{})
		}
		if apierrors.IsInvalid(err) {
			tb.Fatal(err)
		}
		return err
	})
}

// delete deletes KIND NAMESPACE/NAME, which finalizers keep.
func (o operator) delete(tb testing.TB, what string) {
	tb.Helper()
	kind, name, _ := strings.Cut(strings.TrimSpace(what), " ")
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(map[string]string{"Deployment": "apps/v1", "RuntimeClass": "node.k8s.io/v1"}[kind])
	if object.GetAPIVersion() == "" {
		object.SetAPIVersion("v1")
	}
	object.SetKind(kind)
	if namespace, inside, ok := strings.Cut(name, "/"); ok {
		object.SetNamespace(namespace)
		name = inside
	}
	client, err := o.of(object)
	if err == nil {
		err = client.Delete(tb.Context(), name, metav1.DeleteOptions{})
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// awaitPods waits until the Deployments of the documents have their pods.
func awaitPods(tb testing.TB, documents string) {
	tb.Helper()
	if strings.Contains(documents, "{name: app,") {
		namespace := decode(tb, strings.Split(documents, "---\n")[0]).GetName()
		if err := rolledOut(tb, namespace, 0); err != nil {
			tb.Fatal(err)
		}
	}
}

// apply does with the manifests what CVO does, by its rules, and returns why it is stuck; nil where it is not.
func apply(t *testing.T, manifests []payload.Definition) error {
	t.Helper()
	by := newOperator(t, "system:serviceaccount:openshift-cluster-version:default")
	for _, manifest := range manifests {
		object, err := manifest.Object()
		if err != nil {
			t.Fatal(err)
		}
		if err := by.apply(t.Context(), manifest, object); err != nil {
			return err
		}
		if manifest.Name == "app" {
			if err := by.health(t, object); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o operator) apply(ctx context.Context, manifest payload.Definition, required *unstructured.Unstructured) error {
	client, err := o.of(required)
	if err != nil {
		return err
	}
	existing, err := client.Get(ctx, required.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && manifest.Deleted:
		return nil
	case apierrors.IsNotFound(err):
		_, err = client.Create(ctx, required, metav1.CreateOptions{})
		return err
	case err != nil:
		return err
	case manifest.Deleted:
		return client.Delete(ctx, required.GetName(), metav1.DeleteOptions{})
	}
	if required.GetName() == "owned" && len(existing.GetOwnerReferences()) > 0 {
		required.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: "config.openshift.io/v1", Kind: "ClusterVersion", Name: "version", UID: "5d1c2f04-0000-0000-0000-000000000001",
			Controller: new(true),
		}})
	}
	if merged, changed := merge.Of(required, existing); changed {
		_, err = client.Update(ctx, merged, metav1.UpdateOptions{})
	}
	return err
}

// health is what CVO waits for of a Deployment.
func (o operator) health(t *testing.T, object *unstructured.Unstructured) error {
	t.Helper()
	client, err := o.of(object)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := client.Get(t.Context(), object.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if stored.GetDeletionTimestamp() != nil {
		return errors.New("it is being deleted")
	}
	return rolledOut(t, object.GetNamespace(), stored.GetGeneration())
}

// rolledOut returns when the Deployment "app" has the pods of its generation, or why they are not created.
func rolledOut(tb testing.TB, namespace string, generation int64) error {
	tb.Helper()
	var failure error
	until(tb, func(ctx context.Context) error {
		found, err := server.Kubernetes.AppsV1().Deployments(namespace).Get(ctx, "app", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range found.Status.Conditions {
			if condition.Type == appsv1.DeploymentReplicaFailure && found.Status.ObservedGeneration >= generation {
				failure = errors.New(condition.Message)
				return nil
			}
		}
		if found.Status.ObservedGeneration < generation || found.Status.UpdatedReplicas < 1 {
			return fmt.Errorf("%d pods of generation %d", found.Status.UpdatedReplicas, found.Status.ObservedGeneration)
		}
		return nil
	})
	return failure
}

// removeHooks deletes what of a row decides on requests of the cluster.
func removeHooks(t *testing.T, id string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
	defer cancel()
	api := server.Kubernetes.AdmissionregistrationV1()
	for _, err := range []error{
		api.ValidatingWebhookConfigurations().Delete(ctx, "hook-"+id, metav1.DeleteOptions{}),
		api.MutatingWebhookConfigurations().Delete(ctx, "hook-"+id, metav1.DeleteOptions{}),
		api.ValidatingAdmissionPolicyBindings().Delete(ctx, "policy-"+id, metav1.DeleteOptions{}),
		api.ValidatingAdmissionPolicies().Delete(ctx, "policy-"+id, metav1.DeleteOptions{}),
	} {
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	}
}

// webhooks serves webhooks that answer by their path, and returns the URL and the certificate.
func webhooks(t *testing.T) (url, bundle string) {
	t.Helper()
	served := httptest.NewUnstartedServer(http.HandlerFunc(review))
	served.Config.ErrorLog = log.New(io.Discard, "", 0) // the API server hangs up on those that hang
	served.StartTLS()
	t.Cleanup(served.Close)
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: served.Certificate().Raw})
	return served.URL, base64.StdEncoding.EncodeToString(block)
}

func review(w http.ResponseWriter, r *http.Request) {
	var asked admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := &admissionv1.AdmissionResponse{UID: asked.Request.UID, Allowed: slices.Contains([]string{"/admit", "/sidecar"}, r.URL.Path)}
	switch r.URL.Path {
	case "/hang":
		<-r.Context().Done()
		return
	case "/refuse":
		answer.Result = &metav1.Status{Message: "not on Fridays"}
	case "/spoof":
		answer.Result = &metav1.Status{Message: "exceeded quota: few, requested: pods=1"}
	case "/sidecar":
		answer.PatchType = new(admissionv1.PatchTypeJSONPatch)
		answer.Patch = []byte(`[{"op":"add","path":"/spec/containers/-","value":{"name":"injected","image":"example.com/sidecar:1"}}]`)
	}
	asked.Request, asked.Response = nil, answer
	_ = json.NewEncoder(w).Encode(asked) // the API server repeats the request if the connection broke
}

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
		"Admitted": {reason: "nothing refuses it", id: "a", before: app},
		"LimitRange": {
			reason: "a ratio that is newer than the pod", id: "b", before: app, then: ratio, by: "LimitRange",
			says: "max limit to request ratio",
		},
		"RuntimeClass": {
			reason: "a class that was deleted since", id: "c", before: classed, then: "delete RuntimeClass gone-c",
			by: "the API server", says: `RuntimeClass "gone-c" not found`,
		},
		"Full": {
			reason: "a quota without room until a pod is evicted", id: "d", before: app, then: replaced(quota, "RESOURCE", "pods"),
			by: `quota "few"`, says: "exceeded quota", full: true,
		},
		"Unspecified": {
			reason: "a quota of what the template does not request is no matter of room", id: "e", before: app,
			then: replaced(quota, "RESOURCE", "requests.cpu"), by: `quota "few"`,
			says: "must specify requests.cpu",
		},
		"PodSecurity": {
			reason: "a level that is newer than the pod", id: "f", before: app,
			then: replaced(namespace, "name: NS", "name: NS, labels: {pod-security.kubernetes.io/enforce: restricted}"),
			by:   "Pod Security", says: "violates PodSecurity",
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
			if !asked || len(said) != 1 || (got.Admitted != nil) != (tc.says == "") || got.By != tc.by || got.Full != tc.full ||
				!strings.Contains(got.Why, tc.says) {
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
