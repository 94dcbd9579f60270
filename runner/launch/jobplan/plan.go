package jobplan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"
	"unicode"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/credential"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/manifestpolicy"
	"github.com/openshift/update-preflight/runner/payload"
)

// Plan is the objects that one run creates.
type Plan struct {
	Run Run
	// Checks are in the order of the draft.
	Checks []Check
	// Supporting are the temporary copies that the checks need, bindings last.
	Supporting []payload.Object

	// Copies are the copies of the cluster's ServiceAccounts, by the copy.
	Copies map[inventory.Reference]Copy
	// ClusterRoles are the rules of the cluster's roles that the release binds, by name;
	// UnreadRoles is the error of reading them.
	ClusterRoles map[string][]rbacv1.PolicyRule
	UnreadRoles  error
	// Secrets are the reviews of the Secrets and ConfigMaps that the checks read, from when they were validated.
	Secrets map[inventory.Reference]credential.Review
}

// Copy is a temporary copy of a ServiceAccount that is not of the release.
type Copy struct {
	Original inventory.Reference
	Objects  []payload.Object
	// Omitted describes read access of the original that the copy lacks.
	Omitted []string
	// Unread is why the copy has no permissions: the permissions of the original may not be read.
	Unread error
	Failed error
}

// Without returns the plan without checks of these names, and what only they need.
func (p Plan) Without(names []string) Plan {
	p.Checks = slices.DeleteFunc(slices.Clone(p.Checks), func(check Check) bool { return slices.Contains(names, check.Name) })
	p.prune()
	return p
}

// prune removes the supporting objects that no check needs.
func (p *Plan) prune() {
	needed := map[inventory.Reference]bool{}
	for _, check := range p.Checks {
		for _, ref := range check.Needs {
			needed[ref] = true
		}
	}
	var kept []payload.Object
	for _, object := range p.Supporting {
		if object != nil && needed[inventory.ReferenceTo(object)] {
			kept = append(kept, object)
		}
	}
	p.Supporting = kept
}

// Check is one Job of a release that conforms to the policy.
type Check struct {
	// Name is "<Component>.<JobName>" in CamelCase, unique in its release. The names
	// of the Job's findings start with the part before the dot.
	Name string
	// Component is the name in the release, File the name of the manifest's file.
	Component, File string
	// Framed is true when the author promised a result in the SDK's format:
	// annotation preflight.openshift.io/result: framed of the Job.
	Framed bool
	// Serial is true when the check must not run concurrently with other serial
	// checks of its component: annotation preflight.openshift.io/serial: "true" of the Job.
	Serial bool
	// Job is the author's in a Draft, and the one to create in a Plan.
	Job *batchv1.Job

	// Needs are the supporting objects that must exist first.
	Needs []inventory.Reference
	// Exceeded describes the quotas that had too little left for the pod when the check
	// was validated; empty for none.
	Exceeded string
	// Site is true for a check of the site instead of the release.
	Site bool
	// Side is the cluster of a hosted cluster in which the Job runs.
	Side check.Side
}

// Prefix is the part of the check's name before the dot, with which the names of its findings start.
func (c Check) Prefix() string {
	prefix, _, _ := strings.Cut(c.Name, ".")
	return prefix
}

// Account is the ServiceAccount that the check runs as.
func (c Check) Account() inventory.Reference {
	return inventory.Refer("ServiceAccount", c.Job.Namespace, AccountOf(c.Job.Spec.Template.Spec))
}

// checkName is "<Component>.<JobName>", a valid name for the acceptRisks of ClusterVersion: ^[A-Z][A-Za-z0-9.-]*$.
func checkName(component, job string) string {
	prefix := camelCase(component)
	switch {
	case prefix == "":
		prefix = "Release"
	case prefix[0] < 'A' || prefix[0] > 'Z':
		prefix = "C" + prefix
	}
	if name := camelCase(job); name != "" {
		return prefix + "." + name
	}
	return prefix
}

// camelCase joins the words of text, each with a capital first letter.
func camelCase(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return !isWord(r) })
	for i, word := range words {
		words[i] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
}

