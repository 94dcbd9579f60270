package cvo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// The reasons of a Problem.
const (
	ReasonInProgress = "PreflightInProgress"
	ReasonBlocked    = "PreflightBlocked"
	ReasonUndecided  = "PreflightUndecided"
	ReasonMissing    = "PreflightMissing"
	ReasonStale      = "PreflightStale"
	// ReasonAccepted, ReasonNarrowed and ReasonForced are those of warnings: the verdict
	// depends on accepted findings, the request left something out, or force bypassed
	// findings.
	ReasonAccepted = "PreflightAccepted"
	ReasonNarrowed = "PreflightNarrowed"
	ReasonForced   = "PreflightForced"
)

// Problem is why an update may not start, or what CVO records when it does.
type Problem struct {
	// Reason is one of the constants.
	Reason, Message string
	// Warning is true for a problem that does not block.
	Warning bool
	// Since is when the verdict was given, or when it ended; zero without a verdict.
	Since time.Time
	// Nested is the cause, for the log of CVO.
	Nested error
}

// timeout bounds one call: CVO cannot write the status of ClusterVersion meanwhile.
const timeout = 2 * time.Second

// Reader reads the records of the release that CVO would update to for a version.
type Reader func(ctx context.Context, version string) (Records, error)

// Gate is a precondition of CVO: Gate[precondition.ReleaseContext] implements
// precondition.Precondition. All fields are required.
type Gate[R any] struct {
	// Version is the version of the update.
	Version func(R) string
	// Refuse converts a problem into CVO's error.
	Refuse func(Problem) error
	// Read reads the records.
	Read Reader

	reading atomic.Bool
}

// Name implements precondition.Precondition.
func (*Gate[R]) Name() string { return "Preflight" }

// Run implements precondition.Precondition: nil if the newest verdict on the update is
// Ready and valid.
func (g *Gate[R]) Run(ctx context.Context, release R) error {
	if problem := judge(ctx, &g.reading, g.Read, g.Version(release)); problem != nil {
		return g.Refuse(*problem)
	}
	return nil
}

// judge is the problem with an update; nil if there is none. The reader is called once
// within the timeout, and not at all while a former call is pending.
func judge(ctx context.Context, pending *atomic.Bool, read Reader, version string) *Problem {
	if !pending.CompareAndSwap(false, true) {
		return Records{}.problem(version, errors.New("a former call of the reader is pending"))
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	done := make(chan *Problem, 1)
	go func() {
		problem := readProblem(ctx, read, version)
		pending.Store(false) // first: the caller may call again at once
		done <- problem
	}()
	select {
	case problem := <-done:
		return problem
	case <-ctx.Done():
		return Records{}.problem(version, ctx.Err())
	}
}

// readProblem is the problem by what the reader returns. A panic is a failure of it.
func readProblem(ctx context.Context, read Reader, version string) (problem *Problem) {
	defer func() {
		if cause := recover(); cause != nil {
			problem = Records{}.problem(version, fmt.Errorf("panic: %v", cause))
		}
	}()
	records, err := read(ctx, version)
	return records.problem(version, err)
}

// problem is the problem with an update to the version; nil if there is none. The
// failure is that of the reader.
func (r Records) problem(version string, failure error) *Problem {
	v, running := r.newest(version)
	p := func(reason, text string) *Problem {
		return &Problem{Reason: reason, Message: "the preflight of " + version + " " + text, Since: v.since(), Nested: failure}
	}
	switch {
	case failure != nil:
		return p(ReasonUndecided, "cannot be read from its record; see: oc preflight status --to "+version)
	case v != nil && r.valid(*v) && (v.Decision == "Ready" || v.Forced):
		return v.warning(p)
	case running:
		return p(ReasonInProgress, "is in progress; see: oc preflight status --to "+version)
	case v == nil:
		return p(ReasonMissing, "is not recorded; run: oc preflight run --to "+version)
	case !r.valid(*v):
		return p(ReasonStale, "is out of date; run: oc preflight run --to "+version)
	case v.Decision == "Blocked":
		return p(ReasonBlocked, "is Blocked by "+names(v.Blocking)+"; see: oc preflight status --to "+version)
	}
	return p(ReasonUndecided, "is Undecided because of "+names(v.Undecided)+"; see: oc preflight status --to "+version)
}

// valid reports whether a verdict holds: it is about an update from the present version,
// and has not ended.
func (r Records) valid(v verdict) bool {
	return (r.From == "" || r.From == v.From) && time.Now().UTC().Format(time.RFC3339) < v.ValidUntil
}

// warning is what CVO records of an update that may start; nil if there is nothing to
// record.
func (v verdict) warning(p func(reason, text string) *Problem) *Problem {
	reason, text := "", "is Ready"
	if len(v.Narrowed) > 0 {
		reason = ReasonNarrowed
	}
	if len(v.Accepted) > 0 {
		reason = ReasonAccepted
	}
	if v.Forced {
		reason, text = ReasonForced, "is not Ready, and was forced past "+names(v.Blocking)
	}
	if reason == "" {
		return nil
	}
	if len(v.Accepted) > 0 {
		text += " with accepted findings: " + names(v.Accepted)
	}
	if len(v.Narrowed) > 0 {
		text += "; it left out " + names(v.Narrowed)
	}
	warning := p(reason, text)
	warning.Warning = true
	return warning
}

// names are the first five names in order.
func names(all []string) string {
	sorted := slices.Sorted(slices.Values(all))
	if len(sorted) == 0 {
		return "nothing"
	}
	if len(sorted) > 5 {
		sorted = append(sorted[:5], "others")
	}
	return strings.Join(sorted, ", ")
}
