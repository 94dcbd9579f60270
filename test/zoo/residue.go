package zoo

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordstore"
)

// ExpireSoon makes the Lease of a killed run of a release expire after a second instead of ten.
// How a Lease expires is tested in runner/record/lease.
func (z *Zoo) ExpireSoon(tb testing.TB, pullSpec string) {
	tb.Helper()
	_, digest, _ := strings.Cut(pullSpec, "@")
	leases := z.Client(tb).CoordinationV1().Leases(record.Namespace)
	shorter := []byte(`{"spec":{"leaseDurationSeconds":1}}`)
	_, err := leases.Patch(tb.Context(), recordstore.LeaseName(digest), types.MergePatchType, shorter, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		tb.Fatal(err)
	}
}

// ExpectOnlyRecords fails the test unless the runs of a release, a pull spec by digest, have
// left nothing but their records, and all of them have ended.
func (z *Zoo) ExpectOnlyRecords(tb testing.TB, pullSpec string) {
	tb.Helper()
	_, digest, _ := strings.Cut(pullSpec, "@")
	ofRelease := label.Release + "=" + label.ReleaseValue(digest)
	if left := z.Left(tb, label.Run+","+ofRelease); len(left) > 0 {
		tb.Errorf("left behind: %s", strings.Join(left, ", "))
	}
	client := z.Client(tb)
	lease, err := client.CoordinationV1().Leases(record.Namespace).Get(tb.Context(), recordstore.LeaseName(digest), metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		tb.Errorf("a Lease is left behind, held by %q, error %v", recordstore.HolderOf(lease), err)
	}
	headers, err := client.CoreV1().ConfigMaps(record.Namespace).List(tb.Context(),
		metav1.ListOptions{LabelSelector: record.Label + "," + ofRelease})
	if err != nil {
		tb.Fatal(err)
	}
	for _, header := range headers.Items {
		if phase := header.Labels[record.LabelPhase]; phase == string(record.Running) {
			tb.Errorf("record %s is in phase %s after the run", header.Name, phase)
		}
	}
}

// Left returns the remaining objects of runs as resource/namespace/name. The label
// selector selects runs; if it is empty, Left returns the objects of all runs.
func (z *Zoo) Left(tb testing.TB, selector string) []string {
	tb.Helper()
	if selector == "" {
		selector = label.Run
	}
	client, err := metadata.NewForConfig(z.cluster.Config)
	if err != nil {
		tb.Fatal(err)
	}
	var left []string
	for _, resource := range []schema.GroupVersionResource{
		{Group: "batch", Version: "v1", Resource: "jobs"},
		{Version: "v1", Resource: "pods"},
		{Version: "v1", Resource: "serviceaccounts"},
		{Version: "v1", Resource: "configmaps"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"},
	} {
		found, err := client.Resource(resource).List(tb.Context(), metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			tb.Fatal(err)
		}
		for _, object := range found.Items {
			left = append(left, resource.Resource+"/"+object.Namespace+"/"+object.Name)
		}
	}
	return left
}
