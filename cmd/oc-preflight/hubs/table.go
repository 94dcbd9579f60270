package hubs

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/runner/fleet/wave"
	"github.com/openshift/update-preflight/signature/localfile"
)

// maxTable bounds the file of a table, in bytes: 5 000 rows with many causes.
const maxTable = 256 << 20

// notSigned is said of every gate that a file decides.
const notSigned = "the table is a file that is not signed: who may write it decides"

// readTable are the clusters in the file of a table about a version, of which rows older than maxAge
// do not count.
func readTable(path, to string, maxAge time.Duration, now time.Time) ([]wave.Progress, error) {
	table, err := parseTable(path)
	if err != nil {
		return nil, fmt.Errorf("--table %s: %w", path, err)
	}
	clusters, err := wave.OfTable(table, to, maxAge, now)
	if err != nil {
		return nil, fmt.Errorf("--table %s: %w", path, err)
	}
	return clusters, nil
}

func parseTable(path string) (fleet.Table, error) {
	file, err := localfile.OpenRegular(path)
	if err != nil {
		return fleet.Table{}, input.Errorf("it cannot be read: %w", err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	text, err := io.ReadAll(io.LimitReader(file, maxTable+1))
	switch {
	case err != nil:
		return fleet.Table{}, input.Errorf("it cannot be read: %w", err)
	case len(text) > maxTable:
		return fleet.Table{}, input.Errorf("it is larger than %d MiB", maxTable>>20)
	}
	var table fleet.Table
	if err := json.Unmarshal(text, &table); err != nil {
		return fleet.Table{}, input.Errorf("it is no JSON that \"fleet run -o json\" or \"fleet targets -o json\" has written: %w", err)
	}
	return table, nil
}
