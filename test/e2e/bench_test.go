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
// of the same Jobs, and its whole command with kubectl and the deletion of the Jobs. Both run
// alternately, so that the load of the machine affects both. A ratio is the median of the
// pairs; preflight is faster than kubectl if it is below 1.
func BenchmarkVerdict(b *testing.B) {
	for _, size := range []struct{ n, pairs int }{{1, 5}, {20, 5}, {100, 1}} {
		b.Run(fmt.Sprintf("N=%d", size.n), func(b *testing.B) {
			animals := map[string]animal{}
			for i := range size.n {
				animals[fmt.Sprintf("pass-%02d", i)] = animal{Ending: "pass"}
			}
			publish(b, animals)
			file := writeJobs(b, animals)
			preflightRun(b) // pulls the image and fills caches
			kubectlRun(b, file, size.n)
			measured := map[string][]float64{}
			add := func(name string, value float64) { measured[name] = append(measured[name], value) }
			for b.Loop() {
				for range size.pairs {
					run, peer := preflightRun(b), kubectlRun(b, file, size.n)
					add("verdict/kubectl", run.verdict.Seconds()/peer.verdict.Seconds())
					add("end/kubectl-end", run.end.Seconds()/peer.end.Seconds())
					add("s-verdict", run.verdict.Seconds())
					add("s-end", run.end.Seconds())
					add("s-kubectl", peer.verdict.Seconds())
					add("s-kubectl-end", peer.end.Seconds())
					add("s-after-last-container", run.afterLast.Seconds())
				}
			}
			for name, values := range measured {
				b.ReportMetric(median(values), name)
			}
		})
	}
}

// durations are those of one command, from its start.
type durations struct {
	verdict, end time.Duration
	// afterLast is from the end of the last check to the verdict.
	afterLast time.Duration
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// preflightRun runs a preflight. The verdict is what it prints; at its end its objects are
// deleted.
func preflightRun(b *testing.B) durations {
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
	end := time.Since(start)
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
	return durations{verdict: at.Sub(start), end: end, afterLast: at.Sub(last)}
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

// kubectlRun creates the Jobs with kubectl, waits until all are complete, which is its
// verdict, and deletes them.
func kubectlRun(b *testing.B, file string, n int) durations {
	b.Helper()
	start := time.Now()
	testCluster.Kubectl(b, "create", "-f", file)
	out := testCluster.Kubectl(b, "wait", "-n", zooNamespace, "job", "-l", "bench=kubectl", "--for=condition=complete", "--timeout=5m")
	verdict := time.Since(start)
	if got := strings.Count(out, "condition met"); got != n {
		b.Fatalf("kubectl waited for %d Jobs, want %d:\n%s", got, n, out)
	}
	testCluster.Kubectl(b, "delete", "-f", file, "--cascade=foreground", "--wait")
	return durations{verdict: verdict, end: time.Since(start)}
}
