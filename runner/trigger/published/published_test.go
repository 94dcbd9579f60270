package published_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/trigger/published"
)

// recorded is the authentic record of a complete run of a release with such a digest.
func recorded(digit, run string, changes ...func(*record.Record)) record.Record {
	r := record.Record{
		Intent: record.Intent{ID: run, Target: update.Release{Image: "quay.io/release@sha256:" + strings.Repeat(digit, 64)}}, Phase: record.Complete,
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
		"None":        {reason: "the ConfigMap shows that the preflight is installed"},
		"Releases":    {reason: "each release has its runs, newest first", records: []record.Record{recorded("1", "c"), recorded("2", "b"), recorded("1", "a")}, want: map[string][]string{"1": {"c", "a"}, "2": {"b"}}},
		"Running":     {reason: "a run in progress has its state", records: []record.Record{recorded("1", "b", phase(record.Running)), recorded("1", "a")}, want: map[string][]string{"1": {"b", "a"}}},
		"Unfinished":  {reason: "a run that did not complete has no verdict", records: []record.Record{recorded("1", "a", phase(record.Interrupted)), recorded("1", "b", phase(record.Canceled))}},
		"Provisional": {reason: "a later update of a path is judged from another release", records: []record.Record{recorded("1", "a", func(r *record.Record) { r.Provisional = true })}},
		"Forged":      {reason: "a reader cannot verify what is published", records: []record.Record{recorded("1", "a", func(r *record.Record) { r.Authentication.State = record.Unauthentic })}},
		"Unverified":  {reason: "without the key nothing is authentic", records: []record.Record{recorded("1", "a", func(r *record.Record) { r.Authentication.State = record.Unverifiable })}},
		"Large":       {reason: "an older verdict must not count in place of a newer one", records: []record.Record{recorded("2", "b"), recorded("1", "large", large), recorded("1", "a")}, want: map[string][]string{"2": {"b"}}},
		"Many":        {reason: "the newest are published", records: many, want: map[string][]string{"1": runs(many[:100])}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := published.Content(tc.records)
			if err != nil {
				t.Fatal(err)
			}
			if data["uninstalled"] != "false" || len(data) != 1+len(tc.want) {
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
		ObjectMeta: metav1.ObjectMeta{Namespace: published.Namespace, Name: published.Name}, Data: map[string]string{"uninstalled": "true", "sha256-" + strings.Repeat("3", 64): "[]"},
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
		if err := published.Apply(t.Context(), client, records); err != nil {
			t.Fatal(err)
		}
		if data := get(); len(data) != 1+len(records) || data["uninstalled"] != "false" {
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
	if _, err := client.CoreV1().ConfigMaps(published.Namespace).Get(t.Context(), published.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the ConfigMap is not deleted: %v", err)
	}
	if removed, err := published.Remove(t.Context(), client); err != nil || len(removed) > 0 {
		t.Errorf("the second time: removed %v (%v)", removed, err)
	}
}
