package commands_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/prometheus/procfs"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/test/prometheus"
)

// The public update service has 124 risks with 64 different queries. ClusterVersion has at most
// 500 conditional updates.
const (
	manyTargets = 500
	manyRisks   = 124
	manyQueries = 64
	manyNodes   = 500
	// maxMemory is the limit of the peak memory of the program, in MiB. The peak is 93 on an
	// idle machine; on a busy one, garbage is collected later.
	maxMemory = 112
)

// BenchmarkTargets measures "targets" for all updates of a large cluster.
func BenchmarkTargets(b *testing.B) {
	e := newEnvironment(b, &techPreview)
	front := fillCluster(b, e)
	testCluster.Program(b) // the build is not measured
	var took []float64
	var peak uint64
	var requests map[string]int
	for b.Loop() {
		start := time.Now()
		_, requested, memory := e.evaluateTargets(front)
		took = append(took, time.Since(start).Seconds())
		requests, peak = requested, max(peak, memory)
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2], "s")
	b.ReportMetric(float64(peak), "MiB-peak")
	b.ReportMetric(float64(len(requests)), "requests")
	b.ReportMetric(float64(len(front.Requests()))/float64(len(took)), "queries")
}

// Each page of a resource, each query and the alerts are requested once, whatever the number of
// targets.
func TestManyTargetsAreReadOnce(t *testing.T) {
	e := newEnvironment(t, &techPreview)
	front := fillCluster(t, e)
	result, requests, memory := e.evaluateTargets(front)
	if len(result.Targets) != manyTargets {
		t.Errorf("%d targets, want %d", len(result.Targets), manyTargets)
	}
	for _, target := range result.Targets {
		if len(target.Verdict.Blocking) == 0 || len(target.Verdict.Undecided) > 0 {
			t.Fatalf("%s: %+v, want it blocked by risks", target.Version, target.Verdict)
		}
	}
	requested := map[string]int{}
	for _, request := range front.Requests() {
		requested[request.Path+" "+request.Query.Get("query")]++
	}
	if len(requested) != manyQueries+1 || len(front.Requests()) != manyQueries+1 {
		t.Errorf("%d requests to the Prometheus, %d of them different; want %d queries and one for the alerts", len(front.Requests()),
			len(requested), manyQueries)
	}
	for path, count := range requests {
		if want := shapes(path); count != want {
			t.Errorf("%s was requested %d times, want %d", path, count, want)
		}
	}
	t.Logf("requests to the API server: %v; peak memory: %d MiB", requests, memory)
	if memory > maxMemory {
		t.Errorf("peak memory of %d MiB, want at most %d", memory, maxMemory)
	}
}

// shapes are in how many shapes a list is read, each once: what objects report of themselves, and who made them, are read
// apart from what other checks read.
func shapes(path string) int {
	for _, resource := range []string{
		"resourcequotas", "limitranges", "machineconfigpools", "clusteroperators", "machinehealthchecks",
		"machinesets",
	} {
		if strings.HasPrefix(path, "GET ") && strings.HasSuffix(path, "/"+resource) {
			return 2
		}
	}
	return 1
}

// fillCluster adds nodes, risks and conditional updates, and returns the Prometheus of the
// cluster.
func fillCluster(tb testing.TB, e *environment) *prometheus.Front {
	tb.Helper()
	front := monitoring.Load(tb).Open(tb)
	e.monitoring = front.URL
	e.addNodes(manyNodes - 2) // two nodes exist
	for i := range manyRisks {
		e.state.Risks = append(e.state.Risks, numberedRisk(i))
	}
	for i := range manyTargets {
		version := fmt.Sprintf("4.%d.%d", 18+i/(manyTargets/2), 16+i%(manyTargets/2))
		update := conditionalUpdate(version, examplePullSpec("f"))
		for j := range 4 { // the limit of the API server
			risk := numberedRisk((4*i + j) % manyRisks)
			update.Risks, update.RiskNames = append(update.Risks, risk), append(update.RiskNames, risk.Name)
		}
		e.state.Conditional = append(e.state.Conditional, update)
	}
	e.apply()
	return front
}

