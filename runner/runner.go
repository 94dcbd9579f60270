// Package runner answers: is it safe to update this cluster to that release?
//
// [Run] is the whole preflight, in stages. Each stage takes the values of those before it
// and returns its own; no stage changes what an earlier one returned:
//
//	observe ─▶ verify ─▶ read ─▶ draft ─▶ join ─▶ execute ─▶ conclude
//	scene      proof     contents draft    run     findings   report
//
// [RunPath] runs these stages for each update of a path, and [Checks] ends after the draft.
// [Attach] continues a recorded run.
//
// The command line calls this package, and so may the cluster-version operator
// (CVO) or a controller: it reads no environment and no flags, writes to no
// stream and exits no process.
package runner

import (
	"context"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/scene/departure"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/contents"
	"github.com/openshift/update-preflight/runner/estate"
	"github.com/openshift/update-preflight/runner/progress"
	"github.com/openshift/update-preflight/runner/proof"
	"github.com/openshift/update-preflight/runner/rehearsal"
)

// Run makes the preflight of one target.
//
// An error without a report means that there is no verdict: an *input.Error for
// a request that cannot be met, any other error when something could not be
// reached or read; nothing is left in the cluster then. Everything that is wrong
// with the release or the cluster is a finding of the report. An error with a
// report names what could not be deleted.
//
// A run is recorded in the cluster. Where a run of the same release and selection
// is in progress, Run waits for its result, and continues it when the process
// that held it is gone. Where the checks of a complete run all passed and still
// hold (package fingerprint), their results are reused and everything else is
// checked again.
//
// Canceling ctx ends the run early with what is known by then. The objects that
// it created are deleted nevertheless, unless Hooks.OnInterrupt decides
// otherwise.
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

// run makes the preflight, and returns what the release contains.
func (r request) run(ctx context.Context) (decided report.Report, inside contents.Contents, err error) {
	p, err := observe(ctx, r, Options.readingNeeds)
	if err == nil && !departure.Provisional(r.from) {
		err = scene.Installed(p.scene.Version, p.target)
	}
	if err != nil {
		return report.Report{}, inside, err
	}
	limited, cancel := context.WithTimeout(ctx, p.scene.Remaining())
	defer cancel()
	proven, err := p.verifier().Verify(limited, p.target)
	if err != nil {
		return report.Report{}, inside, err
	}
	inside, err = p.read(limited, proven)
	if err != nil {
		return report.Report{}, inside, err
	}
	draft, err := draftOf(limited, p, inside)
	if err != nil {
		return report.Report{}, inside, err
	}
	inside = draft.contents
	run, err := join(limited, draft)
	if err != nil {
		return report.Report{}, inside, err
	}
	found, failure := run.execute(ctx)
	decided, err = run.conclude(ctx, found, failure)
	return decided, inside, err
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
	return contents.Reader{Verifier: p.verifier(), Cache: p.options.Access.Cache, Partial: p.options.Access.Partial, Manifests: p.options.Selection.Rehearsal != rehearsal.Off}
}

// read reads what the target contains, and the checks of the site.
func (p preparation) read(ctx context.Context, proven proof.Proof) (contents.Contents, error) {
	inside, err := p.reader().Read(ctx, proven, p.target.Version)
	if err != nil {
		return contents.Contents{}, err
	}
	return p.reader().ReadSite(ctx, inside, p.options.Selection.Site), nil
}
