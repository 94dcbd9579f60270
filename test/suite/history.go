package suite

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"
)

// History is what whole runs took on this machine.
type History struct {
	// Baseline is the first run of which no result was cached. Delete the file to record another.
	Baseline *Record `json:"baseline,omitempty"`
	// Last is the newest such run.
	Last *Record `json:"last,omitempty"`
	// Packages are the newest costs of the tests of each package, by import path.
	Packages map[string]Cost `json:"packages"`
}

// Record is what a run took.
type Record struct {
	Commit string        `json:"commit"`
	Time   time.Time     `json:"time"`
	Took   time.Duration `json:"took"`
	Used   Usage         `json:"used"`
	// Whole reports whether all tests of every promise ran, and passed.
	Whole bool `json:"whole"`
	// Cached is the number of packages whose tests did not run, since their result was cached.
	Cached int `json:"cached"`
}

// complete reports whether the run can be compared with others.
func (r Record) complete() bool { return r.Whole && r.Cached == 0 }

// Cost is what the tests of a package took.
type Cost struct {
	Took time.Duration `json:"took"`
	CPU  time.Duration `json:"cpu"`
}

// HistoryFile returns the path of the file with the history of this machine.
func HistoryFile() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "update-preflight", "suite.json"), nil
}

// ReadHistory reads the history in a file; it is empty if there is none.
func ReadHistory(path string) (History, error) {
	history := History{Packages: map[string]Cost{}}
	data, err := os.ReadFile(path) //nolint:gosec // the suite's own file
	if errors.Is(err, os.ErrNotExist) {
		return history, nil
	}
	if err != nil {
		return history, err
	}
	if err := json.Unmarshal(data, &history); err != nil {
		return history, fmt.Errorf("read %s: %w; delete it", path, err)
	}
	return history, nil
}

// Add adds a run with the costs of its packages. Others are compared with it if it was whole and no
// result was cached.
func (h *History) Add(run Record, costs map[string]Cost) {
	if !run.complete() {
		maps.Copy(h.Packages, costs)
		return
	}
	h.Packages = costs
	h.Last = &run
	if h.Baseline == nil {
		h.Baseline = &run
	}
}

// Compare states the ratio of a run to the baseline, which says something of whole runs without
// cached results only.
func (h *History) Compare(run Record) string {
	switch {
	case !run.Whole:
		return "no ratio to the baseline: not all tests were run, or not all have passed"
	case run.Cached > 0:
		return fmt.Sprintf("no ratio to the baseline: the results of %d packages were cached", run.Cached)
	case h.Baseline == nil:
		return "this run is the baseline of this machine"
	default:
		base := h.Baseline
		return fmt.Sprintf("ratio to the baseline of this machine (%s, %s): tests %.2f of the CPU s, %.2f of the time",
			base.Commit, base.Time.Format(time.DateOnly), ratio(run.Used.tests(), base.Used.tests()), ratio(run.Took, base.Took))
	}
}

// tests is the processor time of tests with their shared control planes: what does not depend on the
// build cache.
func (u Usage) tests() time.Duration { return u.Tests + u.Shared }

func ratio(a, b time.Duration) float64 { return float64(a) / float64(max(b, 1)) }

// Write replaces the file.
func (h *History) Write(path string) error {
	data, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // the cache of the user
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

// unknownTotal is the processor time of the tests of a whole run on a machine of ours, for one
// on which none has ended yet.
const unknownTotal = 50 * time.Minute

// Expected returns how long the tests of these packages take on this machine if no result is
// cached, and what the estimate is from.
func (h *History) Expected(paths []string, cores int) (took time.Duration, from string) {
	if h.Last == nil {
		return unknownTotal / time.Duration(max(1, cores)), fmt.Sprintf("estimated for %d cores: none has ended on this machine yet", cores)
	}
	var all, wanted time.Duration
	for _, cost := range h.Packages {
		all += cost.CPU
	}
	for _, path := range paths {
		wanted += h.cost(path).CPU
	}
	share := float64(wanted) / float64(max(all, 1))
	return time.Duration(share * float64(h.Last.Took)), "as the run of " + h.Last.Time.Format(time.DateOnly)
}

// cost is that of a package, and the mean of all packages for one that is not known.
func (h *History) cost(path string) Cost {
	if known, ok := h.Packages[path]; ok {
		return known
	}
	var all Cost
	for _, cost := range h.Packages {
		all.Took, all.CPU = all.Took+cost.Took, all.CPU+cost.CPU
	}
	number := time.Duration(max(1, len(h.Packages)))
	return Cost{Took: max(all.Took/number, time.Second), CPU: max(all.CPU/number, time.Second)}
}
