package phrase

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/openshift/update-preflight/cmd/oc-preflight/called"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/fleet"
)

// Flags are the flags of a request that a repeated one has again.
type Flags []givenFlag

// givenFlag is a flag with its values, in the order of the command line.
type givenFlag struct {
	Name   string
	Values []string
	// optional is true for a flag that may be given without a value.
	optional bool
	// global is true for a flag of all commands, such as --kubeconfig.
	global bool
	// verbs are the commands that have it, unless all have.
	verbs []string
	again option.Again
}

// hostedCluster is the flag that selects a hosted cluster, and tokenFlag has a credential, which no command has again.
const hostedCluster, tokenFlag = "hosted-cluster", "token"

// givenTo are the flags that the user gave to a command, as far as "run" beside it has them too, and those that
// select the cluster.
func givenTo(c *cobra.Command) Flags {
	beside := "run"
	if c.HasParent() && c.Parent().HasParent() {
		beside = c.Parent().Name() + " run"
	}
	var given Flags
	c.Flags().Visit(func(flag *pflag.Flag) {
		each := givenFlag{
			Name: flag.Name, Values: ValuesOf(flag), optional: flag.NoOptDefVal != "", again: option.Of(flag).Again,
			global: c.Root().PersistentFlags().Lookup(flag.Name) != nil, verbs: verbsWith(c.Root(), flag.Name),
		}
		isOfRun := each.global || slices.Contains(each.verbs, beside)
		if each.again == option.Reaching || each.again == option.Judging && isOfRun {
			given = append(given, each)
		}
	})
	return given
}

// verbsWith are the commands below root that have a flag, or all for no flag: by their names without the name of root.
func verbsWith(root *cobra.Command, flag string) []string {
	var names []string
	for _, verb := range root.Commands() {
		for _, each := range append([]*cobra.Command{verb}, verb.Commands()...) {
			if flag == "" || each.Flags().Lookup(flag) != nil {
				names = append(names, strings.TrimPrefix(each.CommandPath(), root.CommandPath()+" "))
			}
		}
	}
	return names
}

// ValuesOf are the values of a flag; none for a switch that is on, and for a flag with the value that it has without
// one. Reports are stored and
// passed on, so they have no credentials.
func ValuesOf(flag *pflag.Flag) []string {
	list, ok := flag.Value.(pflag.SliceValue)
	switch {
	case flag.Name == tokenFlag:
		return []string{"TOKEN"} // a command that has it is shown as a sentence
	case ok:
		values := slices.Clone(list.GetSlice())
		for i, value := range values {
			values[i] = withoutPassword(value)
		}
		if flag.Value.Type() == "stringSlice" { // separated by commas
			return []string{strings.Join(values, ",")}
		}
		return values
	case flag.NoOptDefVal != "" && flag.Value.String() == flag.NoOptDefVal:
		return nil
	}
	return []string{withoutPassword(flag.Value.String())}
}

// withoutPassword replaces the password in a URL.
func withoutPassword(value string) string {
	if address, err := url.Parse(value); err == nil && address.User != nil {
		return address.Redacted()
	}
	return value
}

// with replaces a flag, or adds it.
func (g Flags) with(name string, values ...string) Flags {
	return append(g.without(name), givenFlag{Name: name, Values: values})
}

// accepting accepts findings by name as well, separated by commas.
func (g Flags) accepting(names string) Flags {
	if at := slices.IndexFunc(g, func(flag givenFlag) bool { return flag.Name == "accept" }); at >= 0 {
		all := strings.Split(g[at].Values[0]+","+names, ",")
		slices.Sort(all)
		names = strings.Join(slices.Compact(all), ",")
	}
	return g.with("accept", names)
}

func (g Flags) without(name string) Flags {
	return slices.DeleteFunc(slices.Clone(g), func(flag givenFlag) bool { return flag.Name == name })
}

func (g Flags) only(name string) Flags {
	return slices.DeleteFunc(slices.Clone(g), func(flag givenFlag) bool { return flag.Name != name })
}

func (g Flags) has(name string) bool {
	return slices.ContainsFunc(g, func(flag givenFlag) bool { return flag.Name == name })
}

// of are the flags that a verb has, too.
func (g Flags) of(verb string) Flags {
	return slices.DeleteFunc(slices.Clone(g), func(flag givenFlag) bool { return !flag.global && !slices.Contains(flag.verbs, verb) })
}

// Global are the flags of all commands among them.
func (g Flags) Global() Flags {
	return slices.DeleteFunc(slices.Clone(g), func(flag givenFlag) bool { return !flag.global })
}

// cluster returns the flags by which a request reaches the cluster.
func (g Flags) cluster() Flags {
	return slices.DeleteFunc(slices.Clone(g), func(flag givenFlag) bool { return !flag.global && flag.again != option.Reaching })
}

