package controller_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	runnerimage "github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
)

// requested returns the request of an administrator for a version, since noon.
func requested(version string, changes ...func(*runplan.Request)) runplan.Request {
	request := runplan.Request{
		Target: runplan.Target{
			Release: update.Release{Version: version, Image: image(version)}, Requester: record.ByUser,
			Object: runplan.Object{UID: types.UID("uid-" + version), Name: "my-" + version},
		},
		Since: noon, MeetsTerms: true,
	}
	for _, change := range changes {
		change(&request)
	}
	return request
}

func since(offset time.Duration) func(*runplan.Request) {
	return func(r *runplan.Request) { r.Since = noon.Add(offset) }
}

func until(offset time.Duration) func(*runplan.Request) {
	return func(r *runplan.Request) { r.Until = noon.Add(offset) }
}

func TestDecideRequests(t *testing.T) {
	t.Parallel()
	const minor, patch = "4.19.1", "4.18.9"
	selects := desired(configv1.Update{Version: minor})
	byUser := func(version string) planned { return planned{Run: version, Requester: record.ByUser} }
	otherTerms := func(r *runplan.Request) { r.MeetsTerms = false }
	thorough := func(r *runplan.Request) { r.Selection = "images=pull" }
	pulled := func(r *runplan.Run) { r.Selection = "images=pull" }
	early := since(-time.Hour)
	for name, tc := range map[string]struct {
		reason   string
		version  *configv1.ClusterVersion
		requests []runplan.Request
		runs     []runplan.Run
		draining bool
		want     planned
	}{
		"Now": {
			reason: "a request runs at once", version: clusterVersion(), requests: []runplan.Request{requested(minor)},
			want: byUser(minor),
		},
		"TooEarly": {
			reason: "the requested time is in the future", version: clusterVersion(),
			requests: []runplan.Request{requested(minor, since(time.Minute))}, want: planned{Next: time.Minute},
		},
		"TooLate": {
			reason: "the window has closed", version: clusterVersion(),
			requests: []runplan.Request{requested(minor, early, until(0))},
		},
		"LastMinute": {
			reason: "the window is open", version: clusterVersion(),
			requests: []runplan.Request{requested(minor, early, until(time.Minute))}, want: byUser(minor),
		},
		"TooLateRunning": {
			reason: "a run that has started in the window ends later", version: clusterVersion(),
			requests: []runplan.Request{requested(minor, early, until(0))}, runs: []runplan.Run{progress(minor, record.ByUser)},
			want: byUser(minor),
		},
		"Updating": {reason: "a request does not wait", version: clusterVersion(condition(configv1.OperatorProgressing,
			configv1.ConditionTrue)), requests: []runplan.Request{requested(minor)}, want: byUser(minor)},
		"Draining": {
			reason: "a request does not wait", version: clusterVersion(), draining: true,
			requests: []runplan.Request{requested(minor)}, want: byUser(minor),
		},
		"Running": {
			reason: "the run in progress is joined or continued", version: clusterVersion(),
			requests: []runplan.Request{requested(patch), requested(minor)}, runs: []runplan.Run{progress(minor, record.ByUser)},
			want: byUser(minor),
		},
		"InOrder": {reason: "the first one that is due", version: clusterVersion(), requests: []runplan.Request{requested(minor,
			since(time.Hour)), requested(patch)}, want: planned{Run: patch, Requester: record.ByUser, Next: time.Hour}},
		"Ready": {
			reason: "the verdict holds", version: clusterVersion(), requests: []runplan.Request{requested(minor, early)},
			runs: []runplan.Run{ended(minor, verdict.Ready, time.Minute)}, want: planned{Next: 24*time.Hour - time.Minute},
		},
		"ReadyBefore": {
			reason: "an earlier run does not count", version: clusterVersion(), requests: []runplan.Request{requested(minor)},
			runs: []runplan.Run{ended(minor, verdict.Ready, time.Minute)}, want: byUser(minor),
		},
		"ReadyChanged": {
			reason: "the cluster has changed", version: clusterVersion(), requests: []runplan.Request{requested(minor, early)},
			runs: []runplan.Run{edited(ended(minor, verdict.Ready, 10*time.Minute), func(r *runplan.Run) { r.Changed = true })},
			want: byUser(minor),
		},
		"ReadyOfLess": {reason: "a run that covers less does not count", version: clusterVersion(), requests: []runplan.Request{requested(
			minor, early, thorough)}, runs: []runplan.Run{ended(minor, verdict.Ready, time.Minute)}, want: byUser(minor)},
		"ReadyOfAll": {
			reason: "the run covers what is requested", version: clusterVersion(),
			requests: []runplan.Request{requested(minor, early, thorough)},
			runs:     []runplan.Run{edited(ended(minor, verdict.Ready, time.Minute), pulled)}, want: planned{Next: 24*time.Hour - time.Minute},
		},
		"ReadyInWindow": {
			reason: "the request does not run again after its window", version: clusterVersion(),
			requests: []runplan.Request{requested(minor, early, until(time.Hour))}, runs: []runplan.Run{ended(minor, verdict.Ready, time.Minute)},
		},
		"Blocked": {
			reason: "a remedy may follow", version: clusterVersion(), requests: []runplan.Request{requested(minor, early)},
			runs: []runplan.Run{ended(minor, verdict.Blocked, time.Minute)}, want: planned{Next: time.Minute},
		},
		"BlockedTwice": {
			reason: "the pause doubles", version: clusterVersion(), requests: []runplan.Request{requested(minor, early)},
			runs: []runplan.Run{ended(minor, verdict.Blocked, time.Minute), ended(minor, verdict.Blocked, 5*time.Minute)},
			want: planned{Next: 3 * time.Minute},
		},
		"OtherTerms": {reason: "the run had other acceptances", version: clusterVersion(), requests: []runplan.Request{requested(minor,
			early, otherTerms)}, runs: []runplan.Run{ended(minor, verdict.Ready, time.Minute)}, want: planned{Next: time.Minute}},
		"OtherTermsLater": {reason: "the pause has passed", version: clusterVersion(), requests: []runplan.Request{requested(minor, early,
			otherTerms)}, runs: []runplan.Run{ended(minor, verdict.Ready, 2*time.Minute)}, want: byUser(minor)},

		// Beside other runs.
		"SelectedFirst": {
			reason: "a selected target comes first", version: clusterVersion(available(minor), selects),
			requests: []runplan.Request{requested(patch)}, runs: []runplan.Run{progress(patch, record.ByUser)},
			want: planned{Run: minor, Requester: record.BySelection},
		},
		"SelectedPauses": {
			reason: "the pause of the selected target is used", version: clusterVersion(available(minor), selects),
			requests: []runplan.Request{requested(patch)}, runs: []runplan.Run{ended(minor, verdict.Blocked, time.Minute)},
			want: planned{Run: patch, Requester: record.ByUser, Next: time.Minute},
		},
		"SelectedSoonest": {
			reason: "the first one that will be due", version: clusterVersion(available(minor), selects),
			requests: []runplan.Request{requested(patch, since(time.Second))}, runs: []runplan.Run{ended(minor, verdict.Blocked, time.Minute)},
			want: planned{Next: time.Second},
		},
		"SelectedJoins": {
			reason: "a run that a request has joined is not canceled", version: clusterVersion(available(minor), selects),
			requests: []runplan.Request{requested(patch)}, runs: []runplan.Run{progress(patch, record.Ahead)},
			want: planned{Run: minor, Requester: record.BySelection},
		},
		"BeforeAhead": {
			reason: "offers wait", version: clusterVersion(available(minor)), requests: []runplan.Request{requested(patch)},
			want: byUser(patch),
		},
		"AheadMeanwhile": {
			reason: "nothing is requested before", version: clusterVersion(available(minor)),
			requests: []runplan.Request{requested(patch, since(time.Minute))},
			want:     planned{Run: minor, Requester: record.Ahead, Delay: true, Next: time.Minute},
		},
		"AfterAhead": {
			reason: "a run ahead that is in progress ends first", version: clusterVersion(available(minor)),
			requests: []runplan.Request{requested(patch)}, runs: []runplan.Run{progress(minor, record.Ahead)},
			want: planned{Run: minor, Requester: record.Ahead},
		},
		"WithdrawnOffer": {
			reason: "the result is needed for the request", version: clusterVersion(),
			requests: []runplan.Request{requested(minor)}, runs: []runplan.Run{progress(minor, record.Ahead)}, want: byUser(minor),
		},
		"WithdrawnOtherOffer": {
			reason: "the result is not needed", version: clusterVersion(), requests: []runplan.Request{requested(patch)},
			runs: []runplan.Run{progress(minor, record.Ahead)},
			want: planned{Run: patch, Requester: record.ByUser, Cancel: []string{"run-" + minor}},
		},
		"Deleted": {
			reason: "a run of a user is not canceled by its record", version: clusterVersion(),
			runs: []runplan.Run{progress(minor, record.ByUser)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := runplan.Decide(runplan.State{
				Now: noon, ClusterVersion: tc.version, Draining: tc.draining, Ahead: 3, Requests: tc.requests, Runs: tc.runs,
			})
			if diff := cmp.Diff(tc.want, plannedOf(plan)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			for _, request := range tc.requests {
				if !slices.Contains(plan.Requests, request.Object.UID) {
					t.Errorf("a run of %s would be canceled while the object exists", request.Object.Name)
				}
			}
		})
	}
}

// ofAdministrator returns an object of an administrator.
func ofAdministrator(name string, spec v1alpha1.UpdatePreflightSpec) v1alpha1.UpdatePreflight {
	return v1alpha1.UpdatePreflight{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon)},
		Spec:       spec,
	}
}

