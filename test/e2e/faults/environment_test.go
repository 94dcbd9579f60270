package faults_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/test/faults"
	"github.com/openshift/update-preflight/test/prometheus"
	"github.com/openshift/update-preflight/test/zoo"
)

// recordNamespace is the namespace of run records and Leases.
const recordNamespace = "openshift-cluster-version"

// suite is the state that all environments share.
type suite struct {
	client     kubernetes.Interface
	monitoring string
	observer   *podObserver
	table      *table

	mutex   sync.Mutex
	free    map[checks][]environment
	created int
}

// environment is a release for one trial, with a namespace of its own.
type environment struct {
	*suite
	version, namespace, pullSpec string
}

// checks describes the checks of an environment.
type checks struct {
	// first is the ending of the first check.
	first string
	// onPods is true if they run in containers, and false if their node is simulated.
	onPods bool
}

// The endings of the first check of an environment.
const (
	// slow ends after three seconds.
	slow = "slow"
	// patient ends after releaseCheck.
	patient = "patient"
)

// animals returns the checks of a release.
func (c checks) animals(namespace string) map[string]zoo.Animal {
	return zoo.Pair(zoo.Animal{Ending: c.first, Namespace: namespace, Simulated: !c.onPods})
}

func newSuite(t *testing.T) *suite {
	t.Helper()
	client, err := kubernetes.NewForConfig(local.Config)
	if err != nil {
		t.Fatal(err)
	}
	return &suite{
		client: client, observer: newPodObserver(t, client), table: &table{},
		monitoring: prometheus.Constant(t, 200, `{"status":"success","data":{"alerts":[]}}`).URL,
	}
}

// createEnvironments creates an environment with each of these checks. It replaces
// ClusterVersion and all earlier environments, so no run may be in progress.
func (s *suite) createEnvironments(t *testing.T, wanted ...checks) {
	t.Helper()
	s.free = map[checks][]environment{} // the cluster offers only the new releases
	created := make([]environment, len(wanted))
	var pushing errgroup.Group
	pushing.SetLimit(workers)
	for i, c := range wanted {
		s.created++
		created[i] = environment{suite: s, version: fmt.Sprintf("5.2.%d", s.created), namespace: fmt.Sprintf("openshift-fault-%d", s.created)}
		pushing.Go(func() (err error) {
			created[i].pullSpec, err = testCluster.Push(t.Context(), created[i].version, c.animals(created[i].namespace))
			return err
		})
	}
	if err := pushing.Wait(); err != nil {
		t.Fatal(err)
	}
	releases, namespaces := map[string]string{}, []string{}
	for i, c := range wanted {
		releases[created[i].version] = created[i].pullSpec
		namespaces = append(namespaces, created[i].namespace)
		s.free[c] = append(s.free[c], created[i])
	}
	testCluster.Offer(t, releases, namespaces...)
	for i, c := range wanted {
		if c.onPods {
			s.awaitRootCA(t, namespaces[i])
		}
	}
}

// awaitRootCA returns when a namespace has the ConfigMap that its pods require.
func (s *suite) awaitRootCA(t *testing.T, namespace string) {
	t.Helper()
	events, err := s.client.CoreV1().ConfigMaps(namespace).Watch(t.Context(), metav1.ListOptions{
		FieldSelector: "metadata.name=kube-root-ca.crt", TimeoutSeconds: new(int64(60)),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	if _, open := <-events.ResultChan(); !open {
		t.Fatalf("namespace %s has no ConfigMap kube-root-ca.crt", namespace)
	}
}

// acquire returns an unused environment with these checks.
func (s *suite) acquire(t *testing.T, wanted checks) environment {
	t.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	free := s.free[wanted]
	if len(free) == 0 {
		t.Fatalf("no environment with the checks %+v is free: create more", wanted)
	}
	s.free[wanted] = free[1:]
	return free[0]
}

// releaseCheck creates the ConfigMap that a patient check waits for.
func (e environment) releaseCheck(t *testing.T) {
	t.Helper()
	signal := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "go"}}
	_, err := e.client.CoreV1().ConfigMaps(e.namespace).Create(t.Context(), signal, metav1.CreateOptions{})
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) { // a fault may have deleted the namespace
		t.Fatal(err)
	}
}

// start starts a preflight of the release with the current version.
func (e environment) start(t *testing.T, kubeconfig string, args ...string) *program {
	t.Helper()
	return e.startTool(t, testCluster.Program(t), kubeconfig, args...)
}

// startTool starts a preflight of the release. Its time limit is more than a slow machine needs.
func (e environment) startTool(t *testing.T, tool, kubeconfig string, args ...string) *program {
	t.Helper()
	return launch(t, tool, kubeconfig, append([]string{
		"run", "--to", e.version, "-o", "json", "--prometheus", e.monitoring, "--timeout", "2h",
	}, args...)...)
}

// startProxy starts a proxy with faults in front of the API server, and returns it with
// the path of its kubeconfig.
func startProxy(t *testing.T, injected ...faults.Fault) (*faults.Proxy, string) {
	t.Helper()
	return faults.StartForTest(t, local.Config, injected...)
}

// short returns the prefix of the release's digest that labels have as their value.
func (e environment) short() string {
	_, digest, _ := strings.Cut(e.pullSpec, "@sha256:")
	return digest[:12]
}

// recordSelector selects the headers of the records of the release.
func (e environment) recordSelector() string {
	return "preflight.openshift.io/record,preflight.openshift.io/release=" + e.short()
}

// expectNoResidue verifies that the runs of the release left no objects but their records.
func (e environment) expectNoResidue(t *testing.T) {
	t.Helper()
	testCluster.ExpectOnlyRecords(t, e.pullSpec)
}

// expectExecutions verifies the number of pods of each check.
func (e environment) expectExecutions(t *testing.T, want map[string]int) {
	t.Helper()
	got := e.observer.executions(e.namespace)
	for check, executions := range want {
		if got[check] != executions {
			t.Errorf("check %s had %d pods, want %d: %v", check, got[check], executions, e.observer.history(e.namespace))
		}
	}
}

// once is one execution of each check.
func once() map[string]int { return map[string]int{"first": 1, "second": 1} }
