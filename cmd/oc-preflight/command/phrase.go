package command

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gate"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/reportview"
	"github.com/openshift/update-preflight/collector/verdict"
)

// phrase words actions as command lines of this program: the same request, with what an
// action changes. program is how the user calls it, such as "oc preflight"; target are the
// flags that select the target again; given are the other flags of the request.
type phrase struct {
	program, target string
	given           givenFlags
}

// phraseOf words the actions of the request that the user typed.
func phraseOf(c *cobra.Command) phrase {
	return phrase{program: c.Root().CommandPath(), given: givenTo(c)}
}

// withCommands fills in the commands of the actions that are requests to this program.
func (p phrase) withCommands(decided report.Report) reportview.Report {
	if p.target == "" {
		p.target = targetOf(decided)
	}
	if len(decided.Path) > 1 {
		p.target = hops(decided.Path[1:])
	}
	return reportview.Report{Report: p.report(decided)}
}

// withPathCommands is withCommands for a path.
func (p phrase) withPathCommands(made report.Path) reportview.Path {
	p.target = cmp.Or(p.target, hops(made.Versions[min(1, len(made.Versions)):]))
	made.Updates = slices.Clone(made.Updates)
	for i, each := range made.Updates {
		made.Updates[i] = p.report(each)
	}
	return reportview.Path{Path: made}
}

func hops(releases []string) string { return "--hop " + strings.Join(releases, " --hop ") }

// report words the actions of a report. Those of a stored report that have a command keep
// it: the flags of its run are not known here.
func (p phrase) report(decided report.Report) report.Report {
	if sites := siteSources(decided.Findings); len(sites) > 0 && !p.given.has("checks") {
		p.given = p.given.with("checks", sites...)
	}
	decided.Findings = p.findings(decided.Findings)
	if slices.ContainsFunc(decided.Actions, func(a finding.Action) bool { return a.Command != "" }) {
		return decided
	}
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
	if len(actions) > 0 {
		decided.Actions = p.actions(actions)
	}
	return decided
}

// withTargetCommands is withCommands for a list of targets: the commands of a
// finding about several targets have report.AnyTarget as the version.
func (p phrase) withTargetCommands(judged report.Targets) reportview.Targets {
	judged.Findings = slices.Clone(judged.Findings)
	for i, f := range judged.Findings {
		version := report.AnyTarget
		if len(f.Targets) == 1 {
			version = f.Targets[0]
		}
		p.target = "--to " + version
		judged.Findings[i].Actions = p.actions(f.Actions)
	}
	if next, ok := judged.Next(); ok {
		verb := "targets"
		if next.Verdict.Decision == verdict.Ready {
			verb = "run"
		}
		judged.Actions = []finding.Action{finding.Run("%s", p.verb(verb, "--to "+next.Version, p.given))}
	}
	return reportview.Targets{Targets: judged}
}

func (p phrase) findings(findings []finding.Finding) []finding.Finding {
	phrased := slices.Clone(findings)
	for i := range phrased {
		phrased[i].Actions = p.actions(phrased[i].Actions)
	}
	return phrased
}

func (p phrase) actions(actions []finding.Action) []finding.Action {
	phrased := slices.Clone(actions)
	for i := range phrased {
		phrased[i].Command = cmp.Or(phrased[i].Command, p.command(phrased[i]))
	}
	return phrased
}

func (p phrase) command(action finding.Action) string {
	switch action.Type {
	case finding.ActionAccept:
		return p.verb("run", p.target, p.given.accepting(action.Value))
	case finding.ActionAcknowledge:
		return p.verb("ack", action.Value, p.given.global())
	case finding.ActionForce:
		return p.verb("run", p.target, p.given.with("force"))
	case finding.ActionTargets:
		return p.verb("targets", "", p.given.global())
	case finding.ActionRoles:
		return p.verb("auth", "run", p.given.global())
	case finding.ActionRetry:
		return p.verb("run", p.target, p.retried(action.Value))
	case finding.ActionAttach:
		return p.verb("attach", action.Value, p.given.attaching())
	case finding.ActionRun:
	}
	return action.Command
}

// verb is the command line of a verb, with its first words and its flags.
func (p phrase) verb(verb, words string, flags givenFlags) string {
	return strings.Join(strings.Fields(p.program+" "+verb+" "+words), " ") + flags.String()
}

// retried are the flags with an option changed, with a placeholder for its value.
func (p phrase) retried(option string) givenFlags {
	switch option {
	case finding.OptionTimeout:
		return p.given.with("timeout", "20m")
	case finding.OptionParallelism:
		return p.given.with("parallelism", "64")
	case finding.OptionMonitoring:
		return p.given.with("prometheus", "URL")
	case finding.OptionTrust:
		return p.given.with("keyring", "FILE").with("signature-store", "URL")
	case finding.OptionRepository:
		return p.given.with("repository", "REPOSITORY")
	case finding.OptionImages:
		return p.given.with("images", "check")
	case finding.OptionFixTime:
		return p.given.with("since", "TIME")
	case finding.OptionGraph:
		return p.given.with("channel", "CHANNEL").with("graph", "FILE")
	}
	return p.given
}

// targetOf are the flags that select the release of a report again: by its version where
// ClusterVersion lists one release with it, and otherwise by its image.
func targetOf(decided report.Report) string {
	byImage := slices.ContainsFunc(decided.Findings, func(f finding.Finding) bool {
		return f.Reason == string(gate.ReasonUnknownUpdate) && f.Source == finding.SourceGate || f.Reason == string(gate.ReasonAmbiguousVersion)
	})
	if byImage && decided.Target.Image != "" {
		decided.Target.Version = ""
	}
	return targetFlag(decided.Target)
}
