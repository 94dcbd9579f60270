package suite_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/test/suite"
)

// root is the root of the repository.
const root = "../.."

const module = "github.com/openshift/update-preflight/"

// repository writes a workspace with packages that pass, fail and do not
// compile.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files := fstest.MapFS{
		"go.work":             {Data: []byte("go 1.26\n\nuse .\n")},
		"go.mod":              {Data: []byte("module example.com/tested\n\ngo 1.26\n")},
		"good/good_test.go":   {Data: []byte("package good\n\nimport \"testing\"\n\nfunc TestGood(t *testing.T) { t.Log(\"detail\") }\n")},
		"bad/bad_test.go":     {Data: []byte("package bad\n\nimport \"testing\"\n\nfunc TestBad(t *testing.T) { t.Error(\"the cause\") }\n")},
		"broken/broken.go":    {Data: []byte("package broken\n\nvar _ = undefined\n")},
		"broken/some_test.go": {Data: []byte("package broken\n")},
	}
	if err := os.CopyFS(dir, files); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRunReportsEachPackage(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		lanes  []suite.Lane
		shown  []string // patterns
		hidden string
		failed string // in the error; none if empty
	}{
		"Pass": {
			reason: "a package that passes is one line",
			lanes:  []suite.Lane{{Packages: []string{"./good"}, Processes: 1, Flags: []string{"-count=1"}}},
			shown:  []string{`(?m)^pass  example\.com/tested/good +\d\.\d s   not measured$`}, hidden: "detail",
		},
		"Verbose": {
			reason: "a verbose lane shows the output of passing tests",
			lanes:  []suite.Lane{{Packages: []string{"./good"}, Processes: 1, Flags: []string{"-count=1"}, Verbose: true}},
			shown:  []string{"detail", `(?m)^pass  example\.com/tested/good`},
		},
		"Fail": {
			reason: "a failure shows the output of the package, and the others are run",
			lanes:  []suite.Lane{{Packages: []string{"./bad", "./good"}, Processes: 1}},
			shown:  []string{"the cause", `(?m)^fail  example\.com/tested/bad`, `(?m)^pass  example\.com/tested/good`},
			failed: "failed: example.com/tested/bad",
		},
		"Build": {
			reason: "a package that does not compile fails with the message of the compiler",
			lanes:  []suite.Lane{{Packages: []string{"./broken"}, Processes: 1}},
			shown:  []string{"undefined: undefined"}, failed: "failed: example.com/tested/broken",
		},
		"Next": {
			reason: "the next lane runs after one that fails",
			lanes:  []suite.Lane{{Packages: []string{"./bad"}, Processes: 1, Next: &suite.Lane{Packages: []string{"./good"}, Processes: 1}}},
			shown:  []string{`(?m)^pass  example\.com/tested/good`}, failed: "failed: example.com/tested/bad",
		},
		"Usage": {
			reason: "a Go tool that tests nothing is an error with its message",
			lanes:  []suite.Lane{{Packages: []string{"./good"}, Processes: 1, Flags: []string{"-count=many"}}},
			failed: `"many"`,
		},
		"Empty": {
			reason: "a lane without packages runs nothing",
			lanes:  []suite.Lane{{Processes: 1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var shown bytes.Buffer
			err := suite.NewRunner(repository(t), &shown).Run(t.Context(), tc.lanes...)
			if tc.failed == "" && err != nil {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if tc.failed != "" && (err == nil || !strings.Contains(err.Error(), tc.failed)) {
				t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.failed, err)
			}
			for _, pattern := range tc.shown {
				if !regexp.MustCompile(pattern).MatchString(shown.String()) {
					t.Errorf("%s: %q is not in\n%s", tc.reason, pattern, shown.String())
				}
			}
			if tc.hidden != "" && strings.Contains(shown.String(), tc.hidden) {
				t.Errorf("%s: %q is in\n%s", tc.reason, tc.hidden, shown.String())
			}
		})
	}
}

