// Package recordstore answers: which runs has this cluster had?
//
// [New] returns the [Store] of the records of a cluster, with Get, List, Latest and Watch. A [Writer] writes the record
// of a run that a process holds; [Store.Add] records a run that was never held. No local clock is trusted: the times of
// a run come from the API server.
package recordstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordformat"
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

// Needs are the permissions to begin, hold and end a run, including ReadNeeds and CancelNeeds, if the key of the
// records exists.
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

// Add records a run that has ended and was never held: a run without Jobs, which cannot be continued. It is never in
// phase Running. end returns the ending of the run once it has a record, which is recorded as interrupted until end
// returns. The errors come from end and the API server.
func (s *Store) Add(ctx context.Context, intent record.Intent, end func(context.Context) (record.Ending, error)) error {
	if err := intent.Validate("none"); err != nil {
		return err
	}
	content, err := recordformat.NewHeader(intent)
	if err != nil {
		return err
	}
	content.Record.Phase = record.Interrupted
	w, err := NewWriter(ctx, s, content, func(context.Context) error { return nil }, uuid.NewString())
	if err != nil {
		return err
	}
	created, err := w.Create(ctx)
	if err == nil && !created {
		err = errors.New("a run with that ID exists")
	}
	if err != nil {
		return fmt.Errorf("could not record run %s: %w", intent.ID, err)
	}
	ending, err := end(ctx)
	if err != nil {
		return err
	}
	packed, err := recordformat.PackEnding(ending)
	if err != nil {
		return err
	}
	if err := w.Finish(ctx, ending, packed); err != nil {
		return err
	}
	earlier, err := s.EndEarlier(ctx, content.Record, ending, w.Clock.Now())
	s.Prune(ctx, earlier, intent.From, ending.Phase)
	return err
}

// Queue has the results that are not written yet.
type Queue struct {
	mutex   sync.Mutex
	results []record.Result
}

// Add adds a result, which is written together with the next ones.
func (q *Queue) Add(result record.Result) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.results = append(q.results, result)
}

func (q *Queue) take() []record.Result {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	taken := q.results
	q.results = nil
	return taken
}

func (q *Queue) isEmpty() bool {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return len(q.results) == 0
}

// Outdate ends the verdict of a complete run at that time, by the clock of the cluster, for a cause such as a changed
// node: its record shows both to every reader. The first cause stays. A record that is not authentic is not changed;
// Outdate returns an *UnauthenticError.
func (s *Store) Outdate(ctx context.Context, id, cause string, now time.Time) error {
	object, err := s.Find(ctx, id)
	if err != nil {
		return err
	}
	return outdate(ctx, s, object, cause, now)
}

// EndEarlier returns the headers of the runs that ended before this one, and ends their
// verdicts on the same update if this one is complete. A Ready with another selection ends none:
// it may cover less.
func (s *Store) EndEarlier(ctx context.Context, ending record.Record, as record.Ending, now time.Time) ([]corev1.ConfigMap, error) {
	headers, err := s.Headers(ctx, fmt.Sprintf("%s,%s!=%s", record.Label, record.LabelPhase, record.Running))
	if err != nil {
		return nil, fmt.Errorf("could not list the earlier records: %w", err)
	}
	headers = slices.DeleteFunc(headers, func(header corev1.ConfigMap) bool { return header.Labels[record.Label] == ending.ID })
	if as.Phase != record.Complete {
		return headers, nil
	}
	ending.Decision = string(as.Verdict.Decision)
	return headers, supersede(ctx, s, ending, headers, now)
}

// supersede ends the verdicts of the earlier runs of the same update among the headers of
// ended runs, so that none of them counts again where the record of this run is deleted.
func supersede(ctx context.Context, s *Store, by record.Record, headers []corev1.ConfigMap, now time.Time) error {
	for i := range headers {
		found, err := recordformat.Parse(&headers[i])
		if err != nil || found.Record.ID == by.ID || found.Record.Target.Digest() != by.Target.Digest() ||
			found.Record.Provisional != by.Provisional {
			continue // what is unreadable has no verdict
		}
		if found.Record.Phase != record.Complete || found.Record.Ended != "" || by.Decision == string(verdict.Ready) &&
			found.Record.Selection != by.Selection {
			continue
		}
		err = outdate(ctx, s, &headers[i], "run "+by.ID+" of the same target is newer", now)
		if _, unauthentic := errors.AsType[*record.UnauthenticError](err); err != nil && !unauthentic {
			return err
		}
	}
	return nil
}