func labeled(object v1alpha1.UpdatePreflight, requester v1alpha1.Requester) v1alpha1.UpdatePreflight {
	object.Labels = map[string]string{v1alpha1.LabelRequester: string(requester)}
	return object
}

// selection is that of the controller for the mode check.
func selection(mode runnerimage.Mode) string {
	if mode == runnerimage.Manifests {
		return ""
	}
	return "images=" + string(mode)
}

func spec(target v1alpha1.Target) v1alpha1.UpdatePreflightSpec {
	return v1alpha1.UpdatePreflightSpec{Target: target, Images: "check"}
}

func TestSubjects(t *testing.T) {
	cluster := clusterVersion(available("4.18.9", "4.19.1"), conditional("4.19.2"), available("not-a-version"))
	digest := func(version string) string { return strings.SplitAfter(image(version), "@")[1] }
	for name, tc := range map[string]struct {
		reason        string
		target        v1alpha1.Target
		version, want string
		unknown       string
	}{
		"Version":     {reason: "an available update", target: v1alpha1.Target{Version: "4.18.9"}, version: "4.18.9", want: image("4.18.9")},
		"Conditional": {reason: "a conditional update", target: v1alpha1.Target{Version: "4.19.2"}, version: "4.19.2", want: image("4.19.2")},
		"Latest":      {reason: "the newest available update", target: v1alpha1.Target{Latest: true}, version: "4.19.1", want: image("4.19.1")},
		"Image":       {reason: "an image need not be offered", target: v1alpha1.Target{Image: image("4.99.0")}, want: image("4.99.0")},
		"Mirror": {
			reason: "the digest has the version", target: v1alpha1.Target{Image: "mirror.example.com/x@" + digest("4.19.1")},
			version: "4.19.1", want: "mirror.example.com/x@" + digest("4.19.1"),
		},
		"NotOffered": {
			reason: "the version is not offered", target: v1alpha1.Target{Version: "4.99.0"},
			unknown: "ClusterVersion has no available or conditional update 4.99.0 with a digest",
		},
		"NoDigest": {
			reason: "the image has no digest, although the API server rejects that",
			target: v1alpha1.Target{Image: "registry.example.com/x:tag"}, unknown: `the image "registry.example.com/x:tag" has no digest`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			subjects := runplan.Subjects([]v1alpha1.UpdatePreflight{ofAdministrator("a", spec(tc.target))}, cluster, selection, noon)
			if got := subjects[0]; got.Target.Version != tc.version || got.Target.Image != tc.want || got.Unknown != tc.unknown {
				t.Errorf("%s: %+v", tc.reason, got)
			}
		})
	}
	if none := runplan.Subjects([]v1alpha1.UpdatePreflight{ofAdministrator("a", spec(v1alpha1.Target{Latest: true}))}, clusterVersion(),
		selection, noon); none[0].Unknown == "" {
		t.Errorf("no update is available, but the latest is %v", none[0].Target)
	}
}

