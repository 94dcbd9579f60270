package lease_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/lease"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/test/transport"
)

// newIntent returns an intent for a release of its own.
func newIntent() record.Intent {
	id := uuid.NewString()
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(id)))
	return record.Intent{
		ID: id, From: "4.20.1", Target: update.Release{Version: "4.21.3", Image: "registry.example/release@" + digest},
		ToolVersion: "v1", Selection: "jobs=all", Requester: record.BySelection, Generation: 7, Checks: []string{"Etcd.Disk", "Network.Routes"},
	}
}

// again returns the intent of another run of the same release.
func again(intent record.Intent) record.Intent {
	intent.ID = uuid.NewString()
	return intent
}

func aResult(check string) record.Result {
	return record.Result{Check: check, Findings: []finding.Finding{{Finding: preflight.Finding{
		Name: check, Outcome: preflight.Fail,
		Reason: "DiskFull", Message: "the disk <of> etcd-0 is full",
	}, Source: finding.SourceJob, Blocks: true}}}
}

// runs are the runs of a cluster with their records.
type runs struct {
	*recordstore.Store
	*lease.Runs
}

func newRuns(client kubernetes.Interface, options ...lease.Option) *runs {
	return &runs{Store: recordstore.New(client), Runs: lease.New(client, options...)}
}

// quick returns a Store with the shortest Lease duration.
func quick() *runs { return newRuns(api, lease.Duration(time.Second)) }

func begin(t *testing.T, store *runs, intent record.Intent) *lease.Held {
	t.Helper()
	held, err := store.Begin(t.Context(), intent, "tester")
	if err != nil {
		t.Fatalf("could not begin: %v", err)
	}
	return held
}

// killed begins a run with these results, and abandons it like a killed process.
func killed(t *testing.T, intent record.Intent, results ...record.Result) *lease.Held {
	t.Helper()
	held := begin(t, quick(), intent)
	if len(results) == 0 {
		return held
	}
	_, release := held.Hold(t.Context())
	for _, result := range results {
		held.Put(result)
	}
	await(t, intent.ID, func(r record.Record) bool { return len(r.Results) == len(results) })
	release()
	return held
}

// await follows a run until its record meets the condition. A holder keeps its run when it
// renews the Lease late, as on a busy machine, so an expired Lease does not end the wait.
func await(t *testing.T, id string, wanted func(record.Record) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	for seen := false; !seen; {
		_, err := newRuns(api).Follow(ctx, id, func(r record.Record) {
			if wanted(r) {
				seen = true
				cancel()
			}
		})
		if !seen && !errors.Is(err, lease.ErrAbandoned) {
			t.Fatalf("the record of run %s did not reach the wanted state: %v", id, err)
		}
	}
}

// awaitAbandoned follows a run until it has no holder.
func awaitAbandoned(t *testing.T, store *runs, id string) record.Record {
	t.Helper()
	last, err := store.Follow(t.Context(), id, func(record.Record) {})
	if !errors.Is(err, lease.ErrAbandoned) {
		t.Fatalf("want ErrAbandoned for run %s, got %v", id, err)
	}
	return last
}

func authentic() record.Authentication { return record.Authentication{State: record.Authentic} }

// ready is the verdict of a run without findings that count.
func ready() verdict.Verdict { return verdict.Verdict{Decision: verdict.Ready} }

// finish ends a held run.
func finish(t *testing.T, held *lease.Held) {
	t.Helper()
	if err := held.Finish(t.Context(), record.Ending{
		Phase: record.Complete, Verdict: ready(), Report: []byte(`{"kind":"PreflightReport"}`),
		Fingerprint: map[string]string{"nodes": "3"},
	}); err != nil {
		t.Fatalf("could not finish: %v", err)
	}
}

func get(t *testing.T, id string) record.Record {
	t.Helper()
	got, err := newRuns(api).Get(t.Context(), id)
	if err != nil {
		t.Fatalf("could not get run %s: %v", id, err)
	}
	return got
}

func headName(id string) string { return "preflight-" + strings.ReplaceAll(id, "-", "")[:10] }

func partName(id string, n int) string { return fmt.Sprintf("%s-%d", headName(id), n) }

func leaseName(intent record.Intent) string {
	return "preflight-" + strings.TrimPrefix(intent.Target.Digest(), "sha256:")[:12]
}

func getMap(t *testing.T, name string) *corev1.ConfigMap {
	t.Helper()
	object, err := api.CoreV1().ConfigMaps(record.Namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// edit changes a ConfigMap as another client.
func edit(t *testing.T, name string, change func(*corev1.ConfigMap)) {
	t.Helper()
	for {
		object := getMap(t, name)
		change(object)
		_, err := api.CoreV1().ConfigMaps(record.Namespace).Update(t.Context(), object, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
}

func editLease(t *testing.T, intent record.Intent, change func(*coordinationv1.Lease)) {
	t.Helper()
	leases := api.CoordinationV1().Leases(record.Namespace)
	for {
		lease, err := leases.Get(t.Context(), leaseName(intent), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		change(lease)
		_, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
}

func wantNoLease(t *testing.T, intent record.Intent) {
	t.Helper()
	_, err := api.CoordinationV1().Leases(record.Namespace).Get(t.Context(), leaseName(intent), metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the lease of an ended run exists: %v", err)
	}
}

func names(results []record.Result) []string {
	checks := []string{}
	for _, result := range results {
		checks = append(checks, result.Check)
	}
	return checks
}

func wantResults(t *testing.T, reason string, got []record.Result, checks ...string) {
	t.Helper()
	slices.Sort(checks)
	if diff := cmp.Diff(append([]string{}, checks...), names(got)); diff != "" {
		t.Errorf("%s; results (-want +got):\n%s", reason, diff)
	}
}

// through returns a client whose requests are handled by handle.
func through(t *testing.T, handle func(r *http.Request, next http.RoundTripper) (*http.Response, error)) kubernetes.Interface {
	t.Helper()
	wrapped := rest.CopyConfig(config)
	wrapped.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport.Func(func(r *http.Request) (*http.Response, error) { return handle(r, next) })
	})
	client, err := kubernetes.NewForConfig(wrapped)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
