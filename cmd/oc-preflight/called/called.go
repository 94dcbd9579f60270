// Package called answers: by which programs are the commands of a text called?
//
// Texts name this program "oc preflight", and the program of the cluster "oc". [Text] has the
// names by which the user calls them.
package called

import (
	"regexp"
	"slices"
	"strings"
)

// Plugin is how the texts of all packages call this program.
const Plugin = "oc preflight"

// kubectl is the first word of the name of a plugin of kubectl.
const kubectl = "kubectl"

// Text is a text, or a command, whose commands are those of a user who calls this program by
// name, such as "kubectl preflight". The commands of oc that kubectl has, too, are its
// commands for a plugin of kubectl; the others stay.
func Text(text, name string) string {
	if name == Plugin || !strings.Contains(text, "oc ") {
		return text
	}
	isKubectl := strings.HasPrefix(name, kubectl+" ")
	var made strings.Builder
	for {
		at := program.FindStringIndex(text)
		if at == nil {
			return made.String() + text
		}
		made.WriteString(text[:at[1]-len("oc ")])
		text = text[at[1]:]
		rest, ours := strings.CutPrefix(text, "preflight")
		switch {
		case ours && (rest == "" || !inWord(rest[0])):
			made.WriteString(name)
			text = rest
		case isKubectl:
			var words string
			words, text = ofKubectl(text)
			made.WriteString(words)
		default:
			made.WriteString("oc ")
		}
	}
}

// program is the word "oc" with the space behind it, and not the end of another word.
var program = regexp.MustCompile(`(?:^|[^-0-9A-Za-z./_])oc `)

// inWord is true for a character of the name of a program.
func inWord(c byte) bool {
	return c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// word is one word of a shell with the space before it.
var word = regexp.MustCompile(`^\s*(?:[^\s'"` + "`" + `;|&()<>]|'[^']*'|"[^"]*")+`)

// ofKubectl is the beginning of a command of oc, behind the name of the program, as of the program that
// has the verb, and what follows it.
func ofKubectl(command string) (made, rest string) {
	flags, rest := split(command)
	verb, behind := next(rest)
	administration, after := next(behind)
	switch {
	case slices.Contains(verbs(), verb):
		return kubectl + " " + flags, rest
	case verb == "adm" && slices.Contains(administrative(), administration):
		return kubectl + " " + flags + administration, after
	case verb == "set" && slices.Contains([]string{"env", "image", "resources"}, administration):
		return kubectl + " " + flags, rest
	}
	return "oc " + flags, rest
}

// split takes the flags from the beginning of a command, with the spaces behind them. All flags before a verb
// have a value, but for those of switches.
func split(command string) (flags, rest string) {
	rest = command
	for strings.HasPrefix(rest, "-") {
		flag, behind := next(rest)
		if flag == "" {
			break
		}
		rest = strings.TrimLeft(behind, " ")
		isSwitch := strings.Contains(flag, "=") || slices.Contains([]string{"-A", "--insecure-skip-tls-verify", "--disable-compression"}, flag)
		if isSwitch {
			continue
		}
		_, behind = next(rest)
		rest = strings.TrimLeft(behind, " ")
	}
	return command[:len(command)-len(rest)], rest
}

// next is the first word of a command, and what follows it.
func next(command string) (first, rest string) {
	first = word.FindString(command)
	return strings.TrimSpace(first), command[len(first):]
}

// verbs are those of oc that kubectl has with the same arguments.
func verbs() []string {
	return []string{
		"annotate", "api-resources", "api-versions", "apply", "attach", "auth", "autoscale", "cluster-info", "config", "cp", "create", "delete",
		"describe", "diff", "edit", "events", "exec", "expose", "get", "label", "logs", "patch", "port-forward", "replace", "rollout", "run", "scale",
		"wait",
	}
}

// administrative are the verbs of "oc adm" that are verbs of kubectl.
func administrative() []string {
	return []string{"certificate", "cordon", "drain", "taint", "top", "uncordon"}
}