func isWord(r rune) bool {
	return r <= unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// head is the first n bytes of text.
func head(text string, n int) string {
	return text[:min(n, len(text))]
}

// eachReference calls visit for every reference of a pod to a Secret that its
// containers can read, or to a kind of object that a release may contain, with a
// pointer to the name. The kubelet alone reads image pull secrets.
func eachReference(spec *corev1.PodSpec, visit func(kind string, name *string)) {
	visit("ServiceAccount", &spec.ServiceAccountName)
	for i := range spec.Volumes {
		eachVolumeReference(&spec.Volumes[i].VolumeSource, visit)
	}
	for i := range spec.InitContainers {
		eachContainerReference(&spec.InitContainers[i], visit)
	}
	for i := range spec.Containers {
		eachContainerReference(&spec.Containers[i], visit)
	}
}

func eachVolumeReference(source *corev1.VolumeSource, visit func(kind string, name *string)) {
	if source.ConfigMap != nil {
		visit(inventory.ConfigMapKind, &source.ConfigMap.Name)
	}
	if source.Secret != nil {
		visit(inventory.SecretKind, &source.Secret.SecretName)
	}
	if source.Projected == nil {
		return
	}
	for _, projection := range source.Projected.Sources {
		if projection.ConfigMap != nil {
			visit(inventory.ConfigMapKind, &projection.ConfigMap.Name)
		}
		if projection.Secret != nil {
			visit(inventory.SecretKind, &projection.Secret.Name)
		}
	}
}

func eachContainerReference(container *corev1.Container, visit func(kind string, name *string)) {
	for _, from := range container.EnvFrom {
		if from.ConfigMapRef != nil {
			visit(inventory.ConfigMapKind, &from.ConfigMapRef.Name)
		}
		if from.SecretRef != nil {
			visit(inventory.SecretKind, &from.SecretRef.Name)
		}
	}
	for _, variable := range container.Env {
		if variable.ValueFrom == nil {
			continue
		}
		if selected := variable.ValueFrom.ConfigMapKeyRef; selected != nil {
			visit(inventory.ConfigMapKind, &selected.Name)
		}
		if selected := variable.ValueFrom.SecretKeyRef; selected != nil {
			visit(inventory.SecretKind, &selected.Name)
		}
	}
}

// ImagesOf are the images of the containers and volumes of a Job.
func ImagesOf(job *batchv1.Job) []string {
	spec := job.Spec.Template.Spec
	var images []string
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		images = append(images, container.Image)
	}
	for _, volume := range spec.Volumes {
		if volume.Image != nil {
			images = append(images, volume.Image.Reference)
		}
	}
	return images
}

func referencesOf(job *batchv1.Job) []inventory.Reference {
	spec := job.Spec.Template.Spec // a copy, whose ServiceAccount may be set
	spec.ServiceAccountName = accountName(spec)
	var found []inventory.Reference
	eachReference(&spec, func(kind string, name *string) {
		found = append(found, inventory.Refer(kind, job.Namespace, *name))
	})
	return found
}

func (c catalog) referredBy(job *batchv1.Job) []inventory.Reference {
	return slices.DeleteFunc(referencesOf(job), func(ref inventory.Reference) bool { return c.manifests[ref] == nil })
}

// DefaultAccount is the ServiceAccount of pods that name none.
const DefaultAccount = "default"

// AccountOf returns the name of the ServiceAccount that a pod runs as.
func AccountOf(spec corev1.PodSpec) string { return cmp.Or(accountName(spec), DefaultAccount) }

func accountName(spec corev1.PodSpec) string {
	if spec.ServiceAccountName == "" {
		return spec.DeprecatedServiceAccount
	}
	return spec.ServiceAccountName
}

// Secrets returns the Secrets and ConfigMaps that the containers of a Job read, in the order of the manifest, each once.
func Secrets(job *batchv1.Job) []inventory.Reference {
	var secrets []inventory.Reference
	spec := job.Spec.Template.Spec
	eachReference(&spec, func(kind string, name *string) {
		secret := inventory.Refer(kind, job.Namespace, *name)
		if credential.Holds(secret) && !slices.Contains(secrets, secret) {
			secrets = append(secrets, secret)
		}
	})
	return secrets
}

// NamedSecrets returns the Secrets and ConfigMaps that rules allow an account to read by their names, in a
// namespace or, without one, in all.
func NamedSecrets(namespace string, rules []rbacv1.PolicyRule) []inventory.Reference {
	var secrets []inventory.Reference
	for _, kind := range []string{inventory.SecretKind, inventory.ConfigMapKind} {
		for _, name := range manifestpolicy.Named(rules, credential.Resource(kind)) {
			if secret := inventory.Refer(kind, namespace, name); credential.Holds(secret) {
				secrets = append(secrets, secret)
			}
		}
	}
	return secrets
}

