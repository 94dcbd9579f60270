// Package runner answers: is it safe to update this cluster to that release?
//
// [Run] is the whole preflight, in stages. Each stage takes the values of the earlier stages and returns its own; no
// stage changes the values of an earlier one:
//
//	observe ─▶ verify ─▶ read ─▶ draft ─▶ join ─▶ execute ─▶ conclude
//	scene      proof     contents draft    run     findings   report
//
// [RunPath] runs these stages for each update of a path, and [Checks] ends after the draft. [Attach] continues a
// recorded run.
//
// The command line calls this package, and so may the cluster-version operator (CVO) or a controller: it does not read
// the environment or flags, does not write to streams, and does not exit the process.
package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/scene/departure"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/updateplan/duration"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/verdict/fingerprint"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/contents"
	"github.com/openshift/update-preflight/runner/estate"
	"github.com/openshift/update-preflight/runner/execution"
	"github.com/openshift/update-preflight/runner/hold"
	"github.com/openshift/update-preflight/runner/progress"
	"github.com/openshift/update-preflight/runner/proof"
	"github.com/openshift/update-preflight/runner/rehearsal"
	"github.com/openshift/update-preflight/runner/selection"
)

// Run runs the preflight of one target.
//
// An error without a report means that there is no verdict: an *input.Error for a request that cannot be met, any other
// error when something could not be reached or read; nothing is left in the cluster then. Every problem of the release
// or the cluster is a finding of the report. An error with a report names objects that could not be deleted.
//
// A run is recorded in the cluster. If a run of the same release and selection is in progress, Run waits for its
// result, and continues it if its process is gone. If the checks of a complete run all passed and their results are
// still valid (package fingerprint), the results are reused and everything else is checked again.
//
// Canceling ctx ends the run early with the findings so far. The objects that it created are deleted nevertheless,
// unless Hooks.OnInterrupt decides otherwise.
func Run(ctx context.Context, cluster *cluster.Cluster, target Target, options Options) (report.Report, error) {
	decided, _, err := request{cluster: cluster, target: target, options: options, from: departure.Present()}.run(ctx)
	return decided, err
}

type request struct {
	cluster *cluster.Cluster
	target  Target
	options Options
	from    departure.Departure
	// graph identifies where the risks of a later update of a path are read from.
	graph string
	// shared are the results of a path; nil for a run without a path.
	shared *sharedResults
}

// run runs the preflight, and also returns the contents of the release.
func (r request) run(ctx context.Context) (report.Report, contents.Contents, error) {
	p, err := observe(ctx, r, Options.readingNeeds)
	if err == nil && !departure.Provisional(r.from) {
		err = scene.Installed(p.scene.Version, p.target)
	}
	if err != nil {
		return report.Report{}, contents.Contents{}, err
	}
	limited, cancel := context.WithTimeout(ctx, p.scene.Remaining())
	defer cancel()
	draft, err := p.draft(limited)
	if err != nil {
		return report.Report{}, draft.contents, err
	}
	run, err := join(limited, draft)
	if err != nil {
		return report.Report{}, draft.contents, err
	}
	found, failure := run.execute(ctx)
	decided, err := run.conclude(ctx, found, failure)
	return decided, draft.contents, err
}

// draft verifies and reads the release, and selects its checks.
func (p preparation) draft(ctx context.Context) (draft, error) {
	proven, err := p.verifier().Verify(ctx, p.target)
	if err != nil {
		return draft{}, err
	}
	inside, err := p.read(ctx, proven)
	if err != nil {
		return draft{}, err
	}
	return draftOf(ctx, p, inside)
}

// preparation is a request for the cluster as it is.
type preparation struct {
	request  request
	options  Options
	progress *progress.Serial
	scene    scene.Scene
	// target is the requested release, with what was found out about it.
	target  update.Release
	pulling estate.Pulling
}

