package kills_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/test/faults"
	"github.com/openshift/update-preflight/test/golden"
	"github.com/openshift/update-preflight/test/kubelet"
	"github.com/openshift/update-preflight/test/prometheus"
	"github.com/openshift/update-preflight/test/zoo"
)

// present is the version of the tool.
const present = "this version"

// workers is the number of runs at a time, which mostly wait.
const workers = 8

// environment is a release for the runs of one trial, with a namespace of its own.
type environment struct {
	version, namespace, pullSpec string
}

// offer makes the cluster offer new releases, the first of which is 5.2.FIRST, and only these.
func offer(t *testing.T, first, number int) []environment {
	t.Helper()
	var all []environment
	releases, namespaces := map[string]string{}, []string{}
	for i := range number {
		e := environment{version: fmt.Sprintf("5.2.%d", first+i), namespace: fmt.Sprintf("openshift-kill-%d", first+i)}
		var err error
		if e.pullSpec, err = testCluster.Push(t.Context(), e.version, zoo.Pair(zoo.Animal{Namespace: e.namespace, Plain: true})); err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
		releases[e.version], namespaces = e.pullSpec, append(namespaces, e.namespace)
	}
	testCluster.Offer(t, releases, namespaces...)
	return all
}

// startKubelet ends the pods of the checks: that of the first one when the run has renewed its
// Lease and recorded the result of the second one, or was killed.
func (e environment) startKubelet(t *testing.T, of *client) *kubelet.Kubelet {
	t.Helper()
	node := kubelet.Start(t, testCluster.Client(t), e.namespace, 0)
	node.Held = func(pod *corev1.Pod) bool { return strings.HasPrefix(pod.Labels[batchv1.JobNameLabel], "first-") }
	node.End()
	go func() {
		of.await("PUT leases 1", "PUT configmaps 2")
		node.Free()
	}()
	return node
}

// runs returns the function that runs the preflight of the release on a cluster, with a version
// of the tool.
func (e environment) runs(t *testing.T, reached *cluster.Cluster, version string) func(context.Context) (report.Report, error) {
	t.Helper()
	find, err := monitoring.Querier{Config: local.Config}.At(prometheus.Constant(t, http.StatusOK,
		`{"status":"success","data":{"alerts":[]}}`).URL)
	if err != nil {
		t.Fatal(err)
	}
	options := runner.Options{
		Judgement: scene.Judgement{Monitoring: monitoring.New(find, monitoring.DefaultTimeout)}, Hooks: runner.Hooks{ToolVersion: version},
	}
	return func(ctx context.Context) (report.Report, error) {
		return runner.Run(ctx, reached, runner.Target{Version: e.version}, options)
	}
}

// result is the part of a report that is the same in two runs of one release.
type result struct {
	Decision string
	// Checks are the outcomes of the checks of the release, by name.
	Checks map[string]string
}

func resultOf(decided report.Report) result {
	got := result{Decision: string(decided.Verdict.Decision), Checks: map[string]string{}}
	for _, f := range decided.Findings {
		if f.Source == finding.SourceJob && f.Job != nil {
			got.Checks[f.Name] = string(f.Outcome)
		}
	}
	return got
}

// expect verifies the report of a run, that each check has had one pod for each of the runs, and that
// the runs of the release have left nothing but their records.
func (e environment) expect(t *testing.T, decided report.Report, node *kubelet.Kubelet, runs int) {
	t.Helper()
	want := result{Decision: "Ready", Checks: map[string]string{"Zoo.First": "Pass", "Zoo.Second": "Pass"}}
	if diff := cmp.Diff(want, resultOf(decided)); diff != "" {
		t.Errorf("the result (-want +got):\n%s\n%+v", diff, decided.Verdict)
	}
	if got := node.Pods(); got != runs*len(want.Checks) {
		t.Errorf("the two checks have had %d pods in %d runs", got, runs)
	}
	testCluster.ExpectOnlyRecords(t, e.pullSpec)
}

// TestKilledAtAnyWrite kills runs at each write of a run that is not killed. Its writes are
// those of a process, of which the same file is expected in test/e2e/faults. The first run in a
// cluster also creates the key of all records.
func TestKilledAtAnyWrite(t *testing.T) {
	alone := offer(t, 0, 2)
	alone[0].killAndContinue(t, trial{faults.Kill{Write: "POST secrets 1", Moment: faults.After}, present})
	writes := alone[1].complete(t)
	golden.Compare(t, "testdata/writes.txt", strings.Join(faults.Comparable(writes), "\n")+"\n")
	trials := []trial{{faults.Kill{Write: "POST jobs 2", Moment: faults.After}, "another version"}}
	for _, at := range faults.Kills(writes) {
		trials = append(trials, trial{at, present})
	}
	environments := offer(t, len(alone), len(trials))
	next := make(chan int)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := range next {
				t.Run(trials[i].String(), func(t *testing.T) { environments[i].killAndContinue(t, trials[i]) })
			}
		})
	}
	for i := range trials {
		next <- i
	}
	close(next)
	all.Wait()
}

// trial is the kill of a run, and the one after it.
type trial struct {
	at faults.Kill
	// by is the version of the tool that runs then: another one ends the run, and begins it again.
	by string
}

// String implements fmt.Stringer.
func (r trial) String() string { return fmt.Sprintf("%s, then by %s", r.at, r.by) }

// complete returns the writes of a run that is not killed.
func (e environment) complete(t *testing.T) []string {
	t.Helper()
	reached, of := connect(t, faults.Kill{})
	node := e.startKubelet(t, of)
	decided, err := e.runs(t, reached, present)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e.expect(t, decided, node, 1)
	return slices.Clone(of.writes)
}

// killAndContinue kills a run, and has another one continue it.
func (e environment) killAndContinue(t *testing.T, r trial) {
	t.Helper()
	reached, of := connect(t, r.at)
	node := e.startKubelet(t, of)
	run, ended := e.runs(t, reached, present), make(chan error, 1)
	go func() {
		_, err := run(of.killed)
		ended <- err
	}()
	select {
	case <-of.killed.Done():
	case err := <-ended:
		if of.killed.Err() != nil {
			break // by the kill
		}
		if !faults.IsOfPod(r.at.Write) {
			t.Errorf("the run ended before %s, with the error %v", r.at.Write, err)
		}
		return
	}
	testCluster.ExpireSoon(t, e.pullSpec)
	reached, _ = connect(t, faults.Kill{})
	decided, err := e.runs(t, reached, r.by)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	runs := 1
	if r.by != present {
		runs = 2 // what another version has found is not the answer of this one
	}
	e.expect(t, decided, node, runs)
}
