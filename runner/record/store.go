package record

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/openshift/update-preflight/collector/retry"
)

const (
	defaultLeaseDuration = 10 * time.Second
	minLeaseDuration     = time.Second
	maxLeaseDuration     = 10 * time.Minute
)

// Store reads and writes the records of one cluster. All requests are retried, until
// their context is done, while the API server is unreachable or overloaded.
type Store struct {
	client   kubernetes.Interface
	duration time.Duration

	mutex sync.Mutex
	// expired are the versions of Leases that Follow has found expired, by name.
	expired map[string]version
}

// version identifies a state of an object.
type version struct {
	uid      types.UID
	resource string
}

func versionOf(object metav1.Object) version {
	return version{uid: object.GetUID(), resource: object.GetResourceVersion()}
}

// Option configures a Store.
type Option func(*Store)

// LeaseDuration is after which time without a renewal a Lease expires: others detect
// after this time that the holder was killed, and a holder that cannot reach the API
// server for a shorter time keeps the run. The default is 10 s; remote or slow API
// servers need more. It is rounded to seconds, at least 1 s and at most 10 min. The
// Lease is renewed three times within it.
func LeaseDuration(duration time.Duration) Option {
	return func(s *Store) {
		s.duration = max(minLeaseDuration, min(duration.Round(time.Second), maxLeaseDuration))
	}
}

// New returns a Store. The client should have no rate limit (rest.Config.QPS -1): the requests of a run are few and bounded.
func New(client kubernetes.Interface, options ...Option) *Store {
	store := &Store{client: client, duration: defaultLeaseDuration, expired: map[string]version{}}
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

func (s *Store) listHeaders(ctx context.Context, selector string) ([]corev1.ConfigMap, error) {
	listed, err := retry.Get(ctx, func(ctx context.Context) (*corev1.ConfigMapList, error) {
		return s.maps().List(ctx, metav1.ListOptions{LabelSelector: selector})
	})
	if err != nil {
		return nil, err
	}
	return listed.Items, nil
}

// get returns a ConfigMap; nil if it does not exist.
func (s *Store) get(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	object, err := retry.Get(ctx, func(ctx context.Context) (*corev1.ConfigMap, error) {
		return s.maps().Get(ctx, name, metav1.GetOptions{})
	})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return object, err
}

// conflicts bounds the immediate retries of a change after a conflict.
const conflicts = 5

// contested is true when an object is not in the expected state, because of another
// client or a request whose response was lost. A missing namespace is not.
func contested(err error) bool {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return true
	}
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) &&
		(status.Status().Details == nil || status.Status().Details.Kind != "namespaces")
}
