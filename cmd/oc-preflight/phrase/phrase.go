// Package phrase answers: how does the user request the same again, with a change?
//
// [Of] has the request that was typed; its methods add commands to the actions of findings.
package phrase

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/called"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
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
	program, Target string
	Given           Flags
	// verbs are the commands of the program.
	verbs []string
	verb  string
	// asked is the request itself.
	asked string
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
	if p.Target == "" {
		p.Target = targetOf(decided)
	}
	if len(decided.Path) > 1 {
		p.Target = hops(decided.Path[1:])
	}
	return reportview.Report{Report: p.report(decided)}
}

// WithPathCommands is withCommands for a path.
func (p Phrase) WithPathCommands(made report.Path) reportview.Path {
	p.Target = cmp.Or(p.Target, hops(made.Versions[min(1, len(made.Versions)):]))
	made.Updates = slices.Clone(made.Updates)
	for i, each := range made.Updates {
		if made.Decision != verdict.Ready || !made.Holds() { // the first update may be Ready all the same
			each.Actions = withoutStart(each.Actions)
		}
		made.Updates[i] = p.report(each)
	}
	return reportview.Path{Path: made}
}

func hops(releases []string) string { return "--hop " + strings.Join(releases, " --hop ") }

// report words the actions of a report. Those of a stored report that have a command keep
// it: the flags of its run are not known here.
func (p Phrase) report(decided report.Report) report.Report {
	if sites := flagset.SiteSources(decided.Findings); len(sites) > 0 && !p.Given.has("checks") {
		p.Given = p.Given.with("checks", sites...)
	}
	decided.Findings = p.Findings(decided.Findings)
	starts, others := starts(p, decided), withoutStart(decided.Actions)
	if !slices.ContainsFunc(others, func(a finding.Action) bool { return a.Command != "" }) {
		others = p.next(decided)
	}
	decided.Actions = append(others, starts...)
	return decided
}

// next are the steps for the findings of a report together.
func (p Phrase) next(decided report.Report) []finding.Action {
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
	judged.Findings = slices.Clone(judged.Findings)
	for i, f := range judged.Findings {
		version := newest(judged.Targets, f.Targets)
		p.Target = "--to " + version
		judged.Findings[i].Finding = p.worded(ofTarget(f.Finding, version))
	}
	judged.Targets = slices.Clone(judged.Targets)
	for i, each := range judged.Targets {
		judged.Targets[i].Actions = p.actions(each.Actions)
		if p.Given.has("archive") { // it states what a cluster was
			judged.Targets[i].Actions = nil
		}
	}
	if next := nextOf(p, judged); next != "" {
		judged.Actions = []finding.Action{finding.Run("%s", next)}
	}
	if next, ok := judged.Next(); ok {
		judged.Actions = append(judged.Actions, next.Actions...)
	}
	return reportview.Targets{Targets: judged}
}

// nextOf is the request to continue with; empty where it is the one that was made. An archive has no more than was
// shown of the only target.
func nextOf(p Phrase, judged report.Targets) string {
	next, ok := judged.Next()
	switch {
	case !ok:
		return ""
	case next.Verdict.Decision == verdict.Ready:
		return p.Verb("run", "--to "+next.Version, p.Given)
	case len(judged.Targets) == 1 && p.Given.has("archive"):
		return ""
	}
	return unless(p.asked, p.Verb("targets", "--to "+next.Version, p.Given))
}

// Findings returns a copy whose actions call this program by the name that the user calls it.
func (p Phrase) Findings(findings []finding.Finding) []finding.Finding {
	phrased := slices.Clone(findings)
	for i := range phrased {
		phrased[i] = p.worded(phrased[i])
	}
	return phrased
}

func (p Phrase) actions(actions []finding.Action) []finding.Action {
	phrased := slices.Clone(actions)
	for i, each := range phrased {
		phrased[i].Command = called.Text(cmp.Or(p.directed(each), p.command(each)), p.program)
		ours := strings.HasPrefix(each.Command, plugin) // reaches both clusters
		if p.Given.has(hostedCluster) && each.Type == finding.ActionRun && each.Cluster == "" && !ours {
			phrased[i].Cluster = finding.Guest
		}
	}
	return phrased
}

// directed is the command of an action about the cluster of the request. An archive has no connection. The connection of
// a request for a hosted cluster is that of its management cluster; that of the guest may be unknown.
func (p Phrase) directed(action finding.Action) string {
	connection := p.Given.Global()
	if guest := p.Given.only("guest-kubeconfig"); p.Given.has(hostedCluster) && action.Cluster != finding.Management {
		connection = nil
		if len(guest) > 0 {
			connection = connection.with("kubeconfig", guest[0].Values...)
		}
	}
	switch {
	case strings.HasPrefix(action.Command, plugin):
		return p.Text(action.Command)
	case p.Given.has("archive"):
		return action.Command
	}
	return directed(action.Command, connection)
}

// Management is a command about the management cluster of the request.
func (p Phrase) Management(command string) string {
	return called.Text(p.directed(finding.InManagement("%s", command)), p.program)
}

func (p Phrase) command(action finding.Action) string {
	switch action.Type {
	case finding.ActionAccept:
		return again(p, p.Given.accepting(action.Value))
	case finding.ActionAcknowledge:
		if p.Given.has(hostedCluster) {
			return "" // the acknowledgement belongs to the guest, not to the cluster of the connection
		}
		return p.Verb("ack", action.Value, p.Given.Global())
	case finding.ActionTargets:
		return unless(p.asked, p.About("targets", ""))
	case finding.ActionRoles:
		return rolesOfFinding(p, action.Value)
	case finding.ActionRetry:
		if askFor(action.Value) != "" {
			return ""
		}
		return again(p, p.Given.retried(action.Value))
	case finding.ActionAttach:
		return p.About("attach", action.Value)
	case finding.ActionStart:
		return directed("oc "+action.Value, p.Given.Global())
	case finding.ActionRun:
	}
	return action.Command
}

// again is the command line that judges the target again.
func again(p Phrase, flags Flags) string {
	return p.Verb("run", p.Target, flags)
}

// Verb is the command line of a verb, with its first words and its flags.
func (p Phrase) Verb(verb, words string, flags Flags) string {
	return strings.Join(strings.Fields(p.program+" "+verb+" "+words), " ") + flags.String()
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
func targetOf(decided report.Report) string {
	byImage := slices.ContainsFunc(decided.Findings, func(f finding.Finding) bool {
		return f.Reason == clusterversion.ReasonUnknownUpdate.String() && f.Source == finding.SourceGate || f.Reason == clusterversion.ReasonAmbiguousVersion.String()
	})
	if byImage && decided.Target.Image != "" {
		decided.Target.Version = ""
	}
	return flagset.TargetFlag(decided.Target)
}
