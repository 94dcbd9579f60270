package phrase

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/runner/fleet/roster"
)

// Fleet words actions as command lines: for one cluster of a fleet, or for all of them.
type Fleet struct {
	program, verb, target string
	given                 Flags
}

// OfFleet words the actions of the request for a fleet that the user typed. target is the
// version that it is about; empty for none.
func OfFleet(c *cobra.Command, target string) Fleet {
	f := Fleet{program: c.Root().CommandPath(), verb: "fleet " + c.Name()}
	if target != "" {
		f.target = "--to " + target
	}
	c.Flags().Visit(func(flag *pflag.Flag) {
		if again := option.Of(flag).Again; again == option.Judging || again == option.Reaching {
			f.given = append(f.given, givenFlag{Name: flag.Name, Values: ValuesOf(flag), global: c.InheritedFlags().Lookup(flag.Name) != nil})
		}
	})
	return f
}

// Row is a row of the table whose causes have commands of this program, and remedies with its name. A cause that may
// be accepted has the command for that last.
func (f Fleet) Row(member roster.Member, row fleet.Row) fleet.Row {
	row.Causes = slices.Clone(row.Causes)
	for i, cause := range row.Causes {
		row.Causes[i].Remediation = withAsked(cause.Remediation, cause.Actions)
		row.Causes[i].Actions = f.Actions(cause.Remedies(), member)
	}
	return Named(row, f.program)
}

// Actions fills in the commands of the actions of a finding about a cluster, which its flag selects; none
// where no flag does. An action that concerns the fleet has the same request for all of it. Where the
// kubeconfig of the cluster is in a Secret, the first command writes it to the file.
func (f Fleet) Actions(actions []finding.Action, of roster.Member) []finding.Action {
	phrased, member := slices.Clone(actions), of.Flags
	for i := range phrased {
		phrased[i].Command = cmp.Or(f.directed(phrased[i], member), f.command(phrased[i], member))
	}
	phrased = slices.DeleteFunc(phrased, func(action finding.Action) bool { return action.Command == "" })
	named := func(action finding.Action) bool {
		return strings.Contains(action.Command, Flags{}.with(member[0], member[1]).String())
	}
	if of.Secret == (roster.SecretRef{}) || !slices.ContainsFunc(phrased, named) {
		return phrased
	}
	connection := f.given.only("kubeconfig").String() + f.given.only("context").String()
	return append([]finding.Action{finding.Run("(umask 077; oc%s -n %s extract secret/%s --keys=kubeconfig --to=- > %s)",
		connection, shellWord(of.Secret.Namespace), shellWord(of.Secret.Name), shellWord(member[1]))}, phrased...)
}

func (f Fleet) command(action finding.Action, member []string) string {
	p := Phrase{program: f.program, Given: f.selecting(member)}
	switch action.Type {
	case finding.ActionAccept:
		return f.again(f.given.accepting(action.Value))
	case finding.ActionAcknowledge:
		if len(member) == 0 || member[0] == hostedCluster || member[0] == "archive" {
			return "" // no flag selects the cluster whose ConfigMap has the acknowledgement
		}
		return p.Verb("ack", action.Value, p.Given)
	case finding.ActionTargets:
		return p.Verb("targets", "", p.Given)
	case finding.ActionRoles:
		return p.Roles(strings.TrimPrefix(f.verb, "fleet "), nil, action.Value)
	case finding.ActionRetry:
		if action.Value != "" {
			return "" // the same request again would end as this one did
		}
		return f.again(f.given)
	case finding.ActionAttach, finding.ActionStart, finding.ActionRun:
	}
	return ""
}

// directed is a command of oc with the flags that select the cluster of a member.
func (f Fleet) directed(action finding.Action, member []string) string {
	command := action.Command
	if action.Cluster == finding.Management {
		return directed(command, f.given.Global())
	}
	if len(member) != 2 || member[0] != "context" && member[0] != "kubeconfig" {
		return command
	}
	var kubeconfig Flags
	if member[0] == "context" { // of the kubeconfig of the request
		kubeconfig = f.given.only("kubeconfig")
	}
	return directed(command, kubeconfig.with(member[0], member[1]))
}

// directed is a command of oc with flags. One that has some already, that is more than a single call of oc, or that is
// none, stays as it is.
func directed(command string, flags Flags) string {
	rest, ok := strings.CutPrefix(command, "oc ")
	several := strings.ContainsAny(rest, "|;&`\n") || strings.Contains(rest, "$(")
	if !ok || several || strings.HasPrefix(rest, "preflight ") || strings.HasPrefix(rest, "--") {
		return command
	}
	return "oc" + flags.String() + " " + rest
}

// selecting are the global flags, with the one that selects the cluster.
func (f Fleet) selecting(member []string) Flags {
	global := f.given.Global()
	if len(member) == 2 && member[0] == "kubeconfig" {
		global = global.without("context")
	}
	if len(member) == 2 {
		return global.with(member[0], member[1])
	}
	return global
}

// again is the request for the fleet again.
func (f Fleet) again(flags Flags) string {
	return Phrase{program: f.program}.Verb(f.verb, f.target, flags)
}
