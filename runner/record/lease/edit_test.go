package lease_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/runner/record"
)

func deleteMap(t *testing.T, name string) {
	t.Helper()
	if err := api.CoreV1().ConfigMaps(record.Namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// garbage damages a header.
func garbage(head *corev1.ConfigMap) {
	head.Data = map[string]string{"format": "1", "run.yaml": "\tinvalid: [yaml"}
	head.BinaryData["results.gz"] = []byte("garbage")
	head.Labels["preflight.openshift.io/phase"] = "Complete"
}

// bomb decompresses to that many MiB.
func bomb(tb testing.TB, size int) []byte {
	tb.Helper()
	return compressed(tb, make([]byte, size<<20))
}

func compressed(tb testing.TB, text []byte) []byte {
	tb.Helper()
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if _, err := writer.Write(text); err != nil {
		tb.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		tb.Fatal(err)
	}
	return packed.Bytes()
}

// The holder overwrites changes of other clients.
func TestEditOfHeldRecord(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		damage func(t *testing.T, id string)
	}{
		"Edited": {reason: "the header is written again", damage: func(t *testing.T, id string) { t.Helper(); edit(t, headName(id), garbage) }},
		"Relabeled": {reason: "the header is written again", damage: func(t *testing.T, id string) {
			t.Helper()
			edit(t, headName(id), func(head *corev1.ConfigMap) { head.Labels, head.Annotations = nil, nil })
		}},
		"Deleted": {
			reason: "the header is created again with its parts",
			damage: func(t *testing.T, id string) { t.Helper(); deleteMap(t, headName(id)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intent := newIntent()
			held := begin(t, newRuns(api), intent)
			_, release := held.Hold(t.Context())
			defer release()
			checks := []string{"Etcd.Disk"}
			for i := range 100 { // more than a header holds
				result := incompressible(i, 4096)
				checks = append(checks, result.Check)
				held.Put(result)
			}
			await(t, intent.ID, func(r record.Record) bool { return len(r.Results) == 100 })
			tc.damage(t, intent.ID)
			held.Put(aResult("Etcd.Disk"))
			await(t, intent.ID, func(r record.Record) bool { return len(r.Results) == 101 })
			got := get(t, intent.ID)
			wantResults(t, tc.reason, got.Results, checks...)
			if !got.StartTime.Equal(held.Record().StartTime) {
				t.Errorf("%s, but the start moved from %s to %s", tc.reason, held.Record().StartTime, got.StartTime)
			}
			tc.damage(t, intent.ID)
			finish(t, held)
			got = get(t, intent.ID)
			wantResults(t, tc.reason, got.Results, checks...)
			head := getMap(t, headName(intent.ID))
			if part := getMap(t, partName(intent.ID, 1)); got.Phase != record.Complete || part.OwnerReferences[0].UID != head.UID {
				t.Errorf("%s, but the phase is %s and the owner of a part %+v", tc.reason, got.Phase, part.OwnerReferences)
			}
		})
	}
}

// Unreadable results are omitted, and do not prevent a takeover.
func TestEditOfAbandonedRecord(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		damage func(t *testing.T, id string)
		// parts is true when the first hundred results, most of them in a part, are
		// readable, open when the last one is.
		parts, open bool
	}{
		"Head": {reason: "the results are lost", damage: func(t *testing.T, id string) {
			t.Helper()
			edit(t, headName(id), garbage)
		}},
		"HeadDeleted": {reason: "the results are lost", damage: func(t *testing.T, id string) {
			t.Helper()
			deleteMap(t, headName(id))
		}},
		"Part": {reason: "the results in the header are kept", open: true, damage: func(t *testing.T, id string) {
			t.Helper()
			edit(t, partName(id, 1), func(part *corev1.ConfigMap) { part.BinaryData["part.gz"][1000] ^= 1 })
		}},
		"PartDeleted": {reason: "the results in the header are kept", open: true, damage: func(t *testing.T, id string) {
			t.Helper()
			deleteMap(t, partName(id, 1))
		}},
		"Bomb": {reason: "the results in the header are kept", open: true, damage: func(t *testing.T, id string) {
			t.Helper()
			packed := bomb(t, 9)
			edit(t, partName(id, 1), func(part *corev1.ConfigMap) { part.BinaryData["part.gz"] = packed })
		}},
		"Open": {reason: "the results in the part are kept", parts: true, damage: func(t *testing.T, id string) {
			t.Helper()
			edit(t, headName(id), func(head *corev1.ConfigMap) {
				head.BinaryData["results.gz"] = []byte("garbage")
				sealed(clusterKey(t), head, id, string(head.UID))
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intent := newIntent()
			first := begin(t, newRuns(api), intent)
			for i := range 100 {
				first.Put(incompressible(i, 4096))
			}
			first.Put(aResult("Etcd.Disk"))
			if err := first.Detach(t.Context()); err != nil {
				t.Fatal(err)
			}
			tc.damage(t, intent.ID)
			next := begin(t, newRuns(api), again(intent))
			if next.Record().ID != intent.ID || !next.Resumed() || next.Record().StartTime.IsZero() {
				t.Errorf("want run %s resumed, got %+v", intent.ID, next.Record().Intent)
			}
			in := strings.Join(names(next.Record().Results), " ")
			if strings.Contains(in, "Component.Check00000") != tc.parts || strings.Contains(in, "Etcd.Disk") != tc.open {
				t.Errorf("%s, but the results are: %s", tc.reason, in)
			}
			for i := range 100 { // the new holder reads the others from their Jobs
				next.Put(incompressible(i, 4096))
			}
			next.Put(aResult("Etcd.Disk"))
			finish(t, next)
			if got := get(t, intent.ID); len(got.Results) != 101 || got.Phase != record.Complete {
				t.Errorf("want the complete run, got phase %s with %d results", got.Phase, len(got.Results))
			}
		})
	}
}

// An unreadable report must be an error or that of a record that is not authentic,
// never an empty report.
func TestEditOfReport(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		damage func(t *testing.T, id string)
		// unauthentic is true where that is reported instead of an error.
		unauthentic bool
	}{
		"Part": {reason: "a part of the report is missing", damage: func(t *testing.T, id string) { t.Helper(); deleteMap(t, partName(id, 3)) }},
		"PartChanged": {reason: "a part of the report was changed", unauthentic: true, damage: func(t *testing.T, id string) {
			t.Helper()
			edit(t, partName(id, 3), func(part *corev1.ConfigMap) { part.BinaryData["part.gz"][100] ^= 1 })
		}},
		"Head": {reason: "the header was changed", damage: func(t *testing.T, id string) { t.Helper(); edit(t, headName(id), garbage) }},
		"Bomb": {reason: "the report exceeds its bound", unauthentic: true, damage: func(t *testing.T, id string) {
			t.Helper()
			packed := bomb(t, 65)
			edit(t, partName(id, 2), func(part *corev1.ConfigMap) { part.BinaryData["part.gz"] = packed })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intent := newIntent()
			if err := performRun(t.Context(), newRuns(api), intent); err != nil {
				t.Fatal(err)
			}
			tc.damage(t, intent.ID)
			store := newRuns(api)
			if tc.unauthentic {
				got, err := store.Get(t.Context(), intent.ID)
				if err != nil {
					t.Fatal(err)
				}
				wantUnauthentic(t, tc.reason, got, record.Unauthentic, "does not match")
				return
			}
			if _, err := store.Get(t.Context(), intent.ID); err == nil || !strings.Contains(err.Error(), intent.ID) {
				t.Errorf("%s, but got %v", tc.reason, err)
			}
			if _, found, err := store.Latest(t.Context(), intent); found || err == nil {
				t.Errorf("%s, but Latest returned: %v", tc.reason, err)
			}
			if _, err := store.Follow(t.Context(), intent.ID, func(record.Record) {}); err == nil {
				t.Errorf("%s, but Follow returned no error", tc.reason)
			}
		})
	}
}

// Versions of the tool with different formats must not change each other's records.
func TestUnknownFormat(t *testing.T) {
	t.Parallel()
	intent := newIntent()
	if err := begin(t, newRuns(api), intent).Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	edit(t, headName(intent.ID), func(head *corev1.ConfigMap) { head.Data["format"] = "2" })
	before := getMap(t, headName(intent.ID)).ResourceVersion
	store := newRuns(api)
	_, began := store.Begin(t.Context(), again(intent), "tester")
	_, got := store.Get(t.Context(), intent.ID)
	_, followed := store.Follow(t.Context(), intent.ID, func(record.Record) {})
	canceled := store.Cancel(t.Context(), intent.ID)
	for name, err := range map[string]error{"Begin": began, "Get": got, "Follow": followed, "Cancel": canceled} {
		var format *record.FormatError
		if !errors.As(err, &format) || format.ID != intent.ID || format.Format != "2" || !strings.Contains(err.Error(), `format "2"`) {
			t.Errorf("%s: want a FormatError, got %v", name, err)
		}
	}
	if after := getMap(t, headName(intent.ID)).ResourceVersion; after != before {
		t.Error("a record of an unknown format was changed")
	}
	listed, err := store.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range listed {
		if r.ID == intent.ID && r.Phase == record.Running {
			return
		}
	}
	t.Error("the run is not listed")
}
