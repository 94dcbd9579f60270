// Package history answers: which runs are recorded, and how did they end?
package history

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/judgement"
	"github.com/openshift/update-preflight/runner/record/standing"
)

// Kind is the kind of the JSON document, of report.APIVersion.
const Kind = "PreflightHistory"

// History is a list of runs, as a document.
type History struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Runs       []run  `json:"runs"`

	records  []record.Record
	verdicts standing.Verdicts
	after    map[string]string
	now      time.Time
}

// Of returns the history of the runs, in their order, with the standing of their verdicts and the judgements of the
// updates after them.
func Of(verdicts standing.Verdicts, judged judgement.Runs) History {
	runs, now := verdicts.Runs, verdicts.Now
	history := History{
		APIVersion: report.APIVersion, Kind: Kind, Runs: []run{}, records: runs, verdicts: verdicts, after: map[string]string{},
		now: now,
	}
	for _, each := range runs {
		if after := judged.After(each); after != nil {
			history.after[each.ID] = after.Decision
		}
		history.Runs = append(history.Runs, run{
			ID: each.ID, Phase: string(each.Phase), Decision: decision(each), Authenticity: string(each.Authentication.State), From: each.From,
			To: each.Target.Version, Path: runner.PathOf(each), Image: each.Target.Image,
			StartTime: words.Time(each.StartTime), CompletionTime: words.Time(each.CompletionTime),
			Checks: len(each.Checks), Holder: holder(each, now), ToolVersion: each.ToolVersion,
			Requester: string(each.Requester), Outdated: history.outdated(each), Refusal: history.refusal(each), AfterUpdate: history.after[each.ID],
		})
	}
	return history
}

// run is one run. Times are RFC 3339 in UTC.
type run struct {
	ID       string `json:"id"`
	Phase    string `json:"phase"`
	Decision string `json:"decision,omitempty"`
	// Authenticity is Authentic, Unauthentic or Unverifiable; the decision of a record
	// that is not Authentic is Unverified.
	Authenticity string `json:"authenticity"`
	From         string `json:"from"`
	To           string `json:"to"`
	// Path is set for a later update of a path: the versions up to To, From first.
	Path           []string `json:"path,omitempty"`
	Image          string   `json:"image"`
	StartTime      string   `json:"startTime"`
	CompletionTime string   `json:"completionTime,omitempty"`
	// Checks counts the checks of the release that were to report.
	Checks      int    `json:"checks"`
	Holder      string `json:"holder,omitempty"`
	ToolVersion string `json:"toolVersion,omitempty"`
	// Requester is user, selected or ahead; empty where the record has none.
	Requester string `json:"requester,omitempty"`
	// Outdated is why the verdict no longer holds, and Refusal why one that is Ready and holds permits no update.
	Outdated string `json:"outdated,omitempty"`
	Refusal  string `json:"refusal,omitempty"`
	// AfterUpdate is Good, Regressed or RolledBack, Unverified for a judgement that is not authentic, or NotJudged where the
	// cluster runs the release and none is stored; empty where the update was not made.
	AfterUpdate string `json:"afterUpdate,omitempty"`
}

// mostRuns limits the tables by default.
const mostRuns = 20

// Document is the newest runs as a table. On a terminal each run is one line; a page has all
// runs with all columns, since it may be read later.
func (h History) Document(view document.View) document.Document {
	if view.Full {
		return h.Wide(view)
	}
	digits := shortest(h.records)
	table := document.Table{Columns: []string{"Run", "To", "Decision", "When", "By", "What"}}
	return h.document(view, table, func(each record.Record, why string) []string {
		return []string{
			each.ID[:min(digits, len(each.ID))], each.Target.Version, h.decisionOrPhase(each, why), since(each.StartTime, h.now),
			string(each.Requester), h.shortened(h.stateOf(each, why), digits) + pathSuffix(each),
		}
	})
}

// Wide is the newest runs as a table with all columns.
func (h History) Wide(view document.View) document.Document {
	table := document.Table{
		Columns: []string{"Run", "From", "To", "Decision", "Started", "Took", "By", "Checks", "Holder", "Image", "What"}, Whole: true,
	}
	return h.document(view, table, func(each record.Record, why string) []string {
		return []string{
			each.ID, each.From, each.Target.Version, h.decisionOrPhase(each, why), words.Time(each.StartTime), took(each), string(each.Requester),
			strconv.Itoa(len(each.Checks)), holder(each, h.now), each.Target.Image, h.stateOf(each, why) + pathSuffix(each),
		}
	})
}

