package document_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/document"
)

// The cluster is first and the verdict last, also on a terminal.
func TestComplete(t *testing.T) {
	made := document.Document{
		Cluster: "5d1c2f04-1234", Time: "2026-11-28T12:00:00Z",
		Ticket: document.Ticket{Verdict: "Ready.", By: "oc-preflight v1"}, Blocks: []document.Block{document.Paragraph{Text: "a"}},
	}
	const reached = "archive customer.tar"
	for name, tc := range map[string]struct {
		reason string
		edit   func(*document.Document)
		view   document.View
		want   []document.Block
	}{
		"Whole": {reason: "a file and a page stand alone", want: []document.Block{
			document.Paragraph{Text: "Cluster: 5d1c2f04-1234, archive customer.tar, as of 2026-11-28T12:00:00Z"},
			document.Paragraph{Text: "a"},
			document.Excerpt{
				Lead:  "For a change ticket:",
				Lines: []string{"Cluster: 5d1c2f04-1234, archive customer.tar, as of 2026-11-28T12:00:00Z", "Made by: oc-preflight v1", "Ready."},
			},
		}},
		"Brief": {reason: "a terminal has the time once, and the ticket the whole ID", view: document.View{Brief: true}, want: []document.Block{
			document.Paragraph{Text: "Cluster: 5d1c2f04, archive customer.tar, as of 2026-11-28T12:00:00Z"},
			document.Paragraph{Text: "a"},
			document.Excerpt{
				Lead:  "For a change ticket:",
				Lines: []string{"Cluster: 5d1c2f04-1234, archive customer.tar", "Made by: oc-preflight v1", "Ready."},
			},
		}},
		"NoVerdict": {
			reason: "a list that decides nothing is no matter of a ticket", edit: func(d *document.Document) { d.Ticket.Verdict = "" },
			want: []document.Block{
				document.Paragraph{Text: "Cluster: 5d1c2f04-1234, archive customer.tar, as of 2026-11-28T12:00:00Z"}, document.Paragraph{Text: "a"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			of := made
			if tc.edit != nil {
				tc.edit(&of)
			}
			if diff := cmp.Diff(tc.want, of.Complete(reached, tc.view).Blocks); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// The next step of a ticket is a whole command that decides nothing for who reads the ticket, or a sentence.
func TestNext(t *testing.T) {
	item := func(commands ...document.Command) document.Items {
		return document.Items{Entries: []document.Item{{Message: "m"}, {Counts: true, Remedy: "r", Message: "n", Commands: commands}}}
	}
	run := document.Command{Lead: "Run again:", Text: "oc run"}
	for name, tc := range map[string]struct {
		reason string
		next   string
		blocks []document.Block
		want   string
	}{
		"Given": {
			reason: "the document knows best", next: "Wait.", blocks: []document.Block{item(document.Command{Text: "oc fix"})},
			want: "Wait.",
		},
		"Command": {
			reason: "what counts is fixed before the next run", blocks: []document.Block{run, item(document.Command{Text: "oc fix"})},
			want: "$ oc fix",
		},
		"Guest": {
			reason: "the cluster of the command is named",
			blocks: []document.Block{item(document.Command{Lead: "In the guest:", Text: "oc fix"})}, want: "In the guest: $ oc fix",
		},
		"Accepted": {
			reason: "who reads a ticket has not read what is accepted",
			blocks: []document.Block{item(document.Command{Text: "oc accept", Accepts: true})}, want: "r",
		},
		"Second": {
			reason: "the first one accepts",
			blocks: []document.Block{item(document.Command{Text: "oc accept", Accepts: true}, document.Command{Text: "oc fix"})}, want: "$ oc fix",
		},
		"Read": {
			reason: "another command may acknowledge it, too", want: "r",
			blocks: []document.Block{document.Items{Entries: []document.Item{{
				Counts: true, Whole: true, Remedy: "r",
				Commands: []document.Command{{Text: "oc ack", Accepts: true}, {Text: "oc patch configmap admin-acks"}},
			}}}},
		},
		"Unknown": {reason: "a risk has a page and no remedy", blocks: []document.Block{document.Items{Entries: []document.Item{{
			Counts: true,
			Names:  []string{"Risk"}, Message: "m",
		}}}}, want: "Read about Risk."},
		"Lines": {
			reason: "on one line a here-document is another command",
			blocks: []document.Block{item(document.Command{Text: "oc apply -f - <<EOF\na\nEOF"})}, want: "r",
		},
		"Spaces": {
			reason: "on one line an argument with two spaces is another one",
			blocks: []document.Block{item(document.Command{Text: "oc label a 'b  c'"})}, want: "r",
		},
		"Long": {
			reason: "a part of a command is another command",
			blocks: []document.Block{item(document.Command{Text: "oc " + strings.Repeat("a ", 300) + "b"})}, want: "r",
		},
		"None": {reason: "the remedy is a sentence", blocks: []document.Block{item()}, want: "r"},
		"Section": {
			reason: "an update of a path has its own findings",
			blocks: []document.Block{document.Section{Title: "s", Blocks: []document.Block{item()}}, run}, want: "r",
		},
		"NoItem": {
			reason: "nothing counts", blocks: []document.Block{document.Items{Entries: []document.Item{{Remedy: "r"}}}, run},
			want: "$ oc run",
		},
		"Nothing": {reason: "nothing is to be done", blocks: []document.Block{document.Paragraph{Text: "a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			made := document.Document{Ticket: document.Ticket{Verdict: "v", Next: tc.next}, Blocks: tc.blocks}.Complete("", document.View{})
			lines := made.Blocks[len(made.Blocks)-1].(document.Excerpt).Lines //nolint:forcetypeassert,errcheck // it fails the test
			want := []string{"Next: " + tc.want, "v"}
			if tc.want == "" {
				want = want[1:]
			}
			if !slices.Equal(lines, want) {
				t.Errorf("%s: %q, want %q", tc.reason, lines, want)
			}
		})
	}
}
