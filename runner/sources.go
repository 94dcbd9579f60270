package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gate"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/launch"
)

const ReasonNotSelected finding.Reason = "NotSelected"

// builtin are the checks that are built in, with those that need the release.
func (s *session) builtin(ctx context.Context) []collector.Source {
	sources := append(s.images(ctx), s.look.builtin(s.target.version)...)
	if policies, covered := s.componentPolicies(); covered {
		sources = append(sources, collector.Source{Name: imagesPolicy, Kind: finding.SourceSignature, Collect: policies.Collect})
	}
	asked, err := update.Parse(s.cluster.Version, s.target.version)
	if s.payload == nil || err != nil {
		return sources
	}
	return append(sources, collector.Bind(check.Subject{Cluster: s.snapshot, Update: asked, Now: s.start}, []check.Check{gate.AdminAckAhead(s.payload.AdminGates)})...)
}

// draft plans the release's checks, and finds out whether the user may record and
// run them. Nothing is created.
func (s *session) draft(ctx context.Context) error {
	if s.payload != nil {
		s.plan = launch.Build(s.run(), s.payload)
		s.refused(s.plan.Refused)
		if err := s.choose(); err != nil {
			return err
		}
	}
	return s.config.writingNeeds(s.plan).Check(ctx, s.config.Cluster.Kubernetes.AuthorizationV1())
}

// replan plans the checks of the draft again, for the run as it is now: with
// another ID their Jobs have other names. It plans for the last time.
func (s *session) replan() {
	if s.payload == nil {
		return
	}
	s.awaited = map[string]bool{}
	for _, check := range s.plan.Checks {
		s.awaited[check.Name] = true
	}
	s.plan = launch.Build(s.run(), s.payload)
	// The plan has its own copies, and there may be thousands.
	s.payload.Jobs, s.payload.Supporting = nil, nil
	s.plan.Checks = slices.DeleteFunc(s.plan.Checks, func(check launch.Check) bool { return !s.awaited[check.Name] })
}

// launch has the API server validate the planned checks, creates what they need,
// and returns a source for each. From here on there may be objects to clean up.
func (s *session) launch(ctx context.Context) ([]collector.Source, error) {
	if s.held != nil && len(s.plan.Checks) != len(s.awaited) {
		return nil, fmt.Errorf("%d of %d checks could be planned for run %s", len(s.plan.Checks), len(s.awaited), s.id)
	}
	if len(s.plan.Checks) == 0 {
		return s.told, nil
	}
	if s.held == nil {
		return append(s.told, s.taken()...), nil
	}
	launcher := launch.New(s.config.Cluster.Kubernetes)
	if s.held.Resumed() {
		if err := launcher.Resume(ctx, s.id); err != nil {
			return nil, err
		}
	}
	s.step("validating the checks of the release: %d", len(s.plan.Checks))
	refused, plan := launcher.Validate(ctx, s.plan)
	if err := launch.Ungrantable(refused); err != nil {
		return nil, err
	}
	s.refused(refused)
	s.launcher = launcher
	if len(plan.Checks) > 0 {
		audit := beginAudit(ctx, s.config.Cluster.Kubernetes, plan.Accounts())
		guard := launcher.Guard(ctx, plan)
		s.tell(guard.Name, guard.Source, guard)
		audit.guarded = guard.Outcome == preflight.Pass
		s.told = append(s.told, collector.Source{Name: auditName, Kind: finding.SourceJob, Collect: audit.Collect})
	}
	if err := launcher.Prepare(ctx, plan); err != nil {
		return nil, err
	}
	s.step("running the checks of the release: %d", len(plan.Checks))
	sources, err := jobs.Sources(ctx, s.config.Cluster.Kubernetes, launcher, plan, jobs.Options{
		Parallelism: s.config.Parallelism, Answered: s.answers,
		Progress: func(status jobs.Status) { s.config.Progress(Event{Status: &status}) },
	})
	return append(s.told, sources...), err
}

