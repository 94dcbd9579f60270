package record_test

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

// garbage is what people make of a head.
func garbage(head *corev1.ConfigMap) {
	head.Data = map[string]string{"format": "1", "run.yaml": "\tnobody: [knows"}
	head.BinaryData["results.gz"] = []byte("garbage")
	head.Labels["preflight.openshift.io/phase"] = "Complete"
}

// bomb inflates to so many MiB.
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

// The holder's word counts, whatever others do to the record.
func TestARecordThatIsEditedWhileItIsHeld(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		spoil  func(t *testing.T, id string)
	}{
		"Edited": {reason: "it is written again", spoil: func(t *testing.T, id string) { t.Helper(); edit(t, headName(id), garbage) }},
		"Relabeled": {reason: "it is written again", spoil: func(t *testing.T, id string) {
			t.Helper()
			edit(t, headName(id), func(head *corev1.ConfigMap) { head.Labels, head.Annotations = nil, nil })
		}},
		"Deleted": {reason: "it is made again, with its parts", spoil: func(t *testing.T, id string) { t.Helper(); deleteMap(t, headName(id)) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intent := newIntent()
			held := begin(t, record.New(api), intent)
			_, leave := held.Hold(t.Context())
			defer leave()
			checks := []string{"Etcd.Disk"}
			for i := range 100 { // more than a head holds
				result := incompressible(i, 4096)
				checks = append(checks, result.Check)
				held.Put(result)
			}
			await(t, intent.ID, func(r record.Record) bool { return len(r.Results) == 100 })
			tc.spoil(t, intent.ID)
			held.Put(aResult("Etcd.Disk"))
			await(t, intent.ID, func(r record.Record) bool { return len(r.Results) == 101 })
			got := get(t, intent.ID)
			wantResults(t, tc.reason, got.Results, checks...)
			if !got.StartTime.Equal(held.Record().StartTime) {
				t.Errorf("%s, but the start moved from %s to %s", tc.reason, held.Record().StartTime, got.StartTime)
			}
			tc.spoil(t, intent.ID)
			finish(t, held)
			got = get(t, intent.ID)
			wantResults(t, tc.reason, got.Results, checks...)
			head := getMap(t, headName(intent.ID))
			if part := getMap(t, partName(intent.ID, 1)); got.Phase != record.Complete || part.OwnerReferences[0].UID != head.UID {
				t.Errorf("%s, but it is %s, and a part goes with %+v", tc.reason, got.Phase, part.OwnerReferences)
			}
		})
	}
}

// What cannot be read is not in, and no obstacle to whoever takes the run over.
func TestARecordThatIsSpoiltWhileNobodyHoldsIt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		spoil  func(t *testing.T, id string)
		// parts and open say which results are left: of the first hundred, which are
		// in a part for the most, and the last.
		parts, open bool
	}{
		"Head": {reason: "what was in is lost", spoil: func(t *testing.T, id string) {
			t.Helper()
			edit(t, headName(id), garbage)
		}},
		"HeadDeleted": {reason: "what was in is lost", spoil: func(t *testing.T, id string) {
			t.Helper()
			deleteMap(t, headName(id))
		}},
		"Part": {reason: "what is in the head is left", open: true, spoil: func(t *testing.T, id string) {
			t.Helper()
			edit(t, partName(id, 1), func(part *corev1.ConfigMap) { part.BinaryData["part.gz"][1000] ^= 1 })
		}},
		"PartDeleted": {reason: "what is in the head is left", open: true, spoil: func(t *testing.T, id string) {
			t.Helper()
			deleteMap(t, partName(id, 1))
		}},
		"Bomb": {reason: "what is in the head is left", open: true, spoil: func(t *testing.T, id string) {
			t.Helper()
			packed := bomb(t, 9)
			edit(t, partName(id, 1), func(part *corev1.ConfigMap) { part.BinaryData["part.gz"] = packed })
		}},
		"Open": {reason: "what is in the part is left", parts: true, spoil: func(t *testing.T, id string) {
			t.Helper()
			edit(t, headName(id), func(head *corev1.ConfigMap) { head.BinaryData["results.gz"] = []byte("garbage") })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intent := newIntent()
			first := begin(t, record.New(api), intent)
			for i := range 100 {
				first.Put(incompressible(i, 4096))
			}
			first.Put(aResult("Etcd.Disk"))
			if err := first.Detach(t.Context()); err != nil {
				t.Fatal(err)
			}
			tc.spoil(t, intent.ID)
			taker := begin(t, record.New(api), again(intent))
			if taker.Record().ID != intent.ID || !taker.Resumed() || taker.Record().StartTime.IsZero() {
				t.Errorf("want run %s to go on, got %+v", intent.ID, taker.Record().Intent)
			}
			in := strings.Join(names(taker.Record().Results), " ")
			if strings.Contains(in, "Component.Check00000") != tc.parts || strings.Contains(in, "Etcd.Disk") != tc.open {
				t.Errorf("%s, but these are in: %s", tc.reason, in)
			}
			for i := range 100 { // who runs it asks for the rest
				taker.Put(incompressible(i, 4096))
			}
			taker.Put(aResult("Etcd.Disk"))
			finish(t, taker)
			if got := get(t, intent.ID); len(got.Results) != 101 || got.Phase != record.Complete {
				t.Errorf("at the end it is %s, with %d results", got.Phase, len(got.Results))
			}
		})
	}
}

