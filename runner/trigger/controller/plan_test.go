package controller_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
)

// noon is the present time of the tests.
var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

const (
	current    = "4.18.3"
	generation = 5
)

// image is the pull spec of a version: its digest has the digits of the version.
func image(version string) string {
	digits := strings.ReplaceAll(version, ".", "")
	return "registry.example.com/release@sha256:" + digits + strings.Repeat("0", 64-len(digits))
}

func release(version string) configv1.Release {
	return configv1.Release{Version: version, Image: image(version)}
}

// change is a change of the ClusterVersion of a cluster at 4.18.3.
type change func(*configv1.ClusterVersion)

func clusterVersion(changes ...change) *configv1.ClusterVersion {
	version := &configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "version", Generation: generation},
		Status: configv1.ClusterVersionStatus{
			Desired: release(current), ObservedGeneration: generation,
			History: []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: current, Image: image(current)}},
		},
	}
	for _, change := range changes {
		change(version)
	}
	return version
}

func available(versions ...string) change {
	return func(v *configv1.ClusterVersion) {
		for _, version := range versions {
			v.Status.AvailableUpdates = append(v.Status.AvailableUpdates, release(version))
		}
	}
}

func conditional(versions ...string) change {
	return func(v *configv1.ClusterVersion) {
		for _, version := range versions {
			v.Status.ConditionalUpdates = append(v.Status.ConditionalUpdates, configv1.ConditionalUpdate{Release: release(version)})
		}
	}
}

func desired(update configv1.Update) change {
	return func(v *configv1.ClusterVersion) { v.Spec.DesiredUpdate = &update }
}

func condition(kind configv1.ClusterStatusConditionType, status configv1.ConditionStatus) change {
	return func(v *configv1.ClusterVersion) {
		v.Status.Conditions = append(v.Status.Conditions, configv1.ClusterOperatorStatusCondition{Type: kind, Status: status})
	}
}

// accepted changes the ClusterVersion as CVO does when it accepts an update.
func accepted(version string) change {
	return func(v *configv1.ClusterVersion) {
		v.Spec.DesiredUpdate = &configv1.Update{Version: version}
		v.Status.Desired = release(version)
		v.Status.History = append([]configv1.UpdateHistory{{State: configv1.PartialUpdate, Version: version, Image: image(version)}},
			v.Status.History...)
		condition(configv1.OperatorProgressing, configv1.ConditionTrue)(v)
	}
}

// progress returns a run in progress.
func progress(version string, requester record.Requester) runplan.Run {
	return runplan.Run{
		ID: "run-" + version, Target: update.Release{Version: version, Image: image(version)}, Requester: requester,
		Generation: generation,
	}
}

// ended is a run that ended some time ago, and is valid for 24 hours if it has a verdict.
func ended(version string, decision verdict.Decision, ago time.Duration) runplan.Run {
	run := progress(version, record.BySelection)
	run.Ended, run.Decision = noon.Add(-ago), decision
	if decision != "" {
		run.ValidUntil = run.Ended.Add(24 * time.Hour)
	}
	return run
}

func edited(run runplan.Run, edit func(*runplan.Run)) runplan.Run {
	edit(&run)
	return run
}

// planned is a plan with versions instead of releases.
type planned struct {
	Run       string
	Requester record.Requester
	Delay     bool
	Cancel    []string
	Next      time.Duration
}

func plannedOf(plan runplan.Plan) planned {
	got := planned{Delay: plan.Delay, Cancel: plan.Cancel}
	if plan.Run != nil {
		got.Run, got.Requester = plan.Run.Version, plan.Run.Requester
	}
	if !plan.Next.IsZero() {
		got.Next = plan.Next.Sub(noon)
	}
	return got
}

