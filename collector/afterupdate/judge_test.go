package afterupdate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/settling"
)

func noon() time.Time { return time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC) }

// web is a Deployment of a user, and keys of the same state.
func web() baseline.Key {
	return baseline.Key{Kind: baseline.Deployment, Namespace: "shop", Name: "web"}
}

// state has the Deployment, bad since then; good for the zero value.
func state(taken time.Time, problem baseline.Problem) baseline.State {
	object := baseline.Object{Desired: 1, Ready: 1, Revision: "1"}
	if problem.Reason != "" {
		object.Ready = 0
		object.Add(problem)
	}
	return baseline.State{Taken: taken, Version: "4.18.2", Objects: map[baseline.Key]baseline.Object{web(): object}}
}

func before() *baseline.State {
	state := state(noon().Add(-4*time.Hour), baseline.Problem{})
	state.Version = "4.18.1"
	return &state
}

// change is an update that CVO has completed two hours before noon.
func change() *settling.Change {
	return &settling.Change{
		From: configv1.UpdateHistory{Version: "4.18.1"}, To: configv1.UpdateHistory{Version: "4.18.2"},
		Started: noon().Add(-3 * time.Hour), Completed: noon().Add(-2 * time.Hour),
	}
}

// rested is a rollout that has settled an hour before noon.
func rested() settling.Progress { return settling.Progress{Settled: noon().Add(-time.Hour)} }

// look is a sample some minutes before noon.
func look(minutes int, problem baseline.Problem, progress settling.Progress) afterupdate.Sample {
	return afterupdate.Sample{State: state(noon().Add(-time.Duration(minutes)*time.Minute), problem), Progress: progress}
}

