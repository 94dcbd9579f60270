package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/report"
)

// BenchmarkVerdict compares a preflight of N checks with kubectl create and kubectl wait
// of the same Jobs. Both run alternately, so that the load of the machine affects both.
// The ratio is the median of the pairs; preflight is faster than kubectl if it is below 1.
func BenchmarkVerdict(b *testing.B) {
	const pairs = 5
	for _, n := range []int{1, 20} {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			animals := map[string]animal{}
			for i := range n {
				animals[fmt.Sprintf("pass-%02d", i)] = animal{Ending: "pass"}
			}
			publish(b, animals)
			file := writeJobs(b, animals)
			preflightVerdict(b) // pulls the image and fills caches
			kubectlWait(b, file, n)
			var ratios, preflight, kubectl, after []float64
			for b.Loop() {
				for range pairs {
					verdict, late := preflightVerdict(b)
					wait := kubectlWait(b, file, n)
					ratios = append(ratios, verdict.Seconds()/wait.Seconds())
					preflight, kubectl = append(preflight, verdict.Seconds()), append(kubectl, wait.Seconds())
					after = append(after, late.Seconds())
				}
			}
			b.ReportMetric(median(ratios), "verdict/kubectl")
			b.ReportMetric(median(preflight), "s-verdict")
			b.ReportMetric(median(kubectl), "s-kubectl")
			b.ReportMetric(median(after), "s-after-last-container")
		})
	}
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// preflightVerdict returns the time from the start of the program to its verdict, and
// from the end of the last check to the verdict.
func preflightVerdict(b *testing.B) (verdict, late time.Duration) {
	b.Helper()
	command := preflightCommand(b, "run", "--to", to, "-o", "json")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	stdout, err := command.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	var result report.Report
	if err := json.NewDecoder(stdout).Decode(&result); err != nil {
		b.Fatalf("%v\n%s", err, stderr.String())
	}
	at := time.Now()
	if err := command.Wait(); err != nil {
		b.Fatalf("%v\n%s", err, stderr.String())
	}
	var last time.Time
	for _, f := range result.Findings {
		ended, err := time.Parse(time.RFC3339Nano, f.Evidence["ended"])
		if err == nil && ended.After(last) {
			last = ended
		}
	}
	if last.IsZero() {
		b.Fatal("no check reports when it ended")
	}
	return at.Sub(start), at.Sub(last)
}

// writeJobs writes the Jobs for kubectl to a file, and returns its path.
func writeJobs(b *testing.B, animals map[string]animal) string {
	b.Helper()
	image := testCluster.Image(b, "zoo", "test/e2e/zoo")
	var documents []string
	for _, name := range slices.Sorted(maps.Keys(animals)) {
		job := animals[name].Job(name)
		job.Labels = map[string]string{"bench": "kubectl"}
		job.Spec.Template.Spec.Containers[0].Image = image
		text, err := yaml.Marshal(job)
		if err != nil {
			b.Fatal(err)
		}
		documents = append(documents, string(text))
	}
	file := filepath.Join(b.TempDir(), "jobs.yaml")
	if err := os.WriteFile(file, []byte(strings.Join(documents, "---\n")), 0o600); err != nil {
		b.Fatal(err)
	}
	return file
}

// kubectlWait returns the time in which kubectl creates the Jobs and waits until all are
// complete. The deletion of the Jobs is not measured.
func kubectlWait(b *testing.B, file string, n int) time.Duration {
	b.Helper()
	start := time.Now()
	testCluster.Kubectl(b, "create", "-f", file)
	out := testCluster.Kubectl(b, "wait", "-n", zooNamespace, "job", "-l", "bench=kubectl", "--for=condition=complete", "--timeout=5m")
	took := time.Since(start)
	if got := strings.Count(out, "condition met"); got != n {
		b.Fatalf("kubectl waited for %d Jobs, want %d:\n%s", got, n, out)
	}
	testCluster.Kubectl(b, "delete", "-f", file, "--cascade=foreground", "--wait")
	return took
}
