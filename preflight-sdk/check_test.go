package preflight_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// runCheck runs one check and returns its finding.
func runCheck(t *testing.T, check preflight.Check) preflight.Finding {
	t.Helper()
	var stdout, stderr strings.Builder
	p := preflight.Program{Args: []string{"-o", "json"}, Stdout: &stdout, Stderr: &stderr, TerminationLog: missingLog(t)}
	p.Run(context.Background(), check)
	result := parseJSON(t, stdout.String())
	if len(result.Findings) != 1 {
		t.Fatalf("got %s%s, want one finding", stdout.String(), stderr.String())
	}
	return result.Findings[0]
}

func TestFinding(t *testing.T) {
	const (
		again  = "Fix the cause, then run the preflight again. The log of the check may contain details."
		longer = "Run the preflight again with a longer timeout. If it times out again, read the log of the check."
	)
	secret := preflight.Object{APIVersion: "v1", Kind: "Secret", Namespace: "kube-system", Name: "aws-creds"}

	cases := map[string]struct {
		reason string
		check  preflight.Check
		run    func(ctx context.Context, t *preflight.T) error
		want   preflight.Finding
	}{
		"NothingReported": {
			reason: "Without a report and an error the check passes, with the description as its message",
			check:  preflight.Check{Description: "Credentials are good", URL: "https://example.com"},
			run:    pass,
			want:   preflight.Finding{Outcome: preflight.Pass, Reason: "Passed", Message: "Credentials are good", URL: "https://example.com"},
		},
		"Fail": {
			reason: "The finding contains everything that was reported about a fail",
			run: func(_ context.Context, t *preflight.T) error {
				t.Reason("PermissionMissing")
				t.Failf("secret %s lacks %s", secret.Name, "ec2:RunInstances")
				t.Remedyf("Grant it.")
				t.Commandf("ccoctl aws create-iam-roles --to %d", 4)
				t.Commandf("echo %s", strings.Repeat("x", 5000))
				t.Object(secret)
				t.Evidence("user", "old")
				t.Evidence("user", "installer")
				return nil
			},
			want: preflight.Finding{
				Outcome: preflight.Fail, Reason: "PermissionMissing", Message: "secret aws-creds lacks ec2:RunInstances",
				Remediation: "Grant it.", Actions: []preflight.Action{{Command: "ccoctl aws create-iam-roles --to 4"}},
				Objects: []preflight.Object{secret}, Evidence: map[string]string{"user": "installer"},
			},
		},
		"Warn": {
			reason: "A warning has a default reason",
			run:    func(_ context.Context, t *preflight.T) error { t.Warnf("soon"); return nil },
			want:   preflight.Finding{Outcome: preflight.Warn, Reason: "CheckWarned", Message: "soon"},
		},
		"Skip": {
			reason: "The remedy of a skip is not reported",
			run: func(_ context.Context, t *preflight.T) error {
				t.Remedyf("do it")
				t.Commandf("do it")
				t.Skipf("no proxy")
				return nil
			},
			want: preflight.Finding{Outcome: preflight.Skipped, Reason: "NotApplicable", Message: "no proxy"},
		},
		"PassWithRemedy": {
			reason: "The remedy of a pass is not reported: it may be set before the check finds anything",
			run:    func(_ context.Context, t *preflight.T) error { t.Remedyf("do it"); return nil },
			want:   preflight.Finding{Outcome: preflight.Pass, Reason: "Passed"},
		},
		"Error": {
			reason: "An error is neither a pass nor a fail",
			run: func(_ context.Context, t *preflight.T) error {
				t.Reason("MyOwn")
				return errors.New("secrets is forbidden")
			},
			want: preflight.Finding{Outcome: preflight.Unknown, Reason: "CheckError", Message: "secrets is forbidden", Remediation: again},
		},
		"ErrorWithRemedy": {
			reason: "The remedy of the author replaces the default",
			run: func(_ context.Context, t *preflight.T) error {
				t.Remedyf("Grant it.")
				return errors.New("secrets is forbidden")
			},
			want: preflight.Finding{Outcome: preflight.Unknown, Reason: "CheckError", Message: "secrets is forbidden", Remediation: "Grant it."},
		},
		"WarnThenError": {
			reason: "Unknown is more severe than a warning",
			run: func(_ context.Context, t *preflight.T) error {
				t.Warnf("soon")
				return errors.New("boom")
			},
			want: preflight.Finding{Outcome: preflight.Unknown, Reason: "CheckError", Message: "boom; soon", Remediation: again},
		},
		"FailThenError": {
			reason: "A fail remains a fail after an error, and the error is in the message",
			run: func(_ context.Context, t *preflight.T) error {
				t.Failf("bad")
				return errors.New("boom")
			},
			want: preflight.Finding{Outcome: preflight.Fail, Reason: "CheckFailed", Message: "bad; boom"},
		},
		"FailThenPanic": {
			reason: "A fail remains a fail after a panic",
			run: func(_ context.Context, t *preflight.T) error {
				t.Failf("bad")
				panic(fmt.Errorf("boom"))
			},
			want: preflight.Finding{Outcome: preflight.Fail, Reason: "CheckFailed", Message: "bad; panic: boom"},
		},
		"WorstFirst": {
			reason: "The most severe report is the outcome and comes first; equal ones keep their order",
			run: func(_ context.Context, t *preflight.T) error {
				t.Skipf("d")
				t.Warnf("c")
				t.Failf("a")
				t.Failf("b")
				return nil
			},
			want: preflight.Finding{Outcome: preflight.Fail, Reason: "CheckFailed", Message: "a; b; c; d"},
		},
		"Advisory": {
			reason: "A fail of an advisory check is a warning",
			check:  preflight.Check{Advisory: true},
			run:    func(_ context.Context, t *preflight.T) error { t.Failf("bad"); return nil },
			want:   preflight.Finding{Outcome: preflight.Warn, Reason: "CheckWarned", Message: "bad"},
		},
		"AdvisoryError": {
			reason: "An inconclusive advisory check is Unknown",
			check:  preflight.Check{Advisory: true},
			run: func(_ context.Context, t *preflight.T) error {
				t.Failf("bad")
				return errors.New("boom")
			},
			want: preflight.Finding{Outcome: preflight.Unknown, Reason: "CheckError", Message: "boom; bad", Remediation: again},
		},
		"InvalidReason": {
			reason: "A reason that is not a CamelCase word is ignored",
			run: func(_ context.Context, t *preflight.T) error {
				t.Reason("not a word")
				t.Reason(strings.Repeat("X", 64))
				t.Failf("bad")
				return nil
			},
			want: preflight.Finding{Outcome: preflight.Fail, Reason: "CheckFailed", Message: "bad"},
		},
		"Timeout": {
			reason: "A timeout names the check and its last step",
			check:  preflight.Check{Timeout: time.Nanosecond},
			run: func(ctx context.Context, t *preflight.T) error {
				t.Logf("listing %s", "secrets")
				<-ctx.Done()
				return fmt.Errorf("list secrets: %w", ctx.Err())
			},
			want: preflight.Finding{
				Outcome: preflight.Unknown, Reason: "Timeout", Remediation: longer,
				Message: "A did not finish within 1ns: list secrets: context deadline exceeded (last step: listing secrets)",
			},
		},
		"NilAfterTimeout": {
			reason: "A check cannot pass after its timeout: its requests were cut short",
			check:  preflight.Check{Timeout: time.Nanosecond},
			run: func(ctx context.Context, _ *preflight.T) error {
				<-ctx.Done()
				return nil
			},
			want: preflight.Finding{Outcome: preflight.Unknown, Reason: "Timeout", Message: "A did not finish within 1ns", Remediation: longer},
		},
		"OwnTimeout": {
			reason: "The timeout of a request is an error like any other",
			check:  preflight.Check{Timeout: time.Hour},
			run:    func(context.Context, *preflight.T) error { return fmt.Errorf("get: %w", context.DeadlineExceeded) },
			want: preflight.Finding{
				Outcome: preflight.Unknown, Reason: "CheckError", Message: "get: context deadline exceeded", Remediation: again,
			},
		},
		"PanicInError": {
			reason: "A panic in the Error method is caught",
			run:    func(context.Context, *preflight.T) error { return (*brokenError)(nil) },
			want: preflight.Finding{
				Outcome: preflight.Unknown, Reason: "Panic", Message: "panic: runtime error: invalid memory address or nil pointer dereference",
				Remediation: "Report this defect of the check to its owners, with the stack in the evidence.",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.check.Name, tc.check.Run, tc.want.Name = "A", tc.run, "A"
			got := runCheck(t, tc.check)
			delete(got.Evidence, "stack")
			if d := diff(t, got, tc.want); d != "" {
				t.Errorf("%s: %s", tc.reason, d)
			}
		})
	}
}

