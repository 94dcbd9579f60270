package record

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/retry"
	"github.com/openshift/update-preflight/runner/label"
)

// How many ended runs are kept: those with a verdict, and those that were canceled or
// interrupted, which never displace a verdict.
const (
	keptVerdicts   = 20
	keptUnfinished = 10
)

// Get reads the record of a run by its ID or a prefix of it, with or without dashes, of
// at least four digits. The error is a *NotFoundError if no run or several match.
// Unreadable results are omitted; an unreadable report is an error.
func (s *Store) Get(ctx context.Context, id string) (Record, error) {
	object, err := s.Find(ctx, id)
	if err != nil {
		return Record{}, err
	}
	record, err := NewReader(s).Read(ctx, object)
	if err != nil || record.Phase.final() {
		return record, err
	}
	lease, err := retry.Get(ctx, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return s.Leases().Get(ctx, leaseName(record.Target.Digest()), metav1.GetOptions{})
	})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return Record{}, fmt.Errorf("could not read the lease of run %s: %w", record.ID, err)
	case lease.Annotations[Label] == record.ID:
		record.Holder, record.HolderExpiry = holderOf(lease), expiryOf(lease)
	}
	return record, nil
}

// List returns the records of all runs, newest first, without results, reports and
// fingerprints. Only headers are verified. Of an unreadable record it returns what its
// labels have.
func (s *Store) List(ctx context.Context) ([]Record, error) {
	headers, err := s.Headers(ctx, Label)
	if err != nil {
		return nil, fmt.Errorf("could not list the records: %w", err)
	}
	key, err := readKey(ctx, s.client)
	if err != nil {
		return nil, err
	}
	leases, err := retry.Get(ctx, func(ctx context.Context) (*coordinationv1.LeaseList, error) {
		return s.Leases().List(ctx, metav1.ListOptions{LabelSelector: Label})
	})
	if err != nil {
		return nil, fmt.Errorf("could not list the leases of the runs: %w", err)
	}
	held := map[string]*coordinationv1.Lease{}
	for i := range leases.Items {
		held[leases.Items[i].Annotations[Label]] = &leases.Items[i]
	}
	records := make([]Record, 0, len(headers))
	for i := range headers {
		record := key.listed(&headers[i])
		if !record.Phase.final() {
			record.Holder, record.HolderExpiry = holderOf(held[record.ID]), expiryOf(held[record.ID])
		}
		records = append(records, record)
	}
	slices.SortFunc(records, func(a, b Record) int {
		return cmp.Or(b.StartTime.Compare(a.StartTime), strings.Compare(a.ID, b.ID))
	})
	return records, nil
}

// listed is the record of a header, without results and report.
func (l loadedKey) listed(object *corev1.ConfigMap) Record {
	found, err := parse(object)
	if err != nil {
		return fromLabels(object)
	}
	record := found.record
	record.Authentication = l.verify(object, record.ID, object.UID)
	if record.Authentication.State != Authentic {
		record.Decision = ""
		return record
	}
	record.VerdictFile = object.Data[keyVerdict]
	return record
}

// Latest returns the newest complete run with the target and the selection of the
// intent; false if there is none. An unreadable run is an error, since an older run is
// not the latest.
func (s *Store) Latest(ctx context.Context, intent Intent) (Record, bool, error) {
	digest := intent.Target.Digest()
	headers, err := s.Headers(ctx, labels.Set{label.Release: label.ReleaseValue(digest), LabelPhase: string(Complete)}.String())
	if err != nil {
		return Record{}, false, fmt.Errorf("could not list the records of a release: %w", err)
	}
	sortNewest(headers)
	for i := range headers {
		found, err := parse(&headers[i])
		if err != nil {
			return Record{}, false, fmt.Errorf("could not read record %s: %w", headers[i].Name, err)
		}
		if found.record.Selection == intent.Selection && found.record.Target.Digest() == digest {
			record, err := NewReader(s).Read(ctx, &headers[i])
			return record, err == nil, err
		}
	}
	return Record{}, false, nil
}

// Find returns the header of the run with an ID or a prefix of one.
func (s *Store) Find(ctx context.Context, id string) (*corev1.ConfigMap, error) {
	if isID(id) {
		object, err := s.Object(ctx, headerName(id))
		switch {
		case err != nil:
			return nil, fmt.Errorf("could not get the record of run %s: %w", id, err)
		case object == nil || object.Labels[Label] != id:
			return nil, &NotFoundError{ID: id}
		}
		return object, nil
	}
	prefix := digits(id)
	if len(prefix) < minPrefix {
		return nil, &NotFoundError{ID: id}
	}
	headers, err := s.Headers(ctx, Label)
	if err != nil {
		return nil, fmt.Errorf("could not list the records: %w", err)
	}
	headers = slices.DeleteFunc(headers, func(header corev1.ConfigMap) bool {
		return !strings.HasPrefix(digits(header.Labels[Label]), prefix)
	})
	if len(headers) == 1 {
		return &headers[0], nil
	}
	notFound := &NotFoundError{ID: id}
	for i := range headers {
		notFound.Candidates = append(notFound.Candidates, headers[i].Labels[Label])
	}
	slices.Sort(notFound.Candidates)
	return nil, notFound
}

// digits are the hex digits of an ID in lower case, without dashes.
func digits(id string) string { return strings.ToLower(strings.ReplaceAll(id, "-", "")) }

// Prune deletes ended runs that are not kept, with their parts: those of the headers that
// exceed the limits beside the run that has just ended in that phase. Runs that cannot be
// deleted are left to the next run.
func (s *Store) Prune(ctx context.Context, headers []corev1.ConfigMap, ended Phase) {
	for _, old := range surplus(headers, ended) {
		if err := s.Maps().Delete(ctx, old.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(old.UID))}); err != nil && !apierrors.IsNotFound(err) {
			return
		}
	}
}

// surplus are the ended runs that are not kept: the oldest of those with a verdict, and
// the oldest of the others.
func surplus(headers []corev1.ConfigMap, ended Phase) []corev1.ConfigMap {
	sortNewest(headers)
	left := map[bool]int{true: keptVerdicts, false: keptUnfinished}
	left[ended == Complete]--
	var old []corev1.ConfigMap
	for _, header := range headers {
		verdict := header.Labels[LabelPhase] == string(Complete)
		left[verdict]--
		if left[verdict] < 0 {
			old = append(old, header)
		}
	}
	return old
}

// sortNewest sorts by the time of completion, newest first.
func sortNewest(headers []corev1.ConfigMap) {
	ends := make(map[types.UID]time.Time, len(headers))
	for i := range headers {
		ends[headers[i].UID] = headers[i].CreationTimestamp.Time
		if found, err := parse(&headers[i]); err == nil {
			ends[headers[i].UID] = found.record.CompletionTime
		}
	}
	slices.SortFunc(headers, func(a, b corev1.ConfigMap) int {
		return cmp.Or(ends[b.UID].Compare(ends[a.UID]), strings.Compare(b.Name, a.Name))
	})
}
