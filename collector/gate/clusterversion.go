package gate

import (
	"context"
	"fmt"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	ReasonInvalidCurrentVersion finding.Reason = "InvalidCurrentVersion"
	ReasonStaleStatus           finding.Reason = "StaleStatus"
	ReasonPlainKubernetes       finding.Reason = "PlainKubernetes"
	ReasonNotConcerned          finding.Reason = "NotConcerned"
)

// clusterVersionReads are the requests of checks of the ClusterVersion. The
// Infrastructure distinguishes a Kubernetes cluster from an OpenShift cluster
// without a ClusterVersion.
func clusterVersionReads() []access.Request {
	return []access.Request{
		check.Get(configv1.GroupName, "clusterversions", "", "version"),
		check.Get(configv1.GroupName, "infrastructures", "", "cluster"),
	}
}

// situation is what checks of the ClusterVersion judge.
type situation struct {
	version *configv1.ClusterVersion
	// move is the update as CVO sees it: not from the last completed release but
	// from status.desired, which is ahead of that while an update is in
	// progress.
	move update.Update
}

// judgement judges a situation with at least one finding.
type judgement func(situation) []finding.Finding

// onClusterVersion looks at the ClusterVersion, and at nothing else. Findings
// without objects get it as theirs.
func onClusterVersion(judge judgement) func(context.Context, check.Subject) ([]finding.Finding, error) {
	return func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
		version, err := s.Cluster.ClusterVersion(ctx)
		if apierrors.IsNotFound(err) {
			return noClusterVersion(ctx, s.Cluster)
		}
		if err != nil {
			return nil, fmt.Errorf("could not read ClusterVersion \"version\": %w", err)
		}
		var findings []finding.Finding
		desired, err := semver.Parse(version.Status.Desired.Version)
		if err != nil {
			findings = []finding.Finding{finding.Unknown(ReasonInvalidCurrentVersion,
				"ClusterVersion %q is at the version %q in status.desired, which is not a semantic version: %v", version.Name, version.Status.Desired.Version, err).
				Remedy("See what the cluster runs: oc get clusterversion version -o yaml. CVO itself only warns of this; --force goes on without an answer.")}
		} else {
			findings = judge(situation{version: version, move: update.Update{From: desired, To: s.Update.To}})
		}
		for i := range findings {
			if findings[i].Objects == nil {
				findings[i].Objects = clusterVersionObject()
			}
		}
		return findings, nil
	}
}

// fresh refuses to judge a status that is older than the spec beside it.
func fresh(judge judgement) judgement {
	return func(s situation) []finding.Finding {
		observed, generation := s.version.Status.ObservedGeneration, s.version.Generation
		if observed >= generation {
			return judge(s)
		}
		return []finding.Finding{finding.Unknown(ReasonStaleStatus,
			"the status of ClusterVersion %q is of generation %d, but its spec is of generation %d, so it tells of an earlier state", s.version.Name, observed, generation).
			Remedy("Wait until CVO has caught up, then run the preflight again. See whether it is running: oc -n openshift-cluster-version get pods")}
	}
}

func noClusterVersion(ctx context.Context, cluster *snapshot.Cluster) ([]finding.Finding, error) {
	topology, err := cluster.Topology(ctx)
	if err != nil {
		return nil, fmt.Errorf("there is no ClusterVersion \"version\", and could not read the Infrastructure \"cluster\": %w", err)
	}
	if topology == snapshot.Kubernetes {
		return []finding.Finding{finding.Skipped(ReasonPlainKubernetes, "this cluster has no ClusterVersion, so no CVO updates it")}, nil
	}
	return []finding.Finding{finding.Unknown(ReasonAPIMissing, "ClusterVersion \"version\" does not exist, although this is an OpenShift cluster").
		Remedy("CVO creates it; see whether it is running: oc -n openshift-cluster-version get pods").
		About(clusterVersionObject()...)}, nil
}

func clusterVersionObject() []preflight.Object {
	return []preflight.Object{{APIVersion: configv1.GroupVersion.String(), Kind: "ClusterVersion", Name: "version"}}
}

// condition returns a condition of ClusterVersion; its status is empty where it
// has none.
func (s situation) condition(kind configv1.ClusterStatusConditionType) configv1.ClusterOperatorStatusCondition {
	for _, condition := range s.version.Status.Conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return configv1.ClusterOperatorStatusCondition{Type: kind}
}

// target is the version that is asked about.
func (s situation) target() string { return s.move.To.String() }

// minor is the minor version that the cluster is at or on its way to.
func (s situation) minor() string { return minorVersion(s.move.From) }

func minorVersion(version semver.Version) string {
	return fmt.Sprintf("%d.%d", version.Major, version.Minor)
}

// notLeaving is the answer of a check that keeps only from leaving the minor
// version.
func (s situation) notLeaving(what string) []finding.Finding {
	return []finding.Finding{finding.Skipped(ReasonNotConcerned, "%s does not block updates within %s, such as %s", what, s.minor(), s.target())}
}

// refused is the finding of an objection of CVO, with what gets past it.
func refused(objection *cvo.Objection, remediation string) finding.Finding {
	f := finding.Fail(finding.Reason(objection.Reason), "%s", objection.Message).
		Remedy("%s", remediation)
	switch objection.Weight {
	case cvo.Blocking:
	case cvo.Unchecked:
		f.Message += " The CVO of this cluster does not check that by itself yet."
	case cvo.Warning:
		f.Outcome = preflight.Warn
	case cvo.Uncertain:
		f.Outcome = preflight.Unknown
	}
	if f.Reason == "" {
		f.Reason = "Unexplained"
	}
	return f
}
