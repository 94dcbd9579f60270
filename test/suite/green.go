package suite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Level is a part of the tests that passes or fails as a whole.
type Level string

// The levels that a change has to pass before it lands.
const (
	// LevelTest are the tests of every promise: "make test".
	LevelTest Level = "test"
	// LevelRace are the tests with clusters under the race detector: "make test-race".
	LevelRace Level = "race"
	// LevelRelease are the oracles and the tests of what is released: "make test-release".
	LevelRelease Level = "release"
)

// greenFile has a line for each level: its name, the newest commit at which all of its tests passed,
// and the time of their end. It is committed, so that the next change is compared with that commit,
// whichever machine it lands from.
const greenFile = ".ci/green"

// green is the newest run of a level in which all tests passed.
type green struct {
	commit string
	time   time.Time
}

// readGreen reads the runs by level; there are none without the file.
func readGreen(root string) (map[Level]green, error) {
	path := filepath.Join(root, greenFile)
	file, err := os.Open(path) //nolint:gosec // the repository's own file
	if errors.Is(err, os.ErrNotExist) {
		return map[Level]green{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	runs := map[Level]green{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		const want = 3
		if len(fields) != want {
			return nil, fmt.Errorf("%s: %q: want LEVEL COMMIT TIME", path, lines.Text())
		}
		ended, err := time.Parse(time.RFC3339, fields[2])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		runs[Level(fields[0])] = green{fields[1], ended}
	}
	return runs, lines.Err()
}

// RecordGreen records that all tests of a level have passed at the commit that is checked out. It
// records nothing, and reports false, if a file differs from that commit, but for the record itself.
func RecordGreen(ctx context.Context, root string, level Level, now time.Time) (bool, error) {
	changed, err := git(ctx, root, "status", "--porcelain", "--", ".", ":!"+greenFile)
	if err != nil || changed != "" {
		return false, err
	}
	commit, err := git(ctx, root, "rev-parse", "HEAD")
	if err != nil {
		return false, err
	}
	runs, err := readGreen(root)
	if err != nil {
		return false, err
	}
	runs[level] = green{commit, now.UTC()}
	var text strings.Builder
	for _, each := range slices.Sorted(maps.Keys(runs)) {
		fmt.Fprintf(&text, "%s %s %s\n", each, runs[each].commit, runs[each].time.Format(time.RFC3339))
	}
	path := filepath.Join(root, greenFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // a folder of the repository
		return false, err
	}
	return true, os.WriteFile(path, []byte(text.String()), 0o644) //nolint:gosec // a file of the repository
}