func TestSubjectsAreBounded(t *testing.T) {
	closed := spec(v1alpha1.Target{Version: "4.19.1"})
	closed.When = &v1alpha1.When{Window: &v1alpha1.Window{Start: metav1.NewTime(noon.Add(-time.Hour)), Mode: v1alpha1.Document}}
	hostile := spec(v1alpha1.Target{Version: "4.19.1"})
	for i := range 64 {
		hostile.AcceptedFindings = append(hostile.AcceptedFindings, fmt.Sprintf("N%0255d", i))
	}
	objects := []v1alpha1.UpdatePreflight{ofAdministrator("0-closed", closed)}
	for i := range 600 {
		objects = append(objects, ofAdministrator(fmt.Sprintf("hostile-%03d", i), hostile))
	}
	objects = append(objects, labeled(ofAdministrator("z", spec(v1alpha1.Target{Image: image("4.19.1")})), v1alpha1.Ahead))
	subjects := runplan.Subjects(objects, clusterVersion(available("4.19.1")), selection, noon)
	if len(subjects) != runplan.MaxObjects {
		t.Errorf("%d subjects, want %d", len(subjects), runplan.MaxObjects)
	}
	if subjects[0].Object.Name != "z" {
		t.Errorf("the first is %s, want the controller's own", subjects[0].Object.Name)
	}
	var run []string
	for _, subject := range subjects {
		if subject.Waiting == "" {
			run = append(run, subject.Object.Name)
		}
	}
	if want := 2 + runplan.MaxRequests; len(run) != want || run[want-1] != "hostile-007" {
		t.Errorf("these run or have run: %q; want the controller's own, the one whose window has closed, and %d others", run, runplan.MaxRequests)
	}
	if got := subjects[2].Target; got.Requester != record.ByUser || len(got.Object.Accepted) != 64 {
		t.Errorf("the target of a request is %+v", got)
	}
}

