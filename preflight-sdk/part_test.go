package preflight_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// evaluate runs one check and returns its finding and its log.
func evaluate(t *testing.T, check preflight.Check) (finding preflight.Finding, log string) {
	t.Helper()
	var lines strings.Builder
	finding = check.Evaluate(context.Background(), preflight.Update{}, &lines)
	return finding, lines.String()
}

func TestParts(t *testing.T) {
	type run = func(context.Context, *preflight.T) error
	fails := func(_ context.Context, t *preflight.T) error { t.Failf("bad"); return nil }
	warns := func(_ context.Context, t *preflight.T) error { t.Warnf("soon"); return nil }
	skips := func(_ context.Context, t *preflight.T) error { t.Skipf("absent"); return nil }
	inconclusive := func(_ context.Context, t *preflight.T) error { t.Inconclusivef("two answers"); return nil }
	errs := func(context.Context, *preflight.T) error { return errors.New("refused") }
	panics := func(context.Context, *preflight.T) error { panic("boom") }
	exits := func(context.Context, *preflight.T) error { runtime.Goexit(); return nil }

	cases := map[string]struct {
		reason   string
		parts    []run
		advisory bool
		want     string
		ok       []bool
	}{
		"AllPass": {
			"If no part reports anything, the check passes with its description",
			[]run{pass, pass},
			false, "Pass Passed all good",
			[]bool{true, true},
		},
		"OneFails": {
			"The most severe part is the outcome, and the message names it",
			[]run{pass, fails},
			false, "Fail CheckFailed 1: bad",
			[]bool{true, false},
		},
		"Continues": {
			"An error of one part does not prevent the next from running",
			[]run{errs, fails},
			false,
			"Fail CheckFailed 1: bad; 0: refused",
			[]bool{false, false},
		},
		"Error": {
			"An error of one part makes the check Unknown",
			[]run{errs, pass},
			false, "Unknown CheckError 0: refused",
			[]bool{false, true},
		},
		"Panic": {
			"A panic of one part does not prevent the others from running",
			[]run{panics, warns},
			false,
			"Unknown Panic 0: panic: boom; 1: soon",
			[]bool{false, true},
		},
		"Goexit": {
			"runtime.Goexit in a part ends the check",
			[]run{exits, fails},
			false,
			"Unknown Panic the check ended its goroutine with runtime.Goexit; 0: the check ended its goroutine with runtime.Goexit", nil,
		},
		"Inconclusive": {
			"An inconclusive part makes the check Unknown",
			[]run{inconclusive, pass},
			false, "Unknown Inconclusive 0: two answers",
			[]bool{false, true},
		},
		"Warns":    {"A part that warns is conclusive", []run{warns, pass}, false, "Warn CheckWarned 0: soon", []bool{true, true}},
		"SkipsOne": {"A skipped part does not skip the others", []run{skips, pass}, false, "Pass Passed all good", []bool{true, true}},
		"SkipsAll": {
			"If all parts are skipped, the check is skipped",
			[]run{skips, skips},
			false,
			"Skipped NotApplicable 0: absent; 1: absent",
			[]bool{true, true},
		},
		"SkipsAndErr": {
			"An inconclusive part is more severe than a skipped one",
			[]run{skips, errs},
			false,
			"Unknown CheckError 1: refused; 0: absent",
			[]bool{true, false},
		},
		"Advisory": {"A part of an advisory check fails, and the check warns", []run{fails}, true, "Warn CheckWarned 0: bad", []bool{false}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var ok []bool
			got, _ := evaluate(t, preflight.Check{
				Name: "A", Description: "all good", Advisory: tc.advisory,
				Run: func(_ context.Context, t *preflight.T) error {
					for i, part := range tc.parts {
						ok = append(ok, t.Run(fmt.Sprint(i), part))
					}
					return nil
				},
			})
			if outcomeLine(got) != tc.want || !reflect.DeepEqual(ok, tc.ok) {
				t.Errorf("%s: got %q, parts %v, want %q, parts %v", tc.reason, outcomeLine(got), ok, tc.want, tc.ok)
			}
		})
	}
}

