// Package recordstore answers: which runs has this cluster had?
//
// [New] returns the [Store] of the records of a cluster, with Get, List, Latest and Watch. A
// [Writer] writes the record of a run that a process holds; [Store.Add] records a run that
// was never held. No local clock is trusted: the API server states the times of a run.
package recordstore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
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

// Needs are the permissions to begin, hold and end a run, including ReadNeeds and
// CancelNeeds, where the key of the records exists.
func Needs() access.Needs {
	read := access.Needs{Required: slices.Concat(ReadNeeds().Required, ReadNeeds().Optional)}
	return read.And(CancelNeeds()).And(access.Needs{Required: append(
		access.Verbs(mapsRequest(), "create", "update", "delete"),
		access.Verbs(leasesRequest(), "delete")...,
	)})
}

// KeyNeeds are the permissions to create the key of the records. Without them, and
// without a key, a run writes a record that is not authentic.
//
// A user with these permissions and Needs can read a token of any ServiceAccount in
// Namespace: by a Secret of type service-account-token with the name of the key.
func KeyNeeds() access.Needs {
	return access.Needs{Optional: []access.Request{{Verb: "create", Resource: "secrets", Namespace: record.Namespace}}}
}

// ReadNeeds are the permissions for Get, List, Latest and Follow. Without the optional
// ones, no record is authentic.
func ReadNeeds() access.Needs {
	return access.Needs{
		Required: append(
			access.Verbs(mapsRequest(), "get", "list", "watch"),
			access.Verbs(leasesRequest(), "get", "list", "watch")...,
		),
		Optional: []access.Request{{Verb: "get", Resource: "secrets", Namespace: record.Namespace, Name: KeySecret}},
	}
}

// CancelNeeds are the permissions for Cancel.
func CancelNeeds() access.Needs {
	return access.Needs{Required: append(
		access.Verbs(mapsRequest(), "get", "list"),
		access.Verbs(leasesRequest(), "get", "create", "update")...,
	)}
}

// WatchNeeds are the permissions for Watch, which a single reading does without.
func WatchNeeds() access.Needs {
	request := mapsRequest()
	request.Verb = "watch"
	return access.Needs{Optional: []access.Request{request}}
}

func mapsRequest() access.Request {
	return access.Request{Resource: "configmaps", Namespace: record.Namespace}
}

func leasesRequest() access.Request {
	return access.Request{Group: "coordination.k8s.io", Resource: "leases", Namespace: record.Namespace}
}

// Clock estimates the clock of the API server from its responses.
type Clock struct {
	mutex         sync.Mutex
	server, local time.Time
}

// set reads the time, to the second, from the response to a write.
func (c *Clock) set(response metav1.Object) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.server, c.local = cluster.LastWrite(response).UTC(), time.Now()
}

// Now returns the time by the clock of the API server, to about a second.
func (c *Clock) Now() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.server.Add(time.Since(c.local))
}