// numberedRisk returns one of many risks, of which every second one applies.
func numberedRisk(i int) configv1.ConditionalUpdateRisk {
	query := i % manyQueries
	return configv1.ConditionalUpdateRisk{
		Name: fmt.Sprintf("SomethingOfOperator%03dBreaksOnUpdate", i), URL: fmt.Sprintf("https://issues.redhat.com/browse/OCPBUGS-%05d", i),
		Message: fmt.Sprintf("Operator %03d may stop working after the update in clusters with an earlier failure of this operator, "+
			"until it is repaired.", i),
		MatchingRules: []configv1.ClusterCondition{{Type: "PromQL", PromQL: &configv1.PromQLClusterCondition{PromQL: fmt.Sprintf(
			`topk(1, group(cluster_operator_conditions{_id="",condition="Upgradeable",name="operator-%02d"}) or vector(%d))`, query, query%2)}}},
	}
}

// addNodes creates workers with the images that a node reports.
func (e *environment) addNodes(count int) {
	e.t.Helper()
	nodes := kubernetes.NewForConfigOrDie(e.config).CoreV1().Nodes()
	var template corev1.Node
	if err := yaml.Unmarshal([]byte(node("worker", "worker", "v1.31.9")), &template); err != nil {
		e.t.Fatal(err)
	}
	for i := range 50 {
		template.Status.Images = append(template.Status.Images, corev1.ContainerImage{
			Names: []string{fmt.Sprintf("quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:%064d", i)}, SizeBytes: 1 << 29,
		})
	}
	template.Labels["scale"] = ""
	e.t.Cleanup(func() {
		err := nodes.DeleteCollection(context.WithoutCancel(e.t.Context()), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "scale"})
		if err != nil {
			e.t.Error(err)
		}
	})
	var group errgroup.Group
	group.SetLimit(16)
	for i := range count {
		group.Go(func() error {
			one := template.DeepCopy()
			one.Name = fmt.Sprintf("worker-%03d", i+1)
			_, err := nodes.Create(e.t.Context(), one, metav1.CreateOptions{}) // with its status, as kubelets do
			return err
		})
	}
	if err := group.Wait(); err != nil {
		e.t.Fatal(err)
	}
}

// evaluateTargets runs "targets". It returns the report, the number of requests to the API
// server by method and path, and the peak memory of the program in MiB.
func (e *environment) evaluateTargets(front *prometheus.Front) (result report.Targets, requests map[string]int, memory uint64) {
	e.t.Helper()
	recorder := newRecorder(e.t, e.config)
	command := testCluster.Command(e.t, "targets", "--prometheus", front.URL, "-o", "json")
	command.Env = append(os.Environ(), "KUBECONFIG="+recorder.kubeconfig(e.t), "GOGC=") // as a user calls it: the suite sets it
	var stderr bytes.Buffer
	command.Stderr = &stderr
	stdout, err := command.StdoutPipe()
	if err != nil {
		e.t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		e.t.Fatal(err)
	}
	var output bytes.Buffer
	// The output does not fit into the pipe, so that the process still exists while it is read.
	// The rusage of a child process would include the memory of its parent.
	for page := make([]byte, 64<<10); ; {
		n, err := stdout.Read(page)
		output.Write(page[:n])
		memory = max(memory, peakOf(command.Process.Pid))
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			e.t.Fatal(err)
		}
	}
	if err := command.Wait(); err != nil {
		e.t.Fatalf("%v\n%s", err, stderr.String())
	}
	if err := json.Unmarshal(output.Bytes(), &result); err != nil {
		e.t.Fatal(err)
	}
	return result, recorder.counts(), memory
}

// peakOf returns the peak memory of a process in MiB; 0 if it has ended.
func peakOf(pid int) uint64 {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0
	}
	status, err := process.NewStatus()
	if err != nil {
		return 0
	}
	return status.VmHWM >> 20
}
