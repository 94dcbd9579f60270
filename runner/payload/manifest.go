package payload

import (
	configv1 "github.com/openshift/api/config/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/payload/imagefiles"
	"github.com/openshift/update-preflight/runner/payload/manifestdoc"
	"github.com/openshift/update-preflight/runner/payload/manifestfilter"
)

const (
	maxAnnotated = 8 << 20
	// maxKept bounds the estimated memory of all annotated objects, in bytes:
	// a list item of two bytes can become a container of half a KiB, while the
	// field of a structure adds only its line. It suffices
	// for more than five thousand Jobs like those of the SDK's guide.
	// maxObjectNodes bounds the fields and items of one object.
	maxKept        = 48 << 20
	bytesPerItem   = 600
	bytesPerNode   = 100
	maxObjectNodes = 5_000
	maxProblems    = 1_000
)

type manifests struct {
	// cluster is the cluster to filter for; nil for none.
	cluster    *manifestfilter.Cluster
	scheme     *runtime.Scheme
	references []byte
	metadata   []byte
	found      []manifestdoc.Located[Object]
	problems   []manifestdoc.Located[finding.Finding]
	gates      adminGates
	crds       definitions
	policies   definitions
	// annotated is the size of annotated objects in bytes, kept their estimated memory.
	annotated, kept int
}

func newManifests(cluster *manifestfilter.Cluster) *manifests {
	return &manifests{
		cluster: cluster, scheme: newScheme(),
		crds:     definitions{group: apiextensionsv1.GroupName, kind: "CustomResourceDefinition"},
		policies: definitions{group: configv1.GroupName, kind: "ClusterImagePolicy"},
	}
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(batchv1.SchemeGroupVersion, &batchv1.Job{})
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.ServiceAccount{}, &corev1.ConfigMap{})
	scheme.AddKnownTypes(rbacv1.SchemeGroupVersion, &rbacv1.Role{}, &rbacv1.ClusterRole{}, &rbacv1.RoleBinding{}, &rbacv1.ClusterRoleBinding{})
	return scheme
}

func (m *manifests) report(file string, at manifestdoc.Place, found *manifestfilter.Violation) {
	if found != nil {
		m.problems = append(m.problems, manifestdoc.Located[finding.Finding]{File: file, Place: at, Value: found.At(file, at)})
	}
}

// bounded reports an exceeded limit.
func (m *manifests) bounded() error {
	switch {
	case m.annotated > maxAnnotated:
		return imagefiles.Reject(reasonTooManyPreflights, "the objects with the annotation %s have more than %d bytes", Annotation, maxAnnotated)
	case m.kept > maxKept:
		return imagefiles.Reject(reasonTooManyPreflights, "the objects with the annotation %s would take more than %d bytes of memory", Annotation, maxKept)
	case len(m.problems) > maxProblems:
		return imagefiles.Reject(reasonTooManyProblems, "more than %d manifests are invalid; the first: %s", maxProblems, m.problems[0].Value.Message)
	}
	return nil
}
