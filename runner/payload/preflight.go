package payload

import (
	"fmt"
	"strings"

	yaml "go.yaml.in/yaml/v3"
	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/payload/manifestdoc"
	"github.com/openshift/update-preflight/runner/payload/manifestfilter"
)

// preflight checks a document that has the annotation in the given line of the
// file. It returns the object to keep, if any, and its violation, if any.
func (m *manifests) preflight(doc manifestdoc.Document, root *yaml.Node, line int) (Object, *manifestfilter.Violation) {
	if what, line := manifestdoc.Irregular(root); what != "" {
		return nil, manifestfilter.Fail(reasonIrregularPreflight,
			fmt.Sprintf("an object with the annotation %s has %s in line %d", Annotation, what, doc.Line+line-1),
			manifestfilter.ToAuthors+"write the check without aliases and duplicate keys.")
	}
	if n := manifestdoc.Count(root); n > maxObjectNodes {
		return nil, manifestfilter.Fail(reasonPreflightTooLarge,
			fmt.Sprintf("an object with the annotation %s has %d fields and items; the limit is %d", Annotation, n, maxObjectNodes),
			manifestfilter.ToAuthors+"reduce the size of the check.")
	}
	value := manifestdoc.Child(manifestdoc.Child(manifestdoc.Child(root, "metadata"), "annotations"), Annotation)
	if misplaced := misplaced(root, value, line); misplaced != nil {
		return nil, misplaced
	}
	switch value.Value {
	case "true":
	case "false":
		return nil, nil
	default:
		return nil, manifestfilter.Fail(reasonAnnotationValue, fmt.Sprintf(
			"the annotation %s in line %d has the value %q, which is neither \"true\" nor \"false\"", Annotation, line, words.External(value.Value)),
			manifestfilter.ToAuthors+"set the value to \"true\" to run the check.")
	}
	if manifestdoc.Text(root, "apiVersion") == "" || manifestdoc.Text(root, "kind") == "" {
		return nil, manifestfilter.Fail(reasonInvalidPreflight, "an object with the annotation "+Annotation+" has no apiVersion or no kind",
			manifestfilter.ToAuthors+"validate the manifest with `oc create --dry-run=server --validate=strict`.")
	}
	object, invalid := m.decode(doc)
	if invalid != nil {
		return nil, invalid
	}
	admitted, found := m.admit(object)
	if found != nil && found.Annotation != "" {
		if key := manifestdoc.KeyOf(manifestdoc.Child(manifestdoc.Child(root, "metadata"), "annotations"), found.Annotation); key != nil {
			found.Line = doc.Line + key.Line - 1
		}
	}
	return admitted, found
}

// misplaced reports an annotation that is not a string annotation of the object. The
// cluster-version operator ignores all annotations of an object when
// any is not a string, so the check would be lost.
func misplaced(root, value *yaml.Node, line int) *manifestfilter.Violation {
	switch {
	case strings.HasSuffix(manifestdoc.Text(root, "kind"), "List"):
		return manifestfilter.Fail(reasonListNotSupported, fmt.Sprintf("a %s contains an object with the annotation %s in line %d",
			words.External(manifestdoc.Text(root, "kind")), Annotation, line),
			manifestfilter.ToAuthors+"write each object as a separate document.")
	case value == nil:
		return manifestfilter.Warn(reasonAnnotationMisplaced,
			fmt.Sprintf("%s is in line %d, but not in metadata.annotations of the object, so the check does not run", Annotation, line),
			manifestfilter.ToAuthors+"set the annotation on the Job itself.")
	case value.Kind != yaml.ScalarNode || value.Tag != "!!str":
		return manifestfilter.Fail(reasonAnnotationNotString, fmt.Sprintf("the annotation %s in line %d is not a string", Annotation, line),
			manifestfilter.ToAuthors+"quote the value: "+Annotation+`: "true".`)
	}
	return nil
}

// decode decodes the document into the type of its kind. Unknown and duplicate fields are errors.
func (m *manifests) decode(doc manifestdoc.Document) (Object, *manifestfilter.Violation) {
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, m.scheme, m.scheme,
		json.SerializerOptions{Yaml: !doc.JSON, Strict: true})
	decoded, kind, err := decoder.Decode(doc.Raw, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		return nil, manifestfilter.Fail(reasonUnsupportedKind, fmt.Sprintf("an object of %s %s has the annotation %s",
			words.External(kind.GroupVersion().String()), words.External(kind.Kind), Annotation),
			manifestfilter.ToAuthors+"use the annotation only on Jobs of batch/v1, and on ServiceAccounts, ConfigMaps, Roles, ClusterRoles "+
				"and their bindings of v1.")
	}
	object, ok := decoded.(Object)
	if err != nil || !ok {
		return nil, manifestfilter.Fail(reasonInvalidPreflight, "the object cannot be decoded: "+doc.Locate(err).Error(),
			manifestfilter.ToAuthors+"validate the manifest with `oc create --dry-run=server --validate=strict`.")
	}
	return object, nil
}