// TestRunMeasuresProcessorTime has a test whose child outlives its parent, as the
// processes of a cluster do. Its text differs in each run, so that no build cache has it.
func TestRunMeasuresProcessorTime(t *testing.T) {
	dir := repository(t)
	const busy = `package good

import (
	"os/exec"
	"testing"
)

func TestBusy(t *testing.T) {
	loop := "(i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done > ended) >/dev/null 2>&1 & "
	if err := exec.Command("sh", "-c", loop).Run(); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("sh", "-c", "until [ -e ended ]; do :; done").Run(); err != nil {
		t.Fatal(err)
	}
}
`
	write(t, filepath.Join(dir, "good", "good_test.go"), fmt.Sprintf("%s\nconst started = %d\n", busy, time.Now().UnixNano()))
	runner := measured(t, dir)
	expectRun(t, runner, `(?m)^pass  example\.com/tested/good .* [0-9.]+ CPU s$`)
	expectRun(t, runner, `(?m)^pass  example\.com/tested/good .* cached$`)
	used, err := runner.Used()
	if err != nil || used.Tests <= 0 || used.GoTool <= 0 || used.Compile <= 0 || used.Compiled < 1 || used.Link <= 0 || used.Linked != 1 {
		t.Errorf("used %+v, %v; want the tests, the Go tool, and in it the compiler and the one link", used, err)
	}
	if got := used.Builds(); !strings.Contains(got, "linked 1 programs in ") || !strings.Contains(got, "(build cache: warm)") {
		t.Errorf("builds: %q", got)
	}
}

// TestResultsAreCachedBySources has a test that builds a program and executes it, as those of
// clusters do.
func TestResultsAreCachedBySources(t *testing.T) {
	dir := repository(t)
	const builds = `package good

import (
	"os"
	"testing"
)

func TestProgram(t *testing.T) {
	if err := os.WriteFile("DIR/bin/program", []byte("built"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile("DIR/bin/program"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(os.Getenv("PREFLIGHT_TEST_INPUTS"), []byte("DIR/program.go\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}
`
	write(t, filepath.Join(dir, "good", "good_test.go"), strings.ReplaceAll(builds, "DIR", dir))
	source := filepath.Join(dir, "program.go")
	write(t, source, "package main\n")
	runner := measured(t, dir)
	expectRun(t, runner, `CPU s$`)
	expectRun(t, runner, `cached$`) // although the program is newer than the result
	write(t, source, "package main // changed\n")
	expectRun(t, runner, `CPU s$`)
}

// report is a runner with what it has reported.
type report struct {
	*suite.Runner
	shown *bytes.Buffer
}

// measured returns a runner whose program for measuring is in the folder of the programs.
func measured(t *testing.T, dir string) report {
	t.Helper()
	measure := filepath.Join(dir, "bin", "measure")
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", measure, "./measure").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	r := report{shown: &bytes.Buffer{}}
	r.Runner = suite.NewRunner(dir, r.shown)
	r.Measure, r.Tools = measure, measure+".tools"
	return r
}

