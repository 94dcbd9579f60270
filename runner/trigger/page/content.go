package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/afterview"
	"github.com/openshift/update-preflight/collector/document/reportview"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/judgement"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/runner/record/standing"
	"github.com/openshift/update-preflight/runner/selection"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
)

const title = "Update preflight"

// records read the runs and judgements that the page shows.
type records struct {
	cluster *cluster.Cluster
	store   *recordstore.Store
	asked   selection.Asked
}

// view shows as much as "-o html" does.
func view() document.View { return document.View{Full: true} }

// document is the run in progress, the verdict on the selected target, or else the newest one, and the judgement of the
// last update: what is of that update comes last, unless it was made after the verdict. Of what cannot be read the page
// states so, and the error has it.
func (r records) document(ctx context.Context) (document.Document, error) {
	now := r.cluster.Now()
	page := document.Document{Title: title, Time: words.Time(now), Source: "Reload the page for what is recorded since. oc preflight history lists the verdicts on other targets."}
	present := snapshot.Of(r.cluster)
	version, err := present.ClusterVersion(ctx)
	if err == nil {
		page.Cluster = string(version.Spec.ClusterID)
		var listed []record.Record
		if listed, err = r.store.List(ctx); err == nil {
			question := standing.Question{Present: standing.Present{Cluster: present, Now: now}, Asked: r.asked, Runs: listed}
			page.Blocks, err = r.parts(ctx, question, version)
			return page, err
		}
	}
	page.Blocks = []document.Block{unreadable(err)}
	return page, err
}

func unreadable(err error) document.Block {
	return unclear("Unreadable", "What is recorded in this cluster could not be read: "+words.External(err.Error()))
}

func unclear(word, meaning string) document.Block {
	return document.Verdict{Mark: document.Mark{Level: document.Unclear, Word: word}, Meaning: meaning}
}

func (r records) parts(ctx context.Context, question standing.Question, version *configv1.ClusterVersion) ([]document.Block, error) {
	judged, err := judgement.OfRuns(ctx, r.cluster.Kubernetes, version)
	if err != nil {
		return []document.Block{unreadable(err)}, err
	}
	blocks, err := r.running(ctx, question)
	verdict, updated, failed := r.verdict(ctx, question, version, judged)
	after := r.after(ctx, version)
	if updated {
		verdict, after = after, verdict
	}
	return slices.Concat(blocks, verdict, after), errors.Join(err, failed)
}

// running is the newest run in progress.
func (r records) running(ctx context.Context, question standing.Question) ([]document.Block, error) {
	at := slices.IndexFunc(question.Runs, func(run record.Record) bool { return run.Phase == record.Running && !run.Provisional })
	if at < 0 {
		return nil, nil
	}
	stored, err := r.report(ctx, question, question.Runs[at].ID, judgement.Runs{})
	if err != nil {
		return []document.Block{unreadable(err)}, err
	}
	if stored.Run.Phase != report.PhaseRunning {
		return nil, nil // it has ended since it was listed
	}
	return append([]document.Block{section(stored, "In progress: ")}, command("Follow the run:", finding.Read("oc preflight attach %s", stored.Run.ID))...), nil
}

// verdict is the verdict that counts. updated is true where the update was made since.
func (r records) verdict(ctx context.Context, question standing.Question, version *configv1.ClusterVersion, judged judgement.Runs) (
	blocks []document.Block, updated bool, err error,
) {
	target, selected := runplan.Selected(version)
	newest := slices.IndexFunc(question.Runs, func(run record.Record) bool { return run.Phase == record.Complete && !run.Provisional })
	if !selected && newest >= 0 {
		target.Release = question.Runs[newest].Target
	}
	counts, found := question.Newest(target.Digest())
	if !found {
		return none(target, question.Runs), false, nil
	}
	stored, err := r.report(ctx, question, counts.ID, judged)
	if err != nil {
		return []document.Block{unreadable(err)}, false, err
	}
	now := command("This is what the run found. To evaluate gates, risks and health as they are now:", finding.Read("oc preflight status %s", counts.ID))
	return append([]document.Block{section(stored, "")}, now...), stored.AfterUpdate != nil, nil
}

// none states that there is no verdict on a target, which is zero where none is selected, and how to get one.
func none(target runplan.Target, runs []record.Record) []document.Block {
	meaning := "No complete preflight of this cluster is recorded."
	if target.Image != "" {
		meaning = fmt.Sprintf("The update to %s is selected, and no complete preflight of it is recorded.", cmp.Or(target.Version, target.Image))
	}
	blocks := []document.Block{unclear("No verdict", meaning)}
	if slices.ContainsFunc(runs, func(run record.Record) bool {
		return run.Phase == record.Running && run.Target.Digest() == target.Digest()
	}) {
		return blocks
	}
	return append(blocks, command("Run one:", again(report.Target{Version: target.Version, Image: target.Image}))...)
}

// again is the command that runs the preflight of a target.
func again(target report.Target) finding.Action {
	switch {
	case target.Version != "":
		return finding.Read("oc preflight run --to %s", target.Version)
	case target.Image != "":
		return finding.Read("oc preflight run --to-image %s", target.Image)
	}
	return finding.Read("oc preflight run --to-latest")
}

// command is a command after a lead; nothing where there is none that may be typed.
func command(lead string, action finding.Action) []document.Block {
	if action.Command == "" {
		return nil
	}
	return []document.Block{document.Command{Lead: lead, Text: action.Command}}
}

// report evaluates a recorded run as of now, and adds the commands that follow from it.
func (r records) report(ctx context.Context, question standing.Question, id string, judged judgement.Runs) (reportview.Report, error) {
	recorded, err := r.store.Get(ctx, id)
	if err != nil {
		return reportview.Report{}, err
	}
	stored, err := question.Of(ctx, recorded)
	if err != nil {
		return reportview.Report{}, err
	}
	shown := reportview.Report{Report: stored}
	if stored.Run.Phase != report.PhaseRunning {
		if shown.AfterUpdate = judged.After(recorded); shown.AfterUpdate != nil {
			shown.After = finding.Change("oc preflight after %s", id).Command
		}
	}
	shown.Actions = slices.DeleteFunc(slices.Clone(stored.Actions), func(a finding.Action) bool {
		return a.Command == "" || a.Type == finding.ActionRetry || a.Type == finding.ActionStart && !shown.Permits()
	})
	retry := again(stored.Target)
	retry.Type = finding.ActionRetry
	if retry.Command != "" && stored.Run.Phase != report.PhaseRunning && (!stored.Holds() || slices.ContainsFunc(stored.Findings, finding.Finding.Open)) {
		shown.Actions = append(shown.Actions, retry)
	}
	return shown, nil
}

// after is the judgement of the last update; nothing where none is stored.
func (r records) after(ctx context.Context, version *configv1.ClusterVersion) []document.Block {
	made, found := judgement.Last(ctx, r.cluster, version)
	if !found {
		return nil
	}
	shown := section(afterview.Report{Report: made}, "")
	return append([]document.Block{shown}, command("Judge the update as the cluster is now:", finding.Change("oc preflight after"))...)
}

// section is a document as a part of the page.
func section(of document.Source, lead string) document.Section {
	made := of.Document(view())
	return document.Section{Title: lead + strings.TrimPrefix(made.Title, title+": "), Blocks: made.Complete("", view()).Blocks}
}
