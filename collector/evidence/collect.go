package evidence

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/verdict/attestation"
	"github.com/openshift/update-preflight/collector/words"
)

// Keys returns the public key of the cluster with an ID; nil for a cluster without one. A nil function means that no
// keys are given.
type Keys func(clusterID string) signature.Verifier

// Item is the text of one statement, as a source has it.
type Item struct {
	// Name is where the text is, such as the path of a file.
	Name string
	Text []byte
	// Cluster is the ID of the only cluster that the text may be about; empty for any.
	Cluster string
	// Problem is why the source has no text; empty where it has.
	Problem string
}

// Known are the statements of a source.
type Known struct {
	Statements []Statement
	// Refused are texts that do not count, each with its name and why.
	Refused []string
	// Notices are what else is to be said about the statements.
	Notices []string
}

// Collect reads all texts. One that does not count is Refused, and is no error.
func Collect(items []Item, keys Keys) Known {
	var known Known
	for _, item := range items {
		stated, err := item.read(keys)
		if err != nil {
			known.Refused = append(known.Refused, fmt.Sprintf("%s: %s", words.External(item.Name), err))
			continue
		}
		known.Statements = append(known.Statements, stated)
	}
	if keys == nil && len(known.Statements) > 0 {
		known.Notices = append(known.Notices, "the statements about updates are not verified: the public keys of the clusters were not given")
	}
	return known
}

// Read reads one statement, signed or not. With keys, it has to be signed by the key of the cluster that it is about.
func Read(text []byte, keys Keys) (Statement, error) { return Item{Text: text}.read(keys) }

func (i Item) read(keys Keys) (Statement, error) {
	switch {
	case i.Problem != "":
		return Statement{}, errors.New(i.Problem)
	case len(i.Text) > MaxText:
		return Statement{}, fmt.Errorf("it is larger than %d KiB, which no statement about an update is", MaxText>>10)
	}
	payload, signed := i.Text, true
	claimed, err := attestation.Claimed(i.Text)
	if err == nil {
		payload = claimed
	} else {
		signed = false
	}
	stated, unread := decode(attestation.Read(payload, PredicateType))
	switch {
	case unread != nil:
		return Statement{}, fmt.Errorf("it is no statement about an update: %w", unread)
	case i.Cluster != "" && !strings.EqualFold(i.Cluster, stated.Cluster):
		return Statement{}, fmt.Errorf("it is about the cluster %s, not about %s, which reports it", words.External(stated.Cluster), words.External(i.Cluster))
	case keys == nil:
		return stated, nil
	case !signed:
		return Statement{}, errors.New("it is not signed, and keys are given")
	}
	key := keys(stated.Cluster)
	if key == nil {
		return Statement{}, fmt.Errorf("there is no public key of the cluster %s", words.External(stated.Cluster))
	}
	// What was decoded so far is what the text claims: the bytes that the key signed are decoded again.
	return decode(attestation.Open(i.Text, key, PredicateType))
}

func decode(content attestation.Content, err error) (Statement, error) {
	if err != nil {
		return Statement{}, err
	}
	var stated Statement
	if err := content.Decode(&stated); err != nil {
		return Statement{}, errors.New(words.External(err.Error()))
	}
	if text := stated.invalid(); text != "" {
		return Statement{}, errors.New(text)
	}
	subjects, err := stated.subjects()
	if err != nil {
		return Statement{}, err
	}
	if missing := content.Missing(subjects); missing != "" {
		return Statement{}, fmt.Errorf("%s, which it is about, is not a subject of it", words.External(missing))
	}
	stated.Regressions = slices.Clip(stated.Regressions)
	return stated, nil
}

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
