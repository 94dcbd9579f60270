package wave

import (
	"cmp"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
)

// listed is how many clusters that succeeded are listed by default.
const listed = 20

// Document is the decision, and the clusters, those against the next wave first.
func (g Gate) Document(view document.View) document.Document {
	name := cmp.Or(g.Wave, "all clusters")
	level := document.Caution
	switch g.Decision {
	case verdict.Ready:
		level = document.Good
	case verdict.Blocked:
		level = document.Bad
	case verdict.Undecided, verdict.NothingKnown:
	}
	terms := document.Table{Title: "Terms"}
	terms.Row("Release", g.Target)
	terms.Row("Wave", name)
	terms.Row("Soak", g.MinSuccessTime)
	terms.Row("May fail", g.MaxFailures)
	table := document.Table{Title: "Clusters", Columns: []string{"Cluster", "Status", "Since", "Cause"}, Result: "Status"}
	succeeded := 0
	for _, each := range g.Clusters {
		if each.Status == Succeeded {
			succeeded++
			if succeeded > view.Entries(len(g.Clusters), listed) {
				table.More++
				continue
			}
		}
		table.Rows = append(table.Rows, []string{each.Name, string(each.Status), each.Since, each.Message})
	}
	return document.Document{
		Title: "Gate after " + name, Source: "The JSON document has all data.",
		Blocks: []document.Block{
			document.Verdict{Mark: document.Mark{Level: level, Word: string(g.Decision)}, Subject: "the wave after " + name, Meaning: words.Sentence(words.Line(g.Message, maxMessage))},
			terms, table,
			document.List{Lead: "Notices", Entries: g.Notices},
		},
	}
}
