// Package launch answers: how are the Jobs of a release created in this cluster, and
// deleted again?
//
// [NewDraft] is pure: it reads the checks of a release, and rejects those that
// violate the policy for manifests. [Draft.Bind] returns the [Plan] of one run. A
// [Launcher] creates its objects: Validate sends every object as a dry run before the
// first is created, Prepare creates the temporary copies of the supporting objects,
// Start creates one Job, and Cleanup deletes all objects of a run, given only its ID.
//
// A check never runs as an existing ServiceAccount: CopyAccounts replaces it by a
// temporary copy that only reads. Guard denies the writes of the run's pods besides, and
// GuardChanged reports whether it stayed in force.
//
// The names of all objects depend on the release and the ID of the run only. A
// runner that continues the run of another therefore creates the same objects:
// existing ones are adopted if they equal the plan, by their content and not by their
// labels. Any other object of a planned name is a finding of the checks that need it,
// and is not deleted by that runner. A version of this tool that plans other objects
// does not adopt those of an earlier one.
//
// An object is of a run if it has the run's label and a name with the run's suffix:
// the first can be added to any object, the second cannot. Objects with the label
// alone are never deleted. An object that was created with a name of the run is
// deleted by a later Cleanup, also if another client created it.
//
// The pods of checks have the default priority of the cluster, so they preempt only
// pods of lower priority. Their requests for CPU and memory are not limited: a check
// that requests more than any node has free waits, and an autoscaler may add nodes
// for it.
package launch

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/payload"
)

// maxParallel bounds the concurrent requests.
const maxParallel = 32

// Launcher creates and deletes the objects of runs in one cluster. Its methods may
// be called concurrently.
type Launcher struct {
	client   kubernetes.Interface
	metadata metadata.Interface
	// starting bounds the Jobs that are created concurrently: thousands of
	// concurrent requests would use memory without being faster.
	starting chan struct{}

	mutex sync.Mutex
	// created are the objects that were created or adopted, ended those of them that
	// End has deleted, present those that Resume has found, foreign those that differ
	// from the plan; by the ID of the run.
	created, ended, present, foreign objectSets
	// guards has the state of each guard by the ID of the run.
	guards sync.Map
}

// objectSets are sets of objects, with their UIDs, by the ID of a run.
type objectSets map[string]map[preflight.Object]types.UID

// New returns a Launcher. The clients should have no rate limit
// (rest.Config.QPS -1): the requests of a run are few and bounded.
func New(client kubernetes.Interface, objects metadata.Interface) *Launcher {
	return &Launcher{
		client: client, metadata: objects, starting: make(chan struct{}, maxParallel),
		created: objectSets{}, ended: objectSets{}, present: objectSets{}, foreign: objectSets{},
	}
}

// Created returns the objects that this Launcher has created or adopted for a run,
// sorted. The pods, which Kubernetes creates, are not included.
func (l *Launcher) Created(runID string) []preflight.Object {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return slices.SortedFunc(maps.Keys(l.created[runID]), compareObjects)
}

func compareObjects(a, b preflight.Object) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// UID returns the UID of the Job of a check that this Launcher has created, or
// adopted after comparing it with the plan; empty before. Another Job of that name is
// not the run's.
func (l *Launcher) UID(check Check) types.UID {
	k, err := kindOf(check.Job)
	if err != nil {
		return ""
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.created[check.Job.Labels[label.Run]][k.object(check.Job)]
}

// note adds an object to one of the sets.
func (l *Launcher) note(sets objectSets, runID string, object preflight.Object, uid types.UID) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if sets[runID] == nil {
		sets[runID] = map[preflight.Object]types.UID{}
	}
	sets[runID][object] = uid
}

// isForeign is true for an object, or the pod of a Job, that differs from the plan.
func (l *Launcher) isForeign(runID string, object metav1.Object) bool {
	uids := []types.UID{object.GetUID()}
	if controller := metav1.GetControllerOfNoCopy(object); controller != nil {
		uids = append(uids, controller.UID)
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, uid := range l.foreign[runID] {
		if slices.Contains(uids, uid) {
			return true
		}
	}
	return false
}

// isPresent is true for an object that Resume has found.
func (l *Launcher) isPresent(k kind, object payload.Object) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	_, present := l.present[object.GetLabels()[label.Run]][k.object(object)]
	return present
}

// forget removes an object from those that Resume has found.
func (l *Launcher) forget(object payload.Object) {
	if k, err := kindOf(object); err == nil {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		delete(l.present[object.GetLabels()[label.Run]], k.object(object))
	}
}

// doAll calls all functions, at most maxParallel concurrently, and returns their
// errors in the same order.
func doAll(requests []func() error) []error {
	errs := make([]error, len(requests))
	slots := make(chan struct{}, maxParallel)
	var pending sync.WaitGroup
	for i, request := range requests {
		slots <- struct{}{}
		pending.Go(func() {
			defer func() { <-slots }()
			errs[i] = request()
		})
	}
	pending.Wait()
	return errs
}
