package command

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/record"
)

// errNoRun is returned for a cluster without records.
var errNoRun = errors.New("no run is recorded in this cluster; start one: oc preflight run --to-latest")

// recordNeeds are the permissions to read records, without following a run.
func recordNeeds() access.Needs {
	needs := record.ReadNeeds()
	needs.Required = slices.DeleteFunc(needs.Required, func(request access.Request) bool { return request.Verb == "watch" })
	return needs
}

// runStore has the records of a cluster.
type runStore struct {
	*cluster.Cluster

	records *record.Store
}

// runStore connects to the cluster, for commands with these permissions.
func (c *client) runStore(ctx context.Context, needs access.Needs) (runStore, error) {
	reached, err := c.connect()
	if err != nil {
		return runStore{}, err
	}
	if err := c.review(ctx, reached, needs); err != nil {
		return runStore{}, err
	}
	return runStore{Cluster: reached, records: record.New(reached.Kubernetes)}, nil
}

// current is the run in progress, or the newest one. The rest are other runs in
// progress.
func (s runStore) current(ctx context.Context) (run record.Record, rest []record.Record, err error) {
	all, err := s.records.List(ctx)
	if err != nil {
		return record.Record{}, nil, err
	}
	if len(all) == 0 {
		return record.Record{}, nil, errNoRun
	}
	chosen := all[0]
	var running []record.Record
	for _, each := range all {
		if each.Phase == record.Running {
			running = append(running, each)
		}
	}
	if len(running) > 0 {
		chosen, rest = running[0], running[1:]
	}
	run, err = s.records.Get(ctx, chosen.ID)
	return run, rest, err
}

// runID is the ID of a run in an argument: as it is, or as "-o name" writes it.
func runID(argument string) string { return report.BareName(report.RunName, argument) }

// short names a run in a sentence.
func short(run record.Record) string {
	return fmt.Sprintf("%s (to %s)", run.ID, words.Line(run.Target.Version, maxLine))
}