// observe reads the cluster and resolves the target. It waits for CVO only where the target
// depends on it: the run is recorded before any other wait. Its error names all missing
// permissions of the run, before a request that requires one. It creates no objects.
func observe(ctx context.Context, r request, needs func(Options) access.Needs) (preparation, error) {
	if err := r.target.validate(); err != nil {
		return preparation{}, err
	}
	options, err := r.options.on(r.cluster)
	if err != nil {
		return preparation{}, err
	}
	if err := estate.Review(ctx, options.Estate); err != nil {
		return preparation{}, err
	}
	observer := progress.New(options.Hooks.Observer, options.Hooks.Logger)
	settings := options.settings(observer)
	settings.Asks = rehearsal.Asks(r.cluster, options.Selection.Rehearsal, options.Hooks.Logger)
	s, err := scene.Open(ctx, r.cluster, settings, needs(options))
	if err != nil {
		return preparation{}, err
	}
	resolved, err := r.target.resolve(s.Version)
	if err != nil || r.target.Latest {
		s = s.AwaitStatus(ctx) // a change of the channel changes the known releases
		resolved, err = r.target.resolve(s.Version)
	}
	if err != nil && options.Access.Partial && r.target.Version != "" { // it is not listed
		resolved, err = update.Release{Version: r.target.Version}, nil
	}
	if err != nil {
		return preparation{}, err
	}
	pulling := estate.Pull(ctx, s, options.Access.Local)
	return preparation{request: r, options: options, progress: observer, scene: s, target: resolved, pulling: pulling}, nil
}

func (p preparation) verifier() proof.Verifier {
	return proof.Verifier{Scene: p.scene, From: p.request.from, Trust: p.options.Trust, Registries: p.pulling.Release}
}

func (p preparation) reader() contents.Reader {
	return contents.Reader{
		Verifier: p.verifier(), Cache: p.options.Access.Cache, Partial: p.options.Access.Partial,
		Manifests: p.options.Selection.Rehearsal != rehearsal.Off,
	}
}

// read reads what the target contains, and the checks of the site.
func (p preparation) read(ctx context.Context, proven proof.Proof) (contents.Contents, error) {
	inside, err := p.reader().Read(ctx, proven, p.target.Version)
	if err != nil {
		return contents.Contents{}, err
	}
	return p.reader().ReadSite(ctx, inside, p.options.Selection.Site), nil
}

// Target selects the target release. Exactly one field is set.
type Target struct {
	// Version is looked up in ClusterVersion: status.availableUpdates, then
	// conditionalUpdates, then history.
	Version string
	// Latest selects the newest of status.availableUpdates.
	Latest bool
	// Image is a pull spec by digest.
	Image string

	// release is known already for a later update of a path.
	release update.Release
}

func (t Target) given() int {
	given := 0
	for _, set := range []bool{t.Version != "", t.Latest, t.Image != ""} {
		if set {
			given++
		}
	}
	return given
}

// validate returns an error for an invalid selection, before a request to the cluster.
// An empty selection is left to resolve, whose error lists the known releases.
func (t Target) validate() error {
	if t.given() > 1 {
		return input.Errorf("more than one target release is named: name a version, the latest or an image")
	}
	if t.Version == "" {
		return nil
	}
	if _, err := semver.Parse(t.Version); err != nil {
		return input.Errorf("the version %q is not a semantic version like 4.19.3: %w", t.Version, err)
	}
	return nil
}

// resolve finds the release.
func (t Target) resolve(clusterVersion *configv1.ClusterVersion) (update.Release, error) {
	known := scene.KnownReleases(clusterVersion)
	switch {
	case t.given() == 0:
		return update.Release{}, input.Errorf("no target release is named; the cluster knows %s", scene.ListVersions(known))
	case t.release.Image != "":
		return t.release, nil
	case t.Image != "":
		return update.Release{Image: t.Image}, nil
	case t.Latest:
		return latest(clusterVersion)
	}
	for _, candidate := range known {
		if candidate.Version == t.Version && candidate.Image != "" {
			return candidate, nil
		}
	}
	return update.Release{}, input.Errorf("the cluster knows no release %s; it knows %s%s: name another release, or "+
		"specify its image by digest",
		t.Version, scene.ListVersions(known), notRetrieved(clusterVersion))
}