func TestReconciled(t *testing.T) {
	target := func(version string, requester record.Requester) runplan.Target {
		return runplan.Target{Release: update.Release{Version: version, Image: image(version)}, Requester: requester}
	}
	own := func(name, version string, requester v1alpha1.Requester) v1alpha1.UpdatePreflight {
		return labeled(ofAdministrator(name, spec(v1alpha1.Target{Image: image(version)})), requester)
	}
	unknownOffers := clusterVersion(condition(configv1.RetrievedUpdates, configv1.ConditionFalse))
	for name, tc := range map[string]struct {
		reason                  string
		version                 *configv1.ClusterVersion
		objects                 []v1alpha1.UpdatePreflight
		targets                 []runplan.Target
		create, relabel, remove []string
	}{
		"Create": {reason: "one for each target", targets: []runplan.Target{
			target("4.19.1", record.BySelection),
			target("4.18.9", record.Ahead),
		}, create: []string{"4.19.1 selected", "4.18.9 ahead"}},
		"Same": {
			reason: "the object exists", targets: []runplan.Target{target("4.19.1", record.Ahead)},
			objects: []v1alpha1.UpdatePreflight{own("4.19.1", "4.19.1", v1alpha1.Ahead)},
		},
		"Selected": {
			reason: "the offered update is selected", targets: []runplan.Target{target("4.19.1", record.BySelection)},
			objects: []v1alpha1.UpdatePreflight{own("4.19.1", "4.19.1", v1alpha1.Ahead)}, relabel: []string{"4.19.1 selected"},
		},
		"Withdrawn": {
			reason: "the release is not a next hop", objects: []v1alpha1.UpdatePreflight{own("4.19.1", "4.19.1", v1alpha1.Ahead)},
			remove: []string{"4.19.1"},
		},
		"OfUser": {
			reason:  "objects of administrators are not deleted",
			objects: []v1alpha1.UpdatePreflight{ofAdministrator("4.19.1", spec(v1alpha1.Target{Image: image("4.19.1")}))},
		},
		"Unknown": {
			reason: "the offers are unknown", version: unknownOffers,
			objects: []v1alpha1.UpdatePreflight{own("4.19.1", "4.19.1", v1alpha1.Ahead)},
		},
		"Updating": {reason: "the cluster updates to it", version: clusterVersion(accepted("4.19.1")), objects: []v1alpha1.UpdatePreflight{own(
			"4.19.1", "4.19.1", v1alpha1.BySelection), own("4.18.9", "4.18.9", v1alpha1.Ahead)}, remove: []string{"4.18.9"}},
		"Taken": {
			reason: "an object of an administrator has the name", targets: []runplan.Target{target("4.19.1", record.Ahead)},
			objects: []v1alpha1.UpdatePreflight{ofAdministrator("4.19.1", spec(v1alpha1.Target{Version: "4.19.1"}))},
			create:  []string{"4.19.1-419100000000 ahead"},
		},
		"Edited": {
			reason: "an edited object is replaced, and created when it is gone", targets: []runplan.Target{target("4.19.1", record.Ahead)},
			objects: []v1alpha1.UpdatePreflight{func() v1alpha1.UpdatePreflight {
				o := own("4.19.1", "4.19.1", v1alpha1.Ahead)
				o.Spec.AcceptedFindings = []string{"A"}
				return o
			}()}, remove: []string{"4.19.1"},
		},
		"NoVersion": {reason: "the digest has a name", targets: []runplan.Target{{
			Release:   update.Release{Image: image("4.19.1")},
			Requester: record.BySelection,
		}}, create: []string{"419100000000 selected"}},
		"OddVersion": {
			reason: "names are those of RFC 1123",
			targets: []runplan.Target{{
				Release:   update.Release{Version: "..4.19.1-RC.-+_ä" + strings.Repeat("x", 99), Image: image("4.19.1")},
				Requester: record.Ahead,
			}}, create: []string{"4.19.1-rc." + strings.Repeat("x", 37) + " ahead"},
		},
		"SameDigest": {
			reason: "two images of one version", targets: []runplan.Target{
				target("4.19.1", record.BySelection),
				{Release: update.Release{Version: "4.19.1", Image: image("4.19.2")}, Requester: record.Ahead},
			},
			create: []string{"4.19.1 selected", "4.19.1-419200000000 ahead"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.version == nil {
				tc.version = clusterVersion()
			}
			got := runplan.Reconciled(tc.objects, tc.targets, tc.version)
			if diff := cmp.Diff([][]string{tc.create, tc.relabel, tc.remove},
				[][]string{summary(t, got.Create), summary(t, got.Relabel), names(got.Delete)}); diff != "" {
				t.Errorf("%s: created, labeled, deleted (-want +got):\n%s", tc.reason, diff)
			}
			again := append(slices.Clone(tc.objects), got.Create...)
			if twice := runplan.Reconciled(again, tc.targets, tc.version); len(twice.Create) > 0 {
				t.Errorf("%s: created again: %v", tc.reason, names(twice.Create))
			}
		})
	}
}