// expectRun runs the tests of package good, and verifies what is reported.
func expectRun(t *testing.T, r report, want string) {
	t.Helper()
	r.shown.Reset()
	if err := r.Run(t.Context(), suite.Lane{Packages: []string{"./good"}, Processes: 1}); err != nil {
		t.Fatalf("%v\n%s", err, r.shown.String())
	}
	if !regexp.MustCompile(want).MatchString(strings.TrimSpace(r.shown.String())) {
		t.Errorf("%q is not in\n%s", want, r.shown.String())
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := suite.NewRunner(repository(t), &bytes.Buffer{}).Run(ctx, suite.Lane{Packages: []string{"./good"}, Processes: 1})
	if err == nil {
		t.Error("a run that was interrupted has succeeded")
	}
}

// TestEveryPackageIsInOneLane checks that no test of the repository is left out
// and none runs twice.
func TestEveryPackageIsInOneLane(t *testing.T) {
	all, err := suite.List(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	var listed, run []string
	for _, p := range all {
		listed = append(listed, p.Path)
	}
	for _, first := range slices.Concat(suite.Unit(all), suite.Cluster(all), suite.Release(all)) {
		for lane := &first; lane != nil; lane = lane.Next {
			run = append(run, lane.Packages...)
		}
	}
	slices.Sort(run)
	if diff := cmp.Diff(listed, run); diff != "" {
		t.Errorf("packages (-with tests +run):\n%s", diff)
	}
	for _, path := range []string{"preflight-sdk", "test/e2e/conformance", "runner"} {
		if !slices.Contains(run, module+path) {
			t.Errorf("%s is not run", path)
		}
	}
}

// TestConcurrentPackagesAreRaced checks that each of them runs under the race detector in one lane.
func TestConcurrentPackagesAreRaced(t *testing.T) {
	all, err := suite.List(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	raced := map[string]int{}
	for _, lane := range slices.Concat(suite.Unit(all), suite.Race(all)) {
		for _, path := range lane.Packages {
			if lane.Race {
				raced[path]++
			}
		}
	}
	for _, p := range all {
		want := 0
		if p.Concurrent && !slices.ContainsFunc(suite.Release(all), func(l suite.Lane) bool { return slices.Contains(l.Packages, p.Path) }) {
			want = 1
		}
		if raced[p.Path] != want {
			t.Errorf("%s runs %d times under the race detector, want %d", p.Path, raced[p.Path], want)
		}
	}
}

// TestAttacksAreAlsoRunByOtherLanes checks that the lanes of the attacks have all packages with attacks, and only
// packages that "make test" runs.
func TestAttacksAreAlsoRunByOtherLanes(t *testing.T) {
	all, err := suite.List(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	attacks := suite.Attacks()
	run := map[string]bool{}
	for lane := &attacks; lane != nil; lane = lane.Next {
		for _, path := range lane.Packages {
			run[path] = true
			if !slices.ContainsFunc(all, func(p suite.Package) bool { return p.Path == path }) {
				t.Errorf("%s has no tests", path)
			}
		}
		if !lane.Verbose || len(lane.Packages) == 0 {
			t.Errorf("the lane %v prints no table", lane.Packages)
		}
	}
	for _, p := range all {
		_, directory, _ := strings.Cut(p.Path, "update-preflight/")
		files, err := filepath.Glob(filepath.Join(root, directory, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if directory != "test/suite" && bytes.Contains(source, []byte("\nfunc TestAttacks")) && !run[p.Path] {
				t.Errorf("%s has attacks that no lane runs", p.Path)
			}
		}
	}
}

func TestListClassifiesPackages(t *testing.T) {
	all, err := suite.List(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]struct {
		reason                      string
		cluster, concurrent, client bool
	}{
		"collector/verdict":   {reason: "neither goroutines nor a cluster"},
		"preflight-sdk":       {reason: "checks run in goroutines", concurrent: true},
		"runner/fleet/survey": {reason: "clusters are asked at the same time, here by a stub", concurrent: true, client: true},
		"runner":              {reason: "goroutines, and an API server", cluster: true, concurrent: true, client: true},
		"test/e2e":            {reason: "programs on a cluster", cluster: true, client: true},
		"test/cluster":        {reason: "the clusters themselves", cluster: true, concurrent: true, client: true},
	} {
		i := slices.IndexFunc(all, func(p suite.Package) bool { return p.Path == module+path })
		if i < 0 {
			t.Errorf("%s is not listed", path)
			continue
		}
		if got := all[i]; got.Cluster != want.cluster || got.Concurrent != want.concurrent || got.Client != want.client {
			t.Errorf("%s: %s: got %+v, want cluster %t, concurrent %t, client %t", path, want.reason, got, want.cluster, want.concurrent,
				want.client)
		}
	}
}

func TestSlowPackagesStartFirst(t *testing.T) {
	all := []suite.Package{
		{Path: module + "a", Cluster: true},
		{Path: module + "test/commands", Cluster: true},
		{Path: module + "test/deadlock", Cluster: true},
		{Path: module + "test/trigger", Cluster: true},
		{Path: module + "test/e2e/faults", Cluster: true},
		{Path: module + "test/e2e", Cluster: true},
		{Path: module + "b", Cluster: true, Concurrent: true},
		{Path: module + "runner", Cluster: true, Concurrent: true},
	}
	got := suite.Cluster(all)[0].Packages
	want := []string{
		module + "test/e2e", module + "test/commands", module + "test/e2e/faults", module + "test/trigger", module + "runner",
		module + "a", module + "b",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("packages (-want +got):\n%s", diff)
	}
}
