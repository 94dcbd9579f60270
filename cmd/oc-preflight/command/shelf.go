package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/record"
)

// errNoRun is what there is to say of a cluster without records.
var errNoRun = errors.New("no run is recorded in this cluster; begin one: oc preflight run --to-latest")

// recordNeeds is what it takes to read records. Nobody follows a run here.
func recordNeeds() access.Needs {
	needs := record.ReadNeeds()
	needs.Required = slices.DeleteFunc(needs.Required, func(request access.Request) bool { return request.Verb == "watch" })
	return needs
}

// shelf is where the records of a cluster are.
type shelf struct {
	*cluster.Cluster

	records *record.Store
}

// shelf connects, for commands that need no more than this of the cluster.
func (c *client) shelf(ctx context.Context, needs access.Needs) (shelf, error) {
	reached, err := c.connect()
	if err != nil {
		return shelf{}, err
	}
	if err := needs.Check(ctx, reached.Kubernetes.AuthorizationV1()); err != nil {
		return shelf{}, err
	}
	return shelf{Cluster: reached, records: record.New(reached.Kubernetes)}, nil
}

// current is the run in progress, or the newest one. The rest are other runs in
// progress.
func (s shelf) current(ctx context.Context) (run record.Record, rest []record.Record, err error) {
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

// recall is the report of a run, with what has become of it since.
func (s shelf) recall(ctx context.Context, run record.Record) (report.Report, error) {
	now := snapshot.Of(s.Cluster)
	return runner.Recall(ctx, run, now, s.Now())
}

// waiting tells what is waited for, once that takes a while. The returned
// function ends that.
func waiting(w io.Writer, what string) func() {
	var mutex sync.Mutex
	var shown display
	timer := time.AfterFunc(patience, func() {
		mutex.Lock()
		defer mutex.Unlock()
		shown = newDisplay(w)
		shown.show(runner.Event{Step: what})
	})
	return func() {
		if timer.Stop() {
			return
		}
		mutex.Lock()
		defer mutex.Unlock()
		if shown != nil {
			shown.close()
		}
	}
}

// short is how a run is named in a sentence.
func short(run record.Record) string {
	return fmt.Sprintf("%s (to %s)", run.ID, words.Line(run.To, maxLine))
}