// words are the flags as words of a command.
func (g Flags) words() []string {
	var typed []string
	for _, flag := range g {
		if len(flag.Values) == 0 {
			typed = append(typed, "--"+flag.Name)
		}
		for _, value := range flag.Values {
			if value == "false" || flag.optional { // a word behind it would be an argument
				typed = append(typed, "--"+flag.Name+"="+value)
				continue
			}
			typed = append(typed, "--"+flag.Name, value)
		}
	}
	return typed
}

// about are the flags of a verb about the cluster of the request; "attach" has all again that the record of a run does
// not have.
func (g Flags) about(verb string) Flags {
	if verb == "attach" {
		return g.of(verb)
	}
	return g.cluster().of(verb)
}

// missing are the flags that a command does not have.
func (g Flags) missing(command []string) Flags {
	return slices.DeleteFunc(slices.Clone(g), func(flag givenFlag) bool { return slices.Contains(command, "--"+flag.Name) })
}

// Verb is the command of a verb of this program, with its operands and its flags.
func (p Phrase) Verb(verb string, operands []string, flags ...Flags) finding.Action {
	made := finding.Read("oc preflight %s %s", strings.Fields(verb), operands).Adding(slices.Concat(flags...).words()...)
	return p.named(made)
}

// About is the command of a verb about the cluster of the request, with its operands.
func (p Phrase) About(verb string, operands ...string) finding.Action {
	return p.Verb(verb, operands, p.Given.about(verb))
}

// named is a command whose programs have the names by which the user calls them.
func (p Phrase) named(a finding.Action) finding.Action {
	return a.Calling(func(call []string) []string { return called.Words(call, p.program) })
}

func (p Phrase) actions(actions []finding.Action) []finding.Action {
	phrased := slices.Clone(actions)
	for i, each := range phrased {
		phrased[i] = p.action(each)
	}
	return phrased
}

// action is an action with the command that the user may type, or with a sentence.
func (p Phrase) action(a finding.Action) finding.Action {
	made := request(p, a)
	made.Type, made.Value, made.Cluster = a.Type, a.Value, a.Cluster
	if len(made.Calls) == 0 { // nothing is known of it
		return spoken(made, map[bool]string{true: onlyOn(p.cluster)}[p.Given.has("archive")])
	}
	connection, where := connectionOf(p, made)
	ours := isOurs(made.Calls[0])
	if p.Given.has(hostedCluster) && made.Cluster == "" && !ours && made.Type == finding.ActionRun {
		made.Cluster = finding.Guest
	}
	made = p.named(made.Calling(func(call []string) []string { return connected(p, call, connection) }))
	return spoken(made, where)
}

// reachesGuest is true for a call of this program that reaches the guest by way of the management cluster.
func reachesGuest(p Phrase, call []string) bool {
	return isOurs(call) && p.Given.about(verbOf(call[2:], p.verbs)).has(hostedCluster)
}

// isOurs is true for a call of this program.
func isOurs(call []string) bool { return len(call) > 1 && call[0] == "oc" && call[1] == "preflight" }

// connectionOf are the flags by which oc reaches the cluster of a command. Where it is not reached, or is so only by what
// the reader gives, that is said before a command: an archive has no connection, the connection of a request for a hosted
// cluster is the name of its management cluster; the name of the guest may be unknown.
func connectionOf(p Phrase, a finding.Action) (connection Flags, where string) {
	connection = p.Given.Global()
	guest := p.Given.has(hostedCluster) && a.Cluster != finding.Management && a.Type != finding.ActionStart
	kubeconfig := p.Given.only("guest-kubeconfig")
	changes := a.Operation != finding.Reads && a.Operation != finding.Local
	switch {
	case p.Given.has("archive") && changes:
		return nil, onlyOn(p.cluster)
	case p.Given.has("archive"):
		return nil, ""
	case guest && len(kubeconfig) > 0:
		return Flags(nil).with("kubeconfig", kubeconfig[0].Values...), ""
	case guest && changes && !reachesGuest(p, a.Calls[0]):
		return nil, "In the guest cluster only, by its kubeconfig"
	case guest && !isOurs(a.Calls[0]):
		return nil, ""
	case connection.has(tokenFlag) && a.Operation != finding.Local:
		return connection.without(tokenFlag), "With the token of this request as --token"
	}
	return connection, ""
}

// onlyOn names the cluster of an archive by its ID, which may be empty.
func onlyOn(cluster string) string {
	if cluster == "" {
		return "On the cluster of the archive only"
	}
	return "On cluster " + cluster + " only"
}

