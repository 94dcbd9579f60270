// Package place answers: in which clusters does a run have Jobs, and what does it need there?
//
// [Of] returns the [Place]s of a run: the cluster that is judged and, for a hosted cluster, its management
// cluster, where the run is confined to the namespace of the control plane. Each has its own objects, guard
// and permissions; [Cleanup] deletes the objects of a run in all of them.
package place

import (
	"context"
	"slices"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/hosted"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// Place is a cluster in which a run has Jobs.
type Place struct {
	// Side is check.Guest for the cluster that is judged.
	Side    check.Side
	Cluster *cluster.Cluster
	// Objects of the runs there, which Launcher creates.
	Objects  *inventory.Objects
	Launcher *launch.Launcher
	// hostedCluster is the one of which this is the management cluster, NAMESPACE/NAME; empty for none.
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

// name is how an object names this place; empty for the cluster that is judged.
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

// Sources are sources whose findings name the management cluster where they are from there.
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
