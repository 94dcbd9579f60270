package console_test

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/trigger/console"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func target(version string, by record.Requester) runplan.Target {
	return runplan.Target{Release: update.Release{Version: version, Image: "quay.io/x@sha256:" + strings.Repeat("1", 64)}, Requester: by}
}

// decided is a report of a run that ended at noon, with a verdict that is valid for an hour.
func decided(decision verdict.Decision, changes ...func(*report.Report)) *report.Report {
	made := report.Report{
		Run:     report.Run{Phase: report.PhaseComplete, CompletionTime: noon.Format(time.RFC3339)},
		Verdict: verdict.Verdict{Decision: decision, Blocking: []string{"A", "B"}, ValidUntil: noon.Add(time.Hour).Format(time.RFC3339)},
	}
	for _, change := range changes {
		change(&made)
	}
	return &made
}

// judged is the judgement of an update that was last made at noon.
func judged(decision afterupdate.Decision) afterupdate.Report {
	return afterupdate.Report{
		Update: afterupdate.Update{From: "4.18.3", To: "4.18.9"}, Decision: decision, Counts: afterupdate.Counts{Regressions: 1},
		Samples: afterupdate.Samples{Last: noon.Format(time.RFC3339)},
	}
}

func TestNotices(t *testing.T) {
	t.Parallel()
	selected, offered := target("4.19.1", record.BySelection), target("4.19.1", record.Ahead)
	blocked := []string{"The preflight blocks the update to 4.19.1: 2 findings. until 13:00"}
	regressed := "The cluster has regressed since the update to 4.18.9: 1 problem. until 12:00"
	for name, tc := range map[string]struct {
		reason  string
		targets []runplan.Target
		stored  *report.Report
		after   afterupdate.Report
		want    []string
	}{
		"Nothing":     {reason: "there is no ClusterVersion, or no update"},
		"Blocked":     {reason: "the selected update waits for a remedy", targets: []runplan.Target{selected}, stored: decided(verdict.Blocked), want: blocked},
		"BlockedMany": {reason: "offered ones follow the selected one", targets: []runplan.Target{selected, target("4.20.0", record.Ahead)}, stored: decided(verdict.Blocked), want: blocked},
		"Offered":     {reason: "no administrator has requested it", targets: []runplan.Target{offered}, stored: decided(verdict.Blocked)},
		"Scheduled":   {reason: "one that is scheduled comes first, and is not selected", targets: []runplan.Target{offered, target("4.20.0", record.Ahead)}, stored: decided(verdict.Blocked)},
		"Ready":       {reason: "the update starts", targets: []runplan.Target{selected}, stored: decided(verdict.Ready)},
		"ReadyForced": {reason: "a forced run has no Blocked", targets: []runplan.Target{selected}, stored: decided(verdict.Ready, func(r *report.Report) { r.Verdict.Forced = true })},
		"Undecided":   {reason: "it is the usual state, and a notice blocks nothing", targets: []runplan.Target{selected}, stored: decided(verdict.Undecided)},
		"NoVerdict":   {reason: "the run has not ended", targets: []runplan.Target{selected}},
		"Ended": {
			reason: "the cluster has changed: it may be remedied", targets: []runplan.Target{selected},
			stored: decided(verdict.Blocked, func(r *report.Report) {
				r.Standing = &report.Standing{Ended: []string{"the cluster has changed"}}
			}),
		},
		"NoTimes": {
			reason: "its end is unknown", targets: []runplan.Target{selected},
			stored: decided(verdict.Blocked, func(r *report.Report) { r.Run.CompletionTime, r.Verdict.ValidUntil = "", "" }),
		},
		"ByImage": {
			reason: "the release states its version", targets: []runplan.Target{target("", record.BySelection)},
			stored: decided(verdict.Blocked, func(r *report.Report) { r.Target.Version = "4.19.1" }), want: blocked,
		},
		"ByDigest": {
			reason: "its version is unknown", targets: []runplan.Target{target("", record.BySelection)}, stored: decided(verdict.Blocked),
			want: []string{"The preflight blocks the update to sha256:" + strings.Repeat("1", 64) + ": 2 findings. until 13:00"},
		},
		"Regressed":      {reason: "the cluster needs a remedy", after: judged(afterupdate.Regressed), want: []string{regressed}},
		"RolledBack":     {reason: "an administrator has decided", after: judged(afterupdate.RolledBack)},
		"Good":           {reason: "there is nothing to do", after: judged(afterupdate.Good)},
		"AfterUndecided": {reason: "what is unknown is no regression", after: judged(afterupdate.Undecided)},
		"NextUpdate":     {reason: "the next update has begun", after: judged(afterupdate.Settling)},
		"NotJudged":      {reason: "it is unknown for how long", after: afterupdate.Report{Decision: afterupdate.Regressed}},
		"Both":           {reason: "the newest request comes first", targets: []runplan.Target{selected}, stored: decided(verdict.Blocked), after: judged(afterupdate.Regressed), want: append(blocked, regressed)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verdicts := runplan.Verdicts{}
			if tc.stored != nil {
				verdicts[tc.targets[0].Covered()] = *tc.stored
			}
			var got []string
			for _, notice := range console.Notices(tc.targets, verdicts, tc.after) {
				got = append(got, notice.Text+" until "+notice.Until.Format("15:04"))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// hostile are versions that a ClusterVersion or a release may have.
func hostile() map[string]string {
	return map[string]string{
		"Control": "4.19\x1b[31m.1\r\n\x00\x07", "Long": strings.Repeat("4.19", 2500), "HTML": `<script>alert(1)</script><img src=x onerror=alert(1)>`,
		"Bidi": "4.19.\u202e1\u2066\u200b", "Encoding": "4.19.\xff\xfe1", "Wide": strings.Repeat("\U0001f600", 2500), "Format": "%s%d%!", "Markdown": "[x](javascript:alert(1))",
	}
}

// The API server accepts the text of every version, as one printable line of limited size.
func TestHostileVersions(t *testing.T) {
	c := newWorld(t, consoleURL)
	keeper := newKeeper(t, c, "", "v1.0.0", &text{})
	for name, version := range hostile() {
		after := judged(afterupdate.Regressed)
		after.Update.To = version
		made := target(version, record.BySelection)
		for _, notice := range console.Notices([]runplan.Target{made}, runplan.Verdicts{made.Covered(): *decided(verdict.Blocked)}, after) {
			notice.Until = c.Now().Add(time.Hour)
			if _, err := keeper.Apply(t.Context(), []console.Notice{notice}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got := notification(t.Context(), t)
			isControl := func(r rune) bool { return !unicode.IsPrint(r) }
			if got != notice.Text || len(got) > 200 || !utf8.ValidString(got) || strings.ContainsFunc(got, isControl) || !strings.HasPrefix(got, "The ") {
				t.Errorf("%s: the text is %q, want %q", name, got, notice.Text)
			}
		}
	}
}
