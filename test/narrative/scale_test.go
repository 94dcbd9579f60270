package narrative_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/test/prometheus"
)

// The public update service has 124 risks with 64 different queries. 500 is as
// many conditional updates as ClusterVersion takes.
const (
	manyTargets = 500
	manyRisks   = 124
	manyQueries = 64
	manyNodes   = 500
	// maxMemory is the most that the program may ever have, in MiB. It has 93 on an idle
	// machine; on a busy one, garbage is collected later.
	maxMemory = 112
)

// BenchmarkTargets judges all updates of a large cluster.
func BenchmarkTargets(b *testing.B) {
	s := on(b, &techPreview)
	front := crowded(b, s)
	if _, err := program(); err != nil { // built off the clock
		b.Fatal(err)
	}
	var took []float64
	var peak int
	var requests map[string]int
	for b.Loop() {
		start := time.Now()
		_, asked, memory := s.judgeAll(front)
		took = append(took, time.Since(start).Seconds())
		requests, peak = asked, max(peak, memory)
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2], "s")
	b.ReportMetric(float64(peak), "MiB-peak")
	b.ReportMetric(float64(len(requests)), "requests")
	b.ReportMetric(float64(len(front.Requests()))/float64(len(took)), "queries")
}

// Whatever the number of targets, everything is read once: each resource in
// pages, each query and the alerts.
func TestManyTargetsAreOneLook(t *testing.T) {
	t.Parallel()
	s := on(t, &techPreview)
	front := crowded(t, s)
	decided, requests, memory := s.judgeAll(front)
	if len(decided.Targets) != manyTargets {
		t.Errorf("%d targets, want %d", len(decided.Targets), manyTargets)
	}
	for _, target := range decided.Targets {
		if len(target.Verdict.Blocking) == 0 || len(target.Verdict.Undecided) > 0 {
			t.Fatalf("%s: %+v, want that half of the risks apply", target.Version, target.Verdict)
		}
	}
	asked := map[string]int{}
	for _, request := range front.Requests() {
		asked[request.Path+" "+request.Query.Get("query")]++
	}
	if len(asked) != manyQueries+1 || len(front.Requests()) != manyQueries+1 {
		t.Errorf("%d different requests of %d to the Prometheus, want %d queries and one for the alerts", len(asked), len(front.Requests()), manyQueries)
	}
	for path, count := range requests {
		if count != 1 {
			t.Errorf("%s was asked for %d times", path, count)
		}
	}
	t.Logf("requests to the API server: %v; peak memory: %d MiB", requests, memory)
	if memory > maxMemory {
		t.Errorf("peak memory of %d MiB, want %d at most", memory, maxMemory)
	}
}

// crowded makes the cluster as large as the issue is, and returns the Prometheus
// that it asks.
func crowded(tb testing.TB, s *scene) *prometheus.Front {
	tb.Helper()
	front := prometheus.Run(tb).Open(tb)
	s.monitoring = front.URL
	s.addNodes(manyNodes - 2) // there are two already
	for i := range manyRisks {
		s.state.Risks = append(s.state.Risks, numbered(i))
	}
	for i := range manyTargets {
		version := fmt.Sprintf("4.%d.%d", 18+i/(manyTargets/2), 16+i%(manyTargets/2))
		update := conditional(version, digested("f"))
		for j := range 4 { // more of them an API server does not keep
			risk := numbered((4*i + j) % manyRisks)
			update.Risks, update.RiskNames = append(update.Risks, risk), append(update.RiskNames, risk.Name)
		}
		s.state.Conditional = append(s.state.Conditional, update)
	}
	s.apply()
	return front
}

// numbered is one of many risks. Every second one applies.
func numbered(i int) configv1.ConditionalUpdateRisk {
	query := i % manyQueries
	return configv1.ConditionalUpdateRisk{
		Name: fmt.Sprintf("SomethingOfOperator%03dBreaksOnUpdate", i), URL: fmt.Sprintf("https://issues.redhat.com/browse/OCPBUGS-%05d", i),
		Message: fmt.Sprintf("Clusters in which operator %03d has seen something before may find that it is broken after the update, until it is repaired.", i),
		MatchingRules: []configv1.ClusterCondition{{Type: "PromQL", PromQL: &configv1.PromQLClusterCondition{PromQL: fmt.Sprintf(
			`topk(1, group(cluster_operator_conditions{_id="",condition="Upgradeable",name="operator-%02d"}) or vector(%d))`, query, query%2)}}},
	}
}

