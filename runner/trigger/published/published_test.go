package published_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/trigger/published"
)

// now is the present time of the tests.
var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// recorded is the authentic record of a complete run of a release with such a digest.
func recorded(digit, run string, changes ...func(*record.Record)) record.Record {
	r := record.Record{
		Intent:         record.Intent{ID: run, Target: update.Release{Image: "quay.io/release@sha256:" + strings.Repeat(digit, 64)}},
		Phase:          record.Complete,
		Authentication: record.Authentication{State: record.Authentic}, VerdictFile: "{\n  \"run\": \"" + run + "\"\n}\n",
	}
	for _, change := range changes {
		change(&r)
	}
	return r
}

func phase(phase record.Phase) func(*record.Record) {
	return func(r *record.Record) { r.Phase = phase }
}

func TestContent(t *testing.T) {
	t.Parallel()
	var many []record.Record
	for i := range 120 {
		many = append(many, recorded("1", fmt.Sprint("run ", i)))
	}
	large := func(r *record.Record) {
		r.VerdictFile = `{"run": "large", "selection": "` + strings.Repeat("a", 600<<10) + `"}`
	}
	for name, tc := range map[string]struct {
		reason  string
		records []record.Record
		// want are the runs of each release, by the digit of its digest.
		want map[string][]string
	}{
		"None": {reason: "the ConfigMap shows that the preflight is installed"},
		"Releases": {reason: "each release has its runs, newest first", records: []record.Record{
			recorded("1", "c"), recorded("2", "b"),
			recorded("1", "a"),
		}, want: map[string][]string{"1": {"c", "a"}, "2": {"b"}}},
		"Running": {
			reason:  "a run in progress has its state",
			records: []record.Record{recorded("1", "b", phase(record.Running)), recorded("1", "a")}, want: map[string][]string{"1": {"b", "a"}},
		},
		"Unfinished": {
			reason:  "a run that did not complete has no verdict",
			records: []record.Record{recorded("1", "a", phase(record.Interrupted)), recorded("1", "b", phase(record.Canceled))},
		},
		"Provisional": {
			reason:  "a later update of a path is judged from another release",
			records: []record.Record{recorded("1", "a", func(r *record.Record) { r.Provisional = true })},
		},
		"Forged": {
			reason:  "a reader cannot verify what is published",
			records: []record.Record{recorded("1", "a", func(r *record.Record) { r.Authentication.State = record.Unauthentic })},
		},
		"Unverified": {
			reason:  "without the key nothing is authentic",
			records: []record.Record{recorded("1", "a", func(r *record.Record) { r.Authentication.State = record.Unverifiable })},
		},
		"Large": {
			reason:  "an older verdict must not count in place of a newer one",
			records: []record.Record{recorded("2", "b"), recorded("1", "large", large), recorded("1", "a")}, want: map[string][]string{"2": {"b"}},
		},
		"Many": {reason: "the newest are published", records: many, want: map[string][]string{"1": runs(many[:100])}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, _, err := published.Content(tc.records, "asked", now)
			if err != nil {
				t.Fatal(err)
			}
			if data["uninstalled"] != "false" || data["asked"] != "asked" || len(data) != 2+len(tc.want) {
				t.Errorf("%s: the data are %q", tc.reason, data)
			}
			for digit, want := range tc.want {
				var entry []struct {
					Run string `json:"run"`
				}
				if err := json.Unmarshal([]byte(data["sha256-"+strings.Repeat(digit, 64)]), &entry); err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, each := range entry {
					got = append(got, each.Run)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s: got the runs %q of %s, want %q", tc.reason, got, digit, want)
				}
			}
		})
	}
}

