// Package check answers: what is a built-in check?
//
// It is a declaration: a name, the updates that it concerns, the resources that
// it reads, and one function. Gates, risks and health checks are lists of
// declarations. Roles and permission checks are folded from what the checks
// declare, so a check that reads something new needs no other change.
package check

import (
	"context"
	"slices"
	"time"

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
		Meaning: "Reported for a check that does not apply to this kind of update.",
		Cause:   "The condition that the check is about blocks only some updates, such as those to another minor version.",
	})
	ReasonOwnSignal = finding.NewReason("OwnSignal", finding.Explanation{
		Meaning: "Reported for an alert, a ClusterOperator or a risk that the preflight itself has raised, since its last " +
			"verdict was not Ready. It never counts (package ownsignal).",
		Cause:  "A switch by which the controller has CVO honor its verdicts is on.",
		Remedy: "None needed. The next verdict that is Ready ends the signal.",
	})
	ReasonUnknownKubernetesVersion = finding.NewReason("UnknownKubernetesVersion", finding.Explanation{
		Meaning: "Reported when the Kubernetes version of a release is unknown.",
		Cause:   "The release is newer than this preflight.",
		Remedy:  "Use a preflight that is as new as the target.",
	})
)

// Subject of a check: one update of one cluster.
type Subject struct {
	// Cluster reads each resource once for all checks and all targets.
	Cluster *snapshot.Cluster
	Update  update.Update
	// Later is true for an update that starts from a release which the cluster does not
	// run yet: what the cluster reports of its own release does not concern it.
	Later bool
	// Hosted is true where the update is one of a hosted cluster that its management cluster requests.
	Hosted bool
	// Asks is how the API server is asked about the next pods of what is drained; nil where it is not.
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
	// Reads are the requests that Run makes. They are optional permissions: where
	// one is missing, the check is Unknown, unless its constructor states otherwise.
	Reads []access.Request
	// IfPermitted are requests that Run makes only where a review states that the user may make them. No role
	// has them: they permit more than the check does.
	IfPermitted []access.Request
	// Run returns at least one finding. Fail and Unknown block the update; what is
	// worth knowing and does not block is a Warn. An error means that the check
	// was inconclusive.
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
		return []finding.Finding{finding.Skipped(gap.Proven("the HostedCluster"), ReasonHyperShift, "does not apply to a hosted cluster: %s", c.NotHosted)}, nil
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
