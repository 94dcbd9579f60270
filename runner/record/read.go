package record

import (
	"cmp"
	"context"
	"errors"
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

// history is how many finished runs are remembered.
const history = 20

// Get reads the record of a run, by its ID or the beginning of one, with or
// without dashes, of at least four digits. The error is a *NotFoundError when
// that names no run or several. Results that somebody has made unreadable are
// not in; a report that is unreadable is an error.
func (s *Store) Get(ctx context.Context, id string) (Record, error) {
	object, err := s.find(ctx, id)
	if err != nil {
		return Record{}, err
	}
	record, err := s.read(ctx, object)
	if err != nil || record.Phase.final() {
		return record, err
	}
	lease, err := retry.Get(ctx, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return s.leases().Get(ctx, leaseName(record.Target.Digest()), metav1.GetOptions{})
	})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return Record{}, fmt.Errorf("could not see who holds run %s: %w", record.ID, err)
	case lease.Annotations[labelRecord] == record.ID:
		record.Holder = holderOf(lease)
	}
	return record, nil
}

// List is the records of all runs, the newest first, as their heads have them:
// without results, reports and what those rest on. Of a head that cannot be read
// there is what its labels say.
func (s *Store) List(ctx context.Context) ([]Record, error) {
	heads, err := s.listHeads(ctx, labelRecord)
	if err != nil {
		return nil, fmt.Errorf("could not list the records: %w", err)
	}
	leases, err := retry.Get(ctx, func(ctx context.Context) (*coordinationv1.LeaseList, error) {
		return s.leases().List(ctx, metav1.ListOptions{LabelSelector: labelRecord})
	})
	if err != nil {
		return nil, fmt.Errorf("could not see who holds the runs: %w", err)
	}
	holders := map[string]string{}
	for i := range leases.Items {
		holders[leases.Items[i].Annotations[labelRecord]] = holderOf(&leases.Items[i])
	}
	records := make([]Record, 0, len(heads))
	for i := range heads {
		record := outline(&heads[i])
		if found, err := parse(&heads[i]); err == nil {
			record = found.record
		}
		if !record.Phase.final() {
			record.Holder = holders[record.ID]
		}
		records = append(records, record)
	}
	slices.SortFunc(records, func(a, b Record) int {
		return cmp.Or(b.StartTime.Compare(a.StartTime), strings.Compare(a.ID, b.ID))
	})
	return records, nil
}

// Latest is the newest complete run with the target and the selection of the
// intent, and whether there is one. A run that cannot be read is an error: an older
// one is not the latest.
func (s *Store) Latest(ctx context.Context, intent Intent) (Record, bool, error) {
	digest := intent.Target.Digest()
	heads, err := s.listHeads(ctx, labels.Set{label.Release: label.ReleaseValue(digest), labelPhase: string(Complete)}.String())
	if err != nil {
		return Record{}, false, fmt.Errorf("could not list the records of a release: %w", err)
	}
	sortNewest(heads)
	for i := range heads {
		found, err := parse(&heads[i])
		if err != nil {
			return Record{}, false, fmt.Errorf("could not read record %s: %w", heads[i].Name, err)
		}
		if found.record.Selection == intent.Selection && found.record.Target.Digest() == digest {
			record, err := s.read(ctx, &heads[i])
			return record, err == nil, err
		}
	}
	return Record{}, false, nil
}

func (s *Store) read(ctx context.Context, object *corev1.ConfigMap) (Record, error) {
	return readWith(ctx, &reader{get: s.get}, object)
}

func readWith(ctx context.Context, reader *reader, object *corev1.ConfigMap) (Record, error) {
	record, err := reader.read(ctx, object)
	var unknown *FormatError
	switch {
	case errors.As(err, &unknown):
		return Record{}, unknown
	case err != nil:
		return Record{}, fmt.Errorf("could not read the record of run %s: %w", object.Labels[labelRecord], err)
	}
	return record, nil
}

// find is the head of the run whose ID is, or begins with, what is given.
func (s *Store) find(ctx context.Context, id string) (*corev1.ConfigMap, error) {
	if isID(id) {
		object, err := s.get(ctx, headName(id))
		switch {
		case err != nil:
			return nil, fmt.Errorf("could not get the record of run %s: %w", id, err)
		case object == nil || object.Labels[labelRecord] != id:
			return nil, &NotFoundError{ID: id}
		}
		return object, nil
	}
	prefix := digits(id)
	if len(prefix) < minPrefix {
		return nil, &NotFoundError{ID: id}
	}
	heads, err := s.listHeads(ctx, labelRecord)
	if err != nil {
		return nil, fmt.Errorf("could not list the records: %w", err)
	}
	heads = slices.DeleteFunc(heads, func(head corev1.ConfigMap) bool { return !strings.HasPrefix(digits(head.Labels[labelRecord]), prefix) })
	if len(heads) == 1 {
		return &heads[0], nil
	}
	notFound := &NotFoundError{ID: id}
	for i := range heads {
		notFound.Candidates = append(notFound.Candidates, heads[i].Labels[labelRecord])
	}
	slices.Sort(notFound.Candidates)
	return nil, notFound
}

// digits are those of an ID, as they are compared.
func digits(id string) string { return strings.ToLower(strings.ReplaceAll(id, "-", "")) }

// prune forgets all but the newest runs that have ended; their parts go with
// them. What it cannot delete, the next run will.
func (s *Store) prune(ctx context.Context) {
	heads, err := s.listHeads(ctx, fmt.Sprintf("%s,%s!=%s", labelRecord, labelPhase, Running))
	if err != nil || len(heads) <= history {
		return
	}
	sortNewest(heads)
	for i := range heads[history:] {
		old := &heads[history+i]
		if err := s.maps().Delete(ctx, old.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(old.UID))}); err != nil {
			return
		}
	}
}

// sortNewest puts the runs first that have ended last: one that took long is not
// old yet.
func sortNewest(heads []corev1.ConfigMap) {
	ends := make(map[types.UID]time.Time, len(heads))
	for i := range heads {
		ends[heads[i].UID] = heads[i].CreationTimestamp.Time
		if found, err := parse(&heads[i]); err == nil {
			ends[heads[i].UID] = found.record.CompletionTime
		}
	}
	slices.SortFunc(heads, func(a, b corev1.ConfigMap) int {
		return cmp.Or(ends[b.UID].Compare(ends[a.UID]), strings.Compare(b.Name, a.Name))
	})
}
