// Package explain answers: what does a reason or the name of a finding mean, and
// what is there to do?
//
// [Find] looks a word up in the [Entries], which the packages of the program declare
// (finding.NewReason, finding.NewName, catalog.Reasons), and the reasons of signature/refusal.
package explain

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/called"
	"github.com/openshift/update-preflight/cmd/oc-preflight/completion"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/expression"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/snapshot/reported"
	"github.com/openshift/update-preflight/collector/words"
	_ "github.com/openshift/update-preflight/runner/trigger/projection" // declares reasons that only the controller reports
	"github.com/openshift/update-preflight/signature/refusal"
)

// The kinds of entries.
const (
	KindReason  = "Reason"
	KindFinding = "Finding"
)

// Entry documents one reason or one name of findings.
type Entry struct {
	Kind string `json:"kind"`
	// Name is the value that a report has.
	Name string `json:"name"`
	// Package is the directory of the package, from the root of the module.
	Package string `json:"package"`
	// Subject is the topic, such as "Nodes and machines".
	Subject string `json:"subject,omitempty"`
	// Meaning is one or more sentences. Only a reason has a Cause and a Remedy.
	Meaning string `json:"meaning"`
	Cause   string `json:"cause,omitempty"`
	Remedy  string `json:"remedy,omitempty"`
}

// Entries are all entries, sorted by name.
func Entries() []Entry {
	var entries []Entry
	for _, d := range catalog.Declarations() {
		kind := KindReason
		if d.IsName {
			kind = KindFinding
		}
		entries = append(entries, Entry{
			Kind: kind, Name: d.Name, Package: d.Package, Meaning: d.Meaning, Cause: d.Cause,
			Remedy: remedy(d.Explanation),
		})
	}
	for _, r := range refusal.Reasons() {
		entries = append(entries, Entry{
			Kind: KindReason, Name: r.Name, Package: "signature/refusal", Meaning: r.Meaning, Cause: r.Cause,
			Remedy: r.Remedy,
		})
	}
	for i := range entries {
		entries[i].Subject = subjectOf(entries[i].Package)
		if entries[i].Kind == KindReason {
			entries[i].Remedy = cmp.Or(entries[i].Remedy, "None needed.")
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Package, b.Package))
	})
	return entries
}

// remedy ends with the command of the remedy, where there is one.
func remedy(e catalog.Explanation) string {
	if e.Command == "" {
		return e.Remedy
	}
	return fmt.Sprintf("%s: `%s`.", strings.TrimSuffix(e.Remedy, "."), e.Command)
}

// UnknownError is the error for a word that is neither a reason nor the name of a
// built-in finding.
type UnknownError struct {
	Word string
	// Similar are words that contain it or differ in few letters.
	Similar []string
}

// Error implements error.
func (e *UnknownError) Error() string {
	text := fmt.Sprintf("%q is neither a reason nor a finding of this tool", e.Word)
	if len(e.Similar) > 0 {
		const most = 10
		return text + "; similar are " + words.List(e.Similar, most)
	}
	return text + "; the check of an operator and the reason of a condition are documented by the operator"
}

// Kind is the kind in the JSON and YAML documents of one explanation and of the list.
const Kind = "PreflightExplanation"

// Page is the entries for one word.
type Page struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	Entries []Entry `json:"entries"`
}

// Index is a list of entries.
type Index struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	Entries []Entry `json:"entries"`
}

// All is the list of all entries.
func All(entries []Entry) Index {
	return Index{APIVersion: report.APIVersion, Kind: Kind, Entries: entries}
}

// Document has a table for each subject: the names of its findings, then its reasons.
func (x Index) Document(document.View) document.Document {
	made := document.Document{Title: "Findings and their reasons"}
	for _, subject := range subjects() {
		table := document.Table{Columns: []string{"Name", "Kind"}}
		for _, kind := range []string{KindFinding, KindReason} {
			for _, entry := range x.Entries {
				if entry.Kind == kind && entry.Subject == subject.title {
					table.Rows = append(table.Rows, []string{entry.Name, entry.Kind})
				}
			}
		}
		if len(table.Rows) > 0 {
			made.Blocks = append(made.Blocks, document.Section{Title: subject.title, Blocks: []document.Block{table}})
		}
	}
	return made
}

