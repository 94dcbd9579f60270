package place

import (
	"context"
	"slices"

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
	return Confine(Needs().And(jobplan.AnyNeeds()), namespace)
}

// ReviewRemoval is an error for missing permissions to delete the objects of runs in the places but the first.
func ReviewRemoval(ctx context.Context, places []Place) error {
	for _, p := range places[1:] {
		if err := Confine(cleanup.Needs(), p.Objects.Namespace).Check(ctx, p.Cluster.Kubernetes.AuthorizationV1()); err != nil {
			return p.located(err)
		}
	}
	return nil
}

// Permitted is a draft without the checks that the user may not run in this place, the management cluster of
// a hosted cluster, and a finding for each of these.
func (p Place) Permitted(ctx context.Context, draft jobplan.Draft) (jobplan.Draft, []finding.Finding) {
	planned := draft.On(p.Side)
	if len(planned.Checks) == 0 {
		return draft, nil
	}
	err := Confine(Needs().And(planned.Needs()), p.Objects.Namespace).Check(ctx, p.Cluster.Kubernetes.AuthorizationV1())
	if err == nil {
		return draft, nil
	}
	var refused []finding.Finding
	for _, check := range planned.Checks {
		refused = append(refused, finding.Unknown(reasonManagementAccess, "the check was not run in the management cluster: %v", err).
			Named(check.Name).From(finding.SourceJob).
			Remedy("Bind the role of the management cluster that the command prints, or accept the finding.").
			Do(finding.Read("oc preflight auth run --hosted-cluster %s", p.hostedCluster), finding.Accept(check.Name)))
	}
	return draft.Without(p.Side), refused
}

// Confine are needs in one namespace: there, a run has no objects of the cluster but its guard, and lists and
// watches no others. What is granted to an existing ServiceAccount is read in the whole cluster.
func Confine(needs access.Needs, namespace string) access.Needs {
	confined := access.Needs{Given: needs.Given}
	for _, each := range needs.Required {
		if request, ok := confinedRequest(each, namespace); ok {
			confined.Required = append(confined.Required, request)
		}
	}
	grants := rights.GrantsNeeds()
	for _, each := range needs.Optional {
		request, ok := confinedRequest(each, namespace)
		if slices.Contains(grants, each) {
			request, ok = each, true
		}
		if ok {
			confined.Optional = append(confined.Optional, request)
		}
	}
	return confined
}

// confinedRequest is a request in one namespace; false for one about objects that a run has not there.
func confinedRequest(request access.Request, namespace string) (access.Request, bool) {
	if request.Namespace == "" && request.Group == "" && request.Resource == "events" {
		request.Namespace = namespace
		return request, true
	}
	for _, k := range inventory.Kinds() {
		if k.Request().Group != request.Group || k.Request().Resource != request.Resource || k.Guard {
			continue
		}
		if !k.Namespaced() {
			return request, request.Name != ""
		}
		if request.Namespace == "" {
			request.Namespace = namespace
		}
	}
	return request, true
}
