package suite_test

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/openshift/update-preflight/test/suite"
)

// ran is a run of this duration, whose tests used as much processor time.
func ran(commit string, took time.Duration) suite.Record {
	return suite.Record{
		Commit: commit, Time: time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC), Took: took, Used: suite.Usage{Tests: took},
		Whole: true,
	}
}

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "suite.json")
	history, err := suite.ReadHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	if took, from := history.Expected([]string{"a"}, 2); took <= 0 || !strings.Contains(from, "2 cores") {
		t.Errorf("without a run: %s, %q; want an estimate from the cores", took, from)
	}
	costs := map[string]suite.Cost{"a": {Took: time.Minute, CPU: time.Minute}, "b": {Took: 3 * time.Minute, CPU: 3 * time.Minute}}
	first := ran("1111", 2*time.Minute)
	if got := history.Compare(first); got != "this run is the baseline of this machine" {
		t.Errorf("the first run: %q", got)
	}
	history.Add(first, costs)
	history.Add(ran("2222", time.Minute), costs)
	part := ran("3333", time.Hour)
	part.Whole = false
	history.Add(part, map[string]suite.Cost{"a": {Took: time.Minute, CPU: 2 * time.Minute}})
	if err := history.Write(path); err != nil {
		t.Fatal(err)
	}
	if history, err = suite.ReadHistory(path); err != nil {
		t.Fatal(err)
	}
	if took, from := history.Expected([]string{"a", "b"}, 2); took != time.Minute || !strings.Contains(from, "2026-11-26") {
		t.Errorf("all packages: %s, %q; want what the last whole run took", took, from)
	}
	if took, _ := history.Expected([]string{"a"}, 2); took != 24*time.Second {
		t.Errorf("one package: %s, want its share of the last whole run", took)
	}
}

func TestCompare(t *testing.T) {
	var history suite.History
	history.Add(ran("1111", 2*time.Minute), nil)
	for name, tc := range map[string]struct {
		reason string
		whole  bool
		cached int
		want   string
	}{
		"Whole": {
			reason: "all tests ran", whole: true,
			want: "ratio to the baseline of this machine (1111, 2026-11-26): tests 0.50 of the CPU s, 0.50 of the time",
		},
		"Cached": {reason: "a part did not run", whole: true, cached: 3, want: "no ratio to the baseline: the results of 3 packages were cached"},
		"Part":   {reason: "a part was not wanted, or failed", want: "no ratio to the baseline: not all tests were run, or not all have passed"},
	} {
		run := ran("2222", time.Minute)
		run.Whole, run.Cached = tc.whole, tc.cached
		if got := history.Compare(run); got != tc.want {
			t.Errorf("%s: %s: %q, want %q", name, tc.reason, got, tc.want)
		}
	}
}

func TestDamagedHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "suite.json")
	write(t, path, "{")
	if _, err := suite.ReadHistory(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("want an error that names the file, got %v", err)
	}
}

// TestProgressNamesWhatIsLeft has two packages, of which one is known.
func TestProgressNamesWhatIsLeft(t *testing.T) {
	var shown bytes.Buffer
	runner := suite.NewRunner(repository(t), &shown)
	history := suite.History{
		Last:     new(ran("1111", 10*time.Minute)),
		Packages: map[string]suite.Cost{"example.com/tested/good": {Took: 5 * time.Minute, CPU: 5 * time.Minute}},
	}
	lanes := []suite.Lane{{
		Packages: []string{"example.com/tested/good"}, Processes: 1,
		Next: &suite.Lane{Packages: []string{"example.com/tested/bad"}, Processes: 1},
	}}
	if took, _ := runner.Plan(&history, 2, lanes...); took != 20*time.Minute {
		t.Errorf("planned %s, want twice the known package", took)
	}
	_ = runner.Run(t.Context(), lanes...) // a package fails
	_, _ = runner.Plan(&history, 2, lanes...)
	_ = runner.Run(t.Context(), lanes...)
	for _, want := range []string{
		`(?m)^pass .*good .*\[1/2, about (\d+ min|a minute) left\]$`, `(?m)^fail .*bad .*\[2/2\]$`,
		`(?m)^pass .*good .* cached .*\[1/2, about 10 min left\]$`,
	} {
		if !regexp.MustCompile(want).MatchString(shown.String()) {
			t.Errorf("%q is not in\n%s", want, shown.String())
		}
	}
}
