// Package runner answers: is it safe to update this cluster to that release?
// It is the whole pipeline: signature, payload, Jobs, gates, verdict. The
// command line calls it, and so may the cluster-version operator (CVO).
package runner

import (
	"context"
	"errors"
	"time"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/health"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/signature"
	"github.com/openshift/update-preflight/collector/cluster"
)

// The defaults of Config.
const (
	DefaultParallelism = 32
	DefaultTimeout     = 10 * time.Minute
)

// Config is what a run needs to know. Fields without a default are required.
type Config struct {
	// Cluster reaches the cluster that would be updated.
	Cluster *cluster.Cluster
	// Monitoring reaches the metrics and the alerts of that cluster.
	Monitoring *monitoring.Client
	// Target is the release to ask about.
	Target Target
	// Keyrings and Stores, where given, override what the cluster trusts.
	Keyrings []signature.Keyring
	Stores   []signature.Store
	// Repositories are what signatures may call the repository of a release;
	// none means OpenShift's own.
	Repositories []string
	// Local is what this machine brings to pull images with, after what the
	// cluster has. Cache keeps what was read of releases; nil for none.
	Local registry.Local
	Cache payload.Cache
	// Accepted are the acceptances of a file, Accept the names of further
	// findings that the administrator accepts. Where a finding is accepted more
	// than once, the report names the file before ClusterVersion's
	// spec.desiredUpdate.acceptRisks, and that before Accept.
	Accepted []acceptance.Acceptance
	Accept   []string
	// IgnoredAlerts and IgnoredNamespaces name alerts that only warn, by their
	// own name and by that in their label "namespace".
	IgnoredAlerts, IgnoredNamespaces []string
	// Dependencies are outside of the cluster, and have to answer; nil means
	// that there are none.
	Dependencies *health.Dependencies
	// Force goes on with a release that could not be verified, and past
	// everything that blocks. The verdict says so.
	Force bool
	// Parallelism bounds the Jobs that are unfinished at one time; 0 means
	// DefaultParallelism.
	Parallelism int
	// Timeout bounds the run, from start to verdict; 0 means DefaultTimeout.
	Timeout time.Duration
	// Only and Skip select checks by COMPONENT or COMPONENT.CHECK. A check
	// that is not selected is Unknown: not looking is not a pass.
	Only, Skip []string
	// NoJobs leaves all Jobs alone, as if all were skipped.
	NoJobs bool
	// Images says how closely to look at the release's images; empty means
	// image.Manifests.
	Images image.Mode
	// Now is the time by the cluster's clock, once an answer of the cluster has
	// told it. All times of the report and of the Jobs are by it, and so is whether
	// signatures, acceptances and verdicts are valid. Nil means that this machine's
	// clock is right.
	Now func() time.Time
	// Keep leaves the run's objects in the cluster.
	Keep bool
	// Rerun runs all checks anew, also where those of a run that is done still
	// hold.
	Rerun bool
	// Interrupted is asked what is to become of the run when ctx is canceled
	// before its time, with the ID of the run; optional, and then it is CleanUp.
	Interrupted func(run string) Interruption
	// ToolVersion is recorded in the report and on the Jobs.
	ToolVersion string
	// Progress is told what the run is doing, one call at a time; optional.
	Progress func(Event)
	// Verdict is given the report as soon as it is there, before the objects
	// of the run are deleted; optional.
	Verdict func(report.Report)
}

// Event is one thing to tell whoever waits for a run. Exactly one field is set.
type Event struct {
	// Run is the ID of the run, as soon as it is known.
	Run string
	// Step says what the run turns to now.
	Step string
	// Status says what one check is doing.
	Status *jobs.Status
	// Answered holds the findings of one check that has ended.
	Answered []finding.Finding
}

