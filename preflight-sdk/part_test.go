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

// evaluate runs one check with its log.
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
	unsure := func(_ context.Context, t *preflight.T) error { t.Inconclusivef("two answers"); return nil }
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
		"AllPass":     {"Nothing said of any part is a pass, with the description", []run{pass, pass}, false, "Pass Passed all good", []bool{true, true}},
		"OneFails":    {"The worst part counts, by its name", []run{pass, fails}, false, "Fail CheckFailed 1: bad", []bool{true, false}},
		"GoesOn":      {"An error of one part does not keep the next from failing", []run{errs, fails}, false, "Fail CheckFailed 1: bad; 0: refused", []bool{false, false}},
		"Error":       {"An error of one part is no pass of the check", []run{errs, pass}, false, "Unknown CheckError 0: refused", []bool{false, true}},
		"Panic":       {"A panic of one part is no end of the others", []run{panics, warns}, false, "Unknown Panic 0: panic: boom; 1: soon", []bool{false, true}},
		"Goexit":      {"An end of the goroutine is the end of the check", []run{exits, fails}, false, "Unknown Panic the check ended its own goroutine with runtime.Goexit; 0: the check ended its own goroutine with runtime.Goexit", nil},
		"Unsure":      {"An answer that is none is Unknown", []run{unsure, pass}, false, "Unknown Inconclusive 0: two answers", []bool{false, true}},
		"Warns":       {"A warning is an answer", []run{warns, pass}, false, "Warn CheckWarned 0: soon", []bool{true, true}},
		"SkipsOne":    {"A part that does not apply does not skip the others", []run{skips, pass}, false, "Pass Passed all good", []bool{true, true}},
		"SkipsAll":    {"Where no part applies the check does not", []run{skips, skips}, false, "Skipped NotApplicable 0: absent; 1: absent", []bool{true, true}},
		"SkipsAndErr": {"A part that could not tell outweighs one that does not apply", []run{skips, errs}, false, "Unknown CheckError 1: refused; 0: absent", []bool{true, false}},
		"Advisory":    {"A part of an advisory check has failed for the check, not for the update", []run{fails}, true, "Warn CheckWarned 0: bad", []bool{false}},
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
			if say(got) != tc.want || !reflect.DeepEqual(ok, tc.ok) {
				t.Errorf("%s: got %q, parts %v, want %q, parts %v", tc.reason, say(got), ok, tc.want, tc.ok)
			}
		})
	}
}

func TestPartsAreTellableApart(t *testing.T) {
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
				t.Logf("looking")
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
		t.Errorf("the reason is that of the part that counts, or of what it is a part of: %s", d)
	}
	if log != "Members/etcd-1/disk: looking\n" {
		t.Errorf("log %q, want the part in it", log)
	}
}

func TestPanicOfAPartHasItsStack(t *testing.T) {
	got, _ := evaluate(t, preflight.Check{Name: "A", Run: func(_ context.Context, t *preflight.T) error {
		t.Run("b", func(context.Context, *preflight.T) error { panic("boom") })
		return nil
	}})
	if stack := got.Evidence["b/stack"]; !strings.Contains(stack, "part_test.go:") || !strings.Contains(got.Remediation, "defect") {
		t.Errorf("got %+v, want the place of the panic in evidence, and to whom it goes", got)
	}
}

// Parts in goroutines of their own: go test -race would tell.
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
	want := "Unknown Panic 3: the check ended its own goroutine with runtime.Goexit"
	if say(got) != want || got.Evidence["7/seen"] != "yes" {
		t.Errorf("got %q, evidence %v, want %q and what the others saw", say(got), got.Evidence, want)
	}
}

