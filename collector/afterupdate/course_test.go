package afterupdate_test

import (
	"testing"
	"time"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/settling"
)

// ago is a time some minutes before noon.
func ago(minutes int) time.Time { return noon().Add(-time.Duration(minutes) * time.Minute) }

// settled is a rollout that has settled some minutes before noon.
func settled(minutes int) settling.Progress { return settling.Progress{Settled: ago(minutes)} }

// flapping are samples from some minutes before noon, each step minutes, bad in the first of each period and then good.
func flapping(from, step, period, bad int, progress settling.Progress) []afterupdate.Sample {
	var samples []afterupdate.Sample
	for minutes := from; minutes >= 0; minutes -= step {
		problem := baseline.Problem{}
		if (from-minutes)%period < bad {
			problem.Reason = "Unavailable"
		}
		samples = append(samples, look(minutes, problem, progress))
	}
	return samples
}

// judged is the report of an update that has settled, after samples.
func judged(tb testing.TB, samples []afterupdate.Sample, edit func(*afterupdate.Question)) afterupdate.Report {
	tb.Helper()
	question := afterupdate.Question{Change: change(), Before: before()}
	if edit != nil {
		edit(&question)
	}
	var course afterupdate.Course
	for _, sample := range samples {
		course = course.And(question.Before, sample)
	}
	return afterupdate.Judge(question, course)
}

// A problem counts by its share of the time, and ends when it has stayed away.
func TestShareOfTime(t *testing.T) {
	down, good := baseline.Problem{Reason: "Unavailable"}, baseline.Problem{}
	since := func(minutes int) baseline.Problem {
		return baseline.Problem{Reason: "Unavailable", Since: ago(minutes)}
	}
	draining := settling.Progress{Draining: true, Waiting: []string{"MachineConfigPools that are not updated: worker (1 of 3 nodes)"}}
	for name, tc := range map[string]struct {
		reason  string
		samples []afterupdate.Sample
		want    afterupdate.Decision
	}{
		"Flaps": {reason: "it is bad for half of the time", samples: flapping(70, 5, 10, 5, rested()), want: afterupdate.Regressed},
		"FlapsEndGood": {
			reason: "that it is good in the last sample ends nothing", samples: flapping(65, 5, 10, 5, rested()),
			want: afterupdate.Regressed,
		},
		"FlapsLater": {
			reason:  "so it is, and was good in the first sample",
			samples: append([]afterupdate.Sample{look(75, good, rested())}, flapping(70, 5, 10, 5, rested())...), want: afterupdate.Regressed,
		},
		"FlapsSeldom": {reason: "it is bad for a twelfth of the time", samples: flapping(55, 5, 60, 5, rested()), want: afterupdate.Good},
		"FlapsLess": {
			reason: "it is bad for a sixth of the time, the last time a moment ago", samples: flapping(60, 5, 30, 5, rested()),
			want: afterupdate.Settling,
		},
		"FarApart": {
			reason:  "looks of separate processes, both of which find it",
			samples: []afterupdate.Sample{look(30, down, rested()), look(0, down, rested())}, want: afterupdate.Regressed,
		},
		"LongGap": {reason: "it was bad for minutes, good for nearly an hour, and is bad now", samples: []afterupdate.Sample{look(58, down,
			rested()), look(54, good, rested()), look(2, good, rested()), look(0, down, rested())}, want: afterupdate.Settling},
		"LongGapEnded": {reason: "it was bad for minutes, long ago", samples: []afterupdate.Sample{
			look(58, down, rested()),
			look(54, good, rested()), look(2, good, rested()), look(0, good, rested()),
		}, want: afterupdate.Good},
		"ClockBack": {
			reason:  "a clock that was set back begins anew",
			samples: append(flapping(70, 5, 10, 5, rested()), look(30, down, rested())), want: afterupdate.Settling,
		},
		"NodesUpdated": {reason: "while nodes are updated nothing is counted", samples: append(flapping(90, 5, 10, 5, draining)[:12],
			look(16, good, settled(20)), look(0, good, settled(20))), want: afterupdate.Good},
		"WhileUpdated": {reason: "nor decided", samples: flapping(70, 5, 10, 5, draining), want: afterupdate.Settling},
		"OwnTransition": {
			reason:  "the object states that it was good since the last sample",
			samples: []afterupdate.Sample{look(20, since(25), rested()), look(0, since(3), rested())}, want: afterupdate.Settling,
		},
		"OwnNew": {
			reason:  "so it does, and was not bad for long before either",
			samples: []afterupdate.Sample{look(20, since(22), rested()), look(0, since(3), rested())}, want: afterupdate.Settling,
		},
		"Contradicted": {
			reason:  "the object states that it was bad when the baseline shows that it was good: that is not believed",
			samples: []afterupdate.Sample{look(1, since(300), rested()), look(0, since(300), rested())}, want: afterupdate.Settling,
		},
		"Contradicts": {
			reason:  "and the problem counts by what was seen",
			samples: []afterupdate.Sample{look(16, since(300), rested()), look(0, since(300), rested())}, want: afterupdate.Regressed,
		},
		"Believed": {
			reason:  "it began after the baseline and before the update",
			samples: []afterupdate.Sample{look(16, since(200), rested()), look(0, since(200), rested())}, want: afterupdate.Good,
		},
		"Since": {
			reason:  "it began more than an hour after the update had settled",
			samples: []afterupdate.Sample{look(1, since(20), settled(90)), look(0, since(20), settled(90))}, want: afterupdate.Good,
		},
		"By": {
			reason:  "it began within the hour",
			samples: []afterupdate.Sample{look(1, since(40), settled(90)), look(0, since(40), settled(90))}, want: afterupdate.Regressed,
		},
		"Found": {
			reason:  "nothing states when it began, so that it may have been in the hour",
			samples: []afterupdate.Sample{look(16, down, settled(110)), look(0, down, settled(110))}, want: afterupdate.Regressed,
		},
		"FlapsByNow": {
			reason: "it comes and goes since the update, and its object states only the last time",
			samples: []afterupdate.Sample{
				look(100, since(101), settled(110)), look(90, good, settled(110)), look(20, since(30), settled(110)),
				look(0, since(30), settled(110)),
			}, want: afterupdate.Regressed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if made := judged(t, tc.samples, nil); made.Decision != tc.want {
				t.Errorf("%s: %s (%s), want %s; %+v", tc.reason, made.Decision, made.Message, tc.want, made.Regressions)
			}
		})
	}
}