// A reader must not rely on a verdict whose record has ended, or is about to be renewed.
func TestEnd(t *testing.T) {
	t.Parallel()
	const margin = published.Margin
	at := func(after time.Duration) string { return now.Add(after).Format(time.RFC3339) }
	ready := func(until string) string { return `{"decision":"Ready","later":["x"],"validUntil":"` + until + `"}` }
	ended := func(r *record.Record) { r.Ended = "Node a is new" }
	for name, tc := range map[string]struct {
		reason, recorded string
		changes          []func(*record.Record)
		want             string
		// next is after how much time the verdict ends; 0 for never.
		next time.Duration
	}{
		"Ready": {
			reason: "it ends before its record", recorded: ready(at(time.Hour)), want: ready(at(time.Hour - margin)),
			next: time.Hour - margin,
		},
		"JustValid": {
			reason: "the remaining second counts", recorded: ready(at(margin + time.Second)), want: ready(at(time.Second)),
			next: time.Second,
		},
		"Margin": {
			reason: "the record is about to be renewed", recorded: ready(at(margin)),
			want: `{"decision":"","later":["x"],"validUntil":"` + at(0) + `"}`,
		},
		"LessThan": {
			reason: "less remains than the margin", recorded: ready(at(margin / 2)),
			want: `{"decision":"","later":["x"],"validUntil":"` + at(-margin/2) + `"}`,
		},
		"Past": {
			reason: "the record has ended", recorded: ready(at(-time.Hour)),
			want: `{"decision":"","later":["x"],"validUntil":"` + at(-time.Hour-margin) + `"}`,
		},
		"Changed": {
			reason: "the cluster has changed since", recorded: ready(at(time.Hour)), changes: []func(*record.Record){ended},
			want: `{"decision":"","ended":"Node a is new","later":["x"],"validUntil":"` + at(-margin) + `"}`,
		},
		"ChangedPast": {
			reason: "the end of a record is not extended", recorded: ready(at(-time.Hour)), changes: []func(*record.Record){ended},
			want: `{"decision":"","ended":"Node a is new","later":["x"],"validUntil":"` + at(-time.Hour-margin) + `"}`,
		},
		"Forced": {
			reason: "a forced run stays marked", recorded: `{"decision":"Blocked","forced":true,"validUntil":"` + at(time.Hour) + `"}`,
			changes: []func(*record.Record){ended},
			want:    `{"decision":"Blocked","ended":"Node a is new","forced":true,"validUntil":"` + at(-margin) + `"}`,
		},
		"Blocked": {
			reason: "it stays Blocked", recorded: `{"decision":"Blocked","validUntil":"` + at(0) + `"}`,
			want: `{"decision":"Blocked","validUntil":"` + at(-margin) + `"}`,
		},
		"NoEnd": {reason: "a verdict without an end never holds", recorded: `{"decision":"Ready"}`, want: `{"decision":""}`},
		"BadEnd": {
			reason: "an end that is no time is none", recorded: ready("later"),
			want: `{"decision":"","later":["x"],"validUntil":"later"}`,
		},
		"Running": {
			reason: "a run in progress has no verdict", recorded: `{"phase":"Running","decision":"","validUntil":""}`,
			changes: []func(*record.Record){phase(record.Running)}, want: `{"phase":"Running","decision":"","validUntil":""}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := recorded("1", "a", append(tc.changes, func(r *record.Record) { r.VerdictFile = tc.recorded })...)
			data, next, err := published.Content([]record.Record{r}, "asked", now)
			if err != nil {
				t.Fatal(err)
			}
			if got := data["sha256-"+strings.Repeat("1", 64)]; got != "["+tc.want+"]" {
				t.Errorf("%s: published is %s, want %s", tc.reason, got, tc.want)
			}
			if got := next.Sub(now); tc.next == 0 != next.IsZero() || tc.next != 0 && got != tc.next {
				t.Errorf("%s: the next end is %s, want %s later", tc.reason, next, tc.next)
			}
		})
	}
}

// What is published changes when the first of its verdicts ends.
func TestNextEnd(t *testing.T) {
	t.Parallel()
	until := func(after time.Duration) func(*record.Record) {
		return func(r *record.Record) {
			r.VerdictFile = `{"decision":"Ready","validUntil":"` + now.Add(after).Format(time.RFC3339) + `"}`
		}
	}
	_, next, err := published.Content([]record.Record{
		recorded("1", "c", until(3*time.Hour)), recorded("2", "b", until(2*time.Hour)),
		recorded("3", "a", until(0)),
	}, "asked", now)
	if want := now.Add(2*time.Hour - published.Margin); err != nil || !next.Equal(want) {
		t.Errorf("the next end is %s (%v), want %s", next, err, want)
	}
}

func runs(records []record.Record) []string {
	var ids []string
	for _, each := range records {
		ids = append(ids, each.ID)
	}
	return ids
}

// What was published is replaced, with what others have left there, and the ConfigMap is marked
// when it is deleted.
func TestApplyAndRemove(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: published.Namespace, Name: published.Name},
		Data:       map[string]string{"uninstalled": "true", "sha256-" + strings.Repeat("3", 64): "[]"},
	})
	get := func() map[string]string {
		t.Helper()
		found, err := client.CoreV1().ConfigMaps(published.Namespace).Get(t.Context(), published.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return found.Data
	}
	for _, records := range [][]record.Record{{recorded("1", "a")}, {recorded("2", "b")}, nil} {
		if _, err := published.Apply(t.Context(), client, records, "asked", now); err != nil {
			t.Fatal(err)
		}
		if data := get(); len(data) != 2+len(records) || data["uninstalled"] != "false" {
			t.Errorf("%d records are published as %q", len(records), data)
		}
	}
	watched, err := client.CoreV1().ConfigMaps(published.Namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	removed, err := published.Remove(t.Context(), client)
	if err != nil || len(removed) != 1 || removed[0].Name != published.Name {
		t.Errorf("removed %v (%v)", removed, err)
	}
	event := <-watched.ResultChan()
	for event.Type != watch.Deleted {
		event = <-watched.ResultChan()
	}
	if last, ok := event.Object.(*corev1.ConfigMap); !ok || last.Data["uninstalled"] != "true" {
		t.Errorf("the ConfigMap is not marked when it is deleted: %+v", event.Object)
	}
	if _, err := client.CoreV1().ConfigMaps(published.Namespace).Get(t.Context(), published.Name,
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the ConfigMap is not deleted: %v", err)
	}
	if removed, err := published.Remove(t.Context(), client); err != nil || len(removed) > 0 {
		t.Errorf("the second time: removed %v (%v)", removed, err)
	}
}
