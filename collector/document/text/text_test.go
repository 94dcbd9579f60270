package text_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/text"
)

func TestWrite(t *testing.T) {
	t.Parallel()
	terminal := text.Style{Width: 40, Hint: "--details"}
	fail := document.Item{
		Mark: document.Mark{Level: document.Bad, Word: "FAIL"}, Names: []string{"A"}, State: "(R)", Counts: true,
		Message: "m", Remedy: "r", Commands: []document.Command{{Text: "oc one"}, {Lead: "In the guest:", Text: "oc two"}},
		Facts: []document.Fact{{Lead: "See:", Text: "u"}, {Lead: "Targets:", Text: "t", Brief: true}},
	}
	item := func(change func(*document.Item)) []document.Block {
		changed := fail
		change(&changed)
		return []document.Block{document.Items{Entries: []document.Item{changed}}}
	}
	warn := document.Item{Mark: document.Mark{Level: document.Caution, Word: "WARN"}, Names: []string{"B"}, Message: "n"}
	table := document.Table{Columns: []string{"Target", "Decision"}, Result: "Decision", Rows: [][]string{{strings.Repeat("x", 34), "Ready"}}}
	for name, tc := range map[string]struct {
		reason string
		style  text.Style
		blocks []document.Block
		want   string
	}{
		"Apart": {
			reason: "an empty line is between blocks",
			blocks: []document.Block{document.Paragraph{Text: "a"}, document.Paragraph{Text: "b"}}, want: "a\n\nb\n",
		},
		"Together": {reason: "next steps are one list", blocks: []document.Block{
			document.Details{Summary: "1 passed"},
			document.Command{Lead: "Next:", Text: "oc x"},
		}, want: "  1 passed\nNext: $ oc x\n"},
		"Brief": {
			reason: "a terminal has no room for empty lines", style: terminal,
			blocks: []document.Block{document.Paragraph{Text: "a"}, document.Paragraph{Text: "b"}}, want: "a\nb\n",
		},
		"Section": {reason: "a section stands apart also on a terminal", style: terminal, blocks: []document.Block{document.Section{
			Title:  "S",
			Blocks: []document.Block{document.Paragraph{Text: "a"}},
		}, document.Paragraph{Text: "b"}}, want: "S\n\na\n\nb\n"},
		"Folded": {
			reason: "a long word is broken, since a terminal would continue it in the first column", style: terminal,
			blocks: []document.Block{document.List{Entries: []string{"a " + strings.Repeat("x", 50)}}},
			want:   "- a\n  " + strings.Repeat("x", 38) + "\n  " + strings.Repeat("x", 12) + "\n",
		},
		"Pipe": {
			reason: "grep finds a paragraph in one line", blocks: []document.Block{document.Paragraph{Text: strings.Repeat("word ", 40)}},
			want: strings.TrimSpace(strings.Repeat("word ", 40)) + "\n",
		},
		"Arrow": {
			reason: "an arrow is ASCII unless symbols are shown", blocks: []document.Block{document.Paragraph{Text: "4.1.0 → 4.2.0"}},
			want: "4.1.0 -> 4.2.0\n",
		},
		"Symbols": {
			reason: "symbols stand beside words", style: text.Style{Width: 80, Symbols: true}, blocks: []document.Block{table},
			want: "TARGET                              DECISION\n" + strings.Repeat("x", 34) + "  ✓ Ready\n",
		},
		"Cut": {
			reason: "a row is one line of a terminal", style: terminal, blocks: []document.Block{table},
			want: "TARGET ...\n" + strings.Repeat("x", 34) + " ...\n... (the rest: -o json)\n",
		},
		"Row": {
			reason: "the lines of a value are below each other",
			blocks: []document.Block{document.Table{Rows: [][]string{{"A", "b\nc"}}}}, want: "A          b\n           c\n",
		},
		"Item": {
			reason: "a file has everything", blocks: []document.Block{document.Items{Entries: []document.Item{fail, warn}}},
			want: "FAIL  A (R)\n    m\n    Fix:  r\n    $ oc one\n    In the guest: $ oc two\n    See:  u\n    Targets: t\n\nWARN  B\n    n\n",
		},
		"BriefItem": {
			reason: "a terminal has the remedy with its commands, and names of what counts less", style: terminal,
			blocks: []document.Block{document.Items{Entries: []document.Item{fail, warn}, More: 2}},
			want: "FAIL  A (R)\n    m\n    Fix:  r\n    $ oc one\n    In the guest: $ oc two\n    Targets: t\nWARN  B\n... and 2 more " +
				"(--details)\n",
		},
		"ManyCommands": {
			reason: "who types the first command sees that it is not the last", style: terminal, blocks: item(func(i *document.Item) {
				i.Commands = []document.Command{{Text: "oc one"}, {Text: "oc two"}, {Text: "oc three"}}
			}),
			want: "FAIL  A (R)\n    m\n    Fix:  r\n    $ oc one\n    +2 commands: --details\n    Targets: t\n",
		},
		"Confirmed": {
			reason: "a command that confirms a message is shown below all of it", style: terminal,
			blocks: item(func(i *document.Item) { i.Message, i.Whole = strings.Repeat("word\n", 8), true }),
			want:   "FAIL  A (R)\n" + strings.Repeat("    word\n", 8) + "    Fix:  r\n    $ oc one\n    In the guest: $ oc two\n    Targets: t\n",
		},
		"ConfirmedLong": {
			reason: "it is not shown below a part of the message", style: terminal,
			blocks: item(func(i *document.Item) { i.Message, i.Whole = strings.Repeat("word\n", 30), true }),
			want: "FAIL  A (R)\n" + strings.Repeat("    word\n", 19) +
				"    word... (10 more lines: --details)\n    Fix:  r\n    +2 commands: --details\n    Targets: t\n",
		},
		"Words": {
			reason: "a text ends with a word", style: terminal, blocks: item(func(i *document.Item) { i.Message = strings.Repeat("words ", 40) }),
			want: "FAIL  A (R)\n" + strings.Repeat("    "+strings.TrimSpace(strings.Repeat("words ", 6))+"\n", 3) +
				"    words... (3 more lines: --details)\n    Fix:  r\n    $ oc one\n    In the guest: $ oc two\n    Targets: t\n",
		},
		"Quoted": {
			reason: "a part of a quoted command is another command", style: terminal, blocks: item(func(i *document.Item) {
				i.Message = "It was deleted by the owner: " +
					`run "oc delete pod --all -n shop --selector app=web --dry-run=server --grace-period 0" first, and then ` + strings.Repeat(
					"wait ", 20)
			}),
			want: "FAIL  A (R)\n    It was deleted by the owner: run... (3 more lines: --details)\n    Fix:  r\n    $ oc one\n    In the " +
				"guest: $ oc two\n    Targets: t\n",
		},
		"Excerpt": {
			reason: "its lines are for a ticket",
			blocks: []document.Block{document.Excerpt{Lead: "L:", Lines: []string{"a", "b", "c", "d"}}}, want: "L:\na\nb\nc\nd\n",
		},
		"ExcerptBrief": {
			reason: "a terminal has few lines, and the last is the verdict in one", style: terminal,
			blocks: []document.Block{document.Excerpt{Lead: "L:", Lines: []string{"a", "b", "c", strings.Repeat("d", 50)}}},
			want:   "a; b\nc\n" + strings.Repeat("d", 50) + "\n",
		},
		"Hostile": {
			reason: "data forges no line and controls no terminal", blocks: []document.Block{document.Section{Title: "a\x1b[2J\nReady"}},
			want: "a Ready\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got strings.Builder
			if err := text.Write(&got, document.Document{Blocks: tc.blocks}, tc.style); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.String()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestBeginning(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, given string
		most          int
		want          string
	}{
		"Whole":    {reason: "it fits", given: "one two", most: 7, want: "one two"},
		"Word":     {reason: "no word is cut", given: "one two", most: 6, want: "one"},
		"End":      {reason: "the bound is the end of a word", given: "one two", most: 3, want: "one"},
		"LongWord": {reason: "one word alone is cut", given: "onetwo three", most: 3, want: "one"},
		"Quote":    {reason: "a part of a command is another command", given: `Run "oc delete pod --dry-run" first`, most: 20, want: "Run"},
		"Backtick": {reason: "it is a command, too", given: "Run `oc delete pod --dry-run` first", most: 20, want: "Run"},
		"Closed":   {reason: "the quotation is whole", given: `Run "oc get pod" first of all`, most: 23, want: `Run "oc get pod" first`},
		"Inches":   {reason: "a single mark quotes nothing", given: `a disk of 5" is slow and old`, most: 16, want: `a disk of 5" is`},
		"First":    {reason: "nothing precedes the command", given: `"oc delete pod --dry-run" first`, most: 12},
		"None":     {reason: "there is no room", given: "one two", most: 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := text.Beginning(tc.given, tc.most); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
