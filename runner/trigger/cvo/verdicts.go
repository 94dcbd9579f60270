package cvo

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

// Lister reads objects from a cache, as the listers of CVO do.
type Lister[Object any] interface {
	Get(name string) (Object, error)
}

// Verdicts reads the published verdicts. Its methods may be called concurrently. The
// methods OnAdd, OnUpdate and OnDelete implement cache.ResourceEventHandler of client-go.
type Verdicts struct {
	version, published func() (any, error)
	isNotFound         func(error) bool
	changed            func()

	mutex sync.Mutex
	// installed is true once the ConfigMap was present, until it was marked as uninstalled.
	installed bool
	// events counts the events: what was read before the last one may be older than it.
	events int
}

// New reads ClusterVersion "version" and the ConfigMap, whose lister has the objects of Namespace.
// The other arguments are apierrors.IsNotFound of apimachinery, and what is called when
// the verdicts have changed; nil for nothing. The caches must have synced before the first
// update is judged: an empty one has no ConfigMap.
func New[V, M any](versions Lister[V], configMaps Lister[M], isNotFound func(error) bool, changed func()) *Verdicts {
	if changed == nil {
		changed = func() {}
	}
	return &Verdicts{
		version:    func() (any, error) { return versions.Get("version") },
		published:  func() (any, error) { return configMaps.Get(Name) },
		isNotFound: isNotFound, changed: changed,
	}
}

// Selected is the problem with the update that ClusterVersion selects, whose release has
// that version; nil if there is none.
func (v *Verdicts) Selected(version string) *Problem {
	return v.problems([]string{version}, clusterVersion.selected)[0]
}

// Offered are the problems with the available or conditional updates with these versions,
// one for each; nil for one without a problem.
func (v *Verdicts) Offered(versions []string) []*Problem {
	return v.problems(versions, clusterVersion.offered)
}

func (v *Verdicts) problems(versions []string, resolve func(clusterVersion, string) target) []*Problem {
	problems := make([]*Problem, len(versions))
	state, data, err := v.read()
	if state == absent {
		return problems
	}
	var cluster clusterVersion
	if err == nil {
		cluster, err = v.cluster()
	}
	for i, version := range versions {
		switch of := resolve(cluster, version); {
		case err != nil:
			problems[i] = of.unreadable(err)
		case state == gone:
			problems[i] = of.deleted()
		default:
			problems[i] = of.problem(data[strings.ReplaceAll(of.digest, ":", "-")])
		}
	}
	return problems
}

// state is whether the ConfigMap exists and can be read.
type state int

const (
	// absent: the preflight is not installed. gone: it was, and the ConfigMap was deleted.
	absent state = iota
	gone
	present
)

// read reads the ConfigMap. One that cannot be read is present.
func (v *Verdicts) read() (state, map[string]string, error) {
	events := v.observed()
	object, err := v.published()
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if err != nil && v.isNotFound(err) {
		if v.installed {
			return gone, nil, nil
		}
		return absent, nil, nil
	}
	if err != nil {
		return present, nil, err
	}
	var found configMap
	err = decode(object, &found)
	if v.events == events {
		v.installed = !found.isUninstalled()
	}
	if found.isUninstalled() {
		return absent, nil, nil
	}
	return present, found.Data, err
}

// observed is the number of events until now.
func (v *Verdicts) observed() int {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.events
}

// configMap has the fields of a ConfigMap that are used.
type configMap struct{ Data map[string]string }

func (c configMap) isUninstalled() bool { return c.Data[uninstalled] == "true" }

func (v *Verdicts) cluster() (clusterVersion, error) {
	var read clusterVersion
	object, err := v.version()
	if err == nil {
		err = decode(object, &read)
	}
	return read, err
}

// decode reads an object by its JSON form, which the API defines.
func decode(object, into any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("%T cannot be encoded: %w", object, err)
	}
	return json.Unmarshal(text, into)
}

// OnAdd is called with each ConfigMap that was created in Namespace.
func (v *Verdicts) OnAdd(object any, _ bool) { v.observe(object) }

// OnUpdate is called with each ConfigMap that was changed in Namespace.
func (v *Verdicts) OnUpdate(_, object any) { v.observe(object) }

// OnDelete is called with the last known state of each ConfigMap that was deleted in
// Namespace: one that was marked at once before is read here only.
func (v *Verdicts) OnDelete(object any) { v.observe(object) }

func (v *Verdicts) observe(object any) {
	named, ok := object.(interface{ GetName() string })
	if !ok || named.GetName() != Name {
		return
	}
	var found configMap
	if err := decode(object, &found); err == nil {
		v.mutex.Lock()
		v.installed = !found.isUninstalled()
		v.events++
		v.mutex.Unlock()
	}
	v.changed()
}
