package command

import (
	"cmp"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
)

// withCommands fills in the commands of the actions that are requests to this
// program. program is how the user calls it, such as "oc preflight".
func withCommands(decided report.Report, program string) report.Report {
	return withGraph(graphFlags{}, decided, program)
}

// withGraph is withCommands for a report with the graph of these flags.
func withGraph(graph graphFlags, decided report.Report, program string) report.Report {
	target := targetFlag(decided.Target)
	if len(decided.Path) > 1 {
		target = "--hop " + strings.Join(decided.Path[1:], " --hop ") + graph.flag()
	}
	return phrase{program: program, target: target + checksFlags(decided.Findings)}.report(decided)
}

// withPathCommands is withCommands for a path, which the flags in target select again.
func withPathCommands(made report.Path, program, target string) report.Path {
	made.Updates = slices.Clone(made.Updates)
	for i, each := range made.Updates {
		made.Updates[i] = phrase{program: program, target: target + checksFlags(each.Findings)}.report(each)
	}
	return made
}

// withMissingCommands is withPathCommands for a stored path: the commands that it has are
// kept, since it does not have its flags.
func withMissingCommands(stored report.Path, program string) report.Path {
	updates := slices.Clone(stored.Updates)
	made := withPathCommands(stored, program, "--hop "+strings.Join(stored.Versions[1:], " --hop "))
	for i, each := range updates {
		if len(each.Actions) > 0 {
			made.Updates[i].Actions = each.Actions
		}
	}
	return made
}

func (p phrase) report(decided report.Report) report.Report {
	decided.Findings = p.findings(decided.Findings)
	var actions []finding.Action
	if slices.ContainsFunc(decided.Findings, finding.Finding.Open) && decided.Run.Phase != report.PhaseRunning {
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
func withTargetCommands(judged report.Targets, program string) report.Targets {
	judged.Findings = slices.Clone(judged.Findings)
	for i, f := range judged.Findings {
		version := report.AnyTarget
		if len(f.Targets) == 1 {
			version = f.Targets[0]
		}
		p := phrase{program: program, target: targetFlag(report.Target{Version: version})}
		judged.Findings[i].Actions = p.actions(f.Actions)
	}
	if next, ok := judged.Next(); ok && len(judged.Targets) > 1 {
		command := program + " targets --to " + next.Version
		if next.Verdict.Decision == verdict.Ready {
			command = program + " run --to " + next.Version
		}
		judged.Actions = []finding.Action{finding.Run("%s", command)}
	}
	return judged
}

func (p phrase) findings(findings []finding.Finding) []finding.Finding {
	phrased := slices.Clone(findings)
	for i := range phrased {
		phrased[i].Actions = p.actions(phrased[i].Actions)
	}
	return phrased
}

// phrase words actions as command lines.
type phrase struct{ program, target string }

func (p phrase) actions(actions []finding.Action) []finding.Action {
	phrased := slices.Clone(actions)
	for i := range phrased {
		phrased[i].Command = cmp.Or(phrased[i].Command, p.command(phrased[i]))
	}
	return phrased
}

func (p phrase) command(action finding.Action) string {
	run := p.program + " run " + p.target
	switch action.Type {
	case finding.ActionAccept:
		return run + " --accept " + action.Value
	case finding.ActionAcknowledge:
		return p.program + " ack " + action.Value
	case finding.ActionForce:
		return run + " --force"
	case finding.ActionTargets:
		return p.program + " targets"
	case finding.ActionRoles:
		return p.program + " auth run"
	case finding.ActionRetry:
		return run + retryFlag(action.Value)
	case finding.ActionRun:
	}
	return action.Command
}

// retryFlag is the flag for an option, with a placeholder for its value.
func retryFlag(option string) string {
	switch option {
	case finding.OptionTimeout:
		return " --timeout 20m"
	case finding.OptionParallelism:
		return " --parallelism 64"
	case finding.OptionMonitoring:
		return " --prometheus URL"
	case finding.OptionTrust:
		return " --keyring FILE --signature-store URL"
	case finding.OptionRepository:
		return " --repository REPOSITORY"
	case finding.OptionImages:
		return " --images check"
	case finding.OptionFixTime:
		return " --since TIME"
	case finding.OptionGraph:
		return " --channel CHANNEL --graph FILE"
	}
	return ""
}
