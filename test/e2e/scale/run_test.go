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

// timeout limits each run.
const timeout = "55m"

// measurement has the costs of a run of preflight or kubectl.
type measurement struct {
	// verdict is the time from the start of the program to its verdict, all to its end;
	// late is the time from the end of the last container to the verdict.
	verdict, all, late time.Duration
	// programCPU is the CPU time of the program, clusterCPU that of each component of
	// the cluster until the verdict.
	programCPU time.Duration
	clusterCPU map[string]time.Duration
	// peak is the peak memory of the program, in MiB.
	peak float64
	// until and after are the requests until the verdict and after it.
	until, after counts
	phases       []phase
	decided      report.Report
}

// preflight runs all n checks of the release at a time.
func (e *environment) preflight(n int) measurement {
	e.tb.Helper()
	path, err := program()
	if err != nil {
		e.tb.Fatal(err)
	}
	command := exec.CommandContext(e.tb.Context(), path, "run", "--as", admin, "--to", to, "--prometheus", e.monitoring,
		"--parallelism", strconv.Itoa(n), "--timeout", timeout, "--no-cache", "-o", "json")
	command.Env = append(os.Environ(), "KUBECONFIG="+e.Kubeconfig)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	stdout, err := command.StdoutPipe()
	if err != nil {
		e.tb.Fatal(err)
	}
	observed, stop := e.observe("preflight.openshift.io/run")
	defer stop()
	cpu, counted := e.cpuTimes(), e.counts()
	r := measurement{}
	start := time.Now()
	if err := command.Start(); err != nil {
		e.tb.Fatal(err)
	}
	peak := watchMemory(command.Process.Pid)
	decodeErr := json.NewDecoder(stdout).Decode(&r.decided)
	at := time.Now()
	r.clusterCPU, r.until = elapsed(e.cpuTimes(), cpu), e.counts().since(counted)
	_, _ = io.Copy(io.Discard, stdout) // until it ends
	err = command.Wait()
	r.all, r.peak, r.programCPU = time.Since(start), peak(), used(command.ProcessState)
	if decodeErr != nil || err != nil {
		e.tb.Fatalf("cannot read the report: %v; oc-preflight: %v\n%s", decodeErr, err, tail(stderr.String()))
	}
	r.after = e.counts().since(counted).since(r.until)
	r.verdict, r.late = at.Sub(start), at.Sub(observed.lastContainer(n))
	r.phases = observed.phases(start, at)
	return r
}

// used returns the CPU time of a process that has ended.
func used(state *os.ProcessState) time.Duration { return state.UserTime() + state.SystemTime() }

// elapsed returns the CPU times between then and now.
func elapsed(now, then map[string]time.Duration) map[string]time.Duration {
	for name := range now {
		now[name] -= then[name]
	}
	return now
}

// tail returns the end of the output of a program.
func tail(output string) string {
	return output[max(0, len(output)-2000):]
}

// file writes the manifests of the Jobs for kubectl, and returns the path.
func (e *environment) file(c checks) string {
	e.tb.Helper()
	var documents []string
	for i := range c.count {
		job := c.job(i)
		job.Labels = map[string]string{"bench": "kubectl"}
		job.Spec.Template.Labels = job.Labels
		job.Spec.Template.Spec.Containers[0].Image = e.image
		text, err := yaml.Marshal(job)
		if err != nil {
			e.tb.Fatal(err)
		}
		documents = append(documents, string(text))
	}
	path := filepath.Join(e.tb.TempDir(), "jobs.yaml")
	if err := os.WriteFile(path, []byte(strings.Join(documents, "---\n")), 0o600); err != nil {
		e.tb.Fatal(err)
	}
	return path
}

// kubectl creates the Jobs of the file and waits until all n are complete. Their deletion
// is not measured.
func (e *environment) kubectl(file string, n int) measurement {
	e.tb.Helper()
	observed, stop := e.observe("bench=kubectl")
	defer stop()
	cpu, counted := e.cpuTimes(), e.counts()
	r := measurement{}
	start := time.Now()
	call := func(arguments ...string) string {
		command := exec.CommandContext(e.tb.Context(), filepath.Join(root, "bin", "kubectl"), append([]string{"--as", admin}, arguments...)...)
		command.Env = append(os.Environ(), "KUBECONFIG="+e.Kubeconfig)
		var out bytes.Buffer
		command.Stdout, command.Stderr = &out, &out
		if err := command.Start(); err != nil {
			e.tb.Fatal(err)
		}
		peak := watchMemory(command.Process.Pid)
		if err := command.Wait(); err != nil {
			e.tb.Fatalf("kubectl %s: %v\n%s", arguments[0], err, tail(out.String()))
		}
		r.programCPU, r.peak = r.programCPU+used(command.ProcessState), max(r.peak, peak())
		return out.String()
	}
	call("create", "-f", file)
	out := call("wait", "-n", namespace, "job", "-l", "bench=kubectl", "--for=condition=complete", "--timeout="+timeout)
	at := time.Now()
	if got := strings.Count(out, "condition met"); got != n {
		e.tb.Fatalf("kubectl waited for %d Jobs, want %d", got, n)
	}
	r.clusterCPU, r.until = elapsed(e.cpuTimes(), cpu), e.counts().since(counted)
	r.verdict, r.late = at.Sub(start), at.Sub(observed.lastContainer(n))
	r.phases = observed.phases(start, at)
	e.clear("bench=kubectl")
	return r
}

// clear deletes the Jobs with a label, and their pods, until none is left.
func (e *environment) clear(label string) {
	e.tb.Helper()
	background := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
	labeled := metav1.ListOptions{LabelSelector: label}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		// A request that times out is repeated.
		_ = e.client.BatchV1().Jobs(namespace).DeleteCollection(e.tb.Context(), background, labeled)
		_ = e.client.CoreV1().Pods(namespace).DeleteCollection(e.tb.Context(), metav1.DeleteOptions{}, labeled)
		if e.left(label) == 0 {
			return
		}
		select {
		case <-ticker.C:
		case <-e.tb.Context().Done():
			e.tb.Fatal(e.tb.Context().Err())
		}
	}
}

// left returns the number of Jobs and pods with a label.
func (e *environment) left(label string) int {
	e.tb.Helper()
	jobs, err := e.client.BatchV1().Jobs(namespace).List(e.tb.Context(), metav1.ListOptions{LabelSelector: label})
	if err != nil {
		e.tb.Fatal(err)
	}
	pods, err := e.client.CoreV1().Pods(namespace).List(e.tb.Context(), metav1.ListOptions{LabelSelector: label})
	if err != nil {
		e.tb.Fatal(err)
	}
	return len(jobs.Items) + len(pods.Items)
}
