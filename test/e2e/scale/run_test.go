package scale_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/report"
)

// patience is longer than anything here takes.
const patience = "55m"

// ran is what a run of either program took.
type ran struct {
	// verdict is from the start of the program until it had said its verdict,
	// all until it had ended, late from the end of the last container to the
	// verdict.
	verdict, all, late time.Duration
	// own is the CPU time of the program, work that of the cluster until the
	// verdict.
	own  time.Duration
	work map[string]time.Duration
	// peak is the most memory that the program had, in MiB.
	peak float64
	// until and after are the requests until the verdict and after it.
	until, after counts
	phases       []phase
	// decided and said are the report and the standard error.
	decided report.Report
	said    string
}

// preflight runs all checks of the release, as many at a time as there are.
func (p *place) preflight(n int) ran {
	p.tb.Helper()
	path, err := program()
	if err != nil {
		p.tb.Fatal(err)
	}
	command := exec.CommandContext(p.tb.Context(), path, "run", "--as", admin, "--to", to, "--prometheus", p.monitoring,
		"--parallelism", strconv.Itoa(n), "--timeout", patience, "--no-cache", "-o", "json")
	command.Env = append(os.Environ(), "KUBECONFIG="+p.Kubeconfig)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	stdout, err := command.StdoutPipe()
	if err != nil {
		p.tb.Fatal(err)
	}
	seen, stop := p.observe("preflight.openshift.io/run")
	defer stop()
	worked, counted := p.work(), p.counts()
	r := ran{}
	start := time.Now()
	if err := command.Start(); err != nil {
		p.tb.Fatal(err)
	}
	peak := watchMemory(command.Process.Pid)
	failed := json.NewDecoder(stdout).Decode(&r.decided)
	at := time.Now()
	r.work, r.until = lessWork(p.work(), worked), p.counts().since(counted)
	_, _ = io.Copy(io.Discard, stdout) // until it ends
	err = command.Wait()
	r.all, r.peak, r.said, r.own = time.Since(start), peak(), stderr.String(), used(command.ProcessState)
	if failed != nil || err != nil {
		p.tb.Fatalf("%v, %v\n%s", failed, err, tail(r.said))
	}
	r.after = p.counts().since(counted).since(r.until)
	r.verdict, r.late = at.Sub(start), at.Sub(seen.lastContainer(n))
	r.phases = seen.phases(start, at)
	return r
}

// used is the CPU time that a process has had.
func used(state *os.ProcessState) time.Duration { return state.UserTime() + state.SystemTime() }

func lessWork(now, then map[string]time.Duration) map[string]time.Duration {
	for name := range now {
		now[name] -= then[name]
	}
	return now
}

// tail is the end of what a program said.
func tail(said string) string {
	return said[max(0, len(said)-2000):]
}

// file writes the Jobs as they would be applied without preflight.
func (p *place) file(c checks) string {
	p.tb.Helper()
	var documents []string
	for i := range c.count {
		job := c.job(i)
		job.Labels = map[string]string{"bench": "kubectl"}
		job.Spec.Template.Labels = job.Labels
		job.Spec.Template.Spec.Containers[0].Image = p.image
		text, err := yaml.Marshal(job)
		if err != nil {
			p.tb.Fatal(err)
		}
		documents = append(documents, string(text))
	}
	path := filepath.Join(p.tb.TempDir(), "jobs.yaml")
	if err := os.WriteFile(path, []byte(strings.Join(documents, "---\n")), 0o600); err != nil {
		p.tb.Fatal(err)
	}
	return path
}

// kubectl creates the Jobs of the file and waits until all n are complete. They
// are deleted again off the clock.
func (p *place) kubectl(file string, n int) ran {
	p.tb.Helper()
	seen, stop := p.observe("bench=kubectl")
	defer stop()
	worked, counted := p.work(), p.counts()
	r := ran{}
	start := time.Now()
	call := func(arguments ...string) string {
		command := exec.CommandContext(p.tb.Context(), filepath.Join(root, "bin", "kubectl"), append([]string{"--as", admin}, arguments...)...)
		command.Env = append(os.Environ(), "KUBECONFIG="+p.Kubeconfig)
		var out bytes.Buffer
		command.Stdout, command.Stderr = &out, &out
		if err := command.Start(); err != nil {
			p.tb.Fatal(err)
		}
		peak := watchMemory(command.Process.Pid)
		if err := command.Wait(); err != nil {
			p.tb.Fatalf("kubectl %s: %v\n%s", arguments[0], err, tail(out.String()))
		}
		r.own, r.peak = r.own+used(command.ProcessState), max(r.peak, peak())
		return out.String()
	}
	call("create", "-f", file)
	out := call("wait", "-n", namespace, "job", "-l", "bench=kubectl", "--for=condition=complete", "--timeout="+patience)
	at := time.Now()
	if got := strings.Count(out, "condition met"); got != n {
		p.tb.Fatalf("kubectl waited for %d Jobs, want %d", got, n)
	}
	r.work, r.until = lessWork(p.work(), worked), p.counts().since(counted)
	r.verdict, r.late = at.Sub(start), at.Sub(seen.lastContainer(n))
	r.phases = seen.phases(start, at)
	p.clear("bench=kubectl")
	return r
}

// clear deletes the Jobs with a label, and their pods, until none is left.
func (p *place) clear(label string) {
	p.tb.Helper()
	background := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
	these := metav1.ListOptions{LabelSelector: label}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		// A request that takes too long is made again.
		_ = p.client.BatchV1().Jobs(namespace).DeleteCollection(p.tb.Context(), background, these)
		_ = p.client.CoreV1().Pods(namespace).DeleteCollection(p.tb.Context(), metav1.DeleteOptions{}, these)
		if p.left(label) == 0 {
			return
		}
		select {
		case <-ticker.C:
		case <-p.tb.Context().Done():
			p.tb.Fatal(p.tb.Context().Err())
		}
	}
}

// left is how many Jobs and pods with a label there are.
func (p *place) left(label string) int {
	p.tb.Helper()
	jobs, err := p.client.BatchV1().Jobs(namespace).List(p.tb.Context(), metav1.ListOptions{LabelSelector: label})
	if err != nil {
		p.tb.Fatal(err)
	}
	pods, err := p.client.CoreV1().Pods(namespace).List(p.tb.Context(), metav1.ListOptions{LabelSelector: label})
	if err != nil {
		p.tb.Fatal(err)
	}
	return len(jobs.Items) + len(pods.Items)
}
