package real_test

import (
	"context"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/afterupdate/observation"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/test/after"
	"github.com/openshift/update-preflight/test/await"
	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/objects"
	"github.com/openshift/update-preflight/test/openshift"
)

// world is a cluster with the objects of all changes.
type world struct {
	config  *rest.Config
	core    kubernetes.Interface
	dynamic dynamic.Interface
	writer  *objects.Writer
	alerts  monitoring.Finder
	// api serves the aggregated API.
	api *httptest.Server
}

func newWorld(t *testing.T, local *cluster.Cluster) *world {
	t.Helper()
	w := &world{
		config: local.Config, core: kubernetes.NewForConfigOrDie(local.Config), dynamic: dynamic.NewForConfigOrDie(local.Config),
		alerts: after.New(time.Now()).Monitoring(t), api: serve(),
	}
	t.Cleanup(w.api.Close)
	if err := openshift.Apply(t.Context(), local.Config, state()); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.writer, err = objects.New(local.Config); err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(w.api.URL)
	if err != nil {
		t.Fatal(err)
	}
	text := pools
	for _, each := range slices.Concat(innocents(), regressions()) {
		text += each.before
	}
	w.create(t, text+aggregated(at.Port()))
	for _, namespace := range []string{"limited", "surge"} {
		w.enforced(t, namespace)
	}
	pool := objects.Object{GroupVersionResource: schema.GroupVersionResource{
		Group:    "machineconfiguration.openshift.io",
		Resource: "machineconfigpools",
	}, Name: "worker", Subresource: "status"}
	err = w.writer.Patch(t.Context(), pool,
		`{"status":{"observedGeneration":1,"machineCount":3,"updatedMachineCount":3,"readyMachineCount":3,"conditions":[{"type":"Updated","status":"True"},{"type":"Degraded","status":"False"}]}}`)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// resources are those of the changes, by their plural.
func resources() map[string]schema.GroupVersionResource {
	made := map[string]schema.GroupVersionResource{"apiservices": {Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}}
	for _, each := range []string{"namespaces", "nodes", "persistentvolumeclaims", "persistentvolumes", "services"} {
		made[each] = corev1.SchemeGroupVersion.WithResource(each)
	}
	for _, each := range []string{"deployments", "statefulsets"} {
		made[each] = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: each}
	}
	return made
}

func (w *world) create(t *testing.T, text string) {
	t.Helper()
	if err := w.writer.Apply(t.Context(), []byte(text)); err != nil {
		t.Fatal(err)
	}
}

func (w *world) of(resource, namespace string) dynamic.ResourceInterface {
	client := w.dynamic.Resource(resources()[resource])
	if namespace == "" {
		return client
	}
	return client.Namespace(namespace)
}

func (w *world) patch(t *testing.T, resource, namespace, name, patch string) {
	t.Helper()
	if _, err := w.of(resource, namespace).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// remove deletes an object at once, also one that is in use.
func (w *world) remove(t *testing.T, resource, namespace, name string) {
	t.Helper()
	client := w.of(resource, namespace)
	background := metav1.DeletePropagationBackground
	if err := client.Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
	_, err := client.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	await.Until(t, resource+" "+name+" is deleted", func(ctx context.Context) bool {
		_, err := client.Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// pods are the pods of a workload.
func (w *world) pods(t *testing.T, namespace, name string) []corev1.Pod {
	t.Helper()
	all, err := w.core.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		t.Fatal(err)
	}
	return all.Items
}

// deletePods deletes the pods of a workload, and returns them.
func (w *world) deletePods(t *testing.T, namespace, name string) []corev1.Pod {
	t.Helper()
	old := w.pods(t, namespace, name)
	for i := range old {
		if err := w.core.CoreV1().Pods(namespace).Delete(t.Context(), old[i].Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return old
}

// replaced returns when a workload has as many ready pods as before, and none of them.
func (w *world) replaced(t *testing.T, namespace, name string, old []corev1.Pod) {
	t.Helper()
	known := map[types.UID]bool{}
	for i := range old {
		known[old[i].UID] = true
	}
	await.Until(t, "the pods of "+namespace+"/"+name+" are replaced", func(context.Context) bool {
		ready := 0
		for _, pod := range w.pods(t, namespace, name) { //nolint:contextcheck // it has that of the test
			if known[pod.UID] {
				return false
			}
			if slices.ContainsFunc(pod.Status.Conditions,
				func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue }) {
				ready++
			}
		}
		return ready == len(old)
	})
}

// enforced returns when the quota of a namespace is enforced.
func (w *world) enforced(t *testing.T, namespace string) {
	t.Helper()
	await.Until(t, "the quota of "+namespace+" is enforced", func(ctx context.Context) bool {
		quota, err := w.core.CoreV1().ResourceQuotas(namespace).Get(ctx, "pods", metav1.GetOptions{})
		return err == nil && len(quota.Status.Hard) > 0
	})
}

// evacuated returns when a node has no pod.
func (w *world) evacuated(t *testing.T, node string) {
	t.Helper()
	await.Until(t, "node "+node+" has no pod", func(ctx context.Context) bool {
		pods, err := w.core.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
		return err == nil && len(pods.Items) == 0
	})
}

// steady is how many looks in succession have to show the same: controllers follow each other.
const steady = 10

// await returns when the cluster shows exactly these problems.
func (w *world) await(t *testing.T, want []string) observation.Observation {
	t.Helper()
	var seen observation.Observation
	var got []string
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the cluster showed last: %q, not read %v", got, seen.State.Unread)
		}
	})
	equal := 0
	await.Until(t, "the problems are as expected", func(context.Context) bool {
		seen, got = after.Look(t, w.config, time.Now(), w.alerts), nil //nolint:contextcheck // it has that of the test
		for _, key := range seen.State.Keys() {
			for _, each := range seen.State.Objects[key].Problems {
				got = append(got, key.String()+" "+each.Reason)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			equal = 0
			return false
		}
		equal++
		return equal >= steady
	})
	return seen
}
