// Package recordstore answers: which runs has this cluster had?
//
// [New] returns the [Store] of the records of a cluster, with Get, List, Latest and Watch. A
// [Writer] writes the record of a run that a process holds; [Store.Add] records a run that
// was never held. No local clock is trusted: the API server states the times of a run.
package recordstore

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/runner/record"
)

// Store reads and writes the records of one cluster. All requests are retried, until
// their context is done, while the API server is unreachable or overloaded.
type Store struct {
	client kubernetes.Interface
}

// New returns a Store. The client should have no rate limit (rest.Config.QPS -1): the
// requests of a run are few and bounded.
func New(client kubernetes.Interface) *Store { return &Store{client: client} }

// Maps is the client for the ConfigMaps of the records.
func (s *Store) Maps() corev1client.ConfigMapInterface {
	return s.client.CoreV1().ConfigMaps(record.Namespace)
}

// Leases is the client for the Leases of the runs.
func (s *Store) Leases() coordinationv1client.LeaseInterface {
	return s.client.CoordinationV1().Leases(record.Namespace)
}

// Headers lists the headers with these labels.
func (s *Store) Headers(ctx context.Context, selector string) ([]corev1.ConfigMap, error) {
	listed, err := retry.Get(ctx, func(ctx context.Context) (*corev1.ConfigMapList, error) {
		return s.Maps().List(ctx, metav1.ListOptions{LabelSelector: selector})
	})
	if err != nil {
		return nil, err
	}
	return listed.Items, nil
}

// Object returns a ConfigMap; nil if it does not exist.
func (s *Store) Object(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	object, err := retry.Get(ctx, func(ctx context.Context) (*corev1.ConfigMap, error) {
		return s.Maps().Get(ctx, name, metav1.GetOptions{})
	})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return object, err
}

// Conflicts bounds the immediate retries of a change after a conflict.
const Conflicts = 5

// Contested is true when an object is not in the expected state, because of another
// client or a request whose response was lost. A missing namespace is not.
func Contested(err error) bool {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return true
	}
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) &&
		(status.Status().Details == nil || status.Status().Details.Kind != "namespaces")
}
