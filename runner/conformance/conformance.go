// Package conformance answers: does this check conform to the requirements?
//
// [Run] runs the Jobs of a check in a cluster as a preflight would, several
// times: unchanged, and under one restriction each. The outcomes are compared
// with the requirements for checks; each [Result] is for one
// requirement. All created objects have the label of a run, and are
// deleted at the end, as are created namespaces.
//
// The package uses runner/jobs, so that it evaluates an attempt as a
// preflight does, with the same messages.
//
// # Limitations
//
// A node stops a container with SIGTERM first. Only where the cluster has the
// feature ContainerStopSignals does the check receive SIGKILL first; elsewhere
// it receives SIGKILL after it ignored SIGTERM. A check that passes although it
// was stopped may have completed its work; it is stopped again, later. A check
// that ends by itself before it can be stopped, although it has no API server,
// is not tested for that. The absence of writes follows from the roles of
// the check's account, not from a comparison of the cluster, which others change
// concurrently.
package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/openshift/update-preflight/collector/rights"
	"github.com/openshift/update-preflight/runner/conformance/requirement"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// Run tests the checks of a subject. Their violations are Results;
// an error means that the test itself failed or was interrupted, or
// names objects that could not be deleted.
func Run(ctx context.Context, config Config, subject Subject) (report Report, err error) {
	objects := inventory.New(config.Kubernetes, config.Metadata)
	s := &session{
		config: config, subject: subject, launcher: launch.New(objects), objects: objects,
		results: trialResults{tried: map[string]map[string]requirement.Attempt{}, accounts: map[string]rights.Rights{}, reading: map[string]bool{}},
	}
	report.Results = subject.unreadable()
	draft := jobplan.New(config.From, subject.release)
	report.Results = append(report.Results, subject.rejected(draft.Refused)...)
	if len(draft.Checks) == 0 {
		return report, nil
	}
	plan := draft.Bind(s.newRun())
	if err := baseNeeds().And(draft.Needs()).Check(ctx, config.Kubernetes.AuthorizationV1()); err != nil {
		return Report{}, err
	}
	made := namespaces{client: config.Kubernetes, id: uuid.NewString()}
	defer func() { err = errors.Join(err, made.remove(ctx)) }()
	if err := made.make(ctx, plan, config.Progress); err != nil {
		return Report{}, err
	}
	config.Progress("validating the manifests at the API server")
	impossible, plan := s.launcher.Validate(ctx, plan)
	report.Results = append(report.Results, invalid(impossible, draft.Checks)...)
	if err := s.try(ctx, names(plan.Checks)); err != nil {
		return Report{}, err
	}
	for _, check := range plan.Checks {
		report.Results = append(report.Results, s.evidence(check).Results()...)
	}
	return report, nil
}

func (s *session) evidence(check jobplan.Check) requirement.Evidence {
	return requirement.Evidence{
		Check: check, Images: s.subject.describeImages(check), Tried: s.results.tried[check.Name], Rights: s.results.accounts[check.Name], Reads: s.results.reading[check.Name], Alone: s.subject.alone,
	}
}

// try makes all attempts. Those that are compared with the first are made only
// for checks that were conclusive in it.
func (s *session) try(ctx context.Context, checks []string) error {
	if err := s.round(ctx, first(s.readAccounts), checks); err != nil {
		return err
	}
	return s.round(ctx, compared(), s.results.answered(checks))
}

// round makes attempts concurrently.
func (s *session) round(ctx context.Context, trials []trial, checks []string) error {
	const parallel = 8
	if len(checks) == 0 {
		return ctx.Err()
	}
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, t := range trials {
		group.Go(func() error {
			if err := s.tryAll(limited, t, checks, s.attempt); err != nil {
				return fmt.Errorf("could not run %s: %w", t.describe, err)
			}
			return nil
		})
	}
	return cmp.Or(group.Wait(), ctx.Err())
}

func names(checks []jobplan.Check) []string {
	var names []string
	for _, check := range checks {
		names = append(names, check.Name)
	}
	return names
}
