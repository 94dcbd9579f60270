package lease_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/record"
)

// incompressible is a result with a random message of that many characters.
func incompressible(seed, size int) record.Result {
	noise := make([]byte, size*3/4)
	source := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = source.Read(noise)
	check := fmt.Sprintf("Component.Check%05d", seed)
	return record.Result{Check: check, Findings: []finding.Finding{{Finding: preflight.Finding{
		Name: check, Outcome: preflight.Pass,
		Message: base64.StdEncoding.EncodeToString(noise),
	}, Source: finding.SourceJob}}}
}

func TestThousandResults(t *testing.T) {
	t.Parallel()
	const checks, size, limit = 1000, 4096, 512 << 10
	intent := newIntent()
	intent.Checks = nil
	var want []record.Result
	first := begin(t, newRuns(api), intent)
	_, release := first.Hold(t.Context())
	for i := range checks {
		want = append(want, incompressible(i, size))
		first.Put(want[i])
	}
	await(t, intent.ID, func(r record.Record) bool { return len(r.Results) == checks })
	if err := first.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	release()
	second := begin(t, newRuns(api), again(intent))
	if got := second.Record().Results; !reflect.DeepEqual(want, got) {
		t.Fatalf("the %d resumed results differ", len(got))
	}
	report, err := json.MarshalIndent(want, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Finish(t.Context(), record.Ending{
		Phase: record.Complete, Verdict: ready(), Report: report,
		Fingerprint: map[string]string{"a": "b"},
	}); err != nil {
		t.Fatal(err)
	}
	got := get(t, intent.ID)
	if !reflect.DeepEqual(want, got.Results) {
		t.Errorf("the %d final results differ", len(got.Results))
	}
	if !bytes.Equal(report, got.Report) || got.Fingerprint["a"] != "b" {
		t.Error("the report differs")
	}
	head := getMap(t, headName(intent.ID))
	total := 0
	for n := 1; ; n++ {
		part, err := api.CoreV1().ConfigMaps(record.Namespace).Get(t.Context(), partName(intent.ID, n), metav1.GetOptions{})
		if err != nil {
			break
		}
		total++
		if part.Size() > limit {
			t.Errorf("%s has %d bytes, want at most %d", part.Name, part.Size(), limit)
		}
		if len(part.OwnerReferences) != 1 || part.OwnerReferences[0].UID != head.UID || part.Labels["preflight.openshift.io/record"] != "" {
			t.Errorf("%s is not owned by the header, or has its labels: %+v", part.Name, part.ObjectMeta)
		}
	}
	if head.Size() > limit || total < checks*size/limit {
		t.Errorf("%d bytes in the header and %d parts", head.Size(), total)
	}
	t.Logf("%d parts", total)
}

// Results beyond the bounds are dropped; the others are kept.
func TestResultsBeyondTheBounds(t *testing.T) {
	t.Parallel()
	const bound = 20_000
	for name, tc := range map[string]struct {
		reason  string
		results func() []record.Result
		want    int
	}{
		"OneTooLarge": {
			reason:  "the API server rejects a ConfigMap of 2 MiB",
			results: func() []record.Result { return []record.Result{incompressible(1, 2<<20), aResult("Etcd.Disk")} },
			want:    1,
		},
		"OneLarge": {
			reason:  "a result that cannot be split may exceed a part",
			results: func() []record.Result { return []record.Result{incompressible(1, 1<<20), aResult("Etcd.Disk")} },
			want:    2,
		},
		"TooMany": {
			reason: "the number of results is bounded",
			results: func() []record.Result {
				results := make([]record.Result, bound+1000)
				for i := range results {
					results[i] = aResult(fmt.Sprintf("Component.Check%05d", i))
				}
				return results
			},
			want: bound,
		},
		"OneCheckTwice": {
			reason: "the last result of a check counts",
			results: func() []record.Result {
				return []record.Result{{Check: "Etcd.Disk"}, aResult("Etcd.Disk")}
			},
			want: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intent := newIntent()
			held := begin(t, newRuns(api), intent)
			for _, result := range tc.results() {
				held.Put(result)
			}
			finish(t, held)
			got := get(t, intent.ID).Results
			if len(got) > tc.want || len(got) < tc.want*9/10 { // results of one write are dropped together
				t.Errorf("%s: %d results, want %d", tc.reason, len(got), tc.want)
			}
			if len(got) > 0 && len(got) < 3 {
				if diff := cmp.Diff(aResult("Etcd.Disk"), got[len(got)-1]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			}
		})
	}
}

func TestReportBeyondBounds(t *testing.T) {
	t.Parallel()
	held := begin(t, newRuns(api), newIntent())
	if err := held.Finish(t.Context(), record.Ending{Phase: record.Complete, Verdict: ready(), Report: make([]byte, 65<<20)}); err == nil {
		t.Error("want an error for a report that cannot be read again")
	}
	if err := held.Finish(t.Context(), record.Ending{Phase: record.Running, Verdict: ready()}); err == nil {
		t.Error("want the run in progress")
	}
	finish(t, held)
}
