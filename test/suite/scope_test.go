package suite_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openshift/update-preflight/test/suite"
)

// TestScope has a repository whose tests were green at its first commit.
func TestScope(t *testing.T) {
	all, err := suite.List(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason           string
		level            suite.Level
		changed          string        // a file; none if empty
		age              time.Duration // of the green run
		whole            bool
		touched, ignored []string
		stated           string // a part of the scope's reason
	}{
		"Nothing": {reason: "nothing has changed", ignored: []string{"collector/verdict", "test/deadlock"}, stated: "no package"},
		"Package": {
			reason: "its own tests, and those of what imports it", changed: "runner/launch/place/x.go",
			touched: []string{"runner/launch/place", "runner"}, ignored: []string{"signature", "preflight-sdk", "test/drain"},
			stated: "runner/launch/place",
		},
		"Untested": {
			reason: "the nearest tests above a package without tests", changed: "cmd/oc-preflight/flagset/x.go",
			touched: []string{"cmd/oc-preflight/command"}, ignored: []string{"collector/gate"},
		},
		"Server": {
			reason: "all tests that are built from it, however far", changed: "test/release/x.go",
			touched: []string{"test/e2e", "runner"},
		},
		"Test data": {
			reason: "it belongs to the package above", changed: "collector/document/reportview/testdata/some/file",
			touched: []string{"collector/document/reportview"}, ignored: []string{"collector/verdict"},
		},
		"Text": {
			reason: "only tests without a cluster read it, and they always run", changed: "README.md",
			ignored: []string{"collector/verdict"},
		},
		"Lint":   {reason: "no test reads it", changed: ".golangci.yml", ignored: []string{"collector/verdict"}},
		"Module": {reason: "a file of no package", changed: "go.mod", whole: true, stated: "go.mod has changed since"},
		"Manifest": {
			reason: "it is not known which tests read it", changed: "manifests/base/x.yaml", whole: true,
			stated: "manifests/base/x.yaml",
		},
		"Cluster": {reason: "all tests depend on it", changed: "test/cluster/x.go", whole: true, stated: "test/cluster/x.go"},
		"Suite":   {reason: "it decides what runs", changed: "test/suite/run/x.go", whole: true},
		"Old":     {reason: "what is further away is tested once a day", age: 25 * time.Hour, whole: true, stated: "25h0m0s ago"},
		"Future":  {reason: "a clock was wrong", age: -time.Hour, whole: true},
		"Race": {
			reason: "what has changed is tested under the race detector once a day", level: suite.LevelRace,
			changed: "runner/launch/place/x.go", ignored: []string{"runner", "runner/launch/place"}, stated: "nothing, all were green",
		},
		"Race module": {reason: "a file of no package", level: suite.LevelRace, changed: "go.mod", whole: true},
		"Release": {
			reason: "its own tests have changed", level: suite.LevelRelease, changed: "test/deadlock/deadlock_test.go",
			touched: []string{"test/deadlock"}, ignored: []string{"test/modules"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.level == "" {
				tc.level = suite.LevelTest
			}
			dir := t.TempDir()
			commitIn(t, dir)
			now := time.Now()
			if ok, err := suite.RecordGreen(t.Context(), dir, tc.level, now); err != nil || !ok {
				t.Fatalf("recorded: %t, %v", ok, err)
			}
			if tc.changed != "" {
				change(t, dir, tc.changed)
			}
			scope, err := suite.ScopeOf(t.Context(), dir, tc.level, all, now.Add(tc.age).Add(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			if scope.Whole != tc.whole || tc.whole && len(scope.Packages) != len(all) || !strings.Contains(scope.Reason, tc.stated) {
				t.Errorf("%s: got whole %t, %d of %d packages, %q; want whole %t and %q", tc.reason, scope.Whole, len(scope.Packages), len(all),
					scope.Reason, tc.whole, tc.stated)
			}
			has := func(path string) bool {
				return slices.ContainsFunc(scope.Packages, func(p suite.Package) bool { return p.Path == module+path })
			}
			for _, path := range tc.touched {
				if !has(path) {
					t.Errorf("%s: %s is not among the packages to test", tc.reason, path)
				}
			}
			for _, path := range tc.ignored {
				if has(path) {
					t.Errorf("%s: %s is among the packages to test", tc.reason, path)
				}
			}
		})
	}
}

// TestScopeWithoutRecord has repositories in which the commit of the last green run is not known.
func TestScopeWithoutRecord(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, record, stated string
	}{
		"None":  {reason: "no run was recorded", stated: "no green run"},
		"Other": {reason: "another level was recorded", record: "race COMMIT " + time.Now().Format(time.RFC3339), stated: "no green run"},
		"Foreign": {
			reason: "the commit is of another history, such as one that was rebased",
			record: "test " + strings.Repeat("1", 40) + " " + time.Now().Format(time.RFC3339), stated: "not an ancestor",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			commitIn(t, dir)
			if tc.record != "" {
				change(t, dir, ".ci/green")
				write(t, filepath.Join(dir, ".ci/green"), tc.record+"\n")
			}
			scope, err := suite.ScopeOf(t.Context(), dir, suite.LevelTest, []suite.Package{{Path: module + "a"}}, time.Now())
			if err != nil || !scope.Whole || len(scope.Packages) != 1 || !strings.Contains(scope.Reason, tc.stated) {
				t.Errorf("%s: got %+v, %v, want all packages: %s", tc.reason, scope, err, tc.stated)
			}
		})
	}
}

