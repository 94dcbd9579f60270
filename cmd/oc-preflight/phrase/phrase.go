// Package phrase answers: how does the user request the same again, with a change?
//
// [Of] has the request that was typed; its methods add commands to the actions of findings.
package phrase

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/document/afterview"
	"github.com/openshift/update-preflight/collector/document/reportview"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gate/clusterversion"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
)

// Phrase words actions as command lines of this program: the same request, with what an
// action changes. program is how the user calls it, such as "oc preflight"; target are the
// flags that select the target again; given are the other flags of the request.
type Phrase struct {
	program string
	Target  Flags
	Given   Flags
	// cluster is the ID of the cluster that a document is about; empty where it is unknown.
	cluster string
	// unlisted is true for a release whose image is unknown: the cluster does not list it.
	unlisted bool
	// verbs are the commands of the program.
	verbs []string
	verb  string
	// asked are the words of the request itself.
	asked []string
	// context is the context of the command; nil where the user does not matter.
	context func() context.Context
}

// Of words the actions of the request that the user typed.
func Of(c *cobra.Command) Phrase {
	return Phrase{
		program: c.Root().CommandPath(), Given: givenTo(c), verbs: verbsWith(c.Root(), ""), verb: c.Name(), asked: askedOf(c), context: c.Context,
	}
}

// WithCommands fills in the commands of the actions that are requests to this program.
func (p Phrase) WithCommands(decided report.Report) reportview.Report {
	p.cluster, p.unlisted = decided.Cluster.ID, decided.Target.Image == ""
	if len(p.Target) == 0 {
		p.Target = targetOf(decided)
	}
	if len(decided.Path) > 1 {
		p.Target = hops(decided.Path[1:])
	}
	shown := reportview.Report{Report: p.report(decided)}
	if decided.AfterUpdate != nil {
		shown.After = p.About("after", decided.Run.ID).Command
	}
	return shown
}

// WithPathCommands is withCommands for a path.
func (p Phrase) WithPathCommands(made report.Path) reportview.Path {
	if len(p.Target) == 0 {
		p.Target = hops(made.Versions[min(1, len(made.Versions)):])
	}
	made.Updates = slices.Clone(made.Updates)
	for i, each := range made.Updates {
		if made.Decision != verdict.Ready || !made.Holds() { // the first update may be Ready all the same
			each.Actions = withoutStart(each.Actions)
		}
		made.Updates[i] = p.report(each)
	}
	return reportview.Path{Path: made}
}

func hops(releases []string) Flags { return Flags{{Name: "hop", Values: releases}} }

// report words the actions of a report. Actions of a stored report that have a command keep
// it: the flags of its run are not known here.
func (p Phrase) report(decided report.Report) report.Report {
	if sites := flagset.SiteSources(decided.Findings); len(sites) > 0 && !p.Given.has("checks") {
		p.Given = p.Given.with("checks", sites...)
	}
	decided.Findings = p.Findings(decided.Findings)
	starts, others := starts(p, decided), withoutStart(decided.Actions)
	if !slices.ContainsFunc(others, func(a finding.Action) bool { return a.Command != "" || a.Sentence != "" }) {
		others = next(p, decided)
	}
	decided.Actions = append(others, starts...)
	return decided
}

// next are the steps for the findings of a report together.
func next(p Phrase, decided report.Report) []finding.Action {
	var actions []finding.Action
	switch {
	case decided.Run.Detached:
		actions = append(actions, finding.Attach(decided.Run.ID))
	case decided.Run.Phase != report.PhaseRunning && slices.ContainsFunc(decided.Findings, finding.Finding.Open):
		actions = append(actions, finding.Retry(""))
	}
	if names := decided.Acceptable(); len(names) > 0 {
		actions = append(actions, finding.Accept(strings.Join(names, ",")))
	}
	return p.actions(actions)
}

// starts are the steps of a report that start the update, with the connection of the request: none where it does not
// permit the update, or is about an archive, which states what a cluster was.
func starts(p Phrase, decided report.Report) []finding.Action {
	if !decided.Permits() || p.Given.has("archive") {
		return nil
	}
	starts := slices.DeleteFunc(slices.Clone(decided.Actions), func(a finding.Action) bool { return a.Type != finding.ActionStart })
	return p.actions(starts)
}

func withoutStart(actions []finding.Action) []finding.Action {
	return slices.DeleteFunc(slices.Clone(actions), func(a finding.Action) bool { return a.Type == finding.ActionStart })
}

