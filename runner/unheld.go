package runner

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/fingerprint"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner/recordstore"
)

// unheld is a run without Jobs: nothing of it can be continued by another
// process, so it is recorded when it has ended.
type unheld struct {
	plan
	id string
}

// conduct implements run.
func (u unheld) conduct(ctx, limited context.Context) (report.Report, error) {
	e := execution{manifests: u.manifests, sources: u.sources, id: u.id, started: u.start, deadline: u.deadline()}
	collected, err := e.execute(limited)
	if err != nil {
		return report.Report{}, err
	}
	u.view, e.view = collected.seen, collected.seen
	decided := u.record(ctx, e.conclude(ctx, collected))
	u.progress.Decided(decided)
	return decided, nil
}

// record writes the record of the run. A run that the user may not record has no
// ID: every ID that is shown names a record.
func (u unheld) record(ctx context.Context, decided report.Report) report.Report {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	ending, err := endingOf(decided)
	if err == nil {
		ending.Fingerprint = fingerprint.Read(ctx, u.snapshot)
		err = recordstore.New(u.cluster.Kubernetes).Add(ctx, u.intent(u.id), ending)
	}
	switch {
	case err == nil:
		u.progress.Started(u.id)
		return decided
	case apierrors.IsForbidden(err):
		u.progress.step("the run is not recorded, because the permission is missing")
	default:
		u.progress.step("the run is not recorded: %v", err)
	}
	decided.Run.ID = ""
	return decided
}
