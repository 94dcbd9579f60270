package apiserver_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/test/apiserver"
)

// What records and their attacks depend on is as on a real API server.
func TestObjects(t *testing.T) {
	server := apiserver.Start(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "here"}})
	client := kubernetes.NewForConfigOrDie(server.Config())
	maps := client.CoreV1().ConfigMaps("here")
	changes, err := maps.Watch(t.Context(), metav1.ListOptions{LabelSelector: "a=b"})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	created, err := maps.Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one", Labels: map[string]string{"a": "b"}}}, metav1.CreateOptions{})
	if err != nil || created.UID == "" || created.CreationTimestamp.IsZero() || created.ManagedFields[0].Time == nil {
		t.Fatalf("an object has a UID, and the times of its creation and its last write: %+v, %v", created, err)
	}
	if seen := <-changes.ResultChan(); seen.Type != "ADDED" {
		t.Errorf("a watch sends %s, want ADDED", seen.Type)
	}
	if _, err := maps.Create(t.Context(), created, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("an object is created twice: %v", err)
	}
	if _, err := maps.Update(t.Context(), created, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Error(err)
	}
	if _, err := maps.Update(t.Context(), created, metav1.UpdateOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := maps.Update(t.Context(), created, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("a write to an earlier version is no conflict: %v", err)
	}
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name:            "two",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "one", UID: created.UID}},
	}}
	if _, err := maps.Create(t.Context(), owned, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(t.Context(), "one",
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &created.ResourceVersion}}); !apierrors.IsConflict(err) {
		t.Errorf("an earlier version is deleted: %v", err)
	}
	if err := maps.Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if left, err := maps.List(t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) != 0 {
		t.Errorf("%d objects remain of one that was deleted and what it owns: %v", len(left.Items), err)
	}
	again, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, metav1.CreateOptions{})
	if err != nil || again.UID == created.UID {
		t.Errorf("an object that is created again has the UID of the former: %v", err)
	}
	if wrote := len(server.Writes()); wrote != 5 {
		t.Errorf("%d writes, want 5: %q", wrote, server.Writes())
	}
}

// What is not served is not found, and what is denied is forbidden to its user only.
func TestRefusals(t *testing.T) {
	server := apiserver.Start(t)
	server.Deny(func(user string, request apiserver.Request) bool {
		return user == "reader" && request.Resource == "secrets"
	})
	reader := server.Config()
	reader.Impersonate.UserName = "reader"
	if _, err := kubernetes.NewForConfigOrDie(reader).CoreV1().Secrets("").List(t.Context(),
		metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a denied request: %v, want that it is forbidden", err)
	}
	if _, err := kubernetes.NewForConfigOrDie(server.Config()).CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	pools := schema.GroupVersionResource{Group: "machineconfiguration.openshift.io", Version: "v1", Resource: "machineconfigpools"}
	client := dynamic.NewForConfigOrDie(server.Config()).Resource(pools)
	if _, err := client.List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a resource that is not served: %v, want that it is not found", err)
	}
	server.Serve(pools, "MachineConfigPool")
	if _, err := client.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}