func TestNoPartAfterTheTimeIsUp(t *testing.T) {
	started := false
	got, _ := evaluate(t, preflight.Check{Name: "A", Timeout: time.Nanosecond, Run: func(ctx context.Context, t *preflight.T) error {
		<-ctx.Done()
		if t.Run("b", func(context.Context, *preflight.T) error { started = true; return nil }) {
			t.Failf("a part that was not asked is not well")
		}
		return ctx.Err()
	}})
	if want := "Unknown Timeout A did not finish within 1ns"; say(got) != want || started {
		t.Errorf("got %q, started %t, want %q", say(got), started, want)
	}
}

func TestPartThatIsCutShort(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		err    func(error) error
		want   string
	}{
		"Plain":   {"That the time was up is said once", func(err error) error { return err }, "Unknown Timeout A did not finish within 1s (last step: b: asking)"},
		"Wrapped": {"What the part was at is said too", func(err error) error { return fmt.Errorf("get: %w", err) }, "Unknown Timeout A did not finish within 1s (last step: b: asking); b: get: context deadline exceeded"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _ := evaluate(t, preflight.Check{Name: "A", Timeout: time.Second, Run: func(_ context.Context, t *preflight.T) error {
				t.Run("b", func(ctx context.Context, t *preflight.T) error {
					t.Logf("asking")
					<-ctx.Done()
					return tc.err(ctx.Err())
				})
				return nil
			}})
			if say(got) != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, say(got), tc.want)
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
		"Alone":     {"It has a reason of its own", func(_ context.Context, t *preflight.T) error { t.Inconclusivef("%d leaders", 2); return nil }, "Unknown Inconclusive 2 leaders"},
		"Reason":    {"The author's word goes first", func(_ context.Context, t *preflight.T) error { t.Reason("Split"); t.Inconclusivef("2"); return nil }, "Unknown Split 2"},
		"Fail":      {"What was seen to fail outweighs it", func(_ context.Context, t *preflight.T) error { t.Inconclusivef("2"); t.Failf("bad"); return nil }, "Fail CheckFailed bad; 2"},
		"ThenError": {"An error that ends the check is its reason", func(_ context.Context, t *preflight.T) error { t.Inconclusivef("2"); return errors.New("refused") }, "Unknown CheckError refused; 2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, _ := evaluate(t, preflight.Check{Name: "A", Run: tc.run})
			if say(got) != tc.want || got.Outcome == preflight.Unknown && got.Remediation == "" {
				t.Errorf("%s: got %q, remedy %q, want %q and a remedy", tc.reason, say(got), got.Remediation, tc.want)
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
			reason: "The last comes first, and that of a part at the end of the part",
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
		"Speaks": {
			reason: "What is found while cleaning up counts",
			run: func(func(string) func()) func(context.Context, *preflight.T) error {
				return func(_ context.Context, t *preflight.T) error {
					t.Cleanup(func() { t.Warnf("file left") })
					return nil
				}
			},
			want: "Warn CheckWarned file left",
		},
		"AfterPanic": {
			reason: "A panic is reported, and does not keep from cleaning up",
			run: func(note func(string) func()) func(context.Context, *preflight.T) error {
				return func(_ context.Context, t *preflight.T) error {
					t.Cleanup(note("first "))
					panic("boom")
				}
			},
			want: "Unknown Panic panic: boom", order: "first ",
		},
		"AfterGoexit": {
			reason: "So is runtime.Goexit",
			run: func(note func(string) func()) func(context.Context, *preflight.T) error {
				return func(_ context.Context, t *preflight.T) error {
					t.Cleanup(note("first "))
					runtime.Goexit()
					return nil
				}
			},
			want: "Unknown Panic the check ended its own goroutine with runtime.Goexit", order: "first ",
		},
		"Panics": {
			reason: "A panic in it is one of the check, and the others are still called",
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
			reason: "A panic in that of a part is one of the part",
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
			if say(got) != tc.want || order != tc.order {
				t.Errorf("%s: got %q, order %q, want %q, order %q", tc.reason, say(got), order, tc.want, tc.order)
			}
		})
	}
}
