package running

import (
	"fmt"

	"github.com/openshift/update-preflight/cmd/oc-preflight/runs"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/words"
)

// reportRemoval writes what became of the objects of a run, after the report,
// which lists them. On a terminal, success is not written: the report would scroll.
func (p *interruptPrompt) reportRemoval(removed report.Report) {
	w := p.streams.ErrOut
	_, scrolls := terminal.Of(p.streams.Out)
	if removed.Removal != nil {
		runs.ReportForeign(w, removed.Removal.Foreign, removed.Run.ID)
	}
	switch {
	case p.detached:
		fmt.Fprintf(w, "the checks of run %s continue in the cluster; come back with: %s\n", removed.Run.ID, p.again.About("attach", removed.Run.ID).Command)
	case removed.Removal == nil && len(removed.Created) > 0:
		fmt.Fprintf(w, "%s of the run left in the cluster for inspection; to delete: %s\n", words.Count(len(removed.Created), "object"), p.again.About("cleanup", removed.Run.ID).Command)
	case removed.Removal == nil:
	case len(removed.Removal.Left) == 0 && (p.quiet || scrolls || len(removed.Removal.Deleted) == 0):
	case len(removed.Removal.Left) == 0:
		fmt.Fprintf(w, "deleted %s of the run; a final list found none left\n", words.Count(len(removed.Removal.Deleted), "object"))
	default:
		for _, object := range removed.Removal.Left {
			fmt.Fprintf(w, "not deleted: %s\n", object)
		}
	}
}

// reportRemovals is reportRemoval for each update of a path, of which the last may have
// been detached from.
func (p *interruptPrompt) reportRemovals(updates []report.Report) {
	detached := p.detached
	for i, each := range updates {
		p.detached = detached && i == len(updates)-1
		p.reportRemoval(each)
	}
}
