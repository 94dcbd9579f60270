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

// ask runs one check and gives its finding.
func ask(t *testing.T, check preflight.Check) preflight.Finding {
	t.Helper()
	var stdout, stderr strings.Builder
	p := preflight.Program{Args: []string{"-o", "json"}, Stdout: &stdout, Stderr: &stderr, TerminationLog: absent(t)}
	p.Run(context.Background(), check)
	result := printed(t, stdout.String())
	if len(result.Findings) != 1 {
		t.Fatalf("got %s%s, want one finding", stdout.String(), stderr.String())
	}
	return result.Findings[0]
}

func TestFindingOfWhatACheckSays(t *testing.T) {
	const (
		again  = "Remove the cause and run the preflight again; the log of the check may say more."
		longer = "Run the preflight again with a longer timeout; if it ends the same way, read the log of the check."
	)
	secret := preflight.Object{APIVersion: "v1", Kind: "Secret", Namespace: "kube-system", Name: "aws-creds"}

	cases := map[string]struct {
		reason string
		check  preflight.Check
		run    func(ctx context.Context, t *preflight.T) error
		want   preflight.Finding
	}{
		"Silence": {
			reason: "Nothing said and no error is a pass, with the description as its message",
			check:  preflight.Check{Description: "Credentials are good", URL: "https://example.com"},
			run:    pass,
			want:   preflight.Finding{Outcome: preflight.Pass, Reason: "Passed", Message: "Credentials are good", URL: "https://example.com"},
		},
		"Fail": {
			reason: "All that was said about a fail is in the finding",
			run: func(_ context.Context, t *preflight.T) error {
				t.Reason("PermissionMissing")
				t.Failf("secret %s lacks %s", secret.Name, "ec2:RunInstances")
				t.Remedyf("Grant it:")
				t.Remedyf("ccoctl aws create-iam-roles --to %d", 4)
				t.Object(secret)
				t.Evidence("user", "old")
				t.Evidence("user", "installer")
				return nil
			},
			want: preflight.Finding{
				Outcome: preflight.Fail, Reason: "PermissionMissing", Message: "secret aws-creds lacks ec2:RunInstances",
				Remediation: "Grant it:\nccoctl aws create-iam-roles --to 4",
				Objects:     []preflight.Object{secret}, Evidence: map[string]string{"user": "installer"},
			},
		},
		"Warn": {
			reason: "A warning has its own default reason",
			run:    func(_ context.Context, t *preflight.T) error { t.Warnf("soon"); return nil },
			want:   preflight.Finding{Outcome: preflight.Warn, Reason: "CheckWarned", Message: "soon"},
		},
		"Skip": {
			reason: "A skip needs no remedy",
			run: func(_ context.Context, t *preflight.T) error {
				t.Remedyf("do it")
				t.Skipf("no proxy")
				return nil
			},
			want: preflight.Finding{Outcome: preflight.Skipped, Reason: "NotApplicable", Message: "no proxy"},
		},
		"PassWithRemedy": {
			reason: "A remedy may be set before anything was found",
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
			reason: "The author knows better what to do",
			run: func(_ context.Context, t *preflight.T) error {
				t.Remedyf("Grant it.")
				return errors.New("secrets is forbidden")
			},
			want: preflight.Finding{Outcome: preflight.Unknown, Reason: "CheckError", Message: "secrets is forbidden", Remediation: "Grant it."},
		},
		"WarnThenError": {
			reason: "Not knowing outweighs a warning",
			run: func(_ context.Context, t *preflight.T) error {
				t.Warnf("soon")
				return errors.New("boom")
			},
			want: preflight.Finding{Outcome: preflight.Unknown, Reason: "CheckError", Message: "boom; soon", Remediation: again},
		},
		"FailThenError": {
			reason: "A fail that was told stands, and the error is told too",
			run: func(_ context.Context, t *preflight.T) error {
				t.Failf("bad")
				return errors.New("boom")
			},
			want: preflight.Finding{Outcome: preflight.Fail, Reason: "CheckFailed", Message: "bad; boom"},
		},
		"FailThenPanic": {
			reason: "A fail that was told stands, also after a panic",
			run: func(_ context.Context, t *preflight.T) error {
				t.Failf("bad")
				panic(fmt.Errorf("boom"))
			},
			want: preflight.Finding{Outcome: preflight.Fail, Reason: "CheckFailed", Message: "bad; panic: boom"},
		},
		"WorstFirst": {
			reason: "The worst is the outcome, and comes first; then the order of saying",
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
			reason: "An advisory check that could not tell could not tell",
			check:  preflight.Check{Advisory: true},
			run: func(_ context.Context, t *preflight.T) error {
				t.Failf("bad")
				return errors.New("boom")
			},
			want: preflight.Finding{Outcome: preflight.Unknown, Reason: "CheckError", Message: "boom; bad", Remediation: again},
		},
		"ReasonOfAnotherForm": {
			reason: "A reason that machines cannot rely on is not taken",
			run: func(_ context.Context, t *preflight.T) error {
				t.Reason("not a word")
				t.Reason(strings.Repeat("X", 64))
				t.Failf("bad")
				return nil
			},
			want: preflight.Finding{Outcome: preflight.Fail, Reason: "CheckFailed", Message: "bad"},
		},
		"Timeout": {
			reason: "A timeout names the check and the step it was at",
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
			reason: "A check whose time was up cannot pass: its requests were cut short",
			check:  preflight.Check{Timeout: time.Nanosecond},
			run: func(ctx context.Context, _ *preflight.T) error {
				<-ctx.Done()
				return nil
			},
			want: preflight.Finding{Outcome: preflight.Unknown, Reason: "Timeout", Message: "A did not finish within 1ns", Remediation: longer},
		},
		"OwnTimeout": {
			reason: "A timeout of the check's own making is an error like others",
			check:  preflight.Check{Timeout: time.Hour},
			run:    func(context.Context, *preflight.T) error { return fmt.Errorf("get: %w", context.DeadlineExceeded) },
			want: preflight.Finding{
				Outcome: preflight.Unknown, Reason: "CheckError", Message: "get: context deadline exceeded", Remediation: again,
			},
		},
		"PanicInError": {
			reason: "An error that panics when asked is caught too",
			run:    func(context.Context, *preflight.T) error { return (*brokenError)(nil) },
			want: preflight.Finding{
				Outcome: preflight.Unknown, Reason: "Panic", Message: "panic: runtime error: invalid memory address or nil pointer dereference",
				Remediation: "This is a defect of the check: report it to its owners, with the stack in the evidence.",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.check.Name, tc.check.Run, tc.want.Name = "A", tc.run, "A"
			got := ask(t, tc.check)
			delete(got.Evidence, "stack")
			if d := diff(t, got, tc.want); d != "" {
				t.Errorf("%s: %s", tc.reason, d)
			}
		})
	}
}

