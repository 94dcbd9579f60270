package attestation

import (
	"cmp"
	"fmt"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/words"
)

// maxNames is how many names of findings a row lists.
const maxNames = 10

// Document is the decision of a valid verdict or else the result, and what an authentic one states.
func (v Verification) Document(document.View) document.Document {
	made := document.Document{
		Title: "Verification of a signed verdict", Source: "The JSON document has all data.",
		Blocks: []document.Block{document.Verdict{Mark: v.mark(), Meaning: words.Sentence(v.Message)}},
	}
	if v.Statement != nil {
		made.Blocks = append(made.Blocks, v.Statement.table())
	}
	return made
}

func (v Verification) mark() document.Mark {
	switch {
	case v.Permits():
		return document.Mark{Level: document.Good, Word: v.Statement.summary()}
	case v.Result == Valid:
		return document.Mark{Level: document.Caution, Word: v.Statement.summary()}
	}
	return document.Mark{Level: document.Bad, Word: string(v.Result)}
}

func (p Predicate) table() document.Block {
	table := document.Table{Title: "What was signed"}
	table.Row("Decision", p.summary())
	table.Row("Cluster", p.Cluster.ID)
	table.Row("From", cmp.Or(p.Cluster.Version, "an unknown version"))
	table.Row("To", fmt.Sprintf("%s, %s", cmp.Or(p.Target.Version, "an unknown version"), p.Target.Image))
	table.Row("Blocking", words.List(p.Verdict.Blocking, maxNames))
	table.Row("Undecided", words.List(p.Verdict.Undecided, maxNames))
	table.Row("Accepted", words.List(p.Verdict.Accepted, maxNames))
	table.Row("Left out", words.List(p.Verdict.Narrowed, maxNames))
	table.Row("Run", fmt.Sprintf("%s, %s at %s", cmp.Or(p.Run.ID, "not recorded"), p.Run.Phase, p.Run.CompletionTime))
	table.Row("Until", p.Verdict.ValidUntil)
	table.Row("Made by", "version "+p.Run.ToolVersion)
	return table
}