// brokenError has an Error method that panics on a nil receiver.
type brokenError struct{ text string }

func (e *brokenError) Error() string { return e.text }

// Reports of an abandoned check are ignored. Run with -race.
func TestAbandonedCheckReportsNothing(t *testing.T) {
	release, left := make(chan struct{}), make(chan struct{})
	finding := runCheck(t, preflight.Check{
		Name:    "A",
		Timeout: time.Nanosecond,
		Run: func(_ context.Context, t *preflight.T) error {
			t.Logf("in time")
			<-release
			t.Logf("late")
			t.Failf("late")
			t.Remedyf("late")
			t.Reason("Late")
			t.Evidence("late", "late")
			t.Object(preflight.Object{Name: "late"})
			close(left)
			return nil
		},
	})
	close(release)
	<-left
	want := "Unknown Timeout A did not finish within 1ns"
	if got := outcomeLine(finding); !strings.HasPrefix(got, want) || strings.Contains(got, "late") || finding.Objects != nil ||
		finding.Evidence != nil {
		t.Errorf("got %+v, want %q and no late report", finding, want)
	}
}

func TestUpdateAndDeadline(t *testing.T) {
	deadline := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	env := map[string]string{
		"PREFLIGHT_RUN_ID":          "5f0c",
		"PREFLIGHT_CURRENT_VERSION": "4.20.5",
		"PREFLIGHT_TARGET_VERSION":  "4.21.3",
		"PREFLIGHT_TARGET_IMAGE":    "quay.io/a@sha256:b",
		"PREFLIGHT_DEADLINE":        deadline.Format(time.RFC3339),
	}
	received := preflight.Update{RunID: "5f0c", From: "4.20.5", To: "4.21.3", Image: "quay.io/a@sha256:b"}

	cases := map[string]struct {
		reason  string
		env     map[string]string
		args    []string
		timeout time.Duration
		update  preflight.Update
		// latest is the upper limit of the check's deadline; zero if it has none.
		latest time.Time
	}{
		"OutsideOfAJob": {
			reason: "Without flags and environment the update is unknown and there is no deadline",
		},
		"Flags": {
			reason: "Outside of a Job the flags describe the update",
			args:   []string{"--from", "4.20.5", "--to=4.21.3", "--image", "quay.io/a@sha256:b"},
			update: preflight.Update{From: "4.20.5", To: "4.21.3", Image: "quay.io/a@sha256:b"},
		},
		"Job": {
			reason: "The runner describes the update, and the check ends before the deadline of the run",
			env:    env,
			update: received,
			latest: deadline.Add(-5 * time.Second),
		},
		"JobWithTimeout": {
			reason:  "The timeout of the check applies if it ends earlier",
			env:     env,
			timeout: time.Minute,
			update:  received,
			latest:  deadline.Add(-58 * time.Minute),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var update preflight.Update
			var until time.Time
			p := preflight.Program{Args: tc.args, Env: tc.env, Stdout: io.Discard, Stderr: io.Discard, TerminationLog: missingLog(t)}
			p.Run(context.Background(), preflight.Check{Name: "A", Timeout: tc.timeout, Run: func(_ context.Context, t *preflight.T) error {
				update = t.Update()
				until, _ = t.Deadline()
				return nil
			}})
			if !reflect.DeepEqual(update, tc.update) {
				t.Errorf("%s: got %+v, want %+v", tc.reason, update, tc.update)
			}
			if until.IsZero() != tc.latest.IsZero() || until.After(tc.latest) {
				t.Errorf("%s: deadline %s, want at most %s", tc.reason, until, tc.latest)
			}
		})
	}
}
