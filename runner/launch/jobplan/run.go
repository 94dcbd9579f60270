package jobplan

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/label"
)

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

// Run is one preflight of one target in one cluster. That of a hosted cluster has two, with the same ID:
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
	// Namespace is the only one in which the run has objects: in the management cluster of a hosted cluster,
	// that of its control plane. It is empty in the cluster that is judged.
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

// podLabels are those of the pods. The network policies that HyperShift creates in the namespace of a
// control plane keep pods without its label from the API server of the management cluster
// (hypershift-operator network_policies.go, management-kas).
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
