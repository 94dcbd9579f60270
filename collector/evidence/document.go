package evidence

import (
	"strconv"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/words"
)

// listed is how many causes are listed by default.
const listed = 20

// Document is the sentence on all clusters, and the causes.
func (s Summary) Document(view document.View) document.Document {
	all := s.Alike.plus(s.Others)
	mark := document.Mark{Level: document.Caution, Word: "Unknown"}
	switch {
	case len(s.Met) > 0 || all.against() > 0 && all.Good == 0:
		mark = document.Mark{Level: document.Bad, Word: "Regressed"}
	case all.against() > 0:
		mark = document.Mark{Level: document.Caution, Word: "Regressed"}
	case all.Good > 0:
		mark = document.Mark{Level: document.Good, Word: "Good"}
	}
	counts := document.Table{Title: "Clusters"}
	counts.Row("Good", strconv.Itoa(all.Good))
	counts.Row("Regressed", strconv.Itoa(all.Regressed))
	counts.Row("Rolled back", strconv.Itoa(all.RolledBack))
	counts.Row("Last judged", s.LastTime)
	counts.Row("Threshold", s.FailAt)
	causes := document.Table{Title: "What regressed", Columns: []string{"Finding", "Clusters", "What only they have"}}
	for i, each := range s.Causes {
		if i >= view.Entries(len(s.Causes), listed) {
			causes.More++
			continue
		}
		var common []string
		for _, property := range each.Common {
			common = append(common, property.text())
		}
		causes.Rows = append(causes.Rows, []string{each.Name, strconv.Itoa(each.Clusters), words.List(common, len(common))})
	}
	return document.Document{
		Title: "Evidence about the update to " + s.Target, Source: "The JSON document has all data.",
		Blocks: []document.Block{
			document.Verdict{Mark: mark, Subject: "the update to " + s.Target, Meaning: words.Sentence(s.Sentence())},
			counts, causes,
			document.List{Lead: "Not counted", Entries: s.Refused[:min(len(s.Refused), view.Entries(len(s.Refused), listed))]},
			document.List{Lead: "Notices", Entries: s.Notices},
		},
	}
}