// admit applies the rules and filters for objects of preflights.
func (m *manifests) admit(object Object) (Object, *manifestfilter.Violation) {
	if misnamed := misnamed(object); misnamed != nil {
		return nil, misnamed
	}
	if _, ok := object.GetAnnotations()[deleteAnnotation]; ok {
		rejected := manifestfilter.Fail(reasonDeleteAnnotation, manifestfilter.Identity(object)+" has the annotation "+deleteAnnotation,
			manifestfilter.ToAuthors+"remove one of the two annotations.")
		rejected.Annotation = deleteAnnotation
		return nil, rejected
	}
	cluster := manifestfilter.Cluster{}
	if m.cluster != nil {
		cluster = *m.cluster
		if filtered := cluster.Filter(object); filtered != nil {
			return nil, filtered
		}
	}
	included, profiled := cluster.Include(object)
	if profiled != nil {
		return nil, profiled
	}
	if included == "" {
		return object, nil
	}
	return object, appliedByOperator(object, included)
}

// appliedByOperator warns about a Job that the cluster-version operator, which
// does not know preflights, would run during an update.
func appliedByOperator(object Object, annotation string) *manifestfilter.Violation {
	if _, ok := object.(*batchv1.Job); !ok {
		return nil
	}
	found := manifestfilter.Warn(reasonAppliedByClusterVersionOperator,
		manifestfilter.Identity(object)+" has the annotation "+annotation+", so the cluster-version operator also runs it during the update",
		manifestfilter.ToAuthors+"remove the annotation.")
	found.Annotation = annotation
	return found
}

// misnamed checks the name, and the namespace of namespaced kinds. No name is generated and no namespace defaulted.
func misnamed(object Object) *manifestfilter.Violation {
	kind := object.GetObjectKind().GroupVersionKind()
	messages := validation.IsDNS1123Subdomain(object.GetName())
	if kind.Group == rbacv1.GroupName {
		messages = roleName(object.GetName())
	}
	if len(messages) > 0 {
		return manifestfilter.Fail(reasonInvalidName,
			fmt.Sprintf("the %s has the metadata.name %q: %s", kind.Kind, words.External(object.GetName()), words.External(messages[0])),
			manifestfilter.ToAuthors+"set a valid metadata.name.")
	}
	messages = validation.IsDNS1123Label(object.GetNamespace())
	if kind.Kind == "ClusterRole" || kind.Kind == "ClusterRoleBinding" {
		messages = nil
		if object.GetNamespace() != "" {
			messages = []string{"the kind is not namespaced"}
		}
	}
	if len(messages) == 0 {
		return nil
	}
	return manifestfilter.Fail(reasonInvalidNamespace, fmt.Sprintf("the %s %q has the metadata.namespace %q: %s", kind.Kind, object.GetName(),
		words.External(object.GetNamespace()), words.External(messages[0])),
		manifestfilter.ToAuthors+"set a valid metadata.namespace on a namespaced object, and none on any other.")
}

// roleName applies the rule for names of RBAC objects, which may have colons (Kubernetes pkg/apis/rbac/validation).
func roleName(name string) []string {
	if name == "" || len(name) > validation.DNS1123SubdomainMaxLength {
		return []string{"it must have from 1 to 253 characters"}
	}
	return content.IsPathSegmentName(name)
}

