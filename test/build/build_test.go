package build_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"

	"github.com/openshift/update-preflight/test/build"
)

// root is the root of the repository.
const root = "../.."

// repository has one module with programs, one of which does not compile.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files := fstest.MapFS{
		"tools/go.mod":          {Data: []byte("module example.com/tools\n\ngo 1.26\n")},
		"tools/go.sum":          {Data: []byte("")},
		"tools/one/main.go":     {Data: []byte("package main\n\nvar version = \"none\"\n\nfunc main() { print(version) }\n")},
		"tools/two/v2/main.go":  {Data: []byte("package main\n\nfunc main() {}\n")},
		"tools/broken/main.go":  {Data: []byte("package main\n\nfunc main() { undefined() }\n")},
		"tools/tagged/main.go":  {Data: []byte("//go:build !without\n\npackage main\n\nfunc main() { missing() }\n")},
		"tools/clock/main.go":   {Data: []byte("package main\n\nimport \"time\"\n\nfunc main() { print(time.Now().Year()) }\n")},
		"tools/tagged/other.go": {Data: []byte("//go:build without\n\npackage main\n\nfunc main() {}\n")},
	}
	if err := os.CopyFS(dir, files); err != nil {
		t.Fatal(err)
	}
	return dir
}

// step builds programs of the repository above.
func step(name string, packages ...string) build.Step {
	return build.Step{Name: name, Dir: "tools", Packages: packages, Pinned: true, About: time.Minute}
}

// run runs steps in a repository, and returns what is shown, with N for every
// number of seconds.
func run(t *testing.T, dir string, steps ...build.Step) (string, error) {
	t.Helper()
	var shown bytes.Buffer
	builder := build.Builder{Root: dir, Bin: filepath.Join(dir, "bin"), Out: &shown, Interval: time.Hour}
	err := builder.Run(t.Context(), steps...)
	return regexp.MustCompile(`\d+m?\d*s`).ReplaceAllString(shown.String(), "N"), err
}

func mustRun(t *testing.T, dir string, steps ...build.Step) string {
	t.Helper()
	shown, err := run(t, dir, steps...)
	if err != nil {
		t.Fatal(err)
	}
	return shown
}

func TestStepsAreNumberedAndTimed(t *testing.T) {
	dir := repository(t)
	shown := mustRun(t, dir, step("the first", "./one"), step("the second", "./two/v2"))
	const want = `[1/2] building the first (about N with an empty cache)
      done in N
[2/2] building the second (about N with an empty cache)
      done in N
`
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
	for _, program := range []string{"one", "two"} {
		if _, err := os.Stat(filepath.Join(dir, "bin", program)); err != nil {
			t.Errorf("program %s: %v", program, err)
		}
	}
}

func TestOutOfDateStepsAreBuilt(t *testing.T) {
	change := func(name, content string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, tc := range map[string]struct {
		reason string
		change func(t *testing.T, dir string)
		step   build.Step
		want   bool // built again
	}{
		"Same": {
			reason: "nothing has changed", step: step("it", "./one"),
		},
		"Module": {
			reason: "other versions may be required", step: step("it", "./one"), want: true,
			change: change("tools/go.mod", "module example.com/tools\n\ngo 1.26.0\n"),
		},
		"Flags": {
			reason: "the version of the program changes", want: true,
			step: build.Step{Name: "it", Dir: "tools", Packages: []string{"./one"}, Pinned: true, Variables: []string{"main.version=v2"}},
		},
		"Missing": {
			reason: "the program was deleted", step: step("it", "./one"), want: true,
			change: func(t *testing.T, dir string) {
				t.Helper()
				if err := os.Remove(filepath.Join(dir, "bin", "one")); err != nil {
					t.Fatal(err)
				}
			},
		},
		"NotPinned": {
			reason: "the Go tool decides on a step that is not pinned", want: true,
			step: build.Step{Name: "it", Dir: "tools", Packages: []string{"./one"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := repository(t)
			mustRun(t, dir, step("it", "./one"))
			if tc.change != nil {
				tc.change(t, dir)
			}
			if shown := mustRun(t, dir, tc.step); (shown != "") != tc.want {
				t.Errorf("%s: want built again %t, shown:\n%s", tc.reason, tc.want, shown)
			}
		})
	}
}

func TestProgressIsShown(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		terminal bool
		want     string
	}{
		"Log": {
			reason: "a log has a line for each report",
			want:   `^\[1/1\] building it .*\n(      \d+ .*packages compiled \(\d+s\)\n)+      done in \d+s\n$`,
		},
		"Terminal": {
			reason: "on a terminal a report replaces the previous one", terminal: true,
			want: `^\[1/1\] building it .*\n(\r\x1b\[K      \d+ .*packages compiled \(\d+s\))+\r\x1b\[K      done in \d+s\n$`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := repository(t)
			var shown bytes.Buffer
			builder := build.Builder{Root: dir, Bin: filepath.Join(dir, "bin"), Out: &shown, Terminal: tc.terminal, Interval: time.Millisecond}
			if err := builder.Run(t.Context(), step("it", "./one")); err != nil {
				t.Fatal(err)
			}
			if !regexp.MustCompile(tc.want).MatchString(shown.String()) {
				t.Errorf("%s: shown:\n%q", tc.reason, shown.String())
			}
		})
	}
}