// What makes the update counts by what it states of itself, and has to stay good as well.
func TestRecovered(t *testing.T) {
	node, operator := baseline.Key{Kind: baseline.Node, Name: "worker-1"}, baseline.Key{Kind: baseline.ClusterOperator, Name: "dns"}
	for name, tc := range map[string]struct {
		reason string
		key    baseline.Key
		// known is true for an object of the baseline.
		known bool
		is    baseline.Object
		want  afterupdate.Decision
	}{
		"Node": {
			reason: "it was not ready until ten minutes ago", key: node, known: true, is: baseline.Object{Recovered: ago(10)},
			want: afterupdate.Settling,
		},
		"NodeLong": {
			reason: "it has been ready for longer than its limit", key: node, known: true, is: baseline.Object{Recovered: ago(21)},
			want: afterupdate.Good,
		},
		"NodeNew": {reason: "it has joined ten minutes ago", key: node, is: baseline.Object{Recovered: ago(10)}, want: afterupdate.Good},
		"NodeRollout": {
			reason: "it was rebooted by the update", key: node, known: true, is: baseline.Object{Recovered: ago(70)},
			want: afterupdate.Good,
		},
		"Operator": {
			reason: "it was degraded until half an hour ago", key: operator, known: true,
			is: baseline.Object{Release: true, Recovered: ago(30)}, want: afterupdate.Settling,
		},
		"Progressing": {
			reason: "it has been progressing for an hour, which its limit permits", key: operator, known: true,
			is: problem("Progressing", 60), want: afterupdate.Settling,
		},
		"Progresses": {
			reason: "it has been progressing since the update, and counts from its end", key: operator, known: true,
			is: problem("Progressing", 170), want: afterupdate.Regressed,
		},
		"Unavailable": {
			reason: "it has been unavailable for longer than its limit", key: operator, known: true, is: problem("Unavailable", 21),
			want: afterupdate.Regressed,
		},
		"Degraded": {
			reason: "it has been degraded for less than its limit", key: operator, known: true, is: problem("Degraded", 39),
			want: afterupdate.Settling,
		},
		"OtherOfAlert": {
			reason: "a problem of another operator of before", key: operator, is: problem("Degraded", 41),
			want: afterupdate.Regressed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			samples := []afterupdate.Sample{look(1, baseline.Problem{}, rested()), look(0, baseline.Problem{}, rested())}
			for _, sample := range samples {
				sample.State.Objects[tc.key] = tc.is
			}
			made := judged(t, samples, func(q *afterupdate.Question) {
				if tc.known {
					q.Before.Objects[tc.key] = baseline.Object{Release: tc.is.Release}
				}
			})
			if made.Decision != tc.want {
				t.Errorf("%s: %s (%s), want %s; %+v", tc.reason, made.Decision, made.Message, tc.want, made.Regressions)
			}
		})
	}
}

