// Package catalog answers: what do the reasons and the names of findings of this program mean?
//
// Each package declares its own in variables; package finding does so for the ones that are values.
package catalog

import (
	"runtime"
	"strings"
)

// Explanation explains a reason.
type Explanation struct {
	// Meaning is when the reason is reported, Cause what brings that about: sentences.
	Meaning, Cause string
	// Remedy says what to do, in imperative sentences; empty if nothing needs to be done. A finding that warns, fails
	// or is inconclusive gets it unless it has its own.
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

// declarations has one element for each call of Declare, and each line of Reasons.
var declarations []Declaration //nolint:gochecknoglobals // appended only while packages are initialized

// Declarations are the reasons and the names of all packages that the program has.
func Declarations() []Declaration { return declarations }

// Declare adds a declaration of the package that called the caller of Declare.
func Declare(d Declaration) {
	d.Package = caller(indirect)
	declarations = append(declarations, d)
}

// Reasons declares reasons of the calling package that occur as words in a document and are not values of type
// Reason, such as the reasons of a condition. Call it in a variable of that package; it returns the explanations.
// All reasons share the meaning. Each line of the table is "NAME | cause | remedy | command", without empty
// columns at its end; an indented line continues it.
func Reasons(meaning, table string) map[string]Explanation {
	explained, of := map[string]Explanation{}, caller(direct)
	for line := range strings.SplitSeq(strings.ReplaceAll(strings.TrimSpace(table), "\n\t", " "), "\n") {
		columns := append(strings.Split(line, " | "), "", "", "")
		explained[columns[0]] = Explanation{Meaning: meaning, Cause: columns[1], Remedy: columns[2], Command: columns[3]}
		declarations = append(declarations, Declaration{Name: columns[0], Package: of, Explanation: explained[columns[0]]})
	}
	return explained
}

// The packages that are declared for: the one that calls this package, or the one that calls its caller.
const direct, indirect = 2, 3

// caller is the directory of the package that many calls before caller.
func caller(skip int) string {
	counter, _, _, _ := runtime.Caller(skip)
	name := runtime.FuncForPC(counter).Name() // such as github.com/openshift/update-preflight/collector/gate.init
	name = strings.TrimPrefix(name, "github.com/openshift/update-preflight/")
	slash := strings.LastIndex(name, "/") + 1
	last, _, _ := strings.Cut(name[slash:], ".")
	return name[:slash] + last
}
