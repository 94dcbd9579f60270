// Package check answers: what is a built-in check?
//
// It is a declaration: a name, the updates that it concerns, the resources that
// it reads, and one function. Gates, risks and health checks are lists of
// declarations. Roles and permission checks are folded from what the checks
// declare, so a check that reads something new needs no other change.
package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/drain/order"
	"github.com/openshift/update-preflight/collector/drain/recreation"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
)

// The reasons for which a check does not apply to an update, or cannot compare it.
var (
	ReasonNotConcerned = finding.NewReason("NotConcerned", finding.Explanation{
		Meaning: "The check does not apply to this kind of update.",
		Cause:   "The condition that the check evaluates blocks only some updates, such as updates to another minor version.",
	})
	ReasonOwnSignal = finding.NewReason("OwnSignal", finding.Explanation{
		Meaning: "The preflight itself raised this alert, ClusterOperator condition or risk, because its last verdict was not Ready. " +
			"It never counts (package ownsignal).",
		Cause:  "The controller is configured to make CVO honor the preflight's verdicts.",
		Remedy: "None needed. The next Ready verdict clears the signal.",
	})
	ReasonUnknownKubernetesVersion = finding.NewReason("UnknownKubernetesVersion", finding.Explanation{
		Meaning: "The Kubernetes version of a release is unknown.",
		Cause:   "The release is newer than this oc-preflight.",
		Remedy:  "Use a version of oc-preflight that is at least as new as the target.",
	})
)

// Subject of a check: one update of one cluster.
type Subject struct {
	// Cluster reads each resource once for all checks and all targets.
	Cluster *snapshot.Cluster
	Update  update.Update
	// Later is true for an update that starts from a release that the cluster does not run yet: the status of the
	// cluster's own release does not concern it.
	Later bool
	// Hosted is true if the management cluster of a hosted cluster requests the update.
	Hosted bool
	// Asks says how to ask the API server about the next pods of drained controllers; nil if it is not asked.
	Asks *recreation.Asks
	// NodePools of a hosted cluster that are updated as well. They are meaningful with Hosted.
	NodePools []order.NodePool
	// Now is the time of the run by the cluster's clock.
	Now time.Time
}

// Side is the cluster that a check reads. Only a hosted cluster has two.
type Side string

const (
	// Guest is the cluster whose nodes run the workloads, and a cluster that is not hosted.
	Guest Side = ""
	// Management is the cluster in which the control plane of a hosted cluster runs.
	Management Side = "Management"
)

// Check examines one condition before one update.
type Check struct {
	// Name is the name of the check, and of every finding without one. Where CVO
	// has a name for the condition, it is that.
	Name string
	// Kind decides what may bypass the findings.
	Kind finding.Source
	// Concerns selects the updates that the check applies to; nil means all. Other updates get a Skipped finding.
	Concerns func(update.Update) bool
	// Side is the cluster that Run reads.
	Side Side
	// NotHosted is why the check does not apply to an update that the management cluster of a
	// hosted cluster requests, as a clause; empty for one that does.
	NotHosted string
	// Reads are the requests that Run makes. They are optional permissions: if one is missing, the check is Unknown,
	// unless its constructor says otherwise.
	Reads []access.Request
	// IfPermitted are requests that Run makes only if a review confirms that the user may make them. No role grants
	// them: they permit more than the check does.
	IfPermitted []access.Request
	// Run returns at least one finding. Fail and Unknown block the update; use Warn for findings that do not block. An
	// error means that the check was inconclusive.
	Run func(context.Context, Subject) ([]finding.Finding, error)
}

// Get declares the reading of one object by name.
func Get(group, resource, namespace, name string) access.Request {
	return access.Request{Verb: "get", Group: group, Resource: resource, Namespace: namespace, Name: name}
}

// List declares the reading of all objects of a resource.
func List(group, resource string) access.Request {
	return access.Request{Verb: "list", Group: group, Resource: resource}
}

// Reads are the permissions that the checks use; none of them is required.
func Reads(checks ...[]Check) access.Needs {
	var needs access.Needs
	for _, list := range checks {
		for _, check := range list {
			needs.Optional = append(needs.Optional, check.Reads...)
		}
	}
	return needs
}

