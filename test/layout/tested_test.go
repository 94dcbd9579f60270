package layout_test

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxUntested is the number of lines from which on a package has tests.
const maxUntested = 300

// testsOf is the line of a test file that names packages which its tests cover, too: at least seven of ten statements,
// as go test -coverpkg measures.
var testsOf = regexp.MustCompile(`(?m)^// Tests of: (.*)$`)

// TestEveryPackageIsTested checks that a package of more than maxUntested lines has a test file, or that the test file
// of another package names it in a line "// Tests of: ONE, ANOTHER".
func TestEveryPackageIsTested(t *testing.T) {
	lines, tested, named := measured(t)
	for _, dir := range slices.Sorted(maps.Keys(lines)) {
		if lines[dir] > maxUntested && !tested[dir] && len(named[dir]) == 0 {
			t.Errorf("package %s has %d lines and no test: add a test file, or name it in the test file of the package whose tests cover "+
				"it: // Tests of: %[1]s", dir, lines[dir])
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(named)) {
		by := strings.Join(named[dir], " and ")
		switch {
		case lines[dir] == 0:
			t.Errorf("%s names package %s, which does not exist: remove it from the line", by, dir)
		case tested[dir]:
			t.Errorf("%s names package %s, which has tests of its own: remove it from the line", by, dir)
		case len(named[dir]) > 1:
			t.Errorf("%s name package %s: keep the line whose tests cover more of it", by, dir)
		}
	}
}

// measured are the lines of each package, without tests and generated code, whether it has a test file, and the test
// files that name it.
func measured(t *testing.T) (lines map[string]int, tested map[string]bool, named map[string][]string) {
	t.Helper()
	lines, tested, named = map[string]int{}, map[string]bool{}, map[string][]string{}
	for _, wing := range []string{sdk, "signature", "collector", "runner", "cmd", "examples"} {
		err := filepath.WalkDir(filepath.Join("../..", wing), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && entry.Name() == "testdata":
				return fs.SkipDir
			case entry.IsDir(), !strings.HasSuffix(path, ".go"), strings.HasPrefix(entry.Name(), "zz_generated"):
				return nil
			}
			dir, err := filepath.Rel("../..", filepath.Dir(path))
			if err != nil {
				return err
			}
			content, err := os.ReadFile(path)
			if !strings.HasSuffix(path, "_test.go") {
				lines[dir] += bytes.Count(content, []byte("\n"))
				return err
			}
			tested[dir] = true
			for _, match := range testsOf.FindAllStringSubmatch(string(content), -1) {
				for name := range strings.SplitSeq(match[1], ", ") {
					named[name] = append(named[name], filepath.Join(dir, entry.Name()))
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return lines, tested, named
}
