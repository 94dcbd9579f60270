package inspection

import (
	"context"
	"fmt"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/afterupdate/observation"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/words"
)

// Archived is a cluster as an archive has it: the guest of a hosted cluster with its estate.
type Archived struct {
	Cluster *cluster.Cluster
	Estate  hosted.Estate
}

// Archives judges the update between two archives of one cluster. An *input.Error is about archives of two clusters, or
// in the wrong order.
func Archives(ctx context.Context, before, after Archived, settings scene.Settings) (afterupdate.Report, error) {
	was, err := ofArchive(ctx, before, settings)
	if err != nil {
		return afterupdate.Report{}, fmt.Errorf("the archive from before the update: %w", err)
	}
	is, err := ofArchive(ctx, after, settings)
	if err != nil {
		return afterupdate.Report{}, fmt.Errorf("the archive from after the update: %w", err)
	}
	if err := consecutive(was, is); err != nil {
		return afterupdate.Report{}, &input.Error{Err: err}
	}
	course := afterupdate.Course{}.And(&was.State, is.Sample(&was.State, nil))
	return afterupdate.Judge(afterupdate.Question{Cluster: is.Cluster, Change: is.Change, Before: &was.State, Moment: true}, course), nil
}

func ofArchive(ctx context.Context, archived Archived, settings scene.Settings) (observation.Observation, error) {
	settings.Estate = archived.Estate
	s, err := scene.Open(ctx, archived.Cluster, settings, access.Needs{})
	if err != nil {
		return observation.Observation{}, err
	}
	return observation.Of(ctx, s, monitoring.New(monitoring.Querier{Config: archived.Cluster.Config(), Dynamic: archived.Cluster.Dynamic}.Find, monitoring.DefaultTimeout), nil)
}

// consecutive is an error unless the first archive is one of the cluster before the update that the second has had.
func consecutive(was, is observation.Observation) error {
	change := is.Change
	switch {
	case was.Cluster.ID != is.Cluster.ID:
		return fmt.Errorf("the archives are of two clusters, %q and %q: give two archives of one cluster", was.Cluster.ID, is.Cluster.ID)
	case is.State.Taken.Before(was.State.Taken):
		return fmt.Errorf("the first archive, of %s, is later than the second, of %s: give that from before the update first", words.Time(was.State.Taken), words.Time(is.State.Taken))
	case was.State.Version == is.State.Version || change == nil:
		return nil // no update has begun
	case was.State.Version != change.From.Version && (!change.RolledBack || was.State.Version != change.To.Version):
		return fmt.Errorf("the first archive is of the release %s, and the last update of the second began from %s: give one from before that update", was.State.Version, change.From.Version)
	case !change.Started.IsZero() && was.State.Taken.After(change.Started):
		return fmt.Errorf("the first archive was gathered at %s, after the update had begun at %s: give one from before", words.Time(was.State.Taken), words.Time(change.Started))
	}
	return nil
}
