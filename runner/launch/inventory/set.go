package inventory

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Set is a set of objects of runs, with their UIDs.
type Set struct {
	mutex sync.Mutex
	// objects are by the ID of the run.
	objects map[string]map[preflight.Object]types.UID
}

func newSet() *Set { return &Set{objects: map[string]map[preflight.Object]types.UID{}} }

// Add adds an object of a run.
func (s *Set) Add(run string, object preflight.Object, uid types.UID) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.objects[run] == nil {
		s.objects[run] = map[preflight.Object]types.UID{}
	}
	s.objects[run][object] = uid
}

// Delete removes an object of a run.
func (s *Set) Delete(run string, object preflight.Object) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.objects[run], object)
}

// UID returns the UID of an object of a run; false if it is not in the set.
func (s *Set) UID(run string, object preflight.Object) (types.UID, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	uid, found := s.objects[run][object]
	return uid, found
}

// Of returns the objects of a run, sorted.
func (s *Set) Of(run string) []preflight.Object {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.SortedFunc(maps.Keys(s.objects[run]), Compare)
}

// HasUID reports whether an object of a run has one of the UIDs.
func (s *Set) HasUID(run string, uids ...types.UID) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, uid := range s.objects[run] {
		if slices.Contains(uids, uid) {
			return true
		}
	}
	return false
}

// Compare orders objects by kind, namespace and name.
func Compare(a, b preflight.Object) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}
