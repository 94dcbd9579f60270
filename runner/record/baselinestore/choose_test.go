package baselinestore_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
)

// candidate is an authentic one of 4.20.1 that was taken in that minute.
func candidate(run string, minute int, changes ...func(*baselinestore.Candidate)) baselinestore.Candidate {
	made := baselinestore.Candidate{
		Run: run, Taken: at(minute), ClusterID: cluster, Version: "4.20.1", Image: "registry.example/release@sha256:20",
		Authentication: record.Authentication{State: record.Authentic},
	}
	for _, change := range changes {
		change(&made)
	}
	return made
}

func TestChoose(t *testing.T) {
	const partial, completed = configv1.PartialUpdate, configv1.CompletedUpdate
	from := entry(completed, "4.20.1", -60, 0)
	release := func(version string) func(*baselinestore.Candidate) {
		return func(c *baselinestore.Candidate) { c.Version = version }
	}
	image := func(image string) func(*baselinestore.Candidate) {
		return func(c *baselinestore.Candidate) { c.Image = image }
	}
	authentication := func(state record.Authenticity) func(*baselinestore.Candidate) {
		return func(c *baselinestore.Candidate) {
			c.Authentication = record.Authentication{State: state, Cause: "cause"}
		}
	}
	for name, tc := range map[string]struct {
		reason     string
		candidates []baselinestore.Candidate
		// history is that of an update from 4.20.1 between the minutes 30 and 50, unless it is given.
		history []configv1.UpdateHistory
		want    []string
		absent  baselinestore.Reason
		// later is the run of a baseline for the next update.
		later string
	}{
		"Newest": {
			reason:     "the newest before the update is nearest to it",
			candidates: []baselinestore.Candidate{candidate("b", 20), candidate("c", 40), candidate("a", 10)}, want: []string{"b", "a"},
		},
		"AtTheSecond": {
			reason: "times are to the second", candidates: []baselinestore.Candidate{candidate("a", 30), candidate("b", 0)},
			want: []string{"a", "b"},
		},
		"Mirror": {
			reason:     "a mirror has the same image",
			candidates: []baselinestore.Candidate{candidate("a", 10, image("mirror.example/release@sha256:20"))}, want: []string{"a"},
		},
		"UnknownImage": {
			reason: "the version decides", candidates: []baselinestore.Candidate{candidate("a", 10, image(""))},
			want: []string{"a"},
		},
		"InProgress": {
			reason: "an update in progress has a baseline, too", candidates: []baselinestore.Candidate{candidate("a", 10)},
			history: []configv1.UpdateHistory{entry(partial, "4.21.3", 30, 30), from}, want: []string{"a"},
		},
		"Retargeted": {
			reason:     "the update began with its first target; in its middle, nothing counts",
			candidates: []baselinestore.Candidate{candidate("a", 10), candidate("b", 35), candidate("c", 35, release("4.21.2"))},
			history:    []configv1.UpdateHistory{entry(completed, "4.21.3", 40, 50), entry(partial, "4.21.2", 30, 40), from}, want: []string{"a"},
		},
		"RolledBack": {
			reason:     "the release is the one from before, and the update was not good",
			candidates: []baselinestore.Candidate{candidate("a", 10), candidate("b", 45), candidate("c", 55)},
			history:    []configv1.UpdateHistory{entry(completed, "4.20.1", 40, 50), entry(partial, "4.21.3", 30, 40), from}, want: []string{"a"},
		},
		"Undone": {
			reason:     "the update that was undone after its end is the last one, and started from the release that runs again",
			candidates: []baselinestore.Candidate{candidate("a", 10), candidate("b", 55, release("4.21.3"), image(""))},
			history:    []configv1.UpdateHistory{entry(completed, "4.20.1", 60, 70), entry(completed, "4.21.3", 30, 50), from}, want: []string{"a"},
		},
		"RetargetedToTheOldRelease": {
			reason: "only one that was taken before all of it counts", candidates: []baselinestore.Candidate{candidate("a", 42)},
			history: []configv1.UpdateHistory{
				entry(partial, "4.21.4", 45, 45), entry(partial, "4.20.1", 40, 45), entry(partial, "4.21.3", 30, 40),
				from,
			}, absent: baselinestore.TakenDuring,
		},
		"Next": {reason: "the next update starts from it", candidates: []baselinestore.Candidate{candidate("a", 55, release("4.21.3"),
			image("")), candidate("b", 60, release("4.21.3"), image(""))}, absent: baselinestore.OtherRelease, later: "b"},
		"NextDuring": {
			reason:     "the update was in progress",
			candidates: []baselinestore.Candidate{candidate("a", 45, release("4.21.3"), image(""))}, absent: baselinestore.OtherRelease,
		},
		"NextEdited": {reason: "it counts for no update", candidates: []baselinestore.Candidate{candidate("a", 55, release("4.21.3"),
			image(""), authentication(record.Unauthentic))}, absent: baselinestore.Unauthentic},
		"NextElsewhere": {reason: "it is of another cluster", candidates: []baselinestore.Candidate{candidate("a", 55, release("4.21.3"),
			image(""), func(c *baselinestore.Candidate) { c.ClusterID = "other" })}, absent: baselinestore.OtherCluster},
		"NextUndone": {
			reason:     "the cluster no longer runs its release",
			candidates: []baselinestore.Candidate{candidate("a", 55, release("4.21.3"), image(""))},
			history:    []configv1.UpdateHistory{entry(completed, "4.20.1", 60, 70), entry(completed, "4.21.3", 30, 50), from},
			absent:     baselinestore.OtherRelease,
		},
		"None": {reason: "no run was made", absent: baselinestore.NotTaken},
		"During": {
			reason: "objects may be bad by the update already", candidates: []baselinestore.Candidate{candidate("a", 31)},
			absent: baselinestore.TakenDuring,
		},
		"PreviousUpdate": {
			reason: "the update to the release was in progress", candidates: []baselinestore.Candidate{candidate("a", -1)},
			absent: baselinestore.TakenEarlier,
		},
		"OtherRelease": {
			reason: "it is of an earlier update", candidates: []baselinestore.Candidate{candidate("a", 10, release("4.19.9"))},
			absent: baselinestore.OtherRelease,
		},
		"OtherImage": {reason: "a release of the same version is another one", candidates: []baselinestore.Candidate{candidate("a", 10,
			image("registry.example/release@sha256:99"))}, absent: baselinestore.OtherRelease},
		"OtherCluster": {reason: "the cluster was installed again", candidates: []baselinestore.Candidate{candidate("a", 10,
			func(c *baselinestore.Candidate) { c.ClusterID = "other" })}, absent: baselinestore.OtherCluster},
		"Edited": {
			reason:     "a MAC does not match",
			candidates: []baselinestore.Candidate{candidate("a", 10, authentication(record.Unauthentic))}, absent: baselinestore.Unauthentic,
		},
		"Unverifiable": {
			reason:     "the key may not be read",
			candidates: []baselinestore.Candidate{candidate("a", 10, authentication(record.Unverifiable))}, absent: baselinestore.Unverifiable,
		},
		"Unreadable": {reason: "it has another format", candidates: []baselinestore.Candidate{candidate("a", 10,
			func(c *baselinestore.Candidate) { c.Unreadable = "format" })}, absent: baselinestore.Unreadable},
		"EditedIsNewer": {
			reason:     "what was edited does not hide an authentic one",
			candidates: []baselinestore.Candidate{candidate("a", 10), candidate("b", 20, authentication(record.Unauthentic))}, want: []string{"a"},
		},
		"NearestIsStated": {
			reason:     "those of earlier updates always exist",
			candidates: []baselinestore.Candidate{candidate("b", -500, release("4.19.9")), candidate("a", 31)}, absent: baselinestore.TakenDuring,
		},
		"Installed": {
			reason: "the cluster was never updated", history: []configv1.UpdateHistory{from},
			candidates: []baselinestore.Candidate{candidate("a", 10)}, absent: baselinestore.NoUpdate,
		},
		"NeverComplete": {reason: "nothing states from which release", history: []configv1.UpdateHistory{
			entry(partial, "4.21.3", 30, 30),
			entry(partial, "4.20.1", 0, 30),
		}, candidates: []baselinestore.Candidate{candidate("a", 10)}, absent: baselinestore.NoUpdate},
		"WithoutTime": {
			reason: "nothing states when", history: []configv1.UpdateHistory{{State: partial, Version: "4.21.3"}, from},
			candidates: []baselinestore.Candidate{candidate("a", 10)}, absent: baselinestore.NoUpdate,
		},
	} {
		t.Run(name, func(t *testing.T) {
			given := tc.history
			if given == nil {
				given = history()
			}
			candidates := slices.Clone(tc.candidates)
			found, err := baselinestore.Choose(candidates, given, cluster)
			if tc.absent != "" {
				wantAbsent(t, err, tc.absent, "")
				if absent, _ := errors.AsType[*baselinestore.AbsentError](err); absent.Later.Run != tc.later {
					t.Errorf("%s: the one of run %q is for the next update, want %q", tc.reason, absent.Later.Run, tc.later)
				}
				return
			}
			var got []string
			for _, each := range found {
				got = append(got, each.Run)
			}
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%s; error %v (-want +got):\n%s", tc.reason, err, diff)
			}
		})
	}
}
