package format_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/document/picture"
	"github.com/openshift/update-preflight/test/golden"
)

// sample has every block. Its words that begin with "block" must be in every format.
type sample struct{}

func (sample) Document(document.View) document.Document {
	bad := document.Mark{Level: document.Bad, Word: "FAIL"}
	route := picture.Route{Title: "Path", Stops: []string{"4.1.0", "4.2.0"}, Hops: []picture.Hop{{Text: "Minor"}}}
	route.Table = document.Table{Title: "Hops", Columns: []string{"Hop", "Kind"}, Rows: [][]string{{"blockpicture", "Minor"}}}
	item := document.Item{
		Group: "Group", Number: 1, Mark: bad, Names: []string{"blockname"}, State: "(blockstate)", Counts: true,
		Message: "blockmessage\n  blockverbatim", Remedy: "blockremedy",
		Commands: []document.Command{{Lead: "In the guest:", Text: "oc blockcommand"}},
	}
	item.Fact("See:", "blockfact")
	return document.Document{
		Title: "A sample", Source: "A test.", Cluster: "blockcluster-1", Time: "2026-11-28T12:00:00Z",
		Ticket: document.Ticket{Verdict: "blockverdict", Until: "2026-11-29T12:00:00Z", By: "blockauthor"},
		Blocks: []document.Block{
			document.Verdict{Mark: bad, Subject: "blocksubject", Meaning: "blockmeaning"},
			document.Paragraph{Text: "blockparagraph"},
			document.List{Lead: "blocklead:", Entries: []string{"blockentry", "b"}},
			document.List{Lead: "NAMES", Entries: []string{"blocknamed", "b"}, Names: true},
			document.Items{Lead: "Fix these:", Entries: []document.Item{
				item,
				{Mark: document.Mark{Level: document.Caution, Word: "WARN"}, Names: []string{"blockother"}},
			}},
			document.Details{
				Mark: document.Mark{Level: document.Good, Word: "PASS"}, Summary: "blocksummary",
				Blocks: []document.Block{document.Paragraph{Text: "closed"}},
			},
			document.Command{Lead: "Next:", Text: "oc blocknext"},
			document.Section{Title: "blocksection", Mark: bad, Blocks: []document.Block{
				document.Table{Title: "Facts", Rows: [][]string{{"Row", "blockvalue\nblocksecond"}}},
				document.Table{
					Title: "Results", Columns: []string{"Target", "Decision"}, Result: "Decision",
					Rows: [][]string{{"blockcell", "Ready"}, {"x|y", ""}},
				},
			}},
			route.Picture(),
		},
	}
}

// TestEveryFormatHasEveryBlock writes a document with every block in every format for people.
func TestEveryFormatHasEveryBlock(t *testing.T) {
	for _, name := range format.Names(sample{}) {
		if name == "json" || name == "yaml" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			if err := format.Write(&got, name, sample{}, format.Style{}); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, "testdata/sample."+name, got.Bytes())
			for _, want := range []string{
				"subject", "meaning", "paragraph", "lead", "entry", "named", "name", "state", "message", "verbatim", "remedy", "command", "fact",
				"cluster-1", "verdict", "author", "other", "summary", "next", "section", "value", "second", "cell", "picture",
			} {
				if !strings.Contains(got.String(), "block"+want) {
					t.Errorf("the format %s leaves out the %s of the document:\n%s", name, want, got.String())
				}
			}
		})
	}
}

func TestNames(t *testing.T) {
	if got, want := format.Names(sample{}), []string{"text", "json", "yaml", "markdown", "html"}; !slices.Equal(want, got[:len(want)]) {
		t.Errorf("the formats of a document are %v, want %v at least", got, want)
	}
	err := format.Write(&bytes.Buffer{}, "preflight-v2", sample{}, format.Style{})
	if err == nil || !strings.Contains(err.Error(),
		`unknown output format "preflight-v2": it must be one of text, json, yaml, markdown, html`) {
		t.Errorf("a format that a document does not have: %v", err)
	}
}