// The reasons for which the content of a release is rejected.
var (
	reasonNotARelease = finding.NewReason("NotARelease", finding.Explanation{
		Meaning: "The image does not contain the files of a release.",
		Cause:   "The pull spec does not refer to a release image.",
		Remedy:  "Specify a release image: oc adm release info.",
	})
	reasonInvalidRelease = finding.NewReason("InvalidRelease", finding.Explanation{
		Meaning: "image-references or release-metadata is invalid.",
		Cause:   "The image was not built like a release image.",
		Remedy:  "Compare the digest with the announcement of the release, and mirror the release again: oc adm release mirror.",
	})
	reasonVersionMismatch = finding.NewReason("VersionMismatch", finding.Explanation{
		Meaning: "image-references and release-metadata contain different versions.",
		Cause:   "The image was not built like a release image.",
		Remedy:  "Compare the digest with the announcement of the release, and mirror the release again: oc adm release mirror.",
	})
	reasonTooManyPreflights = finding.NewReason("TooManyPreflights", finding.Explanation{
		Meaning: "The annotated objects of a release exceed the limits.",
		Cause:   "The release has too many checks, or they are too large.",
		Remedy:  "Report it to the publisher of the release.",
	})
	reasonTooManyProblems = finding.NewReason("TooManyProblems", finding.Explanation{
		Meaning: "Too many manifests of a release are invalid.",
		Cause:   "The release is malformed.",
		Remedy:  "Report it to the publisher of the release.",
	})
	ReasonTooManyAdminGates = finding.NewReason("TooManyAdminGates", finding.Explanation{
		Meaning: "The admin gates of a release exceed the limits.",
		Cause:   "The release is malformed.",
		Remedy:  "Read the gates in the release: oc adm release extract.",
	})
	reasonMetadataNotString = finding.NewReason("MetadataNotString", finding.Explanation{
		Meaning: "A value in the release metadata is not a string.",
		Cause:   "The release was built by an incompatible tool.",
		Remedy:  "Report it to the publisher of the release.",
	})
	reasonImageNotByDigest = finding.NewReason("ImageNotByDigest", finding.Explanation{
		Meaning: "The release lists an image without a digest, which its signature does not cover.",
		Cause:   "The release was built by an incompatible tool.",
		Remedy:  "Do not update to this release.",
	})
	reasonBrokenManifest = finding.NewReason("BrokenManifest", finding.Explanation{
		Meaning: "A manifest without a check cannot be parsed.",
		Cause:   "The manifest is malformed; the cluster-version operator would reject the release.",
		Remedy:  "Report it to the authors of the component.",
	})
	reasonBrokenPreflight = finding.NewReason("BrokenPreflight", finding.Explanation{
		Meaning: "A manifest that mentions the preflight annotation cannot be parsed.",
		Cause:   "The manifest is malformed, so its check cannot run.",
		Remedy:  "Report it to the authors of the component.",
	})
	reasonDuplicateManifest = finding.NewReason("DuplicateManifest", finding.Explanation{
		Meaning: "Two manifests define the same object.",
		Cause:   "The object was copied to another file.",
		Remedy:  "Report it to the authors of the component.",
	})
	reasonIrregularPreflight = finding.NewReason("IrregularPreflight", finding.Explanation{
		Meaning: "A check uses YAML that parsers may interpret differently.",
		Cause:   "The manifest has an alias or a duplicate key.",
		Remedy:  "Report it to the authors of the component: checks must not use aliases or duplicate keys.",
	})
	reasonPreflightTooLarge = finding.NewReason("PreflightTooLarge", finding.Explanation{
		Meaning: "An object of a check has too many fields.",
		Cause:   "The manifest is too large.",
		Remedy:  "Report it to the authors of the component.",
	})
	reasonAnnotationValue = finding.NewReason("AnnotationValue", finding.Explanation{
		Meaning: "The preflight annotation is neither \"true\" nor \"false\".",
		Cause:   "The manifest has a typo.",
		Remedy:  "Report it to the authors of the component: the value must be \"true\".",
	})
	reasonAnnotationNotString = finding.NewReason("AnnotationNotString", finding.Explanation{
		Meaning: "The preflight annotation is not a string.",
		Cause:   "The value is not quoted.",
		Remedy:  "Report it to the authors of the component: quote the value.",
	})
	reasonAnnotationMisplaced = finding.NewReason("AnnotationMisplaced", finding.Explanation{
		Meaning: "The preflight annotation is not among the annotations of the object.",
		Cause:   "The annotation is on the pod template or another nested object, so the check does not run.",
		Remedy:  "Report it to the authors of the component: set the annotation on the Job.",
	})
	reasonListNotSupported = finding.NewReason("ListNotSupported", finding.Explanation{
		Meaning: "A List contains a check.",
		Cause:   "The manifest combines several objects in a List.",
		Remedy:  "Report it to the authors of the component: use separate documents.",
	})
	reasonUnsupportedKind = finding.NewReason("UnsupportedKind", finding.Explanation{
		Meaning: "An object of an unsupported kind has the preflight annotation.",
		Cause:   "Only Jobs, ServiceAccounts, ConfigMaps, and roles with their bindings are supported.",
		Remedy:  "Report it to the authors of the component.",
	})
	reasonInvalidPreflight = finding.NewReason("InvalidPreflight", finding.Explanation{
		Meaning: "An object of a check cannot be decoded.",
		Cause:   "The manifest has unknown or duplicate fields, or lacks apiVersion or kind.",
		Remedy: "Report it to the authors of the component. To validate the manifest: oc create --dry-run=server " +
			"--validate=strict -f FILE.",
	})
	reasonInvalidName = finding.NewReason("InvalidName", finding.Explanation{
		Meaning: "An object of a check has no valid name.",
		Cause:   "The manifest is invalid.",
		Remedy:  "Report it to the authors of the component.",
	})
	reasonInvalidNamespace = finding.NewReason("InvalidNamespace", finding.Explanation{
		Meaning: "An object of a check has no valid namespace, or has one although its kind is cluster-scoped.",
		Cause:   "The manifest is invalid.",
		Remedy:  "Report it to the authors of the component.",
	})
	reasonDeleteAnnotation = finding.NewReason("DeleteAnnotation", finding.Explanation{
		Meaning: "The check is annotated for deletion.",
		Cause:   "The manifest is contradictory.",
		Remedy:  "Report it to the authors of the component.",
	})
	reasonAppliedByClusterVersionOperator = finding.NewReason("AppliedByClusterVersionOperator", finding.Explanation{
		Meaning: "The cluster-version operator would also run the check during the update.",
		Cause:   "The manifest has the annotation of a cluster profile.",
		Remedy:  "Report it to the authors of the component: remove the annotation.",
	})
	reasonTooManyDefinitions = finding.NewReason("TooManyDefinitions", finding.Explanation{
		Meaning: "The CustomResourceDefinitions of a release exceed the limit.",
		Cause:   "The release is malformed.",
		Remedy:  "Read the CustomResourceDefinitions in the release: oc adm release extract.",
	})
)
