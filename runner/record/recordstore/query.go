package recordstore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordformat"
)

// How many ended runs are kept: those with a verdict, and those that were canceled or
// interrupted, which never displace a verdict.
const (
	keptVerdicts   = 20
	keptUnfinished = 10
)

// Get reads the record of a run by its ID or a prefix of it, with or without dashes, of at least four digits. It
// returns a *NotFoundError if no run or several match. Unreadable results are omitted; an unreadable report is an
// error.
func (s *Store) Get(ctx context.Context, id string) (record.Record, error) {
	object, err := s.Find(ctx, id)
	if err != nil {
		return record.Record{}, err
	}
	found, err := NewReader(s).Read(ctx, object)
	if err != nil || found.Phase.Final() {
		return found, err
	}
	lease, err := retry.Get(ctx, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return s.Leases().Get(ctx, LeaseName(found.Target.Digest()), metav1.GetOptions{})
	})
	switch {
	case apierrors.IsNotFound(err), gap.Is(err): // no process holds a run in an archive
	case err != nil:
		return record.Record{}, fmt.Errorf("could not read the lease of run %s: %w", found.ID, err)
	case lease.Annotations[record.Label] == found.ID:
		found.Holder, found.HolderExpiry = HolderOf(lease), expiryOf(lease)
	}
	return found, nil
}

// List returns the records of all runs, newest first, without results, reports and
// fingerprints. Only headers are verified. Of an unreadable record it returns what its
// labels have.
func (s *Store) List(ctx context.Context) ([]record.Record, error) {
	headers, err := s.Headers(ctx, record.Label)
	if err != nil {
		return nil, fmt.Errorf("could not list the records: %w", err)
	}
	key, err := readKey(ctx, s.client)
	if err != nil {
		return nil, err
	}
	leases, err := retry.Get(ctx, func(ctx context.Context) (*coordinationv1.LeaseList, error) {
		return s.Leases().List(ctx, metav1.ListOptions{LabelSelector: record.Label})
	})
	if gap.Is(err) {
		leases, err = &coordinationv1.LeaseList{}, nil // no process holds a run in an archive
	}
	if err != nil {
		return nil, fmt.Errorf("could not list the leases of the runs: %w", err)
	}
	held := map[string]*coordinationv1.Lease{}
	for i := range leases.Items {
		held[leases.Items[i].Annotations[record.Label]] = &leases.Items[i]
	}
	records := make([]record.Record, 0, len(headers))
	for i := range headers {
		found := listed(&headers[i], key)
		if !found.Phase.Final() {
			found.Holder, found.HolderExpiry = HolderOf(held[found.ID]), expiryOf(held[found.ID])
		}
		records = append(records, found)
	}
	slices.SortFunc(records, func(a, b record.Record) int {
		return cmp.Or(b.StartTime.Compare(a.StartTime), strings.Compare(a.ID, b.ID))
	})
	return records, nil
}

// listed is the record of a header, without results and report.
func listed(object *corev1.ConfigMap, key recordformat.LoadedKey) record.Record {
	header, err := recordformat.Parse(object)
	if err != nil {
		return recordformat.FromLabels(object)
	}
	found := header.Record
	found.Authentication = key.Verify(object, found.ID, object.UID)
	if found.Authentication.State != record.Authentic {
		found.Decision = ""
		return found
	}
	found.VerdictFile = object.Data[recordformat.KeyVerdict]
	return found
}

// Latest returns the newest complete run with the target and the selection of the
// intent; false if there is none. An unreadable run is an error, since an older run is
// not the latest.
func (s *Store) Latest(ctx context.Context, intent record.Intent) (record.Record, bool, error) {
	digest := intent.Target.Digest()
	headers, err := s.Headers(ctx, labels.Set{label.Release: label.ReleaseValue(digest), record.LabelPhase: string(record.Complete)}.String())
	if err != nil {
		return record.Record{}, false, fmt.Errorf("could not list the records of a release: %w", err)
	}
	sortNewest(headers)
	for i := range headers {
		found, err := recordformat.Parse(&headers[i])
		if err != nil {
			return record.Record{}, false, fmt.Errorf("could not read record %s: %w", headers[i].Name, err)
		}
		if found.Record.Selection == intent.Selection && found.Record.Target.Digest() == digest {
			found, err := NewReader(s).Read(ctx, &headers[i])
			return found, err == nil, err
		}
	}
	return record.Record{}, false, nil
}

// Find returns the header of the run with an ID or a prefix of one.
func (s *Store) Find(ctx context.Context, id string) (*corev1.ConfigMap, error) {
	if record.IsID(id) {
		object, err := s.Object(ctx, recordformat.HeaderName(id))
		switch {
		case err != nil:
			return nil, fmt.Errorf("could not get the record of run %s: %w", id, err)
		case object == nil || object.Labels[record.Label] != id:
			return nil, &record.NotFoundError{ID: id}
		}
		return object, nil
	}
	prefix := digits(id)
	if len(prefix) < record.MinPrefix {
		return nil, &record.NotFoundError{ID: id}
	}
	headers, err := s.Headers(ctx, record.Label)
	if err != nil {
		return nil, fmt.Errorf("could not list the records: %w", err)
	}
	headers = slices.DeleteFunc(headers, func(header corev1.ConfigMap) bool {
		return !strings.HasPrefix(digits(header.Labels[record.Label]), prefix)
	})
	if len(headers) == 1 {
		return &headers[0], nil
	}
	notFound := &record.NotFoundError{ID: id}
	for i := range headers {
		notFound.Candidates = append(notFound.Candidates, headers[i].Labels[record.Label])
	}
	slices.Sort(notFound.Candidates)
	return nil, notFound
}