// brokenError has a method that needs what is not there.
type brokenError struct{ text string }

func (e *brokenError) Error() string { return e.text }

// What a check says after its end is lost, and harms nothing; go test -race
// would tell.
func TestCheckThatIsLeftBehindSaysNoMore(t *testing.T) {
	release, left := make(chan struct{}), make(chan struct{})
	finding := ask(t, preflight.Check{
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
	if got := say(finding); !strings.HasPrefix(got, want) || strings.Contains(got, "late") || finding.Objects != nil || finding.Evidence != nil {
		t.Errorf("got %+v, want %q and nothing of what was said late", finding, want)
	}
}

func TestCheckKnowsTheUpdateAndItsDeadline(t *testing.T) {
	deadline := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	env := map[string]string{
		"PREFLIGHT_RUN_ID":          "5f0c",
		"PREFLIGHT_CURRENT_VERSION": "4.20.5",
		"PREFLIGHT_TARGET_VERSION":  "4.21.3",
		"PREFLIGHT_TARGET_IMAGE":    "quay.io/a@sha256:b",
		"PREFLIGHT_DEADLINE":        deadline.Format(time.RFC3339),
	}
	told := preflight.Update{RunID: "5f0c", From: "4.20.5", To: "4.21.3", Image: "quay.io/a@sha256:b"}

	cases := map[string]struct {
		reason  string
		env     map[string]string
		args    []string
		timeout time.Duration
		update  preflight.Update
		// latest is what the check's deadline comes before; zero for none.
		latest time.Time
	}{
		"Laptop": {
			reason: "Nobody told anything, and there is no hurry",
		},
		"LaptopWithFlags": {
			reason: "On a laptop flags tell",
			args:   []string{"--from", "4.20.5", "--to=4.21.3", "--image", "quay.io/a@sha256:b"},
			update: preflight.Update{From: "4.20.5", To: "4.21.3", Image: "quay.io/a@sha256:b"},
		},
		"Job": {
			reason: "The runner tells, and the program ends before the deadline of the run",
			env:    env,
			update: told,
			latest: deadline.Add(-5 * time.Second),
		},
		"JobWithTimeout": {
			reason:  "The check's own timeout comes first",
			env:     env,
			timeout: time.Minute,
			update:  told,
			latest:  deadline.Add(-58 * time.Minute),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var update preflight.Update
			var until time.Time
			p := preflight.Program{Args: tc.args, Env: tc.env, Stdout: io.Discard, Stderr: io.Discard, TerminationLog: absent(t)}
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
