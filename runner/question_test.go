package runner_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordstore"
)

// together makes a run, and while it is in progress a second one of the same release. It returns both.
func together(t *testing.T, w, second world) (first, other report.Report, err error) {
	t.Helper()
	node := newKubelet(t, w, 0)
	type result struct {
		decided report.Report
		err     error
	}
	made := make(chan result, 1)
	whenJobExists(t, w, func() {
		waiting := make(chan struct{}, 1)
		second.options.Hooks.Observer = observer{step: func(step string) {
			if strings.Contains(step, "waiting for its result") {
				waiting <- struct{}{}
			}
		}}
		go func() {
			decided, err := runner.Run(t.Context(), second.cluster, second.target, second.options)
			made <- result{decided, err}
			waiting <- struct{}{}
		}()
		<-waiting
		node.End()
	})
	first = w.run(t)
	joined := <-made
	return first, joined.decided, joined.err
}

// The verdict of a run is none on what was asked of another source: its alerts, keys or URLs are others.
func TestRunOfAnotherOriginIsNotJoined(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		origin runner.Origin
	}{
		"Keyring":    {reason: "the release was verified by other keys", origin: runner.Origin{Keyrings: "other"}},
		"Store":      {reason: "the signatures are of another store", origin: runner.Origin{Stores: "other"}},
		"Monitoring": {reason: "the alerts are of another Prometheus", origin: runner.Origin{Monitoring: "other"}},
		"Dependency": {reason: "the URL was not requested", origin: runner.Origin{Dependencies: "other"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := withJobs(t)
			second := w
			second.options.Origin = tc.origin
			if first, _, err := together(t, w, second); err == nil || !strings.Contains(err.Error(), first.Run.ID) {
				t.Errorf("%s: error %v, want one with the ID of run %s", tc.reason, err, first.Run.ID)
			}
		})
	}
}

// Another version of the tool may find something else: its verdict is waited for, and is not the answer.
func TestRunOfAnotherVersionIsNotTheAnswer(t *testing.T) {
	w := withJobs(t)
	second := w
	second.options.Hooks.ToolVersion = "newer"
	first, other, err := together(t, w, second)
	if err != nil || other.Run.ID == first.Run.ID || other.Run.ToolVersion != "newer" || other.Run.ChecksFrom != "" {
		t.Errorf("run %s by %q with the checks of %q, error %v; want one of its own after run %s", other.Run.ID, other.Run.ToolVersion,
			other.Run.ChecksFrom, err, first.Run.ID)
	}
}

// Who waits for the run of another user judges its findings by their own options.
func TestFollowedRunIsJudgedByOwnOptions(t *testing.T) {
	t.Run("Force", func(t *testing.T) {
		w := withJobs(t)
		w.state.Gates = map[string]string{"ack-4.18-new": "Read https://example.com/new first."}
		w.apply(t)
		second := w
		w.options.Judgement.Force = true
		first, other, err := together(t, w, second)
		if err != nil || other.Run.ID != first.Run.ID || other.Verdict.Decision != verdict.Blocked {
			t.Fatalf("run %s is %s, error %v; want run %s Blocked", other.Run.ID, other.Verdict.Decision, err, first.Run.ID)
		}
		if first.CVO.Accepts == nil || !*first.CVO.Accepts || other.CVO.Accepts == nil || *other.CVO.Accepts {
			t.Errorf("CVO accepts the forced request (%+v), and not the other one (%+v)", first.CVO, other.CVO)
		}
	})
	t.Run("Expiry", func(t *testing.T) {
		w := withJobs(t)
		second := w
		const less = 12 * time.Hour // than a verdict is valid
		ends := w.cluster.Now().Add(less).UTC().Truncate(time.Second)
		second.options.Judgement.Accept = nil
		second.options.Judgement.Accepted = file(t, "- {risk: Images, reason: not needed, owner: ann, expires: "+words.Time(ends)+"}")
		first, other, err := together(t, w, second)
		if err != nil || other.Run.ID != first.Run.ID || other.Verdict.ValidUntil != words.Time(ends) {
			t.Errorf("run %s is valid until %s, error %v; want run %s until the acceptance expires at %s", other.Run.ID, other.Verdict.ValidUntil,
				err, first.Run.ID, words.Time(ends))
		}
	})
}

// The results of a run that was left are those of another question when the cluster or the tool has
// changed since: it is ended, and its checks are run again.
func TestRunOfAnotherQuestionIsNotContinued(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(t *testing.T, w *world)
	}{
		"Release": {reason: "the cluster was updated since", change: func(t *testing.T, w *world) {
			t.Helper()
			w.state.Version = "4.18.4"
			w.apply(t)
		}},
		"Tool": {
			reason: "another version may evaluate differently",
			change: func(_ *testing.T, w *world) { w.options.Hooks.ToolVersion = "newer" },
		},
		"Rerun": {reason: "all checks must run again", change: func(_ *testing.T, w *world) { w.options.Limits.Rerun = true }},
	} {
		t.Run(name, func(t *testing.T) {
			w := withJobs(t)
			node := newKubelet(t, w, 0)
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			whenJobExists(t, w, interrupt)
			left := w
			left.options.Hooks.OnInterrupt = func(string) runner.Interruption { return runner.Detach }
			detached, err := runner.Run(ctx, w.cluster, w.target, left.options)
			if err != nil || !detached.Run.Detached {
				t.Fatalf("detached %t, error %v", detached.Run.Detached, err)
			}
			node.End()
			tc.change(t, &w)
			decided := w.run(t)
			if decided.Run.ID == detached.Run.ID || decided.Verdict.Decision != verdict.Ready {
				t.Errorf("%s: run %s is %s, want another one than %s, Ready", tc.reason, decided.Run.ID, decided.Verdict.Decision, detached.Run.ID)
			}
			if old, err := recordstore.New(w.cluster.Kubernetes).Get(t.Context(), detached.Run.ID); err != nil || old.Phase != record.Interrupted {
				t.Errorf("%s: the run that was left is %s, error %v; want Interrupted", tc.reason, old.Phase, err)
			}
			expectOnlyRecord(t, w, decided.Run.ID, record.Complete)
		})
	}
}