// document has a table of the newest runs; with the judgements of their updates if there are any.
func (h History) document(view document.View, table document.Table, row func(each record.Record, why string) []string) document.Document {
	made := document.Document{Title: "Preflights of this cluster", Source: "The JSON document has all data."}
	if len(h.records) == 0 {
		made.Blocks = []document.Block{document.Paragraph{Text: "no run is recorded in this cluster"}}
		return made
	}
	listed := h.records[:view.Entries(len(h.records), mostRuns)]
	isJudged := slices.ContainsFunc(listed, func(each record.Record) bool { return h.after[each.ID] != "" })
	if isJudged {
		table.Columns = slices.Insert(table.Columns, len(table.Columns)-1, "After")
	}
	for _, each := range listed {
		cells := row(each, h.outdated(each))
		if isJudged {
			cells = slices.Insert(cells, len(cells)-1, h.after[each.ID])
		}
		table.Rows = append(table.Rows, cells)
	}
	table.Title, table.Result, table.More = "Runs", "Decision", len(h.records)-len(listed)
	made.Blocks = []document.Block{table}
	return made
}

// Names is preflight/ID for every run.
func (h History) Names() ([]string, error) {
	var names []string
	for _, each := range h.Runs {
		names = append(names, format.RunName+"/"+each.ID)
	}
	return names, nil
}

// outdated is why the verdict of a run no longer holds; of one without its report, as far as the records show it.
func (h History) outdated(run record.Record) string {
	if run.Phase != record.Complete || run.Verified() != nil || run.Decision == "" {
		return ""
	}
	if stored, found := h.verdicts.Report(run.ID); found {
		return words.Clauses(stored.Standing.Ended, 1)
	}
	ended := report.Report{Run: report.Run{CompletionTime: words.Time(run.CompletionTime)}}
	return cmp.Or(h.verdicts.Superseded(run), run.Ended, standing.Expired(ended, h.now))
}

// refusal is why a verdict that is Ready and holds permits no update; empty for others.
func (h History) refusal(run record.Record) string {
	stored, found := h.verdicts.Report(run.ID)
	if !found || !stored.Holds() || stored.Verdict.Decision != verdict.Ready {
		return ""
	}
	return stored.Refusal()
}

// decisionOrPhase is the decision, or the phase of a run in progress.
func (h History) decisionOrPhase(run record.Record, why string) string {
	switch {
	case run.Phase == record.Running:
		return string(run.Phase)
	case why != "":
		return cmp.Or(decision(run), "-") + " (outdated)"
	case h.refusal(run) != "":
		return decision(run) + " (permits nothing)"
	}
	return decision(run)
}

// pathSuffix names the path of a run of a later update; empty for any other run.
func pathSuffix(run record.Record) string {
	path := runner.PathOf(run)
	if len(path) == 0 {
		return ""
	}
	return "; path " + strings.Join(path, " → ")
}

// stateOf describes the state of a run beside its decision.
func (h History) stateOf(run record.Record, why string) string {
	switch {
	case run.Abandoned(h.now):
		return "left: attach to it or cancel it"
	case run.Phase == record.Running:
		return "held by " + cmp.Or(run.Holder, "-")
	case run.Verified() != nil:
		return string(run.Phase) + ", " + string(run.Authentication.State)
	case why != "" || h.refusal(run) != "":
		return cmp.Or(why, h.refusal(run))
	}
	return fmt.Sprintf("%s in %s", run.Phase, cmp.Or(took(run), "-"))
}

// shortened has the IDs of the runs as the table has them.
func (h History) shortened(text string, digits int) string {
	for _, each := range h.records {
		if len(each.ID) > digits {
			text = strings.ReplaceAll(text, each.ID, each.ID[:digits])
		}
	}
	return text
}

// shortest is the number of characters by which the IDs differ.
func shortest(runs []record.Record) int {
	const least, most = 8, 36 // the first group of a UUID, and all of it
	for digits := least; digits < most; digits++ {
		seen := map[string]bool{}
		for _, each := range runs {
			seen[each.ID[:min(digits, len(each.ID))]] = true
		}
		if len(seen) == len(runs) {
			return digits
		}
	}
	return most
}

func decision(run record.Record) string {
	if run.Verified() != nil {
		return judgement.Unverified
	}
	return run.Decision
}

// holder names the process that holds a run in progress; empty once that process is gone.
func holder(run record.Record, now time.Time) string {
	if run.Abandoned(now) {
		return ""
	}
	return run.Holder
}

func took(run record.Record) string {
	if run.CompletionTime.IsZero() {
		return ""
	}
	return since(run.StartTime, run.CompletionTime)
}

func since(start, end time.Time) string {
	if start.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(0, end.Sub(start)))
}
