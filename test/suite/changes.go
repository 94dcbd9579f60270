package suite

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// changes are the files that differ from a commit, also where that is not committed, relative to the
// root of the repository, with slashes.
func changes(ctx context.Context, root, since string) ([]string, error) {
	changed, err := git(ctx, root, "diff", "--name-only", "--no-renames", "-z", since)
	if err != nil {
		return nil, err
	}
	added, err := git(ctx, root, "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return nil, err
	}
	split := func(c rune) bool { return c == 0 }
	return slices.Concat(strings.FieldsFunc(changed, split), strings.FieldsFunc(added, split)), nil
}

// foundation are the folders and files on which the tests of all packages depend, besides files that
// belong to no package.
func foundation() []string {
	return []string{".ci", "test/build", "test/cluster", "test/process", "test/suite", "test/tools"}
}

// untested are the files of no package on which no test depends: "make lint" reads them.
func untested() []string {
	return []string{greenFile, ".gitignore", ".golangci.yml", "LICENSE"}
}

// foldersOf returns the folders of the packages to which the files belong. A file belongs to the package in whose
// folder it is, or in the nearest one above. Text in Markdown above all packages is read by tests that need no cluster, and they
// always run. The cause is the first file on which all tests depend, or which belongs to no package.
func foldersOf(files []string, all []Package) (folders []string, cause string) {
	known := map[string]bool{}
	for _, p := range all {
		for folder := range p.folders {
			known[folder] = folder != "."
		}
	}
	for _, file := range files {
		if slices.Contains(untested(), file) {
			continue
		}
		folder := path.Dir(file)
		for folder != "." && !known[folder] {
			folder = path.Dir(folder)
		}
		everything := slices.ContainsFunc(foundation(), func(f string) bool { return file == f || strings.HasPrefix(file, f+"/") })
		switch {
		case folder == "." && path.Ext(file) == ".md":
		case folder == ".", everything:
			return nil, file
		case !slices.Contains(folders, folder):
			folders = append(folders, folder)
		}
	}
	return folders, ""
}

// concerned returns the packages with tests of these folders, and those that import one of them or
// whose tests do. What is further away is tested by the smoke set, and by each whole run.
func concerned(all []Package, folders []string) []Package {
	return slices.DeleteFunc(slices.Clone(all), func(p Package) bool {
		return !slices.ContainsFunc(folders, func(folder string) bool { return p.near[folder] })
	})
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", args...) //nolint:gosec // our own arguments
	command.Dir = dir
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.TrimSpace(string(output)), nil
}
