//go:build faults

package faults_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	free  map[string][]scene
	made  int
}

// scene is a release of this test only, with its own namespace.
type scene struct {
	*stage
	version, namespace, pullSpec string
}

// How the first check of a scene ends.
const (
	// slow: after three seconds.
	slow = "slow"
	// patient: when the test lets it, see letGo.
	patient = "patient"
)

// keeper is what the checks run as. It comes with the release, as for all checks
// that read.
const keeper = `{apiVersion: v1, kind: ServiceAccount, metadata: {name: keeper, namespace: CAGE, annotations: {openshift.io/preflight-check: "true"}}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: keeper, namespace: CAGE, annotations: {openshift.io/preflight-check: "true"}},
 rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: keeper, namespace: CAGE, annotations: {openshift.io/preflight-check: "true"}},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: keeper},
 subjects: [{kind: ServiceAccount, name: keeper, namespace: CAGE}]}
`

// animals are the checks of a release: one that takes a while, and one that
// answers at once.
func animals(namespace, first string) map[string]zoo.Animal {
	asKeeper := func(job *batchv1.Job) { job.Spec.Template.Spec.ServiceAccountName = "keeper" }
	return map[string]zoo.Animal{
		"first":  {Ending: first, Namespace: namespace, Change: asKeeper},
		"second": {Ending: "pass", Namespace: namespace, Change: asKeeper, Beside: keeper},
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

// furnish makes new scenes, whose first checks end like that. What the cluster
// says of itself changes with it, so nothing may run meanwhile.
func (s *stage) furnish(t *testing.T, endings ...string) {
	t.Helper()
	s.free = map[string][]scene{} // what was offered before is not any more
	made := make([]scene, len(endings))
	var pushing errgroup.Group
	pushing.SetLimit(workers)
	for i, ending := range endings {
		s.made++
		made[i] = scene{stage: s, version: fmt.Sprintf("5.2.%d", s.made), namespace: fmt.Sprintf("openshift-fault-%d", s.made)}
		pushing.Go(func() (err error) {
			made[i].pullSpec, err = house.Push(t.Context(), made[i].version, animals(made[i].namespace, ending))
			return err
		})
	}
	if err := pushing.Wait(); err != nil {
		t.Fatal(err)
	}
	releases, namespaces := map[string]string{}, []string{}
	for i, ending := range endings {
		releases[made[i].version] = made[i].pullSpec
		namespaces = append(namespaces, made[i].namespace)
		s.free[ending] = append(s.free[ending], made[i])
	}
	house.Offer(t, releases, namespaces...)
	for _, namespace := range namespaces {
		s.awaitAccount(t, namespace)
	}
}

// awaitAccount returns when a namespace has what pods in it need.
func (s *stage) awaitAccount(t *testing.T, namespace string) {
	t.Helper()
	events, err := s.client.CoreV1().ConfigMaps(namespace).Watch(t.Context(), metav1.ListOptions{
		FieldSelector: "metadata.name=kube-root-ca.crt", TimeoutSeconds: new(int64(60)),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	if _, open := <-events.ResultChan(); !open {
		t.Fatalf("namespace %s never was complete", namespace)
	}
}

// take hands out a scene whose first check ends like that.
func (s *stage) take(t *testing.T, ending string) scene {
	t.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	free := s.free[ending]
	if len(free) == 0 {
		t.Fatalf("all scenes with a %s check are taken: furnish more", ending)
	}
	s.free[ending] = free[1:]
	return free[0]
}

// letGo lets a patient check end.
func (s scene) letGo(t *testing.T) {
	t.Helper()
	sign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "go"}}
	_, err := s.client.CoreV1().ConfigMaps(s.namespace).Create(t.Context(), sign, metav1.CreateOptions{})
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) { // the namespace may be going, or gone
		t.Fatal(err)
	}
}

// run starts a preflight of the scene's release.
func (s scene) run(t *testing.T, kubeconfig string, args ...string) *program {
	t.Helper()
	return s.runWith(t, tool{}.orThis(t), kubeconfig, args...)
}

// runWith is run with another version of the tool.
func (s scene) runWith(t *testing.T, with tool, kubeconfig string, args ...string) *program {
	t.Helper()
	return launch(t, with, kubeconfig, append([]string{
		"run", "--to", s.version, "-o", "json", "--prometheus", s.monitoring, "--timeout", "4m",
	}, args...)...)
}

// behind puts a proxy with faults before the API server, and returns it with its
// kubeconfig.
func behind(t *testing.T, wrong ...faults.Fault) (*faults.Proxy, string) {
	t.Helper()
	return faults.Behind(t, local.Config, wrong...)
}

// short is how labels name the scene's release.
func (s scene) short() string {
	_, digest, _ := strings.Cut(s.pullSpec, "@sha256:")
	return digest[:12]
}

// recordSelector selects the heads of records of the scene's runs.
func (s scene) recordSelector() string {
	return "preflight.openshift.io/record,preflight.openshift.io/release=" + s.short()
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
			t.Errorf("the claim %s is left, held by %q", lease.Name, *lease.Spec.HolderIdentity)
		}
	}
	heads, err := s.client.CoreV1().ConfigMaps(recordNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: s.recordSelector()})
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
