package suite

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"
)

// Usage is processor time, user and system, of processes and their descendants.
type Usage struct {
	// Tests is that of the tests of all packages.
	Tests time.Duration `json:"tests"`
	// Shared is that of the shared control planes, and of listing the packages.
	Shared time.Duration `json:"shared"`
	// GoTool is that of the Go tool, with all that it starts but tests.
	GoTool time.Duration `json:"goTool"`
	// Compile and Link are parts of GoTool: that of the compilers and of the linkers.
	Compile time.Duration `json:"compile"`
	Link    time.Duration `json:"link"`
	// Compiled and Linked are how many packages and programs were built.
	Compiled int `json:"compiled"`
	Linked   int `json:"linked"`
}

// coldPackages is the number of compiled packages from which on the build cache was cold: the product,
// with its dependencies and tests, has some three thousand packages, of which a change concerns
// a few hundred.
const coldPackages = 1000

// Builds describes what was compiled and linked, and whether the build cache was cold.
func (u Usage) Builds() string {
	state := "warm"
	if u.Compiled >= coldPackages {
		state = "cold"
	}
	return fmt.Sprintf("compiled %d packages in %.0f CPU s, linked %d programs in %.0f CPU s (build cache: %s)",
		u.Compiled, u.Compile.Seconds(), u.Linked, u.Link.Seconds(), state)
}

// Used returns what the lanes that have ended used.
func (r *Runner) Used() (Usage, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	used := r.used
	if r.Tools == "" {
		return used, nil
	}
	return used, used.addTools(r.Tools)
}

// Costs returns the costs of the packages that have ended whose result was not cached, by import
// path, and how many results were cached.
func (r *Runner) Costs() (costs map[string]Cost, cached int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return maps.Clone(r.costs), r.cached
}

// addTools adds the lines that the program measure has added to a file: the name of a tool and its
// processor time.
func (u *Usage) addTools(path string) error {
	file, err := os.Open(path) //nolint:gosec // the suite's own file
	if errors.Is(err, os.ErrNotExist) {
		return nil // nothing was built
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // nothing was written
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		tool, text, _ := strings.Cut(lines.Text(), " ")
		used, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%s: %q: want TOOL DURATION", path, lines.Text())
		}
		switch tool {
		case "compile":
			u.Compile, u.Compiled = u.Compile+used, u.Compiled+1
		case "link":
			u.Link, u.Linked = u.Link+used, u.Linked+1
		}
	}
	return lines.Err()
}