// Run answers for one target.
//
// A Go error without a report means that there is no verdict: BadInputError
// when the request cannot be had, any other when something on the way could not
// be reached or read; nothing is left in the cluster then. Whatever is wrong
// with the release or the cluster is a finding of the report. An error that
// comes with a report names what could not be deleted.
//
// What the run created is in the report, and so is what was deleted of it and
// what was found when everything was listed again; the latter only in the report
// that is returned, since Config.Verdict is given it before that.
//
// A run is recorded in the cluster, but for one without Jobs, which changes
// nothing there. Run therefore comes back to what is known: where a run of the
// same release and selection is on its way, it waits for what that comes to, and
// goes on in its place when its process is gone; and where the checks of one that
// is done all passed and still hold (package basis), it takes their results over,
// says so in the report, and asks everything else anew.
//
// Canceling ctx ends the run early with what is known by then; the objects that
// it created are deleted all the same, unless Config.Interrupted says otherwise.
func Run(ctx context.Context, config Config) (report.Report, error) {
	run, err := begin(ctx, config, config.readingNeeds())
	if err != nil {
		return report.Report{}, err
	}
	limited, cancel := context.WithTimeout(ctx, run.left())
	defer cancel()
	if err := run.verify(limited); err != nil {
		return report.Report{}, err
	}
	run.checkReleasePolicy(limited)
	if err := run.extract(limited); err != nil {
		return report.Report{}, err
	}
	if err := run.draft(limited); err != nil {
		return report.Report{}, err
	}
	if config.NoJobs || run.reuse(limited) {
		told, err := run.conduct(limited)
		return run.finish(ctx, told, err)
	}
	return run.recorded(ctx, limited)
}

// conduct makes the checks, and tells what they come to.
func (s *session) conduct(ctx context.Context) (report.Report, error) {
	sources, err := s.launch(ctx)
	if err != nil {
		return report.Report{}, err
	}
	collection := collector.Collect(ctx, append(sources, s.builtin(ctx)...), s.answered)
	phase := report.PhaseComplete
	if errors.Is(ctx.Err(), context.Canceled) {
		phase = report.PhaseInterrupted
	} else { // nobody knows before that which acceptances are not needed
		collection.Findings = append(collection.Findings, s.review(collection.Findings)...)
	}
	return s.report(collection, phase), nil
}

// finish tells the report, and deletes what the run has in the cluster.
func (s *session) finish(ctx context.Context, told report.Report, err error) (report.Report, error) {
	if err == nil && s.config.Verdict != nil {
		s.config.Verdict(told)
	}
	removal, failed := s.cleanup(ctx)
	told.Removal = removal
	return told, errors.Join(err, failed)
}

// Listing is what a release would run.
type Listing struct {
	// Checks may run; they are in the order of their manifests.
	Checks []launch.Check
	// Verdict and Findings are about the release itself: its signature, its
	// manifests, and the checks that are refused.
	Verdict  verdict.Verdict
	Findings []finding.Finding
	// Needs is what Run asks of the API server for this release. Nothing is
	// required where the release may not be read.
	Needs access.Needs
}

// Checks lists what the target would run, and creates nothing. Errors are as
// with Run.
func Checks(ctx context.Context, config Config) (Listing, error) {
	run, err := begin(ctx, config, ChecksNeeds())
	if err != nil {
		return Listing{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, run.left())
	defer cancel()
	if err := run.verify(ctx); err != nil {
		return Listing{}, err
	}
	run.checkReleasePolicy(ctx)
	if err := run.extract(ctx); err != nil {
		return Listing{}, err
	}
	var needs access.Needs
	if run.payload != nil {
		run.plan = launch.Build(run.run(), run.payload)
		run.refused(run.plan.Refused)
		needs = config.readingNeeds().And(config.writingNeeds(run.plan))
	}
	told := run.report(collector.Collect(ctx, run.told, run.answered), report.PhaseComplete)
	return Listing{Checks: run.plan.Checks, Verdict: told.Verdict, Findings: told.Findings, Needs: needs}, nil
}
