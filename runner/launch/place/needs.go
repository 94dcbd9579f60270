package place

import (
	"context"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/rights"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/launch/cleanup"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/launch/writeguard"
)

var reasonManagementAccess = finding.NewReason("ManagementAccess", finding.Explanation{
	Meaning: "Reported for a check of the release for the management cluster of a hosted cluster that was not run: the user " +
		"may not run it there, or that is unknown.",
	Cause:   "A permission is missing in the management cluster, or its API server did not respond.",
	Remedy:  "Bind the role of the management cluster that \"auth run --hosted-cluster\" prints.",
	Command: "oc preflight auth run --hosted-cluster NAMESPACE/NAME",
})

// Needs are the permissions to follow, guard and list the Jobs of a run, without those to create them.
func Needs() access.Needs {
	return jobs.Needs().And(cleanup.ListNeeds()).And(writeguard.Needs()).And(access.Needs{Optional: rights.GroupsNeeds()})
}

// ControlPlaneNeeds are the permissions to run the checks of any release in the namespace of a control plane.
func ControlPlaneNeeds(namespace string) access.Needs {
	return confine(Needs().And(jobplan.AnyNeeds()), namespace)
}

// ReviewRemoval is an error for missing permissions to delete the objects of runs in the places but the first.
func ReviewRemoval(ctx context.Context, places []Place) error {
	for _, p := range places[1:] {
		if err := confine(cleanup.Needs(), p.Objects.Namespace).Check(ctx, p.Cluster.Kubernetes.AuthorizationV1()); err != nil {
			return p.located(err)
		}
	}
	return nil
}

// Permitted is a draft without the checks that the user may not run in the management cluster of this hosted
// cluster, NAMESPACE/NAME, and a finding for each of these.
func (p Place) Permitted(ctx context.Context, draft jobplan.Draft, hostedCluster string) (jobplan.Draft, []finding.Finding) {
	planned := draft.On(p.Side)
	if len(planned.Checks) == 0 {
		return draft, nil
	}
	err := confine(Needs().And(planned.Needs()), p.Objects.Namespace).Check(ctx, p.Cluster.Kubernetes.AuthorizationV1())
	if err == nil {
		return draft, nil
	}
	var refused []finding.Finding
	for _, check := range planned.Checks {
		refused = append(refused, finding.Unknown(reasonManagementAccess, "the check was not run in the management cluster: %v", err).
			Named(check.Name).From(finding.SourceJob).
			Remedy("Bind the role of the management cluster that the command prints, or accept the finding.").
			Do(finding.Run("oc preflight auth run --hosted-cluster %s", hostedCluster), finding.Accept(check.Name)))
	}
	return draft.Without(p.Side), refused
}

// confine are needs in one namespace: there, a run has no objects of the cluster but its guard, and lists and
// watches no others.
func confine(needs access.Needs, namespace string) access.Needs {
	needs.Required, needs.Optional = confined(needs.Required, namespace), confined(needs.Optional, namespace)
	return needs
}

func confined(requests []access.Request, namespace string) []access.Request {
	kinds := map[string]inventory.Kind{}
	for _, k := range inventory.Kinds() {
		kinds[k.Request().Group+"/"+k.Request().Resource] = k
	}
	var all []access.Request
	for _, each := range requests {
		k, known := kinds[each.Group+"/"+each.Resource]
		changes := each.Verb == "create" || each.Verb == "delete" || each.Verb == "watch"
		switch {
		case known && !k.Namespaced() && !k.Guard && changes:
			continue // a copy of a ServiceAccount has no ClusterRole, but the original may
		case each.Namespace == "" && (known && k.Namespaced() || each.Group == "" && each.Resource == "events"):
			each.Namespace = namespace
		}
		all = append(all, each)
	}
	return all
}