// WithTargetCommands is withCommands for a list of targets: the commands of a
// finding about several targets are about the newest of these.
func (p Phrase) WithTargetCommands(judged report.Targets) reportview.Targets {
	p.cluster = judged.Cluster.ID
	judged.Findings = slices.Clone(judged.Findings)
	for i, f := range judged.Findings {
		version := newest(judged.Targets, f.Targets)
		p.Target = toVersion(version)
		judged.Findings[i].Finding = p.worded(ofTarget(f.Finding, version))
	}
	judged.Targets = slices.Clone(judged.Targets)
	for i, each := range judged.Targets {
		judged.Targets[i].Actions = p.actions(each.Actions)
		if p.Given.has("archive") { // it states what a cluster was
			judged.Targets[i].Actions = nil
		}
	}
	if next := nextOf(p, judged); next.Command != "" {
		judged.Actions = []finding.Action{next}
	}
	if next, ok := judged.Next(); ok {
		judged.Actions = append(judged.Actions, next.Actions...)
	}
	return reportview.Targets{Targets: judged}
}

// nextOf is the request to continue with; none where it is the one that was made, or would show the same: no more is
// known of the only target.
func nextOf(p Phrase, judged report.Targets) finding.Action {
	next, ok := judged.Next()
	switch {
	case !ok:
		return finding.Action{}
	case next.Verdict.Decision == verdict.Ready:
		return p.Verb("run", nil, toVersion(next.Version), p.Given)
	case len(judged.Targets) == 1:
		return finding.Action{}
	}
	return p.unlessAsked(p.Verb("targets", nil, toVersion(next.Version), p.Given))
}

// Findings returns a copy whose actions call this program by the name that the user calls it.
func (p Phrase) Findings(findings []finding.Finding) []finding.Finding {
	phrased := slices.Clone(findings)
	for i := range phrased {
		phrased[i] = p.worded(phrased[i])
	}
	return phrased
}

// retried are the flags with an option changed.
func (g Flags) retried(option string) Flags {
	switch option {
	case finding.OptionTimeout:
		return g.with("timeout", "20m")
	case finding.OptionParallelism:
		return g.with("parallelism", "64")
	case finding.OptionImages:
		return g.with("images", "check")
	}
	return g
}

// targetOf are the flags that select the release of a report again: by its version where
// ClusterVersion lists one release with it, and otherwise by its image.
func targetOf(decided report.Report) Flags {
	byImage := slices.ContainsFunc(decided.Findings, func(f finding.Finding) bool {
		return f.Reason == clusterversion.ReasonUnknownUpdate.String() && f.Source == finding.SourceGate ||
			f.Reason == clusterversion.ReasonAmbiguousVersion.String()
	})
	if byImage && decided.Target.Image != "" {
		decided.Target.Version = ""
	}
	return FlagsOf(flagset.TargetFlag(decided.Target)...)
}

func toVersion(version string) Flags { return Flags{{Name: "to", Values: []string{version}}} }

// FlagsOf is a flag with its values as they are typed; no words are no flag.
func FlagsOf(typed ...string) Flags {
	if len(typed) == 0 {
		return nil
	}
	return Flags{{Name: strings.TrimPrefix(typed[0], "--"), Values: typed[1:]}}
}

// askFor describes what the user must add to a repeated request with an option changed; empty where the
// value is known here. A command would have a placeholder.
func askFor(option string) string {
	switch option {
	case finding.OptionMonitoring:
		return "Name the address of Prometheus with --prometheus URL."
	case finding.OptionTrust:
		return "Name the public keys of the release with --keyring FILE, and the place of its signatures with --signature-store URL."
	case finding.OptionRepository:
		return "Name the repository that has the release with --repository REPOSITORY."
	case finding.OptionFixTime:
		return "Give the time since when they are fixed with --since TIME."
	case finding.OptionGraph:
		return "Name a channel that has the update with --channel CHANNEL, or a graph that has it with --graph FILE."
	}
	return ""
}

// withAsked is a remedy with what the user has to give for its actions.
func withAsked(remedy string, actions []finding.Action) string {
	for _, action := range actions {
		if action.Type != finding.ActionRetry {
			continue
		}
		if ask := askFor(action.Value); ask != "" && !strings.Contains(remedy, ask) {
			remedy = strings.TrimSpace(remedy + " " + ask)
		}
	}
	return remedy
}

// newest is the first of the targets, which are sorted, among these versions; the first version where none is.
func newest(sorted []report.Candidate, versions []string) string {
	for _, each := range sorted {
		if slices.Contains(versions, each.Version) {
			return each.Version
		}
	}
	return strings.Join(versions[:min(1, len(versions))], "")
}

// ofTarget is a finding about several targets whose commands are about one of them.
func ofTarget(f finding.Finding, version string) finding.Finding {
	f.Message, f.Remediation = anyTarget(f.Message), anyTarget(f.Remediation)
	f.Actions = slices.Clone(f.Actions)
	for i, each := range f.Actions {
		f.Actions[i] = each.Mapped(func(word string) string { return strings.ReplaceAll(word, report.AnyTarget, version) })
	}
	return f
}

