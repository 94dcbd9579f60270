package judgement_test

import (
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
	"github.com/openshift/update-preflight/runner/record/judgement"
)

const sample = "2026-11-21T12:00:00Z"

// version is that of a cluster that runs a release.
func version(image string) *configv1.ClusterVersion {
	made := &configv1.ClusterVersion{}
	made.Status.Desired.Version = "4.19.1"
	made.Status.History = []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: "4.19.1", Image: image}}
	return made
}

// One judgement has one word, whichever command shows it, and what is not known has none that is in favor of the update.
func TestAfter(t *testing.T) {
	image := func(digit string) string { return "registry/release@sha256:" + strings.Repeat(digit, 64) }
	stored := func(state record.Authenticity, decision afterupdate.Decision) []baselinestore.Judgement {
		made := baselinestore.Judgement{Run: "a", Authentication: record.Authentication{State: state, Cause: "the cause"}}
		if state == record.Authentic {
			made.Report = afterupdate.Report{Decision: decision, Samples: afterupdate.Samples{Last: sample}}
		}
		return []baselinestore.Judgement{made}
	}
	marked := func(mark string) []baselinestore.Candidate {
		return []baselinestore.Candidate{{Run: "a", Judged: mark}}
	}
	for name, tc := range map[string]struct {
		reason  string
		stored  []baselinestore.Judgement
		taken   []baselinestore.Candidate
		version *configv1.ClusterVersion
		// want is empty for nothing.
		want string
	}{
		"Good": {
			reason: "it is stored", stored: stored(record.Authentic, afterupdate.Good), taken: marked(sample + " Good"),
			want: "Good",
		},
		"Regressed": {
			reason: "it is stored", stored: stored(record.Authentic, afterupdate.Regressed), taken: marked(sample + " Regressed"),
			want: "Regressed",
		},
		"Older": {
			reason: "an older version of the tool has not marked the baseline", stored: stored(record.Authentic, afterupdate.Good),
			taken: marked(""), want: "Good",
		},
		"Before": {
			reason: "the process was killed before it marked the baseline", stored: stored(record.Authentic, afterupdate.Good),
			taken: marked("2026-11-21T11:00:00Z Regressed"), want: "Good",
		},
		"PutBack": {
			reason: "a later judgement was there", stored: stored(record.Authentic, afterupdate.Good),
			taken: marked("2026-11-21T13:00:00Z Regressed"), want: judgement.Unverified,
		},
		"SameSecond": {
			reason: "another judgement of that second was there", stored: stored(record.Authentic, afterupdate.Good),
			taken: marked(sample + " Regressed"), want: judgement.Unverified,
		},
		"Edited":       {reason: "its MAC does not match", stored: stored(record.Unauthentic, ""), want: judgement.Unverified},
		"Unverifiable": {reason: "the key may not be read", stored: stored(record.Unverifiable, ""), want: judgement.Unverified},
		"Installed":    {reason: "the update was made", version: version(image("1")), want: judgement.NotJudged},
		"OtherImage":   {reason: "another release has that version", version: version(image("2"))},
		"NoVersion":    {reason: "it is not known what the cluster runs"},
		"OtherRun": {reason: "it is of another run", stored: []baselinestore.Judgement{{
			Run:            "b",
			Authentication: record.Authentication{State: record.Authentic},
		}}, version: version(image("2"))},
	} {
		t.Run(name, func(t *testing.T) {
			got := judgement.RunsOf(tc.stored, tc.taken,
				tc.version).After(record.Record{Intent: record.Intent{ID: "a", Target: update.Release{Version: "4.19.1", Image: image("1")}}})
			if got == nil && tc.want == "" {
				return
			}
			if got == nil || got.Decision != tc.want {
				t.Errorf("%s: got %+v, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