func TestDecision(t *testing.T) {
	down, good := baseline.Problem{Reason: "Unavailable"}, baseline.Problem{}
	since := func(minutes int) baseline.Problem {
		return baseline.Problem{Reason: "Unavailable", Since: noon().Add(-time.Duration(minutes) * time.Minute)}
	}
	waiting := settling.Progress{Draining: true, Waiting: []string{"MachineConfigPools that are not updated: worker (1 of 3 nodes)"}}
	restarting := baseline.Problem{Reason: "Restarting"}
	unread := func(minutes int) afterupdate.Sample {
		made := look(minutes, good, rested())
		made.State.Objects, made.State.Unread = nil, map[baseline.Kind]string{baseline.Deployment: "the API server is overloaded"}
		return made
	}
	forbidden := func(minutes int, of map[baseline.Kind]bool) afterupdate.Sample {
		made := look(minutes, good, rested())
		made.State.Unread, made.State.Forbidden = map[baseline.Kind]string{"Rollout.argoproj.io": "it failed"}, of
		return made
	}
	denied := map[baseline.Kind]bool{"Rollout.argoproj.io": true}
	for name, tc := range map[string]struct {
		reason  string
		samples []afterupdate.Sample
		edit    func(*afterupdate.Question)
		want    afterupdate.Decision
		message string
	}{
		"Good": {reason: "two equal samples of a settled cluster", samples: []afterupdate.Sample{
			look(1, good, rested()),
			look(0, good, rested()),
		}, want: afterupdate.Good, message: "from 4.18.1 to 4.18.2"},
		"OneSample": {
			reason: "one sample does not show that the cluster has settled", samples: []afterupdate.Sample{look(0, good, rested())},
			want: afterupdate.Settling, message: "one more sample",
		},
		"Moment": {
			reason: "there is no second sample of an archive", samples: []afterupdate.Sample{look(0, good, rested())},
			edit: func(q *afterupdate.Question) { q.Moment = true }, want: afterupdate.Good,
		},
		"Regressed": {
			reason: "the object states since when", samples: []afterupdate.Sample{look(0, since(20), rested())},
			want: afterupdate.Regressed, message: "1 problem",
		},
		"JustNow": {
			reason: "the limit of a workload is 15 minutes", samples: []afterupdate.Sample{look(0, since(14), rested())},
			want: afterupdate.Settling, message: "may not last",
		},
		"SinceUnknown": {reason: "nothing states since when", samples: []afterupdate.Sample{look(0, down, rested())}, want: afterupdate.Settling},
		"Earlier": {
			reason:  "it was bad before the update began",
			samples: []afterupdate.Sample{look(1, since(200), rested()), look(0, since(200), rested())}, want: afterupdate.Good,
		},
		"EachSample": {
			reason:  "it was bad in each sample for longer than its limit",
			samples: []afterupdate.Sample{look(16, down, rested()), look(8, down, rested()), look(0, down, rested())}, want: afterupdate.Regressed,
		},
		"NotEach": {
			reason:  "it was good in between",
			samples: []afterupdate.Sample{look(16, down, rested()), look(8, good, rested()), look(0, down, rested())}, want: afterupdate.Settling,
		},
		"NotRead": {
			reason:  "it was not read in between",
			samples: []afterupdate.Sample{look(16, down, rested()), unread(8), look(0, down, rested())}, want: afterupdate.Regressed,
		},
		"Restarting": {
			reason:  "it restarted until it reached what it depends on, and counts as Restarting for a while",
			samples: []afterupdate.Sample{look(20, restarting, rested()), look(0, restarting, rested())}, want: afterupdate.Settling,
		},
		"Restarts": {
			reason: "it does not end", samples: []afterupdate.Sample{look(31, restarting, rested()), look(0, restarting, rested())},
			want: afterupdate.Regressed,
		},
		"Recovering": {
			reason:  "two equal samples end nothing: it has to stay away for its limit",
			samples: []afterupdate.Sample{look(30, down, rested()), look(8, good, rested()), look(0, good, rested())}, want: afterupdate.Settling,
			message: "must stay good until 2026-11-28T12:07:00Z",
		},
		"Recovered": {
			reason:  "it has been good for longer than its limit",
			samples: []afterupdate.Sample{look(30, down, rested()), look(16, good, rested()), look(0, good, rested())}, want: afterupdate.Good,
		},
		"Soaking": {
			reason: "it has been good for 16 minutes", samples: []afterupdate.Sample{look(30, down, rested()), look(16, good,
				rested()), look(0, good, rested())}, edit: func(q *afterupdate.Question) { q.Soak = 20 * time.Minute }, want: afterupdate.Settling,
			message: "soaks until",
		},
		"Soaked": {reason: "it has been settled for an hour", samples: []afterupdate.Sample{
			look(1, good, rested()),
			look(0, good, rested()),
		}, edit: func(q *afterupdate.Question) { q.Soak = time.Hour }, want: afterupdate.Good},
		"ClockBack": {reason: "a clock that was set back begins anew", samples: []afterupdate.Sample{
			look(0, good, rested()),
			look(10, good, rested()),
		}, want: afterupdate.Settling, message: "one more sample"},
		"RollingOut": {
			reason: "workloads are evicted while nodes are updated", samples: []afterupdate.Sample{look(0, since(60), waiting)},
			want: afterupdate.Settling, message: "worker (1 of 3 nodes)",
		},
		"Resting": {reason: "the last node was rebooted ten minutes ago", samples: []afterupdate.Sample{look(0, good,
			settling.Progress{Settled: noon().Add(10 * time.Minute)})}, want: afterupdate.Settling, message: "settles until 2026-11-28T12:10:00Z"},
		"Unfinished": {
			reason: "CVO has not completed it", samples: []afterupdate.Sample{look(0, good, waiting)},
			edit: func(q *afterupdate.Question) { q.Change.Completed = time.Time{} },
			want: afterupdate.Unfinished, message: "has not completed it",
		},
		"NotBegun": {
			reason: "the baseline is of the release that the cluster runs", samples: []afterupdate.Sample{look(0, good, rested())},
			edit: func(q *afterupdate.Question) { q.Before.Version = "4.18.2" }, want: afterupdate.Unfinished, message: "has not begun",
		},
		"Installed": {
			reason: "there was no update", samples: []afterupdate.Sample{look(0, good, rested())},
			edit: func(q *afterupdate.Question) { q.Change = nil },
			want: afterupdate.Unfinished, message: "no update has begun",
		},
		"RolledBack": {
			reason: "the update was undone", samples: []afterupdate.Sample{look(0, good, rested())},
			edit: func(q *afterupdate.Question) { q.Change.RolledBack = true },
			want: afterupdate.RolledBack,
		},
		"NoBaseline": {
			reason: "absolute findings alone are never Good", samples: []afterupdate.Sample{look(1, good, rested()), look(0, good, rested())},
			edit: func(q *afterupdate.Question) { q.Before, q.NoBaseline = nil, "the baseline was edited" },
			want: afterupdate.Undecided, message: "the baseline was edited",
		},
		"Stored": {
			reason:  "a baseline of the present release does not show what the update broke",
			samples: []afterupdate.Sample{look(1, good, rested()), look(0, good, rested())},
			edit: func(q *afterupdate.Question) {
				q.Before, q.Stored = nil, noon().Add(-time.Hour)
			}, want: afterupdate.Undecided, message: "the baseline of 2026-11-28T11:00:00Z belongs to 4.18.2: the next update is compared with it",
		},
		"Forbidden": {
			reason:  "custom resources that the user may not list are not covered, which the report states",
			samples: []afterupdate.Sample{forbidden(1, denied), forbidden(0, denied)}, want: afterupdate.Good,
		},
		"Failed": {
			reason:  "those that could not be listed now are unknown",
			samples: []afterupdate.Sample{forbidden(1, nil), forbidden(0, nil)}, want: afterupdate.Undecided, message: "Rollout",
		},
		"Watched": {
			reason: "a sample with a gap is taken again", samples: []afterupdate.Sample{forbidden(1, nil), forbidden(0, nil)},
			edit: func(q *afterupdate.Question) { q.Watched = true },
			want: afterupdate.Settling, message: "is taken again",
		},
		"Unread": {
			reason: "not read is never good", samples: []afterupdate.Sample{look(1, good, rested()), look(0, good, rested())},
			edit: func(q *afterupdate.Question) {
				q.Before.Unread = map[baseline.Kind]string{baseline.Route: "forbidden"}
			}, want: afterupdate.Undecided, message: "Route, in the baseline: forbidden",
		},
	} {
		t.Run(name, func(t *testing.T) {
			question := afterupdate.Question{Cluster: report.Cluster{Version: "4.18.2"}, Run: "run", Change: change(), Before: before()}
			if tc.edit != nil {
				tc.edit(&question)
			}
			var course afterupdate.Course
			for _, sample := range tc.samples {
				course = course.And(question.Before, sample)
			}
			made := afterupdate.Judge(question, course)
			if made.Decision != tc.want || !strings.Contains(made.Message, tc.message) {
				t.Errorf("%s: %s (%s), want %s with %q", tc.reason, made.Decision, made.Message, tc.want, tc.message)
			}
		})
	}
}