// Objects that others have made in the controller's name are deleted in several rounds.
func TestReconciledIsBounded(t *testing.T) {
	var forged []v1alpha1.UpdatePreflight
	for i := range 600 {
		forged = append(forged, labeled(ofAdministrator(fmt.Sprint("forged-", i), spec(v1alpha1.Target{Image: image("4.19.1")})),
			v1alpha1.BySelection))
	}
	for _, tc := range []struct {
		objects, deleted int
		more             bool
	}{
		{600, runplan.MaxWrites, true},
		{runplan.MaxWrites + 1, runplan.MaxWrites, true},
		{runplan.MaxWrites, runplan.MaxWrites, false},
		{0, 0, false},
	} {
		got := runplan.Reconciled(forged[:tc.objects], nil, clusterVersion())
		if len(got.Delete) != tc.deleted || got.More != tc.more {
			t.Errorf("%d objects: %d are deleted, more: %t; want %d, %t", tc.objects, len(got.Delete), got.More, tc.deleted, tc.more)
		}
	}
}

// summary are objects by name and requester; their names are valid.
func summary(t *testing.T, objects []v1alpha1.UpdatePreflight) []string {
	t.Helper()
	var all []string
	for _, object := range objects {
		for _, violation := range validation.IsDNS1123Subdomain(object.Name) {
			t.Errorf("the name %q: %s", object.Name, violation)
		}
		if len(object.Name) > 63 {
			t.Errorf("the name %q is longer than 63 characters", object.Name)
		}
		all = append(all, object.Name+" "+object.Labels[v1alpha1.LabelRequester])
	}
	return all
}

func names(objects []v1alpha1.UpdatePreflight) []string {
	var all []string
	for _, object := range objects {
		all = append(all, object.Name)
	}
	return all
}