// TestDamagedRecord has a record that cannot be read: nothing must run less because of it.
func TestDamagedRecord(t *testing.T) {
	for name, text := range map[string]string{"Fields": "test 1234\n", "Time": "test 1234 today\n"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			commitIn(t, dir)
			change(t, dir, ".ci/green")
			write(t, filepath.Join(dir, ".ci/green"), text)
			if scope, err := suite.ScopeOf(t.Context(), dir, suite.LevelTest, nil, time.Now()); err == nil {
				t.Errorf("want an error, got %+v", scope)
			}
		})
	}
}

// TestUncommittedFilesAreNotGreen verifies that a run says nothing of a commit whose files were changed.
func TestUncommittedFilesAreNotGreen(t *testing.T) {
	dir := t.TempDir()
	commitIn(t, dir)
	change(t, dir, "new.go")
	if recorded, err := suite.RecordGreen(t.Context(), dir, suite.LevelTest, time.Now()); err != nil || recorded {
		t.Errorf("recorded: %t, %v; want nothing recorded", recorded, err)
	}
}

// TestSmokeSetIsRun verifies that each package of the smoke set has the tests that it names, and is
// left out where all its tests run.
func TestSmokeSetIsRun(t *testing.T) {
	all, err := suite.List(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	lanes := suite.Smoke(nil)
	number := 0
	for lane := &lanes[0]; lane != nil; lane = lane.Next {
		number++
		test, _, _ := strings.Cut(lane.Flags[1], "/")
		test = strings.Trim(test, "^$")
		folder := strings.TrimPrefix(lane.Packages[0], module)
		if output, err := exec.CommandContext(t.Context(), "grep", "-rqE", "^func "+test+"\\(",
			filepath.Join(root, folder)).CombinedOutput(); err != nil {
			t.Errorf("%s has no test %s: %v %s", folder, test, err, output)
		}
	}
	if number == 0 || suite.Smoke(all) != nil {
		t.Errorf("%d packages in the smoke set; beside all packages it is %+v, want none", number, suite.Smoke(all))
	}
}

// commitIn makes a repository with one commit.
func commitIn(t *testing.T, dir string) {
	t.Helper()
	git(t, dir, "init", "-q")
	git(t, dir, "-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "--allow-empty", "-m", "first")
}

// change writes a new file to a repository, which is not committed.
func change(t *testing.T, dir, path string) {
	t.Helper()
	file := filepath.Join(dir, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, file, "")
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", args...)
	command.Dir = dir
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, output)
	}
}