// Examine runs the check on a subject, and names the target in every finding that blocks. The
// collector names the findings without a name by the check.
func (c Check) Examine(ctx context.Context, subject Subject) ([]finding.Finding, error) {
	update := subject.Update
	if c.Concerns != nil && !c.Concerns(update) {
		return []finding.Finding{finding.Skipped(gap.Proven("the versions of the update"), ReasonNotConcerned,
			"does not apply to the update from %s to %s (%s)", update.From, update.To, update.Kind())}, nil
	}
	if subject.Hosted && c.NotHosted != "" {
		return []finding.Finding{finding.Skipped(gap.Proven("the HostedCluster"), ReasonHyperShift, "does not apply to a hosted cluster: %s",
			c.NotHosted)}, nil
	}
	ctx, log := gap.Track(ctx)
	found, err := c.Run(ctx, subject)
	found, err = open(c.Name, found, err, log.All())
	found = slices.Clone(found)
	for i := range found {
		if found[i].Blocks && update.Known() {
			found[i].BlockedTargets = []string{update.To.String()}
		}
	}
	return found, err
}

// The reasons that checks of several kinds have in common.
var (
	ReasonPlainKubernetes = finding.NewReason("PlainKubernetes", finding.Explanation{
		Meaning: "The check concerns something that only OpenShift has, and this cluster is not OpenShift.",
		Cause:   "The cluster has no Infrastructure \"cluster\".",
	})
	ReasonHyperShift = finding.NewReason("HyperShift", finding.Explanation{
		Meaning: "The check does not apply to a hosted cluster, because another cluster manages its control plane and machines.",
		Cause:   "Infrastructure \"cluster\" has status.controlPlaneTopology External.",
	})
	reasonAPIMissing = finding.NewReason("APIMissing", finding.Explanation{
		Meaning: "An OpenShift cluster lacks an API or an object that every OpenShift cluster has.",
		Cause:   "The CustomResourceDefinition or the object was deleted, or the server of the API is down.",
		Remedy:  "Restore the API: `oc api-resources` and `oc get clusteroperators`.",
	})
	ReasonStaleStatus = finding.NewReason("StaleStatus", finding.Explanation{
		Meaning: "The status of an object is older than its spec (observedGeneration), so it does not describe the current spec. One " +
			"finding blocks the update; checks that depend on the same status are skipped.",
		Cause:  "The controller of the object has not processed the last change of the spec, or is not running.",
		Remedy: "Wait until the controller has updated the status, then run the preflight again.",
	})
	ReasonAsExpected = finding.NewReason("AsExpected", finding.Explanation{
		Meaning: "A check of the cluster's health found nothing wrong.",
		Cause:   "The objects are in the expected state.",
	})
	reasonUnread = finding.NewReason("Unread", finding.Explanation{
		Meaning: "A check that only warns could not read its objects.",
		Cause:   "The message contains the error, such as a missing permission.",
		Remedy:  "Bind the roles that `oc preflight auth` prints, or fix the error in the message.",
	})
)

// ReadsTopology are the requests of [Subject.Topology], and of everything here that depends on it.
func ReadsTopology() []access.Request {
	return []access.Request{Get(configv1.GroupName, "infrastructures", "", "cluster")}
}

// ReadsClusterVersion are the requests of a check of the ClusterVersion. The
// Infrastructure distinguishes a Kubernetes cluster from an OpenShift cluster
// without a ClusterVersion.
func ReadsClusterVersion() []access.Request {
	return append(ReadsTopology(), Get(configv1.GroupName, "clusterversions", "", "version"))
}

// Topology reads the topology of the cluster. An error names the object that could not be read.
func (s Subject) Topology(ctx context.Context) (snapshot.Topology, error) {
	topology, err := s.Cluster.Topology(ctx)
	if err != nil {
		return "", fmt.Errorf("could not read the Infrastructure \"cluster\": %w", err)
	}
	return topology, nil
}

// ClusterVersion reads the ClusterVersion of the cluster. An error names it.
func (s Subject) ClusterVersion(ctx context.Context) (*configv1.ClusterVersion, error) {
	version, err := s.Cluster.ClusterVersion(ctx)
	if err != nil {
		return nil, fmt.Errorf("could not read ClusterVersion \"version\": %w", err)
	}
	return version, nil
}

// WithoutClusterVersion returns the result of a check of the ClusterVersion on a cluster without one.
func (s Subject) WithoutClusterVersion(ctx context.Context) ([]finding.Finding, error) {
	topology, err := s.Topology(ctx)
	if err != nil {
		return nil, fmt.Errorf("ClusterVersion \"version\" does not exist, and %w", err)
	}
	if topology == snapshot.Kubernetes {
		return []finding.Finding{PlainKubernetes("ClusterVersion")}, nil
	}
	return []finding.Finding{finding.Unknown(reasonAPIMissing,
		"ClusterVersion \"version\" does not exist, although this is an OpenShift cluster").
		Remedy("Check that CVO, which creates it, is running.").
		Do(CVOPods()).
		About(ClusterVersionObject())}, nil
}

