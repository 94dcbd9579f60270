package projection_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/projection"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

const version = "4.19.1"

func image(digit string) string {
	return "quay.io/openshift-release-dev/ocp-release@sha256:" + strings.Repeat(digit, 64)
}

func at(offset time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(offset)} }

// object is that of an administrator.
func object(changes ...func(*v1alpha1.UpdatePreflight)) *v1alpha1.UpdatePreflight {
	created := &v1alpha1.UpdatePreflight{
		ObjectMeta: metav1.ObjectMeta{Name: "mine", Generation: 3},
		Spec:       v1alpha1.UpdatePreflightSpec{Target: v1alpha1.Target{Version: version}},
	}
	for _, change := range changes {
		change(created)
	}
	return created
}

func accepts(names ...string) func(*v1alpha1.UpdatePreflight) {
	return func(p *v1alpha1.UpdatePreflight) { p.Spec.AcceptedFindings = names }
}

func starts(offset time.Duration) func(*v1alpha1.UpdatePreflight) {
	return func(p *v1alpha1.UpdatePreflight) { p.Spec.When = &v1alpha1.When{At: at(offset)} }
}

func window(w v1alpha1.Window) func(*v1alpha1.UpdatePreflight) {
	return func(p *v1alpha1.UpdatePreflight) { p.Spec.When = &v1alpha1.When{Window: &w} }
}

func owned(p *v1alpha1.UpdatePreflight) {
	p.Labels = map[string]string{v1alpha1.LabelRequester: string(v1alpha1.Ahead)}
}

// risk is a finding that blocks; detail is where it was accepted, empty for nowhere.
func risk(name, detail string) finding.Finding {
	found := finding.New(preflight.Fail, finding.Reason{}, "").Named(name).From(finding.SourceRisk)
	found.Blocks = true
	if detail != "" {
		found.Bypass = &finding.Bypass{By: finding.ByAcceptedRisk, Detail: detail}
	}
	return found
}

// decided is the report of a run that ended an hour ago, with these findings.
func decided(findings ...finding.Finding) *report.Report {
	folded, findings := verdict.Fold(findings, verdict.Expectation{Checks: 1, Reported: 1}, verdict.Policy{})
	for _, f := range findings {
		if f.Bypass != nil {
			folded.Accepted = append(folded.Accepted, f.Name)
		}
	}
	return &report.Report{
		Run:      report.Run{ID: "run-1", CompletionTime: noon.Add(-time.Hour).Format(time.RFC3339), Phase: report.PhaseComplete},
		Target:   report.Target{Version: version, Image: image("1")},
		Verdict:  folded,
		Findings: findings,
		Standing: &report.Standing{},
	}
}

func edited(r *report.Report, edit func(*report.Report)) *report.Report {
	edit(r)
	return r
}

// short is a status without times and history.
type short struct {
	Phase                     v1alpha1.Phase
	Run, Decision             string
	Ready, Reconciling, Stall metav1.ConditionStatus
	Reason, Message           string
}

func shortOf(t *testing.T, status v1alpha1.UpdatePreflightStatus) short {
	t.Helper()
	got := short{Phase: status.Phase, Run: status.Run, Decision: status.Decision}
	for kind, to := range map[string]*metav1.ConditionStatus{
		v1alpha1.ConditionReady: &got.Ready, v1alpha1.ConditionReconciling: &got.Reconciling, v1alpha1.ConditionStalled: &got.Stall,
	} {
		condition := meta.FindStatusCondition(status.Conditions, kind)
		if condition == nil {
			t.Fatalf("no condition %s", kind)
		}
		*to, got.Reason, got.Message = condition.Status, condition.Reason, condition.Message
	}
	return got
}

const (
	yes     = metav1.ConditionTrue
	no      = metav1.ConditionFalse
	unknown = metav1.ConditionUnknown
)

