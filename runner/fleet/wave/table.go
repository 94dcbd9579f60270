package wave

import (
	"fmt"
	"time"

	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/fleet"
)

// OfTable are the clusters of a table on the update to a version. A row that was read longer than
// maxAge before that time, or that does not state how far the update is, is Silent. A document of
// another kind, or about another release, is an *input.Error.
func OfTable(table fleet.Table, to string, maxAge time.Duration, now time.Time) ([]Progress, error) {
	switch {
	case table.Kind != fleet.Kind || table.APIVersion != report.APIVersion:
		return nil, input.Errorf("it is no table of a fleet: its kind is %q of %q, not %s of %s", words.External(table.Kind), words.External(table.APIVersion), fleet.Kind, report.APIVersion)
	case table.Target == "":
		return nil, input.Errorf("the table is about the best update of each cluster, and not about one release: make it with --to %s", to)
	case table.Target != to:
		return nil, input.Errorf("the table is about %s, and not about %s", words.External(table.Target), to)
	}
	clusters := make([]Progress, 0, len(table.Rows))
	for _, row := range table.Rows {
		clusters = append(clusters, ofRow(fleet.Bounded(row), to, maxAge, now))
	}
	return clusters, nil
}

func ofRow(row fleet.Row, to string, maxAge time.Duration, now time.Time) Progress {
	made := Progress{Name: row.Cluster.Name, Stage: Silent}
	read, err := time.Parse(time.RFC3339, row.Observed)
	switch {
	case row.State == fleet.Unreachable || row.State == fleet.Hibernating || row.State == fleet.NotInstalled:
		made.Message = fmt.Sprintf("the cluster is %s; %s", row.State, row.Message)
	case row.Target != to:
		made.Message = fmt.Sprintf("the row is about %q, and not about %s", row.Target, to)
	case row.Update == nil:
		made.Message = "the table does not state how far the update of this cluster is"
	case err != nil:
		made.Message = "the table does not state when this cluster was read"
	case read.Sub(now) > maxClockDifference:
		made.Message = fmt.Sprintf("the row is of %s, which is more than an hour ahead of the clock of this machine", words.Time(read))
	case now.Sub(read) > maxAge:
		made.Message = fmt.Sprintf("the row is of %s, older than %s: make the table again", words.Time(read), maxAge)
	default:
		made.Stage, made.Message = Stage(row.Update.Stage), row.Update.Message
		made.Since, _ = time.Parse(time.RFC3339, row.Update.Since)
		if judged := row.Update.Judgement; judged != nil {
			made.Judgement = &Judgement{Status: judged.Status, Message: judged.Message}
			made.Judgement.Since, _ = time.Parse(time.RFC3339, judged.Since)
		}
	}
	return made
}