// addNodes makes workers, each with the images that a node reports.
func (s *scene) addNodes(count int) {
	s.t.Helper()
	nodes := kubernetes.NewForConfigOrDie(s.config).CoreV1().Nodes()
	var template corev1.Node
	if err := yaml.Unmarshal([]byte(node("worker", "worker", "v1.31.9")), &template); err != nil {
		s.t.Fatal(err)
	}
	for i := range 50 {
		template.Status.Images = append(template.Status.Images, corev1.ContainerImage{
			Names: []string{fmt.Sprintf("quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:%064d", i)}, SizeBytes: 1 << 29,
		})
	}
	template.Labels["crowd"] = ""
	s.t.Cleanup(func() {
		err := nodes.DeleteCollection(context.WithoutCancel(s.t.Context()), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "crowd"})
		if err != nil {
			s.t.Error(err)
		}
	})
	var group errgroup.Group
	group.SetLimit(16)
	for i := range count {
		group.Go(func() error {
			one := template.DeepCopy()
			one.Name = fmt.Sprintf("worker-%03d", i+1)
			_, err := nodes.Create(s.t.Context(), one, metav1.CreateOptions{}) // with its status, as kubelets do
			return err
		})
	}
	if err := group.Wait(); err != nil {
		s.t.Fatal(err)
	}
}

// judgeAll has the program judge all targets. It returns how often it asked the
// API server for what, and the most memory that it had, in MiB.
func (s *scene) judgeAll(front *prometheus.Front) (decided report.Targets, requests map[string]int, memory int) {
	s.t.Helper()
	counter := count(s.t, s.config)
	command := s.command("targets", "--prometheus", front.URL, "-o", "json")
	command.Env = append(os.Environ(), "KUBECONFIG="+counter.kubeconfig(s.t), "GOGC=100")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	stdout, err := command.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		s.t.Fatal(err)
	}
	var output bytes.Buffer
	// What it writes does not fit the pipe, so it is still there to be looked
	// at. The rusage of a child has the memory of its parent in it.
	for page := make([]byte, 64<<10); ; {
		n, err := stdout.Read(page)
		output.Write(page[:n])
		memory = max(memory, peakOf(command.Process.Pid))
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	if err := command.Wait(); err != nil {
		s.t.Fatalf("%v\n%s", err, stderr.String())
	}
	if err := json.Unmarshal(output.Bytes(), &decided); err != nil {
		s.t.Fatal(err)
	}
	return decided, counter.all(), memory
}

// peakOf is the most memory that a process has had so far, in MiB; 0 of one that
// is gone.
func peakOf(pid int) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	match := regexp.MustCompile(`VmHWM:\s*([0-9]+) kB`).FindSubmatch(status)
	if match == nil {
		return 0
	}
	kilobytes, _ := strconv.Atoi(string(match[1])) // digits only
	return kilobytes >> 10
}

// counter stands between the program and the API server, whose own metrics
// count the requests of its controllers too.
type counter struct {
	url      string
	mutex    sync.Mutex
	requests map[string]int
}

// count counts until the test ends.
func count(tb testing.TB, config *rest.Config) *counter {
	tb.Helper()
	upstream, err := url.Parse(config.Host)
	if err != nil {
		tb.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(upstream)
	if proxy.Transport, err = rest.TransportFor(config); err != nil {
		tb.Fatal(err)
	}
	c := &counter{requests: map[string]int{}}
	proxy.ModifyResponse = func(response *http.Response) error {
		// An API that was created a moment ago is not served yet.
		if code := response.StatusCode; code != http.StatusTooManyRequests && code != http.StatusServiceUnavailable {
			c.note(response.Request)
		}
		return nil
	}
	server := httptest.NewServer(proxy)
	tb.Cleanup(server.Close)
	c.url = server.URL
	return c
}

// note counts the pages of a list apart, by where they begin.
func (c *counter) note(r *http.Request) {
	asked := r.Method + " " + r.URL.Path
	if from := r.URL.Query().Get("continue"); from != "" {
		asked += " from " + from
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.requests[asked]++
}

func (c *counter) all() map[string]int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.requests
}

// kubeconfig leads to the API server through the counter.
func (c *counter) kubeconfig(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "kubeconfig")
	content := strings.ReplaceAll(`
apiVersion: v1
kind: Config
current-context: counted
clusters: [{name: counted, cluster: {server: "URL"}}]
contexts: [{name: counted, context: {cluster: counted, user: counted}}]
users: [{name: counted, user: {}}]
`, "URL", c.url)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}