// Find returns the entries of a word: exactly that one, or for a finding such as
// AdminAck-ack-4.18 the entry of AdminAck. The name of a finding about a webhook is the kind of
// its configuration and the reason; the name of a problem after an update is the kind of its object and the reason.
// The error is an *UnknownError.
func Find(entries []Entry, word string) (Page, error) {
	for name := word; ; {
		found := named(entries, name)
		for _, kind := range []string{"Validating", "Mutating"} {
			if reason, ok := strings.CutPrefix(name, kind); ok && len(found) == 0 {
				found = named(entries, reason)
			}
		}
		if found = append(found, problem(entries, name)...); len(found) > 0 {
			return Page{APIVersion: report.APIVersion, Kind: Kind, Entries: found}, nil
		}
		end := strings.LastIndexAny(name, "-.") // of the object that a name is about
		if found = ofOther(entries, word); end < 0 && len(found) > 0 {
			return Page{APIVersion: report.APIVersion, Kind: Kind, Entries: found}, nil
		}
		if end < 0 {
			return Page{}, &UnknownError{Word: word, Similar: similar(entries, word)}
		}
		name = name[:end]
	}
}

func named(entries []Entry, name string) []Entry {
	var found []Entry
	for _, entry := range entries {
		if strings.EqualFold(entry.Name, name) {
			found = append(found, entry)
		}
	}
	return found
}

// problem are the entries of the reason of a problem after an update, by the name that package afterupdate makes of the kind of its
// object and the reason. Checks have findings and reasons of the same names.
func problem(entries []Entry, name string) []Entry {
	var found []Entry
	for _, row := range baseline.Rows() {
		kind := row.Kind
		if len(name) <= len(kind) || !strings.EqualFold(name[:len(kind)], string(kind)) {
			continue
		}
		for _, entry := range named(entries, name[len(kind):]) {
			if entry.Subject == afterUpdate {
				found = append(found, entry)
			}
		}
	}
	return found
}

// ofOther are the entries of a problem after an update by its name, where package baseline has no row of the kind: the entries of its reason,
// or a general one where the reason is made of a condition or a field of the status.
func ofOther(entries []Entry, name string) []Entry {
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		return nil
	}
	isStated := false
	for at, letter := range name {
		if at == 0 || !unicode.IsUpper(letter) {
			continue // no kind ends here
		}
		reason := name[at:]
		if found := ofAnyKind(entries, reason); len(found) > 0 {
			return found
		}
		isStated = isStated || states(reason)
	}
	if !isStated {
		return nil
	}
	return []Entry{{
		Kind: KindReason, Name: name, Package: "collector/baseline/health", Subject: afterUpdate,
		Meaning: "The object reports a problem after the update that it did not report before. The name is the kind of the object, then " +
			"the type of the condition, or the field and value of the status, that reports it.",
		Cause:  "Its controller has found it: the message of the condition says why.",
		Remedy: "Read its conditions, and the documentation of its operator: `oc describe KIND NAME -n NAMESPACE`.",
	}}
}

// ofAnyKind are the entries of a reason that a problem of any kind may have: of the object itself, or of its pods.
func ofAnyKind(entries []Entry, reason string) []Entry {
	_, ofPods := baseline.RowOf("").Limits[reason]
	return slices.DeleteFunc(named(entries, reason), func(each Entry) bool {
		general := ofPods || slices.Contains([]string{"collector/baseline/health", "collector/afterupdate/regression"}, each.Package)
		return each.Subject != afterUpdate || !general
	})
}

