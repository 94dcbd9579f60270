package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/scene/departure"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/updateplan/duration"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/verdict/fingerprint"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/contents"
	"github.com/openshift/update-preflight/runner/execution"
	"github.com/openshift/update-preflight/runner/hold"
	"github.com/openshift/update-preflight/runner/proof"
	"github.com/openshift/update-preflight/runner/sampling"
	"github.com/openshift/update-preflight/runner/selection"
)

// reported is what a report has of the run itself.
type reported struct {
	id      string
	started time.Time
	reused  hold.Reuse
	created []report.Object
}

// reportOf folds everything that was found into the report.
func (p preparation) reportOf(ctx context.Context, inside contents.Contents, found execution.Found, run reported) report.Report {
	decided := p.judge(inside, found.Collection, found.Phase)
	decided.Run.ID, decided.Run.StartTime, decided.Run.ChecksFrom = run.id, words.Time(run.started), run.reused.ID
	decided.Created = append(decided.Created, run.created...)
	decided.Duration = duration.Of(ctx, p.scene, update.Kind(decided.Target.UpdateKind))
	if found.Phase == report.PhaseComplete {
		decided.Verdict.ValidUntil = words.Time(p.validUntil(decided.Verdict.Accepted, run.reused))
	}
	if decided.Permits() {
		decided.Actions = p.scene.StartOf(p.target)
	}
	return decided
}

// withBaseline stores the state from which the update of a report starts, and returns the report with a notice where
// that is not possible. A later update of a path, and one whose checks have not ended, have no such state.
func (p preparation) withBaseline(ctx context.Context, decided report.Report) report.Report {
	if decided.Run.Phase != report.PhaseComplete || departure.Provisional(p.request.from) {
		return decided
	}
	run := sampling.Run{Scene: p.scene, Progress: p.progress, Sampler: p.options.Hooks.Sampler, Names: p.options.Baseline}
	return run.Keep(ctx, run.Read(ctx), decided)
}

// judge folds findings into a report, without what belongs to a run.
func (p preparation) judge(inside contents.Contents, collected collector.Collection, phase string) report.Report {
	from := p.request.from
	policy := departure.Policy(p.scene, from, p.target.Version)
	expected := collected.Expectation()
	decided, findings := departure.Fold(collected.Findings, expected, policy)
	decided.Narrowed = selection.Narrowed(p.options.Selection, p.options.Judgement)
	return report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind, AskedAgain: from.Postponed(p.scene),
		Run: report.Run{
			StartTime: words.Time(p.scene.Start), CompletionTime: words.Time(p.scene.Cluster.Now()), Phase: phase, ToolVersion: p.options.Hooks.ToolVersion,
		},
		Cluster:  p.scene.About,
		Target:   p.reportedTarget(inside),
		Path:     departure.Versions(from, p.target.Version),
		Verdict:  decided,
		Expected: expected,
		CVO:      p.predict(inside, policy, findings),
		Findings: findings,
		Created:  []report.Object{},
	}
}

func (p preparation) reportedTarget(inside contents.Contents) report.Target {
	target := report.Target{
		Version: p.target.Version, Image: p.target.Image, Child: inside.Child(), Signers: []string{},
		UpdateKind: departure.Kind(p.scene, p.request.from, p.target.Version),
	}
	if signers := inside.Proof.Signers(); len(signers) > 0 {
		target.Verified, target.Signers = true, signers
	}
	return target
}

// validUntil is when a verdict that is made now ends to hold, unless the cluster
// changes before: reused results may be older, and an acceptance may expire.
func (p preparation) validUntil(accepted []string, reused hold.Reuse) time.Time {
	until := p.scene.Cluster.Now().Add(fingerprint.MaxAge)
	if !reused.Until.IsZero() && reused.Until.Before(until) {
		until = reused.Until
	}
	if expiry := p.scene.Account(p.target.Version).Until(accepted); !expiry.IsZero() && expiry.Before(until) {
		until = expiry
	}
	return until
}

// predict is what CVO would do with the same request: with the image where one was
// named, otherwise with the version alone, as "oc adm upgrade --to" requests it.
func (p preparation) predict(inside contents.Contents, policy verdict.Policy, findings []finding.Finding) report.CVO {
	if policy.Provisional {
		return report.CVO{Reason: "NotEvaluated", Message: fmt.Sprintf("CVO evaluates this update when the cluster runs %s", p.request.from.From(p.scene))}
	}
	if refusal, refused := refusedByNodes(findings); refused {
		return refusal
	}
	request := cvo.Request{Version: p.target.Version, Signed: inside.Proof.CVO, PayloadVersion: inside.Version()}
	if p.request.target.Image != "" {
		request.Version, request.Image = "", p.target.Image
	}
	return p.scene.Predict(request, policy, findings)
}

var _ = catalog.Reasons("The cluster-version operator refuses the update.", `
RetrievePayload | It cannot download or verify the release. | Do what the finding about the release states.`)

// refusedByNodes reports whether the image policies of the cluster refuse the
// release to the pod in which CVO unpacks it. Force does not get past them.
func refusedByNodes(findings []finding.Finding) (report.CVO, bool) {
	for _, f := range findings {
		if f.Name == proof.NameReleasePolicy && f.Outcome == preflight.Fail {
			return report.CVO{Accepts: new(false), Reason: "RetrievePayload", Message: "Unable to download and prepare the update: " + f.Message}, true
		}
	}
	return report.CVO{}, false
}