func TestPartsAreQualified(t *testing.T) {
	got, log := evaluate(t, preflight.Check{Name: "Members", Run: func(_ context.Context, t *preflight.T) error {
		t.Reason("Whole")
		t.Run("etcd-0", func(_ context.Context, t *preflight.T) error {
			t.Reason("Slow")
			t.Warnf("slow")
			t.Evidence("size", "1")
			return nil
		})
		t.Run("etcd-1", func(_ context.Context, t *preflight.T) error {
			t.Run("disk", func(_ context.Context, t *preflight.T) error {
				t.Logf("reading")
				t.Evidence("size", "2")
				t.Failf("full")
				return nil
			})
			t.Reason("Broken")
			t.Remedyf("Repair it.")
			return nil
		})
		t.Evidence("size", "3")
		return nil
	}})
	want := preflight.Finding{
		Name: "Members", Outcome: preflight.Fail, Reason: "Broken", Message: "etcd-1/disk: full; etcd-0: slow", Remediation: "Repair it.",
		Evidence: map[string]string{"etcd-0/size": "1", "etcd-1/disk/size": "2", "size": "3"},
	}
	if d := diff(t, got, want); d != "" {
		t.Errorf("the reason is that of the most severe part or of its nearest parent: %s", d)
	}
	if log != "Members/etcd-1/disk: reading\n" {
		t.Errorf("log %q, want the path of the part", log)
	}
}

func TestPanicOfAPartHasStack(t *testing.T) {
	got, _ := evaluate(t, preflight.Check{Name: "A", Run: func(_ context.Context, t *preflight.T) error {
		t.Run("b", func(context.Context, *preflight.T) error { panic("boom") })
		return nil
	}})
	if stack := got.Evidence["b/stack"]; !strings.Contains(stack, "part_test.go:") || !strings.Contains(got.Remediation, "owners") {
		t.Errorf("got %+v, want the stack in the evidence and a remedy that names the owners", got)
	}
}

// Parts may run in goroutines. Run with -race.
func TestPartsInGoroutines(t *testing.T) {
	got, _ := evaluate(t, preflight.Check{Name: "A", Run: func(_ context.Context, t *preflight.T) error {
		var group sync.WaitGroup
		for i := range 8 {
			group.Add(1)
			go func() {
				defer group.Done()
				t.Run(fmt.Sprint(i), func(_ context.Context, t *preflight.T) error {
					t.Evidence("seen", "yes")
					if i == 3 {
						runtime.Goexit()
					}
					return nil
				})
			}()
		}
		group.Wait()
		return nil
	}})
	want := "Unknown Panic 3: the check ended its goroutine with runtime.Goexit"
	if outcomeLine(got) != want || got.Evidence["7/seen"] != "yes" {
		t.Errorf("got %q, evidence %v, want %q and the evidence of the other parts", outcomeLine(got), got.Evidence, want)
	}
}

func TestNoPartStartsAfterTheTimeout(t *testing.T) {
	started := false
	got, _ := evaluate(t, preflight.Check{Name: "A", Timeout: time.Nanosecond, Run: func(ctx context.Context, t *preflight.T) error {
		<-ctx.Done()
		if t.Run("b", func(context.Context, *preflight.T) error { started = true; return nil }) {
			t.Failf("Run reports that a part succeeded without running it")
		}
		return ctx.Err()
	}})
	if want := "Unknown Timeout A did not finish within 1ns"; outcomeLine(got) != want || started {
		t.Errorf("got %q, started %t, want %q", outcomeLine(got), started, want)
	}
}

func TestPartAtTheTimeout(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		err    func(error) error
		want   string
	}{
		"Plain": {
			"The timeout is reported once", func(err error) error { return err },
			"Unknown Timeout A did not finish within 1s (last step: b: requesting)",
		},
		"Wrapped": {
			"The context of the error is reported too", func(err error) error { return fmt.Errorf("get: %w", err) },
			"Unknown Timeout A did not finish within 1s (last step: b: requesting); b: get: context deadline exceeded",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _ := evaluate(t, preflight.Check{Name: "A", Timeout: time.Second, Run: func(_ context.Context, t *preflight.T) error {
				t.Run("b", func(ctx context.Context, t *preflight.T) error {
					t.Logf("requesting")
					<-ctx.Done()
					return tc.err(ctx.Err())
				})
				return nil
			}})
			if outcomeLine(got) != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, outcomeLine(got), tc.want)
			}
		})
	}
}

