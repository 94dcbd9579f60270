// Package place answers: in which clusters does a run have Jobs, and what does it need there?
//
// [Of] returns the [Place]s of a run: the target cluster and, for a hosted cluster, its management cluster, where the
// run is confined to the namespace of the control plane. Each has its own objects, guard and permissions; [Cleanup]
// deletes the objects of a run in all of them.
package place

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/rights"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/launch/cleanup"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/launch/writeguard"
)

// Place is a cluster in which a run has Jobs.
type Place struct {
	// Side is check.Guest for the target cluster.
	Side    check.Side
	Cluster *cluster.Cluster
	// Objects of the runs there, which Launcher creates.
	Objects  *inventory.Objects
	Launcher *launch.Launcher
	// hostedCluster is the hosted cluster whose management cluster this is, NAMESPACE/NAME; empty for none.
	hostedCluster string
}

// Of are the places of the runs of a cluster: the cluster itself first.
func Of(judged *cluster.Cluster, estate hosted.Estate) []Place {
	places := []Place{in(judged, "")}
	if management := estate.Management(judged); management != judged {
		above := in(management, estate.Namespace())
		above.hostedCluster, _ = estate.Selected()
		places = append(places, above)
	}
	return places
}

// in is a cluster in which all objects of runs are in one namespace; in any for an empty one.
func in(c *cluster.Cluster, namespace string) Place {
	objects := inventory.New(c.Kubernetes, c.Metadata)
	objects.Namespace = namespace
	p := Place{Cluster: c, Objects: objects, Launcher: launch.New(objects)}
	p.Side = p.Run(jobplan.Run{}).Side()
	return p
}

// Run is the part of a run that is in this place.
func (p Place) Run(of jobplan.Run) jobplan.Run {
	of.Namespace = p.Objects.Namespace
	return of
}

// name is how objects refer to this place; empty for the target cluster.
func (p Place) name() string {
	if p.Side == check.Management {
		return finding.Management
	}
	return ""
}

// Distinct is a finding about this place, which has another name than that about another place.
func (p Place) Distinct(f finding.Finding) finding.Finding {
	if p.name() == "" {
		return f
	}
	return p.about(f.Named(f.Name + "-" + p.name()))
}

// Sources returns sources whose findings name the management cluster if they come from there.
func (p Place) Sources(sources []collector.Source) []collector.Source {
	if p.name() == "" {
		return sources
	}
	placed := make([]collector.Source, len(sources))
	for i, source := range sources {
		collect := source.Collect
		source.Collect = func(ctx context.Context) ([]finding.Finding, error) {
			findings, err := collect(ctx)
			all := make([]finding.Finding, 0, len(findings))
			for _, f := range findings {
				all = append(all, p.about(f))
			}
			return all, err
		}
		placed[i] = source
	}
	return placed
}

// about states once that a finding and its commands are about the management cluster.
func (p Place) about(f finding.Finding) finding.Finding {
	if f.Job != nil {
		if f.Job.Cluster == p.name() {
			return f
		}
		job := *f.Job
		job.Cluster, f.Job = p.name(), &job
	}
	if f.Outcome == preflight.Pass || f.Outcome == preflight.Skipped {
		return f
	}
	f.Actions = slices.Clone(f.Actions)
	for i := range f.Actions {
		f.Actions[i].Cluster = finding.Management
	}
	return f.Noted("This is about the management cluster.")
}

// Removal of the objects of a run in all its places, each list in the order of the places.
type Removal struct {
	// Deleted, Left and Foreign are as in cleanup.Removal.
	Deleted, Left, Foreign []report.Object
	// Unseen are the kinds that the user may not list in some place, sorted.
	Unseen []string
}

// Cleanup deletes all objects of a run in all places, and waits until they are gone (cleanup.Run). The
// error names the places in which they are not.
func Cleanup(ctx context.Context, places []Place, runID string) (Removal, error) {
	removals := make([]cleanup.Removal, len(places))
	requests := make([]func() error, len(places))
	for i, p := range places {
		requests[i] = func() (err error) {
			removals[i], err = cleanup.Run(ctx, p.Objects, runID)
			return p.located(err)
		}
	}
	err := errors.Join(inventory.Concurrently(requests)...)
	var all Removal
	for i, p := range places {
		done := removals[i]
		all.Deleted, all.Left, all.Foreign = append(all.Deleted, p.objects(done.Deleted)...), append(all.Left, p.objects(done.Left)...),
			append(all.Foreign, p.objects(done.Foreign)...)
		all.Unseen = append(all.Unseen, done.Unseen...)
	}
	slices.Sort(all.Unseen)
	all.Unseen = slices.Compact(all.Unseen)
	return all, err
}

// Runs returns the IDs of all runs that have objects in the places. The value is true for a run of a hosted cluster
// other than the places': its record and its Lease are in no place (cleanup.Runs).
func Runs(ctx context.Context, places []Place) (map[string]bool, error) {
	all := map[string]bool{}
	for _, p := range places {
		runs, err := cleanup.Runs(ctx, p.Objects)
		if err != nil {
			return nil, p.located(err)
		}
		for id, elsewhere := range runs {
			all[id] = all[id] || elsewhere && p.name() == ""
		}
	}
	return all, nil
}

// Created are the objects that this process has created of a run, in the order of the places.
func Created(places []Place, runID string) []report.Object {
	var all []report.Object
	for _, p := range places {
		all = append(all, p.objects(p.Objects.Created.Of(runID))...)
	}
	return all
}

func (p Place) objects(in []preflight.Object) []report.Object {
	var all []report.Object
	for _, object := range in {
		all = append(all, report.Object{Object: object, Cluster: p.name()})
	}
	return all
}

func (p Place) located(err error) error {
	if err == nil || p.name() == "" {
		return err
	}
	return fmt.Errorf("in the %s cluster: %w", p.name(), err)
}

var reasonManagementAccess = finding.NewReason("ManagementAccess", finding.Explanation{
	Meaning: "A check for the management cluster of a hosted cluster did not run: the user may not run it there, or " +
		"that could not be determined.",
	Cause:   "The user lacks a permission in the management cluster, or its API server did not respond.",
	Remedy:  "Bind the role for the management cluster that \"auth run --hosted-cluster\" prints.",
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
		refused = append(refused, finding.Unknown(reasonManagementAccess, "the check did not run in the management "+
			"cluster: %v", err).
			Named(check.Name).From(finding.SourceJob).
			Remedy("Bind the role for the management cluster that the command prints, or accept the finding.").
			Do(finding.Read("oc preflight auth run --hosted-cluster %s", p.hostedCluster), finding.Accept(check.Name)))
	}
	return draft.Without(p.Side), refused
}

// Confine restricts needs to one namespace: there, a run has no cluster-scoped objects but its guard, and lists and
// watches no others. Grants to an existing ServiceAccount are read in the whole cluster.
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