const (
	// annotationResult is set by authors: with the value "framed" the check promises a result in the SDK's format.
	annotationResult = label.Prefix + "result"
	resultFramed     = "framed"
	// annotationSerial is set by authors: of the Jobs of a component with the value
	// "true", one runs at a time. Any other value means no.
	annotationSerial = label.Prefix + "serial"
	serialTrue       = "true"

	annotationStart    = label.Prefix + "start-time"
	annotationDigest   = label.Prefix + "payload-digest"
	annotationManifest = label.Prefix + "manifest"
	annotationVersion  = label.Prefix + "release-version"
	annotationTool     = label.Prefix + "tool-version"
)

// Run is one preflight of one target in one cluster. A preflight of a hosted cluster consists of two, with the same ID:
// one in the guest and one in the management cluster.
type Run struct {
	ID string
	// From is the cluster's version, Target the release to update to.
	From   string
	Target update.Release
	// StartTime and Deadline bound the run.
	StartTime, Deadline time.Time
	// ToolVersion is the version of the tool, for the annotations of the objects.
	ToolVersion string
	// Namespace is the only namespace in which the run has objects: in the management cluster of a hosted cluster, the
	// namespace of its control plane. It is empty in the target cluster.
	Namespace string
}

// Side is the cluster of a hosted cluster in which the Jobs run.
func (r Run) Side() check.Side {
	if r.Namespace != "" {
		return check.Management
	}
	return check.Guest
}

// Suffix is the suffix of the names of the run's objects: the first ten hex digits of its ID.
func (r Run) Suffix() string { return label.Suffix(r.ID) }

// labels are on every object of the run. The allow-list of author labels is
// empty: no check depends on a label of its objects, and other controllers act on
// labels. For example, rbac.authorization.k8s.io/aggregate-to-view adds the rules of
// a ClusterRole to the role view.
func (r Run) labels(component string) map[string]string {
	labels := map[string]string{
		label.Run:       r.ID,
		label.Release:   label.ReleaseValue(r.Target.Digest()),
		label.Component: label.Value(component),
	}
	if r.Side() == check.Management {
		labels[label.ControlPlane] = r.Namespace
	}
	return labels
}

// podLabels are the labels of the pods. The network policies that HyperShift creates in the namespace of a control
// plane keep pods without its label from the API server of the management cluster (hypershift-operator
// network_policies.go, management-kas).
func (r Run) podLabels(component string) map[string]string {
	labels := r.labels(component)
	if r.Side() == check.Management {
		labels[hypershift.LabelManagementAccess] = "true"
	}
	return labels
}

// annotations are those about the origin of an object. The allow-list of author
// annotations is empty for the same reason, except for Jobs and their pods: for
// example, serviceaccounts.openshift.io/oauth-redirecturi.NAME makes a
// ServiceAccount an OAuth client. A check that needs an injected certificate
// bundle refers to an existing ConfigMap of its namespace.
func (r Run) annotations(file string) map[string]string {
	annotations := map[string]string{
		annotationStart:    words.Time(r.StartTime),
		annotationDigest:   r.Target.Digest(),
		annotationManifest: file,
		annotationVersion:  r.Target.Version,
	}
	if r.ToolVersion != "" {
		annotations[annotationTool] = r.ToolVersion
	}
	return annotations
}

// Meta returns the metadata of an object without a manifest in the release.
func (r Run) Meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: r.labels("preflight"), Annotations: r.annotations("")}
}

const (
	// maxName bounds the name of a Job so that the names of its pods, which are six
	// characters longer, fit the 63 of a host name. The Job controller would cut off
	// the suffix of longer names.
	maxName    = 57
	hashDigits = 5
)

// Suffixed is the author's name with the suffix of the run. A name that is too long
// is shortened, with a hash of the whole name so that it stays unique.
func (r Run) Suffixed(name string) string {
	suffix := "-" + r.Suffix()
	if len(name)+len(suffix) <= maxName {
		return name + suffix
	}
	sum := sha256.Sum256([]byte(name))
	suffix = "-" + head(hex.EncodeToString(sum[:]), hashDigits) + suffix
	return strings.TrimRight(head(name, maxName-len(suffix)), "-.") + suffix
}
