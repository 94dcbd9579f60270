package rehearsal_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/runner/rehearsal"
	"github.com/openshift/update-preflight/runner/rehearsal/dryrun"
)

// TestGuard sends real writes with the identity of a rehearsal by an ordinary client, as a defect of the client would: the API server
// denies them, and no others.
func TestGuard(t *testing.T) {
	asOperator(t)
	id := uuid.NewString()
	denying := rehearsal.NewGuard(server.Kubernetes, id)
	if err := denying.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := denying.Delete(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	const user = "system:serviceaccount:openshift-cluster-version:default"
	client, err := dryrun.New(server.Config(), dryrun.Identity{User: user, Rehearsal: id})
	if err != nil {
		t.Fatal(err)
	}
	probe := func(ctx context.Context, probe *unstructured.Unstructured) error {
		_, err := client.Create(ctx, rehearsal.ProbeResource(), probe)
		return err
	}
	if err := denying.Await(t.Context(), probe); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason string
		extra  map[string][]string
		write  func(ctx context.Context, client kubernetes.Interface) error
		denied bool
	}{
		"Create": {
			reason: "a real creation", extra: map[string][]string{dryrun.ExtraKey: {id}}, write: create("real", metav1.CreateOptions{}),
			denied: true,
		},
		"DryRun": {
			reason: "a dry run is admitted", extra: map[string][]string{dryrun.ExtraKey: {id}},
			write: create("dry", metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}),
		},
		"Delete": {
			reason: "a real deletion", extra: map[string][]string{dryrun.ExtraKey: {id}}, denied: true,
			write: func(ctx context.Context, client kubernetes.Interface) error {
				return client.CoreV1().ConfigMaps("default").Delete(ctx, "kube-root-ca.crt", metav1.DeleteOptions{})
			},
		},
		"DeleteCollection": {
			reason: "a deletion of a collection", extra: map[string][]string{dryrun.ExtraKey: {id}}, denied: true,
			write: func(ctx context.Context, client kubernetes.Interface) error {
				return client.CoreV1().ConfigMaps("kube-public").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
			},
		},
		"Token": {
			reason: "a token of an account, a subresource", extra: map[string][]string{dryrun.ExtraKey: {id}}, denied: true,
			write: func(ctx context.Context, client kubernetes.Interface) error {
				return client.CoreV1().RESTClient().Post().Resource("serviceaccounts").Namespace("default").Name("default").SubResource("token").
					Body([]byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`)).Do(ctx).Error()
			},
		},
		"Operator": {reason: "CVO itself is not of the rehearsal", write: create("operator", metav1.CreateOptions{})},
		"OtherID": {
			reason: "another rehearsal has a guard of its own", extra: map[string][]string{dryrun.ExtraKey: {"other"}},
			write: create("other", metav1.CreateOptions{}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := rest.CopyConfig(server.Config())
			config.Impersonate = rest.ImpersonationConfig{UserName: user, Extra: tc.extra}
			as, err := kubernetes.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			err = tc.write(t.Context(), as)
			denied := apierrors.IsForbidden(err) && strings.Contains(err.Error(), "a rehearsal stores nothing")
			if denied != tc.denied || err != nil && !denied {
				t.Errorf("%s: %v, want denied: %v", tc.reason, err, tc.denied)
			}
		})
	}
	if err := denying.Intact(t.Context()); err != nil {
		t.Error(err)
	}
}

// create creates a ConfigMap.
func create(name string, options metav1.CreateOptions) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "guarded-" + name}},
			options)
		return err
	}
}
