package payload

import (
	"fmt"
	"strings"

	yaml "go.yaml.in/yaml/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// deleteAnnotation makes the cluster-version operator delete the object
	// (lib/resourcedelete/helper.go).
	deleteAnnotation = "release.openshift.io/delete"
	toAuthors        = "Report it to the authors of the component: "
)

// newScheme knows the kinds that may be annotated, and no other.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(batchv1.SchemeGroupVersion, &batchv1.Job{})
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.ServiceAccount{}, &corev1.ConfigMap{})
	scheme.AddKnownTypes(rbacv1.SchemeGroupVersion, &rbacv1.Role{}, &rbacv1.ClusterRole{}, &rbacv1.RoleBinding{}, &rbacv1.ClusterRoleBinding{})
	return scheme
}

// preflight judges a document that has the annotation in the given line of the
// file. It returns the object to keep, if any, and what there is to say.
func (m *manifests) preflight(doc document, root *yaml.Node, line int) (Object, *problem) {
	if what, line := irregular(root); what != "" {
		return nil, fail("IrregularPreflight", fmt.Sprintf("an object with the annotation %s has %s in line %d", Annotation, what, doc.line+line-1),
			toAuthors+"what a preflight runs must be written out, once, in full.")
	}
	if n := count(root); n > maxObjectNodes {
		return nil, fail("PreflightTooLarge", fmt.Sprintf("an object with the annotation %s has %d fields and items, and %d are the limit", Annotation, n, maxObjectNodes),
			toAuthors+"a preflight must be smaller.")
	}
	value := child(child(child(root, "metadata"), "annotations"), Annotation)
	if misplaced := misplaced(root, value, line); misplaced != nil {
		return nil, misplaced
	}
	switch value.Value {
	case "true":
	case "false":
		return nil, nil
	default:
		return nil, fail("AnnotationValue", fmt.Sprintf("the annotation %s in line %d has the value %q, which is neither \"true\" nor \"false\"", Annotation, line, oneLine(value.Value)),
			toAuthors+"the value must be \"true\" for the check to be run.")
	}
	if text(root, "apiVersion") == "" || text(root, "kind") == "" {
		return nil, fail("InvalidPreflight", "an object with the annotation "+Annotation+" has no apiVersion or no kind",
			toAuthors+"validate the manifest: oc create --dry-run=server --validate=strict -f FILE")
	}
	object, invalid := m.decode(doc)
	if invalid != nil {
		return nil, invalid
	}
	admitted, said := m.admit(object)
	if said != nil && said.annotation != "" {
		if key := keyOf(child(child(root, "metadata"), "annotations"), said.annotation); key != nil {
			said.line = doc.line + key.Line - 1
		}
	}
	return admitted, said
}

// misplaced finds annotations that no object has, or has not as a string. The
// cluster-version operator reads all annotations of an object as empty when
// one of them is no string, so that the check would be lost.
func misplaced(root, value *yaml.Node, line int) *problem {
	switch {
	case strings.HasSuffix(text(root, "kind"), "List"):
		return fail("ListNotSupported", fmt.Sprintf("a %s holds an object with the annotation %s in line %d", oneLine(text(root, "kind")), Annotation, line),
			toAuthors+"the objects must be documents of their own.")
	case value == nil:
		return warn("AnnotationMisplaced", fmt.Sprintf("%s stands in line %d, but not in metadata.annotations of the object, so that no check is run", Annotation, line),
			toAuthors+"the annotation belongs to the Job itself.")
	case value.Kind != yaml.ScalarNode || value.Tag != "!!str":
		return fail("AnnotationNotString", fmt.Sprintf("the annotation %s in line %d is not a string", Annotation, line),
			toAuthors+"put the value in quotes: "+Annotation+`: "true"`)
	}
	return nil
}

// decode reads the document into the type of its kind. Fields that the type
// does not have, and those that are there twice, are errors.
func (m *manifests) decode(doc document) (Object, *problem) {
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, m.scheme, m.scheme, json.SerializerOptions{Yaml: !doc.json, Strict: true})
	decoded, kind, err := decoder.Decode(doc.raw, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		return nil, fail("UnsupportedKind", fmt.Sprintf("an object of %s %s has the annotation %s", oneLine(kind.GroupVersion().String()), oneLine(kind.Kind), Annotation),
			toAuthors+"only Jobs of batch/v1, and ServiceAccounts, ConfigMaps, Roles, ClusterRoles and their bindings of v1, can have it.")
	}
	object, ok := decoded.(Object)
	if err != nil || !ok {
		return nil, fail("InvalidPreflight", "the object cannot be read: "+doc.locate(err).Error(),
			toAuthors+"validate the manifest: oc create --dry-run=server --validate=strict -f FILE")
	}
	return object, nil
}

// admit applies the rules for what may be kept.
func (m *manifests) admit(object Object) (Object, *problem) {
	if misnamed := misnamed(object); misnamed != nil {
		return nil, misnamed
	}
	if _, ok := object.GetAnnotations()[deleteAnnotation]; ok {
		refused := fail("DeleteAnnotation", identity(object)+" has the annotation "+deleteAnnotation, toAuthors+"what is to be deleted cannot be a preflight.")
		refused.annotation = deleteAnnotation
		return nil, refused
	}
	cluster := Cluster{}
	if m.cluster != nil {
		cluster = *m.cluster
		if filtered := cluster.filter(object); filtered != nil {
			return nil, filtered
		}
	}
	included, profiled := cluster.include(object)
	if profiled != nil {
		return nil, profiled
	}
	if included == "" {
		return object, nil
	}
	return object, appliedByOperator(object, included)
}

// appliedByOperator warns about a Job that the cluster-version operator, which
// knows of no preflights, would run in the midst of an update.
func appliedByOperator(object Object, annotation string) *problem {
	if _, ok := object.(*batchv1.Job); !ok {
		return nil
	}
	said := warn("AppliedByClusterVersionOperator", identity(object)+" has the annotation "+annotation+", with which the cluster-version operator runs it as part of the update too",
		toAuthors+"a preflight must not have the annotation.")
	said.annotation = annotation
	return said
}

// misnamed checks the name, and the namespace of the kinds that have one. No
// name is generated and no namespace assumed.
func misnamed(object Object) *problem {
	kind := object.GetObjectKind().GroupVersionKind()
	faults := validation.IsDNS1123Subdomain(object.GetName())
	if kind.Group == rbacv1.GroupName {
		faults = roleName(object.GetName())
	}
	if len(faults) > 0 {
		return fail("InvalidName", fmt.Sprintf("the %s has the metadata.name %q: %s", kind.Kind, oneLine(object.GetName()), oneLine(faults[0])),
			toAuthors+"the object needs a valid metadata.name.")
	}
	faults = validation.IsDNS1123Label(object.GetNamespace())
	if kind.Kind == "ClusterRole" || kind.Kind == "ClusterRoleBinding" {
		faults = nil
		if object.GetNamespace() != "" {
			faults = []string{"the kind has no namespaces"}
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return fail("InvalidNamespace", fmt.Sprintf("the %s %q has the metadata.namespace %q: %s", kind.Kind, object.GetName(), oneLine(object.GetNamespace()), oneLine(faults[0])),
		toAuthors+"a namespaced object needs a valid metadata.namespace, another must not have one.")
}

// roleName applies the rule for names of RBAC objects, which may have colons
// (Kubernetes pkg/apis/rbac/validation).
func roleName(name string) []string {
	if name == "" || len(name) > validation.DNS1123SubdomainMaxLength {
		return []string{"it must have from 1 to 253 characters"}
	}
	return content.IsPathSegmentName(name)
}