// outdate ends the verdict of the record with this header, also where another client
// changes the header meanwhile. A record that was deleted has none.
func outdate(ctx context.Context, s *Store, object *corev1.ConfigMap, cause string, now time.Time) error {
	loaded, err := readKey(ctx, s.client)
	if err != nil {
		return err
	}
	name := object.Name
	return retry.Do(ctx, func(ctx context.Context) error {
		for range Conflicts {
			changed := object.DeepCopy() // a request that failed is repeated with what was read
			ends, err := recordformat.EndVerdict(changed, loaded, cause, now)
			if ends {
				_, err = s.Maps().Update(ctx, changed, metav1.UpdateOptions{})
			}
			if !Contested(err) {
				return err
			}
			if object, err = s.Object(ctx, name); err != nil || object == nil {
				return err
			}
		}
		return fmt.Errorf("could not end the verdict of %s: another client repeatedly changed it", name)
	})
}

// KeySecret is the name of the Secret in Namespace that has the key of the records.
const KeySecret = "preflight-record-key"

const (
	secretKey = "key"
	keyLength = 32
)

// Key reads the key of the records. The error comes from the API server.
func (s *Store) Key(ctx context.Context) (recordformat.LoadedKey, error) {
	return readKey(ctx, s.client)
}

// readKey reads the key. The error is one of the API server; a missing Secret and a missing permission are none.
func readKey(ctx context.Context, client kubernetes.Interface) (recordformat.LoadedKey, error) {
	secret, err := retry.Get(ctx, func(ctx context.Context) (*corev1.Secret, error) {
		return client.CoreV1().Secrets(record.Namespace).Get(ctx, KeySecret, metav1.GetOptions{})
	})
	switch {
	case apierrors.IsNotFound(err):
		return recordformat.LoadedKey{Absent: true, Without: withoutKey(record.Unauthentic, "does not exist")}, nil
	case apierrors.IsForbidden(err):
		return recordformat.LoadedKey{Without: withoutKey(record.Unverifiable, "may not be read by this user")}, nil
	case gap.Is(err):
		return recordformat.LoadedKey{Without: withoutKey(record.Unverifiable, "is not in an archive")}, nil
	case err != nil:
		return recordformat.LoadedKey{}, fmt.Errorf("could not read the key of the records: %w", err)
	case len(secret.Data[secretKey]) != keyLength:
		return recordformat.LoadedKey{Without: withoutKey(record.Unauthentic,
			fmt.Sprintf("does not have %d bytes under %q", keyLength, secretKey))}, nil
	}
	return recordformat.LoadedKey{Key: secret.Data[secretKey]}, nil
}

func withoutKey(state record.Authenticity, what string) record.Authentication {
	return record.Authentication{
		State: state,
		Cause: fmt.Sprintf("secret %q in namespace %s, which has the key, %s", KeySecret, record.Namespace, what),
	}
}

// ensureKey reads the key, and creates it if it does not exist. Of concurrent
// processes, one creates it. A user who may not create it continues without.
func ensureKey(ctx context.Context, client kubernetes.Interface) (recordformat.LoadedKey, error) {
	var loaded recordformat.LoadedKey
	for range Conflicts {
		var err error
		if loaded, err = readKey(ctx, client); err != nil || !loaded.Absent {
			return loaded, err
		}
		switch err := createKey(ctx, client); {
		case apierrors.IsForbidden(err):
			return recordformat.LoadedKey{Without: withoutKey(record.Unverifiable, "does not exist and may not be created by this user")}, nil
		case err != nil && !apierrors.IsAlreadyExists(err):
			return recordformat.LoadedKey{}, fmt.Errorf("could not create the key of the records: %w", err)
		}
	}
	return loaded, nil
}

func createKey(ctx context.Context, client kubernetes.Interface) error {
	random := make([]byte, keyLength)
	_, _ = rand.Read(random) // it never returns an error
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: record.Namespace, Name: KeySecret},
		Type:       corev1.SecretTypeOpaque, Immutable: new(true), Data: map[string][]byte{secretKey: random},
	}
	return retry.Do(ctx, func(ctx context.Context) error {
		_, err := client.CoreV1().Secrets(record.Namespace).Create(ctx, secret, metav1.CreateOptions{})
		return err
	})
}
