package results_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/fleet"
	"github.com/openshift/update-preflight/fleet/results"
	"github.com/openshift/update-preflight/fleet/roster"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func member(t *testing.T, name string) roster.Member {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".tar")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	members, _, err := roster.Archives([]string{path}, func(context.Context, string) (*cluster.Cluster, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	return members[0]
}

func open(t *testing.T, path, request string, at time.Time) *results.Directory {
	t.Helper()
	opened, err := results.Open(path, request, time.Hour, func() time.Time { return at })
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

func TestKnown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results")
	asked := member(t, "a")
	row := fleet.Row{Cluster: asked.Cluster, State: fleet.Ready, Until: "2026-11-26T12:30:00Z"}
	if err := open(t, path, "to 4.19.1", noon).Keep(asked, row); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason, request string
		at              time.Time
		of              roster.Member
		want            bool
	}{
		"Same":    {reason: "the cluster is not asked again", request: "to 4.19.1", at: noon.Add(time.Minute), of: asked, want: true},
		"Target":  {reason: "the result is about another target", request: "to 4.19.2", at: noon, of: asked},
		"Ended":   {reason: "the verdict has ended", request: "to 4.19.1", at: noon.Add(40 * time.Minute), of: asked},
		"Future":  {reason: "the clock is an hour behind: the age is unknown", request: "to 4.19.1", at: noon.Add(-time.Hour), of: asked},
		"Another": {reason: "it is another member of that name", request: "to 4.19.1", at: noon, of: member(t, "a")},
	} {
		t.Run(name, func(t *testing.T) {
			got, known := open(t, path, tc.request, tc.at).Known(tc.of)
			if known != tc.want || known && !strings.Contains(got.Evidence, "2026-11-26T12:00:00Z") {
				t.Errorf("%s: %t, %+v", tc.reason, known, got)
			}
		})
	}
}

func TestFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results")
	kept, asked := open(t, path, "r", noon), member(t, strings.Repeat("/", 300)+"name")
	if err := kept.KeepReport(asked, report.Report{}); err != nil {
		t.Fatal(err)
	}
	if err := kept.Keep(asked, fleet.Row{}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(path)
	if err != nil || len(entries) != 2 {
		t.Fatalf("%v, %v", entries, err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", entry.Name(), info.Mode(), err)
		}
		if err := os.WriteFile(filepath.Join(path, entry.Name()), []byte(`{"kind":`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, known := kept.Known(asked); known {
		t.Error("a file that is cut is no result")
	}
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := results.Open(path, "r", time.Hour, time.Now); err == nil {
		t.Error("others may write results")
	}
}