// WithoutAPI returns the result of a check that lists objects of this kind, if the API server does not serve them
// or has none.
func (s Subject) WithoutAPI(ctx context.Context, kind, group string) ([]finding.Finding, error) {
	topology, err := s.Topology(ctx)
	if err != nil {
		return nil, fmt.Errorf("the cluster has no %s, and %w", kind, err)
	}
	if topology == snapshot.Kubernetes {
		return []finding.Finding{PlainKubernetes(kind)}, nil
	}
	return []finding.Finding{APIMissing(kind, group)}, nil
}

// PlainKubernetes is the result of a check of a kind of objects on a cluster that is not OpenShift.
func PlainKubernetes(kind string) finding.Finding {
	return finding.Skipped(gap.Proven("the response of the API server"), ReasonPlainKubernetes,
		"the cluster has no Infrastructure \"cluster\", so it is not OpenShift and has no %s", kind)
}

// APIMissing is the result of a check of a kind of objects that every OpenShift cluster has, and this one has not.
func APIMissing(kind, group string) finding.Finding {
	return finding.Unknown(reasonAPIMissing, "this OpenShift cluster has no %s of %s, so the check is inconclusive", kind, group).
		Remedy("Restore the API, then run the preflight again.").
		Do(finding.Read("oc api-resources --api-group=%s", group), finding.Read("oc get clusteroperators"))
}

// ClusterVersionObject is the ClusterVersion of the cluster.
func ClusterVersionObject() finding.Object {
	return finding.Object{APIVersion: configv1.GroupVersion.String(), Kind: "ClusterVersion", Name: "version"}
}

// CVOPods is the action of listing the pods of CVO.
func CVOPods() finding.Action { return finding.Read("oc -n openshift-cluster-version get pods") }

// Stale reports whether the status of an object has an earlier generation than its spec, as the finding of a check
// that needs the current status.
func Stale(object finding.Object, observed, generation int64) (finding.Finding, bool) {
	if observed >= generation {
		return finding.Finding{}, false
	}
	return finding.Unknown(ReasonStaleStatus,
		"the status of %s has generation %d, but its spec has generation %d, so the status is out of date",
		Describe(object), observed, generation).
		About(object), true
}

// Describe is the kind and the name of an object, for messages.
func Describe(object finding.Object) string {
	if object.Namespace == "" {
		return fmt.Sprintf("%s %q", object.Kind, object.Name)
	}
	return fmt.Sprintf("%s %s/%s", object.Kind, object.Namespace, object.Name)
}

// OfCluster reports whether a namespace belongs to the cluster itself, not to a workload.
func OfCluster(namespace string) bool {
	return snapshot.OfCluster(namespace)
}

// OfRelease reports whether an object is in the manifests of the release: each has an annotation with a cluster profile
// (cluster-version-operator docs, "What do I put in /manifests?").
func OfRelease(object metav1.Object) bool {
	for name := range object.GetAnnotations() {
		if strings.HasPrefix(name, "include.release.openshift.io/") {
			return true
		}
	}
	return false
}

// Unread returns the result of a check that only warns and could not list objects: a warning, since a missing
// permission must not block an update that the check would not block.
func Unread(kind string, err error) []finding.Finding {
	f := finding.Warn(reasonUnread, "could not list the %s: %v", kind, err)
	if apierrors.IsForbidden(err) {
		return []finding.Finding{f.Remedy("Run the preflight as a user with permission to list them.").Do(finding.Roles())}
	}
	return []finding.Finding{f.Remedy("Fix the error in the message, then run the preflight again.")}
}

// PausedBy returns the program that paused a pool; empty for a person, and if it is unknown. It also reads the
// nodes, if they can be read.
func (s Subject) PausedBy(ctx context.Context, pool *machineconfigurationv1.MachineConfigPool) string {
	if !pool.Spec.Paused {
		return ""
	}
	watched, _ := gap.Watch(ctx)
	nodes, err := s.Cluster.Nodes(watched)
	if err != nil {
		nodes = nil
	}
	return snapshot.PausedBy(pool, nodes)
}

// Unpause is a finding about a paused MachineConfigPool with what ends that: the program by which it was paused, if any,
// and otherwise the remedy.
func Unpause(f finding.Finding, pool, by, remedy string) finding.Finding {
	if by != "" {
		return f.Remedy("Wait until %s, which paused the pool, has finished and unpauses it. If it does not, read its log.", by).
			Do(finding.Read("oc describe machineconfigpool %s", pool))
	}
	return f.Remedy("%s", remedy).Do(finding.Change(`oc patch machineconfigpool %s --type merge --patch {"spec":{"paused":false}}`, pool))
}
