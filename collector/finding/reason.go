package finding

import (
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

// declarations has one element for each call of NewReason and NewName, and each line of Explain.
var declarations []Declaration //nolint:gochecknoglobals // only the initialization of packages appends to it

// Declarations are the reasons and the names of all packages that the program has.
func Declarations() []Declaration { return declarations }

// NewReason declares a reason of the calling package, in a variable of that package.
func NewReason(name string, meaning Explanation) Reason {
	declarations = append(declarations, Declaration{Name: name, Package: caller(), Explanation: meaning})
	return Reason{name: name, meaning: &meaning}
}

// Explain declares reasons of the calling package that are words in a document and no values of type Reason, such as the
// ones of a condition, in a variable of that package, and returns their explanations. All have the meaning. Each line of
// the table is "NAME | cause | remedy | command", without what is empty at its end; an indented line continues it.
func Explain(meaning, table string) map[string]Explanation {
	explained, of := map[string]Explanation{}, caller()
	for line := range strings.SplitSeq(strings.ReplaceAll(strings.TrimSpace(table), "\n\t", " "), "\n") {
		columns := append(strings.Split(line, " | "), "", "", "")
		explained[columns[0]] = Explanation{Meaning: meaning, Cause: columns[1], Remedy: columns[2], Command: columns[3]}
		declarations = append(declarations, Declaration{Name: columns[0], Package: of, Explanation: explained[columns[0]]})
	}
	return explained
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

func (r Reason) remedy() string {
	if r.meaning == nil {
		return ""
	}
	return r.meaning.Remedy
}