// digits are the hex digits of an ID in lower case, without dashes.
func digits(id string) string { return strings.ToLower(strings.ReplaceAll(id, "-", "")) }

// Prune deletes ended runs that are not kept, with their parts: headers that exceed the limits beside the run that has
// just ended, from that release, in that phase. Runs that cannot be deleted are left to the next run.
func (s *Store) Prune(ctx context.Context, headers []corev1.ConfigMap, from string, ended record.Phase) {
	all := surplus(headers, from, ended)
	if len(all) == 0 {
		return
	}
	baselines, err := s.Headers(ctx, recordformat.LabelBaseline)
	if err != nil {
		return
	}
	kept := ofLastUpdate(baselines, from)
	for _, old := range all {
		if slices.Contains(kept, old.Labels[record.Label]) {
			continue
		}
		if err := s.Maps().Delete(ctx, old.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(old.UID))}); err != nil &&
			!apierrors.IsNotFound(err) {
			return
		}
	}
}

// ofLastUpdate returns the runs with the baseline of the last update of a cluster that runs this version, in any phase:
// the run whose baseline was used last to evaluate an update, and the newest run with a baseline of another version.
func ofLastUpdate(baselines []corev1.ConfigMap, version string) []string {
	var judged, taken, judgedRun, takenRun string
	for _, each := range baselines {
		run := each.Labels[recordformat.LabelBaseline]
		if at := each.Data[recordformat.KeyJudged]; at > judged {
			judged, judgedRun = at, run
		}
		var of struct {
			Taken   string `json:"taken"`
			Version string `json:"version"`
		}
		if err := json.Unmarshal([]byte(each.Data[recordformat.KeyBaseline]), &of); err == nil && of.Version != version && of.Taken > taken {
			taken, takenRun = of.Taken, run
		}
	}
	return []string{judgedRun, takenRun}
}

// surplus returns the ended runs that are not kept: the oldest with a verdict, and the oldest without. The newest run
// with a verdict from a release other than the present one is kept.
func surplus(headers []corev1.ConfigMap, from string, ended record.Phase) []corev1.ConfigMap {
	sortNewest(headers)
	last := slices.IndexFunc(headers, func(header corev1.ConfigMap) bool {
		found, err := recordformat.Parse(&header)
		return err == nil && found.Record.Phase == record.Complete && found.Record.From != from
	})
	left := map[bool]int{true: keptVerdicts, false: keptUnfinished}
	left[ended == record.Complete]--
	var old []corev1.ConfigMap
	for i, header := range headers {
		if i == last {
			continue
		}
		verdict := header.Labels[record.LabelPhase] == string(record.Complete)
		left[verdict]--
		if left[verdict] < 0 {
			old = append(old, header)
		}
	}
	return old
}

func sortNewest(headers []corev1.ConfigMap) {
	ends := make(map[types.UID]time.Time, len(headers))
	for i := range headers {
		ends[headers[i].UID] = headers[i].CreationTimestamp.Time
		if found, err := recordformat.Parse(&headers[i]); err == nil {
			ends[headers[i].UID] = found.Record.CompletionTime
		}
	}
	slices.SortFunc(headers, func(a, b corev1.ConfigMap) int {
		return cmp.Or(ends[b.UID].Compare(ends[a.UID]), strings.Compare(b.Name, a.Name))
	})
}

// Watch calls changed for each record and for each change of one, one call at a time,
// until ctx is done. The error is Forbidden for a user who may not watch. Leases are not watched:
// their holders renew them every few seconds.
func (s *Store) Watch(ctx context.Context, changed func()) error {
	watching, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	check := func(err error) error {
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			fail(err)
		}
		return err
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = record.Label
			listed, err := s.Maps().List(ctx, options)
			return listed, check(err)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = record.Label
			events, err := s.Maps().Watch(ctx, options)
			return events, check(err)
		},
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.ToListWatcherWithWatchListSemantics(source, s.client),
		ObjectType:    &corev1.ConfigMap{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { changed() },
			UpdateFunc: func(any, any) { changed() },
			DeleteFunc: func(any) { changed() },
		},
	})
	informer.RunWithContext(watching)
	if ctx.Err() == nil {
		return fmt.Errorf("could not watch the records: %w", context.Cause(watching))
	}
	return nil
}

// LeaseName is the name of the Lease for the run of a release in progress.
func LeaseName(digest string) string { return "preflight-" + label.ReleaseValue(digest) }

// HolderOf is the process that holds the run of a Lease; empty if none does.
func HolderOf(lease *coordinationv1.Lease) string {
	if lease == nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// expiryOf is when the Lease expires unless it is renewed, by the clock of the API
// server, which records the time of the last write without its fraction of a second;
// zero if that is not known.
func expiryOf(lease *coordinationv1.Lease) time.Time {
	if lease == nil || lease.Spec.LeaseDurationSeconds == nil || len(lease.ManagedFields) == 0 {
		return time.Time{}
	}
	return cluster.LastWrite(lease).Add(time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second + time.Second)
}