func TestInconclusive(t *testing.T) {
	cases := map[string]struct {
		reason string
		run    func(context.Context, *preflight.T) error
		want   string
	}{
		"Alone": {
			"The default reason is Inconclusive",
			func(_ context.Context, t *preflight.T) error { t.Inconclusivef("%d leaders", 2); return nil }, "Unknown Inconclusive 2 leaders",
		},
		"Reason": {
			"The reason of the author replaces the default",
			func(_ context.Context, t *preflight.T) error { t.Reason("Split"); t.Inconclusivef("2"); return nil }, "Unknown Split 2",
		},
		"Fail": {
			"A fail is more severe", func(_ context.Context, t *preflight.T) error { t.Inconclusivef("2"); t.Failf("bad"); return nil },
			"Fail CheckFailed bad; 2",
		},
		"ThenError": {
			"The reason of an error takes precedence",
			func(_ context.Context, t *preflight.T) error { t.Inconclusivef("2"); return errors.New("refused") }, "Unknown CheckError refused; 2",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, _ := evaluate(t, preflight.Check{Name: "A", Run: tc.run})
			if outcomeLine(got) != tc.want || got.Outcome == preflight.Unknown && got.Remediation == "" {
				t.Errorf("%s: got %q, remedy %q, want %q and a remedy", tc.reason, outcomeLine(got), got.Remediation, tc.want)
			}
		})
	}
}

func TestCleanup(t *testing.T) {
	cases := map[string]struct {
		reason string
		run    func(note func(string) func()) func(context.Context, *preflight.T) error
		want   string
		order  string
	}{
		"Order": {
			reason: "Functions are called in reverse order, those of a part at the end of the part",
			run: func(note func(string) func()) func(context.Context, *preflight.T) error {
				return func(_ context.Context, t *preflight.T) error {
					t.Cleanup(note("first "))
					t.Run("p", func(_ context.Context, t *preflight.T) error { t.Cleanup(note("part ")); return nil })
					t.Cleanup(note("last "))
					return nil
				}
			},
			want: "Pass Passed ", order: "part last first ",
		},
		"Reports": {
			reason: "A report of a cleanup function counts",
			run: func(func(string) func()) func(context.Context, *preflight.T) error {
				return func(_ context.Context, t *preflight.T) error {
					t.Cleanup(func() { t.Warnf("file left") })
					return nil
				}
			},
			want: "Warn CheckWarned file left",
		},
		"AfterPanic": {
			reason: "Cleanup functions are called after a panic",
			run: func(note func(string) func()) func(context.Context, *preflight.T) error {
				return func(_ context.Context, t *preflight.T) error {
					t.Cleanup(note("first "))
					panic("boom")
				}
			},
			want: "Unknown Panic panic: boom", order: "first ",
		},
		"AfterGoexit": {
			reason: "Cleanup functions are called after runtime.Goexit",
			run: func(note func(string) func()) func(context.Context, *preflight.T) error {
				return func(_ context.Context, t *preflight.T) error {
					t.Cleanup(note("first "))
					runtime.Goexit()
					return nil
				}
			},
			want: "Unknown Panic the check ended its goroutine with runtime.Goexit", order: "first ",
		},
		"Panics": {
			reason: "A panic in a cleanup function is a panic of the check, and the others are called",
			run: func(note func(string) func()) func(context.Context, *preflight.T) error {
				return func(_ context.Context, t *preflight.T) error {
					t.Cleanup(note("first "))
					t.Cleanup(func() { panic("boom") })
					return nil
				}
			},
			want: "Unknown Panic panic: boom", order: "first ",
		},
		"PartPanics": {
			reason: "A panic in a cleanup function of a part is a panic of the part",
			run: func(func(string) func()) func(context.Context, *preflight.T) error {
				return func(_ context.Context, t *preflight.T) error {
					t.Run("p", func(_ context.Context, t *preflight.T) error {
						t.Cleanup(func() { panic("boom") })
						return nil
					})
					return nil
				}
			},
			want: "Unknown Panic p: panic: boom",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			order := ""
			note := func(text string) func() { return func() { order += text } }
			got, _ := evaluate(t, preflight.Check{Name: "A", Run: tc.run(note)})
			if outcomeLine(got) != tc.want || order != tc.order {
				t.Errorf("%s: got %q, order %q, want %q, order %q", tc.reason, outcomeLine(got), order, tc.want, tc.order)
			}
		})
	}
}
