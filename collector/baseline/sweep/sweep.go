// Package sweep answers: which objects of all kinds does a cluster have, and which problems do they report?
//
// [Read] lists each served kind whose objects have a status once, except the kinds with a row in package baseline,
// which are read in a special way.
package sweep

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/baseline/health"
	"github.com/openshift/update-preflight/collector/baseline/ownership"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot"
)

// Options select what [Read] reads.
type Options struct {
	Now    time.Time
	Owners ownership.Owners
	// Definitions are the names of the CustomResourceDefinitions whose kinds have a status: some have it without a subresource.
	Definitions map[string]bool
	// Only are the kinds that are read; nil for all.
	Only map[baseline.Kind]bool
	// Keep gets each object, and Deleting the key of each that is being deleted, one at a time; nil for no use of these.
	Keep     func(baseline.Key, baseline.Object)
	Deleting func(baseline.Key)
}

// Swept is the result of [Read].
type Swept struct {
	APIs   map[baseline.Kind]baseline.API
	Unread map[baseline.Kind]error
	// Occupied are the kinds that have objects.
	Occupied map[baseline.Kind]bool
}

const (
	// parallelism bounds the lists that are read at a time.
	parallelism = 8
	// maxOfKind bounds the objects of a kind that are read.
	maxOfKind = 20_000
)

// Read reads the objects. The error is about the served APIs; the error of a list is in the result.
func Read(ctx context.Context, cluster *snapshot.Cluster, options Options) (Swept, error) {
	served, err := cluster.Served(ctx)
	if err != nil {
		return Swept{}, err
	}
	made := Swept{APIs: map[baseline.Kind]baseline.API{}, Unread: map[baseline.Kind]error{}, Occupied: map[baseline.Kind]bool{}}
	archived := !slices.ContainsFunc(served, func(r snapshot.Resource) bool { return r.Status }) // which has no subresources
	var mutex sync.Mutex
	var group errgroup.Group
	group.SetLimit(parallelism)
	for _, each := range served {
		kind := baseline.KindOf(each.Group, each.Kind)
		wanted := each.Status || options.Definitions[each.GroupResource().String()] || archived && isCustom(each.Group)
		if !wanted || elsewhere(each, kind) || options.Only != nil && !options.Only[kind] {
			continue
		}
		group.Go(func() error {
			(&reading{cluster: cluster, resource: each, kind: kind, options: options, mutex: &mutex, swept: made}).read(ctx)
			return nil
		})
	}
	_ = group.Wait() // each has its error
	return made, ctx.Err()
}

// reading is the reading of one resource.
type reading struct {
	cluster  *snapshot.Cluster
	resource snapshot.Resource
	// kind is the kind of its objects; an archive may have only the names of the resources.
	kind    baseline.Kind
	options Options
	// mutex is held for what all readings share.
	mutex *sync.Mutex
	swept Swept
}

