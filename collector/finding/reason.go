package finding

import (
	"regexp"
	"runtime"
	"strings"

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
type Explanation struct {
	// Meaning is when the reason is reported, Cause what brings that about: sentences.
	Meaning, Cause string
	// Remedy is what to do, in imperative sentences; empty where nothing needs to be done.
	// A finding that warns, fails or is inconclusive has it unless it has its own.
	Remedy string
	// Command is the command of the remedy with placeholders in capitals, or empty. It is
	// documentation: a finding has the command for its own object as an action.
	Command string
}

// Declaration is a reason or a name of findings, as a package declares it.
type Declaration struct {
	Name string
	// Package is the directory of the package, from the root of the module.
	Package string
	// IsName is true for the name of findings, which has no cause and no remedy unless it belongs to one reason.
	IsName bool
	Explanation
}

// declarations has one element for each call of NewReason and NewName.
var declarations []Declaration //nolint:gochecknoglobals // only the initialization of packages appends to it

// Declarations are the reasons and the names of all packages that the program has.
func Declarations() []Declaration { return declarations }

// NewReason declares a reason of the calling package, in a variable of that package.
func NewReason(name string, meaning Explanation) Reason {
	declarations = append(declarations, Declaration{Name: name, Package: caller(), Explanation: meaning})
	return Reason{name: name, meaning: &meaning}
}

// NewName declares a name of findings of the calling package, or the first part of such
// names, in a variable of that package. The meaning is sentences.
func NewName(name, meaning string) string {
	declarations = append(declarations, Declaration{Name: name, Package: caller(), IsName: true, Explanation: Explanation{Meaning: meaning}})
	return name
}

// Names declares a name of findings that always have this reason, as NewName does.
func (r Reason) Names(name string) string {
	declarations = append(declarations, Declaration{Name: name, Package: caller(), IsName: true, Explanation: *r.meaning})
	return name
}

// caller is the directory of the package that called the function which calls caller.
func caller() string {
	const skip = 2
	counter, _, _, _ := runtime.Caller(skip)
	name := runtime.FuncForPC(counter).Name() // such as github.com/openshift/update-preflight/collector/gate.init
	name = strings.TrimPrefix(name, "github.com/openshift/update-preflight/")
	slash := strings.LastIndex(name, "/") + 1
	last, _, _ := strings.Cut(name[slash:], ".")
	return name[:slash] + last
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