// problem is an object of the release that is bad since some minutes before noon.
func problem(reason string, minutes int) baseline.Object {
	object := baseline.Object{Release: true}
	object.Add(baseline.Problem{Reason: reason, Since: ago(minutes)})
	return object
}

// An operator that is progressing for hours holds back nothing that is down.
func TestProgressingHoldsNothing(t *testing.T) {
	dns := baseline.Key{Kind: baseline.ClusterOperator, Name: "dns"}
	sample := look(0, baseline.Problem{Reason: "Unavailable", Since: ago(40)},
		settling.Progress{Waiting: []string{"ClusterOperators that are progressing: dns"}})
	sample.State.Objects[dns] = problem("Progressing", 60)
	made := judged(t, []afterupdate.Sample{sample}, func(q *afterupdate.Question) { q.Before.Objects[dns] = baseline.Object{Release: true} })
	if made.Decision != afterupdate.Regressed || len(made.Regressions) != 1 || made.Regressions[0].Name != "DeploymentUnavailable" {
		t.Errorf("%s (%s): %+v", made.Decision, made.Message, made.Regressions)
	}
}

// What came and went ends when its owner deletes the object, or scales it to none.
func TestFlappingEndsWithItsObject(t *testing.T) {
	for name, edit := range map[string]func(map[baseline.Key]baseline.Object){
		"Deleted": func(all map[baseline.Key]baseline.Object) { delete(all, web()) },
		"Stopped": func(all map[baseline.Key]baseline.Object) { all[web()] = baseline.Object{Revision: "1"} },
	} {
		samples := append([]afterupdate.Sample{look(75, baseline.Problem{}, rested())}, flapping(70, 5, 10, 5, rested())...)
		edit(samples[len(samples)-1].State.Objects)
		if made := judged(t, samples, nil); made.Decision == afterupdate.Regressed {
			t.Errorf("%s: %s (%s)", name, made.Decision, made.Message)
		}
	}
}

// A node that was cordoned in any sample before it was removed is the administrator's; another one is missed.
func TestCordonedBefore(t *testing.T) {
	metal := baseline.Key{Kind: baseline.Node, Name: "metal-1"}
	for cordoned, want := range map[bool]afterupdate.Decision{true: afterupdate.Good, false: afterupdate.Regressed} {
		samples := flapping(60, 10, 1000, 0, rested())
		samples[1].State.Objects[metal] = baseline.Object{Cordoned: cordoned}
		if made := judged(t, samples, func(q *afterupdate.Question) { q.Before.Objects[metal] = baseline.Object{} }); made.Decision != want {
			t.Errorf("cordoned %t: %s (%s), want %s", cordoned, made.Decision, made.Message, want)
		}
	}
}
