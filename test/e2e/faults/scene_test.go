package faults_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/test/faults"
	"github.com/openshift/update-preflight/test/prometheus"
	"github.com/openshift/update-preflight/test/zoo"
)

// recordNamespace is where the records of runs are.
const recordNamespace = "openshift-cluster-version"

// stage is what all scenes share.
type stage struct {
	client     kubernetes.Interface
	monitoring string
	witness    *witness
	table      *table

	mutex sync.Mutex
	free  []scene
	made  int
}

// scene is a release that is nobody else's, with a namespace of its own.
type scene struct {
	*stage
	version, namespace, pullSpec string
}

// second depends on objects that the release brings, as checks do that read.
const keeper = `{apiVersion: v1, kind: ServiceAccount, metadata: {name: keeper, namespace: CAGE, annotations: {openshift.io/preflight-check: "true"}}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: keeper, namespace: CAGE, annotations: {openshift.io/preflight-check: "true"}},
 rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: keeper, namespace: CAGE, annotations: {openshift.io/preflight-check: "true"}},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: keeper},
 subjects: [{kind: ServiceAccount, name: keeper, namespace: CAGE}]}
`

// animals are the checks of every release: one that takes a while, and one that
// answers at once.
func animals(namespace string) map[string]zoo.Animal {
	return map[string]zoo.Animal{
		"first": {Ending: "slow", Namespace: namespace},
		"second": {Ending: "pass", Namespace: namespace, Beside: keeper, Change: func(job *batchv1.Job) {
			job.Spec.Template.Spec.ServiceAccountName = "keeper"
		}},
	}
}

func newStage(t *testing.T) *stage {
	t.Helper()
	client, err := kubernetes.NewForConfig(local.Config)
	if err != nil {
		t.Fatal(err)
	}
	return &stage{
		client: client, witness: newWitness(t, client), table: &table{},
		monitoring: prometheus.Saying(t, 200, `{"status":"success","data":{"alerts":[]}}`).URL,
	}
}

// furnish makes that many more scenes. What the cluster says of itself changes
// with it, so nothing may run meanwhile.
func (s *stage) furnish(t *testing.T, more int) {
	t.Helper()
	s.free = nil // what was offered before is not any more
	releases, namespaces := map[string]string{}, []string{}
	for range more {
		s.made++
		made := scene{stage: s, version: fmt.Sprintf("5.1.%d", s.made), namespace: fmt.Sprintf("openshift-fault-%d", s.made)}
		made.pullSpec = house.Push(t, made.version, animals(made.namespace))
		releases[made.version] = made.pullSpec
		namespaces = append(namespaces, made.namespace)
		s.free = append(s.free, made)
	}
	house.Offer(t, releases, namespaces...)
}

// take hands out a scene.
func (s *stage) take(t *testing.T) scene {
	t.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.free) == 0 {
		t.Fatal("all scenes are taken: furnish more")
	}
	taken := s.free[0]
	s.free = s.free[1:]
	return taken
}

// run starts a preflight of the scene's release.
func (s scene) run(t *testing.T, kubeconfig string, args ...string) *program {
	t.Helper()
	return launch(t, kubeconfig, append([]string{
		"run", "--to", s.version, "-o", "json", "--prometheus", s.monitoring, "--timeout", "3m",
	}, args...)...)
}

// behind puts a proxy with faults before the API server, and returns it with its
// kubeconfig.
func behind(t *testing.T, wrong ...faults.Fault) (*faults.Proxy, string) {
	t.Helper()
	proxy, err := faults.Start(local.Config, wrong...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	kubeconfig := t.TempDir() + "/kubeconfig"
	if err := proxy.Kubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	return proxy, kubeconfig
}

// short is how labels name the scene's release.
func (s scene) short() string {
	_, digest, _ := strings.Cut(s.pullSpec, "@sha256:")
	return digest[:12]
}

// expectNoResidue wants nothing left of the runs of the scene but their record,
// which says that it is over.
func (s scene) expectNoResidue(t *testing.T) {
	t.Helper()
	if left := house.Left(t, "preflight.openshift.io/run,preflight.openshift.io/release="+s.short()); len(left) > 0 {
		t.Errorf("left behind: %s", strings.Join(left, ", "))
	}
	leases, err := s.client.CoordinationV1().Leases(recordNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, lease := range leases.Items {
		if strings.HasSuffix(lease.Name, s.short()) {
			t.Errorf("the claim %s is left, held by %v", lease.Name, lease.Spec.HolderIdentity)
		}
	}
	heads, err := s.client.CoreV1().ConfigMaps(recordNamespace).List(t.Context(), metav1.ListOptions{
		LabelSelector: "preflight.openshift.io/record,preflight.openshift.io/release=" + s.short(),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, head := range heads.Items {
		if phase := head.Labels["preflight.openshift.io/phase"]; phase == "Running" {
			t.Errorf("the record %s says that the run is %s", head.Name, phase)
		}
	}
}

// expectExecutions wants each check to have had that many pods.
func (s scene) expectExecutions(t *testing.T, want map[string]int) {
	t.Helper()
	got := s.witness.executions(s.namespace)
	for check, times := range want {
		if got[check] != times {
			t.Errorf("%s has run %d times, want %d: %v", check, got[check], times, s.witness.story(s.namespace))
		}
	}
}

// once is how often each check runs whose evidence is not lost.
func once() map[string]int { return map[string]int{"first": 1, "second": 1} }
