// Package conformance answers: may this check be shipped?
//
// [Run] has a cluster run the Jobs of a check as a preflight would, several
// times: as they are, and under one hardship each. What they leave is held
// against what a check owes to those who run it; each [Result] is one such
// requirement. Everything that is created carries the label of a run, and is
// deleted at the end, as are the namespaces that had to be made.
//
// The package stands behind runner/jobs, because it judges an attempt as a
// preflight does, in the same words.
//
// # Limitations
//
// A node ends a container with SIGTERM first. Only where the cluster has the
// feature ContainerStopSignals does the check meet SIGKILL unprepared; elsewhere
// it does two seconds after a SIGTERM that it ignored. A check that ends by
// itself, although it is cut off from the API server, before it can be ended is
// not judged on that. That nothing was changed in the cluster follows from the
// API server's word that the check's account may not write, not from a
// comparison of the cluster, where others are at work too.
package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch"
)

// Config is what Run needs to know. Every field is required.
type Config struct {
	Kubernetes kubernetes.Interface
	// From and To are the versions of the update that the checks are told of.
	From, To string
	// Timeout bounds one attempt; there are three rounds of them.
	Timeout time.Duration
	// ToolVersion is recorded on what is created.
	ToolVersion string
	// Progress is told of each step, from several goroutines.
	Progress func(step string)
}

// Result says how one check stands to one requirement.
type Result struct {
	// Check is the name of the check, as a preflight would report it; that of
	// the file where a manifest cannot be read.
	Check string `json:"check"`
	// Requirement is one CamelCase word, stable between releases.
	Requirement string `json:"requirement"`
	// Outcome is Unknown where the cluster kept it from being tried, and
	// Skipped where there is nothing to try.
	Outcome     preflight.Outcome `json:"outcome"`
	Reason      string            `json:"reason"`
	Message     string            `json:"message"`
	Remediation string            `json:"remediation,omitempty"`
}

// Report is what was found out about all checks of a manifest, each check's
// results in the same order.
type Report struct {
	Results []Result `json:"results"`
}

// Outcome is Fail where a check breaks a requirement, else Unknown where one
// could not be tried, else Pass. Nothing tried is not a pass.
func (r Report) Outcome() preflight.Outcome {
	out := preflight.Pass
	if len(r.Results) == 0 {
		return preflight.Unknown
	}
	for _, result := range r.Results {
		switch result.Outcome {
		case preflight.Fail:
			return preflight.Fail
		case preflight.Unknown:
			out = preflight.Unknown
		case preflight.Pass, preflight.Warn, preflight.Skipped:
		}
	}
	return out
}

// Run tries the checks of a subject. Whatever is wrong with them is a Result;
// an error means that the trying itself went wrong, or was interrupted, or
// names what could not be deleted.
func Run(ctx context.Context, config Config, subject Subject) (report Report, err error) {
	s := &session{
		Config: config, subject: subject, launcher: launch.New(config.Kubernetes), id: uuid.NewString(),
		slate: slate{tried: map[string]map[string]attempt{}, accounts: map[string]access.Rights{}, reading: map[string]bool{}},
	}
	report.Results = subject.unreadable()
	draft := launch.NewDraft(config.From, subject.release)
	report.Results = append(report.Results, subject.refused(draft.Refused)...)
	if len(draft.Checks) == 0 {
		return report, nil
	}
	plan := draft.Bind(s.newRun())
	if err := baseNeeds().And(draft.Needs()).Check(ctx, config.Kubernetes.AuthorizationV1()); err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, s.removeNamespaces(ctx)) }()
	if err := s.makeNamespaces(ctx, plan); err != nil {
		return Report{}, err
	}
	config.Progress("asking the API server whether it takes the manifests")
	impossible, plan := s.launcher.Validate(ctx, plan)
	report.Results = append(report.Results, notTaken(impossible)...)
	if err := s.try(ctx, names(plan.Checks)); err != nil {
		return Report{}, err
	}
	for _, check := range plan.Checks {
		report.Results = append(report.Results, s.evidence(check).judge()...)
	}
	return report, nil
}

// session is one call of Run.
type session struct {
	Config
	subject  Subject
	launcher *launch.Launcher
	// id is on the namespaces that were made.
	id         string
	namespaces []string

	slate
}

// try makes all attempts. Those that are compared with the first are made only
// for checks that answered in it.
func (s *session) try(ctx context.Context, checks []string) error {
	if err := s.round(ctx, first(s.lookAtAccounts), checks); err != nil {
		return err
	}
	return s.round(ctx, compared(), s.answered(checks))
}

// round makes some attempts side by side.
func (s *session) round(ctx context.Context, trials []trial, checks []string) error {
	const parallel = 8
	if len(checks) == 0 {
		return ctx.Err()
	}
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, t := range trials {
		group.Go(func() error {
			s.Progress("running " + t.describe)
			if err := s.attempt(limited, t, checks); err != nil {
				return fmt.Errorf("could not run %s: %w", t.describe, err)
			}
			return nil
		})
	}
	return cmp.Or(group.Wait(), ctx.Err())
}

func (s *session) newRun() launch.Run {
	const digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	now := time.Now().UTC()
	return launch.Run{
		ID: uuid.NewString(), From: s.From,
		// No release is involved, and none is read.
		Target:    update.Release{Version: s.To, Image: "conformance.invalid/release@" + digest},
		StartTime: now, Deadline: now.Add(s.Timeout), ToolVersion: s.ToolVersion,
	}
}

func names(checks []launch.Check) []string {
	var names []string
	for _, check := range checks {
		names = append(names, check.Name)
	}
	return names
}
