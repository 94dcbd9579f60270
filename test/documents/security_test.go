package documents_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPromisesHaveTests fails for a promise of SECURITY.md without a test, and for a test that does not exist.
func TestPromisesHaveTests(t *testing.T) {
	t.Parallel()
	text := read(t, "SECURITY.md")
	_, promised, _ := strings.Cut(text, "## What is promised")
	promised, _, _ = strings.Cut(promised, "\n## ")
	_, tested, _ := strings.Cut(text, "| promise | tests |")
	tested, _, _ = strings.Cut(tested, "\n\n")
	rows := map[string]string{}
	for line := range strings.SplitSeq(tested, "\n") {
		if cells := strings.Split(line, "|"); len(cells) == 4 {
			rows[strings.TrimSpace(cells[1])] = cells[2]
		}
	}
	for _, promise := range regexp.MustCompile(`(?m)^(\d+)\. \*\*`).FindAllStringSubmatch(promised, -1) {
		if rows[promise[1]] == "" {
			t.Errorf("the promise %s has no test", promise[1])
		}
	}
	for promise, tests := range rows {
		for of := range strings.SplitSeq(tests, ";") {
			directory := regexp.MustCompile(`\]\(([^)]+)\)`).FindStringSubmatch(of)
			names := regexp.MustCompile(`Test\w+`).FindAllString(of, -1)
			if directory == nil || len(names) == 0 {
				if strings.Trim(of, " -") != "" {
					t.Errorf("the promise %s: %q names no package with its tests", promise, of)
				}
				continue
			}
			source := testsIn(t, directory[1])
			for _, name := range names {
				if !strings.Contains(source, "func "+name+"(t *testing.T) {") {
					t.Errorf("the promise %s: %s has no test %s", promise, directory[1], name)
				}
			}
		}
	}
}

// testsIn is the source of the tests of a package.
func testsIn(t *testing.T, directory string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", directory, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(source)
	}
	return all.String()
}
