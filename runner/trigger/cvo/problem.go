package cvo

import (
	"slices"
	"strings"
	"time"
)

// The reasons of a Problem.
const (
	ReasonInProgress = "PreflightInProgress"
	ReasonBlocked    = "PreflightBlocked"
	ReasonUndecided  = "PreflightUndecided"
	ReasonMissing    = "PreflightMissing"
	ReasonStale      = "PreflightStale"
	ReasonForced     = "PreflightForced"
	// ReasonAccepted and ReasonNarrowed are warnings: the verdict depends on accepted
	// findings, or the request left something out.
	ReasonAccepted = "PreflightAccepted"
	ReasonNarrowed = "PreflightNarrowed"
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

// problem is the problem with the target by its published verdicts; nil if there is none.
func (t target) problem(entry string) *Problem {
	v, running, err := t.newest(entry)
	p := func(reason, text string) *Problem {
		return &Problem{Reason: reason, Message: "the preflight of " + t.version + " " + text, Since: v.since()}
	}
	switch {
	case err != nil:
		return t.unreadable(err)
	case v != nil && v.isValid(t.from) && v.Decision == "Ready" && !v.Forced:
		return v.warning(p)
	case running:
		return p(ReasonInProgress, "is in progress; see: oc preflight status --to "+t.version)
	case v == nil:
		return p(ReasonMissing, "is not recorded; run: oc preflight run --to "+t.version)
	case !v.isValid(t.from):
		return p(ReasonStale, "is out of date"+v.cause()+"; run: oc preflight run --to "+t.version)
	case v.Forced:
		past := names(append(append([]string{}, v.Blocking...), v.Undecided...))
		return p(ReasonForced, "was forced past "+past+", which permits no update: force the update itself, or run: oc preflight run --to "+t.version)
	case v.Decision == "Blocked":
		return p(ReasonBlocked, "is Blocked by "+names(v.Blocking)+"; see: oc preflight status --to "+t.version)
	}
	return p(ReasonUndecided, "is Undecided because of "+names(v.Undecided)+"; see: oc preflight status --to "+t.version)
}

// cause is why the verdict ended before its time, after a colon; empty where it did not.
func (v verdict) cause() string {
	if v.Ended == "" {
		return ""
	}
	return ": " + v.Ended
}

// unreadable is the problem where the verdict cannot be read.
func (t target) unreadable(cause error) *Problem {
	return &Problem{
		Reason: ReasonUndecided, Message: "the preflight of " + t.version + " cannot be read; see: oc preflight status --to " + t.version, Nested: cause,
	}
}

// deleted is the problem where the ConfigMap was deleted, and not by an uninstallation.
func (t target) deleted() *Problem {
	return &Problem{
		Reason: ReasonMissing,
		Message: "the preflight of " + t.version + " is unknown, since ConfigMap " + Namespace + "/" + Name + " was deleted; start the controller, or, if it was uninstalled, run: oc create configmap " +
			Name + " -n " + Namespace + " --from-literal=" + uninstalled + "=true",
	}
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
