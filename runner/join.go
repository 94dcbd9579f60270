package runner

import (
	"context"
	"errors"
	"os"

	"github.com/google/uuid"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/lease"
	"github.com/openshift/update-preflight/runner/record"
)

// join finds out who makes the checks. A run of the same release that is in
// progress comes first: it is followed. Otherwise the run is this process's; its
// checks need not run where those of a complete run still hold.
func join(ctx context.Context, p plan) (run, error) {
	if p.options.NoJobs {
		return unheld{plan: p, id: uuid.NewString()}, nil
	}
	records := lease.New(p.cluster.Kubernetes)
	begun, finished, err := claim(ctx, p, records)
	if err != nil {
		return nil, err
	}
	if begun == nil {
		return followed{view: p.view, finished: finished}, nil
	}
	h := held{plan: p, records: records, record: begun, results: settledResults(begun.Record())}
	p.progress.Started(begun.Record().ID)
	if err := begun.Record().Verified(); err != nil {
		p.progress.step("%v; no recorded results are used", err)
	}
	if begun.Resumed() {
		p.progress.step("continuing run %s: %d of %s have reported", begun.Record().ID, len(h.results), words.Count(len(begun.Record().Checks), "check"))
		return h, nil
	}
	if earlier, ok := reusable(ctx, p, records); ok {
		h.results, h.reused = earlier.results, earlier
	}
	return h, nil
}

// claim makes this process the holder of the run, or waits for the result of
// another holder: one of the two is returned.
func claim(ctx context.Context, p plan, records *lease.Runs) (*lease.Held, record.Record, error) {
	intent, holder := p.intent(uuid.NewString()), holder()
	for {
		begun, err := records.Begin(ctx, intent, holder)
		busy, isBusy := errors.AsType[*lease.BusyError](err)
		if !isBusy {
			return begun, record.Record{}, notClaimed(err)
		}
		p.progress.Started(busy.ID)
		p.progress.step("run %s of this release is held by %s: waiting for its result", busy.ID, busy.Holder)
		finished, err := records.Follow(ctx, busy.ID, resultsOf(p.progress))
		switch {
		case err == nil && finished.Verified() != nil:
			p.progress.step("%v; the preflight is run again", finished.Verified())
			continue
		case !errors.Is(err, lease.ErrAbandoned):
			return nil, finished, err
		}
		p.progress.step("run %s was abandoned by %s: taking it over", busy.ID, busy.Holder)
	}
}

// notClaimed turns the error for a run in progress with another selection into bad input.
func notClaimed(err error) error {
	if other, ok := errors.AsType[*record.SelectionError](err); ok {
		return &BadInputError{Err: other}
	}
	return err
}

// holder names this process among all that may hold a run.
func holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return host + "_" + uuid.NewString()
}

// run is the fifth stage: held by this process, followed while another process
// holds it, or unheld because it has no Jobs.
type run interface {
	// conduct brings the run to its report. limited is ctx with the deadline of the
	// run.
	conduct(ctx, limited context.Context) (report.Report, error)
}