// notRetrieved is why the cluster may know no updates, in CVO's words; empty where it has
// retrieved them.
func notRetrieved(clusterVersion *configv1.ClusterVersion) string {
	for _, condition := range clusterVersion.Status.Conditions {
		if condition.Type == configv1.RetrievedUpdates && condition.Status == configv1.ConditionFalse {
			return ", since its updates could not be retrieved: RetrievedUpdates is " + words.Condition(condition.Status,
				words.Line(condition.Reason, maxCause), words.Line(condition.Message, maxCause))
		}
	}
	return ""
}

// maxCause bounds the words of CVO in an error, in bytes.
const maxCause = 512

func latest(clusterVersion *configv1.ClusterVersion) (update.Release, error) {
	var newest update.Release
	var newestVersion semver.Version
	for _, available := range clusterVersion.Status.AvailableUpdates {
		version, err := semver.Parse(available.Version)
		if err != nil {
			continue // cannot be compared; it can still be named by its version
		}
		if newest.Image == "" || version.GT(newestVersion) {
			newest, newestVersion = update.Release{Version: available.Version, Image: available.Image}, version
		}
	}
	if newest.Image == "" {
		return update.Release{}, input.Errorf(
			"ClusterVersion %q has no available updates in channel %q%s; name a release by its version or image",
			clusterVersion.Name, clusterVersion.Spec.Channel, notRetrieved(clusterVersion))
	}
	return newest, nil
}

// reported is the part of a report that describes the run itself.
type reported struct {
	id      string
	started time.Time
	reused  hold.Reuse
	created []report.Object
}

// reportOf folds everything that was found into the report.
func (p preparation) reportOf(ctx context.Context, inside contents.Contents, found execution.Found, run reported) report.Report {
	decided := p.evaluate(inside, found.Collection, found.Phase)
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
	run := sampling{scene: p.scene, progress: p.progress, sampler: p.options.Hooks.Sampler, names: p.options.Baseline}
	return run.keep(ctx, run.read(ctx), decided)
}

// evaluate folds findings into a report, without the parts that belong to a run.
func (p preparation) evaluate(inside contents.Contents, collected collector.Collection, phase string) report.Report {
	from := p.request.from
	policy := departure.Policy(p.scene, from, p.target.Version)
	expected := collected.Expectation()
	decided, findings := departure.Fold(collected.Findings, expected, policy)
	decided.Narrowed = selection.Narrowed(p.options.Selection, p.options.Judgement)
	return report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind, AskedAgain: from.Postponed(p.scene),
		Run: report.Run{
			StartTime: words.Time(p.scene.Start), CompletionTime: words.Time(p.scene.Cluster.Now()), Phase: phase,
			ToolVersion: p.options.Hooks.ToolVersion,
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

// predict returns the expected behavior of CVO for the same request: with the image if one was named, otherwise with
// the version alone, as "oc adm upgrade --to" requests it.
func (p preparation) predict(inside contents.Contents, policy verdict.Policy, findings []finding.Finding) report.CVO {
	if policy.Provisional {
		return report.CVO{
			Reason:  "NotEvaluated",
			Message: fmt.Sprintf("CVO evaluates this update when the cluster runs %s", p.request.from.From(p.scene)),
		}
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

var _ = catalog.Reasons("The cluster-version operator rejects the update.", `
RetrievePayload | It cannot download or verify the release. | Follow the finding about the release.`)

// refusedByNodes reports whether the image policies of the cluster refuse the
// release to the pod in which CVO unpacks it. Force does not get past them.
func refusedByNodes(findings []finding.Finding) (report.CVO, bool) {
	for _, f := range findings {
		if f.Name == proof.NameReleasePolicy && f.Outcome == preflight.Fail {
			return report.CVO{Accepts: new(false), Reason: "RetrievePayload", Message: "Unable to download and prepare the update: " + f.Message},
				true
		}
	}
	return report.CVO{}, false
}