func TestDecide(t *testing.T) {
	t.Parallel()
	const minor, patch = "4.19.1", "4.18.9"
	selects := desired(configv1.Update{Version: minor})
	selected := planned{Run: minor, Requester: record.BySelection}
	ahead := planned{Run: minor, Requester: record.Ahead, Delay: true}
	continues := planned{Run: minor, Requester: record.Ahead}
	updating := condition(configv1.OperatorProgressing, configv1.ConditionTrue)
	later := func(run *runplan.Run) { run.Generation = generation - 1 }
	changed := func(run *runplan.Run) { run.Changed = true }
	accepts := func(run *runplan.Run) { run.Accepts = true }
	differs := func(run *runplan.Run) { run.Differs = true }
	tests := map[string]struct {
		reason   string
		version  *configv1.ClusterVersion
		runs     []runplan.Run
		draining bool
		off      bool
		want     planned
	}{
		"Nothing": {reason: "no update is selected or offered", version: clusterVersion()},

		// An update was selected.
		"SelectedByVersion": {
			reason: "the image is that of the available update", version: clusterVersion(available(minor), selects),
			want: selected,
		},
		"SelectedConditional": {
			reason: "the image is that of the conditional update", version: clusterVersion(conditional(minor), selects),
			want: selected,
		},
		"SelectedByImage": {
			reason: "an image needs no offer", version: clusterVersion(desired(configv1.Update{Image: image(minor)})),
			want: planned{Requester: record.BySelection},
		},
		"SelectedByBoth": {
			reason:  "the image counts",
			version: clusterVersion(desired(configv1.Update{Version: minor, Image: image(minor)})), want: selected,
		},
		"SelectedForced": {
			reason:  "force does not change the target",
			version: clusterVersion(desired(configv1.Update{Version: minor, Image: image(minor), Force: true})), want: selected,
		},
		"SelectedUnobserved": {
			reason:  "CVO has not read the spec yet",
			version: clusterVersion(available(minor), selects, func(v *configv1.ClusterVersion) { v.Generation++ }), want: selected,
		},
		"SelectedUnknown": {reason: "CVO reports a version that it does not know as invalid", version: clusterVersion(selects)},
		"SelectedTag": {
			reason:  "a tag may name another image at any time",
			version: clusterVersion(desired(configv1.Update{Image: "registry.example.com/release:4.19.1"})),
		},
		"SelectedCurrent": {
			reason:  "the cluster runs that release",
			version: clusterVersion(desired(configv1.Update{Image: "mirror.example.com/x@" + strings.SplitAfter(image(current), "@")[1]})),
		},
		"SelectedBeforeOffered": {reason: "a selected target comes first", version: clusterVersion(available(minor, patch),
			desired(configv1.Update{Version: patch})), want: planned{Run: patch, Requester: record.BySelection}},
		"SelectedDuringUpdate": {
			reason:  "CVO requires the verdict of a target that replaces the one in progress",
			version: clusterVersion(available(minor), accepted(patch), selects), want: selected,
		},
		"SelectedDraining": {
			reason: "a selected target does not wait", version: clusterVersion(available(minor), selects), draining: true,
			want: selected,
		},
		"SelectedOff": {reason: "no runs ahead", version: clusterVersion(available(minor), selects), off: true, want: selected},
		"SelectedPreflightMode": {reason: "the present CVO starts the update", version: clusterVersion(available(minor),
			desired(configv1.Update{Version: minor, Mode: configv1.UpdateModePreflight})), want: selected},

		// The selected target has run.
		"Running": {
			reason: "a run in progress is joined or continued", version: clusterVersion(available(minor), selects),
			runs: []runplan.Run{progress(minor, record.BySelection)}, want: selected,
		},
		"RunningByUser": {
			reason: "a run of a user is joined", version: clusterVersion(available(minor), selects),
			runs: []runplan.Run{progress(minor, record.ByUser)}, want: selected,
		},
		"RunningAhead": {
			reason: "a run ahead becomes that of the selection", version: clusterVersion(available(minor), selects),
			runs: []runplan.Run{progress(minor, record.Ahead)}, want: selected,
		},
		"Ready": {
			reason: "the verdict holds", version: clusterVersion(available(minor), selects),
			runs: []runplan.Run{ended(minor, verdict.Ready, time.Minute)}, want: planned{Next: 24*time.Hour - time.Minute},
		},
		"ReadyBefore": {reason: "a verdict that holds is not repeated when its target is selected", version: clusterVersion(available(minor),
			selects), runs: []runplan.Run{edited(ended(minor, verdict.Ready, time.Minute), later)}, want: planned{Next: 24*time.Hour - time.Minute}},
		"ReadyAccepting": {
			reason: "the spec may have withdrawn the acceptance", version: clusterVersion(available(minor), selects),
			runs: []runplan.Run{edited(edited(ended(minor, verdict.Ready, time.Minute), later), accepts)}, want: selected,
		},
		"BlockedBefore": {
			reason: "the spec was changed since", version: clusterVersion(available(minor), selects),
			runs: []runplan.Run{edited(ended(minor, verdict.Blocked, time.Minute), later)}, want: selected,
		},
		"ReadyBeforeIt": {reason: "the last verdict counts", version: clusterVersion(available(minor), selects), runs: []runplan.Run{edited(
			ended(minor, verdict.Ready, time.Hour), later), edited(ended(minor, verdict.Blocked, time.Minute), later)}, want: selected},
		"ReadyExpired": {
			reason: "the validity ended", version: clusterVersion(available(minor), selects),
			runs: []runplan.Run{ended(minor, verdict.Ready, 24*time.Hour)}, want: selected,
		},
		"ReadyShort": {
			reason: "a verdict that ends at once is not repeated at once", version: clusterVersion(available(minor), selects),
			runs: []runplan.Run{edited(ended(minor, verdict.Ready, time.Minute), func(r *runplan.Run) { r.ValidUntil = r.Ended })},
			want: planned{Next: time.Minute},
		},
		"ReadyChanged": {
			reason: "the cluster has changed", version: clusterVersion(available(minor), selects),
			runs: []runplan.Run{edited(ended(minor, verdict.Ready, time.Hour), changed)}, want: selected,
		},
		"ReadyOutdated": {
			reason: "CVO waits, and an outdated verdict counts as none", version: clusterVersion(available(minor), selects),
			runs: []runplan.Run{edited(ended(minor, verdict.Ready, 0), changed)}, want: selected,
		},
		"OutdatedBefore": {
			reason: "so do those before the selection, however many", version: clusterVersion(available(minor), selects),
			runs: []runplan.Run{
				edited(edited(ended(minor, verdict.Ready, 0), changed), later),
				edited(edited(ended(minor, verdict.Ready, time.Minute), changed), later),
				edited(edited(ended(minor, verdict.Ready, 3*time.Minute), changed), later),
			}, want: selected,
		},
		"OutdatedAgain": {
			reason: "a cluster that changes repeatedly is checked once a minute", version: clusterVersion(available(minor), selects),
			runs: []runplan.Run{
				edited(ended(minor, verdict.Ready, 0), changed), edited(ended(minor, verdict.Ready, 30*time.Second), changed),
				edited(ended(minor, verdict.Ready, time.Minute), changed),
			}, want: planned{Next: time.Minute},
		},
		"ReadyDiffers": {
			reason: "judged again, it is not Ready", version: clusterVersion(available(minor), selects),
			runs: []runplan.Run{edited(ended(minor, verdict.Ready, time.Minute), differs)}, want: selected,
		},
		"BlockedDiffers": {
			reason: "a remedy does not wait for the pause", version: clusterVersion(available(minor), selects),
			runs: []runplan.Run{edited(ended(minor, verdict.Blocked, time.Minute), differs), ended(minor, verdict.Blocked, 20*time.Minute)},
			want: selected,
		},
		"Blocked": {
			reason: "a remedy may follow", version: clusterVersion(available(minor), selects),
			runs: []runplan.Run{ended(minor, verdict.Blocked, time.Minute)}, want: planned{Next: time.Minute},
		},
		"BlockedForAWhile": {
			reason: "the pause has passed", version: clusterVersion(available(minor), selects),
			runs: []runplan.Run{ended(minor, verdict.Blocked, 2*time.Minute)}, want: selected,
		},
		"BlockedTwice": {reason: "the pause doubles", version: clusterVersion(available(minor), selects), runs: []runplan.Run{ended(minor,
			verdict.Blocked, time.Minute), ended(minor, verdict.Blocked, 3*time.Minute)}, want: planned{Next: 3 * time.Minute}},
		"Interrupted": {
			reason:  "a run that an administrator canceled is not repeated at once",
			version: clusterVersion(available(minor), selects), runs: []runplan.Run{ended(minor, "", 0)}, want: planned{Next: 2 * time.Minute},
		},
		"NewestCounts": {reason: "the last verdict counts", version: clusterVersion(available(minor), selects), runs: []runplan.Run{ended(
			minor, verdict.Blocked, time.Hour), ended(minor, verdict.Ready, time.Minute)}, want: planned{Next: 24*time.Hour - time.Minute}},

		// Refused: the condition does not change the target.
		"Refused": {
			reason: "CVO evaluates again without another request", version: clusterVersion(available(minor), selects,
				condition("ReleaseAccepted", configv1.ConditionFalse)), runs: []runplan.Run{ended(minor, verdict.Blocked, 0)},
			want: planned{Next: 2 * time.Minute},
		},

		// Accepted.
		"Accepted": {reason: "no run while the cluster updates", version: clusterVersion(available(minor), accepted(minor))},
		"AcceptedWhileRunning": {reason: "no run outlives the acceptance of its update", version: clusterVersion(available(minor),
			accepted(minor)), runs: []runplan.Run{progress(minor, record.BySelection)}, want: planned{Cancel: []string{"run-" + minor}}},
		"AcceptedOthersRun": {reason: "the results of other targets are not needed", version: clusterVersion(available(minor, patch),
			accepted(minor)), runs: []runplan.Run{progress(patch, record.Ahead)}, want: planned{Cancel: []string{"run-" + patch}}},
		"AcceptedUserRuns": {
			reason: "a run of a user is not canceled", version: clusterVersion(available(minor, patch), accepted(minor)),
			runs: []runplan.Run{progress(patch, record.ByUser)},
		},

		// Done.
		"Done": {reason: "the offers are run again", version: clusterVersion(available(minor), accepted(patch),
			func(v *configv1.ClusterVersion) { v.Status.Conditions = nil }), want: ahead},

		// Offers changed.
		"Offered": {
			reason: "an offered update runs before it is selected", version: clusterVersion(available(patch, minor)),
			want: ahead,
		},
		"OfferedOff": {reason: "no runs ahead", version: clusterVersion(available(minor)), off: true},
		"OfferedSecond": {
			reason: "one after the other", version: clusterVersion(available(patch, minor)),
			runs: []runplan.Run{ended(minor, verdict.Blocked, time.Minute)}, want: planned{Run: patch, Requester: record.Ahead, Delay: true},
		},
		"OfferedRunning": {
			reason: "one at a time, without a further delay", version: clusterVersion(available(patch, minor)),
			runs: []runplan.Run{progress(minor, record.Ahead)}, want: continues,
		},
		"OfferedUserRuns": {
			reason: "the run of a user is joined", version: clusterVersion(available(minor)),
			runs: []runplan.Run{progress(minor, record.ByUser)}, want: ahead,
		},
		"OfferedAll": {reason: "the verdict that ends first", version: clusterVersion(available(patch, minor)), runs: []runplan.Run{ended(
			minor, verdict.Blocked, 3*time.Hour), ended(patch, verdict.Ready, 4*time.Hour)}, want: planned{Next: 20 * time.Hour}},
		"OfferedExpired": {
			reason: "the validity ended", version: clusterVersion(available(minor)),
			runs: []runplan.Run{ended(minor, verdict.Ready, 24*time.Hour)}, want: ahead,
		},
		"OfferedChanged": {
			reason: "the cluster has changed, which is no reason for a delay", version: clusterVersion(available(minor)),
			runs: []runplan.Run{edited(ended(minor, verdict.Ready, time.Minute), changed)}, want: continues,
		},
		"OfferedChangedNow": {
			reason: "at most once a minute", version: clusterVersion(available(minor)),
			runs: []runplan.Run{edited(ended(minor, verdict.Ready, 0), changed)}, want: planned{Next: time.Minute},
		},
		"OfferedChangedOften": {
			reason: "the pause doubles with each run of the last hour", version: clusterVersion(available(minor)),
			want: planned{Next: 3 * time.Minute},
			runs: []runplan.Run{
				edited(ended(minor, verdict.Ready, time.Minute), changed), ended(minor, verdict.Ready, 20*time.Minute),
				ended(minor, verdict.Ready, 40*time.Minute), ended(minor, verdict.Ready, 2*time.Hour),
			},
		},
		"OfferedDiffers": {reason: "a remedy is found within a minute", version: clusterVersion(available(minor)), runs: []runplan.Run{edited(
			ended(minor, verdict.Blocked, time.Minute), differs), ended(minor, verdict.Blocked, 20*time.Minute)}, want: continues},
		"OfferedFlips": {
			reason: "decisions that alternate do not run without a pause", version: clusterVersion(available(minor)),
			want: planned{Next: 3 * time.Minute},
			runs: []runplan.Run{
				edited(ended(minor, verdict.Ready, time.Minute), differs), ended(minor, verdict.Blocked, 3*time.Minute),
				ended(minor, verdict.Ready, 6*time.Minute),
			},
		},
		"OfferedShort": {reason: "not within an hour", version: clusterVersion(available(minor)), runs: []runplan.Run{edited(ended(minor,
			verdict.Ready, time.Minute), func(r *runplan.Run) { r.ValidUntil = r.Ended })}, want: planned{Next: 59 * time.Minute}},
		"OfferedInterrupted": {
			reason: "a target does not stay without a verdict", version: clusterVersion(available(minor)),
			runs: []runplan.Run{ended(minor, "", 0)}, want: planned{Next: time.Minute},
		},
		"OfferedRecordGone": {
			reason: "a run whose record was deleted has no verdict", version: clusterVersion(available(minor)),
			runs: []runplan.Run{ended(minor, "", 30*time.Minute)}, want: continues,
		},
		"OfferedUpdating": {reason: "the checks would report the transition", version: clusterVersion(available(minor), updating)},
		"OfferedDraining": {reason: "pods are evicted", version: clusterVersion(available(minor)), draining: true},
		"DrainingWhileRunning": {
			reason: "a run in progress continues", version: clusterVersion(available(minor)), draining: true,
			runs: []runplan.Run{progress(minor, record.Ahead)}, want: continues,
		},
		"NoLongerOffered": {
			reason: "the result is not needed", version: clusterVersion(available(patch)),
			runs: []runplan.Run{progress(minor, record.Ahead)},
			want: planned{Run: patch, Requester: record.Ahead, Delay: true, Cancel: []string{"run-" + minor}},
		},

		// Not known.
		"NotRetrieved": {
			reason:  "the listed updates may be stale",
			version: clusterVersion(available(minor), condition(configv1.RetrievedUpdates, configv1.ConditionFalse)),
		},
		"NotRetrievedRunning": {reason: "a run in progress continues", version: clusterVersion(condition(configv1.RetrievedUpdates,
			configv1.ConditionFalse)), runs: []runplan.Run{progress(minor, record.Ahead)}, want: continues},

		// Withdrawn.
		"Withdrawn": {
			reason: "desiredUpdate was cleared", version: clusterVersion(updating),
			runs: []runplan.Run{progress(minor, record.BySelection)}, want: planned{Cancel: []string{"run-" + minor}},
		},
		"AcceptRisksOnly": {
			reason:  "acceptRisks alone selects no update",
			version: clusterVersion(available(minor), updating, desired(configv1.Update{AcceptRisks: []configv1.AcceptRisk{{Name: "A"}}})),
			runs:    []runplan.Run{progress(minor, record.BySelection)}, want: planned{Cancel: []string{"run-" + minor}},
		},
		"Superseded": {
			reason: "another target is selected", version: clusterVersion(available(minor, patch), selects),
			runs: []runplan.Run{progress(patch, record.BySelection), progress("4.20.0", record.Ahead)},
			want: planned{Run: minor, Requester: record.BySelection, Cancel: []string{"run-" + patch, "run-4.20.0"}},
		},
		"SupersededUnrecorded": {
			reason: "a run without a record is ended by the plan for another one", version: clusterVersion(available(minor), selects),
			runs: []runplan.Run{edited(progress(patch, record.Ahead), func(r *runplan.Run) { r.ID = "" })}, want: selected,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := runplan.State{Now: noon, ClusterVersion: tc.version, Draining: tc.draining, Ahead: 3, Runs: tc.runs}
			if tc.off {
				state.Ahead = 0
			}
			if diff := cmp.Diff(tc.want, plannedOf(runplan.Decide(state))); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOffered(t *testing.T) {
	t.Parallel()
	many := make([]string, 500)
	for i := range many {
		many[i] = fmt.Sprintf("4.%d.%d", 19+i%250, i)
	}
	tests := map[string]struct {
		reason  string
		version *configv1.ClusterVersion
		most    int
		want    []string
	}{
		"NewestPerMinor": {
			reason: "the newest of each minor version", version: clusterVersion(available("4.18.4", "4.19.0", "4.18.9", "4.19.1")),
			most: 3, want: []string{"4.19.1", "4.18.9"},
		},
		"Order": {reason: "available updates come first", version: clusterVersion(available("4.18.9"),
			conditional("4.20.0", "4.19.1", "4.18.9")), most: 3, want: []string{"4.18.9", "4.20.0", "4.19.1"}},
		"Limit":    {reason: "bounded", version: clusterVersion(available("4.19.1", "4.18.9")), most: 1, want: []string{"4.19.1"}},
		"Off":      {reason: "no runs ahead", version: clusterVersion(available("4.19.1"))},
		"Negative": {reason: "a negative limit is none", version: clusterVersion(available("4.19.1")), most: -1},
		"Current": {
			reason: "the cluster runs that release", version: clusterVersion(available(current, "4.18.9")), most: 3,
			want: []string{"4.18.9"},
		},
		"Older": {
			reason:  "after an update CVO still offers what came before",
			version: clusterVersion(available("4.18.4", "4.19.1"), conditional("4.18.5"), accepted("4.19.0")), most: 3, want: []string{"4.19.1"},
		},
		"NotSemVer": {
			reason: "a version that cannot be compared is not run ahead", version: clusterVersion(available("latest", "4.18.9")),
			most: 3, want: []string{"4.18.9"},
		},
		"Tag": {reason: "an image without a digest is not run ahead", most: 3, version: clusterVersion(func(v *configv1.ClusterVersion) {
			v.Status.AvailableUpdates = []configv1.Release{{Version: "4.19.1", Image: "registry.example.com/release:4.19.1"}}
		})},
		"FiveHundred": {reason: "any number of offers is bounded", version: clusterVersion(available(many...)), most: 500, want: []string{
			"4.268.499", "4.267.498", "4.266.497", "4.265.496", "4.264.495", "4.263.494", "4.262.493", "4.261.492", "4.260.491", "4.259.490",
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, target := range runplan.Offered(tc.version, tc.most) {
				got = append(got, target.Version)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
