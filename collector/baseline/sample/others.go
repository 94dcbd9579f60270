package sample

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/baseline/sweep"
)

// namespaces notes the namespaces that are being deleted: the API server marks only the namespace, and its pods, first.
func (s *sampler) namespaces(ctx context.Context) {
	found := read(ctx, s, s.cluster.Namespaces, "namespaces", baseline.Namespace)
	for i := range found {
		of := &found[i]
		if of.DeletionTimestamp != nil {
			s.state.Leaving[of.Name] = true
			continue
		}
		object := baseline.Object{Release: s.owners.Namespace(of.Name)}
		s.state.Objects[baseline.Key{Kind: baseline.Namespace, Name: of.Name}] = object
	}
}

// describe adds what the metadata of an object of this resource state.
func (s *sampler) describe(object *baseline.Object, of metav1.Object, group, resource string) {
	sweep.Describe(object, of, schema.GroupResource{Group: group, Resource: resource}, s.owners)
}

// definitions are the CustomResourceDefinitions; serving adds the Services that convert their objects.
func (s *sampler) definitions(ctx context.Context) {
	s.defined = map[string]bool{}
	found := kept(s, baseline.CustomResourceDefinition, read(ctx, s, s.cluster.Definitions, "CustomResourceDefinitions", baseline.CustomResourceDefinition))
	for i := range found {
		of := &found[i]
		s.defined[of.Name] = of.HasStatus()
		var object baseline.Object
		s.describe(&object, of, "apiextensions.k8s.io", "customresourcedefinitions")
		s.keep(baseline.Key{Kind: baseline.CustomResourceDefinition, Name: of.Name}, object)
	}
}

// others are the objects of all kinds that have no row.
func (s *sampler) others(ctx context.Context, only map[baseline.Kind]bool) {
	swept, err := sweep.Read(ctx, s.cluster, sweep.Options{Now: s.now, Owners: s.owners, Definitions: s.defined, Only: only, Keep: s.keep, Deleting: func(key baseline.Key) { s.state.Deleting[key] = true }})
	if err != nil {
		s.unread(err, everything)
		return
	}
	s.state.APIs, s.state.Occupied, s.state.Named = swept.APIs, swept.Occupied, map[baseline.Key]string{}
	kinds := map[schema.GroupResource]baseline.Kind{}
	for kind, api := range swept.APIs {
		group, _ := schema.ParseGroupVersion(api.Version) // the API server has served it
		kinds[schema.GroupResource{Group: group.Group, Resource: api.Resource}] = kind
	}
	for operator, named := range s.owners.Named {
		for _, each := range named {
			if kind := kinds[schema.GroupResource{Group: each.Group, Resource: each.Resource}]; kind != "" {
				s.state.Named[baseline.Key{Kind: kind, Namespace: each.Namespace, Name: each.Name}] = operator
			}
		}
	}
	s.state.Forbidden = map[baseline.Kind]bool{}
	for kind, cause := range swept.Unread {
		s.state.Forbidden[kind] = apierrors.IsForbidden(cause)
		if !apierrors.IsNotFound(cause) {
			s.unread(cause, kind)
		}
	}
}

// podController is what makes a pod again; false where that is not known.
func (s *sampler) podController(namespace, pod string) (baseline.Key, bool) {
	at := slices.IndexFunc(s.pods, func(each corev1.Pod) bool { return each.Namespace == namespace && each.Name == pod })
	if at < 0 {
		return baseline.Key{}, false
	}
	key, known := s.controllers[&s.pods[at]]
	return key, known
}

// everything stands for the kinds without a row, where it is not known which there are.
const everything = baseline.Kind("objects of other kinds")

// inherit notes the objects of the release by what they belong to: those of an owner that is of the release, and those of the cluster
// that a Service in a namespace of the release serves. An owner of the cluster has no namespace.
func (s *sampler) inherit() {
	for key, object := range s.state.Objects {
		object.Owner = s.existing(object.Owner)
		for i, each := range object.Refs {
			object.Refs[i] = s.existing(each)
		}
		if namespace, _, served := strings.Cut(object.Detail, "/"); served && key.Namespace == "" && baseline.RowOf(key.Kind).Served {
			object.Release = object.Release || s.owners.Namespace(namespace)
		}
		s.state.Objects[key] = object
	}
	for key, object := range s.state.Objects {
		if !object.Release && s.ofRelease(object.Owner) {
			object.Release = true
			s.state.Objects[key] = object
		}
	}
}

// existing is a key that an object has of another one, without the namespace where that is one of the cluster.
func (s *sampler) existing(key baseline.Key) baseline.Key {
	ofCluster := baseline.Key{Kind: key.Kind, Name: key.Name}
	if _, exists := s.state.Objects[ofCluster]; exists {
		return ofCluster
	}
	return key
}

// maxOwners bounds the owners of an object that are followed.
const maxOwners = 5

// ofRelease reports whether an owner, or one of that, is of the release.
func (s *sampler) ofRelease(owner baseline.Key) bool {
	for range maxOwners {
		object, exists := s.state.Objects[owner]
		if !exists || object.Release {
			return exists
		}
		owner = object.Owner
	}
	return false
}
