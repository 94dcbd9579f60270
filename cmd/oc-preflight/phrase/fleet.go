package phrase

import (
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
	program, verb string
	target, given Flags
}

// OfFleet words the actions of the request for a fleet that the user typed. target is the
// version that it is about; empty for none.
func OfFleet(c *cobra.Command, target string) Fleet {
	f := Fleet{program: c.Root().CommandPath(), verb: "fleet " + c.Name()}
	if target != "" {
		f.target = toVersion(target)
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
	var phrased []finding.Action
	needed := false
	for _, each := range actions {
		made := f.action(each, of)
		if made.Command == "" && made.Sentence == "" {
			continue
		}
		needed = needed || len(of.Flags) == 2 &&
			slices.ContainsFunc(made.Calls, func(call []string) bool { return slices.Contains(call, of.Flags[1]) })
		phrased = append(phrased, made)
	}
	if of.Secret == (roster.SecretRef{}) || !needed {
		return phrased
	}
	extract := finding.Read("oc -n %s extract secret/%s --keys=kubeconfig --to=-", of.Secret.Namespace, of.Secret.Name).Into(of.Flags[1])
	p := Phrase{program: f.program}
	hub := slices.Concat(f.given.only("kubeconfig"), f.given.only("context"))
	extract = p.named(extract.Calling(func(call []string) []string { return connected(p, call, hub) }))
	return append([]finding.Action{extract}, phrased...)
}

// action is an action with its command for a member: a sentence where it changes a cluster that no flag selects.
func (f Fleet) action(a finding.Action, of roster.Member) finding.Action {
	made := f.request(a, of.Flags)
	made.Type, made.Value, made.Cluster = a.Type, a.Value, a.Cluster
	p := Phrase{program: f.program, Given: f.selecting(of.Flags)}
	switch {
	case len(made.Calls) == 0 && !selects(of.Flags): // nothing is known of it
		return spoken(made, "On cluster "+of.Cluster.Name+" only")
	case len(made.Calls) == 0 || isOurs(made.Calls[0]) || a.Operation == finding.Local:
		return p.named(made)
	case a.Cluster == finding.Management:
		p.Given = f.given.Global()
	case !selects(of.Flags) && a.Operation != finding.Reads:
		return spoken(p.named(made), "On cluster "+of.Cluster.Name+" only")
	case !selects(of.Flags):
		p.Given = nil
	}
	return p.named(made.Calling(func(call []string) []string { return connected(p, call, p.Given) }))
}

// selects is true for the flag of a member by which oc reaches it.
func selects(member []string) bool {
	return len(member) == 2 && (member[0] == "context" || member[0] == "kubeconfig")
}

func (f Fleet) request(a finding.Action, member []string) finding.Action {
	p := Phrase{program: f.program, Given: f.selecting(member)}
	switch a.Type {
	case finding.ActionAccept:
		return p.Verb(f.verb, nil, f.target, f.given.accepting(a.Value))
	case finding.ActionAcknowledge:
		if !selects(member) {
			return finding.Action{} // no flag selects the cluster whose ConfigMap has the acknowledgement
		}
		return p.Verb("ack", []string{a.Value}, p.Given)
	case finding.ActionTargets:
		return p.Verb("targets", nil, p.Given)
	case finding.ActionRoles:
		return p.Roles(strings.TrimPrefix(f.verb, "fleet "), nil, a.Value)
	case finding.ActionRetry:
		if a.Value != "" {
			return finding.Action{} // the same request again would end as this one did
		}
		return p.Verb(f.verb, nil, f.target, f.given)
	case finding.ActionAttach, finding.ActionStart:
		return finding.Action{}
	case finding.ActionRun, finding.ActionScript:
	}
	return a
}

// selecting are the global flags, with the one that selects the cluster.
func (f Fleet) selecting(member []string) Flags {
	global := f.given.Global()
	if len(member) != 2 {
		return global
	}
	if member[0] == "kubeconfig" {
		global = global.without("context")
	}
	return global.with(member[0], member[1])
}
