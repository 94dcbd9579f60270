// Package build answers: which programs of the demo and of the tests are out of
// date, and how far is their build?
//
// The programs of the local cluster are pinned by the module test/tools, so
// that packages which several of them share are compiled once. The steps of a
// build run one after the other; within a step the Go tool uses all cores.
package build

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Step builds programs that are linked with the same flags.
type Step struct {
	// Name completes the sentence "building ...".
	Name string
	// Dir is the directory of the module, relative to the root of the
	// repository.
	Dir string
	// Packages are the main packages. A program has the name of its directory,
	// without a major version, or Program if that is not empty: there is one package then.
	Packages []string
	Program  string
	// Tags are build tags, each of which excludes code.
	Tags []string
	// Variables are set at link time, as "import/path.name=value".
	Variables []string
	// Changes are those of source files that only this step has. All packages that depend on
	// such a file are compiled for this step. A pinned step has none.
	Changes []Change
	// Pinned marks programs that depend on nothing but go.mod and go.sum of
	// their module. They are not built again while these stay the same.
	Pinned bool
	// About is roughly the time of the step on two cores with an empty build
	// cache.
	About time.Duration
}

// arguments are those of "go build", with the file of the overlay if the step has changes.
func (s Step) arguments(bin, overlay string) []string {
	arguments := []string{"build", "-v", "-o", bin + string(filepath.Separator) + s.Program, "-ldflags", linkerFlags(s.Variables)}
	if overlay != "" {
		arguments = append(arguments, "-overlay", overlay)
	}
	if len(s.Tags) > 0 {
		arguments = append(arguments, "-tags", strings.Join(s.Tags, ","))
	}
	return append(arguments, s.Packages...)
}

// linkerFlags leave out symbols, and set variables.
func linkerFlags(variables []string) string {
	flags := []string{"-s", "-w"}
	for _, variable := range variables {
		flags = append(flags, "-X", variable)
	}
	return strings.Join(flags, " ")
}

// expected is About on this machine.
func (s Step) expected() time.Duration {
	return (s.About * 2 / time.Duration(runtime.NumCPU())).Round(time.Second)
}

// stampFile is the path of the stamp of the last build of a pinned step.
func (s Step) stampFile(bin string) string {
	return filepath.Join(bin, "."+strings.ReplaceAll(s.Name, " ", "-"))
}

// stamp is a digest of everything that the programs of a pinned step depend on.
func (s Step) stamp(root string) (string, error) {
	digest := sha256.New()
	fmt.Fprintln(digest, runtime.Version(), os.Getenv("GOFLAGS"), s.arguments("", ""))
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(root, s.Dir, name)) //nolint:gosec // the repository's own file
		if err != nil {
			return "", err
		}
		fmt.Fprintf(digest, "%s %d\n%s", name, len(data), data)
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}

// upToDate reports whether the programs in bin are those that the step would build. It
// is always false for a step that is not pinned: the Go tool decides on it.
func (s Step) upToDate(root, bin string) (bool, error) {
	if !s.Pinned {
		return false, nil
	}
	want, err := s.stamp(root)
	if err != nil {
		return false, err
	}
	got, err := os.ReadFile(s.stampFile(bin))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	missing := slices.ContainsFunc(s.Packages, func(pkg string) bool {
		_, err := os.Stat(filepath.Join(bin, program(pkg)))
		return err != nil
	})
	return string(got) == want && !missing, nil
}

// program returns the file name of the program of a main package.
func program(pkg string) string {
	name := path.Base(pkg)
	if len(name) > 1 && name[0] == 'v' && strings.Trim(name[1:], "0123456789") == "" {
		name = path.Base(path.Dir(pkg))
	}
	return name
}