func TestTagsLeaveCodeOut(t *testing.T) {
	tagged := step("it", "./tagged")
	tagged.Tags = []string{"without"}
	mustRun(t, repository(t), tagged)
}

// TestReleaseHasAnotherClock builds a small program with the changes of the step.
func TestReleaseHasAnotherClock(t *testing.T) {
	dir := repository(t)
	steps, err := build.For(root, build.Release)
	if err != nil {
		t.Fatal(err)
	}
	changed := step("it", "./clock")
	changed.Pinned, changed.Program, changed.Changes = false, "changed", steps[len(steps)-1].Changes
	mustRun(t, dir, changed)
	for ahead, want := range map[string]int{"": 0, strconv.Itoa(10 * 366 * 24 * 3600): 10} {
		command := exec.CommandContext(t.Context(), filepath.Join(dir, "bin", "changed"))
		command.Env = append(os.Environ(), build.ClockVariable+"="+ahead)
		shown, err := command.CombinedOutput() // print writes to standard error
		year, notYear := strconv.Atoi(string(shown))
		if err != nil || notYear != nil || year < time.Now().Year()+want {
			t.Errorf("the clock is %q seconds ahead, and the year is %q (%v)", ahead, shown, err)
		}
	}
}

func TestUnknownTextIsNotChanged(t *testing.T) {
	changed := step("it", "./clock")
	changed.Pinned, changed.Changes = false, []build.Change{{File: "time/time.go", Old: "no such text", New: "another"}}
	if _, err := run(t, repository(t), changed); err == nil || !strings.Contains(err.Error(), "no such text") {
		t.Errorf("want an error with the text that is missing, got %v", err)
	}
}

func TestFailureNamesStepAndCause(t *testing.T) {
	dir := repository(t)
	broken := step("the broken program", "./broken")
	for range 2 { // a failed step is out of date
		_, err := run(t, dir, broken)
		if err == nil {
			t.Fatal("a program that does not compile was built")
		}
		for _, want := range []string{"building the broken program", "undefined: undefined"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("want an error with %q, got %v", want, err)
			}
		}
	}
}

// TestEveryToolIsBuilt checks that the steps build exactly the programs that test/tools pins.
func TestEveryToolIsBuilt(t *testing.T) {
	file := filepath.Join(root, "test", "tools", "go.mod")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := modfile.Parse(file, data, nil)
	if err != nil {
		t.Fatal(err)
	}
	var pinned, built []string
	for _, tool := range parsed.Tool {
		pinned = append(pinned, tool.Path)
	}
	steps, err := build.For(root, build.Tests)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		if step.Pinned {
			built = append(built, step.Packages...)
		}
	}
	slices.Sort(pinned)
	slices.Sort(built)
	if diff := cmp.Diff(pinned, built); diff != "" {
		t.Errorf("programs (-pinned +built):\n%s", diff)
	}
}

// TestFirstVerdictNeedsOneProgram checks that a newcomer waits for nothing else.
func TestFirstVerdictNeedsOneProgram(t *testing.T) {
	for _, purpose := range []build.Purpose{build.Archive, build.Demo, build.ControllerDemo, build.Tests, build.Release} {
		steps, err := build.For(root, purpose)
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"./cmd/oc-preflight"}; !slices.Equal(steps[0].Packages, want) || (len(steps) == 1) != (purpose == build.Archive) {
			t.Errorf("for %s: first %v of %d steps, want %v", purpose, steps[0].Packages, len(steps), want)
		}
	}
	if _, err := build.For(root, "lunch"); err == nil || !strings.Contains(err.Error(), `"lunch"`) {
		t.Errorf("want an error that names the purpose, got %v", err)
	}
}

func TestMissingProgramNamesTheRemedy(t *testing.T) {
	if _, err := build.Program("no-such-program"); err == nil || !strings.Contains(err.Error(), "run `make tools`") {
		t.Errorf("want an error with the command that builds it, got %v", err)
	}
}

// Several test binaries compile the same package at the same time, and the program of an
// unchanged package is linked once.
func TestCompileKeepsTheProgram(t *testing.T) {
	compile := func() os.FileInfo {
		path, err := build.Compile(t.Context(), "test/release/testdata/hello")
		if err != nil {
			t.Error(err)
			return nil
		}
		file, err := os.Stat(path)
		if err != nil {
			t.Error(err)
		}
		return file
	}
	first := compile()
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if again := compile(); first != nil && again != nil && !os.SameFile(first, again) {
				t.Error("the program of an unchanged package was linked again")
			}
		})
	}
	all.Wait()
}