func (r *reading) read(ctx context.Context) {
	watched, missing := gap.Watch(ctx)
	err := r.cluster.Each(watched, r.resource.GroupVersionResource, maxOfKind, r.keep)
	if err == nil {
		err = missing.Err()
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.resource.Kind == "" {
		return
	}
	r.swept.APIs[r.kind] = baseline.API{Version: r.resource.GroupVersion().String(), Resource: r.resource.Resource}
	if err != nil {
		r.swept.Unread[r.kind] = fmt.Errorf("could not list the %s: %w", r.resource.GroupResource(), err)
	}
}

func (r *reading) keep(object *unstructured.Unstructured) {
	if r.resource.Kind == "" {
		r.resource.Kind = object.GetKind()
		r.kind = baseline.KindOf(r.resource.Group, r.resource.Kind)
	}
	if r.kind.Known() {
		return
	}
	key := baseline.Key{Kind: r.kind, Namespace: object.GetNamespace(), Name: object.GetName()}
	deleting := object.GetDeletionTimestamp() != nil
	var made baseline.Object
	if !deleting {
		made = objectOf(object, r.resource, r.options)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.swept.Occupied[r.kind] = true
	if deleting {
		if r.options.Deleting != nil {
			r.options.Deleting(key)
		}
		return
	}
	r.options.Keep(key, made)
}

// isCustom reports whether an API group is none of Kubernetes itself.
func isCustom(group string) bool {
	return strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io")
}

// elsewhere reports whether objects are read in a way of their own, or are parts of others by design: a Pod is its workload, a
// ReplicaSet its Deployment, an Event the past, and a Project its Namespace. APIRequestCounts, of which each has a day of counts, state
// no health.
func elsewhere(of snapshot.Resource, kind baseline.Kind) bool {
	if kind.Known() {
		return true
	}
	return slices.Contains([]string{
		"pods", "replicasets.apps", "events", "events.events.k8s.io", "namespaces",
		"projects.project.openshift.io", "secrets", "configmaps", "apirequestcounts.apiserver.openshift.io",
	}, of.GroupResource().String())
}

func objectOf(object *unstructured.Unstructured, resource snapshot.Resource, options Options) baseline.Object {
	made := health.Of(object, options.Now)
	Describe(&made, object, resource.GroupResource(), options.Owners)
	made.Refs = refs(object.Object["spec"], object.GetNamespace())
	if resource.Status { // without the subresource, each change of the status changes it, too
		made.Generation = object.GetGeneration()
	}
	return made
}

// Describe adds to an object what its metadata show: its identity, its controller, and whether it belongs to the
// release.
func Describe(made *baseline.Object, object metav1.Object, resource schema.GroupResource, owners ownership.Owners) {
	made.UID = digest(object.GetUID())
	made.Release = owners.Proves(resource, object)
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		made.Owner = KeyOf(*owner, object.GetNamespace())
	} else if references := object.GetOwnerReferences(); len(references) > 0 {
		made.Owner = KeyOf(references[0], object.GetNamespace())
	}
}

// KeyOf is the key of an owner of an object in a namespace.
func KeyOf(owner metav1.OwnerReference, namespace string) baseline.Key {
	group, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return baseline.Key{}
	}
	return baseline.Key{Kind: baseline.KindOf(group.Group, owner.Kind), Namespace: namespace, Name: owner.Name}
}

func digest(uid types.UID) string {
	if uid == "" {
		return ""
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(uid)) // it never fails
	return strconv.FormatUint(uint64(sum.Sum32()), 36)
}

// maxRefs and maxDepth bound the references of an object.
const (
	maxRefs  = 20
	maxDepth = 10
)

// refs are the objects that a spec names: by a kind and a name, as scaleTargetRef does, or as a Service.
func refs(spec any, namespace string) []baseline.Key {
	found := map[baseline.Key]bool{}
	var walk func(value any, field string, depth int)
	walk = func(value any, field string, depth int) {
		if depth > maxDepth || len(found) >= maxRefs {
			return
		}
		switch of := value.(type) {
		case map[string]any:
			if key, ok := refOf(of, field, namespace); ok {
				found[key] = true
			}
			for _, inner := range slices.Sorted(maps.Keys(of)) {
				walk(of[inner], inner, depth+1)
			}
		case []any:
			for _, inner := range of {
				walk(inner, field, depth+1)
			}
		}
	}
	walk(spec, "", 0)
	return slices.SortedFunc(maps.Keys(found), baseline.Key.Compare)
}

func refOf(of map[string]any, field, namespace string) (baseline.Key, bool) {
	name, _ := of["name"].(string)
	kind, _ := of["kind"].(string)
	api, _ := of["apiVersion"].(string)
	if inner, _ := of["namespace"].(string); inner != "" {
		namespace = inner
	}
	if kind == "" && strings.EqualFold(field, "service") {
		kind = string(baseline.Service)
	}
	group, err := schema.ParseGroupVersion(api)
	if name == "" || kind == "" || err != nil {
		return baseline.Key{}, false
	}
	if stated, _ := of["group"].(string); stated != "" {
		group.Group = stated
	}
	return baseline.Key{Kind: baseline.KindOf(group.Group, kind), Namespace: namespace, Name: name}, true
}