// What does the update counts while it is rolled out: a node that stays NotReady keeps the rollout from its end.
func TestStuckRollout(t *testing.T) {
	node := baseline.Key{Kind: baseline.Node, Name: "worker-1"}
	was, is := before(), state(noon(), baseline.Problem{})
	was.Objects[node] = baseline.Object{}
	broken := baseline.Object{}
	broken.Add(baseline.Problem{Reason: "NotReady", Since: noon().Add(-30 * time.Minute), Message: "KubeletNotReady"})
	is.Objects[node] = broken
	progress := settling.Progress{
		Draining: true, Waiting: []string{"MachineConfigPools that are not updated: worker (1 of 3 nodes)"},
		Steps: []settling.Step{{Time: noon().Add(-31 * time.Minute), Text: "the reboot of node worker-1", Node: "worker-1"}},
	}
	course := afterupdate.Course{}.And(was, afterupdate.Sample{State: is, Progress: progress})
	made := afterupdate.Judge(afterupdate.Question{Change: change(), Before: was}, course)
	if made.Decision != afterupdate.Regressed || len(made.Regressions) != 1 {
		t.Fatalf("%+v", made)
	}
	got := made.Regressions[0]
	want := afterupdate.Regression{
		Name: "NodeNotReady", Object: got.Object, Was: "good", Is: "NotReady: KubeletNotReady", Since: "2026-11-28T11:30:00Z",
		Step: "the reboot of node worker-1", Command: "oc describe node worker-1", Action: got.Action,
	}
	if diff := cmp.Diff(want, got); diff != "" || got.Object.Name != "worker-1" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The name of a finding has no name of a user's object: it leaves the cluster as evidence.
func TestNames(t *testing.T) {
	for want, key := range map[string]baseline.Key{
		"DeploymentBroken":              {Kind: baseline.Deployment, Namespace: "shop", Name: "web"},
		"DaemonSetBroken-dns-default":   {Kind: baseline.DaemonSet, Namespace: "openshift-dns", Name: "dns-default"},
		"ClusterOperatorBroken-ingress": {Kind: baseline.ClusterOperator, Name: "ingress"},
		"AlertFiring-TargetDown":        {Kind: baseline.Alert, Namespace: "openshift-dns", Name: "TargetDown/warning"},
		"AlertBroken":                   {Kind: baseline.Alert, Namespace: "shop", Name: "OrdersLate/critical"},
		"MachineConfigPoolBroken":       {Kind: baseline.MachineConfigPool, Name: "customers"},
		"IngressControllerBroken":       {Kind: baseline.IngressController, Namespace: "openshift-ingress-operator", Name: "customers"},
	} {
		was := before()
		was.Objects[key] = baseline.Object{}
		is := state(noon(), baseline.Problem{})
		broken := baseline.Object{}
		broken.Add(baseline.Problem{Reason: "Broken", Since: noon().Add(-2 * time.Hour)})
		is.Objects[key] = broken
		made := afterupdate.Judge(afterupdate.Question{Change: change(), Before: was},
			afterupdate.Course{}.And(was, afterupdate.Sample{State: is, Progress: rested()}))
		if len(made.Regressions) != 1 || made.Regressions[0].Name != want {
			t.Errorf("%s is named %+v, want %s", key, made.Regressions, want)
		}
	}
}

// Problems of one cause are one entry, which lists all of them. What is independent, or was bad before, is an entry of its own.
func TestCauses(t *testing.T) {
	service := baseline.Key{Kind: baseline.Service, Namespace: "shop", Name: "web"}
	webhook := baseline.Key{Kind: baseline.ValidatingWebhook, Name: "policy"}
	node := baseline.Key{Kind: baseline.Node, Name: "worker-1"}
	refs := map[baseline.Key][]baseline.Key{service: {web()}}
	type problems map[string]int // minutes by reason
	bad := func(object baseline.Object, of problems) baseline.Object {
		for reason, minutes := range of {
			object.Add(baseline.Problem{Reason: reason, Since: noon().Add(-time.Duration(minutes) * time.Minute)})
		}
		return object
	}
	for name, tc := range map[string]struct {
		reason      string
		ready       int32
		web         problems
		others      map[baseline.Key]problems
		before      map[baseline.Key]problems
		regressions []string
		pending     []string
	}{
		"Workload": {reason: "its pods are not created, so that none is ready", web: problems{
			"FailedCreate": 30, "Unavailable": 30,
			"ProgressDeadlineExceeded": 20,
		}, regressions: []string{"DeploymentFailedCreate: DeploymentProgressDeadlineExceeded, " +
			"DeploymentUnavailable"}},
		"Late": {
			reason: "what follows is too new to count, and what it follows from is not",
			web:    problems{"ImagePullBackOff": 30, "Unavailable": 5}, regressions: []string{"DeploymentImagePullBackOff: DeploymentUnavailable"},
		},
		"Early": {
			reason: "what follows counts, so that the cause is not too new", web: problems{"Unavailable": 12},
			others:      map[baseline.Key]problems{service: {"NoReadyEndpoints": 12}},
			regressions: []string{"DeploymentUnavailable: ServiceNoReadyEndpoints"},
		},
		"TooNew": {
			reason: "neither has lasted for long enough", web: problems{"CrashLoopBackOff": 5, "Unavailable": 5},
			pending: []string{"DeploymentCrashLoopBackOff: DeploymentUnavailable"},
		},
		"Chain": {
			reason: "the webhook is served by the pods of the workload", web: problems{"Unavailable": 30},
			others:      map[baseline.Key]problems{service: {"NoReadyEndpoints": 30}, webhook: {"NoReadyEndpoints": 30}},
			regressions: []string{"DeploymentUnavailable: ServiceNoReadyEndpoints, ValidatingWebhookConfigurationNoReadyEndpoints"},
		},
		"OtherPods": {
			reason: "a workload with a ready pod explains no Service without one", ready: 1, web: problems{"Unavailable": 30},
			others:      map[baseline.Key]problems{service: {"NoReadyEndpoints": 30}},
			regressions: []string{"DeploymentUnavailable", "ServiceNoReadyEndpoints"},
		},
		"GoodWorkload": {
			reason: "nothing is wrong with the workload of its name",
			others: map[baseline.Key]problems{service: {"NoReadyEndpoints": 30}}, regressions: []string{"ServiceNoReadyEndpoints"},
		},
		"Conditions": {reason: "conditions of a node are independent of each other", others: map[baseline.Key]problems{node: {
			"NotReady":       30,
			"ConfigDegraded": 30,
		}}, regressions: []string{"NodeConfigDegraded", "NodeNotReady"}},
		"BadBefore": {
			reason: "what was bad before the update did not follow from what is worse since", web: problems{"Unavailable": 30},
			others: map[baseline.Key]problems{service: {"NoReadyEndpoints": 30}},
			before: map[baseline.Key]problems{service: {"NoReadyEndpoints": 600}}, regressions: []string{"DeploymentUnavailable"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			was, is := before(), state(noon(), baseline.Problem{})
			is.Objects[web()] = bad(baseline.Object{Desired: 1, Ready: tc.ready, Revision: "1"}, tc.web)
			for key, of := range tc.others {
				was.Objects[key], is.Objects[key] = bad(baseline.Object{}, tc.before[key]),
					bad(baseline.Object{Detail: "shop/web", Refs: refs[key]}, of)
			}
			made := afterupdate.Judge(afterupdate.Question{Change: change(), Before: was},
				afterupdate.Course{}.And(was, afterupdate.Sample{State: is, Progress: rested()}))
			names := func(entries []afterupdate.Regression) []string {
				var all []string
				for _, each := range entries {
					var follows []string
					for _, folded := range each.Follows {
						follows = append(follows, folded.Name)
					}
					all = append(all, strings.TrimSuffix(each.Name+": "+strings.Join(follows, ", "), ": "))
				}
				return all
			}
			if diff := cmp.Diff(tc.regressions, names(made.Regressions)); diff != "" || made.Counts.Regressions != len(tc.regressions) {
				t.Errorf("%s: %d regressions, -want +got:\n%s", tc.reason, made.Counts.Regressions, diff)
			}
			if diff := cmp.Diff(tc.pending, names(made.Pending)); diff != "" || made.Counts.Pending != len(tc.pending) {
				t.Errorf("%s: %d too new to count, -want +got:\n%s", tc.reason, made.Counts.Pending, diff)
			}
			if regressed := made.Decision == afterupdate.Regressed; regressed != (len(tc.regressions) > 0) {
				t.Errorf("%s: the decision is %s", tc.reason, made.Decision)
			}
		})
	}
}
