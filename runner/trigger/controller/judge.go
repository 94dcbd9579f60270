package controller

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/reassessment"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/runner/record/standing"
	"github.com/openshift/update-preflight/runner/trigger/announcement"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
)

const (
	// JudgePause is the shortest time between two judgements of the recorded verdicts.
	JudgePause = time.Minute
	// judgeInterval is the longest one: some inputs, such as alerts, are not watched.
	judgeInterval = 30 * time.Minute
)

// judgedAgain is the prefix of the cause if a verdict ended because it was evaluated again.
const judgedAgain = "the cluster has changed: after reevaluation, the decision is "

// reevaluation evaluates the recorded verdicts again when the input of built-in checks has changed, without running a
// check of a release. A verdict whose decision differs ends in its record: the next plan contains a run of its target,
// which reuses the results of the checks that are still valid.
type reevaluation struct {
	cluster    *cluster.Cluster
	records    *recordstore.Store
	options    runner.Options
	monitoring monitoring.Finder
	logger     *slog.Logger
	// pause is the shortest time between two judgements.
	pause time.Duration
	// pending has room for one value: something has changed.
	pending chan struct{}

	mutex sync.Mutex
	// runs are the IDs of the runs whose verdicts count.
	runs []string
	// undecided are those that the last judgement found Undecided. Only Start uses it.
	undecided map[string]bool
}

func (j *reevaluation) changed() { announcement.Signal(j.pending) }

// set replaces the runs whose verdicts are evaluated.
func (j *reevaluation) set(runs []string) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.runs = runs
}

// Start evaluates until ctx is done.
func (j *reevaluation) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-j.pending:
		case <-time.After(judgeInterval):
		}
		if j.all(ctx) {
			announcement.Signal(j.pending)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(j.pause):
		}
	}
}

// all evaluates all verdicts, and reports whether one must be evaluated again.
func (j *reevaluation) all(ctx context.Context) (again bool) {
	j.mutex.Lock()
	runs := j.runs
	j.mutex.Unlock()
	if len(runs) == 0 || !j.settled(ctx) {
		return false
	}
	undecided := map[string]bool{}
	for _, id := range runs {
		found, err := j.one(ctx, id)
		if err != nil && ctx.Err() == nil {
			j.logger.Warn("a recorded verdict could not be reevaluated", "run", id, "error", err)
			continue
		}
		if found {
			undecided[id], again = true, true
		}
	}
	j.undecided = undecided
	return again
}

// settled is false while gates would be inconclusive: during an update, and while the status
// of ClusterVersion is out of date. A change of it follows.
func (j *reevaluation) settled(ctx context.Context) bool {
	version, err := j.cluster.OpenShift.ConfigV1().ClusterVersions().Get(ctx, name, metav1.GetOptions{})
	return err == nil && cvo.HasProcessed(version) && !runplan.Progressing(version)
}

// one evaluates a verdict, and ends it if its decision differs. A verdict that is inconclusive now, which may be
// temporary, ends if it is so twice; unconfirmed is true the first time.
func (j *reevaluation) one(ctx context.Context, id string) (unconfirmed bool, err error) {
	recorded, err := j.records.Get(ctx, id)
	if err != nil {
		return false, err
	}
	if counts := recorded.Ended == "" && recorded.Verified() == nil; !counts {
		return false, nil
	}
	present := standing.Present{Cluster: snapshot.Of(j.cluster), Now: j.cluster.Now()}
	stored, err := standing.Question{Present: present}.Of(ctx, recorded)
	if err != nil {
		return false, err
	}
	options := j.options
	options.Judgement.Monitoring = monitoring.New(j.monitoring, monitoring.DefaultTimeout) // it reads everything once
	again, err := reassessment.Of(ctx, j.cluster, recorded, stored, options.Settings())
	if err != nil {
		return false, err
	}
	before, now := stored.Verdict.Decision, again.Verdict.Decision
	switch {
	case before == now:
		return false, nil
	case now == verdict.Undecided && !j.undecided[id]:
		return true, nil
	}
	j.logger.Info("the decision of a recorded verdict has changed", "run", id, "version", recorded.Target.Version, "was", before, "is", now)
	return false, j.records.Outdate(ctx, id, judgedAgain+string(now), j.cluster.Now())
}

// standingRuns are the IDs of the runs whose verdicts hold.
func (o observed) standingRuns() []string {
	var ids []string
	for _, stored := range o.decided {
		if stored.Holds() && !slices.Contains(ids, stored.Run.ID) {
			ids = append(ids, stored.Run.ID)
		}
	}
	slices.Sort(ids)
	return ids
}
