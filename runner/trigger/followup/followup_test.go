package followup_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/runner/inspection"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
	"github.com/openshift/update-preflight/runner/trigger/followup"
	"github.com/openshift/update-preflight/test/after"
)

// limit bounds each wait.
const limit = time.Minute

// world is a cluster whose update has ended.
type world struct {
	t       *testing.T
	cluster *cluster.Cluster
	run     string
	options inspection.Options
}

func updated(t *testing.T, changes ...after.Case) world {
	t.Helper()
	state := after.New(time.Now())
	before := state.Clone()
	state.Update()
	for _, each := range changes {
		each.Apply(state)
	}
	server, run := state.Recorded(t, before)
	connected, err := cluster.Connect(server.Config(), "test")
	if err != nil {
		t.Fatal(err)
	}
	return world{t: t, cluster: connected, run: run, options: inspection.Options{Monitoring: state.Monitoring(t)}}
}

// follow judges until a decision is one of these, and returns all that differed.
func (w world) follow(until ...afterupdate.Decision) []afterupdate.Report {
	w.t.Helper()
	changes := make(chan afterupdate.Report, 100)
	follower := followup.New(w.cluster, followup.Options{
		Inspection: w.options, Pauses: followup.Pauses{Settling: 10 * time.Millisecond, Decided: time.Hour},
		Logger: slog.New(slog.DiscardHandler), Changed: func(judged afterupdate.Report) { changes <- judged },
	})
	ctx, cancel := context.WithTimeout(w.t.Context(), limit)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- follower.Start(ctx) }()
	var all []afterupdate.Report
	for {
		select {
		case judged := <-changes:
			all = append(all, judged)
			if slices.Contains(until, judged.Decision) {
				cancel()
				if err := <-ended; err != nil {
					w.t.Error(err)
				}
				return all
			}
		case <-ctx.Done():
			w.t.Fatalf("no decision after %d changes: %v", len(all), ctx.Err())
		}
	}
}

func (w world) stored() afterupdate.Decision {
	w.t.Helper()
	found, ok, err := baselinestore.New(w.cluster.Kubernetes).Judgement(w.t.Context(), w.run)
	if err != nil {
		w.t.Fatal(err)
	}
	if !ok {
		return ""
	}
	return found.Report.Decision
}

// An update is judged by itself, and the judgement is stored; the next process takes it over.
func TestGood(t *testing.T) {
	w := updated(t)
	all := w.follow(afterupdate.Good)
	if first := all[0].Decision; first != afterupdate.Settling {
		t.Errorf("after one sample the decision is %s", first)
	}
	last := all[len(all)-1]
	if last.Update.Run != w.run || w.stored() != afterupdate.Good {
		t.Errorf("run %s, stored %q", last.Update.Run, w.stored())
	}
	if again := w.follow(afterupdate.Good); len(again) != 1 || again[0].Samples.Last != last.Samples.Last {
		t.Errorf("another process judged again: %d changes", len(again))
	}
}

// What is worse is stated, and stored.
func TestRegressed(t *testing.T) {
	w := updated(t, after.Regressions()[2])
	all := w.follow(afterupdate.Regressed)
	if last := all[len(all)-1]; len(last.Regressions) != 1 || w.stored() != afterupdate.Regressed {
		t.Errorf("stored %q: %+v", w.stored(), last.Regressions)
	}
}

// Two processes that judge at the same time store one judgement.
func TestTwo(t *testing.T) {
	w := updated(t)
	done := make(chan []afterupdate.Report, 1)
	go func() { done <- w.follow(afterupdate.Good) }()
	w.follow(afterupdate.Good)
	<-done
	all, err := baselinestore.New(w.cluster.Kubernetes).Judgements(t.Context())
	if err != nil || len(all) != 1 || all[0].Report.Decision != afterupdate.Good {
		t.Errorf("%d judgements: %v", len(all), err)
	}
}