// spoken is a command, or a sentence with it where the command needs an introduction.
func spoken(a finding.Action, where string) finding.Action {
	if where == "" || a.Command == "" {
		return a
	}
	return a.Spoken("%s: `%s`", where, a.Command)
}

// connected is a call that reaches the cluster of the request. One that has flags before its verb has its connection.
func connected(p Phrase, call []string, connection Flags) []string {
	at := called.OC(call)
	switch {
	case at < 0:
		return call
	case isOurs(call[at:]):
		verb := verbOf(call[at+2:], p.verbs)
		if len(call) < at+3 || slices.Contains(unconnected(), call[at+2]) { // "auth" has verbs of its own
			return call
		}
		return slices.Concat(call, p.Given.about(verb).without(tokenFlag).missing(call).words())
	case at+1 < len(call) && strings.HasPrefix(call[at+1], "--"):
		return call
	}
	return slices.Insert(slices.Clone(call), at+1, connection.words()...)
}

// request is the command of an action that is a request to this program; other actions are as they are.
func request(p Phrase, a finding.Action) finding.Action {
	switch a.Type {
	case finding.ActionAccept:
		if p.unlisted { // no acceptance makes CVO update to it
			return finding.Action{}
		}
		return again(p, p.Given.accepting(a.Value))
	case finding.ActionAcknowledge:
		made := p.Verb("ack", []string{a.Value}, p.Given.Global().without(tokenFlag))
		made.Operation = finding.Changes
		return made
	case finding.ActionTargets:
		return p.unlessAsked(p.About("targets"))
	case finding.ActionRoles:
		return rolesOfFinding(p, a.Value)
	case finding.ActionRetry:
		if askFor(a.Value) != "" || p.verb == "status" && p.Given.has("archive") { // no run of an archive is recorded
			return finding.Action{}
		}
		return again(p, p.Given.retried(a.Value))
	case finding.ActionAttach:
		return p.About("attach", a.Value)
	case finding.ActionStart, finding.ActionRun, finding.ActionScript:
	}
	return a
}

// again is the command that evaluates the target again.
func again(p Phrase, flags Flags) finding.Action { return p.Verb("run", nil, p.Target, flags) }

// unlessAsked is a command, and none for the one that was asked.
func (p Phrase) unlessAsked(a finding.Action) finding.Action {
	if sameWords(p.asked, a.Calls) {
		return finding.Action{}
	}
	return a
}

// Management is a command about the management cluster of the request.
func (p Phrase) Management(a finding.Action) string {
	return p.action(a.In(finding.Management)).Command
}

// unconnected are the commands that need no cluster, and "auth", whose roles another user applies.
func unconnected() []string {
	return []string{"auth", "completion", "conformance", "explain", "help", "init", "options", "render", "schema", "verify-verdict"}
}

// verbOf is the command of the program with which words begin; empty for none.
func verbOf(words, verbs []string) string {
	for length := len(words); length > 0; length-- {
		if verb := strings.Join(words[:length], " "); slices.Contains(verbs, verb) {
			return verb
		}
	}
	return ""
}

// Remedy are the lines of a remedy, its commands being for the cluster of the request. One command completes a sentence
// without a period.
func (p Phrase) Remedy(sentence string, commands []finding.Action) []string {
	sentence = called.Text(sentence, p.program)
	var lines []string
	for _, action := range p.actions(commands) {
		if shown := cmp.Or(action.Command, action.Sentence); shown != "" {
			lines = append(lines, "  "+shown)
		}
	}
	switch {
	case sentence == "":
		return nil
	case len(lines) == 1 && !strings.HasSuffix(sentence, "."):
		return []string{sentence + ": " + strings.TrimSpace(lines[0])}
	}
	return append([]string{sentence}, lines...)
}

// worded is a finding whose actions are command lines, and whose remedy calls the programs by the names of the
// user. The URL of a Job is its author's.
func (p Phrase) worded(f finding.Finding) finding.Finding {
	if f.Source != finding.SourceJob {
		f.Remediation = called.Text(f.Remediation, p.program)
	}
	f.Remediation = withAsked(f.Remediation, f.Actions)
	f.Actions = p.actions(f.Actions)
	return f
}

// Named is the row of a cluster whose commands and remedies call the programs by the names of the user, who calls
// this one by program.
func Named(row fleet.Row, program string) fleet.Row {
	row.Causes = slices.Clone(row.Causes)
	for i, cause := range row.Causes {
		row.Causes[i].Remediation = called.Text(cause.Remediation, program)
		row.Causes[i].Actions = slices.Clone(cause.Actions)
		for j, action := range cause.Actions {
			row.Causes[i].Actions[j] = Phrase{program: program}.named(action)
		}
	}
	return row
}