// states reports whether a reason is made of a condition, "NotHealthy" or "Degraded", or of a field of the status and its value,
// "PhaseFailed".
func states(reason string) bool {
	rest, negated := strings.CutPrefix(reason, "Not")
	isType := negated && strings.ContainsFunc(rest, unicode.IsUpper)
	isField := slices.ContainsFunc([]string{"Phase", "State", "Status", "Health"},
		func(field string) bool { return strings.HasPrefix(reason, field) && reason != field })
	return isType || isField || reported.MeaningOf(reason) == reported.Bad
}

// similar are the names that contain a word, or else those with the fewest differences from it, if these
// are at most a third of its letters.
func similar(entries []Entry, word string) []string {
	const share, longest = 3, 256
	word = strings.ToLower(word[:min(len(word), longest)])
	var containing, nearest []string
	least := max(1, len(word)/share)
	for _, entry := range entries {
		name := strings.ToLower(entry.Name)
		if strings.Contains(name, word) {
			containing = append(containing, entry.Name)
		}
		switch differs := levenshtein.ComputeDistance(name, word); {
		case differs < least:
			least, nearest = differs, []string{entry.Name}
		case differs == least:
			nearest = append(nearest, entry.Name)
		}
	}
	if len(containing) > 0 {
		return slices.Compact(containing)
	}
	return slices.Compact(nearest)
}

// quoted is a command in a text, and capitals a word in it that stands for a value.
var (
	quoted   = regexp.MustCompile("`[^`]+`")
	capitals = regexp.MustCompile(`(^|[ /=])[A-Z][A-Z_]+\b`)
)

// placeholders are the words in the commands of a text that stand for values.
func placeholders(text string) []string {
	var found []string
	for _, command := range quoted.FindAllString(text, -1) {
		for _, word := range capitals.FindAllString(command, -1) {
			if word = strings.Trim(word, " /="); !slices.Contains(found, word) {
				found = append(found, word)
			}
		}
	}
	return found
}

// Named are the entries whose texts call the programs by the names of a user who calls this one by name.
func Named(entries []Entry, name string) []Entry {
	for i := range entries {
		for _, text := range []*string{&entries[i].Meaning, &entries[i].Cause, &entries[i].Remedy} {
			*text = called.Text(*text, name)
		}
	}
	return entries
}

// Document is each entry with its meaning, cause and remedy.
func (p Page) Document(document.View) document.Document {
	made := document.Document{Title: "What a finding means"}
	for _, entry := range p.Entries {
		var about document.Table
		about.Row("Cause", entry.Cause)
		about.Row("Remedy", entry.Remedy)
		if values := placeholders(entry.Remedy); len(values) > 0 {
			about.Row("In capitals", words.List(values, len(values))+": what the finding names.")
		}
		made.Blocks = append(made.Blocks, document.Section{
			Title:  fmt.Sprintf("%s (%s: %s)", entry.Name, strings.ToLower(entry.Kind), entry.Subject),
			Blocks: []document.Block{document.Paragraph{Text: entry.Meaning}, about},
		})
	}
	return made
}

// subject is the title of the entries of these packages, and of the packages below them.
type subject struct {
	title    string
	packages []string
}

// afterUpdate is the subject of the problems that a cluster has after an update, and did not have before.
const afterUpdate = "After an update"