// run is what launch needs to know of this run. Jobs get a deadline a little
// before the runner's, so that their own last words are heard.
func (s *session) run() launch.Run {
	return launch.Run{
		ID: s.id, From: s.cluster.Version, To: s.payload.Version, Image: s.payload.Image, Digest: s.payload.Digest,
		StartTime: s.start, Deadline: s.deadline, ToolVersion: s.config.ToolVersion,
	}
}

// refused tells of checks that may not run: each had to report, and did not
// pass.
func (s *session) refused(findings []finding.Finding) {
	for _, f := range findings {
		s.tell(f.Name, finding.SourceJob, f)
	}
}

// choose leaves the selected checks in the plan, and tells of the others: not
// looking is not a pass.
func (s *session) choose() error {
	if err := s.selectors(); err != nil {
		return err
	}
	var chosen []launch.Check
	for _, check := range s.plan.Checks {
		if s.chosen(check) {
			chosen = append(chosen, check)
			continue
		}
		s.tell(check.Name, finding.SourceJob, finding.Unknown(ReasonNotSelected, "the check was left out by --only, --skip or --no-jobs, so nobody looked").
			Named(check.Name).
			Remedy("Run without them, or accept it by name: --accept %s", check.Name))
	}
	s.plan.Checks = chosen
	return nil
}

func (s *session) chosen(check launch.Check) bool {
	matches := func(selector string) bool { return selects(selector, check) }
	return !s.config.NoJobs &&
		(len(s.config.Only) == 0 || slices.ContainsFunc(s.config.Only, matches)) &&
		!slices.ContainsFunc(s.config.Skip, matches)
}

// selectors refuses a selector that matches no check: most likely it is a slip
// of the pen.
func (s *session) selectors() error {
	for _, selector := range slices.Concat(s.config.Only, s.config.Skip) {
		if slices.ContainsFunc(s.plan.Checks, func(check launch.Check) bool { return selects(selector, check) }) {
			continue
		}
		var names []string
		for _, check := range s.plan.Checks {
			names = append(names, check.Name)
		}
		return badInput("%q selects no check of this release; it has: %s", selector, strings.Join(names, ", "))
	}
	return nil
}

// selects compares a selector with a check's component, spelled as in the
// release or in CamelCase, or with its whole name.
func selects(selector string, check launch.Check) bool {
	return strings.EqualFold(selector, check.Name) || strings.EqualFold(selector, check.Prefix()) || selector == check.Component
}

// The deletion of a run's objects is bounded by cleanupTimeout, and cleanupShare
// more for each object: of every Job and its pod the garbage collector and the
// Job controller have to let go, with about five requests, of which Kubernetes
// lets each of them make 20 a second unless told otherwise.
const (
	cleanupTimeout = time.Minute
	cleanupShare   = time.Second / 4
)

// cleanup deletes what the run created. It outlives the cancellation of ctx:
// an interrupted run leaves nothing behind either.
func (s *session) cleanup(ctx context.Context) (*report.Removal, error) {
	if s.launcher == nil || s.config.Keep {
		return nil, nil //nolint:nilnil // nothing was deleted, and nothing should have been
	}
	s.step("deleting the objects of the run")
	limit := cleanupTimeout + cleanupShare*time.Duration(len(s.created()))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	done, err := s.launcher.Cleanup(ctx, s.id)
	removal := &report.Removal{Deleted: append([]preflight.Object{}, done.Deleted...), Left: append([]preflight.Object{}, done.Left...)}
	if err != nil {
		return removal, fmt.Errorf("%d objects of this run are left in the cluster; delete them with: oc preflight cleanup %s: %w", len(done.Left), s.id, err)
	}
	return removal, nil
}

// created is what this run has created so far.
func (s *session) created() []preflight.Object {
	if s.launcher == nil {
		return []preflight.Object{}
	}
	return append([]preflight.Object{}, s.launcher.Created(s.id)...)
}
