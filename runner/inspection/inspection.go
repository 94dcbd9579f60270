// Package inspection answers: how did the last update of this cluster go?
//
// [New] returns an [Inspection]. Each [Inspection.Look] reads the cluster, and compares everything it has observed so
// far with the baseline that a run stored before the update. [Archives] does the same with two archives. Only
// [Inspection.Record] writes.
package inspection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/afterupdate/observation"
	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
	"github.com/openshift/update-preflight/runner/record/recordstore"
)

// Options configure an inspection.
type Options struct {
	// Run is the ID, or a prefix of it, of the run whose baseline counts; empty for the newest one before the update.
	Run string
	// Soak is for how long the cluster has to be good after it has settled.
	Soak time.Duration
	// Watched is true if another look follows soon, so that an incomplete look is repeated.
	Watched bool
	// Monitoring finds the alerts, which each look reads anew.
	Monitoring monitoring.Finder
	// Settings are how the cluster is read; their monitoring is not used. Of the guest of a hosted cluster, they have its
	// estate, which each look but the first reads anew.
	Settings scene.Settings
}

// Inspection is the observed history of a cluster after an update. Its methods may not be called concurrently.
type Inspection struct {
	cluster *cluster.Cluster
	store   *baselinestore.Store
	options Options
	// estate reads the estate.
	estate func(context.Context) (hosted.Estate, error)

	// begun identifies the update of the course, and found is its baseline.
	begun  string
	found  found
	course afterupdate.Course
	// kept are the problems of the course that was stored last, and full is when all kinds of objects were read, of which
	// occupied had objects.
	kept     string
	full     time.Time
	occupied map[baseline.Kind]bool
}

// found is the baseline of an update; its state is nil where none counts, and absent is why.
type found struct {
	run    string
	state  *baseline.State
	digest func(name string) string
	absent string
	// later is when a baseline for the next update was taken; zero for none.
	later time.Time
}

// New is an inspection that has seen nothing yet.
func New(c *cluster.Cluster, options Options) *Inspection {
	return &Inspection{cluster: c, store: baselinestore.New(c.Kubernetes), options: options, estate: hosted.Reread(options.Settings.Estate)}
}

// Needs are the permissions to look.
func Needs() access.Needs { return observation.Needs().And(baselinestore.ReadNeeds()) }

// Look reads the cluster once more, and evaluates the update. If the update was retargeted since the last look, the
// evaluation starts over. An *input.Error is about the run in the options.
func (i *Inspection) Look(ctx context.Context) (afterupdate.Report, error) {
	settings := i.options.Settings
	var err error
	if settings.Estate, err = i.estate(ctx); err != nil {
		return afterupdate.Report{}, err
	}
	s, err := scene.Open(ctx, i.cluster, settings, access.Needs{})
	if err != nil {
		return afterupdate.Report{}, err
	}
	seen, err := observation.Of(ctx, s, monitoring.New(i.options.Monitoring, monitoring.DefaultTimeout), i.kinds())
	if err != nil {
		return afterupdate.Report{}, err
	}
	if begun := identity(seen); begun != i.begun || i.found.state == nil {
		before, err := i.baseline(ctx, seen)
		if err != nil {
			return afterupdate.Report{}, err
		}
		i.begun, i.found, i.course = begun, before, i.resumed(ctx, before, begun)
	}
	i.course = i.course.And(i.found.state, seen.Sample(i.found.state, i.found.digest))
	if i.occupied == nil {
		i.full, i.occupied = time.Now(), seen.State.Occupied
	}
	i.keep(ctx)
	return afterupdate.Judge(afterupdate.Question{
		Cluster: seen.Cluster, Run: i.found.run, Change: seen.Change, Before: i.found.state, NoBaseline: i.found.absent, Stored: i.found.later,
		Soak: i.options.Soak, Watched: i.options.Watched,
	}, i.course), nil
}

// fully is how often all kinds of objects are read: in between, those that have objects.
const fully = 30 * time.Minute

// kinds are those that a look reads; nil for all.
func (i *Inspection) kinds() map[baseline.Kind]bool {
	if time.Since(i.full) > fully {
		i.occupied = nil
	}
	return i.occupied
}

// resumed is the course that earlier processes have stored.
func (i *Inspection) resumed(ctx context.Context, of found, update string) afterupdate.Course {
	if of.state == nil {
		return afterupdate.Course{}
	}
	past, _, err := i.store.Past(ctx, of.run, update)
	if err != nil {
		return afterupdate.Course{} // it begins anew, as where the user may not read it
	}
	return afterupdate.Resume(past)
}