// A report that cannot be read is never one that says nothing.
func TestAReportThatIsSpoilt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		spoil  func(t *testing.T, id string)
	}{
		"Part": {reason: "a part of it is gone", spoil: func(t *testing.T, id string) { t.Helper(); deleteMap(t, partName(id, 3)) }},
		"PartChanged": {reason: "a part of it was changed", spoil: func(t *testing.T, id string) {
			t.Helper()
			edit(t, partName(id, 3), func(part *corev1.ConfigMap) { part.BinaryData["part.gz"][100] ^= 1 })
		}},
		"Head": {reason: "the head was changed", spoil: func(t *testing.T, id string) { t.Helper(); edit(t, headName(id), garbage) }},
		"Bomb": {reason: "it is larger than any report", spoil: func(t *testing.T, id string) {
			t.Helper()
			packed := bomb(t, 65)
			edit(t, partName(id, 2), func(part *corev1.ConfigMap) { part.BinaryData["part.gz"] = packed })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intent := newIntent()
			if err := life(t.Context(), record.New(api), intent); err != nil {
				t.Fatal(err)
			}
			tc.spoil(t, intent.ID)
			store := record.New(api)
			if _, err := store.Get(t.Context(), intent.ID); err == nil || !strings.Contains(err.Error(), intent.ID) {
				t.Errorf("%s, but got %v", tc.reason, err)
			}
			if _, found, err := store.Latest(t.Context(), intent); found || err == nil {
				t.Errorf("%s, but it is the latest: %v", tc.reason, err)
			}
			if _, err := store.Follow(t.Context(), intent.ID, func(record.Record) {}); err == nil {
				t.Errorf("%s, but it is followed to its end", tc.reason)
			}
		})
	}
}

// Two versions of the tool do not spoil one another's records.
func TestAnotherFormat(t *testing.T) {
	t.Parallel()
	intent := newIntent()
	if err := begin(t, record.New(api), intent).Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	edit(t, headName(intent.ID), func(head *corev1.ConfigMap) { head.Data["format"] = "2" })
	before := getMap(t, headName(intent.ID)).ResourceVersion
	store := record.New(api)
	_, began := store.Begin(t.Context(), again(intent), "tester")
	_, got := store.Get(t.Context(), intent.ID)
	_, followed := store.Follow(t.Context(), intent.ID, func(record.Record) {})
	canceled := store.Cancel(t.Context(), intent.ID)
	for name, err := range map[string]error{"Begin": began, "Get": got, "Follow": followed, "Cancel": canceled} {
		var format *record.FormatError
		if !errors.As(err, &format) || format.ID != intent.ID || format.Format != "2" || !strings.Contains(err.Error(), `format "2"`) {
			t.Errorf("%s: want that the format is not known, got %v", name, err)
		}
	}
	if after := getMap(t, headName(intent.ID)).ResourceVersion; after != before {
		t.Error("what is not understood was changed")
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
	t.Error("it is not listed")
}
