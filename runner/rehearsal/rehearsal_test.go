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
		Cluster: server, Mode: rehearsal.Guarded, Run: uuid.NewString(), Owner: owner(manifests), Manifests: manifests, Progress: func(int, int) {},
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
			APIVersion: "config.openshift.io/v1", Kind: "ClusterVersion", Name: "version", UID: "5d1c2f04-0000-0000-0000-000000000001", Controller: new(true),
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
