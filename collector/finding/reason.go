package finding

import (
	"regexp"
	"strings"

	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/words"
)

// Reason is why a check has its outcome: one CamelCase word, stable between releases, and what
// it means. The zero value is none.
//
// Documents have the word only, so a reason is compared with a document by its word, and with
// another reason by ==: two packages may use one word for two reasons, and a word that another
// program reports is never a reason of this one.
type Reason struct {
	name    string
	meaning *Explanation // nil for a ReportedReason
}

// Explanation is what a reason means.
type Explanation = catalog.Explanation

// NewReason declares a reason of the calling package, in a variable of that package.
func NewReason(name string, meaning Explanation) Reason {
	catalog.Declare(catalog.Declaration{Name: name, Explanation: meaning})
	return Reason{name: name, meaning: &meaning}
}

// NewName declares a name of findings of the calling package, or the first part of such
// names, in a variable of that package. The meaning is sentences.
func NewName(name, meaning string) string {
	catalog.Declare(catalog.Declaration{Name: name, IsName: true, Explanation: Explanation{Meaning: meaning}})
	return name
}

// Names declares a name of findings that always have this reason, as NewName does.
func (r Reason) Names(name string) string {
	catalog.Declare(catalog.Declaration{Name: name, IsName: true, Explanation: *r.meaning})
	return name
}

// maxReason bounds the reason of another program, in bytes.
const maxReason = 256

// ReportedReason is a reason that another program states, such as a condition of an operator or
// the check of a component, which documents it. An empty one is none.
func ReportedReason(name string) Reason { return Reason{name: words.Line(name, maxReason)} }

// String is the word; empty for none.
func (r Reason) String() string { return r.name }

// incomplete is a command in a text with a word in capitals, which the reader has to replace.
var incomplete = regexp.MustCompile("(?:: | with |, )?`[^`]*\\b[A-Z]{4,}\\b[^`]*`")

// remedy is the remedy of a finding: without the command for any object, which is documentation.
func (r Reason) remedy() string {
	if r.meaning == nil {
		return ""
	}
	return incomplete.ReplaceAllString(r.meaning.Remedy, "")
}

// MaxName is the length of the longest name that ClusterVersion accepts in
// spec.desiredUpdate.acceptRisks (openshift/api config/v1, AcceptRisk), in bytes.
const MaxName = 256

// ValidName reports whether an administrator can accept a finding by this name:
// it matches ^[A-Z][A-Za-z0-9.-]*$, CVO's rule for the names of risks
// (cluster-version-operator pkg/risk/risk.go), and has at most MaxName bytes.
func ValidName(name string) bool {
	return name != "" && len(name) <= MaxName && 'A' <= name[0] && name[0] <= 'Z' && strings.IndexFunc(name, notInName) < 0
}

// NameOf is the name of the finding about one object: the kind, which is a valid
// name, a dash and the object, in which a dash replaces every character that a
// valid name cannot have. The object is cut where the name would be too long.
func NameOf(kind, object string) string {
	object = strings.Map(func(r rune) rune {
		if notInName(r) {
			return '-'
		}
		return r
	}, object)
	object = object[:min(len(object), MaxName-len(kind)-1)]
	return kind + "-" + strings.Trim(object, "-")
}

func notInName(r rune) bool {
	alphanumeric := 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' || '0' <= r && r <= '9'
	return !alphanumeric && r != '.' && r != '-'
}