// subjects are all of them, in the order in which they are listed.
func subjects() []subject {
	return []subject{
		{"Version, channel and update service", []string{
			"collector/gate/clusterversion", "collector/cvo", "collector/scene", "collector/targets",
			"collector/update", "collector/updateplan", "collector/risk",
		}},
		{"Admin acknowledgements", []string{"collector/gate/adminack"}},
		{"Removed APIs", []string{"collector/gate/removedapi"}},
		{"Drains", []string{"collector/health/draining", "collector/health/deadlock", "collector/drain"}},
		{"Operators and gates", []string{"collector/gate", "collector/health/subscription"}},
		{"Nodes and machines", []string{"collector/machine"}},
		{"Monitoring", []string{"collector/monitoring"}},
		{"Hosted clusters", []string{"collector/hosted"}},
		{"API server and webhooks", []string{"collector/serving"}},
		{"Health of the cluster", []string{"collector/health"}},
		{afterUpdate, []string{"collector/baseline", "collector/afterupdate"}},
		{"Accepted risks", []string{"collector/acceptance"}},
		{"Signed verdicts", []string{"collector/verdict"}},
		{"Signature of the release", []string{"signature", "runner/proof", "runner/image/imagepolicy"}},
		{"Images and registries", []string{"runner/image", "runner/registry"}},
		{"Content of the release", []string{
			"runner/payload", "runner/contents", "runner/definition", "runner/imagestream", "runner/selection",
			"runner/site",
		}},
		{"Rehearsal of the update's writes", []string{"runner/rehearsal"}},
		{"Permissions of checks", []string{"runner/audit", "runner/launch"}},
		{"Jobs of the checks", []string{"runner/jobs", "runner/execution"}},
		{"Conformance of checks", []string{"runner/conformance"}},
		{"The controller", []string{"runner/trigger"}},
		{"Records of runs", []string{"runner", "cmd/oc-preflight/runs"}},
		{"Fleets", []string{"runner/fleet"}},
		{"All checks", []string{"collector"}},
	}
}

// subjectOf is the title of the subject with the longest path to a package; empty for none.
func subjectOf(of string) string {
	title, longest := "", 0
	for _, each := range subjects() {
		for _, path := range each.packages {
			if (of == path || strings.HasPrefix(of, path+"/")) && len(path) > longest {
				title, longest = each.title, len(path)
			}
		}
	}
	return title
}

// Options are the arguments and flags of "explain".
type Options struct {
	// Word is a reason or the name of a finding; empty to list all.
	Word string
	// Output is the format of standard output.
	Output string
}

// NewCommand returns the command "explain", which explains reasons and names of findings without a cluster.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	flags := Options{Output: "text"}
	c := &cobra.Command{
		Use:   "explain [REASON | FINDING]",
		Short: "Explain a reason or the name of a finding",
		Long: `Print what a reason or the name of a finding means, what causes it and what to do. Without an argument, list all reasons and names by topic. A finding of a check that a release ships is documented by its operator, at the URL of the finding. No cluster is used.

Exit codes: 0 it was explained, 1 the tool failed, 2 wrong usage or an unknown word.`,
		Example: `  # A finding of a report
  oc preflight explain AdminAck-ack-4.18-kube-1.32-api-removals-in-4.19

  # The reason of a finding, in parentheses behind its name
  oc preflight explain AdminAckRequired`,
		Args:              flagset.Arguments(0, 1, "one reason or name"),
		ValidArgsFunction: completeExplain,
		RunE: func(c *cobra.Command, args []string) error {
			flags.Word = flagset.First(args)
			return flagset.Execute(c, flags, func() error { return explainWord(c, streams, flags) })
		},
	}
	flagset.OutputFlag(c, &flags.Output, Page{})
	return c
}

func explainWord(c *cobra.Command, streams genericiooptions.IOStreams, flags Options) error {
	if err := expression.Check(flags.Output, Page{}); err != nil {
		return exitcode.BadUsage(err)
	}
	entries := Named(Entries(), c.Root().CommandPath())
	if flags.Word == "" {
		return expression.Write(streams.Out, flags.Output, All(entries), terminal.Style(streams.Out))
	}
	page, err := Find(entries, flags.Word)
	if _, ok := errors.AsType[*UnknownError](err); ok {
		return exitcode.BadUsage(fmt.Errorf("%w; list all with: %s", err, c.CommandPath()))
	}
	if err != nil {
		return err
	}
	return expression.Write(streams.Out, flags.Output, page, terminal.Style(streams.Out))
}

func completeExplain(_ *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []cobra.Completion
	for _, entry := range Entries() {
		names = append(names, cobra.CompletionWithDesc(entry.Name, entry.Kind))
	}
	return completion.Matching(slices.Compact(names), prefix), cobra.ShellCompDirectiveNoFileComp
}