// anyTarget is a text about several targets in words.
func anyTarget(text string) string {
	if rest, starts := strings.CutPrefix(text, report.AnyTarget+" "); starts {
		text = "The target " + rest
	}
	text = strings.ReplaceAll(text, ". "+report.AnyTarget+" ", ". The target ")
	return strings.ReplaceAll(text, report.AnyTarget, "the target")
}

// askedOf are the words that were typed, without the flags that change only how the result is shown.
func askedOf(c *cobra.Command) []string {
	var given Flags
	c.Flags().Visit(func(flag *pflag.Flag) {
		if option.Of(flag).Again != option.Never {
			given = append(given, givenFlag{Name: flag.Name, Values: ValuesOf(flag)})
		}
	})
	return append(strings.Fields(c.CommandPath()), given.words()...)
}

// sameWords compares a request with a command, in any order.
func sameWords(asked []string, calls [][]string) bool {
	if len(calls) != 1 {
		return false
	}
	set := func(words []string) []string { return slices.Compact(slices.Sorted(slices.Values(words))) }
	return slices.Equal(set(asked), set(calls[0]))
}

// AfterUpdate is a judgement whose commands are for the clusters of the request, with the next step.
func AfterUpdate(p Phrase, made afterupdate.Report) afterview.Report {
	for _, list := range []*[]afterupdate.Regression{&made.Regressions, &made.Pending, &made.Unchanged, &made.Excused, &made.Unattributed} {
		*list = slices.Clone(*list)
		for i, each := range *list {
			if each.Action.Command != "" { // a stored document keeps its command
				(*list)[i].Command = p.action(each.Action).Command
			}
		}
	}
	return afterview.Report{Report: made, Next: afterUpdate(p, made)}
}

// afterUpdate is the next step after a judgement; empty for none.
func afterUpdate(p Phrase, made afterupdate.Report) string {
	waits := made.Decision == afterupdate.Settling || made.Decision == afterupdate.Unfinished
	switch {
	case waits && p.Given.has("archive"):
		return "Compare with an archive that is gathered later."
	case waits && p.unlessAsked(p.About("after").Adding("--watch")).Command != "":
		return "Wait for the decision: " + p.About("after").Adding("--watch").Command
	case made.Decision == afterupdate.Undecided && made.Baseline == nil:
		return "The next run stores a baseline: " + p.About("run").Command
	}
	return ""
}

// askTime bounds the request for the user after an interruption: a command ends within two seconds of a signal.
const askTime = time.Second

// requesterKey is the key of the function that WithRequester adds to a context.
type requesterKey struct{}

// WithRequester is the context of a command with who makes its requests. ask is called at most once,
// and only where a permission is missing.
func WithRequester(ctx context.Context, ask func(context.Context) cli.Requester) context.Context {
	return context.WithValue(ctx, requesterKey{}, sync.OnceValue(func() cli.Requester {
		if ctx.Err() == nil {
			return ask(ctx)
		}
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime) // a report of an interrupted run has the command, too
		defer cancel()
		return ask(asking)
	}))
}

// RequesterOf is who makes the requests of a command with this context; zero where it is unknown.
func RequesterOf(ctx context.Context) cli.Requester {
	if ctx == nil {
		return cli.Requester{}
	}
	if ask, ok := ctx.Value(requesterKey{}).(func() cli.Requester); ok {
		return ask()
	}
	return cli.Requester{}
}

// Roles is the command by which an administrator prints the roles of a verb, bound to the user who lacks
// them. It has none of the flags by which that user reaches the cluster.
func (p Phrase) Roles(verb string, flags Flags, user string) finding.Action {
	made := p.Verb("auth "+verb, nil, flags, binding(user))
	made.Operation = finding.Local // another user types it
	return made
}

// rolesOfFinding is the command for a finding about a missing permission.
func rolesOfFinding(p Phrase, user string) finding.Action {
	if user == "" && p.context != nil {
		user = RequesterOf(p.context()).User
	}
	verb, flags := p.verb, Flags(nil)
	if !slices.Contains([]string{"targets", "plan", "drain-plan", "checks", "verify"}, verb) {
		verb, flags = "run", append(flags, p.Given.only("images")...)
		if len(p.Target) > 0 && strings.HasPrefix(p.Target[0].Name, "to") { // no other flag of a target is one of "auth"
			flags = append(slices.Clone(p.Target), flags...)
		}
	}
	flags = append(flags, p.Given.only("rehearse")...)
	return p.Roles(verb, append(flags, p.Given.only(hostedCluster)...), user)
}

// binding is the flag that binds roles to a user; none for one who has no roles of their own.
func binding(user string) Flags {
	if subject := access.Subject(user); subject != "" {
		return Flags{{Name: "bind", Values: []string{subject}}}
	}
	return nil
}
