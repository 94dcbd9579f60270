package zoo

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
)

// Preflight is Command, but "run" gets the URL of the monitoring, and reuses no results.
func (z *Zoo) Preflight(tb testing.TB, args ...string) *exec.Cmd {
	tb.Helper()
	if args[0] == "run" {
		args = append([]string{"run", "--rerun", "--prometheus", z.Monitoring}, args[1:]...)
	}
	return z.Command(tb, args...)
}

// Report runs a preflight, which must end with this exit code, and returns its report.
func (z *Zoo) Report(tb testing.TB, code int, args ...string) report.Report {
	tb.Helper()
	got := Run(tb, z.Preflight(tb, append([]string{"run", "-o", "json"}, args...)...))
	if got.Code != code {
		tb.Fatalf("run %v: exit code %d, want %d\n%s%s", args, got.Code, code, got.Stderr, got.Stdout)
	}
	var result report.Report
	if err := json.Unmarshal([]byte(got.Stdout), &result); err != nil {
		tb.Fatalf("run %v: %v\n%s", args, err, got.Stdout)
	}
	return result
}

// ByName returns the findings of a report by name.
func ByName(result report.Report) map[string]finding.Finding {
	findings := map[string]finding.Finding{}
	for _, f := range result.Findings {
		findings[f.Name] = f
	}
	return findings
}

// SiteDirectory returns a new directory with the manifests of these checks of the site, by
// name.
func (z *Zoo) SiteDirectory(tb testing.TB, animals map[string]Animal) string {
	tb.Helper()
	directory := tb.TempDir()
	for name, animal := range animals {
		if animal.Image == "" {
			animal.Image = z.Image(tb, "zoo", "test/e2e/zoo")
		}
		text, err := yaml.Marshal(animal.Job(name))
		if err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(directory, name+".yaml"), text, 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return directory
}
