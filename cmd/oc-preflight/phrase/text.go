package phrase

import (
	"slices"
	"strings"

	"github.com/openshift/update-preflight/cmd/oc-preflight/called"
)

// plugin begins a command of the program in texts outside of this package.
const plugin = called.Plugin + " "

// unconnected are the commands that need no cluster, and "auth", whose roles another user applies.
func unconnected() []string {
	return []string{"auth", "completion", "conformance", "explain", "help", "init", "options", "render", "schema", "verify-verdict"}
}

// About is the command line of a verb about the cluster of the request, with its first words.
func (p Phrase) About(verb, words string) string {
	return p.Verb(verb, words, p.Given.about(verb))
}

// about are the flags of a verb about the cluster of the request; "attach" has all again that the record of a run does
// not have.
func (g Flags) about(verb string) Flags {
	if verb == "attach" {
		return g.of(verb)
	}
	return g.cluster().of(verb)
}

// Text is a text, such as an error or a hint, whose commands call this program by the name that the user calls it, and
// are about the cluster of the request: each verb is followed by the flags that reach it. Only a command that has
// flags of its own, or that needs no cluster, has none.
func (p Phrase) Text(text string) string {
	var worded strings.Builder
	for {
		before, after, found := strings.Cut(text, plugin)
		worded.WriteString(before)
		if !found {
			return called.Text(worded.String(), p.program)
		}
		verb := longestPrefix(after, p.verbs)
		worded.WriteString(p.program + " " + verb)
		text = after[len(verb):]
		if verb != "" && !strings.HasPrefix(text, " --help") && !slices.Contains(unconnected(), verb) {
			worded.WriteString(p.Given.about(verb).missing(text).String())
		}
	}
}

// longestPrefix is the command with which a text begins; empty for none.
func longestPrefix(text string, verbs []string) string {
	longest := ""
	for _, verb := range verbs {
		rest, begins := strings.CutPrefix(text, verb)
		if begins && (rest == "" || !isNameByte(rest[0])) && len(verb) > len(longest) {
			longest = verb
		}
	}
	return longest
}

func isNameByte(b byte) bool { return b == '-' || 'a' <= b && b <= 'z' }

// missing are the flags that the command with which a text begins does not have.
func (g Flags) missing(text string) Flags {
	if end := strings.IndexAny(text, ";`\"\n"); end >= 0 {
		text = text[:end]
	}
	words := strings.Fields(text)
	return slices.DeleteFunc(slices.Clone(g), func(flag givenFlag) bool { return slices.Contains(words, "--"+flag.Name) })
}