// keep stores the course for the next process where the user may: after each look that no other one follows, and when a problem has
// begun or ended.
func (i *Inspection) keep(ctx context.Context) {
	var problems []string
	for at, seen := range i.course.Problems {
		problems = append(problems, fmt.Sprint(at, seen.Ended))
	}
	slices.Sort(problems)
	if state := strings.Join(problems, "\n"); i.found.state != nil && (!i.options.Watched || state != i.kept) {
		i.kept = state
		_ = i.store.PutPast(ctx, i.found.run, i.begun, i.course.Past) // without it, the next process begins anew
	}
}

// identity identifies an update: by its beginning, its release and its end.
func identity(seen observation.Observation) string {
	if seen.Change == nil {
		return "none"
	}
	return fmt.Sprint(words.Time(seen.Change.Started), seen.Change.To.Version, seen.Change.To.Image, words.Time(seen.Change.Completed),
		seen.Change.RolledBack)
}

// baseline returns the baseline of the run in the options, or of the last update.
func (i *Inspection) baseline(ctx context.Context, seen observation.Observation) (found, error) {
	if i.options.Run != "" {
		return i.ofRun(ctx, seen)
	}
	if seen.Change == nil {
		return found{absent: "no update has begun"}, nil
	}
	stored, err := i.store.Before(ctx, seen.Cluster.ID, seen.History)
	if absent, ok := errors.AsType[*baselinestore.AbsentError](err); ok {
		return found{run: absent.Run, absent: absent.Message, later: absent.Later.Taken}, nil
	}
	if err != nil {
		return found{}, err
	}
	return found{run: stored.Run, state: &stored.State, digest: stored.Digest}, nil
}

// ofRun is the baseline of the run of the options, which has to be one of the last update, or of the next one.
func (i *Inspection) ofRun(ctx context.Context, seen observation.Observation) (found, error) {
	run, err := recordstore.New(i.cluster.Kubernetes).Get(ctx, i.options.Run)
	if err != nil {
		return found{}, err
	}
	stored, err := i.store.Get(ctx, run.ID)
	if absent, ok := errors.AsType[*baselinestore.AbsentError](err); ok {
		return found{run: run.ID, absent: absent.Message}, nil
	}
	if err != nil {
		return found{}, err
	}
	made := found{run: run.ID, state: &stored.State, digest: stored.Digest}
	if stored.State.ClusterID == seen.Cluster.ID && stored.State.Version == seen.Cluster.Version &&
		(seen.Change == nil || seen.Change.From.Version != stored.State.Version) {
		return made, nil // the update has not begun
	}
	_, err = baselinestore.Choose([]baselinestore.Candidate{{
		Run: run.ID, Taken: stored.State.Taken, ClusterID: stored.State.ClusterID, Version: stored.State.Version, Image: stored.State.Image,
		Authentication: record.Authentication{State: record.Authentic},
	}}, seen.History, seen.Cluster.ID)
	if absent, ok := errors.AsType[*baselinestore.AbsentError](err); ok {
		return found{}, &input.Error{Err: fmt.Errorf("the baseline of run %s does not belong to the last update: %s", run.ID, absent.Message)}
	}
	return made, err
}

// Record stores a judgement beside the record of the run whose baseline it is by.
func (i *Inspection) Record(ctx context.Context, judged afterupdate.Report) error {
	return i.store.PutJudgement(ctx, judged.Update.Run, judged)
}

// Archived is a cluster as an archive has it: the guest of a hosted cluster with its estate.
type Archived struct {
	Cluster *cluster.Cluster
	Estate  hosted.Estate
}

// Archives evaluates the update between two archives of one cluster. It returns an *input.Error if the archives are
// from two clusters, or in the wrong order.
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
	return observation.Of(ctx, s, monitoring.New(monitoring.Querier{Config: archived.Cluster.Config(), Dynamic: archived.Cluster.Dynamic}.Find,
		monitoring.DefaultTimeout), nil)
}

// consecutive is an error unless the first archive is one of the cluster before the update that the second has had.
func consecutive(was, is observation.Observation) error {
	change := is.Change
	switch {
	case was.Cluster.ID != is.Cluster.ID:
		return fmt.Errorf("the archives are from two clusters, %q and %q: name two archives of one cluster", was.Cluster.ID, is.Cluster.ID)
	case is.State.Taken.Before(was.State.Taken):
		return fmt.Errorf("the first archive, of %s, is later than the second, of %s: name the archive from before "+
			"the update first",
			words.Time(was.State.Taken), words.Time(is.State.Taken))
	case was.State.Version == is.State.Version || change == nil:
		return nil // no update has begun
	case was.State.Version != change.From.Version && (!change.RolledBack || was.State.Version != change.To.Version):
		return fmt.Errorf("the first archive contains the release %s, but the last update of the second began from "+
			"%s: name one from before that update", was.State.Version, change.From.Version)
	case !change.Started.IsZero() && was.State.Taken.After(change.Started):
		return fmt.Errorf("the first archive was gathered at %s, after the update began at %s: name one from before the update",
			words.Time(was.State.Taken), words.Time(change.Started))
	}
	return nil
}
