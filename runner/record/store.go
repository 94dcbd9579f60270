package record

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/retry"
)

const (
	defaultLeaseDuration = 10 * time.Second
	minLeaseDuration     = time.Second
	maxLeaseDuration     = 10 * time.Minute
)

// Store has the records of one cluster. All its requests insist, until their
// context is done, while the API server cannot be reached or has no time.
type Store struct {
	client   kubernetes.Interface
	duration time.Duration

	mutex sync.Mutex
	// dead are the Leases that Follow has seen unrenewed, in that version, by name.
	dead map[string]version
}

// version is one state of an object.
type version struct {
	uid      types.UID
	resource string
}

func versionOf(object metav1.Object) version {
	return version{uid: object.GetUID(), resource: object.GetResourceVersion()}
}

// Option changes a Store.
type Option func(*Store)

// LeaseDuration is how long a run that is not heard of counts as held: as long
// as it takes others to notice that its holder was killed, and as long as the
// holder may be cut off from the API server without anybody taking the run over
// right after. It is 10 s; where API servers are far or slow, longer is better.
// It is taken in whole seconds, from 1 s to 10 min, and renewed three times in
// it.
func LeaseDuration(duration time.Duration) Option {
	return func(s *Store) {
		s.duration = max(minLeaseDuration, min(duration.Round(time.Second), maxLeaseDuration))
	}
}

// New makes a Store. The client should have no rate limit of its own
// (rest.Config.QPS -1): the requests of a run are few and bounded.
func New(client kubernetes.Interface, options ...Option) *Store {
	store := &Store{client: client, duration: defaultLeaseDuration, dead: map[string]version{}}
	for _, option := range options {
		option(store)
	}
	return store
}

func (s *Store) maps() corev1client.ConfigMapInterface {
	return s.client.CoreV1().ConfigMaps(Namespace)
}

func (s *Store) leases() coordinationv1client.LeaseInterface {
	return s.client.CoordinationV1().Leases(Namespace)
}

func (s *Store) listHeads(ctx context.Context, selector string) ([]corev1.ConfigMap, error) {
	listed, err := retry.Get(ctx, func(ctx context.Context) (*corev1.ConfigMapList, error) {
		return s.maps().List(ctx, metav1.ListOptions{LabelSelector: selector})
	})
	if err != nil {
		return nil, err
	}
	return listed.Items, nil
}

// get is a ConfigMap, or nil where there is none of that name.
func (s *Store) get(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	object, err := retry.Get(ctx, func(ctx context.Context) (*corev1.ConfigMap, error) {
		return s.maps().Get(ctx, name, metav1.GetOptions{})
	})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return object, err
}

// Needs is what it takes to begin a run, to hold it and to end it, and all of
// ReadNeeds and CancelNeeds.
func Needs() access.Needs {
	return ReadNeeds().And(CancelNeeds()).And(access.Needs{Required: append(
		access.Verbs(mapsRequest(), "create", "update", "delete"),
		access.Verbs(leasesRequest(), "delete")...,
	)})
}

// ReadNeeds is what Get, List, Latest and Follow take.
func ReadNeeds() access.Needs {
	return access.Needs{Required: append(
		access.Verbs(mapsRequest(), "get", "list", "watch"),
		access.Verbs(leasesRequest(), "get", "list", "watch")...,
	)}
}

// CancelNeeds is what Cancel takes.
func CancelNeeds() access.Needs {
	return access.Needs{Required: append(
		access.Verbs(mapsRequest(), "get", "list"),
		access.Verbs(leasesRequest(), "get", "create", "update")...,
	)}
}

func mapsRequest() access.Request {
	return access.Request{Resource: "configmaps", Namespace: Namespace}
}

func leasesRequest() access.Request {
	return access.Request{Group: "coordination.k8s.io", Resource: "leases", Namespace: Namespace}
}