func TestStatus(t *testing.T) {
	t.Parallel()
	ready := short{
		Phase: v1alpha1.Ready, Run: "run-1", Decision: "Ready", Ready: yes, Reconciling: no, Stall: no, Reason: "Ready",
		Message: "no finding blocks",
	}
	blocked := short{
		Phase: v1alpha1.Blocked, Run: "run-1", Decision: "Blocked", Ready: no, Reconciling: no, Stall: yes, Reason: "Blocked",
		Message: "blocked by RiskA. See: oc preflight status run-1",
	}
	pending := func(reason, message string) short {
		return short{Phase: v1alpha1.Pending, Ready: unknown, Reconciling: yes, Stall: no, Reason: reason, Message: message}
	}
	expired := func(reason, message string) short {
		return short{Phase: v1alpha1.Expired, Ready: unknown, Reconciling: no, Stall: yes, Reason: reason, Message: message}
	}
	checking := short{
		Phase: v1alpha1.Checking, Run: "run-2", Ready: unknown, Reconciling: yes, Stall: no, Reason: "Checking",
		Message: "a run is in progress",
	}
	running := &projection.Run{ID: "run-2"}
	changed := func(r *report.Report) { r.Standing.Ended = []string{"node worker-1 has changed"} }
	for name, tc := range map[string]struct {
		reason  string
		object  *v1alpha1.UpdatePreflight
		unknown string
		running *projection.Run
		verdict *report.Report
		waiting string
		failure string
		want    short
	}{
		"Unknown": {
			reason: "no release is selected", object: object(), unknown: "no such update",
			want: short{Phase: v1alpha1.New, Ready: unknown, Reconciling: yes, Stall: no, Reason: "TargetUnknown", Message: "no such update"},
		},
		"NoRun": {reason: "no run has ended", object: object(), want: pending("NotStarted", "no run has a verdict yet")},
		"Waiting": {
			reason: "other requests come first", object: object(), waiting: "there are too many",
			want: pending("Waiting", "there are too many"),
		},
		"Failed": {
			reason: "the registry cannot be reached", object: object(), failure: "connection refused",
			want: pending("RunFailed", "the last run failed, and another one follows: connection refused"),
		},
		"FailedAgain": {
			reason: "the verdict has ended, and the next run failed", object: object(), failure: "connection refused",
			verdict: edited(decided(), changed), want: expired("RunFailed",
				"node worker-1 has changed; the last run failed, and another one follows: connection refused"),
		},
		"FailedReady": {
			reason: "a verdict is valid although a later run failed", object: object(), failure: "connection refused",
			verdict: decided(), want: ready,
		},
		"Running": {reason: "a run is in progress", object: object(), running: running, want: checking},
		"RunningUnrecorded": {
			reason: "a run that has no record yet has no ID", object: object(), running: &projection.Run{},
			want: func() short { s := checking; s.Run = ""; return s }(),
		},
		"Ready":   {reason: "the verdict is valid", object: object(), verdict: decided(), want: ready},
		"Blocked": {reason: "a finding blocks", object: object(), verdict: decided(risk("RiskA", "")), want: blocked},
		"Undecided": {
			reason: "a finding is inconclusive", object: object(),
			verdict: decided(finding.Unknown(finding.ReportedReason("X"), "").Named("Etcd").From(finding.SourceHealth)),
			want: short{
				Phase: v1alpha1.Undecided, Run: "run-1", Decision: "Undecided", Ready: no, Reconciling: no, Stall: yes, Reason: "Undecided",
				Message: "inconclusive: Etcd. See: oc preflight status run-1",
			},
		},
		"UndecidedWithoutNames": {
			reason: "fewer checks reported than were expected", object: object(),
			verdict: edited(decided(), func(r *report.Report) { r.Verdict.Decision = verdict.Undecided }),
			want: short{
				Phase: v1alpha1.Undecided, Run: "run-1", Decision: "Undecided", Ready: no, Reconciling: no, Stall: yes,
				Reason: "Undecided", Message: "inconclusive: missing results. See: oc preflight status run-1",
			},
		},
		"ReadyRunningAgain": {
			reason: "the last verdict is valid until there is another one", object: object(), running: running, verdict: decided(),
			want: short{
				Phase: v1alpha1.Checking, Run: "run-2", Decision: "Ready", Ready: yes, Reconciling: yes, Stall: no, Reason: "Checking",
				Message: "a run is in progress; the last verdict is Ready",
			},
		},
		"ChangedRunningAgain": {
			reason: "the verdict does not hold for the present cluster", object: object(), running: running,
			verdict: edited(decided(), changed), want: checking,
		},

		// A verdict that is no longer valid is never Ready.
		"Changed": {
			reason: "the cluster has changed", object: object(), verdict: edited(decided(), changed),
			want: expired("Expired", "node worker-1 has changed"),
		},
		"Expired": {
			reason: "the validity excludes its end", object: object(), verdict: edited(decided(),
				func(r *report.Report) { r.Verdict.ValidUntil = noon.Format(time.RFC3339) }),
			want: expired("Expired", "it was valid until 2026-11-22T12:00:00Z"),
		},
		"TooLong": {reason: "a verdict is valid for a day at most", object: object(), verdict: edited(decided(), func(r *report.Report) {
			r.Verdict.ValidUntil, r.Run.CompletionTime = "2999-01-01T00:00:00Z", "2026-11-21T12:00:00Z"
		}), want: expired("Expired", "it was valid until 2026-11-22T12:00:00Z")},
		"NoStanding": {reason: "an unknown validity is none", object: object(), verdict: edited(decided(),
			func(r *report.Report) { r.Standing = nil }), want: expired("Expired", "unknown whether its verdict is valid")},
		"Timeless": {
			reason: "the age of the verdict is unknown", object: object(), verdict: edited(decided(),
				func(r *report.Report) { r.Run.CompletionTime = "" }),
			want: pending("NotStarted", "the time of its verdict is unknown; another run follows"),
		},
		"Forced": {reason: "force is not Ready", object: object(), verdict: edited(decided(),
			func(r *report.Report) { r.Verdict.Forced = true }), want: pending("NotStarted", "its verdict was forced; another run follows")},
		"ForcedOwn": {reason: "force is not Ready", object: object(owned), verdict: edited(decided(),
			func(r *report.Report) { r.Verdict.Forced = true }), want: pending("NotStarted", "its verdict was forced; another run follows")},

		// Acceptances.
		"Accepted": {reason: "the run accepted what the object accepts", object: object(accepts("RiskA")), verdict: decided(risk("RiskA",
			"UpdatePreflight mine")), want: func() short { s := ready; s.Message = "no finding blocks; accepted: RiskA"; return s }()},
		"AcceptedByCVO": {reason: "acceptances of ClusterVersion are for every run", object: object(), verdict: decided(risk("RiskA",
			acceptance.Origin)), want: func() short { s := ready; s.Message = "no finding blocks; accepted: RiskA"; return s }()},
		"AcceptedElsewhere": {
			reason: "the object does not accept it", object: object(), verdict: decided(risk("RiskA", "--accept")),
			want: pending("NotStarted", "its verdict accepts RiskA, but spec.acceptedFindings does not; another run follows"),
		},
		"AcceptedLater": {
			reason: "the run did not accept it", object: object(accepts("RiskA")), verdict: decided(risk("RiskA", "")),
			want: pending("NotStarted", "its verdict does not accept RiskA, but spec.acceptedFindings does; another run follows"),
		},
		"AcceptedGate": {
			reason: "a gate cannot be accepted", object: object(accepts("RiskA")),
			verdict: decided(risk("RiskA", "").From(finding.SourceGate)), want: blocked,
		},
		"AcceptedUnneeded": {
			reason: "an acceptance that no finding needs changes nothing", object: object(accepts("RiskB")),
			verdict: decided(risk("RiskA", "")), want: blocked,
		},
		"AcceptedOwn": {reason: "the controller's objects have the last verdict, as its metrics", object: object(owned), verdict: decided(
			risk("RiskA", "--accept")), want: func() short { s := ready; s.Message = "no finding blocks; accepted: RiskA"; return s }()},

		// Times.
		"TooEarly": {
			reason: "the requested time is in the future", object: object(starts(time.Minute)),
			want: pending("TooEarly", "the preflight does not start before 2026-11-22T12:01:00Z"),
		},
		"TooEarlyReady": {
			reason: "an earlier verdict does not count", object: object(starts(time.Minute)), verdict: decided(),
			want: pending("TooEarly", "the preflight does not start before 2026-11-22T12:01:00Z"),
		},
		"TooEarlyRuns": {
			reason: "an earlier run does not count", object: object(starts(time.Minute)), running: running,
			want: pending("TooEarly", "the preflight does not start before 2026-11-22T12:01:00Z"),
		},
		"DueReadyBefore": {
			reason: "an earlier verdict does not count", object: object(starts(-time.Minute)), verdict: decided(),
			want: pending("NotStarted", "its verdict is older than the time for which the preflight is requested; another run follows"),
		},
		"DueReady": {
			reason: "the run has ended after the requested time", object: object(starts(-time.Hour)), verdict: decided(),
			want: ready,
		},
		"WindowOpen": {
			reason: "no run has ended", object: object(window(v1alpha1.Window{Start: *at(-29 * time.Minute)})),
			want: pending("NotStarted", "no run has a verdict yet"),
		},
		"WindowClosed": {reason: "a window of the document is open for 30 minutes", object: object(window(v1alpha1.Window{Start: *at(
			-30 * time.Minute), Mode: v1alpha1.Document})), want: expired("NoVerdict", "the window has closed, and no run has a verdict")},
		"WindowEnd": {reason: "the end replaces the 30 minutes", object: object(window(v1alpha1.Window{
			Start: *at(-30 * time.Minute),
			End:   at(time.Minute), Mode: v1alpha1.Document,
		})), want: pending("NotStarted", "no run has a verdict yet")},
		"WindowOperator": {reason: "a window of mode Operator has no end", object: object(window(v1alpha1.Window{
			Start: *at(-999 * time.Hour),
			Mode:  v1alpha1.Operator,
		})), want: pending("NotStarted", "no run has a verdict yet")},
		"WindowReady": {
			reason: "the verdict is valid after the window", object: object(window(v1alpha1.Window{Start: *at(-time.Hour)})),
			verdict: decided(), want: ready,
		},
		"WindowRunning": {
			reason: "a run that has started in the window ends later",
			object: object(window(v1alpha1.Window{Start: *at(-time.Hour)})), running: running, want: checking,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			observation := projection.Observation{
				Now: noon, Target: update.Release{Version: version, Image: image("1")}, Unknown: tc.unknown,
				Running: tc.running, Verdict: tc.verdict, Waiting: tc.waiting, Failure: tc.failure,
			}
			if tc.unknown != "" {
				observation.Target = update.Release{}
			}
			got := projection.Status(tc.object, observation)
			if diff := cmp.Diff(tc.want, shortOf(t, got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if got.ObservedGeneration != 3 {
				t.Errorf("%s: observed generation %d", tc.reason, got.ObservedGeneration)
			}
			tc.object.Status = got
			if diff := cmp.Diff(got, projection.Status(tc.object, observation)); diff != "" {
				t.Errorf("the same inputs must have the same status, or updates would be endless (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNames(t *testing.T) {
	var findings []finding.Finding
	for i := range v1alpha1.MaxNames + 3 {
		findings = append(findings, risk(fmt.Sprintf("Risk%02d", i), ""))
	}
	findings = append(findings, risk("L"+strings.Repeat("o", 999), acceptance.Origin))
	got := projection.Status(object(), projection.Observation{
		Now: noon, Target: update.Release{Image: image("1")},
		Verdict: decided(findings...),
	})
	if len(got.Blocking) != v1alpha1.MaxNames || got.BlockingOmitted != 3 || got.Blocking[0] != "Risk00" {
		t.Errorf("%d names, %d omitted, from %q: want the first %d and 3 omitted", len(got.Blocking), got.BlockingOmitted, got.Blocking[0],
			v1alpha1.MaxNames)
	}
	if len(got.Accepted[0]) > 256 || got.AcceptedOmitted != 0 {
		t.Errorf("accepted %q, %d omitted: want one name of 256 bytes", got.Accepted, got.AcceptedOmitted)
	}
	want := "blocked by Risk00, Risk01, Risk02, Risk03, Risk04 and 14 more. See: oc preflight status run-1"
	if message := shortOf(t, got).Message; message != want {
		t.Errorf("message %q, want %q", message, want)
	}
	if want := (&v1alpha1.Release{Version: version, Image: image("1")}); !cmp.Equal(got.Target, want) {
		t.Errorf("target %v, want %v: the report has the version of an image", got.Target, want)
	}
}

func TestTransitionTimes(t *testing.T) {
	blocked := object()
	target := update.Release{Version: version, Image: image("1")}
	blocked.Status = projection.Status(blocked, projection.Observation{Now: noon, Target: target, Verdict: decided(risk("RiskA", ""))})
	blocked.Status.Conditions = append(blocked.Status.Conditions, metav1.Condition{Type: "Foreign", Status: yes})
	later := projection.Status(blocked, projection.Observation{
		Now: noon.Add(time.Minute), Target: target,
		Verdict: decided(risk("RiskB", "")),
	})
	if got := meta.FindStatusCondition(later.Conditions, v1alpha1.ConditionReady).LastTransitionTime; !got.Equal(at(0)) {
		t.Errorf("the condition is False since %s, want %s: its status did not change", got, noon)
	}
	if meta.FindStatusCondition(later.Conditions, "Foreign") != nil {
		t.Error("a condition of others is kept: the status is a projection")
	}
	blocked.Status = later
	ready := projection.Status(blocked, projection.Observation{Now: noon.Add(time.Hour), Target: target, Verdict: decided()})
	if got := meta.FindStatusCondition(ready.Conditions, v1alpha1.ConditionReady).LastTransitionTime; !got.Equal(at(time.Hour)) {
		t.Errorf("the condition is True since %s, want %s", got, at(time.Hour))
	}
}

func TestHistory(t *testing.T) {
	latest := object(func(p *v1alpha1.UpdatePreflight) { p.Spec.Target = v1alpha1.Target{Latest: true} })
	observe := func(digit, run string, ended time.Duration, findings ...finding.Finding) {
		last := edited(decided(findings...), func(r *report.Report) {
			r.Run.ID, r.Run.CompletionTime = run,
				noon.Add(ended).Format(time.RFC3339)
		})
		latest.Status = projection.Status(latest,
			projection.Observation{Now: noon.Add(ended), Target: update.Release{Version: "4.19." + digit, Image: image(digit)}, Verdict: last})
	}
	history := func() []string {
		var all []string
		for _, v := range latest.Status.History {
			all = append(all, v.Version+" "+v.Run+" "+v.Decision)
		}
		return all
	}
	observe("1", "a", 0, risk("RiskA", ""))
	observe("1", "b", time.Hour)
	observe("2", "c", 2*time.Hour, risk("RiskA", "--accept")) // does not accept RiskA as the object does
	observe("2", "d", 3*time.Hour)
	if diff := cmp.Diff([]string{"4.19.2 d Ready", "4.19.1 b Ready"}, history()); diff != "" {
		t.Errorf("one verdict for each release, the newest first (-want +got):\n%s", diff)
	}
	observe("1", "e", 4*time.Hour, risk("RiskA", ""))
	if diff := cmp.Diff([]string{"4.19.1 e Blocked", "4.19.2 d Ready"}, history()); diff != "" {
		t.Errorf("a release that is selected again is the newest (-want +got):\n%s", diff)
	}
	for i, digit := range strings.Split("3456789abcdef", "") {
		observe(digit, digit, time.Duration(5+i)*time.Hour)
	}
	if got := latest.Status.History; len(got) != v1alpha1.MaxHistory || got[0].Run != "f" {
		t.Errorf("%d verdicts, want the last %d: %v", len(got), v1alpha1.MaxHistory, history())
	}
}

func TestNext(t *testing.T) {
	target := update.Release{Version: version, Image: image("1")}
	for name, tc := range map[string]struct {
		reason string
		object *v1alpha1.UpdatePreflight
		valid  bool
		want   time.Duration
	}{
		"Nothing":  {reason: "only an event changes the status", object: object(owned)},
		"Report":   {reason: "the time of a report is renewed", object: object(), want: 30 * time.Minute},
		"Validity": {reason: "a verdict expires", object: object(owned), valid: true, want: 23 * time.Hour},
		"Opens":    {reason: "the requested time", object: object(starts(time.Minute)), want: time.Minute},
		"Closes":   {reason: "the window closes", object: object(window(v1alpha1.Window{Start: *at(-time.Minute)})), want: 29 * time.Minute},
		"Closed": {
			reason: "times that have passed do not count", object: object(owned, window(v1alpha1.Window{Start: *at(-time.Hour)})),
			valid: true, want: 23 * time.Hour,
		},
	} {
		t.Run(name, func(t *testing.T) {
			observation := projection.Observation{Now: noon, Target: target}
			if tc.valid {
				observation.Verdict = decided()
			}
			next := projection.Next(tc.object, projection.Status(tc.object, observation), noon)
			if want := noon.Add(tc.want); (tc.want == 0) != next.IsZero() || tc.want != 0 && !next.Equal(want) {
				t.Errorf("%s: next %s, want %s", tc.reason, next, want)
			}
		})
	}
}
